"""`auto`: every glyph at the size that the engine needs, at the fewest tokens.

A page is cut where that saves tokens: around small print that must be enlarged and headings that may
shrink, around margins, gutters and blank bands. Cuts run through whitespace only; among all ways to
group the bands between them, dynamic programming finds the cheapest.

Constants below that quote no measurement have none; pages of `bench chunking` with seeds 1 and 2, the samples
and 45 receipts are what was looked at while this was written, so report on other seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from hiresvlm.chunking import cuts
from hiresvlm.chunking.analysis import PageAnalysis
from hiresvlm.chunking.seams import split
from hiresvlm.chunking.shared import (
    MAX_ASPECT,
    MAX_SCALE,
    around_ink,
    budget_caution,
    canvas_of,
    ceiling,
    fit,
    needed,
    page_box,
    pictorial_scale,
    plan_of,
    total,
)
from hiresvlm.datatypes import Box, Chunk, Plan
from hiresvlm.settings import ChunkSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hiresvlm.chunking.lines import TextLines

    Floats = NDArray[np.float64]

CHUNK_COST: Final = 64
"""Visual tokens that a chunk must save to be worth a request of its own: the instruction that goes with
every request, and what an engine loses on small pieces without their surroundings. Chosen on 45 receipts
with an earlier measure of heights: 64 gave 138 chunks, 40,115 tokens and word F1 0.919; 96 gave 124, 41,378
and 0.921, a difference of a few words."""

MOST_BANDS: Final = 160
"""Bands that are grouped; narrow gaps are given up first."""

MOST_WIDE: Final = 110
"""Tokens along a chunk. Wider regions are cut down first: their rows alone would be long strips."""

SAVING: Final = 0.85
"""A cut down through a region must leave this share of its tokens or fewer: it parts the rows of a
table, which is only worth a wide gutter or another size of type beside it."""

PROSE_LENGTH: Final = 18.0
"""Median length of the lines of a column of prose, in capital heights: about 25 characters."""

ROWS_SHARED: Final = 0.6
"""Share of the lines of a column that have one beside them in a table."""

GUTTER_LINES: Final = 2.0
"""Width of a gutter, in line heights, that may be cut down."""

PICTURE_TOKENS: Final = 256
"""Most tokens of a part that has ink but no line of text: a photo, a logo, a drawing."""

SMALL_SHARE: Final = 0.1
SMALL_LENGTH: Final = 60.0
"""The small text of a chunk is the smallest size that takes this share of its text, or is this many
times as long as high (about 85 characters), with all that is smaller."""

SUPPORT: Final = 60.0
SUPPORT_GLYPHS: Final = 6
DOUBTFUL: Final = 0.75
"""Type below this share of the median counts where it stands in pieces of six glyphs that are, on the
page, this long together in capital heights. Other small pieces are mostly noise, raised figures or rows
of dots and count as this share, at which print stays legible: `legible` is not the last limit."""

STEEP: Final = 0.03
"""Skew in radians from which the heights of single lines are too uncertain to enlarge them."""

LOWER: Final = 0.95
"""Step by which text is lowered until a page fits its budget; 80 steps lead to 1.6 %."""

FILL: Final = 0.97
"""A chunk may be shrunk to this to save a row or column of tokens that it hardly fills."""

_BIN = 1.04
_BINS = 140
_FIRST = 3.0
"""Cap heights are counted in bins that are 4 % wide, from 3 to 700 px."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A part of the page, its scale, and the height of its small text in page pixels."""

    box: Box
    scale: float
    small: float | None
    tokens: float


