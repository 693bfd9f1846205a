"""An engine without a model: it answers with the sizes of what it was shown.

For tests and for timing everything around an engine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hiresvlm.datatypes import Reply, Tokens
from hiresvlm.engines import EngineInfo, EngineProfile, Feed

if TYPE_CHECKING:
    from hiresvlm.datatypes import Request
    from hiresvlm.settings import EngineSettings


class EchoEngine:
    """Replies with one line such as "[tile 448x224]" per view, in the order of the feed."""

    def __init__(self, settings: EngineSettings) -> None:
        self.info, self.profile = self.describe(settings)

    @classmethod
    def describe(cls, settings: EngineSettings) -> tuple[EngineInfo, EngineProfile]:
        return EngineInfo("echo", device="cpu"), EngineProfile(legible=12.0, counts_tokens=False)

    def generate(self, feed: Feed) -> Iterator[Reply]:
        while requests := feed.take(1, wait=True):
            for request in requests:
                yield self._answer(request)

    def close(self) -> None:
        """Nothing to free."""

    def _answer(self, request: Request) -> Reply:
        started = time.perf_counter()
        sizes = [(int(view.pixels.shape[1]), int(view.pixels.shape[0])) for view in request.views]
        shown = zip(request.views, sizes, strict=True)
        factor = self.profile.factor
        visual = sum(-(-width // factor) * -(-height // factor) for width, height in sizes)
        return Reply(
            request.place,
            "\n".join(f"[{view.role} {width}x{height}]" for view, (width, height) in shown),
            tokens=Tokens(visual=visual, visual_full=visual, prompt=visual),
            started=started,
            finished=time.perf_counter(),
        )
