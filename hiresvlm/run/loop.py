"""The loop: pages become requests, replies become answers, answers become records."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from hiresvlm import tasks
from hiresvlm.batching import RequestFeed, generate
from hiresvlm.console import Reporter
from hiresvlm.datatypes import Document, Failure, Place, PreparedPage, Probe, Record, Reply, Request
from hiresvlm.engines import Engine, Measured
from hiresvlm.errors import EngineLoadError, HiresvlmError
from hiresvlm.report import Report
from hiresvlm.run.sink import Sink
from hiresvlm.run.source import PageSource
from hiresvlm.run.spans import covered
from hiresvlm.settings import Settings
from hiresvlm.writers.record import Context, PageParts, Timing, document_record, page_record

if TYPE_CHECKING:
    from hiresvlm.run.asking import Asking
    from hiresvlm.run.looking import Looking


@dataclass(slots=True)
class _Active:
    """A page that waits for replies. Its pixels are with the requests, not here."""

    document: Document
    probe: Probe
    page: PreparedPage
    nbytes: int
    missing: int
    ready: float
    replies: list[Reply] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Answering:
    """A model that answers questions."""

    context: Context
    """What the records of answers say of it."""
    load: Callable[[], Engine]


def run(
    documents: Sequence[Document],
    settings: Settings,
    context: Context,
    sink: Sink,
    reporter: Reporter,
    load: Callable[[], Engine],
    stopped: Callable[[], bool] = lambda: False,
    answering: Answering | None = None,
) -> Report:
    """Read all documents that the sink does not hold already.

    The engine is loaded when the first request is ready, so never for a run with nothing to ask.
    `stopped` is looked at often; once true, nothing new is started, what an engine has in hand is
    finished and written. `answering`: the model that is asked about the pages that the engine of `load`
    has read; without it `ask` finds its answers in the lines alone. Raises `OutputError`,
    `EngineLoadError` and `writers.stream.ReaderGone`.
    """
    return _Run(documents, settings, context, sink, reporter, load, stopped, answering).go()


class _Run:
    def __init__(
        self,
        documents: Sequence[Document],
        settings: Settings,
        context: Context,
        sink: Sink,
        reporter: Reporter,
        load: Callable[[], Engine],
        stopped: Callable[[], bool],
        answering: Answering | None,
    ) -> None:
        self._answering = answering
        self._looking: Looking | None = None
        self._settings = settings
        self._context = context
        self._sink = sink
        self._reporter = reporter
        self._load = load
        self._stopped = stopped
        self._report = Report(documents=len(documents))
        self._asking_or_none: Asking | None = None
        if settings.task.queries:
            self._report.unit = "answers"
        self._active: dict[tuple[int, int], _Active] = {}
        self._begun: dict[tuple[int, int], float] = {}
        self._requests: list[Request] = []
        self._waiting_bytes = 0
        self._source = PageSource(
            documents,
            settings,
            sink,
            self._report,
            ready=self._page_ready,
            unreadable=self._unreadable,
            started=self._page_started,
            waiting_bytes=lambda: self._waiting_bytes,
            verbose=reporter.verbose,
        )

    def go(self) -> Report:
        feed = _Feed(self._more_requests, self._stopped)
        try:
            if feed.any() and not self._stopped():
                engine = self._loaded(self._load, self._context)
                try:
                    self._ask(engine, feed)
                    if isinstance(engine, Measured):
                        self._report.engine_stats = engine.stats()
                finally:
                    engine.close()
        finally:
            left = self._source.left or bool(self._source.unfinished)
            self._source.close()
            self._close_looking()
        self._report.interrupted = left
        return self._report

    def _close_looking(self) -> None:
        looking = self._looking
        if looking is not None:
            self._report.engine_stats = looking.stats() or self._report.engine_stats
            looking.close()

    def _ask(self, engine: Engine, feed: RequestFeed) -> None:
        """Have everything answered, also by an engine that ends before its feed does."""
        while True:
            answered = False
            for reply in generate(engine, feed):
                self._reply(reply)
                answered = True
            if not feed.any() or self._stopped():
                return
            if not answered:
                raise RuntimeError("the engine takes no requests")

    # ------------------------------------------------------------------- documents -> requests

    def _more_requests(self, wait: bool) -> list[Request] | None:
        """Requests of the pages that got ready; None at the end. Waits for one if asked to."""
        while True:
            if self._stopped():
                return None
            more = self._source.step(wait and not self._requests)
            self._sink.sync_when_due()
            self._reporter.progress(self._report)
            if self._requests:
                given, self._requests = self._requests, []
                return given
            if not more:
                return None
            if not wait:
                return []

    def _page_started(self, place: Place) -> None:
        self._begun.setdefault((place.document, place.page), time.perf_counter())

    def _page_ready(self, document: Document, probe: Probe, page: PreparedPage) -> None:
        place = page.place
        asked = tasks.requests(page, self._settings.task) if page.failure is None else []
        active = _Active(document, probe, page.without_pixels(), page.nbytes, len(asked), time.perf_counter())
        if not asked:
            self._finish(active)
            return
        self._active[place.document, place.page] = active
        self._waiting_bytes += active.nbytes
        self._requests += asked

    def _unreadable(self, document: Document, sha256: str | None, failure: Failure) -> None:
        if self._settings.task.queries:
            for slot, record in self._asking().unreadable(document, sha256, failure):
                self._sink.write(document, record, slot)
                self._count(record, 0)
            self._report.pages_read += 1
        else:
            record = document_record(document, sha256, failure, self._context)
            self._sink.write(document, record)
            self._count(record, 0)
        self._report.pages_known += 1
        self._report.documents_done += 1
        self._sink.document_done(document, sha256, changed=True)

    # ----------------------------------------------------------------------- replies -> records

    def _loaded(self, load: Callable[[], Engine], context: Context) -> Engine:
        began = time.perf_counter()
        try:
            engine = load()
        except HiresvlmError:
            raise
        except Exception as error:  # any library, any reason; -v prints it
            name = context.engine.name
            message = f"engine {name} cannot be loaded ({type(error).__name__})"
            raise EngineLoadError(message, "run it again with -v, or look at: hiresvlm doctor") from error
        self._report.load_s = (self._report.load_s or 0.0) + time.perf_counter() - began
        return engine

    def _reply(self, reply: Reply) -> None:
        place = reply.place.document, reply.place.page
        active = self._active[place]
        active.replies.append(reply)
        active.missing -= 1
        if active.missing == 0:
            del self._active[place]
            self._waiting_bytes -= active.nbytes
            self._finish(active)
            self._reporter.progress(self._report)

    def _finish(self, active: _Active) -> None:
        """Merge a page whose replies are complete and write its record."""
        from hiresvlm import answers  # imports NumPy, and a run with nothing to do needs none

        place = active.page.place
        began = time.perf_counter()
        answer = answers.merge(active.page, active.replies)
        merged = time.perf_counter()
        timing = _timing(active)
        timing.merge = (merged - began) * 1e3
        timing.total = (time.perf_counter() - self._begun.pop((place.document, place.page))) * 1e3
        parts = PageParts(active.document, active.probe, active.page, answer, active.replies, timing)
        record = page_record(parts, self._context)
        if self._settings.task.queries:
            if self._answering is None:
                self._report.add_page(record, len(active.replies))
            else:  # what counts is what the model is sent, not what reading the lines would have cost it
                tokens = record["tokens"] | {"visual": 0, "output": 0, "planned": False}
                self._report.add_page(record | {"tokens": tokens}, 0)
            self._asking().add(active.document, answer, record)
        else:
            self._sink.write(active.document, record)
            self._count(record, len(active.replies))
        if self._source.finished(place):
            if self._settings.task.queries:
                self._answer(active.document, active.probe)
            self._sink.document_done(active.document, active.probe.sha256, changed=True)

    def _answer(self, document: Document, probe: Probe) -> None:
        """All pages of a document are read: answer what is asked about it."""
        for slot, record in self._asking().answers(document, probe):
            self._sink.write(document, record, slot)
            self._count(record, 0)
            if self._looking is not None:
                self._report.add_asked(record)
                self._report.requests = self._looking.requests

    def _asking(self) -> Asking:
        """Made when first needed: a run with nothing to do imports no NumPy."""
        if self._asking_or_none is None:
            from hiresvlm.run.asking import Asking

            context = self._context if self._answering is None else self._answering.context
            queries = self._settings.task.queries
            contexts = [replace(context, settings=self._settings.digest(context.engine, q)) for q in queries]
            if self._answering is not None:
                from hiresvlm.run.looking import Looking

                load = self._answering.load
                page, verbose = self._settings.page, self._reporter.verbose
                self._looking = Looking(lambda: self._loaded(load, context), page, verbose=verbose)
            self._asking_or_none = Asking(self._settings.task, contexts, self._sink, self._looking)
        return self._asking_or_none

    def _count(self, record: Record, requests: int) -> None:
        problem = self._report.add(record, requests)
        if problem is not None:
            self._reporter.problem(problem)


class _Feed(RequestFeed):
    """Gives nothing new once the run is to stop: what the engine has in hand is finished, no more."""

    def __init__(self, source: Callable[[bool], list[Request] | None], stopped: Callable[[], bool]) -> None:
        super().__init__(source)
        self._stopped = stopped

    def take(self, n: int, wait: bool) -> list[Request]:
        return [] if self._stopped() else super().take(n, wait)


def _timing(active: _Active) -> Timing:
    """Times of a page from its worker and its replies; None for what its engine does not know."""
    page, replies = active.page, active.replies
    timing = Timing(render=page.render_ms, chunk=page.chunk_ms)
    if not replies:
        return timing
    first = min(replies, key=lambda reply: reply.started)
    timing.queue = max(0.0, first.started - active.ready) * 1e3
    timing.encode = _total([reply.encode_ms for reply in replies])
    timing.prefill = _total([reply.prefill_ms for reply in replies])
    timing.ttft = first.ttft_ms
    timing.decode = covered([(reply.started, reply.finished) for reply in replies]) * 1e3
    return timing


def _total(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
