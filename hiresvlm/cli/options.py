"""Options that commands share, and the parsing of their values."""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hiresvlm.errors import NoInputError, UsageError

if TYPE_CHECKING:
    from hiresvlm.datatypes import Document
    from hiresvlm.settings import EngineSettings

Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH...", help="Files, folders, or quoted globs.", show_default=False),
]
Recursive = Annotated[bool, typer.Option("--recursive", "-r", help="Search folders below folders too.")]
FilesFrom = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Read more paths from FILE (one a line, or -print0); - is stdin."),
]
MinAge = Annotated[
    str | None, typer.Option(metavar="TIME", help="Skip files changed less than this ago (60s, 5m).")
]
Pages = Annotated[str | None, typer.Option(metavar="RANGES", help="Pages from 1: 1-3,7,10-end.")]
EngineName = Annotated[str, typer.Option("--engine", metavar="NAME", help="auto, light, vlm or echo.")]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME_OR_DIR",
        help="Preset, hub id or folder for --engine vlm (env HIRESVLM_MODEL).",
    ),
]
Quant = Annotated[
    str, typer.Option(metavar="int4|none", help="Weights of the model: 4 bits save memory, not time.")
]
Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda[:N]", help="Where the model runs.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Engine vlm: drop blank parts of images; fewer tokens, some risk.")
]
Slots = Annotated[str, typer.Option(metavar="N|auto", help="Requests in work at a time.")]
Strategy = Annotated[
    str, typer.Option(metavar="NAME", help="auto, whole, fixed, naive, anyres, overlap, adaptive or seam.")
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens-per-page", min=16, help="Budget of visual tokens for one page."),
]
PasswordFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="First line: password of PDFs (or env HIRESVLM_PASSWORD)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="More detail; tracebacks of errors.")]

STRATEGIES = ("auto", "whole", "fixed", "naive", "anyres", "overlap", "adaptive", "seam")
"""Names of `chunking.STRATEGIES` (a test compares them), whose import takes NumPy."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str, option: str) -> float:
    """`90`, `60s`, `1h30m` -> seconds. Raises `UsageError`."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise UsageError(f"{option} {text!r} is not a time", "write it as 90s, 15m, 6h or 1h30m")
    return sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)


def no_empty(values: Mapping[str, str | Sequence[str] | None]) -> None:
    """Refuse empty names: a variable of a script that is not set. Raises `UsageError`."""
    for option, value in values.items():
        if value == "" or (isinstance(value, list) and "" in value):
            raise UsageError(f"{option} is empty", "is a variable of your script not set?")


def choice(value: str, allowed: Sequence[str], option: str) -> str:
    """The value, when it is one of the allowed ones. Raises `UsageError` with the nearest one."""
    if value in allowed:
        return value
    near = difflib.get_close_matches(value, allowed, n=1)
    hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(allowed)}"
    raise UsageError(f"{option} {value!r} is not known", hint)


def engine(
    name: str, model: str | None, quant: str, device: str, slots: str = "auto", *, prune: bool = False
) -> EngineSettings:
    """Settings of the engine that the options name. A model means engine `vlm`. Raises `UsageError`.

    HIRESVLM_MODEL is a model like one of `--model`, unless the command line names another engine.
    """
    from hiresvlm.engines import ENGINES
    from hiresvlm.settings import EngineSettings

    choice(name, ("auto", *ENGINES), "--engine")
    choice(quant, ("int4", "none"), "--quant")
    if model == "":
        raise UsageError("--model is empty", "is a variable of your script not set?")
    if model is None and name in ("auto", "vlm"):
        model = os.environ.get("HIRESVLM_MODEL") or None
    if model is not None and name == "auto":
        name = "vlm"
    if model is not None and name != "vlm":
        raise UsageError(f"--model goes with --engine vlm, not with {name}")
    if prune and name not in ("auto", "vlm"):
        raise UsageError(f"--prune goes with --engine vlm, not with {name}")
    return EngineSettings(
        name=name, model=model, quant=quant, device=device, slots=_slots(slots), prune=prune
    )


def _slots(text: str) -> int | None:
    if text == "auto":
        return None
    if not re.fullmatch("[0-9]{1,6}", text) or int(text) < 1:
        raise UsageError(f"--slots {text!r} is neither a number from 1 nor auto")
    return int(text)


def password(file: str | None) -> str | None:
    """The password from a file (first line) or the environment.

    Never from the command line, where `ps` shows it.
    """
    if file is None:
        return os.environ.get("HIRESVLM_PASSWORD") or None
    return text_file(file, "--password-file").partition("\n")[0].rstrip("\r") or None


def text_file(name: str, option: str) -> str:
    """The text of a file that an option names. Raises `UsageError`, without quoting the file."""
    try:
        with open(name, encoding="utf-8", newline="") as handle:
            return handle.read().removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise UsageError(f"{option} {name} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{option} {name} cannot be read: {_reason(error)}") from error


def named_paths(paths: list[str] | None, files_from: str | None) -> list[str]:
    """PATH arguments and those of a list. Raises `UsageError` when there is neither."""
    from hiresvlm.documents import read_list

    named = list(paths or [])
    if files_from is not None:
        named += read_list(_list_text(files_from))
    elif not named:
        raise UsageError("no PATH was given", "name files or folders, such as scans/")
    return named


def documents(
    named: Sequence[str], *, recursive: bool, min_age_s: float, exclude: Sequence[str] = ()
) -> list[Document]:
    """All documents of the paths. Raises `NoInputError` for none."""
    from hiresvlm.datatypes import FailureKind
    from hiresvlm.documents import expand

    found = expand(named, recursive=recursive, min_age_s=min_age_s, exclude=exclude)
    missing = [d for d in found if d.failure is not None and d.failure.kind is FailureKind.NOT_FOUND]
    if missing and len(missing) == len(found):
        hint = "quote a glob, or check the spelling"
        if missing[0].path == "-":
            hint = "a list of paths is read with --files-from -"
        raise NoInputError(f"no such file: {missing[0].path}", hint)
    if not found:
        raise NoInputError(
            "no PDF or image was found"
            + ("" if recursive else " (folders below are searched with -r)")
            + (" that is older than --min-age" if min_age_s else ""),
            "read are PDF, PNG, JPEG, TIFF, WebP, BMP and GIF",
        )
    return found


def unsearched(named: Sequence[str]) -> int:
    """Folders below the named ones, which are searched with -r only."""
    count = 0
    for path in named:
        with contextlib.suppress(OSError, ValueError), os.scandir(path) as entries:
            count += sum(entry.is_dir(follow_symlinks=False) for entry in entries)
    return count


def say(text: str) -> None:
    """Print a line to stdout: UTF-8 in any locale. Raises `ReaderGone` when nobody reads it any more."""
    from hiresvlm.writers.stream import write_all

    if sys.stdout is not None:  # `>&-`
        sys.stdout.flush()
        write_all(sys.stdout.fileno(), f"{text}\n".encode("utf-8", "backslashreplace"), "stdout")


def say_json(value: Any) -> None:
    """Print a JSON object on one line, escaped as records are."""
    from hiresvlm.writers.record import dumps

    say(dumps(value).decode("utf-8").rstrip("\n"))


def _list_text(name: str) -> str:
    if name == "-":
        if sys.stdin is None:  # `<&-`
            raise UsageError("--files-from - reads stdin, which is closed")
        return os.fsdecode(sys.stdin.buffer.read())
    try:
        with open(name, "rb") as file:
            return os.fsdecode(file.read())
    except (OSError, ValueError) as error:
        raise UsageError(f"--files-from {name} cannot be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or "not a valid file name"
