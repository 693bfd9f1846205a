"""The order of a run, and nothing else knows it:

    documents -> probes -> pages -> requests -> replies -> answers -> records

`asking` and `looking` stand between pages and records where questions are asked.
`prepare` holds the part that runs in worker processes, `source` schedules it, `sink` writes.
"""

from __future__ import annotations

from hiresvlm.run.loop import Answering, run
from hiresvlm.run.sink import Sink

__all__ = ["Answering", "Sink", "run"]
