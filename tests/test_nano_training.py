"""The training code of nano: what goes into a batch, where the losses aim, what is exported."""

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForImageTextToText, AutoTokenizer, Qwen2_5_VLForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from typer.testing import CliRunner

from hiresvlm.engines.vlm.attention import attend
from hiresvlm.nano import train
from hiresvlm.nano.batches import (
    GLYPHS_PER_PATCH,
    IGNORED,
    QUESTION_WEIGHT,
    cells,
    chat_batch,
    glyph_labels,
    patchify,
    tower_batch,
)
from hiresvlm.nano.checkpoint import CheckpointError, deepen, minutes_spent, publish, restore, save
from hiresvlm.nano.data import ALPHABET, Sample, Tile
from hiresvlm.nano.export import export, tokenizer
from hiresvlm.nano.losses import MISREAD_SHARE, GlyphHead, chat_losses, glyph_loss, guided, misread, see
from hiresvlm.nano.model import VISION_WIDTH, configuration, new_model
from hiresvlm.nano.reading import read
from hiresvlm.nano.tokens import SPECIAL_TOKENS, Vocabulary

VOCABULARY = Vocabulary()


def random_tile(seed: int, height: int = 56, width: int = 84, length: int = 9) -> Tile:
    random = np.random.default_rng(seed)
    text = "".join(random.choice(list("abc123 总额"), length))
    centres = np.stack([random.uniform(0, width, length), random.uniform(0, height, length)], 1)
    pixels = random.integers(0, 256, (height, width), dtype=np.uint8)
    return Tile(pixels, text, centres.astype(np.float32), "test")


def sample_of(tile: Tile, question: str | None = None) -> Sample:
    where = np.c_[np.zeros(len(tile.text)), tile.centres].astype(np.float32)
    return Sample((tile,), question, tile.text, where)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return new_model(VOCABULARY)


def test_every_character_has_a_token_of_its_own() -> None:
    assert len(set(ALPHABET)) == len(ALPHABET)
    assert VOCABULARY.decode(VOCABULARY.encode(ALPHABET)) == ALPHABET
    assert VOCABULARY.encode("\u0f00") == [VOCABULARY.ids["<|unknown|>"]]


def test_a_special_token_printed_on_a_page_stays_text() -> None:
    ids = VOCABULARY.encode("<|im_end|>")
    assert len(ids) == 10
    assert min(ids) >= len(SPECIAL_TOKENS)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.booleans(), st.integers(0, 9))
def test_patches_are_those_of_the_processor(rows: int, columns: int, colour: bool, seed: int) -> None:
    shape = (rows * 28, columns * 28, 3) if colour else (rows * 28, columns * 28)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    rgb = pixels if colour else np.repeat(pixels[..., None], 3, axis=2)
    processor = Qwen2VLImageProcessorPil(
        temporal_patch_size=1, image_mean=[0.5] * 3, image_std=[0.5] * 3, do_resize=False
    )
    expected = processor(images=[rgb], return_tensors="pt")["pixel_values"]
    assert torch.allclose(torch.from_numpy(patchify(pixels)), expected, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 40))
