"""Canaries on the built engine: each is condemned, and a deaf judge is told by name; and what cannot be made
of a run is neither."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_support import Tornpage
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


ONE_ROW = """name = "one-row"
description = "a leaf of one row, behind the metadata of an instant column"
workload = "inline"
crash_model = "power_loss"
seed = 1
[params]
script = '''
create table t a:bigint b:varchar(100) primary a
insert - t a=1 b="x"
add column t d:bigint default=7 algorithm=instant
update - t a=1 set d=5
'''
[explore]
states = 20
"""


def test_one_row_has_no_order(tmp_path: Path, tornpage: Tornpage) -> None:
    """The metadata of instant columns is no row, and changing places with it is other damage."""
    campaign = tmp_path / "one.toml"
    campaign.write_text(ONE_ROW, "utf-8")
    answer = tornpage("run", str(campaign))
    assert answer.code == 0, answer.text
    assert answer.data["exercised"] == 20
