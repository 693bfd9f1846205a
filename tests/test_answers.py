"""Seams: nothing twice, nothing lost. The oracle engine garbles every line that a chunk cuts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from hiresvlm import answers
from hiresvlm.answers import seams
from hiresvlm.batching import RequestFeed, generate
from hiresvlm.datatypes import (
    Box,
    Chunk,
    Failure,
    FailureKind,
    Line,
    Place,
    Plan,
    PreparedPage,
    Reply,
    Role,
    Status,
    Step,
    Stop,
    View,
)
from hiresvlm.settings import TaskSettings
from hiresvlm.tasks import requests
from tests.support import OracleEngine, blank_pixels, reply

WIDTH = 1000
STEP = 40
WORDS = [
    "alpha",
    "bravo",
    "total",
    "amount",
    "合计",
    "invoice",
    "date",
    "net",
    "gross",
    "item",
    "tax",
    "rate",
    "due",
    "paid",
    "from",
    "until",
    "数量",
    "单价",
]


def gold_lines(count: int, seed: int = 0) -> list[Line]:
    """Lines of a page, 24 px high, 40 px apart, with repeated rows as tables have them."""
    draw = random.Random(seed)
    lines = []
    for number in range(count):
        if draw.random() < 0.2:
            text = draw.choice(["1.00", "0.00 0.00", "- - -"])
        else:
            text = " ".join(draw.choices(WORDS, k=draw.randint(2, 7))) + f" {draw.randint(0, 9999)}"
        y = 10 + STEP * number
        lines.append(Line(text, Box(20, y, 20 + 12 * len(text), y + 24)))
    return lines


def page_of(
    boxes: Sequence[Box], height: int, *, joint: bool = False, thumbnail: bool = False
) -> PreparedPage:
    chunks = [_chunk(box) for box in boxes]
    if thumbnail:
        chunks.insert(0, Chunk(Box(0, 0, WIDTH, height), (448, 448), (448, 448), Role.GLOBAL))
    views = tuple(View(c.box, c.role, blank_pixels(*c.size)) for c in chunks)
    plan = Plan("test", (WIDTH, height), tuple(chunks), joint=joint)
    return PreparedPage(Place(0, 1, 1), (WIDTH, height), cap_height=STEP / 2, plan=plan, views=views)


def _chunk(box: Box) -> Chunk:
    size = round(box.width), round(box.height)
    return Chunk(box, size, size)


def read(page: PreparedPage, gold: Sequence[Line], *, boxes: bool) -> str:
    asked = [requests(page, TaskSettings())]
    feed = RequestFeed(lambda wait: asked.pop() if asked else None)
    replies = list(generate(OracleEngine(gold, boxes=boxes), feed))
    answer = answers.merge(page.without_pixels(), replies)
    assert answer.status is Status.OK
    return answer.text


def bands(height: int, at: Sequence[int], overlap: int) -> list[Box]:
    tops = [0, *(y - overlap // 2 for y in at)]
    ends = [*(y + overlap // 2 for y in at), height]
    return [Box(0, a, WIDTH, b) for a, b in zip(tops, ends, strict=True)]


@pytest.mark.parametrize("boxes", [True, False])
@pytest.mark.parametrize("seed", range(25))
def test_dirty_seams_lose_and_double_no_line(seed: int, boxes: bool) -> None:
    """Cuts at any place, also through the middle of lines, with 2.5 line heights of overlap."""
    draw = random.Random(seed)
    gold = gold_lines(60, seed)
    height = 10 + STEP * 60
    at = sorted(draw.sample(range(200, height - 200, 150), 3))
    at = [y + draw.randint(-40, 40) for y in at]
    page = page_of(bands(height, at, overlap=round(2.5 * STEP)), height)
    assert read(page, gold, boxes=boxes).split("\n") == [line.text for line in gold]


@pytest.mark.parametrize("boxes", [True, False])
def test_clean_seams_are_simply_joined(boxes: bool) -> None:
    gold = gold_lines(40)
    height = 10 + STEP * 40
    page = page_of(bands(height, [45 + STEP * 10, 45 + STEP * 25], overlap=0), height)
    assert read(page, gold, boxes=boxes).split("\n") == [line.text for line in gold]


def grid(height: int) -> list[Box]:
    """512-px tiles with a third of overlap in both directions: most lines are longer than a tile."""
    return [
        Box(x, y, min(x + 512, WIDTH), min(y + 512, height))
        for y in (0, 341, 682, height - 512)
        for x in (0, 341, WIDTH - 512)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_lines_across_vertical_seams_are_spliced(seed: int) -> None:
    gold = gold_lines(40, seed)
    height = 10 + STEP * 40
    text = read(page_of(grid(height), height), gold, boxes=True)
    assert text.split("\n") == [line.text for line in gold]


def test_texts_of_a_grid_are_joined_as_well_as_texts_can_be() -> None:
    """Without boxes, rows of fifteen words that repeat all over are paired by what they share."""
    exact = total = 0
    for seed in range(6):
        gold = gold_lines(40, seed)
        height = 10 + STEP * 40
        read_lines = read(page_of(grid(height), height), gold, boxes=False).split("\n")
        exact += (Counter(read_lines) & Counter(line.text for line in gold)).total()
        total += len(gold)
        assert abs(len(read_lines) - len(gold)) <= 4
    assert exact >= 0.9 * total


@pytest.mark.parametrize("boxes", [True, False])
def test_a_thumbnail_is_never_merged_in(boxes: bool) -> None:
    gold = gold_lines(20)
    height = 10 + STEP * 20
    page = page_of(bands(height, [45 + STEP * 9], overlap=0), height, thumbnail=True)
    assert read(page, gold, boxes=boxes).split("\n") == [line.text for line in gold]


def test_one_prompt_for_all_tiles_gives_one_text() -> None:
    gold = gold_lines(10)
    height = 10 + STEP * 10
    page = page_of([Box(0, 0, WIDTH, height)], height, joint=True)
    assert len(requests(page, TaskSettings())) == 1
    assert read(page, gold, boxes=False).split("\n") == [line.text for line in gold]


@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_merge_of_noisy_texts_keeps_the_line_count(noise: float) -> None:
    """Algorithm b3: the exact line count at nearly all seams, also with 3 % character noise."""
    draw = random.Random(7)
    exact = 0
    for trial in range(200):
        gold = [line.text for line in gold_lines(40, seed=trial)]
        overlap = draw.randint(2, 4)
        cut = draw.randint(12, 28)
        above, below = [*gold[: cut + overlap]], [*gold[cut:]]
        above[-1] = above[-1][: len(above[-1]) // 2] + "#~"  # the outermost lines are cut
        below[0] = "~#" + below[0][len(below[0]) // 2 :]
        merged = seams.join(_noisy(above, noise, draw), _noisy(below, noise, draw), overlap)
        exact += len(merged) == len(gold)
    assert exact >= (198 if noise == 0 else 193)


def _noisy(lines: Sequence[str], share: float, draw: random.Random) -> list[str]:
    return ["".join(draw.choice("abc0") if draw.random() < share else c for c in line) for line in lines]


UNRELATED = [
    (["one two three", "four five six"], ["seven eight", "nine ten eleven"]),
    (
        [
            "ticket figure copper delivery copper balance",
            "quarter quarter index quarter office delivery market o",
        ],
        ["amount engine bridge", "figure copper engine"],
    ),
    (
        ["figure ledger delivery carrier", "receipt journal 7.50", "archive archive figure figure parcel m"],
        ["total 0.00", "quarter kitchen number journal 7.50", "carrier garden carrier 09:41 engine"],
    ),
    (["今天我们检查重要的订单"], ["仓库管理部门确认新的合同"]),
    (["Rice ........ 4.20", "Bread ....... 1.10"], ["Milk ........ 9.99", "Total ....... 15.29"]),
    (["| 1017 | Ashford | 12.40 |"], ["| 1018 | Kelby | 7.31 |"]),
    ([], ["a line"]),
    (["a line"], []),
]


@pytest.mark.parametrize(("above", "below"), UNRELATED)
@pytest.mark.parametrize("expected", [0.5, 2.5, 6.0])
def test_lines_that_one_side_saw_are_never_lost(above: list[str], below: list[str], expected: float) -> None:
    assert seams.join(above, below, expected) == above + below


def _telling(draw: random.Random, chinese: bool) -> str:
    """A line that no other line is like: letters or Chinese characters at random."""
    alphabet = [chr(c) for c in range(0x4E00, 0x9FA5)] if chinese else list("abcdefghijklmnopqrstuvwxyz")
    return "".join(draw.choices(alphabet, k=draw.randint(8, 30)))


@hypothesis_settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    shared=st.integers(0, 5),
    expected=st.floats(0.1, 8),
    chinese=st.booleans(),
)
def test_every_telling_line_is_kept(
    seed: int, sizes: tuple[int, int], shared: int, expected: float, chinese: bool
) -> None:
    """Random overlaps between repeated rows and dotted leaders, geometry right or wrong: nothing is lost."""
    draw = random.Random(seed)
    rows = ["1.00", "0.00 0.00", "........", "- - -"]

    def lines(count: int) -> list[str]:
        return [draw.choice(rows) if draw.random() < 0.3 else _telling(draw, chinese) for _ in range(count)]

    common = lines(shared)
    above, below = lines(sizes[0]) + common, common + lines(sizes[1])
    joined = seams.join(above, below, expected)
    wanted = {line for line in (*above, *below) if line not in rows}
    assert wanted <= set(joined)
    assert len(joined) <= len(above) + len(below)


@pytest.mark.parametrize("chinese", [False, True])
def test_a_cut_line_is_taken_from_the_side_that_saw_it_whole(chinese: bool) -> None:
    draw = random.Random(3)
    gold = [_telling(draw, chinese) for _ in range(12)]
    above, below = gold[:8], gold[5:]
    above[-1], below[0] = above[-1][: len(above[-1]) // 2], below[0][len(below[0]) // 2 :]
    assert seams.join(above, below, 3) == gold


@hypothesis_settings(max_examples=200, deadline=None)
@given(
    above=st.lists(st.text(max_size=12), max_size=8),
    below=st.lists(st.text(max_size=12), max_size=8),
    expected=st.floats(0.1, 10),
)
def test_join_of_anything(above: list[str], below: list[str], expected: float) -> None:
    joined = seams.join(above, below, expected)
    assert len(joined) <= len(above) + len(below)
    assert len(joined) >= max(len(above), len(below)) - 2 * round(2 * expected) - 4


def test_status_of_a_page() -> None:
    page = page_of(bands(400, [200], 0), 400).without_pixels()
    failure = Failure(Step.ENGINE, FailureKind.ENGINE, "broken")
    first, second = (Place(0, 1, 1, request, 2) for request in (0, 1))
    whole = [Reply(first, "a"), Reply(second, "b")]
    assert answers.merge(page, whole).status is Status.OK
    half = answers.merge(page, [Reply(first, "a"), Reply(second, "", failure=failure)])
    assert (half.status, half.text, half.failures) == (Status.PARTIAL, "a", (failure,))
    none = answers.merge(page, [Reply(first, "", failure=failure), Reply(second, "", failure=failure)])
    assert (none.status, none.failures) == (Status.FAILED, (failure,))


def test_low_confidence_is_a_doubt_not_a_failure() -> None:
    page = page_of([Box(0, 0, WIDTH, 100)], 100).without_pixels()
    line = Line("perhaps", Box(0, 0, 100, 30), 0.4)
    answer = answers.merge(page, [Reply(Place(0, 1, 1), "perhaps", (line,))])
    assert answer.status is Status.OK
    assert [caution.kind for caution in answer.cautions] == ["low_confidence"]


def test_a_part_of_which_a_model_says_nothing_is_a_doubt() -> None:
    """An answer that ends before its first character would otherwise be a hole in an `ok` page."""
    page = page_of(bands(900, [300, 600], 0), 900, thumbnail=True).without_pixels()
    places = [Place(0, 1, 1, request, 4) for request in range(4)]
    texts = ["", "above", " \n", "below"]  # what is said of the thumbnail is no part of the page
    replies = [Reply(place, text) for place, text in zip(places, texts, strict=True)]
    answer = answers.merge(page, replies)
    assert (answer.status, answer.text) == (Status.OK, "above\nbelow")
    assert [(c.kind, c.message) for c in answer.cautions] == [
        ("no_text", "no text was read in 1 of the 3 parts of the page")
    ]
    spoken = answers.merge(page, [*replies[:2], Reply(places[2], "middle"), replies[3]])
    assert spoken.cautions == ()
    failure = Failure(Step.ENGINE, FailureKind.ENGINE, "broken")
    broken = answers.merge(page, [*replies[:2], Reply(places[2], "", failure=failure), replies[3]])
    assert (broken.status, broken.cautions) == (Status.PARTIAL, ())
    cut = Reply(places[1], "above", stop=Stop.LENGTH)  # silence beside a part that failed is a doubt too
    assert len(answers.merge(page, [replies[0], cut, *(Reply(p, "") for p in places[2:])]).cautions) == 1
    unread = answers.merge(page, [Reply(places[0], "all of it"), *(Reply(p, "") for p in places[1:])])
    assert [c.message for c in unread.cautions] == ["the page has ink, but no text was found on it"]


def test_request_order_of_a_feed() -> None:
    """What arrives together goes largest first; nothing overtakes what was there before."""
    small, large = (page_of([Box(0, 0, WIDTH, h)], h) for h in (50, 500))
    batches = [
        [*requests(large, TaskSettings())],
        [*requests(small, TaskSettings()), *requests(large, TaskSettings())],
    ]
    feed = RequestFeed(lambda wait: batches.pop(0) if batches else None, window=1)
    heights = [request.views[0].pixels.shape[0] for _ in range(3) for request in feed.take(1, wait=True)]
    assert heights == [500, 500, 50]
    assert feed.take(1, wait=True) == []


def test_reply_helper_counts() -> None:
    page = page_of([Box(0, 0, WIDTH, 100)], 100)
    (request,) = requests(page, TaskSettings())
    assert reply(request, "abc").tokens.output == 3
