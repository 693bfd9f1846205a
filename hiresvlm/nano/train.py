"""Training of hiresvlm-nano: `python -m hiresvlm.nano.train tower`, then `... read`, in as many sittings as it takes.

Both stages go by the clock: `--minutes` of training at a constant rate after a short warm-up, the last part of them
at a falling rate (`--decay`, a share). A sitting that does not decay can be continued without harm.
"""

import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import torch
import typer
from safetensors.torch import load_file, save_file
from torch import nn

from hiresvlm.nano.batches import ChatBatch, TowerBatch
from hiresvlm.nano.losses import GlyphHead, chat_losses, glyph_loss, guided, see
from hiresvlm.nano.model import new_model
from hiresvlm.nano.stream import Mixture, batches
from hiresvlm.nano.tokens import Vocabulary

WARMUP_STEPS = 100
LOG_EVERY_S = 20.0
SAVE_EVERY_S = 300.0
TOWER_BUDGET, READ_BUDGET = 4096, 6144
GLYPH_WEIGHT, GUIDE_WEIGHT = 0.3, 0.1

Stage = Literal["tower", "read"]
MIXTURES: dict[Stage, dict[str, float]] = {
    "tower": {"line": 3.0, "few": 2.0, "paragraph": 2.0, "table": 0.7, "receipt": 0.7, "ui": 0.7, "form": 0.9},
    "read": {"line": 1.0, "few": 2.0, "paragraph": 3.0, "table": 1.0, "receipt": 1.0, "ui": 1.0, "form": 2.0},
}

app = typer.Typer(add_completion=False)


def optimizers(model: nn.Module, head: nn.Module, rate: float, tower_share: float) -> list[torch.optim.Optimizer]:
    """Muon (Jordan et al. 2024) for the matrices of the blocks, AdamW for embeddings, norms, biases and heads."""
    matrices: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    others: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    for name, parameter in model.named_parameters():
        tower = ".visual." in name and ".merger." not in name
        hidden = parameter.ndim == 2 and "embed_tokens" not in name and "lm_head" not in name
        (matrices if hidden else others)[tower].append(parameter)
    others[False].extend(head.parameters())
    groups = [(True, rate * tower_share), (False, rate)]
    return [
        torch.optim.Muon(
            [{"params": matrices[tower], "lr": lr, "base": lr} for tower, lr in groups],
            weight_decay=0.02,
            adjust_lr_fn="match_rms_adamw",
        ),
        torch.optim.AdamW(
            [{"params": others[tower], "lr": lr, "base": lr} for tower, lr in groups], betas=(0.9, 0.98), weight_decay=0.0
        ),
    ]


class Log:
    """One JSON line every `LOG_EVERY_S`: means since the last one."""

    def __init__(self, path: Path) -> None:
        self.path, self.sums, self.count, self.last = path, dict[str, float](), 0, time.monotonic()

    def add(self, losses: dict[str, torch.Tensor], **facts: Any) -> None:
        for name, value in losses.items():
            self.sums[name] = self.sums.get(name, 0.0) + value.item()
        self.count += 1
        if time.monotonic() - self.last >= LOG_EVERY_S:
            means = {name: round(total / self.count, 4) for name, total in self.sums.items()}
            line = json.dumps({**facts, **means})
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
            typer.echo(line)
            self.sums, self.count, self.last = {}, 0, time.monotonic()


