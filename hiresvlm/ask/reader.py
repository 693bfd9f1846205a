"""Readers: lines of the chosen pages and a question in, an answer with its evidence out.

`LightReader` is extractive: it returns what is printed and never writes a word of its own. A reader that
asks a vision-language model has the same face; the lexical stage (`answer`) stands in front of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from hiresvlm.ask import fields, lexical, names, pairs, tables, totals, values
from hiresvlm.ask.confidence import WEIGHTS, confidence
from hiresvlm.ask.fields import Field, Kind
from hiresvlm.ask.grid import Grid, PageText, Unit, build
from hiresvlm.ask.instructions import is_instruction
from hiresvlm.ask.lexical import Scored
from hiresvlm.ask.pairs import Candidate
from hiresvlm.ask.question import Asked
from hiresvlm.ask.wording import has_cjk, similarity
from hiresvlm.datatypes import Caution, Evidence, Failure, Line

FOUND = 0.35
"""Confidence from which on a value is an answer; below, the document does not say."""
LEAST = 0.55
"""Score from which a candidate is looked at."""
SHOWN = 3
"""Lines shown as evidence where nothing answers."""
LITERAL = 0.92
"""Likeness from which a label is the whole phrase of a question."""
OWNER = 0.85
"""Likeness from which a text is what the question says that the value belongs to."""
SAME = 0.08
"""Scores this close are as good as each other: the place on the page decides."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader makes of a question."""

    answer: str | None
    """As printed; None when the document does not say."""
    value: str | None = None
    """Normal form."""
    currency: str | None = None
    confidence: float | None = None
    """Chance that the answer is right; None without one: how sure an absence is was not measured."""
    evidence: tuple[Evidence, ...] = ()
    features: Mapping[str, float] = field(default_factory=dict)
    """What the confidence was computed from."""
    best_guess: str | None = None
    """What was found but not believed (`bench ask` fits the confidence on it)."""
    cautions: tuple[Caution, ...] = ()
    failures: tuple[Failure, ...] = ()
    """Why a model could not be asked."""


class Reader(Protocol):
    """Answers a question from the pages that the lexical stage chose."""

    def read(self, asked: Asked, pages: Sequence[PageText], ranked: Sequence[Scored]) -> Reading:
        """`ranked`: all lines of the document by relevance, for evidence and for choosing regions."""
        ...


def answer(
    asked: Asked, pages: Sequence[PageText], reader: Reader, top_pages: int
) -> tuple[Reading, list[int]]:
    """The reading of one question, and the numbers of the pages that were read in detail."""
    ranked = lexical.rank(asked, pages)
    chosen = lexical.best_pages(asked, pages, ranked, top_pages)
    read = [page for page in pages if page.page in chosen]
    return reader.read(asked, read, ranked), chosen


