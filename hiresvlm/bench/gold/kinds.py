"""The kinds of pages. Each fills a sheet; `scan` and `receipt` are then worn as paper is."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from hiresvlm.bench.gold.sheet import INK, Colour, Sheet
from hiresvlm.bench.gold.words import Words

Maker = Callable[[random.Random, int], Sheet]
"""Page number (from 0) and a random generator of its own -> the page."""

TALL_HEIGHTS: Final = (3840, 4200, 4600, 9000)
"""Heights of tall screenshots in pixels, in turn."""


@dataclass(frozen=True, slots=True)
class Kind:
    """`wear`: rotation up to so many degrees, blur (radius in pixels), noise (sigma in gray levels)."""

    make: Maker
    pages: int
    """Pages of a default benchmark: at least 5,000 gold characters together."""
    wear: tuple[float, float, float] | None = None


@dataclass(frozen=True, slots=True)
class _Theme:
    page: Colour
    card: Colour
    ink: Colour
    dim: Colour
    accent: Colour
    mine: Colour


_LIGHT = _Theme(
    (242, 243, 246), (255, 255, 255), (28, 28, 32), (96, 100, 108), (20, 92, 190), (190, 236, 170)
)
_DARK = _Theme((18, 19, 22), (38, 40, 46), (230, 230, 232), (160, 164, 172), (120, 178, 255), (30, 92, 62))


def tall(rng: random.Random, number: int) -> Sheet:
    """A phone screenshot 1080 pixels wide, of cards, lists and chat."""
    return _phone(rng, TALL_HEIGHTS[number % len(TALL_HEIGHTS)], _LIGHT)


def dark(rng: random.Random, number: int) -> Sheet:
    """The same in a dark theme."""
    return _phone(rng, 3000 + 300 * (number % 3), _DARK)


def _phone(rng: random.Random, height: int, theme: _Theme) -> Sheet:
    words, size = Words(rng), rng.choice((28, 30, 32))
    pitch, sheet = round(size * 1.4), Sheet.new((1080, height), theme.page)
    sheet.row(46, [(48, words.clock(), "ls"), (1032, f"5G {words.number(2)}%", "rs")], 28, theme.ink)
    y, turn, end = 110, rng.randrange(5), height - 40
    prose = (words.zh_prose, words.en_prose, words.mixed_prose)
    while True:
        turn += 1
        if turn % 5 == 4:
            count = rng.randrange(3, 7)
            step = pitch + 16
            if y + count * step + 24 > end:
                break
            sheet.draw.rounded_rectangle((24, y, 1056, y + count * step + 12), 18, fill=theme.card)
            for k in range(count):
                base = y + k * step + size + 14
                label, value = _field(words, rng)
                sheet.row(base, [(48, label, "ls"), (1032, value, "rs")], size, theme.ink)
                if k:
                    sheet.draw.line((48, base - size - 8, 1032, base - size - 8), fill=theme.page, width=2)
            y += count * step + 40
            continue
        chat = turn % 5 in {1, 3}
        # The paragraph shrinks until it fits, so that pages are full to their end.
        length = rng.randrange(40, 100) if chat else rng.randrange(120, 330)
        write = rng.choice(prose)
        x0, x1 = (24, 1056) if not chat else (96, 1000) if turn % 2 else (30, 940)
        lines = sheet.wrap(write(length), x1 - x0 - 48, size)
        head = 0 if chat else round(2.0 * size)
        if y + head + len(lines) * pitch + 60 > end:
            break
        if chat:
            name = words.zh_name() if write is not words.en_prose else words.en_name()
            sheet.line(x0, y + 22, f"{name} {words.clock()}", 24, theme.dim)
            y += 34
        fill = theme.mine if chat and turn % 2 else theme.card
        sheet.draw.rounded_rectangle((x0, y, x1, y + head + len(lines) * pitch + 24), 18, fill=fill)
        if head:
            title = words.en_title() if write is words.en_prose else words.zh_title()
            cells = [(x0 + 24, title, "ls"), (x1 - 24, words.clock(), "rs")]
            sheet.row(y + 50, cells, size + 4, theme.accent)
        for k, line in enumerate(lines):
            sheet.line(x0 + 24, y + head + 14 + k * pitch + size - 4, line, size, theme.ink)
        y += head + len(lines) * pitch + 24 + rng.choice((18, 24, 60))
        if rng.random() < 0.12 and y < end - 500:  # a picture without text
            shade = tuple(int(c * 0.8) + 20 for c in theme.accent)
            sheet.draw.rounded_rectangle((24, y, 1056, y + 260), 18, fill=(shade[0], shade[1], shade[2]))
            y += 284
    return sheet


def _field(words: Words, rng: random.Random) -> tuple[str, str]:
    zh = rng.random() < 0.5
    label = words.zh_item() if zh else words.en_item()
    values = (words.amount, words.code, words.date, words.city if zh else words.place)
    return label, rng.choice(values)()


def ledger(rng: random.Random, number: int) -> Sheet:
    """A wide table, 4200 x 900: English and Chinese columns, ruled lines on every other page."""
    words, size = Words(rng), 24
    columns: list[tuple[str, int, str, Callable[[], str]]] = [
        ("No.", 110, "ls", lambda: words.number(4)),
        ("Date", 210, "ls", words.date),
        ("Voucher", 210, "ls", words.code),
        ("Description", 420, "ls", words.en_item),
        ("摘要", 300, "ls", words.zh_item),
        ("Account", 260, "ls", lambda: words.number(8)),
        ("城市", 160, "ls", words.city),
        ("Partner", 300, "ls", words.en_name),
        ("经办人", 200, "ls", words.zh_name),
        ("Debit", 260, "rs", words.amount),
        ("Credit", 260, "rs", words.amount),
        ("Tax", 220, "rs", lambda: words.amount(999)),
        ("数量", 180, "rs", lambda: words.number(3) + words.unit()),
        ("Balance", 300, "rs", lambda: words.amount(999_999)),
        ("Checked", 260, "ls", words.clock),
        ("Branch", 260, "ls", words.place),
    ]
    sheet = Sheet.new((4200, 900))
    sheet.line(60, 62, f"{words.en_title()} {words.date()}", 34)
    top, pitch = 100, 44
    rows = (900 - top - 40) // pitch

    def cells(texts: list[str]) -> list[tuple[float, str, str]]:
        x, found = 60.0, []
        for text, (_, width, anchor, _make) in zip(texts, columns, strict=True):
            found.append((x if anchor == "ls" else x + width - 50, text, anchor))
            x += width
        return found

    for k in range(rows):
        texts = [name for name, *_ in columns] if k == 0 else [make() for *_, make in columns]
        sheet.row(top + k * pitch + 26, cells(texts), size, table=True)
        if number % 2 == 0:
            sheet.draw.line((50, top + k * pitch, 4150, top + k * pitch), fill=(150, 150, 150), width=1)
    if number % 2 == 0:
        x = 40
        for _, width, _, _ in columns:
            sheet.draw.line((x, top, x, top + rows * pitch), fill=(150, 150, 150), width=1)
            x += width
    return sheet


def dense(rng: random.Random, number: int) -> Sheet:
    """A4 at 200 dpi in small print: 6 to 7 pt, so capitals of 12 to 14 pixels; both languages."""
    words, sheet, y = Words(rng), Sheet.new((1654, 2339), latin="tiro"), 130.0
    size = round(rng.choice((6.0, 6.5, 7.0)) / 72 * 200)
    pitch = round(size * 1.3)
    blocks = 0
    while y < 560:
        zh = (blocks + number) % 3 == 2
        title = f"{blocks + 1}. {words.en_title()}"
        sheet.line(120, y + size, words.zh_title() if zh else title, size + 6)
        y += 2 * pitch
        text = words.zh_prose(400) if zh else words.en_prose(900)
        for line in sheet.wrap(text, 1414, size):
            sheet.line(120, y + size, line, size)
            y += pitch
        y += pitch
        blocks += 1
    return sheet


def receipt(rng: random.Random, number: int) -> Sheet:
    """A till receipt about 600 pixels wide; every other one is Chinese."""
    words, zh, size = Words(rng), number % 2 == 1, 24
    count = rng.randrange(14, 22)
    sheet = Sheet.new((620, 560 + 36 * 2 * count), (250, 250, 246), latin="helv" if zh else "cour")
    middle, y = 310, 70
    title = words.zh_title()[:-4] + "商店" if zh else f"{words.place().upper()} STORE"
    sheet.row(y, [(middle, title, "ms")], 34)
    heads = (
        [words.city() + "新街" + words.number(3) + "号", "电话 " + words.number(8), words.date()]
        if zh
        else [f"{words.number(3)} {words.place()} Road", f"TEL {words.number(8)}", words.date()]
    )
    for text in heads:
        y += 38
        sheet.row(y, [(middle, text, "ms")], size)
    y += 50
    sheet.draw.line((40, y - 30, 580, y - 30), fill=INK, width=2)
    for _ in range(count):
        name = words.zh_item() + words.zh_item() if zh else words.en_item()
        sheet.row(y, [(40, name, "ls"), (580, words.amount(300), "rs")], size, table=True)
        y += 36
        detail = f"{words.number(1)} pcs {words.amount(90)}"
        sheet.row(y, [(70, detail, "ls"), (360, words.code(), "ls")], size - 2)
        y += 36
    y += 20
    sheet.draw.line((40, y - 34, 580, y - 34), fill=INK, width=2)
    for label in ("小计", "税额", "合计") if zh else ("Subtotal", "Tax", "TOTAL"):
        sheet.row(y + 6, [(40, label, "ls"), (580, words.amount(900), "rs")], size + 2, table=True)
        y += 40
    y += 30
    closing = "谢谢惠顾，欢迎再来" if zh else "Thank you for your visit"
    sheet.row(y, [(middle, closing, "ms")], size)
    return sheet


def columns(rng: random.Random, number: int) -> Sheet:
    """A4 at 150 dpi, two columns of prose; every third page is Chinese."""
    words, zh, size = Words(rng), number % 3 == 1, 21
    sheet, pitch = Sheet.new((1240, 1754), latin="tiro"), round(21 * 1.36)
    sheet.row(140, [(620, words.zh_title() if zh else words.en_title(), "ms")], 40)
    for x in (100, 650):
        y = 230.0
        while y < 860:
            text = words.zh_prose(170) if zh else words.en_prose(420)
            for line in sheet.wrap(text, 490, size):
                if y < 930:
                    sheet.line(x, y, line, size)
                    y += pitch
            y += pitch / 2
    return sheet


def scan(rng: random.Random, number: int) -> Sheet:
    """A letter on A4 scanned at 200 dpi: prose of 10 pt in both languages and a short table."""
    words, size = Words(rng), 28
    sheet, pitch = Sheet.new((1654, 2339), (250, 249, 244), latin="tiro"), 40
    sheet.row(190, [(180, words.en_title(), "ls"), (1474, words.date(), "rs")], 38)
    y = 270.0
    for k in range(4):
        text = words.zh_prose(150) if (k + number) % 2 else words.en_prose(430)
        for line in sheet.wrap(text, 1290, size):
            sheet.line(180, y, line, size)
            y += pitch
        y += pitch / 2
    y += 30
    for k in range(12):
        cells = [(180, words.code(), "ls"), (460, words.en_item(), "ls"), (900, words.zh_item(), "ls")]
        sheet.row(y, [*cells, (1474, words.amount(), "rs")], size, table=True)
        if k:
            sheet.draw.line((170, y - 36, 1484, y - 36), fill=(120, 120, 120), width=2)
        y += 50
    text = words.zh_prose(120) if number % 2 else words.en_prose(320)
    for line in sheet.wrap(text, 1290, size):
        sheet.line(180, y + 30, line, size)
        y += pitch
    return sheet


KINDS: Final[dict[str, Kind]] = {
    "tall": Kind(tall, pages=3),
    "ledger": Kind(ledger, pages=3),
    "dense": Kind(dense, pages=3),
    "receipt": Kind(receipt, pages=8, wear=(0.3, 0.4, 5.0)),
    "columns": Kind(columns, pages=3),
    "dark": Kind(dark, pages=4),
    "scan": Kind(scan, pages=3, wear=(1.0, 0.7, 10.0)),
}
