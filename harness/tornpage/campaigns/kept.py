"""What is kept of a run that cannot be had again, as a server's: its recording, and the files that it began
with. A rule on bytes that the run broke can be asked once more, and says the same; so of the first recovery,
which began with the crashed image. Of later ones the recording alone is kept.

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

RECORDINGS = (("run.trace", "found"), ("recover-1.trace", "data"), ("recover.trace", "data"))
"""In the folder of a kept image: each with the folder that it began with. A recovery that was disturbed has a
number, and the next one began with what it left."""


def is_of_recording(violation: Violation, target: Target) -> bool:
    """Whether its evidence is a recording, and no other run of the target need show the same."""
    return violation.source is Source.RULE and Capability.DETERMINISTIC not in target.capabilities


def keep_found(found: Path, image: Path, violations: Iterable[Violation], target: Target) -> None:
    """Puts what the run found beside its recording, in a kept image, if that is the evidence."""
    if any(is_of_recording(violation, target) for violation in violations):
        copy_image(found, image / RECORDINGS[0][1])


def judge_kept(spec: TrialSpec, result: TrialResult, target: Target) -> frozenset[int]:
    """Invariants that a kept recording breaks by a rule on its bytes; none if nothing was kept."""
    image = result.image
    if image is None or not (image / RECORDINGS[0][1]).is_dir():
        return frozenset()
    setting = target.judge_setting(spec.options, page_size_of(spec.options))
    broken: set[int] = set()
    for trace, found in _recordings(image):
        judged = judge_run(target, trace, setting, found, live=True)
        broken.update(finding.violation.invariant for finding in judged.findings)
    return frozenset(broken)


def _recordings(image: Path) -> list[tuple[Path, Path]]:
    """The run and the first recovery, each with what it began with."""
    there = [(image / trace, image / found) for trace, found in RECORDINGS]
    return [one for one in there if one[0].is_file() and one[1].is_dir()][:2]
