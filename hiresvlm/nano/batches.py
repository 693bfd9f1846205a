"""From training samples to tensors: patches, prompts, labels, and what the two auxiliary losses aim at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray

from hiresvlm.nano.data import Sample, Tile
from hiresvlm.nano.model import FACTOR, MERGE, PATCH
from hiresvlm.nano.tokens import SPECIAL_TOKENS, TRANSCRIBE, Vocabulary

IGNORED = -100
"""A label that no loss counts."""
QUESTION_WEIGHT = 4.0
"""What a character of an answer to a question counts; 1 in a transcript, which has ten times as many."""
GLYPHS_PER_PATCH = 4
"""Characters whose centre may lie in one 14 x 14 patch: narrow letters of the smallest font."""
MEAN = STD = 0.5


def patchify(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Normalised patches of one image in the order of Qwen's processor.

    (H, W) or (H, W, 3) to (H/14 * W/14, 3 * 14 * 14): blocks of 2 x 2 patches follow each other row by row,
    the four of a block lie side by side, since the merger joins four neighbours in memory.
    """
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=2)
    rows, columns = pixels.shape[0] // FACTOR, pixels.shape[1] // FACTOR
    blocks = pixels.reshape(rows, MERGE, PATCH, columns, MERGE, PATCH, 3).transpose(0, 3, 1, 4, 6, 2, 5)
    flat = blocks.reshape(rows * columns * MERGE * MERGE, 3 * PATCH * PATCH).astype(np.float32)
    return (flat / 255.0 - MEAN) / STD


