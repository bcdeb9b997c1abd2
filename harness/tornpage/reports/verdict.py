"""The verdict of a run in one line, with what was looked at and what was not: the last line of every command
that runs something, the head of its report, a property in JUnit, and keys of --json.

    VIOLATIONS (exit 1): 1 new bug, next: tornpage show 2.5
    CLEAN (exit 0): engine 0123abcd, fs posix, 12 models, 239,984 states; not exercised: kills, I/O errors
    CLEAN (exit 0): mydb 0123abcd; power loss: fs posix, 12 models, 606 states; kills: 20 trials; ...
    CLAIMS MISSED (exit 3): rowlog_overflows never happened
    NOTHING EXERCISED (exit 3): none of 20 trials was exercised
    NOTHING EXERCISED (exit 3): vacuous: on a disk that ignores every fsync none of 400 states broke ...
    NO VERDICT (exit 2): the run failed before its end
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tornpage.reports.bound import Bound, bound_of
from tornpage.reports.night import NightSummary, is_idle
from tornpage.reports.pairwise import Pairs, pairs_of
from tornpage.reports.summary import BugSeen, Summary
from tornpage.store.memory import CLAIMS_MISSED, Answer
from tornpage.store.memory import NOTHING as NOTHING_EXERCISED
from tornpage.store.origin import Examined
from tornpage.targets.option import disk_of
from tornpage.vocabulary.model import Outcome, TrialResult

__all__ = [
    "LookedAt",
    "Verdict",
    "Word",
    "looked_at",
    "not_exercised",
    "verdict_of",
    "verdict_of_night",
    "verdict_of_replay",
    "verdict_of_runs",
]

HASH_DIGITS = 8
NAMED_MAX = 6
"""What is not exercised that the line names; --json has all."""
_CRASHES = {"kill": "kills", "power_loss": "power loss", "io_error": "I/O errors"}
"""By crash_model of a campaign file."""
_STATES = {
    "failed": "the run failed before its end",
    "running": "the run did not come to its end",
}
"""Of a run whose verdicts are not all there."""
_MODELS = "by_model"
"""Of what the explorer says of one exploration: the states of each model of what a crash keeps."""
_CANARIES = "canaries"
"""As well: what must be condemned, and whether it could be tried."""
_FS = "fs"
"""As well: the file system whose promises it went by."""


class Word(StrEnum):
    """A verdict in a word."""

    VIOLATIONS = "violations"
    KNOWN = "known bugs"
    """All that was broken is known, and no failure: it is ignored, or only news are."""
    CLEAN = "clean"
    CLAIMS = CLAIMS_MISSED
    NOTHING = NOTHING_EXERCISED
    NONE = "no verdict"
    REPRODUCED = "reproduced"
    """Of a finding that was played again."""
    NOT_REPRODUCED = "not reproduced"


@dataclass(frozen=True, slots=True)
class LookedAt:
    """What a run is a statement about. build: hash of the target's own programs, "" where they have none; fs:
    file-system profile of power losses, "" for live crashes; under: the real file system whose disk lost
    power, "" if none did; models: of crash states that were judged;
    crashes: trials or states judged; fault_free: runs without a crash; not_exercised: in words;
    no_canary: of power losses, in no configuration was there an occasion to try the judge by these; examined:
    what came before the run of a target file; bound: what a run of enumerated scripts is complete for; pairs:
    which statements it had together."""

    target: str
    build: str
    fs: str
    under: str
    crash_model: str
    models: tuple[str, ...]
    crashes: int
    depth: int
    fault_free: int
    not_exercised: tuple[str, ...]
    no_canary: tuple[str, ...] = ()
    examined: Examined | None = None
    bound: Bound | None = None
    pairs: Pairs | None = None

    @property
    def text(self) -> str:
        """In one line."""
        missed = _missed(self.not_exercised) + _audited([self.examined])
        return f"{self.subject}, {self.extent}{missed}"

    @property
    def subject(self) -> str:
        """Which target."""
        return f"{self.target} {self.build[:HASH_DIGITS]}".rstrip()

    @property
    def extent(self) -> str:
        """How much of it."""
        parts = [f"under {self.under}"] if self.under else [f"fs {self.fs}"] if self.fs else []
        if self.models:
            parts.append(_several(len(self.models), "model"))
        unit = "state" if self.crash_model == "power_loss" else "trial"
        parts.append(_several(self.crashes, unit))
        return ", ".join([*parts, *(one.text for one in (self.bound, self.pairs) if one)])

    @property
    def crash(self) -> str:
        """What was done to it."""
        return _CRASHES[self.crash_model]

    def to_json(self) -> dict[str, Any]:
        """The value of `looked_at`."""
        data: dict[str, Any] = {
            "target": self.target,
            "build": self.build,
            "fs": self.fs,
            "under": self.under,
            "crash_model": self.crash_model,
            "models": list(self.models),
            "crashes": self.crashes,
            "depth": self.depth,
            "fault_free": self.fault_free,
            "not_exercised": list(self.not_exercised),
            "no_canary": list(self.no_canary),
        }
        if self.bound is not None:
            data["bound"] = self.bound.to_json()
        if self.pairs is not None:
            data["pairs"] = self.pairs.to_json()
        if self.examined is not None:
            data |= {
                "control": self.examined.control,
                "not_audited": self.examined.not_audited,
                "audited": {
                    "compared": self.examined.compared,
                    "acknowledgements": self.examined.acknowledgements,
                    "recoveries": self.examined.recoveries,
                },
            }
        return data


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said at the end, and the exit code that goes with it."""

    word: Word
    exit_code: int
    text: str

    @property
    def line(self) -> str:
        """The last line."""
        return f"{self.word.upper()} (exit {self.exit_code}): {self.text}".removesuffix(": ")

    @property
    def kind(self) -> str:
        """Its colour in a report: clean, violation or idle."""
        return {Word.CLEAN: "clean", Word.VIOLATIONS: "violation", Word.KNOWN: "violation"}.get(
            self.word, "idle"
        )

    def to_json(self) -> dict[str, Any]:
        """The keys of --json that say so."""
        return {"verdict": self.word, "exit_code": self.exit_code}


