"""Chunking strategies on pages whose text is known, read by the `light` engine in the whole tool."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import typer

from hiresvlm.bench import gold
from hiresvlm.bench.gold import GoldPage
from hiresvlm.bench.harness import Bench, json_line, markdown, table
from hiresvlm.bench.pagescore import PageScore, Summary, page_score
from hiresvlm.bench.uniform import Costs, compare
from hiresvlm.chunking import STRATEGIES
from hiresvlm.documents import expand
from hiresvlm.errors import NoInputError
from hiresvlm.metrics import interval
from hiresvlm.settings import EngineSettings, Settings

SUBJECT: Final = "auto"
UNIFORM: Final = "seam"
"""The strategy with one scale for the whole page."""

LEGIBLE_STEPS: Final = (0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.2, 1.5)
"""Text heights that are tried, as shares of what the engine's profile asks for."""

SAME_CER: Final = 0.0005
"""Character error rates this close (0.05 points) count as the same in the search for a cheaper scale."""

_COLUMNS: Final = (
    *("kind", "strategy", "tokens", "of naive", "chunks", "kept", "CER", "en", "zh"),
    *("at cuts", "elsewhere", "missed", "doubled", "rows", "ms"),
)


_SUMMARY: Final = (
    *("auto on", "tokens", "of naive", "chunks", "kept", "CER en", "CER zh", "CER at cuts"),
    *("missed", "doubled", "rows whole", "ms", "best other", "CER points to it"),
)


@dataclass(frozen=True, slots=True)
class Choice:
    """What to measure; the defaults are the benchmark."""

    seed: int = 1
    kinds: tuple[str, ...] = tuple(gold.KINDS)
    strategies: tuple[str, ...] = tuple(name for name in STRATEGIES if name != "whole")
    pages: int | None = None
    """Pages of each kind; None: as many as its 5,000 characters need."""
    uniform: bool = False
    """Look for the cheapest uniform scale too, which takes as long again."""


class _Reading:
    """Pages and the engine that reads them."""

    def __init__(self, pages: Sequence[GoldPage]) -> None:
        self.pages = {(page.path, page.page): page for page in pages}
        self.bench = Bench(Settings(engine=EngineSettings(name="light")))

    def read(self, strategy: str, kinds: Iterable[str], enlarge: float = 1.0) -> dict[str, Summary]:
        """Summaries of the kinds under one strategy."""
        chosen = set(kinds)
        paths = dict.fromkeys(page.path for page in self.pages.values() if page.kind in chosen)
        found: dict[str, Summary] = {}
        for record in self.bench.read(list(paths), strategy, enlarge).records:
            page = self.pages.get((record["source"], record["page"] or 1))
            if page is not None and page.lines:
                found.setdefault(page.kind, Summary()).pages.append(page_score(page, record))
        return found


def chunking(folder: str | None, choice: Choice, save: str | None = None) -> None:
    """Print scores of each strategy on each kind of page; on `folder` or on pages made for `choice.seed`.

    `save`: a folder that keeps the pages made.
    """
    if folder is not None:
        pages = [page for document in expand([folder]) for page in gold.load(document.path)]
        if not any(page.lines for page in pages):
            hint = f"it is named NAME{gold.TEXT_SUFFIX}"
            raise NoInputError(f"no document of {folder} has a gold text", hint)
        _measure(pages, choice)
        return
    with tempfile.TemporaryDirectory() as scratch:
        target = save or scratch
        os.makedirs(target, exist_ok=True)
        _measure(gold.make(target, choice.kinds, choice.seed, choice.pages), choice)


def _measure(pages: Sequence[GoldPage], choice: Choice) -> None:
    reading = _Reading(pages)
    kinds = list(dict.fromkeys(page.kind for page in pages))
    by_strategy = {}
    for number, name in enumerate(choice.strategies, 1):
        typer.echo(f"{number}/{len(choice.strategies)} {name}", err=True)
        by_strategy[name] = reading.read(name, kinds)
    rows: list[tuple[object, ...]] = []
    result: dict[str, dict[str, Any]] = {}
    for kind in kinds:
        summaries = {name: found[kind] for name, found in by_strategy.items() if kind in found}
        rows += [_row(kind, name, summary.as_dict()) for name, summary in summaries.items()]
        result[kind] = {name: summary.as_dict() for name, summary in summaries.items()}
    table(_COLUMNS, rows)
    typer.echo(
        "tokens, chunks, ms (analysis and plan): median of a page. "
        "at cuts: CER of lines within 2 lines of a cut.\n"
    )
    comparisons = _comparisons(reading, kinds, by_strategy, choice)
    if SUBJECT in by_strategy:
        _summary(kinds, by_strategy[SUBJECT], comparisons)
    reading.bench.close()
    json_line(
        "chunking",
        {
            "seed": choice.seed,
            "kinds": result,
            "auto": comparisons,
            "pages": [_page(s) for found in by_strategy.items() for s in _scores(found)],
        },
    )


