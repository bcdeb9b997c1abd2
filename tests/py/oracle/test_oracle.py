"""The oracle: predicted errors, digests, prefixes, judgement. Also the script language."""

from __future__ import annotations

import random
import struct

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from tornpage.oracle.exports import Export, exported_in
from tornpage.oracle.judgement import judge
from tornpage.oracle.oracle import Oracle
from tornpage.oracle.state import State
from tornpage.vocabulary.errors import WorkloadError
from tornpage.workloads.parse import parse_script
from tornpage.workloads.script import Column, Script, Statement, Verb
from tornpage.workloads.workload import generate, validate_params

TABLE = "create table t a:bigint b:char(4) primary a\n"
NAMES = xxhash.xxh64_intdigest(b"a,b,")


def _oracle(text: str) -> Oracle:
    return Oracle(parse_script(TABLE + text))


def _errors(text: str) -> list[str]:
    return [step.error for step in _oracle(text).steps[1:]]


def test_digest_is_the_documented_one() -> None:
    """Rows, names of columns and index entries are hashed over the bytes that check.h and dict.h define."""
    oracle = _oracle('insert - t a=-2 b="xy"\nadd index t ib(b:1) iba(b,a)\n')
    pk = struct.pack(">Q", (-2 & (1 << 64) - 1) ^ (1 << 63))
    row = xxhash.xxh64_intdigest(pk + b"xy  ")
    short = xxhash.xxh64_intdigest(b"x" + pk)
    long = xxhash.xxh64_intdigest(b"xy  " + pk + pk)
    table = (row + NAMES) & (1 << 64) - 1
    assert oracle.states[-1] == {"t": (1, table, (("ib", 1, short), ("iba", 1, long)))}


def test_sums_wrap_and_removal_restores() -> None:
    """Deleting what was inserted gives the digest of before, modulo 2^64, in table and indexes."""
    text = "add index t ib(b)\ninsert_seq - t 1 50\n"
    text += "".join(f"delete - t a={key}\n" for key in range(1, 51))
    oracle = _oracle(text)
    assert oracle.states[2] == oracle.states[-1] == {"t": (0, NAMES, (("ib", 0, 0),))}
    assert oracle.states[3]["t"][0] == 50


def test_truncation_is_one_step_to_no_rows() -> None:
    """All rows go in one prefix, indexes stay, and a value that a unique index had is free."""
    text = 'add unique index t ub(b)\ninsert - t a=1 b="x"\ninsert - t a=2 b="y"\n'
    oracle = _oracle(text + 'truncate table t\ninsert - t a=3 b="x"\n')
    assert oracle.states[-2] == oracle.states[2]
    assert oracle.states[-1]["t"][0] == 1
    assert oracle.steps[-1].error == ""
    assert _errors(text + "begin A\ndelete A t a=1\ntruncate table t\n")[-1] == "DB_TABLE_LOCKED"


def test_defragmentation_locks_definitions_only() -> None:
    """Rows change between its steps, also of transactions that stay open; it changes nothing."""
    text = "insert - t a=1\nstart defragment t\nbegin A\ninsert A t a=2\ninsert - t a=3\n"
    text += "drop table t\nstep index t 2\nfinish index t\ncommit A\ndefragment table t no\n"
    assert _errors(text) == ["", "", "", "", "", "DB_TABLE_LOCKED", "", "", "", "DB_NOT_FOUND"]
    oracle = _oracle(text)
    assert oracle.states[-1]["t"][0] == 3
    assert oracle.states[3] == oracle.states[4]


def test_defragmentation_rests_while_it_is_off() -> None:
    """Its steps, its end and another one in one statement are refused; it can be begun and given up, rows
    change, and other builds go on. A restart switches it on."""
    text = "start defragment t\nset defragment off\nstep index t\nfinish index t\ninsert - t a=1\n"
    text += (
        "abort index t\ndefragment table t\nstart defragment t\nfinish index t\nset defragment on\n"
    )
    text += "finish index t\nset defragment off\nadd index t ib(b)\nrestart\ndefragment table t\n"
    rests = "DB_PAUSED"
    refused = ["", "", rests, rests, "", "", rests, "", rests, "", "", "", "", "", ""]
    assert _errors(text) == refused


