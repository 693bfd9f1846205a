"""Documents -> prepared pages: keeps the workers busy, within a bound on the bytes that wait.

At most as many pages are in the making as there are workers, and none is started while the pages
that wait for the engine hold more than the allowed bytes, so memory does not depend on the length of
a document.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from hiresvlm.datatypes import (
    Caution,
    CautionKind,
    Document,
    Failure,
    FailureKind,
    Place,
    PreparedPage,
    Probe,
    Step,
)
from hiresvlm.documents import parse_pages, select_pages
from hiresvlm.report import Report
from hiresvlm.run.sink import Sink
from hiresvlm.settings import Settings
from hiresvlm.workers import Done, Pool, Trouble

POLL_S = 0.2
"""How long a wait may last before the stop flag is looked at."""

HASH_BYTES_PER_S = 20e6
"""A slow disk or network: the time limit of a probe grows with the size of the file."""

Started = Callable[[Place], None]
Ready = Callable[[Document, Probe, PreparedPage], None]
Unreadable = Callable[[Document, str | None, Failure], None]


class PageSource:
    """Hands finished pages to `ready` and unreadable documents to `unreadable`, as they come.

    `waiting_bytes` tells how many bytes of pixels wait for the engine.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        settings: Settings,
        sink: Sink,
        report: Report,
        *,
        ready: Ready,
        unreadable: Unreadable,
        started: Started,
        waiting_bytes: Callable[[], int],
        verbose: bool = False,
    ) -> None:
        self._documents = deque(documents)
        self._by_number = {document.number: document for document in documents}
        self._settings = settings
        self._sink = sink
        self._report = report
        self._ready = ready
        self._unreadable = unreadable
        self._started = started
        self._waiting_bytes = waiting_bytes
        self._ranges = None if settings.run.pages is None else parse_pages(settings.run.pages)
        self._pool = Pool(settings.run.workers, verbose=verbose)
        self._places: deque[Place] = deque()
        self._retries: deque[Place | int] = deque()
        self._retried: set[Place | int] = set()
        self._probes: dict[int, Probe] = {}
        self.unfinished: dict[int, int] = {}
        """Document number -> selected pages without a record yet."""

    def step(self, wait: bool) -> bool:
        """Start what can be started, hand over what is finished. False when there is nothing left."""
        self._fill(wait)
        for done in self._pool.poll(POLL_S if wait else 0.0):
            if isinstance(done.key, Place):
                self._page_done(done.key, done)
            else:
                assert isinstance(done.key, int)
                self._probe_done(done.key, done)
        self._fill(False)
        return self.left

    @property
    def left(self) -> bool:
        """Whether there are documents or pages that were not handed over yet."""
        return bool(self._pool.busy or self._places or self._retries or self._documents)

    def finished(self, place: Place) -> bool:
        """Note that a page has its record; True when it was the last one of its document."""
        self.unfinished[place.document] -= 1
        if self.unfinished[place.document]:
            return False
        del self.unfinished[place.document], self._probes[place.document]
        return True

    def close(self) -> None:
        self._pool.close()

    # ------------------------------------------------------------------------------- scheduling

    def _fill(self, wait: bool) -> None:
        while self._pool.free:
            if self._retries:
                # What killed a worker may have needed all of the memory: it gets the machine to itself.
                if self._pool.busy:
                    return
                self._start(self._retries.popleft())
                return
            if self._places:
                # An engine that waits although it has work in hand gets one page more, or both sides
                # would wait for each other for ever.
                starved = wait and not self._pool.busy
                if self._waiting_bytes() > self._settings.run.bytes_in_flight and not starved:
                    return
                self._start(self._places.popleft())
            elif self._documents:
                self._take(self._documents.popleft())
            else:
                return

    def _start(self, what: Place | int) -> None:
        from hiresvlm.run.prepare import prepare, probe  # heavy, and a run with nothing to do needs none

        settings = self._settings.page
        if isinstance(what, Place):
            document = self._by_number[what.document]
            self._started(what)
            arguments = (document, what, settings, self._settings.chunk)
            self._pool.submit(what, prepare, *arguments, timeout_s=settings.timeout_s)
        else:
            document = self._by_number[what]
            limit = settings.timeout_s + document.size / HASH_BYTES_PER_S
            self._pool.submit(what, probe, document, settings, timeout_s=limit)

    def _take(self, document: Document) -> None:
        """Look at one document: skip it, select its pages, or start to probe it."""
        if document.failure is not None:
            self._failed(document, None, document.failure)
            return
        known, sha256 = self._sink.known_hash(document)
        pages = self._sink.page_count(document, sha256) if known else None
        if pages is not None:
            self._select(document, Probe(document.number, sha256, pages))
        elif not (known and self._done_before(document, sha256, None)):
            self._start(document.number)

    def _failed(self, document: Document, sha256: str | None, failure: Failure) -> None:
        """A document that cannot be read yields one record, unless the output holds it already."""
        if not self._done_before(document, sha256, None):
            self._sink.expect(document, self._slots(document, sha256, [0]))
            self._unreadable(document, sha256, failure)

    def _done_before(self, document: Document, sha256: str | None, page: int | None) -> bool:
        status = self._sink.status(document, sha256, page)
        if status is None:
            return False
        self._report.earlier[status] += max(1, len(self._settings.task.queries))
        if page is None:
            self._sink.expect(document, [])
            self._sink.document_done(document, sha256, changed=False)
            self._report.documents_done += 1
        return True

    # ----------------------------------------------------------------------------- what came back

    def _probe_done(self, number: int, done: Done) -> None:
        document = self._by_number[number]
        if self._again(number, done):
            return
        found = done.value
        if not isinstance(found, Probe):
            found = Probe(number, None, failure=_trouble(done, Step.DOCUMENTS))
        if found.failure is not None:
            self._failed(document, found.sha256, found.failure)
            return
        self._sink.learn(document, found.sha256, found.pages)
        self._select(document, found)

    def _select(self, document: Document, found: Probe) -> None:
        """Choose the pages of a document that are to be done."""
        pages, beyond = select_pages(self._ranges, found.pages)
        todo = self._undone(document, found.sha256, pages)
        if beyond:
            message = f"the document has {found.pages} pages; the page range asks for more"
            caution = Caution(CautionKind.PAGE_RANGE, message)
            found = Probe(found.document, found.sha256, found.pages, cautions=(*found.cautions, caution))
            self._report.beyond_range += 1
            self._report.outside_range += not pages
        self._sink.expect(document, self._slots(document, found.sha256, todo) if todo else [])
        self._report.pages_known += len(todo)
        self._report.documents_done += 1
        if not todo:
            self._sink.document_done(document, found.sha256, changed=False)
            return
        self._probes[document.number] = found
        self.unfinished[document.number] = len(todo)
        self._places.extend(Place(document.number, page, found.pages) for page in todo)

    def _undone(self, document: Document, sha256: str | None, pages: list[int]) -> list[int]:
        """Pages that are to be read: those without a record, or all while a query has no answer."""
        if not self._settings.task.queries:
            return [page for page in pages if not self._done_before(document, sha256, page)]
        pending = self._sink.pending(document, sha256)
        for number in range(len(self._settings.task.queries)):
            if (
                number not in pending
                and (status := self._sink.answered(document, sha256, number)) is not None
            ):
                self._report.earlier[status] += 1
        return pages if pending else []

    def _slots(self, document: Document, sha256: str | None, pages: list[int]) -> list[int]:
        """What stands for the records to come: page numbers, or numbers of queries from 1."""
        if not self._settings.task.queries:
            return pages
        return [number + 1 for number in self._sink.pending(document, sha256)]

    def _page_done(self, place: Place, done: Done) -> None:
        if self._again(place, done):
            return
        page = done.value
        if not isinstance(page, PreparedPage):
            page = PreparedPage(place, failure=_trouble(done, Step.PAGES))
        self._ready(self._by_number[place.document], self._probes[place.document], page)

    def _again(self, what: Place | int, done: Done) -> bool:
        """Queue a task whose worker died for one more try, alone."""
        if done.trouble is not Trouble.CRASH or what in self._retried:
            self._retried.discard(what)
            return False
        self._retried.add(what)
        self._retries.append(what)
        self._report.workers_died += 1
        return True


def _trouble(done: Done, step: Step) -> Failure:
    if done.trouble is Trouble.TIMEOUT:
        return Failure(step, FailureKind.TIMEOUT, "took longer than the time limit", retryable=True)
    if done.trouble is Trouble.CRASH:
        return Failure(step, FailureKind.CRASH, "the rendering process died twice on it", retryable=True)
    name = done.detail.partition(":")[0]  # the type; the message may quote the document
    if name == "MemoryError":
        return Failure(step, FailureKind.TOO_LARGE, "more memory is needed than a page may take")
    kind = FailureKind.CORRUPT if step is Step.DOCUMENTS else FailureKind.RENDER
    return Failure(step, kind, f"the renderer failed ({name})", retryable=False)
