"""From what speaks for an answer to the chance that it is right: a logistic model with few features.

The weights below are printed by `hiresvlm bench ask FOLDER --fit`; `hiresvlm bench ask` fits others for each
fold, so what it prints was never fitted on what it is printed for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEATURES = (
    "likeness", "layout", "fit", "reading", "margin", "paid_less_change", "adds_up", "repeated",
    "wrong_label", "tax_table", "no_label", "context", "table", "misread",
)  # fmt: skip
START: tuple[float, ...] = (-13.0, 8.0, 4.0, 2.0, 2.0, 2.0, 1.5, 0.8, 0.3, -3.0, -3.0, -0.3, 0.0, 0.5, -3.0)
"""Set by hand: bias first, then one for each feature. Where every fit begins."""
WEIGHTS = (-13.53, 9.1, 4.62, 1.55, 1.17, 2.11, 1.5, 0.8, 0.31, -3.0, -5.1, 0.0, -0.44, 1.74, -2.94)
"""What `ask` uses: fitted on the receipts and seeds that the rules were written on, and on the same pages
with the lines of the answer taken out (`bench/ask_fit.py`). The weights of the two sums are left as they
were set: too few receipts have them."""
LONGEST_STEP = 1.0
RIDGE = 0.3
"""Pull of the fit towards the weights it starts from: a few dozen answers decide little by themselves."""


def confidence(features: Mapping[str, float], weights: Sequence[float] = WEIGHTS) -> float:
    """Chance that an answer with these features is right, 0 to 1."""
    z = weights[0] + sum(w * features.get(name, 0.0) for name, w in zip(FEATURES, weights[1:], strict=True))
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))


def fit(
    answers: Sequence[tuple[Mapping[str, float], bool]], start: Sequence[float] = START
) -> tuple[float, ...]:
    """Weights that make the outcomes of `answers` (features, was it right) likely: Newton's method, with a
    quadratic penalty on the distance from `start` (maximum a posteriori)."""
    if not answers:
        return tuple(start)
    x = np.array([[1.0, *(features.get(name, 0.0) for name in FEATURES)] for features, _ in answers])
    y = np.array([float(right) for _, right in answers])
    prior: NDArray[np.float64] = np.array(start, float)
    w = prior.copy()
    for _ in range(200):
        p = 1 / (1 + np.exp(-np.clip(x @ w, -30, 30)))
        gradient = x.T @ (p - y) + RIDGE * (w - prior)
        hessian = (x.T * (p * (1 - p))) @ x + RIDGE * np.eye(len(w))
        step = np.linalg.solve(hessian, gradient)
        step *= min(1.0, LONGEST_STEP / max(1e-12, float(np.abs(step).max())))  # Newton overshoots
        w -= step
        if float(np.abs(step).max()) < 1e-8:
            break
    return tuple(float(value) for value in w)
