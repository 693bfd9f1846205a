"""Tables with aligned columns: the content of a few columns that belong together, and how it is set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hiresvlm.nano.data import chinese as zh
from hiresvlm.nano.data.page import ASCENT, DESCENT, Cell, Page
from hiresvlm.nano.data.studio import Studio
from hiresvlm.nano.data.values import DATE_FORMS

SIGNS = ("", "", "", "$", "€", "£", "RM")
GAP = 0.7
"""The least space between two columns, in em."""


@dataclass
class Column:
    """A heading and its cells; `align` is l or r."""

    head: str
    cells: list[str]
    align: str = "l"


def _money(studio: Studio, signs: Sequence[str]) -> Callable[[], str]:
    """Amounts in one format without currency, or with one sign."""
    decimals, comma = studio.rng.choice((2, 2, 2, 0)), studio.chance(0.6)
    sign = studio.rng.choice(signs)
    top = 10 ** studio.rng.choice((3, 4, 5, 6))

    def make() -> str:
        value = studio.rng.randrange(100, 100 * top) / 100
        return sign + (f"{value:,.{decimals}f}" if comma else f"{value:.{decimals}f}")

    return make


def english_columns(studio: Studio, rows: int) -> list[Column]:
    """Two to six columns of English, numbers and codes."""
    rng, write = studio.rng, studio.english
    form = rng.randrange(DATE_FORMS)

    def dates() -> str:
        return write.date(form)

    def accounts() -> str:
        return f"{write.word()} {write.word()}".capitalize()

    makers: list[tuple[str, Callable[[], str], str]] = [
        ("Qty|Quantity|Units|Pcs|No", lambda: str(rng.randint(1, rng.choice((9, 99, 999)))), "r"),
        ("Price|Unit Price|Rate|Cost", _money(studio, SIGNS), "r"),
        ("Amount|Total|Value|Net|Sum", _money(studio, SIGNS), "r"),
        ("Date|Due|Shipped|Posted", dates, "l"),
        ("Ref|Code|SKU|Order No|ID|Part", write.code, "l"),
        ("Name|Contact|Customer|Employee", write.person, "l"),
        ("City|Branch|From|To", write.city, "l"),
        ("%|Share|Change|VAT", write.percent, "r"),
        ("Status|Type|Class|Unit", lambda: write.word().capitalize(), "l"),
        ("Jan|Q1|2023|2024|Actual|Budget", lambda: write.number(5), "r"),
        ("Weight|Size|Volume|Power", write.quantity, "r"),
    ]
    first: list[tuple[str, Callable[[], str], str]] = [
        ("Item|Description|Product|Article", write.product, "l"),
        ("Name|Account|Department|Category", accounts, "l"),
        ("No.|#|Line", write.code, "l"),
        ("Company|Supplier|Vendor|Client", write.company, "l"),
        ("Date", dates, "l"),
    ]
    chosen = [rng.choice(first), *rng.sample(makers, rng.randint(1, 5))]
    case = rng.choice((str, str, str.upper))
    return [
        Column(case(rng.choice(heads.split("|"))), [make() for _ in range(rows)], align)
        for heads, make, align in chosen
    ]


def chinese_columns(studio: Studio, rows: int) -> list[Column]:
    """The columns of a Chinese invoice or list."""
    rng, write = studio.rng, studio.mandarin
    money, cents = (_money(studio, ("", "", "¥")) for _ in range(2))
    makers: list[tuple[str, Callable[[], str], str]] = [
        ("规格型号|规格|型号", lambda: write.english.letters(1) + write.english.digits(3), "l"),
        ("单位", lambda: rng.choice(zh.OTHER_LABELS["单位"]), "l"),
        ("数量|件数", lambda: str(rng.randint(1, 99)), "r"),
        ("单价", money, "r"),
        ("金额|小计|合计", cents, "r"),
        ("税率", lambda: rng.choice(zh.OTHER_LABELS["税率"]), "r"),
        ("日期", write.date, "l"),
        ("姓名|经办人|联系人", write.person, "l"),
        ("状态", lambda: rng.choice(zh.OTHER_LABELS["状态"]), "l"),
        ("部门", lambda: rng.choice(zh.OTHER_LABELS["部门"]), "l"),
        ("编号|单号", write.code, "l"),
    ]
    chosen = rng.sample(makers, rng.randint(1, 4))
    first = (
        ("品名|商品名称|货物名称|项目", write.product, "l")
        if studio.chance(0.7)
        else ("公司|客户名称", write.company, "l")
    )
    return [
        Column(rng.choice(heads.split("|")), [make() for _ in range(rows)], align)
        for heads, make, align in [first, *chosen]
    ]


def columns(studio: Studio, chinese: bool, rows: int) -> list[Column]:
    """Columns in one of the two languages, with some empty cells."""
    made = chinese_columns(studio, rows) if chinese else english_columns(studio, rows)
    if studio.chance(0.15):
        for column in made[1:]:
            column.cells = [cell if studio.chance(0.85) else "" for cell in column.cells]
    return made


def table(page: Page, content: list[Column], em: float) -> None:
    """Set a table: as many columns as fit, rules or stripes or neither."""
    studio, style, canvas = page.studio, page.style, page.canvas
    rng = studio.rng
    headed = studio.chance(0.85)
    for column in content:
        column.cells = [studio.clean(cell, style.face) for cell in column.cells]
        column.head = studio.clean(column.head, style.bold) if headed else ""
    widths: list[float] = []
    for column in content:
        widest = max(page.measure(cell, style.face, em) for cell in column.cells)
        widths.append(max(widest, page.measure(column.head, style.bold, em)) + GAP * em)
    while len(content) > 1 and sum(widths) > page.width:
        drop = widths.index(max(widths))
        del widths[drop], content[drop]
    if sum(widths) > page.width:
        return
    spare = (page.width - sum(widths)) / len(widths) * rng.choice((0.0, rng.random(), 1.0))
    widths = [width + spare for width in widths]
    edges = [page.left]
    for width in widths:
        edges.append(edges[-1] + width)
    look = rng.choice(("plain", "plain", "rules", "grid", "stripes", "head"))
    faint = style.between(rng.uniform(0.15, 0.7))
    inset = GAP * em / 2
    top = page.y
    for number in range(-1 if headed else 0, len(content[0].cells)):
        head = number < 0
        texts = [column.head if head else column.cells[number] for column in content]
        if not any(texts) or page.baseline(em) is None:
            break
        upper = page.y - 0.12 * em
        lower = page.y + (ASCENT + DESCENT) * em
        inverted = head and look in ("stripes", "head")
        if inverted:
            canvas.box(edges[0], upper, edges[-1], lower, style.ink)
        elif look == "stripes" and number % 2:
            canvas.box(edges[0], upper, edges[-1], lower, style.between(0.08))
        cells = []
        for text, column, left, right in zip(texts, content, edges, edges[1:], strict=False):
            x = right - inset if column.align == "r" else left + inset
            cells.append(
                Cell(text, x, column.align, style.bold if head else None, style.paper if inverted else None)
            )
        page.row(cells, em)
        page.y = max(page.y, lower + 0.12 * em)
        if look == "grid" or (look == "rules" and (head or studio.chance(0.9))):
            canvas.rule(edges[0], page.y - 0.12 * em, edges[-1], page.y - 0.12 * em, faint)
    if look == "grid" and page.y > top:
        for edge in edges:
            canvas.rule(edge, top, edge, page.y - 0.12 * em, faint)
        canvas.rule(edges[0], top, edges[-1], top, faint)
