"""Strategies that look at nothing but the size of a page: the published ones, to be compared with."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from hiresvlm.chunking import cuts
from hiresvlm.chunking.analysis import PageAnalysis
from hiresvlm.chunking.shared import MAX_SCALE, fit, page_box, plan_of, share_of_budget, tile
from hiresvlm.datatypes import Box, Caution, CautionKind, Chunk, Plan, Role
from hiresvlm.settings import ChunkSettings

TILE: Final = 448
"""Side of the published square tile in pixels."""

NAIVE_GRID: Final = 4
"""Tiles along each side under naive splitting."""

GRIDS: Final = ((1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 2), (1, 4), (4, 1), (2, 3), (3, 2))
"""Published candidates of AnyRes, columns x rows: at most six tiles."""

OVERLAP_TILE: Final = 512
OVERLAP_STRIDE: Final = 2 / 3
OVERLAP_MOST: Final = 24
"""Overlap tiling (Hi-Res): side in page pixels, step in tiles, and the most chunks of a page."""


def whole(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """The page in one piece, shrunk to the most tokens that one image may have."""
    most = min(settings.max_tokens, settings.max_tokens_per_page or settings.max_tokens)
    return plan_of("whole", analysis, (fit(page_box(analysis), 1.0, most, settings),))


def fixed(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """The page stretched to one 448 x 448 tile: the published baseline, unreadable on tall pages."""
    return _joint("fixed", analysis, (_square(page_box(analysis), settings),), settings)


def naive(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """The page stretched to 4 x 4 tiles of 448 px, and a thumbnail of 448 px before them."""
    width, height = analysis.size
    xs = [width * k / NAIVE_GRID for k in range(NAIVE_GRID + 1)]
    ys = [height * k / NAIVE_GRID for k in range(NAIVE_GRID + 1)]
    chunks = [_square(page_box(analysis), settings, Role.GLOBAL)]
    for y0, y1 in zip(ys, ys[1:], strict=False):
        for x0, x1 in zip(xs, xs[1:], strict=False):
            chunks.append(_square(Box(x0, y0, x1, y1), settings))
    return _joint("naive", analysis, tuple(chunks), settings)


def anyres(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """The candidate grid nearest in aspect: the page in tiles of 448 px, row by row, thumbnail first.

    Unlike the published rule the page keeps its aspect (it is fitted into the grid and padded right and
    bottom), is enlarged at most twice, and has at most 1.5 times the tiles that its pixels fill.
    """
    page = page_box(analysis)
    side = _side(settings)
    columns, rows = _grid(analysis.size, _most_tiles(page, settings), side)
    scale = min(MAX_SCALE, columns * side / page.width, rows * side / page.height)
    step = side / scale
    chunks = []
    for row in range(rows):
        for column in range(columns):
            x0, y0 = column * step, row * step
            if x0 >= page.width or y0 >= page.height:
                continue
            box = Box(x0, y0, x0 + step, y0 + step).intersection(page)
            chunks.append(tile(box, _size(box, scale, side), side))
    if len(chunks) > 1:
        small = min(side / page.width, side / page.height)
        chunks.insert(0, tile(page, _size(page, small, side), side, Role.GLOBAL))
    return _joint("anyres", analysis, tuple(chunks), settings)


def overlap(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """Square tiles of 512 px that overlap by a third; they grow where more than 24 would be needed.

    M is about width * height / tile^2 * 1.5^2, so the published cap of 24 binds from about 3 megapixels.
    """
    width, height = analysis.size
    side = float(OVERLAP_TILE)
    while len(_starts(width, side)) * len(_starts(height, side)) > OVERLAP_MOST:
        side *= 1.05
    boxes = [
        Box(x, y, min(x + side, width), min(y + side, height))
        for y in _starts(height, side)
        for x in _starts(width, side)
    ]
    inked = [box for box in boxes if cuts.ink_box(analysis, box) is not None]
    most = share_of_budget(settings, len(inked))
    return plan_of("overlap", analysis, tuple(fit(box, 1.0, most, settings) for box in inked))


def _joint(name: str, analysis: PageAnalysis, chunks: tuple[Chunk, ...], settings: ChunkSettings) -> Plan:
    """One prompt for all chunks. Their number is the method's own, so a budget can only be missed."""
    made = replace(plan_of(name, analysis, chunks), joint=True)
    budget, tokens = settings.max_tokens_per_page, made.tokens(settings.factor)
    if budget is None or tokens <= budget:
        return made
    message = f"strategy {name} takes {tokens} visual tokens whatever the budget ({budget})"
    return replace(made, cautions=(Caution(CautionKind.BUDGET, message),))


def _side(settings: ChunkSettings) -> int:
    """Side of a tile: the published one, or that of a model whose squares have a size of their own."""
    return settings.tile or TILE


def _square(box: Box, settings: ChunkSettings, role: Role = Role.TILE) -> Chunk:
    """A box stretched to one tile."""
    side = _side(settings)
    return tile(box, (side, side), side, role)


def _most_tiles(page: Box, settings: ChunkSettings) -> int:
    """How many tiles the pixels of a page fill, half of them more, within the budget."""
    side = _side(settings)
    most = max(1, math.ceil(1.5 * page.area / side**2))
    if settings.max_tokens_per_page is not None:
        tokens = (side // settings.factor) ** 2
        most = min(most, max(1, settings.max_tokens_per_page // tokens - 1))
    return most


def _grid(size: tuple[int, int], most: int, side: int) -> tuple[int, int]:
    """The candidate with the smallest abs(log(page aspect / grid aspect)).

    Of two grids of one aspect the larger is taken where the page has more than half of its pixels.
    """
    width, height = size
    best, best_rank = GRIDS[0], (math.inf, 0)
    for columns, rows in GRIDS:
        tiles = columns * rows
        if tiles > most:
            continue
        distance = round(abs(math.log(width / height * rows / columns)), 9)
        worth = tiles if width * height > 0.5 * side**2 * tiles else -tiles
        if (distance, -worth) < best_rank:
            best, best_rank = (columns, rows), (distance, -worth)
    return best


def _size(box: Box, scale: float, side: int) -> tuple[int, int]:
    return min(side, max(1, round(box.width * scale))), min(side, max(1, round(box.height * scale)))


def _starts(length: int, side: float) -> list[float]:
    """Tile starts along one axis: even steps of two thirds of a tile or a little less."""
    if length <= side:
        return [0.0]
    steps = math.ceil((length - side) / (side * OVERLAP_STRIDE))
    return [k * (length - side) / steps for k in range(steps + 1)]
