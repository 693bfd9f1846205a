"""Random tiles and samples for the training of nano."""

from __future__ import annotations

import random

from hiresvlm.nano.data.alphabet import ALPHABET
from hiresvlm.nano.data.canvas import Canvas, Colour
from hiresvlm.nano.data.chinese_text import ChineseWriter
from hiresvlm.nano.data.degrade import degrade, tilt
from hiresvlm.nano.data.fonts import Face, Fonts
from hiresvlm.nano.data.text import Writer
from hiresvlm.nano.data.tile import Sample, Tile

PATCH = 28
"""Pixels of one image token: every side of a tile is a multiple of it."""
_ALLOWED = frozenset(ALPHABET)


class Generator:
    """An endless source of tiles from one seed.

    The knobs are shares between 0 and 1: `chinese` of lines and forms in Chinese, `dirty` of tiles that are
    degraded, with `strength`; `max_chars` is the length after which no further line is drawn.
    """

    def __init__(
        self,
        seed: int,
        fonts: Fonts,
        *,
        chinese: float = 0.15,
        dirty: float = 0.55,
        strength: float = 1.0,
        max_chars: int = 640,
    ) -> None:
        self.rng = random.Random(seed)
        self.fonts = fonts
        self.chinese = chinese if fonts.han else 0.0
        self.dirty, self.strength, self.max_chars = dirty, strength, max_chars
        self.english = Writer(self.rng)
        self.mandarin = ChineseWriter(self.rng)

    def chance(self, share: float) -> bool:
        """True in this share of calls."""
        return self.rng.random() < share

    def size(self) -> float:
        """A font size in pixels per em: mostly 14 to 26, sometimes small or large."""
        kind = self.rng.random()
        if kind < 0.08:
            return self.rng.uniform(10.5, 14)
        if kind < 0.92:
            return self.rng.uniform(14, 26)
        return self.rng.uniform(26, 40)

    def colours(self) -> tuple[Colour, Colour, bool]:
        """Paper and ink with enough contrast, and whether they need colour."""
        rng = self.rng
        colour = self.chance(0.25)
        kind = rng.random()
        if kind < 0.5:
            paper, ink = 255, rng.randrange(0, 50)
        elif kind < 0.83:
            paper = rng.randrange(190, 256)
            ink = rng.randrange(0, max(1, paper - 130))
        elif kind < 0.95:
            paper = rng.randrange(0, 70)
            ink = rng.randrange(paper + 120, 256)
        else:
            paper = rng.randrange(80, 180)
            ink = (
                rng.choice((rng.randrange(0, paper - 70), rng.randrange(paper + 70, 256)))
                if paper < 180
                else 0
            )
        if not colour:
            return (paper,) * 3, (ink,) * 3, False
        return self.tint(paper), self.tint(ink), True

    def tint(self, level: int) -> Colour:
        """A colour of about the brightness `level`."""
        red, green, blue = (max(0, min(255, level + self.rng.randrange(-50, 51))) for _ in range(3))
        shift = level - round(0.299 * red + 0.587 * green + 0.114 * blue)
        return tuple(max(0, min(255, part + shift)) for part in (red, green, blue))  # type: ignore[return-value]

    def canvas(self, width: int, height: int) -> tuple[Canvas, Colour]:
        """An empty surface, and the colour to write with."""
        paper, ink, colour = self.colours()
        scale = self.rng.uniform(1.2, 2.2) if self.chance(0.5) else 1.0
        return Canvas(width, height, paper, scale, colour), ink

    def finish(self, canvas: Canvas, kind: str, slack: float) -> Tile:
        """The tile of a canvas: at times turned so that no edge moves by more than `slack` pixels, and degraded."""
        text, centres = canvas.transcript()
        pixels = canvas.pixels()
        if slack > 0.5 and self.chance(0.3 * self.dirty):
            most = min(2.0, 57.3 * slack / (canvas.width / 2))
            shear = self.rng.uniform(-0.12, 0.12) if self.chance(0.2) and canvas.height == PATCH else 0.0
            pixels, centres = tilt(pixels, centres, self.rng.uniform(-most, most), shear)
        if self.chance(self.dirty):
            pixels = degrade(pixels, self.rng, self.strength)
        return Tile(pixels, text, centres, kind)

    def writing(self, length: int, face: Face) -> str:
        """One line of text that the face can draw."""
        writer = self.mandarin if face.han and face in self.fonts.han and self.chance(0.8) else self.english
        text = face.clean(writer.line(length))
        return "".join(char for char in text if char in _ALLOWED)

    def face(self, chinese: bool | None = None) -> Face:
        """A face; the knob decides on a Chinese one where nothing is said."""
        return self.fonts.choose(self.rng, self.chance(self.chinese) if chinese is None else chinese)

    def _fit(
        self, canvas: Canvas, text: str, face: Face, size: float, width: float, spacing: float = 0.0
    ) -> str:
        """The longest beginning of `text` that fits, cut between words where it has some."""
        total, end = 0.0, 0
        for end, advance in enumerate(face.advances(text, canvas.em(size)), 1):
            total += advance / canvas.scale + spacing
            if total > width:
                break
        else:
            return text
        cut = text.rfind(" ", 0, end)
        return text[: cut if cut > 0 else end - 1].strip()

    def line(self) -> Tile:
        """One line, 28 pixels high and 140 to 448 wide."""
        rng = self.rng
        if self.chance(0.01):
            return self._blank(rng.randrange(5, 17) * PATCH, PATCH, "line")
        face, size = self.face(), min(self.size(), 27.0)
        spacing = rng.uniform(0.3, 2.5) if self.chance(0.06) else 0.0
        width = rng.randrange(5, 17) * PATCH
        canvas, ink = self.canvas(width, PATCH)
        text = ""
        while not text:
            text = self._fit(
                canvas, self.writing(int(width / size * 2), face), face, size, width - 6, spacing
            )
        above, below = canvas.ink(text, face, size)
        while above + below > PATCH - 2:
            size *= 0.93
            above, below = canvas.ink(text, face, size)
        used = canvas.measure(text, face, size, spacing)
        x = (
            rng.uniform(2, min(24, width - used - 3))
            if self.chance(0.7)
            else rng.uniform(2, width - used - 3)
        )
        baseline = rng.uniform(above + 0.7, PATCH - below - 0.7)
        canvas.row(canvas.text(x, baseline, text, face, size, ink, spacing))
        slack = min(baseline - above, PATCH - baseline - below) - 0.5
        return self.finish(canvas, "line", slack)

    def _blank(self, width: int, height: int, kind: str) -> Tile:
        canvas, ink = self.canvas(width, height)
        if self.chance(0.3):
            y = self.rng.uniform(4, height - 4)
            canvas.rule(self.rng.uniform(0, width / 2), y, width, y, ink)
        return self.finish(canvas, kind, 8)

    def lines(self, height: int, width: int, kind: str) -> Tile:
        """Short unrelated lines, one under another, at one or two sizes."""
        rng = self.rng
        if self.chance(0.02):
            return self._blank(width, height, kind)
        canvas, ink = self.canvas(width, height)
        face, size = self.face(), min(self.size(), height / 2.2)
        other = self.face(face.han) if self.chance(0.3) else face
        margin = rng.uniform(2, 12)
        y, left = margin, rng.uniform(2, 30)
        leading, right = rng.uniform(1.1, 1.9), width - rng.uniform(3, 12)
        place = rng.choice(("left", "left", "left", "centre", "right"))
        used = 0
        while used < self.max_chars:
            here, em = (other, size * rng.uniform(0.85, 1.3)) if self.chance(0.2) else (face, size)
            text = self._fit(
                canvas, self.writing(int(rng.uniform(0.4, 2.0) * width / em), here), here, em, right - left
            )
            if not text:
                continue
            above, below = canvas.ink(text, here, em)
            baseline = y + max(above, 0.75 * em)
            if baseline + below > height - margin:
                break
            spare = right - left - canvas.measure(text, here, em)
            x = left + {"left": 0.0, "centre": spare / 2, "right": spare}[place]
            canvas.row(canvas.text(x, baseline, text, here, em, ink))
            used += len(text) + 1
            y = baseline + (leading - 0.75) * em + (rng.uniform(0, 20) if self.chance(0.1) else 0)
            y = max(y, baseline + below + 1)
        return self.finish(canvas, kind, margin - 1)

    def paragraph(self, height: int, width: int) -> Tile:
        """Prose in wrapped lines, with headings, bullets and gaps at times."""
        rng = self.rng
        if self.chance(0.02):
            return self._blank(width, height, "paragraph")
        canvas, ink = self.canvas(width, height)
        face, size = self.face(False), self.size()
        bold = self.face(False) if self.chance(0.5) else face
        margin = rng.uniform(3, 14)
        left, right = rng.uniform(3, 40), width - rng.uniform(4, 30)
        leading, justify = rng.uniform(1.1, 1.75), self.chance(0.25)
        y = margin if self.chance(0.7) else rng.uniform(margin, height / 2)
        used, full = 0, False
        while not full and used < self.max_chars:
            head = self.chance(0.2)
            here, em = (bold, size * rng.uniform(1.0, 1.5)) if head else (face, size)
            text = face.clean(
                self.english.heading() if head else self.english.prose(rng.choice((60, 120, 240, 400)))
            )
            bullet = rng.choice(("• ", "- ", "· ", "1. ", "* ")) if not head and self.chance(0.15) else ""
            rest = here.clean(bullet) + (" " if bullet else "") + text
            while rest and used < self.max_chars:
                piece = self._fit(canvas, rest, here, em, right - left)
                if not piece:
                    break
                rest = rest[len(piece) :].strip()
                above, below = canvas.ink(piece, here, em)
                baseline = y + max(above, 0.75 * em)
                if baseline + max(below, 0.22 * em) > height - margin:
                    full = True
                    break
                self._set(canvas, piece, left, right if justify and rest else None, baseline, here, em, ink)
                used += len(piece) + 1
                y = max(baseline + (leading - 0.75) * em, baseline + below + 1)
            y += size * rng.choice((0.0, 0.3, 0.6, 1.0))
            full = full or self.chance(0.06)
        return self.finish(canvas, "paragraph", margin - 1)

    def _set(
        self,
        canvas: Canvas,
        text: str,
        left: float,
        right: float | None,
        baseline: float,
        face: Face,
        size: float,
        ink: Colour,
    ) -> None:
        """One line of a paragraph, its words spread out to `right` where that is given."""
        words = text.split()
        if right is None or len(words) < 3:
            canvas.row(canvas.text(left, baseline, text, face, size, ink))
            return
        widths = [canvas.measure(word, face, size) for word in words]
        gap = (right - left - sum(widths)) / (len(words) - 1)
        if gap > 1.2 * size:
            gap = canvas.measure(" ", face, size)
        spans, x = [], left
        for word, width in zip(words, widths, strict=True):
            spans.append(canvas.text(x, baseline, word, face, size, ink))
            x += width + gap
        canvas.row(*spans)

    def tile(self, kind: str) -> Tile:
        """One tile of a kind: line, two, few, paragraph."""
        rng = self.rng
        if kind == "line":
            return self.line()
        if kind == "two":
            return self.lines(2 * PATCH, rng.randrange(5, 17) * PATCH, kind)
        if kind == "few":
            return self.lines(rng.randrange(3, 7) * PATCH, rng.randrange(7, 17) * PATCH, kind)
        if kind == "paragraph":
            return self.paragraph(rng.randrange(7, 17) * PATCH, rng.randrange(10, 17) * PATCH)
        raise ValueError(f"no such kind of tile: {kind}")

    def sample(self, stage: str) -> Sample:
        """One example for a stage of the curriculum: line, two, few, paragraph."""
        return Sample.transcription(self.tile(stage))
