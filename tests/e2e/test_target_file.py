"""Target files: the skeletons fit, a missing fsync is found, and what does not fit is told in one line."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psutil
import pytest
from e2e_support import PYTHON, Tornpage, call

from tornpage.campaigns.attempt import check_target
from tornpage.targets.command.skeleton import Language, write_skeleton
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.paths import BUILD_VARIABLE, Paths, data_folder

LINES = "    for line in open"
OPTION = """[options.sync]
values = ["on", "off"]
what = "whether a commit is synced"
[commands]"""
FEW = ("--states", "150", "--trials", "12", "--jobs", "1")


def make(folder: Path, language: Language = Language.PYTHON) -> Path:
    """The skeleton `mydb` in this folder, built."""
    made = write_skeleton("mydb", language, folder)
    if made.build:
        subprocess.run(made.build.split(), check=True, timeout=60)
    return made.file


def changed(file: Path, name: str, *changes: tuple[str, str]) -> Path:
    """The target file with these texts replaced, in it or in the program beside it."""
    for path in (file, file.parent / "store.py"):
        text = path.read_text("utf-8")
        for old, new in changes:
            text = text.replace(old, new)
        path.write_text(text, "utf-8")
    return file.rename(file.with_name(f"{name}.toml"))


@pytest.fixture
def paths(build: Path) -> Paths:
    """Of the checkout."""
    return Paths(build, data_folder("workloads"), data_folder("reports"), Path("out"))


@pytest.mark.parametrize(("language", "lines"), [(Language.PYTHON, 30), (Language.C, 40)])
def test_a_skeleton_fits(language: Language, lines: int, tmp_path: Path, paths: Paths) -> None:
    """It passes the admission test, comes to the same states each time, and is short."""
    file = make(tmp_path, language)
    (source,) = file.parent.glob("store.[pc]*")
    assert len(source.read_text("utf-8").splitlines()) <= lines
    seen = check_target(make_target(str(file), paths.build))
    assert (seen.commits, seen.writes, seen.files, seen.repeatable) == (30, 30, 1, True)


def test_a_right_store_is_clean_and_the_control_is_not(tmp_path: Path, tornpage: Tornpage) -> None:
    """Power loss and kills find nothing; a disk whose fsyncs lie breaks the promise."""
    answer = tornpage("try", str(make(tmp_path, Language.C)), *FEW)
    assert answer.code == 0, answer.text
    assert answer.data["control"]["kinds"] > 0 and not answer.data["vacuous"]
    loss, kills = answer.data["runs"]
    assert (loss["violations"], kills["violations"]) == (0, 0)
    assert (loss["states"] >= 200, loss["depth"], kills["exercised"]) == (True, 2, 12)
    for run in (loss, kills):
        assert set(run["counters"]) <= {"second_crash", "recovered_twice"}
        assert run["run_counters"] == {}


def test_a_missing_fsync_is_found_and_replayed(tmp_path: Path, tornpage: Tornpage) -> None:
    """Acknowledged commits that were never synced are gone (I1); the first such state replays."""
    file = changed(make(tmp_path), "bad", ("        os.fsync(log)\n", ""))
    answer = tornpage("try", str(file), *FEW)
    assert answer.code == 1, answer.text
    bug = answer.data["runs"][0]["bugs"][0]
    assert 1 in bug["invariants"]
    again = tornpage("replay", bug["trial"])
    assert again.code == 1 and again.data["answer"] == "reproduced", again.text


def test_a_file_that_recover_needs_is_not_ignored(tmp_path: Path, tornpage: Tornpage) -> None:
    """No image has it: each would be told as a bug of the store."""
    file = changed(make(tmp_path), "log", ("ignore = []", 'ignore = ["*.log"]'))
    answer = tornpage("try", str(file), *FEW)
    assert answer.code == 2, answer.text
    told = "without the ignored files recover does not find the last state: store.log: "
    assert told in answer.text


def test_run_takes_a_target_file(tmp_path: Path, tornpage: Tornpage) -> None:
    """Both campaigns, by the file's path from anywhere."""
    file = make(tmp_path, Language.C)
    run = ("run", "smoke", "--target", str(file), "--fault-free", "2")
    kills = tornpage(*run, "--trials", "12")
    assert kills.data["control"]["kinds"] > 0
    assert kills.code == 0 and kills.data["exercised"] == 12, kills.text
    assert set(kills.data["by_site"]) == {"redo"}
    loss = tornpage("run", "powerloss", "--target", str(file), "--states", "60", "--jobs", "1")
    assert loss.code == 0 and loss.data["states"] >= 100, loss.text


