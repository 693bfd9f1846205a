"""What scanners, cameras and compression do to a page, at moderate strength."""

from __future__ import annotations

import random
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]


@cache
def _noise_bank() -> NDArray[np.float32]:
    """Standard normal noise to cut pieces from: to draw it anew would cost more than the text."""
    return np.random.default_rng(0).standard_normal((1024, 1024)).astype(np.float32)


def tilt(
    pixels: Pixels, centres: NDArray[np.float32], degrees: float, shear: float = 0.0
) -> tuple[Pixels, NDArray[np.float32]]:
    """Turn about the middle (and shear sideways); the (n, 2) centres go through the same affine map."""
    height, width = pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1.0)
    if shear:
        lean = np.array([[1, shear, -shear * height / 2], [0, 1, 0], [0, 0, 1]])
        matrix = matrix @ lean
    turned = cv2.warpAffine(
        pixels, matrix, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    moved = centres @ matrix[:, :2].T.astype(np.float32) + matrix[:, 2].astype(np.float32)
    return turned.astype(np.uint8), moved.astype(np.float32)


def blur(pixels: Pixels, rng: random.Random, strength: float) -> Pixels:
    """Gaussian blur up to 0.9 pixels."""
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), 0.3 + 0.6 * strength * rng.random()), np.uint8)


def coarse(pixels: Pixels, rng: random.Random, strength: float) -> Pixels:
    """Scaled down and up again, by up to 1.5."""
    height, width = pixels.shape[:2]
    factor = 1 - 0.33 * strength * rng.random()
    small = (max(8, round(width * factor)), max(8, round(height * factor)))
    less = cv2.resize(pixels, small, interpolation=cv2.INTER_AREA)
    back = rng.choice((cv2.INTER_LINEAR, cv2.INTER_CUBIC))
    return np.asarray(cv2.resize(less, (width, height), interpolation=back), np.uint8)


def noise(pixels: Pixels, rng: random.Random, strength: float) -> Pixels:
    """Gaussian noise with a deviation of up to 14 of 255."""
    height, width = pixels.shape[:2]
    bank = _noise_bank()
    rows = (rng.randrange(len(bank)) + np.arange(height)) % len(bank)
    columns = (rng.randrange(len(bank)) + np.arange(width)) % len(bank)
    grain = bank[rows][:, columns] * (1 + 13 * strength * rng.random())
    if pixels.ndim == 3:
        grain = grain[:, :, None]
    return np.clip(pixels + grain, 0, 255).astype(np.uint8)


def jpeg(pixels: Pixels, rng: random.Random, strength: float) -> Pixels:
    """JPEG at a quality between 90 and 35."""
    quality = int(90 - 55 * strength * rng.random())
    data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, quality])[1]
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_UNCHANGED), np.uint8)


def pale(pixels: Pixels, rng: random.Random, strength: float) -> Pixels:
    """Less contrast about a random level."""
    level = rng.randrange(40, 216)
    share = 0.5 * strength * rng.random()
    table = (np.arange(256) * (1 - share) + level * share).astype(np.uint8)
    return np.asarray(cv2.LUT(pixels, table), np.uint8)


def shade(pixels: Pixels, rng: random.Random, strength: float) -> Pixels:
    """Light that falls off to one side."""
    height, width = pixels.shape[:2]
    low = 1 - 0.35 * strength * rng.random()
    across, down = (np.linspace(low, 1, length, dtype=np.float32) for length in (width, height))
    across = across if rng.random() < 0.5 else across[::-1]
    light = np.maximum(across[None, :] * (down if rng.random() < 0.5 else down[::-1])[:, None], 0.5)
    shaded: Pixels = (pixels * (light if pixels.ndim == 2 else light[:, :, None])).astype(np.uint8)
    return shaded


def degrade(pixels: Pixels, rng: random.Random, strength: float) -> Pixels:
    """One to three of the above in the order in which they happen to a page."""
    steps = [(shade, 0.15), (blur, 0.35), (coarse, 0.3), (pale, 0.25), (noise, 0.4), (jpeg, 0.3)]
    for step, share in steps:
        if rng.random() < share:
            pixels = step(pixels, rng, strength)
    return pixels
