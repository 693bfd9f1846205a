"""Write the sample documents of this folder, each with its exact text beside it.

Run it from anywhere: ``.venv/bin/python samples/make_samples.py [folder]``. Only fonts carried inside PyMuPDF
are used, so no font has to be installed. All random choices are seeded: with the pinned package versions a
second run writes the same bytes, except for the two PDFs with passwords. MuPDF draws their file IDs and salts
from the clock, so an existing one is kept as long as it still opens and says what it should.

Gold text: one printed line per line, in reading order; the cells of one row joined by single spaces; pages
separated by a form feed. It is recorded by the same call that draws (``sample_layout.py``); the wording is in
``sample_text.py``.
"""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pymupdf
import sample_text as st
from PIL import Image, ImageFilter
from sample_layout import (
    A4,
    BLACK,
    DARK,
    LIGHT,
    Colour,
    PdfPage,
    Phone,
    Sheet,
    noisy,
    save_picture,
    write_gold,
)

EXIF_ORIENTATION, ROTATED_90_CW = 0x0112, 6


def new_pdf(title: str) -> pymupdf.Document:
    """Start a PDF whose metadata does not depend on the time of the run."""
    document = pymupdf.open()
    dates = dict.fromkeys(("creationDate", "modDate"), "D:20240506080000Z")
    document.set_metadata({"title": title, "producer": "make_samples.py", **dates})
    return document


def report_pages(document: pymupdf.Document) -> list[PdfPage]:
    """Lay out the three pages of the report."""
    first, second, third = pages = [PdfPage.new(document) for _ in range(3)]
    first.row(78, [(A4[0] / 2, st.REPORT_TITLE, "ms")], 18, "hebo")
    first.row(100, [(A4[0] / 2, st.REPORT_SUBTITLE, "ms")], 12, "helv")
    y = 140.0
    for heading, paragraphs in (("1. Summary", st.REPORT_SUMMARY), ("2. Method", st.REPORT_METHOD)):
        y = first.heading(y, heading)
        for text in paragraphs:
            y = first.prose(y, text)
        y += 14

    top = second.heading(72, "3. Findings by Depot")
    for x, sections in ((60, st.REPORT_COLUMNS[:3]), (309, st.REPORT_COLUMNS[3:])):
        y = top + 4
        for name, text in sections:
            second.row(y, [(x, name, "ls")], 10.5, "hebo")
            y = second.prose(y + 15, text, x, 226, 10) + 8

    y = third.prose(third.heading(72, "4. Costs"), st.REPORT_COSTS[0]) + 10
    for number, cells in enumerate(st.REPORT_TABLE):
        font = "hebo" if number in (0, len(st.REPORT_TABLE) - 1) else "helv"
        columns = zip((72, 230, 310, 410, 523), cells, ("ls", "rs", "rs", "rs", "rs"), strict=True)
        third.row(y, columns, 10, font)
        third.page.draw_line((60, y + 6), (535, y + 6), width=1.0 if font == "hebo" else 0.4)
        y += 20
    y = third.heading(y + 24, "5. Next Steps")
    for text in st.REPORT_NEXT:
        y = third.prose(y, text)
    for number, page in enumerate(pages, 1):
        page.row(800, [(60, st.REPORT_TITLE, "ls"), (535, f"Page {number} of 3", "rs")], 9, "helv")
    return pages


def letter(title: str, paragraphs: Iterable[str]) -> tuple[pymupdf.Document, list[str]]:
    """Lay out a one-page letter; return it with its gold lines."""
    document = new_pdf(title)
    page = PdfPage.new(document)
    y = page.heading(90, title, 16) + 10
    for text in paragraphs:
        y = page.prose(y, text, size=11) + 4
    return document, page.gold


def make_pdfs(folder: Path) -> None:
    """Write the report, its scan, and the letter that only an owner password protects."""
    with new_pdf(st.REPORT_SUBTITLE) as document, new_pdf(st.REPORT_SUBTITLE + " (scan)") as scan:
        gold = [page.gold for page in report_pages(document)]
        document.save(str(folder / "report.pdf"), garbage=3, deflate=True, no_new_id=True)
        for number, page in enumerate(document):
            pixmap = page.get_pixmap(dpi=200, colorspace=pymupdf.csGRAY)
            image = Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples)
            image = image.rotate(1, Image.Resampling.BICUBIC, fillcolor=255)
            image = noisy(image.filter(ImageFilter.GaussianBlur(0.6)), 4, seed=20 + number, light=0.97)
            jpeg = io.BytesIO()
            image.save(jpeg, "JPEG", quality=60, optimize=True, dpi=(200, 200))
            scan.new_page(width=A4[0], height=A4[1]).insert_image((0, 0, *A4), stream=jpeg.getvalue())
        scan.save(str(folder / "report-scan.pdf"), garbage=3, deflate=True, no_new_id=True)
    write_gold(folder / "report.pdf", gold)
    write_gold(folder / "report-scan.pdf", gold)
    save_locked(folder / "owner-only.pdf", st.OWNER_ONLY, pymupdf.PDF_ENCRYPT_AES_128, user="")


