"""The benchmarks' own footing: gold pages are what they say, scores are right, the commands run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pymupdf
import pytest
from PIL import Image

from hiresvlm.bench import gold, overlaps
from hiresvlm.bench.gold import KINDS, GoldLine, sheet_of, words
from hiresvlm.bench.gold.sheet import Sheet
from hiresvlm.bench.pagescore import near_cuts
from hiresvlm.bench.uniform import compare, shown
from hiresvlm.datatypes import Box, Chunk, Plan
from hiresvlm.metrics import (
    LineEdits,
    edits_by_line,
    interval,
    language,
    missed_and_doubled,
    rows_whole,
    score,
)
from hiresvlm.settings import ChunkSettings
from tests.support import cli, text_image

# ------------------------------------------------------------------------------------ gold pages


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_seed_always_makes_the_same_page(kind: str) -> None:
    (first, lines), (again, lines_again) = gold.draw(kind, 5, 0), gold.draw(kind, 5, 0)
    assert first.tobytes() == again.tobytes()
    assert lines == lines_again


@pytest.mark.parametrize("kind", list(KINDS))
def test_other_seeds_and_numbers_make_other_text(kind: str) -> None:
    pages = [{line.text for line in sheet_of(kind, s, n).lines} for s, n in ((5, 0), (6, 0), (5, 1))]
    for other in pages[1:]:
        assert len(pages[0] & other) <= 0.2 * len(pages[0])


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", list(KINDS))
def test_the_default_number_of_pages_has_enough_text(kind: str, seed: int) -> None:
    lines = [line for n in range(KINDS[kind].pages) for line in sheet_of(kind, seed, n).lines]
    assert sum(len(line.text) for line in lines) >= 5000
    assert {line.lang for line in lines} & {"zh", "mixed"}


@pytest.mark.parametrize("kind", list(KINDS))
def test_boxes_hold_the_ink_and_little_else(kind: str) -> None:
    sheet = sheet_of(kind, 3, 1)
    bare = np.asarray(sheet.render(text=False).convert("L"), int)
    ink = abs(np.asarray(sheet.render().convert("L"), int) - bare) > 40
    inside = np.zeros(ink.shape, bool)
    for line in sheet.lines:
        x0, y0, x1, y1 = (round(side) for side in line.box or ())
        inside[y0:y1, x0:x1] = True
        assert ink[y0:y1, x0:x1].any()
        assert ink[y0 : y0 + 3, x0:x1].any(), "a box starts where its ink does"
    assert (ink & inside).sum() >= 0.99 * ink.sum()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].wear])
def test_boxes_turn_with_a_worn_page(kind: str) -> None:
    plain = Image.new("RGB", (900, 600), "white")
    plain.paste((0, 0, 0), (200, 250, 800, 270))
    line = GoldLine("x", Box(200, 250, 800, 270), "en")
    for angle in range(5):
        worn, (turned,) = gold.wear(plain, [line], (1.0, 0.0, 0.0), gold.rng_of(kind, angle, 0))
        rows, columns = np.nonzero(np.asarray(worn.convert("L")) < 128)
        seen = Box(columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
        assert turned.box is not None
        assert tuple(turned.box) == pytest.approx(tuple(seen), abs=3)


@pytest.mark.parametrize(("x", "y"), [(5, 30), (300, 30), (5, 15)])
def test_a_sheet_refuses_text_over_text_and_off_the_page(x: int, y: int) -> None:
    sheet = Sheet.new((320, 100))
    sheet.line(5, 30, "first line", 24)
    with pytest.raises(ValueError, match=r"overlaps|leaves"):
        sheet.line(x, y, "second", 24)


def test_the_fonts_have_all_glyphs() -> None:
    """A missing glyph is drawn as a box, which no engine can read."""
    fonts = {name: pymupdf.Font(name) for name in ("cjk", "helv", "tiro", "cour")}
    for name, text in vars(words).items():
        if name.isupper():
            for character in set("".join(text)) - {" "}:
                used = ["cjk"] if not character.isascii() else list(fonts)
                assert all(fonts[font].has_glyph(ord(character)) for font in used), character


def test_gold_is_written_beside_the_page(tmp_path: Path) -> None:
    (page,) = gold.make(str(tmp_path), ["receipt"], seed=4, pages=1)
    assert gold.load(page.path) == [page]
    assert Path(page.path + ".gold.txt").read_text(encoding="utf-8").split("\n")[:-1] == [
        line.text for line in page.lines
    ]
    Path(page.path + ".gold.json").unlink()
    (plain,) = gold.load(page.path)
    assert plain.text == page.text
    assert plain.lines[0].box is None
    assert gold.load(str(tmp_path / "nothing.png")) == []


# ----------------------------------------------------------------------------------------- scores


@pytest.mark.parametrize(
    ("text", "lang"),
    [("Total 9.00", "en"), ("12:30", "en"), ("合计 12", "zh"), ("北京 AB-1", "mixed"), ("，", "zh")],
)
def test_language(text: str, lang: str) -> None:
    assert language(text) == lang


def test_edits_belong_to_lines_and_languages() -> None:
    lines = ["abcd", "北京上海", "订单 AB"]
    (_, first), (second, _), (third_zh, third_en) = edits_by_line(lines, "abXd\n北京海\n订单 AC")
    assert first == LineEdits(1, 5)  # the space that ends a line is its own
    assert second == LineEdits(1, 5)
    assert third_zh == LineEdits(0, 2)
    assert third_en == LineEdits(1, 3)


@pytest.mark.parametrize("read", ["", "abcd", "zzzz abcd ab", "ab 北京\n\n上海 xx 12 和"])
def test_edits_by_line_add_up_to_the_score(read: str) -> None:
    lines = ["abcd ef", "北京上海 12", "xx"]
    total = score([("\n".join(lines), read)])
    parts = [part for pair in edits_by_line(lines, read) for part in pair]
    assert sum(part.edits for part in parts) == total.edits
    assert sum(part.gold for part in parts) == total.gold


def test_nothing_to_compare_has_no_error_rate() -> None:
    assert edits_by_line([], "abc") == []
    assert LineEdits(0, 0).cer is None
    assert missed_and_doubled([], ["abc"]) == ([], [])
    assert missed_and_doubled([("abc",)], []) == ([0], [])


def test_missed_and_doubled_lines() -> None:
    lines = [("the first line",), ("a second line here",), ("1.00",), ("1.00",), ("name", "120.00")]
    whole = ["the first line", "a second lime here", "1.00", "1.00", "name 120.00"]
    assert missed_and_doubled(lines, whole) == ([], [])
    assert missed_and_doubled(lines, whole[1:]) == ([0], [])
    assert missed_and_doubled(lines, [*whole, "the first 1ine", "1.00"]) == ([], [0])
    in_pieces = [*whole[:4], "name", "elsewhere on the page", "120.00"]
    assert missed_and_doubled(lines, in_pieces) == ([], [])


def test_rows_of_a_table_stay_whole() -> None:
    rows = [("AB-1", "Narrow signal", "12.50"), ("AB-2", "Rare district", "99.00")]
    assert rows_whole(rows, ["AB-1 Narrow signa1 12.50", "AB-2 Rare district 99.00"]) == 2
    assert rows_whole(rows, ["AB-1 Narrow signal 12.50", "AB-2 Rare district", "99.00"]) == 1
    assert rows_whole(rows, ["AB-1 Narrow signal 12.50 AB-2 Rare district 99.00"]) == 0
    assert rows_whole(rows, []) == 0


def test_lines_near_cuts() -> None:
    lines = [GoldLine(str(n), Box(10, 40 * n, 200, 40 * n + 24), "en") for n in range(20)]
    whole = Box(0, 0, 300, 800)
    assert near_cuts(lines, [whole]) == set()
    halves = [Box(0, 0, 300, 395), Box(0, 395, 300, 800)]
    assert near_cuts(lines, halves) == {8, 9, 10, 11}
    # Shrunk to its ink, a chunk still ends where text goes on; the outer edges of the text are no cuts.
    assert near_cuts(lines, [Box(5, 0, 210, 390), Box(5, 398, 210, 790)]) == {8, 9, 10, 11}
    assert near_cuts(lines, [Box(0, 0, 100, 800), Box(100, 0, 300, 800)]) == set(range(20))
    assert near_cuts([GoldLine("x", None, "en")], halves) is None


def test_interval_of_a_difference() -> None:
    worse = [(LineEdits(10, 100), LineEdits(5, 100))] * 8
    assert interval(worse) == pytest.approx((0.05, 0.05, 0.05))
    mixed = [(LineEdits(n, 100), LineEdits(10, 100)) for n in range(21)]
    difference, low, high = interval(mixed, seed=3)
    assert difference == pytest.approx(0)
    assert low < -0.01 < 0.01 < high
    assert interval(mixed, seed=3) == (difference, low, high)


# -------------------------------------------------------------------------------- one scale a page


def test_the_smallest_text_that_a_plan_shows() -> None:
    lines = [
        GoldLine("heading", Box(10, 10, 90, 40), "en", ("heading",), caps=28),
        GoldLine("left right", Box(10, 60, 190, 74), "en", ("left", "right"), True, caps=10),
    ]
    top = Chunk(Box(0, 0, 200, 50), (50, 13), (56, 28))
    left = Chunk(Box(0, 50, 100, 100), (100, 50), (112, 56))
    right = Chunk(Box(100, 50, 200, 100), (80, 40), (84, 56))
    assert shown(lines, Plan("auto", (200, 100), (top, left, right))) == pytest.approx(28 * 0.25, rel=0.05)
    assert shown(lines[1:], Plan("auto", (200, 100), (top, left, right))) == pytest.approx(8)
    assert shown(lines, Plan("auto", (200, 100), (left, right))) == 0


def test_one_scale_is_held_to_the_height_that_auto_shows(tmp_path: Path) -> None:
    (page,) = gold.make(str(tmp_path), ["columns"], seed=4, pages=1)
    costs = compare(page, ChunkSettings())
    assert costs is not None
    assert costs.auto <= costs.uniform < costs.whole
    larger = compare(page, ChunkSettings(legible=18.0))
    assert larger is not None
    assert larger.least == pytest.approx(1.5 * costs.least, rel=0.05)
    assert 1.5 < larger.uniform / costs.uniform < 3
    text_only = replace(page, lines=tuple(replace(line, caps=None) for line in page.lines))
    assert compare(text_only, ChunkSettings()) is None


# --------------------------------------------------------------------------------------- commands


@pytest.mark.slow
def test_bench_chunking_runs_to_its_json_line(tmp_path: Path) -> None:
    small = text_image(["Order 1234 of 2024-05-06", "明天上午检查设备"], size=28, width=600)
    small.save(tmp_path / "a.png")
    (tmp_path / "a.png.gold.txt").write_text("Order 1234 of 2024-05-06\n明天上午检查设备\n", encoding="utf-8")
    done = cli("bench", "chunking", tmp_path, "--strategy", "auto", "--strategy", "overlap")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    row = result["kinds"]["files"]["auto"]
    assert row["kept"] == 1
    assert row["cer"] <= 0.05
    assert row["missed"] == row["doubled"] == 0
    assert row["cer_near_cuts"] is None
    assert result["auto"]["files"]["best_other"] == "overlap"


@pytest.mark.slow
def test_bench_chunking_makes_its_own_pages(tmp_path: Path) -> None:
    done = cli(
        *("bench", "chunking", "--kind", "receipt", "--pages", 1, "--seed", 8),
        *("--strategy", "auto", "--save", tmp_path / "kept"),
    )
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout.splitlines()[-1])["kinds"]["receipt"]["auto"]
    assert row["pages"] == 1
    assert row["kept"] > 0.9
    assert row["rows_whole"] > 0.9
    assert (tmp_path / "kept" / "receipt-01.jpg.gold.json").is_file()


def test_bench_cuts_counts_what_falls_between_lines(tmp_path: Path) -> None:
    text_image([f"line {n} of the page" for n in range(60)], size=24).save(tmp_path / "a.png")
    corners = [[10, 20 + 38 * n, 600, 20 + 38 * n, 600, 48 + 38 * n, 10, 48 + 38 * n] for n in range(60)]
    gold_line = json.dumps({"file": "a.png", "lines": [[box, "x"] for box in corners]})
    (tmp_path / "gold.jsonl").write_text(gold_line + "\n", encoding="utf-8")
    done = cli("bench", "cuts", tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["cuts"] == 5
    assert result["white"] == result["through_no_gold_line"] == result["clean"] == 1
    assert result["clean_through_a_line"] == result["needless_overlaps"] == 0


@pytest.mark.parametrize("noise", overlaps.NOISES)
def test_simulated_seams_can_be_merged_by_an_oracle(noise: float) -> None:
    """Both sides together show every line, so a perfect merge exists; and a seed is a seed."""
    pages = [[f"line {n} of page {p}" for n in range(30)] for p in range(3)]
    cuts = overlaps.simulate(pages, noise, 50, seed=2)
    assert cuts == overlaps.simulate(pages, noise, 50, seed=2)
    for cut in cuts:
        assert len(cut.above) + len(cut.below) >= len(cut.gold)
        if noise == 0:
            assert set(cut.gold) <= {*cut.above, *cut.below}


@pytest.mark.slow
def test_bench_merge_compares_three_merges(tmp_path: Path) -> None:
    lines = [[[0] * 8, f"row {n} has {n * n} items"] for n in range(30)]
    (tmp_path / "gold.jsonl").write_text(json.dumps({"file": "a", "lines": lines}) + "\n", encoding="utf-8")
    done = cli("bench", "merge", tmp_path, "--seed", 9)
    assert done.returncode == 0, done.stderr
    texts = json.loads(done.stdout.splitlines()[-1])["texts"]
    assert set(texts) == {"generated", tmp_path.name}
    assert texts["generated"]["0.03"]["hiresvlm"]["exact"] >= 0.98
    assert texts["generated"]["0.03"]["exact suffix"]["exact"] <= 0.5


@pytest.mark.parametrize(
    "arguments",
    [
        ("chunking", "--kind", "talls"),
        ("chunking", "--strategy", "autos"),
        ("chunking", "--sweep", "width"),
        ("cuts",),
        ("memory", "--pages", 5),
    ],
)
def test_mistakes_are_named(arguments: tuple[object, ...]) -> None:
    done = cli("bench", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_folder_without_gold_has_nothing_to_measure(tmp_path: Path) -> None:
    text_image(["x"]).save(tmp_path / "a.png")
    assert cli("bench", "chunking", tmp_path).returncode == 4
