"""An endless stream of training batches, drawn in a process of its own."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset

from hiresvlm.nano.batches import ChatBatch, TowerBatch, chat_batch, tower_batch
from hiresvlm.nano.data import Fonts, Generator, Sample, Tile
from hiresvlm.nano.model import FACTOR
from hiresvlm.nano.tokens import Vocabulary

BUCKET = 48
"""Answers and prompts whose lengths lie in one step of this many tokens share a batch."""
MOST_SAMPLES = 64
TURN = 30
"""Tokens of the frame around a question and its answer."""


@dataclass(frozen=True)
class Mixture:
    """What a batch is drawn from: kind of sample to its weight in tokens, not in samples."""

    weights: Mapping[str, float]

    def draw(self, random: np.random.Generator, spent: Mapping[str, float]) -> str:
        """The kind that lies furthest behind its share, ties broken at random."""
        kinds = list(self.weights)
        random.shuffle(kinds)
        return min(kinds, key=lambda kind: spent[kind] / self.weights[kind])


class _Batches(IterableDataset[TowerBatch | ChatBatch]):
    """Samples of one bucket of lengths, about `budget` tokens a batch."""

    def __init__(self, mixture: Mixture, fonts: Fonts, seed: int, budget: int, answers: bool) -> None:
        self.mixture, self.fonts, self.seed, self.budget, self.answers = mixture, fonts, seed, budget, answers

    def __iter__(self) -> Iterator[TowerBatch | ChatBatch]:
        torch.set_num_threads(1)
        worker = torch.utils.data.get_worker_info()
        seed = self.seed * 1009 + (worker.id if worker else 0)
        random = np.random.default_rng(seed)
        generator = Generator(seed, self.fonts)
        vocabulary = Vocabulary()
        buckets: dict[int, list[Sample]] = defaultdict(list)
        held: dict[int, int] = defaultdict(int)
        spent: dict[str, float] = defaultdict(float)
        while True:
            kind = self.mixture.draw(random, spent)
            sample = generator.sample(kind)
            visual = sum(visual_tokens(tile) for tile in sample.tiles)
            words = sum(
                len(turn.target) + len(turn.question or "") + TURN for turn in (sample, *sample.further)
            )
            cost = visual * 2 + words if self.answers else visual * 4
            spent[kind] += cost
            bucket = (visual + words) // BUCKET if self.answers else 0
            buckets[bucket].append(sample)
            held[bucket] += cost
            if held[bucket] >= self.budget or len(buckets[bucket]) >= MOST_SAMPLES:
                samples = buckets.pop(bucket)
                held.pop(bucket)
                if self.answers:
                    yield chat_batch(samples, vocabulary)
                else:
                    yield tower_batch([tile for sample in samples for tile in sample.tiles], vocabulary)


def visual_tokens(tile: Tile) -> int:
    """One for 28 x 28 pixels."""
    height, width = tile.pixels.shape[:2]
    return int(height // FACTOR) * int(width // FACTOR)


def batches(mixture: Mixture, *, seed: int, budget: int, answers: bool) -> Iterator[TowerBatch | ChatBatch]:
    """Endless batches; `answers`: with prompts and answers (second stage) or images alone (first stage).

    Raises `FontsMissing` here, before there is a process whose traceback would hide it.
    """
    samples = _Batches(mixture, Fonts.installed(), seed, budget, answers)
    return iter(DataLoader(samples, batch_size=None, num_workers=1, prefetch_factor=6))
