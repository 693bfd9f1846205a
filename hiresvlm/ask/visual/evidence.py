"""Whether an answer is printed where it is said to come from: no model can talk its way past that.

The lines are those that were recognised apart from the model (a text layer, or `light`). Lines that give
orders are no evidence for anything.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from hiresvlm.ask import values
from hiresvlm.ask.fields import Kind
from hiresvlm.ask.grid import PageText
from hiresvlm.ask.instructions import is_instruction
from hiresvlm.ask.wording import CJK
from hiresvlm.datatypes import Box, Evidence, Line

LIKE = 90
"""Per cent of likeness from which a long answer is what a line says: either side may be misread."""
LONG = 6
"""Letters and digits of an answer that may be found by likeness; a short one must be found exactly."""
NEAR = 75
"""Per cent of likeness from which a line may be the misread answer."""
NEAR_LONG = 4
"""Letters and digits of such an answer at least."""
LINES = 3
"""An answer may run over so many lines."""
INSIDE = 0.5
"""Share of a line's box that lies in a crop whose text it is."""

_TOKEN = re.compile(f"[{CJK}]|[0-9]+(?:\\.[0-9]+)?|[^\\W_0-9{CJK}]+")
_TYPED = (Kind.AMOUNT, Kind.DATE, Kind.PHONE, Kind.PERCENT, Kind.TIME)


@dataclass(frozen=True, slots=True)
class Support:
    """Where an answer is printed."""

    evidence: Evidence
    strength: float
    """1 where every character is the same."""


def find(answer: str, kind: Kind, page: PageText, boxes: Sequence[Box] = ()) -> Support | None:
    """The lines of a page that hold an answer, the best match first; None where none does.

    `boxes`: only lines that lie in one of these crops; all lines without them.
    """
    best: Support | None = None
    for run in _runs(lines_in(page, boxes)):
        strength = holds(answer, kind, " ".join(line.text for line in run))
        if strength and (best is None or strength > best.strength):
            best = Support(_evidence(page.page, run), strength)
            if strength == 1.0:
                break
    return best


def near(answer: str, page: PageText, boxes: Sequence[Box]) -> Support | None:
    """The line that is most like an answer which none holds: one of the two was misread. None: no line is."""
    solid = "".join(_tokens(answer))
    best: Support | None = None
    for line in lines_in(page, boxes):
        within = "".join(_tokens(line.text))
        if len(solid) < NEAR_LONG or len(within) < len(solid) - 1:
            continue
        likeness = fuzz.partial_ratio(solid, within, score_cutoff=NEAR) / 100
        if likeness and (best is None or likeness > best.strength):
            best = Support(_evidence(page.page, (line,)), likeness)
    return best


def lines_in(page: PageText, boxes: Sequence[Box]) -> list[Line]:
    """The lines of a page that lie in a crop and are no orders to a model."""
    return [
        line
        for line in page.lines
        if not is_instruction(line.text) and (not boxes or any(_inside(line.box, box) for box in boxes))
    ]


def holds(answer: str, kind: Kind, text: str) -> float:
    """How surely a text holds an answer, 0 to 1: as whole words, so that 0 is not found in 2024."""
    want, have = _tokens(answer), _tokens(text)
    if not want:
        return 0.0
    solid, within = "".join(want), "".join(have)
    edges = {0}
    for token in have:
        edges.add(max(edges) + len(token))
    at = within.find(solid)
    while at >= 0:
        if at in edges and at + len(solid) in edges:
            return 1.0
        at = within.find(solid, at + 1)
    if kind in _TYPED:
        normal = {value.normal for value in values.find(kind, answer)[:1]}
        if normal and normal & {value.normal for value in values.find(kind, text)}:
            return 1.0
        return 0.0
    digits = [c for c in solid if c.isdigit()]
    if len(solid) >= LONG and len(within) >= len(solid) - 1:
        alignment = fuzz.partial_ratio_alignment(solid, within, score_cutoff=LIKE)
        if alignment is not None and alignment.score >= LIKE:
            # A digit is never a matter of likeness: 1234 and 1284 are two numbers.
            found = within[alignment.dest_start : alignment.dest_end]
            if [c for c in found if c.isdigit()] == digits:
                return float(alignment.score) / 100
    return 0.0


def same(a: str, b: str, kind: Kind) -> bool:
    """Whether two answers mean the same value."""
    return holds(a, kind, b) == 1.0 and holds(b, kind, a) == 1.0


def _tokens(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = re.sub(r"(?<=[0-9])[,，](?=[0-9]{3}(?![0-9]))", "", plain)
    return _TOKEN.findall(plain)


def _runs(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Single lines first, then neighbours together."""
    for count in range(1, LINES + 1):
        for start in range(len(lines) - count + 1):
            yield lines[start : start + count]


def _evidence(page: int, run: Sequence[Line]) -> Evidence:
    boxes = [line.box for line in run if line.box is not None]
    around = boxes[0] if boxes else None
    for box in boxes[1:]:
        assert around is not None
        around = around.union(box)
    return Evidence(page, around, " ".join(line.text for line in run))


def _inside(line: Box | None, box: Box) -> bool:
    if line is None:
        return True
    common = line.intersection(box)
    return common.width > 0 and common.height > 0 and common.area >= INSIDE * line.area
