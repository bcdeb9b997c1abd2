"""The admission test: which runs are audited, and when a target comes to the same states again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import make_spec
from fake_trace import FakeTrace

from tornpage.live import admission
from tornpage.live.admission import DISK, Audited, admit, audit_runs
from tornpage.live.stopped import Compared
from tornpage.targets.option import UNDER
from tornpage.vocabulary.model import TrialSpec

AUDITED = Audited("", Compared(2, 2), 3)
WITHOUT, ON_DISK = {"cache": "1"}, {UNDER: "ext4"}


@pytest.mark.parametrize(
    "options",
    [[WITHOUT], [ON_DISK], [ON_DISK, WITHOUT], [WITHOUT, ON_DISK], [ON_DISK, WITHOUT, {}, WITHOUT]],
)
def test_each_set_of_options_without_a_disk_is_audited(
    options: list[Mapping[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, wherever it stands; the writes below a file system of its own are the kernel's."""
    seen: list[Mapping[str, str]] = []

    def run(spec: TrialSpec, *_: object, audit: bool) -> None:
        assert audit
        seen.append(spec.options)

    monkeypatch.setattr(admission, "run_fault_free", run)
    monkeypatch.setattr(admission, "_audit", lambda *_: AUDITED)
    specs = [replace(make_spec(0), options=dict(one)) for one in options]
    audited = audit_runs(cast(Any, None), specs, tmp_path)
    wanted = [one for at, one in enumerate(options) if one != ON_DISK and one not in options[:at]]
    assert seen == wanted
    assert audited.recoveries == AUDITED.recoveries * len(wanted)
    assert audited.missing == (DISK.missing if ON_DISK in options else "")


@pytest.mark.parametrize(
    ("again", "repeatable"),
    [("abc", True), ("axc", False), ("abx", False), ("xbc", False), ("ab", False), ("abbc", False)],
)
def test_a_target_is_repeatable_if_all_its_states_come_again(
    again: str, repeatable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill is judged by a state amid the run, not by the last one."""
    runs = iter(["abc", again])

    def run(*_: object, **__: object) -> SimpleNamespace:
        return SimpleNamespace(
            violations=(),
            oracle=SimpleNamespace(states=list(next(runs))),
            trace=SimpleNamespace(events=list, events_declared=0),
            answer=SimpleNamespace(status={}),
            left=(),
        )

    monkeypatch.setattr(admission, "run_fault_free", run)
    monkeypatch.setattr(admission, "own_work", lambda *_: make_spec(0))
    monkeypatch.setattr(admission, "_audit", lambda *_: AUDITED)
    assert admit(cast(Any, None), tmp_path).repeatable is repeatable


@pytest.mark.parametrize(("seen", "of"), [(2, 3), (0, 3), (5, 5)])
def test_a_run_that_stood_still_and_ended_early_is_a_part(
    seen: int, of: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All of what it came to is not all: its client may have lost patience."""
    trace = FakeTrace().open("a", True).mark("ready")
    for number in range(1, 4):
        trace.mark(f"issue n={number}").mark(f"ack n={number}")
    run = SimpleNamespace(not_audited="", mapped=("a",), trace=trace.trace())
    monkeypatch.setattr(admission, "check_at_acknowledgements", lambda *_: Compared(seen, seen))
    monkeypatch.setattr(admission, "audit_recoveries", lambda *_: ("", 4, ("b", "a")))
    monkeypatch.setattr(admission, "_writes", lambda _: 1)
    found = admission._audit(make_spec(0), cast(Any, None), tmp_path, cast(Any, run))
    assert found == Audited("", Compared(seen, of), 4, ("a", "b"))
