"""Fixtures: every test has a clean environment, and documents are made by `support`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the developer's own leaks into a test."""
    for name in list(os.environ):
        if name.startswith("HIRESVLM_"):
            monkeypatch.delenv(name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for input, apart from where output goes."""
    path = tmp_path / "in"
    path.mkdir()
    return path
