"""Which fields one form has, with the labels and values that it shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hiresvlm.nano.data.canvas import Span
from hiresvlm.nano.data.fields import CHINESE, COMMON, ENGLISH, LABELS, Field
from hiresvlm.nano.data.studio import Studio
from hiresvlm.nano.data.values import DATE_FORMS


@dataclass(frozen=True)
class Entry:
    """A field with the label and the value that one form shows."""

    field: Field
    label: str
    value: str


@dataclass(frozen=True)
class Printed:
    """An entry, the span of its value and that of its label, where it has one."""

    entry: Entry
    span: Span
    label: Span | None = None


class Filler:
    """Entries for one form: each field at most once, amounts in one format, some values repeated."""

    def __init__(self, studio: Studio, chinese: bool) -> None:
        self.studio, self.chinese = studio, chinese
        rng = studio.rng
        self.fields = list(CHINESE if chinese else ENGLISH)
        rng.shuffle(self.fields)
        if studio.chance(0.6):
            common = rng.sample([field for field in self.fields if field.key in COMMON], 5)
            total = [field for field in self.fields if field.key == "total" and field not in common]
            common = rng.sample([*common, *total], 5 + len(total))
            self.fields = [field for field in self.fields if field not in common] + common
        self.used: dict[str, Entry] = {}
        sign = rng.choice(
            ("¥", "¥", "", "￥", "元")
            if chinese
            else ("$", "$", "", "", "€", "£", "RM ", "RM", "USD ", " EUR")
        )
        comma, top = studio.chance(0.6), rng.choice((4, 5, 6, 7))
        self._money: Callable[[], str] = lambda: self._amount(sign, comma, rng.randrange(50, 10**top) / 100)
        date_form = rng.randrange(DATE_FORMS)
        self._date = studio.mandarin.date if chinese else lambda: studio.english.date(date_form)
        self._case = rng.choice((str, str, str, str.upper, str.title))

    @staticmethod
    def _amount(sign: str, comma: bool, value: float) -> str:
        figures = f"{value:,.2f}" if comma else f"{value:.2f}"
        return figures + sign if sign in ("元", " EUR") else sign + figures

    def _value(self, field: Field) -> str:
        studio = self.studio
        rng, write = studio.rng, studio.mandarin if self.chinese else studio.english
        if field.values:
            return rng.choice(field.values)
        same = [entry.value for entry in self.used.values() if entry.field.group == field.group]
        if same and studio.chance(0.12):
            return rng.choice(same)
        english = studio.english
        makers: dict[str, Callable[[], str]] = {
            "money": self._money,
            "date": self._date,
            "code": write.code,
            "person": write.person,
            "company": write.company,
            "address": write.address,
            "phone": write.phone,
            "bank": self.studio.mandarin.bank,
            "email": english.email,
            "url": english.url,
            "city": english.city,
            "time": english.time,
            "count": lambda: str(rng.randint(1, rng.choice((9, 99, 999)))),
            "measure": english.quantity,
            "percent": english.percent,
            "seat": lambda: rng.choice(("", rng.choice("ABCDEF"))) + str(rng.randint(1, 99)),
            "flight": lambda: english.letters(2) + english.digits(rng.randint(2, 4)),
        }
        return makers[field.group]()

    def _odd(self) -> Entry:
        """A label of one or two random words, which can be asked only as it is printed."""
        english = self.studio.english
        label = english.word() if self.studio.chance(0.5) else f"{english.word()} {english.word()}"
        label = self.studio.rng.choice((label.capitalize(), label.title(), label.upper()))
        makers = (
            english.value,
            english.word,
            english.rare,
            self._money,
            self._date,
            english.code,
            english.person,
        )
        value = self.studio.rng.choice(makers)()
        return Entry(Field(label.lower(), "odd", (label,), ()), label, value)

    def named(self, key: str) -> Entry | None:
        """The entry of one field; None where it is used already."""
        field = next(field for field in (CHINESE if self.chinese else ENGLISH) if field.key == key)
        if key in self.used:
            return None
        self.used[key] = Entry(field, self.studio.rng.choice(field.labels), self._value(field))
        return self.used[key]

    def entry(self) -> Entry | None:
        """The next entry; None when all fields are used."""
        if not self.chinese and self.studio.chance(0.22):
            entry = self._odd()
            if entry.field.key in self.used or entry.label.lower() in LABELS:
                return None
        else:
            while self.fields and self.fields[-1].key in self.used:
                self.fields.pop()
            if not self.fields:
                return None
            field = self.fields.pop()
            label = self.studio.rng.choice(field.labels)
            entry = Entry(field, label if self.chinese else self._case(label), self._value(field))
        self.used[entry.field.key] = entry
        return entry
