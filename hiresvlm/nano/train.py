"""Training of hiresvlm-nano: `make nano`, or one sitting after the other.

Everything goes by the clock, so that a training fits the hours that a machine has: a short warm-up, a
constant rate, and in the last sitting a rate that falls to zero. A sitting starts from the checkpoint of
the one before it, and one that was broken off from its own, at the minute where that was saved; its optimizer
starts anew, which costs the warm-up.
"""

import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import nn

from hiresvlm.console import Reporter
from hiresvlm.errors import HiresvlmError, OutputError
from hiresvlm.nano.batches import ChatBatch, TowerBatch
from hiresvlm.nano.checkpoint import deepen, minutes_spent, publish, restore, save
from hiresvlm.nano.data import Sample, Tile
from hiresvlm.nano.data.evaluation import load_evaluation
from hiresvlm.nano.losses import GlyphHead, chat_losses, glyph_loss, guided, see
from hiresvlm.nano.model import VISION_WIDTH, new_model
from hiresvlm.nano.reading import character_errors, read
from hiresvlm.nano.stream import Mixture, batches
from hiresvlm.nano.tokens import Vocabulary

WARMUP_STEPS = 100
LOG_EVERY_S = 20.0
SAVE_EVERY_S = 300.0
READ_EVERY_S = 600.0
WATCHED: Mapping[str, int] = {"line": 12, "few": 4, "paragraph": 2}
"""Tiles of the evaluation set that are read from time to time, to follow the CER; nothing is chosen by it."""
TOWER_BUDGET, READ_BUDGET = 4096, 4096
"""What a batch costs: patches for the tower, about tokens for reading."""
GLYPH_WEIGHT, GUIDE_WEIGHT = 0.3, 0.3
WEIGHT_DECAY = 0.02


@dataclass(frozen=True)
class Sitting:
    """A stretch of training; `mixture`: shares of the kinds of samples, by what they cost."""

    stage: Literal["tower", "read"]
    minutes: float
    mixture: Mapping[str, float]
    decay: float = 0.0
    rate: float = 2e-3
    tower_share: float = 1.0


PICTURES = {
    "line": 1.5, "two": 1.0, "few": 2.0, "paragraph": 2.5, "table": 1.0, "receipt": 1.2, "ui": 0.8,
    "document": 1.0, "form": 1.0,
}  # fmt: skip
SHORT = {"line": 2.0, "two": 1.5, "few": 3.0, "paragraph": 1.5, "form": 1.0, "ui": 0.5}
EVERYTHING = {
    "line": 0.7, "two": 0.5, "few": 2.0, "paragraph": 3.0, "table": 1.0, "receipt": 1.0, "ui": 0.7,
    "document": 1.0, "form": 5.0, "tiles": 0.6,
}  # fmt: skip
RECIPE = (
    Sitting("tower", 60, PICTURES, decay=0.6),
    Sitting("read", 15, SHORT, tower_share=0.5),
    Sitting("read", 150, EVERYTHING, tower_share=0.3, decay=1.0),
)
"""Minutes of two cores. Most of the errors are the tower's, and beside the language model it learns slowly:
its own stage is worth its time. Later it moves little, or what the language model is unsure of spoils it."""

app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Train hiresvlm-nano. Everything is written below one folder.",
)


def positive(value: float | None) -> float | None:
    """Refuse what is no amount of anything: zero, less, not a number."""
    if value is not None and not 0 < value < math.inf:
        raise typer.BadParameter(f"{value} is not a number above 0")
    return value


def share(value: float) -> float:
    """Refuse what is not between 0 and 1."""
    if not 0 <= value <= 1:
        raise typer.BadParameter(f"{value} is not between 0 and 1")
    return value


Folder = Annotated[Path, typer.Option("--out", help="checkpoints and logs")]
Threads = Annotated[int, typer.Option(min=1, help="CPU threads")]


