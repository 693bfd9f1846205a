"""The reader that asks a vision-language model: from the whole page to the spot that a question means.

    page at a low budget -> answered with confidence? stop (gate)
    lexical hit          -> the region enlarged, with the most relevant tiles (micro)
    no hit               -> value-value map -> its best regions (focus); a flat map -> everything
    every answer         -> is it printed in the crop it came from? does the extractive reader agree?

The reader loads and renders nothing: `steps` is a generator that yields what it wants to see and is sent the
replies, so that whoever drives it may ask for several questions at once.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hiresvlm.ask import lexical, values
from hiresvlm.ask.grid import PageText
from hiresvlm.ask.lexical import Scored
from hiresvlm.ask.question import Asked
from hiresvlm.ask.reader import FOUND, LightReader, Reading
from hiresvlm.ask.visual import evidence, focus, views
from hiresvlm.ask.visual.prompts import QuestionForm, clean
from hiresvlm.ask.visual.targets import by_relevance, covers, spots
from hiresvlm.ask.visual.views import Sight
from hiresvlm.datatypes import Box, Caution, CautionKind, Chunk, Evidence, Failure, Reply, Stop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SURE = 0.8
"""Confidence of an answer at which no further region or page is looked at."""
GATE = 0.9
"""Confidence of the global view at which it is the answer (CVSearch, arXiv 2605.23655, has the same)."""
WEAKEST = 0.5
"""And no token of it may be less likely than this."""
RAISED = 0.6
"""Share of the doubt that evidence in the crop takes away."""
INVENTED = 0.3
"""What is left of the confidence of an answer that the page does not have: never enough to be given..."""
MISREAD = 0.5
"""...of one that differs from a line of the crop by a character or so..."""
ELSEWHERE = 0.8
"""...and of one that stands on the page, but not in the crop."""
DISPUTED = 0.7
"""What is left where the extractive reader is sure of another answer."""


@dataclass(frozen=True, slots=True)
class Look:
    """One prompt: parts of pages and an instruction. Wants a `Reply`."""

    images: tuple[tuple[int, Chunk], ...]
    """Page and chunk of each image, in order."""
    prompt: str


@dataclass(frozen=True, slots=True)
class Find:
    """Where in the first image the words of a question are. A map, (rows, columns) of 0 to 1, or None."""

    look: Look
    phrase: str


@dataclass(frozen=True, slots=True)
class Wish:
    """What a reader wants at once, and what it may want next (to be rendered meanwhile)."""

    looks: tuple[Look, ...] = ()
    find: Find | None = None
    soon: tuple[tuple[int, Chunk], ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of a wish."""

    replies: tuple[Reply, ...] = ()
    map: NDArray[np.float32] | None = None


Steps = Generator[Wish, Seen, Reading]


@dataclass(frozen=True, slots=True)
class Stages:
    """Steps that a benchmark leaves out to see what each is worth."""

    drop: bool = True
    gate: bool = True
    micro: bool = True
    focus: bool = True
    rerank: bool = True
    agreement: bool = True