def test_glyph_labels_name_each_character_in_its_patch(seed: int, length: int) -> None:
    tile = random_tile(seed, length=length)
    labels = glyph_labels(tile, VOCABULARY)
    expected: dict[int, list[tuple[float, int]]] = {}
    for char, (x, y) in zip(tile.text, tile.centres, strict=True):
        row, column = int(y) // 14, int(x) // 14
        patch = ((row // 2) * 3 + column // 2) * 4 + (row % 2) * 2 + column % 2
        expected.setdefault(patch, []).append((float(x), 1 + ALPHABET.index(char)))
    for patch in range(len(labels)):
        named = [char for _, char in sorted(expected.get(patch, []))]
        if len(named) > GLYPHS_PER_PATCH:
            assert (labels[patch] == IGNORED).all()
        else:
            assert labels[patch].tolist() == named + [0] * (GLYPHS_PER_PATCH - len(named))


def test_cells_count_over_all_tiles_and_stay_inside() -> None:
    where = np.array([[0, 0, 0], [0, 83, 55], [1, 5, 30], [1, 999, 999], [-1, -1, -1]], np.float32)
    assert cells(where, [(2, 3), (2, 1)]).tolist() == [0, 5, 7, 7, -1]


def test_labels_follow_the_answer_and_reads_point_at_image_tokens() -> None:
    samples = [sample_of(random_tile(1)), sample_of(random_tile(2, length=4), "合计?")]
    batch = chat_batch(samples, VOCABULARY)
    for row, sample in enumerate(samples):
        answer = batch.labels[row][batch.labels[row] != IGNORED].tolist()
        assert answer == [*VOCABULARY.encode(sample.target), VOCABULARY.ids["<|im_end|>"]]
        first = int((batch.labels[row] != IGNORED).nonzero()[0])
        assert batch.ids[row, first + 1 : first + 1 + len(sample.target)].tolist() == answer[:-1]
        reads = batch.reads[row, first + 1 : first + 1 + len(sample.target)]
        assert (batch.ids[row][reads] == VOCABULARY.ids["<|image_pad|>"]).all()


def test_the_tower_s_output_comes_back_in_the_order_of_the_patches(model) -> None:
    batch = tower_batch(
        [random_tile(n, 28 * h, 28 * w) for n, (h, w) in enumerate([(5, 9), (1, 6), (9, 4)])], VOCABULARY
    )
    state = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        for (
            block
        ) in model.model.visual.blocks:  # without what blocks add, hidden states are the embedded patches
            for layer in (block.attn.proj, block.mlp.down_proj):
                torch.nn.init.zeros_(layer.weight)
                torch.nn.init.zeros_(layer.bias)
        with guided(model):
            hidden, _ = see(model, batch)
        assert torch.equal(hidden, model.model.visual.patch_embed(batch.patches))
    finally:
        model.load_state_dict(state)


def test_the_answer_of_one_sample_does_not_depend_on_the_padding_of_another(model, monkeypatch) -> None:
    head = GlyphHead(VISION_WIDTH, len(ALPHABET))
    short, long = sample_of(random_tile(3, length=3)), sample_of(random_tile(4, 84, 84, length=30))
    monkeypatch.setattr("hiresvlm.nano.losses.MISREAD_SHARE", 0.0)
    with guided(model):
        model.train()
        alone = [chat_losses(model, head, chat_batch([s], VOCABULARY))["next"].item() for s in (short, long)]
        both = chat_losses(model, head, chat_batch([short, long], VOCABULARY))["next"].item()
    assert both == pytest.approx((alone[0] * 4 + alone[1] * 31) / 35, abs=1e-4)


def test_answers_to_questions_count_more_and_their_labels_are_looked_for(model) -> None:
    tile = random_tile(5)
    asked = replace(sample_of(tile, "what?"), label=(0, 30.0, 40.0))
    nowhere = Sample((tile,), "which?", "none", np.full((4, 3), -1, np.float32))
    batch = chat_batch([asked, sample_of(tile), sample_of(tile, "who?"), nowhere], VOCABULARY)
    assert batch.weights.tolist() == [QUESTION_WEIGHT, 1.0, QUESTION_WEIGHT, QUESTION_WEIGHT]
    first = batch.ids[0].tolist().index(VOCABULARY.ids["<|image_pad|>"])
    ends = [int((row != IGNORED).nonzero()[0]) for row in batch.labels]  # of the prompts, answers follow
    label = first + 1 * 3 + 1  # 28-px cells of a tile of 84 x 56
    assert batch.finds.tolist() == [
        [0, ends[0], label, batch.reads[0, ends[0] + 1]],
        [2, ends[2], -1, batch.reads[2, ends[2] + 1]],
    ]
    assert all((batch.reads[row, : end + 1] == -1).all() for row, end in enumerate(ends))


def test_further_questions_are_turns_of_the_same_chat(model) -> None:
    tile = random_tile(6, length=12)
    whole = sample_of(tile).where

    def answered(question: str, start: int, stop: int, **rest: object) -> Sample:
        return Sample((tile,), question, tile.text[start:stop], whole[start:stop], **rest)

    second, third = answered("总额?", 3, 5, label=(0, 1.0, 1.0)), answered("no. 3?", 8, 12)
    batch = chat_batch([answered("no. 1?", 0, 2, further=(second, third))], VOCABULARY)
    answers = "".join(VOCABULARY.tokens[n] if n != IGNORED else "" for n in batch.labels[0].tolist())
    end = "<|im_end|>"
    assert answers == f"{tile.text[0:2]}{end}{tile.text[3:5]}{end}{tile.text[8:12]}{end}"
    chat = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "no. 1?"}]}]
    for question, answer in (("总额?", tile.text[0:2]), ("no. 3?", tile.text[3:5])):
        chat += [{"role": "assistant", "content": answer}, {"role": "user", "content": question}]
    text = tokenizer(VOCABULARY).apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    text = text.replace("<|image_pad|>", "<|image_pad|>" * 6)
    assert tokenizer(VOCABULARY)(text + tile.text[8:12]).input_ids == batch.ids[0].tolist()
    cell = cells(whole, [(2, 3)]) + batch.ids[0].tolist().index(VOCABULARY.ids["<|image_pad|>"])
    for (_, place, label, value), start, stop in zip(
        batch.finds.tolist(), (0, 3, 8), (2, 5, 12), strict=True
    ):
        assert batch.reads[0, place + 1 : place + 1 + stop - start].tolist() == cell[start:stop].tolist()
        assert value == cell[start]
        assert (label >= 0) == (start == 3)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_guides_look_at_the_label_and_the_value_that_were_asked_for(model, precision) -> None:
    """Gradients of the guides lift the attention of their heads where they should look."""
    torch.manual_seed(4)
    fresh, head = new_model(VOCABULARY), GlyphHead(VISION_WIDTH, len(ALPHABET))
    asked = replace(sample_of(random_tile(5), "what?"), label=(0, 30.0, 40.0))
    batch = chat_batch([asked], VOCABULARY)
    steppers = train.optimizers(fresh, head, train.Sitting("read", 1, {"line": 1}))
    found = []
    with guided(fresh):
        fresh.train()
        for _ in range(12):
            with torch.autocast("cpu", precision, enabled=precision != torch.float32):
                guide = chat_losses(fresh, head, batch)["guide"]
            torch.autograd.backward(guide)
            train.advance(steppers, 1.0)
            found.append(guide.item())
    assert found[-1] < 0.6 * found[0]


