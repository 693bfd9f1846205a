"""Merging lines with boxes: in the overlap of two chunks each line is kept once, from the better side.

Hierarchical: chunks that stand side by side are joined to bands first (a line that runs across a
vertical seam is put together again), then bands are laid on top of each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from hiresvlm.answers.bands import bands
from hiresvlm.datatypes import Box, Chunk, Line

SAME = 0.5
"""Two boxes show the same print when their overlap covers this share of the smaller one (SAHI)."""

EDGE = 0.25
"""A line that ends this close to the edge of its chunk (in line heights) may go on beyond it."""

_DRIFT = 4
"""Glyphs differ in width, so the number of common characters is known to this many only."""

_EQUAL = 0.75
"""Share of common characters on which the two readings must agree: the outermost ones were cut."""

_SHORTEST_MATCH = 2
"""Characters that two halves of a line must share to be joined by their text."""


def merge(lines: Sequence[Line], chunks: Sequence[Chunk]) -> tuple[Line, ...]:
    """All lines once. Boxes are in page pixels; `line.chunk` numbers the chunk each was read from."""
    if not any(_overlap(chunks[a].box, chunks[b].box) for a in range(len(chunks)) for b in range(a)):
        return tuple(lines)
    of_chunk: dict[int, list[Line]] = {}
    for line in lines:
        of_chunk.setdefault(line.chunk, []).append(line)
    merged: list[Line] = []
    for band in bands(chunks):
        joined: list[Line] = []
        for before, number in zip([None, *band], band, strict=False):
            new = of_chunk.get(number, [])
            joined = joined + new if before is None else _beside(joined, new, chunks[before], chunks[number])
        merged = _below(merged, joined, chunks)
    return tuple(merged)


def _overlap(a: Box, b: Box) -> bool:
    common = a.intersection(b)
    return common.width > 0 and common.height > 0


# -------------------------------------------------------------------------------------- horizontally


def _beside(left: list[Line], right: list[Line], chunk: Chunk, other: Chunk) -> list[Line]:
    """Lines of a band and of the next chunk to its right (`other`); `chunk` is the band's last one."""
    if chunk.box.x1 <= other.box.x0:
        return left + right
    kept_left: list[Line | None] = list(left)
    kept_right: list[Line | None] = list(right)
    for i, a in enumerate(left):
        if a.box is None or a.box.x1 <= other.box.x0:
            continue
        for j, b in enumerate(kept_right):
            if b is None or b.box is None or b.box.x0 >= chunk.box.x1 or not _one_row(a.box, b.box):
                continue
            slack = EDGE * min(a.box.height, b.box.height)
            if b.box.x1 <= a.box.x1 + slack and a.box.x1 < chunk.box.x1 - slack:
                kept_right[j] = None  # the left side saw its end
            elif a.box.x0 >= b.box.x0 - slack:
                kept_left[i] = None  # the right side saw its start
                break
            else:
                kept_right[j] = _spliced(a, b)
                kept_left[i] = None
                break
    return [line for line in (*kept_left, *kept_right) if line is not None]


def _one_row(a: Box, b: Box) -> bool:
    """Same height on the page, and one goes on where the other is."""
    common = a.intersection(b)
    height = min(a.height, b.height)
    return common.height >= SAME * height and common.width >= EDGE * height


def _spliced(a: Line, b: Line) -> Line:
    """A line that runs across a vertical seam, from its two sides. It belongs to the right chunk now."""
    assert a.box is not None
    assert b.box is not None
    common = a.box.x1 - b.box.x0
    text = _joined(a.text, b.text, common / a.box.width, common / b.box.width)
    confidences = [c for c in (a.confidence, b.confidence) if c is not None]
    return Line(text, a.box.union(b.box), min(confidences) if confidences else None, b.chunk)


def _joined(left: str, right: str, share_left: float, share_right: float) -> str:
    """Join two readings whose boxes say that the end of one and the start of the other are the same."""
    exact = _aligned(left, right, round(len(left) * share_left))
    if exact is not None:
        # The glyphs at each edge are the doubtful ones, so both readings are left in the common middle.
        return left[: len(left) - exact + exact // 2] + right[exact // 2 :]
    tail = min(len(left), max(1, round(len(left) * share_left)) + 3)
    head = min(len(right), max(1, round(len(right) * share_right)) + 3)
    end, start = left[len(left) - tail :], right[:head]
    match = SequenceMatcher(None, end, start, autojunk=False).find_longest_match()
    if match.size >= _SHORTEST_MATCH:
        half = match.size // 2
        return left[: len(left) - tail + match.a + half] + right[match.b + half :]
    cut_left = len(left) - round(len(left) * share_left / 2)
    return left[:cut_left] + right[round(len(right) * share_right / 2) :]


def _aligned(left: str, right: str, expected: int) -> int | None:
    """Characters that the end of `left` and the start of `right` share, near to what geometry expects.

    Words that repeat ("1.00 1.00 1.00") agree at several places; the nearest one is right.
    """
    best: tuple[float, int] | None = None
    for size in range(
        max(_SHORTEST_MATCH, expected - _DRIFT), min(len(left), len(right), expected + _DRIFT) + 1
    ):
        equal = sum(a == b for a, b in zip(left[-size:], right[:size], strict=True))
        if equal >= _EQUAL * size:
            score = equal / size - 0.05 * abs(size - expected)
            if best is None or score > best[0]:
                best = (score, size)
    return None if best is None else best[1]


# ---------------------------------------------------------------------------------------- vertically


def _below(upper: list[Line], lower: list[Line], chunks: Sequence[Chunk]) -> list[Line]:
    """Lines of the bands above and of the next band.

    Of what both saw, the upper half of the overlap is taken from above and the lower half from below:
    each side saw its own half farther from its edge. Lines that were broken differently on the two
    sides are decided together, so that no piece falls between them.
    """
    groups = _Groups(len(upper) + len(lower))
    margin = [0.0] * (len(upper) + len(lower))
    matched = [False] * (len(upper) + len(lower))
    top = min((line.box.y0 for line in lower if line.box is not None), default=float("inf"))
    for i, a in enumerate(upper):
        if a.box is None or a.box.y1 <= top:
            continue
        for j, b in enumerate(lower):
            if b.box is None or not _same_print(a.box, b.box):
                continue
            start, end = chunks[b.chunk].box.y0, chunks[a.chunk].box.y1
            if start >= end:
                continue
            here, there = i, len(upper) + j
            groups.join(here, there)
            matched[here] = matched[there] = True
            centre = (a.box.y0 + a.box.y1 + b.box.y0 + b.box.y1) / 4
            margin[here] += centre - (start + end) / 2
    below_wins: dict[int, float] = {}
    for number, value in enumerate(margin):
        root = groups.find(number)
        below_wins[root] = below_wins.get(root, 0.0) + value
    return [
        line
        for number, line in enumerate((*upper, *lower))
        if not matched[number] or (below_wins[groups.find(number)] > 0) == (number >= len(upper))
    ]


def _same_print(a: Box, b: Box) -> bool:
    common = a.intersection(b)
    return (
        common.height >= SAME * min(a.height, b.height)
        and common.width >= SAME * min(a.width, b.width)
        and common.width > 0
    )


class _Groups:
    """Disjoint sets of numbers."""

    def __init__(self, size: int) -> None:
        self._parent = list(range(size))

    def find(self, number: int) -> int:
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number

    def join(self, a: int, b: int) -> None:
        self._parent[self.find(a)] = self.find(b)
