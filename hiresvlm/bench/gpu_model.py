"""The measurements of `bench gpu`, each on a model that was built on the device."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from hiresvlm.engines.vlm import folder, memory
from hiresvlm.engines.vlm.cache import FeatureCache
from hiresvlm.engines.vlm.inputs import Prompt, image_input
from hiresvlm.engines.vlm.loading import ImageSettings, Loaded
from hiresvlm.engines.vlm.presets import PRESETS
from hiresvlm.engines.vlm.shape import Shape
from hiresvlm.engines.vlm.slots import Row, Slots
from hiresvlm.engines.vlm.vision import VisionEncoder

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

PREFILL_TOKENS: Final = 16_384
WARM: Final = 3
AGREE: Final = 8
"""Tokens that a compiled step must write as the plain one does."""
_IDS = {"image_token_id": 5, "video_token_id": 6, "vision_start_token_id": 7, "vision_end_token_id": 8}


@dataclass(slots=True)
class Built:
    """A model with random weights and what runs it."""

    loaded: Loaded
    encoder: VisionEncoder

    @property
    def shape(self) -> Shape:
        return self.loaded.facts.shape


def build(name: str, device: torch.device, tiny: bool) -> Built:
    """A model of a preset's sizes with random weights, in bfloat16 on a GPU and float32 on a CPU."""
    from transformers import AutoModelForImageTextToText, AutoTokenizer

    shape = PRESETS[name].shape
    assert shape is not None
    if tiny:
        shape = _tiny(shape)
    dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
    config = _config(shape)
    torch.manual_seed(0)
    with torch.device(device):
        build_network: Any = AutoModelForImageTextToText.from_config
        network: PreTrainedModel = build_network(config, dtype=dtype, attn_implementation="sdpa")
    network.eval()  # type: ignore[no-untyped-call]
    network.requires_grad_(False)
    source = folder.Source(f"random {name}", None, None, None)
    where = folder.nano_folder()
    loaded = Loaded(
        facts=folder.Model(source, where, config.to_dict(), {}, shape),
        model=network,
        tokenizer=AutoTokenizer.from_pretrained(where, trust_remote_code=False, local_files_only=True),
        template="",
        image=ImageSettings(shape.patch, shape.merge, shape.temporal, (0.5,) * 3, (0.5,) * 3),
        image_token=_IDS["image_token_id"],
        ends=frozenset(),
        device=device,
        dtype=dtype,
        quant="none",
        load_s=0.0,
        weights_s=0.0,
    )
    return Built(loaded, VisionEncoder(loaded, FeatureCache(2**28)))


def to_nf4(built: Built) -> None:
    """Put the linear layers of the language model into 4 bits, in place, one after the other."""
    from bitsandbytes.nn.modules import Linear4bit, Params4bit

    from hiresvlm.engines.vlm import quantization

    loaded = built.loaded
    part: Any = loaded.model.get_submodule(f"model.{loaded.facts.family.language}")
    linear = [(name, one) for name, one in part.named_modules() if isinstance(one, torch.nn.Linear)]
    for name, old in linear:
        new = Linear4bit(  # type: ignore[no-untyped-call]
            old.in_features,
            old.out_features,
            bias=old.bias is not None,
            compute_dtype=loaded.dtype,
            quant_type="nf4",
            device=torch.device("meta"),
        )
        new.weight = Params4bit(old.weight.data, requires_grad=False, quant_type="nf4")
        new.bias = old.bias
        parent, _, last = name.rpartition(".")
        setattr(part.get_submodule(parent), last, new.to(loaded.device))
    quantization.check(loaded.model, loaded.facts.family)
    loaded.quant = "int4"
    gc.collect()
    memory.release(loaded.device)


def limits(device: torch.device, size: int, square: int) -> dict[str, Any]:
    """Bytes and operations a second that the device reaches."""
    dtype = torch.float32 if device.type == "cpu" else torch.bfloat16
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copied = timed(lambda: target.copy_(source), 10, device)
    left = torch.randn(square, square, device=device, dtype=dtype)
    product = torch.empty_like(left)
    multiplied = timed(lambda: torch.matmul(left, left, out=product), 10, device)
    return {"bytes_per_s": 2 * size / copied, "operations_per_s": 2 * square**3 / multiplied}


