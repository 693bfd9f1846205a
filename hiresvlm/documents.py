"""PATH arguments -> Documents. Nothing is opened here; a file that cannot be used carries a Failure."""

from __future__ import annotations

import fnmatch
import glob
import itertools
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
    `exclude` holds files and folders of our own output; files changed less than `min_age_s` ago are
    left out. A file dated further ahead than that has a wrong clock behind it and is taken.
    """
    excluded = {_real(path) for path in exclude}
    now = time.time()
    folders = _Folders()
    documents: list[Document] = []
    seen: set[str] = set()
    keys: set[str] = set()
    for argument in paths:
        root, files = _files(argument, recursive)
        # A folder that the user names is input, even when output goes into it too.
        ours = {path for path in excluded if not (os.path.isdir(path) and _is_under(_real(root), {path}))}
        for path, below in files:
            real = folders.real(path)
            if real in seen or _is_under(real, ours):
                continue
            document = _look(Document(len(documents), path, path, _unique(below, path, keys)))
            if document.failure is None and abs(now - document.mtime_ns / 1e9) < min_age_s:
                continue
            seen.add(real)
            keys.add(document.key)
            documents.append(document)
    return documents


def natural(name: str) -> list[tuple[int, int, str]]:
    """Sort key in which page2 comes before page10; digits of any length, case ignored.

    Names that differ only in case or in leading zeros still have an order, so that every run has the
    same one.
    """
    key = []
    for number, part in enumerate(re.split(r"([0-9]+)", name)):
        if number % 2:
            digits = part.lstrip("0")
            key.append((1, len(digits), digits))
        else:
            key.append((0, 0, part.casefold()))
    return [*key, (-1, 0, name)]


def read_list(text: str) -> list[str]:
    """Paths of a `--files-from` list, one a line; empty lines are skipped, nothing else is special.

    Lines end with LF or CRLF and with nothing else: a name may hold any other character. The byte
    order mark that Windows editors write first is no part of a name. A list with NUL bytes is one of
    `find -print0`.
    """
    if "\0" in text:
        return [name for name in text.split("\0") if name]
    lines = (line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n"))
    return [line for line in lines if line.strip()]


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


def _files(argument: str, recursive: bool) -> tuple[str, Iterator[tuple[str, str]]]:
    """The folder that a PATH argument searches, and (path, path below the argument) of its files."""
    if os.path.isdir(argument):
        return argument, _in_folder(argument, argument, recursive)
    if os.path.lexists(argument) or not glob.has_magic(argument):
        below = os.path.basename(argument.rstrip("/")) or argument
        return argument, iter([(argument, below)])
    root, parts = _glob_root(argument)
    return root, _in_glob(argument, root, parts, recursive)


def _in_folder(folder: str, root: str, recursive: bool) -> Iterator[tuple[str, str]]:
    above = os.path.relpath(folder, root)
    for below in _walk(folder, recursive):
        if below:
            yield os.path.join(folder, below), os.path.join(above, below)
        else:
            yield folder, os.path.basename(_real(folder))


def _in_glob(pattern: str, root: str, parts: list[str], recursive: bool) -> Iterator[tuple[str, str]]:
    """Matches of a glob in natural order. With a wildcard for its suffix it finds supported files only."""
    suffix = os.path.splitext(parts[-1])[1]
    any_suffix = bool(suffix) and not glob.has_magic(suffix)
    found = sorted(_matches(root, parts), key=natural)
    if not found:
        yield pattern, os.path.join(*parts)
    for path in found:
        name = os.path.basename(path)
        if os.path.isdir(path):
            yield from _in_folder(path, root or ".", recursive)
        elif _is_input(name) or (any_suffix and not _is_ours(name)):
            yield path, os.path.relpath(path, root or ".")


def _glob_root(pattern: str) -> tuple[str, list[str]]:
    """The folder above the first wildcard, and the parts below it. A part that exists is no wildcard."""
    root, parts = "", list(PurePath(pattern).parts)
    while len(parts) > 1:
        here = os.path.join(root, parts[0])
        if glob.has_magic(parts[0]) and not os.path.lexists(here):
            break
        root = here
        parts.pop(0)
    return root, parts


def _matches(base: str, parts: Sequence[str]) -> Iterator[str]:
    """Paths that match the parts of a glob below a folder. Hidden names only where the glob has the dot.

    `glob.glob` does not do: with `**` it follows a link that leads back up forty levels deep.
    """
    if not parts:
        yield base
        return
    head, rest = parts[0], parts[1:]
    if head == "**":
        for below, names in _folders(base):
            here = os.path.join(base, below)
            yield from _matches(here, rest) if rest else (os.path.join(here, name) for name in names)
        return
    if not glob.has_magic(head) or os.path.lexists(os.path.join(base, head)):
        if os.path.lexists(path := os.path.join(base, head)):
            yield from _matches(path, rest)
        return
    matches = re.compile(fnmatch.translate(head)).match
    try:
        with os.scandir(base or ".") as scan:
            entries = [entry for entry in scan if matches(entry.name) and (not rest or _is_dir(entry))]
    except OSError:  # not a folder, or one that cannot be listed: nothing in it matches
        return
    for entry in entries:
        if not entry.name.startswith(".") or head.startswith("."):
            yield from _matches(os.path.join(base, entry.name), rest)


def _folders(base: str) -> Iterator[tuple[str, list[str]]]:
    """Folders below one, itself first as "", none of them hidden, with the names of their files."""
    for below, entries in _scan(base, recursive=True):
        if not any(part.startswith(".") for part in below.split(os.sep)):
            files = (entry.name for entry in entries or () if not _is_dir(entry))
            yield below, [name for name in files if not name.startswith(".")]


def _walk(folder: str, recursive: bool) -> Iterator[str]:
    """Supported files of a folder, relative to it, in natural order: files first, then sub-folders."""
    for below, entries in _scan(folder, recursive):
        if entries is None:
            yield below  # a folder that cannot be listed may hold documents: it gets a record of its own
            continue
        for entry in entries:
            if _is_input(entry.name) and not _is_dir(entry):
                yield os.path.join(below, entry.name)


def _scan(folder: str, recursive: bool) -> Iterator[tuple[str, list[os.DirEntry[str]] | None]]:
    """Folders below one with their entries in natural order; None where they cannot be listed.

    A link to a folder inside is not followed: its files are found under their own names. That also
    ends loops, and a link that somebody adds does not change the key of a file. Links that lead
    elsewhere are followed once.
    """
    top = _real(folder or ".")
    stack = [""]
    visited: set[tuple[int, int]] = set()
    while stack:
        below = stack.pop()
        here = os.path.join(folder, below) or "."
        try:
            status = os.stat(here)
            if (status.st_dev, status.st_ino) in visited:
                continue
            visited.add((status.st_dev, status.st_ino))
            with os.scandir(here) as scan:
                entries = sorted(scan, key=lambda entry: natural(entry.name))
        except OSError:
            yield below, None
            continue
        yield below, entries
        if recursive:
            inner = [entry for entry in entries if _is_dir(entry)]
            stack += [
                os.path.join(below, entry.name)
                for entry in reversed(inner)
                if not (entry.is_symlink() and _is_under(_real(entry.path), {top}))
            ]


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _is_input(name: str) -> bool:
    return os.path.splitext(name.lower())[1] in SUFFIXES and not _is_ours(name)


def _is_ours(name: str) -> bool:
    """Whether no person made this file a document: our overlays, and the notes of macOS."""
    return name.lower().endswith(OVERLAY_SUFFIX) or name.startswith(_APPLE_DOUBLE)


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # an embedded NUL byte
        return os.path.abspath(path)


class _Folders:
    """Resolves links in folders, each folder once. A link to a file stays a document of its own."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def real(self, path: str) -> str:
        folder, name = os.path.split(path)
        if name in ("", ".", ".."):  # no file, and not to be taken for one: x.pdf/ is not x.pdf
            return _real(path) + "/"
        if folder not in self._known:
            self._known[folder] = _real(folder or ".")
        return os.path.join(self._known[folder], name)


