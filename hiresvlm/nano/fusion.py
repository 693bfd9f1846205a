"""An ablation: a learned fusion of all tiles against plain concatenation. Nothing of it is exported.

`concatenated`: the language model sees every visual token of the thumbnail and the tiles, as Qwen does and as
the engine sends them. `resampled`: 32 learned queries attend to all of them, and only what they gathered is
shown (the resampler of Flamingo, arXiv 2204.14198, as the fusion of tiles that the published Hi-Res block
describes). Both arms start from the same weights, see the same batches for the same number of steps, under
the same losses: next token and glyphs. Guided attention is left out, since a gathered token has no place on
the page. The resampler starts from nothing, the rest of both arms does not, which favours concatenation.
"""

import copy
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from transformers import DynamicCache

from hiresvlm.nano.batches import IGNORED, ChatBatch, chat_batch
from hiresvlm.nano.data import Fonts, Generator, Sample
from hiresvlm.nano.losses import GlyphHead, glyph_loss, guided, see
from hiresvlm.nano.model import MERGE
from hiresvlm.nano.reading import character_errors
from hiresvlm.nano.tokens import VISION_END, VISION_START, Vocabulary
from hiresvlm.nano.train import GLYPH_WEIGHT, WARMUP_STEPS, Sitting, advance, computing, optimizers

QUERIES = 32
HEADS = 4
MOST_TILES, MOST_CELLS = 8, 32
"""Images of a prompt, and visual tokens along one side of an image, that have a position of their own."""
MIXTURE = {"tiles": 3.0, "few": 1.0, "form": 1.0}
"""Mostly prompts with several tiles, which the question is about."""
DECAY = 0.5
HELD_OUT_SEED = 1 << 41
"""Far from the small seeds of trainings, and not the one of the evaluation set."""


class Resampler(nn.Module):
    """Cross-attention from learned queries to all visual tokens of a prompt, and a feed-forward layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(QUERIES, width) * 0.02)
        self.tile = nn.Embedding(MOST_TILES, width)
        self.row = nn.Embedding(MOST_CELLS, width)
        self.column = nn.Embedding(MOST_CELLS, width)
        self.norm, self.query_norm, self.inner_norm = (nn.RMSNorm(width) for _ in range(3))
        self.attention = nn.MultiheadAttention(width, HEADS, batch_first=True)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """(B, n, width) visual tokens and their (B, n, 3) tile, row and column, -1 for padding, to
        (B, 32, width)."""
        at, tokens = places.clamp(min=0), tokens.float()
        keys = self.norm(tokens) + self.tile(at[..., 0]) + self.row(at[..., 1]) + self.column(at[..., 2])
        queries = self.queries.expand(len(tokens), -1, -1)
        found, _ = self.attention(
            self.query_norm(queries),
            keys,
            self.norm(tokens),
            key_padding_mask=places[..., 0] < 0,
            need_weights=False,
        )
        found = queries + found
        gathered: torch.Tensor = found + self.inner(self.inner_norm(found))
        return gathered


@dataclass(frozen=True)
class Shown:
    """What the language model is given: (B, L, width) embeddings, (3, B, L) positions, (B, L) labels."""

    embeddings: torch.Tensor
    positions: torch.Tensor
    labels: torch.Tensor
    hidden: torch.Tensor
    """The tower's output, for the glyph loss."""
    visual: int
    """Visual tokens in all rows."""


