"""`hiresvlm quantize`: a model folder with 4-bit weights, so that loading does not quantize each time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hiresvlm.cli import options


def quantize(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Preset, hub id or folder.")],
    out: Annotated[
        str | None,
        typer.Argument(metavar="[OUT]", help="New folder; left out: our cache, where it is used by itself."),
    ] = None,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Write MODEL with NF4 weights: the same bits that loading it with --quant int4 would make."""
    from hiresvlm.console import Reporter, guard_stdout
    from hiresvlm.engines.vlm.quantization import quantize

    options.no_empty({"MODEL": model, "OUT": out})
    guard_stdout()  # libraries print what they like
    folder = quantize(model, None if out is None else Path(out), device)
    size = sum(path.stat().st_size for path in folder.iterdir())
    Reporter(quiet=quiet, verbose=verbose).note(f"{folder}: {size / 2**20:,.1f} MiB")
