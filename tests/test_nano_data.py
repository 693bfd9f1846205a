"""Training data of nano: what is drawn is what the text says, and it stands where the centres say.

Only fonts that PyMuPDF carries are used.
"""

from __future__ import annotations

import functools
import io
import json
import re
from pathlib import Path

import numpy as np
import pymupdf
import pytest
from numpy.typing import NDArray
from PIL import Image

from hiresvlm.errors import OutputError
from hiresvlm.nano.data import (
    ALPHABET,
    Face,
    Fonts,
    FontsMissing,
    Generator,
    Sample,
    Tile,
    evaluation,
    fields,
    fonts,
)
from hiresvlm.nano.data import chinese as zh
from hiresvlm.nano.data.canvas import MIDDLE, Canvas
from hiresvlm.nano.data.degrade import tilt
from hiresvlm.nano.data.evaluation import EvaluationError, encoded, load_evaluation
from hiresvlm.nano.data.forms import NONE, interview
from hiresvlm.nano.data.generator import KINDS, QUESTIONS
from hiresvlm.nano.data.studio import PATCH

STAGES = (*KINDS, *QUESTIONS)


@functools.cache
def carried() -> Fonts:
    return Fonts.from_files(pymupdf.Font(name).buffer for name in ("helv", "tiro", "cour", "cjk"))


def generator(seed: int = 1, dirty: float = 0.0, chinese: float = 0.3) -> Generator:
    return Generator(seed, carried(), dirty=dirty, chinese=chinese, words=())


def face(name: str) -> Face:
    return Face(name, pymupdf.Font(name).buffer)


def contrast(pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """How far each pixel is from the most frequent colour around it, (height, width)."""
    grey = pixels.astype(np.float32) if pixels.ndim == 2 else pixels.astype(np.float32).mean(axis=2)
    return np.abs(grey - np.median(grey))


def check_tile(tile: Tile) -> None:
    height, width = tile.pixels.shape[:2]
    assert tile.pixels.dtype == np.uint8
    assert height % PATCH == width % PATCH == 0
    assert set(tile.text) <= set(ALPHABET)
    lines = tile.text.split("\n")
    assert tile.text == "" or all(line == line.strip() and line for line in lines)
    assert tile.centres.shape == (len(tile.text), 2)
    assert tile.centres.dtype == np.float32
    if tile.text:
        assert tile.centres.min() >= -1
        assert (tile.centres <= [width + 1, height + 1]).all()


def check_sample(sample: Sample) -> None:
    for tile in sample.tiles:
        check_tile(tile)
    assert sample.question is None or set(sample.question) <= set(ALPHABET)
    assert set(sample.target) <= set(ALPHABET)
    assert sample.where.shape == (len(sample.target), 3)


@pytest.mark.parametrize("stage", STAGES)
def test_every_kind_keeps_its_promises(stage: str) -> None:
    made = generator(dirty=0.6)
    for _ in range(12):
        check_sample(made.sample(stage))


@pytest.mark.parametrize("stage", STAGES)
def test_a_seed_gives_the_same_samples_again(stage: str) -> None:
    first, again, other = (generator(seed, dirty=0.6) for seed in (5, 5, 6))
    for _ in range(3):
        one, two = first.sample(stage), again.sample(stage)
        assert (one.target, one.question) == (two.target, two.question)
        assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(one.tiles, two.tiles, strict=True))
    assert any(first.sample(stage).target != other.sample(stage).target for _ in range(5))


@pytest.mark.parametrize("stage", ["line", "few", "paragraph", "form"])
def test_ink_stands_where_the_centres_say(stage: str) -> None:
    """Within the box of each letter or digit, half way to the next ones, something differs from the paper."""
    made = generator(seed=3)
    seen = 0
    for _ in range(15):
        tile = made.tile(stage)
        marks = contrast(tile.pixels) > 12
        steps = np.abs(np.diff(tile.centres[:, 0], prepend=-99, append=999))
        reach = np.minimum(steps[:-1], steps[1:]).clip(5, 20) / 2
        for char, (x, y), half in zip(tile.text, tile.centres, reach, strict=True):
            if char.isalnum():
                rows = slice(max(0, int(y) - 9), int(y) + 10)
                assert marks[rows, max(0, int(x - half)) : int(x + half) + 1].any(), (char, tile.text)
                seen += 1
    assert seen > 100


