"""What is wrong at the end of a run that nothing happened to, and how far its recoveries were audited."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import make_spec

from tornpage.live import recoveries
from tornpage.live.fault_free import _judge_end
from tornpage.live.recoveries import audit_recoveries
from tornpage.oracle.backups import Backup
from tornpage.oracle.judgement import FoundBackup
from tornpage.oracle.state import State
from tornpage.targets.target import Command, RecoveryAnswer
from tornpage.vocabulary.errors import EndedError
from tornpage.vocabulary.model import Violation

STATES: list[State] = [{"t": (number, number, ())} for number in range(3)]
SCAN = Violation(11, "page 3: list FREE")


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (RecoveryAnswer(True, state=STATES[2], backups={"b": FoundBackup(STATES[1])}), []),
        (RecoveryAnswer(True, state=STATES[1], backups={"b": FoundBackup(STATES[1])}), [1]),
        (RecoveryAnswer(True, state=STATES[2], backups={"b": FoundBackup(STATES[2])}), [28]),
        (RecoveryAnswer(True, state=STATES[2]), [28]),
        (RecoveryAnswer(True, state=STATES[1], findings=(SCAN,)), [11, 1, 28]),
        (RecoveryAnswer(False, refused=True, message="no"), [30]),
        (RecoveryAnswer(True), [30]),
    ],
)
def test_a_database_that_was_closed_is_all_that_was_done(
    answer: RecoveryAnswer, wanted: list[int]
) -> None:
    """It opens, with the last state, its backups, and nothing that the scanner finds."""
    oracle = SimpleNamespace(states=STATES, backups={1: Backup("b", sure=True)})
    assert [one.invariant for one in _judge_end(cast(Any, oracle), answer)] == wanted


@pytest.mark.parametrize("missing", range(4))
def test_a_recovery_that_was_not_audited_is_told(
    missing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of them: those before it were, and the files that they mapped are known."""
    answers = iter(["" if number != missing else "no ptrace" for number in range(4)])
    monkeypatch.setattr(recoveries, "run_stopped", lambda *_: None)
    monkeypatch.setattr(recoveries, "_audit", lambda *_: next(answers))
    monkeypatch.setattr(recoveries, "mapped_in", lambda *_: ("data",))
    target = cast(Any, SimpleNamespace(unrecorded=()))
    audited = audit_recoveries(make_spec(0), target, tmp_path, 100)
    assert audited == ("no ptrace", missing, ("data",) * bool(missing))


def test_a_recovery_that_is_ended_has_no_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it comes to is judged elsewhere, where it is tried again."""

    def run(_env: object) -> None:
        raise EndedError("recover was ended from outside")

    monkeypatch.setattr(recoveries, "under_audit", lambda command, _work: command)
    (tmp_path / "data").mkdir()
    (tmp_path / "trace").touch()
    target = SimpleNamespace(
        recover_command=lambda *_: Command(("/bin/true",), {}, 1.0),
        recorded=lambda *_: SimpleNamespace(run=run),
    )
    told = recoveries._audit(make_spec(0), cast(Any, target), tmp_path)
    assert told == "recover was ended from outside"
