"""PDF pages by PyMuPDF, re-rendered for every chunk at the chunk's own scale."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pymupdf

from hiresvlm.datatypes import Box, Caution, CautionKind, FailureKind
from hiresvlm.pages import OpenPage, PageError, textlayer
from hiresvlm.pages.raster import on_canvas, shrunk
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

_DAMAGE = re.compile(
    r"decode|trunc|premature|read error|not a stream|unknown colou?rspace|cannot find|broken|corrupt|"
    r"end of file|end of data|zlib|jbig2|jpx|jpeg|syntax error",
    re.IGNORECASE,
)
"""What MuPDF says when it leaves out a part of a page that it cannot decode. It draws the rest and raises
nothing, so a scan whose image is damaged would be a blank page. (Its remarks on fonts are harmless.)"""

# MuPDF reports trouble on the C level with fragments of the file in it: never on our stderr.
pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)


@contextmanager
def _faults(kind: FailureKind, message: str) -> Iterator[None]:
    """Whatever MuPDF raises becomes a typed failure.

    Its errors have no base of their own: some are RuntimeError, some ValueError, those of the C library
    are Exception, and a lack of memory is one of these.
    """
    try:
        yield
    except (PageError, MemoryError):
        raise
    except pymupdf.EmptyFileError as error:
        raise PageError(FailureKind.EMPTY, "the file is empty", retryable=True) from error
    except Exception as error:
        if "malloc" in str(error) or "calloc" in str(error):
            raise MemoryError from error
        raise PageError(kind, message) from error


class PdfReader:
    """An open PDF. Owner passwords open without being asked for, as in every viewer."""

    def __init__(self, path: str, settings: PageSettings) -> None:
        self._settings = settings
        self.cautions: tuple[Caution, ...] = ()
        self._document = _open(path)
        try:
            self.pages = self._checked()
        except BaseException:
            self._document.close()
            raise
        if self._document.is_repaired:
            message = "the file was damaged; pages may be missing"
            self.cautions = (*self.cautions, Caution(CautionKind.REPAIRED, message))

    def page(self, number: int) -> OpenPage:
        pymupdf.TOOLS.reset_mupdf_warnings()
        with _faults(FailureKind.RENDER, "the page cannot be loaded"):
            page = self._document.load_page(number - 1)
            if not self._document.xref_get_keys(page.xref):
                # MuPDF shows a page that the file lacks as an empty sheet.
                raise PageError(FailureKind.RENDER, "the page is missing in the file")
        return PdfPage(page, self._settings)

    def close(self) -> None:
        self._document.close()

    def _checked(self) -> int:
        """Unlock the document and count its pages. Raises `PageError`."""
        document = self._document
        password = self._settings.password
        # A password is tried only where one is needed: a wrong one would make an open file unreadable.
        if document.needs_pass and not (password and document.authenticate(password)):
            raise PageError(
                FailureKind.ENCRYPTED,
                "encrypted, and the password does not open it"
                if password
                else "encrypted: a password is needed (--password-file)",
                retryable=True,
            )
        with _faults(FailureKind.CORRUPT, "the page tree cannot be read"):
            if _mend_counts(document):
                message = "the file tells a wrong number of pages; they were counted"
                self.cautions = (Caution(CautionKind.REPAIRED, message),)
            pages = int(document.page_count)
        if pages < 1:
            if document.is_repaired:
                raise PageError(FailureKind.CORRUPT, "damaged, and no page could be recovered")
            raise PageError(FailureKind.NO_PAGES, "the PDF has no pages")
        return pages


def _open(path: str) -> pymupdf.Document:
    with _faults(FailureKind.CORRUPT, "not a PDF that can be opened, or cut off"):
        try:
            os.fsdecode(path).encode("utf-8")
        except UnicodeEncodeError:  # MuPDF takes only UTF-8 names; such a file is read into memory
            with open(path, "rb") as file:
                return pymupdf.open(stream=file.read(), filetype="pdf")
        return pymupdf.open(path, filetype="pdf")


def _mend_counts(document: pymupdf.Document) -> bool:
    """Set each /Count of the page tree to the pages that are there; True if one was wrong.

    MuPDF believes the count: pages beyond a small one would be lost, a large one cannot be read.
    A tree that has loops, odd kids or no pages at all is left as it is.
    """
    root = _reference(document.xref_get_key(document.pdf_catalog(), "Pages"))
    known = document.xref_length()
    nodes = [] if root is None else [root]
    reached = set(nodes)
    folders: dict[int, list[int]] = {}  # a node -> the nodes in it that have kids themselves
    counts: dict[int, int] = {}  # a node -> its pages, at first only those that are its own kids
    for node in nodes:  # grows while it is walked: parents come before their kids
        kids = _kids(document, node)
        if kids is None:
            return False
        folders[node] = [
            kid for kid in kids if 0 < kid < known and document.xref_get_key(kid, "Kids")[0] != "null"
        ]
        counts[node] = len(kids) - len(folders[node])
        if not reached.isdisjoint(folders[node]):
            return False  # a loop, or a node in two places
        reached.update(folders[node])
        nodes += folders[node]
    for node in reversed(nodes):
        counts[node] += sum(counts[kid] for kid in folders[node])
    if root is None or counts[root] < 1:
        return False
    wrong = [node for node in nodes if document.xref_get_key(node, "Count")[1] != str(counts[node])]
    for node in wrong:
        document.xref_set_key(node, "Count", str(counts[node]))
    return bool(wrong)


def _kids(document: pymupdf.Document, node: int) -> list[int] | None:
    """Object numbers of /Kids; None where they are not an array of references."""
    kind, value = document.xref_get_key(node, "Kids")
    if kind == "xref":
        value = document.xref_object(int(value.split()[0]), compressed=True)
    if not re.fullmatch(r"\s*\[(\s*\d+ \d+ R)*\s*\]\s*", value):
        return None
    return [int(number) for number in re.findall(r"(\d+) \d+ R", value)]


def _reference(key: tuple[str, str]) -> int | None:
    return int(key[1].split()[0]) if key[0] == "xref" else None


class PdfPage:
    """One page: its display list is interpreted once and drawn for every chunk."""

    def __init__(self, page: pymupdf.Page, settings: PageSettings) -> None:
        rect = page.rect
        if not (_SMALLEST_PT <= rect.width < math.inf and _SMALLEST_PT <= rect.height < math.inf):
            raise PageError(FailureKind.RENDER, "the page box has no area")
        self._page = page
        self._points = rect.width, rect.height
        with _faults(FailureKind.RENDER, "the images of the page cannot be listed"):
            self._refuse_bombs(settings.max_image_pixels)
        self.points: tuple[float, float] | None = (round(rect.width, 2), round(rect.height, 2))
        self.size = (max(1, round(rect.width * _PX)), max(1, round(rect.height * _PX)))
        self.rotation: int = page.rotation % 360
        self.cautions: tuple[Caution, ...] = ()
        with _faults(FailureKind.RENDER, "the page content cannot be interpreted"):
            self._list = page.get_displaylist()

    @property
    def damaged(self) -> bool:
        """Whether a part of what was drawn so far could not be decoded."""
        return _DAMAGE.search(pymupdf.TOOLS.mupdf_warnings(reset=0)) is not None

    def gray(self, max_pixels: int) -> Gray:
        return self._draw(Box(0, 0, *self.size), shrunk(self.size, max_pixels), pymupdf.csGRAY)

    def render(self, chunk: Chunk) -> Pixels:
        return on_canvas(self._draw(chunk.box, chunk.size, pymupdf.csRGB), chunk.size, chunk.canvas)

    def text_layer(self, analysis: PageAnalysis) -> tuple[Line, ...] | None:
        with _faults(FailureKind.RENDER, "the text layer cannot be read"):
            return textlayer.read(self._page, analysis, _PX)

    def _draw(self, box: Box, size: tuple[int, int], colours: pymupdf.Colorspace) -> NDArray[np.uint8]:
        """Draw a box of page pixels into exactly `size`, white where the page has nothing."""
        px, py = self._points[0] / self.size[0], self._points[1] / self.size[1]  # points per page pixel
        sx, sy = size[0] / (box.width * px), size[1] / (box.height * py)
        x0, y0 = box.x0 * px, box.y0 * py
        clip = pymupdf.Rect(x0, y0, x0 + size[0] / sx, y0 + size[1] / sy)
        matrix = pymupdf.Matrix(sx, 0, 0, sy, -x0 * sx, -y0 * sy)
        with _faults(FailureKind.RENDER, "the page cannot be rendered"):
            drawn = self._list.get_pixmap(matrix=matrix, colorspace=colours, alpha=False, clip=clip)
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
        document = self._page.parent
        for image in self._page.get_images(full=True):
            sizes = [(image[2], image[3])]
            if image[1] > 0:  # its mask is an image too, of a size of its own
                sizes.append((_integer(document, image[1], "Width"), _integer(document, image[1], "Height")))
            for width, height in sizes:
                if width * height > max_pixels:
                    limit = max_pixels // 10**6
                    message = f"an image of {width} x {height} pixels; the limit is {limit} megapixels"
                    raise PageError(FailureKind.TOO_LARGE, message)


def _integer(document: pymupdf.Document, xref: int, key: str) -> int:
    kind, value = document.xref_get_key(xref, key)
    return int(value) if kind == "int" else 0
