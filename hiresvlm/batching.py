"""Requests on their way to an engine, and every one answered exactly once.

The feed is lazy: it pulls pages from the source only when the engine has room. Of the requests that
arrive together the largest goes first, so that a lack of memory shows at the start and not at the end;
none ever jumps ahead of one that was there before, so no page waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hiresvlm.datatypes import Failure, FailureKind, Place, Reply, Request, Step
from hiresvlm.engines import Engine
from hiresvlm.errors import HiresvlmError

Source = Callable[[bool], list[Request] | None]
"""Gives requests: `source(wait)` is a list that may be empty, or None at the end."""


class RequestFeed:
    """The `engines.Feed` of a run. Remembers what was taken until it is answered."""

    def __init__(self, source: Source, window: int = 32) -> None:
        self._source = source
        self._window = window
        self._ready: list[Request] = []
        self._ended = False
        self.taken: dict[Place, Request] = {}

    def any(self) -> bool:
        """Wait for the first request; False when there is none at all. Then no engine is needed."""
        while not self._ready and not self._ended:
            self._pull(wait=True)
        return bool(self._ready)

    def take(self, n: int, wait: bool) -> list[Request]:
        while not self._ended and len(self._ready) < self._window:
            if not self._pull(wait and not self._ready) and (not wait or self._ready):
                break
        given, self._ready = self._ready[:n], self._ready[n:]
        self.taken.update((request.place, request) for request in given)
        return given

    def _pull(self, wait: bool) -> bool:
        """Get more from the source; whether there was more."""
        more = self._source(wait)
        if more is None:
            self._ended = True
        elif more:
            self._ready += sorted(more, key=_pixels, reverse=True)
        return bool(more)


class _One:
    """A feed of a single request."""

    def __init__(self, request: Request) -> None:
        self._left = [request]

    def take(self, n: int, wait: bool) -> list[Request]:
        given, self._left = self._left[:n], self._left[n:]
        return given


def generate(engine: Engine, feed: RequestFeed) -> Iterator[Reply]:
    """Replies of all requests of the feed, each exactly once.

    When the engine dies in the middle, what it had taken is asked once more, one request at a time;
    what fails again is answered with a failure, and the run goes on with the rest of the feed.
    """
    while True:
        crashed = False
        try:
            for reply in engine.generate(feed):
                if feed.taken.pop(reply.place, None) is not None:  # an answer nobody waits for is dropped
                    yield reply
        except HiresvlmError:
            raise
        except Exception:  # any engine, any library: asking again alone shows what it means
            if not feed.taken:
                raise
            crashed = True
        if not feed.taken and not crashed:
            return
        for request in list(feed.taken.values()):
            yield _alone(engine, request)
            del feed.taken[request.place]
        if not crashed:
            return


def _alone(engine: Engine, request: Request) -> Reply:
    """Ask for one request by itself; a second crash, or silence, becomes a failure."""
    try:
        for reply in engine.generate(_One(request)):
            if reply.place == request.place:
                return reply
        failure = Failure(Step.ENGINE, FailureKind.ENGINE, "the engine gave no reply", retryable=True)
    except MemoryError:
        message = "the engine ran out of memory on this part of the page"
        failure = Failure(Step.ENGINE, FailureKind.OUT_OF_MEMORY, message, retryable=True)
    except Exception as error:  # the type only: a message may quote the document
        message = f"the engine failed twice ({type(error).__name__})"
        failure = Failure(Step.ENGINE, FailureKind.ENGINE, message, retryable=True)
    return Reply(request.place, "", failure=failure)


def _pixels(request: Request) -> int:
    return sum(view.pixels.size for view in request.views)
