"""The engine in the whole tool: a run over pages, its records, its report, and the options."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hiresvlm import engines
from hiresvlm.cli import options
from hiresvlm.datatypes import Reply, Stop
from hiresvlm.doctor import examine
from hiresvlm.engines.vlm import VlmEngine
from hiresvlm.errors import UsageError
from hiresvlm.settings import ChunkSettings, EngineSettings, Settings, TaskSettings
from tests.support import cli, make_png, read_records, run_pages
from tests.tiny_models import FAMILIES
from tests.vlm_support import ListFeed, noise, request

TEXT = ("Hello world 123", "second line of text")


class KeptOpen(VlmEngine):
    """Stays loaded over several runs."""

    def close(self) -> None:
        """Left to the end of the tests."""


@pytest.fixture(scope="module")
def engine(tiny: Callable[[str], Path]) -> VlmEngine:
    settings = EngineSettings(name="vlm", model=str(tiny("qwen2_5_vl")), quant="none", device="cpu", slots=4)
    return KeptOpen(settings)


def settings_of(engine: VlmEngine, **chunk: Any) -> Settings:
    base = Settings(task=TaskSettings(max_new_tokens=12), engine=EngineSettings(name="vlm"))
    profile = engine.profile
    found = ChunkSettings(legible=profile.legible, factor=profile.factor, max_tokens=profile.max_tokens)
    return replace(base, chunk=replace(found, **chunk))


def test_a_run_gives_records_with_tokens_times_and_confidence(engine: VlmEngine, folder: Path) -> None:
    paths = [make_png(folder / f"{number}.png", TEXT) for number in range(3)]
    records, report = run_pages(paths, engine, settings_of(engine))
    assert len(records) == 3
    for record in records:
        assert record["status"] == "partial"  # a random model never ends by itself
        assert record["failures"][0]["kind"] == "truncated"
        tokens, times = record["tokens"], record["latency_ms"]
        assert not tokens["planned"]
        assert tokens["visual"] == tokens["visual_full"] == sum(c["visual_tokens"] for c in record["chunks"])
        assert tokens["prompt"] > tokens["visual"]
        assert tokens["output"] == 12 * len(record["chunks"])
        assert all(times[step] >= 0 for step in ("encode", "prefill", "ttft", "decode"))
        assert times["encode"] + times["prefill"] <= times["total"]
        for line in record["lines"]:
            assert line["box"] is None
            assert 0 < line["weakest"] <= line["confidence"] <= 1
    stats = report.as_dict()["engine_stats"]
    assert stats["feature_cache"]["hits"] == 2  # three pages with the same picture
    assert 0 < stats["slot_use"] <= 1
    assert stats["peak_bytes"] >= stats["weights_bytes"]
    assert stats["load_s"] >= stats["weights_s"] > 0
    assert stats["import_s"] >= 0  # none where another test imported the libraries
    assert stats["warm_up_s"] > 0
    assert stats["prequantized"] is False


def test_chunks_of_a_record_have_the_tokens_that_were_sent(tiny: Callable[[str], Path], folder: Path) -> None:
    settings = EngineSettings(
        name="vlm", model=str(tiny("qwen2_5_vl")), quant="none", device="cpu", prune=True
    )
    engine = VlmEngine(settings)
    path = make_png(folder / "page.png", [*TEXT, *[""] * 6, TEXT[0]])
    (record,), _ = run_pages([path], engine, settings_of(engine, strategy="whole"))
    tokens = record["tokens"]
    assert tokens["visual"] == sum(chunk["visual_tokens"] for chunk in record["chunks"])
    assert tokens["visual"] < tokens["visual_full"]


@pytest.mark.parametrize("strategy", ["fixed", "anyres", "naive", "auto"])
def test_published_ways_are_one_prompt_a_page(engine: VlmEngine, folder: Path, strategy: str) -> None:
    path = make_png(folder / "page.png", TEXT * 6, width=900)
    (record,), report = run_pages([path], engine, settings_of(engine, strategy=strategy))
    assert record["tokens"]["visual"] == sum(chunk["visual_tokens"] for chunk in record["chunks"])
    counted = [chunk for chunk in record["chunks"] if chunk["output_tokens"] is not None]
    if strategy == "auto":
        assert report.requests == len(record["chunks"])
    else:
        assert report.requests == 1
        assert len(counted) == 1
    if strategy == "naive":
        assert record["tokens"]["visual"] == record["tokens"]["naive"] == 4352


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_of_different_sizes_equals_each_alone(family: str, tiny: Callable[[str], Path]) -> None:
    engine = VlmEngine(
        EngineSettings(name="vlm", model=str(tiny(family)), quant="none", device="cpu", slots=5)
    )
    factor = engine.profile.factor
    sizes = [(1, 1), (9, 3), (2, 8), (5, 5), (1, 12), (7, 2), (3, 3)]
    asked = [request(n, noise(n, *size, factor), limit=6 + 5 * n) for n, size in enumerate(sizes)]

    def answers(requests: list[Any], **feeding: int) -> dict[int, Reply]:
        feed = ListFeed(requests, **feeding)
        return {r.place.request: r for r in map(feed.answered, engine.generate(feed))}

    together = answers(asked, burst=3, stall=2)
    for one in asked:
        alone = answers([one])[one.place.request]
        found = together[one.place.request]
        assert (found.text, found.stop, found.tokens) == (alone.text, alone.stop, alone.tokens)
        assert found.stop in (Stop.LENGTH, Stop.EOS)
    engine.close()
    with pytest.raises(RuntimeError, match="closed"):
        engine.generate(ListFeed(asked))


# ----------------------------------------------------------------------------------------- options


def test_a_model_means_engine_vlm(monkeypatch: pytest.MonkeyPatch) -> None:
    assert options.engine("auto", "nano", "int4", "cpu").name == "vlm"
    assert options.engine("vlm", None, "none", "cpu", "7") == EngineSettings("vlm", None, "none", "cpu", 7)
    monkeypatch.setenv("HIRESVLM_MODEL", "qwen2.5-vl-3b")
    assert options.engine("auto", None, "int4", "auto") == EngineSettings("vlm", "qwen2.5-vl-3b")
    assert options.engine("auto", "other/model", "int4", "auto").model == "other/model"
    assert options.engine("light", None, "int4", "auto") == EngineSettings("light")
    for arguments in (("light", "nano", "int4"), ("vlm", "", "int4"), ("vlm", None, "int8")):
        with pytest.raises(UsageError):
            options.engine(*arguments, "auto")


def test_what_decides_the_text_is_in_the_digest_and_where_it_runs_is_not(tiny: Callable[[str], Path]) -> None:
    base = Settings(
        engine=EngineSettings(name="vlm", model=str(tiny("qwen2_5_vl")), quant="none", device="cpu")
    )

    def digest(settings: Settings) -> str:
        return engines.digests(engines.resolve(settings)[0], automatic=False)[0]

    def with_engine(**values: Any) -> Settings:
        return replace(base, engine=replace(base.engine, **values))

    assert digest(with_engine(slots=3, device="auto")) == digest(base)
    others = [
        with_engine(quant="int4"),
        with_engine(model=str(tiny("qwen3_vl"))),
        with_engine(model="qwen3-vl-4b"),
        replace(base, task=TaskSettings(max_new_tokens=5)),
        replace(base, task=TaskSettings(prompt="what?")),
    ]
    assert len({digest(base), *map(digest, others)}) == len(others) + 1


def test_the_profile_of_a_model_reaches_the_chunker(tiny: Callable[[str], Path]) -> None:
    for family, factor in (("qwen2_5_vl", 28), ("qwen3_vl", 32)):
        settings, reason = engines.resolve(
            Settings(engine=EngineSettings(name="auto", model=str(tiny(family)), device="cpu"))
        )
        assert (settings.engine.name, settings.chunk.factor, reason) == ("vlm", factor, None)


def test_auto_takes_a_gpu_with_a_model_and_keeps_what_light_has_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from hiresvlm.engines.vlm import choice

    monkeypatch.setattr(choice, "choose", lambda: choice.Choice("qwen3-vl-4b", "a GPU"))
    monkeypatch.setattr("hiresvlm.engines.vlm.device.choose", lambda device: "cuda:0")
    asked = Settings(engine=EngineSettings(name="auto"))
    settings, reason = engines.resolve(asked)
    assert (settings.engine.name, settings.engine.model, reason) == ("vlm", "qwen3-vl-4b", "a GPU")
    light, _ = engines.resolve(replace(asked, engine=EngineSettings(name="light")))
    assert engines.digests(light, automatic=False)[0] in engines.digests(settings, automatic=True)
    on_cpu, _ = engines.resolve(replace(asked, engine=EngineSettings(name="auto", device="cpu")))
    assert on_cpu.engine.name == "light"


def test_a_run_with_light_imports_no_torch(folder: Path) -> None:
    make_png(folder / "a.png")
    code = (
        "import sys\nfrom hiresvlm.cli import main\n"
        f"sys.argv = ['hiresvlm', 'ocr', {str(folder)!r}, '-q']\n"
        "try:\n    main()\nfinally:\n"
        "    print([m for m in ('torch', 'transformers') if m in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1] == "[]"


def test_doctor_lists_models_with_licence_and_memory() -> None:
    found = examine()["models"]
    assert set(found) == {"qwen3-vl-4b", "qwen3-vl-8b", "qwen2.5-vl-3b", "qwen2.5-vl-7b", "nano"}
    assert found["qwen2.5-vl-3b"]["licence"].startswith("Qwen Research")
    assert "in 4 bits" in found["qwen3-vl-8b"]["GPU memory"]


# --------------------------------------------------------------------------------------- the program


@pytest.mark.slow
def test_the_program_reads_with_a_model_and_a_rerun_loads_none(
    folder: Path, tmp_path: Path, tiny: Callable[[str], Path]
) -> None:
    make_png(folder / "a.png", TEXT)
    (tmp_path / "prompt.txt").write_text("Read <|im_end|> it.")
    out, report = tmp_path / "out.jsonl", tmp_path / "report.json"
    arguments = ["ocr", folder, "-m", tiny("qwen3_vl"), "--quant", "int4", "--device", "cpu", "--slots", "2"]
    arguments += ["--max-new-tokens", "8", "--keep-chunks", "--prompt", tmp_path / "prompt.txt"]
    done = cli(*arguments, "-o", out, "--report", report)
    assert done.returncode == 3, done.stderr
    (record,) = read_records(out)
    assert record["engine"]["name"] == "vlm"
    assert record["engine"]["quant"] == "int4"
    assert record["engine"]["device"] == "cpu"
    assert len(record["replies"]) == len(record["chunks"])
    told = json.loads(report.read_text())
    assert told["engine"]["quant"] == "int4"
    assert told["engine_stats"]["slots"] == 2
    again = cli(*arguments, "-o", out, "--report", report)
    assert again.returncode == 3
    assert json.loads(report.read_text())["engine_load_s"] is None


@pytest.mark.slow
def test_the_benchmark_prints_its_tables_and_a_line_for_machines(tiny: Callable[[str], Path]) -> None:
    model = tiny("qwen2_5_vl")
    done = cli(
        *("bench", "engine", "-m", model, "--quant", "none", "--chunks", 4, "--tokens", 4, "--pages", 1),
        *("--max-new-tokens", 2),
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    ways = {row["way"] for row in result["throughput"]}
    assert ways >= {"generate, one by one", "slot refill, 1 slots", "slot refill, 16 slots"}
    assert set(result["strategies"]) == {"fixed", "naive", "anyres", "auto"}
    assert result["strategies"]["naive"]["visual_tokens"] == 4352
    weights = result["int4"]
    assert weights["4 bits, pre-quantized"]["disk_bytes"] < weights["unquantized"]["disk_bytes"]
    assert weights["4 bits, pre-quantized"]["cer"] == weights["4 bits, made while loading"]["cer"]
