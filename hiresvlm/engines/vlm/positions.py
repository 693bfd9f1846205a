"""Rotary positions of prompts and of the tokens that follow them, kept for each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch

from hiresvlm.engines.vlm.inputs import ImageInput, grid_thw, token_types

if TYPE_CHECKING:
    from hiresvlm.engines.vlm.loading import Loaded


class Positions(Protocol):
    """How a model counts."""

    def prompt(
        self, ids: torch.Tensor, mask: torch.Tensor, images: Sequence[ImageInput]
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Inputs of a left-padded batch of prompts (rows, columns), and the next position of each row
        (rows,)."""
        ...

    def step(self, position: torch.Tensor) -> torch.Tensor:
        """Positions (rows,) of one new token each in the form of the model."""
        ...


class OneAxis:
    """Tokens are counted, whatever they are; padding does not count."""

    def prompt(
        self, ids: torch.Tensor, mask: torch.Tensor, images: Sequence[ImageInput]
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
        self, ids: torch.Tensor, mask: torch.Tensor, images: Sequence[ImageInput]
    ) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        types = token_types(ids, self._image_token)
        # On the CPU: it walks through the rows in Python.
        grid = grid_thw(images, ids.device) if images else None
        position, delta = self._index(ids, types, image_grid_thw=grid, attention_mask=mask)
        return {"position_ids": position, "mm_token_type_ids": types}, mask.sum(1) + delta[:, 0]

    def step(self, position: torch.Tensor) -> torch.Tensor:
        return position[None, :, None].expand(3, -1, 1)


def positions_of(loaded: Loaded) -> Positions:
    """The way in which a model counts."""
    return ThreeAxes(loaded) if hasattr(loaded.model.model, "get_rope_index") else OneAxis()
