"""Rendered text for the training of nano: every tile comes with its exact text and each character's place."""

from hiresvlm.nano.data.alphabet import ALPHABET
from hiresvlm.nano.data.fonts import Face, Fonts, FontsMissing
from hiresvlm.nano.data.generator import Generator
from hiresvlm.nano.data.tile import Sample, Tile

__all__ = ["ALPHABET", "Face", "Fonts", "FontsMissing", "Generator", "Sample", "Tile"]
