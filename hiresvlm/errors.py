"""What ends a run: exit codes, and the errors that carry them.

    HiresvlmError
    ├── UsageError        2   the command line does not make sense
    ├── NoInputError      4   nothing to read
    ├── EngineLoadError   5   engine or model cannot be loaded
    ├── OutputError       6   the output cannot be written or is not ours
    └── LockedError       7   another run holds the output

Trouble with one document or page is not an exception but a `datatypes.Failure`: it travels with the
data and becomes a record, and the run goes on.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command. They are a stable interface: scripts and cron jobs rely on them."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    INCOMPLETE = 3
    NO_INPUT = 4
    ENGINE = 5
    OUTPUT = 6
    LOCKED = 7
    INTERRUPTED = 130


class HiresvlmError(Exception):
    """An error that a user can cause: one clear sentence, and a hint what to do where there is one."""

    exit_code = ExitCode.UNEXPECTED

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(HiresvlmError):
    exit_code = ExitCode.USAGE


class NoInputError(HiresvlmError):
    exit_code = ExitCode.NO_INPUT


class EngineLoadError(HiresvlmError):
    exit_code = ExitCode.ENGINE


class OutputError(HiresvlmError):
    exit_code = ExitCode.OUTPUT


class LockedError(HiresvlmError):
    exit_code = ExitCode.LOCKED
