"""Where the text is: the detection model and its probability map (differentiable binarisation)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cv2
import numpy as np

if TYPE_CHECKING:
    import onnxruntime
    from numpy.typing import NDArray

    from hiresvlm.datatypes import Pixels

    Quad = NDArray[np.float32]
    """Corners (4, 2) in pixels: top left, top right, bottom right, bottom left as the text is read."""

STRIDE = 32
"""The network halves its input five times."""
MARGIN = 8
"""Pixels added on every side, so that text at the edge of an image is found."""
MAX_PIXELS = 4_000_000
"""A larger image is searched at a smaller scale: the network needs about 300 bytes a pixel."""
THRESHOLD = 0.3
"""Probability from which a pixel belongs to a text area..."""
BOX_THRESHOLD = 0.5
"""...and mean probability from which an area is text."""
UNCLIP = 1.6
"""Growth of an area in units of area / perimeter. The model is trained on shrunken areas."""
MIN_SIDE = 3.0
"""Pixels; lower areas are specks."""


class Detector:
    """Finds segments of text."""

    def __init__(self, session: onnxruntime.InferenceSession) -> None:
        self._session = session
        self._input = session.get_inputs()[0].name

    def find(self, image: Pixels) -> list[Quad]:
        """Segments of a BGR image (h, w, 3), in no order, in its pixels; they may reach beyond its edge."""
        height, width = image.shape[:2]
        scale = min(1.0, (MAX_PIXELS / (height * width)) ** 0.5)
        if scale < 1.0:
            size = (max(1, round(width * scale)), max(1, round(height * scale)))
            image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
        quads = _quads(self._map(image))
        stretch = np.array([width / image.shape[1], height / image.shape[0]], np.float32)
        return [quad * stretch for quad in quads]

    def _map(self, image: Pixels) -> NDArray[np.float32]:
        """Probability of text for each pixel."""
        height, width = image.shape[:2]
        bottom = -(height + 2 * MARGIN) % STRIDE + MARGIN
        right = -(width + 2 * MARGIN) % STRIDE + MARGIN
        padded = cv2.copyMakeBorder(image, MARGIN, bottom, MARGIN, right, cv2.BORDER_REPLICATE)
        tensor = padded.transpose(2, 0, 1)[None].astype(np.float32)
        tensor *= 1 / 127.5
        tensor -= 1.0
        (output,) = self._session.run(None, {self._input: tensor})
        inner = np.asarray(output)[0, 0, MARGIN : MARGIN + height, MARGIN : MARGIN + width]
        return np.ascontiguousarray(inner, np.float32)


def _quads(heat: NDArray[np.float32]) -> list[Quad]:
    """Rectangles around the text areas of a probability map (h, w), grown to the size of the text."""
    mask = cv2.dilate((heat > THRESHOLD).astype(np.uint8), np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    quads = []
    for contour in contours:
        (x, y), (w, h), angle = cv2.minAreaRect(contour)
        if min(w, h) < MIN_SIDE or _mean(heat, contour) < BOX_THRESHOLD:
            continue
        growth = 2 * UNCLIP * w * h / (2 * (w + h))  # on both sides together
        quads.append(_ordered(cv2.boxPoints(((x, y), (w + growth, h + growth), angle))))
    return quads


def _mean(heat: NDArray[np.float32], contour: NDArray[np.int32]) -> float:
    """Mean probability within a contour."""
    x, y, w, h = cv2.boundingRect(contour)
    mask = np.zeros((h, w), np.uint8)
    cv2.fillPoly(mask, [contour - np.array([x, y], np.int32)], 1)
    return float(cv2.mean(heat[y : y + h, x : x + w], mask)[0])


def _ordered(corners: NDArray[np.float32]) -> Quad:
    """Corners clockwise from the top left one, for a rectangle turned by less than 45 degrees."""
    left = corners[np.argsort(corners[:, 0], kind="stable")]
    (top_left, bottom_left) = left[:2][np.argsort(left[:2, 1], kind="stable")]
    (top_right, bottom_right) = left[2:][np.argsort(left[2:, 1], kind="stable")]
    return np.stack([top_left, top_right, bottom_right, bottom_left]).astype(np.float32)
