"""Pages as a person would see them: images and PDFs of every kind, damaged and hostile ones too."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pymupdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, TiffImagePlugin

from hiresvlm.datatypes import Box, CautionKind, Chunk, Failure, FailureKind, Place, PreparedPage
from hiresvlm.documents import expand
from hiresvlm.pages import OpenPage, PageError, open_document, pdf, sniff
from hiresvlm.pages.overlay import draw_overlay
from hiresvlm.pages.raster import on_canvas, shrunk
from hiresvlm.run import prepare as preparation
from hiresvlm.settings import ChunkSettings, PageSettings
from tests.support import make_pdf, make_png, pixels, text_image

SETTINGS = PageSettings()


_open_readers = ExitStack()


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    """Documents stay open during a test, as they do in a worker."""
    yield
    _open_readers.close()
    while preparation._open:
        preparation._open.popitem()[1][0].close()


def open_page(path: Path, number: int = 1, settings: PageSettings = SETTINGS) -> OpenPage:
    return _open_readers.enter_context(open_document(str(path), settings)).page(number)


def failure(path: Path, number: int = 1, settings: PageSettings = SETTINGS) -> Failure:
    with pytest.raises(PageError) as caught:
        open_page(path, number, settings)
    return caught.value.failure


def cautions(path: Path) -> list[CautionKind]:
    with open_document(str(path), SETTINGS) as reader:
        return [caution.kind for caution in reader.cautions]


def whole(page: OpenPage) -> np.ndarray:
    """The whole page at page pixels."""
    return page.render(Chunk(Box(0, 0, *page.size), page.size, page.size))


def prepare(path: Path, number: int = 1, **settings: Any) -> PreparedPage:
    """What a worker makes of a page."""
    (document,) = expand([str(path)])
    return preparation.prepare(document, Place(0, number, 1), PageSettings(**settings), ChunkSettings())


# Four quadrants of four colours: every turn and flip of it is another picture.
RED, GREEN, BLUE, BLACK = (255, 0, 0), (0, 255, 0), (0, 0, 255), (0, 0, 0)


def quadrants(width: int = 48, height: int = 32) -> Image.Image:
    image = Image.new("RGB", (width, height), RED)
    image.paste(GREEN, (width // 2, 0, width, height // 2))
    image.paste(BLUE, (0, height // 2, width // 2, height))
    image.paste(BLACK, (width // 2, height // 2, width, height))
    return image


def near(a: np.ndarray, b: np.ndarray, tolerance: float = 6.0) -> bool:
    """Same shape, and nearly the same picture."""
    return a.shape == b.shape and float(np.abs(a.astype(int) - b.astype(int)).mean()) <= tolerance


# --------------------------------------------------------------------------------- orientation

# How a file with that orientation is stored: the inverse of what a viewer does.
STORED = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
TURNS = {1: 0, 2: 0, 3: 180, 4: 180, 5: 90, 6: 90, 7: 270, 8: 270}


@pytest.mark.parametrize("suffix", ["jpg", "png", "tif", "webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photo_is_upright_exactly_once(folder: Path, suffix: str, orientation: int) -> None:
    upright = quadrants()
    turn = STORED[orientation]
    stored = upright if turn is None else upright.transpose(turn)
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = folder / f"x.{suffix}"
    options = {"lossless": True} if suffix == "webp" else {"quality": 95} if suffix == "jpg" else {}
    stored.save(path, exif=exif, dpi=(300, 72), **options)
    with open_document(str(path), SETTINGS) as reader:
        for _ in range(2):  # a page that is asked for again is not turned again
            page = reader.page(1)
            assert page.size == upright.size
            assert page.rotation == TURNS[orientation]
            assert near(whole(page), np.asarray(upright))


def test_orientation_of_the_frames_of_a_tiff(folder: Path) -> None:
    path = folder / "x.tif"
    stored = quadrants().transpose(STORED[6])  # type: ignore[arg-type]
    stored.save(path, save_all=True, append_images=[stored, stored], tiffinfo={0x0112: 6})
    with open_document(str(path), SETTINGS) as reader:
        for number in (1, 2, 3, 2, 2, 1):
            page = reader.page(number)
            assert (page.size, page.rotation) == ((48, 32), 90)
            assert near(whole(page), np.asarray(quadrants()))


@pytest.mark.parametrize("exif", [b"Exif\0\0garbage", b"Exif\0\0II*\0\xff\xff\xff\xff", b"\xff" * 40])
def test_damaged_metadata_costs_nobody_the_picture(folder: Path, exif: bytes) -> None:
    quadrants().save(folder / "x.jpg", exif=exif, quality=95)
    page = open_page(folder / "x.jpg")
    assert page.rotation == 0
    assert near(whole(page), np.asarray(quadrants()))


# --------------------------------------------------------------------------------- modes of images


def seen(folder: Path, image: Image.Image, suffix: str = "png", **options: Any) -> np.ndarray:
    path = folder / f"x.{suffix}"
    image.save(path, **options)
    return whole(open_page(path))


@pytest.mark.parametrize(
    ("mode", "suffix"),
    [("1", "png"), ("1", "tif"), ("L", "png"), ("L", "bmp"), ("P", "png"), ("P", "gif"), ("RGB", "bmp"),
     ("CMYK", "jpg"), ("CMYK", "tif"), ("YCbCr", "jpg"), ("LAB", "tif"), ("RGBX", "tif"), ("I;16", "tif"),
     ("I;16", "png"), ("I", "tif"), ("F", "tif")],
)  # fmt: skip
def test_black_text_on_white_in_every_mode(folder: Path, mode: str, suffix: str) -> None:
    wanted = text_image(["Every mode"], width=200)
    gray = wanted.convert("L")
    if mode == "LAB":
        image = Image.merge("LAB", (gray, Image.new("L", gray.size, 128), Image.new("L", gray.size, 128)))
    elif mode == "I;16":
        image = Image.fromarray(np.asarray(gray).astype(np.uint16) * 257)
    elif mode == "I":
        image = Image.fromarray(np.asarray(gray).astype(np.int32) * 257)
    elif mode == "F":
        image = Image.fromarray(np.asarray(gray).astype(np.float32) / 255)
    elif mode == "RGBX":
        image = Image.merge("RGBX", (*wanted.split(), Image.new("L", gray.size)))
    else:
        image = wanted.convert(mode)
    assert near(seen(folder, image, suffix), np.asarray(wanted), tolerance=12)


@pytest.mark.parametrize("bits", [8, 10, 12, 14, 16])
def test_deep_gray_uses_its_full_range(folder: Path, bits: int) -> None:
    """A 12-bit scan in a 16-bit file is no dark page, a 16-bit scan is no blank one."""
    ramp = np.linspace(0, 2**bits - 1, 256).astype(np.uint16)
    shown = seen(folder, Image.fromarray(np.tile(ramp, (8, 1))))
    assert np.abs(shown[0, :, 0].astype(int) - np.arange(256)).max() <= 1


def test_deep_gray_with_odd_values(folder: Path) -> None:
    signed = np.tile(np.array([-1000, 0, 1000], np.int32), (4, 1))
    assert seen(folder, Image.fromarray(signed), "tif")[0, :, 0].tolist() == [0, 128, 255]
    odd = np.tile(np.array([np.nan, -3e38, 3e38, np.inf, -np.inf, 0], np.float32), (4, 1))
    assert seen(folder, Image.fromarray(odd), "tif")[0, :, 0].tolist() == [0, 0, 255, 255, 0, 128]
    nothing = np.full((4, 3), np.nan, np.float32)
    assert seen(folder, Image.fromarray(nothing), "tif").shape == (4, 3, 3)
    assert seen(folder, Image.new("I;16", (3, 3), 0)).max() == 0


def test_deep_gray_where_zero_is_white(folder: Path) -> None:
    values = np.tile(np.array([0, 65535], np.uint16), (4, 1))
    shown = seen(folder, Image.fromarray(values), "tif", tiffinfo={262: 0})
    assert shown[0, :, 0].tolist() == [255, 0]


def on_nothing(ink: tuple[int, int, int]) -> Image.Image:
    """Text of one colour on a transparent ground, whose hidden colour is the same."""
    mask = text_image(["Transparent ground"], dark=True, width=260).convert("L")
    image = Image.new("RGBA", mask.size, (*ink, 0))
    image.putalpha(mask)
    return image


def test_transparent_ground_is_white_paper(folder: Path) -> None:
    shown = seen(folder, on_nothing(BLACK))
    assert near(shown, np.asarray(text_image(["Transparent ground"], width=260)))


def test_white_text_on_a_transparent_ground_is_seen(folder: Path) -> None:
    white = on_nothing((255, 255, 255))
    wanted = np.asarray(text_image(["Transparent ground"], dark=True, width=260))
    assert near(seen(folder, white), wanted)
    white.putpixel((0, 0), (0, 0, 0, 255))  # one dark speck does not make it a page for white paper
    assert near(seen(folder, white), wanted)


def test_black_and_white_text_on_a_transparent_ground_are_both_seen(folder: Path) -> None:
    black, white = on_nothing(BLACK), on_nothing((255, 255, 255))
    both = Image.new("RGBA", (black.width, 2 * black.height))
    both.paste(black, (0, 0))
    both.paste(white, (0, black.height))
    shown = seen(folder, both)
    assert shown[: black.height].min() == 0
    assert shown[black.height :].max() == 255
    assert shown[0, 0, 0] not in (0, 255)


def test_a_white_card_with_transparent_corners_keeps_its_paper(folder: Path) -> None:
    card = text_image(["A card"] * 4, width=200).convert("RGBA")
    card.paste((0, 0, 0, 0), (0, 0, 8, 8))
    assert seen(folder, card)[0, 0].tolist() == [255, 255, 255]


@pytest.mark.parametrize("mode", ["LA", "P", "L with a colour", "RGB with a colour"])
def test_other_kinds_of_transparency(folder: Path, mode: str) -> None:
    wanted = np.asarray(text_image(["Transparent ground"], width=260))
    image = on_nothing(BLACK)
    options: dict[str, Any] = {}
    if mode == "LA":
        image = image.convert("LA")
    elif mode == "P":
        mask = image.getchannel("A").point(lambda value: 255 if value > 127 else 0)
        image = Image.new("P", image.size, 0)
        image.putpalette([0, 0, 0] * 2)
        image.paste(1, mask=mask)
        options["transparency"] = 0
    else:
        paper = image.getchannel("A").point(lambda value: 0 if value > 127 else 7)
        image = paper if mode.startswith("L ") else Image.merge("RGB", (paper,) * 3)
        options["transparency"] = 7 if mode.startswith("L ") else (7, 7, 7)
    assert near(seen(folder, image, **options), wanted, tolerance=12)


def test_resolution_tags_change_nothing(folder: Path) -> None:
    for dpi in ((1, 1), (72, 600), (20000, 20000)):
        page_size = seen(folder, quadrants(), "tif", dpi=dpi).shape
        assert page_size == (32, 48, 3)
        assert open_page(folder / "x.tif").points is None


# --------------------------------------------------------------------------------------- frames


def test_every_frame_of_a_tiff_is_a_page(folder: Path) -> None:
    path = folder / "fax.tif"
    frames = [Image.new("1", (200, 40), 1), quadrants(48, 32), Image.new("I;16", (30, 60), 65535)]
    frames[0].save(path, save_all=True, append_images=frames[1:])
    with open_document(str(path), SETTINGS) as reader:
        assert reader.pages == 3
        assert [reader.page(n).size for n in (1, 2, 3, 3, 1, 2)] == [
            (200, 40), (48, 32), (30, 60), (30, 60), (200, 40), (48, 32),
        ]  # fmt: skip
        first, second = reader.page(1), reader.page(2)
        assert whole(first).min() == 255  # a frame keeps its pixels when the next one is read
        assert near(whole(second), np.asarray(quadrants()))
        with pytest.raises(PageError):
            reader.page(4)


def test_frames_of_one_size_do_not_share_pixels(folder: Path) -> None:
    path = folder / "x.tif"
    Image.new("RGB", (9, 9), RED).save(path, save_all=True, append_images=[Image.new("RGB", (9, 9), BLUE)])
    with open_document(str(path), SETTINGS) as reader:
        first, second = reader.page(1), reader.page(2)
    assert whole(first)[0, 0].tolist() == list(RED)
    assert whole(second)[0, 0].tolist() == list(BLUE)


def test_a_tiff_whose_frames_go_in_a_circle_ends(folder: Path) -> None:
    path = folder / "x.tif"
    Image.new("L", (8, 8)).save(path)
    data = bytearray(path.read_bytes())
    (first,) = struct.unpack_from("<I", data, 4)
    (entries,) = struct.unpack_from("<H", data, first)
    struct.pack_into("<I", data, first + 2 + 12 * entries, first)
    path.write_bytes(data)
    with open_document(str(path), SETTINGS) as reader:
        assert reader.pages == 1
        assert reader.page(1).size == (8, 8)


def test_too_many_frames_are_refused(folder: Path) -> None:
    frame = Image.new("1", (8, 8))
    frame.save(folder / "x.tif", save_all=True, append_images=[frame] * 4)
    assert failure(folder / "x.tif", settings=PageSettings(max_pages=4)).kind is FailureKind.TOO_LARGE


@pytest.mark.parametrize("suffix", ["gif", "webp", "png"])
def test_the_first_frame_of_a_moving_picture(folder: Path, suffix: str) -> None:
    path = folder / f"x.{suffix}"
    options = {"lossless": True} if suffix == "webp" else {}
    others = [Image.new("RGB", (48, 32), RED), Image.new("RGB", (48, 32), BLUE)]
    quadrants().save(path, save_all=True, append_images=others, **options)
    assert cautions(path) == [CautionKind.FRAMES]
    with open_document(str(path), SETTINGS) as reader:
        assert reader.pages == 1
        for _ in range(2):
            assert near(whole(reader.page(1)), np.asarray(quadrants()))


def test_the_preview_in_a_photo_is_no_frame(folder: Path) -> None:
    quadrants().save(folder / "x.jpg", format="MPO", save_all=True, append_images=[quadrants(12, 8)])
    assert cautions(folder / "x.jpg") == []
    assert open_page(folder / "x.jpg").size == (48, 32)


# ------------------------------------------------------------------------------ size and damage


def png_header(width: int, height: int, colour: int = 2) -> bytes:
    """A PNG that promises a size and holds next to nothing."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


