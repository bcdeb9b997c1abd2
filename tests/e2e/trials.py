"""What tests of single trials share: a spec of the smoke workload, plans, an engine with another program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tornpage.targets.engine.target import EngineTarget
from tornpage.targets.target import Command
from tornpage.vocabulary.model import (
    Action,
    Fault,
    FaultKind,
    FaultPlan,
    Site,
    TrialSpec,
    WriteEvent,
)

ENGINE_SITES = set(Site) - {
    Site.FILE_OP,
    Site.FREED_PAGE,
    Site.ROLLBACK_JOURNAL,
    Site.METADATA,
    Site.SORT_RUN,
    Site.ROW_LOG,
    Site.OTHER,
}
"""Sites that a write of the engine has in the smoke workload."""

OPTIONS = {
    "page_size": "4k",
    "log_file_size": "512k",
    "buffer_pool_pages": "96",
    "dblwr_pages": "16",
    "sort_buffer_size": "64k",
    "log_optimize_ddl": "on",
}


def make_spec(number: int = 0, plan: FaultPlan | None = None, **options: str) -> TrialSpec:
    """A trial of the smoke workload."""
    return TrialSpec(
        campaign="e2e",
        target="engine",
        config="c",
        options={**OPTIONS, **options},
        workload="smoke",
        params={"rows": 40, "changes": 8},
        workload_seed=3,
        seed=11,
        number=number,
        plan=plan or FaultPlan(),
    )


def kill_at(write: WriteEvent, sectors: str, **plan: object) -> FaultPlan:
    """Kills inside this write of the golden run."""
    fault = Fault(FaultKind.WRITE, write.nth, Action.KILL, file=write.file, sectors=sectors)
    return replace(FaultPlan(run=(fault,)), **plan)  # type: ignore[arg-type]


class Replaced(EngineTarget):
    """The engine, except that one of its commands is another program."""

    run_instead: tuple[str, ...] | None = None
    recover_instead: tuple[str, ...] | None = None
    deadline_s = 60.0

    def run_command(self, data: Path, script: Path, options: Mapping[str, str]) -> Command:
        if self.run_instead is not None:
            return Command((*self.run_instead, str(data), str(script)), {}, self.deadline_s)
        return super().run_command(data, script, options)

    def recover_command(self, data: Path, options: Mapping[str, str]) -> Command:
        if self.recover_instead is not None:
            return Command((*self.recover_instead, str(data)), {}, self.deadline_s)
        return super().recover_command(data, options)


def replaced(target: EngineTarget) -> Replaced:
    return Replaced(target.program, target.preload, target.explorer)