def test_centres_are_exact_for_one_letter() -> None:
    """The middle of the ink of a symmetric letter is the middle of its advance box, at any scale."""
    for scale, stretch in ((1.0, 1.0), (2.0, 1.0), (2.0, 0.8)):
        canvas = Canvas(280, 56, (255, 255, 255), scale, stretch=stretch)
        canvas.row(canvas.text(20.0, 40.0, "HHHHHH", face("helv"), 24, (0, 0, 0)))
        _, centres = canvas.transcript()
        ink = 255 - canvas.pixels().astype(float)
        step = float(np.diff(centres[:, 0]).mean())
        edges = [20.0 + step * number for number in range(7)]
        for left, right, x in zip(edges[:-1], edges[1:], centres[:, 0], strict=True):
            part = ink[:, round(left) : round(right)].sum(axis=0)
            middle = (part * (np.arange(len(part)) + round(left) + 0.5)).sum() / part.sum()
            assert middle == pytest.approx(x, abs=1.0)
        assert centres[:, 1] == pytest.approx(40.0 - MIDDLE * 24, abs=0.5)


def test_advances_add_up_to_the_drawn_length() -> None:
    for name in ("helv", "tiro", "cour", "cjk"):
        one = face(name)
        for text in ("AVATAR To. fi 11", "W", "", "illegible, 1,234.56"):
            assert sum(one.advances(text, 21)) == pytest.approx(one.at(21).getlength(text), abs=0.01)


def test_widths_are_forgotten_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "MOST_WIDTHS", 3)
    fonts._sized.cache_clear()
    one = face("helv")
    for text in ("abcdefgh", "hgfedcba"):
        assert sum(one.advances(text, 23)) == pytest.approx(one.at(23).getlength(text), abs=0.01)
    assert len(fonts._sized(one.source, 0, 23)[1]) <= 3


def test_spaces_and_line_ends_have_places() -> None:
    canvas = Canvas(280, 84, (255, 255, 255))
    left = canvas.text(10, 20, "a b", face("helv"), 16, (0, 0, 0))
    right = canvas.text(100, 20, "c", face("helv"), 16, (0, 0, 0))
    canvas.row(left, right)
    canvas.row(canvas.text(10, 50, "d", face("helv"), 16, (0, 0, 0)))
    text, centres = canvas.transcript()
    assert text == "a b c\nd"
    assert list(centres[:5, 0]) == sorted(centres[:5, 0])
    assert centres[3, 0] == pytest.approx((left.end + right.start) / 2)
    assert tuple(centres[5]) == pytest.approx((right.end, right.middle))
    assert centres[6, 1] - centres[0, 1] == pytest.approx(30)


def test_centres_turn_with_the_picture() -> None:
    """One dark dot, turned by 2 degrees: its ink and its centre move together."""
    pixels = np.full((112, 448), 255, np.uint8)
    pixels[19:22, 399:402] = 0
    turned, moved = tilt(pixels, np.array([[400.5, 20.5]], np.float32), 2.0, shear=0.1)
    rows, columns = np.nonzero(turned < 128)
    assert (columns.mean() + 0.5, rows.mean() + 0.5) == pytest.approx(tuple(moved[0]), abs=0.8)
    assert abs(float(moved[0, 1]) - 20.5) > 4


def test_a_binary_scan_has_two_levels_before_it_is_shrunk() -> None:
    canvas = Canvas(280, 56, (250, 250, 250))
    canvas.row(canvas.text(20.0, 40.0, "Scan", face("tiro"), 24, (10, 10, 10)))
    assert set(np.unique(canvas.pixels(binary=True))) == {10, 250}
    assert len(np.unique(canvas.pixels())) > 10


def test_whole_lines_at_any_offset() -> None:
    """No text touches the upper or lower edge of a clean tile, and lines keep no fixed distance to it."""
    made = generator(seed=8, chinese=0.0)
    heights = []
    for _ in range(40):
        tile = made.line()
        if tile.text:
            marks = contrast(tile.pixels) > 40
            assert not marks[0].any()
            assert not marks[-1].any()
            heights.append(float(tile.centres[0, 1]))
    assert max(heights) - min(heights) > 5


def test_the_alphabet_is_frozen() -> None:
    """Its order is the order of the tokens of trained weights."""
    assert len(ALPHABET) == len(set(ALPHABET)) == 797
    assert ALPHABET[0] == "\n"
    assert ALPHABET[1:96] == "".join(map(chr, range(32, 127)))


def test_the_alphabet_has_what_the_tables_say() -> None:
    said = "".join(str(value) for name, value in vars(zh).items() if name.isupper())
    for field in (*fields.ENGLISH, *fields.CHINESE):
        said += "".join((*field.labels, *field.names, *field.values))
    said += "".join((*fields.ENGLISH_QUESTIONS, *fields.CHINESE_QUESTIONS))
    said += "".join("".join(asked) for asked in fields.CHINESE_BY_GROUP.values())
    assert set(said) <= set(ALPHABET)


