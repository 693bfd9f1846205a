"""Tiles of a page, encoded apart, as one image for the language model.

The features of the tiles are put in the raster order of the page, and each keeps the row and column that it
has there: to the language model it is one large image, of which cells that no tile covers are missing, as
blank cells are when an image is pruned. The memory of the vision tower is that of a tile. An experiment:
`hiresvlm bench places` has its figures. M-RoPE: Qwen2-VL, arXiv 2409.12191.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from hiresvlm.engines.vlm.cache import Features
from hiresvlm.engines.vlm.inputs import ImageInput

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hiresvlm.datatypes import Box
    from hiresvlm.engines.vlm.loading import ImageSettings

SAME_EDGE = 0.5
"""Boxes that overlap by less than this many cells are neighbours."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A tile's place: the cell (a visual token) of its upper left corner, and its cells down and across."""

    row: int
    column: int
    down: int
    across: int


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the cells of a page come from."""

    covered: NDArray[np.bool_]
    """(down, across): the cells of the page that a tile has."""
    order: NDArray[np.int64]
    """(covered cells,): for each in raster order its number among the cells of all tiles, tile after tile."""


def pieces(boxes: Sequence[Box], sizes: Sequence[tuple[int, int]]) -> list[Piece]:
    """Whole cells for tiles with boxes in fractions of cells and sizes (down, across).

    What is below or to the right of another box stays so: a tile is moved rather than laid over another,
    because sizes are rounded up.
    """
    tops = [(box.y0, box.y1, down) for box, (down, _) in zip(boxes, sizes, strict=True)]
    lefts = [(box.x0, box.x1, across) for box, (_, across) in zip(boxes, sizes, strict=True)]
    places = zip(_starts(tops), _starts(lefts), sizes, strict=True)
    return [Piece(row, column, *size) for row, column, size in places]


def _starts(spans: Sequence[tuple[float, float, int]]) -> list[int]:
    """First cell of each span (from, to, cells), all on one axis."""
    found: dict[int, int] = {}
    for number in sorted(range(len(spans)), key=lambda n: spans[n][0]):
        low = spans[number][0]
        before = [found[n] + spans[n][2] for n in found if spans[n][1] <= low + SAME_EDGE]
        found[number] = max([round(low), *before])
    return [found[number] for number in range(len(spans))]


def layout(tiles: Sequence[Piece]) -> Layout:
    """The page that tiles make. Of a cell that two tiles show, the later tile's features are taken."""
    size = (max(t.row + t.down for t in tiles), max(t.column + t.across for t in tiles))
    source = np.full(size, -1, np.int64)
    first = 0
    for tile in tiles:
        cells = source[tile.row : tile.row + tile.down, tile.column : tile.column + tile.across]
        cells[:] = np.arange(first, first + cells.size).reshape(cells.shape)
        first += cells.size
    covered = source >= 0
    return Layout(covered, source[covered])


def page_image(tiles: Sequence[ImageInput], page: Layout, settings: ImageSettings) -> ImageInput:
    """The page for a prompt: it has cells but no pixels, for its features come from its tiles."""
    down, across = page.covered.shape
    digest = hashlib.blake2b(b"stitched", digest_size=20)
    for part in (*(tile.key for tile in tiles), page.covered.tobytes(), page.order.tobytes()):
        digest.update(part)
    kept = None if page.covered.all() else page.covered
    grid = (down * settings.merge, across * settings.merge)
    return ImageInput(np.zeros((0, 0, 3), np.uint8), grid, digest.digest(), down * across, kept)


def page_features(tiles: Sequence[Features], page: Layout) -> Features:
    """Features of all tiles in the raster order of the page."""
    order = torch.from_numpy(page.order).to(tiles[0].tokens.device)
    layers = zip(*((tile.tokens, *tile.deepstack) for tile in tiles), strict=True)
    tokens, *deepstack = (torch.cat(layer)[order] for layer in layers)
    return Features(tokens, tuple(deepstack))
