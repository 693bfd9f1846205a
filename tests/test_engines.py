"""The contract of every engine in the table."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hiresvlm import engines
from hiresvlm.datatypes import Box, Place, Request, Role, View
from hiresvlm.errors import UsageError
from hiresvlm.settings import ChunkSettings, EngineSettings, Settings
from tests.support import blank_pixels, pixels, text_image

HEAVY = ("numpy", "cv2", "torch", "onnxruntime", "rapidocr", "transformers", "PIL", "pymupdf")


class ListFeed:
    """Hands out requests as an engine asks, sometimes with nothing ready; notes what was asked wrongly."""

    def __init__(self, requests: list[Request]) -> None:
        self._left = list(requests)
        self.out = 0
        self._calls = 0

    def take(self, n: int, wait: bool) -> list[Request]:
        assert n > 0
        assert not (wait and self.out), "an engine with work in hand must not wait"
        self._calls += 1
        if not wait and self._calls % 2:
            return []
        given, self._left = self._left[:n], self._left[n:]
        self.out += len(given)
        return given


def request(number: int, *views: View) -> Request:
    return Request(Place(0, 1, 1, number, 9), views, "read", 100)


def view(array: np.ndarray, role: Role = Role.TILE) -> View:
    return View(Box(0, 0, array.shape[1], array.shape[0]), role, array)


@pytest.mark.parametrize("name", engines.ENGINES)
def test_contract(name: str, tiny: Callable[[str], Path]) -> None:
    cls = engines.find(name)
    settings = EngineSettings(name=name)
    if name == "vlm":
        settings = replace(settings, model=str(tiny("qwen2_5_vl")), quant="none", device="cpu")
    info, profile = cls.describe(settings)
    engine = cls(settings)
    assert (engine.info, engine.profile) == (info, profile)
    text = pixels(text_image(["Hello 42"], width=280))
    asked = [
        request(0, view(text)),
        request(1, view(blank_pixels(28, 28))),
        request(2, view(blank_pixels(1, 1))),
        request(3, view(text), view(text)),
        request(4, view(text, Role.GLOBAL), view(text)),
        *(request(number, view(text)) for number in range(5, 9)),
    ]
    feed = ListFeed(asked)
    seen = []
    for reply in engine.generate(feed):
        feed.out -= 1
        seen.append(reply.place)
        assert reply.failure is None
        assert reply.started <= reply.finished
        assert reply.tokens.visual > 0
        views = asked[reply.place.request].views
        for line in reply.lines:
            height, width = views[line.chunk].pixels.shape[:2]
            if line.box is None:
                assert line.text in reply.text
                continue
            assert 0 <= line.box.x0 < line.box.x1 <= width
            assert 0 <= line.box.y0 < line.box.y1 <= height
    assert sorted(seen) == [r.place for r in asked]
    assert list(engine.generate(ListFeed([]))) == []
    engine.close()
    engine.close()


@pytest.mark.parametrize("name", engines.ENGINES)
def test_describing_an_engine_loads_nothing(name: str) -> None:
    code = (
        "import sys; from hiresvlm import engines; from hiresvlm.settings import EngineSettings;"
        f"engines.find({name!r}).describe(EngineSettings(name={name!r}));"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_engine_names_the_nearest() -> None:
    with pytest.raises(UsageError) as caught:
        engines.find("lite")
    assert "light" in (caught.value.hint or "")


def test_auto_picks_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hiresvlm.engines.vlm.choice.gpu_memories", list)
    settings, reason = engines.resolve(Settings(engine=EngineSettings(name="auto")))
    assert settings.engine.name == "light"
    assert reason
    chosen, no_reason = engines.resolve(Settings(engine=EngineSettings(name="echo")))
    assert chosen.engine.name == "echo"
    assert no_reason is None


def test_the_digest_holds_what_decides_the_text_and_nothing_else() -> None:
    base, _ = engines.resolve(Settings(engine=EngineSettings(name="light")))
    digest = engines.digests(base, automatic=False)[0]
    same = replace(base, engine=replace(base.engine, slots=7), page=replace(base.page, password="x"))
    same = replace(same, run=replace(base.run, pages="2-3", workers=9))
    assert engines.digests(same, automatic=False)[0] == digest
    for other in (
        replace(base, chunk=ChunkSettings(strategy="whole")),
        replace(base, chunk=replace(base.chunk, max_tokens_per_page=500)),
        replace(base, page=replace(base.page, text_layer="auto")),
        replace(base, task=replace(base.task, prompt="read it")),
        replace(base, engine=EngineSettings(name="echo")),
    ):
        assert engines.digests(other, automatic=False)[0] != digest
