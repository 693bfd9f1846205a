"""Reading order: rows of tables stay whole, columns of prose are read one after the other."""

from __future__ import annotations

import math
import time
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hiresvlm import layout
from hiresvlm.datatypes import Box, Line

EM = 14.0
PITCH = 20.0


def segment(text: str, x: float, y: float, width: float | None = None, em: float = EM) -> Line:
    """A line of text whose top left corner is at (x, y), half an em per character unless told."""
    return Line(text, Box(x, y, x + (0.5 * em * len(text) if width is None else width), y + em))


def leaning(lines: list[Line], degrees: float) -> list[Line]:
    """Upright boxes around lines turned about the origin; clockwise as on a page."""
    slope = math.tan(math.radians(degrees))
    turned = []
    for line in lines:
        assert line.box is not None
        x0, y0, x1, y1 = line.box
        ys = (y0 + slope * x0, y0 + slope * x1, y1 + slope * x0, y1 + slope * x1)
        drift = slope * (y0 + y1) / 2
        turned.append(Line(line.text, Box(x0 - drift, min(ys), x1 - drift, max(ys))))
    return turned


def read(lines: list[Line]) -> list[str]:
    return layout.text(layout.rows(lines)).splitlines()


def prose(name: str, x: float, y: float, rows: int, width: float = 280.0) -> list[Line]:
    """A column of prose, the last line of which is short."""
    return [
        segment(f"{name}{i}", x, y + i * PITCH, width * (0.3 if i == rows - 1 else 1 - 0.02 * (i % 4)))
        for i in range(rows)
    ]


def names(name: str, rows: int) -> list[str]:
    return [f"{name}{i}" for i in range(rows)]


def test_text_joins_segments_with_a_space_and_rows_with_a_newline() -> None:
    assert layout.text([[Line("a"), Line("b")], [Line("c")]]) == "a b\nc"
    assert layout.text([]) == ""
    assert layout.rows([]) == []


def test_label_and_far_amount_are_one_row() -> None:
    lines = [segment(f"item {i} of the list", 10, i * PITCH) for i in range(8)]
    lines += [segment(f"{i}.50", 600, i * PITCH + 2) for i in range(8)]
    assert read(lines) == [f"item {i} of the list {i}.50" for i in range(8)]


def test_rows_of_a_ledger_stay_whole() -> None:
    lines = []
    for i in range(20):
        y = i * PITCH
        lines += [segment(f"{i:02}/03", 10, y), segment("payment to supplier " + "x" * (i * 7 % 23), 90, y)]
        lines += [segment(f"{i}00.00", 480, y + 1), segment(f"{i}50.00", 600, y - 1)]
    rows = layout.rows(lines)
    assert [len(row) for row in rows] == [4] * 20
    assert [row[0].text for row in rows] == [f"{i:02}/03" for i in range(20)]


@pytest.mark.parametrize("degrees", [-2.0, -1.0, 1.0, 2.0])
def test_skewed_rows_stay_whole(degrees: float) -> None:
    lines = []
    for i in range(15):
        lines += [segment(f"item number {i}" + "x" * (i % 5), 20, 40 + i * PITCH)]
        lines += [segment(f"{i}", 330, 40 + i * PITCH), segment(f"{i}.00", 600, 40 + i * PITCH, 40)]
    rows = layout.rows(leaning(lines, degrees))
    assert [row[-1].text for row in rows] == [f"{i}.00" for i in range(15)]
    assert [len(row) for row in rows] == [3] * 15


@pytest.mark.parametrize("degrees", [0.0, -1.0, 1.5])
def test_two_columns_of_prose_are_read_one_after_the_other(degrees: float) -> None:
    lines = [segment("A title over both columns", 40, 0, 560, em=24)]
    lines += prose("a", 20, 50, 12) + prose("b", 330, 50, 10)
    lines += [segment("a footer over both columns", 100, 50 + 13 * PITCH, 440)]
    expected = ["A title over both columns", *names("a", 12), *names("b", 10), "a footer over both columns"]
    assert read(leaning(lines, degrees)) == expected