def _row(kind: str, name: str, d: dict[str, float | int | None]) -> tuple[object, ...]:
    def whole(key: str) -> str:
        return f"{d[key]:.0f}"

    rows = d["rows_whole"]
    return (
        *(kind, name, whole("tokens"), f"{d['of_naive']:.0%}", whole("chunks"), d["kept"], d["cer"]),
        *(d["cer_en"], d["cer_zh"], d["cer_near_cuts"], d["cer_elsewhere"], d["missed"], d["doubled"]),
        *(None if rows is None else f"{rows:.1%}", whole("ms")),
    )


def _summary(kinds: Sequence[str], mine: dict[str, Summary], comparisons: dict[str, dict[str, Any]]) -> None:
    """What `auto` does on each kind of page, in Markdown."""
    rows: list[tuple[object, ...]] = []
    for kind in (name for name in kinds if name in mine):
        summary = mine[kind]
        d, versus = summary.as_dict(), comparisons.get(kind, {})
        low, high = versus.get("interval", (None, None))
        rows.append(
            (
                *(kind, f"{d['tokens']:.0f}", f"{d['of_naive']:.0%}", f"{d['chunks']:.0f}"),
                *(_percent(d[key]) for key in ("kept", "cer_en", "cer_zh", "cer_near_cuts")),
                *(d["missed"], d["doubled"], _percent(d["rows_whole"], 0), f"{d['ms']:.0f}"),
                versus.get("best_other"),
                None if low is None else f"{100 * low:+.2f} to {100 * high:+.2f}",
            )
        )
    markdown(_SUMMARY, rows)
    typer.echo()


def _percent(value: float | None, digits: int = 2) -> str | None:
    return None if value is None else f"{100 * value:.{digits}f} %"


def _scores(found: tuple[str, dict[str, Summary]]) -> list[tuple[str, PageScore]]:
    return [(found[0], page) for summary in found[1].values() for page in summary.pages]


def _page(scored: tuple[str, PageScore]) -> dict[str, Any]:
    name, page = scored
    return {
        "page": f"{os.path.basename(page.page.path)}:{page.page.page}",
        "strategy": name,
        "tokens": page.tokens,
        "kept": round(page.score.kept_share, 4),
        "cer": round(page.score.cer, 4),
        "missed": len(page.missed),
        "doubled": len(page.doubled),
    }


# ------------------------------------------------------------------------------------ comparisons


def _comparisons(
    reading: _Reading, kinds: Sequence[str], by_strategy: dict[str, dict[str, Summary]], choice: Choice
) -> dict[str, dict[str, Any]]:
    """`auto` against the best of the others, and against one scale for the page, for each kind."""
    others = [name for name in by_strategy if name != SUBJECT]
    if SUBJECT not in by_strategy or not others:
        return {}
    result: dict[str, dict[str, Any]] = {}
    rows: list[tuple[object, ...]] = []
    for kind in kinds:
        mine = by_strategy[SUBJECT][kind]
        best = min(others, key=lambda name: by_strategy[name][kind].cer)
        theirs = by_strategy[best][kind]
        pairs = list(zip(mine.pages, theirs.pages, strict=True))
        difference, low, high = interval([(a.edits, b.edits) for a, b in pairs], choice.seed)
        solid, *_ = interval([(a.solid, b.solid) for a, b in pairs], choice.seed)
        costs = [cost for page in mine.pages if (cost := compare(page.page, reading.bench.chunk))]
        same = _same_height(costs)
        result[kind] = {
            "best_other": best,
            "best_other_tokens": theirs.tokens,
            "difference": difference,
            "interval": [low, high],
            "difference_solid": solid,
            "of_naive": mine.of_naive,
            "budget_warnings": sum(page.budget for page in mine.pages),
            "same_height": same,
        }
        rows.append(
            (
                *(kind, best, f"{theirs.tokens:.0f}"),
                *(f"{100 * value:+.2f}" for value in (difference, low, high, solid)),
                *(f"{same[key]:.0%}" if same else None for key in ("of_uniform", "of_whole")),
                f"{same['least_px']:.1f}" if same else None,
            )
        )
    heads = ("auto on", "best other", "tokens", "CER points", "from", "to", "no spaces")
    table((*heads, "of uniform", "of whole page", "least px"), rows)
    typer.echo(
        "CER points: auto less the best other; from, to: 95 % interval, paired bootstrap over pages; "
        "no spaces: white space ignored.\n"
        "of uniform, of whole page: auto's tokens against those of one scale that shows the smallest gold "
        "text of each page as large as auto does (least px, capitals): cut at white space without empty "
        "bands, and the page as it is.\n"
    )
    if choice.uniform:
        _same_errors(reading, kinds, by_strategy, result)
    return result


