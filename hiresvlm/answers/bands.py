"""Which chunks of a page stand side by side."""

from __future__ import annotations

from collections.abc import Sequence

from hiresvlm.datatypes import Box, Chunk

BAND = 0.7
"""Chunks whose vertical extents share this much of the smaller one stand side by side."""


def bands(chunks: Sequence[Chunk]) -> list[list[int]]:
    """Numbers of chunks side by side, from left to right; bands from top to bottom."""
    found: list[list[int]] = []
    for number in sorted(range(len(chunks)), key=lambda n: (chunks[n].box.y0, chunks[n].box.x0)):
        box = chunks[number].box
        for band in found:
            if all(_side_by_side(box, chunks[other].box) for other in band):
                band.append(number)
                break
        else:
            found.append([number])
    return [sorted(band, key=lambda n: chunks[n].box.x0) for band in found]


def _side_by_side(a: Box, b: Box) -> bool:
    return a.intersection(b).height >= BAND * min(a.height, b.height)