def test_an_import_takes_the_rows_of_an_exported_table() -> None:
    """All of them and the entries of its indexes, if definitions are the same; then both go their ways."""
    text = "add index t ib(b)\ninsert_seq - t 1 9\ncreate table u a:bigint b:char(4) primary a\n"
    oracle = _oracle(
        text + "add index u ib(b)\nimport table u t\nflush export t\ninsert - t a=20\n"
        "import table u t\nunlock table t\ndelete - u a=1\n"
    )
    assert [step.error for step in oracle.steps[5:8]] == ["DB_NOT_FOUND", "", "DB_TABLE_LOCKED"]
    assert oracle.states[-3]["u"] == oracle.states[-3]["t"]
    assert oracle.states[-1]["u"][0] == 8
    refused = "flush export t\nimport table u t\nflush export u\nbegin A\nunlock table t\n"
    assert _errors(text + refused + "flush export t\n")[3:] == [
        *("", "DB_ERROR", "DB_TABLE_LOCKED", "", ""),
        "DB_TABLE_LOCKED",
    ]


def test_a_table_of_the_system_tablespace_has_no_file() -> None:
    """None that could be exported, or be another one's; all else is as of any table."""
    text = "create table s a:bigint b:char(4) primary a in system\ninsert_seq - s 1 9\n"
    assert _errors(text + "flush export s\nflush export t\nimport table s t\n")[2:] == [
        *("DB_UNSUPPORTED", "", "DB_UNSUPPORTED")
    ]
    assert _errors(text + "begin A\ndelete A s a=1\nflush export s\n")[-1] == "DB_TABLE_LOCKED"
    states = _oracle(text + "rebuild table s\nrename table s u\ntruncate table u\n").states
    assert states[-2]["u"] == states[-4]["s"] and states[-1]["u"][0] == 0


def test_an_export_lasts_from_prefix_to_prefix() -> None:
    """Its beginning and its end, in whatever way, are prefixes of their own; what is refused begins none."""
    text = "insert - t a=1\ncreate table u a:bigint primary a\nflush export t\ninsert - u a=1\n"
    for end in ("unlock table t\n", "abort index t\n", "restart crash\n"):
        oracle = _oracle(text + "flush export u\n" + end + "insert - t a=2\n")
        begun = oracle.steps[3].prefix
        assert oracle.exports == {begun: "t", begun + 1: "t"}
        assert oracle.states[begun] == oracle.states[begun - 1]
        assert oracle.states[begun + 2] == oracle.states[begun + 1]
        assert oracle.steps[-1].prefix == begun + 3
    oracle = _oracle(text)
    last = len(oracle.states) - 1
    line = oracle.steps[-1].line
    assert oracle.commit_lines[last] == line and last not in oracle.exports and last == oracle.end
    assert oracle.after(line) == last - 1
    assert oracle.newest(line - 1, line) == last - 1 and oracle.newest(line, line) == last


