"""Whether `--engine auto` can use a vision-language model: a GPU that works, a model that is here already."""

from __future__ import annotations

from typing import NamedTuple

from hiresvlm.engines.vlm.device import gpu_memories, torch_has_cuda
from hiresvlm.engines.vlm.folder import locate
from hiresvlm.engines.vlm.presets import PRESETS


class Choice(NamedTuple):
    """A preset to use, or None, and why."""

    model: str | None
    reason: str


def choose() -> Choice:
    """The preferred preset that is on disk and fits the first GPU. Nothing is loaded, fetched or imported."""
    present = [
        preset for preset in PRESETS.values() if preset.shape is not None and locate(preset.name).on_disk
    ]
    memories = gpu_memories() if torch_has_cuda() else []
    if not memories:
        return Choice(None, "no usable GPU")
    size = f"a GPU with {memories[0] / 2**30:.0f} GiB"
    for preset in present:
        assert preset.shape is not None
        if preset.shape.needed("int4", 2) <= memories[0]:
            return Choice(preset.name, f"{size} and {preset.name} on this machine")
    if present:
        return Choice(None, f"{size}, on which {present[0].name} does not fit")
    return Choice(None, f"{size}, but no model for it on this machine; -m {next(iter(PRESETS))} fetches one")
