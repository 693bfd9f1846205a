"""One page read with one strategy, compared with its gold: what the chunking benchmark adds up."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hiresvlm.bench.gold import GoldLine, GoldPage
from hiresvlm.datatypes import Box, Record
from hiresvlm.metrics import LineEdits, Score, edits_by_line, missed_and_doubled, rows_whole, solid_edits

NEAR_LINES = 2.0
"""A line is near a cut up to this many line distances from it."""

NONE = LineEdits(0, 0)


@dataclass(frozen=True, slots=True)
class PageScore:
    """Scores of one page. Texts are compared in reading order."""

    page: GoldPage
    tokens: int
    naive: int
    chunks: int
    ms: float
    """Analysis and planning."""
    budget: bool
    """The page says that it needs more tokens than it may have."""
    score: Score
    solid: LineEdits
    """Without any white space: how much of the errors are spaces shows by comparison."""
    zh: LineEdits
    en: LineEdits
    near: LineEdits | None
    """Gold lines near a cut; None where their boxes are not known."""
    far: LineEdits | None
    missed: tuple[str, ...]
    doubled: tuple[str, ...]
    rows: int
    rows_whole: int

    @property
    def edits(self) -> LineEdits:
        return LineEdits(self.score.edits, self.score.gold)


def page_score(page: GoldPage, record: Record) -> PageScore:
    """Compare the record of a page with its gold."""
    score = Score()
    score.add(page.text, record["text"])
    by_line = edits_by_line([line.text for line in page.lines], record["text"])
    read = [line for line in record["text"].split("\n") if line.strip()]
    missed, doubled = missed_and_doubled([line.cells for line in page.lines], read)
    table = [line.cells for line in page.lines if line.table]
    near = near_cuts(page.lines, [Box(*chunk["box"]) for chunk in record["chunks"]])
    both = [zh + en for zh, en in by_line]
    return PageScore(
        page=page,
        tokens=record["tokens"]["visual"],
        naive=record["tokens"]["naive"],
        chunks=len(record["chunks"]),
        ms=record["latency_ms"]["chunk"] or 0.0,
        budget=any(warning["kind"] == "budget" for warning in record["warnings"]),
        score=score,
        solid=solid_edits(page.text, record["text"]),
        zh=total(zh for zh, _ in by_line),
        en=total(en for _, en in by_line),
        near=None if near is None else total(both[n] for n in near),
        far=None if near is None else total(e for n, e in enumerate(both) if n not in near),
        missed=tuple(page.lines[n].text for n in missed),
        doubled=tuple(page.lines[n].text for n in doubled),
        rows=len(table),
        rows_whole=rows_whole(table, read),
    )


def total(edits: Iterable[LineEdits]) -> LineEdits:
    return sum(edits, NONE)


def near_cuts(lines: Sequence[GoldLine], chunks: Sequence[Box]) -> set[int] | None:
    """Numbers of the lines within two line distances of a cut; None where boxes are not known.

    A cut is a chunk's edge with text beyond it: the edge of the page, or of all its text, is none.
    """
    boxes = [line.box for line in lines if line.box is not None]
    if len(boxes) < len(lines) or not boxes:
        return None
    reach = NEAR_LINES * _pitch(boxes)
    near: set[int] = set()
    for chunk in chunks:
        for low, high, edge, outward in (
            (chunk.y0, chunk.y1, chunk.x0, -1),
            (chunk.y0, chunk.y1, chunk.x1, 1),
        ):
            spans = [(b.y0, b.y1, b.x0, b.x1) for b in boxes]
            near |= _near(spans, (low, high), edge, outward, reach)
        for low, high, edge, outward in (
            (chunk.x0, chunk.x1, chunk.y0, -1),
            (chunk.x0, chunk.x1, chunk.y1, 1),
        ):
            spans = [(b.x0, b.x1, b.y0, b.y1) for b in boxes]
            near |= _near(spans, (low, high), edge, outward, reach)
    return near


def _near(
    spans: Sequence[tuple[float, float, float, float]],
    along: tuple[float, float],
    edge: float,
    outward: int,
    reach: float,
) -> set[int]:
    """Lines near one edge. Of a span the first two numbers run along the edge, the others across it."""
    beside = [n for n, (low, high, _, _) in enumerate(spans) if low < along[1] and high > along[0]]
    beyond = any(spans[n][3] > edge + 1 if outward > 0 else spans[n][2] < edge - 1 for n in beside)
    if not beyond:
        return set()
    return {n for n in beside if spans[n][2] - reach <= edge <= spans[n][3] + reach}


def _pitch(boxes: Sequence[Box]) -> float:
    """Median distance of lines; of a page with one line, twice its height."""
    tops = sorted(box.y0 for box in boxes)
    steps = [b - a for a, b in zip(tops, tops[1:], strict=False) if b - a > 4]
    return statistics.median(steps) if steps else 2 * boxes[0].height


@dataclass(slots=True)
class Summary:
    """What a row of the table shows: pages of one kind with one strategy."""

    pages: list[PageScore] = field(default_factory=list)

    @property
    def score(self) -> Score:
        whole = Score()
        for page in self.pages:
            for name in ("edits", "gold", "kept", "gold_solid", "texts"):
                setattr(whole, name, getattr(whole, name) + getattr(page.score, name))
        return whole

    @property
    def cer(self) -> float:
        return self.score.cer

    @property
    def tokens(self) -> float:
        """Median a page."""
        return statistics.median(page.tokens for page in self.pages)

    @property
    def of_naive(self) -> float:
        """Median share of the naive method's tokens, 0 to more than 1."""
        return statistics.median(page.tokens / max(1, page.naive) for page in self.pages)

    def as_dict(self) -> dict[str, float | int | None]:
        """For the JSON line: medians a page for tokens, chunks and ms, sums for the rest."""
        near = [page.near for page in self.pages if page.near is not None]
        far = [page.far for page in self.pages if page.far is not None]
        rows = sum(page.rows for page in self.pages)
        return {
            "pages": len(self.pages),
            "gold": self.score.gold,
            "tokens": self.tokens,
            "of_naive": self.of_naive,
            "chunks": statistics.median(page.chunks for page in self.pages),
            "kept": self.score.kept_share,
            "cer": self.cer,
            "cer_solid": total(page.solid for page in self.pages).cer,
            "cer_en": total(page.en for page in self.pages).cer,
            "cer_zh": total(page.zh for page in self.pages).cer,
            "cer_near_cuts": total(near).cer,
            "cer_elsewhere": total(far).cer,
            "missed": sum(len(page.missed) for page in self.pages),
            "doubled": sum(len(page.doubled) for page in self.pages),
            "rows_whole": sum(page.rows_whole for page in self.pages) / rows if rows else None,
            "ms": statistics.median(page.ms for page in self.pages),
            "budget_warnings": sum(page.budget for page in self.pages),
        }
