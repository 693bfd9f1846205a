"""Fixtures: every test has a clean environment, and documents are made by `support`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the developer's own leaks into a test."""
    for name in list(os.environ):
        if name.startswith("HIRESVLM_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders of tiny random models by family; made when first asked for."""
    made: dict[str, Path] = {}

    def folder_of(family: str) -> Path:
        if family not in made:
            from tests.tiny_models import save_tiny

            made[family] = save_tiny(tmp_path_factory.mktemp("tiny") / family, family)
        return made[family]

    return folder_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for input, apart from where output goes."""
    path = tmp_path / "in"
    path.mkdir()
    return path
