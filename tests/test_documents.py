"""PATH arguments -> documents: names of every kind, folders, globs, links, and page ranges."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hiresvlm import documents
from hiresvlm.datatypes import Document, FailureKind
from hiresvlm.documents import SUFFIXES, expand, natural, parse_pages, read_list, select_pages
from hiresvlm.errors import UsageError


def touch(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def keys(found: list[Document]) -> list[str]:
    return [document.key for document in found]


def kinds(found: list[Document]) -> list[FailureKind | None]:
    return [document.failure and document.failure.kind for document in found]


# ------------------------------------------------------------------------------------------ names


NAMES = [
    "scan[1].pdf",
    "[1].pdf",
    "what?.pdf",
    "star*.pdf",
    " two  spaces .pdf",
    "-o.pdf",
    "#50%;&'\"$(x)`.pdf",
    "表单 第三条.pdf",
    "請求書" * 27 + ".pdf",  # 247 bytes
    "a" * 246 + ".pdf",
    "caf\u00e9.pdf",  # one character
    "cafe\u0301.pdf",  # two
    "x.pdf.pdf",
    "new\nline.pdf",
    "\x1b[31mred.pdf",
    os.fsdecode(b"latin\xe9\xff.pdf"),
]


@pytest.mark.parametrize("name", NAMES)
def test_an_existing_name_is_taken_literally(folder: Path, name: str) -> None:
    touch(folder / name)
    touch(folder / "scan1.pdf")
    touch(folder / "1.pdf")
    (document,) = expand([str(folder / name)])
    assert document.failure is None
    assert document.path == str(folder / name)
    assert document.key == name
    assert document.size == 1


def test_all_names_of_a_folder_are_found(folder: Path) -> None:
    for name in NAMES:
        touch(folder / name)
    assert sorted(keys(expand([str(folder)]))) == sorted(NAMES)


def test_suffixes_in_any_case(folder: Path) -> None:
    names = [f"a{n}{s}" for n, s in enumerate(sorted(SUFFIXES))]
    names += [f"b{n}{s.upper()}" for n, s in enumerate(sorted(SUFFIXES))]
    names += ["06091500.PDF", "c.Pdf", "d.JpEg"]
    for name in [*names, "notes.txt", "x.pdf.bak", "pdf", ".pdf", "y.plan.json", "thumbs.db"]:
        touch(folder / name)
    assert sorted(keys(expand([str(folder)]))) == sorted(names)


def test_a_named_file_is_tried_whatever_its_suffix(folder: Path) -> None:
    (document,) = expand([str(touch(folder / "scan.0001"))])
    assert document.failure is None


def test_overlays_and_notes_of_macos_are_no_input(folder: Path) -> None:
    for name in ("x.pdf", "x.pdf.p1.plan.png", "X.PLAN.PNG", "._x.pdf", ".hidden.pdf"):
        touch(folder / name)
    assert sorted(keys(expand([str(folder)]))) == [".hidden.pdf", "x.pdf"]
    assert keys(expand([str(folder / "*.p*")])) == ["x.pdf"]
    assert expand([str(folder / "*.png")]) == []


def test_numbers_in_names_are_ordered_as_numbers(folder: Path) -> None:
    names = ["2/p1.pdf", "10/p1.pdf", "page1.pdf", "page2.pdf", "Page3.pdf", "page10.pdf"]
    for name in names:
        touch(folder / name)
    assert keys(expand([str(folder)], recursive=True)) == [*names[2:], "2/p1.pdf", "10/p1.pdf"]


def test_order_does_not_hang_on_the_file_system(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("A.pdf", "a.pdf", "p1.pdf", "p01.pdf", "p001.pdf"):
        touch(folder / name)
    first = keys(expand([str(folder)]))
    real = os.scandir

    class Backwards:
        def __init__(self, path: str) -> None:
            with real(path) as scan:
                self._entries = sorted(scan, key=lambda entry: entry.name, reverse=True)

        def __enter__(self):  # type: ignore[no-untyped-def]
            return iter(self._entries)

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(documents.os, "scandir", Backwards)
    assert keys(expand([str(folder)])) == first


@given(st.text(max_size=30), st.text(max_size=30))
def test_natural_is_a_total_order(a: str, b: str) -> None:
    assert (natural(a) == natural(b)) == (a == b)
    assert (natural(a) < natural(b)) != (natural(b) < natural(a)) or a == b


@given(st.integers(0, 10**40), st.integers(0, 10**40))
def test_natural_compares_numbers_of_any_length(a: int, b: int) -> None:
    assert (natural(f"p{a}.pdf") < natural(f"p{b}.pdf")) == (a < b)


@pytest.mark.parametrize("name", ["²", "x²3", "٣", "①", "9" * 5000])
def test_natural_takes_odd_digits(name: str) -> None:
    assert natural(name) < natural(name + "a")


# ------------------------------------------------------------------------------ folders and links


def test_sub_folders_only_when_asked(folder: Path) -> None:
    for name in ("a.pdf", "sub/b.PDF", "sub/deep/c.Png", ".hidden/d.pdf"):
        touch(folder / name)
    assert keys(expand([str(folder)])) == ["a.pdf"]
    found = expand([str(folder)], recursive=True)
    assert keys(found) == ["a.pdf", ".hidden/d.pdf", "sub/b.PDF", "sub/deep/c.Png"]
    assert [document.number for document in found] == [0, 1, 2, 3]


def test_a_folder_named_like_a_document_is_a_folder(folder: Path) -> None:
    touch(folder / "x.pdf" / "y.pdf")
    assert expand([str(folder)]) == []
    assert keys(expand([str(folder)], recursive=True)) == ["x.pdf/y.pdf"]
    assert keys(expand([str(folder / "x.pdf")])) == ["y.pdf"]


def test_links_that_lead_in_circles_end(folder: Path) -> None:
    touch(folder / "a" / "x.pdf")
    (folder / "a" / "up").symlink_to(folder)
    (folder / "a" / "here").symlink_to(".")
    (folder / "b").symlink_to(folder / "a")
    (folder / "self.pdf").symlink_to("self.pdf")
    found = expand([str(folder)], recursive=True)
    assert keys(found) == ["self.pdf", "a/x.pdf"]
    assert kinds(found) == [FailureKind.UNREADABLE, None]


def test_a_link_to_a_folder_elsewhere_is_followed_once(folder: Path, tmp_path: Path) -> None:
    touch(tmp_path / "elsewhere" / "x.pdf")
    (tmp_path / "elsewhere" / "back").symlink_to(folder)
    (folder / "one").symlink_to(tmp_path / "elsewhere")
    (folder / "two").symlink_to(tmp_path / "elsewhere")
    assert keys(expand([str(folder)], recursive=True)) == ["one/x.pdf"]


def test_a_link_that_is_added_changes_no_key(folder: Path) -> None:
    touch(folder / "z" / "x.pdf")
    before = keys(expand([str(folder)], recursive=True))
    (folder / "a").symlink_to(folder / "z")
    assert keys(expand([str(folder)], recursive=True)) == before == ["z/x.pdf"]


def test_links_to_files_are_documents_and_broken_ones_are_said(folder: Path) -> None:
    touch(folder / "x.pdf")
    (folder / "latest.pdf").symlink_to("x.pdf")
    (folder / "lost.pdf").symlink_to("nowhere.pdf")
    found = expand([str(folder)])
    assert keys(found) == ["latest.pdf", "lost.pdf", "x.pdf"]
    assert kinds(found) == [None, FailureKind.NOT_FOUND, None]
    assert found[1].failure is not None
    assert found[1].failure.message == "a link that leads to no file"


def test_pipes_and_devices_are_never_opened(folder: Path) -> None:
    """Opening a pipe nobody writes to would wait for ever."""
    os.mkfifo(folder / "pipe.pdf")
    found = expand([str(folder), str(folder / "pipe.pdf"), "/dev/null"])
    assert keys(found) == ["pipe.pdf", "null"]
    assert kinds(found) == [FailureKind.UNREADABLE] * 2


def test_a_folder_that_cannot_be_listed_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(folder / "a.pdf")
    touch(folder / "closed" / "b.pdf")
    real = os.scandir

    def scandir(path: str):  # type: ignore[no-untyped-def]  # root may list every folder
        if path.endswith(("closed", "closed/")):
            raise PermissionError(13, "no")
        return real(path)

    monkeypatch.setattr(documents.os, "scandir", scandir)
    found = expand([str(folder)], recursive=True)
    assert keys(found) == ["a.pdf", "closed"]
    assert kinds(found) == [None, FailureKind.UNREADABLE]
    (alone,) = expand([str(folder / "closed")])
    assert (alone.key, alone.source) == ("closed", str(folder / "closed"))
    assert kinds([alone]) == [FailureKind.UNREADABLE]


def test_a_missing_path_among_good_ones(folder: Path) -> None:
    a, b = touch(folder / "a.pdf"), touch(folder / "b.pdf")
    missing = [str(folder / "no.pdf"), str(folder / "no" / "x.pdf"), str(a / "x.pdf"), f"{b}/", "", "a\0b"]
    found = expand([str(a), *missing, str(b)])
    assert kinds(found) == [None, *[FailureKind.NOT_FOUND] * 6, None]
    assert len(set(keys(found))) == len(found)
    assert all(document.failure.retryable for document in found if document.failure)


def test_a_nul_byte_is_survived_beside_output(folder: Path) -> None:
    assert kinds(expand(["a\0b", "a\0*"], exclude=[str(folder)])) == [FailureKind.NOT_FOUND] * 2


def test_a_name_too_long_for_the_system_is_no_crash() -> None:
    assert kinds(expand(["x" * 300 + ".pdf", "y/" * 3000])) == [FailureKind.UNREADABLE] * 2


# ------------------------------------------------------------------------------------------ globs


@pytest.fixture
def tree(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "a1.pdf", "a2.PNG", "a10.pdf", "notes.txt", "d.dat",
        "sub/b.pdf", "sub/.h.pdf", "sub/deep/c.pdf", ".hid/e.pdf", "[1]/f.pdf", "1/g.pdf",
    ):  # fmt: skip
        touch(folder / name)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.pdf", ["a1.pdf", "a10.pdf"]),
        ("a?.*", ["a1.pdf", "a2.PNG"]),
        ("*", ["1/g.pdf", "[1]/f.pdf", "a1.pdf", "a2.PNG", "a10.pdf", "sub/b.pdf", "sub/.h.pdf"]),
        ("*.dat", ["d.dat"]),
        ("*/*.pdf", ["1/g.pdf", "[1]/f.pdf", "sub/b.pdf"]),
        ("s*/deep/c.pdf", ["sub/deep/c.pdf"]),
        ("**/*.pdf", ["1/g.pdf", "[1]/f.pdf", "a1.pdf", "a10.pdf", "sub/b.pdf", "sub/deep/c.pdf"]),
        ("sub/**", ["b.pdf", "deep/c.pdf"]),
        ("sub/**/c.pdf", ["deep/c.pdf"]),
        ("sub/.*", [".h.pdf"]),
        ("[1]/*.pdf", ["f.pdf"]),  # the folder of that name, not the pattern
        ("[12]/*.pdf", ["1/g.pdf"]),
        ("*[!0-9].pdf", ["*[!0-9].pdf"]),
        ("no/*.pdf", ["*.pdf"]),
    ],
)
def test_globs(tree: Path, pattern: str, expected: list[str]) -> None:
    for prefix in ("", "./", "sub/../", f"{tree}/"):
        found = expand([prefix + pattern])
        assert sorted(keys(found)) == sorted(expected), prefix
        missing = expected[0] in pattern
        assert all((kind is FailureKind.NOT_FOUND) == missing for kind in kinds(found))


def test_globs_are_in_natural_order(tree: Path) -> None:
    assert keys(expand(["a*"])) == ["a1.pdf", "a2.PNG", "a10.pdf"]
    assert keys(expand(["**/*.pdf"]))[-4:] == ["a1.pdf", "a10.pdf", "sub/b.pdf", "sub/deep/c.pdf"]


def test_a_glob_follows_no_link_in_circles(tree: Path) -> None:
    """Two links back up would be two to the fortieth paths."""
    (tree / "sub" / "loop").symlink_to(tree / "sub")
    (tree / "sub" / "pool").symlink_to(tree / "sub")
    assert keys(expand(["sub/**/*.pdf"])) == ["b.pdf", "deep/c.pdf"]


# ------------------------------------------------------------------------- twice, output, min-age


def test_a_file_that_is_reached_twice_is_taken_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a = touch(folder / "a.pdf")
    (folder.parent / "alias").symlink_to(folder)
    monkeypatch.chdir(folder)
    paths = [str(a), str(a), "a.pdf", "./a.pdf", "../in/a.pdf", ".", "*.pdf", "../alias/a.pdf", "../alias"]
    (document,) = expand(paths)
    assert (document.source, document.number) == (str(a), 0)


def test_the_same_name_in_two_folders_has_two_keys(folder: Path) -> None:
    for name in ("a/README.pdf", "b/README.pdf", "c/b/README.pdf"):
        touch(folder / name)
    paths = [str(folder / "a"), str(folder / "b"), str(folder / "c" / "b" / "README.pdf")]
    assert keys(expand(paths)) == ["README.pdf", "b/README.pdf", "c/b/README.pdf"]
    assert keys(expand(paths[:1])) == ["README.pdf"]  # the first stays what it is alone


def test_keys_stay_unique_when_folders_run_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose whole path is the path of another one below its argument."""
    monkeypatch.setattr(documents.os.path, "abspath", lambda path: "/" + path.lstrip("/"))
    taken: set[str] = set()
    for _ in range(3):
        key = documents._unique("b.pdf", "/b.pdf", taken)
        assert key not in taken
        taken.add(key)
    assert taken == {"b.pdf", "b.pdf~2", "b.pdf~3"}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(["", "..", ".", "/", "//", "a", "a/b.pdf", "./b.pdf", "../b.pdf", "/x/b.pdf"]))
)
def test_no_key_leads_out_of_a_folder(tmp_path: Path, paths: list[str]) -> None:
    taken: set[str] = set()
    for number, path in enumerate(paths):
        key = documents._unique(path, f"/x/{number}/y/{path}", taken)
        assert key not in taken
        assert not key.startswith("/")
        assert ".." not in key.split("/")
        taken.add(key)


