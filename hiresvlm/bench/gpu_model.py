"""The measurements of `bench gpu`, each on a model that was built on the device."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import torch

from hiresvlm.bench.gpu_build import Built, prompt_of
from hiresvlm.engines.vlm import memory
from hiresvlm.engines.vlm.shape import Shape
from hiresvlm.engines.vlm.slots import Row, Slots

if TYPE_CHECKING:
    pass

PREFILL_TOKENS: Final = 16_384
WARM: Final = 3
AGREE: Final = 8
"""Tokens that a compiled step must write as the plain one does."""


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