@pytest.mark.extended
def test_a_shell_may_run_the_store(tmp_path: Path, tornpage: Tornpage) -> None:
    """Words of a command are paths of ours that a shell takes as they are, in kills and in power losses."""
    file = make(tmp_path)
    text = file.read_text("utf-8")
    file.write_text(re.sub(r'(?m)^run = "(.*?)"', r"""run = 'sh -c "exec \1"'""", text), "utf-8")
    kills = tornpage("run", "smoke", "--target", str(file), "--trials", "6", "--fault-free", "1")
    assert kills.code == 0 and kills.data["exercised"] == 6, kills.text
    loss = tornpage("run", "powerloss", "--target", str(file), "--states", "40", "--jobs", "1")
    assert loss.code == 0, loss.text


@pytest.mark.extended
def test_a_sparse_file_costs_its_data(tmp_path: Path, tornpage: Tornpage) -> None:
    """16 GB with a block here and there: recorded, compared, crashed and recovered."""
    file = changed(
        make(tmp_path),
        "huge",
        (
            "    ready(",
            "    huge = os.open(f'{folder}/huge', os.O_RDWR | os.O_CREAT, 0o644)\n"
            "    os.ftruncate(huge, 16 << 30)\n    os.fsync(huge)\n    ready(",
        ),
        (
            "        os.fsync(log)\n",
            "        os.pwrite(huge, b'x' * 4096, n << 29)\n        os.fsync(log)\n",
        ),
    )
    answer = tornpage("try", str(file), *FEW)
    assert answer.code == 0, answer.text
    loss, kills = answer.data["runs"]
    assert loss["states"] >= 200 and kills["exercised"] == 12
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 1 << 20  # KB


SHORT = """description = "a few states"
workload = "own"
crash_model = "power_loss"
seed = 1
[explore]
states = 40
"""


def test_a_night_tortures_a_target_file(tmp_path: Path, tornpage: Tornpage) -> None:
    """By a campaign that is a file, too."""
    file = make(tmp_path, Language.C)
    (tmp_path / "short.toml").write_text(SHORT, "utf-8")
    short = str(tmp_path / "short.toml")
    answer = tornpage("nightly", short, "--target", str(file), "--jobs", "1")
    assert answer.code == 0, answer.text
    assert [run["target"] for run in tornpage("runs").data["runs"]] == [str(file)]


@pytest.mark.extended
def test_a_recovery_that_cannot_be_crashed_is_found_at_depth_2(
    tmp_path: Path, tornpage: Tornpage
) -> None:
    """One that writes its log anew in place is right, unless the power fails while it does."""
    file = changed(
        make(tmp_path), "anew",
        ("        rows[key] = str(int(value))\n    return",
         "        rows[key] = str(int(value))\n"
         '    text = open(f"{folder}/store.log", errors="replace").read()\n'
         '    with open(f"{folder}/store.log", "w") as log:\n'
         '        log.write(text), log.flush(), os.fsync(log)\n    return'),
    )  # fmt: skip
    run = ("run", "powerloss", "--target", str(file), "--states", "150", "--depth")
    first, second = tornpage(*run, "1"), tornpage(*run, "2")
    assert first.code == 0, first.text
    assert (second.code, 1 in second.data["bugs"][0]["invariants"]) == (1, True), second.text
    replayed = tornpage("replay", second.data["bugs"][0]["trial"])
    assert replayed.code == 1, replayed.text


