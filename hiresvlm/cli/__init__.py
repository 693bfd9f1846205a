"""The command line: flags -> Settings -> run -> exit code. No work is done here.

Nothing heavy is imported before a command needs it, so `--help` answers at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, NoReturn

import typer

from hiresvlm import __version__
from hiresvlm.errors import ExitCode, HiresvlmError

app = typer.Typer(
    name="hiresvlm",
    help="OCR of documents and images with a local model; JSONL out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hiresvlm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def _register() -> None:
    from hiresvlm.cli import bench, doctor, ocr, plan

    app.command("ocr")(ocr.ocr)
    app.command("plan")(plan.plan)
    app.command("bench")(bench.bench)
    app.command("doctor")(doctor.doctor)


_register()


def main() -> NoReturn:
    """Entry point of the `hiresvlm` program: every error a user can cause ends in one sentence."""
    from hiresvlm.console import Reporter

    try:
        app()
        code = int(ExitCode.OK)
    except HiresvlmError as error:
        Reporter().error(error.message, error.hint)
        code = int(error.exit_code)
    except KeyboardInterrupt:
        code = int(ExitCode.INTERRUPTED)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(ExitCode.UNEXPECTED) if end.code else 0
    except BrokenPipeError:  # `hiresvlm plan ... | head`
        code = int(ExitCode.OK)
    except Exception as error:
        if "-v" in sys.argv or "--verbose" in sys.argv:
            traceback.print_exc()
        Reporter().error(
            f"unexpected {type(error).__name__}", "run it again with -v and report what it prints"
        )
        code = int(ExitCode.UNEXPECTED)
    _flush()
    sys.exit(code)


def _flush() -> None:
    """Flush now, so that a closed pipe does not turn a good exit into a traceback at shutdown."""
    try:
        sys.stdout.flush()
    except (BrokenPipeError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
