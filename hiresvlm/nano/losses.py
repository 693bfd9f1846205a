"""The losses of both stages.

Next-token loss alone has to discover from the text where each character stands. The renderer knows it, and
two auxiliary losses, which exist during training only, say it:

- glyph loss: each 14-px patch names the characters centred in it. A dense form of the CTC pretraining of a
  text recogniser: no alignment to be found, and it works on whole tiles, not on single lines only.
- guided attention (Tachibana et al. 2017, arXiv 1710.08969, for speech): one head of one layer looks at the
  visual token that the last character was read from, one head of the next layer at the one that holds the
  next character.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface, AttentionMaskInterface, Qwen2_5_VLForConditionalGeneration
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from hiresvlm.engines.vlm import attention
from hiresvlm.nano.batches import GLYPHS_PER_PATCH, IGNORED, ChatBatch, TowerBatch
from hiresvlm.nano.model import MERGE

LAST_READ_LAYER, NEXT_READ_LAYER = 1, 2
GUIDED_HEAD = 0
NOTHING_WEIGHT = 0.3
"""Weight of "no further character here" in the glyph loss: it is soon learned."""
EMPTY_SHARE = 16

_recorded: dict[int, tuple[torch.Tensor, torch.Tensor, float]] = {}


def _guided(
    module: nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, **kwargs: Any
) -> Any:
    """SDPA that remembers queries and keys of the guided head."""
    layer = getattr(module, "layer_idx", None)
    if layer in (LAST_READ_LAYER, NEXT_READ_LAYER) and module.training:
        _recorded[layer] = (
            query[:, GUIDED_HEAD],
            key[:, 0],
            kwargs.get("scaling") or query.shape[-1] ** -0.5,
        )
    return sdpa_attention_forward(module, query, key, value, mask, **kwargs)


AttentionInterface.register("guided", _guided)
AttentionMaskInterface.register("guided", sdpa_mask)


@contextmanager
def guided(model: Qwen2_5_VLForConditionalGeneration) -> Iterator[None]:
    """Within it, the language model's attention can be guided."""
    model.set_attn_implementation({"text_config": "guided", "vision_config": "sdpa"})
    attention.install(model)
    try:
        yield
    finally:
        _recorded.clear()
        model.set_attn_implementation({"text_config": "sdpa", "vision_config": "sdpa"})


class GlyphHead(nn.Module):
    """Names up to four characters of each patch from the tower's output. Not part of the exported model."""

    def __init__(self, width: int, characters: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.slots = nn.Linear(width, GLYPHS_PER_PATCH * width)
        self.out = nn.Linear(width, characters + 1)

    def forward(self, hidden: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """(n, width) of n patches and the place 0..3 asked of each, to logits (n, characters + 1)."""
        slots = self.slots(self.norm(hidden)).unflatten(-1, (GLYPHS_PER_PATCH, -1))
        chosen = slots.gather(1, place[:, None, None].expand(-1, 1, slots.shape[-1]))[:, 0]
        named: torch.Tensor = self.out(functional.gelu(chosen))
        return named


def see(model: Qwen2_5_VLForConditionalGeneration, batch: TowerBatch) -> tuple[torch.Tensor, torch.Tensor]:
    """The tower's output before its merger, in the order of the patches, and after it."""
    visual = model.model.visual
    output = visual(batch.patches, grid_thw=batch.grid, return_dict=True)
    hidden = output.last_hidden_state.unflatten(0, (-1, MERGE * MERGE))
    return hidden[torch.argsort(window_order(model, batch.grid))].flatten(0, 1), output.pooler_output


def window_order(model: Qwen2_5_VLForConditionalGeneration, grid: torch.Tensor) -> torch.Tensor:
    """The order in which the tower holds the blocks of patches: by attention windows."""
    from transformers.vision_utils import get_vision_window_index

    visual = model.model.visual
    index, _ = get_vision_window_index(
        grid, spatial_merge_size=MERGE, window_size=visual.window_size, patch_size=visual.patch_size
    )
    return index


def glyph_loss(
    head: GlyphHead, hidden: torch.Tensor, labels: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy of the characters in patches, and the share of characters named rightly.

    Asked are every character, the first free place of each patch that has one, and one in `EMPTY_SHARE` of
    the empty patches: the rest is "nothing" too, and would be most of the work.
    """
    present = labels > 0
    count = present.sum(1)
    free = (count > 0) & (count < GLYPHS_PER_PATCH) & (labels[:, 0] != IGNORED)
    empty = torch.nonzero((count == 0) & (labels[:, 0] != IGNORED))[:, 0][::EMPTY_SHARE]
    patch, place = torch.nonzero(present, as_tuple=True)
    nothing = torch.cat([torch.nonzero(free)[:, 0], empty])
    nothing_place = torch.cat([count[free], torch.zeros_like(empty)])
    logits = head(hidden[torch.cat([patch, nothing])], torch.cat([place, nothing_place]))
    aims = torch.cat([labels[patch, place], torch.zeros_like(nothing)])
    losses = functional.cross_entropy(logits, aims, reduction="none")
    weight = torch.ones_like(losses)
    weight[len(patch) :] = NOTHING_WEIGHT
    right = (logits[: len(patch)].argmax(-1) == aims[: len(patch)]).float().mean()
    return (losses * weight).sum() / weight.sum().clamp(min=1.0), right


def chat_losses(
    model: Qwen2_5_VLForConditionalGeneration, head: GlyphHead, batch: ChatBatch
) -> dict[str, torch.Tensor]:
    """`next`, `glyph` and `guide` losses, and `right`: the share of answer tokens predicted rightly.

    Call within `guided(model)` in training mode for `guide`.
    """
    _recorded.clear()
    hidden, visual = see(model, batch.tower)
    core = model.model
    embeddings = core.get_input_embeddings()(batch.ids)
    images = batch.ids == model.config.image_token_id
    embeddings = embeddings.masked_scatter(images[..., None], visual.to(embeddings.dtype))
    positions, _ = core.get_rope_index(
        batch.ids, mm_token_type_ids=images.int(), image_grid_thw=batch.tower.grid, attention_mask=batch.mask
    )
    output = core.language_model(inputs_embeds=embeddings, position_ids=positions, use_cache=False)
    answer = batch.labels != IGNORED
    logits = model.lm_head(output.last_hidden_state[answer])
    labels = batch.labels[answer]
    glyph, named = glyph_loss(head, hidden, batch.tower.labels)
    weights = batch.weights[:, None].expand_as(answer)[answer]
    following_losses = functional.cross_entropy(logits, labels, reduction="none")
    losses = {
        "next": (following_losses * weights).sum() / weights.sum(),
        "right": (logits.argmax(-1) == labels).float().mean(),
        "glyph": glyph,
        "named": named,
    }
    if _recorded:
        following = torch.cat([batch.reads[:, 1:], torch.full_like(batch.reads[:, :1], -1)], 1)
        following = following.masked_fill(~answer, -1)
        losses["guide"] = _attention_loss(LAST_READ_LAYER, batch.reads) + _attention_loss(
            NEXT_READ_LAYER, following
        )
    return losses


def _attention_loss(layer: int, aims: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of a head's attention against the column it should look at; -1 does not count."""
    query, key, scaling = _recorded[layer]
    row, position = torch.nonzero(aims >= 0, as_tuple=True)
    scores = (query @ key.transpose(1, 2))[row, position] * scaling
    future = torch.arange(key.shape[1]) > position[:, None]
    return functional.cross_entropy(scores.masked_fill(future, float("-inf")), aims[row, position])
