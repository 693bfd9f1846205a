"""`hiresvlm bench`: figures that anyone can print again."""

from __future__ import annotations

from typing import Annotated

import typer

from hiresvlm.cli import options

KINDS = (
    "receipts", "samples", "memory", "chunking", "cuts", "merge", "engine", "nano", "draft", "prune",
    "places", "ask", "ask-vlm", "gpu",
)  # fmt: skip
SWEEPS = ("height",)


def bench(
    what: Annotated[str, typer.Argument(metavar="WHAT", help=", ".join(KINDS) + ".")],
    folder: Annotated[
        str | None, typer.Argument(metavar="[FOLDER]", help="Documents with gold text.")
    ] = None,
    engine: Annotated[str, typer.Option(help="Engine of `memory`.")] = "echo",
    pages: Annotated[
        int | None,
        typer.Option(min=1, help="Pages of `memory`, `ask-vlm`; of a kind of the others."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="`receipts`, `prune`: files; `nano`, `draft`: of a kind; `ask-vlm`: questions a page."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of all that make pages: other pages.")] = 1,
    kind: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="`chunking`, `ask`: only these kinds of pages.")
    ] = None,
    strategy: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="`chunking`, `prune`: only these strategies.")
    ] = None,
    sweep: Annotated[
        str | None, typer.Option(help="`chunking`: `height`, accuracy against height of capitals.")
    ] = None,
    uniform: Annotated[
        bool, typer.Option("--uniform", help="`chunking`: also find the cheapest uniform scale (slow).")
    ] = False,
    fit: Annotated[
        bool, typer.Option("--fit", help="`ask`: fit the weights of the confidence, and print them.")
    ] = False,
    save: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="`chunking`: keep the pages in it; `gpu`: write the result to it."),
    ] = None,
    stage: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="`ask-vlm`: only these rows.")
    ] = None,
    height: Annotated[float, typer.Option(min=50, help="`cuts`: distance of cuts in pixels.")] = 400.0,
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME_OR_DIR",
            help="`engine`, `nano`, `draft`, `prune`, `places`, `ask-vlm`: which.",
        ),
    ] = "nano",
    quant: options.Quant = "int4",
    chunks: Annotated[int, typer.Option(min=1, help="`engine`: chunks of the throughput table.")] = 96,
    tokens: Annotated[int, typer.Option(min=1, help="`engine`: mean length of their answers.")] = 64,
    max_new_tokens: Annotated[
        int, typer.Option(min=1, help="`engine`: longest answer where accuracy is measured.")
    ] = 1024,
    load: Annotated[
        bool, typer.Option("--load", help="`engine`: only the time of loading, of a larger model too.")
    ] = False,
    tiny: Annotated[
        bool, typer.Option("--tiny", help="`gpu`: small models, on the CPU too; says nothing about speed.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=0, help="`gpu`: begin nothing that may end later than this.")
    ] = 440,
    verbose: options.Verbose = False,
) -> None:
    """Measure accuracy, speed or memory: a table for people, one JSON line last."""
    from hiresvlm import bench as benches
    from hiresvlm.errors import UsageError

    options.choice(what, KINDS, "WHAT")
    if what == "memory":
        if pages is not None and pages < 20:
            raise UsageError("bench memory needs at least 20 pages", "its table has ten rows")
        benches.memory(engine, pages or 500)
        return
    if what == "chunking":
        _chunking(folder, seed, kind or [], strategy or [], pages, sweep, uniform, save)
        return
    if what == "merge":
        benches.merging(folder, seed)
        return
    if what == "gpu":
        benches.gpu(tiny, seconds, save)
        return
    if what == "nano":
        benches.nano(model, limit)
        return
    if what == "draft":
        options.choice(quant, ("int4", "none"), "--quant")
        benches.draft(model, quant, limit)
        return
    if what == "prune":
        options.choice(quant, ("int4", "none"), "--quant")
        for name in strategy or []:
            options.choice(name, options.STRATEGIES, "--strategy")
        benches.pruning(
            folder,
            benches.PruningChoice(
                model, quant, pages or 12, seed, tuple(strategy or ("auto",)), limit, max_new_tokens
            ),
        )
        return
    if what == "places":
        options.choice(quant, ("int4", "none"), "--quant")
        benches.places(model, quant, pages or 6, seed, max_new_tokens)
        return
    if what == "engine":
        options.choice(quant, ("int4", "none"), "--quant")
        if load:
            benches.loads(model)
            return
        benches.engine(
            benches.EngineChoice(
                model,
                quant,
                chunks=chunks,
                mean_tokens=tokens,
                pages=pages or 2,
                max_new_tokens=max_new_tokens,
                seed=seed,
            )
        )
        return
    if what == "ask-vlm":
        options.choice(quant, ("int4", "none"), "--quant")
        for name in stage or []:
            options.choice(name, tuple(benches.STAGES), "--stage")
        benches.ask_visual(model, quant, seed, pages or 4, limit, stage or ())
        return
    if what == "ask" and fit:
        benches.ask_fit(folder, pages or 3)
        return
    if what == "ask":
        _ask(folder, seed, pages, kind or [])
        return
    if folder is None:
        raise UsageError(f"bench {what} needs a FOLDER", f"hiresvlm bench {what} samples/")
    if what == "receipts":
        benches.receipts(folder, limit)
    elif what == "cuts":
        benches.cuts(folder, height)
    else:
        benches.samples(folder)


def _ask(folder: str | None, seed: int, pages: int | None, kinds: list[str]) -> None:
    from hiresvlm import bench as benches
    from hiresvlm.bench.questions import KINDS as PAPERS

    for name in kinds:
        options.choice(name, (*PAPERS, "twins", "receipts"), "--kind")
    benches.ask(folder, seed, pages or 4, kinds)


def _chunking(
    folder: str | None,
    seed: int,
    kinds: list[str],
    strategies: list[str],
    pages: int | None,
    sweep: str | None,
    uniform: bool,
    save: str | None,
) -> None:
    from hiresvlm import bench as benches
    from hiresvlm.bench.gold import KINDS as GOLD_KINDS
    from hiresvlm.chunking import STRATEGIES

    if sweep is not None:
        options.choice(sweep, SWEEPS, "--sweep")
        benches.heights(seed, pages=pages or 2)
        return
    for name in kinds:
        options.choice(name, tuple(GOLD_KINDS), "--kind")
    for name in strategies:
        options.choice(name, tuple(STRATEGIES), "--strategy")
    default = benches.Choice()
    choice = benches.Choice(
        seed=seed,
        kinds=tuple(kinds) or default.kinds,
        strategies=tuple(strategies) or default.strategies,
        pages=pages,
        uniform=uniform,
    )
    benches.chunking(folder, choice, save)
