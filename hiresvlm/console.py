"""Everything that a person sees: progress, warnings and the summary, all on stderr.

stdout belongs to records. It is guarded at the level of the file descriptor, because libraries print
to it from Python and from C alike.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from hiresvlm.report import Problem, Report

SHOWN_PROBLEMS = 20
"""Failed pages that are named on the screen."""

PLAIN_INTERVAL_S = 60.0
"""Without a terminal (cron, a log file) one line this often."""

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """File names come from strangers: control characters are shown as escapes and move no cursor."""
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a name that is not UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def open_missing_descriptors() -> None:
    """Put /dev/null where stdin, stdout or stderr is closed (`>&-`).

    Else the next file that is opened, such as the output, would become what libraries print to.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)


def guard_stdout() -> int:
    """Give stdout to the caller alone: a private descriptor for it; everyone else's goes to stderr."""
    if sys.stdout is not None:
        sys.stdout.flush()
    private = os.dup(1)
    os.dup2(2, 1)
    return private


def close_log() -> None:
    """Close the log file of the last `Reporter`."""
    log = logging.getLogger("hiresvlm")
    for handler in list(log.handlers):
        log.removeHandler(handler)
        handler.close()
    log.addHandler(logging.NullHandler())  # without any, logging prints warnings itself


class _Console(Console):
    """A console that is not worth ending a run for."""

    def on_broken_pipe(self) -> None:
        """Whoever read our messages is gone; the records go on."""
        self.quiet = True


