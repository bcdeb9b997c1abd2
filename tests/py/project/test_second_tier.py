"""What `make test` leaves out is known, and is run where a change touches it."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest
from second_tier import TOUCHED_BY, changed_paths, commands, touched_tests, touches_c

from tornpage.vocabulary.paths import ROOT


def is_marked(file: Path) -> bool:
    """The module has the marker, or one of its tests."""
    for node in ast.parse(file.read_text("utf-8")).body:
        is_mark = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for part in [node.value] if is_mark else getattr(node, "decorator_list", []):
            if "pytest.mark.extended" in ast.unparse(part):
                return True
    return False


def test_every_extended_test_has_its_paths() -> None:
    """The table names each file that has the marker, and no other; what it names is in the tree."""
    marked = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if is_marked(path)
    }
    assert set(TOUCHED_BY) == marked
    for beginnings in TOUCHED_BY.values():
        for beginning in beginnings:
            assert any(ROOT.glob(f"{beginning.rstrip('/')}*")), beginning


@pytest.mark.parametrize(
    ("changed", "tests", "is_c"),
    [
        ("docs/STORE.md", ["tests/e2e/test_site.py"], False),
        ("tests/e2e/test_wheel.py", ["tests/e2e/test_wheel.py"], False),
        ("tools/dist.sh", ["tests/e2e/test_wheel.py"], False),
        ("harness/tornpage/vocabulary/codec.py", [], False),
        ("harness/tornpage/oracle/oracle.py", ["tests/e2e/test_target_file.py"], False),
        (
            "engine/buf/buf_pool.c",
            ["tests/e2e/test_bench_seeds.py", "tests/e2e/test_mutants.py"],
            True,
        ),
        ("tests/c/test_os.c", [], True),
    ],
)
def test_a_change_runs_what_it_touches(changed: str, tests: list[str], is_c: bool) -> None:
    """By the beginnings of paths; the C tests under sanitizers for everything that is C."""
    assert touched_tests([changed]) == tests
    assert touches_c([changed]) is is_c
    words = [word for command in commands([changed]) for word in command]
    assert [word for word in words if word in TOUCHED_BY] == tests
    assert ("ctest" in words) is is_c


def test_what_cannot_be_told_runs_everything(tmp_path: Path) -> None:
    """No repository, and no commit before. On main it is the last commit; beside it, the whole branch; and
    the working tree."""

    def git(*words: str) -> str:
        line = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    assert changed_paths(tmp_path) is None
    git("init", "-q", ".")
    for name, changed in (("one", None), ("two", ["two"]), ("three", ["three"])):
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-q", "-m", name)
        assert changed_paths(tmp_path) == changed
        if name == "two":
            git("update-ref", "refs/remotes/origin/main", "HEAD")
            assert changed_paths(tmp_path) == changed
    (tmp_path / "one").write_text("other")
    assert changed_paths(tmp_path) == ["one", "three"]
    git("update-ref", "refs/remotes/origin/main", "HEAD^1^1")
    assert changed_paths(tmp_path) == ["one", "three", "two"]
    run = [word for command in commands(None) for word in command]
    assert set(TOUCHED_BY) <= set(run) and "ctest" in run
