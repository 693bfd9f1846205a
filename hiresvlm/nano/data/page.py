"""A canvas with a cursor: rows are set from top to bottom until no room or no budget is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hiresvlm.nano.data.canvas import Canvas, Colour, Span
from hiresvlm.nano.data.fonts import Face
from hiresvlm.nano.data.studio import Studio, Style

ASCENT, DESCENT = 0.8, 0.25
"""Room that a line takes above and below its baseline, in em."""


@dataclass(frozen=True)
class Cell:
    """A piece of a row: `align` is l, c or r of `x`."""

    text: str
    x: float
    align: str = "l"
    face: Face | None = None
    ink: Colour | None = None


def fit(canvas: Canvas, text: str, face: Face, size: float, width: float, spacing: float = 0.0) -> str:
    """The longest beginning of `text` that fits into `width`, cut between words where it has some."""
    total = 0.0
    for at, advance in enumerate(face.advances(text, canvas.em(size))):
        total += advance / canvas.across + spacing
        if total > width:
            cut = text.rfind(" ", 0, at + 1)
            return text[: cut if cut > 0 else at].strip()
    return text.strip()


@dataclass
class Page:
    """Where the next row goes."""

    studio: Studio
    canvas: Canvas
    style: Style
    left: float
    right: float
    y: float
    bottom: float
    leading: float
    used: int = 0
    full: bool = False

    @property
    def width(self) -> float:
        """Between the margins."""
        return self.right - self.left

    def measure(self, text: str, face: Face | None = None, em: float | None = None) -> float:
        """The width of a text in the style's face and size, where no other is given."""
        return self.canvas.measure(text, face or self.style.face, em or self.style.size)

    def baseline(self, em: float) -> float | None:
        """The baseline of the next row; None, and the page is full, where it does not fit."""
        baseline = self.y + ASCENT * em
        if self.full or baseline + DESCENT * em > self.bottom or self.used >= self.studio.max_chars:
            self.full = True
            return None
        return baseline

    def row(self, cells: Sequence[Cell], em: float | None = None) -> list[Span]:
        """Set cells from left to right on one baseline; nothing where the row does not fit."""
        size = em or self.style.size
        baseline = self.baseline(size)
        if baseline is None:
            return []
        spans = []
        for cell in cells:
            if not cell.text:
                continue
            face = cell.face or self.style.face
            width = self.canvas.measure(cell.text, face, size) if cell.align != "l" else 0.0
            x = cell.x - {"l": 0.0, "c": width / 2, "r": width}[cell.align]
            spans.append(self.canvas.text(x, baseline, cell.text, face, size, cell.ink or self.style.ink))
        if spans:
            self.canvas.row(*spans)
        self.used += sum(len(span.text) + 1 for span in spans)
        self.y = baseline + (self.leading - ASCENT) * size
        return spans

    def line(
        self, text: str, align: str = "l", face: Face | None = None, em: float | None = None
    ) -> list[Span]:
        """One line at the left, in the middle or at the right."""
        x = {"l": self.left, "c": (self.left + self.right) / 2, "r": self.right}[align]
        return self.row([Cell(text, x, align, face)], em)

    def wrapped(self, text: str, face: Face, em: float, justify: bool) -> None:
        """A paragraph between the margins."""
        rest = text
        while rest and not self.full:
            piece = fit(self.canvas, rest, face, em, self.width)
            if not piece:
                return
            rest = rest[len(piece) :].strip()
            words = piece.split()
            gap = self._gap(words, face, em) if justify and rest and len(words) > 2 else None
            if gap is None:
                self.row([Cell(piece, self.left, face=face)], em)
                continue
            cells, x = [], self.left
            for word in words:
                cells.append(Cell(word, x, face=face))
                x += self.measure(word, face, em) + gap
            self.row(cells, em)

    def _gap(self, words: Sequence[str], face: Face, em: float) -> float | None:
        """The space between the words of a line that reaches the right margin; None where it is too wide."""
        gap = (self.width - sum(self.measure(word, face, em) for word in words)) / (len(words) - 1)
        return gap if gap <= 1.2 * em else None
