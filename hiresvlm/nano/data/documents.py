"""Tiles that look like pieces of documents: tables, receipts, screens, letters and reports."""

from __future__ import annotations

from hiresvlm.nano.data import chinese as zh
from hiresvlm.nano.data.lines import blank, prose
from hiresvlm.nano.data.page import ASCENT, DESCENT, Cell, Page, fit
from hiresvlm.nano.data.studio import Studio, Style
from hiresvlm.nano.data.tables import columns, table
from hiresvlm.nano.data.tile import Tile
from hiresvlm.nano.data.words import listed

BUTTONS = listed("OK Cancel Save Delete Edit Close Open Send Next Back Login Search Help")


def open_page(studio: Studio, style: Style, height: int, width: int) -> Page:
    """A page with margins over a whole tile."""
    rng = studio.rng
    margin = rng.uniform(3, 12)
    return Page(
        studio,
        studio.canvas(style, width, height),
        style,
        left=rng.uniform(3, 20),
        right=width - rng.uniform(3, 20),
        y=margin if studio.chance(0.75) else rng.uniform(margin, height / 3),
        bottom=height - margin,
        leading=rng.uniform(1.15, 1.7),
    )


def table_tile(studio: Studio, height: int, width: int) -> Tile:
    """A table, perhaps under a heading."""
    chinese = studio.chance(studio.chinese)
    style = studio.style(studio.small_size(), chinese)
    page = open_page(studio, style, height, width)
    if studio.chance(0.3):
        title = studio.rng.choice(zh.TITLES) if chinese else studio.english.heading()
        heading(page, title, 1.2)
    while not page.full and page.used < studio.max_chars:
        before = page.used
        table(page, columns(studio, chinese, studio.rng.randint(2, 16)), style.size)
        page.y += style.size * studio.rng.uniform(0.3, 1.2)
        if page.used > before and studio.chance(0.8):
            break
    return studio.finish(page.canvas, "table", 3)


def heading(page: Page, text: str, most: float, align: str | None = None) -> None:
    """One bold line, larger by up to `most`, if it fits into the width."""
    style = page.style
    em = style.size * page.studio.rng.uniform(1, most)
    text = page.studio.clean(text, style.bold)
    if page.measure(text, style.bold, em) <= page.width:
        page.line(text, align or page.studio.rng.choice("llc"), style.bold, em)


def separator(page: Page) -> None:
    """A rule, a dashed rule, or a row of signs that is no text."""
    style, rng, canvas = page.style, page.studio.rng, page.canvas
    em = style.size
    y = page.y + 0.35 * em
    kind = rng.random()
    if y + 0.35 * em > page.bottom or kind < 0.15:
        return
    if kind < 0.6:
        dash = rng.choice((0.0, 0.0, 2.0, 4.0))
        canvas.rule(
            page.left, y, page.right, y, style.between(rng.uniform(0.4, 1)), rng.choice((1, 1, 2)), dash
        )
    else:
        sign = rng.choice("--=*_")
        count = int(page.width / max(1.0, page.measure(sign)))
        canvas.text(page.left, y + 0.3 * em, sign * count, style.face, em, style.ink)
    page.y += 0.8 * em


def split_row(page: Page, left: str, right: str, bold: bool = False, em: float | None = None) -> None:
    """One text at the left margin and one at the right, both cut to what fits."""
    style = page.style
    face, size = (style.bold if bold else style.face), em or style.size
    left, right = page.studio.clean(left, face), page.studio.clean(right, face)
    while left and page.measure(f"{left}  {right}", face, size) > page.width:
        left = left[:-1].strip()
    if page.measure(right, face, size) > page.width:
        return
    page.row([Cell(left, page.left, "l", face), Cell(right, page.right, "r", face)], size)


def receipt_tile(studio: Studio, height: int, width: int) -> Tile:
    """A till receipt, or a piece of one."""
    chinese = studio.chance(studio.chinese)
    style = studio.style(studio.small_size(), chinese, typewriter=studio.chance(0.4))
    page = open_page(studio, style, height, width)
    parts = [receipt_head, receipt_items, receipt_totals, receipt_foot]
    start = studio.rng.choice((0, 0, 0, 1, 1, 2))
    for number, part in enumerate(parts[start:]):
        if number:
            separator(page)
        part(page, chinese)
    return studio.finish(page.canvas, "receipt", 3)


