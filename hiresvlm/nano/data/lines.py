"""Tiles of plain text: one line, a few lines, a paragraph."""

from __future__ import annotations

from hiresvlm.nano.data.page import Page, fit
from hiresvlm.nano.data.studio import PATCH, Studio
from hiresvlm.nano.data.tile import Tile


def blank(studio: Studio, width: int, height: int, kind: str) -> Tile:
    """A tile without text, at times with a rule."""
    style = studio.style(20)
    canvas = studio.canvas(style, width, height)
    if studio.chance(0.3):
        y = studio.rng.uniform(4, height - 4)
        canvas.rule(studio.rng.uniform(0, width / 2), y, width, y, style.ink)
    return studio.finish(canvas, kind, 8)


def line(studio: Studio) -> Tile:
    """One line, 28 pixels high and 140 to 448 wide, anywhere in its tile."""
    rng = studio.rng
    width = studio.sides(5, 16)
    if studio.chance(0.01):
        return blank(studio, width, PATCH, "line")
    style = studio.style(min(studio.size(), 27.0))
    size, face, canvas = style.size, style.face, studio.canvas(style, width, PATCH)
    spacing = rng.uniform(0.3, 2.5) if studio.chance(0.06) else 0.0
    text = ""
    while not text:
        text = fit(canvas, studio.writing(int(width / size * 2), face), face, size, width - 6, spacing)
    above, below = canvas.ink(text, face, size)
    while above + below > PATCH - 2:
        size *= 0.93
        above, below = canvas.ink(text, face, size)
    spare = width - 3 - canvas.measure(text, face, size, spacing)
    x = rng.uniform(2, max(2, min(24, spare) if studio.chance(0.7) else spare))
    baseline = rng.uniform(above + 0.7, PATCH - below - 0.7)
    canvas.row(canvas.text(x, baseline, text, face, size, style.ink, spacing))
    return studio.finish(canvas, "line", min(baseline - above, PATCH - baseline - below) - 0.5)


def few(studio: Studio, height: int, width: int, kind: str) -> Tile:
    """Short unrelated lines, one under another, at one or two sizes."""
    rng = studio.rng
    if studio.chance(0.02):
        return blank(studio, width, height, kind)
    style = studio.style(min(studio.size(), height / 2.2))
    canvas = studio.canvas(style, width, height)
    margin = rng.uniform(2, 12)
    page = Page(
        studio,
        canvas,
        style,
        left=rng.uniform(2, 30),
        right=width - rng.uniform(3, 12),
        y=margin,
        bottom=height - margin,
        leading=rng.uniform(1.1, 1.9),
    )
    other = studio.face(style.face in studio.fonts.han) if studio.chance(0.3) else style.face
    align = rng.choice("lllcr")
    while True:
        face, em = (
            (other, style.size * rng.uniform(0.85, 1.3)) if studio.chance(0.2) else (style.face, style.size)
        )
        text = studio.writing(int(rng.uniform(0.4, 2.0) * width / em), face)
        text = fit(canvas, text, face, em, page.right - page.left)
        if text and not page.line(text, align, face, em):
            return studio.finish(canvas, kind, margin - 1)
        if studio.chance(0.1):
            page.y += rng.uniform(0, 20)


def paragraph(studio: Studio, height: int, width: int) -> Tile:
    """Prose in wrapped lines, with headings, bullets and gaps at times."""
    rng = studio.rng
    if studio.chance(0.02):
        return blank(studio, width, height, "paragraph")
    style = studio.style(studio.size(), chinese=False)
    canvas = studio.canvas(style, width, height)
    margin = rng.uniform(3, 14)
    page = Page(
        studio,
        canvas,
        style,
        left=rng.uniform(3, 40),
        right=width - rng.uniform(4, 30),
        y=margin if studio.chance(0.7) else rng.uniform(margin, height / 2),
        bottom=height - margin,
        leading=rng.uniform(1.1, 1.75),
    )
    justify = studio.chance(0.25)
    while not page.full and not (page.used and studio.chance(0.04)):
        prose(page, justify)
    return studio.finish(canvas, "paragraph", margin - 1)


def prose(page: Page, justify: bool) -> None:
    """A heading or a paragraph, perhaps with a bullet, and the gap after it."""
    studio, style = page.studio, page.style
    rng = studio.rng
    if studio.chance(0.2):
        em = style.size * rng.uniform(1.0, 1.5)
        page.wrapped(studio.clean(studio.english.heading(), style.bold), style.bold, em, False)
    else:
        text = studio.english.prose(rng.choice((60, 120, 240, 400)))
        if studio.chance(0.15):
            text = rng.choice(("•", "-", "·", "1.", "*")) + " " + text
        page.wrapped(studio.clean(text, style.face), style.face, style.size, justify)
    page.y += style.size * rng.choice((0.0, 0.3, 0.6, 1.0))