def test_some_characters_of_answers_are_misread_and_nothing_else() -> None:
    torch.manual_seed(3)
    batch = chat_batch([sample_of(random_tile(n, length=60), "what?") for n in range(8)], VOCABULARY)
    before = batch.ids.clone()
    changed = misread(batch)
    assert torch.equal(batch.ids, before)
    wrong = changed != batch.ids
    assert (batch.reads[wrong] >= 0).all()
    share = wrong.sum().item() / (batch.reads >= 0).sum().item()
    assert 0.03 < share <= 1.5 * MISREAD_SHARE
    assert set(changed[wrong].tolist()) <= set(batch.ids[batch.reads >= 0].tolist())
    nothing = Sample((random_tile(1),), "what?", "none", np.full((4, 3), -1, np.float32))
    batch = chat_batch([nothing], VOCABULARY)
    assert torch.equal(misread(batch), batch.ids)


def test_plain_attention_is_that_of_the_kernel() -> None:
    torch.manual_seed(5)
    query, key, value = torch.randn(2, 4, 9, 8), torch.randn(2, 2, 9, 8), torch.randn(2, 2, 9, 8)
    for causal in (False, True):
        exact = attend(query, key, value, 0.3, causal)
        half = attend(query.bfloat16(), key.bfloat16(), value.bfloat16(), 0.3, causal)
        assert half.dtype == torch.bfloat16
        assert torch.allclose(half.float(), exact, atol=0.03)