def looked_at(summary: Summary) -> LookedAt:
    """What the run is about, and what it did not come to."""
    settings = summary.run.settings
    crash_model = str(settings.get("crash_model", "power_loss" if summary.explored else "kill"))
    parts = summary.explored.values()
    models = {
        name
        for part in parts
        for name, of_model in part.get(_MODELS, {}).items()
        if of_model["states"]
    }
    depth = max((int(part.get("depth", 1)) for part in parts), default=1)
    return LookedAt(
        target=summary.run.target,
        build=summary.run.origin.build,
        fs=", ".join(sorted({str(part[_FS]) for part in parts if _FS in part})),
        under=disk_of(settings.get("options", {})),
        crash_model=crash_model,
        models=tuple(sorted(models)),
        crashes=summary.exercised,
        depth=depth,
        fault_free=summary.scripts + summary.fault_free,
        not_exercised=tuple(_not_exercised(summary, crash_model, depth)),
        no_canary=tuple(_no_canary(part.get(_CANARIES, ()) for part in parts)),
        examined=summary.run.origin.examined,
        bound=bound_of(summary),
        pairs=pairs_of(summary),
    )


def _no_canary(tried: Iterable[Iterable[dict[str, Any]]]) -> list[str]:
    """Those that were condemned nowhere: one that was let pass ends the run."""
    condemned: dict[str, bool] = {}
    for canary in (one for each in tried for one in each):
        name = str(canary["name"])
        condemned[name] = condemned.get(name, False) or bool(canary["condemned"])
    return sorted(name for name, is_condemned in condemned.items() if not is_condemned)


def _not_exercised(summary: Summary, crash_model: str, depth: int) -> Iterable[str]:
    """The nearest first: what the run itself was about to do, then what it is not about."""
    if summary.run.state == "stopped":
        yield "what the time was up for"
    if summary.cut_short:
        yield f"{_several(summary.cut_short, 'state')} that the time was up for"
    if summary.run.origin.examined is not None:
        yield from _blind([summary.run.origin.examined])
        if not summary.run.origin.examined.states:
            yield "control"
        if summary.explored:
            yield from _mapped([summary.run.origin.examined])
    for outcome in (Outcome.NOT_EXERCISED, Outcome.VACUOUS):
        if summary.outcomes[outcome]:
            yield _several(summary.outcomes[outcome], f"{outcome.replace('_', ' ')} trial")
    yield from (f"site {site}" for site in summary.uncovered_sites)
    missed = (*summary.claims_missed, *summary.run_claims_missed)
    yield from missed
    if summary.torn_pages.cells and summary.torn_pages.covered < summary.torn_pages.total:
        missing = summary.torn_pages.total - summary.torn_pages.covered
        yield f"{missing} of {_several(summary.torn_pages.total, 'kind')} of torn writes"
    parts = summary.explored.values()
    if summary.explored and (depth == 1 or not any(map(_is_deeper, parts))):
        yield "crashes of recovery"
    if stateless := _stateless(parts, summary.run.settings):
        yield " ".join(["model" if len(stateless) == 1 else "models", *stateless])
    yield from (name for model, name in _CRASHES.items() if model != crash_model)


