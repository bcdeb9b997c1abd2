"""Which findings are the same bug: a fingerprint is the broken invariant, the site of the write that
was hit, and the path, that is what recovery did or why it refused, without the names and numbers of
this run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tornpage.vocabulary.model import Violation

__all__ = ["RUN_SITE", "Fingerprint", "fingerprint_of", "kind_of", "path_of", "without_model"]

RUN_SITE = "run"
"""Site of a finding that the fault-free run shows already, whatever is hit afterwards."""

ORACLE = frozenset({1, 2, 3, 10})
"""Judged by comparing states: the details behind the colon are tables and counts, not a path."""

_MODEL = re.compile(r" \(model [\w-]+\)$")
_LIST = re.compile(r"\[[^\]]*\]")
_NAME = re.compile(r"[^\s:;,()]*[\d=][^\s:;,()]*")
"""A word with a digit in it is a number, a file, a table; one with "=" is a fact of a marker."""
_FOLDER = re.compile(r"(?<![^\s:;,()'\"=])/(?:[^\s/:;,()'\"]+/)+")
"""Where a file lies: the same finding has another one in every checkout."""
_SEVERAL = re.compile(r"#(?:[ ,;:]+#)+")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Equal for two findings of one bug. site: of model.Site, or where the finding was made if not there."""

    invariant: int
    site: str
    path: str

    def __str__(self) -> str:
        return f"I{self.invariant} at {self.site}: {self.path}"


def fingerprint_of(violation: Violation, site: str) -> Fingerprint:
    """site: of the trial; that of the violation goes before it."""
    where = violation.site.value if violation.site else site
    return Fingerprint(violation.invariant, where, path_of(violation))


def kind_of(violation: Violation) -> tuple[int, str]:
    """Invariant and path: equal for two findings of one bug wherever the crash was, as the same crash of
    another build may follow another write."""
    return violation.invariant, path_of(violation)


def path_of(violation: Violation) -> str:
    """The violation's text with every name and number of this run replaced by "#", and no file's folder."""
    text = without_model(violation.what)
    if violation.invariant in ORACLE:
        text = text.partition(":")[0]
    return _SEVERAL.sub("#", _NAME.sub("#", _FOLDER.sub("", _LIST.sub("#", text))))


def without_model(what: str) -> str:
    """A violation's text without the crash model that the explorer names in it."""
    return _MODEL.sub("", what)
