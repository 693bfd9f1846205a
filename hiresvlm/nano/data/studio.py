"""What all kinds of tiles share: random faces, sizes and colours, and the way from a canvas to a tile."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from hiresvlm.nano.data.alphabet import ALPHABET
from hiresvlm.nano.data.canvas import Canvas, Colour
from hiresvlm.nano.data.chinese_text import ChineseWriter
from hiresvlm.nano.data.degrade import degrade, tilt
from hiresvlm.nano.data.fonts import Face, Fonts
from hiresvlm.nano.data.text import Writer
from hiresvlm.nano.data.tile import Tile

PATCH = 28
"""Pixels of one image token: every side of a tile is a multiple of it."""
SMALLEST_CHINESE = 14.0
"""Pixels per em below which strokes of Chinese characters run together."""
_ALLOWED = frozenset(ALPHABET)


@dataclass(frozen=True)
class Style:
    """How one document looks."""

    paper: Colour
    ink: Colour
    colour: bool
    scale: float
    stretch: float
    face: Face
    bold: Face
    size: float
    """Pixels per em."""

    def between(self, share: float) -> Colour:
        """A colour this far on the way from the paper to the ink."""
        red, green, blue = (round(p + (i - p) * share) for p, i in zip(self.paper, self.ink, strict=True))
        return red, green, blue


class Studio:
    """Random choices from one stream, and the knobs that steer them.

    The knobs are shares between 0 and 1: `chinese` of lines and documents in Chinese, `dirty` of tiles that
    are degraded, with `strength`; `max_chars` is the length after which no further line is drawn. `words` are
    rare words to use beside made-up ones.
    """

    def __init__(
        self,
        seed: int,
        fonts: Fonts,
        *,
        chinese: float,
        dirty: float,
        strength: float,
        max_chars: int,
        words: Sequence[str],
    ) -> None:
        self.rng = random.Random(seed)
        self.fonts = fonts
        self.chinese = chinese if fonts.han else 0.0
        self.dirty, self.strength, self.max_chars = dirty, strength, max_chars
        self.english = Writer(self.rng, words)
        self.mandarin = ChineseWriter(self.english)

    def chance(self, share: float) -> bool:
        """True in this share of calls."""
        return self.rng.random() < share

    def sides(self, fewest: int, most: int) -> int:
        """A length between two numbers of image tokens, in pixels."""
        return self.rng.randint(fewest, most) * PATCH

    def size(self) -> float:
        """A font size in pixels per em: mostly 17 to 30, rarely small, sometimes large.

        Capitals of 17 px per em are about 12 px high, the least that the chunker delivers to nano. Below that
        there are four and more characters in the width of a visual token; more than a little of such text
        costs most of a training and is never asked for.
        """
        kind = self.rng.random()
        if kind < 0.05:
            return self.rng.uniform(13, 17)
        if kind < 0.92:
            return self.rng.uniform(17, 30)
        return self.rng.uniform(26, 40)

    def small_size(self) -> float:
        """A font size for documents with many columns."""
        return self.rng.uniform(13, 16) if self.chance(0.06) else self.rng.uniform(16, 23)

    def face(self, chinese: bool | None = None, typewriter: bool = False) -> Face:
        """A face; the knob decides on a Chinese one where nothing is said."""
        chinese = self.chance(self.chinese) if chinese is None else chinese
        return self.fonts.choose(self.rng, chinese, typewriter)

    def colours(self) -> tuple[Colour, Colour, bool]:
        """Paper and ink with enough contrast, and whether they need colour."""
        rng = self.rng
        kind = rng.random()
        if kind < 0.5:
            paper, ink = 255, rng.randrange(0, 50)
        elif kind < 0.83:
            paper = rng.randrange(190, 256)
            ink = rng.randrange(0, paper - 130)
        elif kind < 0.95:
            paper = rng.randrange(0, 70)
            ink = rng.randrange(paper + 120, 256)
        else:
            paper = rng.randrange(80, 180)
            ink = rng.choice((rng.randrange(0, paper - 70), rng.randrange(paper + 70, 256)))
        if not self.chance(0.25):
            return (paper,) * 3, (ink,) * 3, False
        return self.tint(paper), self.tint(ink), True

    def tint(self, level: int) -> Colour:
        """A colour of about the brightness `level`."""
        rough = [max(0, min(255, level + self.rng.randrange(-50, 51))) for _ in range(3)]
        shift = level - round(0.299 * rough[0] + 0.587 * rough[1] + 0.114 * rough[2])
        red, green, blue = (max(0, min(255, part + shift)) for part in rough)
        return red, green, blue

    def style(self, size: float, chinese: bool | None = None, typewriter: bool = False) -> Style:
        """A look for one document, with letters of one width if `typewriter`."""
        paper, ink, colour = self.colours()
        scale = self.rng.uniform(1.2, 2.2) if self.chance(0.5) else 1.0
        stretch = self.rng.uniform(0.85, 1.2) if scale > 1 and self.chance(0.3) else 1.0
        face = self.face(chinese, typewriter)
        bold = self.fonts.bold(face) if self.chance(0.7) else face
        if face in self.fonts.han and chinese is not False:
            size = max(size, SMALLEST_CHINESE)
        return Style(paper, ink, colour, scale, stretch, face, bold, size)

    def canvas(self, style: Style, width: int, height: int) -> Canvas:
        """An empty surface."""
        return Canvas(width, height, style.paper, style.scale, style.colour, style.stretch)

    def writing(self, length: int, face: Face) -> str:
        """One line of text that the face can draw."""
        writer = self.mandarin if face in self.fonts.han and self.chance(0.8) else self.english
        return self.clean(writer.line(length), face)

    def clean(self, text: str, face: Face) -> str:
        """`text` in single spaces, with nothing that the face or the alphabet lacks."""
        return " ".join("".join(char for char in face.clean(text) if char in _ALLOWED).split())

    def finish(self, canvas: Canvas, kind: str, slack: float) -> Tile:
        """The tile of a canvas, at times degraded, or turned so that no edge moves by over `slack` px."""
        text, centres = canvas.transcript()
        pixels = canvas.pixels(
            binary=not canvas.colour and canvas.scale > 1.4 and self.chance(0.2 * self.dirty)
        )
        if slack > 0.5 and self.chance(0.3 * self.dirty):
            most = min(2.0, 57.3 * slack / (max(canvas.width, canvas.height) / 2))
            shear = self.rng.uniform(-0.12, 0.12) if self.chance(0.2) and canvas.height == PATCH else 0.0
            pixels, centres = tilt(pixels, centres, self.rng.uniform(-most, most), shear)
        if self.chance(self.dirty):
            pixels = degrade(pixels, self.rng, self.strength)
        return Tile(pixels, text, centres, kind)