ALL = Stages()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An answer with what speaks for it."""

    answer: str
    confidence: float
    page: PageText
    boxes: tuple[Box, ...]
    evidence: tuple[Evidence, ...] = ()
    contradicted: bool = False


class VisualReader:
    """Answers with a model what the lexical stage leads it to."""

    def __init__(self, light: LightReader, form: QuestionForm, sight: Sight, stages: Stages = ALL) -> None:
        self._light = light
        self._form = form
        self._sight = sight
        self._stages = stages

    def steps(self, asked: Asked, pages: Sequence[PageText], ranked: Sequence[Scored]) -> Steps:
        """Read the chosen pages. `ranked`: all lines of the document by relevance."""
        extractive = self._light.read(asked, pages, ranked)
        if not pages:
            return extractive
        if asked.everything:
            return (yield from self._freely(asked, pages, ranked))
        found: list[_Candidate] = []
        failures: list[Failure] = []
        for page in by_relevance(pages, ranked):
            found += yield from self._page(asked, page, ranked, extractive, failures)
            if any(c.confidence >= SURE for c in found) or failures:
                break
        return self._reading(asked, found, extractive, failures)

    # ------------------------------------------------------------------------------------- one page

    def _page(
        self,
        asked: Asked,
        page: PageText,
        ranked: Sequence[Scored],
        extractive: Reading,
        failures: list[Failure],
    ) -> Generator[Wish, Seen, list[_Candidate]]:
        """Candidates from one page. Stops at the first that can be believed."""
        stages = self._stages
        overview = views.whole(page.size, self._sight)
        targets = spots(asked, page, ranked) if stages.micro else []
        details = [self._detail(asked, page, ranked, target, overview) for target in targets]
        found: list[_Candidate] = []
        if stages.gate:
            soon = tuple(image for look in details for image in look.images)
            first = self._look(asked, page, (overview,))
            found += yield from self._ask(asked, page, (first,), extractive, failures, soon)
            if failures or any(self._passes(c) for c in found):
                return found
            found = [replace(c, confidence=min(c.confidence, GATE)) for c in found]
        if details:
            more = yield from self._ask(asked, page, tuple(details), extractive, failures)
            found += more
            if failures or more:
                return found
        if stages.focus:
            first = self._look(asked, page, (overview,))
            seen = yield Wish(find=Find(first, asked.phrase or asked.text))
            boxes = [] if seen.map is None else self._focused(page, seen.map)
            if boxes:
                cap = views.caps(page.lines)
                chunks = [views.micro(box, cap, page.size, self._sight) for box in boxes]
                looks = tuple(self._look(asked, page, self._with(overview, (chunk,))) for chunk in chunks)
                found += yield from self._ask(asked, page, looks, extractive, failures)
                return found
        if details:  # the region that is named says nothing, and no map leads elsewhere
            return found
        found += yield from self._ask(
            asked, page, self._everything(asked, page, ranked, overview), extractive, failures
        )
        return found

    def _focused(self, page: PageText, values: NDArray[np.float32]) -> list[Box]:
        """The best regions of a map; none where it is flat."""
        parts = [chunk.box for chunk in views.tiles(page, self._sight)]
        if focus.is_flat(focus.scores(values, page.size, parts)):
            return []
        return focus.regions(values, page.size, self._sight.side / views.comfortable(page.lines, self._sight))

    def _everything(
        self, asked: Asked, page: PageText, ranked: Sequence[Scored], overview: Chunk
    ) -> tuple[Look, ...]:
        """The page at reading size, in as many prompts as the model needs for it."""
        chunks = views.tiles(page, self._sight)
        if self._stages.drop and page.lines:
            kept = lexical.keep_chunks(asked, page, ranked, [chunk.box for chunk in chunks])
            chunks = [chunks[n] for n in kept]
        room = max(1, self._form.images - self._form.overview)
        return tuple(
            self._look(asked, page, self._with(overview, chunks[start : start + room]))
            for start in range(0, len(chunks), room)
        )

    def _detail(
        self, asked: Asked, page: PageText, ranked: Sequence[Scored], target: Box, overview: Chunk
    ) -> Look:
        """The region around a target, with the tiles that have most to do with the question."""
        region = views.micro(target, views.cap(target), page.size, self._sight)
        scored = {s.line: s.score for s in ranked if s.page == page.page}
        worth = []
        for number, chunk in enumerate(views.tiles(page, self._sight)):
            if self._form.mid < 1 or covers(region.box, chunk.box):
                continue
            inside = [
                scored.get(n, 0.0)
                for n, line in enumerate(page.lines)
                if line.box is not None and covers(chunk.box, line.box)
            ]
            worth.append((-max(inside, default=0.0), number, chunk))
        best = sorted(sorted(worth, key=lambda w: w[:2])[: self._form.mid], key=lambda w: w[1])
        return self._look(asked, page, self._with(overview, (*(chunk for _, _, chunk in best), region)))

    def _with(self, overview: Chunk, chunks: Sequence[Chunk]) -> tuple[Chunk, ...]:
        return (overview, *chunks) if self._form.overview else tuple(chunks)

    def _look(self, asked: Asked, page: PageText, chunks: Sequence[Chunk]) -> Look:
        places = [(page.page, chunk.box) for chunk in chunks]
        prompt = self._form.text(asked, places, page.size)
        return Look(tuple((page.page, chunk) for chunk in chunks), prompt)

    def _freely(self, asked: Asked, pages: Sequence[PageText], ranked: Sequence[Scored]) -> Steps:
        """A question that no line answers: all pages in one prompt, or one page and its tiles.

        The answer is in the model's own words, so no line can confirm it, and the record says so.
        """
        most = self._form.images
        whole = [(page.page, views.whole(page.size, self._sight, self._sight.max_tokens)) for page in pages]
        images = whole[:most]
        if len(pages) == 1:
            images += [(pages[0].page, chunk) for chunk in views.tiles(pages[0], self._sight)][: most - 1]
        places = [(page, chunk.box) for page, chunk in images]
        look = Look(tuple(images), self._form.text(asked, places, pages[0].size))
        (reply,) = (yield Wish((look,))).replies
        if reply.failure is not None:
            return Reading(None, failures=(reply.failure,))
        answer = clean(reply.text)
        if reply.stop is not Stop.EOS or self._form.is_absent(answer):
            return self._light.read(asked, pages, ranked)
        message = "the answer is in the model's own words; no line of the document confirms it"
        certain = _certainty(reply)[0]
        return Reading(answer, answer, confidence=certain, cautions=(Caution(CautionKind.QUESTION, message),))

    # ---------------------------------------------------------------------------------- candidates

    def _ask(
        self,
        asked: Asked,
        page: PageText,
        looks: tuple[Look, ...],
        extractive: Reading,
        failures: list[Failure],
        soon: tuple[tuple[int, Chunk], ...] = (),
    ) -> Generator[Wish, Seen, list[_Candidate]]:
        """Ask, and judge what comes back. A failure counts when nothing else answers."""
        seen = yield Wish(looks, soon=soon)
        found = []
        failed = []
        for look, reply in zip(looks, seen.replies, strict=True):
            answer = clean(reply.text)
            if reply.failure is not None:
                failed.append(reply.failure)
            elif reply.stop is Stop.EOS and not self._form.is_absent(answer):
                certain, weakest = _certainty(reply)
                if weakest < WEAKEST:
                    certain = min(certain, GATE - 0.01)
                boxes = tuple(chunk.box for _, chunk in look.images)
                detail = boxes[1:] if len(boxes) > 1 and self._form.overview else boxes
                found.append(self._judged(asked, _Candidate(answer, certain, page, detail), extractive))
        if not found:
            failures += failed
        return found

    def _judged(self, asked: Asked, candidate: _Candidate, extractive: Reading) -> _Candidate:
        """An answer with its confidence raised or lowered by what the lines say."""
        if not self._stages.rerank:
            return candidate
        page, certain = candidate.page, candidate.confidence
        support = evidence.find(candidate.answer, asked.kind, page, candidate.boxes)
        contradicted = False
        if support is not None:
            certain = 1 - (1 - certain) * (1 - RAISED * support.strength)
        elif evidence.lines_in(page, candidate.boxes):
            support = evidence.find(candidate.answer, asked.kind, page)
            contradicted = support is None
            certain *= ELSEWHERE
            if contradicted:
                support = evidence.near(candidate.answer, page, candidate.boxes)
                certain = candidate.confidence * (INVENTED if support is None else MISREAD)
        if self._stages.agreement and extractive.answer is not None and extractive.confidence is not None:
            if evidence.same(candidate.answer, extractive.answer, asked.kind):
                certain = 1 - (1 - certain) * (1 - extractive.confidence)
            elif extractive.confidence >= SURE:
                certain *= DISPUTED
        shown = () if support is None else (support.evidence,)
        if support is None and not contradicted and candidate.boxes:
            shown = (Evidence(page.page, candidate.boxes[-1], ""),)  # nothing was recognised there
        return replace(candidate, confidence=min(certain, 0.9999), evidence=shown, contradicted=contradicted)

    def _passes(self, candidate: _Candidate) -> bool:
        return candidate.confidence >= GATE and not candidate.contradicted

    def _reading(
        self,
        asked: Asked,
        found: Sequence[_Candidate],
        extractive: Reading,
        failures: Sequence[Failure],
    ) -> Reading:
        """The best candidate, or null; what was found and not believed becomes a warning."""
        best = max(found, key=lambda c: (not c.contradicted, c.confidence), default=None)
        cautions = []
        if best is not None and best.contradicted:
            message = "the model's answer is not what was recognised in its place"
            cautions.append(Caution(CautionKind.CONTRADICTION, message))
        believed = best is not None and best.confidence >= FOUND
        if self._stages.agreement and extractive.answer is not None:
            certain = extractive.confidence or 0.0
            if not believed and (certain >= SURE or failures):
                message = "the model gave no answer that can be believed; this one was found in the lines"
                cautions.append(Caution(CautionKind.LOW_CONFIDENCE, message))
                return replace(extractive, cautions=tuple(cautions), failures=tuple(failures))
            if best is not None and believed and certain >= SURE:
                if not evidence.same(best.answer, extractive.answer, asked.kind):
                    message = "the model and the recognised lines give different answers"
                    cautions.append(Caution(CautionKind.CONTRADICTION, message))
                    if best.confidence < certain:
                        return replace(extractive, confidence=certain * DISPUTED, cautions=tuple(cautions))
                elif not best.evidence:
                    best = replace(best, evidence=extractive.evidence)
        if best is None or not believed:
            shown = tuple(e for e in extractive.evidence)
            guess = None if best is None else best.answer
            return Reading(
                None, evidence=shown, best_guess=guess, cautions=tuple(cautions), failures=tuple(failures)
            )
        value = next(iter(values.find(asked.kind, best.answer)), None)
        return Reading(
            best.answer,
            best.answer if value is None else value.normal,
            None if value is None else value.currency,
            round(best.confidence, 4),
            best.evidence,
            best_guess=best.answer,
            cautions=tuple(cautions),
        )


def _certainty(reply: Reply) -> tuple[float, float]:
    """Confidence of a reply (the mean of its lines, by length) and of its least sure token."""
    known = [
        (len(line.text), line.confidence, line.weakest) for line in reply.lines if line.confidence is not None
    ]
    total = sum(n for n, _, _ in known)
    if not total:
        return 0.5, 0.5  # the engine does not say
    mean = sum(n * c for n, c, _ in known) / total
    return mean, min((c if w is None else w) for _, c, w in known)
