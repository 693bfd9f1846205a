"""PATH arguments -> Documents. Nothing is opened here; a file that cannot be used carries a Failure."""

from __future__ import annotations

import glob
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from hiresvlm.datatypes import Document, Failure, FailureKind, Step
from hiresvlm.errors import UsageError

SUFFIXES = frozenset((".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif"))
"""What a folder is searched for. A file named by the user is tried whatever its suffix."""

OVERLAY_SUFFIX = ".plan.png"
"""Overlays of `hiresvlm plan --save` may land in an input folder and are never input."""

_APPLE_DOUBLE = "._"  # macOS writes `._x.pdf` beside x.pdf on foreign disks; it is not a PDF


def expand(
    paths: Sequence[str],
    *,
    recursive: bool = False,
    min_age_s: float = 0.0,
    exclude: Iterable[str] = (),
) -> list[Document]:
    """All documents of the PATH arguments: arguments in the given order, folders in natural order.

    A path is an existing name (taken literally, `[1]` and all), a folder, or a glob. What does not
    exist becomes a document with a `not_found` failure. A file that is reached twice is taken once.
    `exclude` holds files and folders of our own output; files younger than `min_age_s` are left out.
    """
    excluded = {os.path.realpath(path) for path in exclude}
    newest = time.time() - min_age_s if min_age_s > 0 else None
    documents: list[Document] = []
    seen: set[str] = set()
    keys: set[str] = set()
    for argument in paths:
        for path, below in _files(argument, recursive):
            absolute = os.path.abspath(path)
            if absolute in seen or _is_under(absolute, excluded):
                continue
            seen.add(absolute)
            document = _look(Document(len(documents), path, path, _unique(below, path, keys)))
            if newest is not None and document.mtime_ns / 1e9 > newest:
                continue
            keys.add(document.key)
            documents.append(document)
    return documents


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key in which page2 comes before page10; digits of any length, case ignored."""
    parts = re.split(r"([0-9]+)", name)
    return [(1, int(part), part) if part.isdigit() else (0, 0, part.casefold()) for part in parts]


def read_list(text: str) -> list[str]:
    """Paths of a `--files-from` list, one a line; empty lines are skipped, nothing else is special."""
    return [line for line in text.splitlines() if line.strip()]


def parse_pages(spec: str) -> list[tuple[int, int | None]]:
    """`1-3,7,10-end` -> [(1, 3), (7, 7), (10, None)]. Raises `UsageError`."""
    ranges: list[tuple[int, int | None]] = []
    for part in spec.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})\s*(?:-\s*([0-9]{1,9}|end)\s*)?", part)
        first = int(match[1]) if match else 0
        if match is None or first < 1:
            raise UsageError(f"--pages {spec!r} is not a page range", "pages count from 1: 1-3,7,10-end")
        last = first if match[2] is None else None if match[2] == "end" else int(match[2])
        if last is not None and last < first:
            raise UsageError(f"--pages {spec!r}: the range {part.strip()!r} runs backwards")
        ranges.append((first, last))
    return ranges


def select_pages(ranges: list[tuple[int, int | None]] | None, pages: int) -> tuple[list[int], bool]:
    """Page numbers (1-based, ascending) of a document, and whether a range asks for more than it has."""
    if ranges is None:
        return list(range(1, pages + 1)), False
    chosen: set[int] = set()
    for first, last in ranges:
        chosen.update(range(first, min(pages if last is None else last, pages) + 1))
    beyond = any(first > pages or (last is not None and last > pages) for first, last in ranges)
    return sorted(chosen), beyond


# ------------------------------------------------------------------------------------------ private


def _files(argument: str, recursive: bool) -> Iterator[tuple[str, str]]:
    """(path, path below the argument) of one PATH argument."""
    if os.path.isdir(argument):
        for below in _walk(argument, recursive):
            yield os.path.join(argument, below), below
    elif os.path.lexists(argument) or not glob.has_magic(argument):
        yield argument, os.path.basename(argument.rstrip("/")) or argument
    else:
        found = sorted(glob.glob(argument, recursive=True, include_hidden=False), key=natural)
        root = _glob_root(argument)
        if not found:
            yield argument, os.path.relpath(argument, root or ".")
        for path in found:
            if os.path.isdir(path):
                for below in _walk(path, recursive):
                    yield os.path.join(path, below), os.path.relpath(os.path.join(path, below), root or ".")
            else:
                yield path, os.path.relpath(path, root or ".")


def _glob_root(pattern: str) -> str:
    """The folder above the first wildcard."""
    parts: list[str] = []
    for part in PurePath(pattern).parts[:-1]:
        if glob.has_magic(part):
            break
        parts.append(part)
    return os.path.join(*parts) if parts else ""


def _walk(folder: str, recursive: bool) -> Iterator[str]:
    """Supported files of a folder, relative to it, in natural order: files first, then sub-folders."""
    stack = [""]
    visited: set[tuple[int, int]] = set()
    while stack:
        below = stack.pop()
        here = os.path.join(folder, below) if below else folder
        try:
            status = os.stat(here)
            if (status.st_dev, status.st_ino) in visited:  # a symbolic link that leads back up
                continue
            visited.add((status.st_dev, status.st_ino))
            with os.scandir(here) as scan:
                entries = sorted(scan, key=lambda entry: natural(entry.name))
        except OSError:
            # Said by a record of its own: a folder that cannot be listed may hold documents.
            yield below or "."
            continue
        folders = []
        for entry in entries:
            name = os.path.join(below, entry.name)
            if _is_dir(entry):
                folders.append(name)
            elif _is_input(entry.name):
                yield name
        if recursive:
            stack.extend(reversed(folders))


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _is_input(name: str) -> bool:
    lower = name.lower()
    return (
        os.path.splitext(lower)[1] in SUFFIXES
        and not lower.endswith(OVERLAY_SUFFIX)
        and not name.startswith(_APPLE_DOUBLE)
    )


def _is_under(path: str, excluded: set[str]) -> bool:
    if not excluded:
        return False
    real = os.path.realpath(path)
    return any(real == folder or real.startswith(folder.rstrip("/") + "/") for folder in excluded)


def _unique(below: str, path: str, keys: set[str]) -> str:
    """The key of a file: its path below the argument, with folders above added while that is taken.

    Only the later of two files changes its key, so a name that appears in a second folder does not
    make the first one be read again.
    """
    above = [part for part in PurePath(os.path.abspath(path)).parts[1:] if part not in ("..", ".")]
    key = os.path.normpath(below)
    used = len(PurePath(key).parts)
    while key in keys and used < len(above):
        used += 1
        key = os.path.join(*above[-used:])
    return key


def _look(document: Document) -> Document:
    """Add size and time, or the reason why the file cannot be read."""
    try:
        status = os.stat(document.path)
    except FileNotFoundError:
        return _failed(document, FailureKind.NOT_FOUND, "no such file, and no file matches it as a pattern")
    except OSError as error:
        return _failed(document, FailureKind.UNREADABLE, os.strerror(error.errno or 0))
    except ValueError:  # an embedded NUL byte
        return _failed(document, FailureKind.NOT_FOUND, "not a valid file name")
    if stat.S_ISDIR(status.st_mode):
        return _failed(document, FailureKind.UNREADABLE, "the folder cannot be listed")
    if not stat.S_ISREG(status.st_mode):
        return _failed(document, FailureKind.UNREADABLE, "not a regular file")
    return replace(document, size=status.st_size, mtime_ns=status.st_mtime_ns)


def _failed(document: Document, kind: FailureKind, message: str) -> Document:
    return replace(document, failure=Failure(Step.DOCUMENTS, kind, message, retryable=True))
