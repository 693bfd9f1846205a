"""The slot-refill loop gives each request the answer that `generate` gives it alone, token for token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiresvlm.engines.vlm.inputs import grid_thw, token_types
from hiresvlm.engines.vlm.kv import RoomyLayer
from hiresvlm.engines.vlm.sampling import GREEDY, Decoding, pick, repeats
from hiresvlm.engines.vlm.slots import Row
from tests.tiny_models import FAMILIES
from tests.vlm_support import Bench, assert_same_answer, generated, noise, open_model

TOKENS = 40


@pytest.fixture(scope="module")
def benches(tiny: Callable[[str], Path]) -> dict[str, Bench]:
    return {family: open_model(tiny(family)) for family in FAMILIES}


@pytest.fixture(scope="module")
def cases(benches: dict[str, Bench]) -> dict[str, list[tuple[Row, list[int]]]]:
    """Prompts with none to three images of different sizes, with what `generate` answers."""
    found = {}
    for family, bench in benches.items():
        shapes = [((1, 1),), ((2, 3),), ((5, 4), (3, 3)), ((9, 2),), ((4, 7),), ((1, 6), (2, 2), (3, 1)), ()]
        rows = []
        for number, sizes in enumerate(shapes):
            images = [noise(100 * number + n, *size, bench.factor) for n, size in enumerate(sizes)]
            prompt = bench.prompt("Read it. " * (1 + number % 3), *images)
            rows.append((Row(prompt), generated(bench, prompt, TOKENS)))
        found[family] = rows
    return found


def test_the_answers_are_worth_comparing(cases: dict[str, list[tuple[Row, list[int]]]]) -> None:
    for rows in cases.values():
        assert len({tuple(ids) for _, ids in rows}) > len(rows) // 2
        assert sum(len(set(ids)) for _, ids in rows) > 5 * len(rows)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
@pytest.mark.parametrize("family", FAMILIES)
def test_any_slots_and_any_order_give_the_answers_of_generate(
    family: str,
    benches: dict[str, Bench],
    cases: dict[str, list[tuple[Row, list[int]]]],
    data: st.DataObject,
) -> None:
    """Rows join whenever there is room and leave at lengths of their own, also all at once."""
    bench, known = benches[family], cases[family]
    numbers = data.draw(st.permutations(range(len(known))))
    places = data.draw(st.integers(1, len(known)))
    limits = data.draw(st.lists(st.integers(1, TOKENS), min_size=len(known), max_size=len(known)))
    waiting = [(n, Row(known[n][0].prompt), limits[n]) for n in numbers]
    slots = bench.slots()
    running: list[tuple[int, Row, int]] = []
    while waiting or running:
        free = places - len(running)
        if free and waiting and (not running or data.draw(st.booleans())):
            count = data.draw(st.integers(1, free))
            newcomers, waiting = waiting[:count], waiting[count:]
            bench.join(slots, [row for _, row, _ in newcomers])
            running += newcomers
        else:
            slots.step()
        done = [one for one in running if len(one[1].ids) >= one[2] or one[1].ids[-1] in bench.loaded.ends]
        if done:
            slots.leave([row for _, row, _ in done])
            running = [one for one in running if one not in done]
        for number, row, limit in done:
            assert_same_answer(bench, row.prompt, row.ids, known[number][1][:limit])
    assert slots.columns == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_log_probabilities_are_those_of_the_models_scores(family: str, benches: dict[str, Bench]) -> None:
    bench = benches[family]
    row = Row(bench.prompt("Read.", noise(1, 3, 4, bench.factor)))
    slots = bench.slots()
    bench.join(slots, [row])
    for _ in range(5):
        slots.step()
    ids = torch.tensor([[*row.prompt.ids, *row.ids]])
    scores = bench.loaded.model(
        input_ids=ids,
        mm_token_type_ids=token_types(ids, bench.loaded.image_token),
        image_grid_thw=grid_thw(row.prompt.images, ids.device),
        mm_encoder_outputs=bench.encoder.as_output(bench.encoder.encode(row.prompt.images)),
    ).logits[0, len(row.prompt) - 1 : -1]
    wanted = scores.log_softmax(-1).gather(1, torch.tensor(row.ids)[:, None])[:, 0]
    assert torch.allclose(torch.tensor(row.logprobs, dtype=torch.float32), wanted, atol=1e-4)


def test_columns_that_nobody_uses_are_dropped(benches: dict[str, Bench]) -> None:
    bench = benches["qwen2_5_vl"]
    long, short = (Row(bench.prompt("a", noise(1, side, side, bench.factor))) for side in (8, 1))
    slots = bench.slots()
    bench.join(slots, [long, short])
    assert slots.columns == len(long.prompt)
    slots.leave([long])
    assert slots.columns == len(short.prompt)


def test_positions_of_the_model_itself_are_not_touched(benches: dict[str, Bench]) -> None:
    """`rope_deltas` is shared state: another user of the model cannot disturb a running batch."""
    bench = benches["qwen3_vl"]
    before = bench.loaded.model.model.rope_deltas
    row = Row(bench.prompt("a", noise(2, 6, 2, bench.factor)))
    wanted = generated(bench, row.prompt, 12)
    slots = bench.slots()
    bench.join(slots, [row])
    bench.loaded.model.model.rope_deltas = torch.tensor([[1000]])
    for _ in range(11):
        slots.step()
    bench.loaded.model.model.rope_deltas = before
    assert_same_answer(bench, row.prompt, row.ids, wanted)


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), min_size=1, max_size=20), st.integers(1, 200))
def test_keys_that_grow_in_place_are_those_that_were_appended(
    appends: list[tuple[int, bool]], first: int
) -> None:
    layer = RoomyLayer()
    wanted = torch.randn(2, 1, first, 4)
    layer.update(wanted, -wanted)
    for columns, cut in appends:
        more = torch.randn(wanted.shape[0], 1, columns, 4)
        wanted = torch.cat((wanted, more), dim=2)
        keys, values = layer.update(more, -more)
        assert torch.equal(keys, wanted)
        assert torch.equal(values, -wanted)
        if cut and wanted.shape[2] > 1:
            wanted = wanted[:1, :, 1:]
            layer.put(layer.keys[:1, :, 1:], layer.values[:1, :, 1:])
    assert layer.get_seq_length() == wanted.shape[2]
    layer.drop()
    assert layer.get_seq_length() == 0


# ------------------------------------------------------------------------------------------ sampling


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(2, 5), st.integers(5, 40))
def test_banned_tokens_are_those_that_would_repeat_a_run(ids: list[int], size: int, window: int) -> None:
    banned = repeats(ids, size, window)
    recent = ids[-window:]
    runs = {tuple(recent[n : n + size]) for n in range(len(recent) - size + 1)}
    for token in range(4):
        run = tuple([*recent, token][-size:])
        assert (token in banned) == (len(recent) >= size and run in runs)


def test_each_row_is_decoded_in_its_own_way() -> None:
    scores = torch.tensor([[3.0, 2.0, 1.0]] * 3)
    ways = [
        (GREEDY, [0, 0]),
        (Decoding(no_repeat=2), [0, 0]),
        (Decoding(temperature=5.0, seed=3), [0]),
    ]
    tokens, logprobs = pick(scores, ways)
    assert tokens[:2].tolist() == [0, 1]
    again, _ = pick(scores, ways)
    assert again.tolist() == tokens.tolist()
    assert torch.allclose(logprobs, scores[0].log_softmax(-1)[tokens])
    drawn = {int(pick(scores[:1], [(Decoding(temperature=5.0, seed=n), [0])])[0][0]) for n in range(40)}
    assert drawn == {0, 1, 2}
