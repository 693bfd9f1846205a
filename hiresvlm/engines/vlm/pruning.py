"""Blank cells of an image are dropped before the vision tower sees them (Qwen2.5-VL, Qwen3-VL).

A cell is what becomes one visual token. Those that remain keep the positions they have in the whole image,
in the tower and in the language model, and text after the image stays where it is: with positions renumbered,
a published model falls from 61.8 to 36.2 (arXiv 2509.06415, which also says that kept cells must be dilated).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch
from transformers import vision_utils

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hiresvlm.datatypes import Pixels

FAMILIES = frozenset({"qwen2_5_vl", "qwen3_vl"})
"""Towers whose patches find their place by ids that can be handed in."""

FAINT = 8
"""A pixel is ink from this gradient on, of 255: a hairline of the grey 24 levels from its paper has it."""
NOISE_FACTOR = 6
"""And from so many times the lower quartile of all gradients, which is noise: four standard deviations."""
NOISE_CAP = 24
"""But never later than here, as on a page full of text the quartile is text."""
SPECKS = 4
"""Fewer pixels of ink in a square of 3 x 3 are noise."""
PAPER = 20
PAPER_SHARE = 0.35
"""A document has a paper, dark or light: so much of it lies within `PAPER` levels of one grey. What has none
is a photo, and of a photo nothing is dropped: published losses on photographed receipts are 3 to 5 points."""


def kept_cells(pixels: Pixels, factor: int) -> NDArray[np.bool_] | None:
    """Which cells of an image (h, w, 3) to keep, (h / factor, w / factor); None: all of them.

    It looks at gradients of each colour, so that neither polarity nor shades of the paper matter, after a
    blur that takes the noise of a scan away. Cells beside one with ink are kept too.
    """
    rows, columns = pixels.shape[0] // factor, pixels.shape[1] // factor
    if not _has_paper(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)):
        return None
    smooth = cv2.blur(pixels, (3, 3), borderType=cv2.BORDER_REPLICATE)
    steep = np.zeros(pixels.shape, np.uint8)
    steep[:, 1:-1] = cv2.absdiff(smooth[:, 2:], smooth[:, :-2])
    steep[1:-1] = np.maximum(steep[1:-1], cv2.absdiff(smooth[2:], smooth[:-2]))
    gradient = steep.max(axis=2)
    limit = min(NOISE_CAP, max(FAINT, NOISE_FACTOR * float(np.quantile(gradient, 0.25))))
    ink = (gradient > limit).astype(np.uint8)
    ink &= (cv2.boxFilter(ink, -1, (3, 3), normalize=False) >= SPECKS).astype(np.uint8)
    inked = ink.reshape(rows, factor, columns, factor).max(axis=(1, 3))
    kept = cv2.dilate(inked, np.ones((3, 3), np.uint8)).astype(np.bool_)
    return None if kept.all() or not kept.any() else kept


def _has_paper(gray: NDArray[np.uint8]) -> bool:
    counts = np.bincount(gray.ravel(), minlength=256)
    sums = np.concatenate(([0], np.cumsum(counts)))
    width = 2 * PAPER + 1
    return bool((sums[width:] - sums[:-width]).max() >= PAPER_SHARE * gray.size)


def encode(visual: Any, patches: torch.Tensor, grid: torch.Tensor, kept: torch.Tensor) -> Any:
    """Run a vision tower of the two families over the kept cells of some images.

    `patches`: those of the kept cells only, (patches, values); `grid`: (images, 3), of the whole images;
    `kept`: (cells of all images,) bool, in raster order. Gives what `get_image_features` gives, for the kept
    cells.
    """
    unit = visual.spatial_merge_unit
    counts = (grid.prod(1) // unit).tolist()
    sizes = [int(part.sum()) for part in torch.split(kept, counts)]
    every = kept.repeat_interleave(unit)
    boundaries = torch.tensor([0, *sizes], device=grid.device).cumsum(0).to(torch.int32) * unit
    options: dict[str, torch.Tensor] = {
        "position_ids": vision_utils.get_vision_position_ids(grid, visual.spatial_merge_size)[every],
        "cu_seqlens": boundaries.to(torch.int32),
    }
    if hasattr(visual, "window_size"):
        index, edges = vision_utils.get_vision_window_index(
            grid, visual.spatial_merge_size, visual.window_size, visual.patch_size
        )
        options |= _windows(index.to(kept.device), edges, kept, unit)
    if hasattr(visual, "pos_embed"):
        indices, weights = vision_utils.get_vision_interpolation_indices_and_weights(
            grid,
            num_grid_per_side=visual.num_grid_per_side,
            mode=visual.interpolation_mode,
            align_corners=visual.interpolation_align_corners,
            spatial_merge_size=visual.spatial_merge_size,
        )
        options |= {"interp_indices": indices[every], "interp_weights": weights[every]}
    seen = visual(patches.type(visual.dtype), grid_thw=grid, return_dict=True, **options)
    seen.pooler_output = torch.split(seen.pooler_output, sizes)
    if getattr(seen, "deepstack_features", None):
        seen.deepstack_features = [torch.split(layer, sizes) for layer in seen.deepstack_features]
    return seen


def _windows(
    index: torch.Tensor, edges: torch.Tensor, kept: torch.Tensor, unit: int
) -> dict[str, torch.Tensor]:
    """The windows of Qwen2.5-VL with the members that are left; empty ones vanish."""
    stays = kept[index]
    renumbered = torch.cumsum(kept, 0) - 1
    before = torch.cat((stays.new_zeros(1, dtype=torch.long), torch.cumsum(stays, 0)))
    left = before[(edges // unit).long()] * unit
    return {
        "window_index": renumbered[index[stays]],
        "cu_window_seqlens": torch.unique_consecutive(left).to(torch.int32),
    }
