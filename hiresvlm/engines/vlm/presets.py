"""Models by name, each with its pinned revision, licence and size.

A preset is a name for one commit of one repository, so that a record made today can be made again. The
sizes are those of its `config.json`: what it needs is known before anything is downloaded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hiresvlm.engines.vlm.shape import Shape

DEFAULT = "qwen3-vl-4b"
NANO = "nano"


@dataclass(frozen=True, slots=True)
class Preset:
    name: str
    repository: str | None
    """Of the model hub; None for the model inside the package."""
    revision: str | None
    licence: str
    shape: Shape | None = None


_QWEN2_5 = Shape(
    family="qwen2_5_vl",
    hidden=2048,
    inner=11008,
    layers=36,
    heads=16,
    kv_heads=2,
    head_dim=128,
    vocabulary=151936,
    tied=True,
    vision_hidden=1280,
    vision_inner=3420,
    vision_layers=32,
    patch=14,
    merge=2,
    temporal=2,
)
_QWEN3 = Shape(
    family="qwen3_vl",
    hidden=2560,
    inner=9728,
    layers=36,
    heads=32,
    kv_heads=8,
    head_dim=128,
    vocabulary=151936,
    tied=True,
    vision_hidden=1024,
    vision_inner=4096,
    vision_layers=24,
    patch=16,
    merge=2,
    temporal=2,
    deepstack=3,
    position_embeddings=2304,
)

PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "qwen3-vl-4b",
            "Qwen/Qwen3-VL-4B-Instruct",
            "ebb281ec70b05090aa6165b016eac8ec08e71b17",
            "Apache-2.0",
            _QWEN3,
        ),
        Preset(
            "qwen3-vl-8b",
            "Qwen/Qwen3-VL-8B-Instruct",
            "0c351dd01ed87e9c1b53cbc748cba10e6187ff3b",
            "Apache-2.0",
            replace(
                _QWEN3,
                hidden=4096,
                inner=12288,
                tied=False,
                vision_hidden=1152,
                vision_inner=4304,
                vision_layers=27,
            ),
        ),
        Preset(
            "qwen2.5-vl-3b",
            "Qwen/Qwen2.5-VL-3B-Instruct",
            "66285546d2b821cf421d4f5eb2576359d3770cd3",
            "Qwen Research (non-commercial)",
            _QWEN2_5,
        ),
        Preset(
            "qwen2.5-vl-7b",
            "Qwen/Qwen2.5-VL-7B-Instruct",
            "cc594898137f460bfe9f0759e9844b3ce807cfb5",
            "Apache-2.0",
            replace(
                _QWEN2_5,
                hidden=3584,
                inner=18944,
                layers=28,
                heads=28,
                kv_heads=4,
                vocabulary=152064,
                tied=False,
            ),
        ),
        Preset(NANO, None, None, "AGPL-3.0-or-later"),
    )
}
"""In the order in which `auto` and hints prefer them."""


def fitting(memory: int, quant: str, element: int) -> Preset | None:
    """The first production preset that can work in so many bytes, larger ones first."""
    sized = [(preset, preset.shape) for preset in PRESETS.values() if preset.shape is not None]
    by_need = sorted(sized, key=lambda pair: -pair[1].needed(quant, element))
    return next((preset for preset, shape in by_need if shape.needed(quant, element) <= memory), None)
