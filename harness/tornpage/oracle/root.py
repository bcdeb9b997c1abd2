"""The root of findings: what is the same for all findings of one cause, and the fingerprint of a bug in
the store.

- A rule on bytes names the order that was broken: its name is the root. - What a crash left is one
broken state, however many findings tell of it. The root is the kind of damage that lies deepest: a torn
page explains a missing row, never the reverse. - What the fault-free run did is told by its own words.

The site of the write that was hit, the configuration and the seed are no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tornpage.oracle.fingerprint import path_of
from tornpage.vocabulary.model import Source, Violation

__all__ = ["Root", "roots_of"]


@dataclass(frozen=True, slots=True)
class Root:
    """Equal for two findings with one root. title: what the first one said, without names and
    numbers, after the name of the damage."""

    fingerprint: str
    title: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Damage:
    """A kind of damage. words: in the text of a finding, "" for none; invariants: of a finding with no
    words of any kind."""

    name: str
    words: str
    invariants: frozenset[int] = frozenset()


_DAMAGES = (
    _Damage("page lost", r"\(zero\)$|(^|: )zero$"),
    _Damage("page torn", "", frozenset({5})),
    _Damage("page beyond the log", "", frozenset({4})),
    _Damage("redo does not fit its page", r"cannot take the |although it was freed"),
    _Damage(
        "space management",
        r"space management|extent|descriptor|segment|inode|list (FREE|FULL|NOT_FULL)|used pages"
        r"|lies beyond the ",
        frozenset({11}),
    ),
    _Damage(
        "undo and history", r"^undo |undo (page|log)|history|transaction system", frozenset({25})
    ),
    _Damage("tree", r"index #, space # page", frozenset({6, 7, 8, 9})),
    _Damage("catalogue and files", r"catalogue|SYS_[A-Z]+", frozenset({12})),
    _Damage("indexes and rows disagree", "", frozenset({10})),
    _Damage("part of a transaction", "", frozenset({2})),
    _Damage("no commit prefix", "", frozenset({3})),
    _Damage("acknowledged commits missing", "", frozenset({1})),
)
"""The deepest first."""

_REFUSED = re.compile(r"^(?:recovery )?(?:refused|failed): (?:DB_\w+: )?")
_DETAIL = re.compile(r" \([^()]*\)$")
_PLACE = re.compile(r"^(?:recovered and purged: )?(?:(?!undo )\S+ )?page #(?:: page #)?(?:: |$)")
_CONSTANT = re.compile(r"\b[A-Z]+_[A-Z_]+\b")


def roots_of(violations: Sequence[Violation]) -> list[Root]:
    """The root of each violation of one trial, or of one fault-free run."""
    states = [item for item in violations if item.source is Source.STATE]
    deepest = _root_of_state(min(states, key=_depth)) if states else None
    return [
        deepest if deepest is not None and item.source is Source.STATE else _root_of_one(item)
        for item in violations
    ]


def _root_of_one(violation: Violation) -> Root:
    text = path_of(violation)
    if violation.source is Source.RULE:
        return Root(f"rule {violation.what.partition(':')[0]}", text)
    return Root(f"run {text}", text)


def _root_of_state(violation: Violation) -> Root:
    text = _words(violation)
    depth = _depth(violation)
    if depth == len(_DAMAGES):
        return Root(f"state {_DETAIL.sub('', text)}", text)
    damage = _DAMAGES[depth].name
    return Root(f"state {damage}", f"{damage}: {text}" if text else damage)


def _depth(violation: Violation) -> int:
    """The place in _DAMAGES, or behind them."""
    text = _words(violation)
    for depth, damage in enumerate(_DAMAGES):
        if damage.words and re.search(damage.words, text):
            return depth
    for depth, damage in enumerate(_DAMAGES):
        if violation.invariant in damage.invariants:
            return depth
    return len(_DAMAGES)


def _words(violation: Violation) -> str:
    """The text of a finding without what is of this run, or only says who tells it."""
    return _CONSTANT.sub("#", _PLACE.sub("", _REFUSED.sub("", path_of(violation))))
