"""Image files by Pillow, shown as a person sees them: upright, on paper, in 8 bits a channel."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import numpy as np
from PIL import Image, PngImagePlugin

from hiresvlm.datatypes import Caution, CautionKind, FailureKind
from hiresvlm.pages import OpenPage, PageError, unreadable
from hiresvlm.pages.raster import on_canvas, shrunk

if TYPE_CHECKING:
    from hiresvlm.chunking.analysis import Gray, PageAnalysis
    from hiresvlm.datatypes import Chunk, Line, Pixels
    from hiresvlm.settings import PageSettings

PngImagePlugin.MAX_TEXT_CHUNK = 16 * 2**20  # colour profiles and editors' notes are larger than 1 MiB
Image.MAX_IMAGE_PIXELS = None  # our own limit is checked before anything is decoded, with a clear message

_ORIENTATION = 0x0112
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_TURN = {3: 180, 4: 180, 5: 90, 6: 90, 7: 270, 8: 270}
"""EXIF orientation -> degrees clockwise that bring the image upright (mirrored ones too)."""

_DEEP_MODES = ("I;16", "I;16L", "I;16B", "I;16N", "I", "F")
_PHOTOMETRIC, _WHITE_IS_ZERO = 262, 0

_ONE_SHOWS = ("GIF", "WEBP", "PNG")
"""Formats that can move. Further images of a JPEG are previews and depth maps, which nobody misses."""

_BAND = 512
"""Rows that are converted at a time, so that a huge image is not held three times."""

_SHRINK = Image.Resampling.BILINEAR
_ENLARGE = Image.Resampling.BICUBIC
"""Pillow widens both when they shrink, so neither aliases. The triangle (BILINEAR) is an average over the
area that falls off to its sides; it is the one filter for sharp and soft sources: with `light`
no other is better by more than chance on either kind. CER with BOX / BILINEAR / BICUBIC / LANCZOS:
    sharp screenshot of 1080 x 3840, capitals of 9 px   0.0057 / 0.0041 / 0.0041 / 0.0079
    sharp screenshot of 1080 x 9000, the same           0.0055 / 0.0044 / 0.0050 / 0.0087
    sharp Chinese and English set solid, 8 px           0.0007 / 0.0007 / 0.0001 / 0.0003
    blurred (1.6 px) and noisy (22 levels) pages, 8 px  0.0143 / 0.0057 / 0.0061 / 0.0058
    noise of 45 levels, half the size                   0.0279 / 0.0216 /   -    / 0.0206
    blur of 2.6 px, half the size                       0.0455 / 0.0259 /   -    / 0.0443
BOX weighs pixels unevenly unless the factor is whole, and Lanczos rings on blurred strokes. Enlarging is
bicubic: Lanczos rings on black print."""

_EDGE = 25
"""Gray levels between neighbours that make an edge, as in page analysis."""


class ImageReader:
    """An image file; only TIFF has pages, of other formats the first frame counts.

    Only a TIFF of several pages stays open, so an idle reader holds no pixels of other files.
    """

    def __init__(self, path: str, kind: str, settings: PageSettings) -> None:
        self._path = path
        self._kind = kind
        self._settings = settings
        self._file: IO[bytes] | None = None
        self._frames: Image.Image | None = None
        self.cautions: tuple[Caution, ...] = ()
        message = f"not a {kind} image that can be opened"
        with self._opened() as file, _faults(message), Image.open(file, formats=(kind,)) as image:
            frames = int(getattr(image, "n_frames", 1))
        self.pages = frames if kind == "TIFF" else 1
        if frames > 1 and kind in _ONE_SHOWS:
            message = f"{frames} frames; only the first one is read"
            self.cautions = (Caution(CautionKind.FRAMES, message),)

    def page(self, number: int) -> OpenPage:
        if self.pages == 1:
            with self._opened() as file, _faults("the image is damaged or cut off"):
                return ImagePage(Image.open(file, formats=(self._kind,)), self._settings)
        with _faults("the image is damaged or cut off"):
            return ImagePage(self._frame(number - 1), self._settings, shared=True)

    def close(self) -> None:
        if self._frames is not None:
            self._frames.close()
            self._frames = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _frame(self, number: int) -> Image.Image:
        """Frame `number` (from 0), not decoded. Going forward is cheap, which is how pages are read."""
        if self._frames is None or self._frames.tell() >= number:
            # Pillow turns a frame when it decodes it and forgets that it did: only a new one tells.
            self.close()
            self._file = self._opened()
            self._frames = Image.open(self._file, formats=(self._kind,))
        self._frames.seek(number)
        return self._frames

    def _opened(self) -> IO[bytes]:
        try:
            return open(self._path, "rb")
        except OSError as error:
            raise unreadable(error) from error


@contextmanager
def _faults(message: str) -> Iterator[None]:
    """Whatever Pillow raises on a damaged file is one typed failure; the kinds of errors are many."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # remarks on odd metadata; what matters raises
            yield
    except (PageError, MemoryError):
        raise
    except Exception as error:
        raise PageError(FailureKind.CORRUPT, message) from error


