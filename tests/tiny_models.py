"""Tiny random models of both families in standard folders: what `save_pretrained` writes for a real one.

Their tokenizer knows bytes, so any text can be encoded and any ids can be decoded. With random weights they
read nothing, but every equality that holds for them (batched and alone, cached and not) holds for a large
model.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    GenerationConfig,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)

FAMILIES = ("qwen2_5_vl", "qwen3_vl")

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)

CHAT_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\nRead.<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}"
    "{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def save_tiny(
    folder: Path, family: str, *, seed: int = 0, scale: float = 0.1, dtype: str = "float32", **text: Any
) -> Path:
    """Write a random model of a family with tokenizer and image processor settings; `text` changes its
    config.

    `scale`: standard deviation of the weights. The usual 0.02 makes all answers alike; this one does not.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tiny_tokenizer()
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    config = _config(family, len(tokenizer), text)
    cls = Qwen2_5_VLForConditionalGeneration if family == "qwen2_5_vl" else Qwen3VLForConditionalGeneration
    model = cls(config).float()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0.0, scale if "embed_tokens" not in name else 0.5)
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    pad = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    model.generation_config = GenerationConfig(eos_token_id=[end, pad], pad_token_id=pad)
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    patch = config.vision_config.patch_size
    factor = patch * config.vision_config.spatial_merge_size
    processor = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": "Qwen2_5_VLProcessor" if family == "qwen2_5_vl" else "Qwen3VLProcessor",
        "patch_size": patch,
        "temporal_patch_size": config.vision_config.temporal_patch_size,
        "merge_size": config.vision_config.spatial_merge_size,
        "min_pixels": factor * factor,
        "max_pixels": 1280 * factor * factor,
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    return folder


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """One token per byte, then the special tokens of the families."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE(vocab={char: n for n, char in enumerate(alphabet)}, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )


def _config(family: str, vocabulary: int, text: dict[str, Any]) -> Qwen2_5_VLConfig | Qwen3VLConfig:
    ids = {token: 256 + n for n, token in enumerate(SPECIAL)}
    common: dict[str, Any] = {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
        "tie_word_embeddings": False,
    }
    decoder = {
        "vocab_size": vocabulary,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 2, 2]},
        "tie_word_embeddings": common["tie_word_embeddings"],
        "bos_token_id": None,
        "eos_token_id": ids["<|im_end|>"],
        "pad_token_id": ids["<|endoftext|>"],
    } | text
    vision: dict[str, Any] = {"depth": 4, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2}
    vision |= {"spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": decoder["hidden_size"]}
    if family == "qwen2_5_vl":
        del decoder["head_dim"]
        vision |= {"patch_size": 14, "window_size": 112, "fullatt_block_indexes": [1, 3]}
        return Qwen2_5_VLConfig(text_config=decoder, vision_config=vision, **common)
    vision |= {"patch_size": 16, "num_position_embeddings": 64, "deepstack_visual_indexes": [0, 2]}
    decoder["rope_parameters"]["mrope_interleaved"] = True
    return Qwen3VLConfig(text_config=decoder, vision_config=vision, **common)