class LightReader:
    """Label-value pairs by layout, cells of tables, sums that must come out. Keeps the grids of its pages."""

    def __init__(self, table: tuple[Field, ...] = fields.FIELDS, weights: Sequence[float] = WEIGHTS) -> None:
        self._table = table
        self._weights = weights
        self._grids: dict[int, tuple[PageText, Grid]] = {}

    def read(self, asked: Asked, pages: Sequence[PageText], ranked: Sequence[Scored]) -> Reading:
        grids = [self._grid(page) for page in pages]
        found = [] if asked.everything else [c for grid in grids for c in self._candidates(asked, grid)]
        found = [c for c in found if c.score >= LEAST]
        lines = {page.page: page.lines for page in pages}
        if not found:
            return Reading(None, evidence=_best_lines(ranked, lines))
        chosen = _choose(asked, found)
        features = _features(asked, chosen, found)
        certainty = confidence(features, self._weights)
        evidence = _evidence(chosen)
        if certainty < FOUND:
            shown = _best_lines(ranked, lines) or (evidence,)
            guess = chosen.value.text
            return Reading(None, evidence=shown, features=features, best_guess=guess)
        value = chosen.value
        if value.currency == "¥":
            value = replace(value, currency=_yuan_or_yen(lines[chosen.page]))
        return Reading(
            value.text, value.normal, value.currency, round(certainty, 4), (evidence,), features, value.text
        )

    def _grid(self, page: PageText) -> Grid:
        """The grid of a page, without the lines that talk to a model."""
        known = self._grids.get(page.page)
        if known is None or known[0] is not page:
            lines = tuple(line for line in page.lines if not is_instruction(line.text))
            known = page, build(PageText(page.page, page.size, lines))
            self._grids[page.page] = known
        return known[1]

    def _candidates(self, asked: Asked, grid: Grid) -> list[Candidate]:
        found = self._literal(asked, grid) or tables.candidates(asked, grid)
        if asked.of and not found:
            found = _in_context(asked, grid, pairs.candidates(asked, grid, self._table), self._table)
        elif not asked.of:
            found = pairs.candidates(asked, grid, self._table)
            if asked.field is not None:
                if asked.field.name in _SUMMED and not found:
                    found = [c for row in _SUM_ROWS for c in tables.candidates(replace(asked, of=row), grid)]
                found += self._without_label(asked, grid, found)
                if asked.field.name == "total" and asked.side is None and asked.number is None:
                    found = totals.weigh(asked, grid, found)
        return found

    def _literal(self, asked: Asked, grid: Grid) -> list[Candidate]:
        """Values of a label that says all of "font size", which else is the size of a font."""
        if not (asked.of or asked.side or asked.number):
            return []
        kind = Kind.TEXT if asked.field is None or asked.field.kind is Kind.TEXT else asked.kind
        whole = replace(asked, targets=(asked.phrase,), of="", field=None, kind=kind)
        found = pairs.candidates(whole, grid, self._table)
        return [c for c in found if c.likeness >= LITERAL]

    def _without_label(self, asked: Asked, grid: Grid, found: Sequence[Candidate]) -> list[Candidate]:
        """Values that need no label, where there is none: the only date, the name at the head."""
        assert asked.field is not None
        if any(c.likeness >= 0.85 for c in found):
            return []
        if asked.field.name == "seller":
            return names.candidates(asked, grid)
        if asked.field.name == "date":
            return _unlabelled(asked, grid)
        if asked.field.name in ("email", "phone"):
            return _unlabelled(asked, grid)
        return []


_SUMMED = ("tax", "amount", "quantity", "debit", "credit")
_SUM_ROWS = ("合计", "total")
"""Columns that have a sum at their foot, and what its row is called."""


def _yuan_or_yen(lines: Sequence[Line]) -> str:
    """What `¥` means on a page: kana are Japanese, other Chinese characters are not."""
    text = "".join(line.text for line in lines)
    if any("\u3040" <= c <= "\u30ff" for c in text):
        return "JPY"
    return "CNY" if has_cjk(text) else "¥"


def _unlabelled(asked: Asked, grid: Grid) -> list[Candidate]:
    """Values of the kind asked for that stand alone: no label of another thing is beside them."""
    found: list[Candidate] = []
    for unit in grid.units:
        for value in values.find(asked.kind, unit.text, grid.month_first):
            label = grid.rows[unit.row][unit.column - 1] if unit.column else None
            other = fields.best(label.text)[0] if label is not None and pairs.is_label(label) else None
            if value.fit < 0.9 or (
                other is not None
                and asked.field is not None
                and other.name != asked.field.name
                and other.kind is asked.kind
            ):
                continue
            likeness = 0.82 - 0.02 * min(5, len(found))
            found.append(
                Candidate(grid.page.page, value, unit, unit.box, None, likeness, 1.0, {"no_label": 0.0})
            )
    return found


def _in_context(
    asked: Asked, grid: Grid, found: Sequence[Candidate], table: tuple[Field, ...]
) -> list[Candidate]:
    """Candidates that belong to what the question names: the nearest heading above, or the same row."""
    owner, certain = fields.best(asked.of, table)
    wordings = (asked.of, *(owner.wordings if owner is not None and certain >= 0.9 else ()))
    heads = [(u, max(similarity(w, u.text) for w in wordings)) for u in grid.units]
    named = 0.68 if len(wordings) > 1 else OWNER
    heads = [(u, likeness) for u, likeness in heads if likeness >= named]
    rivals = [
        u for u in grid.units
        if owner is not None and owner.kind is Kind.COMPANY
        and any(f.kind is Kind.COMPANY and f.name != owner.name and f.match(u.text) > 0.75 for f in table)
    ]  # fmt: skip
    result = []
    for candidate in found:
        at = candidate.label or candidate.unit
        owned = [(likeness, h) for h, likeness in heads if h is at or _heads(h, at)]
        if not owned:
            continue
        likeness, head = max(owned, key=lambda pair: pair[0] - _away(pair[1], at))
        between = [r for r in rivals if r is not head and _heads(r, at) and _away(r, at) < _away(head, at)]
        if between:
            continue
        trust = min(1.0, 0.55 + 0.45 * likeness) - min(0.15, 0.5 * _away(head, at))
        result.append(
            Candidate(
                candidate.page,
                candidate.value,
                candidate.unit,
                candidate.box,
                candidate.label,
                candidate.likeness,
                candidate.layout * trust,
                {**candidate.signs, "context": 0.0},
            )
        )
    return result


