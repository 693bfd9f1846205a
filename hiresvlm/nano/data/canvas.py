"""A surface that draws text and writes down where each character stands."""

from __future__ import annotations

from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from hiresvlm.nano.data.fonts import Face

Colour = tuple[int, int, int]
MIDDLE = 0.36
"""The optical middle of a line lies this many em above its baseline."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text on one baseline, in tile pixels."""

    text: str
    centres: NDArray[np.float32]
    """(len(text),) x of the middle of each advance box."""
    middle: float
    start: float
    end: float


@dataclass
class Canvas:
    """Draws at `scale` times the size of the tile; all arguments are in tile pixels."""

    width: int
    height: int
    paper: Colour
    scale: float = 1.0
    colour: bool = False
    stretch: float = 1.0
    """How much wider the canvas is than the tile, beyond `scale`: letters become narrower by it."""
    rows: list[list[Span]] = field(default_factory=list)
    """What was printed, as the rows of the text."""

    def __post_init__(self) -> None:
        size = (round(self.width * self.across), round(self.height * self.scale))
        self.image = Image.new("RGB" if self.colour else "L", size, self._ink(self.paper))
        self._draw = ImageDraw.Draw(self.image)

    @property
    def across(self) -> float:
        """Canvas pixels for one pixel of the tile's width."""
        return self.scale * self.stretch

    def _ink(self, colour: Colour) -> Colour | int:
        return colour if self.colour else round(0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2])

    def em(self, size: float) -> int:
        """The font size in canvas pixels for a size in tile pixels."""
        return max(6, round(size * self.scale))

    def measure(self, text: str, face: Face, size: float, spacing: float = 0.0) -> float:
        """The width of `text` in tile pixels."""
        return sum(face.advances(text, self.em(size))) / self.across + spacing * len(text)

    def ink(self, text: str, face: Face, size: float) -> tuple[float, float]:
        """How far the ink reaches above and below the baseline, in tile pixels."""
        box = face.at(self.em(size)).getbbox(text, anchor="ls")
        return -box[1] / self.scale, box[3] / self.scale

    def text(
        self,
        x: float,
        baseline: float,
        text: str,
        face: Face,
        size: float,
        fill: Colour,
        spacing: float = 0.0,
    ) -> Span:
        """Draw `text` from `x` on; the span is not in `rows` until `row` is called with it."""
        em, across = self.em(size), self.across
        gap = spacing * across
        widths = np.array(face.advances(text, em), np.float32) + np.float32(gap)
        ends = np.cumsum(widths)
        font, ink, origin = face.at(em), self._ink(fill), (x * across, baseline * self.scale)
        if spacing:
            for char, end, width in zip(text, ends, widths, strict=True):
                if char != " ":
                    self._draw.text((origin[0] + float(end - width), origin[1]), char, ink, font, anchor="ls")
        else:
            self._draw.text(origin, text, ink, font, anchor="ls")
        centres = x + (ends - (widths + gap) / 2) / across
        middle, end = baseline - MIDDLE * em / self.scale, x + float(ends[-1]) / across
        return Span(text, centres.astype(np.float32), middle, x, end)

    def row(self, *spans: Span) -> None:
        """One line of the text: spans from left to right, to be joined by single spaces."""
        self.rows.append([span for span in spans if span.text])

    def box(self, left: float, top: float, right: float, bottom: float, fill: Colour | None = None,
            outline: Colour | None = None, radius: float = 0.0, thick: float = 1.0) -> None:  # fmt: skip
        """Draw a rectangle, filled or as a frame, with round corners where `radius` is given."""
        s, a = self.scale, self.across
        corners = (left * a, top * s, max(left, right) * a, max(top, bottom) * s)
        paint = None if fill is None else self._ink(fill)
        line = None if outline is None else self._ink(outline)
        pen = max(1, round(thick * s))
        # Pillow fails on corners that leave nothing straight between them.
        most = min(corners[2] - corners[0], corners[3] - corners[1]) / 2 - pen - 1
        if radius and most > 1:
            self._draw.rounded_rectangle(corners, min(radius * s, most), paint, line, pen)
        else:
            self._draw.rectangle(corners, paint, line, pen)

    def rule(
        self, x0: float, y0: float, x1: float, y1: float, fill: Colour, thick: float = 1.0, dash: float = 0.0
    ) -> None:
        """Draw a horizontal or vertical line, dashed where `dash` is given."""
        s, a, pen, ink = self.scale, self.across, max(1, round(thick * self.scale)), self._ink(fill)
        if not dash:
            self._draw.line((x0 * a, y0 * s, x1 * a, y1 * s), ink, pen)
            return
        for at in np.arange(x0, x1, 2 * dash):
            self._draw.line((at * a, y0 * s, min(at + dash, x1) * a, y1 * s), ink, pen)

    def transcript(self) -> tuple[str, NDArray[np.float32]]:
        """The text of all rows, and the (x, y) of each of its characters."""
        chars: list[str] = []
        points: list[NDArray[np.float32]] = []
        for number, row in enumerate(self.rows):
            if number:
                before = self.rows[number - 1][-1]
                chars.append("\n")
                points.append(np.array([[before.end, before.middle]], np.float32))
            for position, span in enumerate(row):
                if position:
                    chars.append(" ")
                    gap = (row[position - 1].end + span.start) / 2
                    points.append(np.array([[gap, span.middle]], np.float32))
                chars.append(span.text)
                points.append(np.stack([span.centres, np.full_like(span.centres, span.middle)], axis=1))
        if not points:
            return "", np.zeros((0, 2), np.float32)
        return "".join(chars), np.concatenate(points)

    def pixels(self, binary: bool = False) -> NDArray[np.uint8]:
        """The picture at the size of the tile, (height, width) or (height, width, 3).

        `binary`: scanned in black and white before it is shrunk.
        """
        array = np.asarray(self.image)
        if binary:
            low, high = int(array.min()), int(array.max())
            array = np.where(array > (low + high) / 2, high, low).astype(np.uint8)
        if array.shape[:2] != (self.height, self.width):
            array = cv2.resize(array, (self.width, self.height), interpolation=cv2.INTER_AREA)
        return np.ascontiguousarray(array, dtype=np.uint8)
