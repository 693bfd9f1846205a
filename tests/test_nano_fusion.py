"""The ablation of a learned fusion: both arms see the same batches and start from the same weights."""

import numpy as np
import pytest
import torch

from hiresvlm.nano.batches import ChatBatch, chat_batch
from hiresvlm.nano.data import ALPHABET, Sample, Tile
from hiresvlm.nano.fusion import QUERIES, Arm, compare
from hiresvlm.nano.losses import GlyphHead
from hiresvlm.nano.model import VISION_WIDTH, new_model
from hiresvlm.nano.tokens import Vocabulary

VOCABULARY = Vocabulary()


def sample(seed: int, question: str | None = None) -> Sample:
    """A thumbnail and two tiles."""
    random = np.random.default_rng(seed)
    tiles = []
    for height, width in ((28, 56), (56, 84), (28, 84)):
        text = "".join(random.choice(list("abc123"), 5))
        centres = np.stack([random.uniform(0, width, 5), random.uniform(0, height, 5)], 1)
        pixels = random.integers(0, 256, (height, width), dtype=np.uint8)
        tiles.append(Tile(pixels, text, centres.astype(np.float32), "test"))
    target = tiles[1].text
    where = np.c_[np.ones(len(target)), tiles[1].centres].astype(np.float32)
    return Sample(tuple(tiles), question, target, where)


@pytest.fixture(scope="module")
def parts():
    torch.manual_seed(0)
    return new_model(VOCABULARY), GlyphHead(VISION_WIDTH, len(ALPHABET))


def batches() -> list[ChatBatch]:
    return [chat_batch([sample(n), sample(n + 50, "what?")], VOCABULARY) for n in range(3)]


def test_both_arms_are_trained_and_measured_the_same_way_each_time(parts) -> None:
    model, head = parts
    before = {name: value.clone() for name, value in model.state_dict().items()}
    samples = [sample(90), sample(91, "what is the total?")]
    found, again = (compare(model, head, batches(), samples, steps=3, seed=1, rate=1e-3) for _ in range(2))
    assert found == again
    assert list(found) == ["concatenated", "resampled"]
    cells = 2 + 2 * 3 + 3
    assert found["concatenated"]["visual_tokens"] == cells
    assert found["resampled"]["visual_tokens"] == QUERIES
    for arm in found.values():
        assert (arm["pages"], arm["asked"], arm["none_asked"], arm["steps"]) == (1, 1, 0, 3)
        assert arm["loss"] > 0
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_what_is_gathered_depends_on_every_tile_and_not_on_the_padding_of_another_prompt(parts) -> None:
    model, head = parts
    torch.manual_seed(3)
    arm = Arm(model, head, VOCABULARY, fuse=True)
    first, other = sample(1), sample(2)
    alone = arm.show(chat_batch([first], VOCABULARY))
    smaller = Sample(other.tiles[:2], None, other.target, other.where)
    both = arm.show(chat_batch([first, smaller], VOCABULARY))
    assert torch.allclose(both.embeddings[0, : alone.embeddings.shape[1]], alone.embeddings[0], atol=1e-5)
    changed = Sample((*first.tiles[:2], other.tiles[2]), None, first.target, first.where)
    assert not torch.allclose(
        arm.show(chat_batch([changed], VOCABULARY)).embeddings, alone.embeddings, atol=1e-4
    )


def test_a_trained_arm_predicts_better(parts) -> None:
    model, head = parts
    for fuse in (False, True):
        torch.manual_seed(4)
        arm = Arm(model, head, VOCABULARY, fuse=fuse)
        losses = arm.train([chat_batch([sample(7)], VOCABULARY)] * 12, 12, 2e-3)
        assert losses[-1] < losses[0] - 0.5