@pytest.mark.parametrize(
    ("low", "high", "export"),
    [
        (0, 1, None),
        (1, 2, Export("t", acked=False)),
        (2, 2, Export("t", acked=True)),
        (2, 3, Export("t", acked=True)),
        (3, 4, Export("t", acked=False)),
        (3, 5, Export("u", acked=False)),
        (4, 4, None),
    ],
)
def test_the_export_of_a_crash(low: int, high: int, export: Export | None) -> None:
    """It is the one of the newest prefix that has one, and promised if every one that may be there has it."""
    assert exported_in({2: "t", 3: "t", 5: "u"}, low, high) == export


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("insert - t a=1\ninsert - t a=1\n", ["", "DB_DUPLICATE_KEY"]),
        ("delete - t a=1\n", ["DB_RECORD_NOT_FOUND"]),
        ("begin A\ninsert A t a=1\ninsert - t a=1\n", ["", "", "DB_LOCK_CONFLICT"]),
        ("begin A\ninsert A t a=1\ndelete A t a=1\ninsert A t a=1\n", ["", "", "", ""]),
        (
            "insert - t a=1\nbegin A\ndelete A t a=1\ninsert - t a=1\nrollback A\ninsert - t a=1\n",
            ["", "", "", "DB_LOCK_CONFLICT", "", "DB_DUPLICATE_KEY"],
        ),
        (
            "insert - t a=5\ninsert_seq - t 1 9\nselect t a=1\n",
            ["", "DB_DUPLICATE_KEY", "DB_RECORD_NOT_FOUND"],
        ),
        ("begin A\ninsert A t a=1\nadd index t ib(b)\n", ["", "", "DB_TABLE_LOCKED"]),
        ("add index t ib(b)\nadd index t ic(b) ib(b)\n", ["", "DB_ALREADY_EXISTS"]),
        (
            "start index t ib(b)\nstart index t ic(b)\ninsert - t a=1\nset log_optimize_ddl on\n"
            "abort index t\ninsert - t a=1\nfinish index t\n",
            ["", "DB_TABLE_LOCKED", "DB_TABLE_LOCKED", "DB_TABLE_LOCKED", "", "", "DB_NOT_FOUND"],
        ),
        (
            "start index t ib(b)\nstep index t\nselect t a=1\nscan t ib\nfinish index t\n"
            "start index t ib(b)\n",
            ["", "", "DB_RECORD_NOT_FOUND", "DB_NOT_FOUND", "", "DB_ALREADY_EXISTS"],
        ),
        ("drop index t nope\nscan t nope\ncommit A\n", ["DB_NOT_FOUND"] * 3),
        (
            "create table t k:bigint primary k\ndrop table u\n",
            ["DB_ALREADY_EXISTS", "DB_NOT_FOUND"],
        ),
        (
            'begin A\nbegin A\nupdate A t a=1 set b="x"\n',
            ["", "DB_ALREADY_EXISTS", "DB_RECORD_NOT_FOUND"],
        ),
    ],
)
def test_errors_are_predicted(text: str, errors: list[str]) -> None:
    """Each statement's error follows from the rows, locks and names of the moment."""
    assert _errors(text) == errors


UNIQUE = 'insert - t a=1 b="x"\nadd unique index t u(b)\n'


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ('insert - t a=2 b="x"\nupdate - t a=1 set b="x"\n', ["DB_DUPLICATE_KEY", ""]),
        ("insert_seq - t 5 6\nselect t a=5\n", ["DB_DUPLICATE_KEY", "DB_RECORD_NOT_FOUND"]),
        ('delete - t a=1\ninsert - t a=2 b="x"\n', ["", ""]),
        ('update - t a=1 set b="y"\ninsert - t a=2 b="x"\n', ["", ""]),
        (
            'begin A\ndelete A t a=1\ninsert - t a=2 b="x"\ninsert A t a=3 b="x"\nrollback A\n'
            'insert - t a=2 b="x"\n',
            ["", "", "DB_LOCK_CONFLICT", "", "", "DB_DUPLICATE_KEY"],
        ),
        (
            'begin A\nupdate A t a=1 set b="y"\nupdate A t a=1 set b="z"\ninsert - t a=2 b="x"\n'
            'insert - t a=2 b="y"\ninsert - t a=2 b="z"\ncommit A\ninsert - t a=2 b="y"\n',
            ["", "", "", "DB_LOCK_CONFLICT", "DB_LOCK_CONFLICT", "DB_LOCK_CONFLICT", "", ""],
        ),
        (
            'drop index t u\ninsert - t a=2 b="xy"\nadd unique index t u(b:1) v(b)\nscan t v\n'
            "start unique index t u(b:1)\nstep index t\nfinish index t\nfinish index t\n",
            [
                "",
                "",
                "DB_DUPLICATE_KEY",
                "DB_NOT_FOUND",
                "",
                "",
                "DB_DUPLICATE_KEY",
                "DB_NOT_FOUND",
            ],
        ),
    ],
)
def test_unique_keys_are_predicted(text: str, errors: list[str]) -> None:
    """A key that another row has is refused; one that an open transaction may yet take or give up is a
    conflict; one that was given up is free."""
    assert _errors(UNIQUE + text)[2:] == errors


