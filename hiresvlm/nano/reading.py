"""What the model reads by itself, in batches of prompts of one length: to follow a training."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from rapidfuzz.distance import Levenshtein

from hiresvlm.nano.batches import patchify
from hiresvlm.nano.data import Sample
from hiresvlm.nano.model import PATCH
from hiresvlm.nano.stream import visual_tokens
from hiresvlm.nano.tokens import Vocabulary

BATCH = 16


def read(model: Any, samples: Sequence[Sample], vocabulary: Vocabulary) -> list[str]:
    """Greedy answers of the model as it is (any dtype), in the order of the samples."""
    answers = [""] * len(samples)
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    prompts = [vocabulary.prompt([visual_tokens(t) for t in s.tiles], s.question) for s in samples]
    for n, sample in enumerate(samples):
        groups[(len(prompts[n]), *(visual_tokens(tile) for tile in sample.tiles))].append(n)
    for members in groups.values():
        for start in range(0, len(members), BATCH):
            part = members[start : start + BATCH]
            texts = _greedy(model, [samples[n] for n in part], [prompts[n] for n in part], vocabulary)
            for n, text in zip(part, texts, strict=True):
                answers[n] = text
    return answers


def _greedy(
    model: Any, samples: Sequence[Sample], prompts: list[list[int]], vocabulary: Vocabulary
) -> list[str]:
    ids = torch.tensor(prompts)
    tiles = [tile for sample in samples for tile in sample.tiles]
    patches = torch.cat([torch.from_numpy(patchify(tile.pixels)) for tile in tiles])
    grid = torch.tensor([(1, tile.pixels.shape[0] // PATCH, tile.pixels.shape[1] // PATCH) for tile in tiles])
    longest = max(len(sample.target) for sample in samples)
    with torch.inference_mode():
        output = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            pixel_values=patches.to(model.dtype),
            image_grid_thw=grid,
            mm_token_type_ids=(ids == vocabulary.ids["<|image_pad|>"]).int(),
            max_new_tokens=int(longest * 1.2) + 16,
            do_sample=False,
            eos_token_id=vocabulary.ids["<|im_end|>"],
            pad_token_id=vocabulary.ids["<|endoftext|>"],
        )
    end = vocabulary.ids["<|im_end|>"]
    rows: list[list[int]] = output[:, ids.shape[1] :].tolist()
    return [vocabulary.decode(row[: row.index(end)] if end in row else row) for row in rows]


def character_errors(golds: Sequence[str], reads: Sequence[str]) -> float:
    """CER: edits / gold characters over all samples, white space collapsed."""
    pairs = [(" ".join(g.split()), " ".join(r.split())) for g, r in zip(golds, reads, strict=True)]
    return sum(Levenshtein.distance(g, r) for g, r in pairs) / max(1, sum(len(g) for g, _ in pairs))
