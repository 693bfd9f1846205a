"""What a segment says: the recognition model and the decoding of its output (CTC)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import cv2
import numpy as np

from hiresvlm.errors import EngineLoadError

if TYPE_CHECKING:
    import onnxruntime
    from numpy.typing import NDArray

    from hiresvlm.datatypes import Pixels
    from hiresvlm.engines.light.detect import Quad

HEIGHT = 48
"""Height of a segment as the model sees it, in pixels."""
MAX_WIDTH = 4096
"""Wider segments are squeezed: time and memory grow with the square of the width."""
TALL = 1.5
"""A segment this many times higher than wide may hold text that runs downwards..."""
VERY_TALL = 3.0
"""...and surely does from here on: no character is so narrow."""
SPACE_GAP = HEIGHT // 4
"""The model drops one space in twenty. A strip without ink this wide is one, if the model sees at
least a hint of it. Measured on receipts, where this restores half of the lost spaces."""
SPACE_HINT = 0.02
"""Between an ideograph and a letter or figure the hint alone decides, for the blank beside an ideograph
is as wide as a space: on 8 pages of screenshots at capitals of 7 to 12 px (`bench chunking`, seeds 1 and 2)
the model sees at least 0.02 at 128 of the 132 spaces that it drops there, and at most 0.0014 at 4,274
places without one."""
WIDE_GAP = HEIGHT
"""A strip this wide (one and a half ideographs) is a space whatever the model says."""


class Recogniser:
    """Reads one segment at a time: batches are no faster, as padding eats what they gain."""

    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        self._session = session
        self._input = session.get_inputs()[0].name
        characters = session.get_modelmeta().custom_metadata_map.get("character")
        if not characters:
            raise EngineLoadError("the recognition model has no list of characters")
        # Class 0 is the CTC blank, the last one is the space.
        self._characters = ["", *characters.splitlines(), " "]

    def read(self, image: Pixels, quad: Quad) -> tuple[str, float]:
        """Text of a segment of a BGR image (h, w, 3), and the mean confidence of its characters."""
        width, height = _size(quad)
        if height < TALL * width:
            return self._decode(_crop(image, quad))
        turns = [np.roll(quad, -1, axis=0), np.roll(quad, 1, axis=0)]
        if height < VERY_TALL * width:
            turns.append(quad)  # perhaps it is only a narrow character
        return max((self._decode(_crop(image, turn)) for turn in turns), key=lambda reading: reading[1])

    def _decode(self, crop: Pixels) -> tuple[str, float]:
        tensor = crop.transpose(2, 0, 1)[None].astype(np.float32)
        tensor *= 1 / 127.5
        tensor -= 1.0
        (output,) = self._session.run(None, {self._input: tensor})
        scores: NDArray[np.float32] = np.asarray(output)[0]
        best = scores.argmax(axis=1)
        starts = np.flatnonzero((np.diff(best, prepend=0) != 0) & (best != 0))
        if not len(starts):
            return "", 0.0
        confidence = float(scores[starts, best[starts]].mean())
        return self._text(crop, scores[:, -1], best, starts), confidence

    def _text(
        self,
        crop: Pixels,
        space: NDArray[np.float32],
        best: NDArray[np.intp],
        starts: NDArray[np.intp],
    ) -> str:
        """Joins the characters that begin at columns `starts`, with the spaces that the model missed."""
        inked = _inked(crop)
        changes = np.append(np.flatnonzero(np.diff(best)), len(best) - 1)
        ends = changes[np.searchsorted(changes, starts)]
        centres = ((starts + ends + 1) / 2 * crop.shape[1] / len(best)).astype(int)
        characters = [self._characters[i] for i in best[starts]]
        text = characters[0]
        for i in range(1, len(characters)):
            before, after = characters[i - 1], characters[i]
            if not (before.isspace() or after.isspace()):
                gap = _widest_gap(inked[centres[i - 1] : centres[i] + 1])
                hint = float(space[ends[i - 1] : starts[i] + 1].max())
                following = characters[i + 1] if i + 1 < len(characters) else ""
                wide = gap >= SPACE_GAP and not _solid(text, after, following)
                if (hint > SPACE_HINT and (wide or _mixed(before, after))) or gap >= WIDE_GAP:
                    text += " "
            text += after
        return " ".join(text.split())


def _solid(text: str, after: str, following: str) -> bool:
    """Whether what ends in `text` and `after` belong together: ideographs, or parts of a number."""
    before = text[-1]
    if _is_ideograph(before) or _is_ideograph(after):
        return True
    if after in ".,:":
        return before.isdigit() and following.isdigit()
    return before in ".,:" and after.isdigit() and text[-2:-1].isdigit()


def _mixed(before: str, after: str) -> bool:
    """Whether an ideograph and a letter or figure of another script meet."""
    return before[-1].isalnum() and after[0].isalnum() and _is_ideograph(before) != _is_ideograph(after)


def _is_ideograph(character: str) -> bool:
    """Chinese, Japanese or Korean, or punctuation as wide as these."""
    code = ord(character[0])
    return 0x2E80 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7AF or 0xF900 <= code <= 0xFAFF or code >= 0xFF00


def _inked(crop: Pixels) -> NDArray[np.bool_]:
    """For each pixel column of a crop whether there is ink in it (the rarer of two shades)."""
    grey = cv2.cvtColor(crop, cv2.COLOR_BGR2GRAY)
    _, binary = cv2.threshold(grey, 0, 1, cv2.THRESH_BINARY + cv2.THRESH_OTSU)
    ink = binary if binary.mean() < 0.5 else 1 - binary
    # The outermost rows may show the lines above and below.
    return np.asarray(ink[HEIGHT // 12 : -HEIGHT // 12].any(axis=0))


def _widest_gap(inked: NDArray[np.bool_]) -> int:
    """Length of the longest run of columns without ink."""
    edges = np.concatenate([[-1], np.flatnonzero(inked), [len(inked)]])
    return int(np.diff(edges).max()) - 1


def _size(quad: Quad) -> tuple[float, float]:
    """Width and height of a segment along its own edges."""
    return math.dist(quad[0], quad[1]), math.dist(quad[0], quad[3])


def _crop(image: Pixels, quad: Quad) -> Pixels:
    """The segment set upright, HEIGHT pixels high."""
    w, h = _size(quad)
    width = min(MAX_WIDTH, math.ceil(w * HEIGHT / h))
    target = np.array([[0, 0], [width, 0], [0, HEIGHT]], np.float32)
    matrix = cv2.getAffineTransform(quad[[0, 1, 3]], target)
    crop = cv2.warpAffine(
        image, matrix, (width, HEIGHT), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(crop, np.uint8)
