"""What each stage of the reader that asks a model is worth: accuracy, visual tokens and time.

Pages of 3000 x 2500 px with small labels, a seeded generator. Lines are read once by `light`, whose time is
printed apart; the row "focus, no lines" works without them. Each question is asked alone, with nothing kept
from the one before.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import typer

from hiresvlm import ask as asking
from hiresvlm import engines
from hiresvlm.ask import lexical
from hiresvlm.ask.visual import ALL, Stages
from hiresvlm.bench.ask import is_right, page_text
from hiresvlm.bench.gold.sheet import Sheet
from hiresvlm.bench.gold.words import Words
from hiresvlm.bench.harness import Bench, json_line, table
from hiresvlm.bench.questions import Document
from hiresvlm.bench.questions.paper import Paper
from hiresvlm.documents import expand
from hiresvlm.engines import Engine
from hiresvlm.run.looking import Looking
from hiresvlm.settings import EngineSettings, Settings

SIZE = (3000, 2500)
EM = (19, 20, 21)
"""Size of the print: capitals of about 14 px, a two-hundredth of the page."""
SHOWN = 12
ASKED = 3
"""Questions a page about what is there; one more is about something that is not."""
NONE = Stages(drop=False, gate=False, micro=False, focus=False, rerank=False, agreement=False)
DROP = replace(NONE, drop=True)
GATE = replace(DROP, gate=True)
MICRO = replace(GATE, micro=True)
STAGES: dict[str, Stages] = {
    "all chunks": NONE,
    "lexical drop": DROP,
    "gate": GATE,
    "micro crop": MICRO,
    "focus, no lines": replace(GATE, focus=True),
    "re-rank": replace(ALL, agreement=False),
    "agreement with light": ALL,
}
"""Each adds to the one before; focus takes the place of the lines."""
NO_LINES = "focus, no lines"
COLUMNS = ("stage", "n", "exact", "null if absent", "tokens", "requests", "ms", "faster")


@dataclass(slots=True)
class Score:
    """Sums over the questions of a row."""

    right: list[bool] = field(default_factory=list)
    null: list[bool] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, float | int | None]:
        def mean(values: Sequence[float]) -> float | None:
            return sum(values) / len(values) if values else None

        return {
            "n": len(self.right) + len(self.null),
            "exact": mean(self.right),
            "null_if_absent": mean(self.null),
            "tokens": mean(self.tokens),
            "requests": mean(self.requests),
            "ms": statistics.median(self.ms) if self.ms else None,
        }


def ask_visual(
    model: str, quant: str, seed: int, pages: int, limit: int | None = None, stages: Sequence[str] = ()
) -> None:
    """Print one row for each stage. `limit`: questions a page; `stages`: only these."""
    made = [page(seed, number) for number in range(pages)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{number:04}.png") for number in range(pages)]
        for path, document in zip(paths, made, strict=True):
            document.sheet.render().save(path)
        texts, seconds = _lines(paths)
        settings, _ = engines.resolve(Settings(engine=EngineSettings("vlm", model, quant)))
        engine = engines.find("vlm")(settings.engine)
        try:
            rows = measure(engine, paths, made, texts, limit, stages or tuple(STAGES))
        finally:
            engine.close()
    first = next(iter(rows.values()))["ms"]
    table(COLUMNS, [_shown(name, row, first) for name, row in rows.items()])
    typer.echo(
        "exact: of the questions with an answer; tokens (visual) and requests: mean; ms: median, from the "
        "question to the answer;\n"
        f"lines by light: {1e3 * seconds / pages:,.0f} ms a page, once for all questions"
    )
    result = {"model": model, "quant": quant, "seed": seed, "pages": pages, "lines_ms": 1e3 * seconds / pages}
    json_line("ask-vlm", {**result, "rows": rows})


def page(seed: int, number: int) -> Document:
    """One page of small print: labels with values in blocks among sentences."""
    for attempt in range(50):
        rng = random.Random(f"ask-vlm/{seed}/{number}/{attempt}")
        words = Words(rng)
        paper = Paper(Sheet.new(SIZE), rng, words, "en")
        try:
            _draw(paper, rng, words)
        except ValueError:
            continue
        return Document(f"small-{number}", "en", "small", paper.sheet, paper.asked)
    raise RuntimeError("no page fits")


def _draw(paper: Paper, rng: random.Random, words: Words) -> None:
    size = rng.choice(EM)
    values = {
        "invoice_number": words.code(), "order_number": words.code(), "customer_number": words.number(6),
        "date": words.date(), "due_date": words.date(), "total": words.amount(9000),
        "subtotal": words.amount(9000), "tax": words.amount(900), "discount": words.amount(90),
        "shipping": words.amount(90), "account": words.number(9), "name": words.en_name(),
        "department": words.place(), "tracking_number": words.code(), "deposit": words.amount(900),
    }  # fmt: skip
    shown = rng.sample(list(values), SHOWN)
    columns, rows = 4, 9
    cells = [(c, r) for r in range(rows) for c in range(columns)]
    with_value = set(rng.sample(cells, SHOWN))
    names = iter(shown)
    width, height = (SIZE[0] - 160) / columns, (SIZE[1] - 160) / rows
    for column, row in cells:
        x, y = 80 + column * width, 110 + row * height
        if (column, row) in with_value:
            name = next(names)
            paper.sheet.line(x, y, f"{paper.label(name)}: {values[name]}", size)
            paper.ask(name, values[name])
            y += 2 * size
        text = paper.sheet.wrap(" ".join(words.en_sentence() for _ in range(3)), width - 60, size)
        for line in text[: rng.randint(0, 5)]:
            paper.sheet.line(x, y, line, size)
            y += 1.6 * size
    asked = rng.sample(paper.asked, ASKED)
    paper.asked.clear()
    paper.absent([*values, "passport", "email", "nationality"], 1)
    paper.asked[:0] = asked


def _lines(paths: Sequence[str]) -> tuple[list[asking.PageText], float]:
    bench = Bench(Settings(engine=EngineSettings("light")))
    try:
        read = bench.read(paths)
    finally:
        bench.close()
    return [page_text(record) for record in read.records], read.seconds


def measure(
    engine: Engine,
    paths: Sequence[str],
    made: Sequence[Document],
    texts: Sequence[asking.PageText],
    limit: int | None,
    stages: Sequence[str],
) -> dict[str, dict[str, float | int | None]]:
    """A row for each stage. Of each page: file, gold, lines; `limit`: questions a page."""
    light = asking.LightReader()
    rows: dict[str, dict[str, float | int | None]] = {}
    for name in stages:
        looking = Looking(lambda: engine, Settings().page, STAGES[name])
        score = Score()
        for document, gold, text in zip(expand(paths), made, texts, strict=True):
            pages = [replace(text, lines=())] if name == NO_LINES else [text]
            for number, question in enumerate([*gold.asked][:limit]):
                if number == 0:  # the worker is started and the page is in the file cache, as in a run
                    looking.read(document, {0: (asking.understand("x"), [], [])}, light)
                _forget(engine)
                looking.forget()
                asked = asking.understand(question.question)
                began = time.perf_counter()
                ranked = lexical.rank(asked, pages)
                reading, work = looking.read(document, {0: (asked, pages, ranked)}, light)[0]
                score.ms.append((time.perf_counter() - began) * 1e3)
                score.tokens.append(work.tokens.visual)
                score.requests.append(work.requests)
                right = is_right(reading.answer, question.answer, question.kind)
                (score.null if question.answer is None else score.right).append(right)
        looking.stop()
        rows[name] = score.as_dict()
        typer.echo(f"{name}: done", err=True)
    return rows


def _forget(engine: Engine) -> None:
    """Features of images that were encoded for an earlier question."""
    parts = getattr(engine, "parts", None)
    if parts is not None:
        parts.encoder.cache.clear()


def _shown(name: str, row: dict[str, float | int | None], first: float | int | None) -> tuple[object, ...]:
    def number(key: str, form: str) -> str | None:
        value = row[key]
        return None if value is None else format(value, form)

    ms = row["ms"]
    faster = None if not ms or first is None else f"{first / ms:.1f}x"
    return (
        name,
        row["n"],
        number("exact", ".3f"),
        number("null_if_absent", ".3f"),
        number("tokens", ",.0f"),
        number("requests", ".1f"),
        number("ms", ",.0f"),
        faster,
    )
