"""Image in, lines out: the two models and what lies between them. Imports the heavy libraries."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
import onnxruntime

from hiresvlm.datatypes import Box, Line
from hiresvlm.engines.light.detect import Detector
from hiresvlm.engines.light.recognise import Recogniser
from hiresvlm.errors import EngineLoadError

if TYPE_CHECKING:
    from hiresvlm.datatypes import Pixels

DETECTION = "PP-OCRv6_det_small.onnx"
RECOGNITION = "PP-OCRv6_rec_small.onnx"
HINT = "install it again: pip install --force-reinstall --no-deps rapidocr"
MIN_CONFIDENCE = 0.5
"""Lines below are mostly pictures taken for text."""


class Reader:
    """Both models. `read` may run in many threads at once. Raises `EngineLoadError`."""

    def __init__(self) -> None:
        # The pool of threads keeps the cores busy; more threads below it would only fight.
        cv2.setNumThreads(1)
        self._detector = Detector(_session(DETECTION))
        self._recogniser = Recogniser(_session(RECOGNITION))

    def read(self, pixels: Pixels, number: int) -> list[Line]:
        """Lines of an RGB image (h, w, 3); boxes in its pixels; `number` becomes `Line.chunk`."""
        height, width = pixels.shape[:2]
        image = np.ascontiguousarray(pixels[:, :, ::-1])  # the models were trained on BGR
        lines = []
        for quad in self._detector.find(image):
            text, confidence = self._recogniser.read(image, quad)
            if not text or confidence < MIN_CONFIDENCE:
                continue
            box = Box(*quad.min(axis=0).tolist(), *quad.max(axis=0).tolist())
            lines.append(Line(text, box.intersection(Box(0, 0, width, height)), confidence, number))
        return lines


def _session(name: str) -> onnxruntime.InferenceSession:
    """A session of one thread. `rapidocr` itself is not imported, only found: it might download."""
    spec = importlib.util.find_spec("rapidocr")
    if spec is None or spec.origin is None:
        raise EngineLoadError("engine light needs the package rapidocr", HINT)
    path = Path(spec.origin).parent / "models" / name
    if not path.is_file():
        raise EngineLoadError(f"the installed rapidocr has no model {name}", HINT)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Every page has its own shapes: patterns and arenas kept for each of them would pile up.
    options.enable_mem_pattern = False
    options.enable_cpu_mem_arena = False
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime has no common base class for its errors
        raise EngineLoadError(f"the model {name} cannot be loaded", HINT) from error
