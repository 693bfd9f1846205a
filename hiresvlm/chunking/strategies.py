"""The table of strategies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hiresvlm.chunking.analysis import PageAnalysis
from hiresvlm.chunking.auto import auto
from hiresvlm.chunking.grids import anyres, fixed, naive, overlap, whole
from hiresvlm.chunking.seams import adaptive, seam
from hiresvlm.datatypes import Plan
from hiresvlm.settings import ChunkSettings

Planner = Callable[[PageAnalysis, ChunkSettings], Plan]

STRATEGIES: Final[dict[str, Planner]] = {
    "auto": auto,
    "whole": whole,
    "fixed": fixed,
    "naive": naive,
    "anyres": anyres,
    "overlap": overlap,
    "adaptive": adaptive,
    "seam": seam,
}


def plan(analysis: PageAnalysis, settings: ChunkSettings) -> Plan:
    """The plan of the chosen strategy; a blank page has no chunks under any of them."""
    if analysis.blank:
        return Plan(settings.strategy, analysis.size, ())
    return STRATEGIES[settings.strategy](analysis, settings)
