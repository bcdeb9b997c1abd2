"""A target file's target: what its recover program says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tornpage.campaigns.fitting import absolute_options
from tornpage.faults.preload import preload_path
from tornpage.faults.process import ChildResult
from tornpage.lab import fetch
from tornpage.lab.fetch import bring
from tornpage.live.recovered import Recovery
from tornpage.oracle.rules import Setting
from tornpage.plans.origin import origin_under
from tornpage.store.origin import Origin
from tornpage.targets.command.answers import recovery_answer, run_answer
from tornpage.targets.command.file import Choice, load_target_file
from tornpage.targets.command.target import CommandTarget
from tornpage.targets.registry import explorer_path
from tornpage.vocabulary.errors import ConfigError, MachineError, MissingError
from tornpage.vocabulary.model import Action, Fault, FaultKind
from tornpage.vocabulary.paths import find_paths, package_folder

KILL = Fault(FaultKind.WRITE, 1, Action.KILL)
FILE = package_folder() / "tornpage" / "targets" / "bundled" / "leveldb.toml"
OK = '{"ok": true, "state": {"rows": "1 a"}}'
REFUSED = '{"ok": false, "message": "the log is torn"}'
MACHINE = '{"ok": false, "machine": true, "message": "no space"}'


MODEL_FILE = """name = "mine"
oracle = "model"
[commands]
run = "{python} -c '' {dir} {script}"
recover = "{python} -c ''"
"""
MODEL_OK = '{"ok": true, "check": {"needs_recovery": false, "findings": [], "tables": []}}\n'


def said(stdout: str, code: int = 0, signal: int = 0, *, timed_out: bool = False) -> ChildResult:
    """A recover program that has printed this, and ended."""
    return ChildResult(code, signal, timed_out, 0.1, 0, 0, stdout.encode(), b"")


def target_of(folder: Path, text: str) -> CommandTarget:
    """That of a target file with this text, on what is built."""
    file = folder / "mine.toml"
    file.write_text(text, "utf-8")
    build = find_paths().build
    return CommandTarget(file, preload_path(build), explorer_path(build))


def test_one_line_is_an_answer() -> None:
    """A state, or a refusal in the target's own words."""
    target = CommandTarget(FILE, Path("/b/preload.so"), Path("/b/explore"))
    assert target.parse_recovery(said(OK + "\n")).ok
    refused = target.parse_recovery(said(REFUSED + "\n"))
    assert (refused.refused, refused.message) == (True, "the log is torn")


def test_what_an_own_checker_finds_is_heard() -> None:
    """In words alone, or with an invariant."""
    target = CommandTarget(FILE, Path("/b/preload.so"), Path("/b/explore"))
    findings = '["two roots", {"what": "no parent", "invariant": 9}, {"what": "a hole"}]'
    answer = target.parse_recovery(said(OK.replace("}}", f'}}, "findings": {findings}}}') + "\n"))
    told = [(found.invariant, found.what) for found in answer.findings]
    assert told == [(6, "two roots"), (9, "no parent"), (6, "a hole")]


def test_an_answer_of_one_that_hung_is_none() -> None:
    """It had more to do, and nobody knows what."""
    target = CommandTarget(FILE, Path("/b/preload.so"), Path("/b/explore"))
    answer = target.parse_recovery(said(OK + "\n", timed_out=True))
    assert (answer.ok, answer.refused) == (False, False) and "gave no answer" in answer.message


def test_what_the_machine_failed_is_no_refusal() -> None:
    """Recover says that it had no space or memory: nothing is said of the store."""
    target = CommandTarget(FILE, Path("/b/preload.so"), Path("/b/explore"))
    child = said(MACHINE + "\n")
    answer = target.parse_recovery(child)
    with pytest.raises(MachineError, match="recover: no space"):
        Recovery(child, answer)
    with pytest.raises(MachineError, match="recover: no space"):
        Recovery(child, answer, (KILL,))  # which has not fired
    assert Recovery(child, answer, (KILL,), fired=True).answer.refused  # we have made it fail


@pytest.mark.parametrize(
    ("stdout", "told"),
    [
        (f"{OK}\n{OK}\n", "more than one line"),
        (f"it is open\n{OK}\n", "more than one line for a folder: 'it is open'"),
        (f"{OK}\n\n", "more than one line"),
        (f"{REFUSED}\n{REFUSED}\n", "more than one line"),
        (OK, "a line without an end"),
        (f"{OK}\nhello\n", "gave no answer, but 'hello'"),
    ],
)
def test_more_than_one_line_is_none(stdout: str, told: str) -> None:
    """Of a process that answers for many folders the second line would be taken for the next answer."""
    answer = CommandTarget(FILE, Path("/b/preload.so"), Path("/b/explore")).parse_recovery(
        said(stdout)
    )
    assert not answer.ok
    assert not answer.refused
    assert told in answer.message


@pytest.mark.parametrize(("code", "signal", "told"), [(0, 11, "SIGSEGV"), (4, 0, "exit code 4")])
def test_a_recovery_that_ends_badly_is_none(
    code: int, signal: int, told: str, tmp_path: Path
) -> None:
    """Whatever a program that answers for the model has said before."""
    target = target_of(tmp_path, MODEL_FILE)
    assert target.parse_recovery(said(MODEL_OK)).ok
    for stdout in (MODEL_OK, REFUSED + "\n"):
        answer = target.parse_recovery(said(stdout, code, signal))
        assert (answer.ok, answer.refused) == (False, False) and told in answer.message


TOLD = """name = "mine"
oracle = "model"
fs = ["posix", "xfs"]
ignore = ["lock"]
long_lived = true
state_deadline_s = 7
env = { CACHE = "{cache}" }
promise = { durable = false, consistent = true }
[commands]
run = "{python} -c '' {dir} {script} {cache}"
recover = "{python} -c '' {cache}"
[options.cache]
values = ["small", "large"]
what = "memory"
"""


@pytest.mark.parametrize("key", ["run", "recover", "explore"])
def test_what_a_target_file_says_is_handed_on(key: str, tmp_path: Path) -> None:
    """Options and environment to each of its commands, all else to the explorer too."""
    target = target_of(tmp_path, TOLD)
    options = {"cache": "large", "fs": "xfs"}
    command = {
        "run": lambda: target.run_command(tmp_path, tmp_path / "script", options),
        "recover": lambda: target.recover_command(tmp_path, options),
        "explore": lambda: target.explore_command(tmp_path / "t", tmp_path / "a", options),
    }[key]()
    words = " ".join(command.argv)
    assert command.env["CACHE"] == "large" and " large" in words and " small" not in words
    if key == "explore":
        for told in ("--deadline 7", "--promise consistent", "--fs xfs", "--ignore lock"):
            assert f"{told} " in words
        assert "--long-lived" in command.argv


@pytest.mark.parametrize(
    ("values", "value", "taken"),
    [
        (["0", "number"], "number", False),
        (["0", "number"], "-2000", True),
        (["0", "number"], "17", True),
        (["0", "number"], "\u0663", False),
        (["0", "number"], "1.5", False),
        (["0", "number"], "7\n", False),
        (["0", "auto", "number"], "auto", True),
        (["0", "1"], "2", False),
    ],
)
def test_a_number_is_a_whole_number(values: list[str], value: str, taken: bool) -> None:
    """In ASCII, with or without a sign; the word itself is no value."""
    assert (Choice(values=values, what="").refusal(value) == "") is taken


def test_a_number_is_no_default(tmp_path: Path) -> None:
    """Nobody would know which one."""
    options = '[options.size]\nvalues = ["number", "0"]\nwhat = ""\n'
    text = MODEL_FILE.replace("{script}", "{script} {size}") + options
    with pytest.raises(ConfigError, match=r"options\.size: values: the first is the default"):
        target_of(tmp_path, text)


