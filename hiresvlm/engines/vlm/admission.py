"""Which requests may be in work together: a budget of bytes, and a short queue with the longest first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

CLEAN_ADMISSIONS = 50
"""So many admissions without trouble raise a lowered budget..."""
RAISE = 1.1
"""...by this factor..."""
CEILING = 0.9
"""...but never above this share of what failed."""


class Budget:
    """Bytes of keys and values that the rows in work may fill. Halved when memory runs out."""

    def __init__(self, limit: int, token_bytes: int) -> None:
        self.limit = float(limit)
        self.token_bytes = token_bytes
        self.failures = 0
        self._ceiling = float("inf")
        self._start = float(limit)
        self._clean = 0

    def cost(self, rows: int, longest: int) -> float:
        """Bytes of so many rows; every row is as wide as the longest, in tokens of prompt and answer."""
        return float(rows * longest * self.token_bytes)

    def fits(self, rows: int, longest: int) -> bool:
        """Whether rows may be in work together. One alone always may: nothing smaller can be tried."""
        return rows <= 1 or self.cost(rows, longest) <= self.limit

    def failed(self, rows: int, longest: int) -> None:
        """Memory ran out with so many rows in work."""
        used = self.cost(rows, longest)
        self.failures += 1
        self._ceiling = min(self._ceiling, CEILING * used)
        self.limit = min(self.limit, used) / 2
        self._clean = 0

    def admitted(self) -> None:
        """An admission went well."""
        self._clean += 1
        if self._clean >= CLEAN_ADMISSIONS:
            self._clean = 0
            self.limit = max(self.limit, min(self.limit * RAISE, self._ceiling, self._start))


class Sized(Protocol):
    @property
    def size(self) -> int:
        """Tokens of prompt and longest answer together."""
        ...


J = TypeVar("J", bound=Sized)


class Window(Generic[J]):
    """Waiting jobs. In blocks of arrival, and within a block the longest first.

    So a lack of memory shows at the start and rows of like length run together, while no job waits longer
    than its block and the ones before.
    """

    def __init__(self, block: int) -> None:
        self._block = block
        self._arrivals = 0
        self._jobs: list[tuple[int, int, int, J]] = []

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def room(self) -> int:
        return max(0, self._block - len(self._jobs))

    def add(self, job: J, *, first: bool = False) -> None:
        """Queue a job. `first`: before all others, for one that was in work already."""
        arrival = self._arrivals
        self._arrivals += 1
        self._jobs.append((-1 if first else arrival // self._block, -job.size, arrival, job))
        self._jobs.sort(key=lambda entry: entry[:3])

    def pop(self, fits: Callable[[J], bool]) -> J | None:
        """The longest job of the oldest block that fits."""
        for number, (block, _, _, job) in enumerate(self._jobs):
            if block != self._jobs[0][0]:
                return None
            if fits(job):
                del self._jobs[number]
                return job
        return None

    def discard(self, job: J) -> None:
        """Take a job out, if it waits."""
        self._jobs = [entry for entry in self._jobs if entry[3] is not job]
