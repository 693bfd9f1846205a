"""A look at the machine: nothing is loaded, nothing is downloaded."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata, util
from typing import Any

from hiresvlm import __version__, engines
from hiresvlm.engines.vlm.overview import models
from hiresvlm.errors import HiresvlmError
from hiresvlm.settings import EngineSettings, Settings

PACKAGES = (
    "torch",
    "transformers",
    "bitsandbytes",
    "accelerate",
    "rapidocr",
    "onnxruntime",
    "pymupdf-lite",
    "pillow",
    "numpy",
)

_MODEL_LICENCES = {"PP-OCRv6-small": "Apache-2.0"}


def examine() -> dict[str, Any]:
    """Sections of facts, each a dictionary."""
    settings, reason = engines.resolve(Settings(engine=EngineSettings(name="auto")))
    return {
        "hiresvlm": {"version": __version__, "python": platform.python_version(), "platform": sys.platform},
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": {"cores": len(os.sched_getaffinity(0)), "memory": _memory(), "gpu": _gpu()},
        "engines": {name: _engine(name) for name in engines.ENGINES},
        "models": models(),
        "auto": {"picks": settings.engine.name, "because": reason},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _engine(name: str) -> dict[str, Any]:
    try:
        info, profile = engines.find(name).describe(EngineSettings(name=name))
    except HiresvlmError as error:
        return {"problem": error.message}
    return {
        "model": info.model,
        "revision": info.revision,
        "licence": _MODEL_LICENCES.get(info.model or ""),
        "legible": f"{profile.legible:g} px capitals",
        "visual token": f"{profile.factor} x {profile.factor} px",
    }


def _memory() -> str:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{total / 2**30:.1f} GiB"


def _gpu() -> str:
    """Name and memory of each CUDA GPU. torch is imported only here: it takes seconds."""
    if util.find_spec("torch") is None:
        return "none (torch is not installed)"
    import torch

    if not torch.cuda.is_available():
        return "none usable by torch"
    found = []
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        name = torch.cuda.get_device_name(index)
        found.append(f"{name}, {free / 2**30:.1f} of {total / 2**30:.1f} GiB free")
    return "; ".join(found)
