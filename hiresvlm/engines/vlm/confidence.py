"""Token probabilities -> confidence of each line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hiresvlm.datatypes import Line
from hiresvlm.engines.vlm.stopping import TextOf


@dataclass(frozen=True, slots=True)
class Written:
    """Tokens of a text with their log-probabilities."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]


def lines_of(text: str, parts: Sequence[Written], text_of: TextOf, chunk: int = 0) -> tuple[Line, ...]:
    """The lines of a text that `parts`, joined by newlines, were decoded to.

    `Line.confidence` is the geometric mean of the probabilities of its tokens, `Line.weakest` the least of
    them. A token that holds the end of one line and the start of the next counts for both.
    """
    by_line: list[list[float]] = []
    for part in parts:
        by_line.append([])
        for token, logprob in zip(part.ids, part.logprobs, strict=True):
            first, *more = text_of((token,)).split("\n")
            if first or more:
                by_line[-1].append(logprob)
            by_line.extend([logprob] if piece else [] for piece in more)
    shown = text.split("\n")
    if len(shown) != len(by_line):  # a character that two tokens share may hide a line break: judge the whole
        by_line = [[logprob for part in parts for logprob in part.logprobs]] * len(shown)
    return tuple(
        _line(line, logprobs, chunk) for line, logprobs in zip(shown, by_line, strict=True) if line.strip()
    )


def _line(text: str, logprobs: Sequence[float], chunk: int) -> Line:
    if not logprobs or not all(map(math.isfinite, logprobs)):
        return Line(text, chunk=chunk)
    mean, least = math.exp(sum(logprobs) / len(logprobs)), math.exp(min(logprobs))
    return Line(text, None, mean, chunk, weakest=least)