def optimizers(model: nn.Module, head: nn.Module, sitting: Sitting) -> list[torch.optim.Optimizer]:
    """Muon (Jordan et al. 2024) for the matrices of the blocks, AdamW for the rest."""
    rates = {True: sitting.rate * sitting.tower_share, False: sitting.rate}
    matrices: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    others: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    for name, parameter in model.named_parameters():
        tower = ".visual." in name and ".merger." not in name
        block = parameter.ndim == 2 and "embed_tokens" not in name
        (matrices if block else others)[tower].append(parameter)
    others[False].extend(head.parameters())

    def groups(parameters: dict[bool, list[nn.Parameter]]) -> list[dict[str, Any]]:
        return [{"params": parameters[tower], "lr": rate, "base": rate} for tower, rate in rates.items()]

    return [
        torch.optim.Muon(groups(matrices), weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(groups(others), betas=(0.9, 0.98), weight_decay=0.0),
    ]


def advance(steppers: Sequence[torch.optim.Optimizer], factor: float) -> None:
    """One step at this share of the rates, gradients clipped to norm 1; none where they are not finite."""
    groups = [group for stepper in steppers for group in stepper.param_groups]
    norm = nn.utils.clip_grad_norm_([p for group in groups for p in group["params"]], 1.0)
    for group in groups:
        group["lr"] = group["base"] * factor
    for stepper in steppers:
        if math.isfinite(norm):
            stepper.step()
        stepper.zero_grad(set_to_none=True)


class Log:
    """One JSON line every `LOG_EVERY_S`: means since the last one."""

    def __init__(self, path: Path) -> None:
        self.path, self.sums, self.count, self.last = path, dict[str, float](), 0, time.monotonic()

    def write(self, facts: Mapping[str, Any]) -> None:
        """One line."""
        line = json.dumps(facts)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        typer.echo(line)

    def add(self, losses: Mapping[str, torch.Tensor], facts: Mapping[str, Any]) -> None:
        """Count a step; write when it is time."""
        for name, value in losses.items():
            self.sums[name] = self.sums.get(name, 0.0) + value.detach().item()
        self.count += 1
        if time.monotonic() - self.last >= LOG_EVERY_S:
            self.rest(facts)

    def rest(self, facts: Mapping[str, Any]) -> None:
        """Write the means of what has not been written yet."""
        if self.count:
            means = {name: round(total / self.count, 4) for name, total in self.sums.items()}
            self.write({**facts, **means})
        self.sums, self.count, self.last = {}, 0, time.monotonic()


def computing(device: torch.device) -> AbstractContextManager[None]:
    """Products in bfloat16 where the processor has them: on a CPU with AVX512-BF16 or AMX a step takes half
    the time, on one without it many times as long."""
    able = torch.cpu.get_capabilities()
    pays = device.type != "cpu" or able.get("avx512_bf16", False) or able.get("amx_bf16", False)
    context: AbstractContextManager[None] = torch.autocast(device.type, torch.bfloat16, enabled=pays)
    return context


def tower_losses(model: Any, head: GlyphHead, batch: TowerBatch) -> dict[str, torch.Tensor]:
    """The first stage trains the tower alone."""
    hidden, _ = see(model, batch)
    glyph, named = glyph_loss(head, hidden, batch.labels)
    return {"glyph": glyph, "named": named}


@app.command("all")
def train_all(
    folder: Folder = Path("out/nano"),
    hours: Annotated[
        float | None, typer.Option(callback=positive, help="scale the recipe to this time")
    ] = None,
    threads: Threads = 2,
) -> None:
    """Train from nothing by the recipe and write a model folder; what was broken off goes on from its last
    checkpoint."""
    scale = 1.0 if hours is None else hours * 60 / sum(sitting.minutes for sitting in RECIPE)
    before: Path | None = None
    for n, sitting in enumerate(RECIPE, 1):
        planned = replace(sitting, minutes=sitting.minutes * scale)
        before = sit(planned, folder, f"{n}-{sitting.stage}", before, seed=n, threads=threads)
    assert before
    weights = folder / "weights"
    publish(before, weights)
    typer.echo(f"The model is in {weights}. Try: hiresvlm ocr samples/receipt.jpg -m {weights}", err=True)


@app.command("sitting")
def one_sitting(
    number: Annotated[int, typer.Argument(min=1, max=len(RECIPE), help="which of the recipe, from 1")],
    before: Annotated[Path, typer.Option("--from", help="checkpoint or published folder to go on from")],
    minutes: Annotated[float, typer.Option(callback=positive, help="how long")],
    name: Annotated[str, typer.Option(help="of the checkpoint and the log")],
    seed: Annotated[int, typer.Option(min=0, help="of the samples")],
    folder: Folder = Path("out/nano"),
    decay: Annotated[
        float, typer.Option(callback=share, help="part of the time in which the rate falls")
    ] = 0.0,
    rate: Annotated[
        float | None, typer.Option(callback=positive, help="learning rate; that of the recipe by itself")
    ] = None,
    threads: Threads = 2,
) -> None:
    """One more sitting of a kind of the recipe."""
    planned = RECIPE[number - 1]
    sitting = replace(planned, minutes=minutes, decay=decay, rate=rate or planned.rate)
    path = sit(sitting, folder, name, before, seed=seed, threads=threads)
    typer.echo(f"The checkpoint is {path}. Make a model folder of it: publish {path} FOLDER", err=True)


@app.command("publish")
def publish_checkpoint(
    checkpoint: Annotated[Path, typer.Argument(help="of a training")],
    folder: Annotated[Path, typer.Argument(help="model folder to write")],
) -> None:
    """Write a model folder from a checkpoint, and beside it the glyph head that a later sitting needs."""
    publish(checkpoint, folder)


@app.command("deepen")
def deepen_checkpoint(
    before: Annotated[Path, typer.Argument(help="checkpoint or published folder of a shallower model")],
    checkpoint: Annotated[Path, typer.Argument(help="to write")],
    after: Annotated[int, typer.Option(min=0, help="layer that the new one follows, from 0")],
) -> None:
    """Add a layer to the language model that changes nothing until it is trained."""
    deepen(before, after, checkpoint)


@app.command("fusion")
def fusion(
    before: Annotated[Path, typer.Option("--from", help="checkpoint or published folder")],
    steps: Annotated[int, typer.Option(min=1, help="of each arm")] = 300,
    pages: Annotated[int, typer.Option(min=1, help="held-out pages to transcribe")] = 16,
    questions: Annotated[int, typer.Option(min=1, help="held-out questions")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="of the samples and the resampler")] = 51,
    rate: Annotated[float, typer.Option(callback=positive, help="of both arms")] = 1e-3,
    threads: Threads = 1,
) -> None:
    """An ablation: 32 gathered visual tokens against all of them. Prints one JSON line."""
    from hiresvlm.nano.fusion import MIXTURE, compare, held_out

    torch.set_num_threads(threads)
    vocabulary = Vocabulary()
    model, head = new_model(vocabulary), GlyphHead(VISION_WIDTH, len(vocabulary.alphabet))
    restore(before, model, head)
    stream = batches(Mixture(MIXTURE), seed=seed, budget=READ_BUDGET, answers=True)
    chats = (batch for batch in stream if isinstance(batch, ChatBatch))
    samples = held_out(pages, questions)
    typer.echo(json.dumps(compare(model, head, chats, samples, steps=steps, seed=seed, rate=rate)))


