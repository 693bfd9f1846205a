"""The text layer of a PDF page, taken only where it can be trusted.

Three things make a layer unsound, each seen in the wild: glyphs that map to nothing readable, the
invisible layer of an older OCR, and a page whose ink is mostly not text of the layer (a scan with a
stamp, a form with a picture).
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

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


def read(page: pymupdf.Page, analysis: PageAnalysis, px: float) -> tuple[Line, ...] | None:
    """Lines with boxes in page pixels (`px` a point), or None when the layer is missing or unsound."""
    glyphs = unreadable = invisible = 0
    for span in page.get_texttrace():
        hidden = span["type"] == _INVISIBLE_MODE or span["opacity"] == 0
        for code, *_ in span["chars"]:
            if chr(code).isspace():
                continue
            glyphs += 1
            invisible += hidden
            unreadable += not _readable(chr(code))
    if glyphs == 0 or unreadable > MAX_UNREADABLE * glyphs or invisible > MAX_INVISIBLE * glyphs:
        return None
    if _has_unmapped_font(page):
        return None
    lines = _lines(page, px)
    return lines if _ink_covered(lines, analysis) >= MIN_INK_COVERED else None


def _readable(character: str) -> bool:
    """False for U+FFFD, control, private-use and unassigned characters."""
    return character != "\ufffd" and unicodedata.category(character) not in ("Cc", "Co", "Cn", "Cs")


def _has_unmapped_font(page: pymupdf.Page) -> bool:
    """Whether a font numbers its glyphs freely and says nowhere what they mean."""
    document = page.parent
    for xref, _, kind, _, _, encoding, *_ in page.get_fonts(full=True):
        free = kind == "Type3" or (kind == "Type0" and encoding.startswith("Identity"))
        if free and document.xref_get_key(xref, "ToUnicode")[0] == "null":
            return True
    return False


def _lines(page: pymupdf.Page, px: float) -> tuple[Line, ...]:
    """Lines in the order of the file; layout puts them into reading order."""
    turn = page.rotation_matrix  # text is given for the unrotated page
    found = []
    for block in page.get_text("dict")["blocks"]:
        for line in block.get("lines", ()):
            text = "".join(span["text"] for span in line["spans"]).strip()
            if text:
                rect = pymupdf.Rect(line["bbox"]) * turn
                found.append(Line(text, Box(rect.x0 * px, rect.y0 * px, rect.x1 * px, rect.y1 * px)))
    return tuple(found)


def _ink_covered(lines: tuple[Line, ...], analysis: PageAnalysis) -> float:
    """Share of the page's edge pixels inside the boxes of the lines."""
    total = int(analysis.edges.sum())
    if total == 0:
        return 1.0
    left = analysis.edges.copy()
    s = analysis.scale
    for line in lines:
        if line.box is not None:
            x0, y0, x1, y1 = (max(0, round(value * s)) for value in line.box)
            left[max(0, y0 - 1) : y1 + 1, max(0, x0 - 1) : x1 + 1] = 0
    return 1.0 - int(left.sum()) / total
