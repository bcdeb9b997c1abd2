"""What a worker makes of a violation that does not come again, of a target that breaks, of a full machine."""

from __future__ import annotations

import errno
import multiprocessing
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from builders import make_result, make_spec

from tornpage.evidence.images import KeptImages
from tornpage.live.recording import Recording
from tornpage.powerloss import parts
from tornpage.powerloss.explorer import loss_plan
from tornpage.powerloss.parts import Found, confirmed_state
from tornpage.targets.registry import BUNDLED, make_target
from tornpage.vocabulary.errors import ChildError, Interrupted, MachineError
from tornpage.vocabulary.model import Outcome, Source, TrialResult
from tornpage.vocabulary.paths import find_paths
from tornpage.workers import pool
from tornpage.workers.pool import Job, confirmed, play, submit, with_recording_of, worker_pool


@pytest.fixture(scope="module", autouse=True)
def workers() -> None:
    """Spawned, as those of a run are."""


def _job(tmp_path: Path) -> Job:
    return Job(make_spec(3), find_paths(), tmp_path, tmp_path / "images")


def test_a_violation_that_comes_again_is_one() -> None:
    """Played twice with the same invariants broken, it is what it was."""
    result = make_result(0, broken=5)
    assert confirmed(result, replace(result, digest="another")) is result


@pytest.mark.parametrize("again", [make_result(0), make_result(0, broken=17)])
def test_a_violation_that_does_not_come_again_is_unstable(again: object) -> None:
    """It keeps what it broke, for a person to look at, and is no violation."""
    result = confirmed(make_result(0, broken=5), again)  # type: ignore[arg-type]
    assert result.outcome is Outcome.UNSTABLE
    assert result.violations == make_result(0, broken=5).violations
    assert result.reason.startswith("broke I5, and played again ")


def test_what_a_recording_shows_needs_no_other_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rule on the bytes of a server's run, which does otherwise the next time, is judged by that run; what
    its recovery shows has to come again. Of an engine whose runs are equal a rule has to, too."""
    monkeypatch.setenv("TORNPAGE_TMP", str(tmp_path))
    server = make_target(str(BUNDLED / "postgresql.toml"), find_paths().build, ready=False)
    engine = make_target("engine", find_paths().build, ready=False)
    by_state = make_result(0, broken=6)
    rule = replace(by_state.violations[0], invariant=19, source=Source.RULE)
    other = replace(rule, invariant=22)
    first = replace(by_state, violations=(*by_state.violations, rule))
    again = replace(by_state, violations=(*by_state.violations, other))
    assert confirmed(first, with_recording_of(first, again, server)) is first
    clean = make_result(0)
    for unstable in (
        confirmed(first, with_recording_of(first, again, engine)),
        confirmed(first, with_recording_of(first, clean, server)),
    ):
        assert unstable.outcome is Outcome.UNSTABLE
    alone = replace(first, violations=(rule,))
    assert confirmed(alone, with_recording_of(alone, clean, server)) is alone


def test_a_state_is_named_for_a_part_of_what_it_broke() -> None:
    """The explorer names a state under the findings whose first state it is. One that breaks those and more
    when it is played again is no less stable; one that breaks only others is."""
    named, other = make_result(0, broken=7).violations, make_result(0, broken=2).violations
    again = replace(make_result(0, broken=7), violations=(*other, *named))
    result = confirmed_state(named, again)
    assert (result.outcome, result.violations) == (Outcome.VIOLATION, named)
    unstable = confirmed_state(named, replace(again, violations=other))
    assert unstable.outcome is Outcome.UNSTABLE and unstable.reason.endswith(named[0].what)


def test_a_target_that_breaks_is_a_failure_of_the_harness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A KeyError in a target ends no run: its trial has no verdict, and says where."""

    def broken(_name: str, _build: Path) -> None:
        raise KeyError("rows")

    monkeypatch.setattr(pool, "make_target", broken)
    spec, result = play(_job(tmp_path))
    assert (spec.number, result.outcome) == (3, Outcome.HARNESS_ERROR)
    assert result.reason.startswith("KeyError: 'rows' (test_workers.py:")


