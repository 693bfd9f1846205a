"""A question in English or Chinese -> what is asked for: a phrase, a field, its kind, where to look."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from rapidfuzz import fuzz

from hiresvlm.ask.fields import FIELDS, Field, Kind, best
from hiresvlm.ask.wording import has_cjk, solid, tokens

MAX_LENGTH = 2000
"""Characters of a question that are looked at; what comes after is no question any more."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for."""

    text: str
    """The question as given."""
    phrase: str
    """What is asked for, without the words that make it a question: "unit price of paper"."""
    targets: tuple[str, ...]
    """Wordings that its label may have, literal ones first."""
    field: Field | None = None
    kind: Kind = Kind.TEXT
    of: str = ""
    """What the asked thing belongs to: a row of a table, a section, a party. Empty for none."""
    side: str | None = None
    """left, right, top, bottom: which of several."""
    number: int | None = None
    """1 for the first of several, -1 for the last."""
    everything: bool = False
    """Asks about the whole document (a summary, a count): no single line can answer."""


_FRAME_EN = re.compile(
    r"^(?:please|kindly|could you|can you|tell me|say|show me|give me|find|i want to know|i need|do you know|,|\s)+",
    re.IGNORECASE,
)
_ASK_EN = re.compile(
    r"^(?:and\s)?(?:what(?:'s| is| are| was| were)?|which|who(?:'s| is| was)?|whom|where(?:'s| is| was)?|"
    r"when(?:'s| is| was)?|how much(?: is| was| are| were)?|how many|whose)\b\s*",
    re.IGNORECASE,
)
_REST_EN = re.compile(
    r"^(?:the|a|an|this|that|its|my|our|value (?:of|for|in)|exact|printed|written|stated|amount of the(?= total)|"
    r"of|for|is|are|was|were)\b\s*",
    re.IGNORECASE,
)
_TAIL_EN = re.compile(
    r"\s*\b(?:(?:is |are |was |were )?(?:(?:shown|given|printed|written|stated|listed|named|mentioned|displayed)(?: (?:on|in|at|here))?|on|in|of|for|from)"
    r" (?:the|this|that|my) (?:document|page|image|picture|invoice|receipt|form|screenshot|screen|bill|file|scan|ledger|table|paper|order)"
    r"|(?:is |are |was |were )?(?:shown|given|printed|stated|written)|here|please|is it|was it)\s*$",
    re.IGNORECASE,
)
_FRAME_ZH = re.compile(
    "^(?:请问|请|告诉我|帮我|看看|看一下|查一下|找出|找到|读出|给出|写出|一下|我想知道|这个|这张|该|此|图中的?|图片中的?|图片里的?|文档中的?|文件中的?|页面上的?|表格中的?|表中的?|单据上的?|票上的?|(?:发票|收据|小票|表单|订单|账单|截图|屏幕)(?:上|中|里)(?:面)?的?|上面的?|，|,|\\s)+"
)
_TAIL_ZH = re.compile(
    "(?:是多少钱|是多少元|是多少号|是多少|有多少|是几|多少钱|多少元|多少|是什么时候|什么时候|是什么|是啥|什么|是哪一天|是哪天|哪天|是哪家公司|是哪家|"
    "是哪里|在哪里|是哪个|哪个|是谁|为何|为|是|呢|吗|呀|啊|的|叫|写的|为多少|等于|[?？。.!！:：]|\\s)+$"
)
_EVERYTHING = re.compile(
    r"\bsummar|\boverview\b|\bdescribe\b|\bwhat is (?:this|that|it)(?: (?:about|document|page|image))?\s*\??$|\blist all\b|\ball (?:the )?\w+s\b|"
    r"\bhow many (?:pages|items|lines|rows|entries|people|words|documents|records|products|different)\b|\btranslate\b|\bexplain\b|\bwhy\b|\bcompare\b|\bwhat does it say\b|"
    r"(?:^|\bthe )(?:average|highest|lowest|most expensive|cheapest|largest|smallest)\b|"
    "总结|概括|概述|描述|说明一下|讲了什么|列出所有|全部列出|所有的|有几个|有多少(?:个|行|页|条|项|种|人)|多少(?:个|行|页|条|项|种|人)|共几|翻译|解释|为什么|比较|平均|最高|最低|最贵|最便宜|最大",
    re.IGNORECASE,
)
_SIDES = {
    "left": r"\b(?:on the |at the |in the )?left(?:[- ]hand)?(?: side| column| half| block| part)?\b|左(?:侧|边|栏|面|半边)?(?:的|那个)?",
    "right": r"\b(?:on the |at the |in the )?right(?:[- ]hand)?(?: side| column| half| block| part)?\b|右(?:侧|边|栏|面|半边)?(?:的|那个)?",
    "top": r"\b(?:at the |on the |in the )?(?:top|upper)(?: half| part| block)?\b|上(?:方|部|半部分?)(?:的|那个)?|最上面的?",
    "bottom": r"\b(?:at the |on the |in the )?(?:bottom|lower)(?: half| part| block)?\b|下(?:方|部|半部分?)(?:的|那个)?|最下面的?",
}  # fmt: skip
_NUMBERS = {
    1: r"^(?:first|1st)\b|^第[一1]个?(?:处|项)?(?:的)?",
    2: r"^(?:second|2nd)\b|^第[二2]个?(?:处|项)?(?:的)?",
    3: r"^(?:third|3rd)\b|^第[三3]个?(?:处|项)?(?:的)?",
    -1: r"^last\b|^最后(?:一)?个?(?:处|项)?(?:的)?",
}
_KINDS = (
    (Kind.DATE, re.compile(r"^\s*when\b|\bwhat date\b|\bwhich date\b|\bon which day\b|什么时候|哪天|哪一天|何时|几号|日期", re.IGNORECASE)),
    (Kind.AMOUNT, re.compile(r"\bhow much\b|多少钱|多少元|金额|价格", re.IGNORECASE)),
    (Kind.COUNT, re.compile(r"\bhow many\b|几(?:个|件|张|台|箱|份)", re.IGNORECASE)),
    (Kind.PHONE, re.compile(r"\bphone\b|\btelephone\b|电话", re.IGNORECASE)),
    (Kind.EMAIL, re.compile(r"\be-?mail\b|邮箱", re.IGNORECASE)),
    (Kind.PERCENT, re.compile(r"\bpercent|\brate\b|百分|税率|比例", re.IGNORECASE)),
    (Kind.NUMBER, re.compile(r"\bnumber\b|\bcode\b|\bno\.?$|号码|编号|号$|代码", re.IGNORECASE)),
)  # fmt: skip
_OF = re.compile(
    r"^(?P<what>.+?)\s+(?:of|for|on|in|at|from|under|next to|beside)\s+(?:the\s+)?(?P<of>.+)$", re.IGNORECASE
)
_OF_ZH = re.compile("^(?P<of>.+?)(?:的|上的|中的|里的)(?P<what>[^的]+)$")
_GENITIVE = re.compile(r"^(?P<of>.+?)['’]s\s+(?P<what>.+)$")
KNOWN = 0.9
"""From this likeness on a phrase names a field."""