def _heads(head: Unit, unit: Unit) -> bool:
    """Whether `unit` stands under a heading, in its column, or behind it in its row."""
    if head.box is None or unit.box is None:
        return (head.row, head.column) <= (unit.row, unit.column)
    if head.row == unit.row:
        return head.column <= unit.column
    return unit.box.y0 >= head.box.y0 and unit.box.x1 > head.box.x0 - 2 * head.em


def _away(head: Unit, unit: Unit) -> float:
    """Distance of a unit from its heading, about 0 to 1 on a page; a step aside counts more than one down."""
    if head.box is None or unit.box is None:
        return 0.01 * abs(unit.row - head.row)
    down = max(0.0, unit.box.y0 - head.box.y0) / (40 * head.em)
    aside = abs(unit.box.x0 - head.box.x0) / (20 * head.em)
    return down + aside


def _choose(asked: Asked, found: Sequence[Candidate]) -> Candidate:
    """The best candidate; where several are as good, the one at the place asked for, else the first."""
    best = max(c.score for c in found)
    level = 2 * SAME if asked.side or asked.number else SAME / 4
    equals = [c for c in found if c.score >= best - level]
    if asked.side or asked.number:
        equals = _one_per_place(equals)
    equals.sort(key=lambda c: (c.page, c.unit.row, c.unit.column))
    if asked.side is not None and len(equals) > 1:
        return _at_side(asked.side, equals)
    if asked.number is not None:
        at = asked.number - 1 if asked.number > 0 else asked.number
        return equals[at] if -len(equals) <= at < len(equals) else equals[-1]
    return max(equals, key=lambda c: c.score)


def _one_per_place(found: Sequence[Candidate]) -> list[Candidate]:
    seen: dict[tuple[int, int, int], Candidate] = {}
    for c in sorted(found, key=lambda c: -c.score):
        seen.setdefault((c.page, c.unit.row, c.unit.column), c)
    return list(seen.values())


def _at_side(side: str, found: Sequence[Candidate]) -> Candidate:
    """Without boxes what comes first is left and above."""

    def place(c: Candidate) -> tuple[float, float]:
        box = c.label.box if c.label is not None else c.box
        if box is None:
            return float(c.unit.column), float(c.unit.row)
        return box.x0, box.y0

    axis = 0 if side in ("left", "right") else 1
    pick = min if side in ("left", "top") else max
    return pick(found, key=lambda c: (place(c)[axis], place(c)[1 - axis]))


def _features(asked: Asked, chosen: Candidate, found: Sequence[Candidate]) -> dict[str, float]:
    others = [c.score for c in found if c.value.normal != chosen.value.normal]
    features = {
        "likeness": chosen.likeness,
        "layout": chosen.layout,
        "fit": chosen.value.fit,
        "reading": chosen.unit.confidence,
        "margin": max(-0.5, min(0.5, chosen.score - max(others, default=0.0))),
    }
    features |= {name: 1.0 for name, weight in chosen.signs.items() if name in _FLAGS}
    if values.MISREAD.search(chosen.value.text) and asked.kind in (Kind.COMPANY, Kind.TEXT):
        features["misread"] = 1.0
    features["repeated"] = chosen.signs.get("repeated", 0.0) / totals.REPEATED
    return features


_FLAGS = ("paid_less_change", "adds_up", "wrong_label", "tax_table", "no_label", "context", "table")


def _evidence(chosen: Candidate) -> Evidence:
    """Label and value with the box around both; in a table the box is the cell's alone."""
    label = chosen.label
    text, box = chosen.unit.text, chosen.box
    if label is not None and label is not chosen.unit:
        text = f"{label.text} {chosen.value.text}"
        if box is not None and label.box is not None and "table" not in chosen.signs:
            box = box.union(label.box)
    return Evidence(chosen.page, box, text)


def _best_lines(ranked: Sequence[Scored], lines: Mapping[int, Sequence[Line]]) -> tuple[Evidence, ...]:
    """The most relevant lines of the pages read: where somebody would look first."""
    shown = [s for s in ranked if s.page in lines and s.score > 0.5][:SHOWN]
    return tuple(Evidence(s.page, lines[s.page][s.line].box, lines[s.page][s.line].text) for s in shown)
