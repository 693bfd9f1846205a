"""Draft-verify decoding of one answer: a cheap transcript says what comes next, and the model checks many
tokens of it in one forward. A greedy answer stays what it is: only the model's own choices are kept.

An experiment, not a part of engine `vlm`: it works on one request at a time, and 16 slots write more tokens
a second (`hiresvlm bench draft` measures both). Speculative decoding with a text in place of a second model
is prompt lookup (Saxena 2023, github.com/apoorvumang/prompt-lookup-decoding); with the transcript of another
reader it is HSD (arXiv 2602.12957). The candidate generator of transformers is not used: it takes the first
match of an n-gram instead of the nearest, and breaks on prompts with images.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import torch

from hiresvlm.engines.vlm.kv import roomy_cache
from hiresvlm.engines.vlm.positions import positions_of
from hiresvlm.engines.vlm.sampling import GREEDY, pick
from hiresvlm.engines.vlm.slots import Row

if TYPE_CHECKING:
    from transformers import DynamicCache

    from hiresvlm.engines.vlm.inputs import Prompt
    from hiresvlm.engines.vlm.loading import Loaded
    from hiresvlm.engines.vlm.vision import VisionEncoder

CANDIDATES: Final = 12
"""Tokens proposed for one forward at most. On a CPU a forward of 13 tokens of nano takes twice as long as one
of a single token (1.4 and 2.8 ms), so fewer are proposed where they are refused."""
LONGEST: Final = 4
"""Tokens of the suffix that is looked up, at most..."""
SHORTEST: Final = 2
"""...and at least: single tokens stand everywhere. Only an answer of one token is looked up by one."""


class Candidates:
    """Follows an answer through a draft and proposes what comes next.

    The longest suffix of the answer that the draft holds says where it goes on: of several places the one
    nearest to where the last one would be by now. A suffix that the draft does not hold is looked up in the
    answer itself (rows of a table, repeated labels). When that fails too, the token that differed is taken to
    stand for one of the draft. Two more tokens than twice those that were right the last time are proposed.
    """

    def __init__(self, draft: Sequence[int]) -> None:
        self._draft = list(draft)
        self._places: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for length in range(1, LONGEST + 1):
            for end in range(length, len(self._draft) + 1):
                self._places[tuple(self._draft[end - length : end])].append(end)
        self._own: dict[tuple[int, ...], int] = {}
        self._at = 0
        self._known = 0

    def propose(self, written: Sequence[int]) -> list[int]:
        """The next tokens, perhaps none. `written`: the answer so far, that of the last call and more."""
        new = len(written) - self._known
        self._at += new
        size = min(CANDIDATES, 2 * new)  # one of the new tokens was not proposed
        suffixes = [
            tuple(written[-length:])
            for length in range(min(LONGEST, len(written)), min(SHORTEST, len(written)) - 1, -1)
        ]
        found = next((places for suffix in suffixes if (places := self._places.get(suffix))), None)
        if found is not None:
            self._at = _nearest(found, self._at)
        own = next((self._own[suffix] for suffix in suffixes if suffix in self._own), None)
        self._note(written)
        if found is None and own is not None:
            return list(written[own : own + size])
        return self._draft[self._at : self._at + size]

    def _note(self, written: Sequence[int]) -> None:
        """Remember what follows each run of the answer, the latest place of each."""
        for end in range(max(self._known, SHORTEST), len(written)):
            for length in range(SHORTEST, min(LONGEST, end) + 1):
                self._own[tuple(written[end - length : end])] = end
        self._known = len(written)


class Decoder:
    """Writes one answer at a time with a loaded model."""

    def __init__(self, loaded: Loaded, encoder: VisionEncoder) -> None:
        self._model = loaded.model
        self._device = loaded.device
        self._positions = positions_of(loaded)
        self._encoder = encoder
        self.forwards = 0
        """Calls of the language model so far, those that prefill among them."""

    @torch.inference_mode()
    def write(self, row: Row, candidates: Candidates, over: Callable[[Row], bool]) -> None:
        """Fill `row.ids` and `row.logprobs` with the model's greedy answer, as `Slots` with one row would.

        `over` is asked after every token; what the same forward gave beyond its end is dropped.
        """
        cache, position, scores = self._prefill(row.prompt)
        proposed: list[int] = []
        while True:
            tokens, logprobs = pick(scores, [(GREEDY, ())] * len(scores))
            accepted = 0
            for token, logprob in zip(tokens.tolist(), logprobs.tolist(), strict=True):
                row.ids.append(token)
                row.logprobs.append(logprob)
                if over(row):
                    return
                if accepted == len(proposed) or proposed[accepted] != token:
                    break
                accepted += 1
            cache.crop(accepted - len(proposed))
            position += accepted
            proposed = candidates.propose(row.ids)
            scores = self._forward(cache, position, [row.ids[-1], *proposed])
            position += 1

    @torch.inference_mode()
    def margin(self, prompt: Prompt, written: Sequence[int]) -> float:
        """Difference of the two best scores for the token after `written`: close to 0, the model is
        undecided."""
        cache, position, scores = self._prefill(prompt)
        if written:
            scores = self._forward(cache, position, written)
        first, second = scores[-1].float().topk(2).values.tolist()
        return float(first - second)

    def _prefill(self, prompt: Prompt) -> tuple[DynamicCache, int, torch.Tensor]:
        """Cache, position of the next token, scores for it (1, vocabulary)."""
        ids = torch.tensor([prompt.ids])
        mask = torch.ones_like(ids)
        counted, following = self._positions.prompt([prompt], ids, mask)
        features = self._encoder.encode(prompt.images)
        cache = roomy_cache(self._model.config)
        output = self._model(
            input_ids=ids.to(self._device),
            attention_mask=mask.to(self._device),
            mm_encoder_outputs=self._encoder.as_output(features) if features else None,
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
            **{name: tensor.to(self._device) for name, tensor in counted.items()},
        )
        self.forwards += 1
        return cache, int(following[0]), output.logits[0]

    def _forward(self, cache: DynamicCache, position: int, ids: Sequence[int]) -> torch.Tensor:
        """Append tokens to the cache; the scores after each, (tokens, vocabulary)."""
        places = torch.arange(position, position + len(ids), device=self._device)
        output = self._model(
            input_ids=torch.tensor([ids], device=self._device),
            attention_mask=torch.ones(
                (1, cache.get_seq_length() + len(ids)), dtype=torch.long, device=self._device
            ),
            # A row for each token, which is how positions are counted; then one row of all.
            position_ids=self._positions.step(places).transpose(-1, -2),
            cache=cache,
            use_cache=True,
        )
        self.forwards += 1
        scores: torch.Tensor = output.logits[0]
        return scores


def _nearest(places: Sequence[int], wanted: int) -> int:
    """The entry of a sorted list that is closest to a number."""
    after = bisect_left(places, wanted)
    return min(places[max(0, after - 1) : after + 1], key=lambda place: abs(place - wanted))