def test_a_decompression_bomb_is_refused_before_memory_is_spent(folder: Path) -> None:
    before = psutil.Process().memory_info().rss
    for width, height in ((60_000, 60_000), (2**31 - 1, 2**31 - 1), (15_812, 15_812)):
        (folder / "x.png").write_bytes(png_header(width, height))
        found = failure(folder / "x.png")
        assert found.kind is FailureKind.TOO_LARGE
        assert f"{width} x {height}" in found.message
    assert psutil.Process().memory_info().rss - before < 50 * 2**20


def test_each_frame_has_the_limit_of_an_image(folder: Path) -> None:
    frames = [Image.new("1", (10, 10)), Image.new("1", (100, 100))]
    frames[0].save(folder / "x.tif", save_all=True, append_images=frames[1:])
    limited = PageSettings(max_image_pixels=5000)
    assert open_page(folder / "x.tif", 1, limited).size == (10, 10)
    assert failure(folder / "x.tif", 2, limited).kind is FailureKind.TOO_LARGE


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif", "webp", "bmp", "gif"])
def test_images_cut_off_are_corrupt(folder: Path, suffix: str) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), np.uint8)
    path = folder / f"x.{suffix}"
    Image.fromarray(noise).save(path)
    data = path.read_bytes()
    for length in (len(data) // 2, 60, 15):
        path.write_bytes(data[:length])
        found = failure(path)
        assert found.kind in (FailureKind.CORRUPT, FailureKind.UNSUPPORTED), length
        assert not found.retryable


@pytest.mark.parametrize("suffix", ["png", "jpg", "tif", "webp", "bmp", "gif", "pdf"])
def test_damaged_bytes_are_a_typed_failure_or_a_page(folder: Path, suffix: str) -> None:
    """Nothing but `PageError` leaves a reader, whatever the bytes."""
    path = folder / f"x.{suffix}"
    if suffix == "pdf":
        make_pdf(path, [["one"], ["two"]])
    else:
        quadrants().save(path)
    good = path.read_bytes()
    random = np.random.default_rng(7)
    for _ in range(60):
        data = bytearray(good)
        for position in random.integers(0, min(len(data), 600), 6):
            data[position] = random.integers(0, 256)
        path.write_bytes(data)
        with suppress(PageError):
            page = open_page(path, settings=PageSettings(max_image_pixels=10**6))
            assert page.gray(10_000).size <= 10_000


@pytest.mark.parametrize("size", [(1, 1), (1, 3000), (3000, 1), (2, 2), (32, 3)])
def test_tiny_and_thin_images(folder: Path, size: tuple[int, int]) -> None:
    Image.new("RGB", size, RED).save(folder / "x.png")
    page = open_page(folder / "x.png")
    assert page.size == size
    assert page.gray(1000).size <= 1000
    prepared = prepare(folder / "x.png")
    assert (prepared.failure, prepared.size) == (None, size)


@pytest.mark.parametrize("kind", ["png", "pdf"])
def test_a_file_that_is_empty(folder: Path, kind: str) -> None:
    path = folder / f"x.{kind}"
    path.touch()
    found = failure(path)
    assert found.kind is FailureKind.EMPTY
    assert found.retryable  # it may be still on its way


def test_a_file_without_memory_for_it_is_too_large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_png(folder / "x.png")
    make_pdf(folder / "y.pdf", [["one"]])

    def exhausted(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Image.Image, "convert", exhausted)
    monkeypatch.setattr(pdf.PdfPage, "_draw", exhausted)
    for name in ("x.png", "y.pdf"):
        prepared = prepare(folder / name)
        assert prepared.failure is not None
        assert prepared.failure.kind is FailureKind.TOO_LARGE
    assert not preparation._open  # what was open is let go, so that the next page has the memory


# ------------------------------------------------------------------------------------ sniffing


def test_content_counts_not_the_suffix(folder: Path) -> None:
    quadrants().save(folder / "a.pdf", format="PNG")
    make_pdf(folder / "b.jpg", [["one"]])
    quadrants().save(folder / "c.JPG", format="JPEG")
    quadrants().save(folder / "d.dat", format="TIFF")
    assert cautions(folder / "a.pdf") == [CautionKind.SUFFIX]
    assert cautions(folder / "b.jpg") == [CautionKind.SUFFIX]
    assert cautions(folder / "c.JPG") == []
    assert cautions(folder / "d.dat") == [CautionKind.SUFFIX]
    assert open_page(folder / "b.jpg").points == (400.0, 300.0)


def test_junk_before_a_pdf_is_accepted(folder: Path) -> None:
    path = make_pdf(folder / "x.pdf", [["one"]])
    path.write_bytes(b"HTTP/1.1 200 OK\r\n\r\n" + path.read_bytes())
    assert open_page(path).size == (833, 625)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("x.pdf", b"plain text", FailureKind.CORRUPT),
        ("x.png", b"plain text", FailureKind.CORRUPT),
        ("x.txt", b"plain text", FailureKind.UNSUPPORTED),
        ("x.txt", b"BMW is how this text begins, and it is no image", FailureKind.UNSUPPORTED),
        ("x.docx", b"PK\x03\x04" + bytes(40), FailureKind.UNSUPPORTED),
        ("x.heic", b"\0\0\0\x18ftypheic" + bytes(40), FailureKind.UNSUPPORTED),
        ("x.avi", b"RIFF\0\0\0\0AVI LIST", FailureKind.UNSUPPORTED),
        ("WEBP.txt", b"12345678WEBP", FailureKind.UNSUPPORTED),
        ("x", b"\0", FailureKind.UNSUPPORTED),
    ],
)
def test_what_is_no_document(folder: Path, name: str, content: bytes, kind: FailureKind) -> None:
    (folder / name).write_bytes(content)
    assert failure(folder / name).kind is kind


