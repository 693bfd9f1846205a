"""Questions about forms: the answer is the value beside a label, or "none" where the label is not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from hiresvlm.nano.data import chinese as zh
from hiresvlm.nano.data.canvas import Canvas, Span
from hiresvlm.nano.data.degrade import degrade
from hiresvlm.nano.data.documents import heading, open_page, receipt_items, separator, short_line
from hiresvlm.nano.data.fields import (
    BY_GROUP,
    CHINESE,
    CHINESE_QUESTIONS,
    ENGLISH,
    ENGLISH_QUESTIONS,
    Field,
    unclear,
)
from hiresvlm.nano.data.lines import prose
from hiresvlm.nano.data.page import Cell, Page
from hiresvlm.nano.data.studio import PATCH, Studio, Style
from hiresvlm.nano.data.tables import columns, table
from hiresvlm.nano.data.tile import Sample, Tile

NONE = "none"
"""The answer where nothing is found."""
ABSENT = 0.15
"""The share of questions about something that is not there."""


@dataclass(frozen=True)
class Entry:
    """A field with the label and the value that one form shows."""

    field: Field
    label: str
    value: str
    verbatim: bool = False
    """Whether it can only be asked by its label."""


@dataclass(frozen=True)
class Printed:
    """An entry and the span of its value."""

    entry: Entry
    span: Span


class Filler:
    """Entries for one form: each field at most once, amounts in one format, some values repeated."""

    def __init__(self, studio: Studio, chinese: bool) -> None:
        self.studio, self.chinese = studio, chinese
        rng = studio.rng
        self.fields = list(CHINESE if chinese else ENGLISH)
        rng.shuffle(self.fields)
        if studio.chance(0.35):
            self.fields.sort(key=lambda field: field.group != "money" and rng.random() < 0.7)
        self.used: dict[str, Entry] = {}
        sign = rng.choice(
            ("¥", "¥", "", "￥", "元")
            if chinese
            else ("$", "$", "", "", "€", "£", "RM ", "RM", "USD ", " EUR")
        )
        comma, top = studio.chance(0.6), rng.choice((4, 5, 6, 7))
        self._money: Callable[[], str] = lambda: self._amount(sign, comma, rng.randrange(50, 10**top) / 100)
        date_form = rng.randrange(12)
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
        return Entry(Field(label.lower(), "odd", (label,), (label.lower(),)), label, value, verbatim=True)

    def entry(self) -> Entry | None:
        """The next entry; None when all fields are used."""
        if not self.chinese and self.studio.chance(0.22):
            entry = self._odd()
            if entry.field.key in self.used:
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


Layout = Callable[[Page, Sequence[Entry]], list[Printed]]


def _cleaned(page: Page, entry: Entry) -> tuple[str, str]:
    clean, face = page.studio.clean, page.style.face
    return clean(entry.label, face), clean(entry.value, face)


def colon(page: Page, entries: Sequence[Entry]) -> list[Printed]:
    """`Label: value`, one a row, values right behind their labels."""
    rng = page.studio.rng
    mark = rng.choice((":", ":", " :", "", "：" if page.style.face in page.studio.fonts.han else ":"))
    bold = rng.choice((page.style.face, page.style.bold))
    gap = rng.uniform(0.25, 0.8) * page.style.size
    printed = []
    for entry in entries:
        label, value = _cleaned(page, entry)
        x = page.left + page.measure(label + mark, bold) + gap
        if value and x + page.measure(value) <= page.right:
            spans = page.row([Cell(label + mark, page.left, face=bold), Cell(value, x)])
            if not spans:
                break
            printed.append(Printed(entry, spans[-1]))
    return printed


def aligned(page: Page, entries: Sequence[Entry]) -> list[Printed]:
    """Labels in one column and values in another, at its left or at the right margin, perhaps in a grid."""
    studio, style = page.studio, page.style
    rng = studio.rng
    mark = rng.choice(("", ":", ""))
    pairs = [(entry, *_cleaned(page, entry)) for entry in entries]
    bold = rng.choice((style.face, style.bold))
    column = (
        max((page.measure(label + mark, bold) for _, label, _ in pairs), default=0)
        + rng.uniform(0.6, 3) * style.size
    )
    right = studio.chance(0.5)
    ruled = style.between(0.35) if studio.chance(0.4) else None
    printed, top = [], page.y
    for entry, label, value in pairs:
        if not value or column + page.measure(value) > page.width:
            continue
        cell = Cell(value, page.right - 2, "r") if right else Cell(value, page.left + column)
        spans = page.row([Cell(label + mark, page.left + 2, face=bold), cell])
        if not spans:
            break
        printed.append(Printed(entry, spans[-1]))
        if ruled:
            page.y += 0.1 * style.size
            page.canvas.rule(page.left, page.y, page.right, page.y, ruled)
            page.y += 0.15 * style.size
    if ruled and printed and not right and studio.chance(0.5):
        for x in (page.left, page.left + column - 0.3 * style.size, page.right):
            page.canvas.rule(x, top, x, page.y - 0.15 * style.size, ruled)
    return printed


def below(page: Page, entries: Sequence[Entry]) -> list[Printed]:
    """Values under their labels, in one to three columns."""
    studio, style = page.studio, page.style
    rng = studio.rng
    count = rng.choice((1, 2, 2, 3))
    width = page.width / count
    label_em = style.size * rng.choice((1.0, 0.85, 0.75))
    muted = style.between(rng.choice((1.0, 0.7)))
    bold = rng.choice((style.face, style.bold))
    printed = []
    wide = 0.95 * width
    fitting = []
    for entry in entries:
        label, value = _cleaned(page, entry)
        if value and page.measure(value, bold) < wide and page.measure(label, None, label_em) < wide:
            fitting.append((entry, label, value))
    for start in range(0, len(fitting), count):
        group = fitting[start : start + count]
        if page.y + 3 * style.size > page.bottom:
            break
        xs = [page.left + number * width for number in range(len(group))]
        page.row([Cell(label, x, ink=muted) for (_, label, _), x in zip(group, xs, strict=True)], label_em)
        spans = page.row([Cell(value, x, face=bold) for (_, _, value), x in zip(group, xs, strict=True)])
        printed += [Printed(item[0], span) for item, span in zip(group, spans, strict=False)]
        page.y += rng.uniform(0.2, 0.6) * style.size
    return printed


def paired(page: Page, entries: Sequence[Entry]) -> list[Printed]:
    """Two labels with their values in each row."""
    mark = page.studio.rng.choice((":", ":", ""))
    middle = page.left + page.width * page.studio.rng.uniform(0.45, 0.58)
    gap = 0.4 * page.style.size
    printed: list[Printed] = []
    waiting: list[tuple[Entry, list[Cell]]] = []
    for entry in entries:
        label, value = _cleaned(page, entry)
        x, limit = (middle, page.right) if waiting else (page.left, middle - page.style.size)
        value_x = x + page.measure(label + mark) + gap
        if not value or value_x + page.measure(value) > limit:
            continue
        waiting.append((entry, [Cell(label + mark, x), Cell(value, value_x)]))
        if len(waiting) == 2:
            spans = page.row([cell for _, cells in waiting for cell in cells])
            printed += [Printed(item[0], span) for item, span in zip(waiting, spans[1::2], strict=False)]
            waiting = []
    if waiting and (spans := page.row(waiting[0][1])):
        printed.append(Printed(waiting[0][0], spans[-1]))
    return printed


LAYOUTS: tuple[Layout, ...] = (colon, colon, aligned, aligned, aligned, below, paired)


def _filling(page: Page, chinese: bool) -> None:
    """Something between the entries that is no entry."""
    studio, rng = page.studio, page.studio.rng
    kind = rng.random()
    if kind < 0.25:
        heading(page, rng.choice(zh.TITLES) if chinese else studio.english.heading(), 1.5)
    elif kind < 0.5:
        table(page, columns(studio, chinese, rng.randint(1, 4)), page.style.size)
        page.y += 0.3 * page.style.size
    elif kind < 0.65:
        receipt_items(page, chinese)
    elif kind < 0.8:
        separator(page)
    elif chinese:
        short_line(page, rng.choice((rng.choice(zh.PHRASES), studio.mandarin.company())))
    elif kind < 0.9:
        short_line(
            page, rng.choice((studio.english.company, studio.english.address, studio.english.sentence))()
        )
    else:
        prose(page, False)


def _draw(page: Page, filler: Filler, wanted: int) -> list[Printed]:
    """Up to `wanted` entries in one or two layouts, with other things before and between."""
    studio = page.studio
    printed: list[Printed] = []
    if studio.chance(0.4):
        _filling(page, filler.chinese)
    while wanted > 0 and not page.full:
        part = min(wanted, studio.rng.randint(1, 8))
        entries = [entry for _ in range(part) if (entry := filler.entry())]
        if not entries:
            break
        printed += studio.rng.choice(LAYOUTS)(page, entries)
        wanted -= part
        if studio.chance(0.3):
            page.y += studio.rng.uniform(0.2, 1.2) * page.style.size
            _filling(page, filler.chinese)
    return printed


def _question(studio: Studio, entry: Entry, chinese: bool) -> str:
    """One of many ways to ask for an entry: by a name of its field or by its label."""
    rng = studio.rng
    if chinese:
        name = entry.label if studio.chance(0.6) else rng.choice(entry.field.names)
        return rng.choice(CHINESE_QUESTIONS).format(name)
    name = rng.choice(entry.field.names)
    if entry.verbatim or studio.chance(0.35):
        name = entry.label.rstrip(" #") if studio.chance(0.4) else entry.label.rstrip(" #.").lower()
    forms = ENGLISH_QUESTIONS + list(BY_GROUP.get(entry.field.group, ()))
    return rng.choice(forms).format(name)


def _missing(studio: Studio, filler: Filler, shown: set[str], text: str) -> Entry:
    """An entry that is not shown, if possible of a group that is; never one that could be meant by one shown."""
    lower = text.lower()
    free = [
        field
        for field in (CHINESE if filler.chinese else ENGLISH)
        if field.key not in filler.used
        and not unclear(field.key) & shown
        and not any(label.lower() in lower for label in field.labels if len(label) > 2 or filler.chinese)
    ]
    groups = {filler.used[key].field.group for key in shown if key in filler.used}
    near = [field for field in free if field.group in groups]
    field = studio.rng.choice(near if near and studio.chance(0.8) else free or list(ENGLISH[:1]))
    return Entry(field, studio.rng.choice(field.labels), "")


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
class _Asked:
    question: str
    printed: Printed | None


def _ask(studio: Studio, filler: Filler, printed: Sequence[Printed], text: str, absent: bool) -> _Asked:
    """A question about one of the printed entries, or about one that is missing."""
    if absent or not printed:
        missing = _missing(studio, filler, {item.entry.field.key for item in printed}, text)
        return _Asked(_question(studio, missing, filler.chinese), None)
    chosen = studio.rng.choice(printed)
    main = [
        item
        for item in printed
        if item.entry.field.key in ("total", "invoice_no", "date", "company", "amount")
    ]
    if main and studio.chance(0.3):
        chosen = studio.rng.choice(main)
    return _Asked(_question(studio, chosen.entry, filler.chinese), chosen)


def form(studio: Studio, chinese: bool | None = None, absent: bool | None = None) -> Sample:
    """One tile and one question; in Chinese or about something absent by chance, where nothing is said."""
    chinese = studio.chance(min(1.0, studio.chinese * 1.2)) if chinese is None else chinese
    absent = studio.chance(ABSENT) if absent is None else absent
    while True:
        style = studio.style(studio.small_size(), chinese)
        page = open_page(studio, style, studio.sides(3, 16), studio.sides(9, 16))
        filler = Filler(studio, chinese)
        printed = _draw(page, filler, studio.rng.randint(2, 16))
        text = page.canvas.transcript()[0]
        if not printed:
            continue
        asked = _ask(studio, filler, printed, text, absent)
        tile = studio.finish(page.canvas, "form", 3)
        return _sample((tile,), 0, page.canvas, asked)


def _sample(tiles: tuple[Tile, ...], number: int, canvas: Canvas, asked: _Asked) -> Sample:
    """The answer with the places of its characters in the tile with this number."""
    if asked.printed is None:
        return Sample(tiles, asked.question, NONE, np.full((len(NONE), 3), -1, np.float32))
    span = asked.printed.span
    start = _place(canvas, span)
    centres = tiles[number].centres[start : start + len(span.text)]
    where = np.concatenate([np.full((len(centres), 1), number, np.float32), centres], axis=1)
    return Sample(tiles, asked.question, span.text, where)


GRIDS = ((2, 1), (2, 1), (3, 1), (1, 2), (2, 2), (4, 1))
"""Rows and columns of tiles under one thumbnail."""


def tiles(studio: Studio) -> Sample:
    """A thumbnail and two to four tiles of one page in row order, with a question, or to be transcribed."""
    rng = studio.rng
    rows, across = rng.choice(GRIDS)
    chinese = studio.chance(studio.chinese)
    style = studio.style(studio.small_size(), chinese)
    height, width = studio.sides(4, 12), studio.sides(9, 14)
    filler = Filler(studio, chinese)
    canvases, printed = [], []
    for number in range(rows * across):
        page = open_page(studio, style, height, width)
        if number == 0 or studio.chance(0.7):
            printed += [(number, item) for item in _draw(page, filler, rng.randint(1, 6))]
        else:
            _filling(page, chinese)
        canvases.append(page.canvas)
    made = _pieces(studio, style, canvases, rows, across)
    if studio.chance(0.25):
        spoken = [(number, tile) for number, tile in enumerate(made[1:], 1) if tile.text]
        return _joined(made, spoken)
    text = "\n".join(tile.text for tile in made[1:])
    asked = _ask(studio, filler, [item for _, item in printed], text, studio.chance(ABSENT))
    number = next((n for n, item in printed if item is asked.printed), 0)
    return _sample(made, number + 1, canvases[number], asked)


def _joined(made: tuple[Tile, ...], spoken: Sequence[tuple[int, Tile]]) -> Sample:
    """The transcription of several tiles, one after another."""
    places: list[NDArray[np.float32]] = []
    for position, (number, tile) in enumerate(spoken):
        if position:
            places.append(np.array([[*places[-1][-1]]], np.float32))
        places.append(
            np.concatenate([np.full((len(tile.text), 1), number, np.float32), tile.centres], axis=1)
        )
    where = np.concatenate(places) if places else np.zeros((0, 3), np.float32)
    return Sample(made, None, "\n".join(tile.text for _, tile in spoken), where)


def _pieces(
    studio: Studio, style: Style, canvases: Sequence[Canvas], rows: int, across: int
) -> tuple[Tile, ...]:
    """The thumbnail of the whole page and its tiles, degraded as one picture."""
    pictures = [canvas.pixels() for canvas in canvases]
    bands = [np.concatenate(pictures[row * across : (row + 1) * across], axis=1) for row in range(rows)]
    whole = np.concatenate(bands, axis=0)
    if studio.chance(studio.dirty):
        whole = degrade(whole, studio.rng, studio.strength)
    height, width = canvases[0].height, canvases[0].width
    made: list[Tile] = []
    texts, points = [], []
    for number, canvas in enumerate(canvases):
        top, left = number // across * height, number % across * width
        text, centres = canvas.transcript()
        piece = np.ascontiguousarray(whole[top : top + height, left : left + width])
        made.append(Tile(piece, text, centres, "form"))
        if text:
            texts.append(text)
            points.append(centres + np.array([left, top], np.float32))
    ratio = min(1.0, studio.rng.choice((224, 336, 448)) / max(whole.shape[:2]))
    small_height, small_width = (max(1, round(side * ratio / PATCH)) * PATCH for side in whole.shape[:2])
    small = cv2.resize(whole, (small_width, small_height), interpolation=cv2.INTER_AREA).astype(np.uint8)
    factor = np.array([small_width / whole.shape[1], small_height / whole.shape[0]], np.float32)
    for number in range(len(points) - 1):
        points[number] = np.concatenate([points[number], points[number][-1:]])
    places = np.concatenate(points) * factor if points else np.zeros((0, 2), np.float32)
    return (Tile(small, "\n".join(texts), places.astype(np.float32), "thumbnail"), *made)
