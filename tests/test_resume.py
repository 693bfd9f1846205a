"""A run that is stopped, killed or repeated: every page once, nothing done twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hiresvlm import engines
from hiresvlm.cli import ocr as ocr_module
from hiresvlm.console import Reporter
from hiresvlm.datatypes import Place, Request, Stop
from hiresvlm.documents import expand
from hiresvlm.engines import EngineInfo
from hiresvlm.engines.echo import EchoEngine
from hiresvlm.report import Report
from hiresvlm.run import Sink, loop, run
from hiresvlm.run import source as source_module
from hiresvlm.settings import ChunkSettings, RunSettings, Settings, TaskSettings
from hiresvlm.writers import Journal, Stream, dumps
from hiresvlm.writers.record import Context
from tests.support import ScriptedEngine, make_pdf, make_png, read_records, reply, run_pages
from tests.test_cli import main
from tests.test_journal import record


class Counting(ScriptedEngine):
    """Counts what a run costs: engines loaded and pages read."""

    def __init__(self, text: str = "text") -> None:
        super().__init__(lambda request: text)

    @property
    def pages(self) -> list[tuple[int, int]]:
        return sorted((request.place.document, request.place.page) for request in self.asked)


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the tasks that were given to workers: the only ones who open or hash a file."""
    names: list[str] = []
    submit = source_module.Pool.submit

    def counted(pool: Any, key: Any, task: Callable[..., Any], *args: Any, timeout_s: float) -> None:
        names.append(task.__name__)
        submit(pool, key, task, *args, timeout_s=timeout_s)

    monkeypatch.setattr(source_module.Pool, "submit", counted)
    return names


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


@pytest.fixture
def three(folder: Path) -> Path:
    make_pdf(folder / "a.pdf", [["one"], ["two"]])
    make_png(folder / "b.png")
    (folder / "bad.pdf").write_bytes(b"junk")
    return folder


def again(path: Path, out: Path, text: str = "again", **settings: Any) -> tuple[list[Any], Report, Counting]:
    engine = Counting(text)
    records, report = run_pages([path], engine, Settings(**settings), output=out)
    return records, report, engine


# ------------------------------------------------------------------------------------ nothing to do


