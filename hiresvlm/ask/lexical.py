"""The lexical stage: which lines, pages and regions have to do with a question.

BM25 (Robertson and Zaragoza 2009, k1 = 1.2, b = 0.75) over words and over bigrams of Chinese characters,
plus the share of the question's character trigrams that a line has, which forgives misread characters.
It costs no model, and it stands in front of every reader.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hiresvlm.ask.grid import MAX_LINE, PageText
from hiresvlm.ask.question import Asked
from hiresvlm.ask.wording import solid, tokens
from hiresvlm.datatypes import Box

K1 = 1.2
B = 0.75
FUZZY = 1.5
"""Weight of a full match of trigrams, in units of BM25 scores of a rare term."""
DROPPED = 0.2
"""Share of chunks that need not be read (published: a fifth costs no answer)."""
FLAT = 0.1
"""Standard deviation of relevance (0 to 1) below which it tells nothing, and all is read."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A line of a page and how relevant it is; scores compare within one document and question only."""

    page: int
    line: int
    score: float


def terms(text: str) -> list[str]:
    """Words, numbers, and bigrams of Chinese characters (single ones where they stand alone)."""
    found: list[str] = []
    run = ""
    for token in (*tokens(text), ""):
        if len(token) == 1 and _is_cjk(token):
            run += token
            continue
        if run:
            found += [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]
            run = ""
        if token:
            found.append(token)
    return found


def rank(asked: Asked, pages: Sequence[PageText]) -> list[Scored]:
    """All lines of a document, the most relevant first."""
    queries = [
        asked.phrase or asked.text,
        *asked.targets[:1],
        *asked.targets[1:],
        *([asked.of] if asked.of else []),
    ]
    wanted: Counter[str] = Counter()
    for number, query in enumerate(queries):
        for term in set(terms(query)):
            wanted[term] = max(wanted[term], 1 if number < 2 or query == asked.of else 0)
    grams = [_trigrams(query) for query in queries]
    lines = [(page.page, n, line.text[:MAX_LINE]) for page in pages for n, line in enumerate(page.lines)]
    bags = [Counter(terms(text)) for _, _, text in lines]
    frequency: Counter[str] = Counter(term for bag in bags for term in bag)
    mean = sum(bag.total() for bag in bags) / max(1, len(bags)) or 1.0
    scored = []
    for (page, number, text), bag in zip(lines, bags, strict=True):
        score = 0.0
        for term, literal in wanted.items():
            if not bag[term]:
                continue
            idf = math.log(1 + (len(bags) - frequency[term] + 0.5) / (frequency[term] + 0.5))
            length = 1 - B + B * bag.total() / mean
            score += (1.0 if literal else 0.7) * idf * bag[term] * (K1 + 1) / (bag[term] + K1 * length)
        mine = _trigrams(text)
        overlap = max((len(gram & mine) / len(gram) for gram in grams if gram), default=0.0)
        scored.append(Scored(page, number, score + FUZZY * overlap * overlap))
    return sorted(scored, key=lambda s: (-s.score, s.page, s.line))


def best_pages(asked: Asked, pages: Sequence[PageText], ranked: Sequence[Scored], top: int) -> list[int]:
    """Numbers of the pages to read in detail, ascending: those with the most relevant lines.

    Of equals the earlier page is taken, and a question about everything starts at the front.
    """
    if len(pages) <= top:
        return [page.page for page in pages]
    if asked.everything:
        return [page.page for page in pages[:top]]
    strength: dict[int, float] = {page.page: 0.0 for page in pages}
    count: Counter[int] = Counter()
    for line in ranked:  # the best line counts in full, the second half, the third a quarter
        if count[line.page] < 3:
            strength[line.page] += line.score / 2 ** count[line.page]
            count[line.page] += 1
    order = sorted(strength, key=lambda page: (-strength[page], page))
    return sorted(order[:top])


def keep_chunks(asked: Asked, page: PageText, ranked: Sequence[Scored], boxes: Sequence[Box]) -> list[int]:
    """Numbers of the chunks (boxes in page pixels) that a reader needs, in their own order.

    The least relevant fifth is dropped; none for a question about everything, and none where the
    relevance of all is much the same.
    """
    scores = {scored.line: scored.score for scored in ranked if scored.page == page.page}
    relevance = [
        max((scores.get(n, 0.0) for n, line in enumerate(page.lines) if _meets(line.box, box)), default=0.0)
        for box in boxes
    ]
    most = max(relevance, default=0.0)
    everyone = list(range(len(boxes)))
    if asked.everything or most <= 0 or any(line.box is None for line in page.lines):
        return everyone
    relative = [value / most for value in relevance]
    mean = sum(relative) / len(relative)
    if math.sqrt(sum((value - mean) ** 2 for value in relative) / len(relative)) < FLAT:
        return everyone
    drop = sorted(everyone, key=lambda n: (relative[n], -n))[: int(DROPPED * len(boxes))]
    return [number for number in everyone if number not in drop]


def _meets(line: Box | None, box: Box) -> bool:
    if line is None:
        return True
    common = line.intersection(box)
    return common.width > 0 and common.height > 0


def _trigrams(text: str) -> set[str]:
    plain = solid(text)
    size = 2 if any(_is_cjk(c) for c in plain) else 3
    return {plain[i : i + size] for i in range(len(plain) - size + 1)} or ({plain} if plain else set())


def _is_cjk(character: str) -> bool:
    return "\u3040" <= character <= "\u30ff" or "\u3400" <= character <= "\u9fff"
