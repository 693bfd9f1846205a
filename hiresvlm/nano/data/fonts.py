"""Font faces, and what each of them can draw.

Training uses faces of Debian packages; nothing else of the project needs an installed font. `HELD_OUT` faces
are kept for evaluation and are never drawn in training.
"""

from __future__ import annotations

import io
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

from PIL import ImageFont

from hiresvlm.errors import NoInputError
from hiresvlm.nano.data.alphabet import ACCENTED, ASCII, CHINESE, CHINESE_PUNCTUATION, SIGNS
from hiresvlm.nano.data.words import listed

FOLDERS: Final = (
    Path("/usr/share/fonts"),
    Path("/usr/local/share/fonts"),
    Path.home() / ".local/share/fonts",
)

PACKAGES: Final = listed("""fonts-dejavu-core fonts-dejavu-extra fonts-liberation2 fonts-freefont-ttf
fonts-noto-core fonts-noto-cjk fonts-roboto-unhinted fonts-open-sans fonts-lato fonts-urw-base35
fonts-croscore fonts-crosextra-caladea fonts-cantarell fonts-inconsolata fonts-hack fonts-firacode
fonts-wqy-zenhei fonts-wqy-microhei fonts-arphic-uming fonts-arphic-gbsn00lp fonts-cabin
fonts-linuxlibertine fonts-sil-charis fonts-sil-andika fonts-ebgaramond
fonts-jetbrains-mono fonts-inter fonts-courier-prime fonts-anonymous-pro fonts-clear-sans fonts-b612
fonts-ocr-b fonts-arkpandora fonts-play fonts-vollkorn""")
"""Debian packages with the faces below."""

LATIN: Final = [
    name.replace("*", " ")
    for name in listed("""DejaVuSans.ttf DejaVuSans-Bold.ttf DejaVuSansCondensed.ttf DejaVuSansMono.ttf
DejaVuSerif.ttf DejaVuSans-Oblique.ttf LiberationSans-Regular.ttf LiberationSans-Bold.ttf
LiberationSans-Italic.ttf LiberationSerif-Regular.ttf LiberationSerif-Bold.ttf LiberationSerif-Italic.ttf
LiberationMono-Regular.ttf LiberationMono-Bold.ttf FreeSans.ttf FreeSerif.ttf FreeSansBold.ttf
FreeMonoBold.ttf NotoSans-Regular.ttf NotoSans-Bold.ttf NotoSerif-Regular.ttf NotoSerif-Bold.ttf
NotoSansMono-Regular.ttf NotoSans-Italic.ttf Roboto-Regular.ttf Roboto-Medium.ttf Roboto-Bold.ttf
Roboto-Light.ttf RobotoCondensed-Regular.ttf RobotoCondensed-Bold.ttf OpenSans-Regular.ttf
OpenSans-Semibold.ttf OpenSans-Bold.ttf Lato-Regular.ttf Lato-Bold.ttf NimbusSans-Regular.otf
NimbusSans-Bold.otf NimbusSansNarrow-Regular.otf NimbusRoman-Regular.otf NimbusRoman-Italic.otf
NimbusMonoPS-Regular.otf NimbusMonoPS-Bold.otf C059-Roman.otf P052-Roman.otf P052-Bold.otf
URWBookman-Light.otf URWGothic-Book.otf Arimo-Regular.ttf Tinos-Regular.ttf Cousine-Regular.ttf
Caladea-Regular.ttf Caladea-Bold.ttf Cantarell-Regular.otf Inconsolata.otf Hack-Regular.ttf
FiraCode-Regular.ttf LinLibertine_R.otf LinBiolinum_R.otf Andika-Regular.ttf EBGaramond12-Regular.otf
Inter-Regular.otf Inter-SemiBold.otf Aerial.ttf Veranda.ttf Tymes.ttf OCRB.otf Play-Regular.ttf
Courier*Prime.otf Anonymous*Pro.ttf""")
]
"""A star stands for a space."""
HAN: Final = listed(
    """NotoSansCJK-Regular.ttc NotoSansCJK-Bold.ttc wqy-microhei.ttc uming.ttc gbsn00lp.ttf"""
)
HELD_OUT: Final = listed("""ClearSans-Regular.ttf ClearSans-Bold.ttf CharisSIL-Regular.ttf B612-Regular.otf
JetBrainsMono-Regular.ttf Vollkorn-Regular.ttf Cabin-Regular.otf Cabin-SemiBold.otf wqy-zenhei.ttc""")
"""None is drawn after a face that is trained on: Carlito is left out because it is Lato in other widths."""
INDEX: Final = {"NotoSansCJK-Regular.ttc": 2, "NotoSansCJK-Bold.ttc": 2}
"""The face inside a collection where it is not the first: Simplified Chinese."""

FEWEST_LATIN, FEWEST_HAN = 40, 3
REPLACEMENTS: Final = str.maketrans(
    {"–": "-", "—": "-", "‘": "'", "’": "'", "“": '"', "”": '"', "…": "...", "×": "x"}
)
MOST_WIDTHS: Final = 4000
_UNDEFINED: Final = "\U0010fffe"


class FontsMissing(NoInputError):
    """Too few of the faces that training needs are installed."""


class _Widths(dict[str, float]):
    """Advance widths at one size: of characters, or of a pair's first one, kerning included."""

    def __init__(self, font: ImageFont.FreeTypeFont) -> None:
        super().__init__()
        self.font = font

    def __missing__(self, key: str) -> float:
        if len(self) >= MOST_WIDTHS:
            self.clear()
        width = self.font.getlength(key)
        self[key] = width = width - self.font.getlength(key[1]) if len(key) == 2 else width
        return width


