"""The engines `light` and `echo`: what they read, and that they answer every request exactly once."""

from __future__ import annotations

import importlib.machinery
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from hiresvlm.datatypes import Box, FailureKind, Place, Reply, Request, Role, Step, Stop, View
from hiresvlm.engines.echo import EchoEngine
from hiresvlm.engines.light import LightEngine
from hiresvlm.errors import EngineLoadError, UsageError
from hiresvlm.settings import EngineSettings
from tests.support import font, text_image

ENGLISH = [
    "The quick brown fox jumps over the lazy dog.",
    "Total amount due: $1,284.50 (incl. 8% tax)",
    "Opening hours 9:30 to 17:45, room 12.5",
]
CHINESE = ["人工智能正在改变世界各地的工作方式。", "北京市海淀区中关村大街27号，邮编100080"]
JAPANESE = ["このたびはご注文いただき、ありがとうございます。", "東京都千代田区丸の内1丁目9番2号"]
MIXED = ["使用 Python 3.11 版本，内存至少 16 GB"]


class ListFeed:
    """A feed over a list that notes how it was asked and hands out `burst` requests at most."""

    def __init__(self, requests: Sequence[Request], burst: int = 100) -> None:
        self.rest = list(requests)
        self.burst = burst
        self.in_hand = 0

    def take(self, n: int, wait: bool) -> list[Request]:
        assert n > 0
        assert not (wait and self.in_hand), "an engine with work in hand must not wait"
        n = min(n, self.burst)
        taken, self.rest = self.rest[:n], self.rest[n:]
        self.in_hand += len(taken)
        return taken


def request(*pixels: np.ndarray[Any, Any] | Image.Image, number: int = 0, role: Role = Role.TILE) -> Request:
    views = tuple(View(Box(0, 0, 1, 1), role, np.asarray(image)) for image in pixels)
    return Request(Place(number, 1, 1), views, "Read this.", 64)


def answers(engine: LightEngine | EchoEngine, requests: Sequence[Request], burst: int = 100) -> list[Reply]:
    feed = ListFeed(requests, burst)
    replies = []
    for reply in engine.generate(feed):
        feed.in_hand -= 1
        replies.append(reply)
    return replies


def answer(engine: LightEngine | EchoEngine, *pixels: np.ndarray[Any, Any] | Image.Image) -> Reply:
    (reply,) = answers(engine, [request(*pixels)])
    return reply


@pytest.fixture(scope="module")
def light() -> LightEngine:
    return LightEngine(EngineSettings(slots=2))


# ---------------------------------------------------------------------------------------- reading


@pytest.mark.parametrize("lines", [ENGLISH, CHINESE, JAPANESE, MIXED])
@pytest.mark.parametrize("dark", [False, True])
def test_clean_text_is_read_exactly(light: LightEngine, lines: list[str], dark: bool) -> None:
    assert answer(light, text_image(lines, dark=dark)).text.splitlines() == lines


def test_text_as_small_as_the_profile_says(light: LightEngine) -> None:
    height = font(100).getbbox("H")[3] - font(100).getbbox("H")[1]
    size = round(100 * light.profile.legible / height)
    assert answer(light, text_image(ENGLISH + CHINESE, size=size)).text.splitlines() == ENGLISH + CHINESE


def test_spaces_between_chinese_and_latin_at_the_least_height(light: LightEngine) -> None:
    """The model drops half of them; beside an ideograph there is blank without a space too."""
    lines = ["孙艳 13:05", "林秀英 08:42", "会议 Harbour 计划", "共计123件，重量45公斤", "电话 58213377"]
    height = font(100).getbbox("H")[3] - font(100).getbbox("H")[1]
    size = round(100 * (light.profile.legible_clean or light.profile.legible) / height)
    assert answer(light, text_image(lines, size=size, width=260)).text.splitlines() == lines


@pytest.mark.parametrize("character", ["1", "I", "一"])
def test_a_single_narrow_character_is_not_turned(light: LightEngine, character: str) -> None:
    image = Image.new("RGB", (200, 100), "white")
    ImageDraw.Draw(image).text((80, 30), character, fill="black", font=font(40))
    assert answer(light, image).text == character


def test_text_that_runs_down_or_up_is_read(light: LightEngine) -> None:
    image = text_image(["Spine of a book"], width=260)
    for turn in (Image.Transpose.ROTATE_90, Image.Transpose.ROTATE_270):
        assert answer(light, image.transpose(turn)).text == "Spine of a book"


def test_label_and_amount_far_apart_are_one_row(light: LightEngine) -> None:
    image = text_image(["Subtotal", "Tax", "Total"])
    for row, amount in enumerate(["120.00", "9.60", "129.60"]):
        ImageDraw.Draw(image).text((550, 20 + 38 * row), amount, fill="black", font=font(24))
    assert answer(light, image).text.splitlines() == ["Subtotal 120.00", "Tax 9.60", "Total 129.60"]