def test_columns_whose_lines_do_not_align() -> None:
    right = [segment(f"b{i}", 330, 7 + i * 23.0, 270) for i in range(9)]
    assert read(prose("a", 20, 0, 10) + right) == names("a", 10) + names("b", 9)


def test_three_columns_of_prose() -> None:
    lines = prose("a", 0, 0, 9, 190) + prose("b", 220, 0, 9, 190) + prose("c", 440, 0, 9, 190)
    assert read(lines) == names("a", 9) + names("b", 9) + names("c", 9)


def test_full_width_text_above_columns_with_the_same_margin() -> None:
    lines = [segment(f"t{i}", 20, i * PITCH, 590) for i in range(6)]
    lines += prose("a", 20, 150, 8) + prose("b", 330, 150, 8)
    assert read(lines) == names("t", 6) + names("a", 8) + names("b", 8)


def test_columns_above_and_below_a_line_that_crosses_them() -> None:
    lines = prose("a", 20, 0, 6) + prose("b", 330, 0, 6)
    lines += [segment("crossing", 20, 130, 590)]
    lines += prose("c", 20, 160, 6) + prose("d", 330, 160, 6)
    assert read(lines) == names("a", 6) + names("b", 6) + ["crossing"] + names("c", 6) + names("d", 6)


def test_broken_lines_of_a_column_stay_in_it() -> None:
    lines = []
    for i in range(8):
        lines += [segment(f"a{i}", 20, i * PITCH, 130), segment(f"A{i}", 156, i * PITCH, 140)]
        lines += [segment(f"b{i}", 330, i * PITCH, 280)]
    assert read(lines) == [f"a{i} A{i}" for i in range(8)] + names("b", 8)


def test_a_large_amount_beside_small_rows() -> None:
    lines = [segment("net", 10, 0), segment("tax", 10, 20), segment("TOTAL", 10, 44, em=28)]
    lines += [segment("1.00", 300, 0), segment("0.10", 300, 20), segment("1.10", 300, 44, em=28)]
    assert read(lines) == ["net 1.00", "tax 0.10", "TOTAL 1.10"]


def test_lines_without_boxes_keep_their_order() -> None:
    assert read([Line("z"), Line("a"), segment("boxed", 0, 0), Line("m")]) == ["boxed", "z", "a", "m"]


coordinates = st.floats(-50, 2000, allow_nan=False, width=32)
sizes = st.floats(0, 400, allow_nan=False, width=32)
boxes = st.builds(lambda x, y, w, h: Box(x, y, x + w, y + h), coordinates, coordinates, sizes, sizes)
texts = st.sampled_from(["a", "b", "long text"])
cells = st.builds(  # often beside or upon one another
    lambda x, y, w, h: Box(90 * x, y, 90 * x + w, y + h),
    st.integers(0, 6),
    st.sampled_from([0, 1, 3, 20, 21, 40, 43, 60]),
    st.integers(5, 200),
    st.integers(8, 20),
)
boxed_lines = st.lists(st.builds(Line, texts, boxes | cells, st.sampled_from([None, 0.5, 0.9])), max_size=40)


@settings(deadline=None, max_examples=150)
@given(boxed_lines, st.randoms(use_true_random=False))
def test_nothing_is_lost_and_the_order_of_the_input_does_not_matter(
    lines: list[Line], random: Random
) -> None:
    rows = layout.rows(lines)
    assert Counter(line for row in rows for line in row) == Counter(lines)
    shuffled = list(lines)
    random.shuffle(shuffled)
    assert layout.rows(shuffled) == rows


def test_three_thousand_segments_are_fast() -> None:
    lines = [segment(f"{r}:{c}", 100 * c, 16 * r, em=12) for r in range(300) for c in range(10)]
    started = time.perf_counter()
    rows = layout.rows(lines)
    assert time.perf_counter() - started < 3
    assert [[line.text for line in row] for row in rows] == [
        [f"{r}:{c}" for c in range(10)] for r in range(300)
    ]
