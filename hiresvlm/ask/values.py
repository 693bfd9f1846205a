"""Typed values in a text: what of it can be the answer to a question for an amount, a date, a number ..."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hiresvlm.ask import amounts, dates
from hiresvlm.ask.fields import Kind
from hiresvlm.ask.wording import has_cjk


@dataclass(frozen=True, slots=True)
class Value:
    """A value as printed and in normal form. `start` and `end` are its place in the text searched."""

    text: str
    normal: str
    start: int
    end: int
    fit: float = 1.0
    """How well it has the looks of its kind, 0 to 1."""
    currency: str | None = None


_PHONE = re.compile(
    r"(?<![0-9A-Za-z])(?:\(?\+?[0-9]{1,4}\)?[\s-]{0,3})?(?:\(?[0-9]{2,5}\)?[\s-]{0,3})?[0-9]{3,4}[\s-]?[0-9]{3,5}(?![0-9A-Za-z])"
)
_EMAIL = re.compile(r"[A-Za-z0-9._%+-]+\s?@\s?[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")
_PERCENT = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]+)?\s?[%％]")
_TIME = re.compile(
    r"(?<![0-9:])([01]?[0-9]|2[0-3])\s?[:：]\s?([0-5][0-9])(?:\s?[:：]\s?([0-5][0-9]))?\s?([AaPp]\.?[Mm]\.?)?(?![0-9])"
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9#][A-Za-z0-9]*(?:[-/_.#]+[A-Za-z0-9]+)*(?: [0-9][0-9-]*)*")
_COUNT = re.compile(
    r"(?<![0-9.,A-Za-z])-?[0-9]{1,3}(?:[,，][0-9]{3})+(?![0-9])|(?<![0-9.,A-Za-z/-])-?[0-9]+(?:\.[0-9]+)?(?![0-9%％/:-]|[.,][0-9])"
)
_EDGE = " \t:：;；,，|·•=→>-–—_"


def find(kind: Kind, text: str, month_first: bool = False) -> list[Value]:
    """Values of a kind in a text, from left to right."""
    found = _FINDERS[kind](text, month_first) if kind in _FINDERS else _text(text)
    return [value for value in found if value.text]


def _amounts(text: str, month_first: bool) -> list[Value]:
    taken = [(d.start, d.end) for d in dates.find(text, month_first)]
    taken += [match.span() for match in _TIME.finditer(text)]
    return [
        Value(a.text, amounts.plain(a.value), a.start, a.end, _money(a), a.currency)
        for a in amounts.find(text)
        if not any(a.start < end and start < a.end for start, end in taken)
    ]


def _money(amount: amounts.Amount) -> float:
    if amount.is_money:
        return 1.0
    digits = len(amounts.plain(abs(amount.value)).replace(".", ""))
    return 0.75 if amount.decimals == 1 or (amount.decimals == 0 and digits <= 6) else 0.4


def _dates(text: str, month_first: bool) -> list[Value]:
    return [
        Value(d.text, d.iso, d.start, d.end, 0.95 if d.ambiguous else 1.0)
        for d in dates.find(text, month_first)
    ]


def _times(text: str, month_first: bool) -> list[Value]:
    found = []
    for match in _TIME.finditer(text):
        hour = int(match[1])
        if match[4] and match[4][0] in "pP" and hour < 12:
            hour += 12
        elif match[4] and match[4][0] in "aA" and hour == 12:
            hour = 0
        normal = f"{hour:02}:{match[2]}" + (f":{match[3]}" if match[3] else "")
        found.append(Value(match[0].strip(), normal, match.start(), match.end()))
    return found


def _numbers(text: str, month_first: bool) -> list[Value]:
    found = []
    for match in _IDENTIFIER.finditer(text):
        token = match[0].strip("#.")
        digits = sum(c.isdigit() for c in token)
        if digits == 0 or (digits < 2 and len(token) > 8):
            continue
        fit = 1.0 if digits >= 3 else 0.7
        if any(d.start == 0 and d.end == len(token) for d in dates.find(token)):
            fit = 0.4  # a date
        elif re.fullmatch(r"[0-9]+\.[0-9]{2}", token):
            fit = 0.4  # an amount
        start = text.index(token, match.start())
        found.append(Value(token, token.replace(" ", ""), start, start + len(token), fit))
    return found


def _counts(text: str, month_first: bool) -> list[Value]:
    return [
        Value(m[0], re.sub("[,，]", "", m[0]), m.start(), m.end(), 1.0 if len(m[0]) <= 7 else 0.5)
        for m in _COUNT.finditer(text)
    ]


def _percents(text: str, month_first: bool) -> list[Value]:
    return [Value(m[0], m[0].rstrip("%％ "), m.start(), m.end()) for m in _PERCENT.finditer(text)]


def _phones(text: str, month_first: bool) -> list[Value]:
    taken = [(d.start, d.end) for d in dates.find(text, month_first)]
    found = []
    for match in _PHONE.finditer(text):
        printed = match[0].strip()
        count = sum(c.isdigit() for c in printed)
        if 7 <= count <= 15 and not any(match.start() < e and s < match.end() for s, e in taken):
            start = text.index(printed, match.start())
            grouped = any(c in "-+() " for c in printed) or (count == 11 and printed.startswith("1"))
            found.append(
                Value(
                    printed,
                    re.sub("[^0-9+]", "", printed),
                    start,
                    start + len(printed),
                    1.0 if grouped else 0.7,
                )
            )
    return found


def _emails(text: str, month_first: bool) -> list[Value]:
    return [Value(m[0], m[0].replace(" ", "").lower(), m.start(), m.end()) for m in _EMAIL.finditer(text)]


def _text(text: str) -> list[Value]:
    stripped = text.strip(_EDGE)
    if not any(c.isalnum() for c in stripped):
        return []
    start = text.index(stripped)
    return [Value(stripped, " ".join(stripped.split()), start, start + len(stripped))]


# ------------------------------------------------------------------------------- names of companies

_SUFFIX = re.compile(
    r"\b(?:sdn\.?\s?bhd|bhd|s/b|ltd|limited|inc|llc|llp|plc|gmbh|corp|corporation|company|enterprises?|trading|"
    r"industries|holdings?|restaurants?|restoran|kedai|syarikat|perniagaan|hardware|stationery|mart|market|"
    r"supermarket|store|stores|shop|cafe|bakery|bakeries|pharmacy|hotel|co|kg|oy|ab|bv|sa|srl|pte)\b\.?|"
    "公司|商店|商行|超市|餐厅|餐馆|酒店|酒楼|饭店|工作室|厂|集团|中心|药房|书店|便利店|商贸|经营部|事务所|门店|旗舰店",
    re.IGNORECASE,
)
_REGISTRATION = re.compile(r"\s*[(（][^()（）]*[0-9]{4}[^()（）]*[)）]?[\s,.]*$")
"""The number of a firm in the register, printed behind its name."""


MISREAD = re.compile(r"\b(?:[A-Z]+[0-9][A-Z]+|[0-9][A-Z]{3,})\b")
"""A digit among capitals, as in 1DEA: rarely a name, often an I or an O that was misread."""


def is_company(text: str) -> bool:
    """Whether a text has the looks of the name of a firm."""
    return _SUFFIX.search(text) is not None


def company(text: str) -> str:
    """The name without the registration number behind it."""
    return _REGISTRATION.sub("", text.strip(_EDGE)).strip(_EDGE)


_PRICE = re.compile(r"(?<!\S)\d+[.,]\d\d(?!\S)")


def _companies(text: str, month_first: bool) -> list[Value]:
    name = company(text)
    letters = sum(c.isalpha() for c in name)
    if letters < 2 or (_PRICE.search(name) and not is_company(name)):
        return []  # a word and a price are a row of goods
    fit = 1.0 if is_company(name) else 0.85 if letters >= (3 if has_cjk(name) else 4) else 0.5
    start = max(0, text.find(name))
    return [Value(name, " ".join(name.split()), start, start + len(name), fit)]


_FINDERS = {
    Kind.AMOUNT: _amounts,
    Kind.DATE: _dates,
    Kind.TIME: _times,
    Kind.NUMBER: _numbers,
    Kind.COUNT: _counts,
    Kind.PERCENT: _percents,
    Kind.PHONE: _phones,
    Kind.EMAIL: _emails,
    Kind.COMPANY: _companies,
}
