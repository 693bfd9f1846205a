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
MIN_WIDTH = 64
TALL = 1.5
"""A segment this many times higher than wide may hold text that runs downwards."""
VERY_TALL = 3.0
"""A segment this many times higher than wide surely does."""


class Recogniser:
    """Reads one segment at a time: wider batches would only add padding."""

    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        self._session = session
        self._input = session.get_inputs()[0].name
        characters = session.get_modelmeta().custom_metadata_map.get("character")
        if not characters:
            raise EngineLoadError("the recognition model has no list of characters", "install rapidocr again")
        # Class 0 is the CTC blank, the last one is the space.
        self._characters = ["", *characters.splitlines(), " "]

    def read(self, image: Pixels, quad: Quad) -> tuple[str, float]:
        """Text of a segment of a BGR image and its mean confidence."""
        width, height = _size(quad)
        if height < TALL * width:
            return self._decode(_crop(image, quad))
        turns = [np.roll(quad, -1, axis=0), np.roll(quad, 1, axis=0)]
        if height < VERY_TALL * width:
            turns.append(quad)  # perhaps a single narrow character
        return max((self._decode(_crop(image, turn)) for turn in turns), key=lambda reading: reading[1])

    def _decode(self, crop: Pixels) -> tuple[str, float]:
        tensor = crop.transpose(2, 0, 1)[None].astype(np.float32)
        tensor *= 1 / 127.5
        tensor -= 1.0
        (output,) = self._session.run(None, {self._input: tensor})
        scores: NDArray[np.float32] = np.asarray(output)[0]
        best = scores.argmax(axis=1)
        first = np.flatnonzero(
            (best != 0) & (best != np.roll(best, 1)) | (best != 0) & (np.arange(len(best)) == 0)
        )
        if not len(first):
            return "", 0.0
        text = "".join(self._characters[i] for i in best[first])
        return text.strip(), float(scores[first, best[first]].mean())


def _size(quad: Quad) -> tuple[float, float]:
    """Width and height of a segment along its own edges."""
    return math.dist(quad[0], quad[1]), math.dist(quad[0], quad[3])


def _crop(image: Pixels, quad: Quad) -> Pixels:
    """The segment set upright, HEIGHT pixels high."""
    w, h = _size(quad)
    width = max(1, math.ceil(w * HEIGHT / h))
    target = np.array([[0, 0], [width, 0], [0, HEIGHT]], np.float32)
    matrix = cv2.getAffineTransform(quad[[0, 1, 3]].astype(np.float32), target)
    crop = cv2.warpAffine(
        image, matrix, (width, HEIGHT), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE
    )
    return np.asarray(crop, np.uint8)