def _is_deeper(part: Mapping[str, Any]) -> bool:
    """A recovery was crashed that had changed something: before that there is nothing to lose."""
    return bool(part.get("paths", {}).get("second_crash"))


def _stateless(parts: Iterable[Mapping[str, Any]], settings: Mapping[str, Any]) -> list[str]:
    """Models of which a run that was to try them had no state at all, in their order."""
    wanted = (settings.get("explore") or {}).get("models")
    states: dict[str, int] = {}
    for part in parts:
        for name, of_model in part.get(_MODELS, {}).items():
            states[name] = states.get(name, 0) + of_model["states"]
    return [name for name, count in states.items() if not count and name in (wanted or states)]


def verdict_of(summary: Summary, *, only_news: bool = False) -> Verdict:
    """Of one run. only_news: bugs that were known before are no failure."""
    code = summary.exit_code(only_news=only_news)
    if code == 1:
        failing = [seen for seen in summary.bugs if seen.fails(only_news)]
        return Verdict(Word.VIOLATIONS, code, _bugs(failing))
    if code == 2:
        return Verdict(Word.NONE, code, _why_none(summary))
    if code == 3:
        if summary.unproved:
            return Verdict(Word.NOTHING, code, summary.unproved)
        missed = (*summary.claims_missed, *summary.run_claims_missed)
        if summary.exercised and missed:
            return Verdict(Word.CLAIMS, code, f"{', '.join(missed)} never happened")
        return Verdict(Word.NOTHING, code, _idle(summary))
    about = looked_at(summary).text
    if summary.violations:
        return Verdict(Word.KNOWN, code, f"{_several(len(summary.bugs), 'known bug')}; {about}")
    return Verdict(Word.CLEAN, code, about)


def verdict_of_runs(summaries: Sequence[Summary], *, only_news: bool = False) -> Verdict:
    """Of several runs of a target, at least one, that are one question: the worst of theirs, bugs before
    everything; with what came of each part, and what none of them came to. Kills of runs without a write are
    no part, but what was not exercised."""
    summaries = [summary for summary in summaries if not summary.is_writeless] or summaries
    verdicts = [verdict_of(summary, only_news=only_news) for summary in summaries]
    codes = [verdict.exit_code for verdict in verdicts]
    code = 1 if 1 in codes else max(codes)
    unproved = [summary.unproved for summary in summaries if summary.unproved]
    if code == 3 and unproved:
        return Verdict(Word.NOTHING, code, unproved[0])
    abouts = [looked_at(summary) for summary in summaries]
    parts = list(zip(summaries, abouts, verdicts, strict=True))
    worst = [f"{a.crash}: {v.text}" for s, a, v in parts if v.exit_code > 1 and not s.unproved]
    if code == 1:
        bugs = {s.bug.id: s for one in summaries for s in one.bugs if s.fails(only_news)}
        return Verdict(Word.VIOLATIONS, code, "; ".join([*worst, _bugs(list(bugs.values()))]))
    fine = [f"{a.crash}: {a.extent}" for _, a, v in parts if not v.exit_code]
    if code:
        word = next(verdict.word for verdict in verdicts if verdict.exit_code == code)
        return Verdict(word, code, "; ".join([*worst, *fine]))
    known = {seen.bug.id for summary in summaries if summary.violations for seen in summary.bugs}
    first = [_several(len(known), "known bug")] if known else []
    text = "; ".join([*first, abouts[0].subject, *fine])
    text += _missed(not_exercised(abouts)) + _audited([about.examined for about in abouts])
    return Verdict(Word.KNOWN if known else Word.CLEAN, code, text)


def not_exercised(parts: Sequence[LookedAt]) -> list[str]:
    """What none of the parts of one question came to: a crash that one of them is about, and has had, is none
    that the other one lacks."""
    there = {part.crash for part in parts if part.crashes}
    missed = dict.fromkeys(name for part in parts for name in part.not_exercised)
    own = [name for name in missed if name not in _CRASHES.values()]
    return own + [name for name in _CRASHES.values() if name not in there]


