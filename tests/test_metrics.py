"""Scores, on cases that can be counted by hand."""

from __future__ import annotations

import pytest

from hiresvlm.metrics import score


@pytest.mark.parametrize(
    ("gold", "read", "cer", "kept", "f1"),
    [
        ("abc", "abc", 0, 1, 1),
        ("abcd", "abxd", 0.25, 0.75, 0),
        ("total 9.00", "TOTAL\n9.00", 0.5, 0.4, 1),
        ("a  b\nc", "a b c", 0, 1, 1),
        ("abc", "", 1, 0, 0),
        ("合计 12", "合计 12 invented", 9 / 5, 1, 0.8),
        ("e\u0301", "\u00e9", 0, 1, 1),
    ],
)
def test_scores(gold: str, read: str, cer: float, kept: float, f1: float) -> None:
    result = score([(gold, read)])
    assert (result.cer, result.kept_share, result.word_f1) == pytest.approx((cer, kept, f1), abs=0.12)


def test_scores_are_sums_over_texts() -> None:
    result = score([("aaaaaaaaaa", "aaaaaaaaaa"), ("bb", "")])
    assert result.cer == pytest.approx(2 / 12)
    assert result.texts == 2
