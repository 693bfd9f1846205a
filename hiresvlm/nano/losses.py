"""The losses of both stages.

Next-token loss alone has to discover from the text where each character stands. The renderer knows it, and
two auxiliary losses, which exist during training only, say it:

- glyph loss: each 14-px patch names the characters centred in it. A dense form of the CTC pretraining of a
  text recogniser: no alignment to be found, and it works on whole tiles, not on single lines only.
- guided attention (Tachibana et al. 2017, arXiv 1710.08969, for speech): one head of an early layer looks at
  the visual token that the last character was read from, one head of a later layer at the one that holds the
  next character. At the end of a question, another head of that later layer looks at the label that was asked
  for, and one of the last layer at the value beside it: a question, and the label in the tile, whose
  characters lie in several visual tokens, have to be put together first, which takes layers of its own.
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

LAST_READ, NEXT_READ, LABEL, VALUE = (1, 0), (3, 0), (3, 2), (4, 0)
"""Layer and head of each guide; the label's does not share its keys with the one of the next character."""
FEW_QUESTIONS = 8
"""The guides of questions count by their number up to this many in a batch: few of them say little."""
MISREAD_SHARE = 0.08
"""Of the characters before the next one."""
NOTHING_WEIGHT = 0.3
"""Weight of "no further character here" in the glyph loss: it is soon learned."""
EMPTY_SHARE = 16

_recorded: dict[int, tuple[torch.Tensor, torch.Tensor, float]] = {}


def _guided(
    module: nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, **kwargs: Any
) -> tuple[torch.Tensor, None]:
    """Causal attention, (B, heads, L, width) to (B, L, heads, width); training remembers queries and keys."""
    if not module.training:
        return sdpa_attention_forward(module, query, key, value, mask, **kwargs)
    scaling = kwargs.get("scaling") or query.shape[-1] ** -0.5
    _recorded[module.layer_idx] = (query, key, scaling)  # type: ignore[index]
    # The rotation of the positions leaves queries and keys in float32, where attention is slower.
    result = attention.attend(query.to(value.dtype), key.to(value.dtype), value, scaling, causal=True)
    return result.transpose(1, 2), None


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
        slots = self.slots(self.norm(hidden.float())).unflatten(-1, (GLYPHS_PER_PATCH, -1))
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


def misread(batch: ChatBatch) -> torch.Tensor:
    """(B, L) ids in which some characters of the answers are others of the same batch.

    A model that is only ever shown right beginnings loses its place after its own first error, and goes on
    with likely words in place of printed ones (exposure bias, Bengio et al. 2015, arXiv 1506.03099). Drawn
    from the default generator.
    """
    read = batch.reads >= 0
    characters = batch.ids[read]
    if not len(characters):
        return batch.ids
    drawn = characters[torch.randint(len(characters), characters.shape, device=characters.device)]
    wrong = torch.rand(characters.shape, device=characters.device) < MISREAD_SHARE
    ids = batch.ids.clone()
    ids[read] = torch.where(wrong, drawn, characters)
    return ids


def chat_losses(
    model: Qwen2_5_VLForConditionalGeneration, head: GlyphHead, batch: ChatBatch
) -> dict[str, torch.Tensor]:
    """`next`, `glyph` and `guide` losses, and `right`: the share of answer tokens predicted rightly.

    Call within `guided(model)` in training mode for `guide`.
    """
    _recorded.clear()
    hidden, visual = see(model, batch.tower)
    core = model.model
    embeddings = core.get_input_embeddings()(misread(batch) if model.training else batch.ids)
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
        losses["guide"] = _guides(batch, answer)
    return losses


def _guides(batch: ChatBatch, answer: torch.Tensor) -> torch.Tensor:
    """The sum of the guides' losses."""
    row, end, label, value = batch.finds.T
    nothing = torch.full_like(batch.reads, -1)
    following = torch.cat([batch.reads[:, 1:], nothing[:, :1]], 1).masked_fill(~answer, -1)
    following[row, end] = -1  # the last layer finds the first character of an answer to a question
    labels, values = nothing.clone(), nothing
    labels[row, end], values[row, end] = label, value
    share = min(1.0, len(row) / FEW_QUESTIONS)
    reading = _attention_loss(LAST_READ, batch.reads) + _attention_loss(NEXT_READ, following)
    return reading + share * (_attention_loss(LABEL, labels) + _attention_loss(VALUE, values))


def _attention_loss(guide: tuple[int, int], aims: torch.Tensor) -> torch.Tensor:
    """Cross-entropy of a head's attention from each position against the column in `aims`, (B, L): where it
    should look, -1 where that does not matter; 0 where it never does."""
    layer, head = guide
    query, key, scaling = _recorded[layer]
    row, position = torch.nonzero(aims >= 0, as_tuple=True)
    if not len(row):
        return query.new_zeros(())
    shared = query.shape[1] // key.shape[1]
    scores = query[:, head] @ key[:, head // shared].transpose(1, 2)
    scores = scores[row, position].float() * scaling
    future = torch.arange(key.shape[2], device=key.device) > position[:, None]
    return functional.cross_entropy(scores.masked_fill(future, float("-inf")), aims[row, position])
