"""FOCUS: from a map of how like the image tokens are to the words asked for, to regions of a page.

Training-free (arXiv 2506.21710): the cosine of cached values of text and image tokens. The engine makes the
map (`engines.Focusing`); here its peaks grow into boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hiresvlm.datatypes import Box

if TYPE_CHECKING:
    from numpy.typing import NDArray

FLAT = 0.1
"""Standard deviation of the scores of the parts of a page, 0 to 1, below which the map tells nothing."""
PEAKS = 6
LOW = 0.5
"""A peak below this share of the highest is none."""
APART = 3
"""Cells between two peaks at least."""
GROWN = 0.6
"""A region grows while its mean is above this share of its peak."""
OVERLAP = 0.3
"""Regions that share more (intersection over union) are one."""
REGIONS = 3
"""Regions that are looked at."""


def scores(values: NDArray[np.float32], size: tuple[int, int], boxes: Sequence[Box]) -> list[float]:
    """How high the map is in each box of page pixels, 0 to 1: its highest cell there."""
    rows, columns = values.shape
    found = []
    for box in boxes:
        x0, x1 = (int(v * columns / size[0]) for v in (box.x0, box.x1))
        y0, y1 = (int(v * rows / size[1]) for v in (box.y0, box.y1))
        part = values[min(y0, rows - 1) : max(y0, y1) + 1, min(x0, columns - 1) : max(x0, x1) + 1]
        found.append(float(part.max()))
    return found


def is_flat(scored: Sequence[float]) -> bool:
    """Whether the scores of the parts of a page are much the same: then everything must be read."""
    return len(scored) > 1 and float(np.std(scored)) < FLAT


def regions(values: NDArray[np.float32], size: tuple[int, int], most: float) -> list[Box]:
    """Boxes around the highest peaks of a map (rows, columns), best first, in page pixels.

    `most`: none is wider or higher; more could not be shown at reading size.
    """
    rows, columns = values.shape
    cell = size[0] / columns, size[1] / rows
    left = np.array(values, dtype=np.float64)
    highest = float(left.max())
    found: list[Box] = []
    for _ in range(PEAKS):
        row, column = divmod(int(left.argmax()), columns)
        peak = float(left[row, column])
        if peak <= LOW * highest:
            break
        left[max(0, row - APART) : row + APART + 1, max(0, column - APART) : column + APART + 1] = 0
        y0, x0, y1, x1 = _grown(values, row, column, peak, (most / cell[1], most / cell[0]))
        box = Box(x0 * cell[0], y0 * cell[1], (x1 + 1) * cell[0], (y1 + 1) * cell[1])
        if all(_shared(box, other) <= OVERLAP for other in found):
            found.append(box)
    return found[:REGIONS]


def _grown(
    values: NDArray[np.float32], row: int, column: int, peak: float, most: tuple[float, float]
) -> tuple[int, int, int, int]:
    """The rectangle around a peak that is above `GROWN` of it on average, one side at a time.

    `most`: rows and columns it may have.
    """
    rows, columns = values.shape
    y0, x0, y1, x1 = row, column, row, column
    while True:
        sides = [
            (y0 - 1, x0, y1, x1), (y0, x0 - 1, y1, x1), (y0, x0, y1 + 1, x1), (y0, x0, y1, x1 + 1),
        ]  # fmt: skip
        inside = [
            s for s in sides
            if s[0] >= 0 and s[1] >= 0 and s[2] < rows and s[3] < columns
            and s[2] - s[0] < most[0] and s[3] - s[1] < most[1]
        ]  # fmt: skip
        grown = [(float(values[s[0] : s[2] + 1, s[1] : s[3] + 1].mean()), s) for s in inside]
        best = max(grown, default=(0.0, (y0, x0, y1, x1)))
        edge = _edge_mean(values, (y0, x0, y1, x1), best[1])
        if best[0] <= GROWN * peak or edge <= GROWN * peak / 2:
            return y0, x0, y1, x1
        y0, x0, y1, x1 = best[1]


def _edge_mean(
    values: NDArray[np.float32], old: tuple[int, int, int, int], new: tuple[int, int, int, int]
) -> float:
    """Mean of the cells that a step would add: a high peak must not carry a region over empty paper."""
    whole = values[new[0] : new[2] + 1, new[1] : new[3] + 1]
    part = values[old[0] : old[2] + 1, old[1] : old[3] + 1]
    added = whole.size - part.size
    return float((whole.sum() - part.sum()) / added) if added else 0.0


def _shared(a: Box, b: Box) -> float:
    common = a.intersection(b).area if a.intersection(b).width > 0 and a.intersection(b).height > 0 else 0.0
    return common / (a.area + b.area - common)
