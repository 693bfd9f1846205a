"""What hiresvlm-nano reads: each kind of tile of its evaluation set, in float32 and in 4 bits, through the
engine that runs production models.

A third run shows what the engine's rule is worth, that the vision tower keeps its precision: there the
matrices of the tower have gone through NF4 and back. A second table counts the same texts by the height of
their capitals, as the chunker measures it, and again by kind without the smallest print: the set holds
smaller print than the chunker ever hands to nano.
"""

from __future__ import annotations

import itertools
import math
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import cv2

from hiresvlm import engines
from hiresvlm.batching import RequestFeed, generate
from hiresvlm.bench.harness import json_line, table
from hiresvlm.chunking.analysis import analyse
from hiresvlm.datatypes import Box, Place, Reply, Request, Role, View
from hiresvlm.engines.vlm import quantization
from hiresvlm.engines.vlm.folder import locate
from hiresvlm.errors import EngineLoadError
from hiresvlm.metrics import normal, score
from hiresvlm.nano.data.evaluation import load_evaluation
from hiresvlm.settings import EngineSettings
from hiresvlm.tasks import TRANSCRIBE

if TYPE_CHECKING:
    from hiresvlm.nano.data.evaluation import Item

RUNS: Final = ("float32", "int4", "int4, tower too")
HEIGHTS: Final = (0.0, 12.0, 15.0)
"""Lower ends of the bands of the second table, capitals in pixels; 12 is the least that the chunker delivers
to nano, see `hiresvlm.nano.export.CARD`."""
LONGEST: Final = 900
"""Tokens of an answer at most; the longest text of the set has fewer than 700 characters."""


def nano(model: str = "nano", limit: int | None = None) -> None:
    """Print a row for each kind of tile and a summary; `limit`: only the first N questions of each kind."""
    items = first(load_evaluation(), limit)
    with tempfile.TemporaryDirectory() as scratch:
        rounded = tower_rounded(model, Path(scratch) / "rounded")
        models = ((model, "none"), (model, "int4"), (str(rounded), "int4"))
        found = {name: _run(*choice, items) for name, choice in zip(RUNS, models, strict=True)}
    rows = []
    for kind in dict.fromkeys(item.kind for item in items):
        mine = [n for n, item in enumerate(items) if item.kind == kind]
        row: list[object] = [kind, len(mine)]
        for answers in found.values():
            row += _figures([items[n] for n in mine], [answers["replies"][n] for n in mine])
        rows.append(row)
    heads = [f"{what} {name}" for name in RUNS for what in ("CER", "kept", "exact")]
    table(("kind", "n", *heads), rows)
    replies = {name: answers["replies"] for name, answers in found.items()}
    heights = by_height(items, replies)
    table(("capitals, px", "texts", *heads), heights)
    for name, answers in found.items():
        print(
            f"{name}: loaded in {answers['load_s']:.2f} s (imports {answers['import_s']:.2f}), "
            f"{answers['tokens']:.0f} visual tokens and {answers['ms']:.0f} ms a question (one batch), "
            f"the longest text alone {answers['alone_s']:.2f} s for {answers['alone_tokens']} characters, "
            f"weights {answers['mib']:.1f} MiB"
        )
    runs = {name: _plain(answers) for name, answers in found.items()}
    json_line("nano", {"model": model, "rows": rows, "heights": heights, "runs": runs})


def small_capitals(item: Item) -> float | None:
    """Height of the smaller capitals of a text in pixels, as the chunker measures it; None for a question,
    and where it finds no line."""
    if item.question:
        return None
    height, width = item.pixels.shape[:2]
    return analyse(cv2.cvtColor(item.pixels, cv2.COLOR_RGB2GRAY), (width, height)).small_cap_height