def test_unrelated_change_leaves_a_duplicate() -> None:
    """Of a row that another transaction has changed elsewhere, every version has the key."""
    table = "create table u a:bigint b:char(4) c:bigint primary a\n"
    text = (
        table + 'insert - u a=1 b="x"\nadd unique index u i(b)\nbegin A\nupdate A u a=1 set c=2\n'
    )
    assert _errors(text + 'insert - u a=2 b="x"\n')[-1] == "DB_DUPLICATE_KEY"


def test_a_table_has_64_indexes() -> None:
    """One statement may make all of them; the next one fails."""
    text = "add index t " + " ".join(f"i{number}(b)" for number in range(64))
    assert _errors(text + "\nadd index t j(b)\n") == ["", "DB_ERROR"]


def test_failed_statement_changes_nothing() -> None:
    """After a multi-row statement that fails, the state is the one of before."""
    oracle = _oracle("insert - t a=5\ninsert_seq - t 1 9\n")
    assert oracle.steps[-1].prefix == oracle.steps[-2].prefix
    assert oracle.states[-1]["t"][0] == 1


def test_prefixes_are_in_commit_order() -> None:
    """A transaction appears with all its rows at its commit, not at its statements."""
    text = "begin A\nbegin B\ninsert A t a=1\ninsert B t a=2\ninsert A t a=3\ncommit B\ncommit A\n"
    oracle = _oracle(text)
    assert [state.get("t", (0,))[0] for state in oracle.states] == [0, 0, 1, 3]
    assert [oracle.after(line) for line in (0, 1, 6, 7, 8, 99)] == [0, 1, 1, 2, 3, 3]


def test_an_index_appears_when_its_build_is_finished() -> None:
    """No prefix at start, step or abort; one at finish, over the rows as they are then."""
    text = (
        "insert_seq - t 1 9\nstart index t ib(b)\nstep index t 5 5\nabort index t\ndelete - t a=1\n"
    )
    text += "start index t ib(b) ic(a)\nstep index t\ncreate table u k:bigint primary k\nfinish index t\n"
    oracle = _oracle(text)
    assert [step.prefix for step in oracle.steps] == [1, 2, 2, 2, 2, 3, 3, 3, 4, 5]
    durable = [step.durable for step in oracle.steps]
    assert durable == [True, False, True, False, True, False, True, False, True, True]
    assert [name for name, _, _ in oracle.states[4]["t"][2]] == []
    assert (
        oracle.states[5]["t"][2]
        == _oracle("insert_seq - t 1 9\ndelete - t a=1\nadd index t ib(b) ic(a)\n").states[-1]["t"][
            2
        ]
    )


def test_rollback_leaves_no_trace() -> None:
    """A rolled back transaction gives no prefix, and its rows are free again."""
    text = 'insert - t a=1\nbegin A\nupdate A t a=1 set b="x"\ninsert A t a=2\nrollback A\n'
    oracle = _oracle(text + "insert - t a=2\n")
    assert len(oracle.states) == 4


def test_rename_keeps_rows_and_indexes() -> None:
    """Only the name changes."""
    oracle = _oracle("insert - t a=1\nadd index t ib(b)\nrename table t u\n")
    assert oracle.states[-1] == {"u": oracle.states[-2]["t"]}


def _states() -> list[State]:
    text = "insert - t a=1\ninsert - t a=2\nadd index t ib(b)\ncreate table u k:bigint primary k\n"
    return _oracle(text + "insert - u k=1\ninsert - t a=3\n").states


def _numbers(states: list[State], actual: State, low: int, high: int) -> list[int]:
    return [violation.invariant for violation in judge(states, actual, low, high)]