@torch.inference_mode()
def step(built: Built, rows: int, context: int, steps: int, limit: dict[str, Any]) -> dict[str, Any]:
    """Seconds of one step of the engine with so many rows of `context` tokens, sampling included."""
    _forget_peak(built.loaded.device)
    slots = filled(built, rows, context)
    seconds = timed(slots.step, steps, built.loaded.device)
    shape, element = built.shape, built.loaded.dtype.itemsize
    width = context + WARM + steps // 2
    head = shape.vocabulary * shape.hidden
    linear = shape.weight_bytes(built.loaded.quant, element) - _rest(shape) * element
    moved = linear + head * element + rows * width * shape.kv_bytes(element)
    done = 2 * (shape.linear_parameters + head) * rows
    done += 4 * rows * width * shape.heads * shape.head_dim * shape.layers
    return {
        "ms": seconds * 1e3,
        "tokens_per_s": rows / seconds,
        "roofline": _share(moved, done, seconds, limit),
        "peak_bytes": memory.peak_bytes(built.loaded.device),
    }


@torch.inference_mode()
def prefill(built: Built, visual: int, text: int, limit: dict[str, Any]) -> dict[str, Any]:
    """Encoding one image of so many visual tokens, and the prefill of its prompt."""
    loaded, shape = built.loaded, built.shape
    prompt = prompt_of(built, visual, text)
    before = memory.used_bytes(loaded.device)
    _forget_peak(loaded.device)

    def encode() -> None:
        built.encoder.cache.clear()
        built.encoder.encode(prompt.images)

    encoded = timed(encode, 3, loaded.device, warm=1)
    features = built.encoder.encode(prompt.images)
    slots = Slots(loaded, built.encoder)

    def fill() -> None:
        slots.clear()
        slots.join([Row(prompt)], [features])

    prefilled = timed(fill, 3, loaded.device, warm=1)
    tokens, patches = len(prompt), sum(image.patches for image in prompt.images)
    seen = 2 * shape.vision_parameters * patches
    read = 2 * shape.linear_parameters * tokens
    read += 2 * tokens**2 * shape.heads * shape.head_dim * shape.layers
    return {
        "ms": (encoded + prefilled) * 1e3,
        "encode_ms": encoded * 1e3,
        "prefill_ms": prefilled * 1e3,
        "visual_tokens": loaded.image.tokens(prompt.images[0].grid),
        "tokens": tokens,
        "encode_roofline": _share(0, seen, encoded, limit),
        "prefill_roofline": _share(0, read, prefilled, limit),
        "roofline": _share(0, seen + read, encoded + prefilled, limit),
        "peak_bytes": memory.peak_bytes(loaded.device),
        "work_bytes": memory.peak_bytes(loaded.device) - before,
    }


