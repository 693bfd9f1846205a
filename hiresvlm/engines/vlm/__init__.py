"""A vision-language model of one of several families, in 4 bits or not, many requests at a time.

families                            what differs between families, one row each
folder, presets, shape, choice      which model, where, how large: no heavy library
device, memory, quantization        GPU or CPU; what fits; NF4
loading                             a folder -> weights, tokenizer, image settings
inputs, tiles, attention, vision, cache  pixels -> features
pruning                             blank cells, dropped before the vision tower
stitching                           tiles of a page as one image (an experiment, `bench places`)
slots, positions, sampling          features -> tokens, rows joining and leaving a running batch
admission, loop                     what is in work when; memory that runs out
stopping, ink, ladder, splitting, confidence    whether an answer is to be believed
values                              where in an image the words of a question are
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hiresvlm.engines import EngineInfo, EngineProfile, Feed
from hiresvlm.engines.vlm import device as devices
from hiresvlm.engines.vlm import folder, memory
from hiresvlm.engines.vlm.families import FAMILIES
from hiresvlm.errors import EngineLoadError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hiresvlm.datatypes import Reply, Request
    from hiresvlm.engines.vlm.folder import Source
    from hiresvlm.engines.vlm.inputs import Prompt
    from hiresvlm.engines.vlm.loading import Loaded
    from hiresvlm.engines.vlm.loop import Parts, Stats
    from hiresvlm.engines.vlm.shape import Shape
    from hiresvlm.settings import EngineSettings

MAX_TOKENS = 1280
"""Visual tokens of one image of any size; more helps no family on documents."""
GPU_SLOTS = 64
CPU_SLOTS = 4
SMALL_SLOTS = 16
SMALL = 50_000_000
"""Parameters below which a step on the CPU costs more for its calls than for its arithmetic."""
BUDGET_SHARE = 0.85
GPU_CACHE = 512 * 2**20
CPU_CACHE = 128 * 2**20


class VlmEngine:
    """Reads with a local model. Raises `EngineLoadError` when it cannot be loaded."""

    def __init__(self, settings: EngineSettings) -> None:
        self.info, self.profile = self.describe(settings)
        source, _, shape = _facts(settings)
        assert self.info.device is not None
        if not source.on_disk:
            memory.check_fits(source.name, shape, settings.quant, self.info.device)
            source = folder.fetch(source)
        model = folder.look(source)
        devices.prepare_environment()
        began = time.perf_counter()
        try:
            from hiresvlm.engines.vlm import loading

            loading.import_libraries(model, settings.quant)
        except ImportError as error:
            hint = "install hiresvlm again with its dependencies"
            raise EngineLoadError(f"engine vlm cannot be loaded: {error}", hint) from error
        imported = time.perf_counter()
        self._loaded: Loaded | None = loading.load(model, settings.quant, self.info.device)
        self._parts: Parts | None = self._build(settings)
        loaded = time.perf_counter()
        self._warm_up()
        self._times = {
            "import_s": imported - began,
            "load_s": self._loaded.load_s,
            "weights_s": self._loaded.weights_s,
            "warm_up_s": time.perf_counter() - loaded,
        }

    @classmethod
    def describe(cls, settings: EngineSettings) -> tuple[EngineInfo, EngineProfile]:
        """Identity and profile from the files of the model, or from the preset when it is not on disk yet."""
        if settings.quant not in ("int4", "none"):
            raise UsageError(f"--quant {settings.quant!r} is not known", "choose int4 or none")
        source, card, shape = _facts(settings)
        device = devices.choose(settings.device)
        info = EngineInfo("vlm", source.name, source.revision, settings.quant, device)
        clean = card.get("legible_clean")
        profile = EngineProfile(
            legible=float(card.get("legible", FAMILIES[shape.family].legible)),
            legible_clean=None if clean is None else float(clean),
            factor=shape.factor,
            max_tokens=_most_tokens(shape, card),
            tile=shape.tile,
        )
        return info, profile

    @property
    def loaded(self) -> Loaded:
        """The model; for benchmarks. Raises `RuntimeError` when the engine is closed."""
        if self._loaded is None:
            raise RuntimeError("the engine is closed")
        return self._loaded

    @property
    def parts(self) -> Parts:
        """What the loop works with; for benchmarks. Raises `RuntimeError` when the engine is closed."""
        if self._parts is None:
            raise RuntimeError("the engine is closed")
        return self._parts

    def prompt(self, request: Request) -> Prompt:
        """What the model is given for a request."""
        from hiresvlm.engines.vlm.inputs import image_input

        parts = self.parts
        images = [image_input(view.pixels, parts.image, prune=parts.prune) for view in request.views]
        return self.parts.prompts.prompt(request.prompt, images)

    @property
    def card(self) -> Mapping[str, Any]:
        """What the model folder says about itself."""
        return self.loaded.facts.card

    def value_map(self, request: Request, phrase: str) -> NDArray[np.float32] | None:
        """Where in the first image of a request a phrase of its prompt is; see `values.value_map`."""
        import torch

        from hiresvlm.engines.vlm import values

        try:
            return values.value_map(self.loaded, self._encoder, self.prompt(request), phrase)
        except torch.OutOfMemoryError:
            self._encoder.shrink()
        memory.release(self.loaded.device)  # not inside `except`: the traceback keeps the tensors alive
        return None

    def generate(self, feed: Feed) -> Iterator[Reply]:
        """Keeps as many requests in work as slots and memory allow and yields replies as they are ready."""
        from hiresvlm.engines.vlm.loop import Loop

        return Loop(self.parts, self._stats).run(feed)

    def stats(self) -> dict[str, Any]:
        """What loading and the work so far took."""
        from dataclasses import asdict

        stats = self._stats
        cache = self._encoder.cache
        slot_steps = stats.steps * self._rows
        return {
            **{name: round(value, 3) for name, value in self._times.items()},
            "prequantized": self.loaded.facts.quantized,
            "weights_bytes": self.loaded.weight_bytes,
            "used_bytes": memory.used_bytes(self.loaded.device),
            "peak_bytes": memory.peak_bytes(self.loaded.device),
            "slots": self._rows,
            "slot_use": round(stats.row_steps / slot_steps, 4) if slot_steps else None,
            "budget_bytes": int(self._budget.limit),
            "feature_cache": {"hits": cache.hits, "misses": cache.misses, "bytes": cache.nbytes},
            **asdict(stats),
        }

    def close(self) -> None:
        """Frees the model."""
        if self._loaded is None:
            return
        device = self._loaded.device
        self._encoder.cache.clear()
        self._loaded = self._parts = None
        del self._encoder
        memory.release(device)

    def _build(self, settings: EngineSettings) -> Parts:
        from hiresvlm.engines.vlm.admission import Budget
        from hiresvlm.engines.vlm.cache import FeatureCache
        from hiresvlm.engines.vlm.inputs import PromptMaker
        from hiresvlm.engines.vlm.loop import Parts, Stats
        from hiresvlm.engines.vlm.pruning import FAMILIES as PRUNED_FAMILIES
        from hiresvlm.engines.vlm.slots import Slots
        from hiresvlm.engines.vlm.vision import VisionEncoder

        loaded = self._loaded
        assert loaded is not None
        on_gpu = loaded.device.type == "cuda"
        self._rows = settings.slots or _default_slots(loaded)
        self._encoder = VisionEncoder(loaded, FeatureCache(GPU_CACHE if on_gpu else CPU_CACHE))
        self._budget = Budget(*memory.budget_bytes(loaded, self._encoder.cache.limit, BUDGET_SHARE))
        self._stats: Stats = Stats()
        tokenizer = loaded.tokenizer
        return Parts(
            encoder=self._encoder,
            slots=Slots(loaded, self._encoder),
            prompts=PromptMaker(loaded),
            image=loaded.image,
            ends=loaded.ends,
            text_of=lambda ids: str(
                tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
            ),
            budget=self._budget,
            rows=self._rows,
            instruction=loaded.facts.card.get("transcribe"),
            prune=settings.prune and loaded.facts.shape.family in PRUNED_FAMILIES,
            release=lambda: memory.release(loaded.device),
        )

    def _warm_up(self) -> None:
        """One small request before the first page: kernels are compiled and chosen now, not in its time."""
        import numpy as np

        from hiresvlm.datatypes import Box, Place, Request, Role, View
        from hiresvlm.engines.vlm.loop import Stats

        side = 4 * self.profile.factor
        view = View(Box(0, 0, side, side), Role.TILE, np.full((side, side, 3), 255, np.uint8))
        request = Request(Place(0, 0, 0), (view,), "Read.", 4)
        for reply in self.generate(_Once(request)):
            if reply.failure is not None:
                hint = "run it again with -v; --quant none or --device cpu may work"
                raise EngineLoadError(f"the model cannot be run: {reply.failure.message}", hint)
        self._encoder.cache.clear()
        self._encoder.cache.hits = self._encoder.cache.misses = 0
        self._stats = Stats()


class _Once:
    """A feed of one request."""

    def __init__(self, request: Any) -> None:
        self._left = [request]

    def take(self, n: int, wait: bool) -> list[Any]:
        given, self._left = self._left[:n], self._left[n:]
        return given


def _default_slots(loaded: Loaded) -> int:
    if loaded.device.type == "cuda":
        return GPU_SLOTS
    return SMALL_SLOTS if loaded.facts.shape.parameters < SMALL else CPU_SLOTS


def _most_tokens(shape: Shape, card: Mapping[str, Any]) -> int:
    """Visual tokens of one image; of a square they are no matter of choice."""
    if shape.tile is not None:
        return int((shape.tile // shape.factor) ** 2)
    return int(card.get("max_tokens", MAX_TOKENS))


def _facts(settings: EngineSettings) -> tuple[Source, dict[str, Any], Shape]:
    """Who the model is, its card and shape; of a preset that is not on disk from what we know of it."""
    source = folder.locate(settings.model)
    if source.on_disk:
        looked = folder.look(source)
        if looked.quantized and settings.quant == "none":
            raise UsageError(f"{looked.folder} holds 4-bit weights", "leave --quant none away")
        return source, dict(looked.card), looked.shape
    if source.preset is not None and source.preset.shape is not None:
        return source, {}, source.preset.shape
    return folder.fetch_facts(source)
