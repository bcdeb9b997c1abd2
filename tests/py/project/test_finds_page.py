"""docs/FINDS.md has figures that commands print, and keeps those of engines that are not here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import finds_page
import pytest

TALE = """## A find

It needs no command: {braces} stay.

| `tornpage target check some --option a=b` | {counters.early} | of {writes} |
| `tornpage run workloads/finds/some.toml --states 60` | {by_invariant} |
"""


def test_a_line_with_a_command_is_filled() -> None:
    """With what it printed each time; a counter that is not there is 0."""
    asked = []

    def ran(command: str) -> list[dict[str, Any]]:
        asked.append(command)
        if command.startswith("run"):
            return [{"by_invariant": {"I1": 3, "I10": 2}}]
        return [{"writes": 7, "counters": {"early": 2}}, {"writes": 8, "counters": {}}]

    lines = finds_page.told(TALE, [], ran).splitlines()
    assert lines[2] == "It needs no command: {braces} stay."
    assert lines[4:] == [
        "| `tornpage target check some --option a=b` | 2, 0 | of 7, 8 |",
        "| `tornpage run workloads/finds/some.toml --states 60` | I1: 3, I10: 2 |",
    ]
    assert asked == [
        "target check some --option a=b", "run workloads/finds/some.toml --states 60",
    ]  # fmt: skip


def test_what_is_not_here_keeps_what_the_page_says() -> None:
    """Line by line, and only where the rest of the line is the same."""
    filled = finds_page.told(TALE, [], lambda _command: [{"writes": 7, "by_invariant": {}}])
    assert finds_page.told(TALE, filled.splitlines(), lambda _command: None) == filled
    other = TALE.replace("a=b", "a=c")
    assert finds_page.told(other, filled.splitlines(), lambda _command: None).count("{") == 3


def test_the_page_has_every_figure_of_every_find() -> None:
    """Nothing waits to be filled, and no line of a tale is missing: where it is filled there are figures."""
    page = finds_page.PAGE.read_text("utf-8").splitlines()
    commands = [line for line in page if finds_page.COMMAND.search(line)]
    assert [line for line in commands if finds_page.KEY.search(line)] == []
    for file in sorted(finds_page.PLANS.glob("*.md")):
        for line in file.read_text("utf-8").splitlines():
            assert any(map(finds_page.shape_of(line).fullmatch, page)), line
    named = set(re.findall(r"workloads/finds/([\w-]+\.toml)", "\n".join(page)))
    assert named <= {file.name for file in finds_page.PLANS.glob("*.toml")}


def test_only_figures_fill_a_line() -> None:
    """No key, nothing, and no other cell; without a command a line is on the page as it is in the tale."""
    line = TALE.splitlines()[4]
    shape = finds_page.shape_of(line)
    assert shape.fullmatch("| `tornpage target check some --option a=b` | 2, 0 | of I2: 7 |")
    for wrong in ("{counters.early}", "", "2 | 0"):
        assert not shape.fullmatch(line.replace("{counters.early}", wrong).replace("{writes}", "7"))
    untouched = TALE.splitlines()[2]
    assert finds_page.shape_of(untouched).fullmatch(untouched)
    assert not finds_page.shape_of(untouched).fullmatch(untouched.replace("{braces}", "7"))


TOLD = """# Some

