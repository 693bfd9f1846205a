"""Drawing surfaces of the sample documents: pictures, PDF pages and phone screenshots.

Each records the gold line of whatever is drawn on it, and refuses text that leaves the page, touches other
text, or needs a glyph its font does not have.
"""

from __future__ import annotations

import io
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import pymupdf
import sample_text as st
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]
Cell = tuple[float, str, str]  # x, text, Pillow anchor ("ls" starts at x, "rs" ends there, "ms" is centred)
BLACK: Colour = (24, 24, 28)
A4 = (595.0, 842.0)
TOKEN = re.compile(r"[（《「]*(?:[!-~¥]+|[^\s!-~¥（《「])[，。、；：？！）》」]*|\s+")


@lru_cache
def pdf_font(name: str) -> pymupdf.Font:
    """Return a font that comes with PyMuPDF ("helv", "hebo", "tiro", "tibo", "cour", "cobo", "cjk")."""
    return pymupdf.Font(name)


@lru_cache
def face(name: str, size: int) -> ImageFont.FreeTypeFont:
    """Return the same font for Pillow; the basic layout draws no ligatures and needs no extra library."""
    return ImageFont.truetype(io.BytesIO(pdf_font(name).buffer), size, layout_engine=ImageFont.Layout.BASIC)


def font_for(text: str, latin: str) -> str:
    """Name the font for ``text``: ``latin`` if it is all Latin-1, else Droid Sans; check the glyphs."""
    name = latin if all(ord(char) < 256 for char in text) else "cjk"
    missing = [char for char in text if not pdf_font(name).has_glyph(ord(char))]
    if missing:
        raise ValueError(f"font {name} lacks {missing} of {text!r}")
    return name


def wrap(text: str, width: float, measure: Callable[[str], float]) -> list[str]:
    """Break ``text`` into lines no wider than ``width``; CJK closing marks stay with what they close."""
    lines, current = [], ""
    for token in TOKEN.findall(text):
        if current.strip() and measure((current + token).rstrip()) > width:
            lines.append(current.rstrip())
            current = token.lstrip()
        else:
            current += token
    lines.append(current.rstrip())
    if "".join("".join(lines).split()) != "".join(text.split()):
        raise ValueError(f"line breaking lost a part of {text!r}")
    return lines


@dataclass
class Sheet:
    """A picture under construction that knows the text drawn on it so far."""

    image: Image.Image
    latin: str = "helv"
    gold: list[str] = field(default_factory=list)
    boxes: list[tuple[float, float, float, float]] = field(default_factory=list)

    @classmethod
    def new(cls, width: int, height: int, colour: Colour = (255, 255, 255), latin: str = "helv") -> Sheet:
        """Start an empty sheet."""
        return cls(Image.new("RGB", (width, height), colour), latin)

    @property
    def draw(self) -> ImageDraw.ImageDraw:
        """The drawing context of the picture."""
        return ImageDraw.Draw(self.image)

    def row(self, y: float, cells: Iterable[Cell], size: int, fill: Colour = BLACK, font: str = "") -> None:
        """Draw cells that share the baseline ``y`` and record them as one gold line."""
        texts = []
        for x, text, anchor in cells:
            if not text:
                continue
            drawn = face(font_for(text, font or self.latin), size)
            left, top, right, bottom = box = self.draw.textbbox((x, y), text, font=drawn, anchor=anchor)
            if left < 2 or top < 2 or right > self.image.width - 2 or bottom > self.image.height - 2:
                raise ValueError(f"{text!r} leaves the picture: {box}")
            if any(left < b[2] and b[0] < right and top < b[3] and b[1] < bottom for b in self.boxes):
                raise ValueError(f"{text!r} overlaps other text: {box}")
            self.boxes.append(box)
            self.draw.text((x, y), text, font=drawn, fill=fill, anchor=anchor)
            texts.append(text)
        self.gold.append(" ".join(texts))

    def line(self, x: float, y: float, text: str, size: int, fill: Colour = BLACK, font: str = "") -> None:
        """Draw one line of text from ``x`` on the baseline ``y``."""
        self.row(y, [(x, text, "ls")], size, fill, font)

    def split(self, text: str, width: float, size: int) -> list[str]:
        """Break a paragraph for ``width`` pixels, measured in the font it will be drawn with."""
        return wrap(text, width, face(font_for(text, self.latin), size).getlength)

    def prose(self, x: float, y: float, width: float, text: str, size: int, pitch: int) -> float:
        """Draw a wrapped paragraph whose first baseline is ``y``; return the baseline after it."""
        font = font_for(text, self.latin)  # one face for all its lines, Latin-only ones too
        for line in self.split(text, width, size):
            self.line(x, y, line, size, font=font)
            y += pitch
        return y


