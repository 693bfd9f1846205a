"""`auto` against one scale for the whole page at the same legibility. Plans only: nothing is read.

The heights of the gold lines are known, so both sides are held to one number: the height in chunk pixels
of the capitals of the smallest text that a plan shows. A uniform scale is the fewest tokens that reach
`auto`'s: in one piece where an image may be that large, or cut at white space, empty bands left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hiresvlm.bench.gold import GoldLine, GoldPage
from hiresvlm.chunking import PageAnalysis, analyse, plan
from hiresvlm.chunking.shared import fit, page_box
from hiresvlm.datatypes import Plan
from hiresvlm.pages import open_document
from hiresvlm.settings import ChunkSettings, PageSettings

WHOLE_LINE: Final = 0.7
"""Share of the height of its box from which a line is shown: boxes of turned lines reach beyond the ink."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Tokens of one page under both, and the height in pixels that the smallest text has under either."""

    auto: int
    uniform: int
    """Cut at white space, empty bands left out, or in one piece: the fewer."""
    whole: int
    """The page with all that is empty on it, as most tools show it."""
    least: float


def compare(page: GoldPage, settings: ChunkSettings) -> Costs | None:
    """None where the heights of the gold lines are not known, or a line is in no chunk of `auto`."""
    limits = PageSettings()
    with open_document(page.path, limits) as reader:
        raster = reader.page(page.page)
        analysis = analyse(raster.gray(limits.max_analysis_pixels), raster.size)
    made = plan(analysis, replace(settings, strategy="auto"))
    least, smallest = shown(page.lines, made), min((line.caps or 0.0 for line in page.lines), default=0.0)
    if not least or not smallest:
        return None
    uniform, whole = _uniform(analysis, least / smallest, settings)
    return Costs(made.tokens(settings.factor), uniform, whole, least)


def shown(lines: Sequence[GoldLine], made: Plan) -> float:
    """Height in chunk pixels of the smallest capitals that a plan shows; 0 where a line is not shown."""
    return min((_shown(line, made) for line in lines), default=0.0)


def _shown(line: GoldLine, made: Plan) -> float:
    if line.box is None or line.caps is None:
        return 0.0
    # A row that is cut between its cells is shown by several chunks, each with a part of it.
    common = [(chunk, chunk.box.intersection(line.box)) for chunk in made.chunks]
    height = WHOLE_LINE * line.box.height
    scales = [min(chunk.scale) for chunk, box in common if box.width > 0 and box.height >= height]
    return line.caps * min(scales, default=0.0)


def _uniform(analysis: PageAnalysis, scale: float, settings: ChunkSettings) -> tuple[int, int]:
    """Fewest tokens of the page at one scale, cut at white space or whole; those of the whole page."""
    small = analysis.small_cap_height or settings.legible
    at_scale = replace(settings, strategy="seam", legible=small * scale, legible_clean=None)
    cut = plan(analysis, at_scale).tokens(settings.factor)
    whole = fit(page_box(analysis), scale, 10**9, settings).tokens(settings.factor)
    return (min(cut, whole) if whole <= settings.max_tokens else cut), whole
