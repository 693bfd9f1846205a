"""The shape of the package: imports point down, steps are strangers, heavy libraries have rooms."""

from __future__ import annotations

import ast
from pathlib import Path

import hiresvlm

ROOT = Path(hiresvlm.__file__).parent

LAYERS = [
    {"errors", "__init__"},
    {"datatypes", "settings"},
    {"layout", "metrics", "workers", "console_text"},
    {"engines", "documents", "report"},
    {"pages", "chunking", "tasks", "batching", "answers", "ask", "writers", "console"},
    {"run", "doctor", "nano"},
    {"planning", "bench"},
    {"cli"},
    {"__main__"},
]
"""Lowest first. A module imports from its own room or from lower layers only."""

ROOMS = {
    "pymupdf": {"pages"},
    "PIL": {"pages", "nano"},
    "rapidocr": {"engines"},
    "onnxruntime": {"engines"},
    "torch": {"engines", "doctor", "nano"},
    "transformers": {"engines", "nano"},
    "bitsandbytes": {"engines"},
    "typer": {"cli", "nano"},
    "rich": {"cli", "console"},
    "jsonschema": {"ask"},
}
"""Heavy library -> the rooms that may import it. `bench` measures other systems and is free."""

LONGEST = 400


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    """Dotted names that a module imports at run time (TYPE_CHECKING blocks left out)."""
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def test_imports_point_down() -> None:
    level = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    wrong = []
    for path in modules():
        here = room(path)
        for name in imports(path):
            parts = name.split(".")
            if parts[0] != "hiresvlm":
                continue
            there = parts[1] if len(parts) > 1 and parts[1] in level else "__init__"
            if there != here and level[there] >= level[here]:
                wrong.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not wrong


def test_heavy_libraries_stay_in_their_rooms() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in modules()
        for name in imports(path)
        if name.split(".")[0] in ROOMS and room(path) not in ROOMS[name.split(".")[0]] | {"bench"}
    ]
    assert not wrong


def test_every_module_is_short_enough_to_read() -> None:
    lengths = {str(p.relative_to(ROOT)): len(p.read_text(encoding="utf-8").splitlines()) for p in modules()}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}