@pytest.mark.extended
def test_a_promise_of_nothing_is_vacuous(tmp_path: Path, tornpage: Tornpage) -> None:
    """Where no state can break the promise the set-up says so, with an exit code of its own: whoever runs it,
    by power loss or kills, and the verdict of a stored run too."""
    file = changed(
        make(tmp_path), "loose", ("durable = true", "durable = false"),
        ("consistent = true", "consistent = false"),
        (LINES, f"    os.close(os.open(f'{{folder}}/store.log', os.O_CREAT))\n{LINES}"),
    )  # fmt: skip
    answer = tornpage("try", str(file), *FEW)
    assert (answer.code, answer.data["vacuous"]) == (3, True), answer.text
    (tmp_path / "short.toml").write_text(SHORT, "utf-8")
    short = str(tmp_path / "short.toml")
    of_file = ("--target", str(file), "--jobs", "1")
    for words in (("run", "smoke", "--trials", "4", "--fault-free", "0"), ("run", short)):
        answer = tornpage(*words, *of_file)
        assert (answer.code, answer.data["verdict"]) == (3, "nothing exercised"), answer.text
        control = answer.data["looked_at"]["control"]
        assert control["states"] > 0 and control["kinds"] == 0
    told = call(tmp_path, "nightly", short, *of_file).stdout.splitlines()[-1]
    assert told.startswith(
        "NOTHING EXERCISED (exit 3): vacuous: on a disk that ignores every fsync"
    ), told


def test_a_store_may_lose_what_it_does_not_promise(tmp_path: Path, tornpage: Tornpage) -> None:
    """durable = false: the same missing fsync leaves older states, which are right, and no mixture."""
    file = changed(
        make(tmp_path),
        "late",
        ("        os.fsync(log)\n", ""),
        ("durable = true", "durable = false"),
    )
    answer = tornpage("run", "powerloss", "--target", str(file), "--states", "150")
    assert answer.code == 0, answer.text


@pytest.mark.extended
def test_a_store_that_promises_no_state_need_not_keep_one(
    tmp_path: Path, tornpage: Tornpage
) -> None:
    """consistent = false holds for kills as for power loss: a part of a commit may be there. The same store
    with a promise breaks it in both."""
    torn = (
        ("        rows[key] = str(int(value))\n    return",
         "        rows[key] = str(int(value))\n"
         '    if open(f"{folder}/store.log", errors="replace").read()[-1:] not in ("", "\\n"):\n'
         '        rows["part"] = "x"\n    return'),
    )  # fmt: skip
    loose = (("durable = true", "durable = false"), ("consistent = true", "consistent = false"))
    for name, changes, found in (("strict", torn, True), ("loose", (*torn, *loose), False)):
        (tmp_path / name).mkdir()
        file = changed(make(tmp_path / name), name, *changes)
        for campaign, some in (
            ("powerloss", ("--states", "150", "--depth", "1")),
            ("smoke", ("--trials", "12")),
        ):
            answer = tornpage("run", campaign, "--target", str(file), *some, "--jobs", "1")
            assert answer.code == int(found), (name, campaign, answer.text)
            assert ("I2" in answer.data["by_invariant"]) is found


def test_files_that_were_there_before_are_part_of_every_image(
    tmp_path: Path, tornpage: Tornpage
) -> None:
    """Template and what prepare makes of it are durable: a run that begins with them, in a folder, is
    judged as any other."""
    file = changed(
        make(tmp_path), "prepared",
        ("[commands]", 'template = "before"\n[commands]\nprepare = "cp {dir}/d/seven {dir}/d/base"'),
        ("    rows = {}\n", '    rows = {"base": open(f"{folder}/d/base").read().strip()}\n'),
    )  # fmt: skip
    folder = file.parent / "before" / "d"
    folder.mkdir(parents=True)
    (folder / "seven").write_text("7\n", "utf-8")
    answer = tornpage("try", str(file), *FEW)
    assert answer.code == 0, answer.text
    assert answer.data["control"]["kinds"] > 0