def test_output_in_the_input_folder_is_no_input(folder: Path) -> None:
    for name in ("a.pdf", "out/a.pdf", "outer/b.pdf", "log.png"):
        touch(folder / name)
    (folder.parent / "link").symlink_to(folder / "out")
    exclude = [str(folder.parent / "link"), str(folder / "log.png"), str(folder / "not_yet.jsonl")]
    assert keys(expand([str(folder)], recursive=True, exclude=exclude)) == ["a.pdf", "outer/b.pdf"]
    assert keys(expand([str(folder / "*.p*")], exclude=exclude)) == ["a.pdf"]


def test_a_folder_for_input_and_output_is_input(folder: Path) -> None:
    a = touch(folder / "a.pdf")
    for path in (folder, folder / "*.pdf", a):
        assert keys(expand([str(path)], exclude=[str(folder)])) == ["a.pdf"]


def test_files_still_being_written_are_left_out(folder: Path) -> None:
    now = time.time()
    for name, age in (("new", 0), ("skewed", -5), ("old", 100), ("future", -10_000)):
        touch(folder / f"{name}.pdf")
        os.utime(folder / f"{name}.pdf", (now - age, now - age))
    assert len(expand([str(folder)])) == 4
    found = expand([str(folder), str(folder / "missing.pdf")], min_age_s=60)
    assert keys(found) == ["future.pdf", "old.pdf", "missing.pdf"]
    assert [document.number for document in found] == [0, 1, 2]


