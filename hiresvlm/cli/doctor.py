"""`hiresvlm doctor`: what this machine has, and what `auto` would pick."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from hiresvlm.cli import options


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    verbose: options.Verbose = False,
) -> None:
    """Show GPU, memory, versions, engines and models at hand, and what --engine auto picks."""
    from hiresvlm.doctor import examine

    found = examine()
    if as_json:
        options.say(json.dumps(found, ensure_ascii=False, indent=1))
        return
    for title, items in found.items():
        options.say(f"{title}:")
        for line in _lines(items):
            options.say(f"  {line}")


def _lines(items: Any) -> list[str]:
    if isinstance(items, dict):
        width = max((len(name) for name in items), default=0)
        return [f"{name:<{width}}  {_value(value)}" for name, value in items.items()]
    return [_value(item) for item in items]


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(item)}" for name, item in value.items() if item is not None)
    return "not installed" if value is None else str(value)
