"""The values that travel through a run, in the order in which they are made.

    Document -> PreparedPage (with its Plan and Views) -> Request -> Reply -> Answer -> record

All are frozen. `Place` says where a value belongs and carries the *counts* (pages of the document,
chunks of the page), so a later step knows when a page is complete without asking an earlier one.
`Failure` and `Caution` travel in the same stream: a page always yields exactly one record.

Coordinates: `Box` is in *page pixels* (the page at 150 dpi; an image's own pixels after EXIF
rotation), origin top left, unless a docstring says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Pixels = NDArray[np.uint8]
    """RGB raster, shape (height, width, 3), uint8."""


# ---------------------------------------------------------------------------------------- places


class Box(NamedTuple):
    """Rectangle (x0, y0, x1, y1); x1 and y1 are exclusive."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        return self.y1 - self.y0

    @property
    def area(self) -> float:
        return max(0.0, self.width) * max(0.0, self.height)

    def intersection(self, other: Box) -> Box:
        """The common rectangle; its width or height is <= 0 when there is none."""
        return Box(
            max(self.x0, other.x0), max(self.y0, other.y0), min(self.x1, other.x1), min(self.y1, other.y1)
        )

    def union(self, other: Box) -> Box:
        return Box(
            min(self.x0, other.x0), min(self.y0, other.y0), max(self.x1, other.x1), max(self.y1, other.y1)
        )


class Place(NamedTuple):
    """Where a value belongs: document number in this run, page (1-based) and request of that page."""

    document: int
    page: int
    pages: int
    request: int = 0
    requests: int = 1


# --------------------------------------------------------------------------- failures and cautions


class Step(StrEnum):
    """Where in the line of steps something went wrong."""

    DOCUMENTS = "documents"
    PAGES = "pages"
    CHUNKING = "chunking"
    ENGINE = "engine"
    ANSWERS = "answers"


class FailureKind(StrEnum):
    """Closed list of `failures[].kind`. Text is known to be missing."""

    NOT_FOUND = "not_found"
    UNREADABLE = "unreadable"
    EMPTY = "empty"
    UNSUPPORTED = "unsupported"
    CORRUPT = "corrupt"
    ENCRYPTED = "encrypted"
    NO_PAGES = "no_pages"
    TOO_LARGE = "too_large"
    CHANGED = "changed"
    TIMEOUT = "timeout"
    CRASH = "crash"
    RENDER = "render"
    ENGINE = "engine"
    OUT_OF_MEMORY = "out_of_memory"
    TRUNCATED = "truncated"
    LOOP = "loop"
    REFUSAL = "refusal"


class CautionKind(StrEnum):
    """Closed list of `warnings[].kind`. Doubt, not loss: the status stays as it is."""

    PAGE_RANGE = "page_range"
    SUFFIX = "suffix"
    REPAIRED = "repaired"
    DAMAGED = "damaged"
    BUDGET = "budget"
    NO_TEXT = "no_text"
    LOW_CONFIDENCE = "low_confidence"
    FRAMES = "frames"
    INSTRUCTION = "instruction"
    """`ask`: a line of the document talks to a model; it was taken for data."""
    QUESTION = "question"
    """`ask`: the question asks for more than this reader can find."""
    SCHEMA = "schema"
    """`ask --schema`: the object does not satisfy the schema."""
    CONTRADICTION = "contradiction"
    """`ask`: the model's answer and the recognised text do not agree."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something is missing. `message` is ours, never text from the document."""

    step: Step
    kind: FailureKind
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Caution:
    """A doubt about a page that has its text."""

    kind: CautionKind
    message: str


# -------------------------------------------------------------------------------------- documents


@dataclass(frozen=True, slots=True)
class Document:
    """One input file, found but not yet opened."""

    number: int
    """Position in this run, from 0: the order of the output."""
    path: str
    """What to open. May hold surrogate escapes (undecodable bytes)."""
    source: str
    """What the record shows: the PATH argument, joined with the path below it."""
    key: str
    """Path relative to its PATH argument, unique in the run: half of the resume key."""
    size: int = 0
    """Bytes."""
    mtime_ns: int = 0
    inode: int = 0
    """Two files of one name, size and time (two folders of scans, unpacked) are told apart by it."""
    failure: Failure | None = None
    """Set when the file cannot even be looked at (missing, not a regular file)."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What one look into a document tells: its content hash and page count, or why there is none."""

    document: int
    sha256: str | None
    pages: int = 0
    failure: Failure | None = None
    cautions: tuple[Caution, ...] = ()


# ------------------------------------------------------------------------------ pages and chunks


class Role(StrEnum):
    """What an image is for the engine. Text read from a `GLOBAL` view is never merged into the page."""

    GLOBAL = "global"
    TILE = "tile"
    ROI = "roi"


