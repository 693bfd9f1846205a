"""Which device, how much memory, where caches go: answered without importing torch where that is possible.

`--engine auto` asks on every run, so the CUDA driver is asked through `ctypes`: torch takes seconds to
import.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import re
from pathlib import Path

from hiresvlm.errors import EngineLoadError, UsageError

_DEVICE = re.compile(r"auto|cpu|cuda(:[0-9]{1,3})?")


def choose(device: str) -> str:
    """`cpu` or `cuda:N`. Raises `UsageError` for a name that is none, `EngineLoadError` for a missing GPU."""
    if not _DEVICE.fullmatch(device):
        raise UsageError(f"--device {device!r} is not known", "choose auto, cpu, cuda or cuda:N")
    if device == "cpu":
        return device
    memories = gpu_memories() if torch_has_cuda() else []
    if device == "auto":
        return "cuda:0" if memories else "cpu"
    number = int(device.partition(":")[2] or 0)
    if number >= len(memories):
        what = (
            "the installed torch is a CPU build"
            if not torch_has_cuda()
            else f"there are {len(memories)} GPUs"
        )
        raise EngineLoadError(f"--device {device} cannot be used: {what}", "look at: hiresvlm doctor")
    return f"cuda:{number}"


def torch_has_cuda() -> bool:
    """Whether the installed torch is a build for CUDA; torch is not imported."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return False
    try:
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return False
    return re.search(r"^cuda[^=\n]*=\s*['\"]", text, re.MULTILINE) is not None


def gpu_memories() -> list[int]:
    """Bytes of each GPU that the CUDA driver shows (CUDA_VISIBLE_DEVICES applies); empty without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return []
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return []
    found = []
    for number in range(count.value):
        handle, size = ctypes.c_int(), ctypes.c_size_t()
        if driver.cuDeviceGet(ctypes.byref(handle), number) or driver.cuDeviceTotalMem_v2(
            ctypes.byref(size), handle
        ):
            break
        found.append(size.value)
    return found


def free_memory(device: str) -> int:
    """Bytes that can still be had on a device. Imports torch for a GPU."""
    if device == "cpu":
        return _available()
    import torch

    free, _ = torch.cuda.mem_get_info(torch.device(device))
    return int(free)


def element_bytes(device: str) -> int:
    """Bytes of an unquantized weight: bfloat16 on a GPU, float32 on a CPU, where bfloat16 is seven times
    slower."""
    return 4 if device == "cpu" else 2


def cache_folder() -> Path:
    """Our own cache (`HIRESVLM_CACHE`, else below XDG_CACHE_HOME or ~/.cache)."""
    named = os.environ.get("HIRESVLM_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(named or f"{base}/hiresvlm").expanduser()


def prepare_environment() -> None:
    """Keep compiled kernels between runs and keep libraries quiet and off the network. Before torch is
    imported.

    torch.compile is switched off: nothing here compiles, and bitsandbytes imports all of inductor (more than
    a second) only to wrap fallbacks that neither the CPU nor CUDA uses.
    """
    kernels = cache_folder() / "kernels"
    for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH"):
        os.environ.setdefault(name, str(kernels / name.partition("_")[0].lower()))
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")


def _available() -> int:
    with contextlib.suppress(OSError), open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
