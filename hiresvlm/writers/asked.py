"""The record of one document and question, or of one document and schema (`hiresvlm ask`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from hiresvlm.datatypes import Caution, Document, Evidence, Failure, Record, Status, Tokens
from hiresvlm.writers.record import Context, Timing, box_list, cautions_list, failures_list, head, rounded

_SUMMED = ("visual", "visual_full", "prompt", "output", "naive")


@dataclass(frozen=True, slots=True)
class Found:
    """What was found, as a record shows it."""

    question: str | None
    answer: str | None = None
    value: Any = None
    """Normal form of the answer, or the object of a schema."""
    currency: str | None = None
    confidence: float | None = None
    evidence: Sequence[Evidence] = ()
    pages_read: Sequence[int] = ()
    fields: Mapping[str, Found] | None = None
    """Path in the object -> what was found for it; None without a schema."""
    cautions: tuple[Caution, ...] = ()


@dataclass(frozen=True, slots=True)
class Pages:
    """What reading the pages of a document came to."""

    records: Sequence[Record]
    """Page records, in page order."""
    failures: Sequence[Failure]
    cautions: Sequence[Caution]
    readable: int
    """Pages with text or at least without a failure."""
    total: int | None
    """Pages of the document; None when it cannot be opened."""
    reading_ms: float
    """Time to find the answer in the text."""
    work: Work | None = None
    """What a model was asked for it; None where none was."""


class Work(Protocol):
    """Tokens and times of the requests behind an answer."""

    @property
    def tokens(self) -> Tokens: ...
    @property
    def encode_ms(self) -> float: ...
    @property
    def prefill_ms(self) -> float: ...
    @property
    def decode_ms(self) -> float: ...
    @property
    def ttft_ms(self) -> float | None: ...


def answer_record(
    document: Document, sha256: str | None, pages: Pages, found: Found, context: Context
) -> Record:
    """One record, in the order of the contract. Tokens and times are sums over the pages read.

    Where a model was asked, tokens are those it was sent, and its engine is the record's.
    """
    failed = bool(pages.failures) and not pages.readable
    status = Status.FAILED if failed else Status.PARTIAL if pages.failures else Status.OK
    first = pages.records[0] if pages.records else None
    engines = [record["engine"] for record in pages.records if record["failures"] == []]
    if pages.work is not None:
        engines = [asdict(context.engine)]
    return head(document, sha256, context, "document") | {
        "page": None,
        "pages": pages.total,
        "status": status.value,
        "blank": bool(pages.records) and all(record["blank"] for record in pages.records),
        "question": found.question,
        "answer": found.answer,
        "value": found.value,
        "currency": found.currency,
        "confidence": rounded(found.confidence, 4),
        "evidence": _evidence(found.evidence),
        "pages_read": list(found.pages_read),
        "fields": None if found.fields is None else {p: _field(f) for p, f in found.fields.items()},
        "size": None,
        "rotation": 0,
        "points": None,
        "text": "",
        "text_format": "plain",
        "lines": [],
        "chunks": [],
        "tokens": {name: sum(record["tokens"][name] for record in pages.records) for name in _SUMMED}
        | {"planned": not context.profile.counts_tokens if first is None else first["tokens"]["planned"]}
        | ({} if pages.work is None else asdict(pages.work.tokens) | {"planned": False}),
        "latency_ms": _latency(pages),
        "engine": engines[0] if engines and all(e == engines[0] for e in engines) else asdict(context.engine),
        "settings": context.settings,
        "warnings": cautions_list(pages.cautions),
        "failures": failures_list(pages.failures),
    }


def _latency(pages: Pages) -> Record:
    """Sums over the pages; what no page knows is None. `merge` holds the search for the answer as well."""
    total: dict[str, float | None] = asdict(Timing())
    for name in total:
        known = [v for record in pages.records if (v := record["latency_ms"][name]) is not None]
        total[name] = sum(known) if known else None
    reading_ms, work = pages.reading_ms, pages.work
    if work is not None:
        asked = {"encode": work.encode_ms, "prefill": work.prefill_ms, "decode": work.decode_ms}
        total |= {name: (total[name] or 0.0) + ms for name, ms in asked.items()}
        total["ttft"] = work.ttft_ms
    if pages.records:
        total["total"] = (total["total"] or 0.0) + reading_ms
        searching = reading_ms if work is None else max(0.0, reading_ms - work.decode_ms)
        total["merge"] = (total["merge"] or 0.0) + searching
    return {name: rounded(value, 1) for name, value in total.items()}


def _field(found: Found) -> Record:
    return {
        "answer": found.answer,
        "value": found.value,
        "currency": found.currency,
        "confidence": rounded(found.confidence, 4),
        "evidence": _evidence(found.evidence),
    }


def _evidence(evidence: Sequence[Evidence]) -> list[Record]:
    return [{"page": e.page, "box": box_list(e.box), "text": e.text} for e in evidence]
