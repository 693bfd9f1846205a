"""Records to stdout or a pipe, in source and page order."""

from __future__ import annotations

import errno
import os
import select
from collections import deque
from collections.abc import Iterable

from hiresvlm.datatypes import Record
from hiresvlm.errors import OutputError
from hiresvlm.writers.record import dumps


class ReaderGone(Exception):
    """Whoever read our output has closed it (`| head`). The run ends quietly."""


def write_all(fd: int, data: bytes, name: str) -> None:
    """Write all of `data`. Raises `ReaderGone`, or `OutputError` when the disk is full."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BrokenPipeError:
            raise ReaderGone from None
        except BlockingIOError:  # a pipe that somebody set to non-blocking: wait until it has room
            select.select([], [fd], [])
        except OSError as error:
            raise output_error(name, error) from error


def output_error(name: str, error: OSError) -> OutputError:
    """The error of a file that cannot be written, with what helps."""
    hints = {
        errno.ENOSPC: "free some space and run the same command again: it goes on where it stopped",
        errno.EFBIG: "the file size limit is reached (ulimit -f)",
        errno.ENOENT: "make the folder first",
        errno.EACCES: "choose another place with -o",
        errno.EROFS: "choose another place with -o",
    }
    reason = os.strerror(error.errno) if error.errno else str(error)
    return OutputError(f"cannot write {name}: {reason}", hints.get(error.errno or 0))


class Stream:
    """Writes records in the order of documents and pages, although they finish in another one.

    A record waits until all before it are written.
    """

    def __init__(self, fd: int, name: str = "stdout") -> None:
        self._fd = fd
        self._name = name
        self._expected: dict[int, deque[int]] = {}
        self._waiting: dict[tuple[int, int], Record] = {}
        self._document = 0

    def expect(self, document: int, pages: Iterable[int]) -> None:
        """Announce a document's records; page 0 stands for one record of the whole document."""
        self._expected[document] = deque(pages)
        self._advance()

    def write(self, document: int, page: int, record: Record) -> None:
        self._waiting[document, page] = record
        self._advance()

    def flush(self) -> None:
        """Write what still waits (the run was interrupted): in order, with gaps."""
        for place in sorted(self._waiting):
            write_all(self._fd, dumps(self._waiting.pop(place)), self._name)

    def _advance(self) -> None:
        while (pages := self._expected.get(self._document)) is not None:
            while pages and (self._document, pages[0]) in self._waiting:
                record = self._waiting.pop((self._document, pages.popleft()))
                write_all(self._fd, dumps(record), self._name)
            if pages:
                return
            del self._expected[self._document]
            self._document += 1
