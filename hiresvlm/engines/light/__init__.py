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
"""Word F1 of `auto` on 23 scanned receipts, with `CHUNK_COST` 96: 0.918 at capitals of 12 px, 0.920 at 13
and 0.918 at 14. These differ by a few words, so it is a plateau, not a knee. With a cost of 64 it is 0.917
on the same receipts and 0.919 on all 45."""
LEGIBLE_CLEAN = 9.0
"""Measured with `auto` on four clean samples (a screenshot, a ledger, an invoice, three PDF pages: 13,000
characters in Chinese and English): kept / CER is 1.0000 / 0.0012 at 12 px, 1.0000 / 0.0015 at 10, 0.9998 /
0.0018 at 9, 0.9996 / 0.0022 at 8 and 0.9994 / 0.0033 at 7. Spaces between Chinese and Latin go first. The
same samples are what the tests check, so other pages may want another number."""
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
