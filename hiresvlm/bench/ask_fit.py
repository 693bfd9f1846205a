"""Where the weights of the confidence come from: `hiresvlm bench ask FOLDER --fit`.

Right answers alone fit nothing, and on clean pages there are hardly any others. So every page is asked
twice: as it is, and with all lines taken out that have the answer. What is answered then is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import typer

from hiresvlm import ask as asking
from hiresvlm.ask import amounts, dates
from hiresvlm.ask.confidence import FEATURES, START, confidence, fit
from hiresvlm.ask.wording import solid
from hiresvlm.bench import questions
from hiresvlm.bench.ask import RECEIPT_KINDS, RECEIPTS, TOP_PAGES, is_right, read_receipts
from hiresvlm.bench.harness import Bench, json_line, table
from hiresvlm.datatypes import Line
from hiresvlm.settings import EngineSettings, Settings

SEEDS = (1, 3)
"""Seeds whose documents were looked at while the rules were written."""
BANDS = (0.0, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0)

Answered = tuple[Mapping[str, float], bool]
Case = tuple[str, str | None, str, asking.PageText]
"""Question, gold, how they are compared, page."""


def ask_fit(folder: str | None, pages: int) -> None:
    """Print the fitted weights, and how often answers of each confidence are right with them."""
    cases = [*_generated(pages), *(_receipts(folder) if folder is not None else ())]
    answers = [answer for case in cases for answer in _answers(case)]
    weights = fit(answers)
    rows = []
    for low, high in zip(BANDS, BANDS[1:], strict=False):
        right = [ok for features, ok in answers if low <= confidence(features, weights) < high]
        rows.append((f"{low:.2f} to {high:.2f}", len(right), sum(right) / len(right) if right else None))
    table(("confidence", "answers", "right"), rows)
    table(
        ("feature", "set by hand", "fitted"),
        [(n, f"{a:.2f}", f"{b:.2f}") for n, a, b in zip(("bias", *FEATURES), START, weights, strict=True)],
    )
    typer.echo("fitted and shown on the same answers: calibration on others is what `bench ask` shows")
    json_line("ask_fit", {"answers": len(answers), "weights": [round(w, 2) for w in weights]})


def _receipts(folder: str) -> Iterator[Case]:
    """The half of the receipts that the rules were written on."""
    bench = Bench(Settings(engine=EngineSettings(name="light")))
    try:
        gold, texts = read_receipts(bench, folder)
    finally:
        bench.close()
    for row, text in zip(gold[::2], texts[::2], strict=True):
        for name, question in RECEIPTS.items():
            if name in row["fields"] and text:
                yield question, row["fields"][name], RECEIPT_KINDS[name], text[0]


def _generated(pages: int) -> Iterator[Case]:
    """Generated documents with their exact text."""
    for seed in SEEDS:
        for kind in questions.KINDS:
            for lang in questions.LANGUAGES:
                for number in range(pages):
                    made = questions.make(kind, lang, seed, number)
                    lines = tuple(Line(text, box, 0.98) for text, box in made.sheet.cells)
                    page = asking.PageText(1, made.sheet.image.size, lines)
                    for asked in made.asked:
                        yield asked.question, asked.answer, asked.kind, page


def _answers(case: Case) -> Iterator[Answered]:
    question, gold, kind, page = case
    reading = _read(question, page)
    if reading.best_guess is not None:
        yield reading.features, is_right(reading.best_guess, gold, kind)
    if gold is None:
        return
    kept = tuple(line for line in page.lines if not _says(line.text, gold, kind))
    reading = _read(question, replace(page, lines=kept))
    if len(kept) < len(page.lines) and reading.best_guess is not None:
        yield reading.features, False


def _read(question: str, page: asking.PageText) -> asking.Reading:
    return asking.answer(asking.understand(question), [page], asking.LightReader(), TOP_PAGES)[0]


def _says(text: str, gold: str, kind: str) -> bool:
    """Whether a line has the answer in it, in any way of writing it."""
    if kind == "amount":
        wanted = {amount.value for amount in amounts.find(gold)}
        return any(amount.value in wanted for amount in amounts.find(text))
    if kind == "date":
        days: Sequence[str] = [date.iso for date in dates.find(gold)]
        return any(date.iso in days for date in dates.find(text))
    return solid(gold) in solid(text)