def receipt_head(page: Page, chinese: bool) -> None:
    """The shop, its address and the numbers of the sale."""
    studio = page.studio
    english, mandarin, rng = studio.english, studio.mandarin, studio.rng
    align = rng.choice("ccl")
    if chinese:
        heading(page, mandarin.company(), 1.3, align)
        for text in rng.sample(
            [f"地址：{mandarin.address()}", f"电话：{mandarin.phone()}", rng.choice(zh.TITLES)], 2
        ):
            page.wrapped(studio.clean(text, page.style.face), page.style.face, page.style.size, False)
        for _ in range(rng.randint(0, 3)):
            label, value = mandarin.pair()
            short_line(page, f"{label}：{value}")
        return
    heading(page, english.cased(english.company()), 1.4, align)
    for make in rng.sample(
        [english.street, english.town, english.phone, english.url, english.person], rng.randint(1, 4)
    ):
        text = make()
        text = rng.choice(("Tel: ", "TEL ", "Ph. ", "")) + text if make == english.phone else text
        short_line(page, text.upper() if studio.chance(0.3) else text, align)
    for _ in range(rng.randint(0, 2)):
        pair = rng.choice(
            (
                ("Date", english.date),
                ("Receipt", english.code),
                ("Cashier", english.person),
                ("Time", english.time),
            )
        )
        if studio.chance(0.5):
            split_row(page, pair[0] + rng.choice((":", "")), pair[1]())
        else:
            short_line(page, f"{pair[0]}: {pair[1]()}")


def short_line(page: Page, text: str, align: str = "l") -> None:
    """One line, left out where it is wider than the page."""
    text = page.studio.clean(text, page.style.face)
    if page.measure(text) <= page.width:
        page.line(text, align)


def receipt_items(page: Page, chinese: bool) -> None:
    """What was bought: name and amount, at times the quantity on a line of its own."""
    studio = page.studio
    rng, write = studio.rng, studio.english
    form = rng.randrange(3)
    code = rng.choice(("", "", "", " T", " *", " SR"))
    if studio.chance(0.2):
        split_row(
            page,
            "商品 数量" if chinese else rng.choice(("Item", "ITEM QTY", "Description")),
            "金额" if chinese else "Amount",
        )
    for _ in range(rng.randint(1, 9)):
        count, price = rng.choice((1, 1, 1, 2, 3, 5, 12)), rng.randrange(50, 20000) / 100
        name = studio.mandarin.product() if chinese else write.product()
        if form == 0:
            split_row(page, name, f"{count * price:.2f}{code}")
        elif form == 1:
            split_row(
                page, f"{count} {'x ' if studio.chance(0.5) else ''}{name}", f"{count * price:.2f}{code}"
            )
        else:
            short_line(page, name)
            split_row(
                page,
                f"{count} x {price:.2f}" if studio.chance(0.7) else f"{count} @ {price:.2f}",
                f"{count * price:.2f}{code}",
            )
        if page.full:
            return


def receipt_totals(page: Page, chinese: bool) -> None:
    """Subtotal, tax, total, cash and change."""
    studio = page.studio
    rng = studio.rng
    labels = (
        (
            "小计",
            "税额",
            rng.choice(("合计", "总计", "总金额", "应付金额")),
            rng.choice(("现金", "实收", "微信支付")),
            "找零",
        )
        if chinese
        else (
            rng.choice(("Subtotal", "SUB-TOTAL", "Sub Total")),
            rng.choice(("Tax", "VAT 20%", "GST 6%", "TAX (8%)", "Service 10%")),
            rng.choice(("Total", "TOTAL", "Grand Total", "Total Due", "TOTAL AMOUNT")),
            rng.choice(("Cash", "CASH", "VISA", "Card", "Mastercard")),
            rng.choice(("Change", "CHANGE", "Change Due")),
        )
    )
    sign = rng.choice(("¥", "¥", "", "￥") if chinese else ("$", "", "", "€", "£", "RM ", "RM"))
    total = rng.randrange(300, 100000) / 100
    tax = round(total * rng.choice((0, 0.06, 0.08, 0.2)), 2)
    given = total + tax + rng.choice((0, 0, rng.randrange(0, 5000) / 100))
    amounts = (total, tax, total + tax, given, given - total - tax)
    colon = rng.choice(("", ":", "：" if chinese else ":"))
    for number, (label, amount) in enumerate(zip(labels, amounts, strict=True)):
        main = number == 2
        if not main and studio.chance(0.25):
            continue
        em = page.style.size * (rng.choice((1, 1, 1.3)) if main else 1)
        split_row(page, label + colon, f"{sign}{amount:,.2f}", main and studio.chance(0.6), em)


