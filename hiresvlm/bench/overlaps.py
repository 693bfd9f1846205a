"""Seams of texts, simulated: how often a merge gives back exactly the lines that were cut apart.

A trial lays the lines of a page out at an even distance and cuts the page anywhere, with an overlap of
two to five lines. Each side reads what it sees: lines cut to less than a quarter are not read, half of
the characters of other cut lines are destroyed, and all others have character noise. The merge is told
the overlap in lines, wrong by up to a quarter as the line height of a page is. In every tenth trial the
overlap falls on blank paper and no line is common: whatever is merged there is lost.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rapidfuzz import fuzz

from hiresvlm.answers import seams as texts
from hiresvlm.bench import gold
from hiresvlm.bench.harness import json_line, read_gold, table
from hiresvlm.metrics import missed_and_doubled

Merge = Callable[[list[str], list[str], float], list[str]]
"""Lines above, lines below, lines that they share by geometry -> lines of both."""

NOISES: Final = (0.0, 0.03, 0.08)
OVERLAP: Final = (2.0, 5.0)
"""Overlap in distances of lines: a dirty seam has 2.5, tiles have more."""
INK: Final = 0.6
"""Height of a line in distances of lines."""
SEEN: Final = (0.25, 0.95)
"""Less of a line's height is not read, more is read as if it were whole."""
UNSURE: Final = 1.25
"""The line height that the merge is told is up to this many times too large or too small."""
BLANK: Final = 0.1
"""Share of seams that fall on blank paper."""
_JUNK: Final = "abcdefghiklmnorstu0123456789.,#~"


@dataclass(frozen=True, slots=True)
class Seam:
    """Two readings of the two sides of a cut, and the lines that are there."""

    above: list[str]
    below: list[str]
    expected: float
    gold: list[str]


@dataclass(slots=True)
class Tally:
    """Sums over seams."""

    seams: int = 0
    exact: int = 0
    """Seams after which the page has as many lines as it had."""
    off: int = 0
    """Lines too many or too few."""
    lost: int = 0
    doubled: int = 0
    seconds: float = 0.0

    def add(self, seam: Seam, lines: Sequence[str]) -> None:
        self.seams += 1
        self.exact += len(lines) == len(seam.gold)
        self.off += abs(len(lines) - len(seam.gold))
        missed, doubled = missed_and_doubled([(line,) for line in seam.gold], lines)
        self.lost += len(missed)
        self.doubled += len(doubled)

    def cells(self) -> tuple[object, ...]:
        """Of a row of the table."""
        exact, ms = f"{self.exact / self.seams:.1%}", f"{1000 * self.seconds / self.seams:.2f}"
        return self.seams, exact, self.off / self.seams, self.lost, self.doubled, ms

    def as_dict(self) -> dict[str, float]:
        return {
            "seams": self.seams,
            "exact": self.exact / self.seams,
            "line_error": self.off / self.seams,
            "lost": self.lost,
            "doubled": self.doubled,
            "ms": 1000 * self.seconds / self.seams,
        }


def merging(folder: str | None, seed: int, trials: int = 500) -> None:
    """Print exact line counts and line errors of three merges on generated text and on a folder's.

    FOLDER holds a `gold.jsonl` as for `bench receipts`; without it only generated text is measured.
    """
    sources = {"generated": generated(seed)}
    if folder is not None:
        sources[os.path.basename(os.path.normpath(folder))] = [
            text.split("\n") for text in read_gold(folder).values()
        ]
    rows: list[tuple[object, ...]] = []
    result: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for source, pages in sources.items():
        for noise in NOISES:
            found = measure(simulate(pages, noise, trials, seed))
            result.setdefault(source, {})[f"{noise:g}"] = {
                name: tally.as_dict() for name, tally in found.items()
            }
            rows += [(source, f"{noise:.0%}", name, *tally.cells()) for name, tally in found.items()]
    table(("text", "noise", "merge", "seams", "exact", "line error", "lost", "doubled", "ms"), rows)
    json_line("merge", {"seed": seed, "texts": result})


def measure(cuts: Sequence[Seam]) -> dict[str, Tally]:
    """Each merge on the same seams."""
    tallies = {name: Tally() for name in MERGES}
    for seam in cuts:
        for name, merge in MERGES.items():
            began = time.perf_counter()
            lines = merge(seam.above, seam.below, seam.expected)
            tallies[name].seconds += time.perf_counter() - began
            tallies[name].add(seam, lines)
    return tallies