def test_a_missing_folder_fsync_is_found_on_posix_and_not_on_an_ordered_file_system(
    tmp_path: Path, tornpage: Tornpage
) -> None:
    """The log's name: on posix only the folder's fsync makes it durable. Both may be asked for; the run says
    which of them broke."""
    file = changed(
        make(tmp_path), "both",
        ("    os.fsync(os.open(folder, os.O_RDONLY))  # the name of the log\n", "    os.fsync(log)\n"),
        ('fs = "posix"', 'fs = ["posix", "ext4-ordered"]'),
    )  # fmt: skip
    run = ("run", "powerloss", "--target", str(file), "--states", "100", "--depth", "1")
    both = tornpage(*run)
    assert both.code == 1, both.text
    assert {cell["config"] for cell in both.data["coverage"]["cells"]} == {
        "fs=posix",
        "fs=ext4-ordered",
    }
    assert [tornpage(*run, "--option", f"fs={fs}").code for fs in ("posix", "ext4-ordered")] == [
        1,
        0,
    ]
    unknown = tornpage(*run, "--option", "fs=fat")
    assert (
        unknown.code,
        "no file system 'fat'; there are: posix, ext4-ordered, " in unknown.text,
    ) == (2, True)


GARBAGE = "    print('hello')\n"
RUN = ("    rows = {}\n    ready", "{}    rows = {{}}\n    ready")
RECOVER = ("    rows = {}\n    for line", "{}    rows = {{}}\n    for line")


