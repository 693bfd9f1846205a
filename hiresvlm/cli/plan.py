"""`hiresvlm plan`: how pages would be cut and what they would cost. Loads no model."""

from __future__ import annotations

import contextlib
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
    model: options.Model = None,
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
    from hiresvlm import engines
    from hiresvlm import settings as s
    from hiresvlm.console import Reporter, visible
    from hiresvlm.documents import parse_pages

    chosen = list(dict.fromkeys(strategy or options.STRATEGIES))
    for name in chosen:
        options.choice(name, options.STRATEGIES, "--strategy")
    if pages is not None:
        parse_pages(pages)
    min_age_s = 0.0 if min_age is None else options.duration(min_age, "--min-age")
    settings, _ = engines.resolve(
        s.Settings(
            page=s.PageSettings(password=options.password(password_file)),
            chunk=s.ChunkSettings(max_tokens_per_page=max_tokens_per_page),
            engine=options.engine(engine, model, "int4", "cpu" if model else "auto"),
            run=s.RunSettings(pages=pages),
        )
    )
    reporter = Reporter(quiet=quiet, verbose=verbose)
    documents = options.documents(
        options.named_paths(paths, files_from), recursive=recursive, min_age_s=min_age_s
    )
    from hiresvlm import planning

    failed = 0
    with contextlib.closing(planning.plan_documents(documents, settings, chosen, save)) as plans:
        for page in plans:
            if page.caution is not None:
                reporter.warn(f"{page.source}: {page.caution}")
            elif page.failure is not None:
                failed += 1
                where = "" if page.page is None else f" page {page.page}"
                reporter.error(f"{page.source}{where}: {page.failure}")
            elif as_json:
                options.say_json(page.as_dict())
            else:
                options.say("\n".join(visible(line) for line in page.lines()))
    if failed:
        raise typer.Exit(ExitCode.INCOMPLETE)
