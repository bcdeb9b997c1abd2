"""One look at a script: its recorded run, and a few of its crash states. Nothing of it is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import xxhash

from tornpage.hunting.corpus import MUTATION, Look, Seen
from tornpage.live.fault_free import failed_run
from tornpage.live.recording import Recording, recorded_run
from tornpage.plans.campaign import Campaign, fault_free_spec
from tornpage.plans.limits import Limits
from tornpage.powerloss.explorer import explore
from tornpage.powerloss.runner import loss_limits, loss_parts
from tornpage.targets.target import Target
from tornpage.vocabulary.errors import FailedRunError, GoldenRunError, UnseenError
from tornpage.vocabulary.model import TrialSpec, Violation

__all__ = ["Looked", "look_at", "scripts_of_campaign"]

LOOK_STATES = 60
"""Of a look whose recoveries are not crashed; of others twice as many."""
STATE_WORK = 40
"""Of a state, in recorded events, whose number says about how long a run takes, and recoveries of it."""
FAILED = Seen(frozenset(), 1000, 0)
"""What a run that comes to nothing has shown."""


@dataclass(frozen=True, slots=True)
class Looked:
    """seen: what the corpus learns; broken: by state what it broke, "" is the run itself; refused: the target
    could not run the script."""

    seen: Seen
    broken: Mapping[str, tuple[Violation, ...]]
    refused: bool = False


def scripts_of_campaign(campaign: Campaign, target: str) -> Iterator[tuple[TrialSpec, Limits]]:
    """Its scripts, each with as far as a look goes."""
    for config, depth in loss_parts(campaign):
        states = LOOK_STATES if depth == 1 else 2 * LOOK_STATES
        limits = replace(loss_limits(campaign, depth), states=states, budget_s=0)
        yield fault_free_spec(campaign, target, config), limits


def look_at(look: Look, target: Target, scratch: Path) -> Looked:
    """Makes it. A mutated script that the target refuses has shown nothing. UnseenError: of no script can
    anything be said."""
    try:
        with recorded_run(look.spec, target, scratch) as recording:
            found = explore(look.spec, target, recording, look.limits)
    except FailedRunError as error:
        broken = {"": failed_run(look.spec.config, True, error).violations}
        return Looked(FAILED, broken)
    except UnseenError:
        raise
    except GoldenRunError:
        if look.source != MUTATION:
            raise
        return Looked(FAILED, {}, refused=True)
    states = int(found.summary["states"])
    work = recording.events + STATE_WORK * states
    seen = Seen(frozenset(_marks(recording, found.summary)), work, states)
    run = {"": recording.violations} if recording.violations else {}
    return Looked(seen, {**run, **found.broken})


def _marks(recording: Recording, summary: Mapping[str, Any]) -> Iterator[int]:
    """What can be told of any target: what recoveries and the run counted, which kinds of writes there were
    and how they were torn or lost; each with about how often."""
    counted: dict[str, int] = {f"run {name}": n for name, n in recording.counters.items()}
    counted |= {f"recovery {name}": n for name, n in summary.get("paths", {}).items()}
    counted |= {f"rule {name}": 1 for name in recording.suspect[:1]}
    for site, flushes in summary["torn_pages"].items():
        for flush, masks in flushes.items():
            for mask, counts in masks.items():
                counted |= {f"{kind} {site} {flush} {mask}": n for kind, n in counts.items()}
    for name, n in counted.items():
        if n > 0:
            yield xxhash.xxh32_intdigest(f"{name} {n.bit_length()}".encode())
