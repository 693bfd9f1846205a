"""`ask`: the pages of a document are kept until all are read; then each query becomes one record.

Between pages and records the order is: lines -> lexical stage -> reader -> record.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hiresvlm import ask
from hiresvlm.datatypes import Answer, Caution, CautionKind, Document, Failure, Probe, Record, Status
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


class Asking:
    """Collects pages and answers the queries of a run."""

    def __init__(self, settings: TaskSettings, contexts: Sequence[Context], sink: Sink) -> None:
        """`contexts`: one for each query, in order."""
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

    def answers(self, document: Document, probe: Probe) -> Iterator[tuple[int, Record]]:
        """(number of the query from 1, record) for each query that has no answer yet."""
        dossier = self._dossiers.pop(document.number)
        dossier.pages.sort(key=lambda page: page.page)
        dossier.records.sort(key=lambda record: record["page"])
        cautions = [*probe.cautions, *dossier.cautions, *_talking(dossier.pages)]
        reader = ask.LightReader(self._table)
        for number in self._sink.pending(document, probe.sha256):
            began = time.perf_counter()
            found = self._found(number, dossier.pages, reader)
            pages = Pages(
                dossier.records,
                dossier.failures,
                [*cautions, *found.cautions],
                readable=dossier.readable,
                total=probe.pages,
                reading_ms=(time.perf_counter() - began) * 1e3,
            )
            yield number + 1, answer_record(document, probe.sha256, pages, found, self._contexts[number])

    def unreadable(
        self, document: Document, sha256: str | None, failure: Failure
    ) -> Iterator[tuple[int, Record]]:
        """A record that says why, for each query that has no answer yet."""
        for number in self._sink.pending(document, sha256):
            question = None if self._schema is not None else self._settings.questions[number]
            pages = Pages([], [failure], [], readable=0, total=None, reading_ms=0.0)
            found = Found(question, fields=None if self._schema is None else {})
            yield number + 1, answer_record(document, sha256, pages, found, self._contexts[number])

    def _found(self, number: int, pages: Sequence[ask.PageText], reader: ask.Reader) -> Found:
        top = self._settings.top_pages
        if self._schema is not None:
            return _object(self._schema, pages, reader, top)
        asked = self._asked[number]
        reading, read = ask.answer(asked, pages, reader, top)
        cautions = []
        if asked.everything and reading.answer is None:
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
