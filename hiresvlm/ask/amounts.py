"""Amounts of money and other numbers as printed -> decimal numbers.

Understood are signs before, after and in brackets, currencies before and after, thousands and decimal
separators of both traditions, amounts in Chinese numerals (financial and everyday ones), and what OCR
makes of a digit or a dollar sign next to real digits (O for 0, S for $).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

CURRENCIES = {
    "RM": "MYR", "MYR": "MYR", "CNY": "CNY", "RMB": "CNY", "人民币": "CNY", "元": "CNY", "圆": "CNY",
    "US$": "USD", "USD": "USD", "HK$": "HKD", "HKD": "HKD", "S$": "SGD", "SGD": "SGD", "NT$": "TWD",
    "€": "EUR", "EUR": "EUR", "£": "GBP", "GBP": "GBP", "JPY": "JPY", "円": "JPY", "CHF": "CHF",
    "¥": "¥", "￥": "¥", "$": "$",
}  # fmt: skip
"""What is printed -> ISO code; `¥` and `$` stay, because alone they name several currencies."""

_MARK = r"RM|MYR|CNY|RMB|人民币|US\$|USD|HK\$|HKD|S\$|SGD|NT\$|€|EUR|£|GBP|JPY|CHF|¥|￥|\$"
_GROUPED = r"[0-9Oo]{1,3}(?:[,，'][0-9O]{3})+(?:\.[0-9O]{1,4})?|[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]{2}"
_PLAIN = r"[0-9][0-9Oo]*(?:[.,][0-9Oo]{1,4})?|[Oo]?[.,][0-9Oo]{2}|[Oo][.,][0-9Oo]{1,2}"
_AMOUNT = re.compile(
    rf"""(?<![0-9A-Za-z.,/:#-])
    (?P<open>\()?\s?(?P<sign>[-−–+])?\s?(?P<mark>(?:{_MARK})|(?<![A-Z])S(?=[0-9]+\.[0-9]{{2}}))?\s?
    (?P<inner>[-−–])?\s?(?P<digits>{_GROUPED}|{_PLAIN})
    (?P<after>\s?[-−–](?![0-9A-Za-z]))?(?P<close>\))?
    \s?(?P<unit>元|圆|円|USD|EUR|GBP|CNY|MYR|RMB|€|£)?
    (?![0-9%％/:]|[.,][0-9]|-[0-9A-Za-z])""",
    re.VERBOSE,
)

_DIGITS = {c: i for i, c in enumerate("零壹贰叁肆伍陆柒捌玖")}
_DIGITS |= {c: i for i, c in enumerate("〇一二三四五六七八九")} | {"两": 2, "貳": 2, "參": 3, "陸": 6}
_UNITS = {"拾": 10, "十": 10, "佰": 100, "百": 100, "仟": 1000, "千": 1000}
_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_CAPITAL = re.compile(
    r"[零壹贰貳叁參肆伍陆陸柒捌玖拾佰仟万萬亿億]{2,}[元圆圓](?:零?[壹贰貳叁參肆伍陆陸柒捌玖]角)?(?:零?[壹贰貳叁參肆伍陆陸柒捌玖]分)?整?正?"
)


@dataclass(frozen=True, slots=True)
class Amount:
    """A number found in a text. `start` and `end` are its place in it."""

    text: str
    value: Decimal
    start: int
    end: int
    currency: str | None = None
    """ISO code, or the sign where several currencies share it."""

    @property
    def is_money(self) -> bool:
        """Whether it is written as money is: with a currency or with two decimals."""
        return self.currency is not None or self.decimals == 2

    @property
    def decimals(self) -> int:
        exponent = self.value.as_tuple().exponent
        return -exponent if isinstance(exponent, int) else 0


def find(text: str) -> Iterator[Amount]:
    """Amounts and plain numbers of a text from left to right. Parts of dates, codes and percentages are none."""
    for match in _CAPITAL.finditer(text):
        value = capital(match[0])
        if value is not None:
            yield Amount(match[0], value, match.start(), match.end(), "CNY")
    for match in _AMOUNT.finditer(text):
        value = _decimal(match["digits"])
        if value is None:
            continue
        if (
            match["sign"] in ("-", "−", "–")
            or match["inner"]
            or match["after"]
            or (match["open"] and match["close"])
        ):
            value = -value
        found = match[0]
        if match["open"] and not match["close"]:
            found = found.lstrip("( ")
        if match["close"] and not match["open"]:
            found = found.rstrip().removesuffix(")")
        mark = "$" if match["mark"] == "S" else match["mark"] or match["unit"]
        start = text.find(found.strip(), match.start())
        yield Amount(
            found.strip(), value, start, start + len(found.strip()), CURRENCIES.get(mark) if mark else None
        )


def capital(text: str) -> Decimal | None:
    """`肆仟捌佰元零玖角贰分` -> 4800.92; None where the numerals make no number."""
    whole, _, rest = re.sub("[整正]", "", text).replace("圆", "元").replace("圓", "元").partition("元")
    value = _numeral(whole)
    if value is None:
        return None
    total = Decimal(value)
    for unit, share in (("角", Decimal("0.1")), ("分", Decimal("0.01"))):
        head, found, tail = rest.partition(unit)
        if found:
            digit = _DIGITS.get(head.lstrip("零")[-1:] or "零")
            if digit is None:
                return None
            total += digit * share
            rest = tail
    return total.quantize(Decimal("0.01"))


def plain(value: Decimal) -> str:
    """The decimal string of a record: no exponent, no plus."""
    return format(value, "f")


def _numeral(text: str) -> int | None:
    total = section = digit = 0
    for character in text:
        if character in _DIGITS:
            digit = _DIGITS[character]
        elif character in _UNITS:
            section += (digit or 1) * _UNITS[character]
            digit = 0
        elif character in _MYRIADS:
            total += (section + digit) * _MYRIADS[character]
            section = digit = 0
        else:
            return None
    return total + section + digit


def _decimal(digits: str) -> Decimal | None:
    digits = digits.replace("O", "0").replace("o", "0").replace("，", ",").replace("'", ",")
    last = max(digits.rfind("."), digits.rfind(","))
    if last >= 0:
        whole, fraction = digits[:last], digits[last + 1 :]
        grouped = digits[last] == "," and len(fraction) == 3 and whole not in ("", "0")
        digits = (whole + fraction if grouped else f"{whole}.{fraction}") if last else f"0.{fraction}"
        head, dot, tail = digits.rpartition(".")
        digits = head.replace(",", "").replace(".", "") + dot + tail if dot else digits.replace(",", "")
    if len(digits) > 24:
        return None
    return Decimal(digits)
