"""Every setting and its default, frozen; the only place where defaults are written."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hiresvlm.engines import EngineInfo

PIPELINE = 2
"""Raised when the same settings give other text than before: old records are then not reused."""

READERS = 1
"""Raised when `ask` answers otherwise than before from the same text."""

PAGE_DPI = 150
"""Page pixels: the coordinate frame of boxes and sizes of PDF pages."""


@dataclass(frozen=True, slots=True)
class PageSettings:
    """Limits and choices of rendering. Pixel limits hold before memory is spent."""

    max_image_pixels: int = 250_000_000
    """A larger image (in a file or inside a PDF page) is refused as a decompression bomb."""
    max_analysis_pixels: int = 6_000_000
    """The raster that is analysed for planning never has more pixels."""
    max_pages: int = 20_000
    """Pages of one document."""
    timeout_s: float = 120.0
    """Time for one page in a worker."""
    text_layer: str = "ignore"
    password: str | None = None


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """How pages are cut. `legible` (both), `factor`, `max_tokens`, `tile` come from the engine's profile."""

    strategy: str = "auto"
    max_tokens_per_page: int | None = None
    legible: float = 12.0
    """Height of capitals in chunk pixels that the engine needs."""
    legible_clean: float | None = None
    """The same where the page is clean and sharp; None: no lower."""
    factor: int = 28
    max_tokens: int = 1280
    tile: int | None = None
    """Side of the square that holds each image and costs the same when it is not full; None: any size."""
    max_page_pixels: int = 60_000_000
    """The chunks of a page never have more pixels together (overlap aside)."""


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """Which engine, which model, where."""

    name: str = "light"
    model: str | None = None
    quant: str = "int4"
    device: str = "auto"
    slots: int | None = None
    """Requests in work at a time; None: the engine decides."""
    prune: bool = False
    """Engine `vlm`: drop blank cells of documents before the vision tower."""


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """What is asked of every page."""

    name: str = "ocr"
    prompt: str | None = None
    """The user's own instruction."""
    max_new_tokens: int = 2048
    keep_chunks: bool = False
    questions: tuple[str, ...] = ()
    """`ask`: one record for each document and question."""
    schema: str | None = None
    """`ask`: a JSON Schema as JSON text, instead of questions; one record for each document."""
    top_pages: int = 8
    """`ask`: pages of a document that a reader looks at in detail; the lexical stage chooses them."""
    wordings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """`ask`: a user's names of fields, added to the built-in ones."""

    @property
    def queries(self) -> tuple[str, ...]:
        """What each document is asked: the questions, or the schema."""
        return self.questions if self.schema is None else (self.schema,)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a run goes about its work; none of it changes a page's text."""

    pages: str | None = None
    retry_errors: bool = False
    max_runtime_s: float | None = None
    workers: int = 2
    """Rendering processes."""
    bytes_in_flight: int = 192 * 2**20
    """Rendered pixels that wait for the engine or are in it."""


@dataclass(frozen=True, slots=True)
class Settings:
    page: PageSettings = field(default_factory=PageSettings)
    chunk: ChunkSettings = field(default_factory=ChunkSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    task: TaskSettings = field(default_factory=TaskSettings)
    run: RunSettings = field(default_factory=RunSettings)

    def digest(self, engine: EngineInfo, query: str | None = None) -> str:
        """Short hash of all that decides a page's text; the settings part of the resume key.

        Not in it: device, slots, pages, password, paths. For `ask` it is that of one query, and the page
        range is in it, because the answer of a document depends on which of its pages are read.
        """
        decisive = {
            "pipeline": PIPELINE,
            "task": self.task.name,
            "prompt": self.task.prompt,
            "engine": engine.name,
            "model": engine.model,
            "revision": engine.revision,
            "quant": engine.quant,
            "strategy": self.chunk.strategy,
            "max_tokens_per_page": self.chunk.max_tokens_per_page,
            "max_new_tokens": self.task.max_new_tokens,
            "text_layer": self.page.text_layer,
        }
        if self.engine.prune and engine.name == "vlm":
            decisive["prune"] = True
        if query is not None:
            decisive |= {
                "readers": READERS,
                "query": query,
                "schema": self.task.schema is not None,
                "top_pages": self.task.top_pages,
                "wordings": self.task.wordings,
                "pages": self.run.pages,
            }
        text = json.dumps(decisive, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
