"""The pyramid: which boxes of a page a model gets to see, and how large. Pure geometry.

    whole   the page at a low budget (global)
    tiles   the page at reading size, in row order (mid)
    micro   a region that is meant, enlarged to at most 512 px (micro)

Published: Qwen-VL's pyramid (global 224, four mid tiles of 512, the region enlarged from 200 to 512 px).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hiresvlm.ask.grid import PageText
from hiresvlm.datatypes import Box, Chunk, Line, Role

GLOBAL_TOKENS = 512
"""Visual tokens of the whole page at most: capitals of an A4 page of 10 pt are 8 px high then."""
SIDE = 512
"""Pixels of the longer side of tiles, and of a square region."""
MAX_ENLARGE = 2.56
"""Published: 200 px become 512."""
COMFORT = 1.25
"""A region is shown so many times the height of capitals that the model needs."""
MOST_TILES = 96
"""A page of more is shown smaller."""
CAPS = 0.52
"""Height of capitals in heights of a line's box. The boxes of `light` and of text layers have room for
accents and descenders: 20 px Helvetica with capitals of 14 px has boxes of 27."""
SMALL_SHARE = 0.2
"""Tiles are large enough for all but this share of the lines."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a model can see: `factor` pixels a token and side, tokens of an image, height of capitals."""

    factor: int
    max_tokens: int
    legible: float

    @property
    def side(self) -> int:
        """Pixels of the side of a square image: at most `SIDE`, within the budget."""
        return min(SIDE // self.factor, math.isqrt(self.max_tokens)) * self.factor


def whole(size: tuple[int, int], sight: Sight, most: int = GLOBAL_TOKENS) -> Chunk:
    """The page, shrunk to `most` visual tokens."""
    return fitted(Box(0, 0, *size), 1.0, sight, min(most, sight.max_tokens), Role.GLOBAL)


def tiles(page: PageText, sight: Sight) -> list[Chunk]:
    """The page at reading size, row by row; neighbours share about two lines of text."""
    width, height = page.size
    cap = caps(page.lines)
    scale = 1.0 if cap is None else min(MAX_ENLARGE, sight.legible / cap)
    overlap = 0.0 if cap is None else 3 * cap
    while True:
        side = sight.side / scale
        shared = min(overlap, side / 4)
        xs, ys = _starts(width, side, shared), _starts(height, side, shared)
        if len(xs) * len(ys) <= MOST_TILES:
            break
        scale *= 0.95
    return [
        fitted(Box(x, y, min(x + side, width), min(y + side, height)), scale, sight, sight.max_tokens)
        for y in ys
        for x in xs
    ]


def micro(target: Box, cap: float | None, size: tuple[int, int], sight: Sight) -> Chunk:
    """The region around a target, cropped and enlarged.

    Small print is enlarged until it can be read well; what stays of the image's budget shows the
    surroundings. More of it lies to the right of the target and below, where a value stands.
    """
    scale = _enlarged(cap, sight)
    side = sight.side / scale
    width = min(max(side, target.width * 1.1), size[0])
    height = min(max(side * side / width if width > side else side, target.height * 1.1), size[1])
    x0 = target.x0 - min(0.25 * max(0.0, width - target.width), 0.1 * width)
    y0 = (target.y0 + target.y1) / 2 - 0.45 * height
    x0, y0 = min(max(0.0, x0), size[0] - width), min(max(0.0, y0), size[1] - height)
    box = Box(math.floor(x0), math.floor(y0), math.ceil(x0 + width), math.ceil(y0 + height))
    most = (sight.side // sight.factor) ** 2
    return fitted(box.intersection(Box(0, 0, *size)), scale, sight, most, Role.ROI)


def comfortable(lines: Sequence[Line], sight: Sight) -> float:
    """The scale at which a region of a page with these lines is shown."""
    return _enlarged(caps(lines), sight)


def _enlarged(cap: float | None, sight: Sight) -> float:
    return 1.0 if not cap else min(MAX_ENLARGE, COMFORT * sight.legible / cap)


def fitted(box: Box, scale: float, sight: Sight, most: int, role: Role = Role.TILE) -> Chunk:
    """A box at a scale, or smaller where it would take more than `most` tokens."""
    while True:
        size = max(1, round(box.width * scale)), max(1, round(box.height * scale))
        across, down = (-(-side // sight.factor) for side in size)
        if across * down <= most or (across == 1 and down == 1):
            return Chunk(box, size, (across * sight.factor, down * sight.factor), role)
        scale *= min(0.98, math.sqrt(most / (across * down)))


def caps(lines: Sequence[Line]) -> float | None:
    """Height of the capitals of small print in page pixels; None where no line has a box."""
    heights = sorted(cap(line.box) for line in lines if line.box is not None)
    return heights[int(SMALL_SHARE * len(heights))] if heights else None


def cap(box: Box) -> float:
    """Height of capitals in the box of a line; of a vertical one its width counts."""
    return max(1.0, CAPS * min(box.width, box.height))


def _starts(length: float, side: float, shared: float) -> list[float]:
    if length <= side:
        return [0.0]
    steps = math.ceil((length - side) / (side - shared))
    return [k * (length - side) / steps for k in range(steps + 1)]
