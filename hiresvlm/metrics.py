"""Scores of a text against gold text. Each is a pure function; the docstring states its range."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rapidfuzz import fuzz, process
from rapidfuzz.distance import LCSseq, Levenshtein

if TYPE_CHECKING:
    from numpy.typing import NDArray


def normal(text: str) -> str:
    """NFC, white space collapsed: what every character score compares."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).strip()


def anls(gold: str | None, read: str | None) -> float:
    """Average normalised Levenshtein similarity of one answer (Biten et al. 2019): 0 to 1, 0 below one half.

    Case and white space are ignored. "Not in the document" is an answer like others: 1 where both are None.
    """
    if gold is None or read is None:
        return float(gold is read)
    a, b = (" ".join(text.strip().lower().split()) for text in (gold, read))
    score = 1 - Levenshtein.distance(a, b) / max(1, len(a), len(b))
    return score if score >= 0.5 else 0.0


@dataclass(slots=True)
class Score:
    """Sums over texts, so that every score is micro-averaged (edits over gold characters)."""

    edits: int = 0
    gold: int = 0
    kept: int = 0
    gold_solid: int = 0
    words_common: int = 0
    words_read: int = 0
    words_gold: int = 0
    texts: int = field(default=0)

    def add(self, gold: str, read: str) -> None:
        a, b = normal(gold), normal(read)
        self.edits += Levenshtein.distance(a, b)
        self.gold += len(a)
        solid_a, solid_b = a.replace(" ", ""), b.replace(" ", "")
        self.kept += LCSseq.similarity(solid_a, solid_b)
        self.gold_solid += len(solid_a)
        words_a, words_b = Counter(a.upper().split()), Counter(b.upper().split())
        self.words_common += (words_a & words_b).total()
        self.words_gold += words_a.total()
        self.words_read += words_b.total()
        self.texts += 1

    @property
    def cer(self) -> float:
        """Character error rate: edits over gold characters; 0 is best, above 1 is possible."""
        return self.edits / max(1, self.gold)

    @property
    def kept_share(self) -> float:
        """Share of gold characters found in order, white space ignored; blind to what was invented."""
        return self.kept / max(1, self.gold_solid)

    @property
    def word_f1(self) -> float:
        """F1 of exact upper-case words as a bag, 0 to 1."""
        return 2 * self.words_common / max(1, self.words_read + self.words_gold)

    def as_dict(self) -> dict[str, float]:
        return {"word_f1": self.word_f1, "cer": self.cer, "kept": self.kept_share}


def score(pairs: Iterable[tuple[str, str]]) -> Score:
    """Score of (gold, read) pairs."""
    total = Score()
    for gold, read in pairs:
        total.add(gold, read)
    return total


# ------------------------------------------------------------------------------- lines and languages

_CHINESE = re.compile("[\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uff00-\uffef]")
_LATIN = re.compile("[A-Za-z]")


def language(text: str) -> str:
    """`zh` with Chinese characters and no Latin letters, `mixed` with both, else `en`."""
    if not _CHINESE.search(text):
        return "en"
    return "mixed" if _LATIN.search(text) else "zh"


def edits_by_line(gold: Sequence[str], read: str) -> list[tuple[LineEdits, LineEdits]]:
    """(Chinese, other) edits of each gold line, from one alignment of the whole text.

    Characters of a mixed line count by their own script, those of other lines by the line's language.
    Edits over all lines add up to those of `Score` (but for lines that are empty once normalised);
    what was inserted is charged to the gold character before it.
    """
    lines = [normal(line) for line in gold]
    owner: list[int] = []
    chinese: list[bool] = []
    for number, line in enumerate(lines):
        lang = language(line)
        for character in line + " ":
            owner.append(number)
            chinese.append(lang == "zh" or (lang == "mixed" and bool(_CHINESE.match(character))))
    a = " ".join(lines)
    sums = [[[0, 0], [0, 0]] for _ in lines]
    for position in range(len(a)):
        sums[owner[position]][not chinese[position]][1] += 1
    for op in Levenshtein.editops(a, normal(read)):
        if not a:
            break
        position = min(op.src_pos, len(a) - 1)
        if op.tag == "insert":
            position = max(0, op.src_pos - 1)
        sums[owner[position]][not chinese[position]][0] += 1
    return [(LineEdits(*zh), LineEdits(*other)) for zh, other in sums]


