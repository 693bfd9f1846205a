"""Counts, quantiles and the summary of a run."""

from __future__ import annotations

import json
import tracemalloc
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiresvlm import report as report_module
from hiresvlm.report import SLOWEST, STEPS, Report
from hiresvlm.settings import RunSettings, Settings
from tests.support import ScriptedEngine, make_pdf, make_png, run_pages


def record(page: int | None = 1, status: str = "ok", total: float = 100.0, **fields: Any) -> dict[str, Any]:
    return {
        "source": "a.pdf",
        "page": page,
        "status": status,
        "blank": False,
        "tokens": {"visual": 100, "naive": 4352, "output": 50, "planned": False},
        "latency_ms": dict.fromkeys(STEPS) | {"total": total},
        "warnings": [],
        "failures": [],
        **fields,
    }


def failure(kind: str) -> dict[str, str]:
    return {"kind": kind, "message": f"it was {kind}"}


def test_everything_is_counted_once() -> None:
    report = Report(documents=2)
    report.add(record(blank=True), 0)
    report.add(record(2, "partial", warnings=[{"kind": "budget"}], failures=[failure("loop")]), 3)
    report.add(record(None, "failed", failures=[failure("corrupt")]), 0)
    report.earlier["failed"] += 1
    data = json.loads(json.dumps(report.as_dict()))
    assert data["pages"] == {"ok": 1, "partial": 1, "failed": 1}
    assert data["earlier"] == {"ok": 0, "partial": 0, "failed": 1}
    assert (data["blank"], data["requests"], report.done, report.incomplete) == (1, 3, 3, 3)
    assert data["tokens"] == {"visual": 200, "naive": 8704, "output": 100, "planned": False}
    assert data["warnings"] == {"budget": 1}
    assert data["failures"] == {"loop": 1, "corrupt": 1}
    assert data["problems"] == [
        {"source": "a.pdf", "page": 2, "status": "partial", "kind": "loop", "message": "it was loop"},
        {"source": "a.pdf", "page": None, "status": "failed", "kind": "corrupt", "message": "it was corrupt"},
    ]


def test_the_slowest_pages_are_named_and_no_more_are_kept() -> None:
    report = Report()
    for page in range(1, 101):
        report.add(record(page, total=float(page * 7 % 101)), 1)
    slowest = report.as_dict()["slowest"]
    assert [item["total_ms"] for item in slowest] == [100.0, 99.0, 98.0, 97.0, 96.0]
    assert len(slowest) == SLOWEST


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=60), st.sampled_from([0.5, 0.95]))
def test_quantiles_are_of_the_nearest_rank(values: list[float], share: float) -> None:
    found = report_module._quantile(array("d", values), share)
    exact = [value for value in values if round(value, 1) == found]
    assert exact  # a value that was measured, not one between two
    value = max(exact)
    assert sum(v <= value for v in values) >= share * len(values) - 1e-9
    assert sum(v < min(exact) for v in values) < share * len(values)


def test_quantiles_of_a_hundred() -> None:
    values = array("d", range(1, 101))
    assert [report_module._quantile(values, share) for share in (0.5, 0.95)] == [50.0, 95.0]


def test_a_long_run_keeps_few_bytes_a_page() -> None:
    report = Report()
    item = record(latency_ms=dict.fromkeys(STEPS, 1.0))
    tracemalloc.start()
    for _ in range(5000):
        report.add(item, 1)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used < 5000 * 120


def test_a_run_knows_its_pages_and_ends_with_all_of_them(folder: Path) -> None:
    """What the bar shows: never more done than known, and equal in the end."""
    make_pdf(folder / "a.pdf", [["one"], [], ["three"]])
    make_png(folder / "b.png")
    (folder / "bad.pdf").write_bytes(b"junk")
    paths = [folder, folder / "missing.pdf"]
    _, report = run_pages(paths, ScriptedEngine(lambda request: "text"))
    assert (report.documents, report.documents_done) == (4, 4)
    assert report.pages_known == report.done == 6
    assert report.requests == 3


def test_a_rerun_knows_that_nothing_is_left(folder: Path, tmp_path: Path) -> None:
    make_pdf(folder / "a.pdf", [["one"], ["two"]])
    (folder / "bad.pdf").write_bytes(b"junk")
    engine = ScriptedEngine(lambda request: "text")
    run_pages([folder], engine, output=tmp_path / "out.jsonl")
    _, report = run_pages([folder], engine, output=tmp_path / "out.jsonl")
    assert (report.documents_done, report.pages_known, report.done) == (2, 0, 0)
    assert sum(report.earlier.values()) == 3
    assert report.load_s is None
    assert report.incomplete == 1


@pytest.mark.parametrize(("pages", "beyond", "outside"), [("1", 0, 0), ("2-3", 2, 1), ("7", 2, 2)])
def test_pages_that_documents_do_not_have(folder: Path, pages: str, beyond: int, outside: int) -> None:
    make_pdf(folder / "a.pdf", [["one"], ["two"]])
    make_png(folder / "b.png")
    settings = Settings(run=RunSettings(pages=pages))
    records, report = run_pages([folder], ScriptedEngine(lambda request: "text"), settings)
    assert (report.beyond_range, report.outside_range) == (beyond, outside)
    assert report.incomplete == 0
    assert all(record["scope"] == "page" for record in records)
