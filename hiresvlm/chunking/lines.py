"""Lines of text found by connected components: where they run and how tall their capitals are.

No recognition: ink is what differs from the local background, neighbouring glyphs are joined to pieces
of lines, and the height of a piece tells the size of its type, in Latin and CJK alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hiresvlm.chunking.analysis import Gray, Mask

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.int32] | NDArray[np.float64]

_BLOB_PER_CAP = 1.35
"""Height of a line of mixed text (ascender to descender), or of a CJK glyph, per capital height."""

_FULL_SHARE = 0.2
"""Share of the glyphs of a line that are as high as the line where it has no descenders."""

_BODY = 0.4
"""Heights of the line from which a glyph is more than a dot, a hyphen or a comma."""

_HANGS = 0.12
"""What reaches so far below the other glyphs, in heights of the line, hangs below it: half a descender."""

_STANDING = 0.9
"""Share of the glyphs on the lowest level of a line without descenders..."""

_LOWER_CASE = 0.3
"""...and of those among them that are small letters: figures beside CJK are..."""

_SMALL_LETTER = 0.75
"""...higher than this share of the line, small letters lower."""

_ALL_FULL = 0.7
"""Share of these that are as high as the line where all of it is capitals, figures or CJK."""

_SHORT = 12
"""Glyphs of a piece whose size may be taken from the rest of the page."""

_ONE_SIZE = 0.1
"""Lines whose heights are this near (as a natural logarithm) may be of one size of type."""

_ROUNDS = 3
"""Steps of the mean shift. On the pages of `bench chunking` (seeds 1 and 2) 80 % of the text is then measured
within a tenth of its font, 74 % without; what matters more, pieces of one size agree."""

_COARSE = 4
"""Glyphs are joined on a mask with so many columns in one: it only has to tell what touches what, and
the second pass over components costs a quarter."""

_LARGE = 6
"""So many times the median height makes a heading, a frame or a photo of a component..."""

_MOST_LARGE = 100
"""...and where there are more of them they are no headings."""

_SIDEWAYS_SHARE = 0.6
"""Where fewer glyphs than this stand in lines, the page is tried on its side."""

_SIDEWAYS_GAIN = 1.5
"""Sideways must find so many times the glyphs in lines; noise and drawings find a few either way."""


@dataclass(frozen=True, slots=True, eq=False)
class TextLines:
    """Pieces of lines: `boxes` (n, 4) as x0, y0, x1, y1; `caps` heights of capitals; `glyphs` counts."""

    boxes: Floats
    caps: Floats
    glyphs: NDArray[np.int64]
    skew: float = 0.0
    """Median slope of the lines, radians, positive when they fall to the right."""
    sideways: bool = False
    """The text runs up or down the page; `boxes` are as they lie on the page all the same."""
    typical: float | None = None
    """Median height of text-like components, where no line was found."""

    def scaled(self, scale: float) -> TextLines:
        """The same in pixels that are `scale` times as large."""
        typical = None if self.typical is None else self.typical * scale
        return TextLines(
            self.boxes * scale, self.caps * scale, self.glyphs, self.skew, self.sideways, typical
        )

    @property
    def lengths(self) -> Floats:
        """Extent of each line along its direction."""
        first = 1 if self.sideways else 0
        along: Floats = self.boxes[:, first + 2] - self.boxes[:, first]
        return along


NONE = TextLines(np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int64))


def find(gray: Gray) -> TextLines:
    """Lines of a gray raster, in its pixels. Sideways text is looked for where upright lines are few."""
    if min(gray.shape) < 8:
        return NONE
    ink = _ink(gray)
    found, share = _lines(ink)
    if share >= _SIDEWAYS_SHARE:
        return found
    turned, turned_share = _lines(np.ascontiguousarray(ink.T))
    if turned_share < _SIDEWAYS_GAIN * share or not len(turned.caps):
        return found
    boxes = turned.boxes[:, [1, 0, 3, 2]]
    return TextLines(boxes, turned.caps, turned.glyphs, turned.skew, True, turned.typical)


def _lines(ink: Mask) -> tuple[TextLines, float]:
    """Horizontal lines of an ink mask and the share of glyphs that stand in one."""
    import cv2

    rows = ink.shape[0]
    count, labels, stats, centroids = cv2.connectedComponentsWithStats(ink, connectivity=8)
    if count < 2:
        return NONE, 1.0
    width, height, area = stats[1:, 2], stats[1:, 3], stats[1:, 4]
    textlike = (
        (height >= 5)
        & (height <= max(24, rows // 4))
        & (width < 8 * height)
        & (height < 8 * width)
        & (area < 0.95 * width * height)
    )
    if not textlike.any():
        return NONE, 1.0
    typical = float(np.median(height[textlike]))

    # Only glyphs of about one size are joined, so that a frame or a photo does not swallow its text;
    # headings far above that size are joined by themselves.
    large = textlike & (height > _LARGE * typical)
    glyph = np.flatnonzero(textlike & ~large)
    blob_of, blobs = _joined(labels, count, glyph + 1, typical)
    centres = centroids[1:]
    owner = blob_of[centres[glyph, 1].astype(int), centres[glyph, 0].astype(int) // _COARSE]
    headings = np.flatnonzero(large)
    if len(headings) <= _MOST_LARGE:
        names = _neighbours(stats[1:][headings])
        owner = np.concatenate((owner, blobs + names))
        glyph = np.concatenate((glyph, headings))
        blobs += len(headings)
    width, height, centres = width[glyph], height[glyph], centres[glyph]
    left, top = stats[1:, 0][glyph], stats[1:, 1][glyph]
    boxes = _bounds(owner, blobs, left, top, left + width, top + height)
    blob_width, blob_height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]

    # A skewed line is taller than its type by the rise along its length, which is taken out.
    slope = _slope(centres, owner, blobs)
    rise = slope * (centres[:, 0] - ((boxes[:, 0] + boxes[:, 2]) / 2)[owner])
    head, foot = top - rise, top + height - rise
    upright = _bounds(owner, blobs, left, head, left + width, foot)
    blob_height = np.minimum(blob_height, upright[:, 3] - upright[:, 1])

    members = np.bincount(owner, minlength=blobs)
    line = (np.arange(blobs) > 0) & (blob_width > blob_height) & (members > 1)
    # Only long pieces tell the direction: a column of letters joins to pairs and triples sideways.
    straight = line & (members >= 4) & (blob_width > 3 * blob_height)
    share = float(members[straight].sum() / max(1, members[1:].sum()))
    below = upright[owner, 3] - foot
    caps = _caps(owner, width, height, below, blob_width, blob_height, line)
    caps = settled(caps[line], blob_width[line])
    return TextLines(boxes[line], caps, members[line], float(slope), False, typical), share


def _caps(
    owner: NDArray[np.int64],
    width: NDArray[np.int32],
    height: NDArray[np.int32],
    below: Floats,
    blob_width: Floats,
    blob_height: Floats,
    line: NDArray[np.bool_],
) -> Floats:
    """Height of the capitals of each blob, from the shapes of its glyphs.

    `owner`, `width`, `height`, `below` are those of the glyphs; `below` is how far the lowest of their
    line reaches below them.
    """
    blobs = len(blob_height)

    def count(chosen: NDArray[np.bool_]) -> Floats:
        return np.bincount(owner, weights=chosen, minlength=blobs).astype(float)

    around = blob_height[owner]
    members, bodies = np.bincount(owner, minlength=blobs), count(height >= _BODY * around)
    # Where nothing hangs below the line, its capitals and figures fill its height; being narrow they
    # are told from CJK glyphs, which fill it too but are square. Then the line is one capital high.
    full, narrow = height >= 0.85 * around, width < 0.85 * around
    tall, square = count(full & narrow), count(full & ~narrow)
    share_tall = tall / np.maximum(members, 1)
    # Letters that touch are square too, but most of a line of capitals is not.
    capitals = (share_tall >= 0.6) | ((share_tall >= _FULL_SHARE) & (square < 0.5 * tall))

    # Small letters that stand as low as anything in their line have no descenders among them.
    stands = (height >= _BODY * around) & (below <= _HANGS * around)
    small = stands & (height <= _SMALL_LETTER * around)
    capitals |= (count(stands) >= _STANDING * bodies) & (count(small) >= _LOWER_CASE * bodies)
    caps = np.where(capitals, blob_height, blob_height / _BLOB_PER_CAP)

    # A short piece of glyphs as high as itself, some of which touch, may be capitals or CJK. It is of
    # the size that the page has more of.
    either = line & ~capitals & (tall + square >= _ALL_FULL * bodies) & (members <= _SHORT)
    sure = line & ~either
    as_capitals = _near(blob_height[either], caps[sure], blob_width[sure])
    as_ideographs = _near(caps[either], caps[sure], blob_width[sure])
    caps[either] = np.where(as_capitals > as_ideographs, blob_height[either], caps[either])
    return caps


def _near(heights: Floats, caps: Floats, lengths: Floats) -> Floats:
    """Length of all lines of about each height."""
    order = np.argsort(caps, kind="stable")
    weight = np.concatenate(([0.0], np.cumsum(lengths[order])))
    spread = np.exp(_ONE_SIZE)
    low = np.searchsorted(caps[order], heights / spread, side="left")
    high = np.searchsorted(caps[order], heights * spread, side="right")
    found: Floats = weight[high] - weight[low]
    return found


def settled(caps: Floats, lengths: Floats) -> Floats:
    """Heights of capitals, each moved to the middle of its size of type (mean shift, by line length).

    Pieces of one size measure up to a tenth apart: by the letters that happen to be in them, by the grid
    of pixels. Without this the small pieces of a table would look like small print.
    """
    if not len(caps):
        return caps
    order = np.argsort(caps, kind="stable")
    heights = np.log(caps[order])
    weight = np.concatenate(([0.0], np.cumsum(lengths[order])))
    moment = np.concatenate(([0.0], np.cumsum(lengths[order] * heights)))
    middle = heights
    for _ in range(_ROUNDS):
        low = np.searchsorted(heights, middle - _ONE_SIZE, side="left")
        high = np.searchsorted(heights, middle + _ONE_SIZE, side="right")
        within = weight[high] - weight[low]
        middle = np.where(within > 0, (moment[high] - moment[low]) / np.maximum(within, 1e-9), middle)
    found = np.empty_like(caps)
    found[order] = np.exp(middle)
    return found


def _joined(
    labels: NDArray[np.int32], count: int, glyphs: NDArray[np.int64], typical: float
) -> tuple[NDArray[np.int32], int]:
    """Labels of the pieces of lines on a mask with `_COARSE` columns in one, and their number."""
    import cv2

    keep = np.zeros(count, np.uint8)
    keep[glyphs] = 1
    mask = keep[labels]
    missing = -mask.shape[1] % _COARSE
    if missing:
        mask = np.pad(mask, ((0, 0), (0, missing)))
    # Four mask bytes are one word: not zero where any of them is set.
    coarse = (mask.view(np.uint32) != 0).view(np.uint8)
    reach = max(3, round(1.6 * typical)) // _COARSE + 1
    joined = cv2.morphologyEx(coarse, cv2.MORPH_CLOSE, np.ones((1, reach), np.uint8))
    blobs, blob_of = cv2.connectedComponents(joined, connectivity=8)
    return blob_of, blobs


def _neighbours(stats: NDArray[np.int32]) -> NDArray[np.int64]:
    """A number for each component, the same for those that stand in one line with small gaps."""
    x0, y0, width, height = (stats[:, k].astype(float) for k in range(4))
    x1, y1 = x0 + width, y0 + height
    common = np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0)
    gap = np.maximum(x0[:, None], x0) - np.minimum(x1[:, None], x1)
    lower = np.minimum(height[:, None], height)
    linked = (common >= 0.5 * lower) & (gap <= 1.6 * lower)
    names = np.arange(len(stats))
    while True:
        spread = np.where(linked, names, len(stats)).min(axis=1, initial=len(stats))
        if np.array_equal(spread, names):
            return names
        names = spread


def _bounds(
    owner: NDArray[np.int32],
    blobs: int,
    x0: Numbers,
    y0: Numbers,
    x1: Numbers,
    y1: Numbers,
) -> Floats:
    """Bounding boxes of the glyphs of each blob, (blobs, 4); zeros where a blob has none."""
    boxes = np.zeros((blobs, 4))
    boxes[:, :2] = np.inf
    np.minimum.at(boxes[:, 0], owner, x0)
    np.minimum.at(boxes[:, 1], owner, y0)
    np.maximum.at(boxes[:, 2], owner, x1)
    np.maximum.at(boxes[:, 3], owner, y1)
    boxes[~np.isfinite(boxes[:, 0])] = 0
    return boxes


def _slope(centres: Floats, owner: NDArray[np.int32], blobs: int) -> float:
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
    ink = cv2.threshold(cv2.absdiff(gray, background), 50, 1, cv2.THRESH_BINARY)[1]
    return np.asarray(ink, np.uint8)
