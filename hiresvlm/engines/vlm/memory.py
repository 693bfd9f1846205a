"""How much memory there is, was used, and may be filled. Fits and budgets are decided here."""

from __future__ import annotations

import contextlib
import gc
import resource
from typing import TYPE_CHECKING

from hiresvlm.engines.vlm.device import element_bytes, free_memory
from hiresvlm.engines.vlm.presets import fitting
from hiresvlm.errors import EngineLoadError

if TYPE_CHECKING:
    import torch

    from hiresvlm.engines.vlm.loading import Loaded
    from hiresvlm.engines.vlm.shape import Shape

CONTEXT_BYTES = 500 * 2**20
"""What a CUDA context and the kernels of the libraries take (an estimate)."""
CPU_BUDGET = 4 * 2**30
"""Keys and values on a CPU never take more: rows beyond that only wait for each other."""
LEAST_BUDGET = 64 * 2**20


def check_fits(name: str, shape: Shape, quant: str, device: str) -> None:
    """Raises `EngineLoadError`, with the preset that fits, when a model cannot work in the free memory."""
    free = free_memory(device)
    if _needed(shape, quant, device) > free:
        raise too_large(name, shape, quant, device, free)


def too_large(name: str, shape: Shape, quant: str, device: str, free: int) -> EngineLoadError:
    """The error for a model that does not fit."""
    needed = _needed(shape, quant, device)
    message = (
        f"{name} ({quant}) needs about {needed / 2**30:.1f} GiB on {device}, "
        f"of which {free / 2**30:.1f} GiB are free"
    )
    preset = fitting(free - _context(device), quant, element_bytes(device))
    if preset is not None:
        return EngineLoadError(message, f"--model {preset.name} fits")
    if quant == "none":
        return EngineLoadError(message, "--quant int4 needs about a third")
    return EngineLoadError(message, "no preset fits; --engine light reads on the CPU")


def budget_bytes(loaded: Loaded, cache_bytes: int, share: float) -> tuple[int, int]:
    """Bytes that keys and values may fill now that the weights are loaded, and bytes of one token of them."""
    shape, element = loaded.facts.shape, loaded.dtype.itemsize
    work = max(shape.vision_bytes(16_384, element), shape.prefill_bytes(16_384, element))
    free = int(free_memory(str(loaded.device)) * share) - work - cache_bytes
    if loaded.device.type == "cpu":
        free = min(free, CPU_BUDGET)
    return max(LEAST_BUDGET, free), shape.kv_bytes(element)


def used_bytes(device: torch.device) -> int:
    """Bytes in use now: of the GPU's allocator, or resident in this process."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.memory_allocated(device))
    return resident_bytes()


def peak_bytes(device: torch.device) -> int:
    """Most bytes used so far: of the GPU's allocator, or resident in this process."""
    if device.type == "cuda":
        import torch

        return int(torch.cuda.max_memory_allocated(device))
    return resident_bytes("VmHWM")


def resident_bytes(field: str = "VmRSS") -> int:
    """Resident bytes of this process now, or at its peak (`VmHWM`).

    Not `ru_maxrss`, which on Linux counts the parent's memory at the time of the fork.
    """
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def release(device: torch.device) -> None:
    """Give back what nothing uses any more: on a GPU the allocator keeps it."""
    if device.type == "cuda":
        import torch

        gc.collect()
        torch.cuda.empty_cache()


def _needed(shape: Shape, quant: str, device: str) -> int:
    return shape.needed(quant, element_bytes(device)) + _context(device)


def _context(device: str) -> int:
    return 0 if device == "cpu" else CONTEXT_BYTES