def by_height(items: Sequence[Item], found: Mapping[str, Sequence[Reply]]) -> list[list[object]]:
    """A row for each band of `HEIGHTS` with texts in it, then one for each kind with the texts that are as
    high as what the chunker delivers; with the figures of each run."""
    groups: dict[str, list[int]] = {}
    bands = [
        (low, high, f"{low:g} to {high:g}" if high < math.inf else f"{low:g} and more")
        for low, high in itertools.pairwise((*HEIGHTS, math.inf))
    ]
    legible = HEIGHTS[1]
    capitals = [small_capitals(item) for item in items]
    for low, high, name in bands:
        groups[name] = [n for n, cap in enumerate(capitals) if cap is not None and low <= cap < high]
    for n, (item, cap) in enumerate(zip(items, capitals, strict=True)):
        if cap is not None and cap >= legible:
            groups.setdefault(f"{item.kind}, {legible:g} and more", []).append(n)
    rows: list[list[object]] = []
    for name, mine in groups.items():
        if mine:
            row: list[object] = [name, len(mine)]
            for replies in found.values():
                row += _figures([items[n] for n in mine], [replies[n] for n in mine])
            rows.append(row)
    return rows


def tower_rounded(model: str, target: Path) -> Path:
    """A copy of a model's folder in which the matrices of the vision tower and its merger have lost what four
    bits lose. Raises `EngineLoadError` for a name that is no model on this machine."""
    source = locate(model)
    if source.folder is None:
        raise EngineLoadError(f"the model {model} is not on this machine")
    shutil.copytree(source.folder, target)
    quantization.import_bitsandbytes()
    from bitsandbytes.functional import dequantize_4bit, quantize_4bit
    from safetensors.torch import load_file, save_file

    for path in target.glob("*.safetensors"):
        tensors = load_file(path)
        for name, tensor in tensors.items():
            if ".visual." in name and tensor.ndim == 2:
                blocks = tensor.float().reshape(-1, quantization.BLOCK)  # see `quantization.check`
                back = dequantize_4bit(*quantize_4bit(blocks, quant_type="nf4"))
                tensors[name] = back.to(tensor.dtype).reshape(tensor.shape)
        save_file(tensors, path, metadata={"format": "pt"})
    return target


def first(items: Iterable[Item], limit: int | None) -> list[Item]:
    """The first N questions of each kind, in order; None: all."""
    seen: dict[str, int] = defaultdict(int)
    kept = []
    for item in items:
        seen[item.kind] += 1
        if limit is None or seen[item.kind] <= limit:
            kept.append(item)
    return kept


def _run(model: str, quant: str, items: Sequence[Item]) -> dict[str, Any]:
    began = time.perf_counter()
    engine = engines.find("vlm")(EngineSettings(name="vlm", model=model, quant=quant))
    loaded = time.perf_counter()
    requests = [_request(n, item) for n, item in enumerate(items)]
    replies = _answers(engine, requests)
    seconds = time.perf_counter() - loaded
    largest = max(requests, key=lambda request: len(items[request.place.document].answer))
    _answers(engine, [largest])
    alone = time.perf_counter() - loaded - seconds
    stats = engine.stats() if isinstance(engine, engines.Measured) else {}
    engine.close()
    ordered = [replies[n] for n in range(len(items))]
    return {
        "replies": ordered,
        "load_s": loaded - began,
        "import_s": stats.get("import_s", 0.0),
        "alone_s": alone,
        "alone_tokens": replies[largest.place.document].tokens.output,
        "ms": 1000 * seconds / len(items),
        "tokens": sum(reply.tokens.visual for reply in ordered) / len(items),
        "mib": stats.get("weights_bytes", 0) / 2**20,
    }


def _answers(engine: engines.Engine, requests: list[Request]) -> dict[int, Reply]:
    waiting = iter([requests])
    feed = RequestFeed(lambda wait: next(waiting, None))
    return {reply.place.document: reply for reply in generate(engine, feed)}


def _request(number: int, item: Item) -> Request:
    height, width = item.pixels.shape[:2]
    view = View(Box(0, 0, width, height), Role.TILE, item.pixels)
    prompt = item.question or TRANSCRIBE
    return Request(Place(number, 0, 0), (view,), prompt, LONGEST, transcribes=item.question is None)


def _figures(items: Sequence[Item], replies: Sequence[Reply]) -> tuple[float, float, float]:
    total = score((item.answer, reply.text) for item, reply in zip(items, replies, strict=True))
    exact = sum(normal(i.answer) == normal(r.text) for i, r in zip(items, replies, strict=True)) / len(items)
    return total.cer, total.kept_share, exact


def _plain(answers: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) for name, value in answers.items() if name != "replies"}
