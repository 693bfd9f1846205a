"""From a checkpoint to a standard model folder, as `AutoModelForImageTextToText` loads it."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2_5_VLForConditionalGeneration

from hiresvlm.nano.batches import MEAN, STD
from hiresvlm.nano.model import CHANNELS, FACTOR, MAX_POSITIONS, MERGE, PATCH
from hiresvlm.nano.tokens import CHAT_TEMPLATE, SPECIAL_TOKENS, TRANSCRIBE, UNKNOWN, Vocabulary

LEAST_TOKENS, MOST_TOKENS = 4, 1280
CARD = {
    "name": "hiresvlm-nano",
    "licence": "AGPL-3.0-or-later",
    "transcribe": TRANSCRIBE,
    "legible": 13,
    "legible_clean": 12,
    "max_tokens": 256,
    "ask": {
        "prompt": "{question}",
        "free": "{question}",
        "absent": "none",
        "images": 1,
        "mid": 0,
        "overview": False,
    },
}
"""What the engine, the chunker and `ask` must know: nano saw capitals of 10 to 18 px, in tiles up to
448 x 448. It was asked mostly about one tile, so it gets one at a time."""


def tokenizer(vocabulary: Vocabulary) -> PreTrainedTokenizerFast:
    """One token per character; special tokens are recognised where the caller writes them."""
    plain = Tokenizer(models.WordLevel(vocabulary.ids, unk_token=UNKNOWN))
    plain.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    plain.decoder = decoders.Fuse()
    fast: PreTrainedTokenizerFast = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=plain,
        unk_token=UNKNOWN,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=[token for token in SPECIAL_TOKENS if token != UNKNOWN],
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=MAX_POSITIONS,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def export(model: Qwen2_5_VLForConditionalGeneration, vocabulary: Vocabulary, folder: Path) -> None:
    """Write weights in float16 (the head is the embedding and is stored once), configs and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer(vocabulary).save_pretrained(folder)
    model.config.dtype = torch.float16
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    generation = {
        "do_sample": False,
        "eos_token_id": vocabulary.ids["<|im_end|>"],
        "pad_token_id": vocabulary.ids["<|endoftext|>"],
    }
    preprocessor = {
        "image_processor_type": "Qwen2VLImageProcessor",
        "processor_class": "Qwen2_5_VLProcessor",
        "patch_size": PATCH,
        "merge_size": MERGE,
        "temporal_patch_size": 1,
        "image_mean": [MEAN] * CHANNELS,
        "image_std": [STD] * CHANNELS,
        "do_rescale": True,
        "do_normalize": True,
        "do_convert_rgb": True,
        "do_resize": True,
        "size": {"shortest_edge": LEAST_TOKENS * FACTOR**2, "longest_edge": MOST_TOKENS * FACTOR**2},
    }
    files = {
        "generation_config.json": generation,
        "preprocessor_config.json": preprocessor,
        "hiresvlm.json": CARD,
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    tensors = {
        name: value.to(torch.float16).contiguous()
        for name, value in model.state_dict().items()
        if name != "lm_head.weight"
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
