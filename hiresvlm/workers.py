"""Worker processes that may crash, hang or be killed without harm to the run.

Rendering needs processes: MuPDF holds the GIL for a whole page, and a hostile file can crash it. A
pool of futures does not do: one death breaks it whole, and a hung task cannot be ended. Here each
worker has one task at a time and a pipe of its own, so the parent knows which task a death cost.

A worker never outlives its parent: an idle one sees the end of its pipe, a busy one gets a signal
from the kernel (Linux) and has an alarm of its own (everywhere), which also works while C code hangs.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection, wait
from typing import Any

from hiresvlm.errors import HiresvlmError

MAX_MEMORY = 8 * 2**30
"""Address space of a worker in bytes: a file that wants more fails alone instead of taking the machine."""

TASKS_PER_WORKER = 500
"""A worker is replaced after so many tasks, which bounds what a leaking library can hold."""

RETIRE_MEMORY = 2 * 2**30
"""A worker that still holds so many bytes after a task is replaced, whatever keeps them (Linux)."""

_ALARM_GRACE_S = 5.0
_PR_SET_PDEATHSIG = 1


class Trouble(StrEnum):
    """What became of a task that has no value."""

    CRASH = "crash"
    TIMEOUT = "timeout"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Done:
    """A finished task: its value, or the trouble and (for an error) the exception as text."""

    key: Hashable
    value: Any = None
    trouble: Trouble | None = None
    detail: str = ""


class WorkerError(HiresvlmError):
    """The system gives no more processes or open files."""


class Pool:
    """At most `size` worker processes, started when they are needed. Use it from one thread."""

    def __init__(self, size: int, *, verbose: bool = False, memory: int = MAX_MEMORY) -> None:
        self._size = max(1, size)
        self._verbose = verbose
        self._memory = memory
        self._idle: list[_Worker] = []
        self._busy: dict[Hashable, _Worker] = {}

    @property
    def free(self) -> int:
        """Tasks that can be submitted now."""
        return self._size - len(self._busy)

    @property
    def busy(self) -> int:
        return len(self._busy)

    def submit(self, key: Hashable, task: Callable[..., Any], *args: Any, timeout_s: float) -> None:
        """Start `task(*args)` in a worker. `task` is a module-level function; needs `free` > 0."""
        if self.free < 1:
            raise RuntimeError("no worker is free")
        worker = self._take()
        self._busy[key] = worker
        try:
            worker.start(f"{task.__module__}:{task.__qualname__}", args, timeout_s)
        except Exception:  # what cannot be pickled is a mistake of the caller
            del self._busy[key]
            worker.kill()
            raise

    def _take(self) -> _Worker:
        """An idle worker that lives, or a new one: a death while idle is not the fault of a task."""
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            worker.kill()
        try:
            return _Worker(self._verbose, self._memory)
        except OSError as error:
            reason = error.strerror or "unknown"
            raise WorkerError(
                f"a rendering process cannot be started: {reason}",
                "fewer --workers, or a higher limit (ulimit -n, ulimit -u), help",
            ) from error

    def poll(self, wait_s: float) -> list[Done]:
        """Finished tasks; waits up to `wait_s` seconds for the first one."""
        if not self._busy:
            return []
        until_deadline = min(worker.deadline for worker in self._busy.values()) - time.monotonic()
        wait([w.pipe for w in self._busy.values()], timeout=max(0.0, min(wait_s, until_deadline)))
        done = []
        for key, worker in list(self._busy.items()):
            if worker.pipe.poll():
                result = worker.result(key)
            elif time.monotonic() > worker.deadline:
                result = Done(key, trouble=Trouble.TIMEOUT)
            else:
                continue
            del self._busy[key]
            done.append(result)
            healthy = result.trouble in (None, Trouble.ERROR) and not worker.tired
            if healthy and worker.tasks < TASKS_PER_WORKER:
                self._idle.append(worker)
            else:
                worker.kill()
        return done

    def close(self) -> None:
        """End all workers at once, busy or not."""
        for worker in (*self._idle, *self._busy.values()):
            worker.kill()
        self._idle.clear()
        self._busy.clear()


class _Worker:
    def __init__(self, verbose: bool, memory: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs, contextlib.ExitStack() as undo:
            undo.callback(ours.close)
            # -P: a file named like a library in the current folder must not be imported.
            arguments = map(str, (theirs.fileno(), os.getpid(), memory))
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "hiresvlm.workers", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=None if verbose else subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C is for the parent, which ends its workers in order
            )
            undo.pop_all()
        self.pipe = Connection(ours.detach())
        self.tasks = 0
        self.tired = False
        self.deadline = float("inf")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def start(self, name: str, args: tuple[Any, ...], timeout_s: float) -> None:
        self.tasks += 1
        self.deadline = time.monotonic() + timeout_s
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `result` will see the death
            self.pipe.send((name, args, timeout_s))

    def result(self, key: Hashable) -> Done:
        try:
            value, error, self.tired = self.pipe.recv()
        except (EOFError, OSError):
            return Done(key, trouble=Trouble.CRASH)
        except Exception as error:  # a value that only pickles, or that is damaged
            self.tired = True
            return Done(key, trouble=Trouble.ERROR, detail=f"{type(error).__name__}: {error}")
        return Done(key, value) if error is None else Done(key, trouble=Trouble.ERROR, detail=error)

    def kill(self) -> None:
        self.pipe.close()
        self._process.kill()
        self._process.wait()


def _main(fd: int, parent: int, memory: int) -> None:
    """The loop of a worker: receive a task, run it, send the value."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    _die_with(parent)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory(memory)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    pipe = Connection(fd)
    while True:
        try:
            name, args, timeout_s = pipe.recv()
        except (EOFError, OSError):
            return
        signal.setitimer(signal.ITIMER_REAL, timeout_s + _ALARM_GRACE_S)
        answer = _answer(name, args)
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            pipe.send_bytes(answer)
        except (BrokenPipeError, ConnectionResetError):
            return
        del args, answer  # a page waits for nobody


def _answer(name: str, args: tuple[Any, ...]) -> bytes:
    """Run a task and pickle (value, error, tired). Whatever it raises goes to the parent as text.

    After a lack of memory the worker is `tired`: what is left of its heap may be too broken up for
    the next task.
    """
    tired = False
    try:
        module, _, function = name.partition(":")
        value = getattr(importlib.import_module(module), function)(*args)
        return pickle.dumps((value, None, _resident() > RETIRE_MEMORY))
    except MemoryError:
        error, tired = "MemoryError: more memory is needed than a worker may take", True
    except Exception as exception:
        error = f"{type(exception).__name__}: {exception}"
    return pickle.dumps((None, error, tired))


def _resident() -> int:
    """Bytes that this process holds in memory; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def _limit_memory(limit: int) -> None:
    """Limit the address space of this process, unless the user has set a lower limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    lowest = min(value for value in (soft, hard, limit) if value != resource.RLIM_INFINITY)
    with contextlib.suppress(ValueError, OSError):  # a system that knows no such limit
        resource.setrlimit(resource.RLIMIT_AS, (lowest, lowest))


def _die_with(parent: int) -> None:
    """Ask the kernel to end this process when its parent ends (Linux; elsewhere the alarm must do)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)


if __name__ == "__main__":
    _main(*map(int, sys.argv[1:4]))
