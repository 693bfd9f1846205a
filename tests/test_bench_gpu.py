"""`bench gpu` on small models: every measurement is taken, and one that fails does not end the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from hiresvlm.bench import gpu, gpu_build, gpu_model
from hiresvlm.bench.gpu import ANSWERS, CONTEXT, MEAN, MODELS, TINY, VISUAL, Run, Sizes, answer_lengths
from hiresvlm.cli import app
from hiresvlm.engines.vlm import device as devices
from hiresvlm.engines.vlm.presets import PRESETS
from hiresvlm.engines.vlm.shape import shape_of

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_memories", list)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """The last line of a run, and the file that it wrote."""
    path = tmp_path_factory.mktemp("gpu") / "new" / "gpu.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices, "gpu_memories", list)
        done = CliRunner().invoke(app, ["bench", "gpu", "--tiny", "--save", str(path)])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout.splitlines()[-1]), json.loads(path.read_text())


@pytest.mark.slow
def test_everything_is_measured_in_both_kinds_of_weights(full: tuple[dict[str, Any], dict[str, Any]]) -> None:
    line, saved = full
    assert line == {"bench": "gpu"} | saved
    assert (line["device"], line["tiny"]) == ("cpu", True)
    for model in MODELS:
        for quant in ("bf16", "nf4"):
            found = line[model][quant]
            assert set(found["step"]) == {str(rows) for rows in TINY.slots}
            assert set(found["prefill"]) == {str(visual) for visual in TINY.visual}
            many = [*found["step"].values(), *found["prefill"].values(), *found["compiled"].values()]
            for one in (*many, found["refill"]):
                assert one["status"] == "ok", one
                assert one["ms"] > 0
            for visual, one in found["prefill"].items():
                assert one["visual_tokens"] == int(visual)
            assert all(one["same_tokens"] for one in found["compiled"].values())
            assert found["refill"]["slot_use"]["refill"] > found["refill"]["slot_use"]["static"]
        four, whole = (line[model][quant]["build"]["weights_bytes"] for quant in ("nf4", "bf16"))
        assert four < whole


def test_a_machine_without_a_gpu_is_told_so() -> None:
    done = CliRunner().invoke(app, ["bench", "gpu"])
    assert getattr(done.exception, "exit_code", done.exit_code) == 5
    assert "no CUDA GPU" in str(done.exception)


@pytest.mark.slow
def test_what_fails_is_typed_and_the_rest_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_memory(*arguments: object) -> dict[str, Any]:
        raise torch.OutOfMemoryError("none left")

    def broken(*arguments: object) -> dict[str, Any]:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(gpu_model, "step", no_memory)
    monkeypatch.setattr(gpu_model, "compiled", broken)
    gpu(tiny=True, save=str(tmp_path / "gpu.json"))
    found = json.loads((tmp_path / "gpu.json").read_text())[MODELS[1]]["nf4"]
    assert {one["status"] for one in found["step"].values()} == {"out_of_memory"}
    assert {one["status"] for one in found["compiled"].values()} == {"failed"}
    assert "capturing" in found["compiled"]["1"]["error"]
    assert found["refill"]["status"] == "ok"
    assert "out_of_memory" in capsys.readouterr().out


def test_nothing_is_begun_that_may_not_end_in_time(tmp_path: Path) -> None:
    now = 0.0

    def work(seconds: float) -> dict[str, Any]:
        nonlocal now
        now += seconds
        return {"ms": seconds * 1e3}

    run = Run(100.0, str(tmp_path / "gpu.json"), clock=lambda: now)
    taken = (30, 20, 25, 1)
    states = [run.measure(("a", str(n)), lambda: work(taken[n]))["status"] for n in range(4)]  # noqa: B023
    assert states == ["ok", "ok", "ok", "skipped"]  # 25 s are left, one took 30
    assert now <= 100
    assert json.loads((tmp_path / "gpu.json").read_text())["a"]["0"]["ms"] == 30_000


@pytest.mark.parametrize("name", MODELS)
def test_the_sizes_are_those_of_the_published_models(name: str) -> None:
    shape = PRESETS[name].shape
    assert shape is not None
    config = gpu_build.configuration(shape).to_dict()
    assert shape_of(config) == shape


def test_images_have_the_tokens_that_are_asked_for() -> None:
    built = gpu_build.build(MODELS[0], CPU, tiny=True)
    for visual in VISUAL:
        (image,) = gpu_build.prompt_of(built, visual, 1).images
        assert built.loaded.image.tokens(image.grid) == visual
        assert max(image.grid) <= 2 * min(image.grid)
    assert len(gpu_build.prompt_of(built, 1272, 0, total=CONTEXT)) == CONTEXT


def test_answers_have_the_mean_that_is_named() -> None:
    lengths = answer_lengths(Sizes())
    assert len(lengths) == ANSWERS
    assert sum(lengths) / len(lengths) == pytest.approx(MEAN, rel=0.15)
