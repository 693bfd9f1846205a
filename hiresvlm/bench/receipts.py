"""Receipts: the `light` engine inside the whole tool, plain RapidOCR and Tesseract, in one run.

FOLDER holds images and `gold.jsonl` with `{"file": name, "lines": [[box, text], ...]}` (the form of
ICDAR 2019 SROIE). The three systems take turns in groups of pages, so that what else the machine does
hits all of them alike; the speed-up is the median of the groups' ratios. The gold text is in capitals
whatever the paper says, so all scores ignore case.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable

import typer

from hiresvlm.bench.harness import Bench, json_line, read_gold, table
from hiresvlm.metrics import Score
from hiresvlm.settings import EngineSettings, Settings

GROUP = 15
"""Pages a system reads before the next one has its turn."""


def receipts(folder: str, limit: int | None = None) -> None:
    """Print word F1, CER, kept and seconds a page of each system."""
    gold = read_gold(folder, limit)
    bench = Bench(Settings(engine=EngineSettings(name="light")))
    systems: dict[str, Callable[[list[str]], list[str]]] = {
        "light": lambda paths: _light(bench, paths),
        "rapidocr": _rapidocr(),
    }
    if shutil.which("tesseract"):
        systems["tesseract"] = lambda paths: [_tesseract(path) for path in paths]
    scores = {name: Score() for name in systems}
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    names = list(gold)
    # A last group of a few pages would weigh as much as a full one in the median.
    groups = max(1, round(len(names) / GROUP))
    for group in (names[i::groups] for i in range(groups)):
        paths = [os.path.join(folder, name) for name in group]
        for system, read in systems.items():
            began = time.perf_counter()
            texts = read(paths)
            seconds[system].append((time.perf_counter() - began) / len(group))
            for name, text in zip(group, texts, strict=True):
                scores[system].add(gold[name].upper(), text.upper())
    bench.close()
    ratio = {
        name: statistics.median(p / s for p, s in zip(seconds["rapidocr"], own, strict=True))
        for name, own in seconds.items()
    }
    per_page = {name: statistics.median(own) for name, own in seconds.items()}
    table(
        ("system", "word F1", "CER", "kept", "s/page", "speed"),
        [
            (name, s.word_f1, s.cer, s.kept_share, f"{per_page[name]:.2f}", f"{ratio[name]:.2f}x")
            for name, s in scores.items()
        ],
    )
    if "tesseract" not in systems:
        typer.echo("tesseract: not measured, the program is not installed")
    json_line(
        "receipts",
        {
            "pages": len(gold),
            "cores": len(os.sched_getaffinity(0)),
            "systems": {
                name: {**s.as_dict(), "s_per_page": per_page[name], "speed": ratio[name]}
                for name, s in scores.items()
            },
        },
    )


def _light(bench: Bench, paths: list[str]) -> list[str]:
    result = bench.read(paths)
    return [result.text(path) for path in paths]


def _rapidocr() -> Callable[[list[str]], list[str]]:
    """RapidOCR as its README shows it, all cores."""
    from rapidocr import RapidOCR

    engine = RapidOCR(params={"Global.log_level": "error"})

    def read(paths: list[str]) -> list[str]:
        return ["\n".join(engine(path).txts or ()) for path in paths]

    return read


def _tesseract(path: str) -> str:
    command = ["tesseract", path, "stdout"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout
