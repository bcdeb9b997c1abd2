"""What comes before every verdict on a target file: the audit of its runs, and the control.

The control is a disk that ignores every fsync. If no state of it breaks the promise, the set-up cannot find
anything, and what it does not find on an honest disk says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import xxhash

from tornpage.live.admission import Audited, audit_runs
from tornpage.live.recording import recorded_run
from tornpage.plans.campaign import Campaign, fault_free_spec
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import Exploration, Scope, explore
from tornpage.store.origin import Examined
from tornpage.targets.registry import identity_of
from tornpage.targets.target import Capability, Target
from tornpage.vocabulary.codec import to_json
from tornpage.vocabulary.model import TrialSpec
from tornpage.workers.context import RunContext

__all__ = ["examine_runs", "work_key", "works_of"]

LIE = "*"
PORTIONS = (25, 100, 400)
"""States of the control: a larger one only where none of the one before broke the promise."""


def works_of(campaign: Campaign, target: str) -> list[TrialSpec]:
    """A fault-free run of each configuration."""
    return [fault_free_spec(campaign, target, config) for config in campaign.configs()]


def work_key(target: Target, works: Sequence[TrialSpec]) -> str:
    """The same where target, options and workload are, whatever the seed."""
    each = [(one.config, sorted(one.options.items()), one.workload, one.params) for one in works]
    return xxhash.xxh3_64_hexdigest(to_json((identity_of(target), each)).encode())


def examine_runs(
    target: Target,
    works: Sequence[TrialSpec],
    scratch: Path,
    context: RunContext,
    audited: Audited | None = None,
) -> Examined:
    """Audit and control of these runs. audited: what came of an audit before, None: it is made here.
    Raises GoldenRunError naming the first call that the recording lacks, FailedRunError, ChildError."""
    if audited is None:
        context.progress.phase("audit", 1)
        audited = audit_runs(target, works, scratch)
        context.progress.advance(False)
    explored = works if Capability.EXPLORE in target.capabilities else []
    context.progress.phase("control", len(explored))
    states, kinds, blind = 0, 0, []
    for work in explored:
        found = _control(target, work, scratch, context)
        states += int(found.summary["states"])
        kinds += len(found.broken)
        blind += [] if found.broken else [work.config]
        context.progress.advance(False)
    return Examined(
        work_key(target, works),
        states,
        kinds,
        tuple(blind),
        audited.missing,
        audited.compared.acknowledgements,
        audited.compared.of,
        audited.recoveries,
        audited.mapped,
    )


def _control(target: Target, work: TrialSpec, scratch: Path, context: RunContext) -> Exploration:
    with recorded_run(work, target, scratch) as recording:
        for states in PORTIONS:
            scope = Scope(jobs=context.jobs, ignored_fsyncs=(LIE,))
            limits = Limits(states=states)
            found = explore(work, target, recording, limits, scope, context.progress.note)
            if found.broken:
                break
    return found