def test_what_is_not_here_is_told_with_its_remedy(tmp_path: Path) -> None:
    """A module by what installs it, a library by its name; neither is loaded from nowhere."""
    found = '_sqlite3 = "another Python"\n_signal = "none"'
    text = f"""[modules]\n{found}\nno_module_is_called_so = "pip install it"\n{MODEL_FILE}"""
    head, _, commands = text.partition("[commands]")
    modules, _, keys = head.partition('name = "mine"')
    keys = f'name = "mine"{keys}libraries = ["libc.so.6", "libnosuch.so.1"]\n'
    target = target_of(tmp_path, f"{keys}{modules}[commands]{commands}")
    assert [*map(str, target.missing())] == [
        "target mine needs _signal: none",  # built in
        "target mine needs no_module_is_called_so: pip install it",
        "target mine needs libnosuch.so.1: install it where the dynamic loader finds it",
    ]
    with pytest.raises(ConfigError, match="needs _signal: none"):
        target.check_ready()
    with pytest.raises(ConfigError, match="needs _signal: none"):
        bring(target)
    programs = target.programs()
    assert programs["libc.so.6"].is_file() and programs["_sqlite3"].suffix == ".so"
    assert {"_signal", "libnosuch.so.1"}.isdisjoint(programs)


def test_a_library_is_that_of_the_commands(tmp_path: Path) -> None:
    """With another one in front of it by the environment of the commands, the run is another one."""
    text = MODEL_FILE.replace("[commands]", 'libraries = ["libsqlite3.so.0"]\n[commands]')
    usual = target_of(tmp_path, text).programs()["libsqlite3.so.0"]
    other = tmp_path / "libsqlite3.so.0"
    other.write_bytes(usual.read_bytes())
    env = f'env = {{ LD_LIBRARY_PATH = "{tmp_path}" }}\n[commands]'
    assert target_of(tmp_path, text.replace("[commands]", env)).programs()[other.name] == other


def test_mariadb_needs_its_client() -> None:
    """Doctor says so, and how it is installed."""
    file = load_target_file(FILE.with_stem("mariadb-10.11"))
    assert file.modules == {"pymysql": "pip install 'tornpage[mariadb]'"}


CHOSEN = """name = "mine"
lines = "{work}"
[commands]
run = "{python} -c '' {dir} {lines} {program}"
recover = "{python} -c '' {program}"
[needs]
"{program}" = "build it"
[options.program]
values = ["no-such-server", "path"]
what = "the server"
[options.work]
values = ["work.txt", "path"]
what = "the statements"
"""