def _is_under(path: str, folders: set[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _unique(below: str, path: str, keys: set[str]) -> str:
    """The key of a file: its path below the argument, with folders above added while that is taken.

    Only the later of two files changes its key, so a name that appears in a second folder does not
    make the first one be read again. A key never leads up or to the root.
    """
    parts = [part for part in below.split("/") if part not in ("", ".", "..")]
    above = [part for part in os.path.abspath(path).split("/") if part]
    parts = parts or above[-1:] or [""]
    key = os.path.join(*parts)
    used = len(parts)
    while key in keys and used < len(above):
        used += 1
        key = os.path.join(*above[-used:])
    if key in keys:  # the whole path of this file is the path of another below its argument
        key = next(name for n in itertools.count(2) if (name := f"{key}~{n}") not in keys)
    return key


def _look(document: Document) -> Document:
    """Add size and time, or the reason why the file cannot be read."""
    try:
        status = os.stat(document.path)
    except (FileNotFoundError, NotADirectoryError):
        return _failed(document, FailureKind.NOT_FOUND, _missing(document.path))
    except OSError as error:
        return _failed(document, FailureKind.UNREADABLE, os.strerror(error.errno or 0))
    except ValueError:  # an embedded NUL byte
        return _failed(document, FailureKind.NOT_FOUND, "not a valid file name")
    if stat.S_ISDIR(status.st_mode):
        return _failed(document, FailureKind.UNREADABLE, "the folder cannot be listed")
    if not stat.S_ISREG(status.st_mode):
        return _failed(document, FailureKind.UNREADABLE, "not a regular file")
    return replace(document, size=status.st_size, mtime_ns=status.st_mtime_ns, inode=status.st_ino)


def _missing(path: str) -> str:
    if os.path.islink(path):
        return "a link that leads to no file"
    if glob.has_magic(path):
        return "no such file, and no file matches it as a pattern"
    return "no such file"


def _failed(document: Document, kind: FailureKind, message: str) -> Document:
    return replace(document, failure=Failure(Step.DOCUMENTS, kind, message, retryable=True))
