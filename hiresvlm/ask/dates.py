"""Dates as printed -> ISO dates. Years of two digits are of this century; day before month by default."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES = "January|February|March|April|May|June|July|August|September|October|November|December|" + "|".join(
    name.title() for name in (*_MONTHS, "sept")
)

_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![0-9])(?P<y>[12][0-9]{3})\s?年\s?(?P<m>[0-9]{1,2})\s?月\s?(?P<d>[0-9]{1,2})\s?[日号]?",
        r"(?<![0-9/.-])(?P<y>[12][0-9]{3})\s?[-/.]\s?(?P<m>[0-9]{1,2})\s?[-/.]\s?(?P<d>[0-9]{1,2})(?![0-9])",
        rf"(?<![0-9])(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)?[\s/.,-]{{0,2}}(?P<n>{_NAMES})[a-z]*[\s/.,'’-]{{0,2}}(?P<y>[12][0-9]{{3}}|[0-9]{{2}})(?![0-9:])",
        rf"(?<![A-Za-z])(?P<n>{_NAMES})[a-z]*[\s.-]{{0,2}}(?P<d>[0-9]{{1,2}})(?:st|nd|rd|th)?\s?,?\s?(?P<y>[12][0-9]{{3}})(?![0-9])",
        r"(?<![0-9/.-])(?P<a>[0-9]{1,2})\s?(?P<s>[-/.])\s?(?P<b>[0-9]{1,2})\s?(?P=s)\s?(?P<y>[12][0-9]{3})",
        r"(?<![0-9/.-])(?P<a>[0-9]{1,2})(?P<s>[-/.])(?P<b>[0-9]{1,2})(?P=s)(?P<y>[0-9]{2})(?![0-9/.-])",
    )
)


@dataclass(frozen=True, slots=True)
class Date:
    """A date found in a text. `start` and `end` are its place in it."""

    text: str
    iso: str
    start: int
    end: int
    ambiguous: bool = False
    """Day and month could be the other way round."""


def find(text: str, month_first: bool = False) -> Iterator[Date]:
    """Dates of a text, from left to right; those that no calendar has are left out."""
    found: list[Date] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            date = _date(match, month_first)
            if date is not None and all(date.end <= d.start or date.start >= d.end for d in found):
                found.append(date)
    yield from sorted(found, key=lambda date: date.start)


def is_month_first(texts: Iterable[str]) -> bool:
    """Whether dates of a document only make sense with the month first (3/25/2024)."""
    first = second = 0
    for text in texts:
        for pattern in _PATTERNS[4:]:
            for match in pattern.finditer(text):
                a, b = int(match["a"]), int(match["b"])
                first += a <= 12 < b <= 31
                second += b <= 12 < a <= 31
    return first > second


def _date(match: re.Match[str], month_first: bool) -> Date | None:
    groups = match.groupdict()
    ambiguous = False
    if groups.get("n"):
        month, day = _MONTHS.index(groups["n"][:3].lower()) + 1, int(groups["d"])
    elif "a" in groups:
        day, month = int(groups["a"]), int(groups["b"])
        ambiguous = day <= 12 and month <= 12 and day != month
        if month > 12 or (month_first and day <= 12):
            day, month = month, day
    else:
        month, day = int(groups["m"]), int(groups["d"])
    year = int(groups["y"]) + (2000 if len(groups["y"]) == 2 else 0)
    try:
        iso = datetime.date(year, month, day).isoformat()
    except ValueError:
        return None
    return Date(match[0].strip(), iso, match.start(), match.start() + len(match[0].rstrip()), ambiguous)