@pytest.mark.parametrize("form", ["PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF", "BigTIFF", "MM", "DIB"])
def test_every_format_is_known_by_its_content(folder: Path, form: str) -> None:
    path = folder / "x"
    if form == "MM":
        info = TiffImagePlugin.ImageFileDirectory_v2(prefix=b"MM")
        quadrants().save(path, format="TIFF", tiffinfo=info)
    elif form == "BigTIFF":
        quadrants().save(path, format="TIFF", big_tiff=True)
    elif form == "DIB":
        dib = io.BytesIO()
        quadrants().save(dib, format="DIB")
        path.write_bytes(b"BM" + struct.pack("<IHHI", 14 + len(dib.getvalue()), 0, 0, 54) + dib.getvalue())
    else:
        quadrants().save(path, format=form)
    assert sniff(str(path)) == {"BigTIFF": "TIFF", "MM": "TIFF", "DIB": "BMP"}.get(form, form)
    assert open_page(path).size == (48, 32)


def test_files_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure(folder / "gone.pdf").kind is FailureKind.NOT_FOUND
    assert failure(folder).kind is FailureKind.UNREADABLE
    path = make_png(folder / "x.png")
    (document,) = expand([str(path)])

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    found = preparation.probe(document, SETTINGS).failure
    assert found is not None
    assert (found.kind, found.retryable) == (FailureKind.UNREADABLE, True)
    assert "Permission denied" in found.message


