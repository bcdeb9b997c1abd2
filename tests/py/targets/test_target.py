"""The engine as a target: command lines, and what its programs' output means."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tornpage.faults.preload import preload_environment
from tornpage.faults.process import ChildResult
from tornpage.oracle.promise import Promise
from tornpage.oracle.rules import Setting
from tornpage.store.rows import GoldenRunRow
from tornpage.targets.engine.target import EngineTarget
from tornpage.targets.registry import make_target
from tornpage.targets.target import RecoveryAnswer, read_run
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError, TargetError
from tornpage.vocabulary.model import Site, Violation

TARGET = EngineTarget(Path("/b/engine"), Path("/b/preload.so"))
CHECK = {
    "needs_recovery": False,
    "n_findings": 1,
    "findings": [{"invariant": 7, "path": "t1.ibd", "page": 3, "what": "keys descend"}],
    "tables": [
        {
            "name": "t1",
            "rows": 2,
            "hash": "00000000000000ff",
            "indexes": [{"name": "ib", "entries": 2, "hash": "0000000000000010"}],
        }
    ],
}


def child(code: int | None, stdout: str = "", stderr: str = "", signal: int = 0) -> ChildResult:
    """A child that ended like this."""
    return ChildResult(code, signal, False, 0.1, 0, 0, stdout.encode(), stderr.encode())


def recovery(code: int, **data: object) -> RecoveryAnswer:
    """The meaning of a recover command's JSON."""
    return TARGET.parse_recovery(child(code, "noise\n" + json.dumps(data) + "\n"))


def test_commands_name_options_directory_and_script() -> None:
    """Options go through --option, in their order."""
    command = TARGET.run_command(Path("/d"), Path("/s"), {"page_size": "4k", "doublewrite": "off"})
    assert command.argv == (
        "/b/engine", "run", "--json", "--option", "page_size=4k", "--option", "doublewrite=off", "/d", "/s"
    )  # fmt: skip
    assert TARGET.recover_command(Path("/d"), {}).argv == (
        "/b/engine", "recover", "--json", "--check", "--backups", "/d"
    )  # fmt: skip


def test_options_tell_what_may_be_asked() -> None:
    """Doublewrite that is off breaks no rule of it; a log that is not written at commit promises nothing."""
    for text, on in [("on", True), ("ON", True), ("1", True), ("off", False), ("0", False)]:
        assert TARGET.judge_setting({"doublewrite": text}) == Setting(4096, on)
    assert TARGET.judge_setting({"page_size": "16k"}) == Setting(16384, doublewrite=True)
    kept = [TARGET.promise({"flush_log_at_trx_commit": n}).durable for n in "012"]
    assert kept == [False, True, True]
    assert TARGET.promise({}) == Promise()


def test_recovery_tells_state_findings_and_counters() -> None:
    """A recovered database: digest, scanner findings under their numbers, counters by our names."""
    answer = recovery(1, ok=True, status={"recv_dblwr_restored": 4}, check=CHECK)
    assert answer.ok
    assert answer.state == {"t1": (2, 255, (("ib", 2, 16),))}
    assert answer.findings == (Violation(7, "page 3: keys descend", path="t1.ibd"),)
    assert answer.counters["dblwr_restored"] == 4


def test_unrecovered_image_after_recovery_is_a_finding() -> None:
    """The scanner must not say that recovery is still needed."""
    check = {**CHECK, "needs_recovery": True, "findings": []}
    assert [item.invariant for item in recovery(0, ok=True, status={}, check=check).findings] == [
        19
    ]


def test_refusal_needs_a_clear_message() -> None:
    """Exit 3 with a message is a refusal; without one it is a failure like a crash."""
    words = {"error": "DB_UNRECOVERABLE", "message": "torn page 3"}
    good = recovery(3, ok=False, **words)
    assert (good.ok, good.refused, good.message) == (False, True, "torn page 3")
    assert good.breaks is None
    silent = TARGET.parse_recovery(child(3))
    assert (silent.ok, silent.refused) == (False, False)


@pytest.mark.parametrize(
    ("name", "broken"),
    [("torn-page", 5), ("page-beyond-log", 4), ("page-differs", 27), ("log-header", 30)],
)
def test_a_refusal_says_what_is_broken(name: str, broken: int) -> None:
    """The engine names the cause; one that blames no page breaks I30."""
    answer = recovery(3, ok=False, error="DB_UNRECOVERABLE", refusal=name, message="no")
    assert answer.breaks == broken


def test_a_failed_file_operation_is_told_apart() -> None:
    """Exit 4 with a message: it stopped, and said so. Silence or a signal is neither."""
    stopped = recovery(4, ok=False, error="DB_IO_ERROR", message="t1.ibd: write failed")
    assert (stopped.ok, stopped.refused, stopped.stopped) == (False, False, True)
    assert stopped.message == "t1.ibd: write failed"
    assert not TARGET.parse_recovery(child(4)).stopped
    assert not TARGET.parse_recovery(child(None, signal=6)).stopped


