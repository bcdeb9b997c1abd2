"""What a person asks of a store about one thing: queries with parameters. Those that need none are views."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["QUESTIONS", "Question"]


@dataclass(frozen=True, slots=True)
class Question:
    """name: as in an address; title: for people; sql: its parameters are :NAMES."""

    name: str
    title: str
    sql: str


QUESTIONS = (
    Question(
        "compare",
        "Two runs: which bugs are new, still there, gone",
        """\
with
    before as (select bug, count from sightings where run = :old),
    after as (select bug, count from sightings where run = :new)
select
    bugs.id as bug,
    bugs.title,
    bugs.status,
    case when before.bug is null then 'new' when after.bug is null then 'gone' else 'still there' end
        as change,
    coalesce(before.count, 0) as old_count,
    coalesce(after.count, 0) as new_count
from bugs left join before on before.bug = bugs.id left join after on after.bug = bugs.id
where before.bug is not null or after.bug is not null
order by change = 'gone', change = 'still there', bugs.id""",
    ),
    Question(
        "life",
        "What has become of a bug, when, and in which commit",
        """\
select number, status, at, run, build, revision, host, reason from lives where bug = :bug
order by number""",
    ),
    Question(
        "builds",
        "In which builds a bug was seen",
        """\
select build, min(started) as first_seen, max(started) as last_seen, count(*) as runs, sum(count) as count
from sightings where bug = :bug group by build order by last_seen""",
    ),
    Question(
        "places",
        "Where a run finds what",
        """\
select bug, title, site, count(*) as findings from findings where run = :run group by bug, title, site
order by findings desc""",
    ),
    Question(
        "slowest",
        "The slowest trials of a run",
        "select trial, outcome, seconds from trials where run = :run order by seconds desc limit 20",
    ),
)
