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

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from hiresvlm.datatypes import Line

MAX_SLOPE = 0.05
"""About 3 degrees: pages that are more askew are turned before they come here."""
SLOPE_STEP = 0.0025
TOUCHING = 0.9
"""Segments of a row closer than this (in em) belong to one run."""
PROSE_ROWS = 4
"""A column of prose has at least so many rows..."""
PROSE_WIDTH = 8.0
"""...is so wide (in em)..."""
PROSE_FILL = 0.75
"""...its median row fills so much of its width..."""
PROSE_PITCH = 2.2
"""...and the median distance of its rows is at most this (in em)."""
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

    @property
    def width(self) -> float:
        return self.x1 - self.x0


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of prose."""

    x0: float
    x1: float
    rows: list[_Item]


def rows(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines in reading order, those side by side in one row, each row from left to right.

    The order of `lines` does not matter, except among those without a box: they come last, as given.
    """
    slope = _slope(lines)
    items = sorted((_item(line, slope) for line in lines if line.box is not None), key=_order)
    boxed = [[line for run in row for line in run.lines] for row in _read(_runs(items))]
    return boxed + [[line] for line in lines if line.box is None]


def text(rows: Sequence[Sequence[Line]]) -> str:
    """Rows on lines of their own, their segments separated by one space."""
    return "\n".join(" ".join(line.text for line in row) for row in rows)


# ------------------------------------------------------------------------------------------- skew