def glyph_labels(tile: Tile, vocabulary: Vocabulary) -> NDArray[np.int64]:
    """Which characters are centred in each patch, left to right: (patches, 4), 0 for none.

    A character is 1 + its place in the alphabet. Patches with more characters than fit are ignored.
    """
    rows, columns = tile.pixels.shape[0] // FACTOR, tile.pixels.shape[1] // FACTOR
    labels = np.zeros((rows * columns * MERGE * MERGE, GLYPHS_PER_PATCH), np.int64)
    keep = np.array([char != "\n" for char in tile.text], bool)
    if not keep.any():
        return labels
    centres = tile.centres[keep]
    ids = np.array(vocabulary.encode(tile.text.replace("\n", "")), np.int64) - len(SPECIAL_TOKENS) + 1
    column = np.clip(centres[:, 0] // PATCH, 0, columns * MERGE - 1).astype(np.int64)
    row = np.clip(centres[:, 1] // PATCH, 0, rows * MERGE - 1).astype(np.int64)
    patch = (
        ((row // MERGE) * columns + column // MERGE) * MERGE * MERGE + (row % MERGE) * MERGE + column % MERGE
    )
    order = np.lexsort((centres[:, 0], patch))
    patch, ids = patch[order], ids[order]
    first = np.r_[True, patch[1:] != patch[:-1]]
    rank = np.arange(len(patch)) - np.maximum.accumulate(np.where(first, np.arange(len(patch)), 0))
    fits = rank < GLYPHS_PER_PATCH
    labels[patch[fits], rank[fits]] = np.maximum(ids[fits], 0)
    labels[patch[~fits]] = IGNORED
    return labels


def cells(where: NDArray[np.float32], shapes: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """The visual token that holds each character, counted over all tiles of a prompt; -1 where there is none.

    `where`: (n, 3) tile, x, y; `shapes`: height and width of each tile in visual tokens.
    """
    first = np.cumsum([0, *(rows * columns for rows, columns in shapes)])
    found = np.full(len(where), -1, np.int64)
    for n, (tile, x, y) in enumerate(where):
        if tile >= 0:
            rows, columns = shapes[int(tile)]
            row, column = min(int(y) // FACTOR, rows - 1), min(int(x) // FACTOR, columns - 1)
            found[n] = first[int(tile)] + max(row, 0) * columns + max(column, 0)
    return found


@dataclass(frozen=True)
class TowerBatch:
    """Images alone, for the first stage."""

    patches: torch.Tensor  # (patches, 588)
    grid: torch.Tensor  # (images, 3): 1, rows and columns of patches
    labels: torch.Tensor  # (patches, 4)

    def to(self, device: torch.device) -> TowerBatch:
        """The same on another device."""
        return TowerBatch(self.patches.to(device), self.grid.to(device), self.labels.to(device))


@dataclass(frozen=True)
class ChatBatch:
    """Prompts with answers, padded on the right, for the second stage; all (B, L) but the images.

    `labels`: the token that FOLLOWS each position, `IGNORED` outside the answers. `reads`: the column of the
    visual token that the character AT each position was read from, -1 where there is none. `finds`: (n, 4)
    of each question whose answer is printed: its row, the column of its last token, and those of the visual
    tokens with the end of its label (-1 where it has none) and with the first character of the answer.
    `weights`: (B,) what an answer counts.
    """

    tower: TowerBatch
    ids: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor
    reads: torch.Tensor
    finds: torch.Tensor
    weights: torch.Tensor

    def to(self, device: torch.device) -> ChatBatch:
        """The same on another device."""
        return ChatBatch(**{field.name: getattr(self, field.name).to(device) for field in fields(self)})


def tower_batch(tiles: Sequence[Tile], vocabulary: Vocabulary) -> TowerBatch:
    """Pack tiles of any sizes."""
    return TowerBatch(
        torch.from_numpy(np.concatenate([patchify(tile.pixels) for tile in tiles])),
        torch.tensor([(1, tile.pixels.shape[0] // PATCH, tile.pixels.shape[1] // PATCH) for tile in tiles]),
        torch.from_numpy(np.concatenate([glyph_labels(tile, vocabulary) for tile in tiles])),
    )


def chat_batch(samples: Sequence[Sample], vocabulary: Vocabulary) -> ChatBatch:
    """Pack samples; those of one batch should be of like length, the padding is computed too."""
    rows = [_row(sample, vocabulary) for sample in samples]
    length = max(len(row.ids) for row in rows)

    def padded(values: Sequence[Sequence[int]], fill: int) -> torch.Tensor:
        return torch.tensor([[*row, *[fill] * (length - len(row))] for row in values])

    finds = [(number, *find) for number, row in enumerate(rows) for find in row.finds]
    return ChatBatch(
        tower_batch([tile for sample in samples for tile in sample.tiles], vocabulary),
        padded([row.ids for row in rows], vocabulary.ids["<|endoftext|>"]),
        padded([[1] * len(row.ids) for row in rows], 0),
        padded([row.labels for row in rows], IGNORED),
        padded([row.reads for row in rows], -1),
        torch.tensor(finds, dtype=torch.long).reshape(-1, 4),
        torch.tensor([1.0 if sample.question is None else QUESTION_WEIGHT for sample in samples]),
    )


@dataclass(frozen=True)
class _Row:
    """One chat; see `ChatBatch`."""

    ids: list[int]
    labels: list[int]
    reads: list[int]
    finds: list[tuple[int, int, int]]


def _row(sample: Sample, vocabulary: Vocabulary) -> _Row:
    """The prompt of a sample and its answer, then the turns of the questions that follow."""
    shapes = [(tile.pixels.shape[0] // FACTOR, tile.pixels.shape[1] // FACTOR) for tile in sample.tiles]
    ids = vocabulary.prompt([rows * columns for rows, columns in shapes], sample.question)
    image_pad, end = vocabulary.ids["<|image_pad|>"], vocabulary.ids["<|im_end|>"]
    visual = np.array([*(n for n, token in enumerate(ids) if token == image_pad), -1])
    labels, reads, finds = [IGNORED] * len(ids), [-1] * len(ids), []
    for turn in (sample, *sample.further):
        if turn is not sample:
            asked = [*vocabulary.encode("\n"), *vocabulary.asked(turn.question or TRANSCRIBE)]
            ids = [*ids, *asked]
            labels, reads = [*labels, *[IGNORED] * len(asked)], [*reads, *[-1] * len(asked)]
        found = visual[cells(turn.where, shapes)].tolist()
        if turn.question is not None and found and found[0] >= 0:
            label = np.array([turn.label or (-1, 0, 0)], np.float32)
            finds.append((len(ids) - 1, int(visual[cells(label, shapes)[0]]), found[0]))
        answer = [*vocabulary.encode(turn.target), end]
        # What follows the last token of the prompt is the first of the answer, and so on.
        labels = [*labels[:-1], *answer, IGNORED]
        ids, reads = [*ids, *answer], [*reads, *found, -1]
    return _Row(ids[:-1], labels[:-1], reads[:-1], finds)
