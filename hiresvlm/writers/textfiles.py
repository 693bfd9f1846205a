"""Markdown and plain text files: one per document, rendered from the journal, written atomically."""

from __future__ import annotations

import contextlib
import hashlib
import html
import os
import stat
import time
from collections.abc import Sequence

from hiresvlm.datatypes import Document, Record
from hiresvlm.errors import OutputError
from hiresvlm.writers.stream import output_error

MAX_NAME = 255
"""Bytes of a file name on the usual file systems."""


class TextFiles:
    """Writes `DIR/<path below the PATH argument>.<md|txt>`, never outside DIR."""

    def __init__(self, folder: str, format: str) -> None:
        self._folder = os.path.realpath(folder)
        self._format = format
        try:
            os.makedirs(self._folder, exist_ok=True)
        except OSError as error:
            raise output_error(folder, error) from error

    def path(self, document: Document) -> str:
        """Where a document's text goes. Raises `OutputError` when that would leave the folder."""
        return path_below(self._folder, document, f".{self._format}")

    def is_newer(self, document: Document, finished: str) -> bool:
        """Whether the file is there and was written after a record that says it was `finished` then."""
        try:
            status = os.lstat(self.path(document))
        except OSError:
            return False
        written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(status.st_mtime))
        return stat.S_ISREG(status.st_mode) and written >= finished

    def write(self, document: Document, records: Sequence[Record]) -> None:
        """Write the text of a finished document, its pages in order, unless the file says just that."""
        path = self.path(document)
        temporary = os.path.join(os.path.dirname(path), f".hiresvlm.{os.getpid()}.tmp")
        data = render(records, self._format).encode("utf-8", "backslashreplace")
        if _holds(path, data):
            return
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            raise output_error(path, error) from error
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def path_below(folder: str, document: Document, suffix: str) -> str:
    """`folder/<path below the PATH argument><suffix>`; `folder` must have no links in it.

    Raises `OutputError` when a link on the way leads out of the folder.
    """
    parts = [_name(part) for part in document.key.split(os.sep) if part not in ("", ".", "..")]
    parts = parts or ["unnamed"]
    parts[-1] = _short_enough(parts[-1], suffix)
    path = os.path.join(folder, *parts)
    parent = os.path.realpath(os.path.dirname(path))
    if parent != folder and not parent.startswith(folder.rstrip(os.sep) + os.sep):
        raise OutputError(f"{path} leads out of the output folder", "remove the symbolic link on the way")
    return path


def render(records: Sequence[Record], format: str) -> str:
    """Pages of one document as text. What is missing is said where it is missing."""
    pages = []
    for record in records:
        problems = ", ".join(failure["kind"] for failure in record["failures"])
        note = f"page {record['page']}: " if record["page"] else ""
        text = record["text"]
        if format == "md":
            # Text from a document must not become markup: `<script>` in a scan stays text.
            # A link or picture of a stranger must not become live either.
            text = html.escape(text, quote=False).replace("](", "]\\(").replace("\n", "  \n")
            mark = f"<!-- {note}{record['status']}: {problems} -->\n\n" if problems else ""
        else:
            mark = f"[{note}{record['status']}: {problems}]\n" if problems else ""
        pages.append(mark + text)
    return ("\n\n---\n\n" if format == "md" else "\n\f").join(pages) + "\n"


def _holds(path: str, data: bytes) -> bool:
    """Whether a file has exactly this content."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
        with open(path, "rb") as file:
            return file.read(len(data) + 1) == data
    except OSError:
        return False


def _name(part: str) -> str:
    """A name that a file can have. Only names that no file has need a change (a PATH that is missing)."""
    return _short_enough(part.replace("\0", "_"))


def _short_enough(name: str, suffix: str = "") -> str:
    """A name with its suffix within the limit: a long one keeps its start and gets a hash."""
    if len(os.fsencode(name + suffix)) <= MAX_NAME:
        return name + suffix
    mark = "~" + hashlib.sha256(os.fsencode(name)).hexdigest()[:8] + suffix
    while len(os.fsencode(name + mark)) > MAX_NAME:
        name = name[:-1]
    return name + mark