@dataclass(frozen=True, slots=True)
class Chunk:
    """One rectangle of a page and the size at which an engine gets it."""

    box: Box
    size: tuple[int, int]
    """Width and height in pixels of the rendered box."""
    canvas: tuple[int, int]
    """Size after padding right and bottom to multiples of the model's factor."""
    role: Role = Role.TILE

    @property
    def scale(self) -> tuple[float, float]:
        """Chunk pixels per page pixel, in x and y."""
        return self.size[0] / self.box.width, self.size[1] / self.box.height

    def tokens(self, factor: int) -> int:
        """Visual tokens of a family that spends one token on `factor` x `factor` pixels."""
        return -(-self.canvas[0] // factor) * -(-self.canvas[1] // factor)

    def to_page(self, box: Box) -> Box:
        """Map a box in pixels of this chunk's image to page pixels, clipped to the chunk."""
        sx, sy = self.scale
        return Box(
            self.box.x0 + min(max(box.x0, 0), self.size[0]) / sx,
            self.box.y0 + min(max(box.y0, 0), self.size[1]) / sy,
            self.box.x0 + min(max(box.x1, 0), self.size[0]) / sx,
            self.box.y0 + min(max(box.y1, 0), self.size[1]) / sy,
        )


def naive_tokens(factor: int) -> int:
    """Visual tokens of the naive method: a page stretched to 4 x 4 tiles of 448 px, and a thumbnail."""
    return 17 * (448 // factor) ** 2


@dataclass(frozen=True, slots=True)
class Plan:
    """How a page is cut: what a planner returns, a pure function of page analysis and settings."""

    strategy: str
    page: tuple[int, int]
    """Page size in page pixels."""
    chunks: tuple[Chunk, ...]
    joint: bool = False
    """All chunks go into one prompt (the published meaning of some strategies), else one request each."""
    cautions: tuple[Caution, ...] = ()

    def tokens(self, factor: int) -> int:
        return sum(chunk.tokens(factor) for chunk in self.chunks)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text. `box` is in pixels of the image in a `Reply`, in page pixels in an `Answer`."""

    text: str
    box: Box | None = None
    confidence: float | None = None
    chunk: int = 0
    """Number of the view (in a reply) or of the chunk (in an answer) that it was read from."""
    weakest: float | None = None
    """Least confidence of a part of it (a token), where the engine knows it."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A chunk with its pixels, as an engine sees it. `box` tells where on the page it lies."""

    box: Box
    role: Role
    pixels: Pixels


@dataclass(frozen=True, slots=True, eq=False)
class PreparedPage:
    """One page, rendered and cut by a worker, ready for an engine; or the reason why not."""

    place: Place
    size: tuple[int, int] = (0, 0)
    rotation: int = 0
    """Degrees clockwise that the file asked for (/Rotate or EXIF) and that were applied."""
    points: tuple[float, float] | None = None
    blank: bool = False
    cap_height: float | None = None
    """Median height of capitals in page pixels."""
    plan: Plan | None = None
    views: tuple[View, ...] = ()
    layer: tuple[Line, ...] | None = None
    """Lines of the PDF text layer, when it was asked for and is sound."""
    cautions: tuple[Caution, ...] = ()
    failure: Failure | None = None
    render_ms: float = 0.0
    chunk_ms: float = 0.0

    @property
    def nbytes(self) -> int:
        return sum(view.pixels.nbytes for view in self.views)

    def without_pixels(self) -> PreparedPage:
        return replace(self, views=())


# ---------------------------------------------------------------------------- requests and replies


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What an engine is asked: images in order, an instruction, limits. It knows no page and no file."""

    place: Place
    views: tuple[View, ...]
    prompt: str
    max_new_tokens: int
    transcribes: bool = False
    """The reply is the text of the images and nothing else. Then an engine may use the wording that its model
    was trained with, and judge a reply by how much ink there is."""


class Stop(StrEnum):
    """Why an engine stopped writing."""

    EOS = "eos"
    LENGTH = "length"
    LOOP = "loop"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class Tokens:
    """True counts of one request, without padding."""

    visual: int = 0
    visual_full: int = 0
    """Before pruning."""
    prompt: int = 0
    """Includes `visual`."""
    output: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.visual + other.visual,
            self.visual_full + other.visual_full,
            self.prompt + other.prompt,
            self.output + other.output,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """What an engine read. One per request, in any order."""

    place: Place
    text: str
    lines: tuple[Line, ...] = ()
    """Lines with boxes in pixels of view `line.chunk`. Without boxes when the engine knows none; then `text`
    decides, and a line's confidence is what it adds."""
    tokens: Tokens = field(default_factory=Tokens)
    stop: Stop = Stop.EOS
    started: float = 0.0
    """`time.perf_counter()` when the request got its slot."""
    finished: float = 0.0
    encode_ms: float | None = None
    prefill_ms: float | None = None
    ttft_ms: float | None = None
    """From the start to the first token."""
    failure: Failure | None = None


# ---------------------------------------------------------------------------------------- answers


class Status(StrEnum):
    OK = "ok"
    PARTIAL = "partial"
    """Text is known to be missing."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Answer:
    """The text of one page, merged from its replies."""

    place: Place
    status: Status
    text: str
    lines: tuple[Line, ...] = ()
    failures: tuple[Failure, ...] = ()
    cautions: tuple[Caution, ...] = ()

    @property
    def confidence(self) -> float | None:
        """Mean over characters, None where no engine gave one."""
        weighed = [(len(line.text), line.confidence) for line in self.lines if line.confidence is not None]
        total = sum(weight for weight, _ in weighed)
        return sum(weight * value for weight, value in weighed) / total if total else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where an answer stands: the text is the document's, the box in page pixels."""

    page: int
    box: Box | None
    text: str


Record = dict[str, Any]
"""One JSON object of the output, as `writers` makes it."""
