"""Finding, checking, loading and quantizing models: what is refused, what is promised before a download."""

from __future__ import annotations

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from bitsandbytes.nn import Linear4bit
from huggingface_hub.errors import LocalEntryNotFoundError

from hiresvlm.bench import loading as load_bench
from hiresvlm.engines.vlm import VlmEngine, choice, device, folder, memory, presets, quantization
from hiresvlm.engines.vlm.loading import load
from hiresvlm.engines.vlm.shape import shape_of
from hiresvlm.errors import EngineLoadError, OutputError, UsageError
from hiresvlm.settings import EngineSettings
from tests.support import cli
from tests.tiny_models import FAMILIES, save_tiny
from tests.vlm_support import noise, open_model


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test sees models of the developer."""
    monkeypatch.setenv("HIRESVLM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def copy(tiny: Callable[[str], Path], tmp_path: Path) -> Path:
    """A model folder that a test may spoil."""
    return Path(shutil.copytree(tiny("qwen2_5_vl"), tmp_path / "model"))


def looked(path: Path | str) -> folder.Model:
    return folder.look(folder.locate(str(path)))


def change(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


# ------------------------------------------------------------------------------------ what is refused


def test_folders_that_are_no_model(copy: Path, tmp_path: Path) -> None:
    wanted = {
        "tokenizer.json": "lacks tokenizer.json",
        "model.safetensors": "lacks model.safetensors",
        "config.json": "config.json is missing",
    }
    for name, message in wanted.items():
        kept = tmp_path / "kept"
        shutil.move(copy / name, kept)
        with pytest.raises(EngineLoadError, match=message):
            looked(copy)
        shutil.move(kept, copy / name)
    looked(copy)
    (copy / "config.json").write_text("{")
    with pytest.raises(EngineLoadError, match="cannot be read"):
        looked(copy)
    (copy / "config.json").write_text("[]")
    with pytest.raises(EngineLoadError, match="not a JSON object"):
        looked(copy)


def test_another_architecture_is_named(copy: Path) -> None:
    change(copy / "config.json", model_type="llava", architectures=["LlavaForConditionalGeneration"])
    with pytest.raises(EngineLoadError, match="LlavaForConditionalGeneration") as caught:
        looked(copy)
    assert "Qwen3-VL" in (caught.value.hint or "")


def test_pickled_weights_are_never_loaded(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(EngineLoadError, match="pickled weights"):
        looked(copy)


def test_pickled_weights_beside_safe_ones_or_in_an_index_are_left_alone(copy: Path) -> None:
    (copy / "pytorch_model.bin").write_bytes(b"not even a pickle")
    load(looked(copy), "none", "cpu")
    index = {"weight_map": {"a": "pytorch_model.bin"}}
    (copy / "model.safetensors").rename(copy / "kept")
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(EngineLoadError, match="pickled weights"):
        looked(copy)


def test_code_of_a_model_is_never_run(copy: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (copy / "evil.py").write_text(f"open({str(ran)!r}, 'w')\nclass Model: pass\n")
    change(
        copy / "config.json",
        auto_map={"AutoModelForImageTextToText": "evil.Model", "AutoConfig": "evil.Model"},
    )
    change(copy / "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Model", None]})
    load(looked(copy), "none", "cpu")
    assert not ran.exists()


def test_a_missing_shard_and_an_index(copy: Path) -> None:
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    (copy / "model.safetensors").rename(copy / "model-00001-of-00002.safetensors")
    with pytest.raises(EngineLoadError, match="model-00002-of-00002"):
        looked(copy)


def test_damaged_weights_and_those_of_another_model(copy: Path, tmp_path: Path) -> None:
    weights = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(EngineLoadError, match="cannot be loaded"):
        load(looked(copy), "none", "cpu")
    other = save_tiny(tmp_path / "other", "qwen2_5_vl", num_hidden_layers=2)
    shutil.copy(other / "model.safetensors", copy / "model.safetensors")
    with pytest.raises(EngineLoadError, match=r"layers\.2"):
        load(looked(copy), "none", "cpu")


def test_a_tokenizer_or_template_that_makes_no_sense(copy: Path) -> None:
    (copy / "chat_template.jinja").unlink()
    change(copy / "tokenizer_config.json", chat_template=None)
    with pytest.raises(EngineLoadError, match="no chat template"):
        load(looked(copy), "none", "cpu")
    (copy / "tokenizer.json").write_text("{}")
    with pytest.raises(EngineLoadError, match="tokenizer"):
        load(looked(copy), "none", "cpu")


def test_names_that_are_no_model(tmp_path: Path) -> None:
    for name in ("qwen4-vl", str(tmp_path / "nowhere"), "./nowhere", "a/b/c", ""):
        if name:
            with pytest.raises(EngineLoadError, match="there is no model") as caught:
                folder.locate(name)
            assert "qwen3-vl-4b" in (caught.value.hint or "")
    for options, error in (
        ({"quant": "int8"}, UsageError),
        ({"device": "tpu"}, UsageError),
        ({"device": "cuda:99"}, EngineLoadError),
    ):
        with pytest.raises(error):
            VlmEngine.describe(EngineSettings(name="vlm", **options))


# -------------------------------------------------------------------------------- who a model is


def test_a_local_folder_is_known_by_its_content(copy: Path, tmp_path: Path) -> None:
    first = folder.locate(str(copy))
    moved = Path(shutil.copytree(copy, tmp_path / "elsewhere" / "model"))
    assert folder.locate(str(moved)).revision == first.revision
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (moved / "model.safetensors").write_bytes(weights)
    assert folder.locate(str(moved)).revision != first.revision
    assert first.name == "model"


def test_a_card_says_who_a_model_is_and_what_it_needs(copy: Path) -> None:
    card = {
        "name": "mine",
        "revision": "7",
        "licence": "MIT",
        "legible": 20,
        "legible_clean": 15,
        "max_tokens": 256,
    }
    (copy / folder.CARD).write_text(json.dumps(card))
    source = folder.locate(str(copy))
    assert (source.name, source.revision, source.licence) == ("mine", "7", "MIT")
    info, profile = VlmEngine.describe(EngineSettings(name="vlm", model=str(copy), device="cpu"))
    assert (info.model, info.revision, info.quant, info.device) == ("mine", "7", "int4", "cpu")
    assert (profile.legible, profile.legible_clean, profile.max_tokens, profile.factor) == (
        20.0,
        15.0,
        256,
        28,
    )


def test_a_snapshot_of_the_hub_cache_is_found_without_the_hub(copy: Path, tmp_path: Path) -> None:
    preset = presets.PRESETS["qwen3-vl-8b"]
    assert preset.repository is not None
    assert preset.revision is not None
    assert not folder.locate("qwen3-vl-8b").on_disk
    root = tmp_path / "hub" / "hub" / f"models--{preset.repository.replace('/', '--')}"
    shutil.copytree(copy, root / "snapshots" / preset.revision)
    found = folder.locate("qwen3-vl-8b")
    assert found.folder == root / "snapshots" / preset.revision
    assert found.revision == preset.revision
    assert not folder.locate(preset.repository).on_disk  # main is unknown
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text(preset.revision)
    assert folder.locate(preset.repository).revision == preset.revision
    assert folder.locate(f"{preset.repository}@main").on_disk
    assert not folder.locate(f"{preset.repository}@other").on_disk


def test_what_is_not_here_is_not_fetched_when_the_hub_is_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in ("some/model", "some/model@v1", "qwen2.5-vl-3b"):
        with pytest.raises(EngineLoadError, match="HF_HUB_OFFLINE"):
            folder.fetch(folder.locate(name))
    done = cli("ocr", "README.md", "-m", "some/model", "-q")
    assert done.returncode == 5
    assert "HF_HUB_OFFLINE" in done.stderr


def test_of_an_unknown_repository_only_settings_are_fetched_before_it_is_known_to_fit(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[list[str]] = []

    def download(repository: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        fetched.append(allow_patterns)
        return str(copy)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    settings = EngineSettings(name="vlm", model="some/model@v2", quant="none", device="cpu")
    info, profile = VlmEngine.describe(settings)
    assert (info.model, info.revision, profile.factor) == ("some/model", copy.name, 28)
    monkeypatch.setattr(memory, "free_memory", lambda _: 2**20)
    with pytest.raises(EngineLoadError, match="needs about"):
        VlmEngine(settings)
    assert fetched == [["*.json"]] * 3
    change(copy / "config.json", model_type="llava")
    with pytest.raises(EngineLoadError, match="does not run"):
        VlmEngine.describe(settings)


def test_a_local_model_needs_no_network(tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("a network call")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    engine = VlmEngine(EngineSettings(name="vlm", model=str(tiny("qwen3_vl")), device="cpu"))
    engine.close()


def test_a_preset_is_described_before_it_is_here_and_torch_is_not_imported() -> None:
    code = (
        "import sys; from hiresvlm.engines.vlm import VlmEngine;"
        "from hiresvlm.settings import EngineSettings;"
        "print(VlmEngine.describe(EngineSettings(name='vlm', model='qwen2.5-vl-7b', device='cpu')));"
        "print([m for m in ('torch', 'transformers', 'huggingface_hub', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    told, heavy = done.stdout.splitlines()
    assert "Qwen/Qwen2.5-VL-7B-Instruct" in told
    assert "cc594898137f460bfe9f0759e9844b3ce807cfb5" in told
    assert heavy == "[]"


# --------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("quant", ["none", "int4"])
def test_bytes_from_the_config_are_those_of_the_loaded_model(
    family: str, quant: str, tiny: Callable[[str], Path]
) -> None:
    loaded = load(looked(tiny(family)), quant, "cpu")
    told = loaded.facts.shape.weight_bytes(quant, 4)
    assert told == pytest.approx(loaded.weight_bytes, rel=0.03)


def test_sizes_of_the_presets_are_those_that_are_published() -> None:
    billions = {"qwen3-vl-4b": 4.44, "qwen3-vl-8b": 8.77, "qwen2.5-vl-3b": 3.75, "qwen2.5-vl-7b": 8.29}
    for name, wanted in billions.items():
        shape = presets.PRESETS[name].shape
        assert shape is not None
        assert shape.parameters / 1e9 == pytest.approx(wanted, rel=0.01)
    four = presets.PRESETS["qwen3-vl-4b"].shape
    assert four is not None
    assert 3.5e9 < four.weight_bytes("int4", 2) < 4.5e9
    assert four.weight_bytes("none", 2) == pytest.approx(8.9e9, rel=0.02)


def test_a_model_that_does_not_fit_is_refused_before_it_is_fetched_and_names_one_that_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fetched(source: folder.Source) -> folder.Source:
        raise AssertionError("a download")

    monkeypatch.setattr(folder, "fetch", fetched)
    monkeypatch.setattr(memory, "free_memory", lambda _: 12 * 2**30)
    with pytest.raises(EngineLoadError, match=r"needs about .* GiB on cpu, of which 12\.0 GiB") as caught:
        VlmEngine(EngineSettings(name="vlm", model="qwen3-vl-8b", quant="none", device="cpu"))
    assert caught.value.hint == "--quant int4 needs about a third"


def test_the_hint_for_little_memory_names_the_largest_preset_that_fits() -> None:
    shape = presets.PRESETS["qwen3-vl-8b"].shape
    assert shape is not None
    for gib, wanted in ((8, "--model qwen2.5-vl-7b fits"), (6, "-vl-4b fits"), (3, "no preset fits")):
        error = memory.too_large("x", shape, "int4", "cuda:0", gib * 2**30)
        assert wanted in (error.hint or "")


# ------------------------------------------------------------------------------------- quantization


@pytest.mark.parametrize("family", FAMILIES)
def test_the_language_model_is_in_nf4_and_nothing_else(family: str, tiny: Callable[[str], Path]) -> None:
    loaded = load(looked(tiny(family)), "int4", "cpu")
    four = {name: module for name, module in loaded.model.named_modules() if isinstance(module, Linear4bit)}
    assert len(four) == 7 * loaded.facts.shape.layers
    assert all(".language_model.layers." in name for name in four)
    assert {module.weight.quant_type for module in four.values()} == {"nf4"}
    assert {module.compute_dtype for module in four.values()} == {torch.float32}
    assert loaded.dtype == torch.float32


def test_the_setting_that_is_silently_ignored_is_caught(
    tiny: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quantization, "skipped", lambda family: ["visual"])
    with pytest.raises(EngineLoadError, match="not quantized as they should be"):
        load(looked(tiny("qwen3_vl")), "int4", "cpu")


def test_widths_that_the_library_computes_wrongly_in_four_bits_are_refused(tmp_path: Path) -> None:
    narrow = save_tiny(tmp_path / "narrow", "qwen2_5_vl", intermediate_size=96)
    with pytest.raises(EngineLoadError, match=r"down_proj, have a width that is no multiple of 64") as caught:
        load(looked(narrow), "int4", "cpu")
    assert "--quant none" in (caught.value.hint or "")
    assert load(looked(narrow), "none", "cpu").weight_bytes


def test_layers_in_four_bits_multiply_with_the_weights_that_were_quantized(
    tiny: Callable[[str], Path],
) -> None:
    exact, four = (load(looked(tiny("qwen2_5_vl")), quant, "cpu").model for quant in ("none", "int4"))
    floats = dict(exact.named_modules())
    for name, module in four.named_modules():
        if isinstance(module, Linear4bit):
            weights = floats[name].weight
            error = (module(torch.eye(module.in_features)).T - weights).reshape(-1, quantization.BLOCK).abs()
            scale = weights.reshape(-1, quantization.BLOCK).abs().amax(1, keepdim=True)
            # The widest gap between two levels of NF4 is 0.304 of the largest weight of a block; some
            # processors round the products to bfloat16.
            assert (error <= 0.16 * scale).all(), name


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pre_quantized_folder_gives_the_same_bits(family: str, tmp_path: Path) -> None:
    original = save_tiny(tmp_path / "original", family, dtype="bfloat16")
    fresh = open_model(original, "int4")
    out = quantization.quantize(str(original), tmp_path / "made", "cpu")
    reloaded = open_model(out, "int4")
    prompt = fresh.prompt("Read.", noise(1, 4, 5, fresh.factor))
    scores = []
    for bench in (fresh, reloaded):
        features = bench.encoder.encode(prompt.images)
        with torch.inference_mode():
            output = bench.loaded.model(
                input_ids=torch.tensor([prompt.ids]),
                position_ids=torch.arange(len(prompt)).expand(3, 1, -1),
                mm_encoder_outputs=bench.encoder.as_output(features),
            )
        scores.append(output.logits)
    assert torch.equal(*scores)
    sizes = [sum(path.stat().st_size for path in place.glob("*.safetensors")) for place in (original, out)]
    assert sizes[1] < sizes[0]
    one, two = folder.locate(str(original)), folder.locate(str(out))
    assert (one.name, one.revision) == (two.name, two.revision)


def test_a_folder_in_the_cache_is_used_by_itself_until_the_model_changes(copy: Path, own_cache: Path) -> None:
    assert quantization.cached(folder.locate(str(copy))) is None
    made = quantization.quantize(str(copy), None, "cpu")
    assert made.is_relative_to(own_cache)
    assert load(looked(copy), "int4", "cpu").facts.folder == made
    assert load(looked(copy), "none", "cpu").facts.folder == copy
    change(copy / "generation_config.json", temperature=0.5)
    assert load(looked(copy), "int4", "cpu").facts.folder == copy


def test_what_quantize_refuses(copy: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").touch()
    with pytest.raises(OutputError, match="exists already"):
        quantization.quantize(str(copy), taken, "cpu")
    made = quantization.quantize(str(copy), tmp_path / "made", "cpu")
    with pytest.raises(EngineLoadError, match="quantized already"):
        quantization.quantize(str(made), tmp_path / "again", "cpu")
    with pytest.raises(UsageError, match="4-bit weights"):
        VlmEngine.describe(EngineSettings(name="vlm", model=str(made), quant="none", device="cpu"))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_folder_that_cannot_be_written_is_known_before_the_work(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def worked(*arguments: object, **options: object) -> None:
        raise AssertionError("weights were read")

    monkeypatch.setattr("hiresvlm.engines.vlm.loading.read_weights", worked)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"cannot write .*made"):
        quantization.quantize(str(copy), tmp_path / "file" / "made", "cpu")

    def unplugged(*arguments: object, **options: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(quantization.tempfile, "mkdtemp", unplugged)
    with pytest.raises(OutputError, match="Read-only file system"):
        quantization.quantize("some/model", tmp_path / "made", "cpu")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionError("x"), "the hub cannot be reached"),
        (LocalEntryNotFoundError("x"), "the hub cannot be reached"),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (RuntimeError("x"), "the hub's client reports RuntimeError"),
    ],
)
def test_why_a_model_could_not_be_fetched_is_said_in_words(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(*arguments: object, **options: object) -> str:
        raise error

    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    with pytest.raises(EngineLoadError, match=f"could not be fetched: {words}"):
        folder.fetch(folder.locate("some/model"))


def test_an_interrupted_quantize_leaves_nothing(
    copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(quantization.shutil, "copy", interrupt)
    with pytest.raises(KeyboardInterrupt):
        quantization.quantize(str(copy), tmp_path / "made", "cpu")
    assert {path.name for path in tmp_path.iterdir()} == {"model"}


@pytest.mark.slow
def test_the_command_quantizes_and_says_where(copy: Path, tmp_path: Path) -> None:
    done = cli("quantize", copy, tmp_path / "made", env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert str(tmp_path / "made") in done.stderr
    assert looked(tmp_path / "made").quantized


def test_loading_is_measured_on_a_larger_model_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2}
    monkeypatch.setattr(load_bench, "LARGE", small | {"num_attention_heads": 2, "num_key_value_heads": 1})
    made = load_bench.make_large(tmp_path / "large")
    assert (looked(made).shape.hidden, looked(made).shape.layers) == (128, 2)
    kept = quantization.quantize(str(made), tmp_path / "kept", "cpu")
    fresh, stored = (load_bench.measure(str(path), "int4") for path in (made, kept))
    assert stored["disk_bytes"] < fresh["disk_bytes"]
    assert min(fresh["cpu_s"], stored["cpu_s"], fresh["peak_bytes"]) > 0


@pytest.mark.slow
def test_imports_for_loading_are_what_is_needed(tiny: Callable[[str], Path]) -> None:
    """Of the compiler that bitsandbytes would import nothing is there, and the collector is back at work."""
    code = (
        "import gc, sys; from hiresvlm.engines.vlm import VlmEngine;"
        "from hiresvlm.settings import EngineSettings;"
        f"VlmEngine(EngineSettings(name='vlm', model={str(tiny('qwen3_vl'))!r}, device='cpu'));"
        "assert 'bitsandbytes' in sys.modules;"
        "assert 'torch._inductor.compile_fx' not in sys.modules;"
        "assert gc.isenabled() and gc.get_freeze_count()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------------------------- auto


def test_auto_wants_a_gpu_and_a_model_that_is_here(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_disk = {"qwen2.5-vl-3b"}

    def located(name: str) -> folder.Source:
        return folder.Source(name, "1", None, copy if name in on_disk else None)

    monkeypatch.setattr(choice, "locate", located)
    monkeypatch.setattr(choice, "torch_has_cuda", lambda: True)
    monkeypatch.setattr(choice, "gpu_memories", lambda: [24 * 2**30])
    assert choice.choose().model == "qwen2.5-vl-3b"
    on_disk.add("qwen3-vl-4b")
    assert choice.choose().model == "qwen3-vl-4b"
    monkeypatch.setattr(choice, "gpu_memories", lambda: [2 * 2**30])
    assert choice.choose() == (None, "a GPU with 2 GiB, on which qwen3-vl-4b does not fit")
    on_disk.clear()
    assert "no model for it" in choice.choose().reason
    monkeypatch.setattr(choice, "gpu_memories", list)
    assert choice.choose() == (None, "no usable GPU")


def test_a_gpu_is_seen_only_with_a_torch_that_can_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "gpu_memories", lambda: [2**34, 2**34])
    monkeypatch.setattr(device, "torch_has_cuda", lambda: True)
    assert [device.choose(name) for name in ("auto", "cpu", "cuda", "cuda:1")] == [
        "cuda:0",
        "cpu",
        "cuda:0",
        "cuda:1",
    ]
    with pytest.raises(EngineLoadError, match="there are 2 GPUs"):
        device.choose("cuda:2")
    monkeypatch.setattr(device, "torch_has_cuda", lambda: False)
    assert device.choose("auto") == "cpu"
    with pytest.raises(EngineLoadError, match="CPU build"):
        device.choose("cuda")


def test_the_shape_of_an_early_flat_config() -> None:
    flat = {
        "model_type": "qwen2_5_vl",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
        "tie_word_embeddings": True,
        "vision_config": {"hidden_size": 32, "intermediate_size": 64, "depth": 2},
    }
    shape = shape_of(flat)
    assert (shape.head_dim, shape.factor, shape.temporal, shape.tied) == (16, 28, 2, True)
    with pytest.raises(KeyError):
        shape_of({"model_type": "qwen3_vl", "vision_config": {}})


def test_no_code_is_fetched_when_bitsandbytes_is_imported(tmp_path: Path) -> None:
    """On some CPUs it asks the hub for compiled code where the package `kernels` is installed."""
    marker = tmp_path / "asked"
    (tmp_path / "kernels.py").write_text(f"open({str(marker)!r}, 'w').close()\n", encoding="utf-8")
    code = (
        "from hiresvlm.engines.vlm import quantization as q\n"
        "q.import_bitsandbytes()\n"
        "with q.installed_code_only():\n"
        "    try:\n"
        "        import kernels\n"
        "    except ImportError:\n"
        "        print('refused')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout == "refused\n", done.stderr
    assert done.stderr == ""
    assert not marker.exists()
