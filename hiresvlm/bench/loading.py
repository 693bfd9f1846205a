"""Loading a model: unquantized, with 4 bits made while loading, and from a pre-quantized folder.

Each in a process of its own, several times in turn, the median counts. The model of the package is too small
to show what quantizing costs, so a larger one with random weights is made beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import typer

from hiresvlm.bench.harness import json_line, table

ROUNDS: Final = 3
LARGE: Final = {
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_hidden_layers": 13,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
}
"""Decoder of the random model: 147 million parameters, 300 MB in bfloat16."""


def loads(model: str) -> None:
    """Print the table and the JSON line."""
    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        large = make_large(Path(folder) / "random")
        for title, name in ((model, model), ("random", str(large))):
            found |= {f"{title}, {way}": times for way, times in _ways(name, Path(folder) / title).items()}
    table(
        ("model", "on disk MiB", "import s", "weights s", "CPU s", "warm-up s", "all s", "peak MiB"),
        [
            (
                name,
                f"{one['disk_bytes'] / 2**20:.1f}",
                *(f"{one[key]:.2f}" for key in ("import_s", "weights_s", "cpu_s", "warm_up_s", "all_s")),
                f"{one['peak_bytes'] / 2**20:.0f}",
            )
            for name, one in found.items()
        ],
    )
    speed = {}
    for title in (model, "random"):
        made, kept = (found[f"{title}, 4 bits {way}"] for way in ("made while loading", "pre-quantized"))
        speed[title] = {key: round(made[key] / kept[key], 2) for key in ("weights_s", "cpu_s")}
        typer.echo(
            f"{title}: pre-quantized weights load {speed[title]['weights_s']:.1f} times as fast "
            f"({speed[title]['cpu_s']:.1f} times by CPU)."
        )
    typer.echo(
        f"Median of {ROUNDS}, files in the page cache. weights: reading, and quantizing where that was not "
        "done before; CPU: of that alone. Published for a 7B model on a GPU: 92 -> 28 s."
    )
    json_line("load", {"ways": found, "speed": speed})


def _ways(model: str, folder: Path) -> dict[str, dict[str, float]]:
    """Figures of one model by the way it is loaded."""
    from hiresvlm.engines.vlm import quantization

    made = quantization.quantize(model, folder / "nf4", "cpu")
    ways = {
        "unquantized": (model, "none"),
        "4 bits made while loading": (model, "int4"),
        "4 bits pre-quantized": (str(made), "int4"),
    }
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for number in range(ROUNDS):
        for way, (name, quant) in ways.items():
            typer.echo(f"loading {name}: {way}, {number + 1} of {ROUNDS}", err=True)
            runs[way].append(_probe(name, quant, cache=str(folder / "empty")))
    return {
        way: {key: statistics.median(run[key] for run in several) for key in several[0]}
        for way, several in runs.items()
    }


def _probe(model: str, quant: str, cache: str) -> dict[str, float]:
    command = [sys.executable, "-m", "hiresvlm.bench.loading", json.dumps({"model": model, "quant": quant})]
    environment = dict(os.environ) | {"HIRESVLM_CACHE": cache}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"loading {model} ({quant}) failed:\n{done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def measure(model: str, quant: str) -> dict[str, float]:
    """The work of a process: load as a run does, then the weights alone for their CPU time."""
    from hiresvlm.engines.vlm import VlmEngine
    from hiresvlm.settings import EngineSettings

    began = time.perf_counter()
    engine = VlmEngine(EngineSettings(name="vlm", model=model, quant=quant, device="cpu"))
    ready = time.perf_counter() - began
    stats = engine.stats()
    facts = engine.loaded.facts
    engine.close()
    from hiresvlm.engines.vlm.loading import read_weights

    cpu = time.process_time()
    read_weights(facts, quant, "cpu")
    cpu = time.process_time() - cpu
    return {
        "disk_bytes": sum(file.stat().st_size for file in facts.folder.glob("*.safetensors")),
        "peak_bytes": stats["peak_bytes"],
        "all_s": ready,
        "cpu_s": cpu,
        **{key: stats[key] for key in ("import_s", "weights_s", "load_s", "warm_up_s")},
    }


def make_large(folder: Path) -> Path:
    """A model folder with the files of nano and a larger decoder of random weights, in bfloat16."""
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText
    from transformers.utils import logging as hf_logging

    from hiresvlm.engines.vlm.folder import CARD, nano_folder, read_json

    hf_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    source = nano_folder()
    told = read_json(source / "config.json")
    del told["text_config"]["layer_types"]
    told["text_config"] |= LARGE
    told["vision_config"]["out_hidden_size"] = LARGE["hidden_size"]
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(told), encoding="utf-8")
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    torch.manual_seed(1)
    random: Any = AutoModelForImageTextToText
    model = random.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    for path in source.iterdir():
        if path.suffix in (".json", ".jinja") and path.name != CARD and not (folder / path.name).exists():
            shutil.copy(path, folder / path.name)
    return folder


if __name__ == "__main__":
    task = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(measure(task["model"], task["quant"])) + "\n")
