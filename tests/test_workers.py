"""Workers: what a task may do to its process, and what that costs the others."""

from __future__ import annotations

import math
import operator
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from hiresvlm import workers
from hiresvlm.workers import Done, Pool, Trouble

TASKS = """
import ctypes, os, signal, sys, time

def segfault():
    ctypes.string_at(0)

def killed():
    os.kill(os.getpid(), signal.SIGKILL)

def exits():
    sys.exit(3)

def deaf(seconds):
    "Hangs in C with the GIL held, deaf to every signal that Python handles."
    ctypes.PyDLL(None).sleep(ctypes.c_uint(seconds))

def raises():
    raise ValueError("what the file says")

def lacks_memory():
    raise MemoryError

def talks():
    print("from print")
    os.write(1, b"from C")
    sys.stdout.flush()
    return "said"

def hoards(size):
    global held
    held = bytearray(size)
    return os.getpid()

def allocates(size):
    return len(bytearray(size))

def no_pickle():
    return lambda: None

def only_pickles():
    return OnlyPickles()

class OnlyPickles:
    def __reduce__(self):
        return (int, ("not a number",))

def imported():
    import numpy
    return numpy.__file__, hasattr(numpy, "planted")

def limits():
    import resource
    return resource.getrlimit(resource.RLIMIT_AS)[0], resource.getrlimit(resource.RLIMIT_CORE)[0]

def slow_start(seconds):
    time.sleep(seconds)
    return os.getpid()
"""


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tasks as a module that workers can import too."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "misbehaving_tasks.py").write_text(TASKS)
    monkeypatch.setenv("PYTHONPATH", str(library))
    module = ModuleType("misbehaving_tasks")
    exec(TASKS, module.__dict__)  # the functions are never called here, only named
    monkeypatch.setitem(sys.modules, "misbehaving_tasks", module)
    return module


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = Pool(1)
    yield pool
    pool.close()


def collect(pool: Pool, wait_s: float = 20.0) -> list[Done]:
    """All tasks in work, in the order they finish."""
    done: list[Done] = []
    end = time.monotonic() + wait_s
    while pool.busy and time.monotonic() < end:
        done += pool.poll(1.0)
    assert not pool.busy, "a task neither finished nor failed"
    return done


def call(pool: Pool, task: Callable[..., Any], *args: Any, timeout_s: float = 20.0) -> Done:
    pool.submit("key", task, *args, timeout_s=timeout_s)
    (done,) = collect(pool)
    assert done.key == "key"
    return done