def noisy(image: Image.Image, sigma: float, seed: int, light: np.ndarray | float = 1.0) -> Image.Image:
    """Scale the brightness by ``light`` and add gaussian noise, the same in all channels."""
    pixels = np.asarray(image, dtype=np.float32) * light
    noise = np.random.default_rng(seed).normal(0, sigma, pixels.shape[:2])
    pixels += noise if pixels.ndim == 2 else noise[..., None]
    return Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))


def write_gold(document: Path, pages: Sequence[Sequence[str]]) -> None:
    """Write the text of ``document`` as ``<its full name>.gold.txt``."""
    text = "\f".join("".join(line + "\n" for line in page if line) for page in pages)
    document.with_name(document.name + ".gold.txt").write_text(text, encoding="utf-8", newline="\n")


def save_picture(path: Path, sheet: Sheet) -> None:
    """Save a PNG and its gold text."""
    sheet.image.save(path, optimize=True)
    write_gold(path, [sheet.gold])


# ---- PDF -------------------------------------------------------------------------------------------------


@dataclass
class PdfPage:
    """One A4 page with a text layer, and the gold lines of what it shows."""

    document: pymupdf.Document
    number: int
    gold: list[str] = field(default_factory=list)

    @classmethod
    def new(cls, document: pymupdf.Document) -> PdfPage:
        """Add an empty page to ``document``."""
        document.new_page(width=A4[0], height=A4[1])
        return cls(document, document.page_count - 1)

    @property
    def page(self) -> pymupdf.Page:
        """The page itself, loaded anew because PyMuPDF drops loaded pages whenever one is added."""
        return self.document[self.number]

    def row(self, y: float, cells: Iterable[Cell], size: float, font: str = "tiro") -> None:
        """Write cells on the baseline ``y`` as one gold line; anchors as for pictures."""
        page, texts = self.page, []
        writer = pymupdf.TextWriter(page.rect)
        for x, text, anchor in cells:
            if text:
                length = pdf_font(font).text_length(text, size)
                start = x - length * {"l": 0.0, "m": 0.5, "r": 1.0}[anchor[0]]
                if start < 40 or start + length > A4[0] - 40 or not 40 < y < A4[1] - 30:
                    raise ValueError(f"{text!r} leaves the page")
                writer.append((start, y), text, font=pdf_font(font_for(text, font)), fontsize=size)
                texts.append(text)
        writer.write_text(page)
        self.gold.append(" ".join(texts))

    def heading(self, y: float, text: str, size: float = 13) -> float:
        """Write a bold heading; return the baseline for the text below it."""
        self.row(y, [(60, text, "ls")], size, "hebo")
        return y + size + 7

    def prose(self, y: float, text: str, x: float = 60, width: float = 475, size: float = 10.5) -> float:
        """Write a wrapped paragraph; return the baseline of the next one."""
        for line in wrap(text, width, lambda part: pdf_font("tiro").text_length(part, size)):
            self.row(y, [(x, line, "ls")], size)
            y += size * 1.36
        return y + 6


@dataclass(frozen=True)
class Theme:
    """Colours of one part of a screenshot."""

    page: Colour
    card: Colour
    ink: Colour
    dim: Colour
    accent: Colour
    mine: Colour


LIGHT = Theme((242, 243, 246), (255, 255, 255), (28, 28, 32), (110, 114, 122), (20, 92, 190), (190, 236, 170))
DARK = Theme((18, 19, 22), (38, 40, 46), (230, 230, 232), (160, 164, 172), (120, 178, 255), (30, 92, 62))


