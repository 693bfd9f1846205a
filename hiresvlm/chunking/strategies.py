"""The strategies and what they share: sizes, budgets, blank regions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from hiresvlm.chunking import cuts
from hiresvlm.chunking.analysis import PageAnalysis
from hiresvlm.datatypes import Box, Caution, CautionKind, Chunk, Plan
from hiresvlm.settings import ChunkSettings

MAX_SCALE: Final = 2.0
"""Never enlarge more: vision-language models read over-enlarged text worse (OCRBench falls)."""

TILE: Final = 448
"""Side of the published square tile in pixels."""

OVERLAP_TILE: Final = 512
OVERLAP_STRIDE: Final = 2 / 3
OVERLAP_MOST: Final = 24
"""Overlap tiling (Hi-Res): side in page pixels, step in tiles, and the most chunks of a page."""

GAP_LINES: Final = 6.0
"""An empty band this many line heights tall is worth a chunk of its own on either side."""

MAX_ASPECT: Final = 12.0
"""Bands longer than this are cut across: encoders see no such shapes in training."""

Planner = Callable[[PageAnalysis, ChunkSettings], Plan]


def plan(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """The plan of the chosen strategy; a blank page has no chunks under any of them."""
    if analysis.blank:
        return Plan(settings.strategy, analysis.size, ())
    return STRATEGIES[settings.strategy](analysis, settings)


# --------------------------------------------------------------------------------- the strategies


def whole(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """The page in one piece, shrunk to the most tokens that one image may have."""
    most = min(settings.max_tokens, settings.max_tokens_per_page or settings.max_tokens)
    page = _page_box(analysis)
    return _plan("whole", analysis, (_fit(page, 1.0, most, settings),))


def fixed(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """The page stretched to one 448 x 448 tile: the published baseline, unreadable on tall pages."""
    return replace(
        _plan("fixed", analysis, (Chunk(_page_box(analysis), (TILE, TILE), (TILE, TILE)),)), joint=True
    )


def overlap(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """Square tiles of 512 px that overlap by a third; they grow where more than 24 would be needed.

    M is about width * height / tile^2 * 1.5^2, so the published cap of 24 binds from about 3 megapixels.
    """
    width, height = analysis.size
    tile = float(OVERLAP_TILE)
    while len(_starts(width, tile)) * len(_starts(height, tile)) > OVERLAP_MOST:
        tile *= 1.05
    boxes = [
        Box(x, y, min(x + tile, width), min(y + tile, height))
        for y in _starts(height, tile)
        for x in _starts(width, tile)
    ]
    inked = [box for box in boxes if cuts.ink_box(analysis, box) is not None]
    most = _share_of_budget(settings, len(inked))
    return _plan("overlap", analysis, tuple(_fit(box, 1.0, most, settings) for box in inked))


def auto(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """Text at the height that the engine needs, cut at whitespace, blank parts left out."""
    scale = _legible_scale(analysis, settings)
    regions = _bands(analysis, _page_box(analysis), scale)
    chunks = _cover(analysis, regions, scale, settings)
    budget = settings.max_tokens_per_page
    while budget is not None and _tokens(chunks, settings) > budget and scale > 0.02:
        scale *= min(0.97, math.sqrt(budget / _tokens(chunks, settings)))
        chunks = _cover(analysis, regions, scale, settings)
    return _plan("auto", analysis, chunks, _budget_caution(analysis, settings, scale))


STRATEGIES: Final[dict[str, Planner]] = {
    "auto": auto,
    "whole": whole,
    "fixed": fixed,
    "overlap": overlap,
}


# ------------------------------------------------------------------------------------------ shared


def _plan(
    name: str, analysis: PageAnalysis, chunks: tuple[Chunk, ...], cautions: tuple[Caution, ...] = ()
) -> Plan:
    return Plan(name, analysis.size, chunks, cautions=cautions)


def _page_box(analysis: PageAnalysis) -> Box:
    return Box(0, 0, *analysis.size)


def _tokens(chunks: tuple[Chunk, ...], settings: ChunkSettings) -> int:
    return sum(chunk.tokens(settings.factor) for chunk in chunks)


def _share_of_budget(settings: ChunkSettings, chunks: int) -> int:
    """Tokens that one of several equal chunks may have."""
    if settings.max_tokens_per_page is None or chunks == 0:
        return settings.max_tokens
    return max(1, min(settings.max_tokens, settings.max_tokens_per_page // chunks))


def _fit(box: Box, scale: float, most: int, settings: ChunkSettings) -> Chunk:
    """A chunk at `scale`, or at the largest scale below it that costs at most `most` tokens."""
    while True:
        size = (max(1, round(box.width * scale)), max(1, round(box.height * scale)))
        factor = settings.factor
        canvas = (-(-size[0] // factor) * factor, -(-size[1] // factor) * factor)
        chunk = Chunk(box, size, canvas)
        tokens = chunk.tokens(factor)
        if tokens <= most or size == (1, 1):
            return chunk
        # Rounding up to whole tokens can keep a chunk above its share, so shrink by at least 1 %.
        scale *= min(0.99, math.sqrt(most / tokens))


def _starts(length: int, tile: float) -> list[float]:
    """Tile starts along one axis: even steps of two thirds of a tile or a little less."""
    if length <= tile:
        return [0.0]
    steps = math.ceil((length - tile) / (tile * OVERLAP_STRIDE))
    return [k * (length - tile) / steps for k in range(steps + 1)]


def _legible_scale(analysis: PageAnalysis, settings: ChunkSettings) -> float:
    """Scale at which the small text of a page is as tall as the engine needs."""
    width, height = analysis.size
    small = analysis.small_cap_height
    if small is None:  # no text-like component: a drawing or a photo, shown as large as one image may be
        area = settings.max_tokens * settings.factor**2
        return min(1.0, math.sqrt(area / (width * height)))
    ceiling = math.sqrt(settings.max_page_pixels / (width * height))
    return min(MAX_SCALE, ceiling, settings.legible / small)


def _budget_caution(analysis: PageAnalysis, settings: ChunkSettings, scale: float) -> tuple[Caution, ...]:
    small = analysis.small_cap_height
    if small is None or small * scale >= 0.9 * min(settings.legible, small * MAX_SCALE):
        return ()
    message = (
        f"the token budget leaves small text {small * scale:.1f} px high; "
        f"the engine needs {settings.legible:.1f} px"
    )
    return (Caution(CautionKind.BUDGET, message),)


def _bands(analysis: PageAnalysis, region: Box, scale: float) -> list[Box]:
    """Inked bands of a region, parted where a tall empty band is worth leaving out."""
    gap = max(GAP_LINES * analysis.line_height, 3 * 28 / scale)
    return [
        band
        for part in cuts.bands(analysis, region, gap)
        if (band := _around_ink(analysis, part)) is not None
    ]


def _around_ink(analysis: PageAnalysis, region: Box) -> Box | None:
    """The ink of a region with half a line of margin; margins never reach into the next region."""
    ink = cuts.ink_box(analysis, region)
    if ink is None:
        return None
    margin = analysis.line_height / 2
    grown = Box(ink.x0 - margin, ink.y0 - margin, ink.x1 + margin, ink.y1 + margin)
    return grown.intersection(region)


def _cover(
    analysis: PageAnalysis, regions: list[Box], scale: float, settings: ChunkSettings
) -> tuple[Chunk, ...]:
    """Chunks that cover the regions at one scale, each within the tokens of one image."""
    return tuple(
        _fit(box, scale, settings.max_tokens, settings)
        for region in regions
        for box in _split(analysis, region, scale, settings)
    )


def _split(analysis: PageAnalysis, region: Box, scale: float, settings: ChunkSettings) -> list[Box]:
    """Cut a region until each part fits into one image.

    Horizontal cuts come first: they keep the rows of a table whole. A vertical cut is taken where it
    runs through a clean gap and the horizontal one would not, and where a band gets too long.
    """
    # Rounding up to whole tokens costs about half a token along each side.
    token = settings.factor / scale
    cost = (region.width / token + 0.5) * (region.height / token + 0.5)
    too_long = region.width > MAX_ASPECT * region.height and region.width > 8 * token
    if cost <= settings.max_tokens and not too_long:
        return [region]
    parts = max(2, math.ceil(cost / settings.max_tokens))
    rows_left = region.height / parts >= 3 * analysis.line_height
    across = cuts.cut(analysis, region, parts, "x")
    down = cuts.cut(analysis, region, parts, "y") if rows_left and not too_long else []
    if not down or (not all(c.clean for c in down) and across and all(c.clean for c in across)):
        axis, chosen = "x", across
    else:
        axis, chosen = "y", down
    if not chosen:
        return [region]
    boxes: list[Box] = []
    for part in _parts(region, chosen, axis):
        inked = _around_ink(analysis, part)
        if inked is not None:
            smaller = inked.area < 0.95 * region.area
            boxes += _split(analysis, inked, scale, settings) if smaller else [inked]
    return boxes


def _parts(region: Box, chosen: list[cuts.Cut], axis: str) -> list[Box]:
    begins = [None, *chosen]
    ends = [*chosen, None]
    parts = []
    for begin, end in zip(begins, ends, strict=True):
        if axis == "y":
            y0 = region.y0 if begin is None else max(region.y0, begin.at - begin.reach)
            y1 = region.y1 if end is None else min(region.y1, end.at + end.reach)
            parts.append(region._replace(y0=y0, y1=y1))
        else:
            x0 = region.x0 if begin is None else max(region.x0, begin.at - begin.reach)
            x1 = region.x1 if end is None else min(region.x1, end.at + end.reach)
            parts.append(region._replace(x0=x0, x1=x1))
    return parts
