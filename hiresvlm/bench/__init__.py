"""Benchmarks: each prints a table for people and one JSON line last."""

from __future__ import annotations

from hiresvlm.bench.memory import memory
from hiresvlm.bench.receipts import receipts
from hiresvlm.bench.samples import samples

__all__ = ["memory", "receipts", "samples"]
