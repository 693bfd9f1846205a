"""Keys and values that grow in place: a step writes one column instead of copying all of them."""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache, PreTrainedConfig
from transformers.cache_utils import DynamicLayer

ROOM = 64
"""Columns that are allocated ahead: everything is copied once in so many steps, not in each."""


class RoomyLayer(DynamicLayer):
    """Its `keys` and `values`, (rows, heads, columns, width), are the used part of larger tensors."""

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._room: tuple[torch.Tensor, torch.Tensor] | None = None

    def put(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Replace what is kept."""
        self.keys, self.values, self._room = keys, values, None

    def drop(self) -> None:
        """Free what is kept."""
        nothing = self.keys.new_empty(0)
        self.put(nothing, nothing)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *arguments: Any, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append columns; all keys and values."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
            self.keys, self.values = key_states, value_states
            return self.keys, self.values
        start, new = self.keys.shape[-2], key_states.shape[-2]
        if self._room is None or start + new > self._room[0].shape[-2]:
            self._room = _with_room(self.keys, new), _with_room(self.values, new)
        for room, states in zip(self._room, (key_states, value_states), strict=True):
            room[:, :, start : start + new] = states
        self.keys, self.values = (room[:, :, : start + new] for room in self._room)
        return self.keys, self.values


def roomy_cache(config: PreTrainedConfig) -> DynamicCache:
    """An empty cache for a model whose layers all attend to everything, as those of both families do."""
    cache = DynamicCache()
    cache.layers = [RoomyLayer() for _ in range(config.get_text_config(decoder=True).num_hidden_layers)]
    return cache


def layers(cache: DynamicCache) -> list[RoomyLayer]:
    """The layers of a cache that `roomy_cache` made."""
    return [layer for layer in cache.layers if isinstance(layer, RoomyLayer)]


def _with_room(tensor: torch.Tensor, new: int) -> torch.Tensor:
    rows, heads, columns, width = tensor.shape
    room = tensor.new_empty((rows, heads, columns + new + ROOM, width))
    room[:, :, :columns] = tensor
    return room
