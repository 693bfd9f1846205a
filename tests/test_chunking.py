"""Plans: every strategy, on every kind of page, whatever its size."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFilter

from hiresvlm.bench import gold
from hiresvlm.bench.gold import KINDS
from hiresvlm.chunking import STRATEGIES, analyse, cuts, plan
from hiresvlm.chunking.analysis import PageAnalysis
from hiresvlm.chunking.auto import CHUNK_COST
from hiresvlm.datatypes import Box, Plan, naive_tokens
from hiresvlm.settings import ChunkSettings
from tests.support import font, text_image

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
        if made.joint or settings.tile is not None:  # tiles of one size
            assert chunk.canvas == (settings.tile or 448,) * 2
            assert max(chunk.size) <= chunk.canvas[0]
        else:
            assert 0 <= chunk.canvas[0] - chunk.size[0] < settings.factor
            assert 0 <= chunk.canvas[1] - chunk.size[1] < settings.factor
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
    + [("noise", (1, 20000)), ("noise", (600, 900)), ("text", (1080, 9000))],
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
        # Lines that are 200 page pixels high have large overlaps.
        assert sum(c.size[0] * c.size[1] for c in made.chunks) <= 3 * settings.max_page_pixels


@pytest.mark.parametrize(
    ("width", "height", "size", "tokens"), [(1080, 3840, (448, 448), 256), (448, 448, (448, 448), 256)]
)
def test_fixed_is_the_published_baseline(width: int, height: int, size: tuple[int, int], tokens: int) -> None:
    made = plan(analysis_of(screenshot(width, height)), ChunkSettings(strategy="fixed"))
    assert [chunk.size for chunk in made.chunks] == [size]
    assert made.tokens(28) == tokens
    assert made.joint


@pytest.mark.parametrize(("factor", "tokens"), [(28, 4352), (32, 3332)])
@pytest.mark.parametrize("size", [(1080, 3840), (4200, 900)])
def test_naive_is_the_published_cost(size: tuple[int, int], factor: int, tokens: int) -> None:
    made = plan(analysis_of(screenshot(*size)), ChunkSettings(strategy="naive", factor=factor))
    assert made.tokens(factor) == naive_tokens(factor) == tokens
    assert [chunk.role for chunk in made.chunks] == ["global"] + ["tile"] * 16
    assert {chunk.size for chunk in made.chunks} == {(448, 448)}
    assert made.joint


@pytest.mark.parametrize(
    ("size", "grid", "tokens"),
    [
        ((1080, 3840), (1, 4), 1280),
        ((4200, 900), (4, 1), 1280),
        ((1240, 1754), (2, 3), 1792),
        ((2000, 2000), (2, 2), 1280),
        ((440, 440), (1, 1), 256),
    ],
)
def test_anyres_takes_the_published_grid(size: tuple[int, int], grid: tuple[int, int], tokens: int) -> None:
    made = plan(analysis_of(screenshot(*size)), ChunkSettings(strategy="anyres"))
    tiles = [chunk for chunk in made.chunks if chunk.role == "tile"]
    starts = [(chunk.box.y0, chunk.box.x0) for chunk in tiles]
    assert (len({x for _, x in starts}), len({y for y, _ in starts})) == grid
    assert starts == sorted(starts)
    assert made.tokens(28) == tokens
    assert made.chunks[0].role == ("global" if len(tiles) > 1 else "tile")
    assert all(chunk.scale == pytest.approx(made.chunks[-1].scale, rel=0.01) for chunk in tiles)
    assert made.joint


def test_anyres_never_makes_many_tiles_of_a_small_crop() -> None:
    made = plan(analysis_of(screenshot(400, 150)), ChunkSettings(strategy="anyres"))
    assert len(made.chunks) == 1
    small = plan(analysis_of(screenshot(60, 150)), ChunkSettings(strategy="anyres"))
    assert max(small.chunks[0].scale) <= 2.05


def test_one_tile_methods_say_that_they_miss_a_budget() -> None:
    analysis = analysis_of(screenshot())
    settings = ChunkSettings(max_tokens_per_page=1000)
    assert [c.kind for c in plan(analysis, replace(settings, strategy="naive")).cautions] == ["budget"]
    assert plan(analysis, replace(settings, strategy="anyres")).tokens(28) <= 1000


def sparse_page() -> Image.Image:
    """A4 with a block of text in each of two corners and a line between them."""
    page = Image.new("RGB", (1240, 1754), "white")
    block = text_image([WORDS[:30]] * 14, size=24, width=560, margin=4)
    page.paste(block, (40, 40))
    page.paste(block, (640, 1100))
    page.paste(text_image([WORDS], size=24, width=900, margin=4), (100, 850))
    return page


def test_adaptive_leaves_out_what_is_empty() -> None:
    """At the scale of `overlap`, at least 35 % fewer tokens."""
    analysis = analysis_of(sparse_page())
    tiles = plan(analysis, ChunkSettings(strategy="overlap"))
    made = plan(analysis, ChunkSettings(strategy="adaptive"))
    assert all(c.scale == pytest.approx((1, 1), rel=0.01) for c in (*tiles.chunks, *made.chunks))
    assert made.tokens(28) <= 0.65 * tiles.tokens(28)


def test_adaptive_cuts_dense_text_into_smaller_tiles() -> None:
    def chunks(lines: int, step: int) -> int:
        page = Image.new("RGB", (1600, 1600), "white")
        line = text_image([WORDS * 2], size=20, width=1560, margin=0)
        for number in range(lines):
            page.paste(line, (20, 20 + number * step))
        settings = ChunkSettings(strategy="adaptive", max_tokens=10**6)
        return len(plan(analysis_of(page), settings).chunks)

    assert chunks(40, 38) > chunks(4, 500) == 1


def mixed_page() -> Image.Image:
    """A large heading, small print below it, a photo-like patch without text beside nothing."""
    page = Image.new("RGB", (1240, 1754), "white")
    page.paste(text_image(["ANNUAL REPORT", "of the company"], size=110, width=1160, margin=4), (40, 40))
    page.paste(text_image([WORDS * 2] * 20, size=13, width=800, margin=4), (200, 900))
    return page


def test_auto_gives_each_chunk_the_scale_of_its_own_text() -> None:
    analysis = analysis_of(mixed_page())
    made = plan(analysis, ChunkSettings())
    heading = [chunk for chunk in made.chunks if chunk.box.y1 < 600]
    small = [chunk for chunk in made.chunks if chunk.box.y0 > 600]
    assert heading
    assert small
    # Capitals are 0.7 of the type size; the engine needs 12 px.
    assert all(0.6 <= 0.7 * 110 * chunk.scale[1] / 12 <= 1.6 for chunk in heading)
    assert all(0.8 <= 0.7 * 13 * chunk.scale[1] / 12 <= 1.6 for chunk in small)
    assert made.tokens(28) < 0.75 * plan(analysis, ChunkSettings(strategy="seam")).tokens(28)


def test_auto_drops_margins_and_blank_areas() -> None:
    analysis = analysis_of(sparse_page())
    made = plan(analysis, ChunkSettings())
    covered = sum(chunk.box.area for chunk in made.chunks)
    assert covered < 0.5 * 1240 * 1754


def test_auto_shows_a_photo_beside_text_small() -> None:
    """A patch of smooth noise has no line of text: it gets few tokens, the text all it needs."""
    page = mixed_page()
    rough = np.random.default_rng(5).integers(0, 256, (40, 60), dtype=np.uint8)
    page.paste(Image.fromarray(rough).resize((1100, 500), Image.Resampling.NEAREST), (70, 380))
    made = plan(analysis_of(page), ChunkSettings())
    photo = [c for c in made.chunks if c.box.y0 < 600 < c.box.y1]
    assert photo
    assert sum(c.tokens(28) for c in photo) <= 320
    small = [c for c in made.chunks if c.box.y0 > 880]
    assert all(0.7 * 13 * chunk.scale[1] >= 9.5 for chunk in small)


def test_auto_keeps_the_rows_of_a_table_whole() -> None:
    """Names left, prices far right: a cut down the gutter would save tokens and part the rows."""
    page = Image.new("RGB", (1400, 1200), "white")
    for row in range(24):
        page.paste(text_image([f"Article {row}"], size=26, width=300, margin=4), (40, 40 + 46 * row))
        page.paste(text_image([f"{row * 17}.00"], size=26, width=140, margin=4), (1220, 40 + 46 * row))
    made = plan(analysis_of(page), ChunkSettings())
    assert all(chunk.box.x0 < 200 and chunk.box.x1 > 1250 for chunk in made.chunks)


@pytest.mark.parametrize("angle", [90, 270])
def test_sideways_text_costs_what_upright_text_costs(angle: int) -> None:
    page = Image.new("RGB", (1240, 1600), "white")
    page.paste(text_image([WORDS] * 30, size=24, width=1100, margin=4), (60, 60))
    upright = analysis_of(page)
    turned = analysis_of(page.rotate(angle, expand=True))
    assert turned.sideways
    assert not upright.sideways
    assert turned.cap_height == pytest.approx(upright.cap_height or 0, rel=0.1)
    cost = plan(upright, ChunkSettings()).tokens(28)
    assert plan(turned, ChunkSettings()).tokens(28) <= 1.5 * cost


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


@pytest.mark.parametrize("step", [31, 34, 46])
def test_lines_set_close_are_cut_without_overlap(step: int) -> None:
    """Between lines of 26 px that are 31 px apart some five rows are blank."""
    page = Image.new("RGB", (900, 60 + 90 * step), "white")
    draw = ImageDraw.Draw(page)
    for row in range(90):
        draw.text((20, 20 + step * row), "Quarterly revenue by region", fill="black", font=font(26, "helv"))
    found = cuts.cut(analysis_of(page), Box(0, 0, *page.size), 8, "y")
    assert len(found) == 7
    assert all(cut.clean for cut in found)


@pytest.mark.parametrize("kind", KINDS)
def test_auto_costs_no_more_than_one_scale_for_the_page(kind: str) -> None:
    """Of the same heights, and with the cost of a request."""
    for number in range(2):
        image = gold.draw(kind, 11, number)[0]
        analysis = analysis_of(image)
        costs = {}
        for name in ("auto", "seam"):
            made = plan(analysis, ChunkSettings(strategy=name, legible=11.0))
            costs[name] = made.tokens(28) + CHUNK_COST * len(made.chunks)
        assert costs["auto"] <= costs["seam"]


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


def test_pieces_of_one_type_have_one_height() -> None:
    """Cells with and without descenders, of figures, of small letters, of CJK: all are set in 24 px."""
    cells = ["MB-93100", "A. Carter", "95868.84", "Spring tariff", "2024-05-06", "gypsy paper"]
    page = Image.new("RGB", (1500, 1300), "white")
    draw = ImageDraw.Draw(page)
    for row in range(28):
        for column, text in enumerate(cells):
            draw.text((30 + 210 * column, 20 + 44 * row), text, fill="black", font=font(24, "helv"))
    found = analyse(gray(page), page.size).lines
    low, high = np.quantile(found.caps, [0.1, 0.9])
    assert 0.9 * 0.72 * 24 < low <= high < 1.15 * 0.72 * 24


def test_sizes_of_type_stay_apart() -> None:
    page = Image.new("RGB", (1000, 1200), "white")
    page.paste(text_image([WORDS] * 20, size=30, width=960, margin=4), (20, 20))
    page.paste(text_image([WORDS] * 8, size=21, width=960, margin=4), (20, 900))
    found = analysis_of(page).lines
    small = found.caps[found.boxes[:, 1] > 890]
    assert np.median(small) == pytest.approx(0.7 * np.median(found.caps[found.boxes[:, 1] < 890]), rel=0.1)


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


@pytest.mark.parametrize("name", ["auto", "seam", "adaptive", "overlap", "whole", "anyres"])
def test_cost_is_monotone_in_the_budget(name: str) -> None:
    analysis = analysis_of(screenshot())
    budgets = (4000, 2000, 1400, 1000, 900, 700, 500, 250)
    costs = [
        plan(analysis, ChunkSettings(strategy=name, max_tokens_per_page=budget)).tokens(28)
        for budget in budgets
    ]
    # One tile is the least that AnyRes can give.
    assert all(cost <= max(budget, 256) for cost, budget in zip(costs, budgets, strict=True))
    assert costs == sorted(costs, reverse=True)


def test_budget_lowers_scale_and_says_when_text_gets_too_small() -> None:
    analysis = analysis_of(screenshot())
    assert not plan(analysis, ChunkSettings()).cautions
    tight = plan(analysis, ChunkSettings(max_tokens_per_page=200))
    assert [caution.kind for caution in tight.cautions] == ["budget"]
    tiny = plan(analysis, ChunkSettings(max_tokens_per_page=16))
    assert tiny.tokens(28) <= 16
    assert [caution.kind for caution in tiny.cautions] == ["budget"]


def test_quality_tells_soft_noisy_and_bilevel_pages_from_clean_ones() -> None:
    page = screenshot(1080, 1600)
    clean = analysis_of(page)
    assert clean.clean
    blurred = analysis_of(page.filter(ImageFilter.GaussianBlur(2)))
    assert not blurred.clean
    assert blurred.sharpness < 0.3 * clean.sharpness
    assert blurred.quality.detail < 0.1 * clean.quality.detail
    values = gray(page) * 0.8 + 30 + np.random.default_rng(4).normal(0, 6, (1600, 1080))
    noisy = analyse(values.clip(0, 255).astype(np.uint8), page.size)
    assert noisy.quality.noise == pytest.approx(6, rel=0.25)
    assert not noisy.clean
    assert not analysis_of(page.convert("1").convert("L")).clean


def test_sharpness_does_not_depend_on_contrast() -> None:
    page = screenshot(1080, 1600)
    faint = page.point(lambda level: 150 + level * 0.4)
    assert analysis_of(faint).sharpness == pytest.approx(analysis_of(page).sharpness, rel=0.15)


@pytest.mark.parametrize("angle", [-2.0, 1.5])
def test_skew(angle: float) -> None:
    page = text_image(["The quick brown fox jumps over the lazy dog again and again"] * 20, width=900)
    turned = page.rotate(angle, expand=True, fillcolor="white", resample=Image.Resampling.BICUBIC)
    # Counterclockwise is up to the right, which is negative on a page.
    assert analysis_of(turned).skew == pytest.approx(-math.radians(angle), abs=0.005)


def test_the_ink_map_shows_where_ink_is() -> None:
    page = Image.new("RGB", (560, 281), "white")
    page.paste(text_image(["ink"], size=24, width=60, margin=2), (300, 150))
    ink = analysis_of(page).ink
    assert ink.shape == (11, 20)
    rows, columns = np.nonzero(ink)
    assert rows.min() >= 5
    assert rows.max() <= 6
    assert columns.min() >= 10
    assert columns.max() <= 12


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


@pytest.mark.parametrize(("tile", "factor"), [(448, 28), (378, 14), (512, 64)])
@pytest.mark.parametrize("kind", ["tall", "ledger", "receipt"])
def test_for_models_that_take_squares_every_chunk_fits_one_and_costs_a_whole_one(
    kind: str, tile: int, factor: int
) -> None:
    image, _ = gold.draw(kind, 1, 0)
    analysis = analysis_of(image)
    one = (tile // factor) ** 2
    for name in STRATEGIES:
        settings = ChunkSettings(strategy=name, tile=tile, factor=factor, max_tokens=one)
        made = plan(analysis, settings)
        assert {chunk.canvas for chunk in made.chunks} == {(tile, tile)}, name
        assert all(max(chunk.size) <= tile for chunk in made.chunks), name
        assert made.tokens(factor) == one * len(made.chunks)
        if name in ("auto", "seam", "adaptive", "overlap"):
            assert_sound(made, analysis, settings)


def test_squares_keep_the_text_as_high_as_the_engine_needs() -> None:
    """A page larger than a square is cut, not shrunk into one."""
    image, _ = gold.draw("tall", 1, 0)
    analysis = analysis_of(image)
    small = analysis.small_cap_height
    assert small is not None
    free = plan(analysis, ChunkSettings(strategy="seam"))
    tiled = plan(analysis, ChunkSettings(strategy="seam", tile=448, max_tokens=256))
    scales = [chunk.scale[0] for chunk in tiled.chunks]
    assert min(scales) >= 0.9 * min(chunk.scale[0] for chunk in free.chunks)
    assert len(tiled.chunks) <= 3 * math.ceil(free.tokens(28) / 256)
