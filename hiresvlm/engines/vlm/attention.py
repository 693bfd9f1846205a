"""Attention of the vision tower over segments of unequal length: one call for all segments of a length.

Without flash-attention wheels, transformers loops over the windows of Qwen2.5-VL in Python: 2,244 calls for
one page of 1,280 tokens. Segments of one length are a batch, so a few calls do the same work with the same
result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.utils.weak import WeakIdKeyDictionary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAME = "hiresvlm_flash_like"
"""The vision tower hands over all segments at once only to a function whose name contains "flash"."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Segments of one length: their number, the length, and the positions of their tokens (None: all in
    order)."""

    count: int
    length: int
    index: torch.Tensor | None


_groups: WeakIdKeyDictionary = WeakIdKeyDictionary()
"""Groups of the boundaries that were seen last: all layers of a forward pass share two tensors of them."""


def install(model: PreTrainedModel) -> None:
    """Make the vision tower of a model use `grouped_attention`."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, grouped_attention)
    # The public setter would look for a kernel of this name on a hub.
    model.model.visual.config._attn_implementation = NAME


def grouped_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    cu_seq_lens_q: torch.Tensor | None = None,
    **ignored: Any,
) -> tuple[torch.Tensor, None]:
    """Attention within each segment.

    `query`, `key`, `value`: (1, heads, tokens, width); `cu_seq_lens_q`: boundaries of the segments. Gives
    (1, tokens, heads, width).
    """
    assert cu_seq_lens_q is not None
    assert attention_mask is None
    result = torch.empty_like(query)
    for group in _grouped(cu_seq_lens_q):
        parts = [_split(tensor, group) for tensor in (query, key, value)]
        seen = attend(parts[0], parts[1], parts[2], scaling)
        joined = seen.transpose(0, 1).reshape(1, query.shape[1], -1, query.shape[3])
        if group.index is None:
            result = joined
        else:
            result[:, :, group.index] = joined
    return result.transpose(1, 2), None


def attend(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None, causal: bool = False
) -> torch.Tensor:
    """Softmax attention of (B, heads, L, width); keys and values may have fewer heads.

    In bfloat16 on a CPU the plain products are 1.5 to 7 times faster than the library's fused kernel, which
    computes in float32 there; everywhere else the kernel is faster.
    """
    grouped = query.shape[1] != key.shape[1]
    if query.device.type != "cpu" or query.dtype != torch.bfloat16:
        return functional.scaled_dot_product_attention(
            query, key, value, scale=scaling, is_causal=causal, enable_gqa=grouped
        )
    if grouped:
        shared = query.shape[1] // key.shape[1]
        key, value = (tensor.repeat_interleave(shared, dim=1) for tensor in (key, value))
    scores = query @ key.transpose(-1, -2) * (scaling or query.shape[-1] ** -0.5)
    if causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    return scores.softmax(-1).to(value.dtype) @ value


def _split(tensor: torch.Tensor, group: _Group) -> torch.Tensor:
    """(1, heads, tokens, width) -> (segments, heads, length, width)."""
    if group.index is not None:
        tensor = tensor[:, :, group.index]
    heads, width = tensor.shape[1], tensor.shape[3]
    return tensor.reshape(heads, group.count, group.length, width).transpose(0, 1)


def _grouped(boundaries: torch.Tensor) -> list[_Group]:
    if boundaries not in _groups:
        _groups[boundaries] = _new_groups(boundaries)
    found: list[_Group] = _groups[boundaries]
    return found


def _new_groups(boundaries: torch.Tensor) -> list[_Group]:
    edges = boundaries.tolist()
    starts: dict[int, list[int]] = {}
    for start, end in zip(edges, edges[1:], strict=False):
        if end > start:
            starts.setdefault(end - start, []).append(start)
    if len(starts) == 1:
        ((length, firsts),) = starts.items()
        return [_Group(len(firsts), length, None)]
    groups = []
    for length, firsts in starts.items():
        offsets = torch.arange(length, device=boundaries.device)
        index = (torch.tensor(firsts, device=boundaries.device)[:, None] + offsets).flatten()
        groups.append(_Group(len(firsts), length, index))
    return groups
