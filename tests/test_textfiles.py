"""Text files: a view of the journal, below their folder and nowhere else."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiresvlm.datatypes import Document
from hiresvlm.documents import expand
from hiresvlm.errors import OutputError
from hiresvlm.report import Report
from hiresvlm.run import Sink
from hiresvlm.settings import RunSettings, Settings
from hiresvlm.writers import Journal, TextFiles
from hiresvlm.writers.textfiles import render
from tests.support import ScriptedEngine, cli, make_pdf, make_png


def document(key: str) -> Document:
    return Document(0, key, key, key)


def page(number: int | None, text: str, *kinds: str) -> dict[str, Any]:
    status = "ok" if not kinds else "partial" if text else "failed"
    return {"page": number, "status": status, "text": text, "failures": [{"kind": kind} for kind in kinds]}


# ------------------------------------------------------------------------------------------ content


def test_pages_in_order_with_what_is_missing_said_where_it_is_missing() -> None:
    pages = [page(1, "one\ntwo"), page(2, "", "crash"), page(3, "half", "truncated", "loop")]
    assert render(pages, "txt") == (
        "one\ntwo\n\f[page 2: failed: crash]\n\n\f[page 3: partial: truncated, loop]\nhalf\n"
    )
    assert render(pages, "md") == (
        "one  \ntwo\n\n---\n\n<!-- page 2: failed: crash -->\n\n\n\n---\n\n"
        "<!-- page 3: partial: truncated, loop -->\n\nhalf\n"
    )
    assert render([page(None, "", "encrypted")], "txt") == "[failed: encrypted]\n\n"


def test_text_of_a_scan_does_not_become_markup() -> None:
    text = render([page(1, '<script>alert("1 & 2")</script> <!-- -->')], "md")
    assert "<" not in text
    assert "&lt;script&gt;" in text
    assert "&amp; 2" in text
    assert render([page(1, "<b> & c")], "txt") == "<b> & c\n"


def test_text_that_is_no_unicode_is_written_escaped(tmp_path: Path) -> None:
    texts = TextFiles(str(tmp_path), "txt")
    texts.write(document("a"), [page(1, "x\ud800y中")])
    assert (tmp_path / "a.txt").read_bytes() == "x\\ud800y中\n".encode()


# -------------------------------------------------------------------------------------------- paths


def test_same_stems_and_folders_stay_apart(tmp_path: Path) -> None:
    texts = TextFiles(str(tmp_path), "md")
    keys = ["a/x.pdf", "a/x.png", "b/x.pdf", "x.pdf"]
    for key in keys:
        texts.write(document(key), [page(1, key)])
    assert {key: (tmp_path / f"{key}.md").read_text() for key in keys} == {key: f"{key}\n" for key in keys}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["..", ".", "", "a", "b" * 255, "中" * 85, "x\0y", "c\n"]), max_size=6))
def test_no_name_leads_out_of_the_folder(tmp_path: Path, parts: list[str]) -> None:
    texts = TextFiles(str(tmp_path / "out"), "txt")
    path = texts.path(document("/".join(parts)))
    assert os.path.realpath(path).startswith(str(tmp_path / "out") + "/")
    assert all(len(os.fsencode(part)) <= 255 for part in path.split("/"))
    if len(path) < 1500:
        texts.write(document("/".join(parts)), [page(1, "text")])
        assert Path(path).read_text() == "text\n"
        shutil.rmtree(tmp_path / "out")


def test_names_of_the_greatest_length_stay_apart(tmp_path: Path) -> None:
    texts = TextFiles(str(tmp_path), "md")
    for last in "xy":
        texts.write(document("中" * 83 + last + ".pdf"), [page(1, last)])
    found = sorted(file.read_text() for file in tmp_path.iterdir())
    assert found == ["x\n", "y\n"]
    assert all(file.name.endswith(".md") for file in tmp_path.iterdir())


@pytest.mark.parametrize("target", ["../outside", "/"])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / "outside").mkdir()
    out = tmp_path / "out"
    out.mkdir()
    (out / "sub").symlink_to(target)
    with pytest.raises(OutputError, match="leads out"):
        TextFiles(str(out), "md").write(document("sub/a.pdf"), [page(1, "x")])
    assert not os.listdir(tmp_path / "outside")


def test_a_link_in_place_of_the_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.pdf.md").symlink_to(outside)
    TextFiles(str(out), "md").write(document("a.pdf"), [page(1, "mine")])
    assert outside.read_text() == "mine"
    assert not (out / "a.pdf.md").is_symlink()


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk")
    TextFiles(str(tmp_path / "out"), "md").write(document("a"), [page(1, "x")])
    assert os.listdir(tmp_path / "disk") == ["a.md"]


def test_a_folder_that_cannot_be_made_is_an_output_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as caught:
        TextFiles(str(tmp_path / "file" / "out"), "md")
    assert caught.value.exit_code == 6


# ------------------------------------------------------------------------------------------- resume


def read(source: Path, out: Path, text: str = "text", **run: Any) -> tuple[Report, ScriptedEngine]:
    """A run of the whole line of steps with text files, in process."""
    from hiresvlm.console import Reporter
    from hiresvlm.run import run as go
    from hiresvlm.writers.record import Context

    made = Settings(run=RunSettings(**run))
    engine = ScriptedEngine(lambda request: text)
    digest = made.digest(engine.info)
    context = Context("run", "ocr", engine.info, engine.profile, digest, 4352)
    texts = TextFiles(str(out), "txt")
    sink = Sink(
        [digest],
        journal=Journal(str(out / "log.jsonl")),
        texts=texts,
        retry_errors=made.run.retry_errors,
    )
    with contextlib.closing(sink):
        report = go(expand([str(source)]), made, context, sink, Reporter(quiet=True), lambda: engine)
        sink.finish(clean=True)
    return report, engine


def test_nothing_is_written_when_all_is_done_and_a_lost_file_is_made_again(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    make_pdf(folder / "a.pdf", [["one"], ["two"]])
    (folder / "bad.pdf").write_bytes(b"junk")
    read(folder, out)
    assert (out / "a.pdf.txt").read_text() == "text\n\ftext\n"
    assert (out / "bad.pdf.txt").read_text().startswith("[failed: ")
    before = {file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in out.iterdir()}
    _, engine = read(folder, out)
    assert not engine.asked
    assert {f.name: (f.stat().st_ino, f.stat().st_mtime_ns) for f in out.iterdir()} == before
    (out / "a.pdf.txt").unlink()
    (out / "bad.pdf.txt").unlink()
    _, engine = read(folder, out)
    assert not engine.asked
    assert (out / "a.pdf.txt").read_text() == "text\n\ftext\n"
    assert (out / "bad.pdf.txt").exists()


def test_a_text_that_is_older_than_its_records_is_made_again(folder: Path, tmp_path: Path) -> None:
    """As after a kill between the last record of a document and its text."""
    out = tmp_path / "out"
    make_png(folder / "a.png")
    read(folder, out)
    text = out / "a.png.txt"
    text.write_text("stale")
    old = time.time() - 3600
    os.utime(text, (old, old))
    _, engine = read(folder, out)
    assert not engine.asked
    assert text.read_text() == "text\n"


def test_pages_read_in_two_runs_stand_in_one_file(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make_pdf(folder / "a.pdf", [["one"], ["two"], ["three"]])
    read(folder, out, "first", pages="3")
    assert (out / "a.pdf.txt").read_text() == "first\n"
    read(folder, out, "second")
    assert (out / "a.pdf.txt").read_text() == "second\n\fsecond\n\ffirst\n"


def test_a_document_that_can_be_read_now_loses_its_mark(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (folder / "a.png").write_bytes(b"")
    read(folder, out)
    assert "failed" in (out / "a.png.txt").read_text()
    make_png(folder / "a.png")
    read(folder, out)
    assert (out / "a.png.txt").read_text() == "text\n"


def test_a_text_of_other_settings_is_replaced(folder: Path, tmp_path: Path) -> None:
    make_png(folder / "a.png")
    out = tmp_path / "out"
    common = [folder, "--engine", "echo", "--format", "txt", "--output-dir", out, "-q"]
    texts = []
    for strategy in ("whole", "fixed", "whole"):
        assert cli("ocr", *common, "--strategy", strategy).returncode == 0
        texts.append((out / "a.png.txt").read_text())
    assert texts[0] == texts[2] != texts[1]


def test_text_files_in_the_folder_that_is_read(folder: Path) -> None:
    make_png(folder / "a.png")
    for out in (folder, folder / "text", folder):
        done = cli("ocr", folder, "-r", "--engine", "echo", "--format", "md", "--output-dir", out)
        assert done.returncode == 0, done.stderr
        assert (out / "a.png.md").exists()
    assert sorted(file.name for file in folder.rglob("*") if file.is_file()) == [
        ".hiresvlm.jsonl",
        ".hiresvlm.jsonl",
        "a.png",
        "a.png.md",
        "a.png.md",
    ]


def test_replacing_the_text_of_another_document_is_said(tmp_path: Path) -> None:
    """Two runs over two folders with the same names share the names of their text files."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        make_png(tmp_path / name / "a.png", [f"of folder {name}"])
    texts = tmp_path / "texts"
    arguments = ("--engine", "echo", "--format", "txt", "--output-dir", texts)
    assert "replaced" not in cli("ocr", tmp_path / "one", *arguments).stderr
    assert "1 text files replaced those of other documents" in cli("ocr", tmp_path / "two", *arguments).stderr
    (tmp_path / "one").rename(tmp_path / "moved")  # the same document under another name is no other one
    assert "replaced" not in cli("ocr", tmp_path / "moved", *arguments).stderr
