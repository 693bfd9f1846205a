"""One way to read some pages, in a process of its own: its memory and load time are not those of another
way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Reading:
    """What a process measured. Means are of a page."""

    disk_bytes: int
    weight_bytes: int
    peak_bytes: int
    work_bytes: int
    """Peak less what was resident after loading: what reading took."""
    import_s: float
    """Of the libraries; the same for every model."""
    weights_s: float
    """Reading the weights, and quantizing them where that was not done before."""
    warm_up_s: float
    visual_tokens: float
    prefill_ms: float
    """Encoding and prefill together."""
    total_ms: float
    seconds: float
    kept: float
    cer: float

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


def probe(
    model: str,
    quant: str,
    strategy: str,
    paths: Sequence[str],
    max_new_tokens: int,
    cache: str | None = None,
) -> Reading:
    """Read pages with gold text beside them. `cache`: another folder for pre-quantized models.

    Raises `RuntimeError` when the process fails.
    """
    environment = dict(os.environ)
    if cache is not None:
        environment["HIRESVLM_CACHE"] = cache
    task: dict[str, Any] = {"model": model, "quant": quant, "strategy": strategy, "paths": list(paths)}
    task["max_new_tokens"] = max_new_tokens
    command = [sys.executable, "-m", "hiresvlm.bench.probe", json.dumps(task)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"reading with {model} ({quant}) failed:\n{done.stderr[-2000:]}")
    return Reading(**json.loads(done.stdout.splitlines()[-1]))


def measure(task: dict[str, Any]) -> Reading:
    """The work of the process."""
    import statistics

    from hiresvlm.bench import gold
    from hiresvlm.bench.harness import Bench
    from hiresvlm.engines.vlm import VlmEngine
    from hiresvlm.metrics import Score
    from hiresvlm.settings import EngineSettings, RunSettings, Settings, TaskSettings

    engine = EngineSettings(name="vlm", model=task["model"], quant=task["quant"])
    limit = TaskSettings(max_new_tokens=task["max_new_tokens"])
    bench = Bench(Settings(engine=engine, task=limit, run=RunSettings(workers=1)))
    vlm = bench.engine
    assert isinstance(vlm, VlmEngine)
    idle = vlm.stats()["used_bytes"]
    read = bench.read(task["paths"], task["strategy"])
    stats = vlm.stats()
    folder = vlm.loaded.facts.folder
    score = Score()
    for path in task["paths"]:
        score.add("\n".join(page.text for page in gold.load(path)), read.text(path))
    pages = [record for record in read.records if record["latency_ms"]["prefill"] is not None]
    times = [record["latency_ms"] for record in pages]
    return Reading(
        disk_bytes=sum(file.stat().st_size for file in folder.glob("*.safetensors")),
        weight_bytes=stats["weights_bytes"],
        peak_bytes=stats["peak_bytes"],
        work_bytes=stats["peak_bytes"] - idle,
        import_s=stats["import_s"],
        weights_s=stats["weights_s"],
        warm_up_s=stats["warm_up_s"],
        visual_tokens=statistics.mean(record["tokens"]["visual"] for record in pages),
        prefill_ms=statistics.mean(time["encode"] + time["prefill"] for time in times),
        total_ms=statistics.mean(time["total"] for time in times),
        seconds=read.seconds,
        kept=score.kept_share,
        cer=score.cer,
    )


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure(json.loads(sys.argv[1])).as_dict()) + "\n")
