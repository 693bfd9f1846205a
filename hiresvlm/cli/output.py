"""Where a command writes: checked before the run starts, so that no path fails after hours."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from hiresvlm.errors import OutputError, UsageError

if TYPE_CHECKING:
    from hiresvlm.report import Report
    from hiresvlm.run import Sink
    from hiresvlm.settings import Settings

STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
"""Names of stdout. They are taken as such, because fd 1 itself is given to stderr during a run."""


def check_files(files: Mapping[str, str | None], named: Sequence[str]) -> None:
    """Refuse output files (option -> path) that are the same or that are input. Raises `UsageError`."""
    from hiresvlm.documents import SUFFIXES

    inputs = {os.path.realpath(path) for path in named if "\0" not in path and not os.path.isdir(path)}
    taken: dict[str, str] = {}
    for option, path in files.items():
        if path is None or _is_device(path):
            continue
        real = os.path.realpath(path)
        if real in taken:
            raise UsageError(f"{taken[real]} and {option} are the same file, {path}", "give each its own")
        taken[real] = option
        if real in inputs:
            raise UsageError(f"{option} {path} is also an input; it would be overwritten")
        if option != "--output" and os.path.splitext(real)[1].lower() in SUFFIXES and os.path.exists(real):
            # The journal refuses foreign files itself; these two would write over them.
            raise UsageError(f"{option} {path} exists and looks like a document", "choose another name")


def check_report(path: str | None) -> None:
    """Make sure that a report can be written in the end. Raises `OutputError`."""
    if path is None or _is_device(path):
        return
    try:
        if os.path.isdir(path):
            raise IsADirectoryError(21, "it is a folder")
        with tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))):
            pass
    except OSError as error:
        raise OutputError(f"cannot write --report {path}: {error.strerror}") from error


def save_report(report: Report, path: str | None) -> None:
    """Write the summary for machines, whole or not at all. Raises `OutputError`."""
    if path is None:
        return
    text = json.dumps(report.as_dict(), ensure_ascii=False, indent=1) + "\n"
    data = text.encode("utf-8", "backslashreplace")
    # Replacing a link would cut it, replacing /dev/null would break the machine.
    target = os.path.realpath(path)
    temporary = target if _is_device(path) else f"{os.path.dirname(target)}/.hiresvlm.{os.getpid()}.tmp"
    try:
        with open(temporary, "wb") as file:
            file.write(data)
        if temporary != target:
            os.replace(temporary, target)
    except OSError as error:
        raise OutputError(f"cannot write --report {path}: {error.strerror}") from error
    finally:
        if temporary != target:
            with suppress(OSError):
                os.unlink(temporary)


def log_path(path: str | None) -> str | None:
    """The path of a log file that can be written. Raises `OutputError`."""
    if path is not None:
        try:
            with open(path, "a", encoding="utf-8"):
                return path
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a valid file name"
            raise OutputError(f"cannot write --log-file {path}: {reason}") from error
    return None


def open_sink(
    digests: list[str],
    settings: Settings,
    output: str | None,
    stdout: int | None,
    output_dir: str | None,
    format: str,
    resume: bool,
    queries: Sequence[Sequence[str]] = (),
) -> Sink:
    """The journal, or a plain stream for stdout, pipes and devices.

    Raises `OutputError` or `LockedError`.
    """
    from hiresvlm.run import Sink
    from hiresvlm.writers import Journal, Stream, TextFiles
    from hiresvlm.writers.stream import output_error

    if stdout is not None:
        return Sink(digests, stream=Stream(stdout), queries=queries)
    assert output is not None
    if _is_device(output):
        try:
            return Sink(digests, stream=Stream(os.open(output, os.O_WRONLY), output), queries=queries)
        except OSError as error:
            raise output_error(output, error) from error
    texts = None if output_dir is None else TextFiles(output_dir, format)
    journal = Journal(output, resume=resume)
    retry = settings.run.retry_errors
    return Sink(digests, journal=journal, texts=texts, retry_errors=retry, queries=queries)


def is_stream(output: str) -> bool:
    """Whether -o names stdout, a pipe or a device, from which nothing can be read back."""
    return output in STDOUT or _is_device(output)


def _is_device(path: str) -> bool:
    """Whether a path is there and is neither file nor folder: a pipe, a device, a socket."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
