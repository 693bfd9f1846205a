"""Random English words and values: amounts, dates, codes, names, addresses."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

from hiresvlm.nano.data import words as w

DATE_FORMS = 12
"""How many ways to write a date `Values.dates` knows."""
CURRENCIES = ("$", "$", "€", "£", "RM ", "USD ", "EUR ", "RM", "¥", "S$", "CHF ", "Rs. ")

HOSTS = ("com", "com", "org", "net", "de", "co.uk", "com.my", "io", "cn")


def _natural(words: list[str]) -> list[float]:
    """Cumulative weights of Zipf's law for words in order of frequency, flattened so that rare ones occur."""
    return list(accumulate(1 / (rank + 10) ** 0.6 for rank in range(len(words))))


_WEIGHTS = {id(words): _natural(words) for words in (w.NOUNS, w.VERBS, w.PAST, w.ADJECTIVES, w.ADVERBS)}


class Values:
    """Words and values from one random stream."""

    def __init__(self, rng: random.Random, rare: Sequence[str] = ()) -> None:
        """Draw everything from `rng`; `rare` are words to use beside made-up ones."""
        self.rng, self.rare_words = rng, rare

    def _natural(self, words: list[str]) -> str:
        weights = _WEIGHTS[id(words)]
        return words[bisect(weights, self.rng.random() * weights[-1])]

    def chance(self, share: float) -> bool:
        """True in this share of calls."""
        return self.rng.random() < share

    def digits(self, count: int) -> str:
        """`count` random digits."""
        return "".join(self.rng.choices("0123456789", k=count))

    def letters(self, count: int) -> str:
        """`count` random capital letters."""
        return "".join(self.rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=count))

    def made_up(self) -> str:
        """A word that can be spoken but is not in the lists."""
        return "".join(
            self.rng.choice(part) for _ in range(self.rng.choice((1, 2, 2, 3))) for part in w.SYLLABLES
        )

    def rare(self) -> str:
        """A rare word, or a made-up one."""
        return self.rng.choice(self.rare_words) if self.rare_words and self.chance(0.75) else self.made_up()

    def word(self) -> str:
        """A content word."""
        if self.chance(0.2):
            return self.rare()
        return self._natural(self.rng.choice((w.NOUNS, w.NOUNS, w.VERBS, w.ADJECTIVES, w.PAST)))

    def number(self, most: int = 6) -> str:
        """A whole number with or without thousands separators."""
        digits = self.rng.randint(1, most)
        value = self.rng.randrange(10 ** (digits - 1), 10**digits)
        return f"{value:,}" if self.chance(0.5) else str(value)

    def amount(self, currency: bool | None = None) -> str:
        """An amount of money in one of many formats."""
        value = self.rng.randrange(1, 10 ** self.rng.choice((3, 4, 4, 5, 5, 6, 7))) / 100
        form = self.rng.random()
        if form < 0.6:
            text = f"{value:,.2f}"
        elif form < 0.8:
            text = f"{value:.2f}"
        elif form < 0.92:
            text = f"{value:,.2f}".translate(str.maketrans(",.", ".,"))
        else:
            text = f"{value:,.0f}"
        if currency is None:
            currency = self.chance(0.5)
        if currency:
            sign = self.rng.choice(CURRENCIES)
            text = f"{text} {sign.strip()}" if self.chance(0.15) else sign + text
        return f"-{text}" if self.chance(0.04) else text

    def dates(self, year: int, month: int, day: int) -> tuple[str, ...]:
        """One date in all formats."""
        name = w.MONTHS[month - 1]
        return (
            f"{day:02}/{month:02}/{year}",
            f"{month:02}/{day:02}/{year % 100:02}",
            f"{year}-{month:02}-{day:02}",
            f"{day}.{month}.{year}",
            f"{day:02}.{month:02}.{year}",
            f"{day:02}-{month:02}-{year}",
            f"{day} {name} {year}",
            f"{name} {day}, {year}",
            f"{day:02}-{name[:3]}-{year}",
            f"{name[:3]} {day}, {year}",
            f"{day} {name[:3]} {year % 100:02}",
            f"{self.rng.choice(w.DAYS)}, {day} {name}",
        )

    def date(self, form: int | None = None) -> str:
        """A date in one of many formats, or in that with the number `form`."""
        rng = self.rng
        forms = self.dates(rng.randint(1985, 2031), rng.randint(1, 12), rng.randint(1, 28))
        return rng.choice(forms) if form is None else forms[form]

    def city(self) -> str:
        """The name of a city."""
        return self.rng.choice(w.CITIES)

    def time(self) -> str:
        """A time of day."""
        hour, minute, second = self.rng.randrange(24), self.rng.randrange(60), self.rng.randrange(60)
        half = "AM" if hour < 12 else "PM"
        forms = (
            f"{hour:02}:{minute:02}",
            f"{hour:02}:{minute:02}:{second:02}",
            f"{hour % 12 or 12}:{minute:02} {half}",
        )
        return self.rng.choice(forms)

    def code(self) -> str:
        """A number or code as on invoices, parts and bookings."""
        rng = self.rng
        return rng.choice(
            (
                lambda: f"{self.letters(rng.randint(1, 4))}-{self.digits(rng.randint(3, 7))}",
                lambda: f"{self.letters(rng.randint(1, 3))}{self.digits(rng.randint(3, 9))}",
                lambda: f"INV-{rng.randint(2010, 2030)}-{self.digits(4)}",
                lambda: f"#{self.digits(rng.randint(4, 9))}",
                lambda: self.digits(rng.randint(5, 13)),
                lambda: f"{self.digits(3)}-{self.digits(rng.randint(4, 7))}",
                lambda: f"{self.letters(2)}{self.digits(2)}{self.letters(2)}{self.digits(3)}",
                lambda: f"{self.letters(1)}{self.digits(3)}/{self.digits(2)}-{self.letters(1)}",
                lambda: "".join(rng.choices("0123456789ABCDEFGHJKLMNPQRSTUVWXYZ", k=rng.randint(5, 12))),
                lambda: "".join(rng.choices("0123456789abcdef", k=rng.randint(6, 12))),
            )
        )()

    def person(self) -> str:
        """A person's name."""
        first, last = self.rng.choice(w.FIRST_NAMES), self.rng.choice(w.LAST_NAMES)
        forms = (
            f"{first} {last}",
            f"{first} {last}",
            f"{first[0]}. {last}",
            f"{last}, {first}",
            f"Ms {last}",
            f"Mr. {last}",
        )
        return self.rng.choice(forms)

    def company(self) -> str:
        """A company's name."""
        first = self.rng.choice(
            (self.rng.choice(w.COMPANY_WORDS), self.rng.choice(w.LAST_NAMES), self.made_up().title())
        )
        middle = [self.rng.choice(w.COMPANY_WORDS)] if self.chance(0.3) else []
        return " ".join([first, *middle, self.rng.choice((*w.COMPANY_KINDS, "Sdn Bhd", "& Sons"))])

    def email(self) -> str:
        """An address for e-mail."""
        name = self.rng.choice(
            (self.rng.choice(w.FIRST_NAMES).lower(), self.made_up(), "info", "sales", "office")
        )
        host = self.rng.choice((self.made_up(), self.rng.choice(w.COMPANY_WORDS).lower(), "example"))
        name += self.rng.choice(
            ("", "", f".{self.rng.choice(w.LAST_NAMES).lower()}", self.digits(2), "_" + self.made_up())
        )
        return f"{name}@{host}.{self.rng.choice(HOSTS)}"

    def url(self) -> str:
        """A web address."""
        path = self.rng.choice(
            ("", "", f"/{self.word()}", f"/{self.word()}/{self.digits(3)}", f"/?id={self.digits(4)}")
        )
        return (
            self.rng.choice(("www.", "https://", "http://www.", ""))
            + f"{self.made_up()}{self.rng.choice(('.com', '.org', '.net'))}{path}"
        )

    def phone(self) -> str:
        """A phone number."""
        d = self.digits
        forms = (
            f"+{d(2)} {d(3)} {d(3)} {d(4)}",
            f"({d(3)}) {d(3)}-{d(4)}",
            f"{d(3)}-{d(3)}-{d(4)}",
            f"0{d(2)}-{d(7)}",
            f"+{d(1)}-{d(3)}-{d(3)}-{d(4)}",
            f"0{d(3)} {d(6)}",
            d(11),
        )
        return self.rng.choice(forms)

    def street(self) -> str:
        """A house number and street."""
        street = f"{self.rng.choice(w.STREETS)} {self.rng.choice(w.STREET_KINDS)}"
        number = self.rng.randint(1, 999)
        return self.rng.choice(
            (
                f"{number} {street}",
                f"{number} {street}",
                f"No. {number}, {street}",
                f"{number}-{self.rng.randint(1, 30)}, Jalan {self.made_up().title()}",
            )
        )

    def town(self) -> str:
        """A town with its postcode or state."""
        city = self.rng.choice(w.CITIES)
        return self.rng.choice(
            (
                f"{self.digits(5)} {city}",
                f"{city}, {self.letters(2)} {self.digits(5)}",
                f"{city} {self.letters(2)}{self.digits(1)} {self.digits(1)}{self.letters(2)}",
                city,
            )
        )

    def address(self) -> str:
        """Street and town on one line."""
        return f"{self.street()}, {self.town()}"

    def percent(self) -> str:
        """A percentage."""
        return self.rng.choice(
            (
                f"{self.rng.randint(0, 100)}%",
                f"{self.rng.randrange(1000) / 10:.1f}%",
                f"{self.rng.randrange(1000) / 10:.1f} %",
            )
        )

    def quantity(self) -> str:
        """A number with its unit."""
        unit = self.rng.choice(w.UNITS)
        number = self.rng.choice((str(self.rng.randint(1, 999)), f"{self.rng.randrange(1, 1000) / 10:.1f}"))
        return f"{number} {unit}" if self.chance(0.6) else f"{number}{unit}"

    def value(self) -> str:
        """Any short value."""
        kinds = (
            self.amount,
            self.amount,
            self.number,
            self.date,
            self.code,
            self.percent,
            self.quantity,
            self.time,
        )
        return self.rng.choice(kinds)()
