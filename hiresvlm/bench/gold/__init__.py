"""Gold pages: pictures of pages whose text and boxes are known, new ones for every seed.

A page is a picture and, beside it, `NAME.gold.txt` (its text, one printed line a line) and
`NAME.gold.json` (kind, lines with boxes, languages and cells). Only fonts that PyMuPDF carries are used.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from PIL import Image, ImageFilter

from hiresvlm.bench.gold.kinds import KINDS
from hiresvlm.bench.gold.sheet import GoldLine, Sheet
from hiresvlm.datatypes import Box
from hiresvlm.metrics import language

__all__ = ["KINDS", "GoldLine", "GoldPage", "draw", "load", "make", "rng_of", "sheet_of", "wear"]

TEXT_SUFFIX = ".gold.txt"
JSON_SUFFIX = ".gold.json"
JPEG_QUALITY = 75


@dataclass(frozen=True, slots=True)
class GoldPage:
    """One page of a file, with what is printed on it in reading order."""

    path: str
    page: int
    """From 1."""
    kind: str
    lines: tuple[GoldLine, ...]

    @property
    def text(self) -> str:
        return "\n".join(line.text for line in self.lines)


def make(folder: str, kinds: Sequence[str], seed: int, pages: int | None = None) -> list[GoldPage]:
    """Write `pages` pages (None: each kind's own number) of the kinds into a folder, with their gold."""
    found = []
    for name in kinds:
        for number in range(pages or KINDS[name].pages):
            image, lines = draw(name, seed, number)
            worn = KINDS[name].wear is not None
            path = os.path.join(folder, f"{name}-{number + 1:02}.{'jpg' if worn else 'png'}")
            if worn:
                image.save(path, quality=JPEG_QUALITY)
            else:
                image.save(path, compress_level=1)
            page = GoldPage(path, 1, name, tuple(lines))
            _write(page)
            found.append(page)
    return found


def draw(kind: str, seed: int, number: int) -> tuple[Image.Image, list[GoldLine]]:
    """One page and its lines; the same for the same kind, seed and number."""
    sheet = sheet_of(kind, seed, number)
    wearing = KINDS[kind].wear
    if wearing is None:
        return sheet.render(), sheet.lines
    return wear(sheet.render(), sheet.lines, wearing, rng_of(f"worn {kind}", seed, number))


def sheet_of(kind: str, seed: int, number: int) -> Sheet:
    """A page before wear."""
    return KINDS[kind].make(rng_of(kind, seed, number), number)


def rng_of(kind: str, seed: int, number: int) -> random.Random:
    """A generator of its own for every page, so that one page does not depend on those before it."""
    return random.Random(f"{kind} {seed} {number}")


def wear(
    image: Image.Image, lines: Sequence[GoldLine], how: tuple[float, float, float], rng: random.Random
) -> tuple[Image.Image, list[GoldLine]]:
    """Turn, blur and add noise, as scanners do; boxes turn along. `how` is explained at `Kind`."""
    degrees, blur, sigma = rng.uniform(-how[0], how[0]), how[1], how[2]
    paper = image.getpixel((0, 0))
    turned = image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=paper)
    turned = turned.filter(ImageFilter.GaussianBlur(blur))
    noise = np.random.default_rng(rng.randrange(2**32)).normal(0, sigma, (image.height, image.width, 1))
    pixels = np.asarray(turned, np.float32) + noise
    worn = Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))
    centre = (image.width / 2, image.height / 2)
    return worn, [replace(line, box=_turned(line.box, degrees, centre)) for line in lines]


def _turned(box: Box | None, degrees: float, centre: tuple[float, float]) -> Box | None:
    """The upright box around a box that was turned counterclockwise, as Pillow turns."""
    if box is None:
        return None
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    corners = [
        (
            centre[0] + (x - centre[0]) * cos + (y - centre[1]) * sin,
            centre[1] - (x - centre[0]) * sin + (y - centre[1]) * cos,
        )
        for x in (box.x0, box.x1)
        for y in (box.y0, box.y1)
    ]
    xs, ys = [x for x, _ in corners], [y for _, y in corners]
    return Box(min(xs) - 1, min(ys) - 1, max(xs) + 1, max(ys) + 1)


def _write(page: GoldPage) -> None:
    with open(page.path + TEXT_SUFFIX, "w", encoding="utf-8", newline="\n") as file:
        file.write(page.text + "\n")
    with open(page.path + JSON_SUFFIX, "w", encoding="utf-8", newline="\n") as file:
        json.dump(
            {"kind": page.kind, "lines": [asdict(line) for line in page.lines]}, file, ensure_ascii=False
        )


def load(path: str) -> list[GoldPage]:
    """Pages of a document from the gold beside it; none where there is none.

    Of a text file alone, pages are parted by form feeds, and lines have no boxes.
    """
    if os.path.isfile(path + JSON_SUFFIX):
        with open(path + JSON_SUFFIX, encoding="utf-8") as file:
            data = json.load(file)
        return [GoldPage(path, 1, data["kind"], tuple(_line(line) for line in data["lines"]))]
    if not os.path.isfile(path + TEXT_SUFFIX):
        return []
    with open(path + TEXT_SUFFIX, encoding="utf-8") as file:
        pages = file.read().split("\f")
    return [
        GoldPage(
            path,
            number,
            "files",
            tuple(
                GoldLine(line, None, language(line), (line,)) for line in text.splitlines() if line.strip()
            ),
        )
        for number, text in enumerate(pages, 1)
    ]


def _line(data: dict[str, object]) -> GoldLine:
    box, cells, caps = data["box"], data["cells"], data.get("caps")
    assert isinstance(box, list)
    assert isinstance(cells, list)
    assert caps is None or isinstance(caps, int | float)
    return GoldLine(str(data["text"]), Box(*box), str(data["lang"]), tuple(cells), bool(data["table"]), caps)