# ------------------------------------------------------------------------------------ image chunks


def test_a_chunk_of_an_image_is_its_pixels(folder: Path) -> None:
    noise = np.random.default_rng(3).integers(0, 255, (200, 300, 3), np.uint8)
    Image.fromarray(noise).save(folder / "x.png")
    page = open_page(folder / "x.png")
    same = page.render(Chunk(Box(10, 20, 110, 80), (100, 60), (112, 84)))
    assert same.shape == (84, 112, 3)
    assert (same[:60, :100] == noise[20:80, 10:110]).all()
    assert (same[60:, :100] == same[59, :100]).all()  # the last row is repeated, no text is mirrored
    assert (same[:, 100:] == same[:, 99:100]).all()
    half = page.render(Chunk(Box(0.0, 0.0, 300.0, 200.0), (150, 100), (168, 112)))
    assert near(
        half[:100, :150], np.asarray(Image.fromarray(noise).resize((150, 100), Image.Resampling.BILINEAR)), 12
    )


def test_a_chunk_box_that_sticks_out_is_survived(folder: Path) -> None:
    Image.new("RGB", (30, 20), RED).save(folder / "x.png")
    shown = open_page(folder / "x.png").render(Chunk(Box(-0.001, 0, 30.001, 20.4), (60, 41), (84, 56)))
    assert shown.shape == (56, 84, 3)
    assert (shown == RED).all()


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 10**7))
def test_a_shrunk_size_is_within_its_limit(width: int, height: int, limit: int) -> None:
    w, h = shrunk((width, height), limit)
    assert w >= 1
    assert h >= 1
    assert w * h <= limit or (w, h) == (width, height)
    if width * height <= limit:
        assert (w, h) == (width, height)
    elif min(w, h) > 50:
        assert abs(w / h / (width / height) - 1) < 0.05


