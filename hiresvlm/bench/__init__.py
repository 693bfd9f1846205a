"""Benchmarks: each prints a table for people and one JSON line last."""

from __future__ import annotations

from hiresvlm.bench.ask import ask
from hiresvlm.bench.ask_fit import ask_fit
from hiresvlm.bench.ask_visual import STAGES, ask_visual
from hiresvlm.bench.chunking import Choice, chunking
from hiresvlm.bench.cuts import cuts
from hiresvlm.bench.draft import draft
from hiresvlm.bench.engine import Choice as EngineChoice
from hiresvlm.bench.engine import engine
from hiresvlm.bench.gpu import gpu
from hiresvlm.bench.heights import heights
from hiresvlm.bench.loading import loads
from hiresvlm.bench.memory import memory
from hiresvlm.bench.nano import nano
from hiresvlm.bench.overlaps import merging
from hiresvlm.bench.places import places
from hiresvlm.bench.pruning import Choice as PruningChoice
from hiresvlm.bench.pruning import pruning
from hiresvlm.bench.receipts import receipts
from hiresvlm.bench.samples import samples

__all__ = [
    "STAGES",
    "Choice",
    "EngineChoice",
    "PruningChoice",
    "ask",
    "ask_fit",
    "ask_visual",
    "chunking",
    "cuts",
    "draft",
    "engine",
    "gpu",
    "heights",
    "loads",
    "memory",
    "merging",
    "nano",
    "places",
    "pruning",
    "receipts",
    "samples",
]
