"""Blank cells are dropped before the vision tower: what remains sees exactly what it would see if the rest
were masked, at the places it has in the whole image."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from transformers.vision_utils import get_vision_window_index
from typer.testing import CliRunner

from hiresvlm.cli import app, options
from hiresvlm.engines import EngineInfo
from hiresvlm.engines.vlm import VlmEngine, attention, pruning
from hiresvlm.engines.vlm.cache import FeatureCache
from hiresvlm.engines.vlm.inputs import ImageInput, grid_thw, image_input, patches, token_types
from hiresvlm.engines.vlm.slots import Row
from hiresvlm.engines.vlm.vision import VisionEncoder
from hiresvlm.errors import UsageError
from hiresvlm.settings import EngineSettings, Settings
from tests.tiny_models import FAMILIES
from tests.vlm_support import Bench, ListFeed, noise, open_model, request


@pytest.fixture(scope="module")
def benches(tiny: Callable[[str], Path]) -> dict[str, Bench]:
    return {family: open_model(tiny(family)) for family in FAMILIES}


def pruned(bench: Bench, seed: int, rows: int, columns: int, share: float) -> ImageInput:
    """A random image with some random cells gone."""
    image = image_input(noise(seed, rows, columns, bench.factor), bench.loaded.image)
    kept = np.random.default_rng(seed).random((rows, columns)) < share
    kept[-1, -1] = True
    return replace(image, key=image.key + kept.tobytes(), kept=kept)


def flat(image: ImageInput) -> torch.Tensor:
    assert image.kept is not None
    return torch.from_numpy(image.kept.ravel())


# -------------------------------------------------------------------------------------- the tower


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=15, deadline=None)
@given(sizes=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=3))
def test_keeping_all_cells_gives_the_bits_of_the_plain_model(
    family: str, benches: dict[str, Bench], sizes: list[tuple[int, int]]
) -> None:
    loaded = benches[family].loaded
    images = [image_input(noise(n, *size, loaded.image.factor), loaded.image) for n, size in enumerate(sizes)]
    pixels = torch.cat([patches(image, loaded.image, loaded.device) for image in images])
    grid = grid_thw(images, loaded.device)
    every = torch.ones(sum(image.cells for image in images), dtype=torch.bool)
    with torch.inference_mode():
        wanted = loaded.model.model.get_image_features(pixels, grid, return_dict=True)
        found = pruning.encode(loaded.model.model.visual, pixels, grid, every)
    assert type(found) is type(wanted)
    for a, b in zip(_layers(found), _layers(wanted), strict=True):
        assert len(a) == len(b) == len(images)
        assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def _layers(output: Any) -> list[tuple[torch.Tensor, ...]]:
    return [output.pooler_output, *(getattr(output, "deepstack_features", None) or [])]


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.tuples(st.integers(2, 10), st.integers(2, 10)),
    share=st.floats(0.05, 0.95),
)
def test_kept_cells_see_what_they_see_when_the_others_are_masked(
    family: str, benches: dict[str, Bench], seed: int, size: tuple[int, int], share: float
) -> None:
    bench = benches[family]
    loaded, visual = bench.loaded, bench.loaded.model.model.visual
    image = pruned(bench, seed, *size, share)
    kept = flat(image)
    whole = replace(image, kept=None)
    pixels = patches(whole, loaded.image, loaded.device)
    grid = grid_thw([image], loaded.device)
    order = torch.arange(image.cells)
    if family == "qwen2_5_vl":
        order, _ = get_vision_window_index(
            grid, visual.spatial_merge_size, visual.window_size, visual.patch_size
        )
    seen = kept[order].repeat_interleave(visual.spatial_merge_unit)

    def masked(
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: Any,
        scaling: float | None = None,
        cu_seq_lens_q: torch.Tensor | None = None,
        **rest: Any,
    ) -> tuple[torch.Tensor, None]:
        """All at once, with a mask: same segment, and a key that is kept (or the query itself)."""
        assert cu_seq_lens_q is not None
        places = torch.arange(query.shape[2])
        segment = torch.bucketize(places, cu_seq_lens_q[1:].long(), right=True)
        allowed = (segment[:, None] == segment) & (seen[None] | (places[:, None] == places))
        result = torch.nn.functional.scaled_dot_product_attention(query, key, value, allowed, scale=scaling)
        return result.transpose(1, 2), None

    from transformers import AttentionInterface

    AttentionInterface.register("masked_flash_like", masked)
    with torch.inference_mode():
        try:
            visual.config._attn_implementation = "masked_flash_like"
            wanted = loaded.model.model.get_image_features(pixels, grid, return_dict=True)
        finally:
            visual.config._attn_implementation = attention.NAME
        found = VisionEncoder(loaded, FeatureCache(0)).encode([image])[0]
    for a, b in zip((found.tokens, *found.deepstack), _layers(wanted), strict=True):
        assert a.shape[0] == int(kept.sum()) == image.tokens
        assert torch.allclose(a, b[0][kept], atol=2e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_pruned_and_whole_images_share_a_batch_and_no_key(family: str, benches: dict[str, Bench]) -> None:
    bench = benches[family]
    image = pruned(bench, 3, 6, 7, 0.5)
    images = [image, replace(image, kept=None, key=b"whole"), pruned(bench, 4, 5, 3, 0.7)]
    together = VisionEncoder(bench.loaded, FeatureCache(10**8)).encode(images)
    for one, features in zip(images, together, strict=True):
        alone = VisionEncoder(bench.loaded, FeatureCache(0)).encode([one])[0]
        assert len(features.tokens) == one.tokens
        assert torch.allclose(features.tokens, alone.tokens, atol=1e-5)


# ----------------------------------------------------------------------------- the language model


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_the_whole_prompt_with_the_pruned_columns_masked(
    family: str, benches: dict[str, Bench]
) -> None:
    bench = benches[family]
    loaded = bench.loaded
    images = [pruned(bench, 1, 6, 9, 0.4), pruned(bench, 2, 4, 3, 0.5)]
    rows = [
        Row(bench.prompts.prompt("Read this.", images)),
        Row(bench.prompts.prompt("Read.", images[:1])),
        Row(bench.prompts.prompt("All of it.", [replace(images[1], kept=None, key=b"whole")])),
    ]
    slots = bench.slots()
    bench.join(slots, rows)
    for _ in range(5):
        slots.step()
    for row in rows:
        whole = bench.prompts.prompt(
            {0: "Read this.", 1: "Read.", 2: "All of it."}[rows.index(row)],
            [replace(image, kept=None) for image in row.prompt.images],
        )
        features = bench.encoder.encode(row.prompt.images)
        filled = []
        for image, one in zip(row.prompt.images, features, strict=True):
            at = torch.ones(image.cells, dtype=torch.bool) if image.kept is None else flat(image)
            layers = []
            for layer in (one.tokens, *one.deepstack):
                full = torch.randn(image.cells, layer.shape[1])
                full[at] = layer
                layers.append(full)
            filled.append(replace(one, tokens=layers[0], deepstack=tuple(layers[1:])))
        mask = torch.ones(len(whole), dtype=torch.long)
        if row.prompt.places is not None:
            mask[:] = 0
            mask[list(row.prompt.places)] = 1
        assert int(mask.sum()) == len(row.prompt)
        ids = torch.tensor([whole.ids])
        position, _ = loaded.model.model.get_rope_index(
            ids,
            token_types(ids, loaded.image_token),
            image_grid_thw=grid_thw(whole.images, ids.device),
        )
        for step, token in enumerate(row.ids):
            more = torch.tensor([row.ids[:step]], dtype=torch.long)
            after = position.max() + 1 + torch.arange(step)
            sequence = torch.cat((ids, more), 1)
            with torch.inference_mode():
                output = loaded.model(
                    input_ids=sequence,
                    attention_mask=torch.cat((mask[None], torch.ones_like(more)), 1),
                    position_ids=torch.cat((position, after.expand(3, 1, step)), 2),
                    mm_token_type_ids=token_types(sequence, loaded.image_token),
                    mm_encoder_outputs=bench.encoder.as_output(filled),
                )
            scores = output.logits[0, -1].log_softmax(-1)
            assert float(scores.max() - scores[token]) < 1e-4
            assert abs(float(scores[token]) - row.logprobs[step]) < 1e-3


def test_a_prompt_names_the_kept_cells_and_their_columns(benches: dict[str, Bench]) -> None:
    bench = benches["qwen3_vl"]
    image = pruned(bench, 5, 4, 4, 0.3)
    whole = bench.prompts.prompt("go", [replace(image, kept=None)])
    prompt = bench.prompts.prompt("go", [image])
    assert whole.places is None
    assert prompt.places is not None
    assert prompt.ids == tuple(whole.ids[place] for place in prompt.places)
    assert len(prompt) + prompt.pruned == len(whole)
    first = whole.ids.index(bench.loaded.image_token)
    gone = set(range(len(whole))) - set(prompt.places)
    assert gone == {first + int(cell) for cell in np.flatnonzero(~flat(image).numpy())}


# --------------------------------------------------------------------------------- what is blank

F = 28


def sheet(paper: int | tuple[int, int, int], ink: int | tuple[int, int, int]) -> np.ndarray[Any, Any]:
    """20 x 12 cells with one word in the middle of cell row 9."""
    colour = [(c, c, c) if isinstance(c, int) else c for c in (paper, ink)]
    image = Image.new("RGB", (12 * F, 20 * F), colour[0])
    ImageDraw.Draw(image).text((5 * F, 9 * F + 6), "Total 12.50", fill=colour[1])
    return np.asarray(image).copy()


@pytest.mark.parametrize(
    ("paper", "ink"), [(255, 0), (18, 235), (250, 215), ((200, 60, 60), (60, 141, 60)), (30, 70)]
)
def test_ink_of_any_colour_is_kept_with_its_neighbours_and_paper_is_not(paper: Any, ink: Any) -> None:
    kept = pruning.kept_cells(sheet(paper, ink), F)
    assert kept is not None
    assert kept[8:11, 4:8].all()
    assert not kept[:8].any()
    assert not kept[11:].any()


@pytest.mark.parametrize("sigma", [2.0, 5.0, 10.0])
def test_noise_and_shade_of_a_scan_are_no_ink(sigma: float) -> None:
    pixels = sheet(225, 40).astype(np.float32)
    pixels += np.random.default_rng(1).normal(0, sigma, pixels.shape)
    pixels -= np.linspace(0, 25, pixels.shape[1])[None, :, None]
    kept = pruning.kept_cells(np.clip(pixels, 0, 255).astype(np.uint8), F)
    assert kept is not None
    assert kept[8:11, 4:8].all()
    assert kept.mean() < 0.25


def test_photos_and_blank_images_are_left_whole() -> None:
    shade = np.linspace(0, 255, 12 * F)[None, :, None] * np.ones((20 * F, 1, 3))
    assert pruning.kept_cells(shade.astype(np.uint8), F) is None
    assert pruning.kept_cells(np.full((4 * F, 4 * F, 3), 255, np.uint8), F) is None


def test_pruning_is_part_of_the_key_and_of_the_digest(benches: dict[str, Bench]) -> None:
    image = benches["qwen2_5_vl"].loaded.image
    pixels = sheet(255, 0)
    whole, less = image_input(pixels, image), image_input(pixels, image, prune=True)
    assert whole.key != less.key
    assert whole.tokens == whole.cells == less.cells > less.tokens
    assert less.patches == 4 * less.tokens == len(patches(less, image, torch.device("cpu")))
    digests = {
        Settings(engine=EngineSettings(name="vlm", prune=prune)).digest(EngineInfo("vlm"))
        for prune in (False, True)
    }
    assert len(digests) == 2


@pytest.mark.parametrize("family", FAMILIES)
def test_the_engine_prunes_only_when_told_and_counts_both(family: str, tiny: Callable[[str], Path]) -> None:
    found = {}
    for prune in (False, True):
        settings = EngineSettings(
            name="vlm", model=str(tiny(family)), quant="none", device="cpu", prune=prune
        )
        engine = VlmEngine(settings)
        factor = engine.profile.factor
        page = np.full((20 * factor, 12 * factor, 3), 255, np.uint8)
        page[6:14, 6:14] = 0  # in the cell of the corner, which has three neighbours
        feed = ListFeed([request(0, page, limit=4)])
        (reply,) = [feed.answered(reply) for reply in engine.generate(feed)]
        found[prune] = reply.tokens
        engine.close()
    whole, less = found[False], found[True]
    assert whole.visual == whole.visual_full == less.visual_full == 20 * 12
    assert less.visual == 4
    assert whole.prompt - whole.visual == less.prompt - less.visual


def test_only_engine_vlm_can_be_told_to_prune() -> None:
    assert options.engine("vlm", None, "none", "cpu", prune=True).prune
    assert not options.engine("vlm", None, "none", "cpu").prune
    with pytest.raises(UsageError, match="vlm"):
        options.engine("light", None, "none", "cpu", prune=True)


@pytest.mark.slow
def test_bench_prune_compares_both_ways_on_the_same_pages(tiny: Callable[[str], Path]) -> None:
    command = ["bench", "prune", "-m", str(tiny("qwen3_vl")), "--quant", "none", "--pages", "1"]
    done = CliRunner().invoke(app, [*command, "--strategy", "whole", "--max-new-tokens", "4"])
    assert done.exit_code == 0, done.output
    (receipt, scan) = json.loads(done.stdout.splitlines()[-1])["rows"]
    for row in (receipt, scan):
        assert row["off"]["visual"] == row["off"]["visual_full"] == row["on"]["visual_full"]
        assert row["saved"] == 1 - row["on"]["visual"] / row["off"]["visual"]
        assert row["off"]["gold"] == row["on"]["gold"] > 500
    assert scan["saved"] > 0.1
