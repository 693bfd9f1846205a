"""Whether an answer is believed: loops, refusals, ink, halves of an image, confidence of lines."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiresvlm import answers
from hiresvlm.bench import gold
from hiresvlm.datatypes import Box, Chunk, Line, Place, Plan, PreparedPage, Reply, Stop
from hiresvlm.engines.vlm.confidence import Written, lines_of
from hiresvlm.engines.vlm.ink import characters
from hiresvlm.engines.vlm.ladder import INK_EXTRA, INK_SLACK
from hiresvlm.engines.vlm.refusal import is_refusal
from hiresvlm.engines.vlm.splitting import halves
from hiresvlm.engines.vlm.stopping import (
    CHECK_EVERY,
    IDLE_TOKENS,
    MIN_PERIODS,
    MIN_REPEATED,
    PERIODS,
    Limits,
    ending,
    loop,
    melted,
)
from tests.support import blank_pixels, pixels, text_image

PLENTY = Limits(100_000, 100_000)


def text_of(ids: Sequence[int]) -> str:
    return "".join(map(chr, ids))


def stopped(text: str, limits: Limits = PLENTY) -> tuple[Stop, int] | None:
    """How an answer of this text ends while it is written, token by token; None: not by itself."""
    ids = list(map(ord, text))
    for count in range(1, len(ids) + 1):
        found = ending(ids[:count], {0}, limits, text_of)
        if found is not None:
            return found
    return None


# ------------------------------------------------------------------------------------------- loops


@given(st.integers(0, 2**32), st.integers(1, PERIODS), st.integers(0, 200))
def test_a_tail_that_repeats_itself_is_found_within_a_check_and_cut_to_one_period(
    seed: int, period: int, before: int
) -> None:
    generator = random.Random(seed)
    start = [generator.randint(1000, 60_000) for _ in range(before)]
    unit = [generator.randint(200, 900) for _ in range(period)]
    needed = max(MIN_PERIODS * period, MIN_REPEATED) + period
    ids = start + unit * (needed // period + 2)
    assert loop(ids[: before + needed - 1 - period], text_of) is None
    kept = loop(ids, text_of)
    assert kept is not None
    smallest = next(p for p in range(1, period + 1) if unit * 2 == (unit[:p] * (2 * period))[: 2 * period])
    assert before <= kept <= before + smallest
    stop = stopped(text_of(ids) + text_of(unit) * (2 + CHECK_EVERY // period))
    assert stop is not None
    assert stop[0] is Stop.LOOP


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{n}. Chapter {'abcdefghij'[n % 10]} {'.' * 120} {7 * n}\n" for n in range(1, 30)),
        "Name " + "_" * 150 + "\nDate " + "_" * 150 + "\n" + "-" * 200 + "\n",
        "".join(f"{n:03} Screw M{n % 7 + 2} x {n * 5}   {n % 3 + 1}   {n * 1.37:.2f}\n" for n in range(20)),
        "0.00 " * 15 + "\n" + "Total 0.00\n",
        "第一章 ……………………………………………………………………………………………… 1\n第二章 …………………………………………………… 12\n",
        "ha" * 40,
    ],
)
def test_what_repeats_on_paper_is_no_loop(text: str) -> None:
    assert stopped(text) is None


def test_dots_without_an_end_are_a_loop_too() -> None:
    assert stopped("Contents " + "." * 2000) is not None


def test_counting_without_an_end_is_found_once_it_is_longer_than_the_ink() -> None:
    rows = "".join(f"row {n} of the table\n" for n in range(400))
    assert melted(list(map(ord, rows[:2000])))
    assert stopped(rows) is None
    found = stopped(rows, Limits(100_000, 800))
    assert found is not None
    assert found[0] is Stop.LOOP
    prose = " ".join(
        random.Random(0).choices(
            ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dogs", "while", "seven"], k=400
        )
    )
    assert not melted(list(map(ord, prose)))


def test_ends_limits_and_answers_that_show_nothing() -> None:
    assert ending([65, 0], {0}, PLENTY, text_of) == (Stop.EOS, 1)
    assert ending([65, 66, 67], {0}, Limits(3), text_of) == (Stop.LENGTH, 3)
    assert ending([65, 0], {0}, Limits(2), text_of) == (Stop.EOS, 1)
    silent = [65, *[10, 32, 9, 10, 32, 10, 9] * 60]
    shown = [n % 3 + 9 for n in range(IDLE_TOKENS)]
    assert stopped(text_of(silent)) is not None
    assert ending([65] * 16 + shown, {0}, PLENTY, text_of) is not None


# ---------------------------------------------------------------------------------------- refusals

REFUSALS = [
    "I'm sorry, but I cannot read the text in this image.",
    "I’m sorry, the image is too blurry to read.",
    "Sorry, I can't assist with that.",
    "I am unable to transcribe the text because of its quality.",
    "The image is too blurry to make out any text.",
    "Unfortunately, the text in the image is illegible.",
    "This image does not contain any text.",
    "The image appears to be blank.",
    "The provided image is not clear enough.",
    "As an AI, I have no eyes.",
    "抱歉，我无法识别图片中的文字。",
    "很抱歉，图片太模糊，无法辨认。",
    "无法识别该图像中的内容。",
    "图片模糊不清，看不清文字。",
    "这张图片中没有可读的文字。",
    "对不起，这个文档的内容难以辨认。",
]

READINGS = [
    "I cannot overstate how pleased we are with the results of this year.",
    "SORRY WE ARE CLOSED",
    "The image of the company suffered after the report was published.",
    "Sorry for the inconvenience caused during the works.",
    "抱歉，本店今日休息",
    "无法投递时请退回原处",
    "Total 12.50",
    "该产品不含酒精",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_of_a_page_full_of_text_and_the_same_words_printed_alone(text: str) -> None:
    assert is_refusal(text, 2000)
    assert not is_refusal(text, 3 * len(text))
    assert not is_refusal(text, None)
    assert not is_refusal(text + " " + "and much more that was read from the page" * 6, 5000)


@pytest.mark.parametrize("text", READINGS)
def test_texts_that_only_sound_alike(text: str) -> None:
    assert not is_refusal(text, 10_000)


def test_a_printed_refusal_is_within_what_its_ink_allows() -> None:
    for text in REFUSALS:
        for size in (16, 28, 48):
            image = text_image([text], size=size, width=60 + size * len(text))
            assert not is_refusal(text, characters(pixels(image)))


# --------------------------------------------------------------------------------------------- ink


@pytest.mark.parametrize("kind", gold.KINDS)
def test_no_page_has_more_text_than_its_ink_allows(kind: str) -> None:
    for seed in (11, 12):
        image, lines = gold.draw(kind, seed, 0)
        whole = pixels(image)
        assert len("\n".join(line.text for line in lines)) <= characters(whole) * INK_SLACK + INK_EXTRA
        for share in (0.5, 0.75):
            small = pixels(image.resize((round(image.width * share), round(image.height * share))))
            assert len("\n".join(line.text for line in lines)) <= characters(small) * INK_SLACK + INK_EXTRA


def test_empty_and_tiny_images_hold_nothing_and_noise_does_no_harm() -> None:
    assert characters(blank_pixels(500, 400)) == 0
    assert characters(blank_pixels(1, 1)) == 0
    assert characters(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8)) >= 0
    dark = pixels(text_image(["Hello world"], dark=True))
    light = pixels(text_image(["Hello world"]))
    assert abs(characters(dark) - characters(light)) < 0.2 * characters(light)


# -------------------------------------------------------------------------------------------- halves


def test_an_image_is_cut_between_lines() -> None:
    image = pixels(text_image([f"line {n} of the text" for n in range(12)], size=24))
    top, bottom = halves(image, 28) or (image, image)
    assert np.concatenate((top, bottom)).shape == image.shape
    assert (np.concatenate((top, bottom)) == image).all()
    assert 0.25 <= len(top) / len(image) <= 0.75
    assert (top[-1] == 255).all()
    assert (bottom[0] == 255).all()


def test_a_wide_strip_is_cut_across_and_a_small_image_not_at_all() -> None:
    strip = pixels(text_image(["one two three four five six seven eight"], width=900))
    left, right = halves(strip, 28) or (strip, strip)
    assert left.shape[0] == right.shape[0] == strip.shape[0]
    assert left.shape[1] + right.shape[1] == strip.shape[1]
    assert halves(blank_pixels(60, 60), 28) is None
    full = np.zeros((200, 200, 3), np.uint8)
    full[:, ::2] = 255
    assert halves(full, 28) is not None


# ---------------------------------------------------------------------------------------- confidence


@given(st.lists(st.text("ab \n", min_size=1, max_size=5), max_size=30), st.integers(1, 3))
def test_every_line_knows_the_probabilities_of_its_own_tokens(pieces: list[str], count: int) -> None:
    """Tokens are pieces here: some hold a line break in the middle, as real ones do."""
    table = dict(enumerate(pieces))

    def piece_of(ids: Sequence[int]) -> str:
        return "".join(table[token] for token in ids)

    part = Written(tuple(table), tuple(-0.01 * (n + 1) for n in table))
    text = "\n".join([piece_of(part.ids)] * count)
    found = lines_of(text, [part] * count, piece_of)
    assert [line.text for line in found] == [line for line in text.split("\n") if line.strip()]
    for line in found:
        assert line.confidence is not None
        assert line.weakest is not None
        assert 0 < line.weakest <= line.confidence <= 1


def test_mean_and_minimum_of_a_line() -> None:
    part = Written(tuple(map(ord, "ab\ncd")), tuple(map(math.log, (0.9, 0.4, 1.0, 0.5, 0.5))))
    one, two = lines_of("ab\ncd", [part], text_of)
    assert one.confidence == pytest.approx((0.9 * 0.4 * 1.0) ** (1 / 3))
    assert (one.weakest, two.weakest, two.confidence) == pytest.approx((0.4, 0.5, 0.5))
    (unknown,) = lines_of("a", [Written((97,), (float("nan"),))], text_of)
    assert unknown.confidence is None


def test_confidence_travels_to_the_page_and_a_merged_line_has_none() -> None:
    boxes = [Box(0, 0, 100, 100), Box(0, 100, 100, 200)]
    plan = Plan("auto", (100, 200), tuple(Chunk(box, (100, 100), (100, 100)) for box in boxes))
    page = PreparedPage(Place(0, 1, 1), size=(100, 200), plan=plan)
    replies = [
        Reply(
            Place(0, 1, 1, n, 2),
            text,
            tuple(Line(part, None, 0.9 - n / 10, weakest=0.5) for part in text.split("\n")),
        )
        for n, text in enumerate(["same\nfirst", "same\nlast"])
    ]
    answer = answers.merge(page, replies)
    assert answer.text == "same\nfirst\nsame\nlast"
    assert [(line.text, line.confidence, line.chunk) for line in answer.lines] == [
        ("same", 0.9, 0),
        ("first", 0.9, 0),
        ("same", 0.8, 1),
        ("last", 0.8, 1),
    ]
    assert answer.confidence == pytest.approx(0.85, abs=0.01)
