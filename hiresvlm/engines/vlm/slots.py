"""The rows that are being decoded: newcomers join between two steps, finished rows leave.

`generate` of transformers runs a batch until its longest answer ends, and its continuous batching knows no
images. Here newcomers are prefilled as a left-padded batch of their own and appended to the running one.
That is exact: keys are cached already rotated, so a column may move, and padding is masked. Positions are
kept for each row, because the model's own `rope_deltas` belongs to whoever called last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from hiresvlm.engines.vlm.inputs import Prompt
from hiresvlm.engines.vlm.kv import layers, roomy_cache
from hiresvlm.engines.vlm.positions import positions_of
from hiresvlm.engines.vlm.sampling import GREEDY, Decoding, pick

if TYPE_CHECKING:
    from transformers import DynamicCache

    from hiresvlm.engines.vlm.cache import Features
    from hiresvlm.engines.vlm.loading import Loaded
    from hiresvlm.engines.vlm.vision import VisionEncoder


@dataclass(slots=True, eq=False)
class Row:
    """One answer that is being written."""

    prompt: Prompt
    decoding: Decoding = GREEDY
    ids: list[int] = field(default_factory=list)
    """Tokens so far; the one that ends the answer is among them."""
    logprobs: list[float] = field(default_factory=list)
    """Natural logarithm of the model's probability of each token, before any change to its scores."""


@dataclass(slots=True, eq=False)
class _State:
    """Tensors of a batch, rows first."""

    cache: DynamicCache
    mask: torch.Tensor
    """(rows, columns): 1 where a column holds a token of the row, 0 for padding."""
    position: torch.Tensor
    """(rows,): rotary position of the next token, the same on all axes."""
    last: torch.Tensor
    """(rows,): the token that was chosen last and is not in the cache yet."""


class Slots:
    """A running batch. Every method may raise `torch.OutOfMemoryError`; then call `clear`."""

    def __init__(self, loaded: Loaded, encoder: VisionEncoder) -> None:
        self._model = loaded.model
        self._device = loaded.device
        self._positions = positions_of(loaded)
        self._pad = loaded.tokenizer.pad_token_id or 0
        self._encoder = encoder
        self._state: _State | None = None
        self.rows: list[Row] = []

    @property
    def columns(self) -> int:
        """Tokens that each row of the cache has room for."""
        return 0 if self._state is None else self._state.mask.shape[1]

    @torch.inference_mode()
    def join(self, rows: Sequence[Row], features: Sequence[Sequence[Features]]) -> None:
        """Prefill rows together and give each its first token. `features`: those of each row's images."""
        state = self._prefill(rows, features)
        self._state = state if self._state is None else _appended(self._state, state)
        self.rows.extend(rows)

    @torch.inference_mode()
    def step(self) -> None:
        """One more token for every row."""
        state = self._state
        assert state is not None
        state.mask = torch.nn.functional.pad(state.mask, (0, 1), value=1)
        output = self._model(
            input_ids=state.last[:, None],
            attention_mask=state.mask,
            position_ids=self._positions.step(state.position),
            cache=state.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        state.position = state.position + 1
        state.last = self._choose(output.logits[:, -1], self.rows)

    @torch.inference_mode()
    def leave(self, rows: Sequence[Row]) -> None:
        """Take rows out, and the columns that no other row uses."""
        gone = set(map(id, rows))
        kept = [n for n, row in enumerate(self.rows) if id(row) not in gone]
        self.rows = [self.rows[n] for n in kept]
        if not kept:
            self._state = None
            return
        state = self._state
        assert state is not None
        index = torch.tensor(kept, device=self._device)
        state.mask, state.position, state.last = state.mask[index], state.position[index], state.last[index]
        unused = int(state.mask.any(0).to(torch.uint8).argmax())
        state.mask = state.mask[:, unused:]
        for layer in layers(state.cache):
            # One layer at a time, so that no two copies of the whole cache are in memory.
            layer.put(layer.keys[index, :, unused:], layer.values[index, :, unused:])

    def clear(self) -> list[Row]:
        """Drop everything; the rows that were in work."""
        rows, self.rows, self._state = self.rows, [], None
        return rows

    def _prefill(self, rows: Sequence[Row], features: Sequence[Sequence[Features]]) -> _State:
        width = max(len(row.prompt) for row in rows)
        ids = torch.full((len(rows), width), self._pad, dtype=torch.long)
        mask = torch.zeros((len(rows), width), dtype=torch.long)
        for number, row in enumerate(rows):
            ids[number, width - len(row.prompt) :] = torch.tensor(row.prompt.ids)
            mask[number, width - len(row.prompt) :] = 1
        flat = [one for row in features for one in row]
        counted, following = self._positions.prompt([row.prompt for row in rows], ids, mask)
        mask = mask.to(self._device)
        cache = roomy_cache(self._model.config)
        output = self._model(
            input_ids=ids.to(self._device),
            attention_mask=mask,
            mm_encoder_outputs=self._encoder.as_output(flat) if flat else None,
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
            **{name: tensor.to(self._device) for name, tensor in counted.items()},
        )
        last = self._choose(output.logits[:, -1], rows)
        return _State(cache, mask, following.to(self._device), last)

    def _choose(self, logits: torch.Tensor, rows: Sequence[Row]) -> torch.Tensor:
        tokens, logprobs = pick(logits, [(row.decoding, row.ids) for row in rows])
        both = torch.stack((tokens.double(), logprobs.double())).tolist()  # the one wait for the device
        for row, token, logprob in zip(rows, *both, strict=True):
            row.ids.append(int(token))
            row.logprobs.append(logprob)
        return tokens


def _appended(first: _State, second: _State) -> _State:
    """Two batches as one: the narrower is padded on the left."""
    width = max(first.mask.shape[1], second.mask.shape[1])
    mask = torch.cat((_widened(first.mask, width, 1), _widened(second.mask, width, 1)))
    for mine, new in zip(layers(first.cache), layers(second.cache), strict=True):
        keys = torch.cat((_widened(mine.keys, width, 2), _widened(new.keys, width, 2)))
        mine.put(keys, torch.cat((_widened(mine.values, width, 2), _widened(new.values, width, 2))))
        new.drop()
    position = torch.cat((first.position, second.position))
    return _State(first.cache, mask, position, torch.cat((first.last, second.last)))


def _widened(tensor: torch.Tensor, width: int, axis: int) -> torch.Tensor:
    """Zeros in front, along an axis, up to a width."""
    missing = width - tensor.shape[axis]
    if not missing:
        return tensor
    after = 2 * (tensor.dim() - axis - 1)
    return torch.nn.functional.pad(tensor, (0,) * after + (missing, 0))
