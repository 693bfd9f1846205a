"""A model folder -> a model that can be asked: weights, tokenizer, chat template, image settings.

Only safetensors are read, no code of a model is run, and nothing is fetched: all files come from one folder.
"""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hiresvlm.engines.vlm import quantization
from hiresvlm.engines.vlm.device import free_memory
from hiresvlm.engines.vlm.folder import Model, Source, look, read_json
from hiresvlm.engines.vlm.memory import check_fits, too_large
from hiresvlm.errors import EngineLoadError, UsageError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

_CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
_CLIP_STD = (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """How pixels become patches: `preprocessor_config.json` and the sizes in `config.json`."""

    patch: int
    merge: int
    temporal: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    canvas: int = 0
    """Side in pixels of the square that each image is put into; 0: any size."""
    newlines: int = 0
    """Tokens that follow those of the patches of an image."""

    @property
    def factor(self) -> int:
        return self.patch * self.merge

    def tokens(self, grid: tuple[int, int]) -> int:
        """Visual tokens of an image of so many patches down and across."""
        return (grid[0] // self.merge) * (grid[1] // self.merge) + self.newlines


@dataclass(slots=True, eq=False)
class Loaded:
    """A model ready to be asked."""

    facts: Model
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    template: str
    image: ImageSettings
    image_token: int
    ends: frozenset[int]
    """Tokens that end an answer."""
    device: torch.device
    dtype: torch.dtype
    quant: str
    load_s: float
    weights_s: float
    """Of these, reading the weights, and making 4 bits of them where a folder does not hold such."""

    @property
    def weight_bytes(self) -> int:
        """Bytes of all parameters and buffers as they lie in memory, quantization scales included."""
        return sum(tensor.nbytes for tensor in _tensors(self.model))


def import_libraries(model: Model, quant: str) -> None:
    """Import all that loading a model needs, so that the time of loading is that of its files.

    Imports make half a million objects that stay. The garbage collector looks at them again and again while
    they come (a quarter of the time of the imports) and with every full collection later (a fifth of a
    second each), so it rests meanwhile and leaves them alone for good. Raises `ImportError`.
    """
    first = "transformers" not in sys.modules
    collects = gc.isenabled()
    if first:
        gc.disable()
    try:
        import transformers
        from transformers.models.auto.modeling_auto import (
            MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as CLASSES,
        )

        getattr(transformers, CLASSES.get(model.config["model_type"], "AutoModelForImageTextToText"))
        if quant == "int4":
            quantization.import_bitsandbytes()
            importlib.import_module("transformers.integrations.bitsandbytes")
        if first:
            gc.freeze()
    finally:
        if collects:
            gc.enable()


def load(model: Model, quant: str, device: str) -> Loaded:
    """Load a model that was looked at, from its pre-quantized twin in the cache where there is one.

    Raises `EngineLoadError`, `UsageError`.
    """
    if model.quantized and quant == "none":
        raise UsageError(
            f"{model.folder} holds 4-bit weights", "leave --quant none away, or name the original model"
        )
    prepared = quantization.cached(model.source) if quant == "int4" and not model.quantized else None
    if prepared is not None:
        model = look(Source(model.source.name, model.source.revision, model.source.licence, prepared))
    check_fits(model.source.name, model.shape, quant, device)
    began = time.perf_counter()
    weights = read_weights(model, quant, device)
    weights_s = time.perf_counter() - began
    tokenizer, template = _tokenizer(model)
    return Loaded(
        facts=model,
        model=weights,
        tokenizer=tokenizer,
        template=template,
        image=image_settings(model),
        image_token=_image_token(weights),
        ends=_ends(model, tokenizer),
        device=weights.device,
        dtype=_dtype(weights),
        quant=quant,
        load_s=time.perf_counter() - began,
        weights_s=weights_s,
    )


def image_settings(model: Model) -> ImageSettings:
    """Raises `EngineLoadError` for a file that is there and makes no sense."""
    path = model.folder / "preprocessor_config.json"
    newer = model.folder / "processor_config.json"
    told: Mapping[str, Any] = {}
    if path.is_file():
        told = read_json(path)
    elif newer.is_file():
        told = read_json(newer).get("image_processor") or {}
    mean, std = told.get("image_mean", _CLIP_MEAN), told.get("image_std", _CLIP_STD)
    if len(mean) != 3 or len(std) != 3 or not all(std):
        raise EngineLoadError(f"{path} has no usable image_mean and image_std")
    shape = model.shape
    return ImageSettings(
        shape.patch,
        shape.merge,
        shape.temporal,
        tuple(mean),
        tuple(std),
        shape.canvas,
        model.family.newlines,
    )


def read_weights(model: Model, quant: str, device: str, *, as_stored: bool = False) -> PreTrainedModel:
    """The network alone. `as_stored`: in the number type of its files. Raises `EngineLoadError`."""
    import torch
    from transformers import AutoModelForImageTextToText
    from transformers.utils import logging as hf_logging

    hf_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    hf_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    if quant == "int4":
        quantization.import_bitsandbytes()
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    options: dict[str, Any] = {}
    if quant == "int4" and not model.quantized:
        options["quantization_config"] = quantization.nf4(dtype, model.family)
    read: Any = AutoModelForImageTextToText.from_pretrained
    try:
        weights, told = read(
            model.folder,
            dtype="auto" if as_stored else dtype,
            device_map={"": device},
            attn_implementation="sdpa",
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
            **options,
        )
    except torch.OutOfMemoryError as error:
        free = free_memory(device)
        raise too_large(model.source.name, model.shape, quant, device, free) from error
    except Exception as error:  # any library below, any reason: all mean that this folder cannot be loaded
        message = f"the model in {model.folder} cannot be loaded ({type(error).__name__})"
        raise EngineLoadError(
            message, "run it again with -v; if a file is damaged, download it again"
        ) from error
    lacking = sorted({*told["missing_keys"], *(key for key, *_ in told["mismatched_keys"])})
    if lacking:
        raise EngineLoadError(
            f"the weights in {model.folder} do not fit its config.json: "
            f"{len(lacking)} are missing or of another size, such as {lacking[0]}",
            "download the model again; it is incomplete",
        )
    found: PreTrainedModel = weights
    found.eval()  # type: ignore[no-untyped-call]
    found.requires_grad_(False)
    if quant == "int4":
        quantization.check(found, model.family)
        if not as_stored:
            _set_number_type(found, dtype)
    gc.collect()
    return found


def _set_number_type(model: PreTrainedModel, dtype: torch.dtype) -> None:
    """Everything computes in the number type of the device, whatever a quantized folder was made from."""
    from bitsandbytes.nn.modules import Linear4bit, Params4bit

    for parameter in model.parameters():
        if not isinstance(parameter, Params4bit):
            parameter.data = parameter.data.to(dtype)
    for module in model.modules():
        if isinstance(module, Linear4bit):
            module.compute_dtype = dtype
            module.compute_type_is_set = True
            state: Any = module.weight
            state.quant_state.dtype = dtype


def _tokenizer(model: Model) -> tuple[PreTrainedTokenizerBase, str]:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(
            model.folder, trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # damaged JSON, unknown class: the reason is the library's
        message = f"the tokenizer in {model.folder} cannot be loaded ({type(error).__name__})"
        raise EngineLoadError(message, "download the model again; it is incomplete") from error
    plain = model.folder / "chat_template.jinja"
    older = model.folder / "chat_template.json"
    template: Any
    if plain.is_file():
        template = plain.read_text(encoding="utf-8")
    elif older.is_file():
        template = read_json(older).get("chat_template")
    else:
        template = tokenizer.chat_template
    if not isinstance(template, str) or not template:
        raise EngineLoadError(f"{model.folder} has no chat template", "take an instruction-tuned model")
    return tokenizer, template


def _image_token(model: PreTrainedModel) -> int:
    config: Any = model.config
    return int(config.image_token_id)


def _dtype(model: PreTrainedModel) -> torch.dtype:
    embedding: Any = model.get_input_embeddings()
    found: torch.dtype = embedding.weight.dtype
    return found


def _ends(model: Model, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    path = model.folder / "generation_config.json"
    told = read_json(path).get("eos_token_id") if path.is_file() else None
    if told is None:
        told = (model.config.get("text_config") or model.config).get("eos_token_id")
    found = {int(value) for value in (told if isinstance(told, list) else [told]) if value is not None}
    if tokenizer.eos_token_id is not None:
        found.add(int(tokenizer.eos_token_id))
    if not found:
        raise EngineLoadError(f"{model.folder} names no token that ends an answer")
    return frozenset(found)


def _tensors(model: PreTrainedModel) -> list[torch.Tensor]:
    """Parameters and buffers without duplicates, and the scales of 4-bit weights, which are neither."""
    found = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    for parameter in model.parameters():
        state = getattr(parameter, "quant_state", None)
        for tensor in (getattr(state, "absmax", None), getattr(state, "code", None)):
            if tensor is not None:
                found[id(tensor)] = tensor
    return list(found.values())
