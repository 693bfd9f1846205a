"""Reading order of lines of text with boxes: columns of prose first, then rows from top to bottom.

Pure geometry, in four steps:
1. skew: the slope at which baselines and margins line up best;
2. runs: segments that nearly touch are one run, as a detector may break a line in two;
3. columns: where two columns of prose stand side by side, what lies above, the left side, the right
   side and what lies below are ordered one after the other, each by the same rule;
4. rows: what stands side by side elsewhere (label and amount, cells of a table) is one row.

"em" is the height of a box, or the width of one with vertical text.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from hiresvlm.datatypes import Box, Line

MAX_SLOPE = 0.05
"""About 3 degrees: pages that are more askew are turned before they come here."""
SLOPE_STEP = 0.0025
CHANCE = 0.15
"""A slope is believed when this share of the boxes lines up better than without."""
TALL = 2.0
"""A box this many times higher than wide holds vertical text."""
TOUCHING = 0.5
"""Segments of a row closer than this (in em) belong to one run."""
PROSE_ROWS = 4
"""A column of prose has at least so many rows..."""
PROSE_WIDTH = 8.0
"""...is so wide (in em)..."""
PROSE_FILL = 0.75
"""...its median row fills so much of its width..."""
PROSE_PITCH = 2.2
"""...and the median distance of its rows is at most this (in em)."""
FAR = 3.0
"""A line this far (in pitches) from the rest of its column is not part of it."""
SIDE_BY_SIDE = 0.3
"""Items of a row overlap by at most this share of the narrower one."""
MARGIN_DRIFT = 1.0
"""Rows that start within this (in em) share a left margin."""


@dataclass(slots=True, eq=False)
class _Item:
    """A box after skew was taken out; a segment or a run of segments."""

    lines: list[Line]
    x0: float
    x1: float
    y: float
    """Centre."""
    em: float
    vertical: bool
    """Runs down or up the page."""

    @property
    def width(self) -> float:
        return self.x1 - self.x0


def rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines in reading order, those side by side in one row, each row from left to right.

    After what runs across the page comes what runs down it, from right to left as in a Chinese or
    Japanese book. The order of `lines` does not matter, except among those without a box: they come
    last, as given.
    """
    slope = _slope(lines)
    items = sorted((_item(line, line.box, slope) for line in lines if line.box is not None), key=_order)
    across = _read(_runs([item for item in items if not item.vertical]))
    down = sorted((item for item in items if item.vertical), key=lambda item: (-item.x1, *_order(item)))
    ordered = [[line for run in row for line in run.lines] for row in across]
    ordered += [item.lines for item in down]
    return ordered + [[line] for line in lines if line.box is None]


def text(rows: Sequence[Sequence[Line]]) -> str:
    """Rows on lines of their own, their segments separated by one space."""
    return "\n".join(" ".join(line.text for line in row) for row in rows)


# ------------------------------------------------------------------------------------------- skew


