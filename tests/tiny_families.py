"""Tiny random models of the families that put an image into one square, as `save_pretrained` writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken
from transformers import (
    CLIPVisionConfig,
    GenerationConfig,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    InternVLConfig,
    InternVLForConditionalGeneration,
    LlamaConfig,
    LlavaNextConfig,
    LlavaNextForConditionalGeneration,
    LlavaOnevisionConfig,
    LlavaOnevisionForConditionalGeneration,
    PreTrainedModel,
    Qwen2Config,
    SiglipVisionConfig,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
)

from tests.tiny_models import tiny_tokenizer

SQUARE_FAMILIES = ("internvl", "llava_onevision", "llava_next", "idefics3", "smolvlm")

TOKENS = {
    "internvl": ("<IMG_CONTEXT>", "<img>", "</img>"),
    "llava_onevision": ("<image>", "<video>"),
    "llava_next": ("<image>",),
    "idefics3": ("<image>", "<fake_token_around_image>", "<global-img>"),
    "smolvlm": ("<image>", "<fake_token_around_image>", "<global-img>"),
}
"""The placeholder of an image first."""

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE\n{% else %}{{ part['text'] }}"
    "{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def save_square(folder: Path, family: str, *, seed: int = 0, scale: float = 0.1) -> Path:
    """Write a random model of a family with tokenizer and image settings."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([AddedToken(token, special=True) for token in TOKENS[family]], special_tokens=True)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(seed)
    placeholder = int(tokenizer.convert_tokens_to_ids(TOKENS[family][0]))
    end, pad = (int(tokenizer.convert_tokens_to_ids(name)) for name in ("<|im_end|>", "<|endoftext|>"))
    model = _model(family, len(tokenizer), placeholder, end, pad).float()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1 or "newline" in name:
                weight.normal_(0.0, 0.5 if "embed_tokens" in name or "newline" in name else scale)
    model.generation_config = GenerationConfig(eos_token_id=[end, pad], pad_token_id=pad)
    model.save_pretrained(folder)
    processor = {"image_mean": [0.5, 0.45, 0.4], "image_std": [0.25, 0.3, 0.35]}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    (folder / "chat_template.jinja").write_text(TEMPLATE.replace("IMAGE", TOKENS[family][0]))
    return folder


def _model(family: str, vocabulary: int, image: int, end: int, pad: int) -> PreTrainedModel:
    text: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "bos_token_id": None,
        "eos_token_id": end,
        "pad_token_id": pad,
        "tie_word_embeddings": False,
    }
    vision: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    if family == "internvl":
        return InternVLForConditionalGeneration(
            InternVLConfig(
                vision_config=vision | {"image_size": [56, 56], "patch_size": [14, 14]},
                text_config=Qwen2Config(**text).to_dict(),
                image_token_id=image,
                tie_word_embeddings=False,
            )
        )
    if family == "llava_onevision":
        return LlavaOnevisionForConditionalGeneration(
            LlavaOnevisionConfig(  # 60 is no multiple of 14, as 384 of the published ones is none
                vision_config=SiglipVisionConfig(
                    **vision, image_size=60, patch_size=14, vision_use_head=False
                ),
                text_config=Qwen2Config(**text),
                image_token_index=image,
                video_token_index=image + 1,
                image_grid_pinpoints=[[60, 60], [60, 120], [120, 60]],
            )
        )
    if family == "llava_next":
        return LlavaNextForConditionalGeneration(
            LlavaNextConfig(
                vision_config=CLIPVisionConfig(**vision, image_size=56, patch_size=14, vocab_size=64),
                text_config=LlamaConfig(**text),
                image_token_index=image,
                image_grid_pinpoints=[[56, 56], [56, 112], [112, 56]],
            )
        )
    smol = family == "smolvlm"
    config = SmolVLMConfig if smol else Idefics3Config
    cls = SmolVLMForConditionalGeneration if smol else Idefics3ForConditionalGeneration
    return cls(
        config(
            vision_config=vision | {"image_size": 64 if smol else 56, "patch_size": 8 if smol else 14},
            text_config=LlamaConfig(**text),
            image_token_id=image,
            scale_factor=4 if smol else 2,
            tie_word_embeddings=False,
            pad_token_id=pad,
        )
    )
