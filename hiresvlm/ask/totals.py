"""Which of many amounts is the total: labels that only look like it, and sums that must come out.

A receipt says "total" up to ten times: of items, of tax, without tax, before and after rounding, in a
table of tax rates. What was paid less the change is the total whatever its label is, and so is what the
subtotal, the tax and the rounding add up to.
"""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal

from hiresvlm.ask import pairs, values
from hiresvlm.ask.fields import Field, Kind
from hiresvlm.ask.grid import Grid, Unit
from hiresvlm.ask.pairs import Candidate
from hiresvlm.ask.question import Asked
from hiresvlm.ask.wording import similarity

_NOT_TOTAL = re.compile(
    r"qty|quantity|\bitems?\b|item\(s\)|count|suppl(?:y|ies)|saving|discount|\bpoints?\b|exclu|excl|before|sub-?\s?total|"
    r"total\s*(?:gst|tax|vat)\b|\b(?:gst|tax|vat)\s*(?:total|amount)|taxable|\bincludes\b|\baccepted\b|tender|"
    r"不含税|税额|小计|数量|优惠|折扣|件数|积分",
    re.IGNORECASE,
)
_SURE_TOTAL = re.compile(
    r"grand|payable|\bdue\b|nett?\b|rounded|round\s?\w? total|inclu|incl\b|after adj|\bto pay\b|应付|实付|价税合计|总金额|应收|总额",
    re.IGNORECASE,
)
_TAX_TABLE = re.compile(
    r"(?:gst|tax|vat)\s*(?:summary|code|rate|analysis)|summary|tax\s*\(?(?:rm|\$)|税率", re.IGNORECASE
)
_TAX_ROW = re.compile(r"[0-9]\s?%|^\W*(?:SR|ZRL?|S|Z)\b", re.IGNORECASE)
_PAID = (
    *("cash", "cash tendered", "payment", "paid", "tendered", "amount tendered", "credit", "credit card"),
    *("debit card", "master", "mastercard", "visa", "现金", "实收", "刷卡", "支付"),
)
_CHANGE = ("change", "change due", "change amount", "找零", "找回")
_SUB = ("subtotal", "sub total", "total exclusive tax", "小计", "不含税金额", "商品总额")
_TAX = ("tax", "total tax", "tax amount", "tax payable", "税额", "税金")
_ROUND = ("rounding", "rounding adjustment", "rounding adj", "cash rounding")

UNLABELLED = 0.45
"""Likeness of an amount that only the sums point to; what speaks for it comes on top."""
PAID_LESS_CHANGE = 0.3
ADDS_UP = 0.12
REPEATED = 0.03
WRONG_LABEL = -0.3
SURE_LABEL = 0.06
IN_TAX_TABLE = -0.3
LATER = 0.02
NO_PRICE = -0.4


def weigh(asked: Asked, grid: Grid, found: list[Candidate]) -> list[Candidate]:
    """Candidates for a total with what speaks for and against each, and those that only sums know."""
    paid, change = _amounts(grid, _PAID), _amounts(grid, _CHANGE)
    left = {p - c for p in paid for c in change if p > c >= 0} - {Decimal(0)}
    parts = _sums(grid)
    printed = _printed(grid)
    found = [*found, *_rounded(grid, found, printed)]
    known = {Decimal(c.value.normal) for c in found}
    for amount in left - known:
        places = printed.get(amount, [])
        if places and (Decimal(0) in change or amount not in paid):
            unit, value = places[-1]
            signs = {"no_label": 0.0}
            found.append(Candidate(grid.page.page, value, unit, unit.box, None, UNLABELLED, 1.0, signs))
    tax_rows = _tax_rows(grid)
    weighed = []
    for candidate in found:
        amount = Decimal(candidate.value.normal)
        label = candidate.label.text if candidate.label is not None else candidate.unit.text
        signs = {"repeated": REPEATED * min(3, len(printed.get(amount, [])) - 1)}
        if amount in left:
            signs["paid_less_change"] = PAID_LESS_CHANGE
        if amount in parts:
            signs["adds_up"] = ADDS_UP
        if _NOT_TOTAL.search(label):
            signs["wrong_label"] = WRONG_LABEL
        elif _SURE_TOTAL.search(label):
            signs["sure_label"] = SURE_LABEL
        if candidate.unit.row in tax_rows:
            signs["tax_table"] = IN_TAX_TABLE
        if amount <= 0 or not candidate.value.fit >= 0.75:
            signs["no_price"] = NO_PRICE
        weighed.append(replace(candidate, signs={**candidate.signs, **signs}))
    weighed.sort(key=lambda c: (c.unit.row, c.unit.column))
    return [c.with_sign("later", LATER * n / max(1, len(weighed) - 1)) for n, c in enumerate(weighed)]


def _amounts(grid: Grid, wordings: tuple[str, ...]) -> set[Decimal]:
    """Amounts beside labels with one of the wordings."""
    asked = Asked("", wordings[0], wordings, Field("", Kind.AMOUNT, wordings), Kind.AMOUNT)
    found = set()
    for unit in grid.units:
        likeness = max(similarity(w, unit.text) for w in wordings)
        if likeness >= 0.8:
            got = [c for c in pairs.values_of(asked, grid, unit, likeness) if c.layout >= pairs.FAR_BESIDE]
        else:
            got = [] if unit.marked else pairs.inside(asked, grid, unit)
        found |= {Decimal(c.value.normal) for c in got if c.value.fit >= 0.75}
    return found


def _rounded(grid: Grid, found: list[Candidate], printed: _Printed) -> list[Candidate]:
    """What a total comes to after rounding, where that is printed too: it is what was asked to be paid."""
    known = {Decimal(c.value.normal) for c in found}
    result = []
    for rounding in _amounts(grid, _ROUND):
        for total in known:
            places = printed.get(total + rounding, [])
            if not 0 < abs(rounding) < 1 or total + rounding in known or not places:
                continue
            best = max((c.likeness for c in found if Decimal(c.value.normal) == total), default=0.0)
            unit, value = places[0]
            signs = {"adds_up": ADDS_UP, "no_label": 0.0}
            result.append(Candidate(grid.page.page, value, unit, unit.box, None, best, 1.0, signs))
    return result


def _sums(grid: Grid) -> set[Decimal]:
    """What a subtotal with tax and rounding, or without one of them, comes to."""
    subs, taxes, rounds = (_amounts(grid, w) for w in (_SUB, _TAX, _ROUND))
    return {s + t + r for s in subs for t in taxes for r in rounds | {Decimal(0)}} | {
        s + r for s in subs for r in rounds if r
    }


_Printed = dict[Decimal, list[tuple[Unit, values.Value]]]


def _printed(grid: Grid) -> _Printed:
    found: _Printed = {}
    for unit in grid.units:
        for value in _money(unit.text):
            found.setdefault(Decimal(value.normal), []).append((unit, value))
    return found


def _tax_rows(grid: Grid) -> set[int]:
    """Rows of a table of tax rates: from its heading down to where no rate or amount follows any more."""
    rows: set[int] = set()
    for row in grid.rows:
        text = " ".join(unit.text for unit in row)
        if not _TAX_TABLE.search(text) or _money(text):
            continue
        for below in grid.rows[row[0].row + 1 : row[0].row + 6]:
            text = " ".join(unit.text for unit in below)
            money = _money(text)
            if not money or (not _TAX_ROW.search(text) and len(money) < 2):
                break
            rows.add(below[0].row)
    return rows


def _money(text: str) -> list[values.Value]:
    return [value for value in values.find(Kind.AMOUNT, text) if value.fit == 1.0]
