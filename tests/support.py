"""Documents that tests make, a way to run the program, and engines that misbehave on purpose.

Fonts are those that PyMuPDF carries (`helv`, `tiro`, `cour`, and `cjk` for Chinese and Japanese), so
no test needs a font of the system.
"""

from __future__ import annotations

import functools
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
from PIL import Image, ImageDraw, ImageFont

from hiresvlm.console import Reporter
from hiresvlm.datatypes import Box, Line, Reply, Request, Stop, Tokens
from hiresvlm.documents import expand
from hiresvlm.engines import EngineInfo, EngineProfile, Feed
from hiresvlm.report import Report
from hiresvlm.run import Sink, run
from hiresvlm.settings import Settings
from hiresvlm.writers import Journal
from hiresvlm.writers.record import Context

# ------------------------------------------------------------------------------------- documents


@functools.cache
def font(size: int, name: str = "cjk") -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(io.BytesIO(pymupdf.Font(name).buffer), size)


def text_image(
    lines: Sequence[str], *, size: int = 24, width: int = 700, margin: int = 20, dark: bool = False
) -> Image.Image:
    """A picture of lines of text, `size` pixels high, black on white or white on black."""
    step = round(size * 1.6)
    paper, ink = ("black", "white") if dark else ("white", "black")
    image = Image.new("RGB", (width, 2 * margin + step * len(lines)), paper)
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((margin, margin + number * step), line, fill=ink, font=font(size))
    return image


def make_pdf(path: Path, pages: Sequence[Sequence[str]], **save: Any) -> Path:
    """A PDF with a text layer: one list of lines a page, 12 pt. `save` goes to `Document.save`."""
    document = pymupdf.open()
    for lines in pages:
        page = document.new_page(width=400, height=300)
        for number, line in enumerate(lines):
            page.insert_text((40, 50 + 20 * number), line, fontsize=12, fontname="china-s")
    document.save(path, **save)
    return path


def make_png(path: Path, lines: Sequence[str] = ("Hello world 123",), **kind: Any) -> Path:
    text_image(lines, **kind).save(path)
    return path


# ------------------------------------------------------------------------------------ the program


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "hiresvlm", *map(str, arguments)]


def cli(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run the program to its end; `stdout`, `stderr` and `returncode` are what a user sees."""
    options = {"capture_output": True, "text": True, "timeout": 120, **options}
    return subprocess.run(command(*arguments), check=False, **options)


def records(text: str) -> list[dict[str, Any]]:
    """Records of JSONL text; every line must be one."""
    return [json.loads(line) for line in text.splitlines()]


def read_records(path: Path) -> list[dict[str, Any]]:
    return records(path.read_text(encoding="utf-8"))


# ---------------------------------------------------------------------------------------- engines


class ScriptedEngine:
    """Answers each request with `script(request)`: a text, a `Reply`, or an exception to raise.

    `asked` is the history of requests. Subclasses misbehave in other ways.
    """

    def __init__(self, script: Callable[[Request], str | Reply | Exception]) -> None:
        self.info = EngineInfo("scripted", device="cpu")
        self.profile = EngineProfile(legible=12.0)
        self.asked: list[Request] = []
        self.closed = 0
        self._script = script

    def generate(self, feed: Feed) -> Iterator[Reply]:
        while requests := feed.take(2, wait=True):
            for request in reversed(requests):  # any order is allowed
                self.asked.append(request)
                answer = self._script(request)
                if isinstance(answer, Exception):
                    raise answer
                yield reply(request, answer) if isinstance(answer, str) else answer

    def close(self) -> None:
        self.closed += 1


def reply(request: Request, text: str, lines: Sequence[Line] = (), stop: Stop = Stop.EOS) -> Reply:
    now = time.perf_counter()
    tokens = Tokens(visual=10, visual_full=10, prompt=30, output=len(text))
    return Reply(request.place, text, tuple(lines), tokens, stop, started=now, finished=now + 0.001)


class OracleEngine(ScriptedEngine):
    """Knows the gold lines of one page and where they stand (page pixels).

    Of a chunk it returns the lines that lie wholly inside, and garbles those that the chunk cuts, as
    a real model does. So seam handling is tested exactly and fast, with boxes or with text alone.
    """

    def __init__(self, gold: Sequence[Line], *, boxes: bool = True) -> None:
        super().__init__(self._read)
        self._gold = gold
        self._boxes = boxes

    def _read(self, request: Request) -> Reply:
        found = []
        for number, view in enumerate(request.views):
            sx = view.pixels.shape[1] / view.box.width
            for line in self._gold:
                assert line.box is not None
                seen = line.box.intersection(view.box)
                if seen.width <= 0 or seen.height <= 0:
                    continue
                share = seen.area / line.box.area
                if share < 0.25:  # a sliver of a line is not recognised as text at all
                    continue
                text = line.text if share > 0.99 else _garbled(line.text, line.box, seen)
                box = Box(
                    *(
                        round(v, 2)
                        for v in (
                            (seen.x0 - view.box.x0) * sx,
                            (seen.y0 - view.box.y0) * sx,
                            (seen.x1 - view.box.x0) * sx,
                            (seen.y1 - view.box.y0) * sx,
                        )
                    )
                )
                found.append(Line(text, box, 0.9 if share > 0.99 else 0.4, number))
        found.sort(
            key=lambda line: (line.chunk, line.box.y0 if line.box else 0, line.box.x0 if line.box else 0)
        )
        text = "\n".join(line.text for line in found)
        return reply(request, text, found if self._boxes else ())


def _garbled(text: str, whole: Box, seen: Box) -> str:
    """What is left of a line that was cut: across, some characters; along, unreadable ones."""
    if seen.height < 0.99 * whole.height:
        return "".join("#" if number % 2 else character for number, character in enumerate(text))
    first = round(len(text) * (seen.x0 - whole.x0) / whole.width)
    last = round(len(text) * (seen.x1 - whole.x0) / whole.width)
    return text[first:last]


def run_pages(
    paths: Sequence[Path], engine: Any, settings: Settings | None = None, output: Path | None = None
) -> tuple[list[dict[str, Any]], Report]:
    """Run the whole line of steps with an engine in hand; records in the order they were written."""
    settings = settings or Settings()
    context = Context("test", "ocr", engine.info, engine.profile, settings.digest(engine.info), 4352)
    path = output or Path(os.path.join(os.path.dirname(paths[0]), "..", f"out-{time.monotonic_ns()}.jsonl"))
    journal = Journal(str(path))
    sink = Sink([context.settings], journal=journal, retry_errors=settings.run.retry_errors)
    try:
        report = run(
            expand([str(p) for p in paths]), settings, context, sink, Reporter(quiet=True), lambda: engine
        )
        sink.finish(clean=not report.interrupted)
    finally:
        sink.close()
    return read_records(path), report


def pixels(image: Image.Image) -> np.ndarray:
    return np.asarray(image.convert("RGB"))


def blank_pixels(width: int, height: int) -> np.ndarray:
    return np.full((height, width, 3), 255, np.uint8)
