"""The loop: requests of a feed become rows, rows become replies, each request exactly one.

    take -> admit (within a budget of bytes) -> encode images -> prefill -> decode, step by step -> judge

One thread does all of it. When memory runs out, everything in work goes back to the queue, the budget is
halved and the loop goes on; a request that does not fit even alone is cut in two once, and then answered with
a failure.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch

from hiresvlm.datatypes import Failure, FailureKind, Reply, Step
from hiresvlm.engines.vlm.admission import Budget, Window
from hiresvlm.engines.vlm.inputs import ImageInput, Prompt, image_input
from hiresvlm.engines.vlm.ladder import LADDER, Job, Task, outcome_of
from hiresvlm.engines.vlm.slots import Row, Slots
from hiresvlm.engines.vlm.stopping import Ending, TextOf, ending
from hiresvlm.errors import EngineLoadError

if TYPE_CHECKING:
    from hiresvlm.engines import Feed
    from hiresvlm.engines.vlm.inputs import PromptMaker
    from hiresvlm.engines.vlm.loading import ImageSettings
    from hiresvlm.engines.vlm.vision import VisionEncoder

PREFILL_TOKENS = 16_384
"""Padded tokens of one prefill."""
REFILL_STEPS = 64
"""The feed is asked for more at least this often while a slot is free."""
POLL_STEPS = 4
"""And no more often than this: each time polls the rendering processes."""
LEAST_WAITING = 8
"""Requests that wait, and at least twice the slots: enough to sort by length, few enough to end soon when
asked."""
MAX_DEVICE_ERRORS = 3
"""So many requests in a row that fail on a GPU by themselves mean that the GPU is lost, not that they are
bad."""


@dataclass(slots=True)
class Stats:
    """What a loop did, for the report and the benchmark."""

    steps: int = 0
    row_steps: int = 0
    """Tokens written by steps; divided by steps and slots it is the use of the slots."""
    prefills: int = 0
    prefill_tokens: int = 0
    padded_tokens: int = 0
    encode_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    tokens: int = 0
    """Tokens written in all, those of attempts that were thrown away too."""
    out_of_memory: int = 0
    crashes: int = 0
    attempts: dict[str, int] = field(default_factory=dict)
    """How often each rung of the ladder was tried."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a loop is made of."""

    encoder: VisionEncoder
    slots: Slots
    prompts: PromptMaker
    image: ImageSettings
    ends: frozenset[int]
    text_of: TextOf
    budget: Budget
    rows: int
    """Most rows in work at a time."""
    instruction: str | None
    """What the model was trained to transcribe with; None: the request's own words."""
    prune: bool = False
    """Whether blank cells of images are dropped."""
    release: Callable[[], None] = lambda: None
    """Gives back memory that nothing uses any more."""
    clock: Callable[[], float] = time.perf_counter
    ending: Callable[[Row, Job], Ending | None] | None = None
    """Another rule for when an answer is over; for benchmarks, where all ways must write the same tokens."""


