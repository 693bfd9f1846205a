"""The program from outside: exit codes, streams, and messages."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import hiresvlm.cli
from hiresvlm import engines
from hiresvlm.cli import options
from hiresvlm.engines.echo import EchoEngine
from hiresvlm.errors import EngineLoadError, UsageError
from tests.support import cli, command, make_pdf, make_png, read_records, records
from tests.test_record import SCHEMA

HEAVY = ("numpy", "cv2", "pymupdf", "PIL", "torch", "onnxruntime", "rapidocr", "transformers")


@pytest.fixture
def three(folder: Path) -> Path:
    """A folder with three good pages."""
    make_pdf(folder / "a.pdf", [["secret one"], ["secret two"]])
    make_png(folder / "b.png")
    return folder


def echo(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return cli("ocr", *arguments, "--engine", "echo", **options)


def main(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """The program in this process."""
    monkeypatch.setattr(sys, "argv", ["hiresvlm", *map(str, arguments)])
    saved = os.dup(1)
    try:
        with pytest.raises(SystemExit) as end:
            hiresvlm.cli.main()
    finally:
        os.dup2(saved, 1)
        os.close(saved)
    assert isinstance(end.value.code, int)
    return int(end.value.code)


# --------------------------------------------------------------------------------------- exit codes


def test_0_all_pages_ok(three: Path) -> None:
    done = echo(three)
    assert done.returncode == 0
    found = records(done.stdout)
    assert [(Path(r["source"]).name, r["page"]) for r in found] == [("a.pdf", 1), ("a.pdf", 2), ("b.png", 1)]
    for record in found:
        jsonschema.validate(record, SCHEMA)
    assert "3 ok" in done.stderr
    assert "secret" not in done.stderr


def test_1_an_error_of_our_own(
    three: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    class Broken(EchoEngine):
        def generate(self, feed: Any) -> Any:
            raise ZeroDivisionError("secret text")

    monkeypatch.setattr(hiresvlm.engines.echo, "EchoEngine", Broken)
    assert main(monkeypatch, "ocr", three, "--engine", "echo", "-q") == 1
    error = capfd.readouterr().err
    assert (
        error == "hiresvlm: unexpected ZeroDivisionError\n  run it again with -v and report what it prints\n"
    )
    assert main(monkeypatch, "ocr", three, "--engine", "echo", "-q", "-v") == 1
    assert "Traceback" in capfd.readouterr().err


BAD = [
    (["--bogus"], "No such option"),
    (["--engine", "ecko"], "did you mean echo?"),
    (["--engine", "zzz"], "choose one of auto, light, vlm, echo"),
    (["--strategy", "hole"], "did you mean whole?"),
    (["--text-layer", "yes"], "choose one of"),
    (["--pages", "3-1"], "backwards"),
    (["--pages", "0"], "pages count from 1"),
    (["--slots", "²"], "--slots"),
    (["--slots", "0"], "--slots"),
    (["--max-runtime", "soon"], "--max-runtime"),
    (["--min-age", "-5"], "--min-age"),
    (["--format", "md"], "--output-dir"),
    (["--output-dir", "d"], "--format"),
    (["--format", "docx", "--output-dir", "d"], "choose one of jsonl, md, txt"),
    (["--format", "md", "--output-dir", "d", "-o", "-"], "must be a file"),
    (["--password-file", "none"], "No such file"),
    (["--prompt", "in/b.png"], "not UTF-8"),
    (["--prompt", "empty"], "is empty"),
    (["--files-from", "none"], "No such file"),
    (["--max-tokens-per-page", "3"], "16"),
    (["--workers", "many"], "workers"),
    (["--report", "x", "--log-file", "./x"], "same file"),
    (["-o", "x", "--report", "link"], "same file"),
    (["--report", "in/b.png"], "looks like a document"),
    (["--log-file", "in/a.pdf"], "looks like a document"),
    (["in/b.png", "-o", "in/b.png"], "also an input"),
]


@pytest.mark.parametrize(("arguments", "said"), BAD)
def test_2_an_option_error_runs_nothing(
    three: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    arguments: list[str],
    said: str,
) -> None:
    top = three.parent
    monkeypatch.chdir(top)
    (top / "empty").touch()
    (top / "link").symlink_to("x")
    before = sorted(top.rglob("*"))
    common = [] if "--engine" in arguments else ["--engine", "echo"]
    assert main(monkeypatch, "ocr", "in", *common, *arguments) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert len(captured.err.splitlines()) <= 2  # a sentence and a hint
    assert sorted(top.rglob("*")) == before


@pytest.mark.parametrize("arguments", [["ocr"], ["nonsense"], ["plan"], []])
def test_2_without_a_path_or_a_command(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    assert main(monkeypatch, *arguments) == 2


def test_3_some_pages_failed_or_a_path_is_missing(three: Path, tmp_path: Path) -> None:
    (three / "c.pdf").write_bytes(b"junk")
    done = echo(three, three / "missing.pdf", "-o", tmp_path / "out.jsonl")
    assert done.returncode == 3
    assert [r["status"] for r in read_records(tmp_path / "out.jsonl")] == ["ok"] * 3 + ["failed"] * 2
    again = echo(three, three / "missing.pdf", "-o", tmp_path / "out.jsonl")
    assert again.returncode == 3  # still so, although nothing was done


def test_stdout_keeps_the_order_of_documents_whatever_becomes_of_them(folder: Path) -> None:
    """A document that fails, or has no page to give, must not hold back those after it."""
    make_pdf(folder / "1.pdf", [["one"], ["two"]])
    (folder / "2.pdf").write_bytes(b"junk")
    make_png(folder / "3.png")
    make_pdf(folder / "4.pdf", [["one"], [], ["three"]])
    names = ["1.pdf", "missing.pdf", "2.pdf", "3.png", "4.pdf"]
    done = echo(*(folder / name for name in names), "--pages", "2-3", "--workers", "3")
    assert done.returncode == 3
    assert [(Path(r["source"]).name, r["page"]) for r in records(done.stdout)] == [
        ("1.pdf", 2),
        ("missing.pdf", None),
        ("2.pdf", None),
        ("4.pdf", 2),
        ("4.pdf", 3),
    ]


def test_4_no_input(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "notes.txt").touch()
    for arguments in ([folder], [folder / "x*.pdf"], ["missing.pdf", "gone.pdf"]):
        assert main(monkeypatch, "ocr", *arguments, "--engine", "echo") == 4
        assert "hiresvlm: no " in capfd.readouterr().err
    out, report = tmp_path / "out.jsonl", tmp_path / "report.json"
    common = ["--engine", "echo", "--allow-empty", "-o", out, "--report", report]
    assert main(monkeypatch, "ocr", folder, *common) == 0
    assert out.read_bytes() == b""
    assert json.loads(report.read_text())["documents"] == 0


def test_5_an_engine_that_cannot_be_loaded(
    three: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for error in (EngineLoadError("no model here", "get one"), RuntimeError("/secret"), ImportError("x")):

        class Absent(EchoEngine):
            def __init__(self, settings: Any, error: Exception = error) -> None:
                raise error

        monkeypatch.setattr(hiresvlm.engines.echo, "EchoEngine", Absent)
        out = tmp_path / "out.jsonl"
        assert main(monkeypatch, "ocr", three, "--engine", "echo", "-o", out) == 5
        said = capfd.readouterr().err
        assert "Traceback" not in said
        assert "secret" not in said
        assert ("no model here" in said) == isinstance(error, EngineLoadError)
        assert out.read_bytes() == b""


@pytest.mark.parametrize(
    "arguments",
    [
        ["-o", "missing/out.jsonl"],
        ["-o", "in"],
        ["-o", "foreign"],
        ["-o", "/dev/full"],
        ["--report", "missing/r.json"],
        ["--report", "in"],
        ["--log-file", "missing/log"],
        ["--format", "md", "--output-dir", "foreign"],
    ],
)
def test_6_an_output_that_cannot_be_written(
    three: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(three.parent)
    (three.parent / "foreign").write_text("milk")
    assert main(monkeypatch, "ocr", "in", "--engine", "echo", "-q", *arguments) == 6
    captured = capfd.readouterr()
    assert captured.out == ""  # known before the run
    assert captured.err.startswith("hiresvlm: ")
    assert "Traceback" not in captured.err
    assert (three.parent / "foreign").read_text() == "milk"


def test_6_a_full_disk_keeps_whole_lines_and_a_rerun_completes(folder: Path, tmp_path: Path) -> None:
    make_pdf(folder / "a.pdf", [[f"page {n}"] for n in range(8)])
    out = tmp_path / "out.jsonl"
    limited = ["bash", "-c", 'ulimit -f 4; exec "$@"', "-", *command("ocr", folder, "--engine", "echo")]
    done = subprocess.run([*limited, "-o", str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 6
    assert "goes on" in done.stderr or "limit" in done.stderr
    first = read_records(out)
    assert 0 < len(first) < 8
    assert echo(folder, "-o", out).returncode == 0
    assert [r["page"] for r in read_records(out)] == list(range(1, 9))
    assert {r["run"] for r in first} < {r["run"] for r in read_records(out)}


def test_7_another_run_holds_the_output(three: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.jsonl"
    with open(out, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert main(monkeypatch, "ocr", three, "--engine", "echo", "-o", out) == 7
        assert main(monkeypatch, "ocr", three, "--engine", "echo", "-o", out, "--no-resume") == 7
    assert main(monkeypatch, "ocr", three, "--engine", "echo", "-o", out) == 0


def test_130_out_of_time_and_on_again(three: Path, tmp_path: Path) -> None:
    out, report = tmp_path / "out.jsonl", tmp_path / "report.json"
    done = echo(three, "-o", out, "--max-runtime", "0s", "--report", report)
    assert done.returncode == 130
    assert "--max-runtime is over" in done.stderr
    assert "run the same command again" in done.stderr
    assert json.loads(report.read_text())["interrupted"] is True
    assert echo(three, "-o", out, "--max-runtime", "1h").returncode == 0
    assert len(read_records(out)) == 3


# ------------------------------------------------------------------------------------------ imports


def test_help_and_a_rerun_with_nothing_to_do_import_nothing_heavy(three: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert echo(three, "-o", out).returncode == 0
    code = (
        "import sys, json, hiresvlm.cli\n"
        "try: hiresvlm.cli.main()\n"
        "except SystemExit as end: code = end.code\n"
        f"print(code, [m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    runs = [["ocr", str(three), "--engine", "echo", "-o", str(out)]]
    runs += [[*name, "--help"] for name in ([], ["ocr"], ["plan"], ["bench"], ["doctor"])]
    for arguments in runs:
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
        )
        assert done.stderr.splitlines()[-1] == "0 []", (arguments, done.stderr)


def test_help_names_every_option_once_and_the_version_is_printed() -> None:
    shown = cli("ocr", "--help", env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}).stdout
    for option in ("--output", "--files-from", "--max-runtime", "--no-resume", "--retry-errors", "--quiet"):
        assert option in shown
    assert re.fullmatch(r"hiresvlm \d+\.\d+\.\d+\n", cli("--version").stdout)


# ------------------------------------------------------------------------------------------ streams


NOISY = """
import os, subprocess, sys
import hiresvlm.cli
from hiresvlm.engines import echo

