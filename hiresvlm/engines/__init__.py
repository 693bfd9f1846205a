"""Engines: images and an instruction in, text out.

An engine knows nothing of pages, files or records. It pulls requests from a `Feed` whenever it has
room and yields replies in any order, one per request, each with the request's `place`.

To add an engine:
1. write `engines/x.py` with a class that satisfies `Loadable`; import heavy libraries in `__init__`,
   never at module level, so that `--help`, `plan` and a rerun with nothing to do stay fast;
2. add a row to `ENGINES`;
3. the contract test (`tests/test_engines.py`) runs over every row.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from hiresvlm.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hiresvlm.datatypes import Reply, Request
    from hiresvlm.settings import EngineSettings, Settings


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What a record says about the engine; all but `device` are part of the settings digest."""

    name: str
    model: str | None = None
    revision: str | None = None
    quant: str | None = None
    device: str | None = None


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """What the chunker must know about an engine. Numbers are measured, the source is in the engine."""

    legible: float
    """Height of capitals in chunk pixels at which the engine reads without loss, also noisy scans."""
    legible_clean: float | None = None
    """The same for clean sharp pages (screenshots, drawn PDF pages); None: no lower."""
    factor: int = 28
    """Pixels per visual token and side; chunk sizes are multiples of it."""
    max_tokens: int = 1280
    """Visual tokens of one image at most."""
    tile: int | None = None
    """Side in pixels of the square that holds each image, whatever its size; None: images have any size."""
    counts_tokens: bool = True
    """False where no language model runs: records then say `planned: true`."""


class Feed(Protocol):
    """Where an engine gets its work."""

    def take(self, n: int, wait: bool) -> list[Request]:
        """Up to `n` requests. With `wait`, blocks until there is one; an empty list then means the end.

        Without `wait` an empty list means that nothing is ready at present. An engine with work in
        hand must not wait.
        """
        ...


class Engine(Protocol):
    """A loaded engine."""

    info: EngineInfo
    profile: EngineProfile

    def generate(self, feed: Feed) -> Iterator[Reply]:
        """Answer every request of the feed exactly once, in any order."""
        ...

    def close(self) -> None:
        """Free what was loaded. May be called twice."""
        ...


@runtime_checkable
class Measured(Protocol):
    """An engine that keeps count of its work."""

    def stats(self) -> dict[str, Any]:
        """Times, memory and counts for the report."""
        ...


@runtime_checkable
class Asked(Protocol):
    """An engine that follows instructions and has wishes how a question is put to it."""

    @property
    def card(self) -> Mapping[str, Any]:
        """What the model folder says about itself; of its key `ask` see `ask.visual.QuestionForm`."""
        ...


@runtime_checkable
class Focusing(Protocol):
    """An engine that can say where in an image the words of a question are."""

    def value_map(self, request: Request, phrase: str) -> NDArray[np.float32] | None:
        """Likeness of each visual token of the first image of a request to a phrase of its prompt.

        (rows, columns), 0 to 1; None where it cannot be made.
        """
        ...


class Loadable(Engine, Protocol):
    """An engine class: what a row of `ENGINES` names."""

    def __init__(self, settings: EngineSettings) -> None:
        """Load. Raises `errors.EngineLoadError` with a hint when that is impossible."""
        ...

    @classmethod
    def describe(cls, settings: EngineSettings) -> tuple[EngineInfo, EngineProfile]:
        """Identity and profile without loading anything."""
        ...


ENGINES = {
    "light": "hiresvlm.engines.light:LightEngine",
    "vlm": "hiresvlm.engines.vlm:VlmEngine",
    "echo": "hiresvlm.engines.echo:EchoEngine",
}
"""Name -> "module:class", imported when first used."""


def find(name: str) -> type[Loadable]:
    """The class of an engine. Raises `UsageError` with the nearest name for an unknown one."""
    try:
        module, _, cls = ENGINES[name].partition(":")
    except KeyError:
        near = difflib.get_close_matches(name, ENGINES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"engines: {', '.join(sorted(ENGINES))}"
        raise UsageError(f"there is no engine named {name!r}", hint) from None
    engine: type[Loadable] = getattr(importlib.import_module(module), cls)
    return engine


AUTOMATIC = ("vlm", "light")
"""What `--engine auto` may pick, best first."""


def resolve(settings: Settings) -> tuple[Settings, str | None]:
    """Settings with `auto` replaced by an engine, and the reason for the choice (None: the user chose)."""
    engine, reason = settings.engine, None
    if engine.name == "auto":
        engine, reason = _automatic(engine)
    settings = replace(settings, engine=engine)
    reader = page_reader(settings)
    _, profile = find(reader.name).describe(reader)
    chunk = replace(
        settings.chunk,
        legible=profile.legible,
        legible_clean=profile.legible_clean,
        factor=profile.factor,
        max_tokens=profile.max_tokens,
        tile=profile.tile,
    )
    return replace(settings, chunk=chunk), reason


def page_reader(settings: Settings) -> EngineSettings:
    """The engine that reads the pages of a run.

    A model that answers questions is led by lines with boxes, and has its answers checked by them: so for
    `ask` these come from an engine of another kind (where the text layer does not have them).
    """
    if settings.task.name == "ask" and settings.engine.name == "vlm":
        return replace(settings.engine, name="light", model=None, device="auto", slots=None)
    return settings.engine


def _automatic(engine: EngineSettings) -> tuple[EngineSettings, str | None]:
    """An engine for `auto`. A model that the user named means `vlm`, and then there is nothing to explain."""
    from hiresvlm.engines.vlm import choice

    if engine.model is not None:
        return replace(engine, name="vlm"), None
    if engine.device != "cpu":
        model, reason = choice.choose()
        if model is not None:
            return replace(engine, name="vlm", model=model), reason
    else:
        reason = "--device cpu"
    return replace(engine, name="light"), f"{reason}; light reads on the CPU, nothing to download"


def digests(settings: Settings, automatic: bool, query: str | None = None) -> list[str]:
    """Settings digests whose records count as done: the run's own, and those `auto` may have made.

    For `ask`: those of one query.
    """
    names = [settings.engine.name]
    if automatic:
        names += [name for name in AUTOMATIC if name != settings.engine.name]
    models = {name: settings.engine.model if name == settings.engine.name else None for name in names}
    described = []
    for name, model in models.items():
        # The device is not in a digest, and one that was named may be none that the other engine knows.
        device = settings.engine.device if name == settings.engine.name else "auto"
        described.append(
            find(name).describe(replace(settings.engine, name=name, model=model, device=device))[0]
        )
    return [settings.digest(info, query) for info in described]
