"""Draft-verify decoding writes what plain greedy decoding writes, whatever the draft, in fewer forwards when
the draft is good."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from hiresvlm.bench.speculative import CANDIDATES, Candidates, Decoder
from hiresvlm.cli import app
from hiresvlm.engines.vlm.folder import nano_folder
from hiresvlm.engines.vlm.inputs import Prompt
from hiresvlm.engines.vlm.slots import Row
from hiresvlm.nano.data.evaluation import load_evaluation
from tests.tiny_models import FAMILIES
from tests.vlm_support import Bench, assert_same_answer, margin, noise, open_model

TOKENS = 40
NANO_KINDS = ("few", "receipt", "form-en")


@pytest.fixture(scope="module")
def benches(tiny: Callable[[str], Path]) -> dict[str, Bench]:
    return {**{name: open_model(tiny(name)) for name in FAMILIES}, "nano": open_model(nano_folder())}


@pytest.fixture(scope="module")
def cases(benches: dict[str, Bench]) -> dict[str, list[Row]]:
    """Prompts with none to two images and what plain greedy decoding writes: slots, of which one is used."""
    found = {}
    for name, bench in benches.items():
        if name == "nano":
            items = [next(i for i in load_evaluation() if i.kind == kind) for kind in NANO_KINDS]
            prompts = [bench.prompt(item.question or "Transcribe.", item.pixels) for item in items]
        else:
            shapes = [((2, 3),), ((5, 4), (3, 3)), ((1, 1),), ()]
            prompts = [
                bench.prompt("Read it. " * n, *(noise(n, *size, bench.factor) for size in sizes))
                for n, sizes in enumerate(shapes, 1)
            ]
        found[name] = [plain(bench, prompt) for prompt in prompts]
    return found


def plain(bench: Bench, prompt: Prompt) -> Row:
    row = Row(prompt)
    slots = bench.slots()
    bench.join(slots, [row])
    while not over(bench, row, TOKENS):
        slots.step()
    return row


def over(bench: Bench, row: Row, limit: int) -> bool:
    return row.ids[-1] in bench.loaded.ends or len(row.ids) >= limit


def drafted(bench: Bench, prompt: Prompt, draft: Sequence[int], limit: int = TOKENS) -> tuple[Row, int]:
    """The answer and the forwards that it took."""
    row, decoder = Row(prompt), Decoder(bench.loaded, bench.encoder)
    decoder.write(row, Candidates(draft), lambda row: over(bench, row, limit))
    return row, decoder.forwards


def test_the_answers_are_worth_comparing(cases: dict[str, list[Row]]) -> None:
    for rows in cases.values():
        assert len({tuple(row.ids) for row in rows}) > 1
        assert sum(len(set(row.ids)) for row in rows) > 5 * len(rows)


@settings(max_examples=15, deadline=None)
@given(st.data())
@pytest.mark.parametrize("name", [*FAMILIES, "nano"])
def test_any_draft_gives_the_answer_of_plain_greedy_decoding(
    name: str, benches: dict[str, Bench], cases: dict[str, list[Row]], data: st.DataObject
) -> None:
    """Drafts are pieces of the right answer, in any order and as often as it comes, and wrong tokens."""
    bench, wanted = benches[name], data.draw(st.sampled_from(cases[name]), "case")
    limit = data.draw(st.integers(1, TOKENS), "limit")
    size = len(wanted.ids)
    piece = st.tuples(st.integers(0, size), st.integers(0, size)).map(lambda cut: wanted.ids[slice(*cut)])
    # Also tokens that end an answer and that stand for images.
    wrong = st.lists(st.integers(0, len(bench.loaded.tokenizer) - 1), max_size=6)
    pieces = data.draw(st.lists(st.one_of(piece, wrong), max_size=6), "draft")
    row, forwards = drafted(bench, wanted.prompt, [token for one in pieces for token in one], limit)
    assert_same_answer(bench, wanted.prompt, row.ids, wanted.ids[:limit])
    assert forwards <= len(row.ids)
    if row.ids == wanted.ids[:limit]:
        assert row.logprobs == pytest.approx(wanted.logprobs[:limit], abs=1e-3)


@pytest.mark.parametrize("name", [*FAMILIES, "nano"])
def test_a_perfect_draft_saves_most_forwards(
    name: str, benches: dict[str, Bench], cases: dict[str, list[Row]]
) -> None:
    for wanted in cases[name]:
        row, forwards = drafted(benches[name], wanted.prompt, wanted.ids)
        assert_same_answer(benches[name], wanted.prompt, row.ids, wanted.ids)
        # 1, 3, 7 and then 13 tokens by a forward, unless the model was undecided.
        assert forwards <= 4 + len(row.ids) // 13 or row.ids != wanted.ids


def test_the_margin_is_that_of_the_model(benches: dict[str, Bench], cases: dict[str, list[Row]]) -> None:
    for name, bench in benches.items():
        decoder = Decoder(bench.loaded, bench.encoder)
        for row in cases[name][:2]:
            for written in ([], row.ids[:3]):
                wanted = margin(bench, row.prompt, written)
                assert decoder.margin(row.prompt, written) == pytest.approx(wanted, abs=1e-3)


# ---------------------------------------------------------------------------------------- candidates


def forwards(answer: Sequence[int], draft: Sequence[int]) -> int:
    """Forwards that an answer takes when candidates are checked against it, the first for its first token."""
    candidates, written, count = Candidates(draft), 1, 1
    while written < len(answer):
        proposed = candidates.propose(answer[:written])
        assert len(proposed) <= CANDIDATES
        right = 0
        while right < len(proposed) and list(answer[written : written + right + 1]) == proposed[: right + 1]:
            right += 1
        written += min(right + 1, len(answer) - written)
        count += 1
    return count


@given(st.lists(st.integers(0, 5), min_size=1, max_size=80), st.lists(st.integers(0, 5), max_size=80))
def test_no_draft_takes_more_forwards_than_tokens(answer: list[int], draft: list[int]) -> None:
    assert forwards(answer, draft) <= len(answer)


LINE = list(range(100, 160))


@pytest.mark.parametrize(
    ("draft", "most"),
    [
        pytest.param(LINE, 9, id="perfect"),
        pytest.param([*range(5), *LINE], 9, id="begins with something else"),
        pytest.param([*LINE[:30], 7, *LINE[31:]], 14, id="one token replaced"),
        pytest.param([*LINE[:30], 7, *LINE[30:]], 16, id="one token too many"),
        pytest.param([*LINE[:30], *LINE[31:]], 16, id="one token missing"),
        pytest.param([*LINE[30:], *LINE[:30]], 16, id="two halves the other way round"),
        pytest.param([], 60, id="empty"),
    ],
)
def test_an_answer_is_followed_through_a_draft_with_mistakes(draft: list[int], most: int) -> None:
    assert forwards(LINE, draft) <= most


def test_of_two_places_the_nearest_is_followed() -> None:
    """Twice the same label with other values: the second value is not looked for after the first label."""
    answer = [1, 2, 3, 50, 51, 52, 53, 54, 1, 2, 3, 60, 61, 62, 63, 64]
    candidates = Candidates(answer)
    assert candidates.propose(answer[:2])[0] == 3
    assert candidates.propose(answer[:11])[:3] == [60, 61, 62]


def test_rows_that_repeat_are_found_in_the_answer_itself() -> None:
    assert forwards(LINE[:10] * 6, []) < 30


# ------------------------------------------------------------------------------------------- command


@pytest.mark.slow
def test_the_command_prints_a_table_and_a_json_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """On four small tiles and in one round, for time."""
    module = import_module("hiresvlm.bench.draft")  # not the function of that name
    tiles = tuple(item for item in load_evaluation() if item.kind in ("line", "few", "form-en"))
    monkeypatch.setattr(module, "load_evaluation", lambda: tiles)
    monkeypatch.setattr(module, "ROUNDS", 1)
    result = CliRunner().invoke(app, ["bench", "draft", "--quant", "none", "--limit", "2"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout.splitlines()[-1])
    assert found["tiles"] == 4  # questions are left out
    ways = {row["way"]: row for row in found["rows"]}
    assert list(ways) == ["plain greedy", "draft: light", "draft: right text", "draft: none", "16 slots"]
    for row in ways.values():
        assert row["equal"] + row["undecided"] == found["tiles"]
        assert row["forwards"] <= ways["plain greedy"]["forwards"]
    assert ways["draft: light"]["draft_cpu_s"] > 0