def wrong(place: tuple[str, str], code: str) -> tuple[str, str]:
    """Puts code into the run or the recovery."""
    return place[0], place[1].format(code)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (wrong(RUN, "    sys.exit('no disk today')\n"), r"run .*failed: exit code 1: no disk today"),
        (wrong(RUN, "    os.kill(os.getpid(), 11)\n"), r"failed: died by SIGSEGV"),
        (wrong(RUN, "    __import__('signal').pause()\n"), r"failed: hung: killed after"),
        (wrong(RUN, GARBAGE), r"line 1 of its output is 'hello': no JSON"),
        (("    ready({", "    print({"), r"line 1 of its output"),
        (("        ack(n, ", "        (lambda *_: None)(n, "), r"acknowledged nothing"),
        (("    for n in range(1, 31)", "    for n in range(31, 1, -1)"), r"numbers must grow"),
        (wrong(RECOVER, "    sys.exit('lost')\n"), r"does not open: recover gave no answer"),
        (wrong(RECOVER, "    __import__('signal').pause()\n"), r"recover gave no answer: hung"),
        (wrong(RECOVER, GARBAGE + "    sys.stdout.flush(); os._exit(0)\n"), r"no answer, but 'hello'"),
        (wrong(RECOVER, GARBAGE), r"more than one line for a folder: 'hello', '\{"),
        (("str(int(value))", "'1'"), r"without any crash: .*no commit prefix"),
        (("./store.py load", "./stare.py load"), r"commands.run: ./stare.py: no such program"),
        (("durable = true", "durble = true"), r"promise.durble: unknown key"),
        (("durable = true", "durable = 'yes'"), r"promise.durable: Input should be a valid boolean"),
        (("load {dir}", "load"), r"run must have {dir}"),
        (("load {dir}", "load {dir} {dirr}"), r"there is no {dirr}; did you mean 'dir'\?"),
        (("consistent = true", "consistent = false"), r"what is durable is consistent"),
        (('redo = ', 'red = '), r"sites.red"),
        (('name = "mydb"', 'name = "my db"'), r"name: String should match"),
        (('name = "mydb"', 'name = mydb'), r"Invalid value"),
        (("[commands]", OPTION), r"options: no command has {sync}"),
        (("[commands]", OPTION.replace("sync", "dir")), r"options: dir is taken"),
        (("[commands]", "[needs]\nnodbd = 'install it'\n[commands]"), r"mydb needs nodbd: install it"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_in_one_line(
    change: tuple[str, str], told: str, tmp_path: Path, tornpage: Tornpage
) -> None:
    """The file or the key, or how the command ended; exit code 2, and nothing is left behind."""
    file = changed(make(tmp_path), "wrong", change)
    text = file.read_text("utf-8")
    file.write_text(f"run_deadline_s = 4\nstate_deadline_s = 3\n{text}", "utf-8")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    answer = tornpage("try", str(file), TORNPAGE_TMP=str(scratch))
    line = answer.text.strip().splitlines()[-1]
    assert answer.code == 2, answer.text
    assert line.startswith("tornpage: ") and "Traceback" not in answer.text
    assert re.search(told, line), line
    assert list(scratch.iterdir()) == [] and not (tmp_path / "out").exists()


def test_a_recovery_that_dies_or_hangs_on_a_crashed_folder_is_found(
    tmp_path: Path, tornpage: Tornpage
) -> None:
    """I30, with its last words, where the log is torn; the state after it is asked of a new process."""
    file = changed(
        make(tmp_path), "dies", ("            break  # torn by the crash: never acknowledged",
                                 "            raise ValueError('a torn line')"),
    )  # fmt: skip
    answer = tornpage("run", "powerloss", "--target", str(file), "--states", "150")
    assert answer.code == 1, answer.text
    assert set(answer.data["by_invariant"]) == {"I30"}
    assert "a torn line" in json.dumps(answer.data["bugs"]) + answer.text


def _with_more(tmp_path: Path, more: str) -> Path:
    """The target file of a store in C that also does this before its first commit."""
    file = make(tmp_path, Language.C)
    source = file.parent / "store.c"
    text = source.read_text("utf-8").replace(
        "    for (int n = 0;", f"    {more}\n    for (int n = 0;"
    )
    source.write_text(text, "utf-8")
    subprocess.run(
        ["cc", "-D_GNU_SOURCE", "-o", file.parent / "store", source],
        check=True,
        timeout=60,
        capture_output=True,
    )
    return file


def test_a_program_may_write_by_streams_and_names(tmp_path: Path, paths: Paths) -> None:
    """The usual way to replace a file, a further link, and a sync of everything are in the recording."""
    file = _with_more(
        tmp_path,
        """char name[] = "tmpXXXXXX"; FILE *new = fdopen(mkstemp(name), "w");
    fputs("x", new); fflush(new); fsync(fileno(new)); fclose(new);
    rename(name, "final"); link("final", "further"); sync();""",
    )
    check_target(make_target(str(file), paths.build))


def test_a_program_that_the_preload_cannot_see_is_refused(tmp_path: Path, paths: Paths) -> None:
    """A write through a stream of wide characters is in the file and not in the recording."""
    file = _with_more(tmp_path, 'fputs("x", fopen("other", "w,ccs=UTF-8"));')
    with pytest.raises(TornpageError, match="cannot follow fopen of other"):
        check_target(make_target(str(file), paths.build))


@pytest.mark.extended
def test_an_installed_target_is_known_by_its_name(tmp_path: Path, tornpage: Tornpage) -> None:
    """A package names its target file by an entry point of the group tornpage.targets."""
    file = make(tmp_path, Language.C)
    site = tmp_path / "site"
    info = site / "mydb-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mydb\nVersion: 1\n", "utf-8")
    (info / "entry_points.txt").write_text("[tornpage.targets]\nmydb = mydb_target:FILE\n", "utf-8")
    code = f"from pathlib import Path\nFILE = Path({str(file)!r})\n"
    (site / "mydb_target.py").write_text(code, "utf-8")
    path = f"{site}:{os.environ.get('PYTHONPATH', '')}"
    found: dict[str, Any] = {"process": True, "PYTHONPATH": path}
    answer = tornpage("run", "powerloss", "--target", "mydb", "--states", "40", **found)
    assert (answer.code, answer.data["target"]) == (0, "mydb"), answer.text
    unknown = tornpage("run", "powerloss", "--target", "yourdb", **found)
    assert unknown.code == 2 and "did you mean 'redb' or 'mydb'?" in unknown.text


FULL = """set -e
mount -t tmpfs -o size=300m none scratch
TORNPAGE_TMP=$PWD/scratch "$@"
"""


