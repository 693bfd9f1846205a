"""The text layer of a PDF: taken where it says what one sees, refused wherever it may not."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pymupdf
import pytest

from hiresvlm import chunking
from hiresvlm.datatypes import Box, Chunk, Line, Place
from hiresvlm.documents import expand
from hiresvlm.pages import open_document
from hiresvlm.run import prepare as preparation
from hiresvlm.settings import ChunkSettings, PageSettings
from tests.support import make_pdf, text_image

SETTINGS = PageSettings(text_layer="auto")
WORDS = ("The quick brown fox jumps", "over the lazy dog, 94.93", "and reads 第三条 once")


def new_page(
    *, width: float = 400, height: float = 300, words: tuple[str, ...] = WORDS, **options: object
) -> pymupdf.Page:
    """A page of a new document with a few lines of text; `options` go to `insert_text`."""
    page = pymupdf.open().new_page(width=width, height=height)
    options = {"fontsize": 12, "fontname": "china-s", **options}
    for number, line in enumerate(words):
        page.insert_text((60, 80 + 30 * number), line, **options)
    return page


def layer(path: Path, page: pymupdf.Page | None = None, number: int = 1) -> tuple[Line, ...] | None:
    """Save the document of a page, if there is one, and read the layer of page `number`."""
    if page is not None:
        page.parent.save(path)
    with open_document(str(path), SETTINGS) as reader:
        opened = reader.page(number)
        return opened.text_layer(chunking.analyse(opened.gray(6_000_000), opened.size))


def texts(lines: tuple[Line, ...] | None) -> list[str] | None:
    return None if lines is None else [line.text for line in lines]


def picture(image_text: str = "Words in a picture", lines: int = 1, width: int = 700) -> bytes:
    stream = io.BytesIO()
    text_image([image_text] * lines, width=width).save(stream, format="PNG")
    return stream.getvalue()


# ------------------------------------------------------------------------------------ what is taken


def test_a_sound_layer_is_taken(folder: Path) -> None:
    assert texts(layer(folder / "x.pdf", new_page())) == list(WORDS)


def rotated(degrees: int) -> Callable[[pymupdf.Page], None]:
    return lambda page: page.set_rotation(degrees)


def cropped(page: pymupdf.Page) -> None:
    page.set_cropbox(pymupdf.Rect(40, 30, 380, 280))


def in_other_units(page: pymupdf.Page) -> None:
    page.parent.xref_set_key(page.xref, "UserUnit", "2")


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
@pytest.mark.parametrize("changes", [(), (cropped,), (in_other_units,), (cropped, in_other_units)])
def test_boxes_lie_on_the_ink(
    folder: Path, degrees: int, changes: tuple[Callable[[pymupdf.Page], None], ...]
) -> None:
    """Each box holds the ink of its line and of no other, on the page as it is shown."""
    page = new_page()
    for change in (*changes, rotated(degrees)):
        change(page)
    lines = layer(folder / "x.pdf", page)
    assert texts(lines) == list(WORDS)
    with open_document(str(folder / "x.pdf"), SETTINGS) as reader:
        opened = reader.page(1)
        width, height = opened.size
        ink = opened.render(Chunk(Box(0, 0, width, height), opened.size, opened.size)).min(axis=2) < 128
    total = int(ink.sum())
    for line in lines or ():
        assert line.box is not None
        assert 0 <= line.box.x0 < line.box.x1 <= width + 1
        assert 0 <= line.box.y0 < line.box.y1 <= height + 1
        x0, y0, x1, y1 = (round(side) for side in line.box)
        inside = int(ink[y0:y1, x0:x1].sum())
        assert total / 6 < inside < total / 2
        ink[y0:y1, x0:x1] = False
    assert ink.sum() < total / 100


def test_text_outside_of_the_crop_box_is_no_text_of_the_page(folder: Path) -> None:
    page = new_page()
    page.insert_text((60, 290), "cut off", fontsize=12)
    page.insert_text((60, 20), "hidden and cut off", fontsize=12, render_mode=3)
    page.set_cropbox(pymupdf.Rect(40, 30, 380, 250))
    assert texts(layer(folder / "x.pdf", page)) == list(WORDS)


def test_notes_and_form_fields_belong_to_the_layer(folder: Path) -> None:
    page = new_page()
    field = pymupdf.Widget()
    field.field_type = pymupdf.PDF_WIDGET_TYPE_TEXT
    field.field_name, field.field_value = "amount", "6000.00"
    field.rect = pymupdf.Rect(60, 200, 200, 220)
    page.add_widget(field)
    found = texts(layer(folder / "x.pdf", page))
    assert found is not None
    assert sorted(found) == sorted([*WORDS, "6000.00"])


def test_a_ruled_table_and_a_small_logo_do_no_harm(folder: Path) -> None:
    page = new_page(words=WORDS * 2)
    for y in range(60, 260, 30):
        page.draw_line((50, y), (350, y))
    page.draw_line((50, 60), (50, 240))
    page.draw_rect(pymupdf.Rect(360, 20, 380, 40), fill=(0, 0, 1))
    assert texts(layer(folder / "x.pdf", page)) == [*WORDS, *WORDS]


def test_text_on_a_picture_that_was_painted_before_is_seen(folder: Path) -> None:
    page = pymupdf.open().new_page(width=400, height=300)
    stream = io.BytesIO()
    text_image([], width=40).save(stream, format="PNG")
    page.insert_image(page.rect, stream=stream.getvalue(), keep_proportion=False)
    for number, line in enumerate(WORDS):
        page.insert_text((60, 80 + 30 * number), line, fontsize=12, fontname="china-s")
    assert texts(layer(folder / "x.pdf", page)) == list(WORDS)


# ---------------------------------------------------------------------------------- what is refused


def test_a_page_without_text_has_no_layer(folder: Path) -> None:
    page = pymupdf.open().new_page()
    assert layer(folder / "x.pdf", page) is None
    page.insert_image(pymupdf.Rect(50, 50, 400, 80), stream=picture())
    assert layer(folder / "y.pdf", page) is None


@pytest.mark.parametrize("mode", ["invisible", "transparent"])
def test_the_invisible_layer_of_an_older_ocr_is_refused(folder: Path, mode: str) -> None:
    """Even where its words stand exactly on the words of the scan."""
    scan = new_page().get_pixmap(dpi=150).tobytes("png")
    page = pymupdf.open().new_page(width=400, height=300)
    page.insert_image(page.rect, stream=scan)
    options = {"render_mode": 3} if mode == "invisible" else {"fill_opacity": 0}
    for number, line in enumerate(WORDS):
        page.insert_text((60, 80 + 30 * number), line, fontsize=12, fontname="china-s", **options)
    assert layer(folder / "x.pdf", page) is None


def test_text_under_a_scan_is_refused(folder: Path) -> None:
    """Some scanners paint the words and then cover them with the picture of the page."""
    page = new_page()
    page.insert_image(page.rect, stream=page.get_pixmap(dpi=150).tobytes("png"))
    assert layer(folder / "x.pdf", page) is None


@pytest.mark.parametrize("how", ["in the colour of the paper", "under a white box"])
def test_text_that_nobody_sees_is_refused(folder: Path, how: str) -> None:
    page = new_page()
    if how == "under a white box":
        page.insert_text((60, 220), "words that nobody sees", fontsize=12)
        page.draw_rect(pymupdf.Rect(50, 205, 390, 230), color=(1, 1, 1), fill=(1, 1, 1))
    else:
        page.insert_text((60, 220), "words that nobody sees", fontsize=12, color=(1, 1, 1))
    assert layer(folder / "x.pdf", page) is None


def test_a_layer_for_a_part_of_the_ink_is_refused(folder: Path) -> None:
    """A scan with a typed stamp on it, or a page with a table as a picture."""
    page = new_page()
    page.insert_image(pymupdf.Rect(50, 170, 350, 290), stream=picture(lines=4, width=400))
    assert layer(folder / "x.pdf", page) is None


def rewritten(
    path: Path,
    change: Callable[[pymupdf.Document, int], None],
    words: Sequence[str] = ("Words of an embedded font",) * 3,
) -> Path:
    """A PDF with an embedded font (Type0, Identity-H, ToUnicode), changed by `change(document, xref)`."""
    document = pymupdf.open()
    page = document.new_page(width=400, height=150 + 30 * len(words))
    page.insert_font(fontname="F0", fontbuffer=pymupdf.Font("helv").buffer)
    for number, line in enumerate(words):
        page.insert_text((60, 80 + 30 * number), line, fontname="F0", fontsize=12)
    document = pymupdf.open(stream=document.tobytes(), filetype="pdf")
    (font,) = document[0].get_fonts(full=True)
    change(document, font[0])
    document.save(path)
    return path


def map_to(code: str) -> Callable[[pymupdf.Document, int], None]:
    """All glyphs mean one character (four hexadecimal digits)."""

    def change(document: pymupdf.Document, font: int) -> None:
        cmap = (
            "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def "
            "1 begincodespacerange <0000> <ffff> endcodespacerange 1 beginbfrange <0000> <ffff> "
            f"[{f'<{code}> ' * 300}] endbfrange endcmap end end"
        )
        xref = int(document.xref_get_key(font, "ToUnicode")[1].split()[0])
        document.update_stream(xref, cmap.encode())

    return change


def without_map(document: pymupdf.Document, font: int) -> None:
    document.xref_set_key(font, "ToUnicode", "null")


def test_an_embedded_font_that_says_what_it_means_is_taken(folder: Path) -> None:
    path = rewritten(folder / "x.pdf", lambda document, font: None)
    assert texts(layer(path)) == ["Words of an embedded font"] * 3
    assert texts(layer(rewritten(folder / "y.pdf", map_to("0041")))) == ["A" * 25] * 3


def test_ligatures_are_letters(folder: Path) -> None:
    (line, *_) = texts(layer(rewritten(folder / "x.pdf", map_to("FB01")))) or [""]
    assert line == "fi" * 25


@pytest.mark.parametrize(
    "change",
    [map_to("FFFD"), map_to("E000"), map_to("F8FF"), map_to("0007"), map_to("0378"), without_map],
    ids=["replacement", "private use", "private use end", "control", "unassigned", "no map"],
)
def test_glyphs_that_mean_nothing_are_refused(
    folder: Path, change: Callable[[pymupdf.Document, int], None]
) -> None:
    assert layer(rewritten(folder / "x.pdf", change)) is None


@pytest.mark.parametrize("code", ["001B", "0000", "FFFD", "E000", "0378"])
def test_one_lost_character_inside_a_word_is_enough(folder: Path, code: str) -> None:
    """An amount with an escape sequence in it must not be read without its other half; a bullet is fine."""
    codes = ["0041"] * 300
    codes[pymupdf.Font("helv").has_glyph(ord("z"))] = code
    codes[pymupdf.Font("helv").has_glyph(ord(" "))] = "0020"

    def change(document: pymupdf.Document, font: int) -> None:
        map_to("0041")(document, font)
        xref = int(document.xref_get_key(font, "ToUnicode")[1].split()[0])
        cmap = document.xref_stream(xref)
        written = b" ".join(f"<{item}>".encode() for item in codes)
        document.update_stream(xref, cmap.replace(b"<0041> " * 300, written))

    plain = ["Words of an embedded font"] * 20
    for line, sound in (("z an item", True), ("an item z", True), ("12z0.50", False), ("to pay 12z", False)):
        found = layer(rewritten(folder / "x.pdf", change, [*plain, line]))
        assert (found is not None) == sound, line


def test_drawn_fonts_without_a_map_are_refused(folder: Path) -> None:
    """Type 3: the glyph named A may look like anything."""
    glyph = b"600 0 0 0 500 700 d1 0 0 100 700 re 200 0 100 700 re 400 0 100 700 re f"
    content = b"BT /T 12 Tf 60 200 Td (AAAAAAAA) Tj ET"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 300]/Contents 4 0 R/Resources<</Font<</T 5 0 R>>>>>>",
        b"<</Length %d>>\nstream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type3/FontBBox[0 0 600 700]/FontMatrix[0.001 0 0 0.001 0 0]"
        b"/CharProcs<</A 6 0 R>>/Encoding<</Type/Encoding/Differences[65/A]>>"
        b"/FirstChar 65/LastChar 65/Widths[600]/Resources<<>>>>",
        b"<</Length %d>>\nstream\n%s\nendstream" % (len(glyph), glyph),
    ]
    data = b"%PDF-1.7\n" + b"".join(b"%d 0 obj\n%s\nendobj\n" % pair for pair in enumerate(objects, 1))
    document = pymupdf.open(stream=data + b"trailer<</Root 1 0 R>>", filetype="pdf")
    assert document[0].get_text().strip() == "AAAAAAAA"
    assert layer(folder / "x.pdf", document[0]) is None


# ---------------------------------------------------------------------------- in the line of steps


def test_the_layer_is_read_only_when_asked_for(folder: Path) -> None:
    make_pdf(folder / "x.pdf", [["Some words to read"], []])
    (document,) = expand([str(folder)])
    try:
        for setting, found in (("auto", True), ("ignore", False)):
            settings = PageSettings(text_layer=setting)
            page = preparation.prepare(document, Place(0, 1, 2), settings, ChunkSettings())
            assert (page.layer is not None) is found
            assert (page.views == ()) is found  # nothing is rendered for an engine that is not asked
        blank = preparation.prepare(document, Place(0, 2, 2), SETTINGS, ChunkSettings())
        assert blank.blank
        assert blank.layer is None
    finally:
        preparation._too_large()  # closes what is open


def test_an_image_has_no_layer(folder: Path) -> None:
    text_image(["words"]).save(folder / "x.png")
    assert layer(folder / "x.png") is None


def test_ink_that_is_there_but_not_in_lines_is_counted(folder: Path) -> None:
    """The share is of ink, not of area: thin print around a big headline counts."""
    page = new_page(words=("Big",), fontsize=60)
    stream = picture("thin print in a picture, much of it", lines=5, width=500)
    page.insert_image(pymupdf.Rect(60, 120, 380, 290), stream=stream)
    assert layer(folder / "x.pdf", page) is None
    covered = new_page(words=("Big",), fontsize=60)
    lines = layer(folder / "y.pdf", covered)
    assert texts(lines) == ["Big"]
    assert np.isfinite([side for line in lines or () for side in line.box or ()]).all()
