"""The reader that asks a vision-language model.

prompts    how a model is asked, and what means "not there"
views      which parts of a page it sees, and how large
focus      where to look when no line names what is asked for
evidence   whether an answer is printed where it comes from
reader     the stages, from the whole page to the enlarged region
"""

from __future__ import annotations

from hiresvlm.ask.visual.prompts import QuestionForm
from hiresvlm.ask.visual.reader import ALL, Find, Look, Seen, Stages, Steps, VisualReader, Wish
from hiresvlm.ask.visual.views import Sight

__all__ = ["ALL", "Find", "Look", "QuestionForm", "Seen", "Sight", "Stages", "Steps", "VisualReader", "Wish"]
