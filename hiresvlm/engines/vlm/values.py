"""Where in an image the words of a question are: the value-value map of FOCUS (arXiv 2506.21710).

The cached *values* of text and image tokens lie in one space. The cosine between those of a phrase and those
of each visual token, over the upper half of the layers, shows where the model relates the two; no attention
map is needed, so any attention kernel will do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from hiresvlm.engines.vlm.inputs import Prompt, grid_thw, token_types
from hiresvlm.engines.vlm.kv import layers, roomy_cache

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from hiresvlm.engines.vlm.loading import Loaded
    from hiresvlm.engines.vlm.vision import VisionEncoder


@torch.inference_mode()
def value_map(
    loaded: Loaded, encoder: VisionEncoder, prompt: Prompt, phrase: str
) -> NDArray[np.float32] | None:
    """Map of the first image of a prompt, (rows, columns) of visual tokens, 0 to 1.

    Of each token of the phrase the mean cosine over the upper layers, stretched to 0..1; then the geometric
    mean over the tokens, so that all of them count and long phrases do not vanish; then a 3 x 3 smoothing.
    None where the prompt has no image or no word. Raises `torch.OutOfMemoryError`.
    """
    words = phrase_tokens(loaded, prompt, phrase)
    if not words or not prompt.images:
        return None
    image = prompt.images[0]
    rows, columns = (side // loaded.image.merge for side in image.grid)
    first = prompt.ids.index(loaded.image_token)
    ids = torch.tensor([prompt.ids])
    types = token_types(ids, loaded.image_token)
    mask = torch.ones_like(ids)
    position, _ = loaded.model.model.get_rope_index(
        ids, types, image_grid_thw=grid_thw(prompt.images, ids.device), attention_mask=mask
    )
    cache = roomy_cache(loaded.model.config)
    device = loaded.device
    loaded.model(
        input_ids=ids.to(device),
        attention_mask=mask.to(device),
        position_ids=position.to(device),
        mm_token_type_ids=types.to(device),
        mm_encoder_outputs=encoder.as_output(encoder.encode(prompt.images)),
        cache=cache,
        use_cache=True,
        logits_to_keep=1,
    )
    upper = layers(cache)[len(cache.layers) // 2 :]
    total = torch.zeros((len(words), rows * columns), device=device)
    for layer in upper:
        # (heads, tokens, width) -> (tokens, heads * width)
        values = layer.values[0].transpose(0, 1).flatten(1).float()
        values = functional.normalize(values, dim=1)
        total += values[torch.tensor(words, device=device)] @ values[first : first + rows * columns].T
    low, high = total.amin(1, keepdim=True), total.amax(1, keepdim=True)
    stretched = (total - low) / (high - low).clamp_min(1e-9)
    joint = stretched.clamp_min(1e-6).log().mean(0).exp().reshape(1, 1, rows, columns)
    joint = functional.avg_pool2d(functional.pad(joint, (1, 1, 1, 1), mode="replicate"), 3, stride=1)
    joint = (joint - joint.min()) / (joint.max() - joint.min()).clamp_min(1e-9)
    result: NDArray[np.float32] = joint[0, 0].cpu().numpy()
    return result


def phrase_tokens(loaded: Loaded, prompt: Prompt, phrase: str) -> list[int]:
    """Positions in a prompt of the tokens of a phrase: its last place after the images.

    All text after the images where the phrase is not found as it stands.
    """
    start = max((n for n, token in enumerate(prompt.ids) if token == loaded.image_token), default=-1) + 1
    special = set(loaded.tokenizer.all_special_ids)
    places = [n for n in range(start, len(prompt.ids)) if prompt.ids[n] not in special]
    texts = [_text(loaded, [prompt.ids[n]]) for n in places]
    whole = "".join(texts).casefold()
    at = whole.rfind(phrase.casefold()) if phrase else -1
    if at < 0 or len(whole) != sum(map(len, texts)):
        return [n for n, text in zip(places, texts, strict=True) if text.strip()]
    found, end = [], 0
    for n, text in zip(places, texts, strict=True):
        begin, end = end, end + len(text)
        if begin < at + len(phrase) and end > at and text.strip():
            found.append(n)
    return found


def _text(loaded: Loaded, ids: Sequence[int]) -> str:
    return str(loaded.tokenizer.decode(list(ids), clean_up_tokenization_spaces=False))