def gone(pids: list[int], wait_s: float = 10.0) -> bool:
    """Whether all these processes end; a zombie has ended."""
    end = time.monotonic() + wait_s
    while time.monotonic() < end:
        if not any(_runs(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_values_come_back_with_their_keys() -> None:
    pool = Pool(2)
    try:
        pool.submit(("a", 1), math.factorial, 5, timeout_s=20)
        pool.submit(("b", 2), operator.add, "x", "y", timeout_s=20)
        assert pool.free == 0
        with pytest.raises(RuntimeError, match="no worker is free"):
            pool.submit("c", math.factorial, 5, timeout_s=20)
        assert {done.key: done.value for done in collect(pool)} == {("a", 1): 120, ("b", 2): "xy"}
        assert pool.free == 2
    finally:
        pool.close()


def test_no_worker_is_started_before_there_is_work() -> None:
    pool = Pool(4)
    assert pool.poll(10.0) == []
    assert not psutil.Process().children()
    pool.close()


def test_a_worker_is_used_again_after_an_error(pool: Pool, tasks: Any) -> None:
    first = call(pool, os.getpid).value
    failed = call(pool, tasks.raises)
    assert (failed.trouble, failed.detail) == (Trouble.ERROR, "ValueError: what the file says")
    assert failed.value is None
    assert call(pool, os.getpid).value == first


@pytest.mark.parametrize("death", ["segfault", "killed", "exits"])
def test_a_death_costs_only_its_task(tasks: Any, death: str) -> None:
    pool = Pool(2)
    try:
        pool.submit("bystander", tasks.slow_start, 0.3, timeout_s=20)
        pool.submit("victim", getattr(tasks, death), timeout_s=20)
        done = {d.key: d for d in collect(pool)}
        assert done["victim"].trouble is Trouble.CRASH
        assert isinstance(done["bystander"].value, int)
        assert call(pool, math.factorial, 3).value == 6
    finally:
        pool.close()


def test_a_death_while_idle_is_charged_to_nobody(pool: Pool) -> None:
    pid = call(pool, os.getpid).value
    os.kill(pid, signal.SIGKILL)
    assert gone([pid])
    assert call(pool, math.factorial, 3).value == 6


def test_a_task_that_hangs_with_the_gil_held_is_ended(pool: Pool, tasks: Any) -> None:
    began = time.monotonic()
    pool.submit("hangs", tasks.deaf, 60, timeout_s=0.5)
    (worker,) = pool._busy.values()
    (done,) = collect(pool)
    assert done.trouble is Trouble.TIMEOUT
    assert time.monotonic() - began < 10
    assert gone([worker._process.pid])
    assert call(pool, math.factorial, 3).value == 6


def test_too_much_memory_is_an_error_of_the_task(tasks: Any) -> None:
    pool = Pool(1, memory=400 * 2**20)
    try:
        assert call(pool, tasks.allocates, 1000).value == 1000
        refused = call(pool, tasks.allocates, 2**30)
        assert refused.trouble is Trouble.ERROR
        assert refused.detail.startswith("MemoryError")
        assert call(pool, tasks.allocates, 1000).value == 1000
    finally:
        pool.close()


def test_workers_have_a_memory_limit_and_leave_no_core_files(pool: Pool, tasks: Any) -> None:
    assert call(pool, tasks.limits).value == (workers.MAX_MEMORY, 0)


def test_a_lower_memory_limit_of_the_user_stays() -> None:
    code = f"""
        import resource
        from hiresvlm.workers import _limit_memory
        resource.setrlimit(resource.RLIMIT_AS, ({2**31}, resource.RLIM_INFINITY))
        _limit_memory({2**33})
        print(resource.getrlimit(resource.RLIMIT_AS)[0])
    """
    shown = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert int(shown.stdout) == 2**31


def test_a_worker_is_replaced_after_a_lack_of_memory(pool: Pool, tasks: Any) -> None:
    first = call(pool, os.getpid).value
    assert call(pool, tasks.lacks_memory).trouble is Trouble.ERROR
    assert call(pool, os.getpid).value != first


@pytest.mark.skipif(sys.platform != "linux", reason="the memory in use is known on Linux only")
def test_a_worker_that_hoards_memory_is_replaced(tmp_path: Path, tasks: Any) -> None:
    (tmp_path / "library" / "sitecustomize.py").write_text(
        "import sys\n"
        "class Patch:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'misbehaving_tasks':\n"
        "            sys.modules['__main__'].RETIRE_MEMORY = 100 * 2**20\n"
        "sys.meta_path.insert(0, Patch())\n"
    )
    pool = Pool(1)
    try:
        first = call(pool, tasks.hoards, 1000).value
        assert call(pool, tasks.hoards, 200 * 2**20).value == first
        assert call(pool, os.getpid).value != first
    finally:
        pool.close()


def test_a_worker_is_replaced_after_a_number_of_tasks(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "TASKS_PER_WORKER", 2)
    pids = [call(pool, os.getpid).value for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]
    assert gone(pids)


@pytest.mark.parametrize("value", ["no_pickle", "only_pickles"])
def test_a_value_that_cannot_travel_is_an_error(pool: Pool, tasks: Any, value: str) -> None:
    assert call(pool, getattr(tasks, value)).trouble is Trouble.ERROR
    assert call(pool, math.factorial, 3).value == 6


def test_arguments_that_cannot_travel_leave_no_worker_behind(pool: Pool) -> None:
    with pytest.raises(Exception, match="pickle"):
        pool.submit("key", math.factorial, lambda: None, timeout_s=20)
    assert pool.free == 1
    assert not psutil.Process().children()


def test_a_value_larger_than_any_pipe_buffer(pool: Pool) -> None:
    assert len(call(pool, bytes, 30_000_000).value) == 30_000_000


def test_close_ends_idle_and_busy_workers(tasks: Any) -> None:
    pool = Pool(2)
    idle = call(pool, os.getpid).value
    pool.submit("a", tasks.deaf, 60, timeout_s=60)
    pool.submit("b", tasks.deaf, 60, timeout_s=60)
    pids = [child.pid for child in psutil.Process().children()]
    assert idle in pids
    assert len(pids) == 2
    pool.close()
    pool.close()
    assert gone(pids)


def test_pools_leave_no_open_files(tasks: Any) -> None:
    before = psutil.Process().num_fds()
    for _ in range(3):
        pool = Pool(1)
        call(pool, tasks.killed)
        call(pool, math.factorial, 3)
        pool.close()
    assert psutil.Process().num_fds() == before


def test_what_a_task_prints_goes_nowhere(tmp_path: Path, tasks: Any) -> None:
    """Standard output of the program carries records only."""
    code = """
        import misbehaving_tasks
        from hiresvlm.workers import Pool
        for verbose in (False, True):
            pool = Pool(1, verbose=verbose)
            pool.submit(1, misbehaving_tasks.talks, timeout_s=20)
            while not (done := pool.poll(1.0)):
                pass
            assert done[0].value == "said"
            pool.close()
    """
    shown = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, check=True)
    assert (shown.stdout, shown.stderr) == (b"", b"")


def test_a_file_named_like_a_library_in_the_current_folder_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: Any
) -> None:
    (tmp_path / "numpy.py").write_text("planted = True\n")
    (tmp_path / "hiresvlm.py").write_text("raise SystemExit\n")
    monkeypatch.chdir(tmp_path)
    pool = Pool(1)
    try:
        file, planted = call(pool, tasks.imported).value
    finally:
        pool.close()
    assert not planted
    assert not file.startswith(str(tmp_path))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a busy worker lives until its alarm")