@lru_cache(maxsize=256)
def _sized(source: str | bytes, index: int, size: int) -> tuple[ImageFont.FreeTypeFont, _Widths]:
    """A face at one size; to load one again costs less than a millisecond, to keep all costs gigabytes."""
    data: str | io.BytesIO = io.BytesIO(source) if isinstance(source, bytes) else source
    font = ImageFont.truetype(data, size, index, layout_engine=ImageFont.Layout.BASIC)
    return font, _Widths(font)


@dataclass(eq=False)
class Face:
    """One face at all sizes, with its advance widths and the characters of the alphabet that it has."""

    name: str
    source: str | bytes
    index: int = 0

    @cached_property
    def kerned(self) -> bool:
        """Whether the basic layout moves some pairs of letters together."""
        length = self.at(40).getlength
        return any(
            length(pair) != length(pair[0]) + length(pair[1]) for pair in ("AV", "To", "LT", "P.", "Yo")
        )

    def at(self, size: int) -> ImageFont.FreeTypeFont:
        """The face at a size in pixels per em."""
        return _sized(self.source, self.index, size)[0]

    def advances(self, text: str, size: int) -> list[float]:
        """The distance from each character's origin to the next one's, kerning included, in pixels."""
        widths = _sized(self.source, self.index, size)[1]
        if not self.kerned or len(text) < 2:
            return [widths[char] for char in text]
        return [
            *(widths[first + second] for first, second in zip(text, text[1:], strict=False)),
            widths[text[-1]],
        ]

    @cached_property
    def coverage(self) -> frozenset[str]:
        """The characters of the alphabet with a glyph: one that differs from the glyph for undefined ones."""
        font = self.at(20)
        missing = self._picture(font, _UNDEFINED)
        drawn = (ASCII + SIGNS + ACCENTED + CHINESE_PUNCTUATION + CHINESE).replace(" ", "")
        has = {char for char in drawn if (picture := self._picture(font, char))[1] and picture != missing}
        return frozenset(has | {" "})

    @staticmethod
    def _picture(font: ImageFont.FreeTypeFont, char: str) -> tuple[tuple[int, int], bytes]:
        mask = font.getmask(char)
        data = bytes(mask)
        return mask.size, data if any(data) else b""

    @cached_property
    def han(self) -> bool:
        """Whether all Chinese characters of the alphabet can be drawn."""
        return self.coverage.issuperset(CHINESE)

    def clean(self, text: str) -> str:
        """`text` with what the face cannot draw replaced by its nearest ASCII form, or left out."""
        if self.coverage.issuperset(text):
            return text
        kept = (char if char in self.coverage else char.translate(REPLACEMENTS) for char in text)
        return "".join(char for char in "".join(kept) if char in self.coverage).strip()


class Fonts:
    """The faces to draw with: Latin ones, and those that have the Chinese characters too."""

    def __init__(self, faces: Iterable[Face]) -> None:
        """Take the faces that have all of printable ASCII; refuse with `FontsMissing` when none has."""
        usable = [face for face in faces if face.coverage.issuperset(ASCII)]
        self.han: Sequence[Face] = [face for face in usable if face.han]
        self.latin: Sequence[Face] = [face for face in usable if not face.han] or self.han
        even = [face for face in self.latin if face.advances("i", 30) == face.advances("W", 30)]
        self.typewriter: Sequence[Face] = even or self.latin
        self._named = {face.name: face for face in usable}
        if not self.latin:
            raise FontsMissing("no face with all of printable ASCII")

    @classmethod
    def from_files(cls, files: Iterable[Path | str | bytes]) -> Fonts:
        """Faces from font files or their contents."""
        sources = [item if isinstance(item, bytes) else str(item) for item in files]
        return cls(
            Face(
                f"bytes{number}" if isinstance(source, bytes) else Path(source).name,
                source,
                0 if isinstance(source, bytes) else INDEX.get(Path(source).name, 0),
            )
            for number, source in enumerate(sources)
        )

    @classmethod
    def installed(cls, held_out: bool = False) -> Fonts:
        """The installed faces for training, or those for evaluation; `FontsMissing` names the packages."""
        found = {path.name: path for folder in FOLDERS if folder.is_dir() for path in folder.rglob("*.*")}
        wanted = HELD_OUT if held_out else LATIN + HAN
        present = [found[name] for name in wanted if name in found]
        fonts = cls.from_files(present) if present else None
        fewest = (1, 1) if held_out else (FEWEST_LATIN, FEWEST_HAN)
        if fonts is None or len(fonts.latin) < fewest[0] or len(fonts.han) < fewest[1]:
            raise FontsMissing(
                f"only {len(present)} of the {len(wanted)} font faces to draw with are installed",
                hint="on Debian: apt-get install --no-install-recommends " + " ".join(PACKAGES),
            )
        return fonts

    def bold(self, face: Face) -> Face:
        """The bold face of the same family; the face itself where there is none."""
        name = (
            face.name.replace("-Regular", "-Bold")
            if "-Regular" in face.name
            else face.name.replace(".", "-Bold.")
        )
        return self._named.get(name, face)

    def choose(self, rng: random.Random, chinese: bool = False, typewriter: bool = False) -> Face:
        """A face at random: a Chinese one, or a Latin one with letters of one width if `typewriter`."""
        latin = self.typewriter if typewriter else self.latin
        return rng.choice(self.han if chinese and self.han else latin)