def test_boxes_lie_on_the_text_and_within_the_view(light: LightEngine) -> None:
    reply = answer(light, text_image(["blank"]).crop((600, 0, 700, 60)), text_image(ENGLISH))
    assert [line.text for line in reply.lines] == ENGLISH
    for number, line in enumerate(reply.lines):
        x0, y0, x1, y1 = font(24).getbbox(line.text)
        drawn = Box(20 + x0, 20 + 38 * number + y0, 20 + x1, 20 + 38 * number + y1)
        assert line.box is not None
        assert line.box.intersection(drawn).area > 0.9 * drawn.area
        assert line.box.area < 2.5 * drawn.area
        assert line.box.intersection(Box(0, 0, 700, 154)) == line.box
        assert line.chunk == 1
        assert line.confidence is not None
        assert line.confidence > 0.9


def test_global_view_is_read_only_when_alone(light: LightEngine) -> None:
    whole = View(Box(0, 0, 1, 1), Role.GLOBAL, np.asarray(text_image(["global"])))
    part = View(Box(0, 0, 1, 1), Role.TILE, np.asarray(text_image(["tile"])))
    both, alone = (Request(Place(i, 1, 1), v, "", 8) for i, v in enumerate([(whole, part), (whole,)]))
    texts = {reply.place.document: reply.text for reply in answers(light, [both, alone])}
    assert texts == {0: "tile", 1: "global"}


@pytest.mark.parametrize("size", [(1, 1), (3, 500), (500, 3), (28, 2000), (2000, 28), (33, 31)])
@pytest.mark.parametrize("shade", [0, 255])
def test_degenerate_views_have_no_text(light: LightEngine, size: tuple[int, int], shade: int) -> None:
    reply = answer(light, np.full((*size, 3), shade, np.uint8))
    assert reply.failure is None
    assert reply.text == ""


def test_noise_does_not_fail(light: LightEngine) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (28, 1000, 3), dtype=np.uint8)
    assert answer(light, noise).failure is None


# --------------------------------------------------------------------------------- being an engine


@pytest.mark.parametrize("burst", [1, 3, 100])
def test_every_request_is_answered_once(light: LightEngine, burst: int) -> None:
    names = [f"Page {number}" for number in range(25)]
    requests = [request(text_image([name], width=160), number=i) for i, name in enumerate(names)]
    replies = answers(light, requests, burst)
    assert sorted(reply.place.document for reply in replies) == list(range(25))
    assert {reply.place.document: reply.text for reply in replies} == dict(enumerate(names))


def test_no_requests_no_replies(light: LightEngine) -> None:
    assert answers(light, []) == []


def test_tokens_are_planned_and_times_are_set(light: LightEngine) -> None:
    reply = answer(light, np.zeros((29, 57, 3), np.uint8), np.zeros((28, 28, 3), np.uint8))
    assert reply.tokens.visual == reply.tokens.visual_full == reply.tokens.prompt == 3 * 2 + 1
    assert 0 < reply.started <= reply.finished
    assert reply.stop is Stop.EOS
    assert not light.profile.counts_tokens


def test_a_request_that_fails_leaves_the_others_alone(light: LightEngine) -> None:
    good = text_image(["Fine"], width=120)
    flat = np.zeros((40, 40), np.uint8)  # no colours
    replies = answers(light, [request(flat), request(good, number=1)])
    bad, fine = sorted(replies, key=lambda reply: reply.place.document)
    assert bad.failure is not None
    assert (bad.failure.step, bad.failure.kind) == (Step.ENGINE, FailureKind.ENGINE)
    assert (fine.text, fine.failure) == ("Fine", None)


def test_closing_twice() -> None:
    engine = LightEngine(EngineSettings(slots=1))
    engine.close()
    engine.close()


# ----------------------------------------------------------------------------------------- loading


def test_describing_imports_no_heavy_library() -> None:
    code = (
        "import sys; from hiresvlm.engines.light import LightEngine;"
        "from hiresvlm.settings import EngineSettings; LightEngine.describe(EngineSettings());"
        "print([m for m in ('rapidocr', 'cv2', 'onnxruntime', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_identity() -> None:
    info, _ = LightEngine.describe(EngineSettings())
    assert (info.name, info.model, info.quant, info.device) == ("light", "PP-OCRv6-small", None, "cpu")
    assert info.revision


@pytest.mark.parametrize("wrong", [{"model": "other"}, {"device": "cuda"}])
def test_what_it_does_not_have_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        LightEngine.describe(EngineSettings(**wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("broken", ["no package", "no file", "no model"])
def test_without_its_models_it_says_so_and_downloads_nothing(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was used")

    spec = importlib.machinery.ModuleSpec("rapidocr", None, origin=str(tmp_path / "__init__.py"))
    if broken == "no model":
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / "PP-OCRv6_det_small.onnx").write_bytes(b"not a model")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None if broken == "no package" else spec)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    with pytest.raises(EngineLoadError) as caught:
        LightEngine(EngineSettings())
    assert caught.value.hint


# -------------------------------------------------------------------------------------------- echo


def test_echo_names_what_it_was_shown() -> None:
    engine = EchoEngine(EngineSettings())
    images = [np.zeros((224, 448, 3), np.uint8), np.zeros((10, 30, 3), np.uint8)]
    replies = answers(engine, [request(*images, number=number) for number in range(5)])
    assert [reply.place.document for reply in replies] == list(range(5))
    assert replies[0].text == "[tile 448x224]\n[tile 30x10]"
    assert replies[0].tokens.visual == replies[0].tokens.prompt == 16 * 8 + 2
    assert replies[0].stop is Stop.EOS
    assert engine.info.name == "echo"
    assert not engine.profile.counts_tokens
