"""Features of images that were encoded before: the same image asked again costs nothing."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What the vision tower makes of one image."""

    tokens: torch.Tensor
    """(visual tokens, width of the language model)."""
    deepstack: tuple[torch.Tensor, ...] = ()
    """Qwen3-VL: the same for each of the vision layers that also enter the language model."""

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in (self.tokens, *self.deepstack))


class FeatureCache:
    """The features used last, up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.nbytes = 0
        self.hits = 0
        self.misses = 0
        self._kept: OrderedDict[Hashable, Features] = OrderedDict()

    def get(self, key: Hashable) -> Features | None:
        found = self._kept.get(key)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        self._kept.move_to_end(key)
        return found

    def put(self, key: Hashable, features: Features) -> None:
        """Keep features; those that were not used for longest go. What is larger than the cache is not
        kept."""
        if features.nbytes > self.limit:
            return
        self._drop(key)
        self._kept[key] = features
        self.nbytes += features.nbytes
        while self.nbytes > self.limit:
            self._drop(next(iter(self._kept)))

    def clear(self) -> None:
        self._kept.clear()
        self.nbytes = 0

    def _drop(self, key: Hashable) -> None:
        old = self._kept.pop(key, None)
        if old is not None:
            self.nbytes -= old.nbytes
