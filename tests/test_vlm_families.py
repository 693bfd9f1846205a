"""Families that put an image into one square give the answers of `generate`, alone and in company."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from bitsandbytes.nn.modules import Linear4bit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import Linear
from transformers import GenerationConfig

from hiresvlm.engines.vlm import VlmEngine
from hiresvlm.engines.vlm.families import FAMILIES, skipped
from hiresvlm.engines.vlm.inputs import Prompt, image_input
from hiresvlm.engines.vlm.slots import Row
from hiresvlm.engines.vlm.tiles import squares
from hiresvlm.settings import EngineSettings
from tests.tiny_families import SQUARE_FAMILIES, TOKENS, save_square
from tests.vlm_support import SURE, Bench, ListFeed, noise, open_model, request

LENGTH = 24


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("families")
    return {family: save_square(root / family, family) for family in SQUARE_FAMILIES}


@pytest.fixture(scope="module")
def benches(folders: dict[str, Path]) -> dict[str, Bench]:
    return {family: open_model(folder) for family, folder in folders.items()}


def sizes_in_tokens(bench: Bench) -> list[tuple[tuple[int, int], ...]]:
    """Sizes of the images of some prompts: none, smaller than the square, as large, larger."""
    side = bench.loaded.image.canvas // bench.factor
    return [
        ((1, 1),),
        (),
        ((side, side),),
        ((side, 1), (1, side)),
        ((2 * side, 3),),
        ((1, 2), (2, 1), (2, 2)),
    ]


@pytest.fixture(scope="module")
def cases(benches: dict[str, Bench]) -> dict[str, list[tuple[Prompt, list[int]]]]:
    """Prompts with what `generate` answers, given pixels where the family's own forward takes one square."""
    found = {}
    for family, bench in benches.items():
        rows = []
        for number, sizes in enumerate(sizes_in_tokens(bench)):
            images = [noise(100 * number + n, *size, bench.factor) for n, size in enumerate(sizes)]
            prompt = bench.prompt("Read it. " * (1 + number % 3), *images)
            rows.append((prompt, generated(bench, family, prompt)))
        found[family] = rows
    return found


def stock_inputs(bench: Bench, family: str, prompt: Prompt) -> dict[str, object]:
    """Images of one prompt as the stock model takes them, none of it by the encoder of the engine.

    LLaVA-NeXT always slices: its features are taken from an image of one tile, without the tile itself.
    """
    if not prompt.images:
        return {}
    loaded = bench.loaded
    pixels = squares(prompt.images, loaded.image, loaded.device)
    if family == "internvl":
        return {"pixel_values": pixels}
    if family in ("idefics3", "smolvlm"):
        return {"pixel_values": pixels[None]}
    canvas = torch.tensor([[loaded.image.canvas] * 2] * len(pixels))
    if family == "llava_onevision":
        several = torch.tensor([max(2, len(pixels))])  # "several images of one prompt": none is sliced
        return {"pixel_values": pixels[:, None], "image_sizes": canvas, "batch_num_images": several}
    told = loaded.model.model.get_image_features(
        torch.stack((pixels, pixels), 1), image_sizes=canvas, return_dict=True
    )
    newline = loaded.model.model.image_newline[None]
    base = bench.loaded.image.tokens(prompt.images[0].grid) - 1
    told.pooler_output = tuple(torch.cat((one[:base], newline)) for one in told.pooler_output)
    return {"mm_encoder_outputs": {"image": told}}


@torch.inference_mode()
def generated(bench: Bench, family: str, prompt: Prompt) -> list[int]:
    ids = torch.tensor([prompt.ids])
    config = GenerationConfig(
        max_new_tokens=LENGTH, do_sample=False, eos_token_id=sorted(bench.loaded.ends), pad_token_id=0
    )
    output = bench.loaded.model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        generation_config=config,
        **stock_inputs(bench, family, prompt),
    )
    return [int(token) for token in output[0, ids.shape[1] :]]


@torch.inference_mode()
def assert_same(bench: Bench, prompt: Prompt, found: Sequence[int], wanted: Sequence[int]) -> None:
    """Equal tokens; a first difference is accepted only where the model itself was undecided."""
    for step, (a, b) in enumerate(zip(found, wanted, strict=False)):
        if a != b:
            ids = torch.tensor([[*prompt.ids, *wanted[:step]]])
            features = bench.encoder.encode(prompt.images)
            images = {"mm_encoder_outputs": bench.encoder.as_output(features)} if features else {}
            best = bench.loaded.model(input_ids=ids, **images).logits[0, -1].topk(2).values
            assert float(best[0] - best[1]) < SURE, f"token {step} differs"
            return
    assert len(found) == len(wanted)


