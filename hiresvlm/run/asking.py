"""`ask`: the pages of a document are kept until all are read; then each query becomes one record.

Between pages and records the order is: lines -> lexical stage -> reader -> record. A reader that needs pixels
(`ask.visual`) makes its second trip to an engine through `run.looking`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from hiresvlm import ask
from hiresvlm.ask import lexical
from hiresvlm.datatypes import Answer, Caution, CautionKind, Document, Failure, Probe, Record, Status
from hiresvlm.run.looking import Driven, Looking, Work, total
from hiresvlm.run.sink import Sink
from hiresvlm.settings import TaskSettings
from hiresvlm.writers.asked import Found, Pages, answer_record
from hiresvlm.writers.record import Context


@dataclass(slots=True)
class _Dossier:
    """What is known of a document so far."""

    records: list[Record] = field(default_factory=list)
    """Those that `ocr` would write, without their lines."""
    pages: list[ask.PageText] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    cautions: list[Caution] = field(default_factory=list)
    readable: int = 0
    visible: set[int] = field(default_factory=set)
    """Pages that a model may look at: neither blank nor impossible to render."""


class Asking:
    """Collects pages and answers the queries of a run."""

    def __init__(
        self,
        settings: TaskSettings,
        contexts: Sequence[Context],
        sink: Sink,
        looking: Looking | None = None,
    ) -> None:
        """`contexts`: one for each query, in order. `looking`: asks a model; without it lines must do."""
        self._looking = looking
        self._settings = settings
        self._contexts = contexts
        self._sink = sink
        self._table = ask.table(settings.wordings)
        self._asked = [ask.understand(question, self._table) for question in settings.questions]
        self._schema = None if settings.schema is None else ask.Schema(settings.schema, self._table)
        self._dossiers: dict[int, _Dossier] = {}

    def add(self, document: Document, answer: Answer, record: Record) -> None:
        """Keep what a page has; its pixels are gone by now."""
        dossier = self._dossiers.setdefault(document.number, _Dossier())
        size = tuple(record["size"] or (1, 1))
        dossier.pages.append(ask.PageText(record["page"], (size[0], size[1]), answer.lines))
        dossier.records.append(record | {"text": "", "lines": []})
        dossier.failures += [f for f in answer.failures if f not in dossier.failures]
        dossier.cautions += [c for c in answer.cautions if c not in dossier.cautions]
        dossier.readable += answer.status is not Status.FAILED
        if record["size"] is not None and not record["blank"]:
            dossier.visible.add(record["page"])

    def answers(self, document: Document, probe: Probe) -> Iterator[tuple[int, Record]]:
        """(number of the query from 1, record) for each query that has no answer yet."""
        dossier = self._dossiers.pop(document.number)
        dossier.pages.sort(key=lambda page: page.page)
        dossier.records.sort(key=lambda record: record["page"])
        cautions = [*probe.cautions, *dossier.cautions, *_talking(dossier.pages)]
        pending = self._sink.pending(document, probe.sha256)
        seen = dossier.pages
        if self._looking is not None:
            seen = [page for page in seen if page.page in dossier.visible]
        for number, (found, failures, work, ms) in self._found(document, pending, seen):
            pages = Pages(
                dossier.records,
                [*dossier.failures, *(f for f in failures if f not in dossier.failures)],
                [*cautions, *found.cautions],
                readable=dossier.readable,
                total=probe.pages,
                reading_ms=ms,
                work=work,
            )
            yield number + 1, answer_record(document, probe.sha256, pages, found, self._contexts[number])
        if self._looking is not None:
            self._looking.forget()

    def unreadable(
        self, document: Document, sha256: str | None, failure: Failure
    ) -> Iterator[tuple[int, Record]]:
        """A record that says why, for each query that has no answer yet."""
        for number in self._sink.pending(document, sha256):
            question = None if self._schema is not None else self._settings.questions[number]
            pages = Pages([], [failure], [], readable=0, total=None, reading_ms=0.0)
            found = Found(question, fields=None if self._schema is None else {})
            yield number + 1, answer_record(document, sha256, pages, found, self._contexts[number])

    def _found(
        self, document: Document, pending: Sequence[int], pages: Sequence[ask.PageText]
    ) -> Iterator[tuple[int, _Result]]:
        """What is found for each query. A model is asked all questions together."""
        light = ask.LightReader(self._table)
        top = self._settings.top_pages
        if self._schema is not None:
            for number in pending:
                began = time.perf_counter()
                driven = None if self._looking is None else Driven(self._looking, document, light)
                found = _object(self._schema, pages, driven or light, top)
                read = [] if driven is None else driven.readings
                work = None if driven is None else total(driven.work)
                cautions = [c for reading in read for c in reading.cautions]
                found = replace(found, cautions=(*found.cautions, *dict.fromkeys(cautions)))
                failures = tuple(dict.fromkeys(f for reading in read for f in reading.failures))
                yield number, (found, failures, work, _ms(began))
            return
        if self._looking is None or not pages:
            for number in pending:
                began = time.perf_counter()
                reading, chosen = ask.answer(self._asked[number], pages, light, top)
                yield number, (self._as_found(number, reading, chosen), (), None, _ms(began))
            return
        began = time.perf_counter()
        chosen_pages: dict[int, list[int]] = {}
        questions = {}
        for number in pending:
            asked = self._asked[number]
            ranked = lexical.rank(asked, pages)
            chosen_pages[number] = lexical.best_pages(asked, pages, ranked, top)
            questions[number] = asked, [p for p in pages if p.page in chosen_pages[number]], ranked
        ranking_ms = _ms(began) / max(1, len(pending))
        for number, (reading, work) in self._looking.read(document, questions, light).items():
            found = self._as_found(number, reading, chosen_pages[number])
            yield number, (found, reading.failures, work, ranking_ms + work.ms)

    def _as_found(self, number: int, reading: ask.Reading, read: Sequence[int]) -> Found:
        asked = self._asked[number]
        cautions = list(reading.cautions)
        if asked.everything and reading.answer is None and self._looking is None:
            message = "asks for a summary, a count or a comparison; this reader only finds what is printed"
            cautions.append(Caution(CautionKind.QUESTION, message))
        if len(asked.text) > ask.MAX_LENGTH:
            message = f"only the first {ask.MAX_LENGTH} characters of the question were looked at"
            cautions.append(Caution(CautionKind.QUESTION, message))
        return Found(
            asked.text,
            reading.answer,
            reading.value,
            reading.currency,
            reading.confidence,
            reading.evidence,
            read,
            None,
            tuple(cautions),
        )


_Result = tuple[Found, Sequence[Failure], Work | None, float]
"""What was found, why a model could not be asked, what asking it took, milliseconds in all."""


def _ms(began: float) -> float:
    return (time.perf_counter() - began) * 1e3


def _object(schema: ask.Schema, pages: Sequence[ask.PageText], reader: ask.Reader, top: int) -> Found:
    """The object that a schema describes, each field with its own evidence."""
    filled = schema.fill(pages, reader, top)
    fields = {
        path: Found(None, r.answer, r.value, r.currency, r.confidence, r.evidence)
        for path, r in filled.fields.items()
    }
    cautions = tuple(Caution(CautionKind.SCHEMA, message) for message in filled.problems)
    certain = [r.confidence for r in filled.fields.values() if r.confidence is not None]
    return Found(
        None,
        None,
        filled.value,
        None,
        min(certain, default=None),
        (),
        sorted(filled.pages),
        fields,
        cautions,
    )


def _talking(pages: Sequence[ask.PageText]) -> list[Caution]:
    """A warning for each page that has lines which talk to a model (the lines themselves are not quoted)."""
    return [
        Caution(
            CautionKind.INSTRUCTION,
            f"page {page.page} has text that reads like an instruction to a model; it was taken for data",
        )
        for page in pages
        if any(ask.is_instruction(line.text) for line in page.lines)
    ]