def receipt_foot(page: Page, chinese: bool) -> None:
    """Thanks and a code."""
    rng, english = page.studio.rng, page.studio.english
    align = rng.choice("cccl")
    if chinese:
        lines = rng.sample(zh.PHRASES, 2)
    else:
        thanks = (
            "Thank you!",
            "THANK YOU",
            "Thank you for your visit",
            "Please come again",
            "Have a nice day!",
        )
        lines = [rng.choice(thanks), rng.choice((english.url, english.code, english.sentence))()]
    for text in lines[: rng.randint(0, 2)]:
        short_line(page, text, align)


def screen_tile(studio: Studio, height: int, width: int) -> Tile:
    """A piece of a user interface: bars, buttons, entries, switches."""
    rng = studio.rng
    chinese = studio.chance(studio.chinese)
    page = open_page(studio, studio.style(studio.small_size(), chinese), height, width)
    parts = [buttons, entries, settings, settings, listing, tabs]
    if studio.chance(0.5):
        page.y = 0
        bar(page, chinese)
    while not page.full and page.used < 400 and not (page.used and studio.chance(0.12)):
        rng.choice(parts)(page, chinese)
        page.y += page.style.size * rng.uniform(0.2, 0.8)
    return studio.finish(page.canvas, "ui", 3)


def caption(studio: Studio, chinese: bool) -> str:
    """The words on a button or beside a switch."""
    if chinese:
        return studio.rng.choice(zh.BUTTONS)
    words = [studio.english.word() for _ in range(studio.rng.choice((1, 1, 2)))]
    text = studio.rng.choice(BUTTONS) if studio.chance(0.4) else " ".join(words)
    return studio.rng.choice((text.capitalize(), text.title(), text.upper()))


def bar(page: Page, chinese: bool) -> None:
    """A title bar in other colours."""
    style, em = page.style, page.style.size
    band = style.between(page.studio.rng.choice((0.1, 0.15, 0.85, 1.0)))
    tall = em * page.studio.rng.uniform(1.5, 2.2)
    page.canvas.box(0, 0, page.canvas.width, tall, band)
    dark = band == style.ink or sum(abs(a - b) for a, b in zip(band, style.ink, strict=True)) < 200
    page.y = (tall - em) / 2
    text = page.studio.clean(caption(page.studio, chinese), style.bold)
    text = fit(page.canvas, text, style.bold, em, page.width)
    page.row([Cell(text, page.left, "l", style.bold, style.paper if dark else None)])
    page.y = tall + 0.4 * em


def buttons(page: Page, chinese: bool) -> None:
    """A row of buttons, filled or framed."""
    studio, style, em = page.studio, page.style, page.style.size
    rng = studio.rng
    filled, radius = studio.chance(0.6), rng.choice((0, 3, 0.6 * em))
    page.y += 0.4 * em
    baseline = page.baseline(em * 1.5)
    if baseline is None:
        return
    x, cells, top = page.left, [], page.y
    for _ in range(rng.randint(1, 4)):
        text = studio.clean(caption(studio, chinese), style.face)
        width = page.measure(text) + rng.uniform(1, 2.5) * em
        if x + width > page.right:
            break
        lower = min(top + (ASCENT + DESCENT + 0.35) * em, page.bottom)
        page.canvas.box(
            x, top - 0.35 * em, x + width, lower, style.ink if filled else None, style.ink, radius
        )
        cells.append(Cell(text, x + width / 2, "c", None, style.paper if filled else None))
        x += width + rng.uniform(0.4, 1.5) * em
    page.row(cells)
    page.y += 0.4 * em


