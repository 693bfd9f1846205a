"""Strategies that cut at whitespace and keep one scale over the page: `seam` and `adaptive`."""

from __future__ import annotations

import math
from typing import Final

from hiresvlm.chunking import cuts
from hiresvlm.chunking.analysis import PageAnalysis
from hiresvlm.chunking.shared import (
    MAX_ASPECT,
    around_ink,
    budget_caution,
    ceiling,
    cost,
    fit,
    needed,
    page_box,
    pictorial_scale,
    plan_of,
    squares,
    total,
)
from hiresvlm.datatypes import Box, Chunk, Plan
from hiresvlm.settings import ChunkSettings

GAP_LINES: Final = 6.0
"""An empty band this many line heights tall is worth a chunk of its own on either side."""

DENSE: Final = 0.04
"""Share of edge pixels of a dense area. Text set solid has 0.06 to 0.2, a page with few words below
0.02."""

DENSE_SIDE: Final = 640
"""Side in page pixels down to which dense areas are cut."""


def seam(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """One scale from the height of the small text, cut at whitespace, tall blank bands left out."""
    need, small = needed(analysis, settings), analysis.small_cap_height
    if small is None:
        scale = pictorial_scale(analysis, settings)
    else:
        scale = min(ceiling(analysis, settings), need / small)
    regions = _bands(analysis, scale)
    chunks = _cover(analysis, regions, scale, settings)
    budget = settings.max_tokens_per_page
    while budget is not None and total(chunks, settings) > budget and scale > 0.02:
        scale *= min(0.97, math.sqrt(budget / total(chunks, settings)))
        chunks = _cover(analysis, regions, scale, settings)
    rendered = None if small is None else small * scale
    reachable = need if small is None else min(need, small * ceiling(analysis, settings))
    return plan_of("seam", analysis, chunks, budget_caution(rendered, reachable))


def adaptive(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """A quadtree at one scale (1): small tiles where gradients are dense, large or none elsewhere.

    Its lines snap to whitespace, so that no line of text is cut. Where there is no gap, only what is too
    large for one image is cut, with an overlap of 2.5 lines.
    """
    scale = min(1.0, ceiling(analysis, settings))
    budget = settings.max_tokens_per_page
    while True:
        boxes = _quads(analysis, page_box(analysis), scale, settings)
        chunks = tuple(fit(box, scale, settings.max_tokens, settings) for box in boxes)
        if budget is None or total(chunks, settings) <= budget or scale < 0.02:
            return plan_of("adaptive", analysis, chunks)
        scale *= min(0.97, math.sqrt(budget / total(chunks, settings)))


def _quads(analysis: PageAnalysis, region: Box, scale: float, settings: ChunkSettings) -> list[Box]:
    """Leaves of the quadtree in reading order, each shrunk to its ink."""
    box = around_ink(analysis, region)
    if box is None:
        return []
    tokens = cost(box, scale, settings)
    dense = cuts.density(analysis, box) >= DENSE and max(box.width, box.height) > 2 * DENSE_SIDE
    if tokens <= settings.max_tokens and not dense:
        return [box]
    rows = _halves(analysis, box, "y")
    cells = [cell for row in rows for cell in _halves(analysis, row, "x")]
    if len(cells) == 1:
        # Only what is too large for one image is cut where there is no gap.
        return [box] if tokens <= settings.max_tokens else split(analysis, box, scale, settings)
    return [leaf for cell in cells for leaf in _quads(analysis, cell, scale, settings)]


def _halves(analysis: PageAnalysis, region: Box, axis: str) -> list[Box]:
    """A region in two, or in one where it is small already or has no gap to be cut at."""
    length = region.height if axis == "y" else region.width
    if length <= DENSE_SIDE:
        return [region]
    clean = [one for one in cuts.cut(analysis, region, 2, axis) if one.clean]
    return cuts.parts(region, clean, axis) if clean else [region]


def _bands(analysis: PageAnalysis, scale: float) -> list[Box]:
    """Inked bands of a page, parted where a tall empty band is worth leaving out."""
    gap = max(GAP_LINES * analysis.line_height, 3 * 28 / scale)
    return [
        band
        for part in cuts.bands(analysis, page_box(analysis), gap)
        if (band := around_ink(analysis, part)) is not None
    ]


def _cover(
    analysis: PageAnalysis, regions: list[Box], scale: float, settings: ChunkSettings
) -> tuple[Chunk, ...]:
    """Chunks that cover the regions at one scale, each within the tokens of one image."""
    return tuple(
        fit(box, scale, settings.max_tokens, settings)
        for region in regions
        for box in split(analysis, region, scale, settings)
    )


def split(analysis: PageAnalysis, region: Box, scale: float, settings: ChunkSettings) -> list[Box]:
    """Cut a region until each part fits into one image.

    Horizontal cuts come first: they keep the rows of a table whole. A vertical cut is taken where it
    runs through a clean gap and the horizontal one would not, and where a band gets too long.
    """
    token = settings.factor / scale
    tokens = cost(region, scale, settings)
    too_long = region.width > MAX_ASPECT * region.height and region.width > 8 * token
    if tokens <= settings.max_tokens and (not too_long or settings.tile is not None):
        return [region]
    parts = max(2, math.ceil(tokens / settings.max_tokens))
    if settings.tile is not None:
        return _squared(analysis, region, scale, settings, settings.tile)
    rows_left = region.height / parts >= 3 * analysis.line_height
    across = cuts.cut(analysis, region, parts, "x")
    down = cuts.cut(analysis, region, parts, "y") if rows_left and not too_long else []
    if not down or (not all(c.clean for c in down) and across and all(c.clean for c in across)):
        axis, chosen = "x", across
    else:
        axis, chosen = "y", down
    return _parts(analysis, region, axis, chosen, scale, settings)


def _squared(
    analysis: PageAnalysis, region: Box, scale: float, settings: ChunkSettings, tile: int
) -> list[Box]:
    """Cut a region that is larger than a square, along the side that is longer in squares.

    Cuts keep the rows of a table whole only where a row fits into a square. They move to a gap near by, so
    a part may still be too large; it is cut again.
    """
    across, down = squares(region, scale, tile)
    axis = "y" if down >= across else "x"
    parts = max(across, down)
    chosen = cuts.cut(analysis, region, parts, axis)
    return _parts(analysis, region, axis, chosen, scale, settings)


def _parts(
    analysis: PageAnalysis,
    region: Box,
    axis: str,
    chosen: list[cuts.Cut],
    scale: float,
    settings: ChunkSettings,
) -> list[Box]:
    """A region cut at the chosen places, its parts trimmed to their ink and cut again where they need it."""
    if not chosen:
        return [region]
    boxes: list[Box] = []
    for part in cuts.parts(region, chosen, axis):
        inked = around_ink(analysis, part)
        if inked is not None:
            smaller = inked.area < 0.95 * region.area
            boxes += split(analysis, inked, scale, settings) if smaller else [inked]
    return boxes
