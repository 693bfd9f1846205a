"""Pages on which one label stands twice, with different values: which is meant, only its place tells."""

from __future__ import annotations

import random

from hiresvlm.bench.gold.sheet import Sheet
from hiresvlm.bench.gold.words import Words
from hiresvlm.bench.questions.paper import Asked, Document

_LABELS = {
    "en": ("Meter reading", "Room number", "Reference", "Batch", "Pressure", "Weight"),
    "zh": ("表读数", "房间号", "批次", "压力", "重量", "编号"),
}
_ASKED = {
    "en": {
        "left": "What is the {0} on the left?", "right": "What is the {0} on the right?",
        "first": "What is the first {0}?", "second": "What is the second {0}?",
    },
    "zh": {
        "left": "左边的{0}是多少？", "right": "右边的{0}是多少？",
        "first": "第一个{0}是多少？", "second": "第二个{0}是多少？",
    },
}  # fmt: skip


def twins(seed: int, number: int) -> Document:
    """Page `number`: side by side (left, right), or one below the other (first, second); half in each language."""
    rng = random.Random(f"twins/{seed}/{number}")
    words = Words(rng)
    lang = ("en", "zh")[number % 2]
    beside = number // 2 % 2 == 0
    size = rng.choice((26, 30))
    sheet = Sheet.new((1300, 900))
    title = words.en_title() if lang == "en" else words.zh_title()
    sheet.line(80, 90, title, round(1.4 * size))
    label = rng.choice(_LABELS[lang])
    values = [words.number(5), words.number(5)]
    lower = rng.random() < 0.5  # left and right need not be at one height
    places = (
        [(80.0, 260.0), (740.0, 260.0 + (240 if lower else 0))] if beside else [(80.0, 260.0), (80.0, 560.0)]
    )
    if beside and lower and rng.random() < 0.5:  # the right one stands higher
        places = [(80.0, 500.0), (740.0, 260.0)]
    colon = "：" if lang == "zh" else ": "
    for (x, y), value in zip(places, values, strict=True):
        name = words.en_item() if lang == "en" else words.zh_item()
        other = words.en_item() if lang == "en" else words.zh_item()
        sheet.line(x, y, name, size)
        sheet.line(x, y + 2 * size, f"{label}{colon}{value}", size)
        sheet.line(x, y + 4 * size, f"{other}{colon}{words.number(4)}", size)
    sides = ("left", "right") if beside else ("first", "second")
    spoken = label.lower() if lang == "en" else label
    asked = [
        Asked(_ASKED[lang][side].format(spoken), value, "text", side)
        for side, value in zip(sides, values, strict=True)
    ]
    return Document(f"twins-{number}", lang, "twins", sheet, asked)
