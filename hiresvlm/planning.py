"""`hiresvlm plan`: the plans of all pages under several strategies, no model loaded."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from hiresvlm.datatypes import Document, Plan, naive_tokens
from hiresvlm.documents import OVERLAY_SUFFIX, parse_pages, select_pages
from hiresvlm.run.prepare import Survey, probe, survey
from hiresvlm.settings import Settings
from hiresvlm.workers import Pool
from hiresvlm.writers.stream import output_error
from hiresvlm.writers.textfiles import path_below

FAMILIES = (28, 32)
"""Pixels per visual token and side of the Qwen families, which every plan is priced for."""


@dataclass(frozen=True, slots=True)
class PagePlans:
    """One page under all strategies, or the reason why it has none."""

    source: str
    page: int | None
    survey: Survey | None = None
    failure: str | None = None
    caution: str | None = None
    """Something to know about the document; then nothing else is set."""
    overlay: str | None = None
    factor: int = FAMILIES[0]
    """Pixels per visual token and side of the engine's own model: what people are shown."""

    @property
    def factors(self) -> tuple[int, ...]:
        """The engine's own first."""
        return (self.factor, *(factor for factor in FAMILIES if factor != self.factor))

    def as_dict(self) -> dict[str, Any]:
        found = self.survey
        assert found is not None
        return {
            "source": self.source,
            "page": self.page,
            "size": list(found.size),
            "rotation": found.rotation,
            "blank": found.blank,
            "cap_height": None if found.cap_height is None else round(found.cap_height, 1),
            "naive": {str(factor): naive_tokens(factor) for factor in self.factors},
            "factor": self.factor,
            "strategies": {plan.strategy: _plan_dict(plan, self.factors) for plan in found.plans},
            "overlay": self.overlay,
        }

    def lines(self) -> list[str]:
        """A few lines for people."""
        found = self.survey
        assert found is not None
        own, other = self.factors[:2]
        naive = naive_tokens(own)
        caps = "no text found" if found.cap_height is None else f"capitals {found.cap_height:.1f} px"
        head = f"{self.source} page {self.page}: {found.size[0]}x{found.size[1]}, {caps}"
        lines = [head + (", blank" if found.blank else "")]
        for plan in found.plans:
            tokens = plan.tokens(own)
            lines.append(
                f"  {plan.strategy:<9} {len(plan.chunks):>3} chunks {tokens:>6} tokens "
                f"({tokens / naive:>5.0%} of naive {naive}; {plan.tokens(other)} at {other} px)"
                + "".join(f"  ! {caution.message}" for caution in plan.cautions)
            )
        return lines


def plan_documents(
    documents: Sequence[Document], settings: Settings, strategies: Sequence[str], save: str | None
) -> Generator[PagePlans]:
    """Plans of every selected page. With `save`, an overlay of the first strategy in that folder.

    Raises `OutputError` when an overlay cannot be written.
    """
    ranges = None if settings.run.pages is None else parse_pages(settings.run.pages)
    if save is not None:
        save = os.path.realpath(save)
        _make_folder(save)
    pool = Pool(1)
    try:
        for document in documents:
            if document.failure is not None:
                yield PagePlans(document.source, None, failure=document.failure.message)
                continue
            found = _call(pool, probe, document, settings.page, timeout_s=settings.page.timeout_s)
            problem = found if isinstance(found, str) else found.failure and found.failure.message
            if problem:
                yield PagePlans(document.source, None, failure=problem)
                continue
            numbers, beyond = select_pages(ranges, found.pages)
            if beyond:
                message = f"the document has {found.pages} pages; the page range asks for more"
                yield PagePlans(document.source, None, caution=message)
            for number in numbers:
                overlay = None if save is None else _overlay_path(save, document, number)
                arguments = (document, number, settings.page, settings.chunk, tuple(strategies), overlay)
                result = _call(pool, survey, *arguments, timeout_s=settings.page.timeout_s)
                if isinstance(result, Survey):
                    yield PagePlans(
                        document.source, number, result, overlay=overlay, factor=settings.chunk.factor
                    )
                else:
                    message = result if isinstance(result, str) else result.message
                    yield PagePlans(document.source, number, failure=message)
    finally:
        pool.close()


def _call(pool: Pool, task: Callable[..., Any], *arguments: Any, timeout_s: float) -> Any:
    """Run one task in a worker; a string says what went wrong with the worker."""
    pool.submit("task", task, *arguments, timeout_s=timeout_s)
    while not (done := pool.poll(1.0)):
        pass
    return done[0].value if done[0].trouble is None else f"the renderer failed ({done[0].trouble.value})"


def _overlay_path(folder: str, document: Document, number: int) -> str:
    """`DIR/<path below the PATH argument>.p<page>.plan.png`, never outside DIR."""
    path = path_below(folder, document, f".p{number}{OVERLAY_SUFFIX}")
    _make_folder(os.path.dirname(path))
    return path


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise output_error(path, error) from error


def _plan_dict(plan: Plan, factors: Sequence[int]) -> dict[str, Any]:
    return {
        "chunks": [
            {
                "box": [round(side, 1) for side in chunk.box],
                "size": list(chunk.size),
                "role": chunk.role.value,
            }
            for chunk in plan.chunks
        ],
        "tokens": {str(factor): plan.tokens(factor) for factor in factors},
        "warnings": [caution.message for caution in plan.cautions],
    }
