"""One token per character: the vocabulary of hiresvlm-nano and its prompts.

A tokenizer that knows characters needs no merges file, keeps the embedding small, and makes "next token" mean
"next character", which is what a reader of unknown names and numbers has to get right.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hiresvlm.nano.data import ALPHABET

VISION_START, VISION_END = "<|vision_start|>", "<|vision_end|>"
IMAGE_PAD, VIDEO_PAD = "<|image_pad|>", "<|video_pad|>"
UNKNOWN = "<|unknown|>"
SPECIAL_TOKENS = (
    "<|endoftext|>",
    UNKNOWN,
    "<|im_start|>",
    "<|im_end|>",
    VISION_START,
    VISION_END,
    IMAGE_PAD,
    VIDEO_PAD,
)
SYSTEM = "Read."
TRANSCRIBE = "Transcribe."
"""The user's words for the first task; the second task's are the question itself."""


@dataclass(frozen=True)
class Vocabulary:
    """Special tokens first, then every character of the alphabet."""

    alphabet: str = ALPHABET

    @cached_property
    def ids(self) -> dict[str, int]:
        """Token to id."""
        return {token: n for n, token in enumerate((*SPECIAL_TOKENS, *self.alphabet))}

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Id to token."""
        return (*SPECIAL_TOKENS, *self.alphabet)

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        """Characters to ids; special tokens written in the text stay characters."""
        unknown = self.ids[UNKNOWN]
        return [self.ids.get(char, unknown) for char in text]

    def decode(self, ids: Sequence[int]) -> str:
        """Ids to text, without special tokens."""
        special = len(SPECIAL_TOKENS)
        return "".join(self.tokens[n] for n in ids if special <= n < len(self.tokens))

    def prompt(self, tiles: Sequence[int], question: str | None) -> list[int]:
        """The chat-template form of Qwen up to the assistant's turn.

        `tiles`: visual tokens of each image, in the order they are shown.
        """
        ids = self.ids
        images = [
            token
            for count in tiles
            for token in (ids[VISION_START], *[ids[IMAGE_PAD]] * count, ids[VISION_END])
        ]
        return [*self._turn("system", [], SYSTEM), *self.asked(question or TRANSCRIBE, images)]

    def asked(self, words: str, images: Sequence[int] = ()) -> list[int]:
        """A turn of the user, and the beginning of the assistant's that answers it."""
        start = self.ids["<|im_start|>"]
        return [*self._turn("user", images, words), start, *self.encode("assistant\n")]

    def _turn(self, role: str, images: Sequence[int], words: str) -> list[int]:
        start, end = self.ids["<|im_start|>"], self.ids["<|im_end|>"]
        return [start, *self.encode(f"{role}\n"), *images, *self.encode(words), end, *self.encode("\n")]


CHAT_TEMPLATE = (
    "{% if messages[0]['role'] != 'system' %}<|im_start|>system\n" + SYSTEM + "<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The same prompt as `Vocabulary.prompt`, for `apply_chat_template` (a test holds them equal)."""
