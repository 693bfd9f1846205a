"""Plans of tall pages, read by an oracle that garbles what a chunk cuts: no line is lost or doubled.

Pages are geometry: strokes that look like text to the analysis, drawn at half size, and the lines they
stand for. So hundreds of pages pass in seconds and every loss is one of planning or merging.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from hiresvlm import answers, chunking
from hiresvlm.batching import RequestFeed, generate
from hiresvlm.chunking import STRATEGIES, PageAnalysis
from hiresvlm.datatypes import Box, Line, Place, Plan, PreparedPage, View
from hiresvlm.settings import ChunkSettings, TaskSettings
from hiresvlm.tasks import requests
from tests.support import OracleEngine

WIDTH = 1080
PAGES = 200
SCALE = 0.5
"""Raster pixels per page pixel."""

WORDS = (
    "amount",
    "archive",
    "balance",
    "bridge",
    "carrier",
    "copper",
    "delivery",
    "engine",
    "figure",
    "garden",
    "harbour",
    "index",
    "journal",
    "kitchen",
    "ledger",
    "market",
    "number",
    "office",
    "parcel",
    "quarter",
    "receipt",
    "signal",
    "ticket",
    "village",
    "window",
    "09:41",
    "120.00",
    "7.50",
)


@dataclass(frozen=True)
class TallPage:
    """A page 1080 pixels wide; its raster shows it at `SCALE`."""

    height: int
    raster: np.ndarray
    lines: list[Line]


def tall_page(seed: int) -> TallPage:
    """Blocks of lines with gaps, indents and pairs of fields; every fourth page has no blank row at all."""
    draw = random.Random(seed)
    height = draw.randrange(3840, 6000, 2)
    dark = draw.random() < 0.3
    paper, ink = (24, 230) if dark else (245, 30)
    raster = np.full((height // 2, WIDTH // 2), paper, np.uint8)
    glyphs = np.random.default_rng(seed)
    lines: list[Line] = []
    y = 60
    while True:
        size = draw.choice((28, 30, 34, 40))
        pitch = round(size * draw.uniform(1.35, 1.8) / 2) * 2
        count, left = draw.randint(1, 12), draw.choice((48, 48, 96, 200))
        if y + count * pitch + 80 > height:
            break
        for _ in range(count):
            room = (WIDTH - 60 - left) // (2 * _advance(size))
            text = " ".join(draw.choices(WORDS, k=draw.randint(2, 9)))[:room].strip()
            if draw.random() < 0.15:
                text = draw.choice(("1.00", "09:41", "total 0.00"))
            lines.append(_stroke(raster, glyphs, text, left, y, size, ink))
            if len(text) < 12 and draw.random() < 0.5:
                lines.append(_stroke(raster, glyphs, f"{draw.randint(10, 99999)}.00", 760, y, size, ink))
            y += pitch
        y += draw.choice((20, 30, 60, 60, 400)) // 2 * 2
    if seed % 4 == 0:  # a staggered strip: no row of the page is blank, so all seams are dirty
        for top in range(0, height // 2 - 12, 12):
            x = 522 + 7 * (top // 12 % 2)
            raster[top : top + 13, x : x + 3] = ink
            raster[top : top + 13, x + 5 : x + 6] = ink
    return TallPage(height, raster, lines)


def _advance(size: int) -> int:
    """Raster pixels from glyph to glyph."""
    return round(0.3 * size)


def _stroke(
    raster: np.ndarray, glyphs: np.random.Generator, text: str, x: int, y: int, size: int, ink: int
) -> Line:
    """Draw upright strokes with a crossbar for each character; capitals are 0.7 of the size."""
    tall, step = round(0.7 * size * SCALE), _advance(size)
    band = raster[y // 2 : y // 2 + tall, x // 2 : x // 2 + step * len(text)]
    bars = glyphs.integers(0, max(1, tall - 2), len(text))
    for number, character in enumerate(text):
        if character == " ":
            continue
        at = number * step
        band[:, at : at + 2] = ink
        band[:, at + step - 4 : at + step - 2] = ink
        band[bars[number] : bars[number] + 2, at : at + step - 2] = ink
    return Line(text, Box(x, y, x + 2 * band.shape[1] - 4, y + 2 * tall))


def read(page: TallPage, analysis: PageAnalysis, plan: Plan, *, boxes: bool) -> list[str]:
    """The text lines of the merged answer."""
    views = tuple(
        View(chunk.box, chunk.role, np.broadcast_to(np.uint8(0), (*chunk.size[::-1], 3)))
        for chunk in plan.chunks
    )
    prepared = PreparedPage(
        Place(0, 1, 1), (WIDTH, page.height), cap_height=analysis.cap_height, plan=plan, views=views
    )
    asked = [requests(prepared, TaskSettings())]
    feed = RequestFeed(lambda wait: asked.pop() if asked else None)
    replies = list(generate(OracleEngine(page.lines, boxes=boxes), feed))
    return [line.text for line in answers.merge(prepared, replies).lines]


@dataclass
class Planned:
    """A page, what was found out about it, and its plans so far."""

    page: TallPage
    analysis: PageAnalysis
    plans: dict[str, Plan]

    def plan(self, strategy: str) -> Plan:
        if strategy not in self.plans:
            self.plans[strategy] = chunking.plan(self.analysis, ChunkSettings(strategy=strategy))
        return self.plans[strategy]


@pytest.fixture(scope="module")
def pages() -> list[Planned]:
    made = [tall_page(seed) for seed in range(PAGES)]
    return [Planned(page, chunking.analyse(page.raster, (WIDTH, page.height)), {}) for page in made]


def differences(
    pages: list[Planned], strategy: str, *, boxes: bool
) -> dict[int, tuple[list[str], list[str]]]:
    """Seed -> (lines lost, lines doubled or invented)."""
    found = {}
    for seed, one in enumerate(pages):
        gold = Counter(line.text for line in one.page.lines)
        got = Counter(read(one.page, one.analysis, one.plan(strategy), boxes=boxes))
        if gold != got:
            found[seed] = (list((gold - got).elements()), list((got - gold).elements()))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [name for name in ("auto", "seam", "overlap") if name in STRATEGIES])
def test_no_line_is_lost_or_doubled(pages: list[Planned], strategy: str) -> None:
    assert differences(pages, strategy, boxes=True) == {}


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [name for name in ("auto", "seam") if name in STRATEGIES])
def test_hardly_a_line_is_lost_or_doubled_in_text_alone(pages: list[Planned], strategy: str) -> None:
    """Texts are aligned by what they share, and repeated words can mislead: 99 pages of 100 are exact."""
    assert len(differences(pages, strategy, boxes=False)) <= PAGES // 100


@pytest.mark.slow
def test_pages_have_seams_of_both_kinds(pages: list[Planned]) -> None:
    """Otherwise the tests above would show nothing."""
    cut = dirty = 0
    for one in pages:
        chunks = one.plan("auto").chunks
        cut += len(chunks) > 1
        dirty += any(
            a.box.intersection(b.box).height > 1
            for a, b in zip(chunks, chunks[1:], strict=False)
            if a.box.y0 < b.box.y0
        )
    assert cut >= 0.9 * PAGES
    assert dirty >= 0.1 * PAGES
