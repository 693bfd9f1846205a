"""NF4 weights: what is quantized, proof that it was, and folders that hold the result.

Four bits go to the linear layers of the language model only. The vision tower, the projector and the output
layer keep their precision: they are a small part of the memory and a large part of what quantization loses.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hiresvlm.engines.vlm.device import cache_folder, choose, prepare_environment
from hiresvlm.engines.vlm.families import Family, skipped
from hiresvlm.engines.vlm.folder import CARD, Model, Source, fetch, locate, look
from hiresvlm.errors import EngineLoadError, OutputError

if TYPE_CHECKING:
    import torch
    from transformers import BitsAndBytesConfig, PreTrainedModel

BLOCK = 64
"""Weights that share a scale."""

_BESIDE_WEIGHTS = (".json", ".jinja", ".txt")


def import_bitsandbytes() -> None:
    """Import it before anything else does, and without what it does beside that. Raises `ImportError`."""
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    with installed_code_only():
        importlib.import_module("bitsandbytes")


@contextlib.contextmanager
def installed_code_only() -> Iterator[None]:
    """Within it the package `kernels` cannot be imported.

    On CPUs with AVX512-BF16 the import of bitsandbytes fetches compiled code from the hub with it and loads
    that. A local model makes no network call, and no code is run but what was installed.
    """
    modules: dict[str, Any] = sys.modules
    before = {name: modules[name] for name in ("kernels",) if name in modules}
    modules["kernels"] = None
    try:
        yield
    finally:
        del modules["kernels"]
        modules.update(before)


def nf4(compute: torch.dtype, family: Family) -> BitsAndBytesConfig:
    """The 4-bit configuration of a family. Its own default would be fp4, which reads worse."""
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(  # type: ignore[no-untyped-call]
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=compute,
        llm_int8_skip_modules=skipped(family),
    )


def check(model: PreTrainedModel, family: Family) -> None:
    """Prove that the language model is in NF4 and the rest is not, and that the processor at hand computes
    with it rightly. Raises `EngineLoadError`.

    On a CPU bitsandbytes (0.50.2 at least) finds the scales of a row as if rows were whole blocks. Where they
    are not, the weights it multiplies with are others than those that were quantized: the mean error is 2 to
    3 times what 4 bits cost, without a word.
    """
    from bitsandbytes.nn.modules import Linear4bit
    from torch.nn import Linear

    wrong, broken = [], []
    for name, module in model.named_modules():
        if not isinstance(module, Linear):
            continue
        wanted = name.startswith(f"model.{family.language}.")
        four = isinstance(module, Linear4bit)
        if four != wanted or (four and getattr(module.weight, "quant_type", None) != "nf4"):
            wrong.append(name)
        if four and module.weight.device.type == "cpu" and module.in_features % BLOCK:
            broken.append(name)
    if wrong:
        raise EngineLoadError(
            f"{len(wrong)} layers are not quantized as they should be, among them {wrong[0]}",
            "the installed transformers or bitsandbytes behaves differently; install the pinned versions",
        )
    if broken:
        raise EngineLoadError(
            f"{len(broken)} layers, among them {broken[0]}, have a width that is no multiple of {BLOCK}: in "
            "4 bits bitsandbytes computes them wrongly on a CPU",
            "use --quant none, or a GPU",
        )


def cached(source: Source) -> Path | None:
    """The pre-quantized folder of a model in our cache, when it was made from this very revision."""
    folder = cache_folder() / "quantized" / _folder_name(source)
    return folder if (folder / "config.json").is_file() and (folder / CARD).is_file() else None


def quantize(name: str, out: Path | None, device: str) -> Path:
    """Make a pre-quantized folder of a model, for the cache when `out` is None; fetches the model if need be.

    Raises `EngineLoadError`, `OutputError`.
    """
    source = locate(name)
    device = choose(device)
    if out:
        _check_free(out)
    model = look(source if source.on_disk else fetch(source))
    if model.quantized:
        raise EngineLoadError(f"{model.folder} is quantized already")
    target = out or cache_folder() / "quantized" / _folder_name(model.source)
    _check_free(target)
    prepare_environment()
    from hiresvlm.engines.vlm.loading import read_weights

    return save(model, read_weights(model, "int4", device, as_stored=True), target)


def save(model: Model, loaded: PreTrainedModel, target: Path) -> Path:
    """Write quantized weights as a model folder of the same identity.

    The folder appears whole or not at all. Raises `OutputError`.
    """
    scratch = _scratch(target)
    try:
        loaded.save_pretrained(scratch)
        for path in model.folder.iterdir():
            copied = path.suffix in _BESIDE_WEIGHTS and not path.name.endswith(".index.json")
            if copied and not (scratch / path.name).exists():
                shutil.copy(path, scratch / path.name)
        card = dict(model.card) | {
            "name": model.source.name,
            "revision": model.source.revision,
            "licence": model.source.licence,
        }
        (scratch / CARD).write_text(json.dumps(card, ensure_ascii=False, indent=1), encoding="utf-8")
        for path in scratch.iterdir():
            path.chmod(0o644)
        scratch.chmod(0o755)
        if target.exists():
            target.rmdir()
        os.rename(scratch, target)
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    look(Source(model.source.name, model.source.revision, None, target))
    return target


def _check_free(target: Path) -> None:
    """Whether the folder can be written, before the hour of work that fills it. Raises `OutputError`."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OutputError(f"{target} exists already", "name a new folder, or remove this one")
    _scratch(target).rmdir()


def _scratch(target: Path) -> Path:
    """An empty folder beside the target. Raises `OutputError`."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise OutputError(f"cannot write {target}: {error.strerror}") from error


def _folder_name(source: Source) -> str:
    name = source.name.replace("/", "--")
    return f"{name}-{source.revision}-nf4"