| as it is: `tornpage target check here` | {writes} |
| `tornpage target check here --option broken=on` | {writes} |
| `tornpage run powerloss --target elsewhere` | {states} |
"""
BUG = {"invariants": [1, 5], "title": "rows", "trial": "1.4"}
FRAMES = [
    {"function": "", "file": "", "line": 0},
    {"function": "fil_flush(int)", "file": "/src/fil0fil.cc", "line": 7},
    {"function": "run", "file": "store.py", "line": 9},
    {"function": "_run_code", "file": "<frozen runpy>", "line": 88},
]
DISKS = [
    {"under": "ext4", "states": 40, "shown": 3},
    {"under": "xfs", "states": 80, "shown": 0},
    {"under": "btrfs", "states": 0, "shown": 0},
]
CAUSE = {"lost": [{"seq": 5, "frames": FRAMES}], "relied": {"seq": 8, "frames": []}}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of two finds, of which nothing has been measured; its scratch is not on a tmpfs. Each command
    prints the same, but for those with `broken`, and the target `elsewhere` is not here."""
    plan = (finds_page.PLANS / "mariadb-fsync.toml").read_text("utf-8")
    for name in ("one", "two"):
        (tmp_path / f"{name}.toml").write_text(plan, "utf-8")
    (tmp_path / "two.md").write_text(TOLD, "utf-8")

    def printed(words: list[str]) -> dict[str, Any]:
        if "broken=on" in words:
            raise finds_page.CommandFailed(f"{words}: no server")
        said = {"kept": ["the kept image: broken"], "sentence": "A is lost.", "cause": CAUSE}
        return {"bugs": [BUG], "writes": 7, "states": 60, "disks": DISKS, **said}

    known = {"one": {"upstream": "new"}, "two": {"upstream": "old", "shows": "rows"}}
    monkeypatch.setattr(finds_page, "KNOWN", known)
    monkeypatch.setattr(finds_page, "PAGE", tmp_path / "FINDS.md")
    monkeypatch.setattr(finds_page, "PLANS", tmp_path)
    monkeypatch.setattr(finds_page, "printed", printed)
    monkeypatch.setattr(finds_page, "ready", lambda name: None if name == "elsewhere" else "It")
    monkeypatch.setattr(finds_page, "filesystem_of", lambda _folder: "ext4")
    return tmp_path / "FINDS.md"


