"""A page of lines -> rows of units: pieces of text that are a label, a value, or neither.

A detector gives "Date: 12/03/2018" in one piece or in two, and sometimes two labels with their values in
one. So every line is cut where a label ends (a colon) and where the next begins, and each unit gets its
share of the line's box.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hiresvlm import layout
from hiresvlm.ask import dates, fields
from hiresvlm.ask.amounts import find as find_amounts
from hiresvlm.ask.wording import has_cjk
from hiresvlm.datatypes import Box, Line


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of one page, as the lexical stage and the readers see it."""

    page: int
    size: tuple[int, int]
    """Page pixels."""
    lines: tuple[Line, ...]
    """In reading order, boxes in page pixels or None."""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A piece of a line."""

    text: str
    box: Box | None
    row: int
    column: int
    """Position in its row."""
    line: int
    """Number of the line it is cut from: units of one line were printed together."""
    marked: bool
    """A colon follows: it is a label."""
    confidence: float

    @property
    def em(self) -> float:
        return max(1.0, self.box.height) if self.box is not None else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Units of a page in rows, from top to bottom and from left to right."""

    page: PageText
    rows: tuple[tuple[Unit, ...], ...]
    month_first: bool

    @property
    def units(self) -> list[Unit]:
        return [unit for row in self.rows for unit in row]

    def right_of(self, unit: Unit) -> tuple[Unit, ...]:
        """Units to the right in the same row, nearest first."""
        return self.rows[unit.row][unit.column + 1 :]

    def below(self, unit: Unit, reach: float) -> list[Unit]:
        """Units under one that overlap it from side to side, within `reach` em, nearest first."""
        if unit.box is None:
            return [row[0] for row in self.rows[unit.row + 1 : unit.row + 2] if row]
        found = []
        for row in self.rows[unit.row + 1 :]:
            for other in row:
                if other.box is None:
                    continue
                gap = other.box.y0 - unit.box.y1
                if gap > reach * unit.em or gap < -0.5 * unit.em:
                    continue
                if min(unit.box.x1, other.box.x1) - max(unit.box.x0, other.box.x0) > 0:
                    found.append(other)
        return sorted(found, key=lambda other: other.box.y0 if other.box else 0.0)


_COLON = re.compile(r"(?<![0-9])\s*[:：]|[:：](?![0-9/])|：")
_GAP = re.compile(r"\s{3,}|\t|\s*\|\s*")
MAX_LINE = 1000
"""Characters of a line that are looked at: no label with its value is longer, and no pattern gets slow."""
MAX_LABEL = 48
"""Characters of a text before a colon that can be a label."""


def build(page: PageText) -> Grid:
    """Cut the lines of a page into units, row by row."""
    rows: list[tuple[Unit, ...]] = []
    numbers = {id(line): number for number, line in enumerate(page.lines)}
    for row in layout.rows(page.lines):
        units: list[Unit] = []
        for line in row:
            offsets = _offsets(line.text)
            for start, end, marked in _cuts(line.text[:MAX_LINE]):
                text = line.text[start:end].strip()
                if text:
                    box = None if line.box is None else _share(line.box, offsets, line.text, start, end)
                    confidence = 1.0 if line.confidence is None else line.confidence
                    units.append(
                        Unit(text, box, len(rows), len(units), numbers[id(line)], marked, confidence)
                    )
        if units:
            rows.append(tuple(units))
    return Grid(page, tuple(rows), dates.is_month_first(line.text for line in page.lines))


def _cuts(text: str) -> list[tuple[int, int, bool]]:
    """(start, end, is a marked label) of the pieces of a line, in order."""
    pieces: list[tuple[int, int, bool]] = []
    start = 0
    for gap in [*_GAP.finditer(text), None]:
        end = len(text) if gap is None else gap.start()
        pieces += _cut_labels(text, start, end)
        start = end if gap is None else gap.end()
    return pieces


def _cut_labels(text: str, start: int, end: int) -> list[tuple[int, int, bool]]:
    pieces: list[tuple[int, int, bool]] = []
    for colon in _COLON.finditer(text, start, end):
        before = text[start : colon.start()]
        cut = start + _label_start(before)
        if len(text[cut : colon.start()].strip()) > MAX_LABEL or not re.search(
            r"\w", text[cut : colon.start()]
        ):
            continue
        if cut > start:
            pieces += _cut_value(text, start, cut)
        pieces.append((cut, colon.start(), True))
        start = colon.end()
    if start < end:
        pieces += _cut_value(text, start, end)
    return pieces


def _label_start(text: str) -> int:
    """Where the label that ends with a text begins: behind the value of the label before it."""
    best, found = 0, 0.0
    positions = [0, *(m.end() for m in re.finditer(r"\s+|(?<=[0-9A-Za-z])(?=[\u3400-\u9fff])", text))]
    if len(positions) == 1:
        return 0
    for position in positions[-6:]:
        _, score = fields.best(text[position:])
        if score > found + 0.02:
            best, found = position, score
    if found >= 0.9:
        return best
    if re.search(r"[0-9]", text):  # "CS00012693 Doc": what has digits is the value
        words = re.finditer(r"\S+\s+", text)
        return max((m.end() for m in words if any(c.isdigit() for c in m[0])), default=0)
    return 0


def _cut_value(text: str, start: int, end: int) -> list[tuple[int, int, bool]]:
    """Words and the amount or date behind them: "Total 9.00" is a label and its value."""
    part = text[start:end]
    spans = [(d.start, d.end) for d in dates.find(part)]
    spans += [
        (a.start, a.end) for a in find_amounts(part) if a.is_money and part[a.end :].strip(" ,.;SRZL*") == ""
    ]
    spans = sorted(span for span in spans if span[0] > 0)
    if not spans:
        return [(start, end, False)]
    head = part[: spans[0][0]]
    letters = sum(c.isalpha() for c in head)
    if letters < (2 if has_cjk(head) else 3) or len(head.strip()) > MAX_LABEL:
        return [(start, end, False)]
    return [(start, start + spans[0][0], False), (start + spans[0][0], end, False)]


def _offsets(text: str) -> list[float]:
    """Where each character of a line starts, and where the last one ends, as a share of the line's width.

    Chinese characters are twice as wide as Latin ones. What lies beyond `MAX_LINE` counts as Latin.
    """
    head = text[:MAX_LINE]
    places = list(itertools.accumulate((2.0 if c > "\u2e7f" else 1.0 for c in head), initial=0.0))
    whole = (places[-1] + len(text) - len(head)) or 1.0
    return [place / whole for place in places]


def _share(box: Box, offsets: Sequence[float], text: str, start: int, end: int) -> Box:
    """The part of a line's box that some of its characters fill, spaces around them left out."""
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    left, right = offsets[start], offsets[end]
    return Box(box.x0 + left * box.width, box.y0, box.x0 + right * box.width, box.y1)
