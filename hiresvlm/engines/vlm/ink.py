"""How much text an image can hold, from its pixels: a bound for the length of an answer.

A model that loops or invents writes more than there is ink for. The bound is generous on purpose: a text
that is cut off is worse than a loop that runs a little longer. Measured: 1.24 to 5 times the characters of
generated pages (whole, scaled and cut up), 1.5 to 5 times those of 45 scanned receipts (one of them 11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hiresvlm.datatypes import Pixels

EDGE = 24
"""Difference of neighbouring pixels from which they are an edge, of 255. Polarity does not matter."""

MIN_GLYPH = 4
"""Pixels; lower marks are specks."""


QUANTILE = 0.3
PER_SQUARE = 2.5
"""Characters in a square of the height of a glyph: small print in Latin letters, set tight, has two."""


def characters(pixels: Pixels) -> int:
    """An upper estimate of the characters in an image (h, w, 3).

    Area that glyphs and the gaps between them cover, in squares of the height of a small glyph. A Latin
    letter is about as wide as lower-case letters are high, and its band is higher than that; a Chinese
    character covers several squares of its own strokes. Pictures count as text, which only makes the bound
    looser.
    """
    if min(pixels.shape[:2]) < MIN_GLYPH:
        return 0
    gray = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)
    across = cv2.absdiff(gray[:, 1:], gray[:, :-1]) > EDGE
    down = cv2.absdiff(gray[1:], gray[:-1]) > EDGE
    edges = np.zeros(gray.shape, np.uint8)
    edges[:, 1:] |= across.astype(np.uint8)
    edges[1:] |= down.astype(np.uint8)
    _, labels, stats, _ = cv2.connectedComponentsWithStats(edges, connectivity=8)
    heights = stats[:, cv2.CC_STAT_HEIGHT]
    marks = (heights >= MIN_GLYPH) & (stats[:, cv2.CC_STAT_AREA] >= 2 * MIN_GLYPH)
    marks[0] = False  # the paper
    glyphs = marks & (heights <= max(64, gray.shape[0] // 8))
    if not glyphs.any():
        return 0
    height = _typical(heights[glyphs], heights[glyphs] * stats[glyphs, cv2.CC_STAT_WIDTH])
    covered = cv2.dilate(marks[labels].astype(np.uint8), np.ones((3, height), np.uint8))
    return int(np.ceil(PER_SQUARE * float(covered.sum()) / height**2))


def _typical(heights: NDArray[np.int32], areas: NDArray[np.int32]) -> int:
    """Height of small glyphs: `QUANTILE` of the area that all of them cover lies in ones no higher.

    By area and not by number, as the strokes of a large Chinese character may stand alone.
    """
    order = np.argsort(heights, kind="stable")
    share = np.cumsum(areas[order], dtype=np.float64)
    return int(heights[order][np.searchsorted(share, QUANTILE * share[-1])])
