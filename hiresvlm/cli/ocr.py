"""`hiresvlm ocr`: transcribe every page."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import types
import uuid
from typing import TYPE_CHECKING, Annotated

import typer

from hiresvlm.cli import options
from hiresvlm.cli.output import (
    STDOUT,
    check_files,
    check_report,
    is_stream,
    log_path,
    open_sink,
    save_report,
)
from hiresvlm.errors import ExitCode, NoInputError, OutputError, UsageError

if TYPE_CHECKING:
    from hiresvlm.console import Reporter
    from hiresvlm.datatypes import Document
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
    model: options.Model = None,
    quant: options.Quant = "int4",
    device: options.Device = "auto",
    strategy: options.Strategy = "auto",
    max_tokens_per_page: options.MaxTokens = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest reply for one request.")] = 2048,
    slots: options.Slots = "auto",
    prune: options.Prune = False,
    text_layer: Annotated[
        str, typer.Option(help="ignore, or auto: take a sound PDF text layer instead of reading.")
    ] = "ignore",
    prompt: Annotated[str | None, typer.Option(metavar="FILE", help="Your own instruction.")] = None,
    keep_chunks: Annotated[
        bool, typer.Option("--keep-chunks", help="Keep the raw reply of each request.")
    ] = False,
    password_file: options.PasswordFile = None,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Redo failed and partial pages.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume/--no-resume", help="--no-resume keeps the old file as FILE.1.")
    ] = True,
    max_runtime: Annotated[
        str | None, typer.Option(metavar="TIME", help="Stop cleanly after 6h, 90m; resumable.")
    ] = None,
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Finding no input is no error.")] = False,
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
    from hiresvlm import engines
    from hiresvlm import settings as s
    from hiresvlm.console import Reporter, guard_stdout
    from hiresvlm.documents import parse_pages

    options.no_empty(
        {"PATH": paths, "-o": output, "--output-dir": output_dir, "--report": report, "--log-file": log_file}
    )
    options.choice(format, ("jsonl", "md", "txt"), "--format")
    options.choice(strategy, options.STRATEGIES, "--strategy")
    options.choice(text_layer, ("ignore", "auto"), "--text-layer")
    if (format != "jsonl") != (output_dir is not None):
        raise UsageError("--format md or txt and --output-dir go together")
    if output_dir is not None and output is not None and is_stream(output):
        raise UsageError("text files are made from the records: with --output-dir, -o must be a file")
    if pages is not None:
        parse_pages(pages)
    min_age_s = 0.0 if min_age is None else options.duration(min_age, "--min-age")
    settings, reason = engines.resolve(
        s.Settings(
            page=s.PageSettings(text_layer=text_layer, password=options.password(password_file)),
            chunk=s.ChunkSettings(strategy=strategy, max_tokens_per_page=max_tokens_per_page),
            engine=options.engine(engine, model, quant, device, slots, prune=prune),
            task=s.TaskSettings(
                prompt=_prompt(prompt), max_new_tokens=max_new_tokens, keep_chunks=keep_chunks
            ),
            run=s.RunSettings(
                pages=pages,
                retry_errors=retry_errors,
                max_runtime_s=None if max_runtime is None else options.duration(max_runtime, "--max-runtime"),
                workers=workers,
            ),
        )
    )
    if output_dir is not None and output is None:
        output = os.path.join(output_dir, JOURNAL_NAME)
    if output in STDOUT:
        output = None
    named = options.named_paths(paths, files_from)
    check_files({"--output": output, "--report": report, "--log-file": log_file}, named)
    check_report(report)
    if output is None and sys.stdout is None:
        raise OutputError("cannot write stdout: it is closed", "write to a file with -o")
    stdout = guard_stdout()  # before anything is opened or loaded that could print
    if output is not None:
        os.close(stdout)
    reporter = Reporter(quiet=quiet, verbose=verbose, log_file=log_path(log_file))
    ours = [path for path in (output, report, log_file) if path is not None]
    try:
        documents = options.documents(named, recursive=recursive, min_age_s=min_age_s, exclude=ours)
    except NoInputError as error:
        if not allow_empty:
            raise
        reporter.note(error.message)
        documents = []
    if not recursive and (below := options.unsearched(named)):
        reporter.note(f"folders below that were not searched: {below} (-r searches them)")
    digests = engines.digests(settings, reason is not None)
    with contextlib.closing(
        open_sink(digests, settings, output, None if output else stdout, output_dir, format, resume)
    ) as sink:
        if reason is not None:
            reporter.note(f"engine: {settings.engine.name} ({reason})")
        code = read(documents, settings, reporter, sink, digests[0], report, resumable=output is not None)
    raise typer.Exit(code)


def read(
    documents: list[Document],
    settings: Settings,
    reporter: Reporter,
    sink: Sink,
    digest: str,
    report_file: str | None,
    *,
    resumable: bool,
) -> ExitCode:
    """Run, and say how it went: for `ocr` and `ask`."""
    from dataclasses import asdict, replace

    from hiresvlm import engines
    from hiresvlm.datatypes import naive_tokens
    from hiresvlm.run import Answering, run
    from hiresvlm.writers.record import Context
    from hiresvlm.writers.stream import ReaderGone

    engine = engines.find(settings.engine.name)
    info, profile = engine.describe(settings.engine)
    if settings.task.prompt is not None and not profile.counts_tokens:
        reporter.warn(f"engine {info.name} follows no instruction: --prompt changes nothing")
    context = Context(
        run=uuid.uuid4().hex[:12],
        task=settings.task.name,
        engine=info,
        profile=profile,
        settings=digest,
        naive_tokens=naive_tokens(profile.factor),
        keep_chunks=settings.task.keep_chunks,
    )
    answering = None
    reads, pages_by = engine, engines.page_reader(settings)
    if pages_by != settings.engine:  # one engine reads the lines, another answers
        reads = engines.find(pages_by.name)
        answering = Answering(context, lambda: engine(settings.engine))
        line_info, line_profile = reads.describe(pages_by)
        context = replace(context, engine=line_info, profile=line_profile)
    stop = _Stop(settings.run.max_runtime_s, reporter)
    try:
        with stop:
            report = run(
                documents,
                settings,
                context,
                sink,
                reporter,
                lambda: reads(pages_by),
                stop.asked,
                answering,
            )
            report.engine = asdict(info)
            sink.finish(clean=not report.interrupted)
    except ReaderGone:
        return ExitCode.OK
    finally:
        reporter.stop()
    if sink.used_other_digest:
        reporter.warn("pages that another engine finished before were kept; --no-resume reads them again")
    if report.beyond_range:
        none = f", {report.outside_range} have none of these pages" if report.outside_range else ""
        reporter.warn(f"--pages {settings.run.pages}: {report.beyond_range} documents have fewer pages{none}")
    if sink.replaced_texts:
        reporter.warn(
            f"{sink.replaced_texts} text files replaced those of other documents with the same path below "
            "their PATH argument; a folder of its own for each PATH keeps them apart"
        )
    reporter.finish(report)
    save_report(report, report_file)
    if report.interrupted:
        why = f" ({stop.reason})" if stop.reason else ""
        go_on = "; run the same command again to go on" if resumable else ""
        reporter.warn(f"stopped before the end{why}{go_on}")
        return ExitCode.INTERRUPTED
    return ExitCode.INCOMPLETE if report.incomplete else ExitCode.OK


class _Stop:
    """Ctrl-C, SIGTERM, SIGHUP and --max-runtime end a run in order; a second Ctrl-C ends it at once."""

    def __init__(self, max_runtime_s: float | None, reporter: Reporter) -> None:
        self._reporter = reporter
        self._told = False
        self._deadline = None if max_runtime_s is None else time.monotonic() + max_runtime_s
        self._before: dict[int, object] = {}
        self.reason: str | None = None

    def asked(self) -> bool:
        if self.reason is None and self._deadline is not None and time.monotonic() > self._deadline:
            self.reason = "--max-runtime is over"
        if self.reason is not None and not self._told:
            self._told = True  # here and not in the handler, which may interrupt another message
            self._reporter.note(f"{self.reason}: pages in work are finished; Ctrl-C ends at once")
        return self.reason is not None

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or a job that a script put back
                self._before[number] = signal.signal(number, self._handle)

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _handle(self, number: int, frame: types.FrameType | None) -> None:
        if self.reason is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.reason = f"got {signal.Signals(number).name}"


def _prompt(file: str | None) -> str | None:
    if file is None:
        return None
    text = options.text_file(file, "--prompt").strip()
    if not text:
        raise UsageError(f"--prompt {file} is empty")
    return text
