"""A target file's target: what its recover program says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.faults.process import ChildResult
from tornpage.oracle.rules import Setting
from tornpage.targets.command.target import CommandTarget
from tornpage.vocabulary.paths import package_folder

FILE = package_folder() / "tornpage" / "targets" / "bundled" / "leveldb.toml"
OK = '{"ok": true, "state": {"rows": "1 a"}}'
REFUSED = '{"ok": false, "message": "the log is torn"}'


def said(stdout: str) -> ChildResult:
    """A recover program that has printed this, and ended."""
    return ChildResult(0, 0, False, 0.1, 0, 0, stdout.encode(), b"")


def test_one_line_is_an_answer() -> None:
    """A state, or a refusal in the target's own words."""
    target = CommandTarget(FILE, Path("/b/preload.so"), Path("/b/explore"))
    assert target.parse_recovery(said(OK + "\n")).ok
    refused = target.parse_recovery(said(REFUSED + "\n"))
    assert (refused.refused, refused.message) == (True, "the log is torn")


@pytest.mark.parametrize(
    ("stdout", "told"),
    [
        (f"{OK}\n{OK}\n", "more than one line"),
        (f"it is open\n{OK}\n", "more than one line for a folder: 'it is open'"),
        (f"{OK}\n\n", "more than one line"),
        (f"{REFUSED}\n{REFUSED}\n", "more than one line"),
        (OK, "a line without an end"),
        (f"{OK}\nhello\n", "gave no answer, but 'hello'"),
    ],
)
def test_more_than_one_line_is_none(stdout: str, told: str) -> None:
    """Of a process that answers for many folders the second line would be taken for the next answer."""
    answer = CommandTarget(FILE, Path("/b/preload.so"), Path("/b/explore")).parse_recovery(
        said(stdout)
    )
    assert not answer.ok
    assert not answer.refused
    assert told in answer.message


@pytest.mark.parametrize(
    ("name", "options", "size"),
    [
        ("leveldb", {}, 4096),
        ("sqlite", {}, 4096),
        ("sqlite", {"page_size": "512"}, 512),
        ("mariadb-10.11", {"page_size": "16k", "doublewrite": "off"}, 16384),
        ("mariadb-10.11", {"page_size": "of 16 KB"}, 4096),
    ],
)
def test_options_tell_the_size_of_pages(name: str, options: dict[str, str], size: int) -> None:
    """The one that is asked for, or the first of the file; in words of its own it is not known."""
    target = CommandTarget(FILE.with_stem(name), Path("/b/preload.so"), Path("/b/explore"))
    assert target.judge_setting(options) == Setting(size, options.get("doublewrite") != "off")


def test_the_first_value_of_an_option_counts_where_none_is_chosen(tmp_path: Path) -> None:
    """Of both: no doublewrite unless it is asked for, and a page size that is no number of bytes is the usual
    one."""
    text = FILE.with_stem("leveldb").read_text("utf-8").partition("[options")[0]
    path = tmp_path / "own.toml"
    path.write_text(
        text.replace("{dir}", "{dir} {page_size} {doublewrite}", 1)
        + '[options.page_size]\nvalues = ["0", "8k"]\nwhat = "0: its own choice"\n'
        + '[options.doublewrite]\nvalues = ["off", "on"]\nwhat = "copies"\n',
        "utf-8",
    )
    target = CommandTarget(path, Path("/b/preload.so"), Path("/b/explore"))
    assert target.judge_setting({}) == Setting(4096, doublewrite=False)
    assert target.judge_setting({"page_size": "8k", "doublewrite": "on"}) == Setting(8192, True)
