"""When an answer is over: its end token, its limit, or a loop."""

from __future__ import annotations

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
    size = len(ids)
    for period in range(1, PERIODS + 1):
        if size - period < MIN_REPEATED:
            return None
        repeated = 0
        while repeated < size - period and ids[size - 1 - repeated] == ids[size - 1 - repeated - period]:
            repeated += 1
        if repeated < max(MIN_PERIODS * period, MIN_REPEATED):
            continue
        if repeated < LEADER_REPEATED and set(text_of(ids[size - period :])) <= _LEADERS:
            continue
        return size - repeated
    return None


def melted(ids: Sequence[int]) -> bool:
    """Whether the tail says nearly the same again and again: "row 1, row 2, row 3"."""
    if len(ids) < MELTDOWN_WINDOW:
        return False
    tail = ids[-MELTDOWN_WINDOW:]
    runs = [tuple(tail[n : n + MELTDOWN_SIZE]) for n in range(len(tail) - MELTDOWN_SIZE + 1)]
    return len(set(runs)) < MELTDOWN_DISTINCT * len(runs)
