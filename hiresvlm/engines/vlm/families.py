"""The families of models that the engine runs, one row each. Imports no heavy library.

A family takes images of any size (`canvas` None), or puts each image into one square: then a chunk is at
most that square, and the family's own way to cut a page is never used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Family:
    """How one family differs from the others; sizes are functions of `config.json`."""

    name: str
    architecture: str
    tower: tuple[str, ...]
    """Modules beside the language model: they and the output layer are never quantized."""
    merge: Callable[[Config], int]
    """Patches down and across that become one visual token; with the patch size it gives the factor."""
    legible: float
    """Height of capitals in chunk pixels. Not measured with this engine: 10 pt text (capitals of 7 pt) on A4
    at the size at which the family's own processor shows a page (a model's card may say better)."""
    language: str = "language_model"
    """Module below `model` that is quantized."""
    canvas: Callable[[Config], int] | None = None
    """Side in pixels of the square that holds an image."""
    encode: str = ""
    """Function of `tiles` that makes features of squares."""
    stacked: bool = False
    """Features of several images enter the model as one tensor, not as a list of them."""
    around: tuple[str, str] = ("", "")
    """What the family's processor puts before and after the visual tokens of an image, where the chat
    template does not."""
    newlines: int = 0
    """Tokens that follow the patches of an image and are none (a learned end of line)."""
    gated: bool = False
    """Layers of the vision tower have three matrices after attention, not two."""
    projector_layers: int = 2
    sparse: bool = False
    """Published `config.json` files leave out what the library has as a default."""


def _side(value: Any) -> int:
    """A size given as one number or as (height, width)."""
    return int(value[0] if isinstance(value, list | tuple) else value)


def _image_size(config: Config) -> int:
    return _side(config["vision_config"]["image_size"])


def _qwen_merge(config: Config) -> int:
    return int(config["vision_config"].get("spatial_merge_size", 2))


_LLAVA: dict[str, Any] = {
    "tower": ("vision_tower", "multi_modal_projector"),
    "merge": lambda config: 1,
    "legible": 12.0,
    "canvas": _image_size,
    "encode": "llava",
    "newlines": 1,
    "sparse": True,
}
_IDEFICS: dict[str, Any] = {
    "tower": ("vision_model", "connector"),
    "language": "text_model",
    "merge": lambda config: int(config.get("scale_factor", 2)),
    "canvas": _image_size,
    "encode": "idefics",
    "around": ("<fake_token_around_image><global-img>", "<fake_token_around_image>"),
    "projector_layers": 1,
    "sparse": True,
}

FAMILIES = {
    "qwen2_5_vl": Family(
        "Qwen2.5-VL", "Qwen2_5_VLForConditionalGeneration", ("visual",), _qwen_merge, 12.0, gated=True
    ),
    "qwen3_vl": Family("Qwen3-VL", "Qwen3VLForConditionalGeneration", ("visual",), _qwen_merge, 12.0),
    "internvl": Family(
        "InternVL (-hf)",
        "InternVLForConditionalGeneration",
        ("vision_tower", "multi_modal_projector"),
        lambda config: round(1 / config.get("downsample_ratio", 0.5)),
        15.0,
        canvas=_image_size,
        encode="internvl",
        stacked=True,
        around=("<img>", "</img>"),
        sparse=True,
    ),
    "llava_onevision": Family("LLaVA-OneVision", "LlavaOnevisionForConditionalGeneration", **_LLAVA),
    "llava_next": Family("LLaVA-NeXT", "LlavaNextForConditionalGeneration", **_LLAVA),
    "idefics3": Family("Idefics3", "Idefics3ForConditionalGeneration", legible=12.0, **_IDEFICS),
    "smolvlm": Family("SmolVLM", "SmolVLMForConditionalGeneration", legible=17.0, **_IDEFICS),
}
"""`model_type` of `config.json` -> family."""


def names() -> str:
    """All families, for people."""
    *most, last = (family.name for family in FAMILIES.values())
    return f"{', '.join(most)} and {last}"


def skipped(family: Family) -> list[str]:
    """Modules that keep their precision, as transformers wants them named.

    transformers 5 matches these from the start of a module's full name (or as its end), so `["visual"]`
    alone would skip nothing. vLLM matches single parts of a name, which is what the short names are for.
    """
    return [*(f"model.{name}" for name in family.tower), *family.tower, "lm_head"]
