"""Documents with questions whose answers are known: invoices, forms, screenshots and ledgers in English and
Chinese, and pages on which a label stands twice.

Everything follows from a seed, so an unseen one makes documents that nobody tuned anything on.
"""

from __future__ import annotations

from hiresvlm.bench.questions.kinds import KINDS, make
from hiresvlm.bench.questions.paper import Asked, Document
from hiresvlm.bench.questions.twins import twins

LANGUAGES = ("en", "zh")

__all__ = ["KINDS", "LANGUAGES", "Asked", "Document", "make", "twins"]