class _Planner:
    """One page at one target height of capitals."""

    def __init__(self, analysis: PageAnalysis, settings: ChunkSettings) -> None:
        self.analysis = analysis
        self.settings = settings
        self.need = needed(analysis, settings)
        self.ceiling = ceiling(analysis, settings)
        self.target = self.need
        lines = analysis.lines
        self._lengths = lines.lengths
        self._centres = (lines.boxes[:, :2] + lines.boxes[:, 2:]) / 2
        self._caps = trusted_caps(lines, analysis.cap_height)
        if abs(analysis.skew) > STEEP and analysis.small_cap_height is not None:
            self._caps = np.maximum(self._caps, analysis.small_cap_height)
        self._bin = _bins(self._caps)
        self._gap = 0.6 * (analysis.small_cap_height or 16.0)
        self._gaps: dict[tuple[Box, str], list[float]] = {}

    def leaves(self, region: Box | None = None, depth: int = 2) -> list[_Leaf]:
        """Parts of the page, or of a region, in reading order: rows, in them columns, in them rows."""
        box = around_ink(self.analysis, page_box(self.analysis) if region is None else region)
        if box is None:
            return []
        wide = box.width * self._leaf(box).scale / self.settings.factor
        if wide > MOST_WIDE:
            chosen = cuts.cut(self.analysis, box, math.ceil(wide / MOST_WIDE), "x")
            if chosen:
                parts = cuts.parts(box, chosen, "x")
                return [leaf for part in parts for leaf in self.leaves(part, depth)]
        found: list[_Leaf] = []
        for group in self._groups(box, "y"):
            whole = self._leaf(group)
            columns = self._groups(group, "x") if depth > 0 else []
            parted: list[_Leaf] = []
            if len(columns) > 1 and not self._is_table(columns):
                parted = [leaf for column in columns for leaf in self.leaves(column, depth - 1)]
            saved = _cost(parted) <= SAVING * _cost([whole])
            found += parted if parted and saved else [whole]
        return found

    def _is_table(self, columns: list[Box]) -> bool:
        """Whether neighbouring columns share their rows, which a cut between them would part.

        Columns of prose are set on one grid too, but their lines are long.
        """
        inside = [self._inside(column) & (self._lengths > 0) for column in columns]
        for left, right in zip(inside, inside[1:], strict=False):
            if not left.any() or not right.any():
                continue
            if min(self._line_length(left), self._line_length(right)) >= PROSE_LENGTH:
                continue
            few, many = (left, right) if left.sum() <= right.sum() else (right, left)
            distance = np.abs(self._centres[few, 1][:, None] - self._centres[many, 1][None])
            if (distance.min(axis=1) < 0.6 * self._caps[few]).mean() >= ROWS_SHARED:
                return True
        return False

    def _line_length(self, chosen: NDArray[np.bool_]) -> float:
        """Median length of lines in heights of their capitals."""
        return float(np.median(self._lengths[chosen] / self._caps[chosen]))

    def _leaf(self, box: Box) -> _Leaf:
        """A box as one chunk."""
        inside = self._inside(box)
        small = float("nan")
        if inside.any():
            counts = np.bincount(self._bin[inside], weights=self._lengths[inside], minlength=_BINS)
            small = float(_small(np.cumsum(counts, dtype=float)[None])[0])
        area = np.array([box.width * box.height])
        scale = float(self._scales(np.array([small]), area)[0])
        tokens = float(_tokens(box.width * scale, box.height * scale, self.settings))
        return _Leaf(box, scale, None if math.isnan(small) else small, tokens)

    def _inside(self, box: Box) -> NDArray[np.bool_]:
        x, y = self._centres[:, 0], self._centres[:, 1]
        return (box.x0 <= x) & (x < box.x1) & (box.y0 <= y) & (y < box.y1)

    def _scales(self, small: Floats, area: Floats) -> Floats:
        """Scales of parts from their small text; NaN stands for none, then it is a picture."""
        page = self.analysis.small_cap_height
        if page is None:
            picture = np.full(len(small), pictorial_scale(self.analysis, self.settings))
        else:
            room = PICTURE_TOKENS * self.settings.factor**2
            picture = np.minimum(self.need / page, np.sqrt(room / np.maximum(area, 1.0)))
        with np.errstate(invalid="ignore"):
            text = self.target / small
        scales = np.where(np.isnan(small), picture * (self.target / self.need), text)
        return np.minimum(self.ceiling, scales)

    def _groups(self, region: Box, axis: str) -> list[Box]:
        """The region cut across `axis` in the cheapest way, each part shrunk to its ink."""
        bands = self._bands(region, axis)
        n = len(bands)
        if n == 0:
            return []
        boxes = np.array(bands)
        cost = self._costs(boxes, region, axis)
        best = np.full(n + 1, np.inf)
        best[0] = 0.0
        begin = np.zeros(n + 1, int)
        for end in range(1, n + 1):
            totals = best[:end] + cost[:end, end - 1]
            begin[end] = int(totals.argmin())
            best[end] = totals[begin[end]]
        groups = []
        end = n
        while end > 0:
            first, last = bands[begin[end]], bands[end - 1]
            along = (
                region._replace(y0=first.y0, y1=last.y1)
                if axis == "y"
                else region._replace(x0=first.x0, x1=last.x1)
            )
            margin = self._leaf(along).small or self.analysis.line_height / 2
            shrunk = around_ink(self.analysis, along, margin)
            if shrunk is not None:
                groups.append(shrunk)
            end = int(begin[end])
        return groups[::-1]

    def _bands(self, region: Box, axis: str) -> list[Box]:
        """Parts of the region from the middle of one gap to that of the next."""
        if (region, axis) not in self._gaps:
            gap = self._gap if axis == "y" else GUTTER_LINES * self.analysis.line_height
            self._gaps[region, axis] = cuts.gaps(self.analysis, region, axis, gap, MOST_BANDS - 1)
        middles = self._gaps[region, axis]
        low, high = (region.y0, region.y1) if axis == "y" else (region.x0, region.x1)
        ends = [low, *middles, high]
        spans = zip(ends, ends[1:], strict=False)
        if axis == "y":
            return [region._replace(y0=a, y1=b) for a, b in spans]
        return [region._replace(x0=a, x1=b) for a, b in spans]

    def _costs(self, bands: Floats, region: Box, axis: str) -> Floats:
        """Tokens of bands i to j as one chunk, (n, n); infinite where they do not fit into one."""
        n = len(bands)
        ink = np.array([cuts.ink_box(self.analysis, Box(*band)) or Box(*band) for band in bands.tolist()])
        inside = self._inside(region)
        position = self._centres[inside, 1 if axis == "y" else 0]
        starts = bands[:, 1 if axis == "y" else 0]
        owner = np.clip(np.searchsorted(starts, position, side="right") - 1, 0, n - 1)
        counts = np.zeros((n + 1, _BINS))
        np.add.at(counts, (owner + 1, self._bin[inside]), self._lengths[inside])
        counts = np.cumsum(np.cumsum(counts, axis=1), axis=0)
        cost = np.full((n, n), np.inf)
        most, factor = self.settings.max_tokens, self.settings.factor
        for i in range(n):
            small = _small(counts[i + 1 :] - counts[i])
            margin = np.where(np.isnan(small), self.analysis.line_height / 2, small)
            x0 = np.minimum.accumulate(ink[i:, 0]) - margin
            y0 = np.minimum.accumulate(ink[i:, 1]) - margin
            x1 = np.maximum.accumulate(ink[i:, 2]) + margin
            y1 = np.maximum.accumulate(ink[i:, 3]) + margin
            width = np.minimum(x1, region.x1) - np.maximum(x0, region.x0)
            height = np.minimum(y1, region.y1) - np.maximum(y0, region.y0)
            scale = self._scales(small, width * height)
            tokens = _tokens(width * scale, height * scale, self.settings)
            longer, shorter = np.maximum(width, height), np.minimum(width, height)
            strip = (
                (longer > MAX_ASPECT * shorter) & (longer * scale > 8 * factor) & (self.settings.tile is None)
            )
            single = np.arange(len(tokens)) == 0
            # A band alone is always possible; a strip is a last resort, it will be cut across.
            tokens = np.where(strip, np.where(single, 4 * tokens, np.inf), tokens)
            cost[i, i:] = np.where((tokens > most) & ~single, np.inf, tokens) + CHUNK_COST
        return cost


