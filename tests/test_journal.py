"""The output file: survives any cut, refuses what is not ours, and is locked."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiresvlm.datatypes import Document, Failure, FailureKind, Step
from hiresvlm.engines import EngineInfo, EngineProfile
from hiresvlm.errors import LockedError, OutputError
from hiresvlm.writers import Journal, Stream, dumps, journal, key_of
from hiresvlm.writers.journal import FileState
from hiresvlm.writers.record import Context, document_record
from hiresvlm.writers.stream import ReaderGone

SETTINGS = "0123456789abcdef"
CONTEXT = Context("run", "ocr", EngineInfo("echo"), EngineProfile(12.0), SETTINGS, 4352)


def record(name: str = "a.pdf", page: int | None = 1, text: str = "text", **fields: Any) -> dict[str, Any]:
    """A record with all fields; `page` None is a document that cannot be read."""
    failure = Failure(Step.DOCUMENTS, FailureKind.CORRUPT, "broken")
    made = document_record(Document(0, name, name, name, 10, 20), "ab" * 32, failure, CONTEXT)
    if page is not None:
        made |= {"page": page, "pages": 99, "scope": "page", "status": "ok", "text": text, "failures": []}
    return made | fields


def append(path: Path, *records: dict[str, Any]) -> None:
    with contextlib.closing(Journal(str(path))) as opened:
        for item in records:
            opened.append(item)


def finish(path: Path, *records: dict[str, Any]) -> list[dict[str, Any]]:
    with contextlib.closing(Journal(str(path))) as opened:
        for item in records:
            opened.append(item)
        opened.finish()
    return lines(path)


def lines(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    assert not data or data.endswith(b"\n")
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


# ------------------------------------------------------------------------------------------- repair

WHOLE = [dumps(record(page=page, text="é中 " * page)) for page in (1, 2, 3)]
ALL = b"".join(WHOLE)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    # Anywhere, and often around the ends of lines.
    cut=st.integers(0, len(ALL))
    | st.sampled_from([n for n in range(len(ALL)) if b"\n" in ALL[n - 1 : n + 2]]),
    zeros=st.sampled_from([0, 0, 1, 4096]),
    rewrite=st.booleans(),
)
def test_a_file_cut_anywhere_keeps_every_whole_record(
    tmp_path: Path, cut: int, zeros: int, rewrite: bool
) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(ALL[:cut] + b"\0" * zeros)
    kept = ALL[:cut].count(b"\n")
    if zeros and cut == 0:  # nothing but zeros may be anybody's file
        with pytest.raises(OutputError):
            Journal(str(path))
        return
    # A record that only lacks its newline is whole as well.
    kept += any(cut == len(b"".join(WHOLE[: n + 1])) - 1 for n in range(3)) and not zeros
    with contextlib.closing(Journal(str(path))) as opened:
        assert sorted(key.page or 0 for key in opened.entries) == list(range(1, kept + 1))
        opened.append(record(page=9))
        for key in opened.entries:
            assert opened.read(key)["page"] == key.page
        if rewrite:
            opened.finish()
    assert [r["page"] for r in lines(path)] == [*range(1, kept + 1), 9]
    path.unlink()


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\0" * 100 + b"\n", b'{"schema":1,"vers', b'{"sch\0\0\0'])
def test_what_a_power_cut_leaves_is_taken_away(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(WHOLE[0] + tail)
    append(path, record(page=2))
    assert [r["page"] for r in lines(path)] == [1, 2]


FOREIGN = {
    "pdf": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n",
    "pdf in one line": b"%PDF-1.7 no newline at all",
    "text": b"shopping list\nmilk\n",
    "text in one line": b"milk",
    "json": b'{"name": "x"}\n',
    "json without a newline": b'{"name": "x"}',
    "json with a schema": b'{"schema": 1, "records": []}',
    "json lines": b'{"a": 1}\n{"a": 2}\n',
    "json over lines": b'{\n "a": 1\n}\n',
    "half a foreign json": b'{"schema": "http://json-schema.org/draft-07/schema#", "title":',
    "json array": b"[1, 2, 3]\n",
    "null": b"null\n",
    "zeros": b"\0" * 5000,
    "an empty line": b"\n",
    "utf-16": '{"schema": 1}'.encode("utf-16"),
    "a deep nest": b"[" * 100_000,
    "ours and a stranger between": WHOLE[0] + b"not json\n" + WHOLE[1],
    "ours and half a line between": WHOLE[0] + WHOLE[1][:50] + WHOLE[2],
    "ours and half a line with its newline": WHOLE[0] + WHOLE[1][:50] + b"\n",
    "ours and zeros between": WHOLE[0] + b"\0" * 99 + b"\n" + WHOLE[1],
    "ours and an empty line between": WHOLE[0] + b"\n" + WHOLE[1],
    "ours and a foreign json": WHOLE[0] + b'{"name": "x"}',
    "a record of other types": WHOLE[0].replace(b'"page":1', b'"page":"one"'),
    "a status that is none": WHOLE[0].replace(b'"status":"ok"', b'"status":"fine"'),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine"
    path.write_bytes(FOREIGN[name])
    before = path.stat()
    with pytest.raises(OutputError, match="not a record") as caught:
        Journal(str(path))
    assert caught.value.exit_code == 6
    assert "--no-resume" in str(caught.value.hint)
    assert path.read_bytes() == FOREIGN[name]
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_no_resume_keeps_a_foreign_file_under_another_name(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_bytes(b"milk")
    Journal(str(path), resume=False).close()
    assert (tmp_path / "mine.1").read_bytes() == b"milk"
    assert path.read_bytes() == b""


def test_a_file_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(dumps(record() | {"schema": 2, "version": "9.0.0"}))
    with pytest.raises(OutputError, match=r"newer hiresvlm \(9.0.0\)"):
        Journal(str(path))


def test_records_that_another_tool_wrote_again_are_still_records(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(json.dumps(record(), sort_keys=True, indent=None) + "\r\n")
    assert [r["page"] for r in finish(path, record(page=2))] == [1, 2]


# --------------------------------------------------------------------------------- finish and order


def test_the_last_record_of_a_key_wins(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    append(path, record(text="old"), record(page=2), record(text="new"))
    with contextlib.closing(Journal(str(path))) as opened:
        assert opened.read(key_of(record()))["text"] == "new"
    assert [(r["page"], r["text"]) for r in finish(path)] == [(1, "new"), (2, "text")]


def test_finish_sorts_by_source_and_page_as_people_do(tmp_path: Path) -> None:
    made = [record(f"{name}.pdf", page) for name in ("b", "scan10", "scan2", "A") for page in (10, 2, 1)]
    found = finish(tmp_path / "out.jsonl", *made)
    names = ["A", "b", "scan2", "scan10"]
    assert [(r["source"], r["page"]) for r in found] == [(f"{n}.pdf", p) for n in names for p in (1, 2, 10)]


def test_other_settings_and_other_content_are_other_records(tmp_path: Path) -> None:
    other = [record(), record(settings="f" * 16), record(sha256="cd" * 32)]
    assert len(finish(tmp_path / "out.jsonl", *other)) == 3


def test_a_document_that_could_not_be_read_once_loses_its_failure(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    append(path, record(page=None, sha256=None), record(page=None), record("b.pdf", None))
    assert [(r["source"], r["page"]) for r in finish(path, record(page=1))] == [("a.pdf", 1), ("b.pdf", None)]


@pytest.mark.parametrize("digest", ["00" * 32, "ff" * 32])
def test_a_document_that_got_worse_keeps_its_failure_for_good(tmp_path: Path, digest: str) -> None:
    path = tmp_path / "out.jsonl"
    append(path, record("z/a.pdf", key="a.pdf"), record(page=None, sha256=digest))
    first = finish(path)
    assert [r["page"] for r in first] == [1, None]
    mtime = path.stat().st_mtime_ns
    assert finish(path) == first
    assert path.stat().st_mtime_ns == mtime


def test_a_finished_file_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    finish(path, record(page=2), record(page=1))
    before = path.stat()
    finish(path)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_finish_keeps_mode_and_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    append(path, record(page=2))
    path.chmod(0o640)
    finish(path, record(page=1))
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "disk" / "real.jsonl", tmp_path / "link.jsonl"
    real.parent.mkdir()
    link.symlink_to(real)
    finish(link, record(page=2), record(page=1))
    assert link.is_symlink()
    assert [r["page"] for r in lines(real)] == [1, 2]
    assert os.listdir(real.parent) == ["real.jsonl"]


def test_a_name_of_the_greatest_length(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    assert len(finish(path, record(page=2), record(page=1))) == 2


def test_finish_that_cannot_replace_says_that_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.jsonl"

    def busy(*names: str) -> None:
        raise OSError(16, "busy")

    monkeypatch.setattr(journal.os, "replace", busy)
    with contextlib.closing(Journal(str(path))) as opened:
        opened.append(record(page=2))
        opened.append(record(page=1))
        with pytest.raises(OutputError, match="all records are in it"):
            opened.finish()
    assert [r["page"] for r in lines(path)] == [2, 1]
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_kill_while_the_file_is_rewritten_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    code = (
        "import os, signal, sys\n"
        "from hiresvlm.writers import Journal\n"
        "os.replace = lambda *names: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Journal(sys.argv[1]).finish()"
    )
    append(path, record(page=2), record(page=1))
    killed = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [r["page"] for r in lines(path)] == [2, 1]
    assert len(os.listdir(tmp_path)) == 2
    assert [r["page"] for r in finish(path)] == [1, 2]
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_file_that_was_cut_while_we_ran_is_not_taken_for_ours(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with contextlib.closing(Journal(str(path))) as opened:
        opened.append(record(page=2))
        opened.append(record(page=1))
        os.truncate(path, 10)
        with pytest.raises(OutputError, match="changed by something else"):
            opened.finish()


def test_a_file_that_was_replaced_while_we_ran_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with contextlib.closing(Journal(str(path))) as opened:
        opened.append(record(page=2))
        opened.append(record(page=1))
        path.unlink()
        path.write_text("of somebody else")
        with pytest.raises(OutputError, match="replaced") as caught:
            opened.finish()
    assert path.read_text() == "of somebody else"
    assert str(path) + ".1" in str(caught.value.hint)
    assert [r["page"] for r in lines(tmp_path / "out.jsonl.1")] == [1, 2]


def test_no_resume_keeps_every_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    for text in ("one", "two", "three"):
        with contextlib.closing(Journal(str(path), resume=False)) as opened:
            assert not opened.entries
            assert not opened.hashes
            opened.append(record(text=text))
            opened.finish()
    found = {file.name: lines(file)[0]["text"] for file in tmp_path.iterdir()}
    assert found == {"out.jsonl": "three", "out.jsonl.1": "one", "out.jsonl.2": "two"}


def test_no_resume_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    append(link, record(text="old"))
    Journal(str(link), resume=False).close()
    assert link.is_symlink()
    assert [r["text"] for r in lines(tmp_path / "real.1")] == ["old"]
    assert real.read_bytes() == b""


def test_hashes_of_known_files_survive(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    append(path, record())
    with contextlib.closing(Journal(str(path))) as opened:
        assert opened.hashes == {("a.pdf", FileState(10, 20, 0)): "ab" * 32}
        opened.restate(key_of(record()), FileState(10, 30, 0))
    with contextlib.closing(Journal(str(path))) as opened:
        assert opened.hashes["a.pdf", FileState(10, 30, 0)] == "ab" * 32
        assert len(opened.entries) == 1


# -------------------------------------------------------------------------------------------- locks

HOLD = """
import sys
from hiresvlm.writers import Journal
journal = Journal(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that holds the lock of a file."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.stdin.close()


def test_a_second_run_is_refused_at_once_and_not_after_the_first_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with held(path):
        with pytest.raises(LockedError) as caught:
            Journal(str(path))
        assert caught.value.exit_code == 7
        with pytest.raises(LockedError):  # the file of a run that goes on is not moved away either
            Journal(str(path), resume=False)
        assert os.listdir(tmp_path) == ["out.jsonl"]
    Journal(str(path)).close()


def test_a_kill_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with held(path) as other:
        other.send_signal(signal.SIGKILL)
        other.wait()
        Journal(str(path)).close()


def test_a_file_replaced_between_opening_and_locking_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.jsonl"
    append(path, record(page=1))
    fresh = tmp_path / "fresh"
    append(fresh, record(page=1), record(page=2))
    flock = journal.fcntl.flock
    calls: list[int] = []

    def late(fd: int, operation: int) -> None:
        if not calls:
            os.replace(fresh, path)  # another run finishes just now
        calls.append(fd)
        flock(fd, operation)

    monkeypatch.setattr(journal.fcntl, "flock", late)
    append(path, record(page=3))
    assert len(calls) == 2
    assert [r["page"] for r in lines(path)] == [1, 2, 3]


# -------------------------------------------------------------------------------- what goes wrong


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with contextlib.closing(Journal(str(path))) as opened:
        opened.append(record(page=1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 100, hard))
        try:
            with pytest.raises(OutputError) as caught:
                opened.append(record(page=2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert caught.value.exit_code == 6
        assert [r["page"] for r in lines(path)] == [1]
        opened.append(record(page=3))  # space was made
    assert [r["page"] for r in finish(path)] == [1, 3]


@pytest.mark.parametrize("where", ["missing/out.jsonl", "file/out.jsonl", "folder", "x" * 256])
def test_a_place_that_cannot_be_written(tmp_path: Path, where: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot write"):
        Journal(str(tmp_path / where))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="Permission"):
        Journal(str(tmp_path / "out.jsonl"))
    tmp_path.chmod(0o700)


def test_what_was_written_is_synced_although_no_more_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(journal.os, "fdatasync", synced.append)
    monkeypatch.setattr(journal, "SYNC_SECONDS", 0.0)
    with contextlib.closing(Journal(str(tmp_path / "out.jsonl"))) as opened:
        opened.sync_when_due()
        assert not synced
        monkeypatch.setattr(journal, "SYNC_SECONDS", 1e9)
        opened.append(record())
        opened.sync_when_due()
        assert not synced
        monkeypatch.setattr(journal, "SYNC_SECONDS", 0.0)
        opened.sync_when_due()
        assert len(synced) == 1


# ------------------------------------------------------------------------------------------- stream


@settings(max_examples=150, deadline=None)
@given(data=st.data(), pages=st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_any_order_of_completion_gives_the_order_of_documents(data: st.DataObject, pages: list[int]) -> None:
    """`pages`: of each document; 0 stands for a document with nothing to write."""
    events: list[tuple[str, int, int]] = [("expect", n, count) for n, count in enumerate(pages)]
    events += [("write", n, page) for n, count in enumerate(pages) for page in range(1, count + 1)]
    order = data.draw(st.permutations(events))
    # A page is never finished before its document is known.
    known: set[int] = set()
    delayed = []
    done = []
    for event in order:
        if event[0] == "expect":
            known.add(event[1])
        (done if event[1] in known else delayed).append(event)
    read, write = os.pipe()
    stream = Stream(write)
    for kind, document, value in done + delayed:
        if kind == "expect":
            stream.expect(document, range(1, value + 1))
        else:
            stream.write(document, value, {"place": [document, value]})
    os.close(write)
    with open(read, "rb") as file:
        found = [tuple(json.loads(line)["place"]) for line in file]
    assert found == [(n, page) for n, count in enumerate(pages) for page in range(1, count + 1)]


def test_a_stream_writes_as_soon_as_it_can_and_the_rest_when_interrupted() -> None:
    read, write = os.pipe()
    stream = Stream(write)
    stream.expect(0, [1, 2])
    stream.expect(1, [0])
    stream.write(0, 1, {"n": 1})
    assert os.read(read, 99) == b'{"n":1}\n'
    stream.write(1, 0, {"n": 3})
    os.set_blocking(read, False)
    with pytest.raises(BlockingIOError):
        os.read(read, 99)
    stream.flush()
    assert os.read(read, 99) == b'{"n":3}\n'
    os.close(read)
    stream.write(1, 5, {"n": 2})
    with pytest.raises(ReaderGone):
        stream.flush()
    os.close(write)


def test_a_pipe_that_does_not_block_loses_nothing() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    reader = subprocess.Popen(["wc", "-c"], stdin=read, stdout=subprocess.PIPE)
    os.close(read)
    stream = Stream(write)
    stream.expect(0, [1])
    stream.write(0, 1, {"text": "x" * 1_000_000})
    os.close(write)
    assert int(reader.communicate()[0]) == 1_000_000 + len('{"text":""}\n')
