"""A prepared page -> requests: what an engine is asked."""

from __future__ import annotations

from hiresvlm.datatypes import PreparedPage, Request
from hiresvlm.settings import TaskSettings

TRANSCRIBE = (
    "Transcribe all text in this image exactly as printed, line by line, in reading order. "
    "Keep every number, symbol and line break. Do not describe, translate or complete anything. "
    "If there is no text, write nothing."
)


def requests(page: PreparedPage, settings: TaskSettings) -> list[Request]:
    """One request per chunk, or a single one with all chunks where the plan is joint."""
    prompt = settings.prompt or TRANSCRIBE
    joint = page.plan is not None and page.plan.joint
    groups = [page.views] if joint and page.views else [(view,) for view in page.views]
    return [
        Request(
            place=page.place._replace(request=number, requests=len(groups)),
            views=views,
            prompt=prompt,
            max_new_tokens=settings.max_new_tokens,
            transcribes=settings.prompt is None,
        )
        for number, views in enumerate(groups)
    ]