def save_locked(path: Path, text: tuple[str, Sequence[str]], method: int, user: str) -> None:
    """Write an encrypted letter, unless one that opens to the same text is there already."""
    document, gold = letter(*text)
    wanted = document[0].get_text()
    write_gold(path, [gold])
    if path.exists() and path.stat().st_size:
        with pymupdf.open(path) as old:
            if old.authenticate(user) and old.page_count == 1 and old[0].get_text() == wanted:
                return
    allowed = pymupdf.PDF_PERM_ACCESSIBILITY | pymupdf.PDF_PERM_COPY
    document.save(
        str(path),
        garbage=3,
        deflate=True,
        encryption=method,
        user_pw=user,
        owner_pw="keeper",
        permissions=allowed,
    )


def page_count(data: bytes) -> int:
    """Count the pages MuPDF finds in ``data`` after any repair, 0 if it cannot open it."""
    try:
        with pymupdf.open(stream=data, filetype="pdf") as document:
            return int(document.page_count)
    except RuntimeError:  # the base of pymupdf.FileDataError
        return 0


def make_broken(folder: Path) -> None:
    """Write the files that a run has to report instead of reading them."""
    folder.mkdir(exist_ok=True)
    save_locked(folder / "encrypted.pdf", st.ENCRYPTED, pymupdf.PDF_ENCRYPT_AES_256, user="secret")
    document, _ = letter(*st.OWNER_ONLY)
    # Object streams put the page tree at the end of the file, where the cut takes it away.
    document.save(str(folder / "truncated.pdf"), garbage=3, deflate=True, no_new_id=True, use_objstms=1)
    data = (folder / "truncated.pdf").read_bytes()
    data = data[: len(data) * 40 // 100]
    if page_count(data):
        raise ValueError("truncated.pdf can be repaired")
    (folder / "truncated.pdf").write_bytes(data)
    (folder / "empty.pdf").write_bytes(b"")


# ---- pictures --------------------------------------------------------------------------------------------


def money(cents: int) -> str:
    """Format an amount in hundredths: 123456 is "1,234.56"."""
    return f"{cents / 100:,.2f}"


def make_invoice(folder: Path) -> None:
    """Draw the Chinese VAT invoice."""
    sheet, red, blue = Sheet.new(1240, 1000, latin="cjk"), (150, 40, 30), (28, 34, 92)
    sheet.row(78, [(620, "云溪增值税电子普通发票", "ms")], 44, red)
    sheet.draw.line((360, 98, 880, 98), fill=red, width=2)
    for y, left, right in (
        (140, "机器编号：499000102938", "发票号码：24317000000086420175"),
        (178, "校验码：70613 28845 09127 33604", "开票日期：2024年05月06日"),
    ):
        sheet.row(y, [(60, left, "ls"), (780, right, "ls")], 24)

    def party(y: int, values: Sequence[str]) -> None:
        role, name, number, address, bank = values
        sheet.draw.rectangle((50, y, 1190, y + 150), outline=red, width=2)
        sheet.line(70, y + 34, f"{role}名称：{name}", 24, blue)
        sheet.line(70, y + 68, f"纳税人识别号：{number}", 24, blue)
        sheet.line(70, y + 102, f"地址、电话：{address}", 24, blue)
        sheet.line(70, y + 136, f"开户行及账号：{bank}", 24, blue)

    party(200, st.INVOICE_PARTIES[0])
    sheet.draw.rectangle((50, 350, 1190, 786), outline=red, width=2)
    stops, anchors = (70, 370, 590, 730, 830, 980, 1060, 1175), ("ls", "ls", "ms", *["rs"] * 5)

    def table_row(y: int, cells: Sequence[str], fill: Colour = BLACK) -> None:
        sheet.row(y, zip(stops, cells, anchors, strict=True), 24, fill)

    table_row(386, ("项目名称", "规格型号", "单位", "单价", "数量", "金额", "税率", "税额"), red)
    sheet.draw.line((50, 402, 1190, 402), fill=red, width=1)
    net = tax = 0
    for number, (name, model, unit, price, quantity) in enumerate(st.INVOICE_ITEMS):
        amount = price * quantity
        item_tax = round(amount * 0.13)
        net, tax = net + amount, tax + item_tax
        prices = (f"{price / 100:.2f}", str(quantity), f"{amount / 100:.2f}", "13%", f"{item_tax / 100:.2f}")
        table_row(438 + 44 * number, (name, model, unit, *prices))
    if net + tax != 480092:
        raise ValueError(f"the total in words belongs to another figure than {net + tax}")
    sheet.draw.line((50, 680, 1190, 680), fill=red, width=1)
    table_row(718, ("合计", "", "", "", "", f"¥{net / 100:.2f}", "", f"¥{tax / 100:.2f}"))
    sheet.draw.line((50, 734, 1190, 734), fill=red, width=1)
    total = f"总金额: ¥{(net + tax) / 100:.2f}"
    sheet.row(770, [(70, f"价税合计（大写）：{st.INVOICE_CAPITALS}", "ls"), (1175, total, "rs")], 26)
    party(786, st.INVOICE_PARTIES[1])
    sheet.row(974, [(70, "收款人：江禾", "ls"), (400, "复核：苏木", "ls"), (730, "开票人：白桦", "ls")], 24)
    save_picture(folder / "invoice-zh.png", sheet)


def make_screenshots(folder: Path) -> None:
    """Draw the two phone screenshots."""
    short = Phone(3840, seed=5)
    short.fill(until=3840)
    short.save(folder / "screenshot-1080x3840.png")
    long = Phone(9000, seed=9)
    long.fill(until=2600)
    long.y += 700  # a long empty stretch, as a page shows while its pictures load
    long.switch(DARK)
    long.fill(until=5600)
    long.y += 600
    long.switch(LIGHT)
    long.fill(until=9000)
    long.save(folder / "screenshot-1080x9000.png")


def make_ledger(folder: Path) -> None:
    """Draw the wide ledger; the running balance is right to the cent."""
    sheet, rng, day, balance = Sheet.new(4200, 900), random.Random(13), date(2024, 2, 1), 18_450_275
    heads = (
        "No.",
        "Date",
        "Voucher",
        "Account",
        "Account name",
        "Cost centre",
        "Description",
        "摘要",
        "Counterparty",
        "Qty",
        "Debit",
        "Credit",
        "VAT",
        "Balance",
    )
    stops = (60, 140, 310, 480, 620, 950, 1140, 1940, 2290, 2850, 3170, 3490, 3740, 4140)
    anchors = ("ls",) * 9 + ("rs",) * 5
    sheet.row(
        46,
        [
            (60, "General Ledger, Osterwick Joinery Works", "ls"),
            (1940, "总账明细 February 2024", "ls"),
            (4140, f"Opening balance {money(balance)}", "rs"),
        ],
        28,
    )

    def table_row(number: int, cells: Sequence[str]) -> None:
        y = 92 + 35 * number
        sheet.row(y, zip(stops, cells, anchors, strict=True), 24)
        sheet.draw.line((40, y + 9, 4160, y + 9), fill=(150, 150, 156), width=1)

    table_row(0, heads)
    entries = rng.sample(st.LEDGER_ENTRIES * 2, 22)
    for number, (account, name, text, summary, partner) in enumerate(entries, 1):
        amount, is_debit = rng.randrange(2_000, 900_000), rng.random() < 0.4
        day += timedelta(rng.randrange(3))
        balance += amount if is_debit else -amount
        debit, credit = (money(amount), "") if is_debit else ("", money(amount))
        voucher, centre = f"JV-{rng.randrange(10_000, 99_999)}", f"CC-{rng.randrange(100, 990)}"
        pieces, vat = str(rng.randrange(1, 400)), money(round(amount * 0.19))
        table_row(
            number,
            (
                str(number),
                day.isoformat(),
                voucher,
                account,
                name,
                centre,
                text,
                summary,
                partner,
                pieces,
                debit,
                credit,
                vat,
                money(balance),
            ),
        )
    save_picture(folder / "ledger-4200x900.png", sheet)


def make_receipt(folder: Path) -> None:
    """Draw the till receipt."""
    sheet, y, size = Sheet.new(600, 1400, (250, 249, 245), latin="cour"), 70, 24
    for number, text in enumerate(st.RECEIPT_HEAD):
        sheet.row(y, [(300, text, "ms")], 32 if number == 0 else size, font="cobo" if number == 0 else "")
        y += 38
    y += 20
    sheet.row(y, [(30, "2024-05-06 17:42", "ls"), (570, "Receipt 003917", "rs")], size)
    sheet.draw.line((30, y + 22, 570, y + 22), fill=BLACK, width=2)
    y, total = y + 62, 0
    for name, quantity, price in st.RECEIPT_ITEMS:
        amount = quantity * price
        total += amount
        sum_of = f"{quantity} x {money(price)}"
        sheet.row(y, [(30, name, "ls"), (445, sum_of, "rs"), (570, money(amount), "rs")], size)
        y += 42
    sheet.draw.line((30, y - 22, 570, y - 22), fill=BLACK, width=2)
    sheet.row(y + 16, [(30, "TOTAL EUR", "ls"), (570, money(total), "rs")], 30, font="cobo")
    tax, paid = round(total * 7 / 107), 10_000
    for label, amount in (("incl. VAT 7%", tax), ("Cash", paid), ("Change", paid - total)):
        y += 44
        sheet.row(y + 16, [(30, label, "ls"), (570, money(amount), "rs")], size)
    y += 74
    for text in st.RECEIPT_FOOT:
        y += 38
        sheet.row(y, [(300, text, "ms")], size)
    noisy(sheet.image, 3, seed=31).save(folder / "receipt.jpg", quality=85, optimize=True)
    write_gold(folder / "receipt.jpg", [sheet.gold])


def make_fax(folder: Path) -> None:
    """Draw the three fax pages: black and white, group 4."""
    frames, gold = [], []
    for header, paragraphs in st.FAXES:
        sheet, y = Sheet.new(1700, 2200), 240.0
        sheet.row(70, [(850, header, "ms")], 28)
        sheet.draw.line((80, 92, 1620, 92), fill=BLACK, width=3)
        for text in paragraphs:
            y = sheet.prose(150, y, 1400, text, 38, 60) if text else y + 36
        frames.append(sheet.image.convert("L").point(lambda value: 255 if value > 140 else 0).convert("1"))
        gold.append(sheet.gold)
    path = folder / "fax.tif"
    frames[0].save(path, save_all=True, append_images=frames[1:], compression="group4", dpi=(200, 200))
    write_gold(path, gold)


def make_photo(folder: Path) -> None:
    """Draw a notice as a telephone would photograph it, stored on its side with EXIF orientation 6."""
    width, height = 1500, 2000
    sheet, y = Sheet.new(width, height, (246, 244, 238)), 250.0
    sheet.row(150, [(width / 2, st.PHOTO_TITLE, "ms")], 50)
    sheet.draw.line((120, 180, width - 120, 180), fill=(60, 110, 60), width=4)
    for text in st.PHOTO_TEXT:
        y = sheet.prose(120, y, width - 240, text, 38, 58) + 20
    # The paper's corners as the camera sees them; Pillow wants the map from the photo back to the paper.
    seen = ((70, 60), (width - 40, 90), (width - 70, height - 50), (30, height - 90))
    paper = ((0, 0), (width, 0), (width, height), (0, height))
    rows = [
        r
        for (u, v), (x, z) in zip(seen, paper, strict=True)
        for r in ((u, v, 1, 0, 0, 0, -x * u, -x * v), (0, 0, 0, u, v, 1, -z * u, -z * v))
    ]
    back = np.linalg.solve(np.array(rows, dtype=np.float64), np.array(paper, dtype=np.float64).ravel())
    photo = sheet.image.transform(
        (width, height),
        Image.Transform.PERSPECTIVE,
        back.tolist(),
        Image.Resampling.BICUBIC,
        fillcolor=(120, 92, 66),
    )
    light = np.linspace(1.02, 0.72, height)[:, None, None] * np.linspace(0.9, 1.0, width)[None, :, None]
    photo = noisy(photo.filter(ImageFilter.GaussianBlur(0.7)), 4, seed=41, light=light.astype(np.float32))
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = ROTATED_90_CW
    stored = photo.transpose(Image.Transpose.ROTATE_90)  # a quarter turn back (counter-clockwise)
    stored.save(folder / "photo-exif.jpg", quality=80, optimize=True, exif=exif)
    write_gold(folder / "photo-exif.jpg", [sheet.gold])


def make_blank(folder: Path) -> None:
    """Write a page with nothing on it but a trace of sensor noise."""
    noisy(Image.new("L", (1000, 1400), 250), 1, seed=51).save(folder / "blank.png", optimize=True)
    write_gold(folder / "blank.png", [[]])


def main() -> None:
    """Write all samples into the folder given, by default the one of this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    pymupdf.TOOLS.mupdf_display_errors(False)  # the truncated file is meant to fail
    for make in (
        make_pdfs,
        make_invoice,
        make_screenshots,
        make_ledger,
        make_receipt,
        make_fax,
        make_photo,
        make_blank,
    ):
        make(folder)
    make_broken(folder / "broken")


if __name__ == "__main__":
    main()
