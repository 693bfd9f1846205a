"""`hiresvlm plan`: how pages would be cut and what they would cost. Loads no model."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from hiresvlm.cli import options
from hiresvlm.errors import ExitCode


def plan(
    paths: options.Paths = None,
    files_from: options.FilesFrom = None,
    recursive: options.Recursive = False,
    min_age: options.MinAge = None,
    pages: options.Pages = None,
    engine: options.EngineName = "auto",
    strategy: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only these strategies (repeatable).")
    ] = None,
    max_tokens_per_page: options.MaxTokens = None,
    save: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write a picture of the chunks of each page.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per page.")] = False,
    password_file: options.PasswordFile = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Show page size, text height, chunks and visual tokens per strategy against naive tiling."""
    from hiresvlm import engines, planning
    from hiresvlm import settings as s
    from hiresvlm.chunking import STRATEGIES
    from hiresvlm.console import Reporter, visible

    chosen = strategy or list(STRATEGIES)
    for name in chosen:
        options.choice(name, tuple(STRATEGIES), "--strategy")
    settings, _ = engines.resolve(
        s.Settings(
            page=s.PageSettings(password=options.password(password_file)),
            chunk=s.ChunkSettings(max_tokens_per_page=max_tokens_per_page),
            engine=s.EngineSettings(name=engine),
            run=s.RunSettings(pages=pages),
        )
    )
    reporter = Reporter(quiet=quiet, verbose=verbose)
    documents = options.documents(
        paths,
        files_from=files_from,
        recursive=recursive,
        min_age=min_age,
        exclude=[] if save is None else [save],
    )
    failed = 0
    for page in planning.plan_documents(documents, settings, chosen, save):
        if page.failure is not None:
            failed += 1
            reporter.error(f"{page.source} page {page.page or '-'}: {page.failure}")
        elif as_json:
            typer.echo(json.dumps(page.as_dict(), ensure_ascii=False))
        else:
            typer.echo("\n".join(visible(line) for line in page.lines()))
    if failed:
        raise typer.Exit(ExitCode.INCOMPLETE)
