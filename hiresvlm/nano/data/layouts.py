"""How the labels and values of a form are set, and what else is set between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hiresvlm.nano.data import chinese as zh
from hiresvlm.nano.data.documents import heading, receipt_items, separator, short_line
from hiresvlm.nano.data.entries import Entry, Filler, Printed
from hiresvlm.nano.data.lines import prose
from hiresvlm.nano.data.page import Cell, Page
from hiresvlm.nano.data.tables import columns, table

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
            printed.append(Printed(entry, spans[-1], spans[0]))
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
        printed.append(Printed(entry, spans[-1], spans[0]))
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
        labels = page.row(
            [Cell(label, x, ink=muted) for (_, label, _), x in zip(group, xs, strict=True)], label_em
        )
        spans = page.row([Cell(value, x, face=bold) for (_, _, value), x in zip(group, xs, strict=True)])
        printed += [
            Printed(item[0], span, label) for item, span, label in zip(group, spans, labels, strict=False)
        ]
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
            printed += [
                Printed(item[0], span, label)
                for item, span, label in zip(waiting, spans[1::2], spans[::2], strict=False)
            ]
            waiting = []
    if waiting and (spans := page.row(waiting[0][1])):
        printed.append(Printed(waiting[0][0], spans[-1], spans[0]))
    return printed


def letterhead(page: Page, filler: Filler) -> list[Printed]:
    """Company, address, phone and date above everything else, each on its line and without a label."""
    studio, style = page.studio, page.style
    rng = studio.rng
    align = rng.choice("ccl")
    printed = []
    for number, key in enumerate(["company", *rng.sample(["address", "phone", "date"], rng.randint(0, 3))]):
        entry = filler.named(key)
        face, em = (style.bold, style.size * rng.uniform(1, 1.4)) if number == 0 else (style.face, style.size)
        value = studio.clean(entry.value, face) if entry else ""
        if entry and value and page.measure(value, face, em) <= page.width:
            printed += [Printed(entry, span) for span in page.line(value, align, face, em)]
    page.y += rng.uniform(0, 0.6) * style.size
    return printed


LAYOUTS: tuple[Layout, ...] = (colon, colon, aligned, aligned, aligned, below, paired)


def filling(page: Page, chinese: bool) -> None:
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


def fill(page: Page, filler: Filler, wanted: int) -> list[Printed]:
    """Up to `wanted` entries in one or two layouts, with other things before and between."""
    studio = page.studio
    printed: list[Printed] = []
    kind = studio.rng.random()
    if kind < 0.2:
        printed += letterhead(page, filler)
    elif kind < 0.5:
        filling(page, filler.chinese)
    while wanted > 0 and not page.full:
        part = min(wanted, studio.rng.randint(1, 8))
        entries = [entry for _ in range(part) if (entry := filler.entry())]
        if not entries:
            break
        printed += studio.rng.choice(LAYOUTS)(page, entries)
        wanted -= part
        if studio.chance(0.3):
            page.y += studio.rng.uniform(0.2, 1.2) * page.style.size
            filling(page, filler.chinese)
    return printed