def test_a_killed_parent_leaves_no_workers(tasks: Any) -> None:
    code = """
        import os, sys, time, misbehaving_tasks
        from hiresvlm.workers import Pool
        pool = Pool(2)
        pool.submit("idle", os.getpid, timeout_s=60)
        while not pool.poll(1.0):
            pass
        pool.submit("busy", misbehaving_tasks.deaf, 60, timeout_s=60)
        pool.submit("busy too", misbehaving_tasks.slow_start, 0, timeout_s=60)
        while not pool.poll(1.0):
            pass
        print(*(w._process.pid for w in (*pool._idle, *pool._busy.values())), flush=True)
        time.sleep(60)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(pids) == 2
    assert gone(pids)


def test_a_hung_worker_whom_nobody_watches_ends_by_itself(tasks: Any) -> None:
    """Where the kernel sends no signal at the death of a parent, the alarm must do."""
    code = """
        import sys
        from hiresvlm import workers
        workers._ALARM_GRACE_S = 0.1
        workers._die_with = lambda parent: None
        workers._main(int(sys.argv[1]), 0, workers.MAX_MEMORY)
    """
    ours, theirs = socket.socketpair()
    with theirs:
        worker = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code), str(theirs.fileno())], pass_fds=[theirs.fileno()]
        )
    with Connection(ours.detach()) as pipe:
        pipe.send(("math:factorial", (3,), 0.2))
        assert pipe.recv() == (6, None, False)
        pipe.send(("misbehaving_tasks:deaf", (60,), 0.2))
        assert worker.wait(timeout=20) == -signal.SIGALRM
