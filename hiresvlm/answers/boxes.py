"""Merging lines with boxes: in the overlap of two chunks each line is kept once, from the better side."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import combinations

from hiresvlm.datatypes import Box, Chunk, Line

SAME = 0.5
"""Two boxes show the same print when their overlap covers this share of the smaller one (SAHI)."""

_SHORTEST_MATCH = 2
"""Characters that two halves of a line must share to be joined by their text."""


def merge(lines: Sequence[Line], chunks: Sequence[Chunk]) -> tuple[Line, ...]:
    """All lines once. Boxes are in page pixels; `line.chunk` numbers the chunk each was read from."""
    kept: list[Line | None] = list(lines)
    members: dict[int, list[int]] = {}
    for index, line in enumerate(lines):
        members.setdefault(line.chunk, []).append(index)
    for a, b in combinations(sorted(members), 2):
        zone = chunks[a].box.intersection(chunks[b].box)
        if zone.width > 0 and zone.height > 0:
            _merge_zone(kept, members[a], members[b], zone, chunks)
    return tuple(line for line in kept if line is not None)


def _merge_zone(
    kept: list[Line | None], left: list[int], right: list[int], zone: Box, chunks: Sequence[Chunk]
) -> None:
    """Resolve the pairs of lines of two overlapping chunks, in place."""
    for i in left:
        for j in right:
            first, second = kept[i], kept[j]
            if first is None:
                break
            if second is None or not _touches(first, zone) or not _touches(second, zone):
                continue
            if _same_print(first, second):
                joined = _joined(first, second, chunks)
                if joined is not None:
                    kept[i], kept[j] = joined, None
                elif _room(first, chunks, second.chunk) >= _room(second, chunks, first.chunk):
                    kept[j] = None
                else:
                    kept[i] = None


def _touches(line: Line, zone: Box) -> bool:
    if line.box is None:
        return False
    common = line.box.intersection(zone)
    return common.width > 0 and common.height > 0


def _same_print(a: Line, b: Line) -> bool:
    """Same row, and one's extent along it lies mostly in the other's, or they continue each other."""
    if a.box is None or b.box is None:
        return False
    common = a.box.intersection(b.box)
    if common.width <= 0 or common.height < SAME * min(a.box.height, b.box.height):
        return False
    if common.width >= SAME * min(a.box.width, b.box.width):
        return True
    return common.width >= 0.5 * min(a.box.height, b.box.height)


def _room(line: Line, chunks: Sequence[Chunk], other: int) -> float:
    """Distance of a line to the edges of its chunk that lie inside the other chunk: where it may be cut."""
    mine, theirs = chunks[line.chunk].box, chunks[other].box
    if line.box is None:
        return 0.0
    distances = [float("inf")]
    if theirs.y0 < mine.y0 < theirs.y1:
        distances.append(line.box.y0 - mine.y0)
    if theirs.y0 < mine.y1 < theirs.y1:
        distances.append(mine.y1 - line.box.y1)
    if theirs.x0 < mine.x0 < theirs.x1:
        distances.append(line.box.x0 - mine.x0)
    if theirs.x0 < mine.x1 < theirs.x1:
        distances.append(mine.x1 - line.box.x1)
    return min(distances)


def _joined(a: Line, b: Line, chunks: Sequence[Chunk]) -> Line | None:
    """A line that runs across a vertical seam, put together from both sides.

    None when one side saw all of it: then that side's reading is taken as it is.
    """
    if a.box is None or b.box is None:
        return None
    if a.box.x0 > b.box.x0:
        a, b = b, a
    assert a.box is not None
    assert b.box is not None
    slack = 0.25 * min(a.box.height, b.box.height)
    continues = b.box.x0 > a.box.x0 + slack and b.box.x1 > a.box.x1 + slack
    side_by_side = chunks[a.chunk].box.x1 < chunks[b.chunk].box.x1
    if not (continues and side_by_side):
        return None
    text = _spliced(a.text, b.text, (a.box.x1 - b.box.x0) / a.box.width, (a.box.x1 - b.box.x0) / b.box.width)
    confidences = [c for c in (a.confidence, b.confidence) if c is not None]
    confidence = min(confidences) if confidences else None
    return Line(text, a.box.union(b.box), confidence, a.chunk)


def _spliced(left: str, right: str, share_left: float, share_right: float) -> str:
    """Join two readings whose boxes say that the end of one and the start of the other are the same."""
    tail = min(len(left), max(1, round(len(left) * share_left)) + 3)
    head = min(len(right), max(1, round(len(right) * share_right)) + 3)
    end, start = left[len(left) - tail :], right[:head]
    match = SequenceMatcher(None, end, start, autojunk=False).find_longest_match()
    if match.size >= _SHORTEST_MATCH:
        # The glyphs at each edge are the doubtful ones, so both readings are left in the common middle.
        half = match.size // 2
        return left[: len(left) - tail + match.a + half] + right[match.b + half :]
    cut_left = len(left) - round(len(left) * share_left / 2)
    return left[:cut_left] + right[round(len(right) * share_right / 2) :]