class Loop:
    """One use of a loaded model."""

    def __init__(self, parts: Parts, stats: Stats) -> None:
        self._parts = parts
        self._slots = parts.slots
        self._budget = parts.budget
        self._stats = stats
        self._waiting: Window[Job] = Window(max(LEAST_WAITING, 2 * parts.rows))
        self._prompts: dict[Job, Prompt] = {}
        self._rows: dict[Row, Job] = {}
        self._replies: list[Reply] = []
        self._open = 0
        self._since_poll = POLL_STEPS
        self._device_errors = 0

    def run(self, feed: Feed) -> Iterator[Reply]:
        """Answer every request of the feed."""
        try:
            while True:
                self._take(feed)
                yield from self._given()
                if not self._open:
                    return
                newcomers = self._admit()
                if newcomers:
                    self._guard(lambda: self._join(newcomers), newcomers)  # noqa: B023  (called at once)
                elif self._rows:
                    self._guard(self._step, list(self._rows.values()))
                self._collect()
                yield from self._given()
        finally:
            self._slots.clear()
            self._rows.clear()

    # ------------------------------------------------------------------------------ requests -> jobs

    def _take(self, feed: Feed) -> None:
        free = self._parts.rows - len(self._rows)
        self._since_poll += 1
        due = POLL_STEPS if free >= max(1, self._parts.rows // 8) else REFILL_STEPS
        if self._open and (self._since_poll < due or not self._waiting.room):
            return
        self._since_poll = 0
        for request in feed.take(max(1, self._waiting.room), wait=not self._open):
            self._open += 1
            task = Task(request, self._parts.image.factor)
            self._queue(task.jobs())

    def _queue(self, jobs: Sequence[Job], *, first: bool = False) -> None:
        for job in jobs:
            if job not in self._prompts:
                prune = self._parts.prune
                images = [image_input(pixels, self._parts.image, prune=prune) for pixels in job.images]
                request = job.task.request
                own = self._parts.instruction if request.transcribes else None
                prompt = self._parts.prompts.prompt(own or request.prompt, images)
                self._prompts[job] = prompt
                job.prompt_tokens = len(prompt)
                job.visual_tokens = sum(image.tokens for image in images)
                job.visual_full = sum(image.cells for image in images)
                name = LADDER[job.task.rung][0]
                self._stats.attempts[name] = self._stats.attempts.get(name, 0) + 1
            self._waiting.add(job, first=first)

    def _admit(self) -> list[Job]:
        """Jobs that get a slot now: none while fewer than an eighth of the slots is free."""
        free = self._parts.rows - len(self._rows)
        if not self._waiting or (self._rows and free < max(1, self._parts.rows // 8)):
            return []
        if any(job.alone for job in self._rows.values()):
            return []
        admitted: list[Job] = []
        longest = max((job.size for job in self._rows.values()), default=0)

        def fits(job: Job) -> bool:
            rows = len(self._rows) + len(admitted)
            if job.alone or any(other.alone for other in admitted):
                return rows == 0
            return self._budget.fits(rows + 1, max(longest, job.size))

        while len(admitted) < free:
            job = self._waiting.pop(fits)
            if job is None:
                break
            admitted.append(job)
            longest = max(longest, job.size)
        return admitted

    # ------------------------------------------------------------------------------------ the model

    def _join(self, jobs: Sequence[Job]) -> None:
        """Encode and prefill newcomers, in groups of bounded size."""
        parts, clock = self._parts, self._parts.clock
        began = clock()
        for job in jobs:
            if job.task.started is None:
                job.task.started = began
        prompts = [self._prompts[job] for job in jobs]
        images: list[ImageInput] = [image for prompt in prompts for image in prompt.images]
        features = iter(parts.encoder.encode(images))
        seen = {
            job: [next(features) for _ in prompt.images] for job, prompt in zip(jobs, prompts, strict=True)
        }
        encoded = clock()
        self._stats.encode_s += encoded - began
        patches = sum(image.patches for image in images)
        for job, prompt in zip(jobs, prompts, strict=True):
            own = sum(image.patches for image in prompt.images)
            job.task.encode_ms += (encoded - began) * 1e3 * own / max(1, patches)
        for group in _groups(jobs):
            before = clock()
            rows = [Row(self._prompts[job], job.decoding) for job in group]
            parts.slots.join(rows, [seen[job] for job in group])
            self._rows.update(zip(rows, group, strict=True))
            after = clock()
            tokens = sum(job.prompt_tokens for job in group)
            self._stats.prefill_s += after - before
            self._stats.prefills += 1
            self._stats.prefill_tokens += tokens
            self._stats.padded_tokens += len(group) * max(job.prompt_tokens for job in group)
            self._stats.tokens += len(group)
            for job in group:
                job.task.prefill_ms += (after - before) * 1e3 * job.prompt_tokens / tokens
                if job.task.first_token is None:
                    job.task.first_token = after
        self._budget.admitted()

    def _step(self) -> None:
        before = self._parts.clock()
        self._slots.step()
        self._stats.decode_s += self._parts.clock() - before
        self._stats.steps += 1
        self._stats.row_steps += len(self._rows)
        self._stats.tokens += len(self._rows)

    def _collect(self) -> None:
        """Take finished rows out and judge them."""
        finished: list[tuple[Row, Job, Ending | None]] = []
        for row, job in self._rows.items():
            if math.isnan(row.logprobs[-1]):
                finished.append((row, job, None))
                continue
            end = self._ending(row, job)
            if end is not None:
                finished.append((row, job, end))
        if not finished:
            return
        self._slots.leave([row for row, _, _ in finished])
        for row, job, end in finished:
            del self._rows[row]
            if end is None:
                self._fail(
                    job,
                    FailureKind.ENGINE,
                    "the model's scores are no numbers",
                    retryable=False,
                )
                continue
            self._device_errors = 0
            outcome = outcome_of(
                job, end.stop, row.ids[: end.keep], row.logprobs[: end.keep], self._parts.text_of
            )
            del self._prompts[job]
            more = job.task.take(outcome)
            if more is None:
                self._open -= 1
                self._replies.append(job.task.reply(self._parts.text_of, self._parts.clock()))
            else:
                self._queue(more, first=True)

    def _ending(self, row: Row, job: Job) -> Ending | None:
        if self._parts.ending is not None:
            return self._parts.ending(row, job)
        return ending(row.ids, self._parts.ends, job.limits, self._parts.text_of)

    def _given(self) -> Iterator[Reply]:
        while self._replies:
            yield self._replies.pop(0)

    # --------------------------------------------------------------------------------------- trouble

    def _guard(self, work: Callable[[], None], jobs: Sequence[Job]) -> None:
        """Run a piece of work; what was in work when it failed is queued again or given up."""
        trouble: str | None = None
        memory = False
        try:
            work()
        except torch.OutOfMemoryError:
            memory = True
        except Exception as error:  # any library below: asking again alone shows what it means
            trouble = type(error).__name__
        # Not inside `except`: the traceback would keep the tensors alive.
        if not memory and trouble is None:
            return
        affected = list(dict.fromkeys((*self._rows.values(), *jobs)))
        self._slots.clear()
        self._rows.clear()
        self._parts.release()
        if memory:
            self._out_of_memory(affected)
        else:
            self._crashed(affected, str(trouble))

    def _out_of_memory(self, jobs: Sequence[Job]) -> None:
        self._stats.out_of_memory += 1
        self._budget.failed(len(jobs), max(job.size for job in jobs))
        self._parts.encoder.shrink()
        if len(jobs) > 1:
            self._queue(jobs, first=True)
            return
        (job,) = jobs
        smaller = job.task.recut_jobs()
        if smaller:
            self._prompts.pop(job, None)
            self._queue(smaller, first=True)
        else:
            self._fail(job, FailureKind.OUT_OF_MEMORY, "the model ran out of memory on this part of the page")

    def _crashed(self, jobs: Sequence[Job], name: str) -> None:
        self._stats.crashes += 1
        if len(jobs) > 1 or not jobs[0].alone:
            for job in jobs:
                job.alone = True
            self._queue(jobs, first=True)
            return
        self._device_errors += name == "AcceleratorError"
        if self._device_errors >= MAX_DEVICE_ERRORS:
            hint = "see the system log (dmesg); run the same command again to go on"
            raise EngineLoadError(f"the GPU stopped working ({name})", hint)
        self._fail(jobs[0], FailureKind.ENGINE, f"the model failed twice ({name})")

    def _fail(self, job: Job, kind: FailureKind, message: str, *, retryable: bool = True) -> None:
        """Give a request up. Its other jobs, if any, are dropped."""
        task = job.task
        for other in [other for other in self._prompts if other.task is task]:
            del self._prompts[other]
            self._waiting.discard(other)
        rows = [row for row, other in self._rows.items() if other.task is task]
        if rows:
            self._slots.leave(rows)
        for row in rows:
            del self._rows[row]
        self._open -= 1
        failure = Failure(Step.ENGINE, kind, message, retryable=retryable)
        if task.best:  # an earlier attempt gave a text: better than none, and marked as incomplete
            self._replies.append(task.reply(self._parts.text_of, self._parts.clock()))
        else:
            self._replies.append(task.failed(failure, self._parts.clock()))


def _groups(jobs: Sequence[Job]) -> Iterator[list[Job]]:
    """Jobs of like length together, at most `PREFILL_TOKENS` with padding; a longer one goes alone."""
    group: list[Job] = []
    for job in sorted(jobs, key=lambda job: -job.prompt_tokens):
        if group and (len(group) + 1) * group[0].prompt_tokens > PREFILL_TOKENS:
            yield group
            group = []
        group.append(job)
    if group:
        yield group
