"""faults.retouch: the commands that make one image into another."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from tornpage.faults.image import files_below
from tornpage.faults.retouch import retouch

NAMES = ["log", "a b", "it's/page", "deep/er/page", "deep/log"]
CONTENT = st.tuples(st.sampled_from([b"", b"\0", b"new", b"old"]), st.integers(0, 3000)).map(
    lambda told: (told[0] * told[1])[:4000]
)
IMAGES = st.dictionaries(st.sampled_from(NAMES), CONTENT)


def lay_out(files: dict[str, bytes], folder: Path) -> Path:
    """An image of these files."""
    folder.mkdir()
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def contents(folder: Path) -> tuple[dict[str, bytes], set[str]]:
    """Of files, and the folders."""
    folders = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()}
    return {name: path.read_bytes() for name, path in files_below(folder).items()}, folders


def run(commands: list[str], folder: Path, place: Path) -> None:
    """As a person's shell does, which stops at the first that fails."""
    text = "\n".join(["set -e", *commands])
    shell = ["/bin/sh", "-c", text]
    subprocess.run(shell, cwd=place, env={"dir": str(folder), "PATH": "/usr/bin:/bin"}, check=True)


@settings(max_examples=40, deadline=None)
@given(IMAGES, IMAGES)
def test_a_shell_makes_the_new_image(old: dict[str, bytes], new: dict[str, bytes]) -> None:
    """Files, folders, sizes and bytes are those of the new one, whatever both hold."""
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        before, after = lay_out(old, place / "old"), lay_out(new, place / "new")
        commands = list(retouch(before, after, place / "lost", "lost"))
        run(commands, before, place)
        assert contents(before) == contents(after)


def test_a_folder_takes_the_place_of_a_file(tmp_path: Path) -> None:
    """And the other way round."""
    old = lay_out({"a": b"1", "b/c": b"2"}, tmp_path / "old")
    new = lay_out({"a/d": b"3", "b": b"4"}, tmp_path / "new")
    run(list(retouch(old, new, tmp_path / "lost", "lost")), old, tmp_path)
    assert contents(old) == contents(new)


def test_only_what_differs_is_kept(tmp_path: Path) -> None:
    """One sector of many, as whole units; nothing where nothing differs."""
    content = bytes(range(256)) * 64
    changed = content[:5000] + b"!" + content[5001:]
    old = lay_out({"page": content, "same": content}, tmp_path / "old")
    new = lay_out({"page": changed, "same": content}, tmp_path / "new")
    commands = list(retouch(old, new, tmp_path / "lost", "lost"))
    assert commands == [
        'dd if=lost/1 of="$dir"/page bs=512 seek=9 conv=notrunc status=none',
    ]
    assert (tmp_path / "lost" / "1").read_bytes() == changed[4608:5120]
    assert list(retouch(old, old, tmp_path / "none", "none")) == []
    assert not (tmp_path / "none").exists()