def understand(text: str, table: tuple[Field, ...] = FIELDS) -> Asked:
    """What a question asks for. Any text is a question; one that is not understood has its words as phrase."""
    plain = " ".join(unicodedata.normalize("NFKC", text[:MAX_LENGTH]).split())
    phrase = _phrase(plain)
    everything = bool(_EVERYTHING.search(plain))
    whole = phrase
    field, literal = _named(phrase, table)
    side = number = None
    if not literal:
        phrase, side, number = _position(phrase)
        field, literal = _named(phrase, table)
    what, of = phrase, ""
    if not literal:
        what, of, field = _owned(phrase, table)
        if field is None:
            field = next((f for f in table if any(_says(plain, asked) for asked in f.asked)), None)
            if field is not None:
                what, of = field.wordings[0], ""
            else:
                what, of, field = _compound(phrase, table) or (what, of, None)
        what, of, field = _untangled(what, of, field, table)
    kind = _kind(plain, what, field)
    targets = tuple(dict.fromkeys((what, *(field.wordings if field else ()))))
    return Asked(text, whole, targets, field, kind, of, side, number, everything and not literal)


def _phrase(text: str) -> str:
    text = text.strip(" \t\"'“”‘’")
    text = _FRAME_ZH.sub("", _FRAME_EN.sub("", text))
    text = text.rstrip("?？!！。. :：")
    text = _ASK_EN.sub("", text)
    before = None
    while text != before:
        before = text
        text = _TAIL_EN.sub("", _REST_EN.sub("", text)).strip(" ?？.。!！:：\"'“”")
    shorter = _TAIL_ZH.sub("", text)
    return (shorter or text) if has_cjk(text) else text


def _named(phrase: str, table: tuple[Field, ...]) -> tuple[Field | None, bool]:
    """The field whose label the whole phrase is."""
    if not phrase:
        return None, False
    scored = [(max((_equal(phrase, w) for w in f.wordings), default=0.0), f) for f in table]
    score, field = max(scored, key=lambda pair: pair[0])
    return (field, True) if score >= KNOWN else (None, False)