def save(path: Path, model: nn.Module, head: nn.Module, facts: dict[str, str]) -> None:
    """Weights of the model and of the training-only head; written beside and renamed."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items() if name != "lm_head.weight"}
    tensors |= {f"head.{name}": value for name, value in head.state_dict().items()}
    part = path.with_suffix(".part")
    save_file({name: value.contiguous() for name, value in tensors.items()}, part, metadata=facts)
    part.replace(path)


def restore(path: Path, model: nn.Module, head: nn.Module) -> None:
    """The opposite of `save`; the optimizer starts anew, which costs the warm-up."""
    tensors = load_file(path)
    missing = model.load_state_dict(
        {name[6:]: value.float() for name, value in tensors.items() if name.startswith("model.")}, strict=False
    )
    assert set(missing.missing_keys) <= {"lm_head.weight"} and not missing.unexpected_keys, missing
    head.load_state_dict({name[5:]: value.float() for name, value in tensors.items() if name.startswith("head.")})


def tower_losses(model: Any, head: GlyphHead, batch: TowerBatch) -> dict[str, torch.Tensor]:
    """The first stage trains the tower alone."""
    hidden, _ = see(model, batch)
    glyph, named = glyph_loss(head, hidden, batch.labels)
    return {"glyph": glyph, "named": named}


@app.command()
def main(
    stage: Annotated[str, typer.Argument(help="tower (glyphs of each patch) or read (prompts and answers)")],
    folder: Annotated[Path, typer.Option("--out", help="checkpoints and the log")] = Path("out/nano"),
    minutes: Annotated[float, typer.Option(help="how long to train")] = 30.0,
    decay: Annotated[float, typer.Option(help="share of the time in which the rate falls to zero")] = 0.2,
    start: Annotated[Path | None, typer.Option("--from", help="checkpoint to go on from")] = None,
    rate: Annotated[float, typer.Option(help="learning rate")] = 2e-3,
    tower_share: Annotated[float, typer.Option(help="the tower's learning rate as a share")] = 1.0,
    seed: Annotated[int, typer.Option(help="of the data and of new weights")] = 1,
    threads: Annotated[int, typer.Option(help="CPU threads")] = 2,
    mixture: Annotated[str | None, typer.Option(help="JSON: kind to weight")] = None,
) -> None:
    """Train one stage for a while."""
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = Vocabulary()
    model = new_model(vocabulary)
    head = GlyphHead(model.config.vision_config.hidden_size, len(vocabulary.alphabet))
    if start:
        restore(start, model, head)
    answers = stage == "read"
    weights = json.loads(mixture) if mixture else MIXTURES[cast(Stage, stage)]
    stream = batches(Mixture(weights), seed=seed, budget=READ_BUDGET if answers else TOWER_BUDGET, answers=answers)
    log = Log(folder / f"{stage}.jsonl")
    path = folder / f"{stage}.safetensors"
    with guided(model):
        model.train()
        _train(model, head, stream, path, log, minutes * 60, decay, rate, tower_share, answers)


def _train(
    model: Any,
    head: GlyphHead,
    stream: Iterator[TowerBatch | ChatBatch],
    path: Path,
    log: Log,
    seconds: float,
    decay: float,
    rate: float,
    tower_share: float,
    answers: bool,
) -> None:
    steppers = optimizers(model, head, rate, tower_share)
    parameters = [p for stepper in steppers for group in stepper.param_groups for p in group["params"]]
    started = saved = time.monotonic()
    step = 0
    while (spent := time.monotonic() - started) < seconds:
        batch = next(stream)
        if isinstance(batch, ChatBatch):
            losses = chat_losses(model, head, batch)
            loss = losses["next"] + GLYPH_WEIGHT * losses["glyph"] + GUIDE_WEIGHT * losses["guide"]
        else:
            losses = tower_losses(model, head, batch)
            loss = losses["glyph"]
        loss.backward()
        norm = nn.utils.clip_grad_norm_(parameters, 1.0)
        left = (seconds - spent) / seconds
        factor = min(1.0, (step + 1) / WARMUP_STEPS, left / decay if decay else 1.0)
        for stepper in steppers:
            for group in stepper.param_groups:
                group["lr"] = group["base"] * factor
            if math.isfinite(norm):
                stepper.step()
            stepper.zero_grad(set_to_none=True)
        step += 1
        log.add(
            {name: value.detach() for name, value in losses.items()},
            step=step,
            minutes=round(spent / 60, 2),
            factor=round(factor, 3),
        )
        if time.monotonic() - saved > SAVE_EVERY_S:
            save(path, model, head, {"step": str(step)})
            saved = time.monotonic()
    save(path, model, head, {"step": str(step)})


if __name__ == "__main__":
    app()
