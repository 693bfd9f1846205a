"""`hiresvlm ocr`: transcribe every page."""

from __future__ import annotations

import json
import os
import signal
import time
import types
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from hiresvlm.cli import options
from hiresvlm.errors import ExitCode, NoInputError, OutputError, UsageError

if TYPE_CHECKING:
    from hiresvlm.console import Reporter
    from hiresvlm.datatypes import Document
    from hiresvlm.report import Report
    from hiresvlm.run import Sink
    from hiresvlm.settings import Settings

JOURNAL_NAME = ".hiresvlm.jsonl"
"""Journal of a run that writes text files and was given no -o: it makes them resumable."""


def ocr(
    paths: options.Paths = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="JSONL file; a rerun resumes.")
    ] = None,
    format: Annotated[str, typer.Option(help="jsonl, md or txt (needs --output-dir).")] = "jsonl",
    output_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="Where md or txt files go, one per document.")
    ] = None,
    files_from: options.FilesFrom = None,
    recursive: options.Recursive = False,
    min_age: options.MinAge = None,
    pages: options.Pages = None,
    engine: options.EngineName = "auto",
    strategy: options.Strategy = "auto",
    max_tokens_per_page: options.MaxTokens = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest reply for one request.")] = 2048,
    slots: Annotated[str, typer.Option(help="Requests in work at a time, or auto.")] = "auto",
    text_layer: Annotated[
        str, typer.Option(help="auto takes a sound PDF text layer instead of reading.")
    ] = "ignore",
    prompt: Annotated[str | None, typer.Option(metavar="FILE", help="Your own instruction.")] = None,
    keep_chunks: Annotated[bool, typer.Option(help="Keep the raw reply of each request.")] = False,
    password_file: options.PasswordFile = None,
    retry_errors: Annotated[bool, typer.Option(help="Redo failed and partial pages.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="--no-resume keeps the old file as FILE.1.")
    ] = True,
    max_runtime: Annotated[
        str | None, typer.Option(metavar="TIME", help="Stop cleanly after 6h, 90m; resumable.")
    ] = None,
    allow_empty: Annotated[bool, typer.Option(help="Finding no input is no error.")] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Rendering processes.")] = 2,
    report: Annotated[str | None, typer.Option(metavar="FILE", help="Write a summary as JSON.")] = None,
    log_file: Annotated[str | None, typer.Option(metavar="FILE", help="Write messages here too.")] = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Transcribe every page of PATH... to JSONL, one record a page.

    Without -o records go to stdout. With it an interrupted run goes on where it stopped.
    Exit codes: 0 all pages ok, 3 some failed or partial, 4 no input, 5 engine, 6 output, 7 locked,
    130 interrupted.
    """
    from hiresvlm import settings as s
    from hiresvlm.chunking import STRATEGIES
    from hiresvlm.console import Reporter, guard_stdout
    from hiresvlm.documents import parse_pages

    options.choice(format, ("jsonl", "md", "txt"), "--format")
    options.choice(strategy, tuple(STRATEGIES), "--strategy")
    options.choice(text_layer, ("ignore", "auto"), "--text-layer")
    if (format != "jsonl") != (output_dir is not None):
        raise UsageError("--format md or txt and --output-dir go together")
    if pages is not None:
        parse_pages(pages)
    settings = s.Settings(
        page=s.PageSettings(text_layer=text_layer, password=options.password(password_file)),
        chunk=s.ChunkSettings(strategy=strategy, max_tokens_per_page=max_tokens_per_page),
        engine=s.EngineSettings(name=engine, slots=_slots(slots)),
        task=s.TaskSettings(prompt=_prompt(prompt), max_new_tokens=max_new_tokens, keep_chunks=keep_chunks),
        run=s.RunSettings(
            pages=pages,
            retry_errors=retry_errors,
            max_runtime_s=None if max_runtime is None else options.duration(max_runtime, "--max-runtime"),
            workers=workers,
        ),
    )
    reporter = Reporter(quiet=quiet, verbose=verbose, log_file=_log_file(log_file))
    journal_path = output
    if output_dir is not None and output is None:
        journal_path = os.path.join(output_dir, JOURNAL_NAME)
    try:
        documents = options.documents(
            paths,
            files_from=files_from,
            recursive=recursive,
            min_age=min_age,
            exclude=[path for path in (journal_path, output_dir, report, log_file) if path is not None],
        )
    except NoInputError as error:
        if not allow_empty:
            raise
        reporter.note(error.message)
        raise typer.Exit(ExitCode.OK) from None
    stdout = guard_stdout() if journal_path is None or journal_path == "-" else None
    if stdout is None:
        os.close(guard_stdout())
    code = _read(documents, settings, reporter, journal_path, stdout, output_dir, format, resume, report)
    raise typer.Exit(code)


def _read(
    documents: list[Document],
    settings: Settings,
    reporter: Reporter,
    output: str | None,
    stdout: int | None,
    output_dir: str | None,
    format: str,
    resume: bool,
    report_file: str | None,
) -> ExitCode:
    """Open the output, run, say how it went."""
    from hiresvlm import engines
    from hiresvlm.chunking import naive_tokens
    from hiresvlm.run import run
    from hiresvlm.writers.record import Context
    from hiresvlm.writers.stream import ReaderGone

    settings, reason = engines.resolve(settings)
    engine = engines.find(settings.engine.name)
    info, profile = engine.describe(settings.engine)
    digests = engines.digests(settings, reason is not None)
    context = Context(
        run=uuid.uuid4().hex[:12],
        task=settings.task.name,
        engine=info,
        profile=profile,
        settings=digests[0],
        naive_tokens=naive_tokens(profile.factor),
        keep_chunks=settings.task.keep_chunks,
    )
    sink = _sink(digests, settings, output, stdout, output_dir, format, resume)
    if reason is not None:
        reporter.note(f"engine: {settings.engine.name} ({reason})")
    stop = _Stop(settings.run.max_runtime_s)
    try:
        with stop:
            report = run(
                documents, settings, context, sink, reporter, lambda: engine(settings.engine), stop.asked
            )
            report.engine = {"name": info.name, "model": info.model, "revision": info.revision}
            sink.finish(clean=not report.interrupted)
    except ReaderGone:
        reporter.stop()
        return ExitCode.OK
    finally:
        reporter.stop()
        sink.close()
    if sink.used_other_digest:
        reporter.warn("pages that another engine finished before were kept; --no-resume reads them again")
    reporter.finish(report)
    _save_report(report, report_file)
    if report.interrupted:
        reporter.warn(
            "stopped before the end"
            + (f" ({stop.reason})" if stop.reason else "")
            + ("; run the same command again to go on" if output else "")
        )
        return ExitCode.INTERRUPTED
    return ExitCode.INCOMPLETE if report.incomplete else ExitCode.OK


def _sink(
    digests: list[str],
    settings: Settings,
    output: str | None,
    stdout: int | None,
    output_dir: str | None,
    format: str,
    resume: bool,
) -> Sink:
    """The journal, or a plain stream for stdout, pipes and devices."""
    from hiresvlm.run import Sink
    from hiresvlm.writers import Journal, Stream, TextFiles

    texts = None if output_dir is None else TextFiles(output_dir, format)
    if stdout is not None:
        return Sink(digests, stream=Stream(stdout))
    assert output is not None
    if os.path.exists(output) and not os.path.isfile(output):
        try:
            return Sink(digests, stream=Stream(os.open(output, os.O_WRONLY), output))
        except OSError as error:
            raise OutputError(f"cannot write {output}: {error.strerror}") from error
    journal = Journal(output, resume=resume)
    return Sink(digests, journal=journal, texts=texts, retry_errors=settings.run.retry_errors)


class _Stop:
    """Ctrl-C, SIGTERM, SIGHUP and --max-runtime end a run in order; a second Ctrl-C ends it at once."""

    def __init__(self, max_runtime_s: float | None) -> None:
        self._deadline = None if max_runtime_s is None else time.monotonic() + max_runtime_s
        self._before: dict[int, object] = {}
        self.reason: str | None = None

    def asked(self) -> bool:
        if self.reason is None and self._deadline is not None and time.monotonic() > self._deadline:
            self.reason = "--max-runtime is over"
        return self.reason is not None

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._handle)

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _handle(self, number: int, frame: types.FrameType | None) -> None:
        if self.reason is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.reason = f"got {signal.Signals(number).name}"


def _slots(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"--slots {text!r} is neither a number from 1 nor auto")
    return int(text)


def _prompt(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        with open(file, encoding="utf-8") as handle:
            return handle.read().strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--prompt {file} cannot be read: {error}") from error


def _log_file(path: str | None) -> str | None:
    if path is not None:
        try:
            with open(path, "a", encoding="utf-8"):
                return path
        except OSError as error:
            raise OutputError(f"cannot write --log-file {path}: {error.strerror}") from error
    return None


def _save_report(report: Report, path: str | None) -> None:
    """Write the summary for machines, whole or not at all."""
    if path is None:
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(report.as_dict(), file, ensure_ascii=False, indent=1)
            file.write("\n")
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise OutputError(f"cannot write --report {path}: {error.strerror}") from error
