"""Engine `vlm` against the usual ways to run a model: throughput, slots, the feature cache, 4 bits,
prompts.

Everything is measured in one run on the same chunks. Answer lengths are drawn and then forced (no answer
ends by itself), so that all ways write exactly the same tokens and any model folder can be timed, a random
one too.
"""

from __future__ import annotations

import math
import os
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import typer

from hiresvlm.bench import gold
from hiresvlm.bench.harness import json_line, table
from hiresvlm.bench.probe import Reading, probe
from hiresvlm.datatypes import Box, Place, Request, Role, Stop, View
from hiresvlm.engines.vlm import VlmEngine
from hiresvlm.settings import EngineSettings

if TYPE_CHECKING:
    from hiresvlm.datatypes import Pixels, Reply
    from hiresvlm.engines.vlm.ladder import Job
    from hiresvlm.engines.vlm.slots import Row
    from hiresvlm.engines.vlm.stopping import Ending

SLOTS: Final = (1, 4, 8, 16)
STATIC_ROWS: Final = (4, 8, 16)
TILE_TOKENS: Final = 8
"""Chunks are 4 to so many visual tokens high and wide."""
SIGMA: Final = 0.5
LIMIT: Final = 2048
"""What every answer may have: how long it will be is not known before, so nothing can be sorted by it."""
KINDS: Final = ("tall", "ledger", "columns", "receipt")
STRATEGIES: Final = ("fixed", "naive", "anyres", "auto")

PUBLISHED: Final = {
    "fixed": ("48.2 %", "256", "1.8 GB", "180 ms"),
    "naive": ("96.5 %", "4,352", "18.5 GB", "3,200 ms"),
    "anyres": ("96.2 %", "1,280", "5.4 GB", "680 ms"),
}
"""Accuracy, visual tokens, memory and time of prefill as published for a 7B model on a GPU; other pages."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to measure."""

    model: str
    quant: str = "int4"
    chunks: int = 96
    mean_tokens: int = 64
    """Mean length of the forced answers."""
    pages: int = 2
    """Pages of each kind for accuracy."""
    max_new_tokens: int = 1024
    """Longest answer where accuracy is measured; with a model that cannot read, a low one saves time."""
    seed: int = 1
    slots: tuple[int, ...] = SLOTS


@dataclass(frozen=True, slots=True)
class Work:
    """Chunks with the length that each answer will have."""

    requests: tuple[Request, ...]
    lengths: tuple[int, ...]


def engine(choice: Choice) -> None:
    """Print the tables and the JSON line."""
    settings = EngineSettings(name="vlm", model=choice.model, quant=choice.quant)
    loaded = VlmEngine(replace(settings, slots=max(choice.slots)))
    work = make_work(choice, loaded.profile.factor)
    result: dict[str, Any] = {"model": loaded.info.model, "quant": choice.quant, "device": loaded.info.device}
    result["throughput"] = _throughput(loaded, work, choice)
    result["cache"] = _cache(loaded, work)
    loaded.close()
    with tempfile.TemporaryDirectory() as folder:
        pages = gold.make(folder, KINDS, choice.seed, choice.pages)
        result["int4"] = _weights(choice, [page.path for page in pages])
        result["strategies"] = _strategies(choice, [page.path for page in pages])
    json_line("engine", result)


def make_work(choice: Choice, factor: int) -> Work:
    """Chunks cut from generated pages, and lognormal lengths with the chosen mean; the same for the same
    seed."""
    generator = random.Random(choice.seed)
    pages = [_pixels(kind, choice.seed, number) for kind in KINDS for number in range(2)]
    mu = math.log(choice.mean_tokens) - SIGMA**2 / 2
    requests, lengths = [], []
    for number in range(choice.chunks):
        page = generator.choice(pages)
        high, wide = (factor * generator.randint(4, TILE_TOKENS) for _ in range(2))
        top = generator.randrange(max(1, page.shape[0] - high))
        left = generator.randrange(max(1, page.shape[1] - wide))
        length = max(1, round(generator.lognormvariate(mu, SIGMA)))
        view = View(Box(0, 0, wide, high), Role.TILE, page[top : top + high, left : left + wide].copy())
        place = Place(0, 1, 1, number, choice.chunks)
        requests.append(Request(place, (view,), "Transcribe.", LIMIT))
        lengths.append(length)
    return Work(tuple(requests), tuple(lengths))


