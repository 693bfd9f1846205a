"""Draft-verify decoding against plain greedy decoding of one answer, and against 16 slots, on the tiles of
nano's evaluation set.

Everything is measured in one run on the same requests, from pixels to tokens, with an empty feature cache.
All ways take turns, and of each the least time counts, because other programs of the machine only add to it.
Drafts are `light`'s transcript of the same tile, the right text (what the text layer of a good PDF holds) and
none at all, when only the answer itself is looked up. An answer ends as in the engine; none is tried again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import typer

from hiresvlm import engines
from hiresvlm.bench.engine import Feed
from hiresvlm.bench.harness import json_line, table
from hiresvlm.bench.nano import LONGEST, first
from hiresvlm.datatypes import Box, Place, Request, Role, Stop, View
from hiresvlm.engines.vlm import VlmEngine
from hiresvlm.nano.data.evaluation import load_evaluation
from hiresvlm.settings import EngineSettings
from hiresvlm.tasks import TRANSCRIBE

if TYPE_CHECKING:
    from hiresvlm.engines.vlm.ladder import Job
    from hiresvlm.engines.vlm.slots import Row
    from hiresvlm.engines.vlm.stopping import Ending
    from hiresvlm.nano.data.evaluation import Item

SLOTS: Final = 16
ROUNDS: Final = 3
UNDECIDED: Final = 1e-4
"""Two best scores closer than this may change places with the shape of a batch, in any program."""


_Written = tuple[list[list[int]], int]
"""Tokens of each request, and the calls of the language model that they took."""


@dataclass(frozen=True, slots=True)
class _Way:
    """What one way to decode did."""

    name: str
    answers: tuple[tuple[int, ...], ...]
    """Tokens of each request."""
    forwards: int
    seconds: float
    cpu: float
    drafting: tuple[float, float] = (0.0, 0.0)
    """Seconds and CPU seconds that making the drafts took."""

    @property
    def tokens(self) -> int:
        return sum(map(len, self.answers))


def draft(model: str = "nano", quant: str = "int4", limit: int | None = None) -> None:
    """Print a row for each way; `limit`: only the first N tiles of each kind."""
    items = [item for item in first(load_evaluation(), limit) if item.question is None]
    engine = VlmEngine(EngineSettings(name="vlm", model=model, quant=quant, slots=SLOTS))
    requests = [_request(engine, number, item) for number, item in enumerate(items)]
    texts, drafting = _light(requests)
    exact = [item.answer for item in items]
    work: dict[str, Callable[[], _Written]] = {
        "plain greedy": lambda: _plain(engine, requests),
        "draft: light": lambda: _drafted(engine, requests, texts),
        "draft: right text": lambda: _drafted(engine, requests, exact),
        "draft: none": lambda: _drafted(engine, requests, [""] * len(items)),
        f"{SLOTS} slots": lambda: _slots(engine, requests),
    }
    rounds = [[_measured(engine, *one) for one in work.items()] for _ in range(ROUNDS)]
    ways = [_best(turns) for turns in zip(*rounds, strict=True)]
    plain = ways[0]
    ways[1] = replace(ways[1], drafting=drafting)
    rows = [_row(engine, requests, plain, way) for way in ways]
    table(
        (
            "way",
            "forwards",
            "tokens/s",
            "CPU s",
            "speed",
            "CPU ratio",
            "drafts CPU s",
            "with drafts",
            "equal",
        ),
        [
            (
                row["way"],
                row["forwards"],
                f"{row['tokens_per_s']:.0f}",
                f"{row['cpu_s']:.1f}",
                f"{row['speed']:.2f}x",
                f"{row['cpu_ratio']:.2f}",
                f"{row['draft_cpu_s']:.1f}",
                f"{row['cpu_ratio_with_drafts']:.2f}",
                f"{row['equal']} of {len(items)}",
            )
            for row in rows
        ],
    )
    typer.echo(
        f"{len(items)} tiles, {plain.tokens} tokens, {engine.info.device}, {quant}, best of {ROUNDS} rounds. "
        "Ratios: plain greedy by the way, for each token; with drafts: the time of making them added."
    )
    if any(row["equal"] < len(items) for row in rows):
        widest = max(row["widest_margin"] for row in rows)
        typer.echo(
            f"Answers that differ do so first where the two best scores are at most {widest:.1e} apart."
        )
    result = {"model": engine.info.model, "quant": quant, "device": engine.info.device, "tiles": len(items)}
    engine.close()
    json_line("draft", {**result, "rows": rows})


def _request(engine: VlmEngine, number: int, item: Item) -> Request:
    """Not marked as a transcription, so that no answer is tried a second time in one of the ways."""
    height, width = item.pixels.shape[:2]
    view = View(Box(0, 0, width, height), Role.TILE, item.pixels)
    return Request(Place(number, 0, 0), (view,), engine.parts.instruction or TRANSCRIBE, LONGEST)


def _light(requests: Sequence[Request]) -> tuple[list[str], tuple[float, float]]:
    """What engine `light` reads on each tile, and the least seconds and CPU seconds of that."""
    light = engines.find("light")(EngineSettings(name="light"))
    texts: dict[int, str] = {}
    times = []
    for _ in range(ROUNDS):
        began, cpu = time.perf_counter(), time.process_time()
        texts = {reply.place.document: reply.text for reply in light.generate(Feed(requests))}
        times.append((time.perf_counter() - began, time.process_time() - cpu))
    light.close()
    seconds, cpus = zip(*times, strict=True)
    return [texts[request.place.document] for request in requests], (min(seconds), min(cpus))


def _measured(engine: VlmEngine, name: str, work: Callable[[], _Written]) -> _Way:
    """Run a way with an empty feature cache."""
    engine.parts.encoder.cache.clear()
    began, cpu = time.perf_counter(), time.process_time()
    answers, forwards = work()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    typer.echo(f"{name}: {seconds:.1f} s", err=True)
    return _Way(name, tuple(map(tuple, answers)), forwards, seconds, cpu)


def _best(turns: Sequence[_Way]) -> _Way:
    """The least times of a way that was run several times."""
    return replace(turns[0], seconds=min(turn.seconds for turn in turns), cpu=min(turn.cpu for turn in turns))


def _plain(engine: VlmEngine, requests: Sequence[Request]) -> _Written:
    """One request after the other in the slots of the engine, of which one is used."""
    from hiresvlm.engines.vlm.slots import Row

    parts, forwards = engine.parts, 0
    answers = []
    for request in requests:
        row = Row(engine.prompt(request))
        parts.slots.join([row], [parts.encoder.encode(row.prompt.images)])
        while not _over(engine, row):
            parts.slots.step()
        parts.slots.clear()
        forwards += len(row.ids)
        answers.append(row.ids)
    return answers, forwards


def _drafted(engine: VlmEngine, requests: Sequence[Request], drafts: Sequence[str]) -> _Written:
    from hiresvlm.bench.speculative import Candidates, Decoder
    from hiresvlm.engines.vlm.slots import Row

    decoder = Decoder(engine.loaded, engine.parts.encoder)
    answers = []
    for request, text in zip(requests, drafts, strict=True):
        row = Row(engine.prompt(request))
        ids = engine.loaded.tokenizer(text, add_special_tokens=False)["input_ids"]
        decoder.write(row, Candidates(ids), lambda row: _over(engine, row))
        answers.append(row.ids)
    return answers, decoder.forwards


def _slots(engine: VlmEngine, requests: Sequence[Request]) -> _Written:
    """All requests with the loop of the engine."""
    from hiresvlm.engines.vlm.loop import Loop, Stats
    from hiresvlm.engines.vlm.stopping import Ending

    written: dict[int, list[int]] = {}

    def note(row: Row, job: Job) -> Ending | None:
        if not _over(engine, row):
            return None
        written[job.task.request.place.document] = row.ids
        return Ending(Stop.LENGTH, len(row.ids))

    stats = Stats()
    list(Loop(replace(engine.parts, rows=SLOTS, ending=note), stats).run(Feed(requests)))
    return [written[request.place.document] for request in requests], stats.steps + stats.prefills


def _over(engine: VlmEngine, row: Row) -> bool:
    """Whether an answer ends here: its end token, its limit or a loop, as in the engine."""
    from hiresvlm.engines.vlm.stopping import Limits, ending

    return ending(row.ids, engine.parts.ends, Limits(LONGEST), engine.parts.text_of) is not None


def _row(engine: VlmEngine, requests: Sequence[Request], plain: _Way, way: _Way) -> dict[str, Any]:
    """Figures of a way."""
    margins = [
        _margin(engine, request, one, other)
        for request, one, other in zip(requests, plain.answers, way.answers, strict=True)
        if one != other
    ]
    return {
        "way": way.name,
        "forwards": way.forwards,
        "tokens": way.tokens,
        "seconds": round(way.seconds, 3),
        "cpu_s": round(way.cpu, 3),
        "tokens_per_s": round(way.tokens / way.seconds, 1),
        "speed": round(plain.seconds * way.tokens / (way.seconds * plain.tokens), 3),
        "cpu_ratio": round(plain.cpu * way.tokens / (way.cpu * plain.tokens), 3),
        "draft_s": round(way.drafting[0], 3),
        "draft_cpu_s": round(way.drafting[1], 3),
        "cpu_ratio_with_drafts": round(
            plain.cpu * way.tokens / ((way.cpu + way.drafting[1]) * plain.tokens), 3
        ),
        "equal": len(requests) - len(margins),
        "undecided": sum(margin < UNDECIDED for margin in margins),
        "widest_margin": max(margins, default=0.0),
    }


def _margin(engine: VlmEngine, request: Request, one: Sequence[int], other: Sequence[int]) -> float:
    """How sure the model is where two answers part."""
    from hiresvlm.bench.speculative import Decoder

    # The same rule ends both, so neither is the beginning of the other.
    same = next(n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return Decoder(engine.loaded, engine.parts.encoder).margin(engine.prompt(request), one[:same])