def entries(page: Page, chinese: bool) -> None:
    """A label with a framed value under it or beside it."""
    studio, style, em = page.studio, page.style, page.style.size
    label, value = studio.mandarin.pair() if chinese else (studio.english.label(), studio.english.value())
    label, value = studio.clean(label, style.face), studio.clean(value, style.face)
    frame = style.between(studio.rng.uniform(0.3, 0.8))
    beside = page.measure(label) + em
    if studio.chance(0.5) and beside + page.measure(value) + em < page.width:
        page.y += 0.2 * em
        top = page.y
        if page.row([Cell(label, page.left), Cell(value, page.left + beside)]):
            page.canvas.box(
                page.left + beside - 0.4 * em, top - 0.2 * em, page.right, top + 1.2 * em, outline=frame
            )
        page.y += 0.3 * em
    elif page.measure(value) + 0.4 * em < page.width and page.measure(label) < page.width:
        page.line(label)
        page.y += 0.25 * em
        top = page.y
        if page.row([Cell(value, page.left + 0.4 * em)]):
            page.canvas.box(page.left, top - 0.2 * em, page.right, top + 1.2 * em, outline=frame)
        page.y += 0.3 * em


def settings(page: Page, chinese: bool) -> None:
    """Names at the left with values at the right, divided by rules."""
    studio, style = page.studio, page.style
    faint = style.between(0.2)
    ruled = studio.chance(0.5)
    for _ in range(studio.rng.randint(1, 5)):
        left, right = (
            studio.mandarin.pair()
            if chinese
            else (
                studio.english.label(),
                studio.rng.choice((studio.english.value, lambda: "On", lambda: "Off", studio.english.word))(),
            )
        )
        split_row(page, left, right)
        page.y += 0.2 * style.size
        if ruled and not page.full:
            page.canvas.rule(
                page.left, page.y - 0.15 * style.size, page.right, page.y - 0.15 * style.size, faint
            )


def listing(page: Page, chinese: bool) -> None:
    """Lines with a box to tick."""
    studio, style, em = page.studio, page.style, page.style.size
    for _ in range(studio.rng.randint(1, 4)):
        top = page.y
        text = caption(studio, chinese) if chinese or studio.chance(0.4) else studio.english.sentence()
        text = studio.clean(text, style.face)
        if page.measure(text) > page.width - 1.6 * em or not page.row([Cell(text, page.left + 1.5 * em)]):
            continue
        corner = 0.15 * em if studio.chance(0.5) else 0.4 * em
        filled = style.ink if studio.chance(0.3) else None
        page.canvas.box(
            page.left, top + 0.1 * em, page.left + 0.8 * em, top + 0.9 * em, filled, style.ink, corner
        )


def tabs(page: Page, chinese: bool) -> None:
    """Captions side by side, one of them underlined."""
    studio, style, em = page.studio, page.style, page.style.size
    x, cells = page.left, []
    for _ in range(studio.rng.randint(2, 5)):
        text = studio.clean(caption(studio, chinese), style.face)
        width = page.measure(text)
        if x + width > page.right:
            break
        cells.append((Cell(text, x), width))
        x += width + studio.rng.uniform(0.8, 2) * em
    if cells and page.row([cell for cell, _ in cells]):
        cell, width = studio.rng.choice(cells)
        page.canvas.rule(cell.x, page.y, cell.x + width, page.y, style.ink, 2)


def document_tile(studio: Studio, height: int, width: int) -> Tile:
    """A letter or report: headings, prose, labels with values and small tables, one under another."""
    rng = studio.rng
    if studio.chance(0.03):
        return blank(studio, width, height, "document")
    chinese = studio.chance(studio.chinese)
    page = open_page(studio, studio.style(studio.small_size(), chinese), height, width)
    while not page.full and page.used < studio.max_chars and not (page.used and studio.chance(0.08)):
        kind = rng.random()
        if kind < 0.4 and not chinese:
            prose(page, studio.chance(0.2))
        elif kind < 0.6:
            table(page, columns(studio, chinese, rng.randint(2, 6)), page.style.size)
        elif kind < 0.75:
            settings(page, chinese)
        elif kind < 0.9:
            for _ in range(rng.randint(1, 4)):
                label, value = (
                    studio.mandarin.pair() if chinese else (studio.english.label(), studio.english.value())
                )
                short_line(page, f"{label}{'：' if chinese else ': '}{value}")
        else:
            heading(page, rng.choice(zh.TITLES) if chinese else studio.english.heading(), 1.6)
        page.y += page.style.size * rng.uniform(0.1, 0.9)
    return studio.finish(page.canvas, "document", 3)
