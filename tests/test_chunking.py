"""Plans: every strategy, on every kind of page, whatever its size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from PIL import Image

from hiresvlm.chunking import STRATEGIES, analyse, plan
from hiresvlm.chunking.analysis import PageAnalysis
from hiresvlm.datatypes import Box, Plan, naive_tokens
from hiresvlm.settings import ChunkSettings
from tests.support import text_image

WORDS = "Quarterly revenue 合计金额 rose by 4.2 % to 18,450.00"


def gray(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("L"))


def analysis_of(image: Image.Image) -> PageAnalysis:
    return analyse(gray(image), image.size)


def screenshot(width: int = 1080, height: int = 3840, size: int = 30, step: int = 60) -> Image.Image:
    lines = [f"{number} {WORDS}" for number in range((height - 40) // step)]
    image = Image.new("RGB", (width, height), "white")
    for number, line in enumerate(lines):
        image.paste(text_image([line], size=size, width=width - 40, margin=4), (20, 20 + number * step))
    return image


def assert_sound(made: Plan, analysis: PageAnalysis, settings: ChunkSettings) -> None:
    """Inside the page, none empty, sizes and canvas fit, all ink covered."""
    width, height = analysis.size
    covered = np.zeros(analysis.edges.shape, bool)
    for chunk in made.chunks:
        assert 0 <= chunk.box.x0 < chunk.box.x1 <= width
        assert 0 <= chunk.box.y0 < chunk.box.y1 <= height
        assert min(chunk.size) >= 1
        assert chunk.canvas[0] % settings.factor == chunk.canvas[1] % settings.factor == 0
        assert 0 <= chunk.canvas[0] - chunk.size[0] < settings.factor
        assert chunk.tokens(settings.factor) <= settings.max_tokens
        x0, y0, x1, y1 = (side * analysis.scale for side in chunk.box)
        covered[int(y0) : int(np.ceil(y1)), int(x0) : int(np.ceil(x1))] = True
    assert not (analysis.edges.astype(bool) & ~covered).any()


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        (kind, size)
        for kind in ("white", "black", "noise", "text", "dark")
        for size in ((1, 1), (3, 400), (700, 1000), (2400, 500))
    ]
    + [("noise", (1, 20000)), ("text", (1080, 9000))],
)
def test_contract(name: str, kind: str, size: tuple[int, int]) -> None:
    if kind == "noise":
        values = np.random.default_rng(1).integers(0, 256, (size[1], size[0]), dtype=np.uint8)
        image = Image.fromarray(values)
    elif kind in ("white", "black"):
        image = Image.new("L", size, kind)
    else:
        text = text_image([WORDS] * (size[1] // 40), width=max(200, size[0]), dark=kind == "dark")
        image = Image.new("RGB", size, "black" if kind == "dark" else "white")
        image.paste(text.crop((0, 0, *size)))
    analysis = analysis_of(image)
    settings = ChunkSettings(strategy=name)
    made = plan(analysis, settings)
    assert_sound(made, analysis, settings)
    assert made == plan(analysis_of(image), settings)
    if kind in ("white", "black"):
        assert analysis.blank
        assert made.chunks == ()


def test_a_huge_page_of_noise_stays_within_the_pixel_limit() -> None:
    """20,000 x 20,000 page pixels, of which the analysis sees a small raster."""
    values = np.random.default_rng(2).integers(0, 256, (1000, 1000), dtype=np.uint8)
    analysis = analyse(values, (20000, 20000))
    for name in STRATEGIES:
        settings = ChunkSettings(strategy=name)
        made = plan(analysis, settings)
        assert_sound(made, analysis, settings)
        assert sum(c.size[0] * c.size[1] for c in made.chunks) <= 1.3 * settings.max_page_pixels


@pytest.mark.parametrize(
    ("width", "height", "size", "tokens"), [(1080, 3840, (448, 448), 256), (448, 448, (448, 448), 256)]
)
def test_fixed_is_the_published_baseline(width: int, height: int, size: tuple[int, int], tokens: int) -> None:
    made = plan(analysis_of(screenshot(width, height)), ChunkSettings(strategy="fixed"))
    assert [chunk.size for chunk in made.chunks] == [size]
    assert made.tokens(28) == tokens
    assert made.joint


def test_naive_is_the_published_cost() -> None:
    assert naive_tokens(28) == 4352
    assert naive_tokens(32) == 3332


def test_overlap_tiles_overlap_by_a_third_and_grow_at_the_cap() -> None:
    small = plan(analysis_of(screenshot(1000, 800, step=45)), ChunkSettings(strategy="overlap"))
    assert {(round(c.box.width), round(c.box.height)) for c in small.chunks} == {(512, 512)}
    first, second = small.chunks[0].box, small.chunks[1].box
    assert first.intersection(second).width >= 512 / 3 - 1
    tall = plan(analysis_of(screenshot(1080, 9000)), ChunkSettings(strategy="overlap"))
    assert len(tall.chunks) <= 24
    assert min(c.box.width for c in tall.chunks) > 512


def test_a_tall_screenshot_is_cut_between_lines_without_overlap() -> None:
    analysis = analysis_of(screenshot(1080, 9000))
    made = plan(analysis, ChunkSettings())
    assert len(made.chunks) > 1
    for above, below in zip(made.chunks, made.chunks[1:], strict=False):
        assert above.box.y1 <= below.box.y0
    assert made.tokens(28) < naive_tokens(28) * 2.5


def test_a_page_without_gaps_is_cut_with_overlap_of_lines() -> None:
    """Text lines so shifted between columns that no row of the page is blank."""
    image = Image.new("RGB", (1600, 3000), "white")
    for column in range(4):
        text = text_image([WORDS[:24]] * 70, size=26, width=390, margin=2)
        image.paste(text, (10 + column * 398, 10 + 11 * column))
    analysis = analysis_of(image)
    made = plan(analysis, ChunkSettings(legible=20))
    ys = sorted({(c.box.y0, c.box.y1) for c in made.chunks})
    assert len(made.chunks) > 1
    overlaps = [a[1] - b[0] for a, b in zip(ys, ys[1:], strict=False)]
    xs = sorted({(c.box.x0, c.box.x1) for c in made.chunks})
    assert all(o >= 1.5 * analysis.line_height for o in overlaps) or len(xs) > 1


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [16, 24, 40])
@pytest.mark.parametrize(
    ("text", "slack"),
    [
        ("The quick brown fox jumps over lazy dogs", 0.2),
        ("合计金额人民币壹仟贰佰元整", 0.25),
        ("TOTAL 1,284.00", 0.3),
    ],
)
def test_cap_height(dark: bool, size: int, text: str, slack: float) -> None:
    """Capitals are 0.7 of the type size, in Latin and CJK alike, whatever the theme."""
    image = text_image([text] * 12, size=size, width=size * 26, dark=dark)
    height = analysis_of(image).cap_height
    assert height == pytest.approx(0.71 * size, rel=slack)


def test_cap_height_of_a_skewed_scan() -> None:
    image = text_image(["The quick brown fox jumps over the lazy dog again and again"] * 20, width=900)
    skewed = image.rotate(1.5, expand=True, fillcolor="white", resample=Image.Resampling.BICUBIC)
    assert analysis_of(skewed).cap_height == pytest.approx(analysis_of(image).cap_height or 0, rel=0.2)


def test_blank_is_judged_with_care() -> None:
    paper = Image.new("L", (1240, 1754), 250)
    noise = np.random.default_rng(3).normal(0, 4, (1754, 1240))
    noisy = np.clip(np.asarray(paper) + noise, 0, 255).astype(np.uint8)
    assert analyse(noisy, paper.size).blank
    # A faint mirror image of the other side of the paper is no ink...
    back = np.asarray(text_image([WORDS] * 30, width=1240).convert("L").resize((1240, 1754)))[:, ::-1]
    bleed = (250 - (255 - back.astype(float)) * 0.06 + noise).clip(0, 255).astype(np.uint8)
    assert analyse(bleed, paper.size).blank
    # ... but a single small page number is.
    page = paper.convert("RGB")
    page.paste(text_image(["7"], size=18, width=30, margin=4), (600, 1700))
    assert not analysis_of(page).blank


def test_a_long_rule_does_not_hide_the_gaps_of_a_table() -> None:
    image = screenshot(1080, 6000)
    ruled = image.copy()
    for x in (6, *range(900, 1080, 20)):
        ruled.paste("black", (x, 0, x + 2, 6000))
    made = plan(analysis_of(ruled), ChunkSettings())
    assert all(a.box.y1 <= b.box.y0 for a, b in zip(made.chunks, made.chunks[1:], strict=False))


def test_budget_lowers_scale_and_says_when_text_gets_too_small() -> None:
    analysis = analysis_of(screenshot())
    free = plan(analysis, ChunkSettings())
    costs = []
    for budget in (2000, 1000, 500, 250):
        made = plan(analysis, ChunkSettings(max_tokens_per_page=budget))
        assert made.tokens(28) <= budget
        costs.append(made.tokens(28))
    assert costs == sorted(costs, reverse=True)
    assert not free.cautions
    tight = plan(analysis, ChunkSettings(max_tokens_per_page=200))
    assert [caution.kind for caution in tight.cautions] == ["budget"]


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    width=st.integers(1, 3000),
    height=st.integers(1, 6000),
    seed=st.integers(0, 2**31),
    blocks=st.integers(0, 12),
    legible=st.floats(6, 40),
    budget=st.one_of(st.none(), st.integers(16, 6000)),
    name=st.sampled_from(sorted(STRATEGIES)),
)
def test_any_page(
    width: int, height: int, seed: int, blocks: int, legible: float, budget: int | None, name: str
) -> None:
    random = np.random.default_rng(seed)
    page = np.full((height, width), random.integers(0, 256), np.uint8)
    for _ in range(blocks):
        w, h = random.integers(1, width + 1), random.integers(1, height + 1)
        x, y = random.integers(0, width - w + 1), random.integers(0, height - h + 1)
        page[y : y + h : random.integers(1, 9), x : x + w : random.integers(1, 9)] = random.integers(0, 256)
    analysis = analyse(page, (width, height))
    settings = ChunkSettings(strategy=name, legible=legible, max_tokens_per_page=budget)
    made = plan(analysis, settings)
    assert_sound(made, analysis, settings)
    if analysis.blank:
        assert not made.chunks


def test_to_page_is_the_inverse_of_cutting() -> None:
    chunk = plan(analysis_of(screenshot(1080, 9000)), ChunkSettings()).chunks[1]
    sx, sy = chunk.scale
    box = Box(chunk.box.x0 + 10, chunk.box.y0 + 20, chunk.box.x0 + 110, chunk.box.y0 + 50)
    inside = Box(10 * sx, 20 * sy, 110 * sx, 50 * sy)
    assert chunk.to_page(inside) == pytest.approx(box)