@pytest.mark.parametrize(
    "result",
    [
        child(None, signal=11),
        child(0, "not json"),
        child(0, '{"ok": false}'),
        child(4, '{"ok": false, "message": "I/O"}'),
        child(1, "", "runtime error: load of misaligned address"),
    ],
)
def test_anything_else_is_no_recovery(result: ChildResult) -> None:
    """A crash, a sanitizer report, nonsense or an I/O error is neither success nor refusal."""
    answer = TARGET.parse_recovery(result)
    assert not answer.ok and not answer.refused and answer.message


def test_missing_database_is_told_apart() -> None:
    """Exit 6: there is no database yet, which is right before the first statement only."""
    assert recovery(6, ok=False, message="no database here").no_database


def test_run_answer_lists_failed_statements() -> None:
    """Line and error of each failed statement."""
    data = {
        "ok": True,
        "failed": [{"line": 7, "error": "DB_DUPLICATE_KEY"}],
        "status": {"page_size": 1},
    }
    assert TARGET.parse_run(child(0, json.dumps(data))).failed == {7: "DB_DUPLICATE_KEY"}
    assert not TARGET.parse_run(child(2, "", "engine: script line 3")).ok


def test_unknown_or_unbuilt_target_is_refused(tmp_path: Path) -> None:
    """A name that is not known, or programs that are not there."""
    with pytest.raises(ConfigError, match="no target 'oracle'; there are: bbolt, berkeleydb, "):
        make_target("oracle", tmp_path)
    for name in ("engine", "sqlite", "sqlite-modes"):
        with pytest.raises(TargetError, match=r"is missing: build it first \(make build\)"):
            make_target(name, tmp_path)


PAGE = {"space": "5", "type": "index", "load": "0", "index": "40", "level": "0"}


@pytest.mark.parametrize(
    ("file", "offset", "facts", "site"),
    [
        ("ib_logfile0", 512, {}, Site.CHECKPOINT_HEADER),
        ("ib_logfile0", 1536, {}, Site.CHECKPOINT_HEADER),
        ("ib_logfile0", 2048, {}, Site.REDO),
        ("ib_dblwr", 0, {}, Site.DOUBLEWRITE),
        ("t1.ibd", 0, {**PAGE, "type": "fsp_hdr"}, Site.PAGE0),
        ("t1.ibd", 4096, PAGE, Site.DATA_PAGE),
        ("t1.ibd", 4096, {**PAGE, "load": "1", "level": "1"}, Site.INDEX_LOAD_PAGE),
        ("t1.ibd", 4096, {**PAGE, "level": "2"}, Site.INTERNAL_PAGE),
        ("ibdata1", 4096, {**PAGE, "space": "0", "index": "17"}, Site.DICT_PAGE),
        ("ibdata1", 4096, {**PAGE, "type": "undo"}, Site.UNDO_PAGE),
        ("ibdata1", 4096, {**PAGE, "type": "trx_sys"}, Site.SYSTEM_PAGE),
        ("#sql-tmp-33-0", 0, {}, Site.SORT_RUN),
        ("#sql-tmp-33-log", 65536, {}, Site.ROW_LOG),
        ("tmp/merge0", 0, {}, Site.OTHER),
    ],
)
def test_sites(file: str, offset: int, facts: dict[str, str], site: Site) -> None:
    """What a write was for follows from its file, its offset and its marker."""
    assert TARGET.site_of(file, offset, facts or None, 4096) is site


def test_a_library_whose_path_the_loader_would_split_is_linked(tmp_path: Path) -> None:
    """A checkout may lie in a folder with a space in its name."""
    library = tmp_path / "my work" / "libpreload.so"
    library.parent.mkdir()
    library.write_bytes(b"x")
    trace = tmp_path / "trace"
    for _ in range(2):
        env = preload_environment(library, tmp_path, trace, None)
    assert " " not in env["LD_PRELOAD"]
    assert Path(env["LD_PRELOAD"]).read_bytes() == b"x"
    with pytest.raises(TargetError, match="TORNPAGE_TMP"):
        preload_environment(library, tmp_path, library.parent / "trace", None)


def test_a_status_is_numbers() -> None:
    """Also where the engine says true or false: a row that is written down is the same when it is read."""
    said = b'{"ok": true, "failed": [], "status": {"clean": false, "poisoned": true, "page_size": 7}}\n'
    answer = read_run(ChildResult(0, 0, False, 0.1, 0, 0, said, b""))
    row = GoldenRunRow("a=1", True, "abc", 9, 0, (), answer.status)
    assert answer.status == {"clean": 0, "poisoned": 1, "page_size": 7}
    assert from_json(GoldenRunRow, to_json(row)) == row
