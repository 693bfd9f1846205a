"""The record: as its schema says, whatever becomes of a page."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiresvlm import chunking
from hiresvlm.cli import options
from hiresvlm.datatypes import (
    Box,
    CautionKind,
    FailureKind,
    Line,
    Role,
    Status,
    Step,
    Stop,
    naive_tokens,
)
from hiresvlm.settings import PageSettings, RunSettings, Settings, TaskSettings
from hiresvlm.writers import dumps, key_of
from tests.support import ScriptedEngine, make_pdf, make_png, reply, run_pages, text_image

SCHEMA = json.loads(resources.files("hiresvlm.writers").joinpath("record.schema.json").read_text("utf-8"))

CONTRACT = """schema version run finished task scope source sha256 page pages status blank size rotation
points text text_format lines confidence chunks tokens latency_ms engine settings warnings failures"""
ADDED = {"key", "file"}


def check(record: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(record)


@pytest.mark.parametrize(
    ("kinds", "path"),
    [
        (Status, "status"),
        (CautionKind, "warnings items kind"),
        (FailureKind, "failures items kind"),
        (Step, "failures items step"),
        (Role, "chunks items role"),
        (Stop, "chunks items stop"),
    ],
)
def test_closed_lists_are_those_of_the_code(kinds: Any, path: str) -> None:
    found = SCHEMA
    for name in path.split():
        found = found["items"] if name == "items" else found["properties"][name]
    assert {kind for kind in found["enum"] if kind is not None} == {kind.value for kind in kinds}


def test_the_schema_is_a_schema_and_unknown_fields_are_allowed(folder: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    make_png(folder / "a.png")
    (record,), _ = run_pages([folder], ScriptedEngine(lambda request: "text"))
    check(record | {"later": 1, "tokens": record["tokens"] | {"later": 2}})


@pytest.mark.parametrize(
    "change",
    [
        {"status": "fine"},
        {"schema": 2},
        {"page": None},
        {"page": 0},
        {"sha256": None},
        {"confidence": 1.5},
        {"size": [1, 2, 3]},
        {"failures": [{"step": "pages", "kind": "odd", "retryable": False, "message": "x"}]},
        {"status": "failed"},
        {"tokens": {"visual": 1}},
        {"lines": [{"text": "x", "box": [1, 2, 3], "confidence": None, "chunk": 0}]},
        {"settings": "short"},
        {"scope": "document"},
    ],
)
def test_the_schema_is_strict(folder: Path, change: dict[str, Any]) -> None:
    make_png(folder / "a.png")
    (record,), _ = run_pages([folder], ScriptedEngine(lambda request: "text"))
    with pytest.raises(jsonschema.ValidationError):
        check(record | change)
    for name in set(record) - {"replies"}:
        with pytest.raises(jsonschema.ValidationError):
            check({key: value for key, value in record.items() if key != name})


@pytest.fixture
def mixed(folder: Path) -> Iterator[Path]:
    """Pages and documents of every fate. Page 2 of a.pdf is blank."""
    make_pdf(folder / "a.pdf", [["one"], [], ["loop"], ["long"], ["no"], ["crash"], ["empty"]])
    make_pdf(folder / "locked.pdf", [["x"]], encryption=4, user_pw="secret", owner_pw="other")
    make_png(folder / "b.png")
    (folder / "bad.pdf").write_bytes(b"%PDF-1.7\n" + b"junk" * 50)
    (folder / "empty.pdf").touch()
    (folder / "page.png").write_bytes((folder / "b.png").read_bytes()[:-200])
    os.symlink("nowhere", folder / "gone.pdf")
    return folder


def script(request: Any) -> Any:
    fate = request.place.page
    if request.place.pages == 1:
        return reply(request, "Hello world 123", [Line("Hello world 123", Box(20, 20, 200, 50), 0.9)])
    return {
        1: "one",
        3: reply(request, "loop " * 9, stop=Stop.LOOP),
        4: reply(request, "cut", stop=Stop.LENGTH),
        5: reply(request, "", stop=Stop.REFUSAL),
        6: RuntimeError("boom"),
        7: "",
    }[fate]


def test_every_record_of_a_run_is_as_the_schema_says(mixed: Path) -> None:
    settings = Settings(task=TaskSettings(keep_chunks=True), run=RunSettings(pages="1-99"))
    records, report = run_pages([mixed, mixed / "missing.pdf"], ScriptedEngine(script), settings)
    for record in records:
        check(record)
        names = [name for name in record if name not in ADDED]
        assert names[: len(CONTRACT.split())] == CONTRACT.split()
        assert record["tokens"]["visual"] <= record["tokens"]["prompt"]
        assert record["engine"]["name"] == "scripted"
    by_place = {(Path(r["source"]).name, r["page"]): r for r in records}
    assert {place: r["status"] for place, r in by_place.items() if place[0] == "a.pdf"} == {
        ("a.pdf", 1): "ok",
        ("a.pdf", 2): "ok",
        ("a.pdf", 3): "partial",
        ("a.pdf", 4): "partial",
        ("a.pdf", 5): "failed",
        ("a.pdf", 6): "failed",
        ("a.pdf", 7): "ok",
    }
    assert by_place["a.pdf", 2]["blank"] is True
    assert by_place["a.pdf", 1]["warnings"][0]["kind"] == "page_range"
    fates = {name: by_place[name, None]["failures"][0]["kind"] for name in ("locked.pdf", "empty.pdf")}
    assert fates == {"locked.pdf": "encrypted", "empty.pdf": "empty"}
    assert by_place["missing.pdf", None]["failures"][0]["kind"] == "not_found"
    assert by_place["gone.pdf", None]["failures"][0]["kind"] == "not_found"
    assert by_place["bad.pdf", None]["scope"] == "document"
    assert report.failures["encrypted"] == 1
    assert len(records) == len({key_of(record) for record in records})
    assert report.status["ok"] + report.status["partial"] + report.status["failed"] == len(records)


def test_boxes_and_sizes_are_numbers_of_the_page(folder: Path) -> None:
    make_png(folder / "b.png")
    (record,), _ = run_pages([folder], ScriptedEngine(script))
    width, height = record["size"]
    assert (width, height) == text_image(["x"]).size
    (line,) = record["lines"]
    assert line["text"] == "Hello world 123"
    assert 0 <= line["box"][0] < line["box"][2] <= width
    assert record["confidence"] == line["confidence"] == 0.9
    assert record["points"] is None
    assert record["tokens"]["naive"] == 4352


def test_numbers_that_are_none_do_not_end_a_run(folder: Path) -> None:
    make_png(folder / "a.png")

    def odd(request: Any) -> Any:
        return reply(request, "x", [Line("x", Box(0, 0, math.nan, math.inf), math.nan)])

    (record,), _ = run_pages([folder], ScriptedEngine(odd))
    check(record)
    assert record["confidence"] is None


def test_a_page_of_the_text_layer_names_it_as_its_engine(folder: Path) -> None:
    make_pdf(folder / "a.pdf", [[f"This is line number {n} of a sound text layer" for n in range(9)]])
    settings = Settings(page=PageSettings(text_layer="auto"))
    engine = ScriptedEngine(lambda request: "read")
    (record,), report = run_pages([folder], engine, settings)
    check(record)
    assert record["engine"]["name"] == "text-layer"
    assert record["tokens"]["output"] == 0
    assert "line number 3" in record["text"]
    assert not engine.asked
    assert report.requests == 0


def test_raw_replies_are_kept_only_when_asked_for(folder: Path) -> None:
    make_png(folder / "a.png")
    (record,), _ = run_pages([folder], ScriptedEngine(lambda request: "text"))
    assert "replies" not in record


def test_tables_that_are_written_twice_agree() -> None:
    assert tuple(chunking.STRATEGIES) == options.STRATEGIES
    assert [naive_tokens(factor) for factor in (28, 32)] == [4352, 3332]


# ------------------------------------------------------------------------------------------- dumps


@given(st.text(st.characters(codec=None)))  # lone surrogates too
def test_any_text_is_one_line_and_comes_back(text: str) -> None:
    line = dumps({"text": text})
    assert line.endswith(b"\n")
    assert len(line.decode("utf-8").splitlines()) == 1  # also for readers that split at U+2028
    # Two lone surrogates that stand side by side are one character to JSON.
    assert json.loads(line)["text"] == text.encode("utf-16-le", "surrogatepass").decode(
        "utf-16-le", "surrogatepass"
    )


def test_what_moves_a_cursor_is_escaped_and_letters_are_not() -> None:
    line = dumps({"text": "中é\x1b[2J\x9b\x7f\u2028\ud800"})
    assert line.decode() == '{"text":"中é\\u001b[2J\\u009b\\u007f\\u2028\\ud800"}\n'


def test_numbers_that_json_does_not_know_are_an_error() -> None:
    with pytest.raises(ValueError, match="JSON"):
        dumps({"confidence": math.nan})