@pytest.mark.parametrize("stage", ["tower", "read"])
def test_a_sitting_that_was_broken_off_goes_on_where_it_was_saved(stage, tmp_path, monkeypatch) -> None:
    tiles = [random_tile(n) for n in range(2)]
    made = (
        chat_batch([sample_of(t) for t in tiles], VOCABULARY)
        if stage == "read"
        else tower_batch(tiles, VOCABULARY)
    )
    steps = [0]

    def some(mixture, *, seed, budget, answers):
        while True:
            steps[0] += 1
            if steps[0] == 4:
                raise KeyboardInterrupt
            yield made

    monkeypatch.setattr(train, "batches", some)
    monkeypatch.setattr(train, "SAVE_EVERY_S", 0.0)
    monkeypatch.setattr(train, "READ_EVERY_S", 0.0)
    monkeypatch.setattr(train, "WATCHED", {"line": 1})
    sitting = train.Sitting(stage, 0.05, {"line": 1})
    with pytest.raises(KeyboardInterrupt):
        train.sit(sitting, tmp_path, "a", None, seed=1, threads=1)
    saved = minutes_spent(tmp_path / "a.safetensors")
    assert 0 < saved < 0.05
    path = train.sit(sitting, tmp_path, "a", None, seed=1, threads=1)
    assert minutes_spent(path) == 0.05
    log = path.with_suffix(".jsonl")
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    reads = [line["cer"]["line"] for line in lines if "cer" in line]
    assert all(rate > 0 for rate in reads)
    assert bool(reads) == (stage == "read"), "a tower alone cannot read"
    before = steps[0]
    assert before > 4
    train.sit(sitting, tmp_path, "a", None, seed=1, threads=1)
    assert steps[0] == before, "a sitting that is done is left out"


def test_the_whole_recipe_runs_and_ends_in_a_model_folder(tmp_path, monkeypatch) -> None:
    tiles = [random_tile(n) for n in range(2)]
    made = {
        False: tower_batch(tiles, VOCABULARY),
        True: chat_batch([sample_of(tile) for tile in tiles], VOCABULARY),
    }

    def endless(mixture, *, seed, budget, answers):
        return itertools.repeat(made[answers])

    monkeypatch.setattr(train, "batches", endless)
    train.train_all(tmp_path, hours=0.001, threads=1)
    logs = sorted(path.stem for path in tmp_path.glob("*.safetensors"))
    assert [name for name in logs if name[0].isdigit()] == [
        f"{n}-{sitting.stage}" for n, sitting in enumerate(train.RECIPE, 1)
    ]
    loaded = AutoModelForImageTextToText.from_pretrained(tmp_path / "weights", dtype=torch.float32)
    assert len(read(loaded.eval(), [sample_of(tiles[0])], VOCABULARY)) == 1
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("[0-9]*.safetensors")}
    train.train_all(tmp_path, hours=0.001, threads=1)
    assert before == {path: path.stat().st_mtime_ns for path in before}, "nothing is trained twice"


def test_a_training_goes_on_from_published_weights(tmp_path: Path) -> None:
    torch.manual_seed(2)
    fresh, head = new_model(VOCABULARY), GlyphHead(VISION_WIDTH, len(ALPHABET))
    save(tmp_path / "a.safetensors", fresh, head, {})
    publish(tmp_path / "a.safetensors", tmp_path / "weights")
    other, other_head = new_model(VOCABULARY), GlyphHead(VISION_WIDTH, len(ALPHABET))
    restore(tmp_path / "weights", other, other_head)
    for ours, theirs in ((fresh, other), (head, other_head)):
        for name, value in ours.state_dict().items():
            assert torch.equal(value.half(), theirs.state_dict()[name].half()), name


def test_a_few_steps_lower_every_loss() -> None:
    torch.manual_seed(1)
    fresh = new_model(VOCABULARY)
    head = GlyphHead(VISION_WIDTH, len(ALPHABET))
    batch = chat_batch([sample_of(random_tile(n)) for n in range(4)], VOCABULARY)
    steppers = train.optimizers(fresh, head, train.Sitting("read", 1, {"line": 1}))
    losses = []
    with guided(fresh):
        fresh.train()
        for _ in range(12):
            found = chat_losses(fresh, head, batch)
            torch.autograd.backward(found["next"] + found["glyph"] + found["guide"])
            for stepper in steppers:
                stepper.step()
                stepper.zero_grad()
            losses.append({name: value.item() for name, value in found.items()})
    for name in ("next", "glyph", "guide"):
        assert losses[-1][name] < 0.9 * losses[0][name], name


def test_patches_without_a_character_and_blank_tiles_have_a_finite_loss(model) -> None:
    blank = Tile(np.full((56, 56), 255, np.uint8), "", np.zeros((0, 2), np.float32), "blank")
    batch = tower_batch([blank], VOCABULARY)
    with guided(model):
        hidden, _ = see(model, batch)
    loss, _ = glyph_loss(GlyphHead(VISION_WIDTH, len(ALPHABET)), hidden, batch.labels)
    assert torch.isfinite(loss)


