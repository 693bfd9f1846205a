"""Page analysis -> Plan: which rectangles of a page an engine sees, and at what size.

A strategy is a pure function `f(analysis, settings) -> Plan`. To add one, write it in `strategies`
and add a row to `STRATEGIES`; the contract test runs over the table: chunks inside the page, all ink
covered, none empty, deterministic.
"""

from __future__ import annotations

from hiresvlm.chunking.analysis import PageAnalysis, analyse
from hiresvlm.chunking.quality import has_faint_marks
from hiresvlm.chunking.strategies import STRATEGIES, plan

__all__ = ["STRATEGIES", "PageAnalysis", "analyse", "has_faint_marks", "plan"]