def test_fields_are_told_apart() -> None:
    for table in (fields.ENGLISH, fields.CHINESE):
        keys = [field.key for field in table]
        assert len(keys) == len(set(keys))
        labels = [label.lower() for field in table for label in {label.lower() for label in field.labels}]
        assert len(labels) == len(set(labels)), sorted(label for label in labels if labels.count(label) > 1)
        names = [name for field in table for name in set(field.names)]
        assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    known = {field.key for field in (*fields.ENGLISH, *fields.CHINESE)}
    assert set().union(*fields.UNCLEAR) <= known
    assert known >= fields.COMMON
    assert "total" in fields.unclear("balance")
    assert "total" not in fields.unclear("total")


@pytest.mark.parametrize("chinese", [False, True])
def test_answers_are_copied_from_the_form(chinese: bool) -> None:
    made = generator(seed=11)
    for _ in range(25):
        sample = made.form(chinese=chinese, absent=False)
        tile = sample.tiles[0]
        assert sample.question
        assert sample.target in tile.text
        assert sample.target != NONE
        assert (sample.where[:, 0] == 0).all()
        length = len(sample.target)
        assert any(
            tile.text.startswith(sample.target, n)
            and np.array_equal(tile.centres[n : n + length], sample.where[:, 1:])
            for n in range(len(tile.text))
        )


def test_the_label_of_an_answer_stands_left_of_it_or_above() -> None:
    made = generator(seed=13)
    labelled = [s for s in (made.form(absent=False) for _ in range(60)) if s.label is not None]
    assert len(labelled) > 40
    for sample in labelled:
        assert sample.label is not None
        _, x, y = sample.label
        tile = sample.tiles[0]
        assert np.any(np.all(np.isclose(tile.centres, (x, y)), axis=1))  # it is a character of the tile
        _, value_x, value_y = sample.where[0]
        assert x < value_x or y < value_y


def test_boxes_of_any_size_can_have_round_corners() -> None:
    canvas = Canvas(56, 28, (255,) * 3, 1.3, False)
    for width in np.arange(0, 20, 0.5):
        canvas.box(3, 3, 3 + width, 12, None, (0, 0, 0), radius=6.0)
        canvas.box(30, 3, 50, 3 + width, (9, 9, 9), (0, 0, 0), radius=3.0)
    assert canvas.pixels().min() < 50


@pytest.mark.parametrize("chinese", [False, True])
def test_what_is_not_there_is_none(chinese: bool) -> None:
    made = generator(seed=12)
    table = fields.CHINESE if chinese else fields.ENGLISH
    for _ in range(25):
        sample = interview(made.studio, chinese, [True], across=0)[0]
        assert sample.target == NONE
        assert (sample.where == -1).all()
        question = (sample.question or "").lower()
        asked = [
            field
            for field in table
            if any(name.lower().rstrip(" #.") in question for name in (*field.names, *field.labels))
        ]
        assert asked, question
        longest = max(
            asked,
            key=lambda field: max(
                len(n) for n in (*field.names, *field.labels) if n.lower().rstrip(" #.") in question
            ),
        )
        lines = sample.tiles[0].text.lower()
        if chinese:
            assert not any(label in lines for label in longest.labels), (question, lines)


def test_questions_can_be_in_the_other_language() -> None:
    made = generator(seed=16)
    asked = [interview(made.studio, chinese, [False], across=1)[0] for chinese in (False, True) * 15]
    foreign = [
        sample for sample in asked if (sample.question or "").isascii() != sample.tiles[0].text.isascii()
    ]
    assert len(foreign) >= 10
    assert all(sample.target in sample.tiles[0].text for sample in asked)


def test_questions_about_one_form_differ() -> None:
    made = generator(seed=13)
    samples = interview(made.studio, False, [False] * 4)
    assert len({sample.where.tobytes() for sample in samples}) == 4
    assert all(sample.tiles[0] is samples[0].tiles[0] for sample in samples)


def test_several_tiles_are_a_thumbnail_and_the_page() -> None:
    made = generator(seed=14)
    kinds = set()
    for _ in range(25):
        sample = made.sample("tiles")
        thumbnail, *pieces = sample.tiles
        assert thumbnail.kind == "thumbnail"
        assert 2 <= len(pieces) <= 4
        assert max(thumbnail.pixels.shape[:2]) <= 448
        assert thumbnail.text == "\n".join(tile.text for tile in pieces if tile.text)
        if sample.question is None:
            assert sample.target == thumbnail.text
            assert (np.diff(sample.where[:, 0]) >= 0).all()
        elif sample.target != NONE:
            number = int(sample.where[0, 0])
            assert number >= 1
            assert sample.target in sample.tiles[number].text
        kinds.add((sample.question is None, sample.target == NONE))
    assert len(kinds) >= 2