def test_gray_rasters_become_rgb_on_their_canvas() -> None:
    gray = np.array([[1, 2], [3, 4]], np.uint8)
    shown = on_canvas(gray, (2, 2), (3, 3))
    assert shown[:, :, 0].tolist() == [[1, 2, 2], [3, 4, 4], [3, 4, 4]]
    assert shown.flags["C_CONTIGUOUS"]
    assert on_canvas(gray, (1, 1), (1, 1)).tolist() == [[[1, 1, 1]]]


# ----------------------------------------------------------------------------------------- PDF


def raw_pdf(
    path: Path, page: str = "/MediaBox[0 0 200 200]", pages: str = "/Kids[3 0 R]/Count 1",
    content: bytes = b"", more: tuple[bytes, ...] = (),
) -> Path:  # fmt: skip
    """A PDF written by hand: object 3 is the page, 4 its content, 5 and on are `more`."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages{pages}>>".encode(),
        f"<</Type/Page/Parent 2 0 R{page}/Contents 4 0 R>>".encode(),
        b"<</Length %d>>\nstream\n%s\nendstream" % (len(content), content),
        *more,
    ]
    data = b"%PDF-1.7\n"
    table = b"0000000000 65535 f \n"
    for number, body in enumerate(objects, 1):
        table += b"%010d 00000 n \n" % len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    trailer = b"xref\n0 %d\n%strailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    path.write_bytes(data + trailer % (len(objects) + 1, table, len(objects) + 1, len(data)))
    return path


COLOURS = (
    b"1 0 0 rg 0 100 150 100 re f 0 1 0 rg 150 100 150 100 re f "
    b"0 0 1 rg 0 0 150 100 re f 0 g 150 0 150 100 re f"
)
"""The quadrants, on a page of 300 x 200 points."""


@pytest.mark.parametrize("rotation", [0, 90, 180, 270, -90, 450])
def test_a_turned_page_is_shown_turned(folder: Path, rotation: int) -> None:
    path = raw_pdf(folder / "x.pdf", f"/MediaBox[0 0 300 200]/Rotate {rotation}", content=COLOURS)
    page = open_page(path)
    turn = rotation % 360
    wanted = quadrants(625, 417).rotate(-turn, expand=True)
    assert page.rotation == turn
    assert page.size == wanted.size
    assert page.points == ((300, 200) if turn in (0, 180) else (200, 300))
    assert near(whole(page), np.asarray(wanted))


def test_only_the_crop_box_is_shown(folder: Path) -> None:
    path = raw_pdf(folder / "x.pdf", "/MediaBox[-100 -50 300 200]/CropBox[75 50 225 150]", content=COLOURS)
    page = open_page(path)
    assert page.points == (150, 100)
    assert near(whole(page), np.asarray(quadrants(312, 208).resize(page.size)))


@pytest.mark.parametrize("box", ["[0 0 0 0]", "[10 10 10 90]", "[1 2]", "(no box)", "[0 0 1e99 1e99]"])
def test_a_page_box_without_sense_gets_a_sheet_as_in_viewers(folder: Path, box: str) -> None:
    page = open_page(raw_pdf(folder / "x.pdf", f"/MediaBox{box}", content=b"0 0 100 100 re f"))
    assert page.size[0] >= 1
    assert page.gray(10_000).size <= 10_000


def test_a_page_box_that_mupdf_lets_pass_without_area_is_a_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = raw_pdf(folder / "x.pdf")
    for rect in ((0, 0, 0, 10), (0, 0, float("nan"), 10), (0, 0, float("inf"), 10)):
        monkeypatch.setattr(pymupdf.Page, "rect", pymupdf.Rect(rect))
        assert failure(path).kind is FailureKind.RENDER


@pytest.mark.parametrize(
    "box", ["/MediaBox[0 0 14400 14400]/UserUnit 10", "/MediaBox[0 0 10000000000 10000000000]",
            "/MediaBox[0 0 2 10000000]", "/MediaBox[0 0 10000000 2]"],
)  # fmt: skip
def test_a_huge_page_stays_within_the_limits(folder: Path, box: str) -> None:
    content = b"0 0 14400 3000 re f"
    path = raw_pdf(folder / "x.pdf", box, content=content)
    page = open_page(path)
    assert page.gray(SETTINGS.max_analysis_pixels).size <= SETTINGS.max_analysis_pixels
    small = PageSettings(max_analysis_pixels=200_000)
    prepared = preparation.prepare(expand([str(path)])[0], Place(0, 1, 1), small, ChunkSettings())
    assert prepared.failure is None
    assert sum(view.pixels.size for view in prepared.views) <= 3 * ChunkSettings().max_page_pixels


def test_user_units_scale_the_page(folder: Path) -> None:
    page = open_page(raw_pdf(folder / "x.pdf", "/MediaBox[0 0 300 200]/UserUnit 2", content=COLOURS))
    assert page.points == (600, 400)
    assert near(whole(page), np.asarray(quadrants(*page.size)))


def test_notes_and_form_fields_are_seen(folder: Path) -> None:
    document = pymupdf.open()
    page = document.new_page(width=300, height=200)
    field = pymupdf.Widget()
    field.field_type = pymupdf.PDF_WIDGET_TYPE_TEXT
    field.field_name, field.field_value = "amount", "94.93"
    field.rect = pymupdf.Rect(20, 20, 120, 40)
    page.add_widget(field)
    page.add_freetext_annot(pymupdf.Rect(20, 60, 120, 80), "a note")
    page.add_stamp_annot(pymupdf.Rect(150, 20, 280, 60))
    document.save(folder / "x.pdf")
    shown = whole(open_page(folder / "x.pdf")).min(axis=2)
    px = 150 / 72
    for rect in ((20, 20, 120, 40), (20, 60, 120, 80), (150, 20, 280, 60)):
        x0, y0, x1, y1 = (round(v * px) for v in rect)
        assert (shown[y0:y1, x0:x1] < 128).sum() > 50, rect


def test_a_field_without_appearance_is_drawn(folder: Path) -> None:
    field = (
        b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(94.93)/Rect[20 150 120 180]/F 4/P 3 0 R"
        b"/DA(/Helv 18 Tf 0 g)>>"
    )
    path = raw_pdf(folder / "x.pdf", "/MediaBox[0 0 200 200]/Annots[5 0 R]", more=(field,))
    form = b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[5 0 R]/NeedAppearances true/DR<</Font<</Helv<<" \
        b"/Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>>>"  # fmt: skip
    path.write_bytes(path.read_bytes().replace(b"<</Type/Catalog/Pages 2 0 R>>", form))
    assert (whole(open_page(path)) < 128).sum() > 100


# --------------------------------------------------------------------------------- passwords


def encrypted(path: Path, user: str, owner: str = "owner") -> Path:
    return make_pdf(
        path, [["secret words"]], encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw=user, owner_pw=owner
    )


def test_a_locked_file_needs_its_password(folder: Path) -> None:
    path = encrypted(folder / "x.pdf", user="höchst geheim")
    without, wrong = failure(path), failure(path, settings=PageSettings(password="wrong"))
    assert without.kind is wrong.kind is FailureKind.ENCRYPTED
    assert without.retryable
    assert wrong.retryable
    assert "--password-file" in without.message
    for password in ("höchst geheim", "owner"):
        page = open_page(path, settings=PageSettings(password=password))
        assert whole(page).min() < 128


@pytest.mark.parametrize("password", [None, "", "wrong", "owner"])
def test_an_owner_password_asks_for_nothing(folder: Path, password: str | None) -> None:
    path = encrypted(folder / "x.pdf", user="")
    assert whole(open_page(path, settings=PageSettings(password=password))).min() < 128


def test_a_password_does_no_harm_to_open_files(folder: Path) -> None:
    path = make_pdf(folder / "x.pdf", [["open words"]])
    assert whole(open_page(path, settings=PageSettings(password="wrong"))).min() < 128


# ---------------------------------------------------------------------------------- damage


def test_a_pdf_cut_off_is_repaired_and_said(folder: Path) -> None:
    path = make_pdf(folder / "x.pdf", [["one"], ["two"]])
    path.write_bytes(path.read_bytes()[:-300])
    assert cautions(path) == [CautionKind.REPAIRED]
    assert whole(open_page(path)).min() < 128


@pytest.mark.parametrize(
    "content", [b"%PDF-1.7\n", b"%PDF-1.7\n" + bytes(range(256)) * 8, b"%PDF-1.7\nxref\ntrailer<<>>"]
)
def test_a_pdf_of_garbage_is_corrupt(folder: Path, content: bytes) -> None:
    (folder / "x.pdf").write_bytes(content)
    assert failure(folder / "x.pdf").kind in (FailureKind.CORRUPT, FailureKind.NO_PAGES)


def test_a_pdf_without_pages(folder: Path) -> None:
    assert failure(raw_pdf(folder / "x.pdf", pages="/Kids[]/Count 0")).kind is FailureKind.NO_PAGES


@pytest.mark.parametrize("count", [-1, 0, 2, 7, 10**9])
def test_pages_are_counted_when_the_file_lies(folder: Path, count: int) -> None:
    path = raw_pdf(folder / "x.pdf", pages=f"/Kids[3 0 R 3 0 R 3 0 R]/Count {count}", content=COLOURS)
    assert cautions(path) == [CautionKind.REPAIRED]
    with open_document(str(path), SETTINGS) as reader:
        assert reader.pages == 3
        assert whole(reader.page(3)).min() == 0


def test_counts_of_inner_nodes_are_mended_too(folder: Path) -> None:
    inner = (b"<</Type/Pages/Parent 2 0 R/Kids[3 0 R 3 0 R]/Count 1/MediaBox[0 0 72 72]>>",)
    path = raw_pdf(folder / "x.pdf", "", "/Kids[3 0 R 5 0 R]/Count 2/MediaBox[0 0 72 72]", more=inner)
    with open_document(str(path), SETTINGS) as reader:
        assert [reader.page(n).size for n in range(1, reader.pages + 1)] == [(150, 150)] * 3


def test_true_counts_are_left_alone(folder: Path) -> None:
    assert cautions(make_pdf(folder / "x.pdf", [[str(n)] for n in range(12)])) == []


def test_a_page_that_the_file_lacks_is_no_blank_page(folder: Path) -> None:
    path = raw_pdf(folder / "x.pdf", pages="/Kids[3 0 R 99 0 R]/Count 2")
    assert open_page(path, 1).size == (417, 417)
    assert failure(path, 2).kind is FailureKind.RENDER


def test_a_page_tree_in_a_circle_ends(folder: Path) -> None:
    path = raw_pdf(folder / "x.pdf", pages="/Kids[2 0 R 3 0 R]/Count 2")
    assert failure(path).kind in (FailureKind.RENDER, FailureKind.CORRUPT)


def test_too_many_pages_are_refused(folder: Path) -> None:
    path = make_pdf(folder / "x.pdf", [[]] * 5)
    assert failure(path, settings=PageSettings(max_pages=4)).kind is FailureKind.TOO_LARGE


def test_content_that_makes_no_sense_is_drawn_as_far_as_it_goes(folder: Path) -> None:
    path = raw_pdf(folder / "x.pdf", content=b"0 0 100 100 re f /X9 Do ((( q q q Q BT /F Tf (x) Tj")
    assert whole(open_page(path)).min() == 0


def test_a_form_that_draws_itself_ends(folder: Path) -> None:
    body = b"0 0 50 50 re f /F Do"
    form = b"<</Type/XObject/Subtype/Form/BBox[0 0 99 99]/Resources<</XObject<</F 5 0 R>>>>/Length %d>>" \
        b"\nstream\n%s\nendstream" % (len(body), body)  # fmt: skip
    page = "/MediaBox[0 0 200 200]/Resources<</XObject<</F 5 0 R>>>>"
    path = raw_pdf(folder / "x.pdf", page, content=b"/F Do", more=(form,))
    assert open_page(path).gray(10**6).min() == 0


IMAGE = "/MediaBox[0 0 200 200]/Resources<</XObject<</I 5 0 R>>>>"


def xobject(keys: str) -> bytes:
    return b"<</Type/XObject/Subtype/Image/BitsPerComponent 8%s/Length 9>>\nstream\n123456789\nendstream" % (
        keys.encode()
    )


@pytest.mark.parametrize("guilty", ["image", "mask", "soft mask", "in a form"])
def test_a_giant_image_in_a_page_is_refused(folder: Path, guilty: str) -> None:
    giant = xobject("/Width 60000/Height 60000/ColorSpace/DeviceGray")
    small = "/Width 3/Height 3/ColorSpace/DeviceGray"
    more: tuple[bytes, ...]
    if guilty == "image":
        more = (giant,)
    elif guilty == "in a form":
        form = b"<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</J 6 0 R>>>>/Length 5>>" \
            b"\nstream\n/J Do\nendstream"  # fmt: skip
        more = (form, giant)
    else:
        more = (xobject(small + ("/Mask 6 0 R" if guilty == "mask" else "/SMask 6 0 R")), giant)
    path = raw_pdf(folder / "x.pdf", IMAGE, content=b"q 99 0 0 99 0 0 cm /I Do Q", more=more)
    found = failure(path)
    assert found.kind is FailureKind.TOO_LARGE
    assert "60000 x 60000" in found.message


def test_an_image_of_high_resolution_is_no_larger_page(folder: Path) -> None:
    """What counts is the page: a tiny image at 2,400 dpi does not blow it up."""
    document = pymupdf.open()
    page = document.new_page(width=200, height=200)
    stamp = io.BytesIO()
    text_image(["stamp"], width=700).save(stamp, format="PNG")
    page.insert_image(pymupdf.Rect(10, 10, 31, 14), stream=stamp.getvalue())
    document.save(folder / "x.pdf")
    assert open_page(folder / "x.pdf").size == (417, 417)


def test_mupdf_says_nothing_on_standard_error(folder: Path) -> None:
    """Its messages hold pieces of the file."""
    path = raw_pdf(folder / "x.pdf", content=b"/SECRET Do ((( BT /F Tf (SECRET) Tj")
    path.write_bytes(path.read_bytes()[:-40])
    code = (
        "import sys; from hiresvlm.pages import open_document; from hiresvlm.settings import PageSettings\n"
        "with open_document(sys.argv[1], PageSettings()) as reader: print(reader.page(1).gray(1000).shape)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert shown.stderr == ""
    assert shown.stdout.startswith("(")


@pytest.mark.parametrize("name", ["表单 第三条.pdf", os.fsdecode(b"latin\xe9\xff.pdf"), "[1] #%20.pdf"])
def test_names_that_mupdf_might_not_like(folder: Path, name: str) -> None:
    make_pdf(folder / "x.pdf", [["one"]]).rename(folder / name)
    assert whole(open_page(folder / name)).min() < 128


# ------------------------------------------------------------------------------- chunk geometry


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_pdf(
        tmp_path_factory.mktemp("pdf") / "x.pdf", [[f"Line {n} of the quick brown fox" for n in range(12)]]
    )


@pytest.mark.parametrize("rotation", [0, 90])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0, 3.0])
def test_a_chunk_is_the_matching_part_of_the_page(
    printed: Path, folder: Path, rotation: int, scale: float
) -> None:
    document = pymupdf.open(printed)
    document[0].set_rotation(rotation)
    document[0].set_cropbox(pymupdf.Rect(20, 10, 380, 290))
    document.save(folder / "x.pdf")
    page = open_page(folder / "x.pdf")
    width, height = page.size
    full_size = (round(width * scale), round(height * scale))
    full = page.render(Chunk(Box(0, 0, width, height), full_size, full_size))
    assert full.shape == (full_size[1], full_size[0], 3)
    assert full.min() < 100
    right, bottom = width // 2 * 2, height // 2 * 2  # whole pixels at every scale
    for x0, y0, x1, y1 in ((0, 0, 200, 100), (96, 44, 300, 320), (right - 130, bottom - 90, right, bottom)):
        size = (round((x1 - x0) * scale), round((y1 - y0) * scale))
        canvas = (-(-size[0] // 28) * 28, -(-size[1] // 28) * 28)
        part = page.render(Chunk(Box(x0, y0, x1, y1), size, canvas))
        assert part.shape == (canvas[1], canvas[0], 3)
        left, top = round(x0 * scale), round(y0 * scale)
        wanted = full[top : top + size[1], left : left + size[0]]
        assert near(part[: size[1], : size[0]], wanted, tolerance=4)


def test_the_gray_raster_is_the_page(printed: Path) -> None:
    page = open_page(printed)
    gray = page.gray(10**9)
    assert gray.shape == (page.size[1], page.size[0])
    assert near(gray, np.asarray(Image.fromarray(whole(page)).convert("L")), tolerance=1)
    small = page.gray(50_000)
    assert small.size <= 50_000
    assert abs(small.shape[1] / small.shape[0] - page.size[0] / page.size[1]) < 0.02


def test_hundreds_of_chunks_at_broken_boxes(printed: Path) -> None:
    page = open_page(printed)
    width, height = page.size
    random = np.random.default_rng(5)
    for _ in range(300):
        x0, y0 = random.uniform(0, width - 2), random.uniform(0, height - 2)
        x1, y1 = random.uniform(x0 + 1, width), random.uniform(y0 + 1, height)
        scale = random.uniform(0.1, 3)
        size = (max(1, round((x1 - x0) * scale)), max(1, round((y1 - y0) * scale)))
        assert page.render(Chunk(Box(x0, y0, x1, y1), size, size)).shape == (size[1], size[0], 3)


def test_no_edge_of_a_chunk_is_left_undrawn(folder: Path) -> None:
    page = open_page(raw_pdf(folder / "x.pdf", "/MediaBox[0 0 199.3 301.7]", content=b"-9 -9 999 999 re f"))
    width, height = page.size
    random = np.random.default_rng(6)
    for _ in range(200):
        x0, y0 = random.uniform(0, width - 20), random.uniform(0, height - 20)
        x1, y1 = random.uniform(x0 + 10, width), random.uniform(y0 + 10, height)
        scale = random.uniform(0.3, 3)
        size = (max(1, round((x1 - x0) * scale)), max(1, round((y1 - y0) * scale)))
        shown = page.render(Chunk(Box(x0, y0, x1, y1), size, size))
        assert shown[1:-1, 1:-1].max(initial=0) == 0
        assert shown.max() < 200, (x0, y0, x1, y1, scale)
    assert whole(page).max() < 200


def test_beside_the_page_is_paper(folder: Path) -> None:
    page = open_page(raw_pdf(folder / "x.pdf", "/MediaBox[0 0 72 72]", content=b"0 0 99 99 re f"))
    shown = page.render(Chunk(Box(-30, -20, 180, 200), (210, 220), (210, 220)))[:, :, 0]
    wanted = np.full((220, 210), 255, np.uint8)
    wanted[20:170, 30:180] = 0
    assert near(shown, wanted, tolerance=1)


def test_an_overlay_is_a_picture_of_bounded_size(folder: Path) -> None:
    path = raw_pdf(folder / "x.pdf", "/MediaBox[0 0 3 90000]", content=COLOURS)
    prepared = prepare(path)
    assert prepared.plan is not None
    draw_overlay(open_page(path), prepared.plan, str(folder / "x.plan.png"))
    with Image.open(folder / "x.plan.png") as image:
        assert image.width * image.height <= 4_000_000
    image = text_image(["overlay"], width=200)
    image.save(folder / "y.png")
    prepared = prepare(folder / "y.png")
    assert prepared.plan is not None
    draw_overlay(open_page(folder / "y.png"), prepared.plan, str(folder / "y.plan.png"))
    with Image.open(folder / "y.plan.png") as drawn:
        assert drawn.size == image.size
        assert not near(pixels(drawn), pixels(image), tolerance=1)


# --------------------------------------------------------------------- what a worker makes of it


def test_documents_are_opened_once_and_closed_again(folder: Path) -> None:
    paths = [make_pdf(folder / f"{n}.pdf", [["one"], ["two"]]) for n in range(3)]
    frame = Image.new("1", (40, 40))
    paths.append(folder / "x.tif")
    frame.save(paths[-1], save_all=True, append_images=[frame])
    found = expand([str(folder)])
    before = psutil.Process().num_fds()
    opened = []
    for number in (1, 2):
        for document in found:
            assert (
                preparation.prepare(document, Place(0, number, 2), SETTINGS, ChunkSettings()).failure is None
            )
            opened.append(preparation._reader(document, SETTINGS))
            assert opened[-1] is preparation._reader(document, SETTINGS)
            assert len(preparation._open) <= preparation.OPEN_DOCUMENTS
    preparation._too_large()
    assert not preparation._open
    del opened
    assert psutil.Process().num_fds() == before


def test_an_evicted_document_comes_back(folder: Path) -> None:
    for n in range(4):
        make_pdf(folder / f"{n}.pdf", [[f"document {n}"]])
    found = expand([str(folder)])
    first = [preparation.prepare(d, Place(0, 1, 1), SETTINGS, ChunkSettings()).views[0].pixels for d in found]
    again = [preparation.prepare(d, Place(0, 1, 1), SETTINGS, ChunkSettings()).views[0].pixels for d in found]
    assert all((a == b).all() for a, b in zip(first, again, strict=True))


def test_other_settings_open_a_document_anew(folder: Path) -> None:
    make_png(folder / "x.png")
    (document,) = expand([str(folder)])
    place, chunks = Place(0, 1, 1), ChunkSettings()
    assert preparation.prepare(document, place, SETTINGS, chunks).failure is None
    refused = preparation.prepare(document, place, PageSettings(max_image_pixels=10), chunks).failure
    assert refused is not None
    assert refused.kind is FailureKind.TOO_LARGE


def test_a_file_that_changes_during_the_run_is_said(folder: Path) -> None:
    path = make_pdf(folder / "x.pdf", [["one"]])
    (document,) = expand([str(folder)])
    assert preparation.probe(document, SETTINGS).pages == 1
    make_pdf(path, [["another"], ["file"]])
    found = preparation.prepare(document, Place(0, 1, 1), SETTINGS, ChunkSettings()).failure
    assert found is not None
    assert (found.kind, found.retryable) == (FailureKind.CHANGED, True)
    path.unlink()
    found = preparation.probe(document, SETTINGS).failure
    assert found is not None
    assert (found.kind, found.retryable) == (FailureKind.NOT_FOUND, True)


def test_the_hash_of_a_broken_file_is_known(folder: Path) -> None:
    (folder / "x.pdf").write_bytes(b"no pdf")
    (document,) = expand([str(folder)])
    found = preparation.probe(document, SETTINGS)
    assert found.failure is not None
    assert found.sha256 is not None
    assert len(found.sha256) == 64


def test_a_blank_page_has_no_views(folder: Path) -> None:
    prepared = prepare(raw_pdf(folder / "x.pdf"))
    assert prepared.blank
    assert prepared.views == ()
    assert prepared.failure is None


def test_times_and_sizes_of_a_page(folder: Path) -> None:
    prepared = prepare(make_pdf(folder / "x.pdf", [["Some words to read here"]]))
    assert prepared.points == (400.0, 300.0)
    assert prepared.size == (833, 625)
    assert prepared.render_ms > 0
    assert prepared.chunk_ms > 0
    assert prepared.nbytes == sum(view.pixels.nbytes for view in prepared.views) > 0
    for view, chunk in zip(prepared.views, prepared.plan.chunks if prepared.plan else (), strict=True):
        assert view.pixels.shape == (chunk.canvas[1], chunk.canvas[0], 3)
