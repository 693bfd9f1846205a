"""Image files by Pillow, shown as a person sees them: upright, on white, in 8 bits a channel."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from hiresvlm.datatypes import Caution, CautionKind, FailureKind
from hiresvlm.pages import OpenPage, PageError
from hiresvlm.pages.raster import on_canvas

if TYPE_CHECKING:
    from hiresvlm.chunking.analysis import Gray, PageAnalysis
    from hiresvlm.datatypes import Chunk, Line, Pixels
    from hiresvlm.settings import PageSettings

Image.MAX_IMAGE_PIXELS = None  # our own limit is checked before anything is decoded, with a clear message

_ORIENTATION = 0x0112
_TURN = {3: 180, 4: 180, 5: 90, 6: 90, 7: 270, 8: 270}
"""EXIF orientation -> degrees clockwise that bring the image upright (mirrored ones too)."""

_DEEP_MODES = ("I;16", "I;16L", "I;16B", "I;16N", "I", "F")


class ImageReader:
    """An open image file; only TIFF has pages, of other animated formats the first frame counts."""

    def __init__(self, path: str, kind: str, settings: PageSettings) -> None:
        self._settings = settings
        self.cautions: tuple[Caution, ...] = ()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # remarks on odd metadata; what matters raises
                self._image = Image.open(path, formats=(kind,))
                frames = int(getattr(self._image, "n_frames", 1))
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
            raise PageError(FailureKind.CORRUPT, f"not a {kind} image that can be opened") from error
        self.pages = frames if kind == "TIFF" else 1
        if frames > 1 and kind != "TIFF":
            message = f"{frames} frames; only the first one is read"
            self.cautions = (Caution(CautionKind.FRAMES, message),)

    def page(self, number: int) -> OpenPage:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if self.pages > 1:
                    self._image.seek(number - 1)
                return ImagePage(self._image, self._settings)
        except (OSError, SyntaxError, ValueError, EOFError, MemoryError) as error:
            raise PageError(FailureKind.CORRUPT, "the image is damaged or cut off") from error

    def close(self) -> None:
        self._image.close()


class ImagePage:
    """One decoded frame, mode L or RGB. Resolution tags are ignored: pixels are pixels."""

    points: tuple[float, float] | None = None

    def __init__(self, image: Image.Image, settings: PageSettings) -> None:
        width, height = image.size
        if width * height > settings.max_image_pixels:
            limit = settings.max_image_pixels // 10**6
            raise PageError(
                FailureKind.TOO_LARGE,
                f"{width} x {height} pixels may be a decompression bomb; the limit is {limit} megapixels",
            )
        image.load()  # Pillow turns TIFF by itself and takes the tag away, so the tag is read after this
        orientation = image.getexif().get(_ORIENTATION, 1)
        self.rotation = _TURN.get(orientation, 0)
        self.cautions: tuple[Caution, ...] = ()
        self._image = _flatten(ImageOps.exif_transpose(image))
        self.size: tuple[int, int] = self._image.size

    def gray(self, max_pixels: int) -> Gray:
        image = self._image.convert("L")
        width, height = image.size
        scale = min(1.0, math.sqrt(max_pixels / (width * height)))
        if scale < 1.0:
            size = (max(1, round(width * scale)), max(1, round(height * scale)))
            image = image.resize(size, Image.Resampling.BOX)
        return np.asarray(image)

    def render(self, chunk: Chunk) -> Pixels:
        """Antialiased in both directions: Pillow's filters widen when they shrink, OpenCV's do not."""
        x0, y0, x1, y1 = chunk.box
        width, height = chunk.size
        if x0 == int(x0) and y0 == int(y0) and x1 == x0 + width and y1 == y0 + height:
            part = self._image.crop((int(x0), int(y0), int(x1), int(y1)))
        else:
            part = self._image.resize(
                chunk.size, Image.Resampling.BICUBIC, box=(x0, y0, x1, y1), reducing_gap=3.0
            )
        return on_canvas(np.asarray(part), chunk.size, chunk.canvas)

    def text_layer(self, analysis: PageAnalysis) -> tuple[Line, ...] | None:
        return None


def _flatten(image: Image.Image) -> Image.Image:
    """Any mode -> L or RGB."""
    if image.mode in _DEEP_MODES:
        return _eight_bits(image)
    if image.has_transparency_data:
        return _on_paper(image.convert("RGBA"))
    if image.mode in ("1", "L"):
        return image.convert("L")
    return image.convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """Deep gray to 8 bits. White is the full scale of the depth in use (10, 12, 14 or 16 bits).

    Pillow's own conversion clips at 255, which shows a 16-bit scan as a blank page.
    """
    values = np.asarray(image, dtype=np.float32)
    values = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    if image.mode == "F" or low < 0:
        span = high - low
        scaled = (values - low) * (255.0 / span) if span > 0 else np.full_like(values, 255.0)
    else:
        full = next((2.0**bits - 1 for bits in (8, 10, 12, 14, 16) if high < 2**bits), high)
        scaled = values * (255.0 / full)
    return Image.fromarray(np.round(scaled).astype(np.uint8))


def _on_paper(image: Image.Image) -> Image.Image:
    """Transparent images on white; on black where white would hide everything (white text for dark pages)."""
    paper = Image.new("RGB", image.size, "white")
    paper.paste(image, mask=image.getchannel("A"))
    if np.asarray(paper).min() == 255:
        paper = Image.new("RGB", image.size, "black")
        paper.paste(image, mask=image.getchannel("A"))
    return paper