def test_a_line_whose_command_fails_is_a_failure(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1 and what the command said; all other lines are measured and written."""
    assert finds_page.main(["--recordings", "2"]) == 1
    assert "no server" in capsys.readouterr().err
    lines = page.read_text("utf-8").splitlines()
    assert lines[-3:] == [
        "| as it is: `tornpage target check here` | 7, 7 |",
        *TOLD.splitlines()[-2:],
    ]
    assert [line.count("I1, I5: rows") for line in lines if "workloads/finds/" in line][-2:] == [
        1,
        1,
    ]


def test_states_are_doubled_until_it_shows(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else breaks before; what never shows is said to be none."""
    asked: dict[str, list[int]] = {"one": [], "two": []}

    other, rows = (finds_page.Bug(said, "1.4") for said in ("I30: other", "I1: rows"))

    def bugs_of(file: Path, states: int, _depth: int, _out: Path) -> list[finds_page.Bug]:
        asked[file.stem].append(states)
        return [other] + [rows] * (states >= 200)

    monkeypatch.setattr(finds_page, "bugs_of", bugs_of)
    page.with_name("two.md").unlink()
    assert finds_page.main([]) == 0
    assert asked == {"one": [100], "two": [100, 200]}
    text = page.read_text("utf-8")
    assert "| old | I30: other<br>I1: rows | 200 |" in text and "| new | I30: other | 100 |" in text
    monkeypatch.setattr(finds_page, "bugs_of", lambda _file, _states, _depth, _out: [other])
    assert finds_page.main(["two"]) == 0
    text = page.read_text("utf-8")
    assert "| old | I30: other | none in 400 |" in text and "- `two`: no state shows it." in text


def test_of_each_find_is_said_what_is_known() -> None:
    """And of nothing else; what is meant of several things is on the page."""
    assert set(finds_page.KNOWN) == {file.stem for file in finds_page.PLANS.glob("*.toml")}
    rows = finds_page.PAGE.read_text("utf-8").splitlines()
    for name, known in finds_page.KNOWN.items():
        (row,) = (
            line
            for line in rows
            if f"workloads/finds/{name}.toml --states" in line
            and f"| {known['upstream']} |" in line
        )
        assert "none in" in row or known.get("shows", "") in row


def test_a_target_that_is_not_here_is_no_failure(page: Path) -> None:
    """Its line keeps what the page says of it."""
    tale = page.with_name("two.md")
    tale.write_text(TOLD.replace(" --option broken=on", ""), "utf-8")
    assert finds_page.main([]) == 0
    assert page.read_text("utf-8").splitlines()[-1] == TOLD.splitlines()[-1]


def test_a_campaign_that_fails_is_a_failure(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its row is not there, the other one is."""

    def bugs_of(file: Path, _states: int, _depth: int, _out: Path) -> list[finds_page.Bug]:
        if file.stem == "one":
            raise finds_page.CommandFailed("no server")
        return [finds_page.Bug("I1: rows", "1.4")]

    monkeypatch.setattr(finds_page, "bugs_of", bugs_of)
    page.with_name("two.md").unlink()
    assert finds_page.main([]) == 1
    assert re.findall(r"workloads/finds/(\w+).toml", page.read_text("utf-8")) == ["two"]


def test_each_find_is_asked_again_and_explained(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state of it, not a rule that a run breaks; with the functions of the engine that have a name. What is
    not measured again keeps what the page says."""
    page.with_name("two.md").unlink()
    asked: list[list[str]] = []
    printed = finds_page.printed

    def listen(words: list[str]) -> dict[str, Any]:
        asked.append(words)
        return printed(words)

    bugs = [finds_page.Bug("I19: rows", "1.s0"), finds_page.Bug("I1: rows", "1.4")]
    monkeypatch.setattr(finds_page, "bugs_of", lambda _file, _states, _depth, _out: bugs)
    monkeypatch.setattr(finds_page, "printed", listen)
    assert finds_page.main([]) == 0
    one = [["replay", "1.4"], ["explain", "1.4"], ["confirm", "1.4"]]
    assert [words[:2] for words in asked] == one * 2
    told = "the kept image: broken. A is lost. Operation 5: `fil_flush fil0fil.cc:7`."
    assert f"- `one`: {told}\n- `two`: {told}\n" in page.read_text("utf-8")

    def fails(words: list[str]) -> dict[str, Any]:
        if words[0] == "explain":
            raise finds_page.CommandFailed("it crashes a recovery")
        return printed(words)

    monkeypatch.setattr(finds_page, "printed", fails)
    assert finds_page.main(["two"]) == 0
    text = page.read_text("utf-8")
    assert f"- `one`: {told}\n" in text
    assert "- `two`: the kept image: broken. Not explained: it crashes a recovery\n" in text


def test_each_find_is_asked_of_real_file_systems(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are here. Where none is, the cell keeps what the page says."""
    page.with_name("two.md").unlink()
    printed = finds_page.printed
    assert finds_page.main(["one"]) == 0
    cell = "| 100 | ext4 3 of 40, xfs none of 80 | `tornpage run workloads/finds/one.toml"
    assert cell in page.read_text("utf-8")

    def fails(words: list[str]) -> dict[str, Any]:
        if words[0] == "confirm":
            raise finds_page.CommandFailed("no loop devices")
        return printed(words)

    monkeypatch.setattr(finds_page, "printed", fails)
    assert finds_page.main([]) == 0
    text = page.read_text("utf-8")
    assert cell in text and "| 100 |  | `tornpage run workloads/finds/two.toml" in text


def refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the tool says when it runs nothing, in a line."""
    with pytest.raises(SystemExit) as ended:
        finds_page.main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_names_that_are_no_find_are_refused(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With those that there are; nothing is run."""
    told = refused(["one", "three", "two.toml"], capsys)
    assert told.endswith("no such find: three, two.toml; there are one, two")
    assert not page.exists()


def test_scratch_that_is_not_on_a_disk_is_refused(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page says that it was on one. What is no folder at all is refused too."""
    monkeypatch.setenv("TORNPAGE_TMP", str(tmp_path))
    monkeypatch.setattr(finds_page, "filesystem_of", lambda _folder: "tmpfs")
    told = refused([], capsys)
    assert told.endswith(
        f"scratch in {tmp_path} is on a tmpfs: set TORNPAGE_TMP to a folder on a disk"
    )
    monkeypatch.setenv("TORNPAGE_TMP", str(tmp_path / "none"))
    assert "is not a writable folder" in refused([], capsys)
    assert not page.exists()
