"""Rotary positions of prompts and of the tokens that follow them, kept for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch

from hiresvlm.engines.vlm.inputs import Prompt, grid_thw, token_types

if TYPE_CHECKING:
    from hiresvlm.engines.vlm.loading import Loaded


class Positions(Protocol):
    """How a model counts."""

    def prompt(
        self, prompts: Sequence[Prompt], ids: torch.Tensor, mask: torch.Tensor
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Inputs of a left-padded batch of prompts, `ids` and `mask` (rows, columns), and the next position
        of each row (rows,)."""
        ...

    def step(self, position: torch.Tensor) -> torch.Tensor:
        """Positions (rows,) of one new token each in the form of the model."""
        ...


class OneAxis:
    """Tokens are counted, whatever they are; padding does not count."""

    def prompt(
        self, prompts: Sequence[Prompt], ids: torch.Tensor, mask: torch.Tensor
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        return {"position_ids": (mask.cumsum(1) - 1).clamp(min=0)}, mask.sum(1)

    def step(self, position: torch.Tensor) -> torch.Tensor:
        return position[:, None]


class ThreeAxes:
    """M-RoPE of the Qwen families: time, down and across (Qwen2-VL, arXiv 2409.12191)."""

    def __init__(self, loaded: Loaded) -> None:
        network: Any = loaded.model.model
        self._index = network.get_rope_index
        self._image_token = loaded.image_token

    def prompt(
        self, prompts: Sequence[Prompt], ids: torch.Tensor, mask: torch.Tensor
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Positions are those of the prompts with whole images, of which pruned ones have no column here."""
        whole = max(len(prompt) + prompt.pruned for prompt in prompts)
        full = torch.full((len(prompts), whole), -1)  # padding: no token
        full_mask = torch.zeros_like(full)
        columns = []
        for number, prompt in enumerate(prompts):
            first = whole - len(prompt) - prompt.pruned
            places = range(len(prompt)) if prompt.places is None else prompt.places
            columns.append(torch.tensor(places) + first)
            full[number, first:] = self._image_token
            full[number, columns[-1]] = torch.tensor(prompt.ids)
            full_mask[number, first:] = 1
        images = [image for prompt in prompts for image in prompt.images]
        # On the CPU: it walks through the rows in Python.
        position, delta = self._index(
            full,
            token_types(full, self._image_token),
            image_grid_thw=grid_thw(images, ids.device) if images else None,
            attention_mask=full_mask,
        )
        kept = torch.zeros((3, *ids.shape), dtype=position.dtype)
        for number, own in enumerate(columns):
            kept[:, number, ids.shape[1] - len(own) :] = position[:, number, own]
        types = token_types(ids, self._image_token)
        return {"position_ids": kept, "mm_token_type_ids": types}, full_mask.sum(1) + delta[:, 0]

    def step(self, position: torch.Tensor) -> torch.Tensor:
        return position[None, :, None].expand(3, -1, 1)


def positions_of(loaded: Loaded) -> Positions:
    """The way in which a model counts."""
    return ThreeAxes(loaded) if hasattr(loaded.model.model, "get_rope_index") else OneAxis()
