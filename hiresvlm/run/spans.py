"""Spans of time that may overlap."""

from __future__ import annotations

from collections.abc import Sequence


def covered(spans: Sequence[tuple[float, float]]) -> float:
    """Length of the union of spans (start, end): what holds two slots at once is not counted twice."""
    total, end = 0.0, float("-inf")
    for start, finish in sorted(spans):
        total += max(0.0, finish - max(start, end))
        end = max(end, finish)
    return total