def test_a_run_that_fills_the_disk_is_the_machines_failure(tmp_path: Path) -> None:
    """Exit code 2, and a line that says so."""
    file = changed(
        make(tmp_path), "greedy",
        wrong(RUN, "    [os.write(log, bytes(1 << 20)) for _ in range(1000)]\n"),
    )  # fmt: skip
    (tmp_path / "scratch").mkdir()
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", FULL, "sh"]
    command += [*PYTHON, "try", str(file), "--out", "out"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2, done.stderr
    assert re.search("MiB free|ENOSPC", done.stderr.splitlines()[-1]), done.stderr


@pytest.mark.extended
def test_an_option_of_the_store_goes_to_its_commands(tmp_path: Path, tornpage: Tornpage) -> None:
    """The first value is the default; another one is another configuration; what is none is told."""
    sync = "        os.fsync(log)\n"
    file = changed(
        make(tmp_path), "choice", (sync, f"        if sys.argv[3] == 'on':\n    {sync}"),
        ("[commands]", OPTION), ("load {dir}", "load {dir} {sync}"),
    )  # fmt: skip
    run = ("run", "powerloss", "--target", str(file), "--states", "100", "--depth", "1")
    assert tornpage(*run).code == 0
    assert tornpage(*run, "--option", "sync=off").code == 1
    for setting, told in (("sync=maybe", "sync=maybe: on or off"), ("sink=on", "no option 'sink'")):
        answer = tornpage(*run, "--option", setting)
        assert answer.code == 2 and told in answer.text, answer.text


@pytest.mark.extended
def test_scratch_on_dev_shm_can_be_refused(tmp_path: Path, tornpage: Tornpage) -> None:
    """By a store that writes in another way there: unless somebody asks for it, another folder is taken."""
    file = changed(make(tmp_path), "elsewhere", ('name = "mydb"', 'name = "mydb"\nshm = false'))
    for scratch, code in (("/dev/shm", 2), (tempfile.gettempdir(), 0), ("", 0)):
        answer = tornpage("try", str(file), "--states", "40", "--trials", "2", TORNPAGE_TMP=scratch)
        assert answer.code == code, answer.text


SERVER = """#!/usr/bin/env python3
import os, socket, subprocess, sys, zlib
import store
from tornpage_mark import ack, issue, mark, ready

def serve(folder):
    log = os.open(f"{folder}/store.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.fsync(os.open(folder, os.O_RDONLY))
    print("open", flush=True)
    for line in sys.stdin:
        os.write(log, store.line_of(line.strip()).encode())
        SYNC
        print("done", flush=True)

def client(folder):
    server = subprocess.Popen([__file__, "server", folder], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    rows = {}
    server.stdout.readline()
    ready({"rows": rows})
    for n in range(1, 21):
        issue(n)
        rows[f"key{n % 5}"] = str(n)
        server.stdin.write(f"key{n % 5} {n:01200}\\n")
        server.stdin.flush()
        if server.stdout.readline() != "done\\n":
            sys.exit("the server is gone")
        ack(n, {"rows": rows})

serve(sys.argv[2]) if sys.argv[1] == "server" else client(sys.argv[2])
"""


@pytest.mark.extended
@pytest.mark.parametrize(("sync", "code"), [("os.fsync(log)", 0), ("pass", 1)])
def test_a_server_is_recorded_and_its_client_marks(
    sync: str, code: int, tmp_path: Path, tornpage: Tornpage
) -> None:
    """Both share one order: what the server wrote before it answered lies before the client's ack. A
    server that does not sync is found; nothing of it lives on."""
    file = changed(
        make(tmp_path), "server",
        ("./store.py load", "./server.py load"), ("long_lived", "server = true\nlong_lived"),
        ('load(sys.argv[2]) if sys.argv[1] == "load" else serve(recover)',
         "if __name__ == '__main__':\n    serve(recover)"),
    )  # fmt: skip
    program = file.parent / "server.py"
    program.write_text(SERVER.replace("SYNC", sync), "utf-8")
    program.chmod(0o755)
    answer = tornpage("try", str(file), *FEW)
    assert answer.code == code, answer.text
    assert answer.data["commits"] == 20 and answer.data["repeatable"]
    assert answer.data["runs"][1]["exercised"] == 12
    assert str(program) not in " ".join(
        word
        for process in psutil.process_iter(["cmdline"])
        for word in process.info["cmdline"] or []
    )


@pytest.mark.extended
@pytest.mark.parametrize(
    ("early", "code"), [(False, 0), (True, 1)], ids=["sound", "acknowledges too early"]
)
def test_kills_need_no_run_that_comes_again(
    early: bool, code: int, tmp_path: Path, tornpage: Tornpage
) -> None:
    """Every run of the store has other rows. A kill is judged by what its own run has told."""
    file = changed(
        make(tmp_path), "random",
        ('rows[f"key{n % 7}"] = str(n)', 'rows[f"key{n % 7}"] = str(word := os.getpid() * 100 + n)'),
        ('{n:01200}', '{word:01200}'),
    )  # fmt: skip
    store = file.parent / "store.py"
    text = store.read_text("utf-8")
    line = '        ack(n, {"rows": rows})\n'
    if early:  # before the write
        text = text.replace(line, "").replace("        issue(n)\n", "        issue(n)\n        @\n")
        text = text.replace("        os.write(log", line + "        os.write(log").replace(
            "        @\n", ""
        )
    store.write_text(text, "utf-8")
    answer = tornpage("try", str(file), *FEW)
    assert answer.code == code, answer.text
    assert not answer.data["repeatable"]
    kills = answer.data["runs"][1]
    assert kills["exercised"] > 0
    assert (kills["violations"] > 0) is early


@pytest.mark.extended
def test_a_list_of_lines_is_shrunk(tmp_path: Path, tornpage: Tornpage) -> None:
    """The statements come from a file; of thirty the finding needs those that are not synced."""
    file = changed(
        make(tmp_path), "listed",
        ("load {dir}", "load {dir} {lines}"), ("long_lived", 'lines = "work.txt"\nlong_lived'),
        ("def load(folder):", "def load(folder, lines):"),
        ("load(sys.argv[2])", "load(*sys.argv[2:])"),
        ("    for n in range(1, 31):", "    for n, word in enumerate(open(lines).read().split(), 1):"),
        ("        os.fsync(log)\n", "        word == 'lazy' or os.fsync(log)\n"),
    )  # fmt: skip
    words = ["safe"] * 30
    words[11] = words[20] = "lazy"
    (file.parent / "work.txt").write_text("".join(f"{word}\n" for word in words), "utf-8")
    found = tornpage("run", "powerloss", "--target", str(file), "--states", "300", "--depth", "1")
    assert found.code == 1, found.text
    shrunk = tornpage("shrink", found.data["bugs"][0]["trial"])
    assert shrunk.code == 0, shrunk.text
    assert (shrunk.data["before"]["statements"], shrunk.data["script"]) == (30, "lazy\n")
    replayed = tornpage("replay", shrunk.data["shrunk"])
    assert replayed.code == 1, replayed.text


@pytest.mark.extended
def test_the_check_takes_options_of_the_store(tmp_path: Path, build: Path) -> None:
    """What is counted is that run's; an option that is none is told."""
    sync = "        os.fsync(log)\n"
    file = changed(
        make(tmp_path), "choice", (sync, f"        if sys.argv[3] == 'on':\n    {sync}"),
        ("[commands]", OPTION), ("load {dir}", "load {dir} {sync}"),
    )  # fmt: skip

    def check(*settings: str) -> subprocess.CompletedProcess[str]:
        words = ("target", "check", str(file), *settings)
        return call(tmp_path, *words, **{BUILD_VARIABLE: str(build)})

    syncs = [
        json.loads(check("--json", "--option", f"sync={value}").stdout)["syncs"]
        for value in ("on", "off")
    ]
    assert syncs == [31, 1]
    refused = check("--option", "sink=on")
    assert refused.returncode == 2 and "no option 'sink'" in refused.stderr