def test_a_checkpoint_goes_on_where_it_stopped(model, tmp_path: Path) -> None:
    head = GlyphHead(VISION_WIDTH, len(ALPHABET))
    save(tmp_path / "a.safetensors", model, head, {"step": "1"})
    torch.manual_seed(7)
    other, other_head = new_model(VOCABULARY), GlyphHead(VISION_WIDTH, len(ALPHABET))
    restore(tmp_path / "a.safetensors", other, other_head)
    for (name, value), loaded in zip(model.state_dict().items(), other.state_dict().values(), strict=True):
        assert torch.equal(value, loaded), name


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_deeper_model_says_the_same_until_it_is_trained(after: int, tmp_path: Path) -> None:
    torch.manual_seed(3)
    shape = configuration(VOCABULARY)
    text = shape.text_config
    text.num_hidden_layers -= 1
    text.layer_types = text.layer_types[:-1]
    shallow, head = Qwen2_5_VLForConditionalGeneration(shape), GlyphHead(VISION_WIDTH, len(ALPHABET))
    save(tmp_path / "a.safetensors", shallow, head, {"minutes": "7"})
    deepen(tmp_path / "a.safetensors", after, tmp_path / "b.safetensors")
    deep, deep_head = new_model(VOCABULARY), GlyphHead(VISION_WIDTH, len(ALPHABET))
    restore(tmp_path / "b.safetensors", deep, deep_head)
    assert minutes_spent(tmp_path / "b.safetensors") == 0.0
    batch = chat_batch([sample_of(random_tile(5)), sample_of(random_tile(6), "total")], VOCABULARY)
    losses = [chat_losses(m.eval(), h, batch) for m, h in ((shallow, head), (deep, deep_head))]
    for name, value in losses[0].items():
        assert value.item() == pytest.approx(losses[1][name].item(), abs=1e-6), name
    new, copied = (deep.model.language_model.layers[n].mlp for n in (after + 1, after))
    assert torch.equal(new.gate_proj.weight, copied.gate_proj.weight)
    with pytest.raises(CheckpointError, match="no layer 4"):
        deepen(tmp_path / "a.safetensors", 4, tmp_path / "c.safetensors")


def not_checkpoints(folder: Path, model: Qwen2_5_VLForConditionalGeneration) -> dict[str, Path]:
    """Files and folders that look like a checkpoint, by what the error has to say."""
    head = GlyphHead(VISION_WIDTH, len(ALPHABET))
    save(folder / "foreign.safetensors", torch.nn.Linear(2, 2), head, {})
    save(folder / "shape.safetensors", model, GlyphHead(VISION_WIDTH, 7), {})
    (folder / "text.safetensors").write_text("hello", encoding="utf-8")
    (folder / "empty").mkdir()
    export(model, VOCABULARY, folder / "model")
    return {
        "not a checkpoint of this model: no model": folder / "foreign.safetensors",
        r"not a checkpoint of this model: head.*not \(": folder / "shape.safetensors",
        "cannot load": folder / "text.safetensors",
        "model.safetensors": folder / "empty",
        "glyph_head": folder / "model",
        "nowhere": folder / "nowhere",
    }


