"""`hiresvlm bench`: figures that anyone can print again. Each bench is a command with options of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from hiresvlm.cli import options

SWEEPS = ("height",)
QUANTS = ("int4", "none")

app = typer.Typer(
    help="Measure accuracy, speed or memory: a table for people, one JSON line last.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Gold = Annotated[str, typer.Argument(metavar="FOLDER", help="Documents with gold text beside them.")]
MaybeGold = Annotated[
    str | None,
    typer.Argument(metavar="[FOLDER]", help="Documents with gold text, beside generated ones."),
]
Seed = Annotated[int, typer.Option(help="Another seed makes other pages.")]
Pages = Annotated[int, typer.Option(min=1, help="Pages of each kind.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N of each kind.")]
Files = Annotated[int | None, typer.Option("--limit", min=1, help="Only the first N files of FOLDER.")]
Model = Annotated[str, typer.Option("--model", "-m", metavar="NAME_OR_DIR", help="The model.")]
Longest = Annotated[int, typer.Option("--max-new-tokens", min=1, help="Longest answer in tokens.")]
Kinds = Annotated[list[str] | None, typer.Option("--kind", metavar="KIND", help="Only these kinds of pages.")]
Strategies = Annotated[
    list[str] | None, typer.Option("--strategy", metavar="NAME", help="Only these strategies.")
]


@app.command()
def receipts(folder: Gold, limit: Files = None, verbose: options.Verbose = False) -> None:
    """Recognition of receipts: light, RapidOCR and Tesseract."""
    from hiresvlm import bench

    bench.receipts(folder, limit)


@app.command()
def samples(folder: Gold, verbose: options.Verbose = False) -> None:
    """The strategies on the samples."""
    from hiresvlm import bench

    bench.samples(folder)


@app.command()
def memory(
    engine: Annotated[str, typer.Option(help="Which engine reads.")] = "echo",
    pages: Annotated[int, typer.Option(min=20, help="Pages of the document.")] = 500,
    verbose: options.Verbose = False,
) -> None:
    """Memory of the process tree over a long document."""
    from hiresvlm import bench

    bench.memory(engine, pages)


@app.command()
def chunking(
    folder: MaybeGold = None,
    seed: Seed = 1,
    pages: Annotated[
        int | None, typer.Option(min=1, help="Pages of each kind; by itself at least 5,000 characters.")
    ] = None,
    kind: Kinds = None,
    strategy: Strategies = None,
    sweep: Annotated[
        str | None, typer.Option(help="`height`: accuracy against the height of capitals instead.")
    ] = None,
    uniform: Annotated[
        bool, typer.Option("--uniform", help="Also find the cheapest uniform scale (slow).")
    ] = False,
    save: Annotated[str | None, typer.Option(metavar="DIR", help="Keep the generated pages.")] = None,
    verbose: options.Verbose = False,
) -> None:
    """Tokens and accuracy of every strategy on every kind of page."""
    from hiresvlm import bench
    from hiresvlm.bench.gold import KINDS as GOLD_KINDS
    from hiresvlm.chunking import STRATEGIES

    if sweep is not None:
        options.choice(sweep, SWEEPS, "--sweep")
        bench.heights(seed, pages=pages or 2)
        return
    for name in kind or []:
        options.choice(name, tuple(GOLD_KINDS), "--kind")
    for name in strategy or []:
        options.choice(name, tuple(STRATEGIES), "--strategy")
    default = bench.Choice()
    choice = bench.Choice(
        seed=seed,
        kinds=tuple(kind or default.kinds),
        strategies=tuple(strategy or default.strategies),
        pages=pages,
        uniform=uniform,
    )
    bench.chunking(folder, choice, save)


@app.command()
def cuts(
    folder: Gold,
    height: Annotated[float, typer.Option(min=50, help="Distance of cuts in pixels.")] = 400.0,
    verbose: options.Verbose = False,
) -> None:
    """How many forced cuts lie in white space."""
    from hiresvlm import bench

    bench.cuts(folder, height)


@app.command()
def merge(folder: MaybeGold = None, seed: Seed = 1, verbose: options.Verbose = False) -> None:
    """Merging of overlapping texts without boxes."""
    from hiresvlm import bench

    bench.merging(folder, seed)


@app.command()
def engine(
    model: Model = "nano",
    quant: options.Quant = "int4",
    seed: Seed = 1,
    pages: Pages = 2,
    chunks: Annotated[int, typer.Option(min=1, help="Chunks of the throughput table.")] = 96,
    tokens: Annotated[int, typer.Option(min=1, help="Mean length of their answers.")] = 64,
    max_new_tokens: Longest = 1024,
    load: Annotated[
        bool, typer.Option("--load", help="Only the time of loading, of a larger model too.")
    ] = False,
    verbose: options.Verbose = False,
) -> None:
    """Throughput, memory and loading of a vision-language model."""
    from hiresvlm import bench

    options.choice(quant, QUANTS, "--quant")
    if load:
        bench.loads(model)
        return
    bench.engine(
        bench.EngineChoice(
            model,
            quant,
            chunks=chunks,
            mean_tokens=tokens,
            pages=pages,
            max_new_tokens=max_new_tokens,
            seed=seed,
        )
    )


@app.command()
def nano(model: Model = "nano", limit: Limit = None, verbose: options.Verbose = False) -> None:
    """What the model of the package reads, in float32 and in 4 bits."""
    from hiresvlm import bench

    bench.nano(model, limit)


@app.command()
def draft(
    model: Model = "nano",
    quant: options.Quant = "int4",
    limit: Limit = None,
    verbose: options.Verbose = False,
) -> None:
    """Draft-verify decoding of one answer against plain decoding and slots."""
    from hiresvlm import bench

    options.choice(quant, QUANTS, "--quant")
    bench.draft(model, quant, limit)


@app.command()
def prune(
    folder: MaybeGold = None,
    model: Model = "nano",
    quant: options.Quant = "int4",
    seed: Seed = 1,
    pages: Pages = 12,
    strategy: Strategies = None,
    limit: Files = None,
    max_new_tokens: Longest = 1024,
    verbose: options.Verbose = False,
) -> None:
    """Tokens and accuracy with blank cells dropped."""
    from hiresvlm import bench

    options.choice(quant, QUANTS, "--quant")
    for name in strategy or []:
        options.choice(name, options.STRATEGIES, "--strategy")
    chosen = tuple(strategy or ("auto",))
    bench.pruning(folder, bench.PruningChoice(model, quant, pages, seed, chosen, limit, max_new_tokens))


@app.command()
def places(
    model: Model = "nano",
    quant: options.Quant = "int4",
    seed: Seed = 1,
    pages: Pages = 6,
    max_new_tokens: Longest = 1024,
    verbose: options.Verbose = False,
) -> None:
    """What a model should know of where its tiles lie on the page."""
    from hiresvlm import bench

    options.choice(quant, QUANTS, "--quant")
    bench.places(model, quant, pages, seed, max_new_tokens)


@app.command()
def ask(
    folder: MaybeGold = None,
    seed: Seed = 1,
    pages: Annotated[
        int | None, typer.Option(min=1, help="Pages of each kind; 4, and 3 with --fit, by itself.")
    ] = None,
    kind: Kinds = None,
    fit: Annotated[
        bool, typer.Option("--fit", help="Fit the weights of the confidence, and print them.")
    ] = False,
    verbose: options.Verbose = False,
) -> None:
    """Answers of the extractive reader and of a keyword rule."""
    from hiresvlm import bench
    from hiresvlm.bench.questions import KINDS as PAPERS

    if fit:
        bench.ask_fit(folder, pages or 3)
        return
    for name in kind or []:
        options.choice(name, (*PAPERS, "twins", "receipts"), "--kind")
    bench.ask(folder, seed, pages or 4, kind or [])


@app.command("ask-vlm")
def ask_vlm(
    model: Model = "nano",
    quant: options.Quant = "int4",
    seed: Seed = 1,
    pages: Pages = 4,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N questions of a page.")] = None,
    stage: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only these rows.")] = None,
    verbose: options.Verbose = False,
) -> None:
    """Answers of a model, stage by stage, on large pages with small labels."""
    from hiresvlm import bench

    options.choice(quant, QUANTS, "--quant")
    for name in stage or []:
        options.choice(name, tuple(bench.STAGES), "--stage")
    bench.ask_visual(model, quant, seed, pages, limit, stage or ())


@app.command()
def gpu(
    tiny: Annotated[
        bool, typer.Option("--tiny", help="Small models, on the CPU too; says nothing about speed.")
    ] = False,
    seconds: Annotated[float, typer.Option(min=0, help="Begin nothing that may end later than this.")] = 440,
    save: Annotated[str | None, typer.Option(metavar="FILE", help="Write the result to it.")] = None,
    verbose: options.Verbose = False,
) -> None:
    """Speed of production-size models with random weights on a GPU."""
    from hiresvlm import bench

    bench.gpu(tiny, seconds, save)
