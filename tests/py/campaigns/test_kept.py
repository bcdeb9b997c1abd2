"""What is kept of a run that cannot be had again, and what it says later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_result, make_spec

from tornpage.campaigns import kept
from tornpage.campaigns.kept import judge_kept, keep_found
from tornpage.oracle.rules import Finding, Judged, Setting
from tornpage.targets.registry import BUNDLED, make_target
from tornpage.targets.target import Target
from tornpage.vocabulary.model import Source, Violation
from tornpage.vocabulary.paths import find_paths

RULE = Violation(19, "ckpt_pages: too early", source=Source.RULE)


@pytest.fixture
def server() -> Target:
    """A target whose runs are not equal, and whose bytes are decoded."""
    name = str(BUNDLED / "mariadb-10.11.toml")
    return make_target(name, find_paths().build, ready=False)


def test_files_are_kept_where_a_recording_is_the_evidence(server: Target, tmp_path: Path) -> None:
    """Of a rule that a server's run broke; not of a state, nor of an engine whose runs are equal."""
    found = tmp_path / "before"
    found.mkdir()
    (found / "ibdata1").write_bytes(b"page")
    engine = make_target("engine", find_paths().build, ready=False)
    for number, (target, violation) in enumerate(
        [(server, RULE), (server, replace(RULE, source=Source.STATE)), (engine, RULE)]
    ):
        image = tmp_path / str(number)
        image.mkdir()
        keep_found(found, image, [violation], target)
        assert (image / "found" / "ibdata1").exists() == (number == 0)


def test_a_kept_recording_is_judged_again(
    server: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the rules, from the files that the run began with; an image without them says nothing. So the first
    recovery, from the crashed image."""
    spec = replace(make_spec(3), options={"page_size": "16k"})
    result = replace(make_result(3, broken=19), image=tmp_path)

    asked = []

    def judge_run(
        _target: Target, trace: Path, setting: Setting, found: Path, *, live: bool
    ) -> Judged:
        asked.append((trace.name, found.name))
        assert (setting.page_size, live) == (16384, True)
        number = 19 if trace.name == "run.trace" else 22
        return Judged((Finding(7, replace(RULE, invariant=number)),))

    monkeypatch.setattr(kept, "judge_run", judge_run)
    assert judge_kept(spec, result, server) == frozenset()
    (tmp_path / "run.trace").touch()
    (tmp_path / "found").mkdir()
    assert judge_kept(spec, result, server) == {19}
    (tmp_path / "data").mkdir()
    (tmp_path / "recover.trace").touch()
    assert judge_kept(spec, result, server) == {19, 22}
    (tmp_path / "recover-1.trace").touch()  # the one above began with what this one left
    asked.clear()
    assert judge_kept(spec, result, server) == {19, 22}
    assert asked == [("run.trace", "found"), ("recover-1.trace", "data")]
    assert judge_kept(spec, make_result(3), server) == frozenset()
