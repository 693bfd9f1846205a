"""Blank cells dropped before the vision tower, or not: visual tokens, accuracy and time on the same pages.

Generated receipts and scans, whose gold is known, and with FOLDER real receipts (`gold.jsonl`, compared in
capitals as their gold is). The engine is loaded twice, once for each way; all else is the same.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import typer

from hiresvlm.bench import gold
from hiresvlm.bench.harness import Bench, Result, json_line, read_gold, table
from hiresvlm.metrics import Score
from hiresvlm.settings import EngineSettings, RunSettings, Settings, TaskSettings

KINDS: Final = ("receipt", "scan")
TOKENS_GATE: Final = 0.25
"""So much of the visual tokens is to go on generated pages..."""
CER_GATE: Final = 0.003
"""...at no more than this much CER."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What to measure."""

    model: str
    quant: str
    pages: int
    """Pages of each kind."""
    seed: int
    strategies: tuple[str, ...]
    limit: int | None
    """Documents of the folder; None: all."""
    max_new_tokens: int


@dataclass(frozen=True, slots=True)
class _Set:
    """Documents of one kind and their gold."""

    texts: Mapping[str, str]
    """Path -> gold."""
    fold: Callable[[str], str] = str


def pruning(folder: str | None, choice: Choice) -> None:
    """Print a row for each strategy and kind of page, and whether the gate is met on the generated ones."""
    with tempfile.TemporaryDirectory() as place:
        sets: dict[str, _Set] = {}
        for kind in KINDS:
            pages = gold.make(place, (kind,), choice.seed, choice.pages)
            sets[kind] = _Set({page.path: page.text for page in pages})
        if folder is not None:
            texts = read_gold(folder, choice.limit)
            sets["real receipts"] = _Set(
                {os.path.join(folder, name): text for name, text in texts.items()}, str.upper
            )
        found = {prune: _read(choice, sets, prune=prune) for prune in (False, True)}
    rows, results = [], []
    for key in found[False]:
        off, on = found[False][key], found[True][key]
        saved = 1 - on["visual"] / off["visual"]
        points = 100 * (on["cer"] - off["cer"])
        results.append({"strategy": key[0], "kind": key[1], "saved": saved, "off": off, "on": on})
        rows.append(
            (
                *key,
                off["pages"],
                f"{off['visual'] / off['pages']:.0f}",
                f"{on['visual'] / on['pages']:.0f}",
                f"-{saved:.1%}",
                *(f"{one['cer']:.2%}" for one in (off, on)),
                f"{points:+.2f}",
                *(f"{one['kept']:.2%}" for one in (off, on)),
                *(f"{one['prefill_ms']:.0f}" for one in (off, on)),
            )
        )
    heads = ("strategy", "kind", "pages", "tokens", "pruned", "saved", "CER", "pruned", "points")
    table((*heads, "kept", "pruned", "encode+prefill ms", "pruned"), rows)
    gates = {strategy: _gate(results, strategy) for strategy in choice.strategies}
    for strategy, (saved, worse) in gates.items():
        met = saved >= TOKENS_GATE and worse <= CER_GATE
        typer.echo(
            f"{strategy}, generated pages: {saved:.1%} fewer visual tokens, {100 * worse:+.2f} points CER; "
            f"gate (25 % at 0.3 points) {'met' if met else 'missed'}"
        )
    typer.echo("Published, together with AnyRes and on a GPU: 60 % less sequence, 3.2 times as fast.")
    json_line("prune", {"model": choice.model, "seed": choice.seed, "rows": results})


def _gate(results: list[dict[str, Any]], strategy: str) -> tuple[float, float]:
    """Share of tokens saved, and CER lost, on all generated pages together."""
    mine = [row for row in results if row["strategy"] == strategy and row["kind"] in KINDS]

    def total(way: str, name: str) -> float:
        return float(sum(row[way][name] for row in mine))

    saved = 1 - total("on", "visual") / total("off", "visual")
    return saved, (total("on", "edits") - total("off", "edits")) / total("off", "gold")


def _read(choice: Choice, sets: Mapping[str, _Set], *, prune: bool) -> dict[tuple[str, str], dict[str, Any]]:
    engine = EngineSettings(name="vlm", model=choice.model, quant=choice.quant, prune=prune)
    limit = TaskSettings(max_new_tokens=choice.max_new_tokens)
    bench = Bench(Settings(engine=engine, task=limit, run=RunSettings(workers=1)))
    try:
        return {
            (strategy, kind): _figures(part, bench.read(list(part.texts), strategy))
            for strategy in choice.strategies
            for kind, part in sets.items()
        }
    finally:
        bench.close()


def _figures(part: _Set, read: Result) -> dict[str, Any]:
    score = Score()
    for path, text in part.texts.items():
        score.add(part.fold(text), part.fold(read.text(path)))
    times = [record["latency_ms"] for record in read.records]
    return {
        "pages": len(part.texts),
        "visual": sum(record["tokens"]["visual"] for record in read.records),
        "visual_full": sum(record["tokens"]["visual_full"] for record in read.records),
        "edits": score.edits,
        "gold": score.gold,
        "cer": score.cer,
        "kept": score.kept_share,
        "prefill_ms": sum((time["encode"] or 0) + (time["prefill"] or 0) for time in times) / len(times),
        "seconds": read.seconds,
    }