def test_missing_glyphs_are_never_drawn() -> None:
    helvetica, chinese = face("helv"), face("cjk")
    assert not helvetica.han
    assert chinese.han
    assert "€" in helvetica.coverage
    assert helvetica.clean("合计 12") == "12"
    lacking = Face("helv", helvetica.source)
    lacking.__dict__["coverage"] = frozenset(helvetica.coverage - set("–“”…"))
    assert lacking.clean("“a – b…”") == '"a - b..."'


def test_without_a_chinese_face_nothing_is_chinese() -> None:
    latin = Fonts.from_files([pymupdf.Font("helv").buffer])
    made = Generator(1, latin, chinese=1.0, words=())
    assert not any(char in zh.DIGITS + zh.RANKS for _ in range(20) for char in made.sample("receipt").target)


def test_too_few_fonts_name_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "FOLDERS", (tmp_path,))
    with pytest.raises(FontsMissing, match="only 0 of") as caught:
        Fonts.installed()
    assert "fonts-dejavu-core" in (caught.value.hint or "")
    with pytest.raises(FontsMissing, match="printable ASCII"):
        Fonts([])


def test_no_face_is_both_trained_on_and_held_out() -> None:
    def family(name: str) -> str:
        return re.sub(r"-(Regular|Bold|SemiBold|Medium|Light|Italic)$", "", Path(name).stem)

    held = {family(name) for name in fonts.HELD_OUT}
    assert not held & {family(name) for name in (*fonts.LATIN, *fonts.HAN)}


def test_an_unknown_stage_is_refused() -> None:
    with pytest.raises(KeyError):
        generator().sample("poem")


# ------------------------------------------------------------------------------ the evaluation set


def test_the_committed_set_is_whole() -> None:
    items = load_evaluation()
    counts = {kind: sum(item.kind == kind for item in items) for kind in {item.kind for item in items}}
    assert counts == {**evaluation.COUNTS, "form-en": 60, "form-zh": 40, "none": 20}
    for item in items:
        assert item.pixels.ndim == 3
        assert item.pixels.shape[0] % PATCH == item.pixels.shape[1] % PATCH == 0
        assert set(item.answer) <= set(ALPHABET)
        assert (item.question is None) == (item.kind in evaluation.COUNTS)
        assert (item.answer == NONE) == (item.kind == "none")
    size = sum(path.stat().st_size for path in evaluation.FOLDER.iterdir())
    assert size <= 1_500_000
    named = {item.name for item in items} | {evaluation.GOLD, "README.md"}
    assert {path.name for path in evaluation.FOLDER.iterdir()} <= named


def test_a_set_is_written_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "COUNTS", {"line": 3, "few": 2})
    monkeypatch.setattr(evaluation, "FORMS", (("form-en", False, 8),))
    monkeypatch.setattr(evaluation, "ABSENT", (("zh", True, 2),))
    first, second = tmp_path / "a", tmp_path / "b"
    assert evaluation.write(first, carried(), seed=3) == 15
    evaluation.write(second, carried(), seed=3)
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()
    items = load_evaluation(first)
    assert [item.kind for item in items] == ["line"] * 3 + ["few"] * 2 + ["form-en"] * 8 + ["none"] * 2
    with pytest.raises(OutputError, match="not empty"):
        evaluation.write(first, carried(), seed=3)


def test_files_keep_the_picture_readable() -> None:
    """Sixteen colours: no pixel of a clean tile moves by more than a few grey levels on average."""
    tile = generator(seed=2).tile("paragraph")
    back = np.array(Image.open(io.BytesIO(encoded(tile.pixels))).convert("RGB")).astype(int)
    first = tile.pixels if tile.pixels.ndim == 3 else np.repeat(tile.pixels[..., None], 3, axis=2)
    assert np.abs(back - first).mean() < 4


def test_a_damaged_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="no evaluation set"):
        load_evaluation(tmp_path)
    gold = tmp_path / evaluation.GOLD
    gold.write_text("{", encoding="utf-8")
    with pytest.raises(EvaluationError, match="no evaluation set"):
        load_evaluation(tmp_path)
    gold.write_text(
        json.dumps({"file": "x.png", "kind": "line", "question": None, "answer": "x"}), encoding="utf-8"
    )
    with pytest.raises(EvaluationError, match="line 1"):
        load_evaluation(tmp_path)
    gold.write_text('["x"]', encoding="utf-8")
    with pytest.raises(EvaluationError, match="line 1"):
        load_evaluation(tmp_path)
