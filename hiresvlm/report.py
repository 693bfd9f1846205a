"""What a run did: counts, times and tokens, for the end summary and `--report`."""

from __future__ import annotations

import heapq
import math
import time
from array import array
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hiresvlm.datatypes import Record, Status

SLOWEST = 5
"""Pages named in the summary."""

STEPS = ("render", "chunk", "queue", "encode", "prefill", "ttft", "decode", "merge", "total")


MAX_PROBLEMS = 1000
"""Failed and partial pages that a report names."""


class Problem(NamedTuple):
    """A page that failed or lacks text, and why."""

    source: str
    page: int | None
    status: str
    kind: str
    message: str


@dataclass(slots=True)
class Report:
    """Filled while a run goes on. Memory: nine numbers a page."""

    unit: str = "pages"
    """What a record is about: pages, or answers (`ask`)."""
    began: float = field(default_factory=time.perf_counter)
    status: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Status, 0))
    """Pages (and unreadable documents) of this run by status."""
    earlier: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Status, 0))
    """Pages that the output held already."""
    answered: int = 0
    """`ask`: records with an answer."""
    pages_read: int = 0
    """`ask`: pages that were read; their document's answers may still be missing."""
    documents: int = 0
    documents_done: int = 0
    """Documents whose pages are counted in `pages_known` (or that are done, or cannot be read)."""
    pages_known: int = 0
    """Records that this run is known to make; with `ask` the pages that it is known to read."""
    beyond_range: int = 0
    """Documents with fewer pages than --pages asks for; `outside_range` of them have none of those."""
    outside_range: int = 0
    blank: int = 0
    requests: int = 0
    visual_tokens: int = 0
    naive_tokens: int = 0
    output_tokens: int = 0
    planned: bool = False
    warnings: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    engine: dict[str, Any] | None = None
    load_s: float | None = None
    engine_stats: dict[str, Any] | None = None
    """What the engine says of its own work: load and warm-up times, memory, use of its slots."""
    interrupted: bool = False
    workers_died: int = 0
    """Each death costs one page, which is tried once more."""
    problems: list[Problem] = field(default_factory=list)
    """Failed and partial pages by name, at most `MAX_PROBLEMS`; all of them are in the output."""
    _times: dict[str, array[float]] = field(default_factory=lambda: {s: array("d") for s in STEPS})
    _slowest: list[tuple[float, str, int]] = field(default_factory=list)

    def add(self, record: Record, requests: int) -> Problem | None:
        """Count one record. Gives the problem of a page that failed or lacks text."""
        self.status[record["status"]] += 1
        problem = None
        if record["failures"]:
            first = record["failures"][0]
            problem = Problem(
                record["source"], record["page"], record["status"], first["kind"], first["message"]
            )
            if len(self.problems) < MAX_PROBLEMS:
                self.problems.append(problem)
        for name, items in (("warnings", self.warnings), ("failures", self.failures)):
            for item in record[name]:
                items[item["kind"]] = items.get(item["kind"], 0) + 1
        if record["page"] is not None:
            self.add_page(record, requests)
        elif record.get("answer") is not None or record.get("fields"):
            self.answered += 1
        return problem

    def add_page(self, record: Record, requests: int) -> None:
        """Count the tokens and times of one page."""
        self.pages_read += 1
        self.blank += record["blank"]
        self.requests += requests
        self.visual_tokens += record["tokens"]["visual"]
        self.naive_tokens += record["tokens"]["naive"]
        self.output_tokens += record["tokens"]["output"]
        self.planned |= record["tokens"]["planned"]
        for step, value in record["latency_ms"].items():
            if value is not None:
                self._times[step].append(value)
        total = record["latency_ms"]["total"] or 0.0
        heapq.heappush(self._slowest, (total, record["source"], record["page"]))
        if len(self._slowest) > SLOWEST:
            heapq.heappop(self._slowest)

    def add_asked(self, record: Record) -> None:
        """Count the tokens that a model was sent for an answer."""
        self.visual_tokens += record["tokens"]["visual"]
        self.output_tokens += record["tokens"]["output"]

    @property
    def done(self) -> int:
        return sum(self.status.values())

    @property
    def progress(self) -> int:
        """What `pages_known` counts, so far."""
        return self.done if self.unit == "pages" else self.pages_read

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    @property
    def incomplete(self) -> int:
        """Pages that failed or lack text, of this run and of earlier ones."""
        counts = (self.status, self.earlier)
        return sum(count[kind] for count in counts for kind in (Status.PARTIAL, Status.FAILED))

    def as_dict(self) -> dict[str, Any]:
        """The summary as JSON: `--report FILE`."""
        seconds = self.seconds
        return {
            "documents": self.documents,
            self.unit: {status.value: count for status, count in self.status.items()},  # type: ignore[attr-defined]
            "earlier": {status.value: count for status, count in self.earlier.items()},  # type: ignore[attr-defined]
            "blank": self.blank,
            "beyond_page_range": self.beyond_range,
            "interrupted": self.interrupted,
            "workers_died": self.workers_died,
            "seconds": round(seconds, 3),
            "pages_per_s": round(self.progress / seconds, 3) if seconds else None,
            "engine": self.engine,
            "engine_load_s": None if self.load_s is None else round(self.load_s, 3),
            "engine_stats": self.engine_stats,
            "requests": self.requests,
            "tokens": {
                "visual": self.visual_tokens,
                "naive": self.naive_tokens,
                "output": self.output_tokens,
                "planned": self.planned,
            },
            "latency_ms": {
                step: {"p50": _quantile(values, 0.5), "p95": _quantile(values, 0.95)}
                for step, values in self._times.items()
                if values
            },
            "slowest": [
                {"source": source, "page": page, "total_ms": total}
                for total, source, page in sorted(self._slowest, reverse=True)
            ],
            "warnings": self.warnings,
            "failures": self.failures,
            "problems": [problem._asdict() for problem in self.problems],
        }


def _quantile(values: array[float], share: float) -> float:
    """Nearest-rank quantile: the smallest value that at least this share of all does not exceed."""
    return round(sorted(values)[max(0, math.ceil(share * len(values)) - 1)], 1)
