"""The two values that the training code receives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Tile:
    """One image with its exact text."""

    pixels: NDArray[np.uint8]
    """(height, width) grey or (height, width, 3) RGB; both sides are multiples of 28."""
    text: str
    """What is to be transcribed: lines in reading order with newlines between; empty on a blank tile."""
    centres: NDArray[np.float32]
    """(len(text), 2) x and y in pixels of each character: the middle of its advance box, and the optical
    middle of its line (0.36 em above the baseline). A newline has the end of its line."""
    kind: str
    """What was drawn: line, few, paragraph, table, ..."""


@dataclass(frozen=True, eq=False)
class Sample:
    """One example for the chat model."""

    tiles: tuple[Tile, ...]
    """One, or a thumbnail and then its tiles in row order."""
    question: str | None
    """None where the text is to be transcribed."""
    target: str
    where: NDArray[np.float32]
    """(len(target), 3) tile, x and y that each character of the target is copied from; all -1 where none."""
    label: tuple[int, float, float] | None = None
    """Tile, x and y of the last character of the label that the answer stands beside."""
    further: tuple[Sample, ...] = ()
    """Questions about the same tiles that are asked after this one, in turns of the same chat."""

    @classmethod
    def transcription(cls, tile: Tile) -> Sample:
        """Read one tile."""
        where = np.concatenate([np.zeros((len(tile.text), 1), np.float32), tile.centres], axis=1)
        return cls((tile,), None, tile.text, where)
