"""Where the lexical stage leads a reader: pages by relevance, and places that name what is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hiresvlm.ask.grid import PageText
from hiresvlm.ask.instructions import is_instruction
from hiresvlm.ask.lexical import Scored
from hiresvlm.ask.question import Asked
from hiresvlm.ask.wording import similarity
from hiresvlm.datatypes import Box

HIT = 0.72
"""Likeness from which a line names what is asked for; a sentence that has the word has less."""
BARE = 0.97
"""And from which it is the label and nothing else, so that its value must stand beside it."""
HITS = 3
"""Places with the same name that are looked at."""


def by_relevance(pages: Sequence[PageText], ranked: Sequence[Scored]) -> list[PageText]:
    """Pages with the best line first."""
    best: Mapping[int, float] = {s.page: s.score for s in reversed(ranked)}
    return sorted(pages, key=lambda page: (-best.get(page.page, 0.0), page.page))


def spots(asked: Asked, page: PageText, ranked: Sequence[Scored]) -> list[Box]:
    """Boxes of the lines that name what is asked for, with what stands beside them, best first."""
    found: list[Box] = []
    for scored in ranked:
        if scored.page != page.page or len(found) == HITS:
            continue
        line = page.lines[scored.line]
        if line.box is None or is_instruction(line.text):
            continue
        likeness = max((_names(target, line.text) for target in asked.targets), default=0.0)
        if likeness < HIT:
            continue
        box = _beside(line.box, page) if likeness >= BARE and not _has_value(line.text) else line.box
        if not any(covers(other, box) for other in found):
            found.append(box)
    return found


def _names(target: str, text: str) -> float:
    """Likeness of a wording to a line, or to what stands before its colon."""
    head, colon, _ = text.replace("：", ":").partition(":")
    return max(similarity(target, text), similarity(target, head) if colon else 0.0)


def _has_value(text: str) -> bool:
    return bool(text.replace("：", ":").partition(":")[2].strip())


def _beside(label: Box, page: PageText) -> Box:
    """A label with the next line in its row, where its value may stand."""
    middle = (label.y0 + label.y1) / 2
    right = [
        line.box
        for line in page.lines
        if line.box is not None and line.box.y0 < middle < line.box.y1 and line.box.x0 >= label.x1 - 2
    ]
    return label if not right else label.union(min(right, key=lambda box: box.x0))


def covers(outer: Box, inner: Box) -> bool:
    common = outer.intersection(inner)
    return common.width > 0 and common.height > 0 and common.area >= 0.8 * inner.area
