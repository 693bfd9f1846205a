"""The command line: flags -> Settings -> run -> exit code. No work is done here.

Nothing heavy is imported before a command needs it, so `--help` answers at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Annotated, NoReturn

import typer
from typer.exceptions import TyperException

from hiresvlm import __version__
from hiresvlm.cli import options
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
        options.say(f"hiresvlm {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def _register() -> None:
    from hiresvlm.cli import ask, bench, doctor, ocr, plan, quantize

    app.command("ocr")(ocr.ocr)
    app.command("ask")(ask.ask)
    app.command("plan")(plan.plan)
    app.add_typer(bench.app, name="bench")
    app.command("quantize")(quantize.quantize)
    app.command("doctor")(doctor.doctor)


_register()


def main() -> NoReturn:
    """Entry point of the `hiresvlm` program: every error a user can cause ends in one sentence."""
    from hiresvlm.console import close_log, open_missing_descriptors

    open_missing_descriptors()
    code = _run()
    close_log()
    _flush()
    sys.exit(code)


def _run() -> int:
    """Run the command; its exit code."""
    from hiresvlm.console import Reporter
    from hiresvlm.writers.stream import ReaderGone

    verbose = "-v" in sys.argv or "--verbose" in sys.argv
    try:
        ended = app(prog_name="hiresvlm", standalone_mode=False)
        return ended if isinstance(ended, int) else ExitCode.OK
    except HiresvlmError as error:
        if verbose and error.__cause__ is not None:
            traceback.print_exc()
        Reporter().error(error.message, error.hint)
        return error.exit_code
    except TyperException as error:
        return _bad_command_line(error)
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else ExitCode.UNEXPECTED if end.code else ExitCode.OK
    except (ReaderGone, BrokenPipeError):  # `hiresvlm plan ... | head`
        return ExitCode.OK
    except Exception as error:
        if verbose:
            traceback.print_exc()
        hint = "run it again with -v and report what it prints"
        Reporter().error(f"unexpected {type(error).__name__}", None if verbose else hint)
        return ExitCode.UNEXPECTED


def _bad_command_line(error: TyperException) -> int:
    """Say what the parser did not like. Not its own way, which prints control characters of names."""
    from hiresvlm.console import Reporter

    context = getattr(error, "ctx", None)
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if not message:  # no arguments: the help was shown
        return ExitCode.USAGE
    Reporter().error(message, None if context is None else f"see {context.command_path} --help")
    return ExitCode.USAGE


def _flush() -> None:
    """Flush now, so that a closed pipe does not turn a good exit into a traceback or code 120."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        if stream is None:
            continue
        try:
            stream.flush()
        except (OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
