"""Replies -> Answer: the chunks of a page become one text, nothing twice and nothing lost at seams.

Where the engine gives boxes, geometry decides (`boxes`); where it gives only text, the known overlap
guides a text alignment (`seams`). What was read from a thumbnail is never merged in.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from hiresvlm import layout
from hiresvlm.answers import boxes, seams
from hiresvlm.datatypes import (
    Answer,
    Caution,
    CautionKind,
    Chunk,
    Failure,
    FailureKind,
    Line,
    Plan,
    PreparedPage,
    Reply,
    Role,
    Status,
    Step,
    Stop,
)

LOW_CONFIDENCE = 0.7
"""Mean confidence of a page below which it gets a warning."""

_STOP_FAILURES = {
    Stop.LENGTH: Failure(Step.ENGINE, FailureKind.TRUNCATED, "the reply reached the token limit", True),
    Stop.LOOP: Failure(Step.ENGINE, FailureKind.LOOP, "the reply repeated itself and was ended", True),
    Stop.REFUSAL: Failure(Step.ENGINE, FailureKind.REFUSAL, "the model declined to read a part", True),
}

# C0 and C1 controls (tab and newline aside) and lone surrogates: they move a terminal's cursor, break
# lines of a log and are no text. Documents are hostile.
# Overrides of the writing direction make a terminal show another text than the one that is there.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(text: str) -> str:
    """Text without control characters, in NFC, line ends as newlines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n")
    return unicodedata.normalize("NFC", _CONTROL.sub("", text))


def merge(page: PreparedPage, replies: Sequence[Reply]) -> Answer:
    """The answer of one page from all of its replies, in any order."""
    if page.failure is not None:
        return Answer(page.place, Status.FAILED, "", failures=(page.failure,), cautions=page.cautions)
    if page.layer is not None:
        return _answer(page, _in_order(page.layer), None, ())
    if page.plan is None or page.blank:
        return Answer(page.place, Status.OK, "", cautions=page.cautions)
    replies = sorted(replies, key=lambda reply: reply.place.request)
    failures = tuple(dict.fromkeys(failure for reply in replies for failure in _failures(reply)))
    if all(_boxed(reply) for reply in replies):
        return _answer(page, boxes.merge(_lines(page.plan, replies), page.plan.chunks), None, failures)
    parts = _parts(page.plan, replies)
    text = clean(seams.merge(_texts(page.plan, parts), line_height=_line_height(page)))
    # A page without any text has a doubt of its own.
    doubts = _silent(parts) if text.strip() else ()
    return _answer(page, _known_lines(text, replies), text, failures, doubts)


def _boxed(reply: Reply) -> bool:
    """Whether the engine said where all of the text stands."""
    return all(line.box is not None for line in reply.lines) and bool(reply.lines or not reply.text.strip())


def _silent(parts: Sequence[Reply]) -> tuple[Caution, ...]:
    """A doubt about parts of which a model said nothing: a photo, or text that it did not read.

    A detector that finds no line has looked at all of the part; a model may just have ended its answer.
    """
    count = sum(not reply.text.strip() and not _failures(reply) for reply in parts)
    if not count:
        return ()
    message = f"no text was read in {count} of the {len(parts)} parts of the page"
    return (Caution(CautionKind.NO_TEXT, message),)


def _known_lines(text: str, replies: Sequence[Reply]) -> tuple[Line, ...]:
    """Lines of a merged text, with confidence and chunk of the reply line that says the same, in order.

    A line that was spliced from two has no such twin, and no confidence.
    """
    said: dict[str, deque[Line]] = {}
    for reply in replies:
        for line in reply.lines:
            twin = replace(line, chunk=line.chunk or reply.place.request)
            said.setdefault(clean(line.text).strip(), deque()).append(twin)
    found = []
    for part in text.split("\n"):
        if part.strip():
            twins = said.get(part.strip())
            twin = twins.popleft() if twins else Line(part)
            found.append(replace(twin, text=part))
    return tuple(found)


def _failures(reply: Reply) -> list[Failure]:
    if reply.failure is not None:
        return [reply.failure]
    return [_STOP_FAILURES[reply.stop]] if reply.stop in _STOP_FAILURES else []


def _answer(
    page: PreparedPage,
    lines: tuple[Line, ...],
    text: str | None,
    failures: tuple[Failure, ...],
    cautions: tuple[Caution, ...] = (),
) -> Answer:
    """Order the lines (unless the text is given), judge the whole."""
    if text is None:
        rows = layout.rows(lines)
        lines = tuple(line for row in rows for line in row)
        text = layout.text(rows)
    status = Status.OK if not failures else Status.PARTIAL if text.strip() else Status.FAILED
    answer = Answer(page.place, status, text, lines, failures)
    doubts = [*page.cautions, *cautions]
    if not text.strip() and not failures:
        doubts.append(Caution(CautionKind.NO_TEXT, "the page has ink, but no text was found on it"))
    confidence = answer.confidence
    if confidence is not None and confidence < LOW_CONFIDENCE:
        message = f"mean confidence {confidence:.2f}"
        doubts.append(Caution(CautionKind.LOW_CONFIDENCE, message))
    return Answer(page.place, status, text, lines, failures, tuple(doubts))


def _in_order(lines: Sequence[Line]) -> tuple[Line, ...]:
    return tuple(Line(clean(line.text), line.box, line.confidence, line.chunk) for line in lines)


def _lines(plan: Plan, replies: Sequence[Reply]) -> list[Line]:
    """Lines of all replies in page pixels, numbered by chunk; thumbnails left out."""
    found = []
    for reply in replies:
        for line in reply.lines:
            number = line.chunk if plan.joint else reply.place.request
            chunk = plan.chunks[number]
            text = clean(line.text).replace("\n", " ").strip()
            if text and (chunk.role is not Role.GLOBAL or len(plan.chunks) == 1):
                box = None if line.box is None else chunk.to_page(line.box)
                found.append(Line(text, box, line.confidence, number))
    return found


def _parts(plan: Plan, replies: Sequence[Reply]) -> list[Reply]:
    """The replies that make up the text of the page: all but the one about a thumbnail."""
    if plan.joint:
        return list(replies)
    return [reply for reply in replies if plan.chunks[reply.place.request].role is not Role.GLOBAL]


def _texts(plan: Plan, parts: Sequence[Reply]) -> list[tuple[Chunk, str]]:
    """Text of each part with the chunk it belongs to; a joint reply belongs to the whole page."""
    return [(plan.chunks[0 if plan.joint else reply.place.request], reply.text) for reply in parts]


def _line_height(page: PreparedPage) -> float:
    return 2.0 * page.cap_height if page.cap_height else 40.0