def generated(seed: int, pages: int = 4) -> list[list[str]]:
    """Lines of generated pages of every kind, Chinese and English."""
    return [
        [line.text for line in gold.sheet_of(kind, seed, number).lines]
        for kind in gold.KINDS
        for number in range(pages)
    ]


def simulate(pages: Sequence[Sequence[str]], noise: float, trials: int, seed: int) -> list[Seam]:
    """So many seams, the same ones for the same seed. Pages of few lines are left out."""
    draw = random.Random(f"seams {seed} {noise}")
    pages = [page for page in pages if len(page) >= 3 * OVERLAP[1]]
    return [_cut(list(draw.choice(pages)), noise, draw) for _ in range(trials)]


def _cut(lines: list[str], noise: float, draw: random.Random) -> Seam:
    overlap = draw.uniform(*OVERLAP)
    expected = overlap * UNSURE ** draw.uniform(-1, 1)
    if draw.random() < BLANK:
        at = draw.randint(2, len(lines) - 2)
        return Seam(noisy(lines[:at], noise, draw), noisy(lines[at:], noise, draw), expected, lines)
    start = draw.uniform(2, len(lines) - 2 - overlap)
    end = start + overlap
    above = [_read(line, (end - n) / INK, noise, draw) for n, line in enumerate(lines)]
    below = [_read(line, (n + INK - start) / INK, noise, draw) for n, line in enumerate(lines)]
    return Seam([line for line in above if line], [line for line in below if line], expected, lines)


def _read(line: str, seen: float, noise: float, draw: random.Random) -> str:
    """What is read of a line of which a side sees this share of its height (above 1: all of it)."""
    if seen < SEEN[0]:
        return ""
    return noisy([line if seen > SEEN[1] else halved(line, draw)], noise, draw)[0]


def halved(line: str, draw: random.Random) -> str:
    """A line with half of its characters destroyed: an end, the start, or every second one."""
    half = (len(line) + 1) // 2
    junk = "".join(draw.choices(_JUNK, k=draw.randint(0, half)))
    match draw.randrange(3):
        case 0:
            return line[:half] + junk or "#"
        case 1:
            return junk + line[half:] or "#"
        case _:
            return "".join(draw.choice(_JUNK) if n % 2 else c for n, c in enumerate(line))


def noisy(lines: Sequence[str], share: float, draw: random.Random) -> list[str]:
    """Lines with this share of their characters replaced, left out or doubled."""

    def read(character: str) -> str:
        if character == " " or draw.random() >= share:
            return character
        return draw.choice((draw.choice(_JUNK), draw.choice(_JUNK), "", 2 * character))

    return ["".join(map(read, line)) or "#" for line in lines]


# --------------------------------------------------------------------------------- other merges


def exact_suffix(above: list[str], below: list[str], expected: float) -> list[str]:
    """The longest end of one side that is exactly the start of the other is kept once."""
    for size in range(min(len(above), len(below), round(2 * expected)), 0, -1):
        if above[-size:] == below[:size]:
            return above + below[size:]
    return above + below


def offset_search(above: list[str], below: list[str], expected: float) -> list[str]:
    """The offset whose paired lines are most alike, less 0.04 for each line away from geometry."""
    a, b = [texts.normal(line) for line in above], [texts.normal(line) for line in below]
    best, offset = 0.55, 0
    for size in range(1, min(len(a), len(b), round(2 * expected)) + 1):
        total = weight = 0.0
        for t, (x, y) in enumerate(zip(a[-size:], b[:size], strict=True)):
            w = (min(max(len(x), len(y)), 20) + 1) * (0.3 if t in {0, size - 1} else 1.0)
            total += w * fuzz.ratio(x, y) / 100
            weight += w
        score = total / weight - 0.04 * abs(size - expected)
        if score >= best:
            best, offset = score, size
    return above[: len(above) - offset + offset // 2] + below[offset // 2 :]


MERGES: Final[dict[str, Merge]] = {
    "exact suffix": exact_suffix,
    "offset search": offset_search,
    "hiresvlm": texts.join,
}
