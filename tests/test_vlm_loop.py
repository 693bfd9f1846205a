"""The loop with scripted models: memory that runs out, crashes, loops, limits; every request is answered
once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hiresvlm.datatypes import FailureKind, Reply, Request, Stop
from hiresvlm.engines.vlm.admission import CEILING, CLEAN_ADMISSIONS, Budget, Window
from hiresvlm.engines.vlm.inputs import Prompt
from hiresvlm.engines.vlm.ladder import LADDER
from hiresvlm.engines.vlm.loading import ImageSettings
from hiresvlm.engines.vlm.loop import Loop, Parts, Stats
from hiresvlm.engines.vlm.sampling import GREEDY, Decoding
from hiresvlm.engines.vlm.slots import Row
from hiresvlm.errors import EngineLoadError
from tests.vlm_support import ListFeed, request

END = 0
IMAGE = ImageSettings(1, 1, 1, (0.5,) * 3, (0.5,) * 3)
"""One pixel is one patch and one visual token."""

Script = Callable[[Prompt, Decoding], Iterator[int] | Exception]


def text_of(ids: Sequence[int]) -> str:
    return "".join(chr(token) for token in ids)


def ids_of(text: str) -> Iterator[int]:
    yield from map(ord, text)
    yield END


@dataclass
class Encoder:
    """Encodes nothing; notes how often it was told that memory ran out."""

    shrunk: int = 0

    def encode(self, images: Sequence[object]) -> list[object]:
        return list(images)

    def shrink(self) -> None:
        self.shrunk += 1


@dataclass
class ScriptedSlots:
    """Writes what a script says, and runs out of memory above a number of padded tokens."""

    script: Script
    capacity: int = 10**9
    rows: list[Row] = field(default_factory=list)
    most: int = 0
    writers: dict[int, Iterator[int]] = field(default_factory=dict)

    def join(self, rows: Sequence[Row], features: Sequence[Sequence[object]]) -> None:
        for row in rows:
            writer = self.script(row.prompt, row.decoding)
            if isinstance(writer, Exception):
                raise writer
            self.writers[id(row)] = writer
        self.rows += rows
        self._check()
        for row in rows:
            self._write(row)

    def step(self) -> None:
        self._check()
        for row in self.rows:
            self._write(row)

    def leave(self, rows: Sequence[Row]) -> None:
        assert all(row in self.rows for row in rows)
        self.rows = [row for row in self.rows if row not in rows]

    def clear(self) -> list[Row]:
        rows, self.rows = self.rows, []
        return rows

    def _write(self, row: Row) -> None:
        token = next(self.writers[id(row)])
        if token < 0:
            raise ValueError("scripted")
        row.ids.append(token)
        row.logprobs.append(float("nan") if token == 1 else -0.1)

    def _check(self) -> None:
        used = len(self.rows) * max((len(row.prompt) + len(row.ids) for row in self.rows), default=0)
        self.most = max(self.most, len(self.rows))
        if used > self.capacity:
            raise torch.OutOfMemoryError("scripted")


class Prompts:
    def prompt(self, instruction: str, images: Sequence[Any]) -> Prompt:
        return Prompt(tuple(map(ord, instruction)) + (2,) * sum(i.patches for i in images), tuple(images))


@dataclass
class Machine:
    """A loop over a script."""

    script: Script
    capacity: int = 10**9
    rows: int = 4
    budget: int = 10**9
    stats: Stats = field(default_factory=Stats)

    def __post_init__(self) -> None:
        self.slots = ScriptedSlots(self.script, self.capacity)
        self.encoder = Encoder()
        self.limit = Budget(self.budget, 1)
        parts: Any = Parts
        self.parts = parts(
            encoder=self.encoder,
            slots=self.slots,
            prompts=Prompts(),
            image=IMAGE,
            ends=frozenset({END}),
            text_of=text_of,
            budget=self.limit,
            rows=self.rows,
            instruction="own words",
        )

    def answer(self, requests: Sequence[Request], **feeding: int) -> list[Reply]:
        feed = ListFeed(requests, **feeding)
        replies = [feed.answered(reply) for reply in Loop(self.parts, self.stats).run(feed)]
        assert sorted(r.place.request for r in replies) == [r.place.request for r in requests]
        assert not feed.rest
        assert not self.slots.rows
        return sorted(replies, key=lambda reply: reply.place.request)


def ask(number: int, text: str, tall: int = 1, wide: int = 1, **options: Any) -> Request:
    """A request whose prompt is the answer that it wants."""
    pixels = np.full((tall, wide, 3), number % 256, np.uint8)
    return request(number, pixels, text=text, **{"limit": 10_000, **options})


def echo(prompt: Prompt, decoding: Decoding) -> Iterator[int]:
    return ids_of(text_of([token for token in prompt.ids if token != 2]))


# ---------------------------------------------------------------------------------------- the loop


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.text("abc\n", max_size=30), st.integers(1, 40)), max_size=25),
    st.integers(1, 9),
    st.integers(1, 7),
    st.integers(0, 3),
)
def test_every_request_gets_its_own_answer(
    wanted: list[tuple[str, int]], rows: int, burst: int, stall: int
) -> None:
    machine = Machine(echo, rows=rows)
    asked = [ask(number, text, wide=size) for number, (text, size) in enumerate(wanted)]
    replies = machine.answer(asked, burst=burst, stall=stall)
    for reply, (text, size) in zip(replies, wanted, strict=True):
        assert reply.text == text.strip("\n")
        assert reply.stop is Stop.EOS
        assert (reply.tokens.visual, reply.tokens.prompt) == (size, size + len(text))
        assert reply.tokens.output == len(text)
        assert [line.text for line in reply.lines] == [part for part in text.split("\n") if part.strip()]
    assert machine.slots.most <= rows


def test_a_slot_that_is_free_is_filled_while_others_write() -> None:
    lengths = [400] + [20] * 40
    machine = Machine(echo, rows=4)
    machine.answer([ask(number, "a" * length) for number, length in enumerate(lengths)])
    assert machine.stats.steps < 1.15 * max(400, sum(lengths) / 4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 30), st.integers(1, 60)), min_size=1, max_size=20),
    st.integers(1, 400),
    st.integers(1, 8),
)
def test_out_of_memory_at_any_capacity_loses_and_doubles_nothing(
    sizes: list[tuple[int, int]], capacity: int, rows: int
) -> None:
    machine = Machine(echo, capacity=capacity, rows=rows)
    asked = [ask(n, "x" * length, tall=tall, limit=100) for n, (length, tall) in enumerate(sizes)]
    for reply, (length, tall) in zip(machine.answer(asked), sizes, strict=True):
        whole, half = (2 * length + part for part in (tall, tall - tall // 4))
        if whole <= capacity:
            assert reply.text == "x" * length
        elif reply.failure is not None:
            assert reply.failure.kind is FailureKind.OUT_OF_MEMORY
            assert reply.failure.retryable
        else:
            assert half <= capacity + tall
            assert reply.text == "\n".join(["x" * length] * 2)
    if machine.stats.out_of_memory:
        assert machine.encoder.shrunk == machine.stats.out_of_memory
        assert machine.limit.limit < 10**9


def faulty(prompt: Prompt, decoding: Decoding) -> Iterator[int] | Exception:
    """The first letter of a request says what goes wrong with it."""
    kind = chr(prompt.ids[0])
    if kind == "C":  # on arrival
        return RuntimeError("scripted")
    if kind == "D":  # while it is written
        return iter([97, 97, -1])
    if kind == "N":
        return iter([97, 1])
    if kind == "L":
        return (ord("ab"[n % 2]) for n in range(10**6))
    return echo(prompt, decoding)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("xxxxCDNL"), st.integers(0, 20)), min_size=1, max_size=16),
    st.integers(1, 6),
    st.integers(1, 10**4),
    st.one_of(st.just(10**9), st.integers(60, 400)),
    st.integers(1, 5),
)
def test_all_troubles_together_and_any_budget_answer_each_request_once(
    wanted: list[tuple[str, int]], rows: int, budget: int, capacity: int, burst: int
) -> None:
    """What is well is answered right, whatever happens beside it; what is not says why."""
    machine = Machine(faulty, capacity=capacity, rows=rows, budget=budget)
    asked = [ask(n, kind + "y" * size, limit=200) for n, (kind, size) in enumerate(wanted)]
    for reply, (kind, size) in zip(machine.answer(asked, burst=burst), wanted, strict=True):
        if kind == "x":
            assert (reply.text, reply.stop, reply.failure) == ("x" + "y" * size, Stop.EOS, None)
        elif kind == "L":
            short_of_memory = reply.failure is not None
            assert short_of_memory or reply.stop is Stop.LOOP
            assert not short_of_memory or capacity < 10**9
        else:
            assert reply.failure is not None
            assert reply.failure.kind is FailureKind.ENGINE


def test_a_request_that_does_not_fit_alone_is_cut_in_two_once() -> None:
    machine = Machine(echo, capacity=70)
    (reply,) = machine.answer([ask(0, "abc", tall=100)])
    assert reply.text == "abc\nabc"
    assert reply.tokens.visual == 100
    (reply,) = Machine(echo, capacity=20).answer([ask(0, "abc", tall=100)])
    assert reply.failure is not None
    assert reply.failure.kind is FailureKind.OUT_OF_MEMORY


def test_one_bad_request_in_a_batch_fails_alone() -> None:
    def script(prompt: Prompt, decoding: Decoding) -> Iterator[int] | Exception:
        return RuntimeError("secret text") if chr(prompt.ids[0]) == "!" else echo(prompt, decoding)

    machine = Machine(script, rows=4)
    replies = machine.answer([ask(number, "!" if number == 5 else "fine") for number in range(12)])
    for reply in replies:
        if reply.place.request == 5:
            assert reply.failure is not None
            assert reply.failure.kind is FailureKind.ENGINE
            assert "secret" not in reply.failure.message
        else:
            assert (reply.text, reply.failure) == ("fine", None)


def test_a_crash_in_the_middle_of_decoding_costs_one_request() -> None:
    def script(prompt: Prompt, decoding: Decoding) -> Iterator[int]:
        if chr(prompt.ids[0]) == "!":
            yield from [97] * 5
            yield -1
        yield from echo(prompt, decoding)

    replies = Machine(script).answer([ask(number, "!" if number == 3 else "f" * 50) for number in range(9)])
    assert [reply.failure is not None for reply in replies] == [number == 3 for number in range(9)]
    assert all(reply.text == "f" * 50 for reply in replies if reply.failure is None)


def test_scores_that_are_no_numbers_end_one_row() -> None:
    def script(prompt: Prompt, decoding: Decoding) -> Iterator[int]:
        return iter([97, 1]) if chr(prompt.ids[0]) == "!" else echo(prompt, decoding)

    replies = Machine(script).answer([ask(0, "!"), ask(1, "fine")])
    assert replies[0].failure is not None
    assert replies[1].text == "fine"


def test_a_gpu_that_is_lost_ends_the_run_and_does_not_fail_ten_thousand_pages() -> None:
    class AcceleratorError(RuntimeError):
        pass

    machine = Machine(lambda prompt, decoding: AcceleratorError("CUDA error"))
    with pytest.raises(EngineLoadError, match="stopped working"):
        machine.answer([ask(number, "x") for number in range(50)])


def test_a_reader_that_goes_away_leaves_nothing_in_the_slots() -> None:
    machine = Machine(echo)
    replies = Loop(machine.parts, machine.stats).run(ListFeed([ask(0, "a"), ask(1, "b" * 500)]))
    assert next(replies).text == "a"
    assert machine.slots.rows
    replies.close()  # type: ignore[attr-defined]
    assert not machine.slots.rows


def test_an_interrupt_is_not_taken_for_a_crash() -> None:
    def script(prompt: Prompt, decoding: Decoding) -> Iterator[int]:
        yield 97
        raise KeyboardInterrupt

    machine = Machine(script)
    with pytest.raises(KeyboardInterrupt):
        machine.answer([ask(0, "a")])
    assert not machine.slots.rows


# --------------------------------------------------------------------------------------- the ladder


def paper(lines: int, width: int = 300) -> np.ndarray[Any, Any]:
    """Something like lines of print: letters of 8 x 6 px in rows 20 px apart."""
    generator = np.random.default_rng(0)
    page = np.full((20 * lines + 20, width, 3), 255, np.uint8)
    for row in range(lines):
        for column in range(20, width - 20, 8):
            glyph = generator.random((8, 6)) < 0.6
            glyph[[0, -1]] = glyph[:, [0, -1]] = True
            page[20 * row + 10 : 20 * row + 18, column : column + 6][glyph] = 0
    return page


def climb(stubborn: int, reply: str = "good") -> tuple[Reply, Machine, list[Decoding]]:
    """Ask a model that loops in its first attempts."""
    seen: list[Decoding] = []

    def script(prompt: Prompt, decoding: Decoding) -> Iterator[int]:
        seen.append(decoding)
        return (ord("ab"[n % 2]) for n in range(10**6)) if len(seen) <= stubborn else ids_of(reply)

    machine = Machine(script)
    (answer,) = machine.answer([request(0, paper(40), limit=100_000, transcribes=True)])
    return answer, machine, seen


@pytest.mark.parametrize(("stubborn", "attempts"), [(0, 1), (1, 2), (2, 4), (4, 5), (5, 6)])
def test_a_loop_is_tried_again_in_other_ways(stubborn: int, attempts: int) -> None:
    reply, machine, seen = climb(stubborn)
    assert reply.stop is Stop.EOS
    assert reply.text == ("good\ngood" if stubborn == 2 else "good")
    assert len(seen) == attempts
    expected = [LADDER[0][1], LADDER[1][1], LADDER[2][1], LADDER[2][1], LADDER[3][1], LADDER[4][1]]
    assert seen == expected[:attempts]
    assert sum(machine.stats.attempts.values()) == attempts


def test_a_loop_that_nothing_cures_says_so_and_is_cut() -> None:
    reply, machine, _ = climb(100)
    assert reply.stop is Stop.LOOP
    assert set(reply.text) == set("ab")
    assert len(reply.text) < 40
    assert list(machine.stats.attempts) == [name for name, _ in LADDER]


def test_a_prompt_of_several_images_is_not_split() -> None:
    machine = Machine(lambda prompt, decoding: (97 for _ in range(10**6)))
    (reply,) = machine.answer([request(0, paper(3), paper(3), limit=5_000, transcribes=True)])
    assert reply.stop is Stop.LOOP
    assert "split" not in machine.stats.attempts


def test_the_users_own_limit_is_not_tried_again() -> None:
    machine = Machine(lambda prompt, decoding: (97 + n % 26 for n in range(10**6)))
    (reply,) = machine.answer([request(0, paper(2), limit=50)])
    assert (reply.stop, len(reply.text)) == (Stop.LENGTH, 50)
    assert machine.stats.attempts == {"greedy": 1}


def test_an_answer_longer_than_the_ink_is_ended_and_tried_again() -> None:
    generator = random.Random(0)
    machine = Machine(lambda prompt, decoding: (generator.randint(97, 122) for _ in range(10**6)))
    (reply,) = machine.answer([request(0, paper(4), limit=100_000, transcribes=True)])
    assert reply.stop is Stop.LENGTH
    assert len(reply.text) < 4_000
    assert machine.stats.attempts["no_repeat"] == 1


@pytest.mark.parametrize(
    "sentence",
    ["I'm sorry, but the image is too blurry to read.", "抱歉，图片太模糊，我无法识别文字。"],
)
def test_a_refusal_is_tried_again_unless_the_page_prints_it(sentence: str) -> None:
    machine = Machine(lambda prompt, decoding: ids_of(sentence))
    (full,) = machine.answer([request(0, paper(40), limit=1000, transcribes=True)])
    assert full.stop is Stop.REFUSAL
    assert list(machine.stats.attempts) == [name for name, _ in LADDER]
    machine = Machine(lambda prompt, decoding: ids_of(sentence))
    (printed,) = machine.answer([request(0, paper(1, 180), limit=1000, transcribes=True)])
    assert (printed.stop, printed.text) == (Stop.EOS, sentence)
    assert machine.stats.attempts == {"greedy": 1}


def test_the_ink_limits_a_transcription_and_no_other_answer() -> None:
    """A question or an own prompt may ask for more than the page holds, and for a sentence of its own."""
    generator = random.Random(1)
    long = "".join(chr(generator.randint(97, 122)) for _ in range(3_000))
    for text in (long, "I cannot read a date on this page."):
        machine = Machine(lambda prompt, decoding: ids_of(text))  # noqa: B023  (called in this turn)
        (reply,) = machine.answer([request(0, paper(4), limit=100_000)])
        assert (reply.text, reply.stop) == (text, Stop.EOS)
        assert machine.stats.attempts == {"greedy": 1}


def test_a_model_is_asked_in_its_own_words_to_transcribe_and_in_the_users_otherwise() -> None:
    machine = Machine(echo)
    one, two = machine.answer([ask(0, "the user's", transcribes=True), ask(1, "the user's")])
    assert (one.text, two.text) == ("own words", "the user's")


# ----------------------------------------------------------------------------- budget and the queue


@given(st.lists(st.booleans(), max_size=400), st.integers(1, 64), st.integers(1, 500))
def test_a_budget_halves_and_comes_back_slowly_below_what_failed(
    news: list[bool], rows: int, longest: int
) -> None:
    budget = Budget(1000, 2)
    failed = float("inf")
    clean = 0
    for good in news:
        before = budget.limit
        if good:
            clean += 1
            budget.admitted()
            assert before <= budget.limit <= max(before, min(1000, CEILING * failed))
            if clean % CLEAN_ADMISSIONS:
                assert budget.limit == before
        else:
            clean = 0
            failed = min(failed, budget.cost(rows, longest))
            budget.failed(rows, longest)
            assert budget.limit <= before / 2
    assert budget.fits(1, 10**9)


@dataclass
class Sized:
    size: int


@given(st.lists(st.integers(1, 100), max_size=60), st.integers(1, 10), st.integers(1, 100))
def test_the_queue_gives_blocks_in_order_and_the_longest_first(
    sizes: list[int], block: int, room: int
) -> None:
    window: Window[Sized] = Window(block)
    jobs = [Sized(size) for size in sizes]
    for job in jobs:
        window.add(job)
    given_out = []
    while True:
        job = window.pop(lambda job: job.size <= room) or window.pop(lambda _: True)
        if job is None:
            break
        given_out.append(job)
    assert len(given_out) == len(jobs)
    positions = {id(job): number for number, job in enumerate(jobs)}
    blocks = [positions[id(job)] // block for job in given_out]
    assert blocks == sorted(blocks)
    for number in set(blocks):
        inside = [job.size for job, of in zip(given_out, blocks, strict=True) if of == number]
        fitting = [size for size in inside if size <= room]
        assert fitting == sorted(fitting, reverse=True)


def test_what_was_in_work_goes_first() -> None:
    window: Window[Sized] = Window(2)
    for size in (1, 2, 3):
        window.add(Sized(size))
    window.add(Sized(1), first=True)
    assert [window.pop(lambda _: True).size for _ in range(4)] == [1, 2, 1, 3]  # type: ignore[union-attr]
    assert Decoding() == GREEDY
