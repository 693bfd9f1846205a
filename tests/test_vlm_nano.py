"""The model of the package, with its real weights: the loop gives the answers of `generate` here too.

Nothing depends on how well it reads: answers are compared with what the same weights give one by one.
"""

from __future__ import annotations

import json
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import AutoImageProcessor, AutoModelForImageTextToText, AutoTokenizer

from hiresvlm.bench.nano import by_height, nano, tower_rounded
from hiresvlm.datatypes import Place, Reply, Stop
from hiresvlm.engines.vlm import VlmEngine
from hiresvlm.engines.vlm.folder import nano_folder
from hiresvlm.engines.vlm.inputs import image_input, patches
from hiresvlm.engines.vlm.ladder import Job
from hiresvlm.engines.vlm.loop import Loop, Stats
from hiresvlm.engines.vlm.slots import Row
from hiresvlm.engines.vlm.stopping import Ending
from hiresvlm.nano.data.evaluation import Item, load_evaluation
from hiresvlm.settings import EngineSettings
from tests.vlm_support import Bench, ListFeed, assert_same_answer, generated, request

TOKENS = 48
KINDS = ("line", "few", "receipt", "form-en", "form-zh", "none")


@pytest.fixture(scope="module")
def engine() -> VlmEngine:
    return VlmEngine(EngineSettings(name="vlm", model="nano", quant="none", device="cpu"))


@pytest.fixture(scope="module")
def bench(engine: VlmEngine) -> Bench:
    return Bench(engine.loaded, engine.parts.encoder, engine.parts.prompts)


@pytest.fixture(scope="module")
def items() -> list[Item]:
    """Tiles to be transcribed and questions about tiles, of different sizes."""
    found = load_evaluation()
    return [next(item for item in found if item.kind == kind) for kind in KINDS]


@pytest.fixture(scope="module")
def cases(bench: Bench, items: list[Item]) -> list[tuple[Row, list[int]]]:
    """What `generate` answers to each alone, in float32."""
    found = []
    for item in items:
        prompt = bench.prompt(item.question or "Transcribe.", item.pixels)
        found.append((Row(prompt), generated(bench, prompt, TOKENS)))
    return found


@settings(max_examples=6, deadline=None)
@given(st.data())
def test_any_slots_and_any_order_give_the_answers_of_generate(
    engine: VlmEngine,
    bench: Bench,
    items: list[Item],
    cases: list[tuple[Row, list[int]]],
    data: st.DataObject,
) -> None:
    """Through the whole loop: admission, joining, leaving, the end token."""
    order = data.draw(st.permutations(range(len(items))), "order")
    rows = data.draw(st.integers(1, len(items)), "slots")
    limits = data.draw(st.lists(st.integers(1, TOKENS), min_size=len(items), max_size=len(items)), "limits")
    written: dict[int, list[int]] = {}

    def note(row: Row, job: Job) -> Ending | None:
        number = job.task.request.place.request
        if row.ids[-1] not in bench.loaded.ends and len(row.ids) < limits[number]:
            return None
        written[number] = list(row.ids)
        return Ending(Stop.EOS, len(row.ids))

    asked = [
        request(n, items[n].pixels, limit=TOKENS, text=items[n].question or "Transcribe.") for n in order
    ]
    feed = ListFeed(asked, burst=data.draw(st.integers(1, 4), "burst"))
    loop = Loop(replace(engine.parts, rows=rows, ending=note), Stats())
    replies = [feed.answered(reply) for reply in loop.run(feed)]
    assert sorted(reply.place.request for reply in replies) == list(range(len(items)))
    for number, (row, wanted) in enumerate(cases):
        assert_same_answer(bench, row.prompt, written[number], wanted[: limits[number]])


def test_the_answers_are_worth_comparing(bench: Bench, cases: list[tuple[Row, list[int]]]) -> None:
    answers = [tuple(ids) for _, ids in cases]
    assert len(set(answers)) > 1
    assert sum(map(len, answers)) > 2 * len(answers)


