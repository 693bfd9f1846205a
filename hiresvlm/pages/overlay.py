"""A picture of a plan: the page, pale, with the chunks that an engine would see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PIL import Image, ImageDraw

from hiresvlm.datatypes import Box, Chunk
from hiresvlm.pages.raster import shrunk

if TYPE_CHECKING:
    from hiresvlm.datatypes import Plan
    from hiresvlm.pages import OpenPage

_MAX_PIXELS = 4_000_000
_COLOURS = ("#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")


def draw_overlay(page: OpenPage, plan: Plan, path: str) -> None:
    """Write a PNG with the numbered boxes of a plan over the page, at most 4 megapixels."""
    width, height = page.size
    size = shrunk(page.size, _MAX_PIXELS)
    sx, sy = size[0] / width, size[1] / height
    image = Image.fromarray(page.render(Chunk(Box(0, 0, width, height), size, size)))
    image = Image.blend(image, Image.new("RGB", image.size, "white"), 0.3)
    draw = ImageDraw.Draw(image)
    line = max(2, min(size) // 300)
    for number, chunk in enumerate(plan.chunks):
        colour = _COLOURS[number % len(_COLOURS)]
        box = chunk.box
        x0, y0, x1, y1 = box.x0 * sx, box.y0 * sy, box.x1 * sx, box.y1 * sy
        draw.rectangle((x0, y0, max(x0, x1 - 1), max(y0, y1 - 1)), outline=colour, width=line)
        label = f"{number}: {chunk.size[0]}x{chunk.size[1]}"
        draw.text((x0 + 2 * line, y0 + 2 * line), label, fill=colour, font_size=max(12, min(size) // 50))
    image.save(path, optimize=True)