def _slope(lines: Sequence[Line]) -> float:
    """Rise of the baselines per pixel to the right.

    Rows alone can mislead (with two far columns, each label also lines up with its neighbour's
    amount), so left and right margins, which lean by the same angle, have a say too.
    """
    boxes = sorted(line.box for line in lines if line.box is not None)
    if len(boxes) < 3:
        return 0.0
    tolerance = 0.35 * median(min(box.width, box.height) for box in boxes)
    middles = [((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2) for box in boxes]

    def agreement(slope: float) -> float:
        projections = (
            [y - slope * x for x, y in middles],
            [box.x0 + slope * y for box, (_, y) in zip(boxes, middles, strict=True)],
            [box.x1 + slope * y for box, (_, y) in zip(boxes, middles, strict=True)],
        )
        return sum(_crowding(values, tolerance) for values in projections)

    steps = round(MAX_SLOPE / SLOPE_STEP)
    straight = agreement(0.0)
    slopes = sorted((i * SLOPE_STEP for i in range(-steps, steps + 1)), key=lambda slope: (abs(slope), slope))
    best = max(slopes, key=agreement)
    # A few chance agreements are no skew.
    return best if agreement(best) > 1.1 * straight + 1 else 0.0


def _crowding(values: list[float], tolerance: float) -> float:
    """How closely values stand together: 1 for each pair of neighbours that are equal."""
    values.sort()
    gaps = (b - a for a, b in zip(values, values[1:], strict=False))
    return sum(1 - gap / tolerance for gap in gaps if gap < tolerance)


# ------------------------------------------------------------------------------------------- runs


def _item(line: Line, slope: float) -> _Item:
    box = line.box
    assert box is not None
    middle = (box.y0 + box.y1) / 2 - slope * (box.x0 + box.x1) / 2
    # The upright box around a leaning line is higher than the line.
    height = max(box.height - abs(slope) * box.width, box.height / 2)
    return _Item(
        [line],
        box.x0 + slope * middle,
        box.x1 + slope * middle,
        middle,
        max(1e-6, min(height, box.width) if height > 2 * box.width else height),
    )


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
    return _Item(list(item.lines), item.x0, item.x1, item.y, item.em)


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
    """Above, left of, right of and below the first gutter between columns of prose; or all as one."""
    columns = _columns(items)
    for left, right in zip(columns, columns[1:], strict=False):
        gutter = (left.x1 + right.x0) / 2
        top = max(left.rows[0].y, right.rows[0].y)
        bottom = min(left.rows[-1].y, right.rows[-1].y)
        if gutter <= left.x0 or bottom <= top:
            continue
        crossing = [i.y for i in items if i.x0 < gutter - i.em / 2 and i.x1 > gutter + i.em / 2]
        # The longest stretch between lines that cross the gutter.
        edges = [float("-inf"), *crossing, float("inf")]
        stretches = [
            (start, end, min(_within(left, start, end), _within(right, start, end)))
            for start, end in zip(edges, edges[1:], strict=False)
        ]
        start, end, count = max(stretches, key=lambda stretch: stretch[2])
        if count < PROSE_ROWS:
            continue
        prose = [i for i in (*left.rows, *right.rows) if start < i.y < end]
        start = max(start, min(i.y - i.em for i in prose))
        end = min(end, max(i.y + i.em for i in prose))
        inside = [i for i in items if start < i.y < end]
        parts = [
            [i for i in items if i.y <= start],
            [i for i in inside if (i.x0 + i.x1) / 2 < gutter],
            [i for i in inside if (i.x0 + i.x1) / 2 >= gutter],
            [i for i in items if i.y >= end],
        ]
        return [part for part in parts if part]
    return [items]


def _within(column: _Column, start: float, end: float) -> int:
    return sum(start < item.y < end for item in column.rows)


def _columns(items: list[_Item]) -> list[_Column]:
    """Columns of prose from left to right: many long rows, close together, with one left margin."""
    groups: list[list[_Item]] = []
    for item in sorted(items, key=lambda item: (item.x0, *_order(item))):
        if item.width < PROSE_WIDTH / 2 * item.em:
            continue
        if groups and item.x0 - groups[-1][0].x0 < MARGIN_DRIFT * item.em:
            groups[-1].append(item)
        else:
            groups.append([item])
    return [column for group in groups if (column := _prose(group)) is not None]


def _prose(group: list[_Item]) -> _Column | None:
    """The column that a group of rows with one left margin makes, if it is prose."""
    if len(group) < PROSE_ROWS:
        return None
    group = sorted(group, key=_order)
    em = median(item.em for item in group)
    widths = sorted(item.width for item in group)
    widest = widths[int(0.9 * (len(widths) - 1))]
    pitch = median(b.y - a.y for a, b in zip(group, group[1:], strict=False))
    if widest < PROSE_WIDTH * em or median(widths) < PROSE_FILL * widest or pitch > PROSE_PITCH * em:
        return None
    x0 = median(item.x0 for item in group)
    return _Column(x0, x0 + widest, group)


# ------------------------------------------------------------------------------------------- rows


def _rows(items: list[_Item]) -> list[list[_Item]]:
    """Groups what stands side by side. `items` are in `_order`.

    Each item joins the row whose nearest neighbour is closest in height, so that a row may bend.
    """
    found: list[list[_Item]] = []
    reach = max((item.em for item in items), default=0.0)
    open_from = 0
    newest: list[float] = []
    for item in items:
        while open_from < len(found) and newest[open_from] < item.y - reach:
            open_from += 1
        best: int | None = None
        least = 0.0
        for number in range(open_from, len(found)):
            distance = _distance(found[number], item)
            if distance is not None and (best is None or distance < least):
                best, least = number, distance
        if best is None:
            found.append([item])
            newest.append(item.y)
        else:
            row = found[best]
            row.insert(bisect_left([other.x0 for other in row], item.x0), item)
            newest[best] = item.y
    return sorted(found, key=lambda row: (median(item.y for item in row), *_order(row[0])))


def _distance(row: list[_Item], item: _Item) -> float | None:
    """Vertical distance of `item` from its neighbours in a row, None if it does not belong there."""
    at = bisect_left([other.x0 for other in row], item.x0)
    distances = []
    for other in row[max(0, at - 1) : at + 1]:
        overlap = min(other.x1, item.x1) - max(other.x0, item.x0)
        if overlap > 0.3 * min(other.width, item.width) + 1e-9:
            return None
        distance = abs(other.y - item.y)
        if distance > 0.5 * min(other.em, item.em) + 0.1 * max(other.em, item.em):
            return None
        distances.append(distance)
    return min(distances)