def test_ten_thousand_files_are_found_quickly(folder: Path) -> None:
    for number in range(10_000):
        os.close(os.open(folder / f"page{number}.png", os.O_CREAT))
    began = time.process_time()
    found = expand([str(folder)], exclude=[str(folder / "out")])
    assert time.process_time() - began < 2
    assert keys(found) == [f"page{number}.png" for number in range(10_000)]


# ------------------------------------------------------------------------------- lists and ranges


def test_lists_of_files() -> None:
    assert read_list("a.pdf\nb c.pdf\n") == ["a.pdf", "b c.pdf"]
    assert read_list("a.pdf\r\nb.pdf\r\n\r\n  \r\nc.pdf") == ["a.pdf", "b.pdf", "c.pdf"]
    assert read_list("\ufeffa.pdf\n") == ["a.pdf"]
    assert read_list(" a \n#b\n[1].pdf") == [" a ", "#b", "[1].pdf"]
    assert read_list("") == []
    assert read_list("a b.pdf\0c\nd.pdf\0") == ["a b.pdf", "c\nd.pdf"]


@given(st.lists(st.text(st.characters(exclude_characters="\r\n\ufeff\0"), min_size=1)))
def test_a_list_gives_back_each_name(names: list[str]) -> None:
    """Names may hold characters that Python takes for line ends, such as U+2028 and form feeds."""
    names = [name for name in names if name.strip()]
    assert read_list("\n".join(names)) == names
    assert read_list("\r\n".join(names)) == names


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("1", [(1, 1)]),
        ("1-3,7,10-end", [(1, 3), (7, 7), (10, None)]),
        (" 2 - 4 , 9 ", [(2, 4), (9, 9)]),
        ("5-5,5", [(5, 5), (5, 5)]),
        ("007", [(7, 7)]),
        ("999999999", [(999999999, 999999999)]),
    ],
)
def test_page_ranges(spec: str, expected: list[tuple[int, int | None]]) -> None:
    assert parse_pages(spec) == expected