class Feed:
    """All requests at once."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._left = list(requests)

    def take(self, n: int, wait: bool) -> list[Request]:
        given, self._left = self._left[:n], self._left[n:]
        return given


# -------------------------------------------------------------------------------------- throughput


def _throughput(loaded: VlmEngine, work: Work, choice: Choice) -> list[dict[str, Any]]:
    tokens = sum(work.lengths)
    rows: list[dict[str, Any]] = []

    def note(name: str, times: tuple[float, float], use: float | None, steps: int) -> None:
        seconds, cpu = times
        typer.echo(f"{name}: {seconds:.1f} s", err=True)
        rows.append(
            {
                "way": name,
                "seconds": round(seconds, 3),
                "cpu_s": round(cpu, 3),
                "chunks_per_s": round(len(work.requests) / seconds, 3),
                "tokens_per_s": round(tokens / seconds, 1),
                "slot_use": None if use is None else round(use, 3),
                "steps": steps,
            }
        )

    note("generate, one by one", _timed(lambda: _static(loaded, work, 1)), 1.0, tokens)
    for size in STATIC_ROWS:
        if size <= max(choice.slots):
            steps = sum(_longest(work, size))
            times = _timed(lambda: _static(loaded, work, size))  # noqa: B023
            note(f"generate, static batches of {size}", times, tokens / (size * steps), steps)
    for slots in choice.slots:
        stats: list[Any] = []
        times = _timed(lambda: stats.append(_refill(loaded, work, slots)))  # noqa: B023
        done = stats[0]
        note(f"slot refill, {slots} slots", times, done.row_steps / (done.steps * slots), done.steps)
    base = rows[0]["seconds"]
    table(
        ("way", "chunks/s", "tokens/s", "steps", "slot use", "speed", "CPU s"),
        [
            (
                row["way"],
                f"{row['chunks_per_s']:.2f}",
                f"{row['tokens_per_s']:.0f}",
                str(row["steps"]),
                f"{row['slot_use']:.0%}",
                f"{base / row['seconds']:.2f}x",
                f"{row['cpu_s']:.1f}",
            )
            for row in rows
        ],
    )
    typer.echo(
        f"{len(work.requests)} chunks, {tokens} tokens, lengths lognormal (sigma {SIGMA}). Static batches: "
        "sorted by the length of the prompt, each runs until its longest answer is written.\n"
    )
    return rows


def _refill(loaded: VlmEngine, work: Work, slots: int) -> Any:
    """Answer everything with the loop of the engine; its statistics."""
    from hiresvlm.engines.vlm.loop import Loop, Stats
    from hiresvlm.engines.vlm.stopping import Ending

    def at_length(row: Row, job: Job) -> Ending | None:
        done = len(row.ids) >= work.lengths[job.task.request.place.request]
        return Ending(Stop.LENGTH, len(row.ids)) if done else None

    parts = replace(loaded.parts, rows=slots, ending=at_length)
    parts.encoder.cache.clear()
    stats = Stats()
    replies: list[Reply] = list(Loop(parts, stats).run(Feed(work.requests)))
    written = {reply.place.request: reply.tokens.output for reply in replies}
    assert [written[n] for n in range(len(work.lengths))] == list(work.lengths)
    return stats


def _static(loaded: VlmEngine, work: Work, size: int) -> None:
    """Answer everything with `generate` of transformers, in batches sorted by length of the prompt."""
    import torch
    from transformers import GenerationConfig

    from hiresvlm.engines.vlm.inputs import grid_thw, patches, token_types

    model = loaded.loaded
    network: Any = model.model
    for batch in _batches(work, size):
        prompts = [loaded.prompt(work.requests[number]) for number in batch]
        width = max(map(len, prompts))
        ids = torch.tensor([(0,) * (width - len(prompt)) + prompt.ids for prompt in prompts])
        mask = torch.tensor([(0,) * (width - len(p)) + (1,) * len(p) for p in prompts])
        images = [image for prompt in prompts for image in prompt.images]
        longest = max(work.lengths[number] for number in batch)
        config = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=longest, min_new_tokens=longest, do_sample=False, pad_token_id=0
        )
        network.generate(
            input_ids=ids.to(model.device),
            attention_mask=mask.to(model.device),
            mm_token_type_ids=(token_types(ids, model.image_token) * mask).to(model.device),
            pixel_values=torch.cat([patches(image, model.image, model.device) for image in images]),
            image_grid_thw=grid_thw(images, model.device),
            generation_config=config,
        )


def _batches(work: Work, size: int) -> Iterator[list[int]]:
    order = sorted(range(len(work.requests)), key=lambda n: -work.requests[n].views[0].pixels.size)
    for start in range(0, len(order), size):
        yield order[start : start + size]


def _longest(work: Work, size: int) -> list[int]:
    return [max(work.lengths[number] for number in batch) for batch in _batches(work, size)]


def _timed(call: Any) -> tuple[float, float]:
    """Seconds by the clock, and of this process on all cores: these do not suffer from others on the
    machine."""
    began, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - began, time.process_time() - cpu


def _cache(loaded: VlmEngine, work: Work) -> dict[str, Any]:
    """Encoding all chunks, and encoding them again with their features in the cache."""
    parts = loaded.parts
    images = [image for request in work.requests for image in loaded.prompt(request).images]
    parts.encoder.cache.clear()
    cold, _ = _timed(lambda: parts.encoder.encode(images))
    warm, _ = _timed(lambda: parts.encoder.encode(images))
    table(
        ("vision features", "ms a chunk"),
        [
            ("encoded", f"{cold * 1e3 / len(images):.2f}"),
            ("from the cache", f"{warm * 1e3 / len(images):.3f}"),
        ],
    )
    typer.echo()
    return {"encode_ms": cold * 1e3 / len(images), "cached_ms": warm * 1e3 / len(images)}


# ---------------------------------------------------------------------------- weights and strategies


def _weights(choice: Choice, paths: Sequence[str]) -> dict[str, Any]:
    """Float weights, 4 bits made while loading, and 4 bits from a pre-quantized folder: each in its own
    process."""
    from pathlib import Path

    from hiresvlm.engines.vlm import quantization

    found: dict[str, Reading] = {}
    with tempfile.TemporaryDirectory() as folder:
        made = quantization.quantize(choice.model, Path(folder) / "nf4", "auto")
        for name, model, quant in (
            ("unquantized", choice.model, "none"),
            ("4 bits, made while loading", choice.model, "int4"),
            ("4 bits, pre-quantized", str(made), "int4"),
        ):
            typer.echo(f"weights: {name}", err=True)
            found[name] = probe(
                model, quant, "auto", paths, choice.max_new_tokens, cache=os.path.join(folder, "empty")
            )
    table(
        (
            "weights",
            "on disk MiB",
            "loaded MiB",
            "peak MiB",
            "import s",
            "weights s",
            "warm-up s",
            "kept",
            "CER",
        ),
        [
            (
                name,
                *(f"{size / 2**20:.1f}" for size in (one.disk_bytes, one.weight_bytes, one.peak_bytes)),
                *(f"{seconds:.2f}" for seconds in (one.import_s, one.weights_s, one.warm_up_s)),
                *(one.kept, one.cer),
            )
            for name, one in found.items()
        ],
    )
    typer.echo(
        "Published for a 7B model on a GPU: 13 -> 3.8 GB, load 92 -> 28 s. peak: of the whole process. "
        "`--load` measures loading alone, of a larger model too.\n"
    )
    return {name: one.as_dict() for name, one in found.items()}


def _strategies(choice: Choice, paths: Sequence[str]) -> dict[str, Any]:
    """The published comparison: ways to show a page to a model, each in its own process."""
    found: dict[str, Reading] = {}
    for name in STRATEGIES:
        typer.echo(f"strategy: {name}", err=True)
        found[name] = probe(choice.model, choice.quant, name, paths, choice.max_new_tokens)
    table(
        ("strategy", "tokens", "encode+prefill ms", "work MiB", "end-to-end ms", "kept", "CER", "published"),
        [
            (
                name,
                f"{one.visual_tokens:.0f}",
                f"{one.prefill_ms:.0f}",
                f"{one.work_bytes / 2**20:.0f}",
                f"{one.total_ms:.0f}",
                *(one.kept, one.cer, ", ".join(PUBLISHED.get(name, ("-",)))),
            )
            for name, one in found.items()
        ],
    )
    typer.echo(
        "tokens and ms: mean of a page; work: peak memory above that of the loaded model; end-to-end: from "
        "the start of rendering to the record, waiting included. fixed, naive, anyres: one prompt a page, as "
        "published (accuracy, tokens, memory, prefill)."
    )
    return {name: one.as_dict() for name, one in found.items()}


def _pixels(kind: str, seed: int, number: int) -> Pixels:
    import numpy as np

    image, _ = gold.draw(kind, seed, number)
    return np.asarray(image.convert("RGB"), np.uint8)
