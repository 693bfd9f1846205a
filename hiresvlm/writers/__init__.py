"""Answers -> records -> files. The journal is the only truth; text files are a view of it.

`record` makes the JSON object, `Journal` writes it crash-safely and knows what is done already,
`Stream` writes to stdout or a pipe, `TextFiles` renders finished documents as md or txt.
"""

from __future__ import annotations

from hiresvlm.writers.journal import Entry, Journal
from hiresvlm.writers.record import Key, document_record, dumps, key_of, page_record
from hiresvlm.writers.stream import Stream
from hiresvlm.writers.textfiles import TextFiles

__all__ = [
    "Entry",
    "Journal",
    "Key",
    "Stream",
    "TextFiles",
    "document_record",
    "dumps",
    "key_of",
    "page_record",
]
