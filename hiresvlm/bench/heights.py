"""Accuracy of an engine against the height of capitals: where the `legible` number comes from."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import typer
from PIL import Image, ImageFilter

from hiresvlm.bench.gold.sheet import Sheet
from hiresvlm.bench.gold.words import Words
from hiresvlm.bench.harness import Bench, json_line, table
from hiresvlm.metrics import score
from hiresvlm.settings import EngineSettings, Settings

HEIGHTS: Final = (5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20)
"""Heights of capitals in pixels."""

NEAR_BEST: Final = 0.001
"""A height is good enough when its CER is at most this much (0.1 points) above the best one's."""

CAP: Final = {"en": 0.72, "zh": 0.7, "mixed": 0.7}
"""Height of capitals per em; of Chinese by the convention 0.7 of the glyph's box. `mixed`: Chinese and Latin
fields with spaces between, which are lost before any glyph is."""

CHARACTERS: Final = {"en": 44, "zh": 26, "mixed": 36}
LINES: Final = 24


@dataclass(frozen=True, slots=True)
class Source:
    """How lines look before they are shrunk: capitals in pixels, blur radius, noise sigma."""

    caps: int
    blur: float
    noise: float


SOURCES: Final = {"clean": Source(40, 0.0, 0.0), "noisy": Source(20, 0.7, 12.0)}
"""A sharp picture with room to spare, and 10-pt print scanned at 200 dpi."""


def heights(
    seed: int, values: Sequence[int] = HEIGHTS, pages: int = 2, engine: str = "light"
) -> dict[str, int]:
    """Print CER by height, language and source, and the knees; return the knees.

    A height of the noisy source is reached by averaging, of the clean one by an anti-aliased filter.
    """
    cer: dict[tuple[str, str, int], float] = {}
    bench = Bench(Settings(engine=EngineSettings(name=engine)))
    with tempfile.TemporaryDirectory() as folder:
        texts = {}
        for look in SOURCES:
            for lang in CAP:
                for height in values:
                    for number in range(pages):
                        path = os.path.join(folder, f"{look}-{lang}-{height}-{number}.png")
                        texts[path] = _page(
                            path, look, lang, height, random.Random(f"{seed} {lang} {number}")
                        )
        # One chunk at scale 1, whatever the planner would do.
        read = bench.read(list(texts), "whole")
    bench.close()
    for look in SOURCES:
        for lang in CAP:
            for height in values:
                start = os.path.join(folder, f"{look}-{lang}-{height}-")
                pairs = [(text, read.text(path)) for path, text in texts.items() if path.startswith(start)]
                cer[look, lang, height] = score(pairs).cer
    groups = [(look, lang) for look in SOURCES for lang in CAP]
    rows = [(height, *(cer[look, lang, height] for look, lang in groups)) for height in values]
    table(("caps px", *(f"{look} {lang}" for look, lang in groups)), rows)
    knees = {f"{look} {lang}": _knee({h: cer[look, lang, h] for h in values}) for look, lang in groups}
    legible = {look: max(knees[f"{look} {lang}"] for lang in CAP) for look in SOURCES}
    typer.echo("knee (least height within 0.1 points of the best CER): " + _listed(knees))
    typer.echo("legible: " + _listed(legible))
    by_height = {f"{look} {lang}": [cer[look, lang, h] for h in values] for look, lang in groups}
    json_line("heights", {"heights": list(values), "cer": by_height, "knees": knees, "legible": legible})
    return knees


def _listed(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {height} px" for name, height in numbers.items())


def _knee(cer: dict[int, float]) -> int:
    best = min(cer.values())
    return min(height for height, value in cer.items() if value <= best + NEAR_BEST)


def _page(path: str, look: str, lang: str, height: int, rng: random.Random) -> str:
    """Write a page of lines with capitals of `height` pixels; return its text."""
    source = SOURCES[look]
    words, size = Words(rng), round(source.caps / CAP[lang])
    prose = {"en": words.en_prose, "zh": words.zh_prose, "mixed": words.spaced_prose}[lang]
    text = prose(CHARACTERS[lang] * (LINES + 6))
    sheet = Sheet.new((28 * size, round((LINES + 2) * 1.7 * size)))
    lines = sheet.wrap(text, 26 * size, size)[:LINES]
    for number, line in enumerate(lines):
        sheet.line(size, round((number + 1.8) * 1.7 * size), line, size)
    image = sheet.render()
    if source.blur:
        image = image.filter(ImageFilter.GaussianBlur(source.blur))
    if source.noise:
        noise = np.random.default_rng(rng.randrange(2**32)).normal(0, source.noise, (*image.size[::-1], 1))
        image = Image.fromarray(np.clip(np.rint(np.asarray(image) + noise), 0, 255).astype(np.uint8))
    shrink = height / source.caps
    small = (round(image.width * shrink), round(image.height * shrink))
    image.resize(small, Image.Resampling.BOX if source.noise else Image.Resampling.LANCZOS).save(path)
    return "\n".join(lines)
