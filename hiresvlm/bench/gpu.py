"""What a GPU makes of the engine: models of the production sizes with random weights, built on the device.

Random weights take as long as trained ones, so nothing is downloaded. One step of a full batch, encoding and
prefill, refill against static batches, and decoding as a CUDA graph, in bfloat16 and in NF4. A measurement
that fails is noted with its reason and the others go on; none is begun that the time left may not allow.

Shares of the roofline (Williams, Waterman and Patterson, CACM 52(4), 2009): the least time that the device
could take, by the bytes that must be moved or the operations that must be done, divided by the time taken.

    step:    bytes = weights of the linear layers and the output layer + rows * context * bytes of a token's
             keys and values; operations = 2 * (linear weights + output layer) * rows
             + 4 * rows * context * heads * width of a head * layers
    prefill: operations = 2 * linear weights * tokens + 2 * tokens^2 * heads * width of a head * layers
             (causal: half of 4 * tokens^2)
    encode:  operations = 2 * vision weights * patches (attention, under a tenth with windows, is left out)

Both limits are measured in the same run: a copy of 1 GiB and a product of two square matrices in bfloat16.
NF4 counts as the 0.5625 bytes of a stored weight, though kernels of bitsandbytes that first expand the
weights move up to 4.5 (its `backends/cuda/ops.py` picks them by the number of rows).
"""

from __future__ import annotations

import gc
import json
import logging
import math
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import typer

from hiresvlm.bench.harness import json_line, table
from hiresvlm.errors import EngineLoadError, OutputError

if TYPE_CHECKING:
    import torch

    from hiresvlm.bench.gpu_build import Built

MODELS: Final = ("qwen2.5-vl-3b", "qwen3-vl-4b")
SLOTS: Final = (1, 8, 32, 64)
VISUAL: Final = (256, 1280, 4352)
"""Visual tokens of a small chunk, the largest image, and the naive page."""
CONTEXT: Final = 1400
"""Tokens of a row whose step is timed: 1,280 visual and 120 of text."""
TEXT: Final = 120
STEPS: Final = 20
GRAPH_ROWS: Final = (1, 8, 32)
ANSWERS: Final = 96
MEAN: Final = 64
SIGMA: Final = 0.5
SECONDS: Final = 440
"""Of the eight minutes that a run may take; the rest is for loading libraries and the last measurement."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    slots: tuple[int, ...] = SLOTS
    visual: tuple[int, ...] = VISUAL
    context: int = CONTEXT
    steps: int = STEPS
    graph_rows: tuple[int, ...] = GRAPH_ROWS
    answers: int = ANSWERS
    mean: int = MEAN
    refill_slots: int = 32
    refill_visual: int = 256
    copy_bytes: int = 2**30
    square: int = 8192


TINY: Final = Sizes((1, 3), (4, 16), 24, 2, (1, 2), 8, 6, 3, 4, 2**20, 64)
"""For tests, on any device."""


class Run:
    """Measurements one after the other, until the time is up; each result is kept at once."""

    def __init__(self, seconds: float, save: str | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.result: dict[str, Any] = {}
        self._clock = clock
        self._end = clock() + seconds
        self._save = save
        self._longest = 0.0

    def measure(self, path: Sequence[str], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Result of `work` with its `status`: ok, skipped (no time), out_of_memory, failed (and `error`).

        No measurement is begun with less time left than the longest took so far.
        """
        import torch

        began = self._clock()
        found: dict[str, Any]
        if began + self._longest > self._end:
            found = {"status": "skipped", "error": "no time left"}
        else:
            try:
                found = {"status": "ok"} | work()
            except torch.OutOfMemoryError:
                found = {"status": "out_of_memory"}
            except Exception as error:  # any library below: the other measurements are still worth having
                found = {"status": "failed", "error": f"{type(error).__name__}: {error}"[:300]}
            self._longest = max(self._longest, self._clock() - began)
            # Not inside `except`: the traceback would keep the tensors alive.
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
        inner = self.result
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = found
        typer.echo(f"{' '.join(path)}: {found['status']}", err=True)
        self.keep()
        return found

    def keep(self) -> None:
        """Write what there is; raises `OutputError`. A run that is killed leaves what it measured."""
        if self._save is None:
            return
        try:
            os.makedirs(os.path.dirname(os.path.abspath(self._save)), exist_ok=True)
            with open(f"{self._save}.part", "w", encoding="utf-8") as file:
                json.dump(self.result, file, indent=1)
            os.replace(f"{self._save}.part", self._save)
        except OSError as error:
            raise OutputError(f"cannot write {self._save}: {error.strerror}") from error


