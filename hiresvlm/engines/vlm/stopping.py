"""When an answer is over, and whether to believe that it is: end token, limit, loops, refusals."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from hiresvlm.datatypes import Stop

TextOf = Callable[[Sequence[int]], str]
"""Text of tokens."""

CHECK_EVERY = 16
"""Tokens between two looks at the tail."""
PERIODS = 64
"""Longest period of a loop, in tokens."""
MIN_REPEATED = 96
"""A loop repeats at least so many tokens..."""
MIN_PERIODS = 8
"""...and its period at least so many times."""
LEADER_REPEATED = 400
"""The same for dots, dashes and blanks, of which a table of contents has whole lines."""
MELTDOWN_WINDOW = 512
MELTDOWN_SIZE = 6
MELTDOWN_DISTINCT = 0.35
"""Share of distinct runs of six tokens in the window below which a text counts up or down for ever."""
IDLE_TOKENS = 256
"""An answer that shows nothing for so many tokens makes no progress."""

_LEADERS = frozenset(" \t\n.…·•_-–—=*~#|+:。．・　")


class Ending(NamedTuple):
    """An answer ends here."""

    stop: Stop
    keep: int
    """Tokens that belong to the text: of a loop one period, of an ending its end token not."""


class Limits(NamedTuple):
    """What one answer may be."""

    tokens: int
    """It ends here at the latest."""
    inked: int | None = None
    """Characters that the ink of the images can hold; None: not known."""


def ending(ids: Sequence[int], ends: Collection[int], limits: Limits, text_of: TextOf) -> Ending | None:
    """Whether the tokens so far are a whole answer."""
    if ids[-1] in ends:
        return Ending(Stop.EOS, len(ids) - 1)
    if len(ids) >= limits.tokens:
        return Ending(Stop.LENGTH, len(ids))
    if len(ids) % CHECK_EVERY:
        return None
    kept = loop(ids, text_of)
    if kept is None and limits.inked is not None and len(ids) > limits.inked and melted(ids):
        kept = max(0, len(ids) - MELTDOWN_WINDOW)
    if kept is None and len(ids) >= IDLE_TOKENS and not text_of(ids[-IDLE_TOKENS:]).strip():
        kept = len(ids) - IDLE_TOKENS
    return None if kept is None else Ending(Stop.LOOP, kept)


def loop(ids: Sequence[int], text_of: TextOf) -> int | None:
    """Tokens to keep when the tail repeats itself exactly: up to the end of the first period. None: it does
    not."""
    tail = ids[-(LEADER_REPEATED + 2 * PERIODS) :]
    size = len(tail)
    for period in range(1, PERIODS + 1):
        if size - period < MIN_REPEATED:
            return None
        repeated = 0
        while repeated < size - period and tail[size - 1 - repeated] == tail[size - 1 - repeated - period]:
            repeated += 1
        if repeated < max(MIN_PERIODS * period, MIN_REPEATED):
            continue
        if repeated < LEADER_REPEATED and set(text_of(tail[size - period :])) <= _LEADERS:
            continue
        return len(ids) - repeated
    return None


def melted(ids: Sequence[int]) -> bool:
    """Whether the tail says nearly the same again and again: "row 1, row 2, row 3"."""
    if len(ids) < MELTDOWN_WINDOW:
        return False
    tail = ids[-MELTDOWN_WINDOW:]
    runs = [tuple(tail[n : n + MELTDOWN_SIZE]) for n in range(len(tail) - MELTDOWN_SIZE + 1)]
    return len(set(runs)) < MELTDOWN_DISTINCT * len(runs)


_REFUSALS = re.compile(
    r"""^\W*(?:
      (?:i['’]?m\s+|i\s+am\s+)?(?:sorry|afraid)\b.*\b(?:can(?:no|')?t|unable|not\s+able|could\s*n[o'’]t|no\s+(?:text|image))
    | i\s+(?:can\s*not|cannot|can['’]t|could\s+not|couldn['’]t|am\s+(?:not\s+able|unable))\b.*
      \b(?:read|see|view|transcribe|extract|make\s+out|process|access|assist|help|identify|provide|recogni[sz]e)
    | (?:unfortunately\W+)?(?:the|this)\s+(?:image|picture|photo|text|page|document|scan)s?\b.*
      \b(?:too\s+(?:blurry|blurred|small|dark|low|faint)|illegible|unreadable|not\s+(?:legible|readable|clear\s+enough)
        |cannot\s+be\s+read|can['’]t\s+be\s+read|(?:is|are)\s+(?:very\s+)?(?:blurry|blurred)
        |does\s+not\s+contain\s+any|contains?\s+no\s+(?:readable\s+|legible\s+)?text)
    | as\s+an\s+ai\b
    | (?:非常|很|十分)?(?:抱歉|对不起|不好意思).*(?:无法|不能|没有办法|看不清|未能)
    | (?:我|本)?(?:无法|不能|没有办法)(?:识别|辨认|读取|看清|查看|转录|提取|处理|提供|回答)
    | (?:该|这|此|本)?(?:张|幅)?(?:图像|图片|照片|图中|文字|页面|文档).*
      (?:太模糊|过于模糊|模糊不清|不清晰|看不清|无法(?:识别|辨认|读取|看清)|没有(?:可读|任何)?的?(?:文字|文本))
    )""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)

MAX_REFUSAL = 240
"""Characters; a longer answer transcribes something."""
MIN_INK_RATIO = 5.0
"""A page that prints such a sentence has ink for it and little more. The estimate of the ink lies up to
four times above the truth, so only an image with at least so many times the characters of the answer was
not read."""


def refusal(text: str, inked_characters: int | None) -> bool:
    """Whether an answer declines to read rather than reads: it is nothing but such a sentence, and there is
    more.

    Without an estimate of the ink there is no way to tell, and the answer is taken as it is.
    """
    text = text.strip()
    if not text or len(text) > MAX_REFUSAL or inked_characters is None:
        return False
    return inked_characters > MIN_INK_RATIO * len(text) and _REFUSALS.match(text) is not None