def test_lengths_of_texts_change_where_they_can() -> None:
    """Longer at once, unless an index has all of the column; anything else by a copy, if the values fit. The
    length is part of the state, and so are the keys of an index that has all of the column."""
    text = "create table v a:bigint b:varchar(9) c:varchar(9) null primary a\n"
    text += 'insert - v a=1 b="1234567" c=null\nadd index v ic(c) ib(b:4)\n'
    oracle = Oracle(
        parse_script(
            text
            + "modify column v b varchar(20) algorithm=instant lock=none\n"
            + "modify column v c varchar(20) algorithm=instant\n"
            + "modify column v c varchar(20) lock=none\n"
            + "modify column v c varchar(20)\n"
            + "modify column v b varchar(7) algorithm=inplace\n"
            + "modify column v b varchar(6)\n"
            + "modify column v b varchar(7) algorithm=copy\n"
            + "modify column v b char(9)\nmodify column v a varchar(9)\n"
            + "modify column v x varchar(9)\nmodify column w b varchar(9)\n"
        )
    )
    refused = "DB_UNSUPPORTED"
    errors = [step.error for step in oracle.steps[3:]]
    assert errors[:4] == ["", refused, refused, ""]
    assert errors[4:7] == [refused, "DB_ERROR", ""]
    assert errors[7:] == [refused, refused, "DB_NOT_FOUND", "DB_NOT_FOUND"]
    assert len({state["v"][1] for state in oracle.states[3:]}) == 4
    before, after = (
        dict(zip(("ib", "ic"), oracle.states[at]["v"][2], strict=True)) for at in (3, 5)
    )
    assert before["ib"] == after["ib"]
    assert before["ic"] != after["ic"]


def test_columns_come_and_go() -> None:
    """A new column has its value in every row, at its place; one that goes takes its values along. Indexes
    are as before, and what stands in a key stays. With LOCK=NONE changes made meanwhile get them too."""
    text = "create table v a:bigint b:char(3) c:varchar(9) null primary a\n"
    text += 'insert - v a=1 b="x" c="y"\nadd index v ib(b,c:2)\n'
    states = Oracle(
        parse_script(
            text
            + "add column v d:bigint default=7 first\n"
            + "start add column v e:char(2) null after=a lock=none\n"
            + 'insert - v a=2 b="z" d=9\n'
            + "finish index v\n"
            + "start drop column v e\nabort index v\n"
            + "drop column v d\n"
            + "drop column v e\n"
            + "delete - v a=2\n"
        )
    ).states
    assert len(states) == 10
    assert states[-1]["v"] == states[3]["v"]
    wide = "create table v d:bigint a:bigint e:char(2) null b:char(3) c:varchar(9) null primary a\n"
    wide += 'insert - v d=7 a=1 b="x" c="y"\ninsert - v a=2 b="z" d=9\nadd index v ib(b,c:2)\n'
    assert Oracle(parse_script(wide)).states[-1]["v"] == states[6]["v"]


def test_columns_that_cannot_come_or_go() -> None:
    """One of that name is there, the one that it is to follow is not, it is in a key, the table is locked, or
    the statement promises too much."""
    text = "create table v a:bigint b:bigint c:bigint primary a\nadd index v ib(b)\n"
    text += "add column v b:bigint\nadd column v d:bigint after=x\nadd column v d:bigint algorithm=nocopy\n"
    text += "drop column v a\ndrop column v b\ndrop column v x\ndrop column v c algorithm=instant\n"
    text += "drop column v c algorithm=copy lock=none\nadd column w b:bigint\n"
    text += "begin T\ninsert T v a=1\nadd column v d:bigint\ndrop column v c\ncommit T\ndrop column v c\n"
    errors = [step.error for step in Oracle(parse_script(text)).steps[2:]]
    assert errors[:3] == ["DB_ALREADY_EXISTS", "DB_NOT_FOUND", "DB_UNSUPPORTED"]
    assert errors[3:6] == ["DB_ERROR", "DB_ERROR", "DB_NOT_FOUND"]
    assert errors[6:9] == ["DB_UNSUPPORTED", "DB_UNSUPPORTED", "DB_NOT_FOUND"]
    assert errors[9:] == ["", "", "DB_TABLE_LOCKED", "DB_TABLE_LOCKED", "", ""]


