"""Prompts with several tiles: a thumbnail of a page and its tiles in row order."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from hiresvlm.nano.data.canvas import Canvas
from hiresvlm.nano.data.degrade import degrade
from hiresvlm.nano.data.documents import open_page
from hiresvlm.nano.data.entries import Filler
from hiresvlm.nano.data.forms import ABSENT, answered, ask
from hiresvlm.nano.data.layouts import fill, filling
from hiresvlm.nano.data.studio import PATCH, Studio
from hiresvlm.nano.data.tile import Sample, Tile

GRIDS = ((2, 1), (2, 1), (3, 1), (1, 2), (2, 2), (4, 1))
"""Rows and columns of tiles under one thumbnail."""


def tiles(studio: Studio) -> Sample:
    """A thumbnail and two to four tiles of one page in row order, with a question, or to be transcribed."""
    rng = studio.rng
    rows, across = rng.choice(GRIDS)
    chinese = studio.chance(studio.chinese)
    style = studio.style(studio.small_size(), chinese)
    height, width = studio.sides(4, 12), studio.sides(9, 14)
    filler = Filler(studio, chinese)
    canvases, printed = [], []
    for number in range(rows * across):
        page = open_page(studio, style, height, width)
        if number == 0 or studio.chance(0.7):
            printed += [(number, item) for item in fill(page, filler, rng.randint(1, 6))]
        else:
            filling(page, chinese)
        canvases.append(page.canvas)
    made = _pieces(studio, canvases, rows, across)
    if studio.chance(0.25):
        spoken = [(number, tile) for number, tile in enumerate(made[1:], 1) if tile.text]
        return _joined(made, spoken)
    text = "\n".join(tile.text for tile in made[1:])
    asked = ask(studio, filler, [item for _, item in printed], text, studio.chance(ABSENT))
    number = next((n for n, item in printed if item is asked.printed), 0)
    return answered(made, number + 1, canvases[number], asked)


def _joined(made: tuple[Tile, ...], spoken: Sequence[tuple[int, Tile]]) -> Sample:
    """The transcription of several tiles, one after another."""
    places: list[NDArray[np.float32]] = []
    for position, (number, tile) in enumerate(spoken):
        if position:
            places.append(np.array([[*places[-1][-1]]], np.float32))
        places.append(
            np.concatenate([np.full((len(tile.text), 1), number, np.float32), tile.centres], axis=1)
        )
    where = np.concatenate(places) if places else np.zeros((0, 3), np.float32)
    return Sample(made, None, "\n".join(tile.text for _, tile in spoken), where)


def _pieces(studio: Studio, canvases: Sequence[Canvas], rows: int, across: int) -> tuple[Tile, ...]:
    """The thumbnail of the whole page and its tiles, degraded as one picture."""
    pictures = [canvas.pixels() for canvas in canvases]
    bands = [np.concatenate(pictures[row * across : (row + 1) * across], axis=1) for row in range(rows)]
    whole = np.concatenate(bands, axis=0)
    if studio.chance(studio.dirty):
        whole = degrade(whole, studio.rng, studio.strength)
    height, width = canvases[0].height, canvases[0].width
    made: list[Tile] = []
    texts, points = [], []
    for number, canvas in enumerate(canvases):
        top, left = number // across * height, number % across * width
        text, centres = canvas.transcript()
        piece = np.ascontiguousarray(whole[top : top + height, left : left + width])
        made.append(Tile(piece, text, centres, "form"))
        if text:
            texts.append(text)
            points.append(centres + np.array([left, top], np.float32))
    ratio = min(1.0, studio.rng.choice((224, 336, 448)) / max(whole.shape[:2]))
    small_height, small_width = (max(1, round(side * ratio / PATCH)) * PATCH for side in whole.shape[:2])
    small = cv2.resize(whole, (small_width, small_height), interpolation=cv2.INTER_AREA).astype(np.uint8)
    factor = np.array([small_width / whole.shape[1], small_height / whole.shape[0]], np.float32)
    for number in range(len(points) - 1):
        points[number] = np.concatenate([points[number], points[number][-1:]])
    places = np.concatenate(points) * factor if points else np.zeros((0, 2), np.float32)
    return (Tile(small, "\n".join(texts), places.astype(np.float32), "thumbnail"), *made)
