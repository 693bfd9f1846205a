"""OCR on the CPU: Chinese, English and Japanese with the PP-OCRv6 models in the wheel of `rapidocr`.

Only the model files of that wheel are used, on ONNX Runtime: one session per model is shared by a
pool of threads, each of which reads one request on one core. Nothing is ever downloaded.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from hiresvlm import layout
from hiresvlm.datatypes import Failure, FailureKind, Line, Reply, Role, Step, Tokens
from hiresvlm.engines import EngineInfo, EngineProfile, Feed
from hiresvlm.errors import EngineLoadError, UsageError

if TYPE_CHECKING:
    from hiresvlm.datatypes import Request, View
    from hiresvlm.settings import EngineSettings

MODEL = "PP-OCRv6-small"
HINT = "install hiresvlm again with its dependencies"
LEGIBLE = 13.0
"""Of scans and photos. `bench chunking --sweep height` (seeds 1 and 2) puts the knee of its noisy pages at
9 px, but real print is worse: word F1 / CER of `auto` on the 23 of 45 scanned receipts that this number was
chosen on is 0.905 / 0.092 at 10 px, 0.905 / 0.098 at 11, 0.912 / 0.094 at 12, 0.912 / 0.092 at 13 and
0.910 / 0.090 at 14: a plateau from 12 px on. On the other 22: 0.914 at 12, 0.922 at 13, 0.920 at 14."""
LEGIBLE_CLEAN = 9.0
"""Of screenshots and drawn pages. The knee of the sweep is at 8 px (least height within 0.1 points of the
best CER; seeds 1 and 2: English, Chinese, and both with spaces between). One pixel more, because up to a
tenth of the text of a chunk may be smaller than what its scale follows (`SMALL_SHARE` in `chunking.auto`)."""
POLL_S = 0.01
"""How often the feed is asked for more while a slot is free and others are at work."""


class LightEngine:
    """Detects and recognises the lines of text of every view."""

    def __init__(self, settings: EngineSettings) -> None:
        self.info, self.profile = self.describe(settings)
        try:
            from hiresvlm.engines.light.reader import Reader
        except ImportError as error:
            raise EngineLoadError(f"engine light cannot be loaded: {error}", HINT) from error
        self._reader: Reader | None = Reader()
        self._slots = settings.slots or len(os.sched_getaffinity(0))

    @classmethod
    def describe(cls, settings: EngineSettings) -> tuple[EngineInfo, EngineProfile]:
        """Raises `UsageError` for a model or device that it does not have."""
        if settings.model not in (None, MODEL):
            raise UsageError(f"engine light has no model {settings.model!r}", f"its only model is {MODEL}")
        if settings.device not in ("auto", "cpu"):
            raise UsageError(f"engine light does not run on {settings.device!r}", "it runs on cpu")
        try:
            revision = version("rapidocr")
        except PackageNotFoundError as error:
            raise EngineLoadError("engine light needs the package rapidocr", HINT) from error
        info = EngineInfo("light", MODEL, revision, quant=None, device="cpu")
        profile = EngineProfile(LEGIBLE, LEGIBLE_CLEAN, factor=28, max_tokens=1280, counts_tokens=False)
        return info, profile

    def generate(self, feed: Feed) -> Iterator[Reply]:
        """Keeps as many requests in work as there are slots and yields replies as they are ready."""
        working: set[Future[Reply]] = set()
        with ThreadPoolExecutor(self._slots, thread_name_prefix="light") as pool:
            while True:
                free = self._slots - len(working)
                requests = feed.take(free, wait=not working) if free else []
                if not working and not requests:
                    return
                working |= {pool.submit(self._answer, request) for request in requests}
                timeout = POLL_S if len(working) < self._slots else None
                done, working = wait(working, timeout, FIRST_COMPLETED)
                for future in done:
                    yield future.result()

    def close(self) -> None:
        """Frees the models."""
        self._reader = None

    def _answer(self, request: Request) -> Reply:
        started = time.perf_counter()
        texts: list[str] = []
        lines: list[Line] = []
        failure: Failure | None = None
        try:
            for number, view in _readable(request.views):
                rows = layout.rows(self._read(view, number))
                texts.append(layout.text(rows))
                lines += itertools.chain.from_iterable(rows)
        except Exception as error:  # one view that cannot be read must not end the run
            # Only the class: the message of a foreign library may quote the document.
            message = f"engine light failed: {type(error).__name__}"
            failure = Failure(Step.ENGINE, FailureKind.ENGINE, message)
        visual = sum(_tokens(view, self.profile.factor) for view in request.views)
        return Reply(
            request.place,
            "\n".join(text for text in texts if text),
            tuple(lines),
            Tokens(visual=visual, visual_full=visual, prompt=visual),
            started=started,
            finished=time.perf_counter(),
            failure=failure,
        )

    def _read(self, view: View, number: int) -> list[Line]:
        if self._reader is None:
            raise RuntimeError("the engine is closed")
        return self._reader.read(view.pixels, number)


def _readable(views: Sequence[View]) -> list[tuple[int, View]]:
    """Numbered views, without the global ones where others show the same in detail."""
    numbered = list(enumerate(views))
    return [(i, view) for i, view in numbered if view.role is not Role.GLOBAL] or numbered


def _tokens(view: View, factor: int) -> int:
    """What a vision-language model would spend on a view."""
    height, width = view.pixels.shape[:2]
    return -(-int(width) // factor) * -(-int(height) // factor)