def _slope(lines: Sequence[Line]) -> float:
    """Fall of the baselines per pixel to the right.

    Rows alone can mislead (of two far columns, each label may line up with its neighbour's amount), so
    left and right margins, which lean by the same angle, have a say too.
    """
    boxes = sorted(line.box for line in lines if line.box is not None)
    if len(boxes) < 3:
        return 0.0
    # Skew makes the boxes of long lines higher, so the em is taken from the lower ones.
    em = sorted(min(box.width, box.height) for box in boxes)[len(boxes) // 4]
    tolerance = 0.2 * em + 1e-6
    middles = [((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2) for box in boxes]

    def agreement(slope: float) -> float:
        projections = (
            [y - slope * x for x, y in middles],
            [box.x0 + slope * y for box, (_, y) in zip(boxes, middles, strict=True)],
            [box.x1 + slope * y for box, (_, y) in zip(boxes, middles, strict=True)],
        )
        return sum(_crowding(values, tolerance) for values in projections)

    steps = round(MAX_SLOPE / SLOPE_STEP)
    # From small to large: of equals, max() takes the first.
    slopes = sorted((i * SLOPE_STEP for i in range(-steps, steps + 1)), key=lambda slope: (abs(slope), slope))
    best = max(slopes, key=agreement)
    # Some pairs line up by chance at any slope.
    return best if agreement(best) > agreement(0.0) + 1 + CHANCE * len(boxes) else 0.0


def _crowding(values: list[float], tolerance: float) -> float:
    """How closely values stand together: 1 for each pair of neighbours that are equal."""
    values.sort()
    gaps = (b - a for a, b in itertools.pairwise(values))
    return sum(1 - gap / tolerance for gap in gaps if gap < tolerance)


# ------------------------------------------------------------------------------------------- runs


def _item(line: Line, box: Box, slope: float) -> _Item:
    y = (box.y0 + box.y1) / 2 - slope * (box.x0 + box.x1) / 2
    # The upright box around a leaning line is higher than the line.
    height = max(box.height - abs(slope) * box.width, box.height / 2)
    vertical = height > TALL * box.width and len(line.text) > 1
    em = box.width if vertical else height
    return _Item([line], box.x0 + slope * y, box.x1 + slope * y, y, max(em, 1e-6), vertical)


def _order(item: _Item) -> tuple[float, float, float, float, str, int, float]:
    """A total order, so that the order of the input never shows."""
    line = item.lines[0]
    return (item.y, item.x0, item.x1, item.em, line.text, line.chunk, line.confidence or 0.0)


def _runs(items: list[_Item]) -> list[_Item]:
    """Joins segments of a row that nearly touch. `items` are in `_order`, and so is the result."""
    runs = []
    for row in _rows(items):
        runs.append(_copy(row[0]))
        for item in row[1:]:
            last = runs[-1]
            if item.x0 - last.x1 < TOUCHING * min(item.em, last.em):
                last.lines += item.lines
                last.x1 = max(last.x1, item.x1)
                last.em = max(last.em, item.em)
            else:
                runs.append(_copy(item))
    return sorted(runs, key=_order)


def _copy(item: _Item) -> _Item:
    return _Item(list(item.lines), item.x0, item.x1, item.y, item.em, item.vertical)


# ---------------------------------------------------------------------------------------- columns


def _read(items: list[_Item]) -> list[list[_Item]]:
    """Rows of a region in reading order. `items` are in `_order`."""
    result: list[list[_Item]] = []
    regions = [items]
    while regions:
        region = regions.pop()
        parts = _split(region)
        if len(parts) > 1:
            regions += reversed(parts)
        else:
            result += _rows(region)
    return result


def _split(items: list[_Item]) -> list[list[_Item]]:
    """Above, left of, right of and below a gutter between columns of prose; or all as one region."""
    groups = _margins(items)
    for number in range(1, len(groups)):
        right = groups[number]
        margin = min(item.x0 for item in right)
        if not _is_prose(right):
            continue
        for group in reversed(groups[:number]):
            # Rows over the full width may start where the left column starts.
            left = [item for item in group if item.x1 <= margin]
            if _is_prose(left) and (parts := _cut(items, left, right)):
                return parts
    return [items]


def _margins(items: list[_Item]) -> list[list[_Item]]:
    """Groups of long items with one left margin, from left to right, each from top to bottom."""
    groups: list[list[_Item]] = []
    for item in sorted(items, key=lambda item: (item.x0, *_order(item))):
        if item.width < PROSE_WIDTH / 2 * item.em:
            continue
        if groups and item.x0 - groups[-1][0].x0 < MARGIN_DRIFT * item.em:
            groups[-1].append(item)
        else:
            groups.append([item])
    return [sorted(group, key=_order) for group in groups if len(group) >= PROSE_ROWS]


def _is_prose(column: list[_Item]) -> bool:
    """Whether items with one left margin are rows of prose: long, of much the same length, close."""
    if len(column) < PROSE_ROWS:
        return False
    em = median(item.em for item in column)
    widths = sorted(item.width for item in column)
    widest = widths[int(0.9 * (len(widths) - 1))]
    pitch = median(b.y - a.y for a, b in itertools.pairwise(column))
    return widest >= PROSE_WIDTH * em and median(widths) >= PROSE_FILL * widest and pitch <= PROSE_PITCH * em


def _cut(items: list[_Item], left: list[_Item], right: list[_Item]) -> list[list[_Item]]:
    """The parts around the gutter between two columns; none where too few rows stand side by side."""
    gutter = (max(item.x1 for item in left) + min(item.x0 for item in right)) / 2
    crossing = [i.y for i in items if i.x0 < gutter - i.em / 2 and i.x1 > gutter + i.em / 2]
    best: tuple[int, list[_Item], list[_Item]] = (0, [], [])
    for start, end in itertools.pairwise([-math.inf, *crossing, math.inf]):
        here = [_trimmed([i for i in column if start < i.y < end]) for column in (left, right)]
        count = min(len(column) for column in here)
        if count > best[0]:
            best = (count, here[0], here[1])
    count, left, right = best
    if count < PROSE_ROWS or left[0].y > right[-1].y or right[0].y > left[-1].y:
        return []
    top = min(i.y - i.em / 2 for i in (left[0], right[0]))
    bottom = max(i.y + i.em / 2 for i in (left[-1], right[-1]))
    # A line that crosses the gutter is never taken into a column.
    top = max([top, *(y for y in crossing if y <= left[0].y)])
    bottom = min([bottom, *(y for y in crossing if y >= left[0].y)])
    inside = [i for i in items if top < i.y < bottom]
    parts = [
        [i for i in items if i.y <= top],
        [i for i in inside if (i.x0 + i.x1) / 2 < gutter],
        [i for i in inside if (i.x0 + i.x1) / 2 >= gutter],
        [i for i in items if i.y >= bottom],
    ]
    return [part for part in parts if part]


def _trimmed(column: list[_Item]) -> list[_Item]:
    """A column without a line far above or below the others: that is a heading or footer of the page."""
    if len(column) <= PROSE_ROWS:
        return column
    pitch = median(b.y - a.y for a, b in itertools.pairwise(column))
    first = 1 if column[1].y - column[0].y > FAR * pitch else 0
    last = len(column) - (1 if column[-1].y - column[-2].y > FAR * pitch else 0)
    return column[first:last]


# ------------------------------------------------------------------------------------------- rows


def _rows(items: list[_Item]) -> list[list[_Item]]:
    """Groups what stands side by side, each group from left to right. `items` are in `_order`.

    Each item joins the row whose nearest neighbours are closest in height, so that a row may bend.
    """
    found: list[list[_Item]] = []
    newest: list[float] = []
    reach = 0.6 * max((item.em for item in items), default=0.0)
    first = 0
    for item in items:
        while first < len(found) and newest[first] < item.y - reach:
            first += 1
        distances = [(_distance(found[number], item), number) for number in range(first, len(found))]
        distance, number = min(distances, default=(math.inf, 0))
        if distance == math.inf:
            found.append([item])
            newest.append(item.y)
        else:
            bisect.insort(found[number], item, key=_left)
            newest[number] = item.y
    return sorted(found, key=lambda row: (median(item.y for item in row), *_order(row[0])))


def _distance(row: list[_Item], item: _Item) -> float:
    """Vertical distance of `item` from its neighbours in a row, infinite if it does not belong there."""
    at = bisect.bisect_right(row, item.x0, key=_left)
    nearest = math.inf
    for other in row[max(0, at - 1) : at + 1]:
        overlap = min(other.x1, item.x1) - max(other.x0, item.x0)
        distance = abs(other.y - item.y)
        limit = 0.5 * min(other.em, item.em) + 0.1 * max(other.em, item.em)
        if distance > limit or overlap > SIDE_BY_SIDE * min(other.width, item.width):
            return math.inf
        nearest = min(nearest, distance)
    return nearest


def _left(item: _Item) -> float:
    return item.x0
