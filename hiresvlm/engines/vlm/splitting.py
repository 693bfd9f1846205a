"""Cutting an image in two where no line of text is hit: a smaller part often ends a loop, and needs less
memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hiresvlm.datatypes import Pixels

EDGE = 25
"""Difference of neighbouring pixels from which they are an edge, of 255."""
REACH = 0.25
"""The cut lies at most this share of the side away from the middle."""
MIN_SIDE = 4
"""An image less than so many visual tokens high and wide is not cut."""


def halves(pixels: Pixels, factor: int) -> tuple[Pixels, Pixels] | None:
    """Top and bottom, or left and right where that is the longer side; None for a small image.

    The cut goes through the middle of the longest blank strip near the middle, else through the row with the
    least ink.
    """
    height, width = pixels.shape[:2]
    if max(height, width) < MIN_SIDE * factor:
        return None
    if 3 * height < width:  # a wide strip of few lines
        at = _cut(pixels.transpose(1, 0, 2))
        return pixels[:, :at], pixels[:, at:]
    at = _cut(pixels)
    return pixels[:at], pixels[at:]


def _cut(pixels: Pixels) -> int:
    side = pixels.shape[0]
    low, high = round(side * (0.5 - REACH)), round(side * (0.5 + REACH))
    strip = pixels[low:high].mean(axis=2, dtype=np.float32)
    ink = (np.abs(np.diff(strip, axis=1)) > EDGE).sum(axis=1)
    blank = ink <= max(2, 0.002 * pixels.shape[1])
    start, length = _longest(blank)
    at = start + length // 2 if length else int(ink.argmin())
    inside = min(max(at, 1), int(ink.size) - 1)
    return int(low + inside)


def _longest(blank: NDArray[np.bool_]) -> tuple[int, int]:
    """Start and length of the longest run of True, the one nearest the middle of those as long."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], blank, [False])).astype(np.int8)))
    runs = list(zip(edges[::2].tolist(), (edges[1::2] - edges[::2]).tolist(), strict=True))
    middle = len(blank) / 2
    return max(runs, key=lambda run: (run[1], -abs(run[0] + run[1] / 2 - middle)), default=(0, 0))
