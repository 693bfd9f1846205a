"""The text layer of a PDF page, taken only where it can be trusted.

What makes a layer unsound was all seen in the wild: glyphs that map to nothing readable, the text of
an older OCR (invisible, or painted and then covered by the scan), text in the colour of the paper, and
a page whose ink is mostly not text of the layer (a scan with a stamp, a form with a picture).
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import numpy as np
import pymupdf

from hiresvlm.datatypes import Box, Line

if TYPE_CHECKING:
    from hiresvlm.chunking.analysis import PageAnalysis

MAX_UNREADABLE = 0.01
"""Share of glyphs without a usable character."""

MAX_INVISIBLE = 0.01
"""Share of glyphs that no one sees."""

MIN_INK_COVERED = 0.9
"""Share of the page's ink that lies inside lines of the layer."""

_INVISIBLE_MODE = 3

_SHORTEST = 3
"""Characters from which on a line leaves edges for sure; a dash or a dot may count as a speck."""

_COVERS = frozenset(("fill-image", "fill-imgmask", "fill-shade"))
"""What may hide text that was painted before it."""

_FLAGS = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_MEDIABOX_CLIP
"""No images are decoded, ligatures become letters, glyphs without a character stay unreadable."""


def read(page: pymupdf.Page, analysis: PageAnalysis, px: float) -> tuple[Line, ...] | None:
    """Lines with boxes in page pixels (`px` a point), or None when the layer is missing or unsound."""
    glyphs = unreadable = invisible = 0
    drawn = enumerate(page.get_bboxlog())
    covers = [(number, pymupdf.Rect(box)) for number, (kind, box) in drawn if kind in _COVERS]
    visible = pymupdf.Rect(page.rect) * ~_turn(page)  # text is given for the unrotated page
    for span in page.get_texttrace():
        hidden = span["type"] == _INVISIBLE_MODE or span["opacity"] == 0
        later = [box for number, box in covers if number > span["seqno"]]
        for code, _, _, box in span["chars"]:
            centre = pymupdf.Point((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
            if chr(code).isspace() or centre not in visible:
                continue
            glyphs += 1
            invisible += hidden or any(centre in cover for cover in later)
            unreadable += not _readable(chr(code))
    if glyphs == 0 or unreadable > MAX_UNREADABLE * glyphs or invisible > MAX_INVISIBLE * glyphs:
        return None
    if _has_unmapped_font(page):
        return None
    lines = _lines(page, px)
    if any(_loses_part_of_a_word(line.text) for line in lines):
        return None
    return lines if _is_what_one_sees(lines, analysis) else None


def _readable(character: str) -> bool:
    """False for U+FFFD, control, private-use and unassigned characters."""
    return character != "\ufffd" and unicodedata.category(character) not in ("Cc", "Co", "Cn", "Cs")


def _loses_part_of_a_word(text: str) -> bool:
    """Whether a glyph without a character follows one that has one: part of a word or of an amount is not
    said. One is enough to leave the layer alone: "12", escape, "0.50" is neither 12 nor 120.50.

    A bullet or a logo without a character stands before its text, or apart from it.
    """
    pairs = zip(text, text[1:], strict=False)
    return any(_readable(a) and not a.isspace() and not _readable(b) for a, b in pairs)


def _has_unmapped_font(page: pymupdf.Page) -> bool:
    """Whether a font numbers its glyphs freely and says nowhere what they mean."""
    document = page.parent
    for xref, _, kind, _, _, encoding, *_ in page.get_fonts(full=True):
        free = kind == "Type3" or (kind == "Type0" and encoding.startswith("Identity"))
        if free and document.xref_get_key(xref, "ToUnicode")[0] == "null":
            return True
    return False


def _turn(page: pymupdf.Page) -> pymupdf.Matrix:
    """From the unrotated page, as text is given, to the page as displayed.

    `Page.rotation_matrix` is no help: it knows nothing of /UserUnit.
    """
    width, height = page.rect.width, page.rect.height
    return {
        90: pymupdf.Matrix(0, 1, -1, 0, width, 0),
        180: pymupdf.Matrix(-1, 0, 0, -1, width, height),
        270: pymupdf.Matrix(0, -1, 1, 0, 0, height),
    }.get(page.rotation % 360, pymupdf.Matrix(1, 0, 0, 1, 0, 0))


def _lines(page: pymupdf.Page, px: float) -> tuple[Line, ...]:
    """Lines in the order of the file, cut to the page; layout puts them into reading order."""
    turn = _turn(page)
    width, height = page.rect.width * px, page.rect.height * px
    found = []
    for block in page.get_text("dict", flags=_FLAGS)["blocks"]:
        for line in block.get("lines", ()):
            text = "".join(span["text"] for span in line["spans"]).strip()
            rect = pymupdf.Rect(line["bbox"]) * turn
            box = Box(rect.x0 * px, rect.y0 * px, rect.x1 * px, rect.y1 * px)
            box = box.intersection(Box(0.0, 0.0, width, height))
            if text and box.width > 0 and box.height > 0:
                found.append(Line(text, box))
    return tuple(found)


def _is_what_one_sees(lines: tuple[Line, ...], analysis: PageAnalysis) -> bool:
    """Whether nearly all ink is in lines, and nearly all lines have ink."""
    left = analysis.edges.copy()
    scale = analysis.scale
    characters = inkless = 0
    for line in lines:
        assert line.box is not None
        x0, y0, x1, y1 = (round(value * scale) for value in line.box)
        area = np.s_[max(0, y0 - 1) : y1 + 1, max(0, x0 - 1) : x1 + 1]
        count = sum(not character.isspace() for character in line.text)
        characters += count
        if count >= _SHORTEST and not analysis.edges[area].any():
            inkless += count
        left[area] = 0
    if inkless > MAX_INVISIBLE * characters:
        return False
    return int(left.sum()) <= (1 - MIN_INK_COVERED) * int(analysis.edges.sum())
