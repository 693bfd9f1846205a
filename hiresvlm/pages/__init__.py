"""Document -> pages as rasters: what a person would see, at the size that a plan asks for.

`open_document` sniffs the content (a suffix may lie), opens it once and gives a `Reader`; a reader
opens one page at a time, and a page renders itself as a gray raster for analysis and as RGB chunks.
PyMuPDF and Pillow live here and nowhere else, and only in worker processes: MuPDF holds the GIL for
a whole page and hostile files can crash it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from hiresvlm.datatypes import Caution, CautionKind, Failure, FailureKind, Step

if TYPE_CHECKING:
    from hiresvlm.chunking.analysis import Gray, PageAnalysis
    from hiresvlm.datatypes import Chunk, Line, Pixels
    from hiresvlm.settings import PageSettings


class PageError(Exception):
    """A document or page cannot be shown; carries the typed failure."""

    def __init__(self, kind: FailureKind, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        step = Step.DOCUMENTS if kind in _DOCUMENT_KINDS else Step.PAGES
        self.failure = Failure(step, kind, message, retryable)


_DOCUMENT_KINDS = frozenset(
    (
        FailureKind.NOT_FOUND,
        FailureKind.UNREADABLE,
        FailureKind.EMPTY,
        FailureKind.UNSUPPORTED,
        FailureKind.CORRUPT,
        FailureKind.ENCRYPTED,
        FailureKind.NO_PAGES,
        FailureKind.CHANGED,
    )
)


class OpenPage(Protocol):
    """One page of an open document."""

    size: tuple[int, int]
    """Width and height in page pixels, as displayed: CropBox, rotation and EXIF applied."""
    rotation: int
    points: tuple[float, float] | None
    cautions: tuple[Caution, ...]

    @property
    def damaged(self) -> bool:
        """Whether a part of what was drawn so far could not be decoded and is missing in it."""
        ...

    def gray(self, max_pixels: int) -> Gray:
        """The whole page in luminance, (height, width) uint8, at page pixels or shrunk to `max_pixels`."""
        ...

    def render(self, chunk: Chunk) -> Pixels:
        """One chunk in RGB, padded to its canvas. Raises `PageError`."""
        ...

    def text_layer(self, analysis: PageAnalysis) -> tuple[Line, ...] | None:
        """Lines of a text layer that can be trusted, boxes in page pixels; None where there is none."""
        ...


class Reader(Protocol):
    """An open document."""

    pages: int
    cautions: tuple[Caution, ...]

    def page(self, number: int) -> OpenPage:
        """Open page `number` (from 1). Raises `PageError`."""
        ...

    def close(self) -> None: ...


@contextmanager
def open_document(path: str, settings: PageSettings) -> Iterator[Reader]:
    """Open a document by what it contains. Raises `PageError` with a typed failure."""
    kind = sniff(path)
    reader: Reader
    if kind == "PDF":
        from hiresvlm.pages.pdf import PdfReader

        reader = PdfReader(path, settings)
    else:
        from hiresvlm.pages.image import ImageReader

        reader = ImageReader(path, kind, settings)
    try:
        if reader.pages > settings.max_pages:
            raise PageError(FailureKind.TOO_LARGE, f"{reader.pages} pages; the limit is {settings.max_pages}")
        wrong = _wrong_suffix(path, kind)
        if wrong is not None:
            reader.cautions = (*reader.cautions, wrong)
        yield reader
    finally:
        reader.close()


def sniff(path: str) -> str:
    """Format by content: `PDF` or a Pillow format name. Raises `PageError`."""
    try:
        with open(path, "rb") as file:
            head = file.read(1024)
    except OSError as error:
        raise unreadable(error) from None
    if not head:
        raise PageError(FailureKind.EMPTY, "the file is empty", retryable=True)
    for magic, name in _MAGIC:
        if magic.match(head):
            return name
    if b"%PDF-" in head:  # readers accept leading junk
        return "PDF"
    suffix = path.rpartition(".")[2].lower()
    if suffix == "pdf":
        raise PageError(FailureKind.CORRUPT, "not a PDF: the header is missing")
    if suffix in _SUFFIX_FORMAT:
        raise PageError(FailureKind.CORRUPT, f"not a {_SUFFIX_FORMAT[suffix]} image: the header is missing")
    raise PageError(FailureKind.UNSUPPORTED, "neither a PDF nor a PNG, JPEG, TIFF, WebP, BMP or GIF image")


def unreadable(error: OSError) -> PageError:
    """The failure of a file that the system does not let us read."""
    if isinstance(error, FileNotFoundError):
        return PageError(FailureKind.NOT_FOUND, "the file has gone", retryable=True)
    return PageError(
        FailureKind.UNREADABLE, f"cannot be read: {os.strerror(error.errno or 0)}", retryable=True
    )


_MAGIC = tuple(
    (re.compile(pattern, re.DOTALL), name)
    for pattern, name in (
        (rb"%PDF-", "PDF"),
        (rb"\x89PNG\r\n\x1a\n", "PNG"),
        (rb"\xff\xd8\xff", "JPEG"),
        (rb"II[*+]\0|MM\0[*+]", "TIFF"),
        (rb"RIFF.{4}WEBP", "WEBP"),
        # "BM" alone is how a text may begin; the size of the next header is one of a few.
        (rb"BM.{12}[\x0c\x10\x28\x34\x38\x40\x6c\x7c]\0\0\0", "BMP"),
        (rb"GIF8[79]a", "GIF"),
    )
)

_SUFFIX_FORMAT = {
    "pdf": "PDF",
    "png": "PNG",
    "jpg": "JPEG",
    "jpeg": "JPEG",
    "tif": "TIFF",
    "tiff": "TIFF",
    "webp": "WEBP",
    "bmp": "BMP",
    "gif": "GIF",
}


def _wrong_suffix(path: str, kind: str) -> Caution | None:
    expected = _SUFFIX_FORMAT.get(path.rpartition(".")[2].lower())
    if expected == kind:
        return None
    return Caution(CautionKind.SUFFIX, f"read as {kind}, which is what the file contains")
