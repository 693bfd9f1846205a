"""How good the pixels of a page are: sharp or soft, clean or noisy, and what half the size would lose.

All three look at a sample of small cells, so that a page costs a few milliseconds whatever its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hiresvlm.chunking.analysis import Gray, Mask

SAMPLE = 240
"""Cells that are looked at, evenly spaced among those of a kind."""

SIDE = 32
"""Side of a sampled cell in raster pixels; even, for the test of half the size."""

_PRINTED = 0.02
"""Least share of edge pixels of a cell that shows print."""

_END = 0.15
"""Levels so near to the darkest or lightest one, as a share of the range, count as black or white."""

_FLAT = 8.0
"""Greatest standard deviation of a cell of bare paper. Noise of a scan is below it, faint print above."""


FAINT = 10.0
"""Range of gray levels, noise averaged out, from which a page without edges shows something."""


@dataclass(frozen=True, slots=True)
class Quality:
    """`sharpness` is about 0.05 for a blurred scan and above 1 for a screenshot; see `measure`."""

    sharpness: float = 0.0
    """Variance of the Laplacian over variance of the gray levels, median over cells with print."""
    detail: float = 0.0
    """Share of the energy of cells with print that does not survive half the size (0 to 1)."""
    noise: float = 0.0
    """Standard deviation of the noise of bare paper in gray levels; 0 where there is no bare paper."""
    levels: float = 0.0
    """Share of pixels of cells with print that are neither black nor white: 0 for a bilevel scan."""


def measure(gray: Gray, edges: Mask) -> Quality:
    """The quality of a gray raster, given its edge pixels.

    Sharpness is normalised by contrast, so that faint print is not taken for blurred print (the usual
    rule "variance of the Laplacian below 100" does that). Detail is |I - up(down(I))|^2 / |I - mean|^2:
    below 0.01 half the size loses nothing. Noise is the estimate of Immerkaer (1996), a kernel that is
    blind to edges and ramps: sigma = sqrt(pi/2) / 6 * mean|kernel * I|.
    """
    import cv2

    height, width = gray.shape
    rows, columns = height // SIDE, width // SIDE
    if rows == 0 or columns == 0:
        return Quality()
    inner = edges[: rows * SIDE, : columns * SIDE] * np.uint8(255)
    share = cv2.resize(inner, (columns, rows), interpolation=cv2.INTER_AREA) / 255
    grid = gray[: rows * SIDE, : columns * SIDE].reshape(rows, SIDE, columns, SIDE)
    paper = _sample(grid, share == 0)
    paper = paper[paper.std(axis=(1, 2)) < _FLAT]
    noise = float(np.median(_noise(paper))) if len(paper) else 0.0
    print_cells = _sample(grid, share >= _PRINTED)
    if len(print_cells) == 0:
        return Quality(noise=noise)
    variance = np.maximum(print_cells.var(axis=(1, 2)), 1.0)
    sharpness = np.median(_laplacian(print_cells).var(axis=(1, 2)) / variance)
    small = print_cells.reshape(-1, SIDE // 2, 2, SIDE // 2, 2).mean(axis=(2, 4))
    lost = ((print_cells - _doubled(small)) ** 2).mean(axis=(1, 2))
    low, high = np.percentile(print_cells, (2, 98))
    margin = _END * (high - low)
    middle = (print_cells > low + margin) & (print_cells < high - margin)
    return Quality(float(sharpness), float(lost.sum() / variance.sum()), noise, float(middle.mean()))


def _sample(grid: NDArray[np.uint8], chosen: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Up to `SAMPLE` of the chosen cells, evenly spaced in reading order, shape (n, SIDE, SIDE)."""
    ys, xs = np.nonzero(chosen)
    if len(ys) > SAMPLE:
        index = np.linspace(0, len(ys) - 1, SAMPLE).astype(int)
        ys, xs = ys[index], xs[index]
    cells: NDArray[np.float32] = grid[ys, :, xs, :].astype(np.float32)
    return cells


def _laplacian(cells: NDArray[np.float32]) -> NDArray[np.float32]:
    inner: NDArray[np.float32] = (
        cells[:, :-2, 1:-1] + cells[:, 2:, 1:-1] + cells[:, 1:-1, :-2] + cells[:, 1:-1, 2:]
    ) - 4 * cells[:, 1:-1, 1:-1]
    return inner


def _noise(cells: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sigma of each cell: the kernel is the Laplacian (1, -2, 1) along both axes, one after the other."""
    second = cells[:, :-2] - 2 * cells[:, 1:-1] + cells[:, 2:]
    kernel = second[:, :, :-2] - 2 * second[:, :, 1:-1] + second[:, :, 2:]
    sigma: NDArray[np.float32] = np.sqrt(np.pi / 2) / 6 * np.abs(kernel).mean(axis=(1, 2))
    return sigma


def _doubled(cells: NDArray[np.float32]) -> NDArray[np.float32]:
    """Twice the size, bilinear with half-pixel centres, along both axes."""
    for axis in (1, 2):
        first, last = np.take(cells, [0], axis), np.take(cells, [-1], axis)
        before = np.concatenate((first, cells), axis).take(range(cells.shape[axis]), axis)
        after = np.concatenate((cells, last), axis).take(range(1, cells.shape[axis] + 1), axis)
        pair = np.stack((0.75 * cells + 0.25 * before, 0.75 * cells + 0.25 * after), axis + 1)
        shape = list(cells.shape)
        shape[axis] *= 2
        cells = pair.reshape(shape)
    return cells


def has_faint_marks(gray: Gray) -> bool:
    """Whether a page without an edge shows something all the same: pale print, bleed-through, a large area.

    Seen at a quarter of the size, where the noise of a scan averages out.
    """
    import cv2

    size = max(1, gray.shape[1] // 4), max(1, gray.shape[0] // 4)
    small = cv2.resize(gray, size, interpolation=cv2.INTER_AREA)
    low, high = np.percentile(small, (0.05, 99.95))
    return bool(high - low > FAINT)