def verdict_of_night(night: NightSummary, *, only_news: bool = False) -> Verdict:
    """Of a night."""
    code = night.exit_code(only_news=only_news)
    there = [one for one in night.bugs if one.is_there and (one.is_news or not only_news)]
    if code == 1:
        news = sum(one.is_news for one in there)
        return Verdict(Word.VIOLATIONS, code, _counted(news, len(there) - news, there[0].replay))
    if code == 2:
        unsure = [one for one in night.runs if one.unsure or one.state in ("failed", "running")]
        text = night.errors[0] if night.errors else ""
        if unsure and not text:
            text = f"run {unsure[0].id}, {unsure[0].campaign}: {unsure[0].state}, some verdicts are missing"
        return Verdict(Word.NONE, code, text or f"the night is {night.night.state}")
    if code == 3:
        unknown = [one for one in night.bugs if one.is_unknown]
        if night.unproved:
            return Verdict(Word.NOTHING, code, night.unproved[0])
        missed = [one for one in night.runs if is_idle(one) and one.verdict == CLAIMS_MISSED]
        if unknown:
            return Verdict(Word.NOTHING, code, f"bug {unknown[0].bug.id} could not be played again")
        if missed:
            return Verdict(Word.CLAIMS, code, f"not all that {missed[0].campaign} claims happened")
        idle = [one for one in night.runs if is_idle(one)]
        text = "no crash was judged"
        if idle:
            text = f"run {idle[0].id}, {idle[0].campaign}: none of its crashes was exercised"
        return Verdict(Word.NOTHING, code, text)
    targets = ", ".join(dict.fromkeys(facts.target for facts in night.runs))
    text = (
        f"{targets}, {_several(len(night.runs), 'run')}, {_several(night.crashes, 'crash', 'es')}"
    )
    left = [*night.not_reached, *_blind(night.examined), *_mapped(night.examined)]
    text += _missed(left) + _audited(night.examined)
    known = any(one.count for one in night.bugs)
    return Verdict(Word.KNOWN if known else Word.CLEAN, code, text)


def verdict_of_replay(answer: Answer, result: TrialResult, note: str) -> Verdict:
    """Of a trial that was played again. note: why it could not be, or what is different."""
    if answer is Answer.NOT_PLAYED:
        return Verdict(Word.NONE, 2, note or result.reason)
    if answer is Answer.NOT_REPRODUCED:
        return Verdict(Word.NOT_REPRODUCED, 0, note)
    broken = sorted({violation.invariant for violation in result.violations})
    text = ", ".join(f"I{number}" for number in broken)
    return Verdict(Word.REPRODUCED, 1, f"{text}, {note}" if note else text)


def _bugs(failing: Sequence[BugSeen]) -> str:
    news = sum(seen.is_news for seen in failing)
    return _counted(news, len(failing) - news, failing[0].replay)


def _counted(news: int, known: int, replay: str) -> str:
    """replay: the line that plays the first one again; what shows it is asked in the same way."""
    parts = [_several(news, "new bug")] if news else []
    parts += [_several(known, "known bug")] if known else []
    following = replay.replace("tornpage replay ", "tornpage show ")
    return ", ".join(parts) + (f", next: {following}" if following else "")


def _why_none(summary: Summary) -> str:
    """The worst first."""
    failed = summary.outcomes[Outcome.HARNESS_ERROR]
    unstable = summary.outcomes[Outcome.UNSTABLE]
    reasons = [_STATES[summary.run.state]] if summary.run.state in _STATES else []
    if failed:
        reasons.append(f"the harness failed in {_several(failed, 'trial')}")
    if unstable:
        reasons.append(f"{_several(unstable, 'trial')} did not repeat")
    reasons += [f"first: {summary.errors[0]}"] if summary.errors else []
    return ", ".join(reasons)


def _idle(summary: Summary) -> str:
    if summary.is_writeless:
        return "no run has a write in which it could be killed"
    if not summary.units:
        return "no crash was judged"
    return f"none of {_several(summary.units, 'trial')} was exercised"


def _missed(names: Sequence[str]) -> str:
    if not names:
        return ""
    shown = ", ".join(names[:NAMED_MAX])
    more = len(names) - NAMED_MAX
    return f"; not exercised: {shown}" + (f" and {more} more" if more > 0 else "")


def _blind(examined: Iterable[Examined]) -> list[str]:
    """Configurations of which no state of the control broke the promise: what they show proves nothing."""
    return list(dict.fromkeys(f"control of {config}" for one in examined for config in one.blind))


def _mapped(examined: Iterable[Examined]) -> list[str]:
    """Of files that are mapped to write a recorder has what the kernel hands over, when it does."""
    names = dict.fromkeys(name for one in examined for name in one.mapped)
    return [f"earlier writeback of mapped {name}" for name in names]


def _audited(examined: Sequence[Examined | None]) -> str:
    """As an end of a line: how far a change that no recording has would have been seen, and where it may have
    been there unseen."""
    known = [one for one in examined if one is not None]
    told = [one.audited for one in known if one.audited]
    told += [f"not audited: {one.not_audited}" for one in known if one.not_audited]
    return "".join(f"; {text}" for text in dict.fromkeys(told))


def _several(count: int, what: str, ending: str = "s") -> str:
    return f"{count:,} {what}" + ("" if count == 1 else ending)
