"""Questions about forms: the answer is the value beside a label, or "none" where the label is not there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hiresvlm.nano.data.canvas import Canvas, Span
from hiresvlm.nano.data.documents import open_page
from hiresvlm.nano.data.entries import Entry, Filler, Printed
from hiresvlm.nano.data.fields import (
    BY_GROUP,
    CHINESE,
    CHINESE_BY_GROUP,
    CHINESE_QUESTIONS,
    COMMON,
    ENGLISH,
    ENGLISH_QUESTIONS,
    unclear,
)
from hiresvlm.nano.data.layouts import fill
from hiresvlm.nano.data.page import Page
from hiresvlm.nano.data.studio import Studio
from hiresvlm.nano.data.tile import Sample, Tile

_ENGLISH = {field.key: field for field in ENGLISH}
_CHINESE = {field.key: field for field in CHINESE}
ACROSS = 0.1
"""The share of questions in the other language."""
NONE = "none"
"""The answer where nothing is found."""
ABSENT = 0.15
"""The share of questions about something that is not there."""
MOST_QUESTIONS = 8
"""Asked about one form in training, one after another."""


def _question(studio: Studio, entry: Entry, chinese: bool, across: float) -> str:
    """One of many ways to ask for an entry: by a name of its field or by its label.

    `across`: the share of questions in the language that the form is not in, where it has such a field.
    """
    rng = studio.rng
    other = (_ENGLISH if chinese else _CHINESE).get(entry.field.key)
    if other and other.names and studio.chance(across):
        return _question(studio, Entry(other, rng.choice(other.names), entry.value), not chinese, 0.0)
    names, group = entry.field.names, entry.field.group
    if chinese:
        name = entry.label if not names or studio.chance(0.6) else rng.choice(names)
        return rng.choice((*CHINESE_QUESTIONS, *CHINESE_BY_GROUP.get(group, ()))).format(name)
    if not names or studio.chance(0.35):
        name = entry.label.rstrip(" #") if studio.chance(0.4) else entry.label.rstrip(" #.").lower()
    else:
        name = rng.choice(names)
    return rng.choice((*ENGLISH_QUESTIONS, *BY_GROUP.get(group, ()))).format(name)


def _missing(studio: Studio, filler: Filler, shown: set[str], text: str) -> Entry:
    """An entry that is not shown, mostly of a group that is; none that could be taken for one shown."""
    free = [
        field
        for field in (CHINESE if filler.chinese else ENGLISH)
        if field.key not in filler.used
        and not unclear(field.key) & shown
        and not any(_says(text, label) for label in (*field.labels, *field.names))
    ]
    groups = {filler.used[key].field.group for key in shown if key in filler.used}
    near = [field for field in free if field.group in groups]
    field = studio.rng.choice(near if near and studio.chance(0.8) else free or list(ENGLISH[:1]))
    return Entry(field, studio.rng.choice(field.labels), "")


def _says(text: str, label: str) -> bool:
    """Whether a text has a label, in any case: a Chinese one anywhere, an English one as whole words."""
    edge = r"(?<!\w){}(?!\w)" if label.isascii() else "{}"
    return re.search(edge.format(re.escape(label)), text, re.IGNORECASE) is not None


def _place(canvas: Canvas, span: Span) -> int:
    """Where the span begins in the transcript."""
    at = 0
    for row in canvas.rows:
        for piece in row:
            if piece is span:
                return at
            at += len(piece.text) + 1
    raise ValueError("the span is not on the canvas")


@dataclass(frozen=True)
class Asked:
    """A question, and what answers it; None where nothing does."""

    question: str
    printed: Printed | None


def ask(
    studio: Studio,
    filler: Filler,
    printed: Sequence[Printed],
    text: str,
    absent: bool,
    across: float = ACROSS,
) -> Asked:
    """A question about one of the printed entries, or about one that is missing."""
    if absent or not printed:
        missing = _missing(studio, filler, set(filler.used), text)
        return Asked(_question(studio, missing, filler.chinese, across), None)
    chosen = studio.rng.choice(printed)
    common = [item for item in printed if item.entry.field.key in COMMON]
    if common and studio.chance(0.4):
        chosen = studio.rng.choice(common)
    return Asked(_question(studio, chosen.entry, filler.chinese, across), chosen)


def form(studio: Studio, chinese: bool | None = None, absent: bool | None = None) -> Sample:
    """One tile and up to `MOST_QUESTIONS`, each in a turn of its own; what is not said is left to chance.

    Most of the work on a form is its picture, so several questions cost little more than one.
    """
    chinese = studio.chance(min(1.0, studio.chinese * 1.2)) if chinese is None else chinese
    count = studio.rng.randint(1, MOST_QUESTIONS)
    missing = [studio.chance(ABSENT) if absent is None else absent for _ in range(count)]
    first, *further = _interview(studio, _drawn(studio, chinese, 1), missing, ACROSS)
    return replace(first, further=tuple(further))


def interview(studio: Studio, chinese: bool, absent: Sequence[bool], across: float = ACROSS) -> list[Sample]:
    """Several questions about one tile and different entries; `absent` says which find nothing."""
    form = _drawn(studio, chinese, max(1, len(absent) - sum(absent)))
    return _interview(studio, form, absent, across)


@dataclass(frozen=True)
class _Form:
    """A page that is drawn, and what is printed on it."""

    page: Page
    filler: Filler
    printed: list[Printed]


def _drawn(studio: Studio, chinese: bool, least: int) -> _Form:
    """A form with at least this many entries."""
    while True:
        style = studio.style(studio.small_size(), chinese)
        page = open_page(studio, style, studio.sides(3, 16), studio.sides(9, 16))
        filler = Filler(studio, chinese)
        printed = fill(page, filler, studio.rng.randint(2, 16))
        if len(printed) >= least:
            return _Form(page, filler, printed)


def _interview(studio: Studio, form: _Form, absent: Sequence[bool], across: float) -> list[Sample]:
    """Questions about a form, no entry twice: as many as it has entries for, at least one."""
    printed, canvas = form.printed, form.page.canvas
    text = canvas.transcript()[0]
    asked: list[Asked] = []
    for missing in absent:
        if missing or printed or not asked:
            asked.append(ask(studio, form.filler, printed, text, missing, across))
            printed = [item for item in printed if item is not asked[-1].printed]
    tile = studio.finish(canvas, "form", 3)
    return [answered((tile,), 0, canvas, question) for question in asked]


def answered(tiles: tuple[Tile, ...], number: int, canvas: Canvas, asked: Asked) -> Sample:
    """The answer with the places of its characters in the tile with this number."""
    if asked.printed is None:
        return Sample(tiles, asked.question, NONE, np.full((len(NONE), 3), -1, np.float32))
    span = asked.printed.span
    start = _place(canvas, span)
    centres = tiles[number].centres[start : start + len(span.text)]
    where = np.concatenate([np.full((len(centres), 1), number, np.float32), centres], axis=1)
    label = asked.printed.label
    if label is None or not label.text:
        return Sample(tiles, asked.question, span.text, where)
    x, y = tiles[number].centres[_place(canvas, label) + len(label.text) - 1]
    return Sample(tiles, asked.question, span.text, where, (number, float(x), float(y)))