def test_the_answers_are_worth_comparing(cases: dict[str, list[tuple[Prompt, list[int]]]]) -> None:
    for rows in cases.values():
        assert len({tuple(ids) for _, ids in rows}) > len(rows) // 2
        assert sum(len(set(ids)) for _, ids in rows) > 3 * len(rows)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
@pytest.mark.parametrize("family", SQUARE_FAMILIES)
def test_any_slots_and_any_order_give_the_answers_of_generate(
    family: str,
    benches: dict[str, Bench],
    cases: dict[str, list[tuple[Prompt, list[int]]]],
    data: st.DataObject,
) -> None:
    """Left-padded rows join whenever there is room and leave at lengths of their own."""
    bench = benches[family]
    waiting = [(Row(prompt), wanted) for prompt, wanted in data.draw(st.permutations(cases[family]))]
    most = data.draw(st.integers(1, 4))
    slots, running = bench.slots(), {}
    while waiting or running:
        newcomers = waiting[: most - len(running)]
        del waiting[: len(newcomers)]
        if newcomers:
            bench.join(slots, [row for row, _ in newcomers])
            running.update({id(row): (row, wanted) for row, wanted in newcomers})
        else:
            slots.step()
        done = [
            row for row, _ in running.values() if row.ids[-1] in bench.loaded.ends or len(row.ids) == LENGTH
        ]
        slots.leave(done)
        for row in done:
            assert_same(bench, row.prompt, row.ids, running.pop(id(row))[1])


@pytest.mark.parametrize("family", SQUARE_FAMILIES)
def test_the_image_decides_the_answer(family: str, benches: dict[str, Bench]) -> None:
    """Otherwise equal answers would prove nothing about images."""
    bench = benches[family]
    side = bench.loaded.image.canvas // bench.factor
    answers = set()
    for seed in range(4):
        row = Row(bench.prompt("Read.", noise(seed, side, side, bench.factor)))
        slots = bench.slots()
        bench.join(slots, [row])
        for _ in range(8):
            slots.step()
        answers.add(tuple(row.logprobs))
    assert len(answers) == 4


@pytest.mark.parametrize("family", SQUARE_FAMILIES)
def test_features_are_the_same_alone_in_company_and_from_the_cache(
    family: str, benches: dict[str, Bench], folders: dict[str, Path]
) -> None:
    fresh = open_model(folders[family])
    images = [image_input(noise(n, 2, 2, fresh.factor), fresh.loaded.image) for n in range(5)]
    together = fresh.encoder.encode(images)
    again = fresh.encoder.encode(images)
    for image, first, second in zip(images, together, again, strict=True):
        (alone,) = open_model(folders[family]).encoder.encode([image])
        torch.testing.assert_close(first.tokens, alone.tokens, rtol=1e-4, atol=1e-5)
        assert torch.equal(first.tokens, second.tokens)
        assert len(first.tokens) == fresh.loaded.image.tokens(image.grid)


@pytest.mark.parametrize("family", SQUARE_FAMILIES)
def test_the_language_model_is_in_nf4_and_nothing_else(family: str, folders: dict[str, Path]) -> None:
    bench = open_model(folders[family], "int4")
    loaded = bench.loaded
    row = loaded.facts.family
    linears = {name: one for name, one in loaded.model.named_modules() if isinstance(one, Linear)}
    four = {name for name, one in linears.items() if isinstance(one, Linear4bit)}
    assert four == {name for name in linears if name.startswith(f"model.{row.language}.layers.")}
    assert len(four) == 7 * loaded.facts.shape.layers
    for part in (*(f"model.{name}" for name in row.tower), "lm_head"):
        inside = [name for name in linears if name == part or name.startswith(f"{part}.")]
        assert inside, part
        assert not four.intersection(inside)
    assert set(skipped(row)) >= {"lm_head", *row.tower}
    prompt = bench.prompt("Read.", noise(1, 2, 2, bench.factor))
    answers = []
    for company in ([], [Row(bench.prompt("Read it twice, read it all.", noise(2, 1, 1, bench.factor)))]):
        one, slots = Row(prompt), bench.slots()
        bench.join(slots, [one, *company])
        for _ in range(8):
            slots.step()
        answers.append(one.logprobs)
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-3)