@pytest.mark.parametrize("error", [ChildError("no trace of the verify"), KeyError("rows")])
def test_a_finding_whose_second_play_fails_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """All that it showed, its image and the reason; no finding, and no pass."""
    image = tmp_path / "images" / "3"
    first = replace(make_result(3, broken=5), image=image, reason="page 3 is torn")

    def again(*_arguments: object) -> TrialResult:
        raise error

    monkeypatch.setattr(pool, "run_aimed", lambda spec, *_: (spec, first))
    monkeypatch.setattr(pool, "run_trial", again)
    _, result = play(_job(tmp_path))
    assert (result.outcome, result.violations, result.image) == (
        Outcome.UNSTABLE,
        first.violations,
        image,
    )
    assert result.reason.startswith("not confirmed: ") and result.reason.endswith(
        "broke I5: page 3 is torn"
    )


def test_a_machine_that_fails_the_second_play_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trial has no verdict yet: whoever goes on plays it again."""

    def again(*_arguments: object) -> TrialResult:
        raise MachineError("no room")

    monkeypatch.setattr(pool, "run_aimed", lambda spec, *_: (spec, make_result(3, broken=5)))
    monkeypatch.setattr(pool, "run_trial", again)
    with pytest.raises(MachineError):
        play(_job(tmp_path))


def test_a_state_that_cannot_be_played_again_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs the exploration none of its other states: it stays as the explorer named it, not confirmed."""
    named = make_result(7, broken=1).violations
    found = Found(replace(make_spec(7), plan=loss_plan("3.subset.1")), named, 4)
    trace = tmp_path / "trace"
    recording = Recording(
        trace, trace, trace, None, tmp_path, ready=0, trace_hash="h", events=9, violations=(), counters={}
    )  # fmt: skip

    def again(*_arguments: object) -> TrialResult:
        raise ChildError("the explorer failed: exit code 2")

    monkeypatch.setattr(parts, "replay_state", again)
    target = make_target("engine", find_paths().build, ready=False)
    broken = parts.play_found(found, target, recording, tmp_path / "images")
    assert (broken.result.outcome, broken.result.violations) == (Outcome.UNSTABLE, named)
    assert (broken.result.alike, broken.result.mask) == (4, "3.subset.1")
    assert "not confirmed: the explorer failed" in broken.result.reason


def _large(_job: Job) -> bytes:
    return bytes(256 << 20)


def test_a_worker_that_is_killed_amid_its_result_holds_nobody_up(tmp_path: Path) -> None:
    """The owner is ended while a result comes through the pipe: it does not wait for the rest."""
    with pytest.raises(Interrupted), worker_pool(1) as pool:
        submit(pool, _large, _job(tmp_path))
        counters = psutil.Process().io_counters
        before = counters().read_chars
        while counters().read_chars < before + (32 << 20):  # looking costs some of it
            time.sleep(0.001)
        raise Interrupted(15)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left"), OSError(errno.EMFILE, "x"), MemoryError()]
)
def test_a_full_machine_is_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """What the harness meets of a full disk or memory ends the run, which can go on."""

    def full(_name: str, _build: Path) -> None:
        raise error

    monkeypatch.setattr(pool, "make_target", full)
    with pytest.raises(MachineError):
        play(_job(tmp_path))


def test_one_image_per_fingerprint(tmp_path: Path) -> None:
    """The first trial with a finding keeps its image, the next ones with the same do not."""
    images = KeptImages()
    kept = []
    for number, broken in enumerate((5, 5, 17, 5)):
        folder = tmp_path / str(number)
        folder.mkdir()
        result = replace(make_result(number, broken=broken), image=folder)
        kept.append(images.only_new("page0", result).image)
    assert kept == [tmp_path / "0", None, tmp_path / "2", None]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "2"]


def test_an_unstable_trial_takes_no_image_from_a_finding(tmp_path: Path) -> None:
    """Both keep one."""
    images = KeptImages()
    unstable = replace(make_result(0, broken=5), outcome=Outcome.UNSTABLE, image=tmp_path / "0")
    found = replace(make_result(1, broken=5), image=tmp_path / "1")
    assert images.only_new("page0", unstable).image == tmp_path / "0"
    assert images.only_new("page0", found).image == tmp_path / "1"
    assert images.only_new("page0", replace(unstable, number=2)).image is None
