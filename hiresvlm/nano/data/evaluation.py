"""The evaluation tiles: rendered in faces and with text that training never sees, committed as files.

`python -m hiresvlm.nano.data.evaluation FOLDER --seed N` draws another set; it needs the fonts of `HELD_OUT`.
To read the committed set takes no font. It was drawn once and stays, so that trainings can be compared: the
generator has changed since, and no seed draws the same tiles again. Tiles are stored with 16 colours, and one
whose file would be larger than `MOST_BYTES` is drawn anew: so large tiles are rarely noisy here, small ones
are as often as in training.
"""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from hiresvlm.errors import HiresvlmError, OutputError
from hiresvlm.nano.data.fonts import Fonts
from hiresvlm.nano.data.forms import interview
from hiresvlm.nano.data.generator import Generator
from hiresvlm.nano.data.tile import Sample

FOLDER: Final = Path(__file__).resolve().parents[1] / "evaluation"
"""The committed set."""
GOLD: Final = "gold.jsonl"
SEED: Final = 1 << 40
"""Far from the small seeds that training counts up from."""

COUNTS: Final = {"line": 60, "few": 30, "paragraph": 24, "table": 16, "receipt": 16, "ui": 16}
"""Tiles to be transcribed, of each kind."""
FORMS: Final = (("form-en", False, 60), ("form-zh", True, 40))
"""Questions about forms, in English and in Chinese, four to a tile."""
ABSENT: Final = (("en", False, 10), ("zh", True, 10))
"""Questions of the kind `none`: about something that is not there, two to a tile."""

CHINESE_SHARE, DIRTY_SHARE = 0.2, 0.5
COLOURS: Final = 16
MOST_BYTES: Final = {"line": 6_000, "few": 12_000}
MOST_BYTES_ELSE: Final = 26_000


class EvaluationError(HiresvlmError):
    """The evaluation set is not there or does not hold together."""


@dataclass(frozen=True, eq=False)
class Item:
    """One question to a model: what it sees, what it is asked, what is right."""

    name: str
    """The file of the tile; several questions can be about one."""
    kind: str
    """line, few, paragraph, table, receipt, ui, form-en, form-zh or none."""
    pixels: NDArray[np.uint8]
    """(height, width, 3) RGB."""
    question: str | None
    """None: to be transcribed."""
    answer: str


def load_evaluation(folder: Path = FOLDER) -> tuple[Item, ...]:
    """Read an evaluation set; `EvaluationError` where it is missing or damaged."""
    path = folder / GOLD
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as problem:
        raise EvaluationError(f"no evaluation set in {folder}: {problem}") from problem
    pictures: dict[str, NDArray[np.uint8]] = {}
    items = []
    for number, row in enumerate(rows, 1):
        try:
            name, kind, question, answer = row["file"], row["kind"], row["question"], row["answer"]
            if name not in pictures:
                with Image.open(folder / name) as image:
                    pictures[name] = np.array(image.convert("RGB"))
        except (KeyError, TypeError, OSError, UnidentifiedImageError) as problem:
            raise EvaluationError(f"{path}, line {number}: {problem!r}") from problem
        items.append(Item(name, kind, pictures[name], question, answer))
    return tuple(items)


def encoded(pixels: NDArray[np.uint8]) -> bytes:
    """PNG with a palette of 16 colours, no dithering."""
    image = Image.fromarray(pixels).convert("RGB")
    buffer = io.BytesIO()
    small = image.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    small.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


Draw = Callable[[], Sequence[Sample]]


def _plan(generator: Generator) -> Iterator[tuple[str, str, Draw]]:
    """Name and kind of each tile, and what draws it with the questions about it."""

    def transcription(kind: str) -> list[Sample]:
        return [generator.sample(kind)]

    for kind, count in COUNTS.items():
        for number in range(count):
            yield f"{kind}-{number:02}", kind, partial(transcription, kind)
    for kind, chinese, count in FORMS:
        for number in range(count // 4):
            yield f"{kind}-{number:02}", kind, partial(interview, generator.studio, chinese, [False] * 4, 0.0)
    for language, chinese, count in ABSENT:
        for number in range(count // 2):
            yield (
                f"none-{language}-{number:02}",
                "none",
                partial(interview, generator.studio, chinese, [True] * 2, 0.0),
            )


def make(fonts: Fonts, seed: int = SEED) -> Iterator[tuple[str, str, bytes, Sequence[Sample]]]:
    """File name, kind, file and questions of each tile of a set. Only made-up words stand for rare ones."""
    generator = Generator(seed, fonts, chinese=CHINESE_SHARE, dirty=DIRTY_SHARE, words=())
    for name, kind, draw in _plan(generator):
        data = b""
        while not data or len(data) > MOST_BYTES.get(kind, MOST_BYTES_ELSE):
            samples = draw()
            data = encoded(samples[0].tiles[0].pixels)
        yield f"{name}.png", kind, data, samples


def write(folder: Path, fonts: Fonts, seed: int = SEED) -> int:
    """Draw a set into an empty or new folder; the number of questions. `OutputError` where it cannot."""
    rows = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise OutputError(f"{folder} is not empty")
        for name, kind, data, samples in make(fonts, seed):
            (folder / name).write_bytes(data)
            for sample in samples:
                row = {"file": name, "kind": kind, "question": sample.question, "answer": sample.target}
                rows.append(json.dumps(row, ensure_ascii=False))
        (folder / GOLD).write_text("\n".join(rows) + "\n", encoding="utf-8")
    except OSError as problem:
        raise OutputError(f"cannot write an evaluation set to {folder}: {problem}") from problem
    return len(rows)


def main() -> None:
    """Draw a set from the command line."""
    parser = argparse.ArgumentParser(description="Draw an evaluation set for nano from the held-out fonts.")
    parser.add_argument("folder", type=Path, help="where to write the tiles and gold.jsonl; new or empty")
    parser.add_argument("--seed", type=int, default=SEED, help="of the tiles; another one draws other tiles")
    arguments = parser.parse_args()
    try:
        count = write(arguments.folder, Fonts.installed(held_out=True), arguments.seed)
    except HiresvlmError as error:
        parser.exit(error.exit_code, f"{error.message}\n{error.hint or ''}\n")
    size = sum(path.stat().st_size for path in arguments.folder.iterdir())
    print(f"{count} questions, {size / 1e6:.2f} MB in {arguments.folder}")


if __name__ == "__main__":
    main()
