"""What a person sees, on stderr alone."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiresvlm import console
from hiresvlm.console import PLAIN_INTERVAL_S, SHOWN_PROBLEMS, Reporter, close_log, visible
from hiresvlm.report import Problem, Report
from tests.test_report import record


def report(done: int, known: int = 10, documents: int = 1, opened: int = 1) -> Report:
    made = Report(documents=documents, documents_done=opened, pages_known=known)
    made.began = time.perf_counter() - 60.0 * done
    for page in range(1, done + 1):
        made.add(record(page), 1)
    return made


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("scans/é中.pdf", "scans/é中.pdf"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\x7f\x9b", "a\\x0ab\\x09c\\x7f\\x9b"),
        ("x\u202egnp.exe\u2028", "x\\u202egnp.exe\\u2028"),
        (os.fsdecode(b"caf\xe9.pdf"), "caf\\xe9.pdf"),
        ("\ud800", "\\ud800"),
    ],
)
def test_names_of_strangers_move_no_cursor(name: str, shown: str) -> None:
    assert visible(name) == shown


@given(st.text(st.characters(codec=None)))
def test_what_is_visible_can_be_printed(text: str) -> None:
    shown = visible(text)
    assert shown.encode("utf-8").decode() == shown
    assert all(ord(character) >= 0x20 and not 0x7F <= ord(character) < 0xA0 for character in shown)
    assert visible(shown) == shown


def test_no_bar_without_a_terminal_but_a_line_a_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # as CI services set it
    now = [0.0]
    reporter = Reporter(clock=lambda: now[0])
    seen = []
    for second in range(0, 181, 10):
        now[0] = float(second)
        reporter.progress(report(2))
        seen.append(capsys.readouterr().err)
    assert [second * 10 for second, text in enumerate(seen) if text] == [60, 120, 180]
    assert PLAIN_INTERVAL_S == 60
    assert "2/10 pages, 0 failed or partial, 0.02 pages/s" in seen[6]
    assert "about 8 min left" in seen[6]
    assert "\r" not in "".join(seen)


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    reporter = Reporter()
    reporter.progress(report(2))
    reporter.progress(report(3))
    reporter.stop()
    assert "3/10 pages" in terminal.getvalue()
    assert terminal.getvalue().count("\x1b[?25l") == terminal.getvalue().count("\x1b[?25h") > 0


def test_quiet_shows_warnings_and_errors_only(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(quiet=True, clock=iter(range(0, 9000, 100)).__next__)
    reporter.note("note")
    reporter.progress(report(2))
    reporter.finish(report(2))
    reporter.warn("careful")
    reporter.error("wrong", "do this")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "careful\nhiresvlm: wrong\n  do this\n"


@pytest.mark.parametrize(
    ("done", "known", "documents", "opened", "expected"),
    [(0, 0, 3, 0, None), (1, 3, 4, 1, 12), (1, 5, 2, 2, 5), (0, 0, 9, 4, 0)],
)
def test_pages_of_documents_not_opened_yet_are_estimated(
    done: int, known: int, documents: int, opened: int, expected: int | None
) -> None:
    assert console._expected_pages(report(done, known, documents, opened)) == expected


def test_the_time_left_is_said_only_when_it_is_known() -> None:
    assert "left" not in console._progress_line(report(0))
    assert "left" not in console._progress_line(report(10))
    assert "about 5 min left" in console._progress_line(report(5))
    assert console._progress_line(report(0, 0, 3, 0)).startswith("0/? pages")


def test_the_summary_shows_what_prefill_cost(capsys: pytest.CaptureFixture[str]) -> None:
    made = report(4)
    made.earlier["ok"] = 7
    odd = record(
        5, "failed", 900.0, failures=[{"kind": "crash", "message": "died"}], source="[/red]\x1b[2J:smile:.pdf"
    )
    made.add(odd, 0)
    Reporter().finish(made)
    captured = capsys.readouterr()
    shown = captured.err
    assert captured.out == ""
    assert "4 ok, 0 partial, 1 failed; 7 done before" in shown
    assert "500 visual tokens = 4 requests x 125 (2% of naive tiling)" in shown
    assert "crash 1" in shown
    assert "[/red]\\x1b[2J:smile:.pdf p.5" in shown  # not as markup, not as an emoji
    assert "p95" in shown
    assert "\x1b" not in shown


def test_failed_pages_are_named_also_when_quiet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "log"
    reporter = Reporter(quiet=True, log_file=str(log))
    for page in range(1, 41):
        reporter.problem(Problem("a\x1b[2J.pdf", page, "failed", "crash", "it died"))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "a\\x1b[2J.pdf page 1: failed, it died"
    assert len(lines) == SHOWN_PROBLEMS + 1
    assert "name them" in lines[-1]
    assert len(log.read_text().splitlines()) == 40


def test_old_failures_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    made = Report()
    made.earlier["failed"], made.earlier["ok"] = 2, 5
    Reporter().finish(made)
    assert "7 done before (2 of them failed or partial; --retry-errors" in capsys.readouterr().err


def test_the_summary_of_a_run_without_a_model_says_planned(capsys: pytest.CaptureFixture[str]) -> None:
    made = Report(documents=1)
    made.add(record(tokens={"visual": 10, "naive": 100, "output": 0, "planned": True}), 1)
    Reporter().finish(made)
    shown = capsys.readouterr().err
    assert "planned visual tokens" in shown
    assert "tokens/s" not in shown


def test_an_empty_run_has_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    Reporter().finish(Report())
    assert "0 ok, 0 partial, 0 failed" in capsys.readouterr().err


def test_messages_are_no_markup_and_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    Reporter().warn("[bold]" + "x" * 300 + "[/nothing] :tada:")
    assert capsys.readouterr().err == "[bold]" + "x" * 300 + "[/nothing] :tada:\n"


def test_the_log_file_holds_every_message_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    reporter = Reporter(quiet=True, log_file=str(log))
    reporter.note("a note 100%s")
    reporter.warn("a warning\nforged INFO line")
    Reporter().error("an error", "a hint")  # `main` makes a reporter of its own
    reporter.finish(report(2))
    close_log()
    reporter.warn("after the end")
    shown = [line.split(" ", 2)[2] for line in log.read_text().splitlines()]
    assert shown[:4] == [
        "INFO a note 100%s",
        "WARNING a warning\\x0aforged INFO line",
        "ERROR an error",
        "ERROR   a hint",
    ]
    assert shown[4].startswith("INFO 2/10 pages")
    assert len(shown) == 5
    assert capsys.readouterr().err.count("after the end") == 1


class Gone(io.StringIO):
    """A terminal that was closed."""

    def write(self, text: str) -> int:
        raise BrokenPipeError(32, "gone")

    def flush(self) -> None:
        raise OSError(5, "gone")


def test_a_lost_terminal_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Gone())
    reporter = Reporter()
    reporter.warn("x")
    reporter.finish(report(2))
    reporter.error("x")


def test_stdout_is_given_to_the_caller_alone(tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    saved = os.dup(1), os.dup(2)
    try:
        for fd, path in ((1, out), (2, err)):
            with open(path, "wb") as file:
                os.dup2(file.fileno(), fd)
        private = console.guard_stdout()
        os.write(1, b"from a library\n")
        os.write(private, b"record\n")
        os.close(private)
    finally:
        for fd, copy in zip((1, 2), saved, strict=True):
            os.dup2(copy, fd)
            os.close(copy)
    assert out.read_bytes() == b"record\n"
    assert err.read_bytes() == b"from a library\n"


def test_closed_descriptors_are_filled(tmp_path: Path) -> None:
    saved = os.dup(0)
    try:
        os.close(0)
        console.open_missing_descriptors()
        assert os.readlink("/proc/self/fd/0") == os.devnull
        with open(tmp_path / "file", "wb") as file:
            assert file.fileno() > 2
    finally:
        os.dup2(saved, 0)
        with contextlib.suppress(OSError):
            os.close(saved)
