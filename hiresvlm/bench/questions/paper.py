"""A document under construction: fields with their labels in several layouts, and what can be asked of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from hiresvlm.bench.gold.sheet import Colour, Sheet
from hiresvlm.bench.gold.words import Words
from hiresvlm.bench.questions.phrases import PHRASES

LABEL: Colour = (96, 96, 104)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and its answer as printed; None when the document does not say."""

    question: str
    answer: str | None
    kind: str
    """amount, date or text: how answers are compared."""
    field: str


@dataclass(slots=True)
class Document:
    """A page and its questions."""

    name: str
    lang: str
    kind: str
    sheet: Sheet
    asked: list[Asked] = field(default_factory=list)


@dataclass(slots=True)
class Paper:
    """Draws labelled values and keeps the question that each answers."""

    sheet: Sheet
    rng: random.Random
    words: Words
    lang: str
    asked: list[Asked] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)

    def label(self, name: str) -> str:
        return self.rng.choice(PHRASES[name].labels[self.lang])

    def ask(self, name: str, answer: str | None, **words: str) -> None:
        """Note a question about a field, in one of its phrasings."""
        phrase = PHRASES[name]
        question = self.rng.choice(phrase.questions[self.lang]).format(**words)
        self.asked.append(Asked(question, answer, phrase.kind, name))
        self.shown.add(name)

    def beside(self, x: float, y: float, name: str, value: str, size: int, width: float) -> None:
        """Label and value in one row: joined by a colon, or the value at a tab stop or right margin."""
        label = self.label(name)
        way = self.rng.choice(("colon", "tab", "right"))
        colon = "：" if self.lang == "zh" else ":"
        if way == "colon":
            gap = "" if self.lang == "zh" else " "
            self.sheet.line(x, y, f"{label}{colon}{gap}{value}", size)
        elif way == "tab":
            self.sheet.row(y, [(x, label + colon, "ls"), (x + 0.5 * width, value, "ls")], size)
        else:
            self.sheet.row(y, [(x, label, "ls"), (x + width, value, "rs")], size)
        self.ask(name, value)

    def above(self, x: float, y: float, name: str, value: str, size: int) -> None:
        """The label in small print over the value. Takes 2.6 `size` in height."""
        self.sheet.line(x, y, self.label(name), round(0.8 * size), LABEL)
        self.sheet.line(x, y + 1.4 * size, value, size)
        self.ask(name, value)

    def absent(self, names: Sequence[str], count: int) -> None:
        """Ask for fields that the page does not show."""
        left = [name for name in names if name not in self.shown and not _shown_too(name, self.shown)]
        for name in self.rng.sample(left, min(count, len(left))):
            phrase = PHRASES[name]
            question = self.rng.choice(phrase.questions[self.lang])
            self.asked.append(Asked(question, None, phrase.kind, name))


def _shown_too(name: str, shown: set[str]) -> bool:
    """Whether another field that is shown could pass for this one."""
    return any({name, other} <= group for group in _ALIKE for other in shown)


_ALIKE = ({"total", "amount", "balance"}, {"seller", "buyer", "name"}, {"date", "order_time", "start_date"})
