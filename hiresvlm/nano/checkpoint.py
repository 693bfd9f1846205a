"""Checkpoints of a training, and the model folder that is made from one."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from hiresvlm.errors import EngineLoadError, OutputError
from hiresvlm.nano.export import export
from hiresvlm.nano.losses import GlyphHead
from hiresvlm.nano.model import VISION_WIDTH, new_model
from hiresvlm.nano.tokens import Vocabulary

HEAD_FILE = "glyph_head.safetensors"
"""Beside a published folder: what only a later training needs."""
TIED = "lm_head.weight"
"""The embedding under its second name; stored once."""
LAYERS = "model.model.language_model.layers."
"""What the names of the language model's layers begin with; their number follows."""


class CheckpointError(EngineLoadError):
    """A checkpoint is missing, damaged, or not one of this model."""


def save(path: Path, model: nn.Module, head: nn.Module, facts: dict[str, str]) -> None:
    """Weights of the model and of the training-only head; written beside and renamed."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items() if name != TIED}
    tensors |= {f"head.{name}": value for name, value in head.state_dict().items()}
    _write(path, tensors, facts)


def _write(path: Path, tensors: Mapping[str, torch.Tensor], facts: dict[str, str]) -> None:
    part = path.with_suffix(".part")
    try:
        save_file({name: t.contiguous() for name, t in tensors.items()}, part, metadata=facts)
        part.replace(path)
    except (OSError, SafetensorError) as problem:
        raise OutputError(f"cannot write {path}: {problem}") from problem


def restore(path: Path, model: nn.Module, head: nn.Module) -> None:
    """The opposite of `save`; the optimizer starts anew, which costs the warm-up.

    `path` may be a folder written by `publish` too (float16, its glyph head beside it). Raises
    `CheckpointError` where it is neither.
    """
    tensors = _stored(path)
    wanted = {f"model.{name}": t for name, t in model.state_dict().items() if name != TIED}
    wanted |= {f"head.{name}": t for name, t in head.state_dict().items()}
    if wrong := _differences(tensors, wanted):
        raise CheckpointError(f"{path} is not a checkpoint of this model: {', '.join(wrong[:3])}")

    def part(prefix: str) -> dict[str, torch.Tensor]:
        return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}

    model.load_state_dict(part("model."), strict=False)
    head.load_state_dict(part("head."))


def deepen(path: Path, after: int, target: Path) -> None:
    """Write the checkpoint or published folder `path` to `target` with one more layer of the language model.

    The new layer follows layer `after`, counted from 0. It is a copy of it whose two output projections are
    zero, so the model computes what it did before until it is trained (Net2Net, Chen et al. 2016, arXiv
    1511.05641). Raises `CheckpointError` where there is no such layer, `OutputError`.
    """
    grown = {}
    for name, tensor in _stored(path).items():
        number, _, rest = name.removeprefix(LAYERS).partition(".")
        if not name.startswith(LAYERS):
            grown[name] = tensor
            continue
        grown[f"{LAYERS}{int(number) + (int(number) > after)}.{rest}"] = tensor
        if int(number) == after:
            silent = rest in {"self_attn.o_proj.weight", "mlp.down_proj.weight"}
            grown[f"{LAYERS}{after + 1}.{rest}"] = torch.zeros_like(tensor) if silent else tensor.clone()
    if f"{LAYERS}{after + 1}.mlp.down_proj.weight" not in grown:
        raise CheckpointError(f"{path} has no layer {after} of a language model")
    _write(target, {name: tensor.float() for name, tensor in grown.items()}, {"minutes": "0"})


def _stored(path: Path) -> dict[str, torch.Tensor]:
    """The tensors of a checkpoint, or of a published folder under the names of a checkpoint."""
    if not path.is_dir():
        return _tensors(path)
    tensors = {f"model.{name}": t for name, t in _tensors(path / "model.safetensors").items()}
    return tensors | {f"head.{name}": t for name, t in _tensors(path.with_name(HEAD_FILE)).items()}


def _tensors(path: Path) -> dict[str, torch.Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as problem:
        raise CheckpointError(f"cannot load the checkpoint {path}: {problem}") from problem


def _differences(found: Mapping[str, torch.Tensor], wanted: Mapping[str, torch.Tensor]) -> list[str]:
    """What is missing, too much or of another shape, in words."""
    wrong = [f"no {name}" for name in sorted(wanted.keys() - found.keys())]
    wrong += [f"{name} is not part of it" for name in sorted(found.keys() - wanted.keys())]
    for name in sorted(wanted.keys() & found.keys()):
        ours, theirs = tuple(wanted[name].shape), tuple(found[name].shape)
        if ours != theirs:
            wrong.append(f"{name} is {theirs}, not {ours}")
    return wrong


def minutes_spent(path: Path) -> float:
    """How long the sitting of a checkpoint had trained when it was saved; 0 where there is none."""
    if not path.exists():
        return 0.0
    try:
        with safe_open(path, "pt") as file:
            return float((file.metadata() or {}).get("minutes", 0.0))
    except (OSError, ValueError, SafetensorError) as problem:
        raise CheckpointError(
            f"cannot go on from {path}: {problem}", "remove it to train this sitting anew"
        ) from problem


def publish(checkpoint: Path, folder: Path) -> None:
    """Write a model folder from a checkpoint, and beside it the glyph head that a later sitting needs."""
    vocabulary = Vocabulary()
    model, head = new_model(vocabulary), GlyphHead(VISION_WIDTH, len(vocabulary.alphabet))
    restore(checkpoint, model, head)
    tensors = {name: value.to(torch.float16) for name, value in head.state_dict().items()}
    try:
        export(model, vocabulary, folder)
        save_file(tensors, folder.with_name(HEAD_FILE))
    except (OSError, SafetensorError) as problem:
        raise OutputError(f"cannot write a model to {folder}: {problem}") from problem