def gpu(tiny: bool = False, seconds: float = SECONDS, save: str | None = None) -> None:
    """Measure and print. `tiny`: small models, on the CPU where there is no GPU.

    Raises `EngineLoadError` where there is no GPU, `OutputError`.
    """
    from hiresvlm.engines.vlm import device as devices

    run = Run(seconds, save)
    name = devices.choose("auto")
    if name == "cpu" and not tiny:
        why = "" if devices.torch_has_cuda() else " (the installed torch is a build for the CPU)"
        raise EngineLoadError(
            f"there is no CUDA GPU on this machine{why}", "bench gpu --tiny tries the same on small models"
        )
    devices.prepare_environment()
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    import torch

    from hiresvlm.bench import gpu_model

    device = torch.device(name)
    sizes = TINY if tiny else Sizes()
    run.result |= _machine(device, tiny)
    limits = run.measure(("limits",), lambda: gpu_model.limits(device, sizes.copy_bytes, sizes.square))
    for model in MODELS:
        _model(run, model, device, sizes, limits, tiny)
    run.keep()
    _show(run.result)
    json_line("gpu", run.result)


def _machine(device: torch.device, tiny: bool) -> dict[str, Any]:
    import bitsandbytes
    import torch
    import transformers

    found: dict[str, Any] = {"device": "cpu", "memory_bytes": None, "tiny": tiny}
    if device.type == "cuda":
        facts = torch.cuda.get_device_properties(device)
        found |= {"device": facts.name, "memory_bytes": facts.total_memory}
    libraries = {"torch": torch, "transformers": transformers, "bitsandbytes": bitsandbytes}
    return found | {"versions": {name: library.__version__ for name, library in libraries.items()}}


def _model(
    run: Run, name: str, device: torch.device, sizes: Sizes, limits: dict[str, Any], tiny: bool
) -> None:
    """All measurements of one model, first as it is, then in 4 bits."""
    from hiresvlm.bench import gpu_build, gpu_model
    from hiresvlm.engines.vlm import memory

    built: list[Built] = []

    def build(quant: str) -> dict[str, Any]:
        began = time.perf_counter()
        if quant == "bf16":
            built.append(gpu_build.build(name, device, tiny))
        else:
            gpu_build.to_nf4(built[0])
        gpu_model.wait(device)
        seconds = time.perf_counter() - began
        return {"seconds": round(seconds, 2), "weights_bytes": built[0].loaded.weight_bytes}

    for quant in ("bf16", "nf4"):
        told = run.measure((name, quant, "build"), lambda: build(quant))  # noqa: B023  (called at once)
        if told["status"] != "ok":
            break
        one = built[0]
        for rows in sizes.slots:
            run.measure(
                (name, quant, "step", str(rows)),
                lambda: gpu_model.step(one, rows, sizes.context, sizes.steps, limits),  # noqa: B023
            )
        for visual in sizes.visual:
            run.measure(
                (name, quant, "prefill", str(visual)),
                lambda: gpu_model.prefill(one, visual, TEXT, limits),  # noqa: B023
            )
        lengths = answer_lengths(sizes)
        run.measure(
            (name, quant, "refill"),
            lambda: gpu_model.refill(one, lengths, sizes.refill_slots, sizes.refill_visual),  # noqa: B023
        )
        for rows in sizes.graph_rows:
            run.measure(
                (name, quant, "compiled", str(rows)),
                lambda: gpu_model.compiled(one, rows, sizes.context, sizes.steps),  # noqa: B023
            )
    built.clear()
    memory.release(device)


def answer_lengths(sizes: Sizes) -> list[int]:
    """Lognormal lengths with the mean of `sizes`, the same in every run."""
    generator = random.Random(1)
    mu = math.log(sizes.mean) - SIGMA**2 / 2
    return [max(2, round(generator.lognormvariate(mu, SIGMA))) for _ in range(sizes.answers)]


def _show(result: dict[str, Any]) -> None:
    """Tables for people; what was not measured says why."""
    rows = []
    for model in MODELS:
        for quant, found in result.get(model, {}).items():
            for what in ("step", "prefill", "compiled"):
                for size, one in found.get(what, {}).items():
                    rows.append((model, quant, f"{what} {size}", *_cells(one)))
            if "refill" in found:
                rows.append((model, quant, "refill", *_cells(found["refill"])))
    table(("model", "weights", "what", "ms", "tokens/s", "roofline", "note"), rows)
    typer.echo(
        "step N: one token for each of N rows. prefill N: encoding an image of N visual tokens, and its "
        "prompt. compiled N: step N as a CUDA graph over a static cache. roofline: share of it.\n"
    )


def _cells(one: dict[str, Any]) -> tuple[str, str, str, str]:
    if one["status"] != "ok":
        return "-", "-", "-", one.get("error", one["status"])[:60]
    share = one.get("roofline")
    speed = one.get("tokens_per_s")
    return (
        f"{one['ms']:.2f}",
        "-" if speed is None else f"{speed:.0f}",
        "-" if share is None else f"{share:.0%}",
        str(one.get("note", "")),
    )
