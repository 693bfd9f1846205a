"""What strategies share: the sizes of chunks, budgets, boxes around ink."""

from __future__ import annotations

import math
from typing import Final

from hiresvlm.chunking import cuts
from hiresvlm.chunking.analysis import PageAnalysis
from hiresvlm.datatypes import Box, Caution, CautionKind, Chunk, Plan, Role
from hiresvlm.settings import ChunkSettings

MAX_SCALE: Final = 2.0
"""Never enlarge more: vision-language models read over-enlarged text worse (OCRBench falls)."""

MAX_ASPECT: Final = 12.0
"""Chunks longer than this are cut across: encoders see no such shapes in training."""


def plan_of(
    name: str, analysis: PageAnalysis, chunks: tuple[Chunk, ...], cautions: tuple[Caution, ...] = ()
) -> Plan:
    """A plan of one request per chunk."""
    return Plan(name, analysis.size, chunks, cautions=cautions)


def page_box(analysis: PageAnalysis) -> Box:
    """The whole page."""
    return Box(0, 0, *analysis.size)


def total(chunks: tuple[Chunk, ...], settings: ChunkSettings) -> int:
    """Visual tokens of all chunks."""
    return sum(chunk.tokens(settings.factor) for chunk in chunks)


def share_of_budget(settings: ChunkSettings, chunks: int) -> int:
    """Tokens that one of several equal chunks may have."""
    if settings.max_tokens_per_page is None or chunks == 0:
        return settings.max_tokens
    return max(1, min(settings.max_tokens, settings.max_tokens_per_page // chunks))


def canvas_of(size: tuple[int, int], factor: int, tile: int | None = None) -> tuple[int, int]:
    """Size padded to whole tokens, or the square that holds each image."""
    if tile is not None:
        return tile, tile
    return -(-size[0] // factor) * factor, -(-size[1] // factor) * factor


def fit(box: Box, scale: float, most: int, settings: ChunkSettings) -> Chunk:
    """A chunk at `scale`, or at the largest scale below it that costs at most `most` tokens."""
    while True:
        size = (max(1, round(box.width * scale)), max(1, round(box.height * scale)))
        chunk = Chunk(box, size, canvas_of(size, settings.factor, settings.tile))
        if settings.tile is not None and max(size) > settings.tile:
            scale *= min(0.999, settings.tile / max(size))
            continue
        tokens = chunk.tokens(settings.factor)
        if settings.tile is not None:  # its cost does not depend on its size
            return chunk
        if tokens <= most or size == (1, 1):
            return chunk
        # Rounding up to whole tokens can keep a chunk above its share, so shrink by at least 1 %.
        scale *= min(0.99, math.sqrt(most / tokens))


def cost(box: Box, scale: float, settings: ChunkSettings) -> float:
    """Visual tokens of a box at `scale`; rounding up to whole tokens costs about half a token a side.

    Above `max_tokens` exactly where it does not fit into one image.
    """
    if settings.tile is not None:
        across, down = squares(box, scale, settings.tile)
        return float(across * down * settings.max_tokens)
    token = settings.factor / scale
    return (box.width / token + 0.5) * (box.height / token + 0.5)


def squares(box: Box, scale: float, tile: int) -> tuple[int, int]:
    """Squares across and down that a box fills at `scale`."""
    return max(1, math.ceil(box.width * scale / tile)), max(1, math.ceil(box.height * scale / tile))


def around_ink(analysis: PageAnalysis, region: Box, margin: float | None = None) -> Box | None:
    """The ink of a region with a margin (half a line); margins never reach into the next region."""
    ink = cuts.ink_box(analysis, region)
    if ink is None:
        return None
    m = analysis.line_height / 2 if margin is None else margin
    return Box(ink.x0 - m, ink.y0 - m, ink.x1 + m, ink.y1 + m).intersection(region)


def needed(analysis: PageAnalysis, settings: ChunkSettings) -> float:
    """Height of capitals in chunk pixels that this page must have to be read."""
    clean = settings.legible_clean
    return clean if clean is not None and analysis.clean else settings.legible


def ceiling(analysis: PageAnalysis, settings: ChunkSettings) -> float:
    """The largest scale that a page may have."""
    width, height = analysis.size
    return min(MAX_SCALE, math.sqrt(settings.max_page_pixels / (width * height)))


def pictorial_scale(analysis: PageAnalysis, settings: ChunkSettings) -> float:
    """Scale of a page without text-like components, a drawing or a photo.

    As large as one image may be, or half its size where that loses nothing (see `quality`).
    """
    width, height = analysis.size
    area = float(settings.max_tokens * settings.factor**2)
    if settings.tile is not None:
        area = settings.tile**2 * min(width, height) / max(width, height)
    most = 0.5 if analysis.quality.detail < NOTHING_LOST else 1.0
    return min(most, math.sqrt(area / (width * height)))


NOTHING_LOST: Final = 0.01
"""Share of the energy that may vanish at half the size and nothing be lost."""


def budget_caution(rendered: float | None, need: float) -> tuple[Caution, ...]:
    """A warning where the smallest text is rendered (px) lower than 0.9 of what the engine needs."""
    if rendered is None or rendered >= 0.9 * need:
        return ()
    message = f"the token budget leaves small text {rendered:.1f} px high; the engine needs {need:.1f} px"
    return (Caution(CautionKind.BUDGET, message),)


def tile(box: Box, size: tuple[int, int], side: int, role: Role = Role.TILE) -> Chunk:
    """A chunk on a square canvas, as models with tiles of one size take it."""
    return Chunk(box, size, (side, side), role)
