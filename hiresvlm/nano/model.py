"""The shape of hiresvlm-nano: a Qwen2.5-VL in small.

What differs from a production configuration, and why:
- `temporal_patch_size` 1: there is no video, so half of the patch embedding would be a copy.
- Windowed attention in blocks 0 and 2, full attention in 1 and 3: glyphs are local, and full attention over
  a 448 x 448 tile would cost half of the tower.
- `rope_theta` 200: M-RoPE gives the width axis the lowest frequencies. With the usual 1e6 they turn by less
  than 0.003 radian over the 16 columns of a tile, so that neighbouring columns could hardly be told apart.
"""

from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

from hiresvlm.nano.tokens import IMAGE_PAD, VIDEO_PAD, VISION_END, VISION_START, Vocabulary

PATCH = 14
MERGE = 2
FACTOR = PATCH * MERGE
"""Pixels on a side of one visual token."""
CHANNELS = 3
VISION_WIDTH = 160
MAX_POSITIONS = 4096


def configuration(vocabulary: Vocabulary) -> Qwen2_5_VLConfig:
    """The configuration for a vocabulary: 5.7 million parameters, the embedding shared with the head."""
    end = vocabulary.ids["<|im_end|>"]
    pad = vocabulary.ids["<|endoftext|>"]
    return Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(vocabulary),
            "hidden_size": 256,
            "intermediate_size": 640,
            "num_hidden_layers": 5,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": MAX_POSITIONS,
            "rms_norm_eps": 1e-6,
            "rope_parameters": {"rope_type": "default", "rope_theta": 200.0, "mrope_section": [8, 12, 12]},
            "tie_word_embeddings": True,
            "bos_token_id": None,
            "eos_token_id": end,
            "pad_token_id": pad,
        },
        vision_config={
            "depth": 4,
            "hidden_size": VISION_WIDTH,
            "intermediate_size": 480,
            "num_heads": 5,
            "in_channels": CHANNELS,
            "patch_size": PATCH,
            "spatial_merge_size": MERGE,
            "temporal_patch_size": 1,
            "window_size": 112,
            "fullatt_block_indexes": [1, 3],
            "out_hidden_size": 256,
        },
        image_token_id=vocabulary.ids[IMAGE_PAD],
        video_token_id=vocabulary.ids[VIDEO_PAD],
        vision_start_token_id=vocabulary.ids[VISION_START],
        vision_end_token_id=vocabulary.ids[VISION_END],
        tie_word_embeddings=True,
    )


def new_model(vocabulary: Vocabulary) -> Qwen2_5_VLForConditionalGeneration:
    """An untrained model in float32; the caller seeds torch."""
    return Qwen2_5_VLForConditionalGeneration(configuration(vocabulary))
