"""The second trip to an engine: what a reader of `ask` wishes to see is rendered, asked and given back.

    wishes of all questions of a document -> crops from a worker process -> one batch of requests -> replies

Crops are kept, and those that a reader may want next are rendered while the model is at work.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hiresvlm.ask.grid import PageText
from hiresvlm.ask.lexical import Scored
from hiresvlm.ask.question import Asked
from hiresvlm.ask.reader import LightReader, Reading
from hiresvlm.ask.visual import ALL, Find, Look, QuestionForm, Seen, Sight, Stages, VisualReader, Wish
from hiresvlm.batching import RequestFeed, generate
from hiresvlm.datatypes import Failure, FailureKind, Place, Reply, Request, Step, Tokens, View
from hiresvlm.engines import Asked as AskedEngine
from hiresvlm.engines import Engine, EngineProfile, Focusing, Measured
from hiresvlm.run.spans import covered
from hiresvlm.workers import Done, Pool, Trouble

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hiresvlm.datatypes import Chunk, Document, Pixels
    from hiresvlm.settings import PageSettings

ANSWER_TOKENS = 128
"""Longest answer; one that does not end by then is no value."""
CROP_BYTES = 128 * 2**20
"""Crops that are kept."""
FREE_TOKENS = 512
"""Longest answer in the model's own words."""

Key = tuple[int, int, "Chunk"]
"""Document, page, chunk."""


@dataclass(slots=True)
class Work:
    """What answering a question took."""

    tokens: Tokens = field(default_factory=Tokens)
    requests: int = 0
    maps: int = 0
    ms: float = 0.0
    encode_ms: float = 0.0
    prefill_ms: float = 0.0
    ttft_ms: float | None = None
    spans: list[tuple[float, float]] = field(default_factory=list)
    """When its requests held slots, in seconds."""

    @property
    def decode_ms(self) -> float:
        """Time in which at least one of its requests held a slot."""
        return covered(self.spans) * 1e3

    def add(self, reply: Reply) -> None:
        self.tokens = self.tokens + reply.tokens
        self.requests += 1
        self.encode_ms += reply.encode_ms or 0.0
        self.prefill_ms += reply.prefill_ms or 0.0
        self.spans.append((reply.started, reply.finished))
        if self.ttft_ms is None:
            self.ttft_ms = reply.ttft_ms