def test_the_folder_loads_with_the_auto_classes_and_their_inputs_are_those_of_the_engine(
    bench: Bench, items: list[Item]
) -> None:
    """A standard folder, on which nothing of ours is needed.

    `AutoProcessor` itself wants torchvision: the processor class of the family always makes a video
    processor too, and `Qwen2VLVideoProcessor` has no other backend.
    """
    place = nano_folder()
    model = AutoModelForImageTextToText.from_pretrained(place, local_files_only=True)
    assert type(model) is type(bench.loaded.model)
    tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True)
    talk = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Transcribe."}]}]
    text = tokenizer.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
    pixels = items[0].pixels
    own = image_input(pixels, bench.loaded.image)
    prompt = bench.prompt("Transcribe.", pixels)
    image_token = tokenizer.convert_ids_to_tokens(bench.loaded.image_token)
    count = own.patches // bench.loaded.image.merge**2
    assert tuple(tokenizer(text.replace(image_token, image_token * count)).input_ids) == prompt.ids
    processor = AutoImageProcessor.from_pretrained(place, local_files_only=True)
    theirs = processor(images=[own.pixels], do_resize=False, return_tensors="pt")["pixel_values"]
    ours = patches(own, bench.loaded.image, bench.loaded.device)
    assert theirs.shape == ours.shape
    assert (theirs - ours).abs().max() < 1e-5


def test_the_rounded_tower_differs_in_the_matrices_of_the_tower_alone(tmp_path) -> None:
    made = tower_rounded("nano", tmp_path / "rounded")
    before = load_file(nano_folder() / "model.safetensors")
    after = load_file(made / "model.safetensors")
    assert before.keys() == after.keys()
    for name, tensor in before.items():
        rounded = ".visual." in name and tensor.ndim == 2
        assert torch.equal(tensor, after[name]) != rounded, name
        if rounded:  # blocks of 64 with 16 levels each
            block = after[name].flatten()[:64]
            assert len(block.unique()) <= 16
            assert (tensor - after[name]).abs().max() < 0.2 * tensor.abs().max()


def test_the_bench_compares_float_four_bits_and_four_bits_in_the_tower(capsys) -> None:
    nano(limit=1)
    out = capsys.readouterr().out
    row = json.loads(out.splitlines()[-1])
    assert list(row["runs"]) == ["float32", "int4", "int4, tower too"]
    assert {len(cells) for cells in row["rows"]} == {2 + 3 * 3}
    assert row["runs"]["int4"]["mib"] < row["runs"]["float32"]["mib"]
    texts = [
        cells[1]
        for cells in row["rows"]
        if cells[0] in ("line", "few", "paragraph", "table", "receipt", "ui")
    ]
    bands = {cells[0]: cells[1] for cells in row["heights"] if cells[0][0].isdigit()}
    assert sum(bands.values()) == sum(texts)  # each has print that can be measured
    legible = [cells[1] for cells in row["heights"] if cells[0] not in bands]
    assert sum(legible) == sum(count for name, count in bands.items() if name != "0 to 12")


def test_texts_are_counted_by_the_height_that_the_chunker_measures(items: list[Item]) -> None:
    line = next(item for item in load_evaluation() if item.name == "line-02.png")
    low = replace(line, pixels=cv2.resize(line.pixels, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA))
    blank = replace(line, pixels=np.full_like(line.pixels, 255))
    asked = next(item for item in items if item.question)
    some = [line, low, blank, asked]
    right = [Reply(Place(n, 0, 0), item.answer) for n, item in enumerate(some)]
    wrong = [Reply(Place(n, 0, 0), "") for n, _ in enumerate(some)]
    rows = by_height(some, {"right": right, "wrong": wrong})
    assert rows == [
        ["0 to 12", 1, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0],
        ["15 and more", 1, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0],
        ["line, 12 and more", 1, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0],
    ]