class LineEdits(NamedTuple):
    """Edits and gold characters of a part of a text."""

    edits: int
    gold: int

    def __add__(self, other: object) -> LineEdits:
        assert isinstance(other, LineEdits)
        return LineEdits(self.edits + other.edits, self.gold + other.gold)

    @property
    def cer(self) -> float | None:
        """As `Score.cer`; None without gold characters."""
        return self.edits / self.gold if self.gold else None


def solid_edits(gold: str, read: str) -> LineEdits:
    """Edits and gold characters with all white space left out."""
    a, b = _solid(gold), _solid(read)
    return LineEdits(Levenshtein.distance(a, b), len(a))


SAME_LINE = 0.6
"""Similarity from which a line of output is a gold line, with its errors..."""
SURE_LINE = 0.8
"""...and from which it certainly is."""
SAME_CELL = 0.7
"""The same for a cell of a table: one error in four characters is let pass."""


def missed_and_doubled(gold: Sequence[Sequence[str]], read: Sequence[str]) -> tuple[list[int], list[int]]:
    """Numbers of gold lines (each given as its cells) that no line of output shows, and of those that two do.

    A line of several cells is not missed when most of its characters are in cells that were read, if
    on several lines. Doubled: two lines of output are surely it, and the gold text has it once.
    """
    lines = [_solid(" ".join(cells)) for cells in gold]
    output = [solid for line in read if (solid := _solid(line))]
    if not lines or not output:
        return list(range(len(lines))), []
    found = process.cdist(lines, output, scorer=fuzz.ratio, dtype=np.float32) / 100
    twins = (process.cdist(lines, lines, scorer=fuzz.ratio, dtype=np.float32) / 100 >= SURE_LINE).sum(axis=1)
    missed = [
        number
        for number, best in enumerate(found.max(axis=1))
        if best < SAME_LINE and not _in_pieces([_solid(cell) for cell in gold[number]], output)
    ]
    doubled = np.flatnonzero(((found >= SURE_LINE).sum(axis=1) > 1) & (twins == 1))
    return missed, doubled.tolist()


def _in_pieces(cells: Sequence[str], output: Sequence[str]) -> bool:
    if len(cells) < 2:
        return False
    there = sum(
        len(cell)
        for cell in cells
        if any(fuzz.partial_ratio(cell, line) >= 100 * SURE_LINE for line in output)
    )
    return there >= SAME_LINE * sum(map(len, cells))


def rows_whole(rows: Sequence[Sequence[str]], read: Sequence[str]) -> int:
    """How many gold rows of a table (given as cells) have all cells on one line of output, and little else.

    Cells may have errors: a cell is there when a piece of the line is like it to 70 %.
    """
    output = [solid for line in read if (solid := _solid(line))]
    whole = 0
    for cells in rows:
        parts = [_solid(cell) for cell in cells]
        length = sum(map(len, parts))
        whole += any(
            len(line) <= 1.5 * length
            and all(fuzz.partial_ratio(cell, line) >= 100 * SAME_CELL for cell in parts)
            for line in sorted(output, key=lambda line: -fuzz.ratio(line, "".join(parts)))[:3]
        )
    return whole


def _solid(text: str) -> str:
    return normal(text).replace(" ", "")


def interval(
    pairs: Sequence[tuple[LineEdits, LineEdits]], seed: int = 0, resamples: int = 1000
) -> tuple[float, float, float]:
    """CER(first) - CER(second) over texts, and its 95 % interval by a paired bootstrap over texts."""
    a = np.array([first for first, _ in pairs], float)
    b = np.array([second for _, second in pairs], float)
    draws = np.random.default_rng(seed).integers(0, len(pairs), (resamples, len(pairs)))

    def difference(index: NDArray[np.int64]) -> NDArray[np.float64]:
        first, second = a[index].sum(axis=-2), b[index].sum(axis=-2)
        gold = np.maximum(1, first[..., 1])
        return np.asarray(first[..., 0] / gold - second[..., 0] / np.maximum(1, second[..., 1]))

    low, high = np.quantile(difference(draws), (0.025, 0.975))
    return float(difference(np.arange(len(pairs)))), float(low), float(high)
