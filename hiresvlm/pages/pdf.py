"""PDF pages by PyMuPDF, re-rendered for every chunk at the chunk's own scale."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pymupdf

from hiresvlm.datatypes import Box, Caution, CautionKind, FailureKind
from hiresvlm.pages import OpenPage, PageError, textlayer
from hiresvlm.pages.raster import on_canvas
from hiresvlm.settings import PAGE_DPI

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hiresvlm.chunking.analysis import Gray, PageAnalysis
    from hiresvlm.datatypes import Chunk, Line, Pixels
    from hiresvlm.settings import PageSettings

_PX = PAGE_DPI / 72
"""Page pixels per point."""

_SMALLEST_PT = 0.5
"""Pages with a side below this many points have nothing to show."""

# MuPDF reports trouble on the C level with fragments of the file in it: never on our stderr.
pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)


class PdfReader:
    """An open PDF. Owner passwords open without being asked for, as in every viewer."""

    def __init__(self, path: str, settings: PageSettings) -> None:
        self._settings = settings
        self.cautions: tuple[Caution, ...] = ()
        self._document = _open(path)
        if self._document.needs_pass and not self._document.authenticate(settings.password or ""):
            self._document.close()
            message = (
                "encrypted, and the password does not open it"
                if settings.password
                else "encrypted: a password is needed (--password-file)"
            )
            raise PageError(FailureKind.ENCRYPTED, message, retryable=True)
        try:
            self.pages: int = self._document.page_count
        except (RuntimeError, ValueError) as error:
            raise PageError(FailureKind.CORRUPT, "the page tree cannot be read") from error
        if self.pages < 1:
            repaired = self._document.is_repaired
            self._document.close()
            if repaired:
                raise PageError(FailureKind.CORRUPT, "damaged, and no page could be recovered")
            raise PageError(FailureKind.NO_PAGES, "the PDF has no pages")
        if self._document.is_repaired:
            message = "the file was damaged; pages may be missing"
            self.cautions = (Caution(CautionKind.REPAIRED, message),)

    def page(self, number: int) -> OpenPage:
        try:
            page = self._document.load_page(number - 1)
        except (RuntimeError, ValueError) as error:
            raise PageError(FailureKind.RENDER, "the page cannot be loaded") from error
        return PdfPage(page, self._settings)

    def close(self) -> None:
        self._document.close()


def _open(path: str) -> pymupdf.Document:
    try:
        os.fsdecode(path).encode("utf-8")
    except UnicodeEncodeError:  # MuPDF takes only UTF-8 names; such a file is read into memory
        with open(path, "rb") as file:
            return _checked(lambda: pymupdf.open(stream=file.read(), filetype="pdf"))
    return _checked(lambda: pymupdf.open(path, filetype="pdf"))


def _checked(opener: Callable[[], pymupdf.Document]) -> pymupdf.Document:
    try:
        return opener()
    except pymupdf.EmptyFileError as error:
        raise PageError(FailureKind.EMPTY, "the file is empty", retryable=True) from error
    except (RuntimeError, ValueError) as error:  # FileDataError and the errors of MuPDF itself
        raise PageError(FailureKind.CORRUPT, "not a PDF that can be opened, or cut off") from error


class PdfPage:
    """One page: its display list is interpreted once and drawn for every chunk."""

    def __init__(self, page: pymupdf.Page, settings: PageSettings) -> None:
        rect = page.rect
        if not (rect.width >= _SMALLEST_PT and rect.height >= _SMALLEST_PT):
            raise PageError(FailureKind.RENDER, "the page box has no area")
        self._page = page
        self._refuse_bombs(settings.max_image_pixels)
        self.points: tuple[float, float] | None = (round(rect.width, 2), round(rect.height, 2))
        self.size = (max(1, round(rect.width * _PX)), max(1, round(rect.height * _PX)))
        self.rotation: int = page.rotation % 360
        self.cautions: tuple[Caution, ...] = ()
        try:
            self._list = page.get_displaylist()
        except (RuntimeError, ValueError) as error:
            raise PageError(FailureKind.RENDER, "the page content cannot be interpreted") from error

    def gray(self, max_pixels: int) -> Gray:
        width, height = self.size
        scale = min(1.0, math.sqrt(max_pixels / (width * height)))
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        return self._draw(Box(0, 0, width, height), size, pymupdf.csGRAY)

    def render(self, chunk: Chunk) -> Pixels:
        return on_canvas(self._draw(chunk.box, chunk.size, pymupdf.csRGB), chunk.size, chunk.canvas)

    def text_layer(self, analysis: PageAnalysis) -> tuple[Line, ...] | None:
        return textlayer.read(self._page, analysis, _PX)

    def _draw(self, box: Box, size: tuple[int, int], colours: pymupdf.Colorspace) -> NDArray[np.uint8]:
        """Draw a box of page pixels into exactly `size`, white where the page has nothing."""
        rect = self._page.rect
        sx = size[0] / (box.width * rect.width / self.size[0])
        sy = size[1] / (box.height * rect.height / self.size[1])
        x0, y0 = box.x0 * rect.width / self.size[0], box.y0 * rect.height / self.size[1]
        clip = pymupdf.Rect(x0, y0, x0 + size[0] / sx, y0 + size[1] / sy)
        matrix = pymupdf.Matrix(sx, 0, 0, sy, -x0 * sx, -y0 * sy)
        try:
            drawn = self._list.get_pixmap(matrix=matrix, colorspace=colours, alpha=False, clip=clip)
        except (RuntimeError, ValueError) as error:
            raise PageError(FailureKind.RENDER, "the page cannot be rendered") from error
        shape = (drawn.height, drawn.width) if drawn.n == 1 else (drawn.height, drawn.width, drawn.n)
        # The memoryview does not keep the Pixmap alive: without a copy its bytes change under us.
        pixels = np.frombuffer(drawn.samples_mv, np.uint8).reshape(drawn.height, drawn.stride)
        pixels = pixels[:, : drawn.width * drawn.n].reshape(shape)
        canvas = np.full((size[1], size[0], *shape[2:]), 255, np.uint8)
        left, top = max(0, drawn.x), max(0, drawn.y)  # rounding may add a pixel on either side
        part = pixels[top - drawn.y :, left - drawn.x :][: size[1] - top, : size[0] - left]
        canvas[top : top + part.shape[0], left : left + part.shape[1]] = part
        return canvas

    def _refuse_bombs(self, max_pixels: int) -> None:
        """A tiny PDF can hold an image of gigapixels, which MuPDF decodes whole. Only headers are read."""
        for image in self._page.get_images(full=True):
            width, height = image[2], image[3]
            if width * height > max_pixels:
                raise PageError(
                    FailureKind.TOO_LARGE,
                    f"an image of {width} x {height} pixels; the limit is {max_pixels // 10**6} megapixels",
                )
