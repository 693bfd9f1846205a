"""Options that commands share, and the parsing of their values."""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from hiresvlm.errors import NoInputError, UsageError

if TYPE_CHECKING:
    from hiresvlm.datatypes import Document

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH...", help="Files, folders, or quoted globs.", show_default=False),
]
Recursive = Annotated[bool, typer.Option("--recursive", "-r", help="Search folders below folders too.")]
FilesFrom = Annotated[
    str | None, typer.Option(metavar="FILE", help="Read more paths from FILE (one a line), or - for stdin.")
]
MinAge = Annotated[
    str | None, typer.Option(metavar="TIME", help="Skip files changed less than this ago (60s, 5m).")
]
Pages = Annotated[str | None, typer.Option(metavar="RANGES", help="Pages from 1: 1-3,7,10-end.")]
EngineName = Annotated[str, typer.Option("--engine", metavar="NAME", help="auto, light or echo.")]
Strategy = Annotated[str, typer.Option(metavar="NAME", help="auto, whole, fixed or overlap.")]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens-per-page", min=16, help="Budget of visual tokens for one page."),
]
PasswordFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Password of encrypted PDFs (or env HIRESVLM_PASSWORD)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More detail; tracebacks of errors.")]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str, option: str) -> float:
    """`90`, `60s`, `1h30m` -> seconds. Raises `UsageError`."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise UsageError(f"{option} {text!r} is not a time", "write it as 90s, 15m, 6h or 1h30m")
    return sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)


def choice(value: str, allowed: Sequence[str], option: str) -> str:
    """The value, when it is one of the allowed ones. Raises `UsageError` with the nearest one."""
    if value in allowed:
        return value
    near = difflib.get_close_matches(value, allowed, n=1)
    hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(allowed)}"
    raise UsageError(f"{option} {value!r} is not known", hint)


def password(file: str | None) -> str | None:
    """The password from a file (first line) or the environment.

    Never from the command line, where `ps` shows it.
    """
    if file is None:
        return os.environ.get("HIRESVLM_PASSWORD") or None
    try:
        with open(file, encoding="utf-8") as handle:
            return handle.readline().rstrip("\r\n") or None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--password-file {file} cannot be read: {error}") from error


def documents(
    paths: list[str] | None,
    *,
    files_from: str | None,
    recursive: bool,
    min_age: str | None,
    exclude: Sequence[str],
) -> list[Document]:
    """All documents that the command line names. Raises `UsageError`, or `NoInputError` for none."""
    from hiresvlm.datatypes import FailureKind
    from hiresvlm.documents import expand, read_list

    named = list(paths or [])
    if files_from is not None:
        named += read_list(_list_text(files_from))
    if not named and files_from is None:
        raise UsageError("no PATH was given", "name files or folders: hiresvlm ocr scans/")
    age = duration(min_age, "--min-age") if min_age is not None else 0.0
    found = expand(named, recursive=recursive, min_age_s=age, exclude=exclude)
    missing = [d for d in found if d.failure is not None and d.failure.kind is FailureKind.NOT_FOUND]
    if len(missing) == len(found):
        if missing:
            raise NoInputError(f"no such file: {missing[0].path}", "quote a glob, or check the spelling")
        raise NoInputError(
            "no PDF or image was found" + ("" if recursive else " (folders below are searched with -r)"),
            "read are PDF, PNG, JPEG, TIFF, WebP, BMP and GIF",
        )
    return found


def _list_text(name: str) -> str:
    if name == "-":
        return os.fsdecode(sys.stdin.buffer.read())
    try:
        with open(name, "rb") as file:
            return os.fsdecode(file.read())
    except OSError as error:
        raise UsageError(f"--files-from {name} cannot be read: {error.strerror}") from error