def sit(sitting: Sitting, folder: Path, name: str, before: Path | None, *, seed: int, threads: int) -> Path:
    """Train for one sitting; gives the checkpoint `folder/name.safetensors`, the log is `folder/name.jsonl`.

    Where that checkpoint is there, only what is missing of the minutes is trained, with other samples. Ctrl-C
    saves before it ends the training. Raises `CheckpointError`, `FontsMissing`, `OutputError`.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    path = folder / f"{name}.safetensors"
    if path.parent != folder:
        raise OutputError(f"the name of a checkpoint cannot be {name!r}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise OutputError(f"cannot write to {folder}: {problem}") from problem
    spent = minutes_spent(path)
    typer.echo(f"{name}: {spent:.1f} of {sitting.minutes:.1f} minutes are done", err=True)
    if spent >= sitting.minutes:
        return path
    vocabulary = Vocabulary()
    model, head = new_model(vocabulary), GlyphHead(VISION_WIDTH, len(vocabulary.alphabet))
    if start := path if path.exists() else before:
        restore(start, model, head)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)  # type: ignore[arg-type]
    head.to(device)
    answers = sitting.stage == "read"
    budget = READ_BUDGET if answers else TOWER_BUDGET
    mixture, fresh = Mixture(sitting.mixture), seed + round(spent * 60_000)
    stream = batches(mixture, seed=fresh, budget=budget, answers=answers)
    with guided(model):
        model.train()
        _train(model, head, stream, sitting, path, Log(path.with_suffix(".jsonl")), spent)
    return path


def _train(
    model: Any,
    head: GlyphHead,
    stream: Iterator[TowerBatch | ChatBatch],
    sitting: Sitting,
    path: Path,
    log: Log,
    before: float,
) -> None:
    """Train until the minutes are over, of which `before` are."""
    steppers = optimizers(model, head, sitting)
    now = time.monotonic()
    started, saved, read_at = now - before * 60, now, now
    seconds, step, spent = sitting.minutes * 60, 0, before * 60
    facts: dict[str, Any] = {}
    try:
        while (spent := time.monotonic() - started) < seconds:
            batch = next(stream).to(model.device)
            losses, loss = losses_of(model, head, batch)
            torch.autograd.backward(loss)
            left = (seconds - spent) / seconds
            factor = min(1.0, (step + 1) / WARMUP_STEPS, left / sitting.decay if sitting.decay else 1.0)
            advance(steppers, factor)
            step += 1
            facts = {"step": step, "minutes": round(spent / 60, 2), "factor": round(factor, 3)}
            log.add(losses, facts)
            if time.monotonic() - saved > SAVE_EVERY_S:
                save(path, model, head, {"minutes": str(spent / 60)})
                saved = time.monotonic()
            if sitting.stage == "read" and time.monotonic() - read_at > READ_EVERY_S:
                log.write({"minutes": round(spent / 60, 2), "cer": watch(model)})
                read_at = time.monotonic()
    except KeyboardInterrupt:
        save(path, model, head, {"minutes": str(spent / 60)})
        raise
    log.rest(facts)
    save(path, model, head, {"minutes": str(sitting.minutes)})


def losses_of(
    model: Any, head: GlyphHead, batch: TowerBatch | ChatBatch
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """What is logged, and the sum that is trained on."""
    with computing(model.device):
        if isinstance(batch, TowerBatch):
            losses = tower_losses(model, head, batch)
            return losses, losses["glyph"]
        losses = chat_losses(model, head, batch)
        return losses, losses["next"] + GLYPH_WEIGHT * losses["glyph"] + GUIDE_WEIGHT * losses["guide"]


def watch(model: Any) -> dict[str, float]:
    """CER of what the model reads by itself on a few held-out tiles of each kind in `WATCHED`."""
    items = [item for item in load_evaluation() if item.kind in WATCHED]
    model.eval()
    found = {}
    for kind, count in WATCHED.items():
        some = [item for item in items if item.kind == kind][:count]
        samples = [
            Sample.transcription(Tile(item.pixels, item.answer, nowhere(item.answer), kind)) for item in some
        ]
        reads = read(model, samples, Vocabulary())
        found[kind] = round(character_errors([item.answer for item in some], reads), 4)
    model.train()
    return found


def nowhere(text: str) -> NDArray[np.float32]:
    """Places of characters where no one asks for them."""
    return np.zeros((len(text), 2), np.float32)


def main() -> None:
    """The program: an error that a user can cause ends in one sentence and its exit code."""
    try:
        app()
    except HiresvlmError as error:
        Reporter().error(error.message, error.hint)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