def test_a_rerun_with_nothing_new_opens_nothing(
    three: Path, out: Path, submitted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, _ = again(three, out)
    assert Counter(submitted) == {"probe": 3, "prepare": 3}
    submitted.clear()
    state = out.stat()
    opened: list[Any] = []
    active = [True]

    def audit(event: str, args: tuple[Any, ...]) -> None:
        if active and event == "open" and str(three) in str(args[0]):
            opened.append(args[0])

    sys.addaudithook(audit)
    try:
        records, report, engine = again(three, out)
    finally:
        active.clear()
    assert records == first
    assert (submitted, opened, engine.asked, engine.closed) == ([], [], [], 0)
    assert report.load_s is None
    assert {status.value: count for status, count in report.earlier.items()} == {
        "ok": 3,
        "partial": 0,
        "failed": 1,
    }
    assert (out.stat().st_ino, out.stat().st_mtime_ns) == (state.st_ino, state.st_mtime_ns)


@pytest.mark.slow
def test_a_rerun_over_ten_thousand_files_loads_nothing_heavy(folder: Path, out: Path) -> None:
    """The contract says two seconds: nothing is opened, hashed, written, and no heavy library loaded."""
    (folder / "0.png").write_bytes(b"\x89PNG")
    for number in range(1, 10_000):
        os.link(folder / "0.png", folder / f"{number}.png")
    settings = Settings()
    digest = settings.digest(EchoEngine.describe(settings.engine)[0])
    status = (folder / "0.png").stat()
    file = {"bytes": status.st_size, "mtime_ns": status.st_mtime_ns, "inode": status.st_ino}
    lines = [{"text": "x" * 40, "box": [1.0, 2.0, 3.0, 4.0], "confidence": 0.98, "chunk": 0}] * 30
    fields = {"file": file, "pages": 1, "settings": digest, "text": "x" * 1200, "lines": lines}
    with open(out, "wb") as journal:
        for number in range(10_000):
            name = f"{number}.png"
            journal.write(dumps(record(str(folder / name), 1, key=name, **fields)))
    command = [sys.executable, "-X", "importtime", "-m", "hiresvlm", "ocr", str(folder)]
    state = out.stat()
    done = subprocess.run(
        [*command, "--engine", "echo", "-o", str(out)], capture_output=True, text=True, check=False
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "import time:" in line}
    assert done.returncode == 0, done.stderr
    assert "10000 done before" in done.stderr
    assert out.stat().st_mtime_ns == state.st_mtime_ns
    assert "hiresvlm.run" in loaded
    assert loaded.isdisjoint({"numpy", "PIL", "pymupdf", "cv2", "torch", "transformers", "onnxruntime"})


# --------------------------------------------------------------------------------- what is the same


def test_a_changed_file_is_read_again_and_a_touched_one_is_hashed_once(
    three: Path, out: Path, submitted: list[str]
) -> None:
    again(three, out)
    submitted.clear()
    os.utime(three / "b.png", (1, 1))
    make_pdf(three / "a.pdf", [["one"], ["other"]])
    records, report, engine = again(three, out, "new")
    assert engine.pages == [(0, 1), (0, 2)]
    assert Counter(submitted) == {"probe": 2, "prepare": 2}
    assert sum(r["source"].endswith("a.pdf") for r in records) == 4  # of both contents
    submitted.clear()
    _, report, engine = again(three, out)
    assert (submitted, engine.asked) == ([], [])
    assert sum(report.earlier.values()) == 4


def test_where_the_folder_is_does_not_matter(
    three: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, submitted: list[str]
) -> None:
    again(three, out)
    submitted.clear()
    monkeypatch.chdir(tmp_path)
    shutil.move(three, tmp_path / "elsewhere")
    for path in (tmp_path / "elsewhere", Path("elsewhere"), Path("./elsewhere/")):
        records, report, engine = again(path, out)
        assert (submitted, engine.asked) == ([], [])
        assert sum(report.earlier.values()) == 4
        assert len(records) == 4
    monkeypatch.chdir(tmp_path / "elsewhere")
    _, report, _ = again(Path(), out)
    assert submitted == []


def test_a_copy_of_the_folder_is_hashed_and_not_read(three: Path, out: Path, tmp_path: Path) -> None:
    again(three, out)
    shutil.copytree(three, tmp_path / "copy", copy_function=shutil.copyfile)
    _, report, engine = again(tmp_path / "copy", out)
    assert not engine.asked
    assert sum(report.earlier.values()) == 4


def test_other_settings_are_read_again_and_both_are_kept(three: Path, out: Path) -> None:
    for number, settings in enumerate(
        (
            {},
            {"chunk": ChunkSettings(strategy="whole")},
            {"task": TaskSettings(prompt="read")},
            {"run": RunSettings(workers=1)},
        )
    ):
        records, _, engine = again(three, out, f"text {number}", **settings)
        assert len(engine.pages) == (0 if "run" in settings else 3)
        assert len(records) == 4 * min(number + 1, 3)
    texts = [r["text"] for r in records if r["source"].endswith("b.png")]
    assert sorted(texts) == ["text 0", "text 1", "text 2"]


def test_more_pages_of_a_document_are_added(three: Path, out: Path) -> None:
    again(three, out, run=RunSettings(pages="2"))
    _, _, engine = again(three, out, run=RunSettings(pages="1-2"))
    assert engine.pages == [(0, 1), (1, 1)]
    records, _, engine = again(three, out)
    assert not engine.asked
    assert [r["page"] for r in records] == [1, 2, 1, None]


# ------------------------------------------------------------------------------------ retry, failures


def test_retry_errors_reads_failed_and_partial_pages_again_and_no_others(folder: Path, out: Path) -> None:
    make_pdf(folder / "a.pdf", [["one"], ["two"], ["three"]])
    (folder / "bad.png").write_bytes(b"junk")
    (folder / "worse.png").write_bytes(b"junk")

    def script(request: Any) -> Any:
        page = request.place.page
        return [None, "fine", RuntimeError("x"), reply(request, "cut", stop=Stop.LENGTH)][page]

    records, _ = run_pages([folder], ScriptedEngine(script), output=out)
    assert [r["status"] for r in records] == ["ok", "failed", "partial", "failed", "failed"]
    _, report, engine = again(folder, out)
    assert not engine.asked
    assert report.incomplete == 4
    make_png(folder / "bad.png")
    records, report, engine = again(folder, out, run=RunSettings(retry_errors=True))
    assert engine.pages == [(0, 2), (0, 3), (1, 1)]
    assert [(Path(r["source"]).name, r["page"], r["status"], r["text"]) for r in records] == [
        ("a.pdf", 1, "ok", "fine"),
        ("a.pdf", 2, "ok", "again"),
        ("a.pdf", 3, "ok", "again"),
        ("bad.png", 1, "ok", "again"),
        ("worse.png", None, "failed", ""),
    ]
    assert report.incomplete == 1


@pytest.mark.parametrize("count", [1, 3])
def test_a_missing_document_that_comes_back_loses_its_failure(folder: Path, out: Path, count: int) -> None:
    for _ in range(count):
        records, _, _ = again(folder / "late.png", out)
        assert [r["failures"][0]["kind"] for r in records] == ["not_found"]
    make_png(folder / "late.png")
    records, report, _ = again(folder / "late.png", out)
    assert [(r["page"], r["status"]) for r in records] == [(1, "ok")]
    assert report.incomplete == 0


def test_auto_keeps_pages_of_another_engine_with_one_warning(
    three: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Better(EchoEngine):
        @classmethod
        def describe(cls, settings: Any) -> Any:
            _, profile = EchoEngine.describe(settings)
            return EngineInfo("better", device="cpu"), profile

    monkeypatch.setattr(sys.modules[__name__], "Better", Better, raising=False)
    monkeypatch.setitem(engines.ENGINES, "better", f"{__name__}:Better")

    def prefer(name: str) -> None:
        """What `auto` finds best on this machine."""
        monkeypatch.setattr(
            engines, "_automatic", lambda engine: (replace(engine, name=name), "as the test says")
        )

    monkeypatch.setattr(engines, "AUTOMATIC", ("better", "echo"))
    prefer("echo")
    assert main(monkeypatch, "ocr", three, "-o", out) == 3
    before = read_records(out)
    prefer("better")
    capfd.readouterr()
    assert main(monkeypatch, "ocr", three, "-o", out) == 3
    warning = "another engine"
    assert capfd.readouterr().err.count(warning) == 1
    assert read_records(out) == before
    make_png(three / "c.png")
    assert main(monkeypatch, "ocr", three, "-o", out) == 3
    assert {r["engine"]["name"] for r in read_records(out)} == {"echo", "better"}
    capfd.readouterr()
    assert main(monkeypatch, "ocr", three, "-o", out, "--engine", "better") == 3
    assert warning not in capfd.readouterr().err
    assert len(read_records(out)) == 2 * 4 + 1


# --------------------------------------------------------------------------------------- interrupted


def go(folder: Path, out: Path, engine: Any, stopped: Callable[[], bool], load: Any = None) -> Report:
    """A run in process that can be stopped."""
    settings = Settings()
    digest = settings.digest(engine.info)
    context = Context("run", "ocr", engine.info, engine.profile, digest, 4352)
    sink = Sink([digest], journal=Journal(str(out)))
    with contextlib.closing(sink):
        documents = expand([str(folder)])
        return run(
            documents, settings, context, sink, Reporter(quiet=True), load or (lambda: engine), stopped
        )


def test_once_stopped_nothing_new_is_started(folder: Path, out: Path) -> None:
    make_pdf(folder / "a.pdf", [[f"page {n}"] for n in range(20)])
    engine = Counting()
    report = go(folder, out, engine, lambda: len(engine.asked) >= 10)
    assert report.interrupted
    assert len(engine.asked) == 10
    assert len(read_records(out)) == 10
    assert engine.closed == 1
    report = go(folder, out, engine, lambda: False)
    assert not report.interrupted
    assert sorted(r["page"] for r in read_records(out)) == list(range(1, 21))


def test_requests_that_wait_are_not_given_out_once_stopped() -> None:
    """A page may have many: an engine that reads for minutes would go on and on after Ctrl-C."""
    asked = [Request(Place(0, 1, 1, n, 5), (), "read", 9) for n in range(5)]
    batches = [asked]
    stopped: list[int] = []
    feed = loop._Feed(lambda wait: batches.pop() if batches else None, lambda: bool(stopped))
    assert feed.take(2, wait=True) == asked[:2]
    stopped.append(1)
    assert feed.take(2, wait=True) == []
    assert list(feed.taken.values()) == asked[:2]


def test_a_run_that_is_stopped_before_its_engine_is_needed_loads_none(folder: Path, out: Path) -> None:
    make_png(folder / "a.png")
    loaded: list[int] = []
    report = go(folder, out, Counting(), lambda: True, load=lambda: loaded.append(1))
    assert report.interrupted
    assert not loaded


def test_a_stop_that_comes_with_the_last_page_is_no_interruption(folder: Path, out: Path) -> None:
    make_png(folder / "a.png")
    engine = Counting()
    assert not go(folder, out, engine, lambda: bool(engine.asked)).interrupted


def test_ctrl_c_while_an_engine_is_loaded(folder: Path, out: Path) -> None:
    make_png(folder / "a.png")

    def load() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(folder, out, Counting(), lambda: False, load)
    assert not children()
    Journal(str(out)).close()  # and no lock


def test_an_engine_that_ends_early_is_asked_again_and_one_that_does_nothing_is_not(
    folder: Path, out: Path
) -> None:
    make_pdf(folder / "a.pdf", [["one"], ["two"], ["three"]])

    class Short(Counting):
        def generate(self, feed: Any) -> Iterator[Any]:
            for request in feed.take(1, wait=True):
                yield reply(request, "text")

    records, report = run_pages([folder], Short(), output=out)
    assert [r["status"] for r in records] == ["ok"] * 3
    assert not report.interrupted

    class Idle(Counting):
        def generate(self, feed: Any) -> Iterator[Any]:
            yield from ()

    make_png(folder / "b.png")
    with pytest.raises(RuntimeError, match="takes no requests"):
        run_pages([folder], Idle(), output=out)


def test_an_engine_that_hoards_does_not_stop_the_run(folder: Path, out: Path) -> None:
    """It takes all pages before it answers one, although fewer bytes may wait for it."""
    make_pdf(folder / "a.pdf", [[f"page {n}"] for n in range(6)])

    class Hoarder(Counting):
        def generate(self, feed: Any) -> Iterator[Any]:
            taken = []
            while requests := feed.take(1, wait=True):
                taken += requests
            for request in taken:
                yield reply(request, "text")

    settings = Settings(run=RunSettings(bytes_in_flight=1))
    records, _ = run_pages([folder], Hoarder(), settings, output=out)
    assert len(records) == 6


def test_nothing_of_a_page_is_kept_once_it_is_written(folder: Path, out: Path) -> None:
    """What a long run holds in memory does not grow with its pages, but for the journal's index."""
    make_pdf(folder / "a.pdf", [["one"], [], ["three"]])
    (folder / "bad.pdf").write_bytes(b"junk")
    make_png(folder / "0.png")  # has no page of the range: nothing to write, and nothing to wait for
    settings, engine = Settings(run=RunSettings(pages="2-end")), Counting()
    digest = settings.digest(engine.info)
    context = Context("run", "ocr", engine.info, engine.profile, digest, 4352)
    read, write = os.pipe()
    stream = Stream(write)
    sink = Sink([digest], journal=Journal(str(out)), stream=stream)
    documents = expand([str(folder), "missing.pdf"])
    with contextlib.closing(sink):
        made = loop._Run(
            documents, settings, context, sink, Reporter(quiet=True), lambda: engine, lambda: False, None
        )
        made.go()
    for fd in (read, write):
        os.close(fd)
    held = [made._active, made._begun, made._requests, made._waiting_bytes]
    held += [stream._waiting, stream._expected]
    of_source = ("_documents", "_places", "_retries", "_retried", "_probes", "unfinished")
    held += [getattr(made._source, name) for name in of_source]
    assert not any(held)


def test_a_handler_stops_first_and_ends_at_the_second_time(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    stop = ocr_module._Stop(None, Reporter())
    with stop:
        assert not stop.asked()
        signal.raise_signal(signal.SIGTERM)
        assert stop.asked()
        signal.raise_signal(signal.SIGTERM)
        assert stop.reason == "got SIGTERM"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr().err.count("Ctrl-C ends at once") == 1


# -------------------------------------------------------------------------------- signals, from outside

SLOW = """
import sys, time
import hiresvlm.cli
from hiresvlm.engines import echo

class Slow(echo.EchoEngine):
    def __init__(self, settings):
        print("loading", file=sys.stderr, flush=True)
        time.sleep(LOAD)
        super().__init__(settings)

    def _answer(self, request):
        time.sleep(PAGE)
        return super()._answer(request)

echo.EchoEngine = Slow
hiresvlm.cli.main()
"""


@contextlib.contextmanager
def started(
    folder: Path, out: Path, *, page: float = 0.05, load: float = 0.0
) -> Iterator[subprocess.Popen[str]]:
    """A run with a slow engine, in a process group of its own."""
    code = SLOW.replace("LOAD", str(load)).replace("PAGE", str(page))
    process = subprocess.Popen(
        [sys.executable, "-c", code, "ocr", str(folder), "--engine", "echo", "-o", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def children(parent: int | None = None) -> list[int]:
    """Processes that are workers of a parent (by default of this one), from /proc."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, IndexError):
            if name.isdigit():
                arguments = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
                place = arguments.index(b"hiresvlm.workers") if b"hiresvlm.workers" in arguments else None
                if place is not None and int(arguments[place + 2]) == (parent or os.getpid()):
                    found.append(int(name))
    return found


def count(out: Path) -> int:
    return out.read_bytes().count(b"\n") if out.exists() else 0


@pytest.fixture
def sixty(folder: Path) -> Path:
    for name in "abc":
        make_pdf(folder / f"{name}.pdf", [[f"{name} {n}"] for n in range(20)])
    return folder


def check_complete(folder: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A last run completes the file: every page once, in order."""
    assert main(monkeypatch, "ocr", folder, "--engine", "echo", "-o", out, "-q") == 0
    places = [(Path(r["source"]).stem, r["page"]) for r in read_records(out)]
    assert places == [(name, page) for name in "abc" for page in range(1, 21)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_in_order(
    sixty: Path, out: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    with started(sixty, out) as process:
        wait_for(lambda: count(out) >= 3)
        assert children(process.pid)
        process.send_signal(number)
        _, error = process.communicate(timeout=20)
    assert process.returncode == 130
    assert f"stopped before the end (got {number.name})" in error
    assert "Traceback" not in error
    kept = read_records(out)
    assert 3 <= len(kept) < 30
    assert not children(process.pid)
    check_complete(sixty, out, monkeypatch)
    assert {r["run"] for r in kept} < {r["run"] for r in read_records(out)}


@pytest.mark.parametrize(("page", "load", "ready"), [(30.0, 0.0, 0.5), (0.0, 30.0, 0.2)])
def test_a_second_ctrl_c_ends_at_once(sixty: Path, out: Path, page: float, load: float, ready: float) -> None:
    """In the middle of a page that takes half a minute, and while an engine is loaded."""
    with started(sixty, out, page=page, load=load) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "loading\n"
        time.sleep(ready)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=20)
        assert time.monotonic() - began < 5
    assert process.returncode == 130
    assert "Traceback" not in error
    assert not children(process.pid)
    Journal(str(out)).close()


@pytest.mark.slow
@pytest.mark.parametrize("whole_group", [True, False])
def test_killed_again_and_again_every_page_is_there_once(
    sixty: Path, out: Path, monkeypatch: pytest.MonkeyPatch, whole_group: bool
) -> None:
    luck = random.Random(20260101 + whole_group)
    seen = 0
    for _ in range(10):
        with started(sixty, out, page=0.02) as process:
            target = seen + luck.randrange(1, 6)
            wait_for(
                lambda target=target, process=process: count(out) >= target or process.poll() is not None
            )
            time.sleep(luck.random() * 0.05)
            assert process.poll() is None  # not refused by a lock, not at its end
            workers = children(process.pid)
            assert workers
            if whole_group:
                for worker in workers:
                    os.kill(worker, signal.SIGKILL)
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
        wait_for(lambda process=process: not children(process.pid), 10)
        # What was written whole is kept by every later run.
        found = [json.loads(line) for line in out.read_bytes().split(b"\n")[:-1]]
        keys = [(r["source"], r["page"]) for r in found]
        assert len(keys) == len(set(keys)) >= target > seen
        seen = len(keys)
    check_complete(sixty, out, monkeypatch)
