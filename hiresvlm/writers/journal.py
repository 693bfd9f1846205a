"""The output file: an append-only journal that survives a kill at any byte.

One writer, one `os.write` per complete line, synced in short intervals, so a SIGKILL loses nothing
that was written and a power cut at most the last second. A torn last line (the only damage that such
a writer can leave) is repaired on opening; a malformed line elsewhere means that the file is not
ours, and is an error. A clean finish rewrites the file atomically, one record per key, in order.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from hiresvlm.datatypes import Record
from hiresvlm.documents import natural
from hiresvlm.errors import LockedError, OutputError
from hiresvlm.writers.record import Key, dumps, key_of
from hiresvlm.writers.stream import output_error, write_all

SYNC_RECORDS = 16
SYNC_SECONDS = 1.0
"""A sync after so many records or seconds: 37 us a line on average, against 386 us for each line."""


class Entry(NamedTuple):
    """What the journal remembers of a record: enough to resume and to sort, nothing that grows."""

    offset: int
    length: int
    status: str
    pages: int | None
    source: str


class FileState(NamedTuple):
    """Size and time of an input file whose content hash is known."""

    bytes: int
    mtime_ns: int


class Journal:
    """An open, locked output file. Raises `LockedError` or `OutputError` when it cannot be had."""

    def __init__(self, path: str, *, resume: bool = True) -> None:
        self.path = path
        self.entries: dict[Key, Entry] = {}
        self.hashes: dict[tuple[str, FileState], str | None] = {}
        """(key, size and time) -> SHA-256: files that need not be hashed again."""
        self._fd = _open_locked(path)
        try:
            if not resume:
                self._fd = _start_over(path, self._fd)
            self._size = self._load()
        except BaseException:
            os.close(self._fd)
            raise
        self._sorted = self._is_compact()
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def append(self, record: Record) -> None:
        """Write one record. On a full disk the torn part is taken back before the error is raised."""
        line = dumps(record)
        try:
            write_all(self._fd, line, self.path)
        except OutputError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        self._remember(record, self._size, len(line))
        self._size += len(line)
        self._sorted = False
        self._unsynced += 1
        if self._unsynced >= SYNC_RECORDS or time.monotonic() - self._synced_at >= SYNC_SECONDS:
            self.sync()

    def sync(self) -> None:
        """Force what was written to the disk. Raises `OutputError`."""
        if self._unsynced:
            try:
                os.fdatasync(self._fd)
            except OSError as error:
                raise output_error(self.path, error) from error
        self._unsynced = 0
        self._synced_at = time.monotonic()

    def read(self, key: Key) -> Record:
        """The record of a key, read back from the file."""
        entry = self.entries[key]
        record: Record = json.loads(os.pread(self._fd, entry.length, entry.offset))
        return record

    def finish(self) -> None:
        """Rewrite the file to one record per key in source and page order, unless it is that already."""
        self.sync()
        if self._sorted:
            return
        for key in _superseded(self.entries):
            del self.entries[key]
        order = sorted(self.entries, key=lambda key: _rank(key, self.entries[key]))
        temporary = f"{self.path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "xb") as new:
                os.fchmod(new.fileno(), stat.S_IMODE(os.fstat(self._fd).st_mode))
                for key in order:
                    new.write(os.pread(self._fd, self.entries[key].length, self.entries[key].offset))
                new.flush()
                os.fsync(new.fileno())
            # Replacing a link would cut it: the file that it points to is what the user wants.
            os.replace(temporary, os.path.realpath(self.path))
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            # Nothing is lost: the journal itself is complete, only unsorted.
            raise output_error(self.path, error) from error
        _sync_folder(self.path)
        self._sorted = True

    def close(self) -> None:
        """Sync and release the lock. May be called twice."""
        if self._fd >= 0:
            with contextlib.suppress(OutputError):
                self.sync()
            os.close(self._fd)
            self._fd = -1

    def _load(self) -> int:
        """Read all entries, repair a torn tail, return the size of the good part."""
        offset = 0
        good = b""
        with open(os.dup(self._fd), "rb") as file:
            for number, line in enumerate(file, 1):
                torn = not line.endswith(b"\n")
                record = _parsed(line)
                if record is None and (torn or _is_zeros(line)):
                    # A write that was cut off, or blocks that a power cut left empty.
                    if file.read(1):
                        raise self._not_ours(number)
                    os.ftruncate(self._fd, offset)
                    return offset
                if record is None:
                    raise self._not_ours(number)
                self._remember(record, offset, len(line))
                offset += len(line)
                good = line
        if good and not good.endswith(b"\n"):  # whole but for its newline
            write_all(self._fd, b"\n", self.path)
            offset += 1
        return offset

    def _not_ours(self, number: int) -> OutputError:
        return OutputError(
            f"{self.path}: line {number} is not a record of hiresvlm",
            "choose another file with -o, or start over with --no-resume (the old file is kept)",
        )

    def _remember(self, record: Record, offset: int, length: int) -> None:
        key = key_of(record)
        self.entries.pop(key, None)  # the newest record of a key is also the last one in the order
        self.entries[key] = Entry(offset, length, record["status"], record["pages"], record["source"])
        file = record["file"]
        self.hashes[key.key, FileState(file["bytes"], file["mtime_ns"])] = key.sha256

    def _is_compact(self) -> bool:
        """Whether the file holds exactly the entries, in order."""
        if _superseded(self.entries):
            return False
        ranks = [_rank(key, entry) for key, entry in self.entries.items()]
        return ranks == sorted(ranks) and sum(e.length for e in self.entries.values()) == self._size


def _rank(key: Key, entry: Entry) -> tuple[object, ...]:
    return (natural(entry.source), key.key, key.sha256 or "", key.page or 0, key.settings)


def _superseded(entries: dict[Key, Entry]) -> list[Key]:
    """Records "this document cannot be read" that came before pages of the same document."""
    newest: dict[tuple[str, str], int] = {}
    for key, entry in entries.items():
        if key.page is not None:
            newest[key.key, key.settings] = max(newest.get((key.key, key.settings), 0), entry.offset + 1)
    return [
        key
        for key, entry in entries.items()
        if key.page is None and entry.offset < newest.get((key.key, key.settings), 0)
    ]


def _parsed(line: bytes) -> Record | None:
    """The record of a line, or None when it is not one."""
    try:
        record = json.loads(line)
        key_of(record)
        (
            record["status"],
            record["pages"],
            record["source"],
            record["file"]["bytes"],
            record["file"]["mtime_ns"],
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _is_zeros(line: bytes) -> bool:
    return not line.strip(b"\0\n")


def _open_locked(path: str) -> int:
    """Open for reading and appending, and lock; the lock ends with this process, however it ends."""
    while True:
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise output_error(path, error) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise LockedError(f"another run is writing {path}", "wait for it, or choose another -o") from None
        except OSError as error:
            os.close(fd)
            raise output_error(path, error) from error
        # Between opening and locking, a run that finished may have replaced the file.
        if _is_at(path, fd):
            _sync_folder(path)
            return fd
        os.close(fd)


def _is_at(path: str, fd: int) -> bool:
    try:
        there, here = os.stat(path), os.fstat(fd)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _start_over(path: str, fd: int) -> int:
    """Keep the old file under the next free number and open a new one. An empty file is simply used."""
    if os.fstat(fd).st_size == 0:
        return fd
    real = os.path.realpath(path)
    number = next(n for n in _count() if not os.path.lexists(f"{real}.{n}"))
    try:
        os.rename(real, f"{real}.{number}")
    except OSError as error:
        raise output_error(path, error) from error
    new = _open_locked(path)
    os.close(fd)
    return new


def _count() -> Iterator[int]:
    number = 0
    while True:
        number += 1
        yield number


def _sync_folder(path: str) -> None:
    """Make a new or replaced name durable. Some file systems cannot, which is no reason to stop."""
    with contextlib.suppress(OSError):
        fd = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