def test_a_program_of_ones_own_is_an_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a path from where the command is called; its hash is the build of the run. What is not there is
    told, that of the default only if it is asked for."""
    target = target_of(tmp_path, CHOSEN)
    target.check_ready()
    with pytest.raises(MissingError, match="target mine needs no-such-server: build it") as missing:
        target.check_needs({})
    with pytest.raises(ConfigError, match="needs no-such-server: build it"):
        bring(target, missing.value)
    asked: list[str] = []
    monkeypatch.setattr(fetch, "_call", lambda command: asked.append(" ".join(command[1:])))
    bring(target, MissingError("", "mine", "pip install it"))
    assert asked == ["-m pip --quiet install it"]
    (tmp_path / "mined").write_text("one", "ascii")
    (tmp_path / "work.txt").write_text("", "ascii")
    monkeypatch.chdir(tmp_path)
    options = absolute_options([target], {"program": "mined", "work": "work.txt"})
    assert options == {"program": str(tmp_path / "mined"), "work": "work.txt"}
    target.check_needs(options)
    one = origin_under(Origin(), target, options)
    (tmp_path / "mined").write_text("two", "ascii")
    assert one.build and origin_under(Origin(), target, options).build != one.build
    assert origin_under(Origin(), target, {}) == Origin()
    refused = {option.name: option.check for option in target.options()}["program"]
    assert refused is not None and refused(str(tmp_path / "not")).endswith("no such file or folder")
    assert target.lines_of({"work": str(tmp_path / "mined")}) == tmp_path / "mined"
    assert target.lines == tmp_path / "work.txt"


def test_a_file_says_what_its_base_does_not(tmp_path: Path) -> None:
    """Of a table each key by itself, of an option all of it; a base has none itself."""
    (tmp_path / "base.toml").write_text(CHOSEN.replace("[needs]", "[needs]\nsh = 'none'"), "utf-8")
    own = 'base = "base.toml"\nname = "own"\nfs = "xfs"\n[options.program]\nvalues = ["sh"]\nwhat = "it"\n'
    target = target_of(tmp_path, own)
    assert (target.file.name, target.file.fs, target.file.lines) == ("own", "xfs", "{work}")
    assert target.file.needs == {"sh": "none", "{program}": "build it"}
    assert target.file.options["program"].values == ["sh"]
    (tmp_path / "again.toml").write_text('base = "mine.toml"\nname = "again"\n', "utf-8")
    with pytest.raises(ConfigError, match=r"again\.toml: base: mine\.toml has one itself"):
        load_target_file(tmp_path / "again.toml")
    with pytest.raises(ConfigError, match=r"nowhere\.toml"):
        target_of(tmp_path, 'base = "nowhere.toml"\nname = "own"\n')


def test_an_unknown_file_system_is_told_with_its_file(tmp_path: Path) -> None:
    """A name that the explorer does not know."""
    target = target_of(tmp_path, f'fs = "zfs"\n{MODEL_FILE}')
    with pytest.raises(
        ConfigError, match=r"mine\.toml: no file system \'zfs\'; did you mean \'xfs\'"
    ):
        target.check_ready()


def test_a_file_of_bytes_is_no_text(tmp_path: Path) -> None:
    """Told in words of this world."""
    (tmp_path / "x.toml").write_bytes(b"\x7fELF\xff\x00")
    with pytest.raises(ConfigError, match=r"x\.toml: not a TOML text file"):
        load_target_file(tmp_path / "x.toml")


@pytest.mark.parametrize(
    ("name", "options", "size"),
    [
        ("leveldb", {}, 4096),
        ("sqlite", {}, 4096),
        ("sqlite", {"page_size": "512"}, 512),
        ("mariadb-10.11", {"page_size": "16k", "doublewrite": "off"}, 16384),
        ("mariadb-10.11", {"page_size": "of 16 KB"}, 4096),
    ],
)
def test_options_tell_the_size_of_pages(name: str, options: dict[str, str], size: int) -> None:
    """The one that is asked for, or the first of the file; in words of its own it is not known."""
    target = CommandTarget(FILE.with_stem(name), Path("/b/preload.so"), Path("/b/explore"))
    assert target.judge_setting(options) == Setting(size, options.get("doublewrite") != "off")


def test_the_first_value_of_an_option_counts_where_none_is_chosen(tmp_path: Path) -> None:
    """Of both: no doublewrite unless it is asked for, and a page size that is no number of bytes is the usual
    one."""
    text = FILE.with_stem("leveldb").read_text("utf-8").partition("[options")[0]
    path = tmp_path / "own.toml"
    path.write_text(
        text.replace("{dir}", "{dir} {page_size} {doublewrite}", 1)
        + '[options.page_size]\nvalues = ["0", "8k"]\nwhat = "0: its own choice"\n'
        + '[options.doublewrite]\nvalues = ["off", "on"]\nwhat = "copies"\n',
        "utf-8",
    )
    target = CommandTarget(path, Path("/b/preload.so"), Path("/b/explore"))
    assert target.judge_setting({}) == Setting(4096, doublewrite=False)
    assert target.judge_setting({"page_size": "8k", "doublewrite": "on"}) == Setting(8192, True)


def test_what_a_shell_has_in_braces_is_not_ours(tmp_path: Path) -> None:
    """{die} of Perl is a little like {dir}, and no mistake; {dirr} is one."""
    for word, wrong in (("die", False), ("print", False), ("dirr", True)):
        file = tmp_path / f"{word}.toml"
        file.write_text(
            f'name = "own"\n[commands]\nrun = "perl {{dir}} {{{word}}}"\nrecover = "/bin/true"\n',
            "utf-8",
        )
        if wrong:
            with pytest.raises(ConfigError, match="did you mean 'dir'"):
                load_target_file(file)
        else:
            load_target_file(file)


def test_of_a_disk_nothing_is_left_out(tmp_path: Path) -> None:
    """What a file names that no crash needs is named by its path, and a disk has sectors."""
    target = target_of(tmp_path, TOLD)
    options = {"cache": "large", "under": "ext4"}
    words = target.explore_command(tmp_path / "t", tmp_path / "a", options).argv
    assert "--ignore" not in words and "--recorder-fs" in words


@pytest.mark.parametrize(
    "line", ['{"state": {"rows": "1 a"}}', '{"ok": 1, "state": {"rows": "1 a"}}']
)
def test_an_answer_says_whether_it_is_right(line: str) -> None:
    """A state alone is no answer."""
    answer = recovery_answer(said(line + "\n"), (), observed=True)
    assert not answer.ok and "no `ok`" in answer.message


@pytest.mark.parametrize(
    "findings",
    [
        "{}",
        '"torn"',
        "null",
        "[7]",
        "[null]",
        '[{"what": "x", "invariant": 31}]',
        '[{"what": "x", "invariant": "6"}]',
        '[{"what": "x", "invariant": true}]',
        '[{"what": 5}]',
    ],
)
def test_findings_are_read_as_the_explorer_reads_them(findings: str) -> None:
    """A list of texts and of objects with the number of an invariant; anything else is no answer, never none
    and never a failure of ours."""
    line = f'{{"ok": true, "state": {{}}, "findings": {findings}}}\n'
    answer = recovery_answer(said(line), (), observed=True)
    assert not answer.ok and "no answer of the right form" in answer.message


def test_the_file_says_what_answers_have(tmp_path: Path) -> None:
    """A state, whatever else an answer has; the scanner's object where the model judges. The explorer is told
    which of the two it is."""
    line = '{"ok": true, "state": {"rows": "1"}, "check": "passed"}\n'
    assert recovery_answer(said(line), (), observed=True).ok
    assert not recovery_answer(said(line), (), observed=False).ok
    places = (tmp_path / "t", tmp_path / "a")
    observed = MODEL_FILE.replace('oracle = "model"\n', "").replace(" {script}", "")
    for text, told in ((MODEL_FILE, True), (observed, False)):
        argv = target_of(tmp_path, text).explore_command(*places, {}).argv
        assert ("--scanned" in argv) is told


@pytest.mark.parametrize(
    ("state", "wrong"),
    [
        ('{"rows": "\\udcff"}', "half a character"),
        ('{"\\ud800": ""}', "half a character"),
        ('{"a\\u0000b": ""}', "zero byte"),
    ],
)
def test_a_state_is_text_that_the_explorer_can_read(state: str, wrong: str) -> None:
    """What its JSON library refuses is told at the admission, not as a recovery that fails."""
    answer = run_answer(said(f'{{"n": 0, "state": {state}}}\n'), observed=True)
    assert not answer.ok and wrong in answer.message
    assert not recovery_answer(said(f'{{"ok": true, "state": {state}}}\n'), (), observed=True).ok


@pytest.mark.parametrize("number", ["-1", "1.5", '"1"', "null"])
def test_a_state_has_the_number_of_its_statement(number: str) -> None:
    """Any other is told with its line."""
    answer = run_answer(said(f'{{"n": {number}, "state": {{}}}}\n'), observed=True)
    assert not answer.ok and "line 1 of its output" in answer.message


def test_of_many_values_the_first_are_told() -> None:
    """As of any long list of names."""
    choice = Choice(values=[f"v{number}" for number in range(200)], what="")
    assert choice.refusal("nix").endswith(" or v19 and 180 more")


def test_what_lies_beside_a_target_file_is_known(tmp_path: Path) -> None:
    """Programs and the template by their paths from its folder, wherever they are named; what lies elsewhere
    is not."""
    elsewhere = tmp_path / "elsewhere"
    folder = tmp_path / "mine"
    for path in (elsewhere / "far.py", folder / "near.py", folder / "start" / "db" / "main.db"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    text = (
        'name = "mine"\ntemplate = "start/../start"\n[commands]\n'
        f"run = '{{python}} near.py {{dir}}'\nrecover = '{{python}} {elsewhere}/far.py'\n"
    )
    beside = target_of(folder, text).files_beside()
    assert next(iter(beside)) == "mine.toml"
    assert sorted(beside) == ["mine.toml", "near.py", "start/db/main.db"]
    assert all((folder / name).samefile(path) for name, path in beside.items())
