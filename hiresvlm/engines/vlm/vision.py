"""Images -> features, in micro-batches of bounded size, each image once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers.modeling_outputs import BaseModelOutputWithPooling

from hiresvlm.engines.vlm import attention, pruning, tiles
from hiresvlm.engines.vlm.cache import FeatureCache, Features
from hiresvlm.engines.vlm.inputs import ImageInput, grid_thw, kept_mask, patches

if TYPE_CHECKING:
    from hiresvlm.engines.vlm.loading import Loaded

MAX_PATCHES = 16_384
"""Patches in one run of the vision tower: three images of 1,280 visual tokens."""
MIN_PATCHES = 1_024


class VisionEncoder:
    """The vision tower of a model, with a cache of what it saw."""

    def __init__(self, loaded: Loaded, cache: FeatureCache, max_patches: int = MAX_PATCHES) -> None:
        self._model = loaded.model.model
        self._settings = loaded.image
        self._device = loaded.device
        source = loaded.facts.source
        self._identity = (source.name, source.revision, loaded.quant, str(loaded.dtype))
        self._output: type[Any] | None = None
        self.cache = cache
        self.max_patches = max_patches
        self.encoded_patches = 0
        self._family = loaded.facts.family
        if not loaded.image.canvas:
            attention.install(loaded.model)

    def encode(self, images: Sequence[ImageInput]) -> list[Features]:
        """Features of each image, in order. Raises `torch.OutOfMemoryError`."""
        found: dict[bytes, Features] = {}
        missing: dict[bytes, ImageInput] = {}
        for image in images:
            if image.key in found or image.key in missing:
                self.cache.hits += 1
                continue
            known = self.cache.get((self._identity, image.key))
            if known is None:
                missing[image.key] = image
            else:
                found[image.key] = known
        for batch in micro_batches(missing.values(), self.max_patches):
            for image, features in zip(batch, self._run(batch), strict=True):
                found[image.key] = features
                self.cache.put((self._identity, image.key), features)
        return [found[image.key] for image in images]

    def shrink(self) -> None:
        """Memory ran out: drop what is kept, and run fewer patches at a time."""
        self.cache.clear()
        self.max_patches = max(MIN_PATCHES, self.max_patches // 2)

    def as_output(self, features: Sequence[Features]) -> Any:
        """Features of the images of a batch of prompts in the form that the model takes as
        `mm_encoder_outputs`."""
        assert self._output is not None
        tokens = tuple(one.tokens for one in features)
        fields: dict[str, Any] = {"pooler_output": torch.stack(tokens) if self._family.stacked else tokens}
        if features[0].deepstack:
            depth = len(features[0].deepstack)
            fields["deepstack_features"] = [tuple(one.deepstack[n] for one in features) for n in range(depth)]
        return {"image": self._output(**fields)}

    def _run(self, images: Sequence[ImageInput]) -> list[Features]:
        if self._settings.canvas:
            return self._run_squares(images)
        pixels = torch.cat([patches(image, self._settings, self._device) for image in images])
        self.encoded_patches += len(pixels)
        grid, kept = grid_thw(images, self._device), kept_mask(images, self._device)
        if kept is None:
            seen = self._model.get_image_features(pixels, grid, return_dict=True)
        else:
            seen = pruning.encode(self._model.visual, pixels, grid, kept)
        self._output = type(seen)
        deepstack = getattr(seen, "deepstack_features", None) or []
        # Views of one large tensor would keep all of it alive for as long as one image is in the cache.
        return [
            Features(tokens.clone(), tuple(layer[n].clone() for layer in deepstack))
            for n, tokens in enumerate(seen.pooler_output)
        ]

    def _run_squares(self, images: Sequence[ImageInput]) -> list[Features]:
        pixels = tiles.squares(images, self._settings, self._device)
        self.encoded_patches += sum(image.patches for image in images)
        encode: Callable[[Any, torch.Tensor], list[torch.Tensor]] = getattr(tiles, self._family.encode)
        self._output = BaseModelOutputWithPooling
        return [Features(tokens.clone()) for tokens in encode(self._model, pixels)]


def micro_batches(images: Iterable[ImageInput], limit: int) -> list[list[ImageInput]]:
    """Consecutive images with at most `limit` patches together; a larger one goes alone."""
    batches: list[list[ImageInput]] = []
    used = 0
    for image in images:
        if not batches or used + image.patches > limit:
            batches.append([])
            used = 0
        batches[-1].append(image)
        used += image.patches
    return batches
