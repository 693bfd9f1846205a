"""What benchmarks share: one run over some files with a loaded engine, tables, the JSON line."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import typer

from hiresvlm import engines
from hiresvlm.console import Reporter
from hiresvlm.datatypes import Record, naive_tokens
from hiresvlm.documents import expand
from hiresvlm.engines import Engine
from hiresvlm.errors import NoInputError
from hiresvlm.run import Sink, run
from hiresvlm.settings import ChunkSettings, Settings
from hiresvlm.writers import Journal
from hiresvlm.writers.record import Context


@dataclass(frozen=True, slots=True)
class Result:
    """Records of one run in source and page order, and its wall time without loading the engine."""

    records: list[Record]
    seconds: float

    def text(self, source: str) -> str:
        """Text of one document, pages joined."""
        return "\n".join(record["text"] for record in self.records if record["source"] == source)


class Bench:
    """An engine that stays loaded over several runs."""

    @property
    def chunk(self) -> ChunkSettings:
        """How pages are cut for this engine."""
        return self._settings.chunk

    def __init__(self, settings: Settings) -> None:
        self._settings, _ = engines.resolve(settings)
        self._class = engines.find(self._settings.engine.name)
        self._engine = self._class(self._settings.engine)

    def read(self, paths: Sequence[str], strategy: str = "auto", enlarge: float = 1.0) -> Result:
        """Run the whole tool over files, as `hiresvlm ocr -o` would.

        `enlarge`: text is shown so many times the height that the engine's profile asks for.
        """
        chunk = replace(self._settings.chunk, strategy=strategy)
        clean = chunk.legible_clean
        chunk = replace(
            chunk,
            legible=chunk.legible * enlarge,
            legible_clean=None if clean is None else clean * enlarge,
        )
        settings = replace(self._settings, chunk=chunk)
        info, profile = self._class.describe(settings.engine)
        context = Context("bench", "ocr", info, profile, settings.digest(info), naive_tokens(profile.factor))
        with tempfile.TemporaryDirectory() as folder:
            journal = Journal(os.path.join(folder, "out.jsonl"))
            sink = Sink([context.settings], journal=journal)
            began = time.perf_counter()
            run(expand(paths), settings, context, sink, Reporter(quiet=True), self._kept)
            seconds = time.perf_counter() - began
            records = [journal.read(key) for key in journal.entries]
            sink.close()
        records.sort(key=lambda record: (record["source"], record["page"] or 0))
        return Result(records, seconds)

    @property
    def engine(self) -> Engine:
        return self._engine

    def close(self) -> None:
        self._engine.close()

    def _kept(self) -> Engine:
        return _KeptOpen(self._engine)


class _KeptOpen:
    """The loaded engine, with a `close` that does nothing: the next run uses it again."""

    def __init__(self, engine: Engine) -> None:
        self.info, self.profile, self.generate = engine.info, engine.profile, engine.generate

    def close(self) -> None:
        """Left to `Bench.close`."""


def read_gold(folder: str, limit: int | None = None) -> dict[str, str]:
    """File name -> text, of the `gold.jsonl` in a folder (`receipts` tells its form)."""
    path = os.path.join(folder, "gold.jsonl")
    if not os.path.isfile(path):
        raise NoInputError(f"{path} does not exist", "the folder needs a gold.jsonl")
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return {row["file"]: "\n".join(text for _, text in row["lines"]) for row in rows[:limit]}


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table with aligned columns; numbers to the right."""
    cells = [list(columns), *[[_cell(value) for value in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for row in cells:
        first, *rest = (
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        typer.echo("  ".join((first, *rest)).rstrip())


def markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table in Markdown, to be pasted."""
    for row in (columns, ["---"] * len(columns), *rows):
        typer.echo("| " + " | ".join(_cell(value) for value in row) + " |")


def json_line(what: str, result: Mapping[str, Any]) -> None:
    """The last line of a benchmark, for machines."""
    typer.echo(json.dumps({"bench": what, **result}, ensure_ascii=False))


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)