class Looking:
    """Asks an engine about documents. The engine is loaded at the first question, never for none."""

    def __init__(
        self,
        load: Callable[[], Engine],
        settings: PageSettings,
        stages: Stages = ALL,
        *,
        verbose: bool = False,
    ) -> None:
        self._load = load
        self._settings = settings
        self._stages = stages
        self._engine: Engine | None = None
        self._crops = _Crops(settings, verbose)
        self.requests = 0
        """Prompts that the engine was given."""

    def stats(self) -> dict[str, Any] | None:
        """What the engine says of its work; None where it was not needed or says nothing."""
        return self._engine.stats() if isinstance(self._engine, Measured) else None

    def read(
        self,
        document: Document,
        questions: Mapping[int, tuple[Asked, Sequence[PageText], Sequence[Scored]]],
        light: LightReader,
    ) -> dict[int, tuple[Reading, Work]]:
        """Answers to several questions about one document, asked together.

        `questions`: number -> question, chosen pages, all lines by relevance. Raises `EngineLoadError`.
        """
        reader = self._reader(light)
        steps = {number: reader.steps(*question) for number, question in questions.items()}
        free = {number for number, question in questions.items() if question[0].everything}
        work = {number: Work() for number in steps}
        readings: dict[int, Reading] = {}
        seen: dict[int, Seen | None] = dict.fromkeys(steps)
        while seen:
            wishes: dict[int, Wish] = {}
            for number, last in seen.items():
                began = time.perf_counter()
                try:
                    wishes[number] = steps[number].send(last)  # type: ignore[arg-type]  # None starts it
                except StopIteration as end:
                    readings[number] = end.value
                work[number].ms += (time.perf_counter() - began) * 1e3
            began = time.perf_counter()
            seen = dict(self._round(document, wishes, work, free))
            for number in wishes:
                work[number].ms += (time.perf_counter() - began) * 1e3 / len(wishes)
        return {number: (readings[number], work[number]) for number in steps}

    def forget(self) -> None:
        """Drop the crops: the document is done with."""
        self._crops.clear()

    def stop(self) -> None:
        """End the worker; the engine stays loaded."""
        self._crops.close()

    def close(self) -> None:
        """Free the engine and the worker. May be called twice."""
        self.stop()
        if self._engine is not None:
            self._engine.close()

    def _reader(self, light: LightReader) -> VisualReader:
        engine = self._loaded()
        form = QuestionForm.of(engine.card) if isinstance(engine, AskedEngine) else QuestionForm()
        profile: EngineProfile = engine.profile
        return VisualReader(
            light, form, Sight(profile.factor, profile.max_tokens, profile.legible), self._stages
        )

    def _loaded(self) -> Engine:
        if self._engine is None:
            self._engine = self._load()
        return self._engine

    def _round(
        self, document: Document, wishes: Mapping[int, Wish], work: Mapping[int, Work], free: set[int]
    ) -> dict[int, Seen]:
        """Grant one wish of each question."""
        looks = [(number, look) for number, wish in wishes.items() for look in wish.looks]
        finds = {number: wish.find for number, wish in wishes.items() if wish.find is not None}
        needed = [key for _, look in looks for key in _keys(document, look)]
        needed += [key for find in finds.values() for key in _keys(document, find.look)]
        pixels = self._crops.get(document, list(dict.fromkeys(needed)))
        soon = [(document.number, *image) for wish in wishes.values() for image in wish.soon]
        self._crops.prepare(document, list(dict.fromkeys(soon)))
        requests: list[Request] = []
        replies: dict[int, Reply] = {}
        for at, (number, look) in enumerate(looks):
            place = Place(document.number, look.images[0][0], 1, at, len(looks))
            limit = FREE_TOKENS if number in free else ANSWER_TOKENS
            made = _request(place, document, look, pixels, limit)
            if isinstance(made, Failure):
                replies[at] = Reply(place, "", failure=made)
            else:
                requests.append(made)
        if requests:
            self.requests += len(requests)
            feed = RequestFeed(_once(requests))
            for reply in generate(self._loaded(), feed):
                replies[reply.place.request] = reply
        answered: dict[int, list[Reply]] = {number: [] for number in wishes}
        for at, (number, _) in enumerate(looks):
            answered[number].append(replies[at])
            work[number].add(replies[at])
        return {
            number: Seen(
                tuple(answered[number]),
                self._map(document, finds[number], pixels, work[number]) if number in finds else None,
            )
            for number in wishes
        }

    def _map(
        self, document: Document, find: Find, pixels: Mapping[Key, Pixels | Failure], work: Work
    ) -> NDArray[np.float32] | None:
        """A value map, or None where the engine has none: then the whole page is read instead."""
        engine = self._loaded()
        made = _request(Place(document.number, 1, 1), document, find.look, pixels, 1)
        if isinstance(made, Failure) or not isinstance(engine, Focusing):
            return None
        work.maps += 1
        try:
            found = engine.value_map(made, find.phrase)
        except Exception:  # any library: a map only saves work, and without it everything is read
            return None
        if found is not None:
            work.tokens = work.tokens + Tokens(found.size, found.size, found.size)
        return found