@torch.inference_mode()
def refill(built: Built, lengths: Sequence[int], rows: int, visual: int) -> dict[str, Any]:
    """The same answers with slots that are filled again, and in batches that wait for their longest."""
    loaded = built.loaded
    prompt = prompt_of(built, visual, 40)
    features = built.encoder.encode(prompt.images)
    use: dict[str, float] = {}

    def work(again: bool) -> None:
        slots = Slots(loaded, built.encoder)
        waiting = list(lengths)
        running: dict[int, tuple[Row, int]] = {}
        steps = 0
        while waiting or running:
            free = rows - len(running)
            if waiting and (not running or (again and free >= max(1, rows // 8))):
                newcomers = [(Row(prompt), length) for length in waiting[:free]]
                del waiting[:free]
                slots.join([row for row, _ in newcomers], [features] * len(newcomers))
                running |= {id(row): (row, length) for row, length in newcomers}
            else:
                slots.step()
                steps += 1
            done = [row for row, length in running.values() if len(row.ids) >= length]
            if done and (again or len(done) == len(running)):
                slots.leave(done)
                for row in done:
                    del running[id(row)]
        written = sum(lengths) - len(lengths)  # the first token of each comes with its prefill
        use["refill" if again else "static"] = written / (steps * rows)

    static = timed(lambda: work(False), 1, loaded.device, warm=0)
    again = timed(lambda: work(True), 1, loaded.device, warm=0)
    return {
        "ms": again * 1e3,
        "static_ms": static * 1e3,
        "speed": static / again,
        "tokens_per_s": sum(lengths) / again,
        "slots": rows,
        "slot_use": {name: round(value, 3) for name, value in use.items()},
        "note": f"{static / again:.2f}x static",
    }


@torch.inference_mode()
def compiled(built: Built, rows: int, context: int, steps: int) -> dict[str, Any]:
    """A step over a static cache, captured as a CUDA graph; on a CPU the static step without a graph.

    `same_tokens`: it wrote what the same step without a graph over a growing cache writes.
    """
    from transformers import StaticCache

    loaded = built.loaded
    model: Any = loaded.model
    total = context + 2 * (WARM + AGREE + steps)
    ids = torch.randint(16, built.shape.vocabulary, (rows, context), device=loaded.device)
    text = model.model.language_model
    numbers = torch.arange(context, device=loaded.device).expand(3, rows, -1)

    def forward(tokens: Any, position: Any, mask: Any, cache: Any) -> torch.Tensor:
        hidden = text(
            inputs_embeds=model.get_input_embeddings()(tokens),
            position_ids=position,
            attention_mask=mask,
            cache=cache,
            use_cache=True,
        ).last_hidden_state
        found: torch.Tensor = model.lm_head(hidden[:, -1:])[:, 0].argmax(-1, keepdim=True)
        return found

    wanted, eager = _plain(forward, ids, numbers, steps)
    cache = StaticCache(config=model.config.get_text_config(decoder=True), max_cache_len=total)
    grid = torch.arange(total, device=loaded.device)
    causal = (grid[None] <= grid[:context, None])[None, None].expand(rows, 1, -1, -1)
    token = forward(ids, numbers, causal, cache).clone()
    position = torch.full((3, rows, 1), context, device=loaded.device)
    seen = (grid <= context)[None, None, None].expand(rows, 1, 1, -1).clone()
    last = token

    def body() -> None:
        token.copy_(forward(token, position, seen, cache))
        position.add_(1)
        seen.copy_(grid <= position[0, 0, 0])

    advance, began = _captured(body, loaded.device, cache, [token, position, seen])
    found = [last.clone()]
    for _ in range(AGREE):
        advance()
        found.append(token.clone())
    seconds = timed(advance, steps, loaded.device)
    return {
        "ms": seconds * 1e3,
        "eager_ms": eager * 1e3,
        "speed": eager / seconds,
        "tokens_per_s": rows / seconds,
        "same_tokens": bool(torch.equal(torch.cat(wanted, 1), torch.cat(found, 1))),
        "graph": loaded.device.type == "cuda",
        "capture_s": began,
        "note": f"{eager / seconds:.2f}x eager",
    }


def _plain(
    forward: Callable[..., torch.Tensor], ids: torch.Tensor, numbers: torch.Tensor, steps: int
) -> tuple[list[torch.Tensor], float]:
    """First tokens over a cache that grows, and the seconds of a step."""
    from transformers import DynamicCache

    cache = DynamicCache()
    rows, context = ids.shape

    def at(n: int) -> torch.Tensor:
        return torch.full((3, rows, 1), context + n, device=ids.device)

    tokens = [forward(ids, numbers, None, cache)]
    for n in range(AGREE):
        tokens.append(forward(tokens[-1], at(n), None, cache))
    later, position = tokens[-1], at(AGREE)
    return tokens, timed(lambda: forward(later, position, None, cache), steps, ids.device)


def _captured(
    body: Callable[[], None], device: torch.device, cache: Any, state: Sequence[torch.Tensor]
) -> tuple[Callable[[], None], float]:
    """A function that replays `body`, and the seconds that its capture took.

    Capture runs it a few times, so what it changes (`state`, the length of the cache) is put back.
    """
    if device.type == "cpu":
        return body, 0.0
    began = time.perf_counter()
    kept = [tensor.clone() for tensor in state]
    lengths = [layer.cumulative_length.clone() for layer in cache.layers]
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        for _ in range(WARM):
            body()
    torch.cuda.current_stream(device).wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()
    for tensor, old in zip(state, kept, strict=True):
        tensor.copy_(old)
    for layer, length in zip(cache.layers, lengths, strict=True):
        layer.cumulative_length.copy_(length)
    wait(device)
    return graph.replay, time.perf_counter() - began


def filled(built: Built, rows: int, context: int) -> Slots:
    """Slots with so many rows of `context` tokens, most of them visual, prefilled in bounded groups."""
    prompt = prompt_of(built, context * 10 // 11, 0, total=context)
    features = built.encoder.encode(prompt.images)
    slots = Slots(built.loaded, built.encoder)
    group = max(1, PREFILL_TOKENS // len(prompt))
    for start in range(0, rows, group):
        count = min(group, rows - start)
        slots.join([Row(prompt) for _ in range(count)], [features] * count)
    return slots


def prompt_of(built: Built, visual: int, text: int, total: int | None = None) -> Prompt:
    """One image of about `visual` visual tokens, nearly square, and so many tokens of text after it."""
    settings = built.loaded.image
    across = max(1, round(visual**0.5))
    while across > 1 and visual % across:
        across -= 1
    if across * across * 4 < visual:  # a number without factors near its root: a strip would be no page
        across = round(visual**0.5)
    down = max(1, visual // across)
    generator = np.random.default_rng(visual)
    shape = (down * settings.factor, across * settings.factor, 3)
    image = image_input(generator.integers(0, 256, shape, np.uint8), settings)
    count = settings.tokens(image.grid)
    if total is not None:
        text = total - count - 2
    words = generator.integers(16, built.shape.vocabulary, max(1, text)).tolist()
    start, end = _IDS["vision_start_token_id"], _IDS["vision_end_token_id"]
    return Prompt((start, *(built.loaded.image_token,) * count, end, *words), (image,))


def timed(work: Callable[[], object], times: int, device: torch.device, warm: int = WARM) -> float:
    """Seconds of one call, the mean of several after some that do not count."""
    for _ in range(warm):
        work()
    wait(device)
    began = time.perf_counter()
    for _ in range(times):
        work()
    wait(device)
    return (time.perf_counter() - began) / times


def wait(device: torch.device) -> None:
    """Until the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _forget_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def _share(moved: float, done: float, seconds: float, limit: dict[str, Any]) -> float | None:
    """Share of the roofline; None where the limits of the device were not measured."""
    if limit.get("status") != "ok":
        return None
    least = max(moved / limit["bytes_per_s"], done / limit["operations_per_s"])
    return float(least / seconds)


def _rest(shape: Shape) -> int:
    """Weights that are no linear layers of the language model."""
    return shape.parameters - shape.linear_parameters


def _tiny(shape: Shape) -> Shape:
    return replace(
        shape, hidden=64, inner=128, layers=2, heads=4, kv_heads=2, head_dim=16, vocabulary=512,
        vision_hidden=32, vision_inner=64, vision_layers=2, deepstack=min(1, shape.deepstack),
        position_embeddings=64 if shape.position_embeddings else 0,
    )  # fmt: skip


def _config(shape: Shape) -> PreTrainedConfig:
    """The configuration of a model of these sizes; what speed does not depend on is the library's default."""
    from transformers import AutoConfig

    half = shape.head_dim // 2
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": 1e6}
    rope["mrope_section"] = [half - 2 * (half * 3 // 8), half * 3 // 8, half * 3 // 8]
    if shape.deepstack:
        rope["mrope_interleaved"] = True
    vision: dict[str, Any] = {
        "depth": shape.vision_layers,
        "hidden_size": shape.vision_hidden,
        "intermediate_size": shape.vision_inner,
        "num_heads": 16 if shape.vision_hidden > 64 else 2,
        "patch_size": shape.patch,
        "spatial_merge_size": shape.merge,
        "temporal_patch_size": shape.temporal,
        "out_hidden_size": shape.hidden,
    }
    last = shape.vision_layers - 1
    if shape.deepstack:
        vision["num_position_embeddings"] = shape.position_embeddings
        vision["deepstack_visual_indexes"] = [
            last * (n + 1) // (shape.deepstack + 1) for n in range(shape.deepstack)
        ]
    else:
        vision["fullatt_block_indexes"] = [n for n in (7, 15, 23, 31) if n <= last] or [last]
    text = {
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "rope_parameters": rope,
        "tie_word_embeddings": shape.tied,
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    return AutoConfig.for_model(
        shape.family, text_config=text, vision_config=vision, tie_word_embeddings=shape.tied, **_IDS
    )