def _same_height(costs: Sequence[Costs]) -> dict[str, float]:
    """Shares over all pages of a kind, and the least height; empty where no page has heights."""
    if not costs:
        return {}
    tokens = sum(cost.auto for cost in costs)
    return {
        "of_uniform": tokens / sum(cost.uniform for cost in costs),
        "of_whole": tokens / sum(cost.whole for cost in costs),
        "least_px": min(cost.least for cost in costs),
    }


def _same_errors(
    reading: _Reading,
    kinds: Sequence[str],
    by_strategy: dict[str, dict[str, Summary]],
    result: dict[str, dict[str, Any]],
) -> None:
    """The cheapest uniform scale, and the cheapest `auto`, whose CER is that of `auto` by default.

    Both are shrunk until they no longer reach it: then auto's margin of safety does not count against it.
    """
    rows: list[tuple[object, ...]] = []
    for kind in kinds:
        mine = by_strategy[SUBJECT][kind]
        own, uniform = (_cheapest(reading, kind, name, mine.cer, by_strategy) for name in (SUBJECT, UNIFORM))
        result[kind] |= {
            "cheapest_uniform": _cheapest_dict(uniform),
            "cheapest_auto": _cheapest_dict(own),
            "of_cheapest_uniform": None if uniform is None else mine.tokens / uniform[1].tokens,
            "cheapest_of_cheapest": own[1].tokens / uniform[1].tokens if own and uniform else None,
        }
        shares = [result[kind][key] for key in ("of_cheapest_uniform", "cheapest_of_cheapest")]
        rows.append(
            (
                kind,
                *(None if c is None else f"{c[1].tokens:.0f} (x{c[0]:.2f})" for c in (uniform, own)),
                *(None if share is None else f"{share:.0%}" for share in shares),
            )
        )
    table(("auto on", "uniform least", "auto least", "auto of uniform", "least of least"), rows)
    typer.echo(
        "least: tokens at the smallest text (times the profile's height) with a CER no worse than auto's "
        "by default; auto of uniform: auto's tokens by default; least of least: both at their smallest.\n"
    )


def _cheapest_dict(found: tuple[float, Summary] | None) -> dict[str, float] | None:
    if found is None:
        return None
    return {"height": found[0], "tokens": found[1].tokens, "cer": found[1].cer}


def _cheapest(
    reading: _Reading, kind: str, strategy: str, cer: float, by_strategy: dict[str, dict[str, Summary]]
) -> tuple[float, Summary] | None:
    """The smallest text that reaches a CER: share of the profile's height, summary.

    None where no height does. Assumes that larger text is read no worse, so that halving finds the border.
    """
    known: dict[float, Summary] = {}
    if strategy in by_strategy:
        known[1.0] = by_strategy[strategy][kind]

    def reaches(step: float) -> bool:
        if step not in known:
            known[step] = reading.read(strategy, [kind], step)[kind]
        return known[step].cer <= cer + SAME_CER

    low, high = 0, len(LEGIBLE_STEPS)
    at = LEGIBLE_STEPS.index(1.0)
    while low < high:
        if reaches(LEGIBLE_STEPS[at]):
            high = at
        else:
            low = at + 1
        at = (low + high) // 2
    if low == len(LEGIBLE_STEPS):
        return None
    return LEGIBLE_STEPS[low], known[LEGIBLE_STEPS[low]]
