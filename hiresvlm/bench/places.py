"""What a model should know of where its tiles lie on the page: four ways to show it the same tiles.

Generated receipts and ledgers that need several tiles, cut at white space at one scale. All ways use the same
weights in one process and one greedy decoding with the engine's rule for loops; no answer is tried again.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import typer
from PIL import Image
from rapidfuzz import fuzz, process

from hiresvlm import engines
from hiresvlm.answers import clean, merge
from hiresvlm.bench import gold
from hiresvlm.bench.harness import json_line, table
from hiresvlm.datatypes import Box, Place, PreparedPage, Reply
from hiresvlm.documents import expand
from hiresvlm.engines.vlm import VlmEngine
from hiresvlm.errors import NoInputError, UsageError
from hiresvlm.metrics import Score, normal, rows_whole
from hiresvlm.run.prepare import prepare
from hiresvlm.settings import EngineSettings, Settings
from hiresvlm.tasks import TRANSCRIBE

if TYPE_CHECKING:
    from hiresvlm.bench.gold import GoldPage
    from hiresvlm.engines.vlm.cache import Features
    from hiresvlm.engines.vlm.inputs import ImageInput, Prompt
    from hiresvlm.engines.vlm.stitching import Layout, Piece

KINDS: Final = ("receipt", "ledger")
STRATEGY: Final = "seam"
THUMBNAIL: Final = 448
"""Longest side of the thumbnail in pixels."""
SAME_LINE: Final = 70
"""Likeness in per cent from which a line of output is a gold line."""


@dataclass(frozen=True, slots=True, eq=False)
class _Page:
    """One page, cut."""

    gold: GoldPage
    prepared: PreparedPage
    tiles: tuple[ImageInput, ...]
    thumbnail: ImageInput
    places: tuple[Piece, ...]
    layout: Layout


@dataclass(slots=True)
class _Sums:
    """What a row of the table adds up."""

    score: Score = field(default_factory=Score)
    tokens: list[int] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)
    pairs: int = 0
    in_order: int = 0
    rows: int = 0
    whole: int = 0

    def add(self, page: GoldPage, text: str, tokens: int, ms: float) -> None:
        self.score.add(page.text, text)
        self.tokens.append(tokens)
        self.ms.append(ms)
        read = [line for line in text.split("\n") if line.strip()]
        pairs, in_order = order([line.text for line in page.lines], read)
        self.pairs += pairs
        self.in_order += in_order
        rows = [line.cells for line in page.lines if line.table]
        self.rows += len(rows)
        self.whole += rows_whole(rows, read)

    def as_dict(self) -> dict[str, float | int | None]:
        return {
            "tokens": statistics.mean(self.tokens),
            "cer": self.score.cer,
            "kept": self.score.kept_share,
            "pairs": self.pairs,
            "in_order": self.in_order / self.pairs if self.pairs else None,
            "rows_whole": self.whole / self.rows if self.rows else None,
            "ms": statistics.median(self.ms),
        }


def places(model: str, quant: str, pages: int, seed: int, max_new_tokens: int) -> None:
    """Print a row for each kind of page and way. `pages`: of each kind; `max_new_tokens`: of a tile.

    Raises `UsageError` for a model that does not count in rows and columns.
    """
    settings, _ = engines.resolve(Settings(engine=EngineSettings("vlm", model, quant)))
    with tempfile.TemporaryDirectory() as folder:
        made = gold.make(folder, KINDS, seed, pages)
        engine = VlmEngine(settings.engine)
        try:
            _check(engine)
            cut = [page for one in made if (page := _cut(engine, settings, one)) is not None]
            if not cut:
                raise NoInputError("no page needs several tiles", "ask for more --pages")
            found = _measure(engine, cut, max_new_tokens)
        finally:
            engine.close()
    columns = ("kind", "way", "pages", "tiles", "tokens", "CER", "kept", "in order", "rows whole", "ms")
    table(columns, [_shown(row) for row in found])
    typer.echo(
        "tokens (visual), tiles: mean of a page; ms: median of a page (encode, prefill, decode); in order: "
        "of neighbouring gold lines that were both read; one prompt has a thumbnail first"
    )
    json_line("places", {"model": model, "quant": quant, "seed": seed, "rows": found})


def order(lines: Sequence[str], read: Sequence[str]) -> tuple[int, int]:
    """Neighbouring gold lines that are both in the output, and how many of these pairs are in order there.

    Each line is looked for in the output line most like it; lines that are printed twice are left out.
    """
    output = [normal(line) for line in read]
    wanted = [normal(line) for line in lines]
    at = []
    for line in wanted:
        best = process.extractOne(line, output, scorer=fuzz.ratio, score_cutoff=SAME_LINE)
        at.append(best[2] if best is not None and wanted.count(line) == 1 else None)
    pairs = [(a, b) for a, b in zip(at, at[1:], strict=False) if a is not None and b is not None]
    return len(pairs), sum(a < b for a, b in pairs)


def _check(engine: VlmEngine) -> None:
    from hiresvlm.engines.vlm.positions import ThreeAxes, positions_of

    if not isinstance(positions_of(engine.loaded), ThreeAxes):
        raise UsageError("bench places needs a model of a Qwen family", "hiresvlm bench places -m nano")


def _cut(engine: VlmEngine, settings: Settings, page: GoldPage) -> _Page | None:
    """None where one tile shows all of the page."""
    from hiresvlm.engines.vlm import stitching
    from hiresvlm.engines.vlm.inputs import image_input

    (document,) = expand([page.path])
    chunk = replace(settings.chunk, strategy=STRATEGY)
    prepared = prepare(document, Place(0, 1, 1), settings.page, chunk)
    if prepared.plan is None or len(prepared.views) < 2:
        return None
    image = engine.parts.image
    tiles = tuple(image_input(view.pixels, image) for view in prepared.views)
    # One scale for the page, so that all tiles are on one grid; they differ by rounding.
    scale = statistics.median(chunk.scale[1] for chunk in prepared.plan.chunks) / image.factor
    boxes = [Box(*(side * scale for side in chunk.box)) for chunk in prepared.plan.chunks]
    sizes = [(tile.grid[0] // image.merge, tile.grid[1] // image.merge) for tile in tiles]
    where = tuple(stitching.pieces(boxes, sizes))
    with Image.open(page.path) as picture:
        small = picture.convert("RGB")
    small.thumbnail((THUMBNAIL, THUMBNAIL), Image.Resampling.BOX)
    thumbnail = image_input(np.asarray(small), image)
    return _Page(page, prepared, tiles, thumbnail, where, stitching.layout(where))


def _measure(engine: VlmEngine, cut: Sequence[_Page], most: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for kind in dict.fromkeys(page.gold.kind for page in cut):
        pages = [page for page in cut if page.gold.kind == kind]
        tiles = statistics.mean(len(page.tiles) for page in pages)
        for name, way in WAYS.items():
            typer.echo(f"{kind}, {name}", err=True)
            sums = _Sums()
            for page in pages:
                engine.parts.encoder.cache.clear()
                began = time.perf_counter()
                text, tokens = way(engine, page, most)
                sums.add(page.gold, text, tokens, 1e3 * (time.perf_counter() - began))
            found.append({"kind": kind, "way": name, "pages": len(pages), "tiles": tiles, **sums.as_dict()})
    return found


def _shown(row: dict[str, Any]) -> tuple[object, ...]:
    def share(key: str) -> str | None:
        return None if row[key] is None else f"{row[key]:.2%}"

    counts = (f"{row['tiles']:.1f}", f"{row['tokens']:.0f}")
    shares = (share(key) for key in ("cer", "kept", "in_order", "rows_whole"))
    return (row["kind"], row["way"], row["pages"], *counts, *shares, f"{row['ms']:,.0f}")


# ------------------------------------------------------------------------------------------- the ways


def _apart(engine: VlmEngine, page: _Page, most: int) -> tuple[str, int]:
    """As the tool does: a request for each tile, answers merged."""
    return _merged(engine, page, [_instruction(engine)] * len(page.tiles), most)


def _named(engine: VlmEngine, page: _Page, most: int) -> tuple[str, int]:
    """The same, and each prompt says where its tile is."""
    rows = sorted({piece.row for piece in page.places})
    columns = sorted({piece.column for piece in page.places})
    told = [
        f"{_instruction(engine)} Part {rows.index(piece.row) + 1},{columns.index(piece.column) + 1} "
        f"of {len(rows)},{len(columns)}."
        for piece in page.places
    ]
    return _merged(engine, page, told, most)


def _joined(engine: VlmEngine, page: _Page, most: int) -> tuple[str, int]:
    """Thumbnail and tiles one after another in one prompt, each image with positions of its own."""
    images = [page.thumbnail, *page.tiles]
    prompt = engine.parts.prompts.prompt(_instruction(engine), images)
    features = engine.parts.encoder.encode(images)
    (text,) = _answers(engine, [prompt], [features], most * len(page.tiles))
    return clean(text), sum(image.tokens for image in images)


def _stitched(engine: VlmEngine, page: _Page, most: int) -> tuple[str, int]:
    """Thumbnail, and the tiles as one image."""
    from hiresvlm.engines.vlm.stitching import page_features, page_image

    parts = engine.parts
    images = [page.thumbnail, page_image(page.tiles, page.layout, parts.image)]
    prompt = parts.prompts.prompt(_instruction(engine), images)
    thumbnail, *tiles = parts.encoder.encode([page.thumbnail, *page.tiles])
    features = [thumbnail, page_features(tiles, page.layout)]
    (text,) = _answers(engine, [prompt], [features], most * len(page.tiles))
    return clean(text), sum(image.tokens for image in images)


WAYS: Final[dict[str, Callable[[VlmEngine, _Page, int], tuple[str, int]]]] = {
    "a request a tile": _apart,
    "and its place named": _named,
    "one prompt": _joined,
    "one prompt, stitched": _stitched,
}
"""Name -> text and visual tokens of a page; the number is the longest answer for a tile in tokens."""


def _instruction(engine: VlmEngine) -> str:
    return engine.parts.instruction or TRANSCRIBE


def _merged(engine: VlmEngine, page: _Page, instructions: Sequence[str], most: int) -> tuple[str, int]:
    parts = engine.parts
    prompts = [
        parts.prompts.prompt(words, [tile]) for words, tile in zip(instructions, page.tiles, strict=True)
    ]
    features = [[one] for one in parts.encoder.encode(page.tiles)]
    texts = _answers(engine, prompts, features, most)
    place = page.prepared.place._replace(requests=len(texts))
    replies = [Reply(place._replace(request=number), text) for number, text in enumerate(texts)]
    return merge(page.prepared, replies).text, sum(tile.tokens for tile in page.tiles)


def _answers(
    engine: VlmEngine, prompts: Sequence[Prompt], features: Sequence[Sequence[Features]], most: int
) -> list[str]:
    """Greedy answers, as many at a time as the engine has slots."""
    from hiresvlm.engines.vlm.slots import Row
    from hiresvlm.engines.vlm.stopping import Limits, ending

    parts = engine.parts
    rows = [Row(prompt) for prompt in prompts]
    texts: dict[Row, str] = {}
    for start in range(0, len(rows), parts.rows):
        group = slice(start, start + parts.rows)
        parts.slots.join(rows[group], features[group])
        while True:
            over = []
            for row in parts.slots.rows:
                end = ending(row.ids, parts.ends, Limits(most), parts.text_of)
                if end is not None:
                    texts[row] = parts.text_of(row.ids[: end.keep])
                    over.append(row)
            if over:
                parts.slots.leave(over)
            if not parts.slots.rows:
                break
            parts.slots.step()
    return [texts[row] for row in rows]