class Phone:
    """A phone screenshot, filled from the top with cards, lists and chat bubbles."""

    size, pitch, gap = 30, 40, 16

    def __init__(self, height: int, seed: int) -> None:
        """Draw the status bar and the title bar of a picture ``height`` pixels high."""
        self.sheet, self.theme = Sheet.new(1080, height, LIGHT.page, latin="cjk"), LIGHT
        self.rng = random.Random(seed)
        self.pools: dict[tuple[str, ...], list[str]] = {}
        self.end = height - 110
        self.sheet.row(44, [(48, "9:41", "ls"), (1032, "5G 86%", "rs")], 28)
        self.sheet.row(112, [(540, "青禾生活 Qinghe Life", "ms")], 36)
        self.y = 140

    def clock(self) -> str:
        """Return a time of day."""
        return f"{self.rng.randrange(7, 23):02}:{self.rng.randrange(0, 60):02}"

    def pick(self, pool: tuple[str, ...], count: int = 1) -> str:
        """Join ``count`` texts of ``pool``, none used twice before all were, with their blanks filled in."""
        texts, rng = [], self.rng
        left = self.pools.setdefault(pool, [])
        for _ in range(count):
            if not left:
                left.extend(pool)
                rng.shuffle(left)
            month, day = rng.randrange(1, 13), rng.randrange(1, 29)
            texts.append(
                left.pop().format(
                    n=rng.randrange(11, 98),
                    c=f"{rng.choice('ABDEFHKMNPRT')}{rng.choice('CXYZ')}-{rng.randrange(1000, 9999)}",
                    d=f"2024-{month:02}-{day:02}" if pool is st.ENGLISH else f"{month}月{day}日",
                    t=self.clock(),
                )
            )
        return (" " if pool is st.ENGLISH else "").join(texts)

    def block(self, x: int, width: int, lines: int, colour: Colour, extra: int = 0) -> bool:
        """Draw a rounded box for so many lines at the cursor; do nothing and say False if it does not fit."""
        height = 28 + self.pitch * lines + extra
        if self.y + height > self.end:
            return False
        self.sheet.draw.rounded_rectangle((x, self.y, x + width, self.y + height), 18, fill=colour)
        return True

    def card(self, title: str, text: str) -> bool:
        """Add a card with a title and a paragraph."""
        lines = self.sheet.split(text, 984, self.size)
        if not self.block(24, 1032, len(lines), self.theme.card, extra=54):
            return False
        self.sheet.row(self.y + 50, [(48, title, "ls"), (1032, self.clock(), "rs")], 34, self.theme.accent)
        for number, line in enumerate(lines):
            self.sheet.line(48, self.y + 102 + self.pitch * number, line, self.size, self.theme.ink)
        self.y += 28 + self.pitch * len(lines) + 54 + self.gap
        return True

    def listing(self, count: int) -> bool:
        """Add a card of label and value rows with hairlines between them."""
        if not self.block(24, 1032, count, self.theme.card, extra=14 * count):
            return False
        for number in range(count):
            y = self.y + 52 + (self.pitch + 14) * number
            label, value = self.pick(st.LIST_ROWS).split("|")
            self.sheet.row(y, [(48, label, "ls"), (1032, value, "rs")], self.size, self.theme.ink)
            if number:
                self.sheet.draw.line((48, y - 39, 1032, y - 39), fill=self.theme.page, width=2)
        self.y += 28 + (self.pitch + 14) * count + self.gap
        return True

    def chat(self, text: str, mine: bool) -> bool:
        """Add a message with sender and time above its bubble."""
        lines = self.sheet.split(text, 864, self.size)
        width = int(max(face("cjk", self.size).getlength(line) for line in lines)) + 48
        x = 984 - width if mine else 96
        self.y += 40
        if not self.block(x, width, len(lines), self.theme.mine if mine else self.theme.card):
            return False
        label = f"{self.pick(st.NAMES)} {self.clock()}"
        sender = (x + width, label, "rs") if mine else (x, label, "ls")
        self.sheet.row(self.y - 10, [sender], 24, self.theme.dim)
        left = 996 if mine else 24
        self.sheet.draw.ellipse((left, self.y, left + 60, self.y + 60), fill=self.theme.accent)
        for number, line in enumerate(lines):
            self.sheet.line(x + 24, self.y + 45 + self.pitch * number, line, self.size, self.theme.ink)
        self.y += 28 + self.pitch * len(lines) + self.gap
        return True

    def switch(self, theme: Theme) -> None:
        """Change the theme from the cursor down."""
        self.theme = theme
        self.sheet.draw.rectangle((0, self.y, 1080, self.sheet.image.height), fill=theme.page)
        self.y += 24

    def fill(self, until: int) -> None:
        """Add block after block up to the height ``until`` or to the end of the picture."""
        going = True
        while going and self.y < until:
            going = (
                self.card(self.pick(st.ZH_TITLES), self.pick(st.CHINESE, 7))
                and self.chat(self.pick(st.MIXED, 3), mine=False)
                and self.chat(self.pick(st.CHINESE, 2), mine=True)
                and self.card(self.pick(st.EN_TITLES), self.pick(st.ENGLISH, 7))
                and self.chat(self.pick(st.ENGLISH, 3), mine=False)
                and self.listing(3)
            )
        for count in (6, 5, 4, 3, 2, 1):  # what is left is too low for the block whose turn it was
            if self.y < until:
                self.card(self.pick(st.EN_TITLES), self.pick(st.ENGLISH, count))

    def save(self, path: Path) -> None:
        """Draw the tab bar at the foot and save."""
        height = self.sheet.image.height
        self.sheet.draw.rectangle((0, height - 90, 1080, height), fill=self.theme.card)
        tabs = zip((135, 405, 675, 945), ("首页", "消息", "Orders", "我的"), strict=True)
        self.sheet.row(height - 34, [(x, text, "ms") for x, text in tabs], 30, self.theme.dim)
        save_picture(path, self.sheet)
