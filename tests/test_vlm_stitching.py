"""Tiles that are encoded apart make one page for the language model, at the positions of the whole page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from hiresvlm.bench.places import WAYS, order
from hiresvlm.cli import app
from hiresvlm.datatypes import Box
from hiresvlm.engines.vlm.inputs import ImageInput, Prompt, image_input
from hiresvlm.engines.vlm.positions import ThreeAxes
from hiresvlm.engines.vlm.slots import Row
from hiresvlm.engines.vlm.stitching import Piece, layout, page_features, page_image, pieces
from hiresvlm.errors import UsageError
from tests.tiny_families import save_square
from tests.tiny_models import FAMILIES
from tests.vlm_support import Bench, noise, open_model


@pytest.fixture(scope="module")
def benches(tiny: Callable[[str], Path]) -> dict[str, Bench]:
    return {family: open_model(tiny(family)) for family in FAMILIES}


def positions(bench: Bench, prompt: Prompt) -> tuple[torch.Tensor, int]:
    """(3, tokens) and the position of the first token of the answer."""
    ids = torch.tensor([prompt.ids])
    counted, following = ThreeAxes(bench.loaded).prompt([prompt], ids, torch.ones_like(ids))
    return counted["position_ids"][:, 0], int(following[0])


@st.composite
def grids(draw: st.DrawFn) -> tuple[list[int], list[int], list[Piece]]:
    """Heights of rows, widths of columns, and the tiles of the grid in any order."""
    sides = st.lists(st.integers(1, 4), min_size=1, max_size=3)
    heights, widths = draw(sides), draw(sides)
    tiles = [
        Piece(sum(heights[:r]), sum(widths[:c]), down, across)
        for r, down in enumerate(heights)
        for c, across in enumerate(widths)
    ]
    return heights, widths, draw(st.permutations(tiles))


def image(bench: Bench, number: int, down: int, across: int) -> ImageInput:
    return image_input(noise(number, down, across, bench.factor), bench.loaded.image)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=20, deadline=None)
@given(grid=grids())
def test_tiles_that_partition_a_page_have_the_positions_of_the_whole_page(
    family: str, benches: dict[str, Bench], grid: tuple[list[int], list[int], list[Piece]]
) -> None:
    bench, (heights, widths, places) = benches[family], grid
    tiles = [image(bench, n, place.down, place.across) for n, place in enumerate(places)]
    thumbnail, whole = image(bench, 90, 2, 3), image(bench, 91, sum(heights), sum(widths))
    stitched = page_image(tiles, layout(places), bench.loaded.image)
    assert stitched.kept is None
    assert stitched.tokens == whole.tokens == sum(tile.tokens for tile in tiles)
    found = positions(bench, bench.prompts.prompt("Read.", [thumbnail, stitched]))
    wanted = positions(bench, bench.prompts.prompt("Read.", [thumbnail, whole]))
    assert torch.equal(found[0], wanted[0])
    assert found[1] == wanted[1]


@settings(max_examples=50, deadline=None)
@given(grid=grids(), gone=st.integers(0, 8))
def test_each_cell_of_the_page_is_that_of_its_tile(
    benches: dict[str, Bench], grid: tuple[list[int], list[int], list[Piece]], gone: int
) -> None:
    """With one tile missing its cells are too, and the others keep their positions."""
    bench, places = benches["qwen2_5_vl"], grid[2]
    if len(places) > 1:
        places = [place for n, place in enumerate(places) if n != gone % len(places)]
    size = (max(p.row + p.down for p in places), max(p.column + p.across for p in places))
    page = layout(places)
    where = [
        (place.row + r, place.column + c)
        for place in places
        for r in range(place.down)
        for c in range(place.across)
    ]
    assert [where[n] for n in page.order] == sorted(where)
    assert page.covered.shape == size
    tiles = [image(bench, n, place.down, place.across) for n, place in enumerate(places)]
    prompt = bench.prompts.prompt("Read.", [page_image(tiles, page, bench.loaded.image)])
    found, following = positions(bench, prompt)
    first = prompt.ids.index(bench.loaded.image_token)
    visual = found[:, torch.tensor(prompt.ids) == bench.loaded.image_token] - first
    assert visual.T.tolist() == [[0, row, column] for row, column in sorted(where)]
    after = len(prompt) - first - len(where)
    assert following == first + max(size) + after


@pytest.mark.parametrize("family", FAMILIES)
def test_one_tile_stitched_is_read_as_the_tile(family: str, benches: dict[str, Bench]) -> None:
    bench = benches[family]
    tile = image(bench, 5, 4, 6)
    page = layout(pieces([Box(0, 0, 6, 4)], [(4, 6)]))
    stitched = page_image([tile], page, bench.loaded.image)
    features = bench.encoder.encode([tile])
    answers = []
    for one, seen in ((tile, features), (stitched, [page_features(features, page)])):
        row = Row(bench.prompts.prompt("Read.", [one]))
        slots = bench.slots()
        slots.join([row], [seen])
        for _ in range(6):
            slots.step()
        answers.append((row.ids, row.logprobs))
    assert answers[0] == answers[1]


def test_deepstack_features_are_put_in_order_too(benches: dict[str, Bench]) -> None:
    bench = benches["qwen3_vl"]
    features = bench.encoder.encode([image(bench, 1, 2, 1), image(bench, 2, 2, 2)])
    page = page_features(features, layout([Piece(0, 0, 2, 1), Piece(0, 1, 2, 2)]))
    assert page.deepstack
    layers = [page.tokens, *page.deepstack]
    for layer, (a, b) in zip(
        layers, zip(*((one.tokens, *one.deepstack) for one in features), strict=True), strict=True
    ):
        assert torch.equal(layer, torch.stack([a[0], b[0], b[1], a[1], b[2], b[3]]))


def test_neighbours_are_moved_and_of_cells_shown_twice_the_later_is_taken() -> None:
    # Sizes are rounded up: the second would begin in the last row of the first, the third in its last column.
    found = pieces([Box(0, 0, 2.2, 2.4), Box(0, 2.4, 2, 4), Box(2.2, 0, 4, 2)], [(3, 3), (2, 2), (2, 2)])
    assert found == [Piece(0, 0, 3, 3), Piece(3, 0, 2, 2), Piece(0, 3, 2, 2)]
    assert layout(found).order.size == 9 + 4 + 4
    both = layout([Piece(0, 0, 1, 3), Piece(0, 2, 1, 2)])
    assert both.order.tolist() == [0, 1, 3, 4]
    assert both.covered.all()


def test_order_counts_pairs_of_lines_that_were_both_read() -> None:
    lines = ["Coffee 2.50", "Bread 3.10", "Apples 4.00", "Total 9.60"]
    assert order(lines, lines) == (3, 3)
    assert order(lines, [lines[2], lines[3], lines[0], "Bread 3.1O"]) == (3, 2)
    assert order(lines, [lines[0], lines[3]]) == (0, 0)
    assert order([*lines, lines[0]], lines[::-1]) == (2, 0)
    assert order(lines, []) == (0, 0)


@pytest.mark.slow
def test_bench_places_shows_the_same_tiles_in_four_ways(tiny: Callable[[str], Path]) -> None:
    command = ["bench", "places", "-m", str(tiny("qwen3_vl")), "--quant", "none", "--pages", "1"]
    done = CliRunner().invoke(app, [*command, "--max-new-tokens", "3"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout.splitlines()[-1])["rows"]
    # A receipt fits into one tile of this model.
    assert [(row["kind"], row["way"]) for row in rows] == [("ledger", way) for way in WAYS]
    apart, named, joined, stitched = rows
    assert apart["tiles"] == stitched["tiles"] >= 2
    assert apart["tokens"] == named["tokens"] < joined["tokens"]
    assert stitched["tokens"] <= joined["tokens"]


def test_bench_places_needs_rows_and_columns(tmp_path: Path) -> None:
    model = save_square(tmp_path / "model", "internvl")
    done = CliRunner().invoke(app, ["bench", "places", "-m", str(model), "--quant", "none", "--pages", "1"])
    assert isinstance(done.exception, UsageError)
    assert "Qwen" in str(done.exception)
