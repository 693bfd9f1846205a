"""The worker's side of a run: look into a document, and make one page ready for an engine.

This is where `pages` and `chunking` are composed: analysis raster -> plan -> chunks rendered at their
own scale. Both functions run in worker processes; what they return travels through a pipe.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hiresvlm import chunking
from hiresvlm.datatypes import (
    Caution,
    CautionKind,
    Document,
    Failure,
    FailureKind,
    Place,
    Plan,
    PreparedPage,
    Probe,
    View,
)
from hiresvlm.pages import OpenPage, PageError, Reader, open_document, unreadable
from hiresvlm.pages.overlay import draw_overlay
from hiresvlm.settings import ChunkSettings, PageSettings

if TYPE_CHECKING:
    from hiresvlm.datatypes import Chunk, Pixels

OPEN_DOCUMENTS = 2
"""Documents that a worker keeps open, so that a document is not opened again for each page."""


@dataclass(frozen=True, slots=True)
class Survey:
    """What `hiresvlm plan` shows of a page."""

    size: tuple[int, int]
    rotation: int
    blank: bool
    cap_height: float | None
    plans: tuple[Plan, ...]


_FAINT = (Caution(CautionKind.NO_TEXT, "taken for a blank page, but something faint or plain is on it"),)
_DAMAGED = (Caution(CautionKind.DAMAGED, "a part of the page could not be decoded and may be missing"),)

_open: OrderedDict[tuple[object, ...], tuple[ExitStack, Reader]] = OrderedDict()


def probe(document: Document, settings: PageSettings) -> Probe:
    """Content hash and page count of a document. The hash is there even when it cannot be opened."""
    sha256: str | None = None
    try:
        with open(document.path, "rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        reader = _reader(document, settings)
        return Probe(document.number, sha256, reader.pages, cautions=reader.cautions)
    except PageError as error:
        return Probe(document.number, sha256, failure=error.failure)
    except OSError as error:
        return Probe(document.number, sha256, failure=unreadable(error).failure)
    except MemoryError:
        return Probe(document.number, sha256, failure=_too_large())


def prepare(document: Document, place: Place, pages: PageSettings, chunks: ChunkSettings) -> PreparedPage:
    """Render, analyse, plan and cut one page. Trouble with the page is its `failure`."""
    began = time.perf_counter()
    try:
        page = _reader(document, pages).page(place.page)
        return _prepare(page, place, pages, chunks, began)
    except PageError as error:
        return PreparedPage(place, failure=error.failure, render_ms=_ms(began))
    except MemoryError:
        return PreparedPage(place, failure=_too_large(), render_ms=_ms(began))


def crop(
    document: Document, number: int, chunks: Sequence[Chunk], settings: PageSettings
) -> tuple[Pixels, ...] | Failure:
    """Parts of a page that was prepared before, for a question about it."""
    try:
        page = _reader(document, settings).page(number)
        return tuple(page.render(chunk) for chunk in chunks)
    except PageError as error:
        return error.failure
    except MemoryError:
        return _too_large()


def survey(
    document: Document,
    number: int,
    pages: PageSettings,
    chunks: ChunkSettings,
    strategies: Sequence[str],
    overlay: str | None,
) -> Survey | Failure:
    """The plans of one page under several strategies, for `hiresvlm plan`.

    `overlay`: a PNG file to write, the page with the boxes of the first strategy.
    """
    try:
        page = _reader(document, pages).page(number)
        analysis = chunking.analyse(page.gray(pages.max_analysis_pixels), page.size)
        plans = tuple(chunking.plan(analysis, replace(chunks, strategy=name)) for name in strategies)
        if overlay is not None:
            draw_overlay(page, plans[0], overlay)
        return Survey(page.size, page.rotation, analysis.blank, analysis.cap_height, plans)
    except PageError as error:
        return error.failure
    except MemoryError:
        return _too_large()


def _prepare(
    page: OpenPage, place: Place, pages: PageSettings, chunks: ChunkSettings, began: float
) -> PreparedPage:
    gray = page.gray(pages.max_analysis_pixels)
    rendered = time.perf_counter()
    analysis = chunking.analyse(gray, page.size)
    damaged = page.damaged
    if damaged and analysis.blank:
        raise PageError(FailureKind.RENDER, "the content of the page is damaged and shows nothing")
    doubts = _DAMAGED if damaged else ()
    if analysis.blank and chunking.has_faint_marks(gray):
        doubts = _FAINT
    layer = page.text_layer(analysis) if pages.text_layer == "auto" and not analysis.blank else None
    plan = chunking.plan(analysis, chunks)
    planned = time.perf_counter()
    prepared = PreparedPage(
        place,
        size=page.size,
        rotation=page.rotation,
        points=page.points,
        blank=analysis.blank,
        cap_height=analysis.cap_height,
        plan=plan,
        layer=layer,
        cautions=(*page.cautions, *plan.cautions, *doubts),
        chunk_ms=(planned - rendered) * 1e3,
    )
    if layer is None:
        views = tuple(View(chunk.box, chunk.role, page.render(chunk)) for chunk in plan.chunks)
        prepared = replace(prepared, views=views)
    return replace(prepared, render_ms=_ms(began) - prepared.chunk_ms)


def _ms(began: float) -> float:
    return (time.perf_counter() - began) * 1e3


def _too_large() -> Failure:
    """A lack of memory as a failure. Open documents are closed, so that it does not hit the next page."""
    while _open:
        _open.popitem()[1][0].close()
    return PageError(FailureKind.TOO_LARGE, "more memory is needed than a page may take").failure


def _reader(document: Document, settings: PageSettings) -> Reader:
    """The open document, from the last few or opened now. Raises `PageError`, also when it changed.

    An evicted document is closed; pages of it are done with by then, since a worker has one at a time.
    """
    try:
        status = os.stat(document.path)
    except OSError as error:
        raise unreadable(error) from error
    if (status.st_size, status.st_mtime_ns) != (document.size, document.mtime_ns):
        raise PageError(FailureKind.CHANGED, "the file changed during the run", retryable=True)
    key = (document.path, document.size, document.mtime_ns, settings)
    if key in _open:
        _open.move_to_end(key)
        return _open[key][1]
    while len(_open) >= OPEN_DOCUMENTS:
        _open.popitem(last=False)[1][0].close()
    stack = ExitStack()
    reader = stack.enter_context(open_document(document.path, settings))
    _open[key] = (stack, reader)
    return reader