def _equal(phrase: str, wording: str) -> float:
    """Likeness of two phrases as wholes: no credit for one inside the other."""
    a, b = solid(phrase), solid(wording)
    if a == b:
        return 1.0
    if not has_cjk(a) and min(len(a), len(b)) >= 6 and abs(len(a) - len(b)) <= 2:
        return fuzz.ratio(a, b) / 100
    return 0.0


def _position(phrase: str) -> tuple[str, str | None, int | None]:
    """Takes "left", "second" and the like out of a phrase."""
    side = number = None
    for name, pattern in _SIDES.items():
        edge = rf"^(?:{pattern})|(?:{pattern})$"
        if re.search(edge, phrase, re.IGNORECASE):
            rest = _tidy(re.sub(edge, " ", phrase, count=1, flags=re.IGNORECASE))
            if rest:
                phrase, side = rest, name
                break
    for value, pattern in _NUMBERS.items():
        if re.search(pattern, phrase, re.IGNORECASE):
            rest = _tidy(re.sub(pattern, " ", phrase, count=1, flags=re.IGNORECASE))
            if rest:
                phrase, number = rest, value
                break
    return phrase, side, number


def _tidy(text: str) -> str:
    text = re.sub(r"\s+", " ", text).strip(" ,，的")
    text = re.sub(r"^(?:the|of the|of|on|in)\s+", "", text, flags=re.IGNORECASE)
    return re.sub(r"\s+(?:on|at|in|of)(?: the)?$", "", text, flags=re.IGNORECASE)


def _owned(phrase: str, table: tuple[Field, ...]) -> tuple[str, str, Field | None]:
    """Splits "unit price of paper" and "复印纸的单价" into what is asked for and what it belongs to."""
    splits = []
    for pattern in (_GENITIVE, _OF_ZH, _OF):
        match = pattern.match(phrase)
        if match:
            splits.append((match["what"].strip(), match["of"].strip()))
    for what, of in splits:
        field, known = _named(what, table)
        if known:
            return what, of, field
    return (*splits[0], None) if splits else (phrase, "", None)


def _compound(phrase: str, table: tuple[Field, ...]) -> tuple[str, str, Field] | None:
    """The same without "of" (销售方电话, "seller phone number"): the longest field name at the end."""
    if has_cjk(phrase):
        endings = [
            (len(wording), wording, field)
            for field in table
            for wording in field.wordings
            if has_cjk(wording) and phrase.endswith(wording) and len(wording) < len(phrase)
        ]
        if endings:
            length, wording, field = max(endings, key=lambda ending: ending[0])
            return wording, phrase[:-length].rstrip("的 "), field
        return None
    words = phrase.split()
    for count in range(1, len(words)):
        known, certain = _named(" ".join(words[count:]), table)
        if known is not None and certain:
            return " ".join(words[count:]), " ".join(words[:count]), known
    return None


def _untangled(
    what: str, of: str, field: Field | None, table: tuple[Field, ...]
) -> tuple[str, str, Field | None]:
    """The name of the seller is the seller, and the date of the invoice is the invoice date."""
    if not of or field is None:
        return what, of, field
    party, sure = best(of, table)
    if party is field and sure >= KNOWN:  # "total amount due" is one thing
        return f"{of}{what}" if has_cjk(of) else f"{of} {what}", "", field
    if field.name == "name" and party is not None and party.kind is Kind.COMPANY and sure >= KNOWN:
        return of, "", party
    if solid(of) in _PAPERS:
        joined = of + what if has_cjk(of) else f"{of} {what}"
        known, literal = _named(joined, table)
        return (joined, "", known) if literal else (what, "", field)
    return what, of, field


_PAPERS = frozenset(
    solid(word)
    for word in (
        *(
            "invoice",
            "receipt",
            "bill",
            "document",
            "form",
            "order",
            "page",
            "statement",
            "ticket",
            "purchase",
        ),
        *("发票", "收据", "小票", "单据", "订单", "文档", "文件", "表单", "账单", "图片", "票据", "页面"),
    )
)


def _says(question: str, asked: str) -> bool:
    if has_cjk(asked):
        return asked in question
    want, have = tokens(asked), tokens(question)
    return any(have[i : i + len(want)] == want for i in range(len(have) - len(want) + 1))


def _kind(question: str, what: str, field: Field | None) -> Kind:
    if field is not None:
        return field.kind
    for kind, pattern in _KINDS:
        if pattern.search(question) or pattern.search(what):
            return kind
    return Kind.TEXT