class _Crops:
    """Crops of pages, rendered in one worker process and kept, the last used ones longest."""

    def __init__(self, settings: PageSettings, verbose: bool) -> None:
        self._settings = settings
        self._pool = Pool(1, verbose=verbose)
        self._kept: OrderedDict[Key, Pixels] = OrderedDict()
        self._nbytes = 0
        self._working: tuple[Document, int, tuple[Chunk, ...]] | None = None

    def get(self, document: Document, keys: Sequence[Key]) -> dict[Key, Pixels | Failure]:
        """The pixels of crops, or why there are none. Waits for them."""
        found: dict[Key, Pixels | Failure] = {key: self._kept[key] for key in keys if key in self._kept}
        missing = [key for key in keys if key not in found]
        if self._working is not None and missing:  # it may be what is being rendered already
            found |= {key: value for key, value in self._finish().items() if key in missing}
            missing = [key for key in missing if key not in found]
        for page in dict.fromkeys(key[1] for key in missing):
            self._start((document, page, tuple(key[2] for key in missing if key[1] == page)))
            found |= self._finish()
        for key in keys:
            if key in self._kept:
                self._kept.move_to_end(key)
        return found

    def prepare(self, document: Document, keys: Sequence[Key]) -> None:
        """Begin to render crops that may be wanted next, those of one page; returns at once."""
        missing = [key for key in keys if key not in self._kept]
        if self._working is None and missing:
            page = missing[0][1]
            self._start((document, page, tuple(key[2] for key in missing if key[1] == page)))

    def clear(self) -> None:
        if self._working is not None:
            self._finish()
        self._kept.clear()
        self._nbytes = 0

    def close(self) -> None:
        self._pool.close()

    def _start(self, job: tuple[Document, int, tuple[Chunk, ...]]) -> None:
        from hiresvlm.run.prepare import crop

        document, page, chunks = job
        self._working = job
        timeout_s = self._settings.timeout_s
        self._pool.submit(page, crop, document, page, chunks, self._settings, timeout_s=timeout_s)

    def _finish(self) -> dict[Key, Pixels | Failure]:
        """Wait for what is being rendered, keep it and give it back."""
        assert self._working is not None
        document, page, chunks = self._working
        done: list[Done] = []
        while not done:
            done = self._pool.poll(1.0)
        self._working = None
        value = done[0].value if done[0].trouble is None else _trouble(done[0].trouble)
        keys = [(document.number, page, chunk) for chunk in chunks]
        if isinstance(value, Failure):
            return dict.fromkeys(keys, value)
        for key, pixels in zip(keys, value, strict=True):
            if key not in self._kept:
                self._kept[key] = pixels
                self._nbytes += pixels.nbytes
        result: dict[Key, Pixels | Failure] = dict(zip(keys, value, strict=True))
        while self._nbytes > CROP_BYTES and len(self._kept) > 1:
            self._nbytes -= self._kept.popitem(last=False)[1].nbytes
        return result


class Driven:
    """A reader for one question at a time, as a schema asks its fields."""

    def __init__(self, looking: Looking, document: Document, light: LightReader) -> None:
        self._looking = looking
        self._document = document
        self._light = light
        self.work: list[Work] = []
        self.readings: list[Reading] = []

    def read(self, asked: Asked, pages: Sequence[PageText], ranked: Sequence[Scored]) -> Reading:
        reading, work = self._looking.read(self._document, {0: (asked, pages, ranked)}, self._light)[0]
        self.work.append(work)
        self.readings.append(reading)
        return reading


def total(work: Sequence[Work]) -> Work:
    """Work of several questions together."""
    result = Work()
    for one in work:
        result.tokens = result.tokens + one.tokens
        result.requests += one.requests
        result.maps += one.maps
        result.ms += one.ms
        result.encode_ms += one.encode_ms
        result.prefill_ms += one.prefill_ms
        result.spans += one.spans
        result.ttft_ms = one.ttft_ms if result.ttft_ms is None else result.ttft_ms
    return result


def _keys(document: Document, look: Look) -> list[Key]:
    return [(document.number, page, chunk) for page, chunk in look.images]


def _request(
    place: Place, document: Document, look: Look, pixels: Mapping[Key, Pixels | Failure], limit: int
) -> Request | Failure:
    views = []
    for (_, chunk), key in zip(look.images, _keys(document, look), strict=True):
        found = pixels[key]
        if isinstance(found, Failure):
            return found
        views.append(View(chunk.box, chunk.role, found))
    return Request(place, tuple(views), look.prompt, limit)


def _once(requests: Sequence[Request]) -> Callable[[bool], list[Request] | None]:
    left = [list(requests)]

    def source(wait: bool) -> list[Request] | None:
        return left.pop() if left else None

    return source


def _trouble(trouble: Trouble) -> Failure:
    if trouble is Trouble.TIMEOUT:
        return Failure(Step.PAGES, FailureKind.TIMEOUT, "a part of the page took too long to render", True)
    return Failure(Step.PAGES, FailureKind.CRASH, "a part of the page could not be rendered", True)
