"""Families that put every image into one square: pixels -> squares -> features.

The families' own processors stretch a page or cut it by rules of their own. Here an image keeps its scale,
as that decides how high its text is: it lies in the upper left corner of the square, and only one that is
larger is shrunk. The rest has the mean colour of the normalisation, which the towers see as zeros (what
`pad_to_square` of LLaVA-OneVision's processor does).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import torch

if TYPE_CHECKING:
    from hiresvlm.datatypes import Pixels
    from hiresvlm.engines.vlm.inputs import ImageInput
    from hiresvlm.engines.vlm.loading import ImageSettings


def placed(pixels: Pixels, settings: ImageSettings) -> Pixels:
    """(h, w, 3) on a square canvas, shrunk where it is larger than the whole tokens of the square."""
    side = settings.canvas // settings.factor * settings.factor
    height, width = pixels.shape[:2]
    share = side / max(height, width)
    if share < 1:
        size = max(1, round(width * share)), max(1, round(height * share))
        pixels = cv2.resize(np.ascontiguousarray(pixels), size, interpolation=cv2.INTER_AREA)
    colour = np.rint(np.array(settings.mean) * 255).astype(np.uint8)
    square = np.empty((settings.canvas, settings.canvas, 3), np.uint8)
    square[:] = colour
    square[: pixels.shape[0], : pixels.shape[1]] = pixels
    return square


def squares(images: Sequence[ImageInput], settings: ImageSettings, device: torch.device) -> torch.Tensor:
    """Normalised pixels (images, 3, canvas, canvas) in float32."""
    raw = torch.stack([torch.from_numpy(image.pixels) for image in images]).to(device)
    mean = torch.tensor(settings.mean, device=device)[:, None, None]
    std = torch.tensor(settings.std, device=device)[:, None, None]
    return (raw.permute(0, 3, 1, 2).to(torch.float32) * (1 / 255) - mean) / std


def internvl(model: Any, pixels: torch.Tensor) -> list[torch.Tensor]:
    """Features (tokens, width) of each square."""
    return list(model.get_image_features(pixel_values=pixels, return_dict=True).pooler_output)


def idefics(model: Any, pixels: torch.Tensor) -> list[torch.Tensor]:
    """The same for Idefics3 and SmolVLM, as prompts of one image each."""
    return list(model.get_image_features(pixel_values=pixels[:, None], return_dict=True).pooler_output)


def llava(model: Any, pixels: torch.Tensor) -> list[torch.Tensor]:
    """The same for LLaVA-NeXT and LLaVA-OneVision, each with the learned end of line behind it.

    `get_image_features` of the library counts the tiles of its own slicer, and has at least two for an
    image, so its steps are taken here: what it calls the base tile is all that there is.
    """
    config = model.config
    told = model.vision_tower(pixels.to(model.dtype), output_hidden_states=True, return_dict=True)
    layer = config.vision_feature_layer
    chosen = [told.hidden_states[number] for number in (layer if isinstance(layer, list) else [layer])]
    seen = torch.cat(chosen, dim=-1)
    if config.vision_feature_select_strategy == "default":
        seen = seen[:, 1:]  # the class token
    projected = model.multi_modal_projector(seen)
    newline = model.image_newline[None].to(projected)
    return [torch.cat((one, newline)) for one in projected]
