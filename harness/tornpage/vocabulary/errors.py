"""The one exception tree of the harness. An exception means that the harness, its configuration or its
surroundings are broken; misbehaviour of a target is never an exception but a verdict (model.Outcome).

    TornpageError
    ├── ConfigError          a file or an argument of the user is wrong (exit code 2)
    │   ├── MissingError     a target needs what is not here
    │   ├── DamagedError     what the harness has written itself is not what it was
    │   ├── PlanError        fault plan
    │   └── WorkloadError    workload definition or script
    ├── TargetError          the target cannot be run at all: program or preload missing
    ├── TraceError           the trace file is not one, or overflowed
    ├── GoldenRunError          the run without a fault cannot be made, so that no trial can be judged
    │   ├── UnseenError      its recording lacks something that has changed its files
    │   └── FailedRunError   it was made, and the target failed: a verdict on its configuration
    ├── ChildError           a child process could not be started or reaped
    ├── DeafError            a judge let a state pass that must be condemned: nothing it says counts
    └── MachineError         the machine failed the run (disk or memory full, a process killed): it can go on
        ├── EndedError       a process was ended from outside, or says that the machine failed it
        └── UnexploredError  an exploration has no result, others have (exit code 2, --resume makes it)

    BaseException
    └── Interrupted          SIGINT, SIGTERM or SIGHUP (exit code 128 + its number)
"""

from __future__ import annotations

__all__ = [
    "ChildError",
    "ConfigError",
    "DamagedError",
    "DeafError",
    "EndedError",
    "FailedRunError",
    "GoldenRunError",
    "Interrupted",
    "MachineError",
    "MissingError",
    "PlanError",
    "TargetError",
    "TornpageError",
    "TraceError",
    "UnexploredError",
    "UnseenError",
    "WorkloadError",
]


class TornpageError(Exception):
    """Root of every exception that this package raises on purpose."""


class ConfigError(TornpageError):
    """Something that a user wrote is wrong; the message names the place (file, line, key)."""


class MissingError(ConfigError):
    """A target needs what is not here; the message says what brings it. target: where its file is found again
    (registry.full_name); remedy: that command, or words."""

    def __init__(self, message: str, target: str, remedy: str) -> None:
        super().__init__(message)
        self.target, self.remedy = target, remedy


class DamagedError(ConfigError):
    """What this or another version of the harness has written is not, or no more, as it is read here."""


class PlanError(ConfigError):
    """A fault plan is malformed, or asks for what the fault layer cannot do."""


class WorkloadError(ConfigError):
    """A workload definition or a script is malformed."""


class TargetError(TornpageError):
    """The target cannot be run: a program or library is missing or too old."""


class TraceError(TornpageError):
    """A trace file is damaged, of another version, or overflowed."""


class GoldenRunError(TornpageError):
    """The run without a fault did not go as it must; no trial can be judged."""


class UnseenError(GoldenRunError):
    """Something changed a file, and the recording does not show it: another recorder may see it."""


class FailedRunError(GoldenRunError):
    """The target failed although nothing was done to it. The campaign goes on without this configuration."""


class ChildError(TornpageError):
    """A child process could not be started or reaped."""


class DeafError(TornpageError):
    """A canary, a state that must be condemned, was not: the message names it. Nothing that this judge called
    right is known to be."""


class MachineError(TornpageError):
    """What is around the run failed: no space, no memory, no descriptors, a process of ours ended from
    outside. Nothing is said about the target. kept: there is a run that can go on when that is over."""

    kept = False


class EndedError(MachineError):
    """A process came to no end of its own, or says that the machine failed it. Once, that says nothing of the
    target; where it comes each time in the same place, it does."""


class UnexploredError(MachineError):
    """An exploration that many workers share has no result: one of its tasks failed wherever it was tried, or
    its slices do not fit together. What else has come back is kept, and other explorations go on."""


class Interrupted(BaseException):
    """A signal asked the run to end. number: of the signal; kept: what was finished is not lost; go_on: what
    goes on from there; told: in place of both. No KeyboardInterrupt, which the command-line library makes
    into an exit of its own."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number
        self.kept = False
        self.go_on = "--resume"
        self.told = ""
