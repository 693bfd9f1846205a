"""Memory of the whole process tree over a long document: it must not grow with the pages."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from hiresvlm.bench.harness import json_line, table

SAMPLE_S = 0.25


def memory(engine: str, pages: int) -> None:
    """Read a generated PDF of `pages` pages and print memory (PSS) at tenths of the run."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = os.path.join(folder, "long.pdf"), os.path.join(folder, "out.jsonl")
        _make_pdf(source, pages)
        command = [sys.executable, "-m", "hiresvlm", "ocr", source, "--engine", engine, "-q", "-o", output]
        process = subprocess.Popen(command)
        samples: list[tuple[int, float]] = []
        while process.poll() is None:
            samples.append((_lines(output), _tree_mib(process.pid)))
            time.sleep(SAMPLE_S)
        if process.returncode != 0:
            raise RuntimeError(f"the run ended with {process.returncode}")
    tenths = [
        [mib for done, mib in samples if t * pages // 10 <= done < (t + 1) * pages // 10] for t in range(10)
    ]
    peaks = [max(values, default=0.0) for values in tenths]
    table(
        ("pages", "peak MiB"), [(f"{t * 10}-{(t + 1) * 10} %", f"{peak:.0f}") for t, peak in enumerate(peaks)]
    )
    later = max(peaks[1:])
    growth = later / peaks[0] if peaks[0] else None
    json_line(
        "memory", {"engine": engine, "pages": pages, "peak_mib": [round(p) for p in peaks], "growth": growth}
    )


def _make_pdf(path: str, pages: int) -> None:
    """Pages of text and of noise pictures in several sizes, so that buffers of all sizes come and go."""
    import numpy as np
    import pymupdf

    random = np.random.default_rng(1)
    document = pymupdf.open()
    pictures = [random.integers(0, 256, (900 + 200 * k, 700 + 150 * k, 3), dtype=np.uint8) for k in range(4)]
    streams = [_png(picture) for picture in pictures]
    for number in range(pages):
        page = document.new_page(width=500 + 40 * (number % 5), height=700 + 50 * (number % 4))
        page.insert_text((50, 60), f"Page {number + 1}: order {number * 7919 % 100000}", fontsize=12)
        for line in range(12):
            page.insert_text((50, 90 + 16 * line), f"line {line} amount {number * 31 % 997}.{line:02d}")
        page.insert_image(pymupdf.Rect(50, 320, 350, 600), stream=streams[number % 4])
    document.save(path, deflate=True)


def _png(pixels: object) -> bytes:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", compress_level=1)  # type: ignore[arg-type]
    return buffer.getvalue()


def _lines(path: str) -> int:
    try:
        with open(path, "rb") as file:
            return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
    except FileNotFoundError:
        return 0


def _tree_mib(pid: int) -> float:
    """Proportional set size of a process and all below it: shared pages are counted once."""
    import psutil

    total = 0
    try:
        root = psutil.Process(pid)
        for process in (root, *root.children(recursive=True)):
            total += process.memory_full_info().pss
    except psutil.NoSuchProcess:
        pass
    return total / 2**20