class Reporter:
    """Messages and progress of one command. `clock` gives seconds."""

    def __init__(
        self,
        *,
        quiet: bool = False,
        verbose: bool = False,
        log_file: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.verbose = verbose
        self._quiet = quiet
        self._console = _Console(stderr=True, highlight=False)
        # Not `is_terminal`: FORCE_COLOR would put a bar into log files.
        self._live = sys.stderr is not None and sys.stderr.isatty()
        self._log = logging.getLogger("hiresvlm")
        self._log.propagate = False
        self._log.setLevel(logging.INFO)
        if log_file is not None or not self._log.handlers:
            close_log()
        if log_file is not None:
            self._log.addHandler(_log_handler(log_file))
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._problems = 0
        self._clock = clock
        self._line_at = clock() + PLAIN_INTERVAL_S

    def note(self, message: str) -> None:
        """Something good to know; not shown with -q."""
        self._log.info("%s", visible(message))
        if not self._quiet:
            self._print(message)

    def warn(self, message: str) -> None:
        self._log.warning("%s", visible(message))
        self._print(message, "yellow")

    def error(self, message: str, hint: str | None = None) -> None:
        self._log.error("%s", visible(message))
        self._print(f"hiresvlm: {message}", "red")
        if hint:
            self._log.error("  %s", visible(hint))
            self._print(f"  {hint}")

    def problem(self, problem: Problem) -> None:
        """Name a page that failed or lacks text, also with -q; the first few of a run on the screen."""
        page = "" if problem.page is None else f" page {problem.page}"
        message = f"{problem.source}{page}: {problem.status}, {problem.message}"
        self._log.warning("%s", visible(message))
        self._problems += 1
        if self._problems <= SHOWN_PROBLEMS:
            self._print(message, "yellow")
        elif self._problems == SHOWN_PROBLEMS + 1:
            self._print("more pages failed; the output, --report and --log-file name them", "yellow")

    def progress(self, report: Report) -> None:
        """Show where the run is: a bar on a terminal, else a plain line a minute."""
        if self._quiet:
            return
        if self._live:
            with _unless_gone():
                self._bar(report)
        elif self._clock() >= self._line_at:
            self._line_at = self._clock() + PLAIN_INTERVAL_S
            self._print(_progress_line(report))

    def finish(self, report: Report) -> None:
        """Take the bar away and print the summary."""
        self.stop()
        if not self._quiet:
            with _unless_gone():
                self._summary(report)
        self._log.info("%s", _progress_line(report))

    def stop(self) -> None:
        """Leave the terminal as it was found."""
        if self._progress is not None:
            with _unless_gone():
                self._progress.stop()
            self._progress = None

    def _print(self, message: str, style: str | None = None) -> None:
        with _unless_gone():
            self._console.print(visible(message), style=style, markup=False, emoji=False, soft_wrap=True)

    def _bar(self, report: Report) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        if self._progress is None:
            self._progress = Progress(
                TextColumn("{task.fields[pages]}"),
                BarColumn(),
                TextColumn("{task.fields[speed]}, "),
                TimeElapsedColumn(),
                TextColumn("gone,"),
                TimeRemainingColumn(),
                TextColumn("left"),
                console=self._console,
                transient=True,
                redirect_stdout=False,
            )
            self._task = self._progress.add_task("", total=None, pages="", speed="")
            self._progress.start()
        assert self._task is not None
        self._progress.update(
            self._task,
            completed=report.progress,
            total=_expected_pages(report),
            pages=f"{report.progress}/{_expected_pages(report) or '?'} pages",
            speed=_speed(report),
        )

    def _summary(self, report: Report) -> None:
        data = report.as_dict()
        if not self._live:  # a log: one fact a line, nothing wrapped or padded
            for name, value in _summary_rows(report, data):
                self._print(f"{name}: {value}")
            for step, times in data["latency_ms"].items():
                self._print(f"ms a page, {step}: p50 {times['p50']:,.0f}, p95 {times['p95']:,.0f}")
            return
        table = Table(title=None, box=None, pad_edge=False, show_header=False)
        table.add_column(style="bold")
        table.add_column()
        for name, value in _summary_rows(report, data):
            table.add_row(name, Text(visible(value)))  # not markup: names of files are in it
        self._console.print(table)
        if data["latency_ms"]:
            times = Table(box=None, pad_edge=False)
            times.add_column("ms a page")
            for step in data["latency_ms"]:
                times.add_column(step, justify="right")
            for quantile in ("p50", "p95"):
                times.add_row(quantile, *(f"{v[quantile]:,.0f}" for v in data["latency_ms"].values()))
            self._console.print(times)


def _summary_rows(report: Report, data: dict[str, object]) -> list[tuple[str, str]]:
    status = report.status
    pages = f"{status['ok']} ok, {status['partial']} partial, {status['failed']} failed"
    if report.blank:
        pages += f", {report.blank} of them blank"
    earlier = sum(report.earlier.values())
    if earlier:
        pages += f"; {earlier} done before"
        broken = report.earlier["failed"] + report.earlier["partial"]
        if broken:
            pages += f" ({broken} of them failed or partial; --retry-errors reads them again)"
    if report.unit == "answers":
        pages += f"; {report.answered} with an answer"
    rows = [(report.unit, pages)]
    if report.progress:
        rows.append(("speed", f"{_speed(report)}, {report.seconds:.1f} s"))
    if report.requests:
        mean = report.visual_tokens / report.requests
        kind = "planned visual tokens" if report.planned else "visual tokens"
        saved = (
            f"{report.visual_tokens / report.naive_tokens:.0%} of naive tiling" if report.naive_tokens else ""
        )
        rows.append(
            (
                "prefill",
                f"{report.visual_tokens:,} {kind} = {report.requests:,} requests x {mean:,.0f} ({saved})",
            )
        )
    for name, counts in (("warnings", report.warnings), ("failures", report.failures)):
        if counts:
            rows.append((name, ", ".join(f"{kind} {n}" for kind, n in sorted(counts.items()))))
    slowest = data["slowest"]
    assert isinstance(slowest, list)
    if len(slowest) > 1:
        named = (f"{item['source']} p.{item['page']} {item['total_ms'] / 1e3:.1f} s" for item in slowest[:3])
        rows.append(("slowest", "; ".join(named)))
    return rows


def _progress_line(report: Report) -> str:
    expected = _expected_pages(report)
    rest = ""
    done = report.progress
    if expected and done and expected > done:
        rest = f", about {(expected - done) * report.seconds / done / 60:.0f} min left"
    failed = report.status["failed"] + report.status["partial"]
    return f"{done}/{expected or '?'} pages, {failed} failed or partial, {_speed(report)}{rest}"


def _expected_pages(report: Report) -> int | None:
    """Pages of this run: those known, and for documents not yet opened the mean of the others."""
    if not report.documents_done:
        return None
    return round(report.pages_known * report.documents / report.documents_done)


def _speed(report: Report) -> str:
    seconds = max(report.seconds, 1e-9)
    tokens = (
        ""
        if report.planned or not report.output_tokens
        else f", {report.output_tokens / seconds:,.0f} tokens/s"
    )
    return f"{report.progress / seconds:.2f} pages/s{tokens}"


def _unless_gone() -> contextlib.AbstractContextManager[None]:
    """A terminal that was closed, or a full disk behind `2> file`, is no reason to lose the records."""
    return contextlib.suppress(OSError)


class _LogFile(logging.FileHandler):
    """A log that is not worth ending a run for: on a full disk it has gaps, and prints no traceback."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Leave the line out."""

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()


def _log_handler(path: str) -> logging.Handler:
    handler = _LogFile(path, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    return handler
