"""The surface that gold pages are drawn on, and what is written down about them.

Text is drawn last, from a list: so a page can be shown without it, and no two texts can overlap or
leave the page unnoticed.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import pymupdf
from PIL import Image, ImageDraw, ImageFont

from hiresvlm.datatypes import Box
from hiresvlm.metrics import language

Colour = tuple[int, int, int]
Cell = tuple[float, str, str]
"""x, text and Pillow anchor: "ls" starts at x, "rs" ends there, "ms" has its middle there."""

INK: Final[Colour] = (24, 24, 28)
MARGIN: Final = 3
"""Pixels that stay free at every edge of a page."""

_WORD = re.compile(r"[!-~]+|[^\s!-~][，。、]*|\s+")


@dataclass(frozen=True, slots=True)
class GoldLine:
    """One printed line, in page pixels: its cells from left to right, and a box around their ink."""

    text: str
    """The cells joined by one space."""
    box: Box | None
    """None where only a text file with gold is known."""
    lang: str
    """`en`, `zh` or `mixed`."""
    cells: tuple[str, ...] = ()
    """More than one only where cells stand apart."""
    table: bool = False
    """A row of a table: all of its cells belong on one line of output."""
    caps: float | None = None
    """Height of its capitals in page pixels, from the font; None where only a text file is known."""


@lru_cache
def face(name: str, size: int) -> ImageFont.FreeTypeFont:
    """A font that PyMuPDF carries, for Pillow; the basic layout needs no extra library."""
    buffer = io.BytesIO(pymupdf.Font(name).buffer)
    return ImageFont.truetype(buffer, size, layout_engine=ImageFont.Layout.BASIC)


@dataclass(slots=True)
class _Text:
    x: float
    y: float
    text: str
    anchor: str
    font: ImageFont.FreeTypeFont
    fill: Colour


@dataclass(slots=True)
class Sheet:
    """A page under construction. Raises `ValueError` for text that leaves it or touches other text."""

    image: Image.Image
    """Everything but the text."""
    latin: str = "helv"
    """Font of text without Chinese characters."""
    lines: list[GoldLine] = field(default_factory=list)
    _texts: list[_Text] = field(default_factory=list)
    _boxes: list[Box] = field(default_factory=list)

    @classmethod
    def new(cls, size: tuple[int, int], colour: Colour = (255, 255, 255), latin: str = "helv") -> Sheet:
        return cls(Image.new("RGB", size, colour), latin)

    @property
    def draw(self) -> ImageDraw.ImageDraw:
        """For what lies under the text."""
        return ImageDraw.Draw(self.image)

    def font(self, text: str, size: int) -> ImageFont.FreeTypeFont:
        return face(self.latin if text.isascii() else "cjk", size)

    def row(
        self, y: float, cells: Sequence[Cell], size: int, fill: Colour = INK, *, table: bool = False
    ) -> None:
        """One gold line: cells on the baseline `y`, `size` pixels to the em."""
        boxes: list[Box] = []
        caps = math.inf
        for x, text, anchor in cells:
            font = self.font(text, size)
            _, top, _, bottom = font.getbbox("H")
            caps = min(caps, bottom - top)
            box = Box(*self.draw.textbbox((x, y), text, font=font, anchor=anchor))
            inside = Box(MARGIN, MARGIN, self.image.width - MARGIN, self.image.height - MARGIN)
            if box.intersection(inside) != box:
                raise ValueError(f"text leaves the page at {box}")
            if any(_touch(box, other) for other in (*self._boxes[-80:], *boxes)):
                raise ValueError(f"text overlaps other text at {box}")
            boxes.append(box)
            self._texts.append(_Text(x, y, text, anchor, font, fill))
        self._boxes += boxes
        around = boxes[0]
        for box in boxes[1:]:
            around = around.union(box)
        text = " ".join(text for _, text, _ in cells)
        texts = tuple(text for _, text, _ in cells)
        self.lines.append(GoldLine(text, around, language(text), texts, table, caps))

    @property
    def cells(self) -> list[tuple[str, Box]]:
        """All texts with the boxes around their ink, in the order they were written."""
        return [(text.text, box) for text, box in zip(self._texts, self._boxes, strict=True)]

    def line(self, x: float, y: float, text: str, size: int, fill: Colour = INK) -> None:
        """One gold line of one cell that starts at `x`."""
        self.row(y, [(x, text, "ls")], size, fill)

    def wrap(self, text: str, width: float, size: int) -> list[str]:
        """Break text into lines at most `width` pixels wide; Chinese commas stay with what they end."""
        font = self.font(text, size)
        lines, current, length = [], "", 0.0
        for word in _WORD.findall(text):
            extra = font.getlength(word)
            if current.strip() and length + (0 if word.isspace() else extra) > width:
                lines.append(current.strip())
                current, length = "", 0.0
            current += word
            length += extra
        return [*lines, current.strip()] if current.strip() else lines

    def render(self, *, text: bool = True) -> Image.Image:
        """The page, with its text or without."""
        image = self.image.copy()
        if text:
            draw = ImageDraw.Draw(image)
            for t in self._texts:
                draw.text((t.x, t.y), t.text, font=t.font, fill=t.fill, anchor=t.anchor)
        return image


def _touch(a: Box, b: Box) -> bool:
    common = a.intersection(b)
    return common.width > 0 and common.height > 0
