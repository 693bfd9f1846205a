"""What a planner knows about a page: where ink is, where nothing is, how tall the text is.

One cheap pass over a gray raster of the page, shared by all strategies. Everything is free of
polarity, so a dark theme is a page like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hiresvlm.chunking import lines
from hiresvlm.chunking.lines import TextLines
from hiresvlm.chunking.quality import Quality, measure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Gray = NDArray[np.uint8]
    """Luminance, shape (height, width), uint8."""
    Mask = NDArray[np.uint8]
    """0 or 1, shape (height, width), uint8."""
    Floats = NDArray[np.float64]

EDGE = 25
"""Gray levels between neighbouring pixels from which on they are an edge (algorithm of whitespace
seams: it sees faint print and ignores gradients, paper tint and mirror bleed-through)."""

CELL = 28
"""Side of an ink cell in page pixels: one visual token at scale 1."""

SMALLEST_SHARE = 0.55
"""Small text is taken to be at least this share of the median. Footnotes are 0.7 of the text; what is
smaller still is mostly noise, or text that runs sideways, and would make the whole page expensive."""

CLEAN_NOISE = 0.25
"""Noise of bare paper, in gray levels, that no screenshot and no drawn PDF page exceeds."""

CLEAN_EDGES = (28.0, 56.0)
"""Sharpness times cap height of clean antialiased print. It does not depend on the size of the type:
31 to 50 on screenshots, ledgers and PDF pages; 8 to 20 on blurred scans and photos, 60 to 75 on bilevel
scans, whose edges are ragged."""

CLEAN_LEVELS = 1.0
"""Share of intermediate levels times cap height that antialiasing gives (1.2 to 3.3); bilevel scans have
below 0.9."""


@dataclass(frozen=True, slots=True, eq=False)
class PageAnalysis:
    """`scale` is raster pixels per page pixel; heights are in page pixels."""

    size: tuple[int, int]
    """Page width and height in page pixels."""
    scale: float
    edges: Mask
    """Vertical-edge pixels of the raster, long rules removed."""
    ink: NDArray[np.bool_]
    """Cells of `CELL` page pixels that hold an edge, shape (rows, columns), the last ones cut off."""
    lines: TextLines
    """Pieces of lines of text in page pixels."""
    cap_height: float | None
    """Median height of capitals, weighted by line length; None where no text-like component was found."""
    small_cap_height: float | None
    """Height of capitals that 90 % of the text exceeds."""
    quality: Quality

    @property
    def blank(self) -> bool:
        """No ink at all. A single printed digit, or a photo, is not blank."""
        return not self.ink.any()

    @property
    def line_height(self) -> float:
        """Distance of lines in page pixels, guessed where no text was found."""
        return 2.0 * self.cap_height if self.cap_height else 40.0

    @property
    def skew(self) -> float:
        """Median slope of the lines in radians, positive when they fall to the right."""
        return self.lines.skew

    @property
    def sideways(self) -> bool:
        """The text runs up or down the page."""
        return self.lines.sideways

    @property
    def sharpness(self) -> float:
        """Variance of the Laplacian over variance of the gray levels where there is print."""
        return self.quality.sharpness

    @property
    def clean(self) -> bool:
        """Antialiased print on flat paper: drawn by a computer, neither photographed nor scanned."""
        low, high = CLEAN_EDGES
        cap = (self.cap_height or 0.0) * self.scale
        return (
            self.quality.noise < CLEAN_NOISE
            and low <= cap * self.quality.sharpness <= high
            and cap * self.quality.levels >= CLEAN_LEVELS
        )


def analyse(gray: Gray, size: tuple[int, int]) -> PageAnalysis:
    """Analyse a page from its gray raster, which shows the whole page of `size` page pixels."""
    scale = gray.shape[1] / size[0]
    found = lines.find(gray)
    cap_height, small = _cap_heights(found)
    edges = _edges(gray, rule_length=max(48, round(3 * (cap_height or 16))))
    return PageAnalysis(
        size=size,
        scale=scale,
        edges=edges,
        ink=_cells(edges, max(1, round(CELL * scale))),
        lines=found.scaled(1 / scale),
        cap_height=cap_height / scale if cap_height else None,
        small_cap_height=small / scale if small else None,
        quality=measure(gray, edges),
    )


def _cap_heights(found: TextLines) -> tuple[float | None, float | None]:
    """Median and 10th percentile of the height of capitals, weighted by line length."""
    if not len(found.caps):
        return found.typical, found.typical
    median = weighted_quantile(found.caps, found.lengths, 0.5)
    return median, max(weighted_quantile(found.caps, found.lengths, 0.1), SMALLEST_SHARE * median)


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """The smallest value that, with all below it, has at least `share` of the weight."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulative, share * cumulative[-1])])


def _cells(edges: Mask, side: int) -> NDArray[np.bool_]:
    """Which squares of `side` raster pixels hold an edge; squares at the right and bottom may be cut."""
    if not edges.size:
        return np.zeros((0, 0), bool)
    rows = np.bitwise_or.reduceat(edges, np.arange(0, edges.shape[0], side), axis=0)
    return np.bitwise_or.reduceat(rows, np.arange(0, edges.shape[1], side), axis=1).astype(bool)


def _edges(gray: Gray, rule_length: int) -> Mask:
    """Pixels where luminance jumps from left to right, without specks and without long vertical rules.

    A vertical rule is an edge in every row and would hide each gap between table rows, so runs longer
    than `rule_length` are taken out.
    """
    import cv2

    if min(gray.shape) < 2:
        return np.zeros(gray.shape, np.uint8)
    smooth = cv2.blur(gray, (1, 3))  # noise of a scan is one pixel high, strokes are not
    edges = np.zeros(gray.shape, np.uint8)
    edges[:, 1:] = cv2.absdiff(smooth[:, 1:], smooth[:, :-1]) > EDGE
    if gray.shape[0] > rule_length:
        rules = cv2.morphologyEx(edges, cv2.MORPH_OPEN, np.ones((rule_length, 1), np.uint8))
        edges &= 1 - cv2.dilate(rules, np.ones((3, 3), np.uint8))
    return _without_specks(edges)


def _without_specks(edges: Mask) -> Mask:
    """Clear edge pixels that stand alone: a dot of dust is not ink, the dot of an i has its stem."""
    import cv2

    near = cv2.boxFilter(edges, cv2.CV_16U, (9, 9), normalize=False, borderType=cv2.BORDER_CONSTANT)
    kept: Mask = edges & (near >= 6).astype(np.uint8)
    return kept
