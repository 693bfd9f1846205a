"""What the tests of engine `vlm` share: a loaded tiny model, its parts, and the answer of `generate` to
compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from transformers import GenerationConfig

from hiresvlm.datatypes import Box, Place, Reply, Request, Role, View
from hiresvlm.engines.vlm.cache import FeatureCache
from hiresvlm.engines.vlm.folder import locate, look
from hiresvlm.engines.vlm.inputs import Prompt, PromptMaker, grid_thw, image_input, patches, token_types
from hiresvlm.engines.vlm.loading import Loaded, load
from hiresvlm.engines.vlm.slots import Row, Slots
from hiresvlm.engines.vlm.vision import VisionEncoder

if TYPE_CHECKING:
    from hiresvlm.datatypes import Pixels

SURE = 1e-4
"""Two best scores closer than this may change places with the shape of a batch, in any program."""


@dataclass
class Bench:
    """A loaded model and the parts that most tests need."""

    loaded: Loaded
    encoder: VisionEncoder
    prompts: PromptMaker
    factor: int = field(init=False)

    def __post_init__(self) -> None:
        self.factor = self.loaded.image.factor

    def prompt(self, text: str, *images: Pixels) -> Prompt:
        return self.prompts.prompt(text, [image_input(pixels, self.loaded.image) for pixels in images])

    def slots(self) -> Slots:
        return Slots(self.loaded, self.encoder)

    def join(self, slots: Slots, rows: Sequence[Row]) -> None:
        slots.join(rows, [self.encoder.encode(row.prompt.images) for row in rows])


def open_model(folder: Path, quant: str = "none") -> Bench:
    loaded = load(look(locate(str(folder))), quant, "cpu")
    return Bench(loaded, VisionEncoder(loaded, FeatureCache(50_000_000)), PromptMaker(loaded))


def noise(seed: int, rows: int, columns: int, factor: int) -> Pixels:
    """Random pixels, so many visual tokens high and wide."""
    generator = np.random.default_rng(seed)
    return generator.integers(0, 256, (rows * factor, columns * factor, 3), np.uint8)


def request(
    number: int, *images: Pixels, limit: int = 24, text: str = "Read.", transcribes: bool = False
) -> Request:
    views = tuple(View(Box(0, 0, image.shape[1], image.shape[0]), Role.TILE, image) for image in images)
    return Request(Place(0, 1, 1, number, 1), views, text, limit, transcribes)


def generated(bench: Bench, prompt: Prompt, tokens: int) -> list[int]:
    """Greedy tokens of the `generate` of transformers for one request alone."""
    loaded = bench.loaded
    ids = torch.tensor([prompt.ids])
    inputs: dict[str, torch.Tensor] = {}
    if prompt.images:
        pixels = [patches(image, loaded.image, loaded.device) for image in prompt.images]
        inputs = {"pixel_values": torch.cat(pixels), "image_grid_thw": grid_thw(prompt.images, loaded.device)}
    config = GenerationConfig(
        max_new_tokens=tokens, do_sample=False, eos_token_id=sorted(loaded.ends), pad_token_id=0
    )
    output = loaded.model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        mm_token_type_ids=token_types(ids, loaded.image_token),
        generation_config=config,
        **inputs,
    )
    return [int(token) for token in output[0, ids.shape[1] :]]


def assert_same_answer(bench: Bench, prompt: Prompt, found: Sequence[int], wanted: Sequence[int]) -> None:
    """Equal tokens; a first difference is accepted only where the model itself was undecided."""
    for step, (a, b) in enumerate(zip(found, wanted, strict=False)):
        if a != b:
            assert margin(bench, prompt, wanted[:step]) < SURE, f"token {step} differs"
            return
    assert len(found) == len(wanted)


@torch.inference_mode()
def margin(bench: Bench, prompt: Prompt, so_far: Sequence[int]) -> float:
    """Difference of the two best scores for the next token."""
    ids = torch.tensor([[*prompt.ids, *so_far]])
    features = bench.encoder.encode(prompt.images)
    output = bench.loaded.model(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        mm_token_type_ids=token_types(ids, bench.loaded.image_token),
        image_grid_thw=grid_thw(prompt.images, ids.device),
        mm_encoder_outputs=bench.encoder.as_output(features),
    )
    best = output.logits[0, -1].topk(2).values
    return float(best[0] - best[1])


class ListFeed:
    """Requests in a list; hands out `burst` at most, and nothing on every `stall`-th call that need not
    wait."""

    def __init__(self, requests: Sequence[Request], burst: int = 100, stall: int = 0) -> None:
        self.rest = list(requests)
        self.in_hand = 0
        self._burst = burst
        self._stall = stall
        self._calls = 0

    def take(self, n: int, wait: bool) -> list[Request]:
        assert n > 0
        assert not (wait and self.in_hand), "an engine with work in hand must not wait"
        self._calls += 1
        if not wait and self._stall and self._calls % self._stall == 0:
            return []
        n = min(n, self._burst)
        given, self.rest = self.rest[:n], self.rest[n:]
        self.in_hand += len(given)
        return given

    def answered(self, reply: Reply) -> Reply:
        self.in_hand -= 1
        return reply
