"""What `hiresvlm doctor` says of the presets: licence, memory, whether they are here. Nothing is loaded."""

from __future__ import annotations

from typing import Any

from hiresvlm.engines.vlm import quantization
from hiresvlm.engines.vlm.device import element_bytes
from hiresvlm.engines.vlm.families import FAMILIES
from hiresvlm.engines.vlm.folder import locate, look
from hiresvlm.engines.vlm.presets import PRESETS
from hiresvlm.errors import EngineLoadError


def models() -> dict[str, dict[str, Any]]:
    """Facts of each preset, by name."""
    return {name: _facts(name) for name in PRESETS}


def _facts(name: str) -> dict[str, Any]:
    preset = PRESETS[name]
    facts: dict[str, Any] = {"model": preset.repository, "revision": None, "licence": preset.licence}
    shape, here = preset.shape, "no"
    try:
        source = locate(name)
        if source.on_disk:
            shape = look(source).shape
            here = "yes, and in 4 bits" if quantization.cached(source) is not None else "yes"
        facts |= {"model": source.name, "revision": source.revision, "licence": source.licence}
    except EngineLoadError as error:
        here = error.message
    if shape is not None:
        count, gpu = shape.parameters, element_bytes("cuda")
        small, large = (shape.needed(quant, gpu) / 2**30 for quant in ("int4", "none"))
        facts["family"] = FAMILIES[shape.family].name
        facts["visual token"] = f"{shape.factor} x {shape.factor} px"
        facts["parameters"] = f"{count / 1e9:.1f}B" if count > 1e8 else f"{count / 1e6:.1f}M"
        facts["GPU memory"] = f"{small:.1f} GiB in 4 bits, {large:.1f} in bfloat16"
    return facts | {"on disk": here}
