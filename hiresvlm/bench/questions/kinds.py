"""The kinds of documents: each a function of a `Paper`, which has the seed, the language and the sheet."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from hiresvlm.bench.gold.sheet import Sheet
from hiresvlm.bench.gold.words import ZH_NOUNS, Words
from hiresvlm.bench.questions.paper import LABEL, Document, Paper

_EN_COMPANY = ("Trading Ltd", "Stationery Inc.", "Systems GmbH", "Foods Co.", "Logistics LLC")
_ZH_COMPANY = ("贸易有限公司", "科技有限公司", "文具有限公司", "食品有限责任公司")
_LABEL_NOUNS = frozenset(
    ("价格", "数量", "日期", "地址", "电话", "账户", "余额", "部门", "客户", "手机", "产品")
)
"""Nouns that nobody fills in: a department is not called "price"."""
_SETTINGS = {
    "en": (
        ("Battery level", "{n}%"), ("Storage used", "{n} GB"), ("Screen timeout", "{n} minutes"),
        ("Wi-Fi network", "{place}-{n}"), ("System version", "{k}.{n}"), ("Data usage", "{n} MB"),
        ("Ring volume", "{n}%"), ("Steps today", "{k},{n}0"), ("Backup interval", "{n} hours"),
        ("Font size", "{n} pt"),
    ),
    "zh": (
        ("电池电量", "{n}%"), ("已用空间", "{n} GB"), ("自动锁屏", "{n} 分钟"), ("无线网络", "{place}-{n}"),
        ("系统版本", "{k}.{n}"), ("本月流量", "{n} MB"), ("铃声音量", "{n}%"), ("今日步数", "{k}{n}0"),
        ("备份间隔", "{n} 小时"), ("字体大小", "{n} 号"),
    ),
}  # fmt: skip
_TITLES: dict[str, dict[str, tuple[str, ...]]] = {
    "invoice": {"en": ("INVOICE", "Tax Invoice", "Invoice"), "zh": ("发票", "增值税普通发票", "销售发票")},
    "form": {"en": ("Application Form", "Registration Form"), "zh": ("申请表", "登记表")},
    "ledger": {"en": ("General Ledger", "Cash Book"), "zh": ("总账明细", "现金日记账")},
}


def make(kind: str, lang: str, seed: int, number: int) -> Document:
    """Document `number` of a kind, a language and a seed. Texts that do not fit are drawn anew."""
    for attempt in range(50):
        rng = random.Random(f"{kind}/{lang}/{seed}/{number}/{attempt}")
        paper = Paper(Sheet.new((10, 10)), rng, Words(rng), lang)
        try:
            KINDS[kind](paper)
        except ValueError:  # the sheet refuses text that touches other text or leaves the page
            continue
        return Document(f"{kind}-{lang}-{number}", lang, kind, paper.sheet, paper.asked)
    raise RuntimeError(f"no {kind} fits its page")


def invoice(paper: Paper) -> None:
    """Two parties side by side or one below the other, a table of items, sums at the foot."""
    rng, zh = paper.rng, paper.lang == "zh"
    size = rng.choice((22, 24, 26))
    width, step = 1240, 1.9 * size
    paper.sheet = Sheet.new((width, 1500))
    paper.sheet.row(90, [(width / 2, rng.choice(_TITLES["invoice"][paper.lang]), "ms")], 2 * size)
    y = 90 + 2.2 * step
    numbers: list[tuple[str, str]] = [("invoice_number", _code(paper, 8)), ("date", _date(paper))]
    if rng.random() < 0.5:
        numbers.append(("due_date", _date(paper)))
    if rng.random() < 0.5:
        numbers.append(("order_number", _code(paper, 7)))
    column = 80.0
    for name, value in numbers:
        paper.beside(column, y, name, value, size, 480)
        y, column = (y, 680.0) if column == 80.0 else (y + step, 80.0)
    y += step if column == 80.0 else 2 * step
    parties = [("seller", _company(paper)), ("buyer", _company(paper))]
    rng.shuffle(parties)
    apart = rng.random() < 0.5
    top = y
    for place, (party, company) in enumerate(parties):
        x = 80.0 + 600 * place if apart else 80.0
        y = top if apart else y
        colon = "：" if zh else ":"
        for name, value in ((party, company), (f"{party}_phone", _phone(paper))):
            gap = "" if zh else " "
            paper.sheet.line(x, y, f"{paper.label(name)}{colon}{gap}{value}", size)
            paper.ask(name, value)
            y += step
        y += 0.3 * step
    y += 0.7 * step
    y, subtotal = _items(paper, y, size, width)
    tax = round(subtotal * rng.choice((6, 9, 13, 19)) / 100)
    sums = [("subtotal", subtotal), ("tax", tax), ("total", subtotal + tax)]
    for name, cents in sums[rng.choice((0, 0, 1)) :] if not zh else sums:
        sign = rng.choice(("¥", "¥", "")) if zh else rng.choice(("$", "€", ""))
        shown = f"{sign}{cents / 100:,.2f}" if not zh else f"{sign}{cents / 100:.2f}"
        paper.sheet.row(y, [(width - 460, paper.label(name), "ls"), (width - 80, shown, "rs")], size)
        paper.ask(name, shown)
        y += step
    paper.absent(
        (
            "discount",
            "shipping",
            "deposit",
            "due_date",
            "tracking_number",
            "account",
            "passport",
            "email",
            "birth_date",
        ),
        3,
    )


def form(paper: Paper) -> None:
    """Boxes of a form: labels beside or above what was filled in."""
    rng = paper.rng
    size = rng.choice((24, 26, 28))
    paper.sheet = Sheet.new((1000, 1300))
    paper.sheet.row(90, [(500, rng.choice(_TITLES["form"][paper.lang]), "ms")], 2 * size)
    filled = {
        "name": _person(paper), "birth_date": _date(paper), "phone": _phone(paper), "email": _email(paper),
        "address": _address(paper), "department": _noun(paper), "position": _noun(paper),
        "nationality": rng.choice(("China", "France", "Kenya") if paper.lang == "en" else ("中国", "法国", "巴西")),
        "start_date": _date(paper), "deposit": f"{rng.randrange(100, 900)}.00", "account": _code(paper, 10),
    }  # fmt: skip
    names = rng.sample(list(filled), 8)
    above = rng.random() < 0.5
    y = 190.0
    for place, name in enumerate(names):
        if above:
            x = 80.0 + 460 * (place % 2)
            paper.above(x, y, name, filled[name], size)
            y += 3.6 * size * (place % 2)
        else:
            paper.beside(80, y, name, filled[name], size, 800)
            y += 2.6 * size
        if not above:
            paper.sheet.draw.line((70, y - 1.6 * size, 930, y - 1.6 * size), fill=(200, 200, 200))
    paper.absent((*filled, "passport", "invoice_number", "due_date", "tax"), 3)


def screenshot(paper: Paper) -> None:
    """A page of a phone: an order with its sums, or settings with a value at the right margin."""
    rng = paper.rng
    size = rng.choice((30, 34, 38))
    width, step = 1080, 2.8 * size
    paper.sheet = Sheet.new((width, 1700), rng.choice(((255, 255, 255), (246, 246, 250))))
    paper.sheet.row(
        60,
        [(60, paper.words.clock(), "ls"), (width - 60, f"{rng.randrange(20, 99)}%", "rs")],
        round(0.8 * size),
    )
    y = 60 + 1.2 * step
    if rng.random() < 0.5:
        rows: list[tuple[str, str]] = [
            ("status", _noun(paper)), ("order_number", _code(paper, 9)), ("shipping", f"{rng.randrange(5, 30)}.00"),
            ("discount", f"{rng.randrange(1, 9)}.50"), ("total", paper.words.amount(2000)), ("payment_method", _noun(paper)),
            ("tracking_number", _code(paper, 11)), ("phone", _phone(paper)),
        ]  # fmt: skip
        for name, value in rng.sample(rows, 6):
            paper.sheet.row(y, [(60, paper.label(name), "ls"), (width - 60, value, "rs")], size)
            paper.ask(name, value)
            y += step
        paper.absent([name for name, _ in rows] + ["due_date", "passport", "email", "seller_phone"], 3)
        return
    chosen = rng.sample(_SETTINGS[paper.lang], 8)
    for label, pattern in chosen[:6]:
        place = paper.words.place() if paper.lang == "en" else "Home"
        value = pattern.format(n=rng.randrange(11, 99), k=rng.randrange(2, 9), place=place)
        paper.sheet.row(y, [(60, label, "ls"), (width - 60, value, "rs")], size)
        paper.ask("setting", value, of=label)
        y += step
    for label, _ in chosen[6:]:
        paper.ask("setting", None, of=label)
    paper.absent(("total", "tracking_number", "due_date", "email"), 1)


def ledger(paper: Paper) -> None:
    """A wide table: number, date, text and three columns of amounts; questions name a row and a column."""
    rng = paper.rng
    size = rng.choice((22, 24))
    width, step = 1800, 2.0 * size
    paper.sheet = Sheet.new((width, 1200))
    paper.sheet.line(80, 80, rng.choice(_TITLES["ledger"][paper.lang]), round(1.8 * size))
    number = "编号" if paper.lang == "zh" else "Entry"
    what = "摘要" if paper.lang == "zh" else "Description"
    columns = [
        ("row_date", 300.0, "ls"),
        ("amount", 1240.0, "rs"),
        ("debit", 1480.0, "rs"),
        ("row_balance", 1720.0, "rs"),
    ]
    labels = {name: paper.label(name) for name, _, _ in columns}
    y = 160.0
    heads = [
        (80.0, number, "ls"),
        (560.0, what, "ls"),
        *((x, labels[name], anchor) for name, x, anchor in columns),
    ]
    paper.sheet.row(y, sorted(heads), size, LABEL, table=True)
    rows: list[tuple[str, str, dict[str, str]]] = []
    used: set[str] = set()
    while len(rows) < 16:
        entry, text = _code(paper, 5), _item(paper)
        if text in used:
            continue
        used.add(text)
        y += step
        values = {
            name: _date(paper) if name == "row_date" else paper.words.amount(90000) for name, _, _ in columns
        }
        cells = [
            (80.0, entry, "ls"),
            (560.0, text, "ls"),
            *((x, values[name], anchor) for name, x, anchor in columns),
        ]
        paper.sheet.row(y, sorted(cells), size, table=True)
        rows.append((entry, text, values))
    for entry, text, values in rng.sample(rows, 8):
        name = rng.choice([name for name, _, _ in columns])
        paper.ask(name, values[name], of=rng.choice((entry, text)))
    for _ in range(2):
        item = _item(paper)
        while item in used:
            item = _item(paper)
        paper.ask(rng.choice(("amount", "debit")), None, of=item)
    paper.absent(("due_date", "passport", "email", "shipping"), 1)


KINDS: dict[str, Callable[[Paper], None]] = {
    "invoice": invoice,
    "form": form,
    "screenshot": screenshot,
    "ledger": ledger,
}


def _items(paper: Paper, y: float, size: int, width: float) -> tuple[float, int]:
    """A table of items; the height below it, and the sum in cents."""
    rng, zh = paper.rng, paper.lang == "zh"
    names = ("quantity", "unit_price", "amount")
    labels = [("项目名称" if zh else "Description"), *(paper.label(name) for name in names)]
    places = (80.0, 640.0, 900.0, width - 80)
    anchors = ("ls", "rs", "rs", "rs")
    paper.sheet.row(y, list(zip(places, labels, anchors, strict=True)), size, LABEL, table=True)
    total = 0
    items: list[tuple[str, tuple[str, str, str]]] = []
    while len(items) < rng.randrange(3, 7):
        item = _item(paper)
        if any(item == other for other, _ in items):
            continue
        count, cents = rng.randrange(1, 60), rng.randrange(100, 20000)
        total += count * cents
        values = (str(count), f"{cents / 100:.2f}", f"{count * cents / 100:.2f}")
        y += 1.7 * size
        paper.sheet.row(y, list(zip(places, (item, *values), anchors, strict=True)), size, table=True)
        items.append((item, values))
    item, values = rng.choice(items)
    column = rng.randrange(3)
    paper.ask(names[column], values[column], of=item)
    return y + 2.6 * size, total


def _code(paper: Paper, digits: int) -> str:
    letters = "".join(paper.rng.sample("ACEFHKLMNPRTX", 2))
    return letters + paper.words.number(digits)


def _date(paper: Paper) -> str:
    rng = paper.rng
    year, month, day = rng.randrange(2018, 2027), rng.randrange(1, 13), rng.randrange(1, 29)
    if paper.lang == "zh":
        return rng.choice(
            (f"{year}年{month:02}月{day:02}日", f"{year}-{month:02}-{day:02}", f"{year}/{month:02}/{day:02}")
        )
    name = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")[month - 1]
    return rng.choice((f"{year}-{month:02}-{day:02}", f"{day} {name} {year}", f"{day:02}/{month:02}/{year}"))


def _phone(paper: Paper) -> str:
    number = paper.words.number
    if paper.lang == "zh":
        return paper.rng.choice((f"010-{number(8)}", f"13{number(9)}"))
    return paper.rng.choice((f"+44 20 {number(4)} {number(4)}", f"555-{number(3)}-{number(4)}"))


def _company(paper: Paper) -> str:
    if paper.lang == "zh":
        return paper.words.city() + paper.rng.choice(ZH_NOUNS) + paper.rng.choice(_ZH_COMPANY)
    return f"{paper.words.place()} {paper.rng.choice(_EN_COMPANY)}"


def _person(paper: Paper) -> str:
    if paper.lang == "zh":
        return paper.words.zh_name()
    return f"{paper.rng.choice(_FIRST)} {paper.words.place()}"


_FIRST: Sequence[str] = ("Anna", "Boris", "Clara", "David", "Elena", "Frank", "Grace", "Henry")


def _email(paper: Paper) -> str:
    return f"{paper.rng.choice(_FIRST).lower()}{paper.words.number(2)}@{paper.words.place().lower()}.com"


def _address(paper: Paper) -> str:
    rng = paper.rng
    if paper.lang == "zh":
        return f"{paper.words.city()}市{rng.choice(ZH_NOUNS)}路{rng.randrange(2, 300)}号"
    return f"{rng.randrange(2, 300)} {paper.words.place()} Street, {paper.words.place()}"


def _item(paper: Paper) -> str:
    return paper.words.zh_item() if paper.lang == "zh" else paper.words.en_item()


def _noun(paper: Paper) -> str:
    if paper.lang == "zh":
        return paper.rng.choice([noun for noun in ZH_NOUNS if noun not in _LABEL_NOUNS])
    return paper.words.en_item()
