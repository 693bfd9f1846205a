"""The order of a run, and nothing else knows it:

    documents -> probes -> pages -> requests -> replies -> answers -> records

`prepare` holds the part that runs in worker processes, `source` schedules it, `sink` writes.
"""

from __future__ import annotations

from hiresvlm.run.loop import run
from hiresvlm.run.sink import Sink

__all__ = ["Sink", "run"]
