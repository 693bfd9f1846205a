"""A cell of a table: the row that a question names, the column that it asks for."""

from __future__ import annotations

import re

from hiresvlm.ask import values
from hiresvlm.ask.grid import Grid, Unit
from hiresvlm.ask.pairs import Candidate
from hiresvlm.ask.question import Asked
from hiresvlm.ask.values import Value
from hiresvlm.ask.wording import similarity, solid

ROW = 0.8
"""Likeness from which a unit is the row asked for..."""
HEADING = 0.8
_ROW_WORD = re.compile(
    r"^(?:entry|item|row|line|product|article|position|条目|项目|商品)\s*(?:no\.?|number|#)?\s*", re.I
)
"""...and one the heading of the column."""


def candidates(asked: Asked, grid: Grid) -> list[Candidate]:
    """Values at the crossing of a row that has `asked.of` in it and a column that is headed by a target."""
    if not asked.of:
        return []
    of = _ROW_WORD.sub("", asked.of) or asked.of
    rows = [(unit, likeness) for unit in grid.units if (likeness := _row_likeness(of, unit.text)) >= ROW]
    if not rows:
        return []
    best = max(likeness for _, likeness in rows)
    found: list[Candidate] = []
    for anchor, likeness in rows:
        if likeness < best - 0.1 or anchor.box is None:
            continue
        heading, certainty = _heading(asked, grid, anchor)
        if heading is None:
            continue
        cell = _crossing(grid, anchor, heading)
        if cell is None:
            continue
        got = values.find(asked.kind, cell.text, grid.month_first)
        if not got and asked.field is None:
            got = [Value(cell.text, cell.text, 0, len(cell.text))]
        if got:
            value = max(got, key=lambda value: value.fit)
            found.append(
                Candidate(
                    grid.page.page,
                    value,
                    cell,
                    cell.box,
                    heading,
                    min(likeness, certainty),
                    1.0,
                    {"table": 0.1},
                )
            )
    return found


def _row_likeness(of: str, text: str) -> float:
    likeness = similarity(of, text)
    a, b = solid(of), solid(text)
    if a and a in b and len(a) >= 2:
        likeness = max(likeness, 0.8 + 0.2 * len(a) / len(b))
    return likeness


def _heading(asked: Asked, grid: Grid, anchor: Unit) -> tuple[Unit | None, float]:
    """The heading of the column asked for: the surest one above, of equals the nearest."""
    best, certainty = None, HEADING
    for row in reversed(grid.rows[: anchor.row]):
        if len(row) < 2:
            continue
        for unit in row:
            if unit.box is None or unit.marked:
                continue
            likeness = max(
                similarity(target, unit.text) * (1.0 if number == 0 else 0.97)
                for number, target in enumerate(asked.targets)
            )
            if likeness > certainty or (best is None and likeness == certainty):
                best, certainty = unit, likeness
    return best, certainty


def _crossing(grid: Grid, anchor: Unit, heading: Unit) -> Unit | None:
    """The unit of the anchor's row that lies under the heading and under no other one rather."""
    assert heading.box is not None
    headings = [u for u in grid.rows[heading.row] if u.box is not None]
    best, nearest = None, float("inf")
    for unit in grid.rows[anchor.row]:
        if unit.box is None or unit is anchor:
            continue
        mine = column_distance(unit, heading)
        if mine < nearest and all(mine <= column_distance(unit, other) for other in headings):
            best, nearest = unit, mine
    limit = 2.5 * heading.em
    return best if nearest <= limit else None


def column_distance(unit: Unit, heading: Unit) -> float:
    """How far a cell is from the column of a heading: columns align left, right or in the middle."""
    assert unit.box is not None
    assert heading.box is not None
    a, b = unit.box, heading.box
    middle = abs((a.x0 + a.x1) - (b.x0 + b.x1)) / 2
    return min(abs(a.x0 - b.x0), abs(a.x1 - b.x1), middle)
