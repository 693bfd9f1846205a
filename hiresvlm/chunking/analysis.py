"""What a planner knows about a page: where ink is, where nothing is, how tall the text is.

One cheap pass over a gray raster of the page, shared by all strategies. Everything is free of
polarity, so a dark theme is a page like any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Gray = NDArray[np.uint8]
    """Luminance, shape (height, width), uint8."""
    Mask = NDArray[np.uint8]
    """0 or 1, shape (height, width), uint8."""

EDGE = 25
"""Gray levels between neighbouring pixels from which on they are an edge (algorithm of whitespace
seams: it sees faint print and ignores gradients, paper tint and mirror bleed-through)."""

CELL = 28
"""Side of an ink cell in page pixels: one visual token at scale 1."""

SMALLEST_SHARE = 0.55
"""Small text is taken to be at least this share of the median. Footnotes are 0.7 of the text; what is
smaller still is mostly noise, or text that runs sideways, and would make the whole page expensive."""

_BLOB_PER_CAP = 1.35
"""Height of a line of mixed text (ascender to descender), or of a CJK glyph, per capital height."""


@dataclass(frozen=True, slots=True, eq=False)
class PageAnalysis:
    """`scale` is raster pixels per page pixel; heights are in page pixels."""

    size: tuple[int, int]
    """Page width and height in page pixels."""
    scale: float
    edges: Mask
    """Vertical-edge pixels of the raster, long rules removed."""
    cap_height: float | None
    """Median height of capitals; None where no text-like component was found."""
    small_cap_height: float | None
    """Height of capitals that 90 % of the text exceeds."""

    @property
    def blank(self) -> bool:
        """No ink at all. A single printed digit, or a photo, is not blank."""
        return not self.edges.any()

    @property
    def line_height(self) -> float:
        """Distance of lines in page pixels, guessed where no text was found."""
        return 2.0 * self.cap_height if self.cap_height else 40.0


def analyse(gray: Gray, size: tuple[int, int]) -> PageAnalysis:
    """Analyse a page from its gray raster, which shows the whole page of `size` page pixels."""
    scale = gray.shape[1] / size[0]
    cap_height, small = _cap_heights(gray)
    return PageAnalysis(
        size=size,
        scale=scale,
        edges=_edges(gray, rule_length=max(48, round(3 * (cap_height or 16)))),
        cap_height=cap_height / scale if cap_height else None,
        small_cap_height=small / scale if small else None,
    )


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


def _cap_heights(gray: Gray) -> tuple[float | None, float | None]:
    """Median and 10th percentile of the height of capitals in raster pixels, weighted by line length.

    Ink is what differs from the local background; neighbouring glyphs are joined to pieces of lines,
    whose height tells the size of the type in Latin and CJK alike.
    """
    import cv2

    if min(gray.shape) < 8:
        return None, None
    ink = _ink(gray)
    count, labels, stats, centroids = cv2.connectedComponentsWithStats(ink, connectivity=8)
    if count < 2:
        return None, None
    glyphs, centres = stats[1:], centroids[1:].astype(int)
    width, height, area = glyphs[:, 2], glyphs[:, 3], glyphs[:, 4]
    textlike = (
        (height >= 5)
        & (height <= max(24, gray.shape[0] // 4))
        & (width < 8 * height)
        & (height < 8 * width)
        & (area < 0.95 * width * height)
    )
    if not textlike.any():
        return None, None
    typical = float(np.median(height[textlike]))

    # Only glyphs of about one size are joined, so that a frame or a photo does not swallow its text.
    labels_of_glyphs = np.flatnonzero(textlike & (height <= 6 * typical)) + 1
    keep = np.zeros(count, np.uint8)
    keep[labels_of_glyphs] = 1
    joined = cv2.morphologyEx(
        keep[labels], cv2.MORPH_CLOSE, np.ones((1, max(3, round(1.6 * typical))), np.uint8)
    )
    blobs, blob_of, blob_stats, _ = cv2.connectedComponentsWithStats(joined, connectivity=8)
    blob_width = blob_stats[:, 2].astype(float)
    blob_height = blob_stats[:, 3].astype(float)

    # A skewed line is taller than its type by the rise along its length.
    owner = blob_of[centres[:, 1], centres[:, 0]][labels_of_glyphs - 1]
    slope = _skew(centroids[1:][labels_of_glyphs - 1], owner, blobs)
    blob_height = np.maximum(blob_height - abs(slope) * blob_width, 0.3 * blob_height)

    # Capitals and figures alone fill the height of their line and are narrow; then the line is one
    # capital high. CJK glyphs fill it too but are square.
    full = height[labels_of_glyphs - 1] >= 0.85 * blob_height[owner]
    narrow = width[labels_of_glyphs - 1] < 0.85 * blob_height[owner]
    members = np.bincount(owner, minlength=blobs)
    capitals = np.bincount(owner, weights=full & narrow, minlength=blobs) >= 0.6 * np.maximum(members, 1)
    caps = np.where(capitals, blob_height, blob_height / _BLOB_PER_CAP)

    line = (np.arange(blobs) > 0) & (blob_width > blob_height) & (members > 1)
    if not line.any():
        return typical, typical
    order = np.argsort(caps[line])
    cumulative = np.cumsum(blob_width[line][order])
    values = caps[line][order]

    def percentile(share: float) -> float:
        return float(values[np.searchsorted(cumulative, share * cumulative[-1])])

    median = percentile(0.5)
    return median, max(percentile(0.1), SMALLEST_SHARE * median)


def _skew(centres: NDArray[np.float64], owner: NDArray[np.int32], blobs: int) -> float:
    """Median slope of the lines, from the centres of their glyphs; 0 for a page without long lines."""
    x, y = centres[:, 0], centres[:, 1]
    n = np.bincount(owner, minlength=blobs).astype(float)
    mean_x = np.bincount(owner, weights=x, minlength=blobs) / np.maximum(n, 1)
    mean_y = np.bincount(owner, weights=y, minlength=blobs) / np.maximum(n, 1)
    dx, dy = x - mean_x[owner], y - mean_y[owner]
    spread = np.bincount(owner, weights=dx * dx, minlength=blobs)
    slopes = np.bincount(owner, weights=dx * dy, minlength=blobs) / np.maximum(spread, 1e-9)
    long = (n >= 8) & (np.arange(blobs) > 0) & (np.abs(slopes) < 0.2)
    return float(np.median(slopes[long])) if long.any() else 0.0


def _ink(gray: Gray) -> Mask:
    """Pixels that differ from the local background, in either direction."""
    import cv2

    small_size = (max(1, gray.shape[1] // 8), max(1, gray.shape[0] // 8))
    small = cv2.resize(gray, small_size, interpolation=cv2.INTER_AREA)
    background = cv2.resize(
        cv2.medianBlur(small, 15), (gray.shape[1], gray.shape[0]), interpolation=cv2.INTER_LINEAR
    )
    ink: Mask = (cv2.absdiff(gray, background) > 50).astype(np.uint8)
    return ink
