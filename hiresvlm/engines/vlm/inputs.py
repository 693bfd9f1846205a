"""Pixels and words -> what the model takes: patches, token ids, three-axis positions.

The processor of transformers does the same on the CPU in float32 (and needs torchvision for a video part
that is never used). Here uint8 pixels travel to the device and are normalised there; a test holds the
results equal.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hiresvlm.engines.vlm import pruning
from hiresvlm.engines.vlm.tiles import placed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hiresvlm.datatypes import Pixels
    from hiresvlm.engines.vlm.loading import ImageSettings, Loaded


@dataclass(frozen=True, slots=True, eq=False)
class ImageInput:
    """One image, its sides multiples of the model's factor."""

    pixels: Pixels
    grid: tuple[int, int]
    """Patches down and across."""
    key: bytes
    """Digest of pixels, size, processing settings and kept cells: the same key means the same features."""
    cells: int
    """Visual tokens of the whole image."""
    kept: NDArray[np.bool_] | None = None
    """(down, across): the cells that the model sees; None: all."""

    @property
    def tokens(self) -> int:
        """Visual tokens that the model sees."""
        return self.cells if self.kept is None else int(self.kept.sum())

    @property
    def patches(self) -> int:
        """Patches that the model sees."""
        whole = self.grid[0] * self.grid[1]
        return whole if self.kept is None else whole // self.cells * self.tokens


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """Token ids of one request, with a placeholder for every visual token that the model sees."""

    ids: tuple[int, ...]
    images: tuple[ImageInput, ...]
    places: tuple[int, ...] | None = None
    """Column of each id in the prompt with whole images; None: no image is pruned, the columns are all."""
    pruned: int = 0
    """Columns that are missing."""

    def __len__(self) -> int:
        return len(self.ids)


def image_input(pixels: Pixels, settings: ImageSettings, *, prune: bool = False) -> ImageInput:
    """An image as it is, its last row and column repeated up to a multiple of the factor; or in a square.

    `prune`: without its blank cells (`pruning`).
    """
    if settings.canvas:
        pixels = placed(pixels, settings)
    height, width = pixels.shape[:2]
    factor = settings.factor
    down, right = (0, 0) if settings.canvas else (-height % factor, -width % factor)
    if down or right:
        pixels = np.pad(pixels, ((0, down), (0, right), (0, 0)), mode="edge")
    pixels = np.require(pixels, np.uint8, ("C", "W"))  # torch warns of arrays that cannot be written
    grid = (pixels.shape[0] // settings.patch, pixels.shape[1] // settings.patch)
    digest = hashlib.blake2b(pixels.data, digest_size=20)
    digest.update(repr((pixels.shape, settings)).encode())
    kept = pruning.kept_cells(pixels, factor) if prune else None
    if kept is not None:
        digest.update(kept.tobytes())
    return ImageInput(pixels, grid, digest.digest(), settings.tokens(grid), kept)


def patches(image: ImageInput, settings: ImageSettings, device: torch.device) -> torch.Tensor:
    """Normalised patches (patches, 3 * temporal * patch**2) in float32, in the order of the vision tower.

    Only those of the kept cells. The order is that of `Qwen2VLImageProcessor.patchify`: the patches of one
    visual token follow each other.
    """
    raw = torch.from_numpy(image.pixels).to(device)  # (height, width, 3) uint8
    pixels = raw.permute(2, 0, 1).to(torch.float32) * (1 / 255)
    mean = torch.tensor(settings.mean, device=device)[:, None, None]
    std = torch.tensor(settings.std, device=device)[:, None, None]
    pixels = (pixels - mean) / std
    down, across = (side // settings.merge for side in image.grid)
    m, p = settings.merge, settings.patch
    split = pixels.reshape(3, down, m, p, across, m, p).permute(1, 4, 2, 5, 0, 3, 6)
    copies = split.unsqueeze(5).expand(-1, -1, -1, -1, -1, settings.temporal, -1, -1)
    cells = copies.reshape(image.cells, m * m, 3 * settings.temporal * p * p)
    if image.kept is not None:
        cells = cells[torch.from_numpy(image.kept.ravel()).to(device)]
    return cells.flatten(0, 1)


def kept_mask(images: Sequence[ImageInput], device: torch.device) -> torch.Tensor | None:
    """The kept cells of all images in raster order, (cells,) bool; None where nothing is pruned."""
    if all(image.kept is None for image in images):
        return None
    masks = [np.ones(image.cells, np.bool_) if image.kept is None else image.kept.ravel() for image in images]
    return torch.from_numpy(np.concatenate(masks)).to(device)


def grid_thw(images: Sequence[ImageInput], device: torch.device) -> torch.Tensor:
    """Patches in time, down and across of each image, (images, 3)."""
    return torch.tensor([(1, *image.grid) for image in images], dtype=torch.long, device=device)


class PromptMaker:
    """Writes prompts with the chat template of a model."""

    def __init__(self, loaded: Loaded) -> None:
        self._tokenizer = loaded.tokenizer
        self._template = loaded.template
        self._image_token = loaded.image_token
        self._before, self._after = loaded.facts.family.around
        added: Any = loaded.tokenizer.get_added_vocab()
        self._special = tuple(sorted((token for token in added if len(token) > 1), key=len, reverse=True))
        self._text = functools.lru_cache(maxsize=64)(self._tokens)

    def prompt(self, instruction: str, images: Sequence[ImageInput]) -> Prompt:
        """The images in order, then the instruction, up to the start of the answer."""
        template = self._text(instruction, len(images))
        coming = iter(images)
        ids: list[int] = []
        places: list[int] = []
        whole = 0
        for token in template:
            count, kept = 1, [0]
            if token == self._image_token:
                image = next(coming)
                count = image.cells
                kept = [*range(count)] if image.kept is None else np.flatnonzero(image.kept).tolist()
            ids.extend([token] * len(kept))
            places.extend(whole + cell for cell in kept)
            whole += count
        pruned = whole - len(ids)
        return Prompt(tuple(ids), tuple(images), tuple(places) if pruned else None, pruned)

    def _tokens(self, instruction: str, images: int) -> tuple[int, ...]:
        """Ids with one placeholder an image."""
        content: list[Any] = [{"type": "image"} for _ in range(images)]
        content.append({"type": "text", "text": self._as_words(instruction)})
        rendered: Any = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": content}],  # type: ignore[arg-type]
            chat_template=self._template,
            add_generation_prompt=True,
            tokenize=False,
        )
        if self._before or self._after:
            name = str(self._tokenizer.convert_ids_to_tokens(self._image_token))
            rendered = rendered.replace(name, f"{self._before}{name}{self._after}")
        # As the processors do: a template that writes no start token wants the tokenizer to.
        start = self._tokenizer.bos_token
        written = start is not None and rendered.startswith(str(start))
        ids = self._tokenizer(rendered, add_special_tokens=not written)["input_ids"]
        if ids.count(self._image_token) != images:
            raise ValueError("the chat template does not place every image")
        return tuple(ids)

    def _as_words(self, text: str) -> str:
        """Text in which no special token is left: it may come from a document, and must not end its own
        turn."""
        for token in self._special:
            text = text.replace(token, f"{token[0]} {token[1:]}")
        return text


def token_types(ids: torch.Tensor, image_token: int) -> torch.Tensor:
    """1 for visual tokens, 0 for text: without it the model silently counts positions on one axis."""
    return (ids == image_token).to(torch.int32)
