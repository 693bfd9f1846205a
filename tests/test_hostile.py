"""What an attacker, or bad luck, found: each case lost something silently before."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pymupdf
import pytest
from PIL import Image, PngImagePlugin

from hiresvlm.writers.textfiles import render
from tests.support import (
    ScriptedEngine,
    cli,
    make_pdf,
    make_png,
    read_records,
    records,
    run_pages,
    text_image,
)


def scan_pdf(path: Path, damage: int) -> Path:
    """A page that is one picture, its data cut off after `damage` percent."""
    image = path.with_suffix(".jpg")
    text_image(["A page of a scan"] * 20, width=800).save(image, quality=90)
    document = pymupdf.open()
    page = document.new_page(width=400, height=400)
    page.insert_image(page.rect, filename=image)
    (xref,) = (entry[0] for entry in page.get_images())
    data = document.xref_stream_raw(xref)
    document.update_stream(xref, data[: len(data) * damage // 100], compress=False)
    document.xref_set_key(xref, "Filter", "/DCTDecode")
    document.save(path)
    image.unlink()
    return path


def test_a_scan_that_cannot_be_decoded_is_no_blank_page(folder: Path) -> None:
    scan_pdf(folder / "gone.pdf", 0)
    scan_pdf(folder / "half.pdf", 50)
    scan_pdf(folder / "whole.pdf", 100)
    found, _ = run_pages([folder], ScriptedEngine(lambda request: "text"))
    gone, half, whole = found
    assert (gone["status"], gone["failures"][0]["kind"]) == ("failed", "render")
    assert (half["status"], [w["kind"] for w in half["warnings"]]) == ("ok", ["damaged"])
    assert (whole["status"], whole["warnings"]) == ("ok", [])


def test_a_page_that_is_too_faint_to_read_is_doubted(folder: Path) -> None:
    for name, level in (("faint", 234), ("paper", 253)):
        image = Image.new("L", (800, 600), 255)
        image.paste(level, (200, 200, 600, 300))
        image.save(folder / f"{name}.png")
    found, _ = run_pages([folder], ScriptedEngine(lambda request: "never asked"))
    assert [record["blank"] for record in found] == [True, True]
    assert [[w["kind"] for w in record["warnings"]] for record in found] == [["no_text"], []]


def test_damage_of_one_page_is_not_told_of_the_next(folder: Path) -> None:
    document = pymupdf.open(scan_pdf(folder / "a.pdf", 50))
    document.insert_pdf(pymupdf.open(make_pdf(folder / "b.pdf", [["sound"]])))
    document.save(folder / "both.pdf")
    found, _ = run_pages([folder / "both.pdf"], ScriptedEngine(lambda request: "text"))
    assert [bool(record["warnings"]) for record in found] == [True, False]


@pytest.mark.parametrize(
    "arguments", [("-o", ""), ("--format", "txt", "--output-dir", ""), ("--report", ""), ("",)]
)
def test_an_empty_name_is_an_unset_variable(folder: Path, arguments: tuple[str, ...]) -> None:
    make_png(folder / "a.png")
    done = cli("ocr", folder, "--engine", "echo", *arguments, cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is empty" in done.stderr
    assert os.listdir(folder) == ["a.png"]


def test_files_of_one_name_size_and_time_are_told_apart(tmp_path: Path) -> None:
    """Two days of scans, unpacked from an archive that keeps no seconds."""
    for day, text in (("one", "ALPHA"), ("two", "BRAVO")):
        (tmp_path / day).mkdir()
        path = tmp_path / day / "scan.bmp"
        text_image([text], width=300).save(path)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    out = tmp_path / "out.jsonl"
    for day in ("one", "two"):
        assert cli("ocr", tmp_path / day, "--engine", "echo", "-o", out).returncode == 0
    assert len({record["sha256"] for record in read_records(out)}) == 2


def test_an_output_that_was_removed_during_a_run_is_written_again(folder: Path, tmp_path: Path) -> None:
    make_pdf(folder / "a.pdf", [[str(n)] for n in range(6)])
    out = tmp_path / "out.jsonl"

    def script(request):  # type: ignore[no-untyped-def]
        if request.place.page == 4:
            out.unlink(missing_ok=True)
        return "text"

    found, _ = run_pages([folder], ScriptedEngine(script), output=out)
    assert [record["page"] for record in found] == [1, 2, 3, 4, 5, 6]


def test_a_run_that_ignores_a_signal_goes_on_ignoring_it(folder: Path, tmp_path: Path) -> None:
    """`nohup hiresvlm ... &`: the signal was ignored before the program started."""
    make_pdf(folder / "a.pdf", [["one"]])
    script = (
        "import os, signal, sys; from hiresvlm.cli import app, ocr;"
        "stop = ocr._Stop(None, None); stop.__enter__();"
        "os.kill(os.getpid(), signal.SIGHUP); print(stop.reason)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    assert done.stdout == "None\n"


def test_a_full_disk_below_the_log_costs_no_record(folder: Path) -> None:
    make_png(folder / "a.png")
    done = cli("ocr", folder, "--engine", "echo", "--log-file", "/dev/full")
    assert done.returncode == 0
    assert len(records(done.stdout)) == 1
    assert "Traceback" not in done.stderr


def test_a_failure_that_has_passed_leaves_the_file(folder: Path, tmp_path: Path) -> None:
    first, second = make_png(folder / "a.png"), make_png(folder / "b.png", ["other"])
    out = tmp_path / "out.jsonl"
    run = lambda: cli("ocr", first, second, "--engine", "echo", "-o", out).returncode  # noqa: E731
    assert run() == 0
    shutil.move(first, tmp_path / "away.png")
    assert run() == 3
    shutil.move(tmp_path / "away.png", first)
    assert run() == 0
    assert [record["status"] for record in read_records(out)] == ["ok", "ok"]


def test_a_picture_with_large_notes_is_read(folder: Path) -> None:
    notes = PngImagePlugin.PngInfo()
    notes.add_itxt("XML:com.adobe.xmp", "x" * 2_000_000, zip=True)
    text_image(["readable"], width=300).save(
        folder / "a.png", pnginfo=notes, icc_profile=zlib.compress(bytes(3_000_000))[:100] + bytes(2_000_000)
    )
    found, _ = run_pages([folder], ScriptedEngine(lambda request: "readable"))
    assert [record["status"] for record in found] == ["ok"]


def test_text_cannot_turn_the_direction_of_a_terminal(folder: Path) -> None:
    make_png(folder / "a.png")
    (record,), _ = run_pages([folder], ScriptedEngine(lambda request: "a\u202eb\u2066c"))
    assert record["text"] == "abc"


def test_links_of_a_document_stay_text_in_markdown(folder: Path, tmp_path: Path) -> None:
    page = {"page": 1, "status": "ok", "failures": [], "text": "![x](http://example.org/t.png)"}
    assert render([page], "md") == "![x]\\(http://example.org/t.png)\n"


def test_too_few_processes_are_one_clear_sentence(folder: Path) -> None:
    make_pdf(folder / "a.pdf", [[str(n)] for n in range(30)])
    done = cli(
        "ocr",
        folder,
        "--engine",
        "echo",
        "--workers",
        "16",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)),
    )
    assert done.returncode == 1
    assert "a rendering process cannot be started" in done.stderr
    assert "Traceback" not in done.stderr
