"""Chunking strategies on documents with gold text beside them (`NAME.gold.txt`), engine `light`."""

from __future__ import annotations

import os

from hiresvlm.bench.harness import Bench, json_line, table
from hiresvlm.documents import expand
from hiresvlm.errors import NoInputError
from hiresvlm.metrics import Score, score
from hiresvlm.settings import EngineSettings, Settings

GOLD_SUFFIX = ".gold.txt"
STRATEGIES = ("whole", "fixed", "overlap", "auto")


def samples(folder: str) -> None:
    """Print tokens, chunks, kept and CER of each strategy on each document and in all."""
    paths = [d.path for d in expand([folder]) if os.path.isfile(d.path + GOLD_SUFFIX)]
    gold = {path: _read(path + GOLD_SUFFIX) for path in paths}
    paths = [path for path in paths if gold[path].strip()]
    if not paths:
        raise NoInputError(f"no document of {folder} has a gold text", f"it is named NAME{GOLD_SUFFIX}")
    bench = Bench(Settings(engine=EngineSettings(name="light")))
    rows: list[tuple[object, ...]] = []
    result: dict[str, dict[str, object]] = {}
    for strategy in STRATEGIES:
        total = Score()
        read = bench.read(paths, strategy)
        for path in paths:
            records = [record for record in read.records if record["source"] == path]
            one = score([(gold[path], read.text(path))])
            total.add(gold[path], read.text(path))
            tokens = sum(record["tokens"]["visual"] for record in records)
            naive = sum(record["tokens"]["naive"] for record in records)
            chunks = sum(len(record["chunks"]) for record in records)
            name = os.path.basename(path)
            rows.append((name, strategy, chunks, tokens, f"{tokens / naive:.0%}", one.kept_share, one.cer))
            result.setdefault(name, {})[strategy] = {"tokens": tokens, "chunks": chunks, **one.as_dict()}
        rows.append(("all", strategy, "", "", "", total.kept_share, total.cer))
        result.setdefault("all", {})[strategy] = total.as_dict()
    bench.close()
    rows.sort(key=lambda row: (row[0] == "all", str(row[0])))
    table(("document", "strategy", "chunks", "tokens", "of naive", "kept", "CER"), rows)
    json_line("samples", {"documents": result})


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
