"""Whose document it is, where no label says so: the name that heads the page."""

from __future__ import annotations

import re

from hiresvlm.ask import fields, values
from hiresvlm.ask.fields import Kind
from hiresvlm.ask.grid import MAX_LINE, Grid
from hiresvlm.ask.pairs import Candidate
from hiresvlm.ask.question import Asked

FIRST_LINE = 0.62
"""Likeness of the first line of a bill that has no looks of a firm."""
HEAD_ROWS = 8
"""Rows from the top in which the name of a firm is looked for."""

_NO_NAME = re.compile(
    r"\breg(?:istration|\.)?\s*no\b|\b(?:invoice|receipt|bill|statement|order|form|ticket|ledger|welcome|copy|original|duplicate|page|date|tel|fax|phone|"
    r"formerly|licensee|jalan|jln|lot|no|floor|road|street|avenue|taman|branch)\b|[发發]票|收据|小票|单$|表$|清单|账单|登记|申请|设置|记录|地址|电话",
    re.IGNORECASE,
)
_FORMERLY = re.compile(r"formerly|known as|licensee|trading as|t/a", re.IGNORECASE)


def candidates(asked: Asked, grid: Grid) -> list[Candidate]:
    """Names at the head of the page, the first that looks like a firm's being the likeliest."""
    found = []
    bill = _is_bill(grid)
    seen = suffixed = 0
    before = ""
    for row in grid.rows[:HEAD_ROWS]:
        unit = row[0]
        text = grid.page.lines[unit.line].text[:MAX_LINE]
        if len({other.line for other in row}) > 2:
            before = text
            continue
        if fields.best(unit.text)[1] >= 0.85 and len(text) > len(unit.text):
            before = text  # "Customer: Oak Inc." says itself whose name that is
            continue
        got = values.find(Kind.COMPANY, text)
        digits = sum(c.isdigit() for c in values.company(text))
        letters = sum(c.isalpha() for c in values.company(text))
        if not got or digits > letters / 2 or letters < 2:
            before = text
            continue
        value = got[0]
        if values.is_company(value.text) and not _FORMERLY.search(before) and not _FORMERLY.search(text):
            likeness = 0.86 - 0.04 * suffixed
            suffixed += 1
        elif _NO_NAME.search(text) or "," in text:
            before = text
            continue
        elif bill and not seen:
            likeness = FIRST_LINE  # no firm by its looks, but what else heads a bill?
        else:
            continue
        if _NO_NAME.search(value.text) and likeness > 0.8:
            if not values.is_company(_NO_NAME.sub("", value.text)):
                continue
            likeness -= 0.1
        seen += 1
        before = text
        box = grid.page.lines[unit.line].box
        found.append(Candidate(grid.page.page, value, unit, box, None, likeness, 1.0, {"no_label": 0.0}))
    return found


def _is_bill(grid: Grid) -> bool:
    """Whether a page has a total or calls itself a bill: only then does somebody's name head it."""
    total = next(f for f in fields.FIELDS if f.name == "total")
    return any(_BILL.search(unit.text) or total.match(unit.text) >= 0.8 for unit in grid.units)


_BILL = re.compile(r"\b(?:invoice|receipt|cash bill|bill no)|[发發]票|收据|小票", re.IGNORECASE)
