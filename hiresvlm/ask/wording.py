"""Text as it is compared: one spelling for what means the same, and how like two phrases are."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from rapidfuzz import fuzz

CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_CJK = re.compile(f"[{CJK}]")
_TOKEN = re.compile(f"[{CJK}]|[a-z]+(?:'s)?|[0-9]+(?:[.,:/-][0-9]+)*|#")

_SAME = {
    "no": "number", "nos": "number", "num": "number", "nr": "number", "id": "number", "#": "number",
    "code": "number", "tel": "phone", "telephone": "phone", "mobile": "phone", "ph": "phone", "qty": "quantity",
    "amt": "amount", "addr": "address", "inv": "invoice", "ref": "reference", "acct": "account", "acc": "account",
    "nett": "net", "incl": "inclusive", "including": "inclusive", "includes": "inclusive", "excl": "exclusive",
    "excluding": "exclusive", "exc": "exclusive", "inc": "inclusive", "e-mail": "email", "vat": "tax", "gst": "tax",
}  # fmt: skip
"""Abbreviations -> the word. Applied to questions and labels alike."""

_FILLERS = frozenset(("of", "the", "a", "an", "rm", "s"))
"""Words that a label may have or not."""

_SAME_CHINESE = (
    ("号码", "号"),
    ("编号", "号"),
    ("單號", "号"),
    ("联络", "联系"),
    ("手机", "电话"),
    ("：", ""),
)


def has_cjk(text: str) -> bool:
    return _CJK.search(text) is not None


@lru_cache(maxsize=65536)
def tokens(text: str) -> tuple[str, ...]:
    """Words and numbers in one spelling; each Chinese character is a token of its own."""
    text = unicodedata.normalize("NFKC", text).lower()
    for variant, usual in _SAME_CHINESE:
        text = text.replace(variant, usual)
    found = [_SAME.get(token, token.removesuffix("'s")) for token in _TOKEN.findall(text)]
    return tuple(token for token in found if token not in _FILLERS) or tuple(found)


@lru_cache(maxsize=65536)
def solid(text: str) -> str:
    """The tokens without spaces: OCR loses and invents those."""
    return "".join(tokens(text))


UNLIKE = 55
"""Per cent of likeness below which two phrases are simply different: nothing looks at less."""


def similarity(phrase: str, label: str) -> float:
    """How surely `label` is a wording of `phrase`, 0 to 1.

    1 for equal wording; spelling errors cost as much as they change; words too many in the label cost
    little, words that the label lacks much.
    """
    a, b = solid(phrase), solid(label)
    if not a or not b:
        return 0.0
    if a == b:
        return 1.0
    ratio = fuzz.ratio(a, b, score_cutoff=UNLIKE) / 100
    if len(a) < 4 and not has_cjk(a):  # "tel" and "ten" are no misreadings of each other
        ratio = 0.0
    elif has_cjk(a) and ratio < 0.75:
        ratio *= 0.8
    want, have = tokens(phrase), tokens(label)
    if _inside(want, have):
        return max(ratio, 0.62 + 0.33 * len(a) / len(b))
    if len(a) >= 5 and len(b) > len(a) and not has_cjk(a) and fuzz.partial_ratio(a, b, score_cutoff=90):
        return max(ratio, 0.55 + 0.3 * len(a) / len(b))
    return ratio


def _inside(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Whether all tokens of a phrase stand next to each other in another one."""
    n = len(part)
    return 0 < n <= len(whole) and any(whole[i : i + n] == part for i in range(len(whole) - n + 1))
