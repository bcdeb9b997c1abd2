"""What a kill has left of the write that it hit."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from builders import make_golden_run, make_write
from fake_trace import FakeTrace

from tornpage.faults.trace import FAULT_RULE_SHIFT, Op
from tornpage.live.hit import find_hit, tears_nothing
from tornpage.live.trial import _told
from tornpage.targets.target import Capability
from tornpage.vocabulary.model import Action, Fault, FaultKind, FaultPlan, Site


@pytest.mark.parametrize(
    ("sectors", "kept", "whole"),
    [
        ("random", b"\1\1", True),
        ("random", b"\1\0", False),
        ("random", b"\0\1", False),
        ("none", b"\0\0", False),
        ("all", b"\1\1", False),
    ],
    ids=["whole", "first", "last", "none", "planned"],
)
def test_only_a_write_that_is_left_whole_is_not_torn(
    sectors: str, kept: bytes, whole: bool
) -> None:
    """Unless that was the plan."""
    trace = FakeTrace().kill("f", 0, kept, bytes(1024), b"x" * 1024).trace()
    (event,) = trace.events(kinds=(Op.KILL,))
    fault = Fault(FaultKind.WRITE, 1, Action.KILL, sectors=sectors)
    assert tears_nothing(trace, event, (fault,)) is whole
    assert not tears_nothing(trace, None, (fault,))


def fault(file: str, nth: int) -> Fault:
    """A kill in this write."""
    return Fault(FaultKind.WRITE, nth, Action.KILL, file=file, sectors="none")


PLAN = FaultPlan(run=(fault("a", 1), fault("b", 2)))


@pytest.mark.parametrize(
    ("rule", "wanted", "site"),
    [(0, ("a", 1), Site.REDO), (1, ("b", 2), Site.REDO), (63, ("b", 2), Site.REDO)],
    ids=["first", "second", "of libfiu"],
)
def test_of_runs_that_differ_the_plan_says_which_write_was_hit(
    rule: int, wanted: tuple[str, int], site: Site
) -> None:
    """By the number of its rule; what the write was for is asked of this run, not of the fault-free one."""
    golden = make_golden_run(
        *(make_write(nth, Site.OTHER, file) for file in ("a", "b") for nth in (1, 2))
    )
    target = SimpleNamespace(
        capabilities=frozenset({Capability.OBSERVED}),
        site_of=lambda name, _offset, _facts, _page: Site.REDO if name == "now" else Site.OTHER,
    )
    base = SimpleNamespace(golden_run=golden, setting=SimpleNamespace(page_size=4096), by_seq={})
    fake = FakeTrace().open("now").write("now", 0, 512)
    fake.record(Op.FAULT, flags=Op.WRITE | rule << FAULT_RULE_SHIFT, file=1, length=512)
    hit = find_hit(fake.trace(), cast(Any, base), PLAN, cast(Any, target))
    assert hit.write is not None and (hit.write.file, hit.write.nth) == wanted
    assert hit.site is site


@pytest.mark.parametrize(
    ("golden", "own", "told"),
    [
        (b"0\n1\n2\n", b"0\n1\n", b"0\n1\n2\n0\n1\n"),
        (b"0\n1\n2\n", b"0\n1\n2", b"0\n1\n2\n0\n1\n2"),
        (b"0\n1\n2\n", b"0\n7\n", b"0\n7\n"),
        (None, b"0\n", b"0\n"),
    ],
    ids=["alike", "cut", "other", "none"],
)
def test_a_kept_run_tells_what_it_did_not_get_to(
    golden: bytes | None, own: bytes, told: bytes, tmp_path: Path
) -> None:
    """The fault-free run's states go first, so that its own count; of another run they are none of its."""
    if golden is not None:
        (tmp_path / "told").write_bytes(golden)
    stage = SimpleNamespace(base=SimpleNamespace(found=tmp_path / "found"))
    crash = SimpleNamespace(child=SimpleNamespace(stdout=own))
    assert _told(cast(Any, stage), cast(Any, crash)) == told
