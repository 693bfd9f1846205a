"""One JSON object per page. The schema is `record.schema.json` beside this file; a test compares them."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from hiresvlm import __version__
from hiresvlm.datatypes import (
    Answer,
    Box,
    Caution,
    Document,
    Failure,
    Line,
    Plan,
    PreparedPage,
    Probe,
    Record,
    Reply,
    Status,
    Tokens,
)
from hiresvlm.engines import EngineInfo, EngineProfile

SCHEMA = 1
"""Rises only when a reader of older records would break."""


class Key(NamedTuple):
    """Identity of a record: the last one of a key wins."""

    key: str
    """Path relative to its PATH argument."""
    sha256: str | None
    page: int | None
    settings: str


@dataclass(frozen=True, slots=True)
class Context:
    """What all records of a run share."""

    run: str
    task: str
    engine: EngineInfo
    profile: EngineProfile
    settings: str
    naive_tokens: int
    keep_chunks: bool = False


@dataclass(slots=True)
class Timing:
    """Milliseconds of one page; None where a step did not run."""

    render: float | None = None
    chunk: float | None = None
    queue: float | None = None
    encode: float | None = None
    prefill: float | None = None
    ttft: float | None = None
    decode: float | None = None
    merge: float | None = None
    total: float | None = None


@dataclass(frozen=True, slots=True)
class PageParts:
    """Everything a page's record is made of."""

    document: Document
    probe: Probe
    page: PreparedPage
    answer: Answer
    replies: Sequence[Reply] = ()
    timing: Timing = field(default_factory=Timing)


def page_record(parts: PageParts, context: Context) -> Record:
    """The record of one page, in the order of the contract."""
    page, answer, replies = parts.page, parts.answer, parts.replies
    tokens = sum((reply.tokens for reply in replies), Tokens())
    from_layer = page.layer is not None
    planned = from_layer or not context.profile.counts_tokens
    visual = 0
    if planned and page.plan is not None and not from_layer:
        visual = page.plan.tokens(context.profile.factor)
    record = head(parts.document, parts.probe.sha256, context, "page") | {
        "page": page.place.page,
        "pages": page.place.pages,
        "status": answer.status.value,
        "blank": page.blank,
        "size": list(page.size) if page.failure is None else None,
        "rotation": page.rotation,
        "points": None if page.points is None else [round(side, 1) for side in page.points],
        "text": answer.text,
        "text_format": "plain",
        "lines": [_line(line) for line in answer.lines],
        "confidence": rounded(answer.confidence, 4),
        "chunks": [] if page.plan is None or from_layer else _chunks(page.plan, replies, context),
        "tokens": {
            "visual": visual if planned else tokens.visual,
            "visual_full": visual if planned else tokens.visual_full,
            "prompt": visual if planned else tokens.prompt,
            "output": tokens.output,
            "naive": context.naive_tokens,
            "planned": planned,
        },
        "latency_ms": {step: rounded(value, 1) for step, value in asdict(parts.timing).items()},
        "engine": asdict(EngineInfo("text-layer") if from_layer else context.engine),
        "settings": context.settings,
        "warnings": cautions_list((*parts.probe.cautions, *answer.cautions)),
        "failures": failures_list(answer.failures),
    }
    if context.keep_chunks:
        record["replies"] = [{"request": r.place.request, "text": r.text} for r in replies]
    return record


def document_record(document: Document, sha256: str | None, failure: Failure, context: Context) -> Record:
    """The one record of a document that cannot be read: the fields of a page, empty."""
    return head(document, sha256, context, "document") | {
        "page": None,
        "pages": None,
        "status": Status.FAILED.value,
        "blank": False,
        "size": None,
        "rotation": 0,
        "points": None,
        "text": "",
        "text_format": "plain",
        "lines": [],
        "confidence": None,
        "chunks": [],
        "tokens": {
            "visual": 0,
            "visual_full": 0,
            "prompt": 0,
            "output": 0,
            "naive": 0,
            "planned": not context.profile.counts_tokens,
        },
        "latency_ms": asdict(Timing()),
        "engine": asdict(context.engine),
        "settings": context.settings,
        "warnings": [],
        "failures": failures_list((failure,)),
    }


def key_of(record: Record) -> Key:
    """Key of a record that was read from a file. Raises `KeyError` when it is not one of ours."""
    return Key(record["key"], record["sha256"], record["page"], record["settings"])


# Valid JSON, but not fit for a terminal or a line-based tool: C1 controls and DEL move the cursor,
# U+2028 and U+2029 end a line for some readers, lone surrogates cannot be written as UTF-8.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def dumps(record: Record) -> bytes:
    """One line of UTF-8 JSON, newline included; no raw newline inside."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text.encode("utf-8") + b"\n"


def head(document: Document, sha256: str | None, context: Context, scope: str) -> Record:
    """What every record begins with."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "schema": SCHEMA,
        "version": __version__,
        "run": context.run,
        "finished": now,
        "task": context.task,
        "scope": scope,
        "source": document.source,
        "key": document.key,
        "sha256": sha256,
        "file": {"bytes": document.size, "mtime_ns": document.mtime_ns, "inode": document.inode},
    }


def _line(line: Line) -> Record:
    record: Record = {
        "text": line.text,
        "box": box_list(line.box),
        "confidence": rounded(line.confidence, 4),
        "chunk": line.chunk,
    }
    if line.weakest is not None:
        record["weakest"] = rounded(line.weakest, 4)
    return record


def _chunks(plan: Plan, replies: Sequence[Reply], context: Context) -> list[Record]:
    """What each chunk cost. Of a joint plan the first chunk carries the output of all."""
    by_request = {reply.place.request: reply for reply in replies}
    found = []
    for number, chunk in enumerate(plan.chunks):
        reply = by_request.get(0 if plan.joint else number)
        counted = reply is not None and not (plan.joint and number)
        sent = (
            reply.tokens.visual if reply is not None and not plan.joint else 0
        )  # pruned, split: not as planned
        found.append(
            {
                "id": number,
                "role": chunk.role.value,
                "box": box_list(chunk.box),
                "scale": round((chunk.scale[0] * chunk.scale[1]) ** 0.5, 4),
                "visual_tokens": sent or chunk.tokens(context.profile.factor),
                "output_tokens": reply.tokens.output if reply is not None and counted else None,
                "stop": reply.stop.value if reply is not None else None,
            }
        )
    return found


def box_list(box: Box | None) -> list[float] | None:
    """Four numbers; no box where an engine gives something that is none."""
    if box is None or not all(math.isfinite(side) for side in box):
        return None
    return [round(float(side), 1) for side in box]


def rounded(value: float | None, digits: int) -> float | None:
    """A plain number: engines may hand over NaN, which is not JSON, or floats of NumPy."""
    return None if value is None or not math.isfinite(value) else round(float(value), digits)


def cautions_list(cautions: Sequence[Caution]) -> list[Record]:
    """Warnings of a record, each once."""
    return [{"kind": c.kind.value, "message": c.message} for c in dict.fromkeys(cautions)]


def failures_list(failures: Sequence[Failure]) -> list[Record]:
    """Failures of a record."""
    return [
        {"step": f.step.value, "kind": f.kind.value, "retryable": f.retryable, "message": f.message}
        for f in failures
    ]
