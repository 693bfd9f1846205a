"""Scores of a text against gold text. Each is a pure function; the docstring states its range."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rapidfuzz.distance import LCSseq, Levenshtein


def normal(text: str) -> str:
    """NFC, white space collapsed: what every character score compares."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).strip()


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
