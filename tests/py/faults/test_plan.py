"""Fault plans: schema, line numbers, compiled form, round trips."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tornpage.faults.plan import compile_plan, format_plan, parse_plan, resolve_mask
from tornpage.vocabulary.codec import from_json, to_json
from tornpage.vocabulary.errors import ConfigError, PlanError
from tornpage.vocabulary.model import Action, Fault, FaultKind, FaultPlan

GOOD = """\
name = "tear, then crash in the recovery"
[[fault]]
kind = "write"
file = "t1.ibd"
nth = 17
action = "kill"
sectors = "prefix:3"
[[fault]]
during = "recovery:2"
kind = "mark"
text = "point name=dblwr.area_synced"
nth = 1
[[fault]]
during = "recovery:2"
kind = "write"
file = "*"
nth = 4
follows = true
"""


def test_plan_is_compiled_for_the_preload() -> None:
    """Each fault becomes one line of the preload's language, in its phase."""
    plan = parse_plan(GOOD)
    assert compile_plan(plan.run) == (
        "fault kind=write file=t1.ibd nth=17 action=kill sector=512 sectors=prefix:3\n"
    )
    assert plan.recover[0] == ()
    assert compile_plan(plan.recover[1]) == (
        "fault kind=mark text=point%20name=dblwr.area_synced nth=1 action=kill when=before\n"
        "fault kind=write file=* nth=4 action=kill when=before follows=yes\n"
    )


def _with(line: str) -> str:
    return '[[fault]]\nkind = "write"\nfile = "t1.ibd"\nnth = 1\n' + line + "\n"


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        (_with('sectorz = "all"'), 5, "sectorz"),
        ("colour = 1\n" + _with(""), 1, "colour"),
        (_with('sectors = "prefix:x"'), 5, "sectors"),
        (_with("sector = 1000"), 5, "sector"),
        (_with("sector = 131072"), 5, "sector"),
        (_with('sectors = "all"\nbytes = 3'), 5, "sectors"),
        (_with('sectors = "all"\nwhen = "after"'), 5, "sectors"),
        (_with('action = "tear"'), 5, "action"),
        (_with('action = "drop"\nbytes = 3'), 6, "bytes"),
        (_with('action = "explode"'), 5, "action"),
        (_with('during = "lunch"'), 5, "during"),
        (_with("offset = [9, 3]"), 5, "offset"),
        (_with('text = "x"'), 5, "text"),
        (_with("follows = true"), 5, "follows"),
        (_with("") + _with('during = "recovery:1"\nfollows = true'), 11, "follows"),
        ('crash_model = "power_loss"\n' + _with(""), 1, "crash_model"),
        ('[[fault]]\nkind = "mark"\nnth = 1\n', 1, "text"),
        ('[[fault]]\nkind = "rename"\nfile = "x"\nnth = 1\naction = "drop"\n', 5, "action"),
        (_with("") + _with("nth = 0").replace("nth = 1\n", ""), 9, "nth"),
    ],
)
def test_refusals_name_key_and_line(text: str, line: int, word: str) -> None:
    """What is unknown, impossible or contradictory is refused with the line of its key."""
    with pytest.raises(PlanError) as error:
        parse_plan(text, "p.toml")
    assert f"p.toml: line {line}: " in str(error.value)
    assert word in str(error.value)


def test_broken_toml_is_refused_with_its_line() -> None:
    """A syntax error has its line too."""
    with pytest.raises(PlanError, match="line 2"):
        parse_plan("name = 1\nname = ]\n")


_faults = st.one_of(
    st.builds(
        Fault,
        kind=st.just(FaultKind.WRITE),
        nth=st.integers(1, 10**9),
        action=st.sampled_from([Action.KILL, Action.TEAR]),
        file=st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20),
        sector=st.sampled_from([512, 4096]),
        sectors=st.one_of(
            st.sampled_from(["all", "none", "prefix:3", "suffix:2"]),
            st.from_regex(r"[01]{1,20}", fullmatch=True),
        ),
        offset=st.none() | st.tuples(st.integers(0, 9), st.integers(9, 99)),
    ),
    st.builds(
        Fault,
        kind=st.just(FaultKind.FSYNC),
        nth=st.integers(1, 99),
        action=st.just(Action.ERROR),
        file=st.just("ib_logfile*"),
        error=st.sampled_from(["EIO", "ENOSPC"]),
    ),
    st.builds(
        Fault,
        kind=st.just(FaultKind.MARK),
        nth=st.integers(1, 99),
        action=st.just(Action.KILL),
        text=st.text('abc =._"\\%', min_size=1, max_size=20),
        when=st.sampled_from(["before", "after"]),
    ),
)


def _chained(faults: list[Fault]) -> tuple[Fault, ...]:
    return (faults[0], *(replace(fault, follows=True) for fault in faults[1:]))


_plans = st.builds(
    FaultPlan,
    name=st.text(st.characters(blacklist_categories=["Cs"]), max_size=20),
    run=st.lists(_faults, min_size=1, max_size=3).map(_chained),
    recover=st.lists(st.tuples(_faults), max_size=2).map(tuple),
    stale_log=st.booleans(),
)


@given(_plans)
@example(FaultPlan(run=(Fault(FaultKind.WRITE, 1, Action.TEAR, bytes=0),)))
def test_toml_and_json_round_trip(plan: FaultPlan) -> None:
    """A plan survives its TOML text and its JSON form."""
    assert parse_plan(format_plan(plan)) == plan
    assert from_json(FaultPlan, to_json(plan)) == plan


@given(_plans)
def test_compiled_lines_have_no_stray_blanks(plan: FaultPlan) -> None:
    """One line per fault; every token is key=value, whatever the file name or text."""
    lines = compile_plan(plan.run).splitlines()
    assert len(lines) == len(plan.run)
    for line in lines:
        words = line.split(" ")
        assert words[0] == "fault"
        assert all("=" in word for word in words[1:])


def test_json_is_read_strictly() -> None:
    """An unknown key, one that is needed and missing, or another type is noticed."""
    good = json.loads(to_json(Fault(FaultKind.WRITE, 1, Action.KILL)))
    for change in ({"extra": 1}, {"nth": "3"}, {"sectors": 5}):
        with pytest.raises(ConfigError, match=f"Fault.{next(iter(change))}"):
            from_json(Fault, json.dumps({**good, **change}))
    del good["nth"]
    with pytest.raises(ConfigError, match="nth: Field required"):
        from_json(Fault, json.dumps(good))


@pytest.mark.parametrize(
    ("spec", "offset", "length", "mask"),
    [
        ("prefix:1", 0, 4096, "10000000"),
        ("suffix:2", 0, 4096, "00000011"),
        ("all", 100, 512, "11"),
        ("none", 512, 512, "0"),
        ("0101", 0, 4096, "01010000"),
        ("prefix:99", 0, 1024, "11"),
    ],
)
def test_masks_cover_aligned_sectors(spec: str, offset: int, length: int, mask: str) -> None:
    """Sectors are those of the file that the write touches."""
    assert resolve_mask(spec, offset, length) == mask