class Noisy(echo.EchoEngine):
    def __init__(self, settings):
        print("from Python")  # stays in the buffer until the end
        super().__init__(settings)

    def generate(self, feed):
        for reply in super().generate(feed):
            print("from Python", flush=True)
            os.write(1, b"from C\\n")
            subprocess.run(["echo", "from a child"], check=True)
            yield reply

echo.EchoEngine = Noisy
hiresvlm.cli.main()
"""


def test_stdout_is_json_alone_although_an_engine_prints(three: Path, tmp_path: Path) -> None:
    run = [sys.executable, "-c", NOISY, "ocr", str(three), "--engine", "echo"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert len(records(done.stdout)) == 3
    counts = [done.stderr.count(f"from {whom}") for whom in ("Python", "C\n", "a child")]
    assert counts == [4, 3, 3]
    run += ["-o", str(tmp_path / "out.jsonl")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert len(read_records(tmp_path / "out.jsonl")) == 3


def shell(line: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a shell line in which "$@" is the program with its arguments."""
    return subprocess.run(
        ["bash", "-c", line, "-", *command(*arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


@pytest.mark.parametrize("kind", [["ocr"], ["plan", "--json"], ["plan"]])
def test_head_ends_quietly(folder: Path, kind: list[str]) -> None:
    make_pdf(folder / "a.pdf", [[f"page {n}"] for n in range(30)])
    line = '"$@" | head -n 1; echo "${PIPESTATUS[0]}"'
    done = shell(line, *kind, folder, "--engine", "echo", "-q")
    *_, code = done.stdout.splitlines()
    assert code == "0"
    assert done.stderr == ""


def test_closed_streams(three: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = shell('"$@" >&-', "ocr", three, "--engine", "echo")
    assert done.returncode == 6
    assert "stdout" in done.stderr
    done = shell('"$@" >&- 2>&- <&-', "ocr", three, "--engine", "echo", "-o", out)
    assert done.returncode == 0
    assert len(read_records(out)) == 3
    done = shell('"$@" <&-', "ocr", "--files-from", "-", "--engine", "echo")
    assert done.returncode == 2
    assert "stdin" in done.stderr
    for arguments in (["doctor", "--help"], ["plan", three, "--engine", "echo"], ["--version"]):
        done = shell('"$@" >&-', *arguments)
        assert done.returncode == 0
        assert "Traceback" not in done.stderr


def test_a_reader_of_messages_that_is_gone_costs_no_record(three: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = shell(
        '"$@" 2>&1 >/dev/null | true; echo "${PIPESTATUS[0]}"', "ocr", three, "--engine", "echo", "-o", out
    )
    assert done.stdout == "0\n"
    assert len(read_records(out)) == 3


def test_files_from_stdin_and_from_a_file(three: Path, tmp_path: Path) -> None:
    names = f"{three / 'a.pdf'}\r\n\n{three / 'b.png'}\n"
    done = echo("--files-from", "-", "--pages", "1", input=names)
    assert [Path(r["source"]).name for r in records(done.stdout)] == ["a.pdf", "b.png"]
    (tmp_path / "list").write_text(names)
    done = echo(three / "b.png", "--files-from", tmp_path / "list")
    assert [Path(r["source"]).name for r in records(done.stdout)] == ["b.png", "a.pdf", "a.pdf"]
    assert echo("--files-from", "-", input="").returncode == 4


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
def test_names_of_stdout(three: Path, tmp_path: Path, name: str) -> None:
    with open(tmp_path / "file", "w") as file:
        done = echo(three / "b.png", "-o", name, capture_output=False, stdout=file, stderr=subprocess.PIPE)
    assert done.returncode == 0
    assert len(read_records(tmp_path / "file")) == 1


def test_devices_and_pipes_as_output(three: Path, tmp_path: Path) -> None:
    null = os.stat("/dev/null")
    done = echo(three / "b.png", "-o", "/dev/null", "--report", "/dev/null", "--log-file", "/dev/null")
    assert done.returncode == 0
    assert os.stat("/dev/null").st_rdev == null.st_rdev
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = subprocess.Popen(["cat", fifo], stdout=subprocess.PIPE, text=True)
    assert echo(three, "-o", fifo).returncode == 0
    assert len(records(reader.communicate()[0])) == 3
    done = shell(
        '"$@" -o >(cat >&2) 2>/dev/null; sleep 0.3', "ocr", three / "b.png", "--engine", "echo", "-q"
    )
    assert done.returncode == 0


# ------------------------------------------------------------------------------------------ options


def test_folders_below_are_named_when_they_are_not_searched(three: Path) -> None:
    (three / "below").mkdir()
    assert "not searched: 1" in echo(three).stderr
    assert "not searched" not in echo(three, "-r").stderr


def test_an_instruction_that_no_model_follows_is_said(three: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "prompt"
    prompt.write_text("Translate it.")
    assert "--prompt changes nothing" in echo(three, "--prompt", prompt).stderr


def test_failed_documents_are_named(folder: Path) -> None:
    (folder / "a.pdf").write_bytes(b"")
    for quiet in ((), ("-q",)):
        assert "a.pdf: failed, the file is empty" in echo(folder, *quiet).stderr


def test_young_files_are_left_for_later(three: Path) -> None:
    old = time.time() - 3600
    os.utime(three / "b.png", (old, old))
    done = echo(three, "--min-age", "10m")
    assert [Path(r["source"]).name for r in records(done.stdout)] == ["b.png"]
    done = echo(three, "--min-age", "2h")
    assert done.returncode == 4
    assert "--min-age" in done.stderr


def test_pages_out_of_range_are_a_warning(three: Path) -> None:
    done = echo(three, "--pages", "2-9", "-q")
    assert done.returncode == 0
    (record,) = records(done.stdout)
    assert (record["page"], record["warnings"][0]["kind"]) == (2, "page_range")
    assert done.stderr == "--pages 2-9: 2 documents have fewer pages, 1 have none of these pages\n"


def test_passwords_come_from_a_file_or_the_environment(folder: Path, tmp_path: Path) -> None:
    make_pdf(folder / "a.pdf", [["hidden"]], encryption=4, user_pw="secret", owner_pw="other")
    for text, code in (("secret\nnot this line\n", 0), ("wrong\n", 3), ("\ufeffsecret\r\n", 0)):
        (tmp_path / "password").write_text(text, newline="")
        done = echo(folder, "--password-file", tmp_path / "password")
        assert done.returncode == code
        assert "secret" not in done.stdout + done.stderr
    done = echo(folder, env={**os.environ, "HIRESVLM_PASSWORD": "secret"})
    assert done.returncode == 0
    done = echo(folder)
    assert records(done.stdout)[0]["failures"][0]["kind"] == "encrypted"


def test_names_with_control_characters_are_shown_escaped(folder: Path) -> None:
    odd = folder / "\x1b[31mred\n\x9b.png"
    make_png(folder / "x.png").rename(odd)
    done = echo(folder, folder / "gone\x1b]0;title\x07.pdf", "-v")
    assert done.returncode == 3
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", done.stderr)
    assert "\x1b" not in done.stdout
    assert records(done.stdout)[0]["source"] == str(odd)
    for command_line in (["ocr", "no\x1b[2J.pdf"], ["ocr", "--\x1b[2J"], ["ocr", "x", "--pages", "\x1b"]):
        done = cli(*command_line)
        assert done.returncode in {2, 4}
        assert "\x1b" not in done.stderr + done.stdout


@pytest.mark.parametrize("locale", [{}, {"LANG": "C"}, {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0"}])
def test_a_bare_environment(folder: Path, tmp_path: Path, locale: dict[str, str]) -> None:
    """As in cron: no HOME, no PATH, no locale, the root as current folder."""
    make_png(folder / "中é.png")
    source = os.fsencode(folder) + b"/caf\xe9.png"
    os.rename(folder / "中é.png", source)
    make_png(folder / "中.png")
    out = tmp_path / "out.jsonl"
    done = subprocess.run(
        [*command("ocr", folder, "--engine", "echo", "-o", out)],
        env=locale,
        cwd="/",
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr
    assert [Path(r["source"]).name for r in read_records(out)] == ["caf\udce9.png", "中.png"]
    for extra in ([], ["--json"]):
        done = subprocess.run(
            command("plan", folder, "--engine", "echo", *extra),
            env=locale,
            cwd="/",
            check=False,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr
        assert "中" in done.stdout.decode()


def test_quiet_says_nothing_when_all_is_well(three: Path) -> None:
    assert echo(three, "-q").stderr == ""


def test_the_engine_that_auto_picks_is_said_with_the_reason(folder: Path, tmp_path: Path) -> None:
    make_pdf(folder / "a.pdf", [[]])  # blank: no model is loaded
    done = cli("ocr", folder, "-o", tmp_path / "out.jsonl")
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if line.startswith("engine: light (")]


def test_report_and_log_hold_no_text_of_documents(folder: Path, tmp_path: Path) -> None:
    make_pdf(folder / "a.pdf", [["confidential words"]])
    report, log = tmp_path / "report.json", tmp_path / "log"
    common = ["--text-layer", "auto", "--report", report, "--log-file", log]
    done = echo(folder, folder / "missing.pdf", *common)
    assert done.returncode == 3
    data = json.loads(report.read_text())
    assert data["documents"] == 2
    assert data["pages"] == {"ok": 1, "partial": 0, "failed": 1}
    assert data["failures"] == {"not_found": 1}
    assert data["engine"]["name"] == "echo"
    assert data["latency_ms"]["total"]["p95"] > 0
    assert "2/2 pages, 1 failed or partial" in log.read_text()
    assert "words" not in report.read_text() + log.read_text() + done.stderr
    done = echo(tmp_path / "nothing.pdf", "--log-file", log)
    assert "ERROR no such file" in log.read_text()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in", "log", "report.json"]


def test_a_report_through_a_link_keeps_the_link(three: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    assert echo(three / "b.png", "--report", tmp_path / "link").returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "real").read_text())["documents"] == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("60s", 60), ("15m", 900), ("1h30m", 5400), ("0.5h", 1800), ("2d", 172800)],
)
def test_times(text: str, seconds: float) -> None:
    assert options.duration(text, "--x") == seconds


@pytest.mark.parametrize("text", ["", "m", "5 m", "-5", "1w", "1h-", "1.2.3"])
def test_times_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        options.duration(text, "--x")


# --------------------------------------------------------------------------------- plan and doctor


def test_plan_for_people_and_for_machines(three: Path) -> None:
    done = cli("plan", three, "--engine", "echo", "--strategy", "whole", "--strategy", "fixed")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 9
    assert "secret" not in done.stdout + done.stderr
    assert lines[1].split()[:3] == ["whole", "1", "chunks"]
    done = cli("plan", three, "--engine", "echo", "--json", "--pages", "2-end")
    (page,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert page["page"] == 2
    assert page["naive"] == {"28": 4352, "32": 3332}
    assert set(page["strategies"]) == set(options.STRATEGIES)
    assert "1 pages" in done.stderr
    assert done.returncode == 0


def test_plan_saves_pictures_below_their_folder(three: Path, tmp_path: Path) -> None:
    (three / "sub").mkdir()
    make_png(three / "sub" / "b.png")
    for save in (tmp_path / "plans", three):
        done = cli("plan", three, "-r", "--engine", "echo", "--strategy", "whole", "--save", save, "--json")
        assert done.returncode == 0, done.stderr
        saved = [json.loads(line)["overlay"] for line in done.stdout.splitlines()]
        names = ["a.pdf.p1", "a.pdf.p2", "b.png.p1", "sub/b.png.p1"]
        assert saved == [str(save / f"{name}.plan.png") for name in names]
        assert all(os.path.getsize(name) for name in saved)
    done = cli("plan", three, "-r", "--engine", "echo", "--strategy", "whole", "--json")
    assert len(done.stdout.splitlines()) == 4  # pictures are no input


def test_plan_names_what_it_cannot_read(three: Path, tmp_path: Path) -> None:
    (three / "c.pdf").write_bytes(b"junk")
    done = cli("plan", three, "--engine", "echo", "--strategy", "whole")
    assert done.returncode == 3
    assert "c.pdf: not a PDF" in done.stderr
    assert done.stdout.count(" page ") == 3
    (tmp_path / "file").touch()
    done = cli("plan", three, "--engine", "echo", "--save", tmp_path / "file" / "x")
    assert done.returncode == 6
    assert cli("plan", three, "--strategy", "hole").returncode == 2


@pytest.mark.slow
def test_doctor_tells_what_is_there() -> None:
    data = json.loads(cli("doctor", "--json").stdout)
    assert set(data["engines"]) == set(engines.ENGINES)
    assert data["auto"]["picks"] in engines.ENGINES
    assert data["packages"]["pillow"]
    shown = cli("doctor")
    assert shown.returncode == 0
    assert "auto:" in shown.stdout