class ImagePage:
    """One decoded frame, mode L or RGB. Resolution tags are ignored: pixels are pixels.

    The pixels of a `shared` image are copied, since the next frame takes their place.
    """

    points: tuple[float, float] | None = None

    def __init__(self, image: Image.Image, settings: PageSettings, *, shared: bool = False) -> None:
        width, height = image.size
        if width * height > settings.max_image_pixels:
            limit = settings.max_image_pixels // 10**6
            raise PageError(
                FailureKind.TOO_LARGE,
                f"{width} x {height} pixels may be a decompression bomb; the limit is {limit} megapixels",
            )
        before = _orientation(image)
        image.load()
        after = _orientation(image)  # of a PNG it is known only now; of a TIFF, Pillow has applied it
        self.rotation = _TURN.get(after if after in _UPRIGHT else before, 0)
        self.cautions: tuple[Caution, ...] = ()
        flat = _flatten(image)
        if after in _UPRIGHT:
            flat = flat.transpose(_UPRIGHT[after])
        self._image = flat.copy() if shared and flat is image else flat
        self.size: tuple[int, int] = self._image.size

    @property
    def damaged(self) -> bool:
        """Never: a damaged image is refused when it is opened."""
        return False

    def gray(self, max_pixels: int) -> Gray:
        image = self._image
        size = shrunk(image.size, max_pixels)
        if size != image.size:
            image = image.resize(size, Image.Resampling.BOX, reducing_gap=3.0)
        return np.asarray(image.convert("L"))

    def render(self, chunk: Chunk) -> Pixels:
        """Resized once, antialiased: Pillow's filters widen when they shrink, OpenCV's do not."""
        x0, y0 = max(0.0, chunk.box.x0), max(0.0, chunk.box.y0)
        x1, y1 = min(self.size[0], chunk.box.x1), min(self.size[1], chunk.box.y1)
        width, height = chunk.size
        if x0 == int(x0) and y0 == int(y0) and x1 == x0 + width and y1 == y0 + height:
            part = self._image.crop((int(x0), int(y0), int(x1), int(y1)))
        else:
            method = _SHRINK if width < x1 - x0 else _ENLARGE
            part = self._image.resize(chunk.size, method, box=(x0, y0, x1, y1), reducing_gap=3.0)
        return on_canvas(np.asarray(part), chunk.size, chunk.canvas)

    def text_layer(self, analysis: PageAnalysis) -> tuple[Line, ...] | None:
        return None


def _orientation(image: Image.Image) -> int:
    """EXIF orientation; 1, upright, where there is none. Damaged metadata costs nobody the picture."""
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # the parser raises nearly anything on nonsense
        return 1


def _flatten(image: Image.Image) -> Image.Image:
    """Any mode -> L or RGB; the image itself where it is that already."""
    if image.mode in _DEEP_MODES:
        return _eight_bits(image)
    if image.has_transparency_data:
        return _on_paper(image if image.mode == "RGBA" else image.convert("RGBA"))
    if image.mode in ("L", "RGB"):
        return image
    if image.mode == "LAB":  # Pillow does not convert it; lightness is what text is made of
        return image.getchannel(0)
    return image.convert("L" if image.mode == "1" else "RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """Deep gray to 8 bits. White is the full scale of the depth in use (8, 10, 12, 14 or 16 bits).

    Pillow's own conversion clips at 255, which shows a 16-bit scan as a blank page. Values below zero
    and floating point have no full scale: they are stretched from the darkest to the lightest.
    """
    low, high = math.inf, -math.inf
    for band in _bands(image):
        values = np.asarray(band)
        values = values[np.isfinite(values)] if image.mode == "F" else values
        if values.size:
            low, high = min(low, float(values.min())), max(high, float(values.max()))
    if low > high:  # not one number in it
        low = high = 0.0
    if image.mode != "F" and low >= 0:
        low, high = 0.0, next((2.0**bits - 1 for bits in (8, 10, 12, 14, 16) if high < 2**bits), high)
    span = (high - low) or 1.0
    inverted = getattr(image, "tag_v2", {}).get(_PHOTOMETRIC) == _WHITE_IS_ZERO

    def convert(band: Image.Image) -> Image.Image:
        values = (np.asarray(band, dtype=np.float64) - low) / span
        values = np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=0.0)
        return Image.fromarray(np.round(255 * (1 - values if inverted else values)).astype(np.uint8))

    return _in_bands(image, "L", convert)


def _on_paper(image: Image.Image) -> Image.Image:
    """RGBA on the paper on which most is seen: white, unless white hides what black or gray shows.

    White text on a transparent ground, made for dark pages, would vanish on white.
    """
    if image.getchannel("A").histogram()[255] == image.width * image.height:
        return image.convert("RGB")
    factor = math.ceil(math.sqrt(image.width * image.height / 4e6))
    small = image.reduce(factor) if factor > 1 else image
    seen = {paper: _edges(_pasted(small, paper)) for paper in ("white", "black", "gray")}
    best = next(paper for paper, edges in seen.items() if edges >= 0.9 * max(seen.values()))
    return _in_bands(image, "RGB", lambda band: _pasted(band, best))


def _pasted(image: Image.Image, paper: str) -> Image.Image:
    sheet = Image.new("RGB", image.size, paper)
    sheet.paste(image, mask=image.getchannel("A"))
    return sheet


def _edges(image: Image.Image) -> int:
    """Pixels that differ from their left neighbour."""
    gray = np.asarray(image.convert("L"), dtype=np.int16)
    return int(np.count_nonzero(np.abs(np.diff(gray, axis=1)) > _EDGE))


def _bands(image: Image.Image) -> Iterator[Image.Image]:
    """The image in strips of some rows, from the top."""
    for top in range(0, image.height, _BAND):
        yield image.crop((0, top, image.width, min(top + _BAND, image.height)))


def _in_bands(image: Image.Image, mode: str, convert: Callable[[Image.Image], Image.Image]) -> Image.Image:
    result = Image.new(mode, image.size)
    for number, band in enumerate(_bands(image)):
        result.paste(convert(band), (0, number * _BAND))
    return result
