"""Models with random weights in the sizes of published ones, built on the device, for `bench gpu`."""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hiresvlm.engines.vlm import folder, memory
from hiresvlm.engines.vlm.cache import FeatureCache
from hiresvlm.engines.vlm.inputs import Prompt, image_input
from hiresvlm.engines.vlm.loading import ImageSettings, Loaded
from hiresvlm.engines.vlm.presets import PRESETS
from hiresvlm.engines.vlm.shape import Shape
from hiresvlm.engines.vlm.vision import VisionEncoder

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

IDS = {"image_token_id": 5, "video_token_id": 6, "vision_start_token_id": 7, "vision_end_token_id": 8}


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
    config = configuration(shape)
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
        image_token=IDS["image_token_id"],
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
    start, end = IDS["vision_start_token_id"], IDS["vision_end_token_id"]
    return Prompt((start, *(built.loaded.image_token,) * count, end, *words), (image,))


def _tiny(shape: Shape) -> Shape:
    return replace(
        shape, hidden=64, inner=128, layers=2, heads=4, kv_heads=2, head_dim=16, vocabulary=512,
        vision_hidden=32, vision_inner=64, vision_layers=2, deepstack=min(1, shape.deepstack),
        position_embeddings=64 if shape.position_embeddings else 0,
    )  # fmt: skip


def configuration(shape: Shape) -> PreTrainedConfig:
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
        shape.family, text_config=text, vision_config=vision, tie_word_embeddings=shape.tied, **IDS
    )