def test_what_is_no_checkpoint_is_refused_in_words(tmp_path: Path) -> None:
    fresh = new_model(VOCABULARY)
    for words, path in not_checkpoints(tmp_path, fresh).items():
        with pytest.raises(CheckpointError, match=words):
            publish(path, tmp_path / "weights")
    assert not (tmp_path / "weights").exists()
    with pytest.raises(CheckpointError, match="cannot go on") as caught:
        minutes_spent(tmp_path / "text.safetensors")
    assert "remove it" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["all", "--hours", "0"],
        ["all", "--hours", "-1"],
        ["all", "--hours", "nan"],
        ["all", "--threads", "0"],
        ["sitting", "4"],
        ["sitting", "0"],
        ["sitting", "1", "--minutes", "0"],
        ["sitting", "1", "--decay", "1.5"],
        ["sitting", "1", "--decay", "nan"],
        ["sitting", "1", "--rate", "-1"],
        ["sitting", "1", "--seed", "-1"],
        ["fusion", "--rate", "0", "--from", "x"],
        ["deepen", "a", "b", "--after", "-1"],
    ],
    ids=" ".join,
)
def test_numbers_that_make_no_sense_are_refused_before_any_work(arguments, tmp_path, monkeypatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("trained")

    monkeypatch.setattr(train, "sit", never)
    if arguments[0] == "sitting":
        rest = {"--from": "x", "--minutes": "1", "--name": "a", "--seed": "1"}
        arguments = arguments + [part for pair in rest.items() if pair[0] not in arguments for part in pair]
    result = CliRunner().invoke(train.app, arguments)
    assert result.exit_code == 2, result.output


def test_errors_of_a_training_end_in_one_sentence(tmp_path, monkeypatch, capsys) -> None:
    def ended(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr("sys.argv", ["train", *arguments])
        with pytest.raises(SystemExit) as end:
            train.main()
        return end.value.code, capsys.readouterr().err

    code, said = ended("publish", str(tmp_path / "none.safetensors"), str(tmp_path / "weights"))
    assert code == 5
    assert "none.safetensors" in said
    assert "Traceback" not in said
    monkeypatch.setattr("hiresvlm.nano.data.fonts.FOLDERS", (tmp_path,))
    code, said = ended("all", "--out", str(tmp_path / "out"), "--hours", "0.01")
    assert code == 4
    assert "only 0 of the" in said
    assert "apt-get install" in said
    assert "fonts-dejavu-core" in said
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, said = ended("all", "--out", str(tmp_path / "file"))
    assert code == 6
    assert "cannot write" in said
    code, said = ended(
        "sitting",
        "1",
        "--from",
        "x",
        "--minutes",
        "1",
        "--name",
        "../a",
        "--seed",
        "1",
        "--out",
        str(tmp_path),
    )
    assert code == 6
    assert "name" in said


def test_ctrl_c_saves_and_the_rest_of_the_log_is_written(tmp_path, monkeypatch) -> None:
    made = tower_batch([random_tile(1)], VOCABULARY)

    def two(mixture, *, seed, budget, answers):
        yield made
        yield made
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "batches", two)
    with pytest.raises(KeyboardInterrupt):
        train.sit(train.Sitting("tower", 1, {"line": 1}), tmp_path, "a", None, seed=1, threads=1)
    assert 0 < minutes_spent(tmp_path / "a.safetensors") < 1
    monkeypatch.setattr(train, "batches", lambda *_, **__: itertools.repeat(made))
    path = train.sit(train.Sitting("tower", 0.02, {"line": 1}), tmp_path, "b", None, seed=1, threads=1)
    lines = [json.loads(line) for line in path.with_suffix(".jsonl").read_text().splitlines()]
    assert lines[-1]["step"] >= 1
    assert lines[-1]["glyph"] > 0


def test_the_exported_folder_loads_as_its_class_and_answers_the_same(model, tmp_path: Path) -> None:
    half = new_model(VOCABULARY)
    half.load_state_dict({name: value.half().float() for name, value in model.state_dict().items()})
    export(half, VOCABULARY, tmp_path)
    loaded = AutoModelForImageTextToText.from_pretrained(tmp_path, dtype=torch.float32)
    assert type(loaded) is type(half)
    samples = [sample_of(random_tile(n)) for n in range(2)]
    assert read(loaded.eval(), samples, VOCABULARY) == read(half.eval(), samples, VOCABULARY)
    assert (tmp_path / "model.safetensors").stat().st_size < 12_000_000


def test_the_chat_template_gives_the_prompt_of_the_training(model, tmp_path: Path) -> None:
    export(new_model(VOCABULARY), VOCABULARY, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    content = [{"type": "image"}, {"type": "image"}, {"type": "text", "text": "总金额?"}]
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
    )
    start, end = "<|vision_start|>", "<|vision_end|>"
    text = text.replace(
        f"{start}<|image_pad|>{end}" * 2,
        f"{start}{'<|image_pad|>' * 6}{end}{start}{'<|image_pad|>' * 2}{end}",
    )
    assert tokenizer(text).input_ids == VOCABULARY.prompt([6, 2], "总金额?")
