"""Questions about documents: pages of lines and a question in, an answer from the right spot out.

    question -> lexical stage (lines, pages, chunks by relevance) -> reader -> Reading

`light` uses `LightReader`. The lexical stage is the same for every reader.
"""

from __future__ import annotations

from collections.abc import Sequence

from hiresvlm.ask import fields
from hiresvlm.ask.fields import Field
from hiresvlm.ask.grid import PageText
from hiresvlm.ask.instructions import is_instruction
from hiresvlm.ask.question import MAX_LENGTH, Asked, understand
from hiresvlm.ask.reader import LightReader, Reader, Reading, answer
from hiresvlm.ask.schema import Filled, Schema, SchemaError

__all__ = [
    "MAX_LENGTH",
    "Asked",
    "Filled",
    "LightReader",
    "PageText",
    "Reader",
    "Reading",
    "Schema",
    "SchemaError",
    "answer",
    "is_instruction",
    "table",
    "understand",
]


def table(wordings: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[Field, ...]:
    """The table of fields with a user's wordings."""
    return fields.merged(dict(wordings)) if wordings else fields.FIELDS
