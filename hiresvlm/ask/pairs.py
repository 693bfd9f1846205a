"""Label -> value by layout: behind the colon, to the right in the row, below in the column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hiresvlm.ask import fields, values
from hiresvlm.ask.fields import Field, Kind
from hiresvlm.ask.grid import Grid, Unit
from hiresvlm.ask.question import Asked
from hiresvlm.ask.values import Value
from hiresvlm.ask.wording import has_cjk, similarity, solid
from hiresvlm.datatypes import Box

LABEL = 0.66
"""From this likeness on a text is looked at as a label."""
SURE_LABEL = 0.9
TABLE_CELLS = 4
"""Units of a row from which on it is taken for one of a table."""
IN_TABLE = 0.75
BESIDE = 1.0
COLUMN = 0.88
"""Trust in a value below its label, against one beside it."""
FAR_BESIDE = 0.93
FARTHEST = 5
"""Units between a label and its value in a row."""
BELOW_REACH = 2.2
"""em between a label and the value below it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A value that may be the answer, and why."""

    page: int
    value: Value
    unit: Unit
    box: Box | None
    label: Unit | None
    likeness: float
    """How surely its label is what was asked for."""
    layout: float
    """Trust in the way that leads from label to value."""
    signs: dict[str, float] = field(default_factory=dict)
    """What speaks for and against it beside the label: arithmetic, context."""

    @property
    def score(self) -> float:
        return self.likeness * self.layout * self.value.fit * (0.75 + 0.25 * self.unit.confidence) + sum(
            self.signs.values()
        )

    def with_sign(self, name: str, weight: float) -> Candidate:
        return replace(self, signs={**self.signs, name: weight})


def candidates(asked: Asked, grid: Grid, table: tuple[Field, ...] = fields.FIELDS) -> list[Candidate]:
    """All values of the kind asked for that stand where a label of what is asked for points to."""
    found: list[Candidate] = []
    for unit in grid.units:
        likeness = label_likeness(asked, unit, table)
        if likeness < SURE_LABEL and len(grid.rows[unit.row]) >= TABLE_CELLS:
            likeness *= IN_TABLE  # "Rare freight" in a table of goods is no label of what freight costs
        own = [] if unit.marked or (likeness >= LABEL and asked.kind in _FREE) else inside(asked, grid, unit)
        if own:
            found += own
        elif likeness >= LABEL:
            found += values_of(asked, grid, unit, likeness)
    return found


def label_likeness(asked: Asked, unit: Unit, table: tuple[Field, ...] = fields.FIELDS) -> float:
    """How surely a unit is the label of what is asked for, less when it is rather another label."""
    text = unit.text
    if len(text) > 80:
        return 0.0
    literal = similarity(asked.targets[0], text)
    known = max((similarity(w, text) for w in asked.targets[1:]), default=0.0)
    likeness = max(literal, 0.97 * known)
    if likeness < LABEL:
        return likeness
    if asked.field is not None and literal < 0.97:
        rival, strength = fields.best(text, table)
        if rival is not None and rival.name != asked.field.name and strength > likeness + 0.02:
            likeness *= 0.6
    return min(1.0, likeness + (0.03 if unit.marked else 0.0))


def is_label(unit: Unit, table: tuple[Field, ...] = fields.FIELDS) -> bool:
    """Whether a unit is the label of something, and so no value of free text."""
    return unit.marked or fields.best(unit.text, table)[1] >= 0.9


def values_of(asked: Asked, grid: Grid, label: Unit, likeness: float) -> list[Candidate]:
    """The value that a label points to, if there is one: beside it, else below it."""
    for steps, unit in enumerate(grid.right_of(label)):
        if unit.marked or _is_next_label(grid, label, unit):
            break
        got = values.find(asked.kind, unit.text, grid.month_first)
        if got:
            trust = BESIDE if label.marked or unit.line == label.line or steps == 0 else FAR_BESIDE
            return [_candidate(asked, grid, _best(got), unit, label, likeness, trust)]
        if asked.kind in _FREE or steps >= FARTHEST:
            break
    for unit in grid.below(label, BELOW_REACH)[:1]:
        if unit.marked or (asked.kind in _FREE and _is_label_below(grid, label, unit)):
            break
        if asked.kind in _COUNTED and _heads_column(asked, grid, label, unit):
            break  # "amount" over many amounts: none of them is *the* amount
        got = values.find(asked.kind, unit.text, grid.month_first)
        if got:
            trust = COLUMN if label.marked or likeness >= SURE_LABEL else COLUMN - 0.1
            return [_candidate(asked, grid, _best(got), unit, label, likeness, trust)]
    return []


def _is_next_label(grid: Grid, label: Unit, unit: Unit) -> bool:
    """Whether what stands beside a label is the next label: it has a value of its own beside or below."""
    if not is_label(unit) or (label.marked and unit.line == label.line):
        return False
    return bool(grid.right_of(unit)) or _has_below(grid, unit) or _has_below(grid, label)


def _is_label_below(grid: Grid, label: Unit, unit: Unit) -> bool:
    """Whether what stands below a label is the label of the next row: the field itself was left blank."""
    return is_label(unit) or (bool(grid.right_of(unit)) and not grid.right_of(label))


def _heads_column(asked: Asked, grid: Grid, label: Unit, first: Unit) -> bool:
    """Whether a label is one of several headings and has more than one value below."""
    if len(grid.rows[label.row]) < 3:
        return False
    if asked.field is not None and asked.field.name == "total":
        return True
    return any(
        values.find(asked.kind, unit.text, grid.month_first) for unit in grid.below(first, BELOW_REACH)[:1]
    )


def _has_below(grid: Grid, label: Unit) -> bool:
    """Whether something that is no label stands right below, as in forms with labels above their values."""
    return any(not is_label(unit) for unit in grid.below(label, BELOW_REACH)[:1])


def inside(asked: Asked, grid: Grid, unit: Unit) -> list[Candidate]:
    """A value behind a label in the same unit, without a colon: "Invoice No CS 24198"."""
    for target in asked.targets:
        head = _head(target, unit.text)
        if head is None:
            continue
        rest = unit.text[head:]
        got = values.find(asked.kind, rest, grid.month_first)
        if got and (asked.kind not in _FREE or rest[:1] in " :：=\t"):
            value = _best(got)
            value = replace(value, start=value.start + head, end=value.end + head)
            likeness = 0.95 if target == asked.targets[0] else 0.92
            if asked.kind in _FREE:
                likeness -= 0.08
            return [_candidate(asked, grid, value, unit, None, likeness, BESIDE)]
    return []


def _head(target: str, text: str) -> int | None:
    """Length of the part at the front of a text that is a wording of `target`."""
    want = solid(target)
    if len(want) < 2:
        return None
    for length in range(1, min(len(text), 3 * len(target) + 8) + 1):
        have = solid(text[:length])
        if have == want:
            rest = text[length : length + 1]
            if rest and rest.isalnum() and not (has_cjk(want) or has_cjk(rest) or rest.isdigit()):
                continue
            return length
        if len(have) > len(want) + 6:
            return None
    return None


def _best(got: Sequence[Value]) -> Value:
    """The value that has most the looks of its kind, the first of equals."""
    return max(got, key=lambda value: value.fit)


_FREE = (Kind.TEXT, Kind.COMPANY)
_COUNTED = (Kind.AMOUNT, Kind.COUNT, Kind.PERCENT)


def _candidate(
    asked: Asked, grid: Grid, value: Value, unit: Unit, label: Unit | None, likeness: float, trust: float
) -> Candidate:
    box = unit.box
    if asked.field is not None and asked.field.name == "address":
        value, box = _address(grid, value, unit)
    return Candidate(grid.page.page, value, unit, box, label, likeness, trust)


def _address(grid: Grid, value: Value, unit: Unit) -> tuple[Value, Box | None]:
    """An address goes on in the next rows, as long as they start where it started."""
    text = value.text
    phone = values.find(Kind.PHONE, text)
    if phone and phone[-1].end >= len(text) - 1 and phone[-1].start > 4:  # 地址、电话：... 000-55501234
        text = text[: phone[-1].start].strip(" ,，;；")
    box = unit.box
    last = unit
    while last.box is not None:
        nexts = [
            other
            for other in grid.below(last, 0.8)
            if other.box is not None and unit.box is not None and abs(other.box.x0 - unit.box.x0) < unit.em
        ]
        if (
            not nexts
            or is_label(nexts[0])
            or len(text) > 150
            or (grid.right_of(nexts[0])[:1] and nexts[0].column)
        ):
            break
        if grid.rows[nexts[0].row][0] is not nexts[0] and is_label(grid.rows[nexts[0].row][0]):
            break
        last = nexts[0]
        text += ("" if has_cjk(text[-1:]) and has_cjk(last.text[:1]) else " ") + last.text
        box = box.union(last.box) if box is not None and last.box is not None else box
    return replace(value, text=text, normal=" ".join(text.split())), box
