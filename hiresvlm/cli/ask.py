"""`hiresvlm ask`: answer questions about documents."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import unicodedata
from typing import Annotated

import typer

from hiresvlm.cli import options
from hiresvlm.cli.ocr import read
from hiresvlm.cli.output import STDOUT, check_files, check_report, log_path, open_sink
from hiresvlm.errors import NoInputError, OutputError, UsageError

MAX_QUESTION = 20_000
"""Characters of one question; a longer one is a file given by mistake."""
MAX_QUESTIONS = 1000


def ask(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH... QUESTION", help="Files, folders, or quoted globs; the question last (or -Q)."
        ),
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option("--question", "-Q", metavar="TEXT", help="A question; may be given several times."),
    ] = None,
    question_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Questions, one a line; - is stdin.")
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="JSON Schema: one object for each document instead of answers."),
    ] = None,
    top_pages: Annotated[
        int, typer.Option(min=1, help="Read at most so many pages in detail, the most relevant ones.")
    ] = 8,
    synonyms: Annotated[
        str | None,
        typer.Option(metavar="FILE", help='JSON: {"field": ["wording", ...]}, added to the built-in names.'),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="JSONL file; a rerun resumes.")
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
    slots: Annotated[str, typer.Option(help="Requests in work at a time, or auto.")] = "auto",
    text_layer: Annotated[
        str, typer.Option(help="auto: take a sound PDF text layer instead of reading; or ignore.")
    ] = "auto",
    password_file: options.PasswordFile = None,
    retry_errors: Annotated[
        bool, typer.Option("--retry-errors", help="Redo failed and partial answers.")
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
    """Answer QUESTION about each document of PATH..., with page, box and text of the evidence.

    One JSONL record for each document and question; the answer is null where the document does not say.
    Exit codes are those of ocr: 0 all answered or known to be absent, 3 some pages could not be read.
    """
    from hiresvlm import engines
    from hiresvlm import settings as s
    from hiresvlm.console import Reporter, guard_stdout
    from hiresvlm.documents import parse_pages

    options.no_empty({"-o": output, "--report": report, "--log-file": log_file})
    options.choice(strategy, options.STRATEGIES, "--strategy")
    options.choice(text_layer, ("ignore", "auto"), "--text-layer")
    options.choice(engine, ("auto", *engines.ENGINES), "--engine")
    if question_file == "-" and files_from == "-":
        raise UsageError("--question-file and --files-from cannot both read stdin")
    paths, questions = _questions(arguments or [], question, question_file, schema)
    options.no_empty({"PATH": paths})
    if pages is not None:
        parse_pages(pages)
    min_age_s = 0.0 if min_age is None else options.duration(min_age, "--min-age")
    settings, reason = engines.resolve(
        s.Settings(
            page=s.PageSettings(text_layer=text_layer, password=options.password(password_file)),
            chunk=s.ChunkSettings(strategy=strategy, max_tokens_per_page=max_tokens_per_page),
            engine=options.engine(engine, model, quant, device, slots),
            task=s.TaskSettings(
                name="ask",
                questions=questions,
                schema=None if schema is None else _schema(schema),
                top_pages=top_pages,
                wordings=() if synonyms is None else _wordings(synonyms),
            ),
            run=s.RunSettings(
                pages=pages,
                retry_errors=retry_errors,
                max_runtime_s=None if max_runtime is None else options.duration(max_runtime, "--max-runtime"),
                workers=workers,
            ),
        )
    )
    if output in STDOUT:
        output = None
    named = options.named_paths(paths, files_from)
    extra = [name for name in (question_file, schema, synonyms) if name is not None and name != "-"]
    check_files({"--output": output, "--report": report, "--log-file": log_file}, [*named, *extra])
    check_report(report)
    if output is None and sys.stdout is None:
        raise OutputError("cannot write stdout: it is closed", "write to a file with -o")
    stdout = guard_stdout()
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
    queries = [engines.digests(settings, reason is not None, query) for query in settings.task.queries]
    with contextlib.closing(
        open_sink(queries[0], settings, output, None if output else stdout, None, "jsonl", resume, queries)
    ) as sink:
        if reason is not None:
            reporter.note(f"engine: {settings.engine.name} ({reason})")
        code = read(documents, settings, reporter, sink, queries[0][0], report, resumable=output is not None)
    raise typer.Exit(code)


def _questions(
    arguments: list[str], given: list[str] | None, file: str | None, schema: str | None
) -> tuple[list[str], tuple[str, ...]]:
    """Paths and questions. Raises `UsageError` where one is missing or the last path is taken for one."""
    if schema is not None:
        if given or file is not None:
            raise UsageError("--schema asks for its own fields: no -Q or --question-file with it")
        return arguments, ()
    if given or file is not None:
        found = list(given or [])
        if file is not None:
            found += _from_file(file)
        return arguments, _checked(found)
    if not arguments:
        raise UsageError("no PATH and no question were given", 'as in: hiresvlm ask scan.png "total amount?"')
    last = arguments[-1]
    if last and "\0" not in last and os.path.lexists(last):
        raise UsageError(
            f"the last argument must be the question, but {last} is a file or folder",
            "put the question last in quotes, or give it with -Q",
        )
    return arguments[:-1], _checked([last])


def _checked(questions: list[str]) -> tuple[str, ...]:
    """The questions, each once. Raises `UsageError` for one that is empty or no question."""
    found = []
    for text in questions:
        clean = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
        clean = "".join(c for c in clean if unicodedata.category(c) != "Cc")
        if not any(c.isalnum() for c in clean):
            raise UsageError("a question is empty", "is a variable of your script not set?")
        if len(clean) > MAX_QUESTION:
            raise UsageError(
                f"a question has {len(clean):,} characters; the limit is {MAX_QUESTION:,}",
                "many questions go into a file, one a line: --question-file",
            )
        found.append(clean)
    found = list(dict.fromkeys(found))
    if len(found) > MAX_QUESTIONS:
        raise UsageError(f"{len(found):,} questions; the limit is {MAX_QUESTIONS:,}")
    return tuple(found)


def _from_file(name: str) -> list[str]:
    if name == "-":
        if sys.stdin is None:
            raise UsageError("--question-file - reads stdin, which is closed")
        try:
            text = sys.stdin.buffer.read().decode("utf-8").removeprefix("\ufeff")
        except UnicodeDecodeError:
            raise UsageError("--question-file - is not UTF-8 text") from None
    else:
        text = options.text_file(name, "--question-file")
    lines = [line.strip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    found = [line for line in lines if line]
    if not found:
        raise UsageError(f"--question-file {name} has no question in it")
    return found


def _schema(name: str) -> str:
    """The schema in one spelling, so that another layout of the file is no other question."""
    from hiresvlm.ask import Schema, SchemaError

    text = options.text_file(name, "--schema")
    try:
        Schema(text)
    except SchemaError as error:
        raise UsageError(f"--schema {name} cannot be used: {error}") from error
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))


def _wordings(name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    from hiresvlm.ask.fields import parse

    try:
        return tuple(parse(options.text_file(name, "--synonyms")).items())
    except ValueError as error:
        raise UsageError(
            f"--synonyms {name} cannot be used: {error}", 'as in {"total": ["sum to pay"]}'
        ) from error
