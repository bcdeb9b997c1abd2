"""What is kept of a run that cannot be had again, as a server's: its recording, and the files that it began
with. A rule on bytes that the run broke can be asked once more, and says the same.

May import: census, image, model, target, workload.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tornpage.campaigns.census import judge_run
from tornpage.faults.image import copy_image
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.model import Source, TrialResult, TrialSpec, Violation
from tornpage.workloads.workload import page_size_of

__all__ = ["is_of_recording", "judge_kept", "keep_found"]

RECORDING = "run.trace"
"""What every kept image has."""
FOUND = "found"


def is_of_recording(violation: Violation, target: Target) -> bool:
    """Whether its evidence is a recording, and no other run of the target need show the same."""
    return violation.source is Source.RULE and Capability.DETERMINISTIC not in target.capabilities


def keep_found(found: Path, image: Path, violations: Iterable[Violation], target: Target) -> None:
    """Puts what the run found beside its recording, in a kept image, if that is the evidence."""
    if any(is_of_recording(violation, target) for violation in violations):
        copy_image(found, image / FOUND)


def judge_kept(spec: TrialSpec, result: TrialResult, target: Target) -> frozenset[int]:
    """Invariants that a kept recording breaks by a rule on its bytes; none if nothing was kept."""
    image = result.image
    if image is None or not (image / RECORDING).is_file() or not (image / FOUND).is_dir():
        return frozenset()
    setting = target.judge_setting(spec.options, page_size_of(spec.options))
    judged = judge_run(target, image / RECORDING, setting, image / FOUND, live=True)
    return frozenset(finding.violation.invariant for finding in judged.findings)
