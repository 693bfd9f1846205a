"""The output file: an append-only journal that survives a kill at any byte.

One writer, one `os.write` per complete line, synced in short intervals, so a SIGKILL loses nothing
that was written and a power cut at most the last second. A torn last line (the only damage that such
a writer can leave) is repaired on opening; a malformed line elsewhere means that the file is not
ours, and is an error. A clean finish rewrites the file atomically, one record per key, in order.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import sys
import time
from typing import Any, NamedTuple

from hiresvlm.datatypes import Record, Status
from hiresvlm.documents import natural
from hiresvlm.errors import LockedError, OutputError
from hiresvlm.writers.record import SCHEMA, Key, dumps, key_of
from hiresvlm.writers.stream import output_error, write_all

SYNC_RECORDS = 16
SYNC_SECONDS = 1.0
"""A sync after so many records or seconds: 37 us a line on average, against 386 us for each line."""

_START = b'{"schema":%d,"version":"' % SCHEMA
"""How every line of ours begins. A first line that was cut off is told from a foreign file by it."""

_STRINGS = ("version", "key", "settings", "source", "finished")
_STATUSES = frozenset(status.value for status in Status)


class Entry(NamedTuple):
    """What the journal remembers of a record: enough to resume and to sort, nothing that grows."""

    offset: int
    length: int
    status: str
    pages: int | None
    source: str
    finished: str
    """When the record was made, as the record says it: sorts as text."""


class FileState(NamedTuple):
    """Size and time of an input file whose content hash is known."""

    bytes: int
    mtime_ns: int
    inode: int


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

    def sync_when_due(self) -> None:
        """Sync what is older than a second. Call it often: pages may take minutes. Raises `OutputError`."""
        if self._unsynced and time.monotonic() - self._synced_at >= SYNC_SECONDS:
            self.sync()

    def read(self, key: Key) -> Record:
        """The record of a key, read back from the file. Raises `OutputError` when it is not there."""
        record: Record = json.loads(self._line(self.entries[key]))
        return record

    def forget(self, key: Key) -> None:
        """Leave a record out when the file is put in order. Nothing happens when there is none."""
        if self.entries.pop(key, None) is not None:
            self._sorted = False

    def restate(self, key: Key, file: FileState) -> None:
        """Write a record again with a new size and time of its file, whose content is the same.

        A file that was only touched is hashed once and not in every later run. Raises `OutputError`.
        """
        record = self.read(key)
        record["file"] = file._asdict()
        self.append(record)

    def finish(self) -> None:
        """Rewrite the file to one record per key in source and page order, unless it is that already.

        Raises `OutputError`; even then nothing is lost, because the journal is complete, only unsorted.
        """
        self.sync()
        if self._sorted and _is_at(self.path, self._fd):
            return
        superseded = _superseded(self.entries)
        order = _in_order([key for key in self.entries if key not in superseded], self.entries)
        # Replacing a link would cut it: the file that it points to is what the user wants.
        target = os.path.realpath(self.path)
        moved = os.path.lexists(target) and not _is_at(target, self._fd)
        if moved:  # somebody put another file there while we ran, perhaps another run
            target = _free_name(target)
        temporary = _temporary(target)
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            with open(temporary, "xb") as new:
                status = os.fstat(self._fd)
                with contextlib.suppress(OSError):  # only root may give a file to its owner
                    os.fchown(new.fileno(), status.st_uid, status.st_gid)
                os.fchmod(new.fileno(), stat.S_IMODE(status.st_mode))
                for key in order:
                    new.write(self._line(self.entries[key]))
                new.flush()
                os.fsync(new.fileno())
            os.replace(temporary, target)
        except OSError as error:
            raise self._unsorted(error) from error
        finally:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        _sync_folder(target)
        for key in superseded:
            del self.entries[key]
        self._sorted = True
        if moved:
            message = f"{self.path} was replaced by another file during the run"
            raise OutputError(message, f"the records of this run are in {target}")

    @property
    def in_place(self) -> bool:
        """Whether the file is still where it was opened: nobody removed or replaced it."""
        return _is_at(self.path, self._fd)

    def close(self) -> None:
        """Sync and release the lock. May be called twice."""
        if self._fd >= 0:
            with contextlib.suppress(OutputError):
                self.sync()
            os.close(self._fd)
            self._fd = -1

    # ------------------------------------------------------------------------------------- private

    def _line(self, entry: Entry) -> bytes:
        line = os.pread(self._fd, entry.length, entry.offset)
        if len(line) != entry.length or not (line.startswith(b"{") and line.endswith(b"\n")):
            raise OutputError(f"{self.path} was changed by something else during the run")
        return line

    def _load(self) -> int:
        """Read all entries, repair a torn tail, return the size of the good part in bytes."""
        offset = 0
        torn = False
        with open(os.dup(self._fd), "rb") as file:
            if file.peek(1)[:1] not in (b"", b"{"):  # before a large foreign file is read as one line
                raise self._not_ours(1)
            for number, line in enumerate(file, 1):
                value = _json(line)
                if not _is_record(value):
                    # Ours can only be the last line, a write that was cut off or that a power cut left
                    # empty; no part of one of our lines is JSON by itself.
                    if value is not None or not self._is_remnant(line) or file.read(1):
                        raise self._not_ours(number)
                    self._truncate(offset)
                    break
                if value["schema"] > SCHEMA:
                    message = f"{self.path} was written by a newer hiresvlm ({value['version']})"
                    raise OutputError(message, "use that version, or choose another file with -o")
                torn = not line.endswith(b"\n")  # whole but for its newline
                self._remember(value, offset, len(line) + torn)
                offset += len(line) + torn
        if torn:
            write_all(self._fd, b"\n", self.path)
        return offset

    def _is_remnant(self, line: bytes) -> bool:
        """Whether a line that is no JSON is what a crash left of one of ours."""
        if self.entries:
            return not line.endswith(b"\n") or not line.strip(b"\0\n")
        start = line.rstrip(b"\0")[: len(_START)]
        return not line.endswith(b"\n") and start != b"" and _START.startswith(start)

    def _truncate(self, size: int) -> None:
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise output_error(self.path, error) from error

    def _not_ours(self, number: int) -> OutputError:
        return OutputError(
            f"{self.path}: line {number} is not a record of hiresvlm; the file was left as it is",
            "choose another file with -o, or start over with --no-resume (the old file is kept)",
        )

    def _unsorted(self, error: OSError) -> OutputError:
        plain = output_error(self.path, error)
        if not _is_at(self.path, self._fd):
            return OutputError(f"{plain.message}; it was removed during the run, and its records with it")
        message = f"{plain.message}; all records are in it, but not in order and some perhaps twice"
        return OutputError(message, plain.hint or "the same command puts them in order when that is possible")

    def _remember(self, record: Record, offset: int, length: int) -> None:
        name, sha256, page, settings = key_of(record)
        sha256 = None if sha256 is None else sys.intern(sha256)  # a string is kept once, not once a page
        key = Key(sys.intern(name), sha256, page, sys.intern(settings))
        self.entries.pop(key, None)  # the newest record of a key is also the last one in the order
        self.entries[key] = Entry(
            offset,
            length,
            sys.intern(record["status"]),
            record["pages"],
            sys.intern(record["source"]),
            sys.intern(record["finished"]),
        )
        file = record["file"]
        state = FileState(file["bytes"], file["mtime_ns"], file["inode"])
        self.hashes[key.key, state] = key.sha256

    def _is_compact(self) -> bool:
        """Whether the file holds exactly the entries, in order."""
        if _superseded(self.entries):
            return False
        keys = list(self.entries)
        whole = sum(entry.length for entry in self.entries.values()) == self._size
        return whole and keys == _in_order(keys, self.entries)


def _in_order(keys: list[Key], entries: dict[Key, Entry]) -> list[Key]:
    """Keys by source and page. A failure of a whole document stands after pages of the same document.

    So what is newer also comes later in a sorted file, which `_superseded` relies on.
    """
    sources: dict[str, tuple[object, ...]] = {}
    for key in keys:  # a folder that was moved: records of one document may name different sources
        source = natural(entries[key].source), entries[key].source
        sources[key.key] = min(source, sources.get(key.key, source))

    def order(key: Key) -> tuple[object, ...]:
        whole = key.page is None  # of a document: its answers as they came, then that it cannot be read
        failed = whole and entries[key].status == Status.FAILED
        settings = "" if whole else key.settings
        return sources[key.key], key.key, whole, failed, key.sha256 or "", key.page or 0, settings

    return sorted(keys, key=order)


def _superseded(entries: dict[Key, Entry]) -> set[Key]:
    """Records "this document cannot be read" that came before a newer record of the same document."""
    newest: dict[tuple[str, str], int] = {}
    for key, entry in entries.items():
        newest[key.key, key.settings] = max(newest.get((key.key, key.settings), 0), entry.offset)
    return {
        key
        for key, entry in entries.items()
        if key.page is None and entry.status == Status.FAILED and entry.offset < newest[key.key, key.settings]
    }


def _json(line: bytes) -> Any:
    """The value of a line, or None when it is not JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_record(value: Any) -> bool:
    """Whether a value has all that resuming needs, with the right types."""
    try:
        return (
            isinstance(value["schema"], int)
            and all(isinstance(value[name], str) for name in _STRINGS)
            and isinstance(value["sha256"], str | None)
            and isinstance(value["page"], int | None)
            and isinstance(value["pages"], int | None)
            and value["status"] in _STATUSES
            and all(isinstance(value["file"][name], int) for name in FileState._fields)
        )
    except (KeyError, TypeError, IndexError):
        return False


def _open_locked(path: str) -> int:
    """Open for reading and appending, and lock; the lock ends with this process, however it ends."""
    while True:
        try:
            fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
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
    try:
        os.rename(real, _free_name(real))
    except OSError as error:
        raise output_error(path, error) from error
    new = _open_locked(path)
    os.close(fd)
    return new


def _temporary(path: str) -> str:
    """A short name beside a file, always the same: what a kill leaves there is gone after the next run.

    The lock on the file holds for it too.
    """
    folder, name = os.path.split(path)
    mark = hashlib.sha256(os.fsencode(name)).hexdigest()[:12]
    return os.path.join(folder, f".hiresvlm.{mark}.tmp")


def _free_name(path: str) -> str:
    """`path.1`, or the next number that is free."""
    number = 1
    while os.path.lexists(f"{path}.{number}"):
        number += 1
    return f"{path}.{number}"


def _sync_folder(path: str) -> None:
    """Make a new or replaced name durable. Some file systems cannot, which is no reason to stop."""
    with contextlib.suppress(OSError):
        fd = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