def test_another_primary_key() -> None:
    """Rows are as before and are found by the new key, which ends the entries of each index; two rows cannot
    have the same, nor can it be NULL or a VARCHAR."""
    table = "create table v a:bigint b:bigint c:char(3) null d:varchar(3) primary {}\n"
    rows = "insert - v a=1 b=5\ninsert - v a=2 b=4\n"
    text = table.format("a") + rows + "add index v ic(c)\nadd unique index v ub(b)\n"
    text += "change primary v b,a\nselect v b=5 a=1\nstart primary v b\nfinish index v\n"
    text += "update - v b=5 set a=2\n"
    keys = ("a", "c", "d", "a,a", "x")
    text += "".join(f"change primary v {key}\n" for key in keys)
    text += "change primary v a,b lock=none\nchange primary v a,b algorithm=instant\n"
    oracle = Oracle(parse_script(text))
    errors = [step.error for step in oracle.steps[5:]]
    assert errors[:5] == [""] * 5
    assert errors[5:] == [
        "DB_DUPLICATE_KEY",
        *["DB_ERROR"] * 3,
        "DB_NOT_FOUND",
        *["DB_UNSUPPORTED"] * 2,
    ]
    other = table.format("b,a") + rows + "add unique index v ub(b)\nadd index v ic(c)\n"
    assert oracle.states[6] == Oracle(parse_script(other)).states[-1]


def test_an_exclusive_build_lets_nobody_read() -> None:
    """Until it ends; a build that says nothing lets others read."""
    uses = "select t a=1\nscan t\nflush table t\ndelete - t a=1\n"
    for lock, error in (("", ""), (" lock=exclusive", "DB_TABLE_LOCKED")):
        text = f"insert_seq - t 1 9\nstart rebuild t{lock}\n{uses}abort index t\nselect t a=1\n"
        assert _errors(text) == ["", "", error, error, error, "DB_TABLE_LOCKED", "", ""]


def test_judgement_accepts_exactly_the_range() -> None:
    """Every prefix in [low, high] is right, an older one breaks I1, a newer one I3."""
    states = _states()
    for low in range(len(states)):
        for high in range(low, len(states)):
            for p, state in enumerate(states):
                wanted = [] if low <= p <= high else [1] if p < low else [3]
                assert _numbers(states, state, low, high) == wanted


def test_judgement_names_mixtures_and_wrong_indexes() -> None:
    """Tables of different prefixes break I3, a table of none I2, rows without their entries I10."""
    states = _states()
    last = len(states) - 1
    mixed = {"t": states[last]["t"], "u": states[last - 2]["u"]}
    assert _numbers(states, mixed, last, last) == [3]
    partly = {**states[last], "t": (3, 12345, states[last]["t"][2])}
    assert _numbers(states, partly, last, last) == [2]
    rows, digest, _ = states[last]["t"]
    wrong = {**states[last], "t": (rows, digest, (("ib", rows - 1, 7),))}
    assert _numbers(states, wrong, last, last) == [10]
    assert _numbers(states, {**states[last], "t": (rows, digest, ())}, last, last) == [10]
    assert _numbers(states, {**states[last], "x": (0, 0, ())}, last, last) == [3]


@pytest.mark.parametrize(
    "line",
    [
        "insert - t b=1",
        "insert - t z=1",
        'insert - t a="x"',
        'insert - t b="12345"',
        "update - t b=1 set a=2",
        "update - t a=1 set a=2",
        "add index t i(z)",
        "add index t i(b:9)",
    ],
)
def test_script_beyond_the_model_is_a_harness_error(line: str) -> None:
    """A statement whose outcome the model does not define is never guessed."""
    with pytest.raises(WorkloadError):
        _oracle("insert - t a=1\n" + line + "\n")


@pytest.mark.parametrize(
    "line",
    [
        "insert",
        "begin",
        "nonsense 1",
        "add index t",
        "create table t a:float primary a",
        'insert - t b="x',
        "purge x",
        "checkpoint_full",
        "set speed on",
        "insert - t a=1 a=2",
    ],
)
def test_parse_error_names_its_line(line: str) -> None:
    """Unknown or malformed statements are refused with their line number."""
    with pytest.raises(WorkloadError, match="script line 3"):
        parse_script(f"# comment\n\n{line}\n")


_name = st.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)
_value = st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=12).map(
    lambda b: b.replace(b"\0", b"0")
)


