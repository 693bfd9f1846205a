"""Scores of the next token -> the token, for rows that may each want it another way.

Greedy unless a retry asks for more. Never a repetition penalty: it punishes what tables and totals must
repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Decoding:
    """How tokens are chosen."""

    no_repeat: int | None = None
    """No run of so many tokens may come a second time within the window."""
    window: int = 192
    temperature: float = 0.0
    """0: the most likely token."""
    seed: int = 0


GREEDY = Decoding()


def pick(
    logits: torch.Tensor, rows: Sequence[tuple[Decoding, Sequence[int]]]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The next token of each row and its log-probability under the model's own scores.

    `logits`: (rows, vocabulary); `rows`: how each is decoded and its tokens so far. Nothing as large as the
    vocabulary is kept.
    """
    scores = logits.float()
    tokens = scores.argmax(-1)
    for number, (decoding, ids) in enumerate(rows):
        if decoding != GREEDY:
            tokens[number] = _pick_one(scores[number], decoding, ids)
    chosen = scores.gather(1, tokens[:, None])[:, 0]
    return tokens, chosen - scores.logsumexp(-1)


def _pick_one(scores: torch.Tensor, decoding: Decoding, ids: Sequence[int]) -> int:
    banned = repeats(ids, decoding.no_repeat, decoding.window) if decoding.no_repeat else set()
    if banned:
        scores = scores.clone()
        scores[list(banned)] = -torch.inf
    if not decoding.temperature:
        return int(scores.argmax())
    shares = (scores.cpu() / decoding.temperature).softmax(-1)
    generator = torch.Generator().manual_seed(decoding.seed + len(ids))
    return int(torch.multinomial(shares, 1, generator=generator))


def repeats(ids: Sequence[int], size: int, window: int) -> set[int]:
    """Tokens that would complete a run of `size` tokens that stands within the last `window` tokens
    already."""
    recent = list(ids[-window:])
    tail = recent[len(recent) - size + 1 :]
    if len(recent) < size:
        return set()
    return {
        recent[start + size - 1]
        for start in range(len(recent) - size + 1)
        if recent[start : start + size - 1] == tail
    }
