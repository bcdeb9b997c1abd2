"""Where two builds of a program part: small programs in C that tell their calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_result, make_spec

from tornpage.causes import contrast
from tornpage.causes.contrast import Deed, parted, require_engine, sentence
from tornpage.faults.process import run_child
from tornpage.store.rows import TrialRow
from tornpage.vocabulary.cause import Parted
from tornpage.vocabulary.errors import ChildError, ConfigError
from tornpage.vocabulary.paths import ROOT

SOURCE = """
#include <stdio.h>
#include <stdlib.h>

static int written;

static int is_due(int n)
{
    return n % 3 == 2;
}

static void save(int n)
{
    written += n;
}

static void step(int n)
{
    if (is_due(n)) {
        save(n);
    }
}

int main(int argc, char **argv)
{
    int last = atoi(argv[1]);
    FILE *seen = fopen(argv[argc - 1], "a+");
    if (seen != NULL && fgetc(seen) == 'x') {
        step(-1);
    }
    if (seen != NULL) {
        fputs("x", seen);
        fclose(seen);
    }
    for (int n = 1; n <= last; n++) {
        step(n);
        printf("ack %d\\n", n);
        fflush(stdout);
    }
    return 0;
}
"""
NOT_8 = ("n % 3 == 2", "n % 3 == 2 && n != 8")
Build = Callable[[str, tuple[str, str]], Path]
SAME = ("", "")


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Builds the source with one change."""

    def made(name: str, change: tuple[str, str] = SAME) -> Path:
        source, program = tmp_path / f"{name}.c", tmp_path / name
        assert change[0] in SOURCE
        source.write_text(SOURCE.replace(*change), "utf-8")
        flags = ["-O1", "-finstrument-functions", "-I", str(ROOT)]
        files = [str(source), str(ROOT / "faults" / "calls.c")]
        done = run_child(["/usr/bin/gcc", *flags, "-o", program, *files], os.environ, 60.0)
        assert done.exit_code == 0, done.stderr
        return program

    return made


def deed(last: int) -> Deed:
    return Deed(lambda data: [str(last), str(data / "seen")], lines=range(1, last + 1))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            NOT_8,
            Parted(("step", "main"), "is_due", "leaves step", "calls save", 8),
        ),
        (
            ("    written += n;\n", "    n == 5 ? abort() : 0;\n"),
            Parted(("save", "step", "main"), "", "ends", "leaves save", 5),
        ),
        (
            ("is_due", "is_near"),
            Parted(("step", "main"), "", "calls is_near", "calls is_due", 1),
        ),
        (
            ("step(n);", "step(n); n == 8 ? exit(0) : 0;"),
            Parted(("main",), "step", "ends", "calls step", 9),
        ),
        (("    written += n;\n", "    written -= n;\n"), None),
    ],
)
def test_two_builds_part_where_their_calls_do(
    change: tuple[str, str], expected: Parted | None, build: Build, tmp_path: Path
) -> None:
    """Who is under way, whom both have left, what each does then, at which statement; a program that dies has
    told all of it. What differs in data only is no difference."""
    bad, good = build("bad", change), build("good", SAME)
    found = parted(bad, good, deed(9), tmp_path / "scratch")
    assert found == expected
    swapped = expected and replace(expected, goes=expected.instead, instead=expected.goes)
    assert parted(good, bad, deed(9), tmp_path / "scratch") == swapped
    assert not (tmp_path / "scratch").exists()


def test_long_streams_are_compared_in_pieces(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last common event may be in another piece."""
    bad, good = build("bad", NOT_8), build("good", SAME)
    for events in (1, 2, 3, 1000):
        monkeypatch.setattr(contrast, "CHUNK", events * contrast.WORD)
        found = parted(bad, good, deed(9), tmp_path / "scratch")
        assert found == Parted(("step", "main"), "is_due", "leaves step", "calls save", 8)
        assert parted(good, good, deed(9), tmp_path / "scratch") is None


def test_each_has_the_image_for_itself(build: Build, tmp_path: Path) -> None:
    """It is changed by each of them."""
    image = tmp_path / "image"
    image.mkdir()
    (image / "seen").touch()
    again = Deed(lambda data: ["3", str(data / "seen")], image)
    bad, good = build("bad", ("n % 3 == 2", "n % 3 == 1")), build("good", SAME)
    assert parted(good, good, again, tmp_path / "scratch") is None
    found = parted(bad, good, again, tmp_path / "scratch")
    assert found == Parted(("step", "main"), "is_due", "calls save", "leaves step")
    assert not (image / "seen").read_bytes()


def test_a_program_that_does_not_tell_its_calls_is_no_answer(build: Build, tmp_path: Path) -> None:
    """What it prints is not taken for calls, nor what one does by chance for a way that it goes."""
    silent = run_child(["/usr/bin/strip", build("good", SAME)], os.environ, 60.0)
    assert silent.exit_code == 0
    with pytest.raises(ConfigError, match="does not tell its calls"):
        parted(tmp_path / "good", tmp_path / "good", deed(1), tmp_path / "scratch")
    chance = build("chance", ("n % 3 == 2", 'getenv("TORNPAGE_CALLS_STOP") ? exit(0), 0 : n > 5'))
    with pytest.raises(ChildError, match="does not do the same each time"):
        parted(chance, build("other", SAME), deed(9), tmp_path / "scratch")


def test_it_is_told_in_words() -> None:
    """Each of both, or that there is nothing."""
    one = Parted(("step", "main"), "is_due", "leaves step", "calls save", 8)
    assert sentence("../good", one, replace(one, behind="", line=0)) == (
        "The run parts from that of ../good at statement 8: in step ← main, behind the return of is_due. "
        "This build then leaves step, the good one calls save. The recovery parts from that of ../good: in "
        "step ← main. This build then leaves step, the good one calls save."
    )
    assert "differs in data only" in sentence("../good", None, None)


def test_another_target_has_no_contrast() -> None:
    """It tells no calls."""
    row = TrialRow(1, 3, make_spec(3), "", "", make_result(3))
    require_engine(row)
    other = replace(row, spec=replace(row.spec, target="sqlite"))
    with pytest.raises(ConfigError, match="of target sqlite: only builds of the bundled engine"):
        require_engine(other)