@given(
    st.dictionaries(_name, _value, min_size=1, max_size=4),
    st.dictionaries(_name, _value, min_size=1),
)
def test_statement_text_round_trip(
    key: dict[str, int | bytes], values: dict[str, int | bytes]
) -> None:
    """What a statement prints parses to the same statement, any bytes in texts included."""
    script = Script.of(
        [
            Statement(
                0,
                Verb.CREATE_TABLE,
                table="t",
                columns=(Column("a"), Column("b", 9)),
                primary=("a", "b"),
            ),
            Statement(0, Verb.UPDATE, trx="-", table="t", key=key, values=values),
            Statement(0, Verb.INSERT, trx="T1", table="t", values=values),
            Statement(0, Verb.PURGE, number=-1),
            Statement(0, Verb.CHECKPOINT, full=True),
        ]
    )
    assert parse_script(script.text).statements == script.statements


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**63 - 1))
def test_smoke_workload_covers_what_it_must(seed: int) -> None:
    """For any seed: a valid script that is the same each time and uses every kind of statement."""
    script = generate("smoke", {}, seed)
    assert generate("smoke", {}, seed).text == script.text
    assert parse_script(script.text).statements == script.statements
    oracle = Oracle(script)
    steps = [  # but for promises that cannot be kept, which ask for nothing
        (step, statement.verb)
        for step, statement in zip(oracle.steps, script.statements, strict=True)
        if step.error != "DB_UNSUPPORTED"
    ]
    verbs = [verb for _, verb in steps]
    assert verbs.count(Verb.ADD_INDEX) == 3 and verbs.count(Verb.DROP_INDEX) == 3
    assert {Verb.RENAME_TABLE, Verb.DROP_TABLE, Verb.CHECKPOINT, Verb.FLUSH_TABLE} <= set(verbs)
    assert verbs.count(Verb.STEP_INDEX) >= 4 and verbs.count(Verb.SET_OPTIMIZE) >= 2
    assert verbs.count(Verb.FINISH_INDEX) == verbs.count(Verb.ABORT_INDEX) == 1
    failed_ddl = [
        step
        for step, verb in steps
        if verb
        in (Verb.ADD_INDEX, Verb.STEP_INDEX, Verb.FINISH_INDEX, Verb.DROP_INDEX, Verb.RENAME_TABLE)
        and step.error
    ]
    assert not failed_ddl
    assert len(oracle.states) > 40
    assert {Verb.RENAME_COLUMN, Verb.RENAME_INDEX} & set(verbs)
    names = [index[0].removesuffix("_") for index in oracle.states[-1]["t1"][2]]
    assert names == ["ib", "ic", "id", "ie", "if", "ig", "ih"]


def test_smoke_workload_expects_each_error_somewhere() -> None:
    """Over a few seeds, conflicts, duplicates, missing rows and locked tables all occur."""
    errors = {step.error for seed in range(8) for step in Oracle(generate("smoke", {}, seed)).steps}
    assert errors == {
        "",
        "DB_LOCK_CONFLICT",
        "DB_DUPLICATE_KEY",
        "DB_RECORD_NOT_FOUND",
        "DB_TABLE_LOCKED",
        "DB_UNSUPPORTED",
    }


@pytest.mark.parametrize("params", [{"row": 5}, {"rows": "many"}, {"rows": 1}])
def test_bad_parameters_are_refused(params: dict[str, int | str]) -> None:
    """Unknown names, wrong types and values out of range are named."""
    with pytest.raises(WorkloadError, match="row"):
        validate_params("smoke", params)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_incremental_digests_equal_recomputed_ones(seed: int) -> None:
    """Dropping and adding all indexes again changes no digest: sums kept in step are right."""
    rng = random.Random(seed)
    keys = range(12)
    lines = ["add index t ib(b:2)"]
    for _ in range(30):
        key = rng.choice(keys)
        word = rng.choice(["aa", "ab", "b", ""])
        lines.append(
            rng.choice(
                [
                    f'insert - t a={key} b="{word}"',
                    f"delete - t a={key}",
                    f'update - t a={key} set b="{word}"',
                ]
            )
        )
    lines += ["drop index t ib", "add index t ib(b:2)"]
    oracle = _oracle("\n".join(lines) + "\n")
    assert oracle.states[-1] == oracle.states[-3]
