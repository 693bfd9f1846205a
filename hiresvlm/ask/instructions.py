"""Text on a page that talks to a model instead of a reader. It is data, and the record says that it is there."""

from __future__ import annotations

import re
import unicodedata

_PATTERNS = re.compile(
    r"""(?:ignore|disregard|forget|override)\b.{0,40}\b(?:questions?|instructions?|prompts?|previous|above|prior|rules?|everything)\b
    | \b(?:do\s*not|don'?t|never)\s+answer\b
    | \banswer\s+(?:only\s+|always\s+|with\s+|just\s+)+\S
    | \b(?:reply|respond|answer)\s+(?:only\s+)?(?:with\s+|as\s+)?["'“‘]?\S{1,20}["'”’]?\s*(?:instead|to\s+(?:every|all|any)|no\s+matter)
    | \byou\s+are\s+(?:now\s+)?(?:an?\s+)?(?:ai|assistant|language\s+model|chatbot)\b
    | \b(?:system|developer)\s+(?:prompt|message|instruction)s?\b
    | <\|?(?:im_start|im_end|system|assistant|endoftext)\|?>
    | (?:忽略|无视|忘记|不要理会|不理会).{0,12}(?:问题|指令|指示|提示|以上|上述|之前|前面|规则)
    | (?:请|直接|只|一律|必须)(?:要|能|需)?(?:回答|回复|输出).{0,16}
    | 你(?:现在)?是一?个?(?:人工智能|AI|助手|语言模型)
    """,
    re.IGNORECASE | re.VERBOSE,
)


MAX_LENGTH = 2000
"""Characters of a line that are looked at."""


def is_instruction(text: str) -> bool:
    """Whether a line reads like an order to whoever answers questions about the page."""
    return _PATTERNS.search(unicodedata.normalize("NFKC", text[:MAX_LENGTH])) is not None