@pytest.mark.parametrize(
    "spec",
    ["", " ", ",", "1,", ",1", "1,,2", "0", "0-3", "-3", "3-", "end", "end-3", "1-END", "a", "1.5", "1-2-3",
     "3-1", "²", "1 2", "1;2", "1-0", "9999999999", "+1", "1\n2"],
)  # fmt: skip
def test_page_ranges_that_make_no_sense(spec: str) -> None:
    with pytest.raises(UsageError):
        parse_pages(spec)


RANGES = st.lists(
    st.tuples(st.integers(1, 60), st.none() | st.integers(0, 30)).map(
        lambda pair: (pair[0], None if pair[1] is None else pair[0] + pair[1])
    ),
    min_size=1,
    max_size=5,
)


@given(RANGES)
def test_page_ranges_survive_the_way_through_text(ranges: list[tuple[int, int | None]]) -> None:
    spec = ",".join(f"{first}-{'end' if last is None else last}" for first, last in ranges)
    assert parse_pages(spec) == ranges


@given(RANGES, st.integers(0, 50))
def test_selected_pages_are_those_in_a_range(ranges: list[tuple[int, int | None]], pages: int) -> None:
    chosen, beyond = select_pages(ranges, pages)
    wanted = [
        page
        for page in range(1, pages + 1)
        if any(first <= page and (last is None or page <= last) for first, last in ranges)
    ]
    assert chosen == wanted
    assert beyond == any(first > pages or (last or 0) > pages for first, last in ranges)


def test_all_pages_without_a_range_and_huge_ranges_cost_nothing() -> None:
    assert select_pages(None, 3) == ([1, 2, 3], False)
    assert select_pages(None, 0) == ([], False)
    assert select_pages([(1, 999_999_999)], 2) == ([1, 2], True)


@given(st.text(max_size=12))
def test_any_text_is_a_range_or_a_clear_error(spec: str) -> None:
    message = ""
    ranges: list[tuple[int, int | None]] = []
    try:
        ranges = parse_pages(spec)
    except UsageError as error:
        message = error.message
    assert bool(ranges) != ("--pages" in message)
    assert all(first >= 1 and (last is None or last >= first) for first, last in ranges)
