"""`bench ask-vlm`: its pages, and a row for each stage."""

from __future__ import annotations

import importlib
from pathlib import Path

from hiresvlm import ask
from hiresvlm.datatypes import Box, Line, Request, Role
from tests.support import ScriptedEngine

bench = importlib.import_module("hiresvlm.bench.ask_visual")  # the package has a function of this name


def test_pages_follow_from_the_seed() -> None:
    first, again, other = bench.page(3, 0), bench.page(3, 0), bench.page(4, 0)
    assert first.asked == again.asked
    assert first.sheet.lines == again.sheet.lines
    assert first.sheet.lines != other.sheet.lines
    assert first.sheet.image.size == (3000, 2500)
    text = "\n".join(line.text for line in first.sheet.lines)
    assert all(asked.answer in text for asked in first.asked if asked.answer is not None)
    assert [asked.answer is None for asked in first.asked] == [False] * bench.ASKED + [True]
    assert all(13 <= (line.caps or 0) <= 16 for line in first.sheet.lines)


def test_each_stage_gives_a_row(folder: Path) -> None:
    """A model that reads an answer only where it is shown in detail, and never errs."""
    made = bench.page(2, 0)
    path = folder / "0.png"
    made.sheet.render().save(path)
    lines = tuple(
        Line(gold.text, Box(gold.box.x0, gold.box.y0 - 5, gold.box.x1, gold.box.y1 + 7))
        for gold in made.sheet.lines
        if gold.box is not None
    )
    text = ask.PageText(1, bench.SIZE, lines)

    def script(request: Request) -> str:
        asked = next(one for one in made.asked if one.question in request.prompt)
        sharp = [view.box for view in request.views if view.role is not Role.GLOBAL]
        seen = " ".join(line.text for line in lines if any(_inside(line.box, box) for box in sharp))
        return asked.answer if asked.answer is not None and asked.answer in seen else "none"

    stages = ("all chunks", "lexical drop", "micro crop", "agreement with light")
    rows = bench.measure(ScriptedEngine(script), [str(path)], [made], [text], 4, stages)
    assert list(rows) == list(stages)
    assert all(row["n"] == 4 and (row["ms"] or 0) > 0 for row in rows.values())
    assert [row["exact"] for row in rows.values()] == [1.0] * 4
    assert rows["all chunks"]["null_if_absent"] == 1.0


def _inside(line: Box | None, box: Box) -> bool:
    return line is not None and line.intersection(box) == line