def auto(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """Text at the height that the engine needs, in each chunk by its own text.

    Where a budget binds, the target is lowered for all chunks alike, so that none is larger than the
    smallest: text that is tall on the page loses first, having been shrunk to the same height already.
    """
    planner = _Planner(analysis, settings)
    budget = settings.max_tokens_per_page
    while True:
        leaves = planner.leaves()
        chunks = tuple(chunk for leaf in leaves for chunk in _chunks(analysis, leaf, settings))
        if budget is None or total(chunks, settings) <= budget:
            break
        planner.target *= LOWER
        if planner.target < 0.02 * planner.need:
            chunks = (fit(page_box(analysis), 1.0, budget, settings),)
            break
    smallest = [leaf.small * min(leaf.scale, planner.ceiling) for leaf in leaves if leaf.small is not None]
    reachable = [min(planner.need, leaf.small * planner.ceiling) for leaf in leaves if leaf.small is not None]
    cautions = budget_caution(min(smallest), min(reachable)) if budget and smallest else ()
    return plan_of("auto", analysis, chunks, cautions)


def _cost(leaves: list[_Leaf]) -> float:
    return sum(leaf.tokens + CHUNK_COST for leaf in leaves)


def trusted_caps(lines: TextLines, median: float | None) -> Floats:
    """Cap heights of lines, those of doubtful small pieces raised to `DOUBTFUL` of the median."""
    caps, lengths = lines.caps, lines.lengths
    if median is None or not len(caps):
        return caps
    # Length of all lines of about the same size, by sums over the sorted heights.
    firm = lines.glyphs >= SUPPORT_GLYPHS
    order = np.argsort(caps, kind="stable")
    weight = np.concatenate(([0.0], np.cumsum(np.where(firm, lengths, 0.0)[order])))
    low = np.searchsorted(caps[order], 0.85 * caps, side="left")
    high = np.searchsorted(caps[order], 1.18 * caps, side="right")
    supported = firm & (weight[high] - weight[low] >= SUPPORT * caps)
    return np.where(supported, caps, np.maximum(caps, DOUBTFUL * median))


def _chunks(analysis: PageAnalysis, leaf: _Leaf, settings: ChunkSettings) -> list[Chunk]:
    """A leaf as chunks: one, or several where a band without gaps is larger than an image may be."""
    return [_filled(box, leaf.scale, settings) for box in split(analysis, leaf.box, leaf.scale, settings)]


def _filled(box: Box, scale: float, settings: ChunkSettings) -> Chunk:
    """A chunk at about `scale` that fills its canvas.

    Tokens hardly filled are saved by shrinking a little, and what is paid for anyway is used.
    """
    tries = [fit(box, scale * share, settings.max_tokens, settings) for share in (1.0, 0.985, FILL)]
    canvas = min(tries, key=lambda chunk: chunk.tokens(settings.factor)).canvas
    grown = min(canvas[0] / box.width, canvas[1] / box.height, max(MAX_SCALE, scale))
    size = (
        min(canvas[0], max(1, math.floor(box.width * grown + 1e-6))),
        min(canvas[1], max(1, math.floor(box.height * grown + 1e-6))),
    )
    return Chunk(box, size, canvas_of(size, settings.factor, settings.tile))


def _bins(caps: Floats) -> NDArray[np.int64]:
    steps = np.log(np.maximum(caps, _FIRST) / _FIRST) / math.log(_BIN)
    return np.clip(np.floor(steps + 1e-9), 0, _BINS - 1).astype(np.int64)


_HEIGHTS = _FIRST * _BIN ** (np.arange(_BINS) + 0.5)


def _small(lengths: Floats) -> Floats:
    """Height of the small text of each row; `lengths` are cumulative over bins. NaN where there is none."""
    whole = lengths[:, -1]
    asked = np.minimum(SMALL_SHARE * whole[:, None], SMALL_LENGTH * _HEIGHTS)
    first = ((lengths >= asked) & (lengths > 0)).argmax(axis=1)
    return np.where(whole > 0, _HEIGHTS[first], np.nan)


def _tokens(width: float | Floats, height: float | Floats, settings: ChunkSettings) -> Floats:
    """Tokens of a size in chunk pixels."""
    factor = settings.factor
    if settings.tile is not None:
        squares = np.ceil(np.round(width) / settings.tile) * np.ceil(np.round(height) / settings.tile)
        return np.asarray(np.maximum(1.0, squares) * settings.max_tokens, float)
    across = np.ceil(np.maximum(1.0, np.round(width)) / factor)
    down = np.ceil(np.maximum(1.0, np.round(height)) / factor)
    return np.asarray(across * down, float)
