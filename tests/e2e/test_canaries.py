"""Canaries of kills on the built engine: each is condemned, and a deaf judge is told by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_trial import make_spec

from tornpage.oracle.rules import RuleCanary
from tornpage.vocabulary.errors import DeafError
from tornpage.vocabulary.paths import find_paths
from tornpage.workers import canaries
from tornpage.workers.canaries import play_canaries, require_hearing
from tornpage.workers.pool import Job

RULES = {"write_ahead", "home_page", "dblwr_skip", "index_load", "ckpt_pages", "log_place", "hole"}
VALUES = {"never_issued", "lost_commit", "second_answer", "refusal", "damaged_pages"}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A small script."""
    return Job(make_spec(), find_paths(), tmp_path, tmp_path / "images")


def test_the_judges_of_kills_hear(job: Job) -> None:
    """What a rule has no occasion for is neither heard nor deaf: only a 10.5 log frees so."""
    tried = play_canaries(job)
    require_hearing(tried)
    names = {canary.name for canary in tried if canary.condemned}
    assert names > RULES | VALUES
    assert {canary.name for canary in tried} - names == {"freed_page"}


def test_rules_that_are_deaf_are_told(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the name of the rule, in the words of a deaf judge."""
    deaf = (RuleCanary("hole", 29, True, "hole, I29"), RuleCanary("area_sync", 22, False, "nobody"))
    monkeypatch.setattr(canaries, "ask_canaries", lambda *_, **__: deaf)
    with pytest.raises(DeafError, match=r"^the judge is deaf: area_sync \(I22\) is not condemned"):
        require_hearing(play_canaries(job))
