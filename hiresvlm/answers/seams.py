"""Merging texts without boxes: the known overlap of two chunks guides an alignment of their lines.

The geometric prior is what makes it work: repeated rows ("1.00") fit anywhere. `hiresvlm bench merge`
measures it; reach and likeness were set on its seed 101.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from difflib import Match, SequenceMatcher

from rapidfuzz import fuzz

from hiresvlm.answers.bands import bands
from hiresvlm.datatypes import Chunk

ACCEPT = 0.5
"""Least score of an offset. Unrelated lines of one document score up to 0.45: below this, lines are
thrown away that were never common (6 of 200 pages at 0.4, 2 at 0.5), which is worse than a line twice."""

PRIOR = 0.08
"""Cost of each line between an offset and the one that geometry expects."""

_SEAM_WEIGHT = 0.3
"""Weight of the outermost line of each side: a cut through it makes it unlike its twin."""

_SURE = 0.8
"""Below this score a word-level alignment, which stands other line breaks, is tried as well."""

_ALIKE = 0.6
"""Three or more common lines are believed only with one pair this alike that no cut went through: a sum of
chance likenesses must not throw lines away."""

_WORDS, _CHARACTERS = 3, 12
"""Least length of a block of equal words: two words ("journal 7.50") repeat on any page."""


def merge(texts: Sequence[tuple[Chunk, str]], line_height: float) -> str:
    """The texts of chunks as one; heights in page pixels. Neighbours first, then bands, then the page."""
    chunks = [chunk for chunk, _ in texts]
    lines = [[line for line in text.split("\n") if line.strip()] for _, text in texts]
    merged: list[str] = []
    above: Chunk | None = None
    for band in bands(chunks):
        row = lines[band[0]]
        for left, right in itertools.pairwise(band):
            common = chunks[left].box.intersection(chunks[right].box)
            if common.width > 0 and common.height > 0:
                row = beside(row, lines[right], common.width / chunks[right].box.width)
            else:
                row = row + lines[right]
        expected = _overlap_lines(above, chunks[band[0]], line_height)
        merged = join(merged, row, expected) if expected > 0 else merged + row
        above = chunks[band[0]]
    return "\n".join(merged)


def beside(left: list[str], right: list[str], share: float) -> list[str]:
    """Join the lines of two horizontal neighbours; `share` of the right one's width is common.

    Lines are paired in order, so that as many characters as possible agree between ends on the left
    and starts on the right; what has no partner keeps its place as a line of its own.
    """
    # A full line of the right chunk has this many characters in the common strip.
    strip = max(2, round(share * max(map(len, right), default=0)))
    # gain[i][j]: best sum of characters that agree, of the first i left and j right lines
    gain = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left, 1):
        for j, b in enumerate(right, 1):
            here = gain[i - 1][j - 1] + _agreement(a, b, strip).size
            gain[i][j] = max(gain[i - 1][j], gain[i][j - 1], here)
    joined: list[str] = []
    i, j = len(left), len(right)
    while i or j:
        match = _agreement(left[i - 1], right[j - 1], strip) if i and j else None
        if match is not None and match.size and gain[i][j] == gain[i - 1][j - 1] + match.size:
            joined.append(_spliced(left[i - 1], right[j - 1], match, strip))
            i, j = i - 1, j - 1
        elif j and (not i or gain[i][j] == gain[i][j - 1]):
            joined.append(right[j - 1])
            j -= 1
        else:
            joined.append(left[i - 1])
            i -= 1
    return joined[::-1]


def _agreement(left: str, right: str, strip: int) -> Match:
    """The characters that the end of a left line and the start of a right one have in common."""
    end, start = left[-strip - 3 :], right[: strip + 3]
    match = SequenceMatcher(None, end, start, autojunk=False).find_longest_match()
    # Chance agreements are short, or far from where the two pieces would have to meet.
    if match.size < 2 or match.b > 3:
        return Match(0, 0, 0)
    return match


def _spliced(left: str, right: str, match: Match, strip: int) -> str:
    """One line of two pieces. Where the left piece holds the right one whole, it stays as it is."""
    start = len(left) - len(left[-strip - 3 :]) + match.a
    if match.b + match.size >= len(right):
        return left
    half = match.size // 2
    return left[: start + half] + right[match.b + half :]


def join(above: list[str], below: list[str], expected: float) -> list[str]:
    """Join the lines of two vertical neighbours that share about `expected` lines."""
    if not above or not below:
        return above + below
    score, offset = _best_offset(above, below, expected)
    if score < _SURE:
        by_words = _join_by_words(above, below, expected)
        if by_words is not None and score < ACCEPT:
            return by_words
    if score < ACCEPT:
        return above + below
    if offset == 1:  # one of the two was cut; what is cut has lost letters
        return [*above[:-1], max(above[-1], below[0], key=_letters), *below[1:]]
    # Each side saw its own half of the overlap farther from its edge.
    half = offset // 2
    return above[: len(above) - offset + half] + below[half:]


def _best_offset(above: list[str], below: list[str], expected: float) -> tuple[float, int]:
    """(score, o): the last `o` lines of `above` are the first `o` of `below`."""
    best: tuple[float, int] = (0.0, 0)
    most = min(len(above), len(below), max(2, round(expected) + 2))
    a = [normal(line) for line in above[len(above) - most :]]
    b = [normal(line) for line in below[:most]]
    for offset in range(1, most + 1):
        total = weight = 0.0
        for t in range(offset):
            x, y = a[most - offset + t], b[t]
            w: float = min(max(len(x), len(y)), 20) + 1
            if offset > 1 and t in (0, offset - 1):
                w *= _SEAM_WEIGHT
            total += w * fuzz.ratio(x, y) / 100
            weight += w
        score = total / weight - PRIOR * abs(offset - expected)
        whole = [fuzz.ratio(a[most - offset + t], b[t]) / 100 for t in range(1, offset - 1)]
        if not whole or max(whole) >= _ALIKE:
            best = max(best, (score, offset))
    return best


def _join_by_words(above: list[str], below: list[str], expected: float) -> list[str] | None:
    """Join at the middle of the block of equal words that agrees best with the expected overlap."""
    reach = round(2 * expected) + 2
    a = [(i, word) for i, line in enumerate(above[-reach:]) for word in line.split()]
    b = [(i, word) for i, line in enumerate(below[:reach]) for word in line.split()]
    words_a, words_b = [normal(word) for _, word in a], [normal(word) for _, word in b]
    matcher = SequenceMatcher(None, words_a, words_b, autojunk=False)
    per_line = max(1.0, len(a) / max(1, min(reach, len(above))))
    best: tuple[float, int, int] | None = None
    for block in matcher.get_matching_blocks():
        if not _telling(words_a[block.a : block.a + block.size]):
            continue
        implied = len(words_a) - block.a + block.b  # words that this block says are common
        score = 2 * block.size - 0.5 * abs(implied - expected * per_line)
        if best is None or score > best[0]:
            best = (score, block.a + block.size // 2, block.b + block.size // 2)
    if best is None or best[0] <= 0:
        return None
    _, at_a, at_b = best
    row_a, row_b = a[at_a][0], b[at_b][0]
    before = [word for i, word in a[:at_a] if i == row_a]
    after = [word for i, word in b[at_b:] if i == row_b]
    head = above[: max(0, len(above) - reach) + row_a]
    return [*head, " ".join([*before, *after]), *below[row_b + 1 :]]


def _telling(words: list[str]) -> bool:
    """Whether equal words are evidence: several, or a long run of text without spaces (Chinese)."""
    characters = sum(map(len, words))
    return characters >= _CHARACTERS and (len(words) >= _WORDS or characters >= _CHARACTERS * len(words))


def _overlap_lines(previous: Chunk | None, chunk: Chunk, line_height: float) -> float:
    """Lines that two chunks share, by geometry; 0 where they are no vertical neighbours."""
    if previous is None:
        return 0.0
    common = previous.box.intersection(chunk.box)
    if common.height <= 0 or common.width < 0.5 * min(previous.box.width, chunk.box.width):
        return 0.0
    return common.height / line_height


def _letters(text: str) -> int:
    return sum(character.isalnum() for character in text)


def normal(text: str) -> str:
    """Lower case, letters and digits only: noise and markup must not decide."""
    return re.sub(r"[\W_]", "", text.lower()) or text.strip()