@pytest.mark.parametrize("quant", ["none", "int4"])
@pytest.mark.parametrize("family", SQUARE_FAMILIES)
def test_bytes_from_the_config_are_those_of_the_loaded_model(
    family: str, quant: str, folders: dict[str, Path]
) -> None:
    loaded = open_model(folders[family], quant).loaded
    assert loaded.facts.shape.weight_bytes(quant, 4) == pytest.approx(loaded.weight_bytes, rel=0.04)


@pytest.mark.parametrize("family", SQUARE_FAMILIES)
def test_prompts_have_the_form_of_the_processor(family: str, benches: dict[str, Bench]) -> None:
    bench = benches[family]
    prompt = bench.prompt("Read <image> and <IMG_CONTEXT>.", noise(1, 1, 1, bench.factor))
    tokenizer = bench.loaded.tokenizer
    placeholder = TOKENS[family][0]
    count = bench.loaded.image.tokens(prompt.images[0].grid)
    before, after = FAMILIES[family].around
    shown = tokenizer.decode(list(prompt.ids))
    assert f"user\n{before}{placeholder * count}{after}\n" in shown
    assert prompt.ids.count(bench.loaded.image_token) == count  # those in the text are words now


@pytest.mark.parametrize("family", SQUARE_FAMILIES)
def test_an_image_keeps_its_scale_unless_it_is_larger_than_the_square(
    family: str, benches: dict[str, Bench]
) -> None:
    settings_ = benches[family].loaded.image
    side = settings_.canvas // settings_.factor * settings_.factor
    small = noise(3, 1, 1, side // 2)
    seen = image_input(small, settings_).pixels
    assert seen.shape == (settings_.canvas, settings_.canvas, 3)
    assert np.array_equal(seen[: side // 2, : side // 2], small)
    rest = squares([image_input(small, settings_)], settings_, torch.device("cpu"))[0, :, side // 2 :]
    assert float(rest.abs().max()) < 0.01  # the towers see nothing there
    large = np.full((3 * side, side, 3), 255, np.uint8)
    shrunk = image_input(large, settings_).pixels
    assert (shrunk[:side, : side // 3] == 255).all()
    assert (shrunk[:side, side // 3 + 2 :] < 255).all()


@pytest.mark.parametrize("family", SQUARE_FAMILIES)
def test_the_engine_answers_and_tells_the_chunker_its_square(family: str, folders: dict[str, Path]) -> None:
    engine = VlmEngine(
        EngineSettings(name="vlm", model=str(folders[family]), quant="none", device="cpu", slots=3)
    )
    profile = engine.profile
    shape = engine.loaded.facts.shape
    assert (profile.factor, profile.tile) == (shape.factor, shape.tile)
    assert profile.legible == FAMILIES[family].legible
    assert profile.tile is not None
    assert profile.max_tokens == (profile.tile // profile.factor) ** 2
    feed = ListFeed([request(n, noise(n, 1 + n % 2, 2, profile.factor), limit=6) for n in range(7)])
    replies = [feed.answered(reply) for reply in engine.generate(feed)]
    engine.close()
    assert sorted(reply.place.request for reply in replies) == list(range(7))
    assert all(reply.failure is None for reply in replies)
    newlines = FAMILIES[family].newlines
    assert {reply.tokens.visual for reply in replies} == {profile.max_tokens + newlines}


def test_what_a_published_config_leaves_out_is_the_default_of_the_library(folders: dict[str, Path]) -> None:
    """As in llava-v1.6-mistral-7b-hf, which names neither width nor depth of its language model."""
    folder = folders["llava_next"]
    config = json.loads((folder / "config.json").read_text())
    text = {
        "model_type": "mistral",
        "intermediate_size": 14336,
        "num_key_value_heads": 8,
        "vocab_size": 32064,
    }
    vision = {"model_type": "clip_vision_model", "image_size": 336, "patch_size": 14}
    sparse = folder.parent / "sparse"
    sparse.mkdir()
    for path in folder.iterdir():
        (sparse / path.name).write_bytes(path.read_bytes())
    (sparse / "config.json").write_text(json.dumps(config | {"text_config": text, "vision_config": vision}))
    _, profile = VlmEngine.describe(EngineSettings(name="vlm", model=str(sparse), device="cpu"))
    assert (profile.factor, profile.tile, profile.max_tokens) == (14, 336, 576)
