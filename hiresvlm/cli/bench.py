"""`hiresvlm bench`: figures that anyone can print again."""

from __future__ import annotations

from typing import Annotated

import typer

from hiresvlm.cli import options

KINDS = ("receipts", "samples", "memory")


def bench(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="receipts, samples or memory.")],
    folder: Annotated[
        str | None, typer.Argument(metavar="[FOLDER]", help="Documents with gold text.")
    ] = None,
    engine: Annotated[str, typer.Option(help="Engine of `memory`.")] = "echo",
    pages: Annotated[int, typer.Option(min=20, help="Pages of `memory`.")] = 500,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N documents.")] = None,
    verbose: options.Verbose = False,
) -> None:
    """Measure accuracy, speed or memory: a table for people, one JSON line last."""
    from hiresvlm import bench as benches
    from hiresvlm.errors import UsageError

    options.choice(what, KINDS, "WHAT")
    if what == "memory":
        benches.memory(engine, pages)
        return
    if folder is None:
        raise UsageError(f"bench {what} needs a FOLDER", f"hiresvlm bench {what} samples/")
    if what == "receipts":
        benches.receipts(folder, limit)
    else:
        benches.samples(folder)
