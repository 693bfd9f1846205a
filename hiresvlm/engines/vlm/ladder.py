"""One request from its first attempt to its reply: what is tried when an answer cannot be trusted.

    greedy -> no run of tokens twice -> the image in two halves -> temperature 0.3 -> 0.7

An answer that ends by itself and is no refusal is taken at once. What no attempt brings to an end stays
marked with the reason, so that the page is `partial` and says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hiresvlm.datatypes import Failure, Reply, Request, Stop, Tokens
from hiresvlm.engines.vlm.confidence import Written, lines_of
from hiresvlm.engines.vlm.ink import characters
from hiresvlm.engines.vlm.refusal import is_refusal
from hiresvlm.engines.vlm.sampling import GREEDY, Decoding
from hiresvlm.engines.vlm.splitting import halves
from hiresvlm.engines.vlm.stopping import Limits, TextOf

if TYPE_CHECKING:
    from hiresvlm.datatypes import Pixels

NO_REPEAT = Decoding(no_repeat=24)
LADDER: tuple[tuple[str, Decoding], ...] = (
    ("greedy", GREEDY),
    ("no_repeat", NO_REPEAT),
    ("split", GREEDY),
    ("temperature_0.3", Decoding(no_repeat=24, temperature=0.3, seed=1)),
    ("temperature_0.7", Decoding(no_repeat=24, temperature=0.7, seed=2)),
)
INK_SLACK = 1.3
INK_EXTRA = 64
"""An answer may have 1.3 tokens for each character that the ink can hold, and 64."""


@dataclass(slots=True, eq=False)
class Job:
    """One answer to write: the whole of a request or a half of it."""

    task: Task
    part: int
    images: tuple[Pixels, ...]
    decoding: Decoding
    limits: Limits
    inked: int | None
    """Characters that the ink can hold; None where that says nothing about the answer."""
    prompt_tokens: int = 0
    visual_tokens: int = 0
    visual_full: int = 0
    """Visual tokens with the cells that were pruned."""
    alone: bool = False
    """It was in a batch that crashed, and is tried once more without company."""

    @property
    def size(self) -> int:
        return self.prompt_tokens + self.limits.tokens


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended."""

    job: Job
    text: str
    stop: Stop
    written: Written
    capped: bool = False
    """It was the ink that limited its length, not the user."""


@dataclass(slots=True, eq=False)
class Task:
    """A request in work."""

    request: Request
    factor: int
    rung: int = 0
    recut: bool = False
    """The images are halves already, because the whole did not fit into memory."""
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    best: tuple[Outcome, ...] = ()
    started: float | None = None
    first_token: float | None = None
    encode_ms: float = 0.0
    prefill_ms: float = 0.0

    def jobs(self) -> list[Job]:
        """The jobs of the present attempt; empty when this one is not possible."""
        name, decoding = LADDER[self.rung]
        images = [tuple(view.pixels for view in self.request.views)]
        if self.recut or name == "split":
            if len(images[0]) != 1 or (self.recut and name == "split"):
                return []
            parts = halves(images[0][0], self.factor)
            if parts is None:
                return []
            images = [(part,) for part in parts]
        self.outcomes.clear()
        return [self._job(number, part, decoding) for number, part in enumerate(images)]

    def take(self, outcome: Outcome) -> list[Job] | None:
        """Note how a job ended. New jobs to do (maybe none, while others are out), or None: `reply` is
        ready."""
        self.outcomes[outcome.job.part] = outcome
        count = 2 if self.recut or LADDER[self.rung][0] == "split" else 1
        if len(self.outcomes) < count:
            return []
        attempt = tuple(self.outcomes[part] for part in range(count))
        if not self.best or _worth(attempt) > _worth(self.best):
            self.best = attempt
        if not any(_retried(one) for one in attempt):
            self.best = attempt
            return None
        return self.next_attempt()

    def next_attempt(self) -> list[Job] | None:
        """Jobs of the next attempt that is possible, None after the last."""
        while self.rung + 1 < len(LADDER):
            self.rung += 1
            jobs = self.jobs()
            if jobs:
                return jobs
        return None

    def recut_jobs(self) -> list[Job]:
        """The request in two smaller parts, as it does not fit into memory; empty when that was tried."""
        if self.recut:
            return []
        self.recut = True
        return self.jobs()

    def reply(self, text_of: TextOf, finished: float) -> Reply:
        """The best attempt as a reply."""
        stop = next((one.stop for one in self.best if one.stop is not Stop.EOS), Stop.EOS)
        text = "\n".join(one.text for one in self.best)
        chunk = 0
        return Reply(
            self.request.place,
            text.strip("\n"),
            lines_of(text, [one.written for one in self.best], text_of, chunk),
            self._tokens(),
            stop,
            started=finished if self.started is None else self.started,
            finished=finished,
            encode_ms=self.encode_ms,
            prefill_ms=self.prefill_ms,
            ttft_ms=None
            if self.first_token is None or self.started is None
            else (self.first_token - self.started) * 1e3,
        )

    def failed(self, failure: Failure, finished: float) -> Reply:
        started = finished if self.started is None else self.started
        return Reply(self.request.place, "", started=started, finished=finished, failure=failure)

    def _tokens(self) -> Tokens:
        return Tokens(
            visual=sum(one.job.visual_tokens for one in self.best),
            visual_full=sum(one.job.visual_full for one in self.best),
            prompt=sum(one.job.prompt_tokens for one in self.best),
            output=sum(len(one.written.ids) for one in self.best),
        )

    def _job(self, number: int, images: Sequence[Pixels], decoding: Decoding) -> Job:
        limit = self.request.max_new_tokens
        inked = sum(map(characters, images)) if self.request.transcribes else None
        bound = None if inked is None else int(INK_SLACK * inked) + INK_EXTRA
        limits = Limits(limit if bound is None else min(limit, bound), inked)
        return Job(self, number, tuple(images), decoding, limits, inked)


def _retried(outcome: Outcome) -> bool:
    """Whether another attempt may do better. An answer that reached the user's own limit is what was asked
    for."""
    if outcome.stop is Stop.EOS:
        return False
    return outcome.stop is not Stop.LENGTH or outcome.capped


def _worth(attempt: Sequence[Outcome]) -> tuple[int, int]:
    """Attempts in order: fewer parts that went wrong, then more text."""
    return (
        -sum(one.stop is not Stop.EOS for one in attempt),
        sum(0 if one.stop is Stop.REFUSAL else len(one.text) for one in attempt),
    )


def outcome_of(
    job: Job, stop: Stop, ids: Sequence[int], logprobs: Sequence[float], text_of: TextOf
) -> Outcome:
    """Judge the tokens of a finished job."""
    text = text_of(ids)
    if stop is Stop.EOS and is_refusal(text, job.inked):
        stop = Stop.REFUSAL
    capped = stop is Stop.LENGTH and job.limits.tokens < job.task.request.max_new_tokens
    return Outcome(job, text, stop, Written(tuple(ids), tuple(logprobs)), capped)
