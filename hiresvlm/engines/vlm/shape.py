"""What a model's `config.json` tells before anything is loaded: parameters, bytes of weights and of a
request.

Counts follow the modelling code of transformers 5.24 (the folders of `families.FAMILIES` in `models`); a
test compares them with the models themselves. Memory of activations is an estimate and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hiresvlm.engines.vlm.families import FAMILIES, Family

NF4_BYTES = 0.5625
"""Bytes of a 4-bit weight: half a byte, and a float32 scale for each block of 64."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of one model."""

    family: str
    """A key of `FAMILIES`."""
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool
    """The embedding is also the output layer."""
    vision_hidden: int
    vision_inner: int
    vision_layers: int
    patch: int
    merge: int
    temporal: int
    """Copies of an image that one patch embedding takes."""
    deepstack: int = 0
    """Vision layers whose output also enters the language model (Qwen3-VL)."""
    position_embeddings: int = 0
    """Learned vision positions."""
    canvas: int = 0
    """Side in pixels of the square that each image is put into; 0: images may have any size."""

    @property
    def factor(self) -> int:
        """Pixels per visual token and side."""
        return self.patch * self.merge

    @property
    def tile(self) -> int | None:
        """Largest side of an image in pixels, where all are put into a square: its whole tokens."""
        return self.canvas // self.factor * self.factor or None

    @property
    def linear_parameters(self) -> int:
        """Weights of the language model that are stored in 4 bits when quantized."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.inner)

    @property
    def vision_parameters(self) -> int:
        v, unit = self.vision_hidden, self.merge**2
        family = FAMILIES[self.family]
        block = 4 * v * v + (3 if family.gated else 2) * v * self.vision_inner
        wide = v * unit
        if self.canvas:
            merger = wide * self.hidden + (family.projector_layers - 1) * self.hidden**2
        else:
            merger = wide * wide + wide * self.hidden
        patches = 3 * self.temporal * self.patch**2 * v
        learned = self.position_embeddings * v
        return self.vision_layers * block + (1 + self.deepstack) * merger + patches + learned

    @property
    def parameters(self) -> int:
        """All weights; norms and biases, under one in a thousand, are left out."""
        tables = 1 if self.tied else 2
        return self.linear_parameters + self.vision_parameters + tables * self.vocabulary * self.hidden

    def weight_bytes(self, quant: str, element: int) -> int:
        """Bytes of the loaded weights. `element`: bytes of an unquantized one (2 on CUDA, 4 on CPU)."""
        if quant == "none":
            return self.parameters * element
        rest = self.parameters - self.linear_parameters
        return int(self.linear_parameters * NF4_BYTES) + rest * element

    def kv_bytes(self, element: int) -> int:
        """Bytes of keys and values of one token."""
        return 2 * self.layers * self.kv_heads * self.head_dim * element

    def vision_bytes(self, patches: int, element: int) -> int:
        """Estimate of the peak of the vision tower: its widest layer, and the pixels as float32."""
        widest = max(self.vision_inner * 2, self.vision_hidden * 5) + 2 * self.vision_hidden
        pixels = 3 * self.temporal * self.patch**2
        return patches * (widest * element + pixels * 4)

    def prefill_bytes(self, tokens: int, element: int) -> int:
        """Estimate of the peak of a prefill over so many padded tokens, keys and values aside."""
        widest = max(2 * self.inner, 3 * self.heads * self.head_dim)
        return tokens * (widest + 4 * self.hidden) * element

    def needed(self, quant: str, element: int, patches: int = 16_384, tokens: int = 4_096) -> int:
        """Bytes with which one large page can be read: weights, a micro-batch of images, one request."""
        work = max(self.vision_bytes(patches, element), self.prefill_bytes(tokens, element))
        return self.weight_bytes(quant, element) + work + tokens * self.kv_bytes(element)


def _whole(value: Any) -> int:
    """A size given as one number or as (height, width)."""
    return int(value[0] if isinstance(value, list | tuple) else value)


def shape_of(config: Mapping[str, Any]) -> Shape:
    """The shape in a `config.json`. Raises `KeyError` for a missing number."""
    family: Family = FAMILIES[config["model_type"]]
    text = config.get("text_config") or config  # early Qwen2.5-VL files are flat
    vision = config["vision_config"]
    canvas = 0 if family.canvas is None else family.canvas(config)
    patch = _whole(vision["patch_size"]) if canvas else vision.get("patch_size", 14)
    heads = text["num_attention_heads"]
    return Shape(
        family=config["model_type"],
        hidden=text["hidden_size"],
        inner=text["intermediate_size"],
        layers=text["num_hidden_layers"],
        heads=heads,
        kv_heads=text.get("num_key_value_heads") or heads,
        head_dim=text.get("head_dim") or text["hidden_size"] // heads,
        vocabulary=text["vocab_size"],
        tied=bool(config.get("tie_word_embeddings") or text.get("tie_word_embeddings")),
        vision_hidden=vision["hidden_size"],
        vision_inner=vision["intermediate_size"],
        vision_layers=vision["num_hidden_layers" if canvas else "depth"],
        patch=patch,
        merge=family.merge(config),
        temporal=1 if canvas else vision.get("temporal_patch_size", 2),
        deepstack=len(vision.get("deepstack_visual_indexes") or ()),
        position_embeddings=(canvas // patch) ** 2 if canvas else vision.get("num_position_embeddings") or 0,
        canvas=canvas,
    )
