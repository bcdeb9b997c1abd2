"""Crashes of one recording that are made operation by operation, and what a recovery makes of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tornpage.causes.parting import Recoveries
from tornpage.faults.image import remove_image
from tornpage.faults.trace import Trace
from tornpage.live.recording import Recording
from tornpage.oracle.fingerprint import kind_of
from tornpage.powerloss.explorer import lay_out_state
from tornpage.targets.target import Capability, Part, Parts, Target
from tornpage.vocabulary.cause import Parting
from tornpage.vocabulary.errors import ChildError, ConfigError
from tornpage.vocabulary.model import TrialSpec, Violation

__all__ = ["Choice", "Experiment", "waits_of"]

ALL = "1"
NOTHING = "0"
IN_PART = "?"
"""Of a write of more sectors than states can name."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What a crash right after event `seq` keeps of that which was not durable: all but `of`, or only these.
    of: by number of the operation, of a write a "0" or "1" per sector, else one; cut: a write that brings
    several steps to its file, and how many of them it is to bring."""

    seq: int
    of: Mapping[int, str]
    keeps: bool = False
    cut: tuple[int, int] | None = None

    @property
    def line(self) -> str:
        """As disk/chosen.h has it."""
        words = [
            str(seq) if set(kept) == {ALL if self.keeps else NOTHING} else f"{seq}={kept}"
            for seq, kept in sorted(self.of.items())
        ]
        return " ".join(["keep" if self.keeps else "lose", *words])


def waits_of(line: str, state: str) -> dict[int, str]:
    """line: of a way (Experiment.way()), the state's last one; otherwise as Experiment.waiting()."""
    waits = {int(item["seq"]): str(item["kept"]) for item in json.loads(line)["waits"]}
    if IN_PART in waits.values():
        seq = next(seq for seq, kept in waits.items() if kept == IN_PART)
        raise ConfigError(
            f"state {state}: operation {seq} writes too many sectors for its parts to be told, and was "
            "torn: make the script smaller, or its writes, and run it again"
        )
    return waits


class Experiment:
    """probes: crashes that were recovered. What else was looked at in the state of the trial, as new work
    after its recovery, is looked at in each of them, once the way of that is known."""

    def __init__(
        self,
        spec: TrialSpec,
        target: Target,
        recording: Recording,
        scratch: Path,
        parts: Parts | None = None,
        inside: str = "",
        folders: Sequence[Path] = (),
        sample: str = "",
    ) -> None:
        """parts: what the recording's writes are made of; inside: the state whose recovery is crashed, "" if
        the run is; folders: with debug files; sample: what else is looked at is drawn by it, as way() finds
        it."""
        self.probes = 0
        self.sample = sample
        self._folders = folders
        self._parts = parts
        self._inside = f"{inside}/" if inside else ""
        self._spec, self._target, self._recording = spec, target, recording
        self._scratch = scratch
        self._known: dict[tuple[int, str, tuple[int, int] | None], tuple[Violation, ...]] = {}

    def waiting(self, state: str) -> dict[int, str]:
        """What was not durable at the crash of a state, the last one if it has several, and what of it was
        kept. ConfigError: there is no such state, or it tore what cannot be told."""
        return waits_of(self.way(state)[-1], state)

    def way(self, state: str) -> list[str]:
        """What the explorer says of the way of a state, a line per crash. ConfigError: there is no such
        state."""
        way = self._scratch / "way"
        way.unlink(missing_ok=True)
        try:
            lay_out_state(self._spec, self._target, self._recording, state, None, way)
        except ChildError as error:
            raise ConfigError(
                f"state {state}: the explorer cannot make it again: {error}"
            ) from error
        lines = way.read_text("utf-8").splitlines()
        way.unlink()
        if state == self._spec.plan.loss:
            self.sample = str(json.loads(lines[-1])["sample"])
        return lines

    def whole_parts(self, seq: int, kept: str) -> int:
        """How many of these are there as a whole, if of the write these sectors are, from its beginning."""
        assert self._parts is not None, "the write has parts"
        return self._parts.whole(seq, len(kept.rstrip(NOTHING)) / len(kept))

    def violations(self, choice: Choice) -> tuple[Violation, ...]:
        """What the crash breaks. ChildError: there is no crash point after this event."""
        key = (choice.seq, choice.line, choice.cut)
        if key not in self._known:
            self.probes += 1
            self._known[key] = self._ask(choice)
        return self._known[key]

    def parts(self, seq: int) -> tuple[Part, ...]:
        """The steps that the write brings to its file, the oldest first; none: it is one, or nobody knows."""
        return self._parts.of(seq) if self._parts else ()

    def changer(self, seq: int) -> Part | None:
        """Of a write of a page the step that changed that last; None: it is none, or nobody knows."""
        return self._parts.changer(seq) if self._parts else None

    def shows(self, choice: Choice, wanted: Iterable[tuple[int, str]]) -> bool:
        """Whether the crash shows one of these findings."""
        return bool({kind_of(one) for one in self.violations(choice)} & set(wanted))

    def parting(self, broken: Choice, right: Choice, than: str) -> Parting | None:
        """Where the recovery of a broken crash goes another way than that of a right one, which is another
        `than` in words. None: nowhere, or nobody can tell."""
        images = self._scratch / "broken", self._scratch / "right"
        try:
            for choice, image in zip((broken, right), images, strict=True):
                self._ask(choice, image)
            parting = self._recoveries().parting(*images, than)
        finally:
            for image in images:
                remove_image(image)
        crash = int(self._inside.partition(".")[0]) if self._inside else broken.seq
        return replace(parting, blames=self._is_right_until(crash)) if parting else None

    def _recoveries(self) -> Recoveries:
        options, at = self._spec.options, self._recording.at
        return Recoveries(self._target, options, at, self._scratch, self._folders)

    def _is_right_until(self, seq: int) -> bool:
        """The run has broken no rule on bytes up to this event, and would be told."""
        told = Capability.RULES in self._target.capabilities
        return told and all(event > seq for event in self._recording.suspect)

    def _ask(self, choice: Choice, image: Path | None = None) -> tuple[Violation, ...]:
        """image: gets the files of the crash."""
        file = self._scratch / "chosen"
        file.write_text(f"{choice.line}\n", "ascii")
        state = f"{self._inside}{choice.seq}.chosen.0"
        recording = self._recording if choice.cut is None else self._rewritten(*choice.cut)
        found = lay_out_state(
            self._spec, self._target, recording, state, image, chosen=file, sample=self.sample
        )
        return found.broken.get(state, ())

    def _rewritten(self, seq: int, count: int) -> Recording:
        """The recording in which the write brings so many of its steps."""
        if self._parts is None:
            raise ValueError("what its writes are made of is not known")
        file = self._scratch / "rewritten"
        trace = Trace.load(self._recording.trace)
        file.write_bytes(trace.rewritten(seq, self._parts.cut(seq, count)))
        return replace(self._recording, trace=file)
