"""The whole line of steps with engines that misbehave on purpose."""

from __future__ import annotations

from pathlib import Path

from hiresvlm.datatypes import Stop
from tests.support import ScriptedEngine, make_pdf, make_png, reply, run_pages


def test_one_record_a_page_in_order(folder: Path) -> None:
    make_pdf(folder / "b.pdf", [["one"], ["two"], ["three"]])
    make_png(folder / "a.png")
    engine = ScriptedEngine(lambda request: f"text {request.place.page}")
    records, report = run_pages([folder], engine)
    assert [(Path(r["source"]).name, r["page"], r["text"]) for r in records] == [
        ("a.png", 1, "text 1"),
        ("b.pdf", 1, "text 1"),
        ("b.pdf", 2, "text 2"),
        ("b.pdf", 3, "text 3"),
    ]
    assert report.status["ok"] == 4
    assert engine.closed == 1


def test_a_crash_costs_only_the_request_that_crashes_again(folder: Path) -> None:
    make_pdf(folder / "a.pdf", [[f"page {n}"] for n in range(6)])
    engine = ScriptedEngine(lambda r: RuntimeError("secret text") if r.place.page == 3 else "fine")
    records, _ = run_pages([folder], engine)
    assert [r["status"] for r in records] == ["ok", "ok", "failed", "ok", "ok", "ok"]
    (failure,) = records[2]["failures"]
    assert (failure["step"], failure["kind"], failure["retryable"]) == ("engine", "engine", True)
    assert "secret" not in str(records[2])


def test_out_of_memory_once_is_no_loss(folder: Path) -> None:
    make_pdf(folder / "a.pdf", [[f"page {n}"] for n in range(4)])
    tries: list[int] = []

    def script(request):  # type: ignore[no-untyped-def]
        tries.append(request.place.page)
        return MemoryError() if tries.count(2) == 1 and request.place.page == 2 else "fine"

    records, _ = run_pages([folder], ScriptedEngine(script))
    assert [r["status"] for r in records] == ["ok"] * 4


def test_out_of_memory_for_good_is_a_typed_failure(folder: Path) -> None:
    make_png(folder / "a.png")
    records, _ = run_pages([folder], ScriptedEngine(lambda request: MemoryError()))
    assert records[0]["failures"][0]["kind"] == "out_of_memory"


def test_a_reply_cut_off_at_the_limit_is_partial(folder: Path) -> None:
    make_png(folder / "a.png")
    engine = ScriptedEngine(lambda request: reply(request, "half of the", stop=Stop.LENGTH))
    (record,), _ = run_pages([folder], engine)
    assert record["status"] == "partial"
    assert record["text"] == "half of the"
    assert record["failures"][0]["kind"] == "truncated"
    assert record["chunks"][0]["stop"] == "length"


def test_empty_text_on_an_inked_page_is_a_doubt(folder: Path) -> None:
    make_png(folder / "a.png")
    (record,), _ = run_pages([folder], ScriptedEngine(lambda request: ""))
    assert record["status"] == "ok"
    assert [w["kind"] for w in record["warnings"]] == ["no_text"]


def test_replies_nobody_asked_for_and_silence_are_survived(folder: Path) -> None:
    make_pdf(folder / "a.pdf", [["one"], ["two"]])

    class Mute(ScriptedEngine):
        def generate(self, feed):  # type: ignore[no-untyped-def]
            while requests := feed.take(1, wait=True):
                for request in requests:
                    if request.place.page == 1:
                        yield reply(request, "once")
                        yield reply(request, "twice")

    records, _ = run_pages([folder], Mute(lambda request: ""))
    assert [r["text"] for r in records] == ["once", ""]
    assert records[1]["failures"][0]["message"] == "the engine gave no reply"


def test_control_characters_of_a_reply_go_nowhere(folder: Path) -> None:
    make_png(folder / "a.png")
    engine = ScriptedEngine(lambda request: "a\x1b[2Jb\x9bc\x07\r\nd\ud800e")
    (record,), _ = run_pages([folder], engine)
    assert record["text"] == "a[2Jbc\nde"
