"""Pages in three states: which are hurt, which sectors they have, and what the target says of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tornpage.evidence.pages import FIELDS_MAX, States, hurt_pages, page_view
from tornpage.targets.engine.target import EngineTarget
from tornpage.targets.target import Command
from tornpage.vocabulary.evidence import Field, PageView

PAGE = 1024


class Decoder(EngineTarget):
    """Its page is text: "key=value" words, as records of a table."""

    def page_command(self, file: Path, page: int, page_size: int) -> Command | None:
        """Of .txt files only."""
        if file.suffix != ".txt":
            return None
        text = file.read_bytes()[page * page_size :][:page_size].decode().strip("\0")
        pairs = (word.split("=") for word in text.split())
        records = [{"key": key, "data": value, "info": None} for key, value in pairs]
        told = {"ok": True, "page": page, "verdict": "ok", "records": records}
        code = f"print({json.dumps(json.dumps(told))})"
        return Command((sys.executable, "-c", code))


TARGET = Decoder(Path("/engine"), Path("/preload"))


@pytest.fixture
def states(tmp_path: Path) -> States:
    """Three folders."""
    made = States(tmp_path / "before", tmp_path / "written", tmp_path / "after")
    for folder in made.folders():
        folder.mkdir()
    return made


def put(states: States, name: str, *contents: bytes | None) -> None:
    """A file in its three states; None: it is not there."""
    for folder, content in zip(states.folders(), contents, strict=True):
        if content is not None:
            (folder / name).write_bytes(content)


def test_hurt_is_what_is_not_as_it_was_written(states: States) -> None:
    """A page that differs, one that is missing behind the end, a file that is gone or should be."""
    old, new = b"o" * PAGE, b"n" * PAGE
    put(states, "a", old * 3, new * 3, new + old + new)
    put(states, "b", b"", new * 2, new)
    put(states, "c", None, new, None)
    put(states, "d", new, None, new)
    put(states, "e", old, new, new)
    assert hurt_pages(states, PAGE) == [("a", 1), ("b", 1), ("c", 0), ("d", 0)]


def test_sectors_are_new_old_same_or_neither(states: States) -> None:
    """By what the crash left of each."""
    one, two, three = b"1" * 256, b"2" * 256, b"3" * 256
    put(states, "a", one * 4, two + one + two + two, two + one + one + three)
    view = page_view(states, "a", 0, PAGE, 256, TARGET)
    assert view.sectors == "nsox"
    assert not view.decoded and view.fields[0].name == "byte 512"
    assert view.fields[0].written == f"{' '.join(['32323232'] * 4)}  {'2' * 16}"


def test_a_decoded_page_shows_what_differs(states: States) -> None:
    """Records by their key, whatever their place; what is equal everywhere is left out, but not its head."""
    pages = [b"a=1 b=2", b"a=1 c=3 b=4", b"c=3 a=1 b=2"]
    put(states, "t.txt", *(page.ljust(PAGE, b"\0") for page in pages))
    view = page_view(states, "t.txt", 0, PAGE, 512, TARGET)
    assert view.decoded and view.more == 0
    none = "info none"
    assert set(view.fields) == {
        Field("verdict", "ok", "ok", "ok"),
        Field("records b", f"data 2, {none}", f"data 4, {none}", f"data 2, {none}"),
        Field("records c", "", f"data 3, {none}", f"data 3, {none}"),
    }


class Logged(Decoder):
    """Of whose pages it decodes where they are and the first byte."""

    def page_command(self, file: Path, page: int, page_size: int) -> Command | None:  # noqa: ARG002
        """Of page 0."""
        told = {"ok": True, "page": 3, "space": 7, "header_only": True, "lsn": file.read_bytes()[0]}
        return Command((sys.executable, "-c", f"print({json.dumps(json.dumps(told))})"))

    def log_command(self, data: Path) -> Command:
        """Its log is a file of the image."""
        return Command(("/bin/cat", str(data / "log")))


LOG = """10..20
  SET space=7 page=3 value=1
  SET space=7 page=33 value=1
20..30
  SET space=77 page=3 value=1
  FREE space=7 page=3
"""


def test_a_page_has_its_redo_records_and_the_bytes_that_are_not_decoded(states: States) -> None:
    """Of the crashed image, each with the LSNs of its group; those of other pages are left out."""
    target = Logged(Path("/engine"), Path("/preload"))
    put(states, "t", b"a" * PAGE, b"b" * PAGE, b"a" * 512 + b"b" * 512)
    log = states.after / "log"

    def view(text: str) -> PageView:
        log.write_text(text, "ascii")
        return page_view(states, "t", 0, PAGE, 512, target, states.after)

    seen = view(LOG)
    assert seen.redo == ("10..20 SET value=1", "20..30 FREE")
    assert seen.redo_note == "since the checkpoint, 10"
    assert seen.decoded and seen.fields[0] == Field("lsn", "97", "98", "97")
    assert seen.fields[1].name == "byte 0"
    assert view("10..20\n").redo_note == "none since the checkpoint, 10"
    assert view("").redo_note == "none in the log"
    many = view(LOG + "30..40\n" + "  SET space=7 page=3 value=2\n" * 9)
    assert many.redo == ("30..40 SET value=2",) * 8
    assert many.redo_note == "11 since the checkpoint, 10, the last"
    log.unlink()
    gone = page_view(states, "t", 0, PAGE, 512, target, states.after)
    assert "cannot be read" in gone.redo_note and gone.redo == ()


def test_long_values_and_many_differences_are_cut(states: States) -> None:
    """Bytes that repeat are counted; differences beyond the limit are."""
    page = " ".join(f"k{n}={'20' * 100}ff" for n in range(20)).encode()
    put(states, "t.txt", b"", page.ljust(8192, b"\0"), b"")
    view = page_view(states, "t.txt", 0, 8192, 512, TARGET)
    assert len(view.fields) == FIELDS_MAX and view.more == 1 + 20 - FIELDS_MAX
    assert view.fields[1].written == "data 20×100 ff, info none"
