"""Random tiles and samples for the training of nano."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from hiresvlm.nano.data.documents import document_tile, receipt_tile, screen_tile, table_tile
from hiresvlm.nano.data.fonts import Fonts
from hiresvlm.nano.data.forms import form
from hiresvlm.nano.data.lines import few, line, paragraph
from hiresvlm.nano.data.several import tiles
from hiresvlm.nano.data.studio import PATCH, Studio
from hiresvlm.nano.data.tile import Sample, Tile
from hiresvlm.nano.data.words import rare_words

KINDS: Final[dict[str, Callable[[Studio], Tile]]] = {
    "line": line,
    "two": lambda studio: few(studio, 2 * PATCH, studio.sides(5, 16), "two"),
    "few": lambda studio: few(studio, studio.sides(3, 6), studio.sides(7, 16), "few"),
    "paragraph": lambda studio: paragraph(studio, studio.sides(7, 16), studio.sides(10, 16)),
    "table": lambda studio: table_tile(studio, studio.sides(5, 16), studio.sides(10, 16)),
    "receipt": lambda studio: receipt_tile(studio, studio.sides(7, 16), studio.sides(8, 16)),
    "ui": lambda studio: screen_tile(studio, studio.sides(4, 16), studio.sides(8, 16)),
    "document": lambda studio: document_tile(studio, studio.sides(8, 16), studio.sides(10, 16)),
}
"""How a tile of each kind is drawn: one of one image token's height or up to 448 x 448 pixels."""

QUESTIONS: Final = ("form", "tiles")
"""Kinds of samples with prompts of their own: a question about one tile, and several tiles in one prompt."""


class Generator:
    """An endless source of tiles and samples from one seed; see `Studio` for the knobs."""

    def __init__(
        self,
        seed: int,
        fonts: Fonts,
        *,
        chinese: float = 0.15,
        dirty: float = 0.55,
        strength: float = 1.0,
        max_chars: int = 640,
        words: Sequence[str] | None = None,
    ) -> None:
        """`words`: rare words; those of the system's list where nothing is given."""
        self.studio = Studio(
            seed,
            fonts,
            chinese=chinese,
            dirty=dirty,
            strength=strength,
            max_chars=max_chars,
            words=rare_words() if words is None else words,
        )

    def line(self) -> Tile:
        """One line, 28 pixels high and 140 to 448 wide."""
        return line(self.studio)

    def tile(self, kind: str) -> Tile:
        """One tile of a kind in `KINDS`, or of a form (kind "form")."""
        if kind == "form":
            return self.form().tiles[0]
        return KINDS[kind](self.studio)

    def form(self, chinese: bool | None = None, absent: bool | None = None) -> Sample:
        """A question about a form; `absent`: about a label that is not on it. None leaves it to chance."""
        return form(self.studio, chinese, absent)

    def sample(self, stage: str) -> Sample:
        """One example for a stage of the curriculum: a kind of `KINDS` or `QUESTIONS`."""
        if stage == "form":
            return form(self.studio)
        if stage == "tiles":
            return tiles(self.studio)
        return Sample.transcription(self.tile(stage))