def places(ids: torch.Tensor, grid: torch.Tensor, start: int) -> list[torch.Tensor]:
    """Of each prompt in (B, L) `ids`, the (n, 3) image, row and column of its visual tokens.

    `grid`: (images, 3) as the tower takes it; `start`: the id before the tokens of an image.
    """
    shapes = iter((grid[:, 1:] // MERGE).tolist())
    found = []
    for count in (ids == start).sum(1).tolist():
        parts = []
        for number, (rows, columns) in enumerate(itertools.islice(shapes, count)):
            row, column = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
            parts.append(torch.stack([torch.full_like(row, number), row, column], -1).flatten(0, 1))
        found.append(torch.cat(parts))
    return found


def concatenated(model: Any, batch: ChatBatch) -> Shown:
    """Every visual token at its place, with the positions of Qwen's M-RoPE."""
    hidden, visual = see(model, batch.tower)
    images = batch.ids == model.config.image_token_id
    embeddings = model.model.get_input_embeddings()(batch.ids)
    embeddings = embeddings.masked_scatter(images[..., None], visual.to(embeddings.dtype))
    positions, _ = model.model.get_rope_index(
        batch.ids, mm_token_type_ids=images.int(), image_grid_thw=batch.tower.grid, attention_mask=batch.mask
    )
    return Shown(embeddings, positions, batch.labels, hidden, len(visual))


def resampled(model: Any, resampler: Resampler, batch: ChatBatch, vocabulary: Vocabulary) -> Shown:
    """One image of 32 gathered tokens in the place of all images, counted like text."""
    image, start, end = model.config.image_token_id, vocabulary.ids[VISION_START], vocabulary.ids[VISION_END]
    hidden, visual = see(model, batch.tower)
    where = places(batch.ids, batch.tower.grid, start)
    sizes = [len(part) for part in where]
    tokens = nn.utils.rnn.pad_sequence(list(torch.split(visual, sizes)), batch_first=True)
    gathered = resampler(tokens, nn.utils.rnn.pad_sequence(where, batch_first=True, padding_value=-1))
    block = torch.tensor([start, *[image] * QUERIES, end])
    rows, labels = [], []
    for ids, row_labels, mask in zip(batch.ids, batch.labels, batch.mask, strict=True):
        shown = (ids == start) | (ids == image) | (ids == end)
        first, keep = int(shown.nonzero()[0]), ~shown & mask.bool()
        before, after = keep.clone(), keep.clone()
        before[first:], after[:first] = False, False
        rows.append(torch.cat([ids[before], block, ids[after]]))
        ignored = torch.full_like(block, IGNORED)
        labels.append(torch.cat([row_labels[before], ignored, row_labels[after]]))
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=vocabulary.ids["<|endoftext|>"])
    embeddings = model.model.get_input_embeddings()(ids)
    embeddings = embeddings.masked_scatter((ids == image)[..., None], gathered.to(embeddings.dtype))
    positions = torch.arange(ids.shape[1]).expand(3, len(ids), -1)
    padded = nn.utils.rnn.pad_sequence(labels, batch_first=True, padding_value=IGNORED)
    return Shown(embeddings, positions, padded, hidden, QUERIES * len(ids))


class Arm:
    """A copy of the weights with one of the two ways to show the tiles; `fuse`: the learned one."""

    def __init__(self, model: Any, head: GlyphHead, vocabulary: Vocabulary, *, fuse: bool) -> None:
        self.model, self.head, self.vocabulary = copy.deepcopy(model), copy.deepcopy(head), vocabulary
        self.resampler = Resampler(model.config.text_config.hidden_size) if fuse else None

    def show(self, batch: ChatBatch) -> Shown:
        """The batch as this arm's language model sees it."""
        if self.resampler is None:
            return concatenated(self.model, batch)
        return resampled(self.model, self.resampler, batch, self.vocabulary)

    def train(self, batches: Iterable[ChatBatch], steps: int, rate: float) -> list[float]:
        """The loss of the next token in each step."""
        extra = nn.ModuleList([self.head, *([self.resampler] if self.resampler else [])])
        steppers = optimizers(self.model, extra, Sitting("read", 0, {}, rate=rate, tower_share=0.5))
        warmup, losses = min(WARMUP_STEPS, max(1, steps // 5)), []
        with guided(self.model):
            self.model.train()
            for step, batch in enumerate(itertools.islice(batches, steps)):
                with computing(self.model.device):
                    shown = self.show(batch)
                    following = self._next(shown)
                    glyph, _ = glyph_loss(self.head, shown.hidden, batch.tower.labels)
                torch.autograd.backward(following + GLYPH_WEIGHT * glyph)
                advance(steppers, min(1.0, (step + 1) / warmup, (steps - step) / (DECAY * steps)))
                losses.append(following.item())
        self.model.eval()
        return losses

    def _next(self, shown: Shown) -> torch.Tensor:
        output = self.model.model.language_model(
            inputs_embeds=shown.embeddings, position_ids=shown.positions, use_cache=False
        )
        answer = shown.labels != IGNORED
        logits = self.model.lm_head(output.last_hidden_state[answer])
        return functional.cross_entropy(logits, shown.labels[answer])

    @torch.inference_mode()
    def read(self, sample: Sample) -> tuple[str, int]:
        """The greedy answer to one prompt, and the visual tokens that the language model saw."""
        self.model.eval()
        shown = self.show(chat_batch([sample], self.vocabulary))
        length = int((shown.labels[0] != IGNORED).nonzero()[0]) + 1
        embeddings, positions = shown.embeddings[:, :length], shown.positions[..., :length]
        cache, ids = DynamicCache(), list[int]()
        core, end = self.model.model, self.vocabulary.ids["<|im_end|>"]
        for _ in range(int(len(sample.target) * 1.2) + 16):
            output = core.language_model(
                inputs_embeds=embeddings, position_ids=positions, cache=cache, use_cache=True
            )
            token = int(self.model.lm_head(output.last_hidden_state[0, -1]).argmax())
            if token == end:
                break
            ids.append(token)
            embeddings = core.get_input_embeddings()(torch.tensor([[token]]))
            positions = positions.max().expand(3, 1, 1) + 1
        return self.vocabulary.decode(ids), shown.visual


def held_out(pages: int, questions: int) -> list[Sample]:
    """Prompts with several tiles in faces that no training saw: pages to transcribe, then questions."""
    generator = Generator(HELD_OUT_SEED, Fonts.installed(held_out=True), words=())
    found: dict[bool, list[Sample]] = {True: [], False: []}
    wanted = {True: pages, False: questions}
    while any(len(found[kind]) < wanted[kind] for kind in wanted):
        sample = generator.sample("tiles")
        transcribed = sample.question is None
        if len(found[transcribed]) < wanted[transcribed] and sample.target:
            found[transcribed].append(sample)
    return [*found[True], *found[False]]


def measure(arm: Arm, samples: Sequence[Sample]) -> dict[str, Any]:
    """CER of the transcriptions, exact answers to the questions, visual tokens a prompt."""
    reads = [arm.read(sample) for sample in samples]
    pages = [(s.target, text) for s, (text, _) in zip(samples, reads, strict=True) if s.question is None]
    asked = [(s, text) for s, (text, _) in zip(samples, reads, strict=True) if s.question is not None]
    present = [s.target == text for s, text in asked if (s.where[:, 0] >= 0).any()]
    absent = [s.target == text for s, text in asked if not (s.where[:, 0] >= 0).any()]
    return {
        "pages": len(pages),
        "cer": round(character_errors(*zip(*pages, strict=True)), 4) if pages else None,
        "exact": sum(present),
        "asked": len(present),
        "none_exact": sum(absent),
        "none_asked": len(absent),
        "cer_answers": round(character_errors([s.target for s, _ in asked], [t for _, t in asked]), 4)
        if asked
        else None,
        "visual_tokens": round(sum(count for _, count in reads) / len(reads), 1),
    }


def compare(
    model: Any,
    head: GlyphHead,
    batches: Iterable[ChatBatch],
    samples: Sequence[Sample],
    *,
    steps: int,
    seed: int,
    rate: float,
) -> dict[str, dict[str, Any]]:
    """Train both arms on the first `steps` batches and measure them; the given weights stay as they are."""
    vocabulary = Vocabulary()
    batches = list(itertools.islice(batches, steps))
    found = {}
    for name, fuse in (("concatenated", False), ("resampled", True)):
        torch.manual_seed(seed)
        arm = Arm(model, head, vocabulary, fuse=fuse)
        losses = arm.train(batches, steps, rate)
        last = losses[-max(1, steps // 10) :]
        found[name] = {**measure(arm, samples), "loss": round(sum(last) / len(last), 4), "steps": len(losses)}
    return found
