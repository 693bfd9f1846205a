"""Cuts forced on a folder of page images: how many of them fall between the lines."""

from __future__ import annotations

import json
import math
import os
from typing import Final

import typer

from hiresvlm import chunking
from hiresvlm.bench.harness import json_line
from hiresvlm.chunking.cuts import cut
from hiresvlm.datatypes import Box
from hiresvlm.documents import expand
from hiresvlm.errors import NoInputError
from hiresvlm.pages import PageError, open_document
from hiresvlm.settings import PageSettings

BLANK_ROWS: Final = 3
"""A cut is in white space when so many raster rows around it are blank..."""

BLANK_SHARE: Final = 0.002
"""...and a row is blank with edges on at most this share of its pixels (or on two)."""

INSIDE: Final = 0.15
"""A cut goes through a gold line when it is deeper in its box than this share of the box's height: boxes
drawn by hand reach beyond the ink."""


def cuts(folder: str, height: float = 400.0) -> None:
    """Cut each page about every `height` page pixels and print the share of cuts in white space.

    `clean`: cuts that the planner itself takes for clean, so that it adds no overlap. Where the folder
    has a `gold.jsonl` with boxes (`bench receipts` says how), cuts are also held against the boxes: the
    planner's own word is no proof.
    """
    gold = _boxes(folder)
    settings = PageSettings()
    pages = made = white = clean = checked = free = wrong = needless = 0
    for document in expand([folder]):
        try:
            with open_document(document.path, settings) as reader:
                for number in range(1, reader.pages + 1):
                    page = reader.page(number)
                    analysis = chunking.analyse(page.gray(settings.max_analysis_pixels), page.size)
                    pages += 1
                    parts = max(1, math.ceil(page.size[1] / height))
                    found = cut(analysis, Box(0, 0, *page.size), parts, "y")
                    made += len(found)
                    white += sum(_blank(analysis, c.at) for c in found)
                    clean += sum(c.clean for c in found)
                    boxes = gold.get(os.path.basename(document.path)) if number == 1 else None
                    if boxes is not None:
                        through = [any(_through(c.at, box) for box in boxes) for c in found]
                        checked += len(found)
                        free += through.count(False)
                        wrong += sum(c.clean and hit for c, hit in zip(found, through, strict=True))
                        needless += sum(not (c.clean or hit) for c, hit in zip(found, through, strict=True))
        except PageError as error:
            typer.echo(f"{document.source}: {error.failure.message}", err=True)
    if made == 0:
        raise NoInputError(f"nothing was cut in {folder}", "it needs pages taller than --height")
    typer.echo(f"{pages} pages, {made} cuts, {white} in white space ({white / made:.1%})")
    typer.echo(f"clean to the planner, so without overlap: {clean} ({clean / made:.1%})")
    if checked:
        typer.echo(f"through no line of the gold boxes: {free} of {checked} ({free / checked:.1%})")
        agreed = (checked - wrong - needless) / checked
        typer.echo(
            f"planner and gold agree on {agreed:.1%}: {wrong} called clean go through a line, "
            f"{needless} overlap without need"
        )
    json_line(
        "cuts",
        {
            "pages": pages,
            "cuts": made,
            "white": white / made,
            "clean": clean / made,
            "checked": checked,
            "through_no_gold_line": free / checked if checked else None,
            "clean_through_a_line": wrong if checked else None,
            "needless_overlaps": needless if checked else None,
        },
    )


def _blank(analysis: chunking.PageAnalysis, y: float) -> bool:
    """Whether the raster rows around a cut (page pixels) are blank."""
    first = max(0, round(y * analysis.scale) - BLANK_ROWS // 2)
    rows = analysis.edges[first : first + BLANK_ROWS]
    return bool((rows.sum(axis=1) <= max(2, BLANK_SHARE * rows.shape[1])).all())


def _through(y: float, box: tuple[float, float]) -> bool:
    margin = INSIDE * (box[1] - box[0])
    return box[0] + margin < y < box[1] - margin


def _boxes(folder: str) -> dict[str, list[tuple[float, float]]]:
    """File name -> top and bottom of its lines, from eight corner numbers a line."""
    path = os.path.join(folder, "gold.jsonl")
    if not os.path.isfile(path):
        return {}
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return {row["file"]: [(min(box[1::2]), max(box[1::2])) for box, _ in row["lines"]] for row in rows}
