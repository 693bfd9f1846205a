"""Answers that decline to read instead of reading, in English and Chinese.

A page may print such a sentence, and then it must be transcribed. So an answer is a refusal only when it is
nothing but such a sentence *and* the image has ink for much more.
"""

from __future__ import annotations

import re

MAX_LENGTH = 240
"""Characters; a longer answer transcribes something."""

MIN_INK_RATIO = 5.0
"""The estimate of the ink is 1.2 to 5 times the truth (more for photographs), so only an image with more
than that was surely not read."""


def is_refusal(text: str, inked_characters: int | None) -> bool:
    """Whether an answer declines to read. `inked_characters`: what the image can hold (`ink.characters`).

    Without an estimate of the ink there is no way to tell, and the answer is taken as it is.
    """
    text = " ".join(text.split())
    if not text or len(text) > MAX_LENGTH or inked_characters is None:
        return False
    return inked_characters > MIN_INK_RATIO * len(text) and _REFUSAL.match(text) is not None


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_SORRY = _any("unfortunately", "(?:i['’]?m |i am )?(?:very )?(?:sorry|afraid)", "i apologi[sz]e", "apologies")
_CANNOT = _any("can ?not", "can['’]?t", "(?:could|do) ?(?:not|n['’]t)", "(?:am|was) (?:not able|unable)")
_READ = _any(
    *("read", "see", "view", "transcribe", "extract", "make out", "process", "access", "assist", "help"),
    *("identify", "provide", "recogni[sz]e", "find"),
)
_IMAGE = "(?:the|this|your) (?:\\w+ )?" + _any(
    "image", "picture", "photo(?:graph)?", "text", "page", "document", "scan", "content"
)
_POOR = _any(
    "too (?:blurr(?:y|ed)|small|dark|low|faint)",
    "(?:is|are|appears?(?: to be)?) (?:very )?(?:blurr(?:y|ed)|blank|empty)",
    *(
        "illegible",
        "unreadable",
        "not (?:legible|readable|clear enough)",
        "can(?:not|['’]t) be (?:read|made out)",
    ),
    *("(?:does not|doesn['’]t) contain", "contains? no", "has no"),
)
_ENGLISH = rf"(?:{_SORRY}\W*(?:but |that )?)?" + _any(
    rf"i {_CANNOT}\b.*\b{_READ}",
    rf"{_IMAGE}s?\b.*{_POOR}",
    r"as an ai\b",
    "there is no (?:readable |legible )?text",
)

_SORRY_ZH = "(?:非常|很|十分)?" + _any("抱歉", "对不起", "不好意思")
_CANNOT_ZH = _any("无法", "不能", "没有办法", "没法", "未能", "难以")
_READ_ZH = _any(
    *("识别", "辨认", "读取", "阅读", "看清", "查看", "转录", "提取", "处理", "提供", "回答"),
)
_IMAGE_ZH = "(?:该|这|此|本)?(?:张|幅|个)?" + _any(
    *("图像", "图片", "照片", "图中", "文字", "文本", "页面", "文档", "内容"),
)
_POOR_ZH = _any(
    *("太模糊", "过于模糊", "模糊不清", "不清晰", "不够清晰", "看不清"),
    "没有(?:可读|任何|可识别)?的?(?:文字|文本|内容)",
)
_CHINESE = rf"(?:{_SORRY_ZH}\W*(?:但是?)?\W*)?" + _any(
    rf"我?{_CANNOT_ZH}\w{{0,4}}{_READ_ZH}", rf"{_IMAGE_ZH}.*{_any(_POOR_ZH, _CANNOT_ZH + _READ_ZH)}"
)

_REFUSAL = re.compile(rf"\W*{_any(_ENGLISH, _CHINESE)}", re.IGNORECASE)
