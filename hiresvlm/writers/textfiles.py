"""Markdown and plain text files: one per document, rendered from the journal, written atomically."""

from __future__ import annotations

import contextlib
import hashlib
import html
import os
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
        parts = [part for part in document.key.split(os.sep) if part not in ("", ".", "..")]
        parts[-1] = _short_enough(f"{parts[-1]}.{self._format}")
        path = os.path.join(self._folder, *parts)
        parent = os.path.realpath(os.path.dirname(path))
        if parent != self._folder and not parent.startswith(self._folder + os.sep):
            raise OutputError(f"{path} leads out of the output folder", "remove the symbolic link on the way")
        return path

    def exists(self, document: Document) -> bool:
        return os.path.isfile(self.path(document))

    def write(self, document: Document, records: Sequence[Record]) -> None:
        """Write the text of a finished document, its pages in order."""
        path = self.path(document)
        temporary = os.path.join(os.path.dirname(path), f".hiresvlm.{os.getpid()}.tmp")
        data = render(records, self._format).encode("utf-8", "backslashreplace")
        try:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise output_error(path, error) from error


def render(records: Sequence[Record], format: str) -> str:
    """Pages of one document as text. What is missing is said where it is missing."""
    pages = []
    for record in records:
        problems = ", ".join(failure["kind"] for failure in record["failures"])
        note = f"page {record['page']}: " if record["page"] else ""
        text = record["text"]
        if format == "md":
            # Text from a document must not become markup: `<script>` in a scan stays text.
            text = html.escape(text, quote=False).replace("\n", "  \n")
            mark = f"<!-- {note}{record['status']}: {problems} -->\n\n" if problems else ""
        else:
            mark = f"[{note}{record['status']}: {problems}]\n" if problems else ""
        pages.append(mark + text)
    return ("\n\n---\n\n" if format == "md" else "\n\f").join(pages) + "\n"


def _short_enough(name: str) -> str:
    """A file name within the limit: a long one keeps its start and its suffix and gets a hash."""
    if len(os.fsencode(name)) <= MAX_NAME:
        return name
    stem, suffix = os.path.splitext(name)
    mark = "~" + hashlib.sha256(os.fsencode(name)).hexdigest()[:8]
    room = MAX_NAME - len(os.fsencode(mark + suffix))
    while len(os.fsencode(stem)) > room:
        stem = stem[:-1]
    return stem + mark + suffix
