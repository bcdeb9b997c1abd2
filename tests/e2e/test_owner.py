"""One run has one owner, one set of programs and a machine that works; what it prints can be done again."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from e2e_support import DEADLINE_S, PYTHON, call, verdicts

from tornpage.store.store import Store
from tornpage.targets.command.skeleton import Language, write_skeleton
from tornpage.vocabulary.model import Outcome
from tornpage.vocabulary.paths import data_folder

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["run", "smoke", "--scripts", "1", "--fault-free", "0"]


@contextmanager
def running(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run of smoke that has some verdicts, ended at the end."""
    command = [*PYTHON, "run", "smoke.toml", "--jobs", "2", *arguments]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) as owner:
        try:
            deadline = time.monotonic() + DEADLINE_S
            while verdicts(folder / "out" / "tornpage.db") < 3 and owner.poll() is None:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield owner
        finally:
            if owner.poll() is None:
                owner.send_signal(signal.SIGTERM)
                owner.communicate(timeout=DEADLINE_S)


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """smoke.toml in a folder of its own, long enough to be interrupted."""
    text = (ROOT / "workloads" / "smoke.toml").read_text("utf-8")
    text, found = re.subn(r"(?m)^trials = \d+$", "trials = 120", text)
    text = re.sub(r"(?m)^fault_free = \d+$", "fault_free = 0", text)
    text = re.sub(r"(?m)^scripts = \d+$", "scripts = 2", text)
    assert found == 1
    (tmp_path / "smoke.toml").write_text(text, "utf-8")
    return tmp_path


def test_a_run_whose_owner_lives_is_not_resumed(campaign: Path) -> None:
    """Neither by --resume nor by --go-on; both name the owner."""
    with running(campaign, "--trials", "5000") as owner:
        for option in ("--resume", "--go-on"):
            done = call(campaign, "run", "smoke.toml", option)
            assert done.returncode == 2, done.stderr
            assert f"run 1 has a running owner: process {owner.pid}" in done.stderr


@pytest.mark.extended
def test_a_run_goes_on_with_its_own_programs_only(campaign: Path) -> None:
    """Another campaign file is another run: --resume is refused and names it, --go-on starts anew."""
    with running(campaign) as owner:
        pass
    assert owner.returncode == 128 + signal.SIGTERM
    file = campaign / "smoke.toml"
    text = file.read_text("utf-8")
    file.write_text(text.replace("trials = 120", "trials = 20"), "utf-8")
    done = call(campaign, "run", "smoke.toml", "--resume")
    assert (done.returncode, "made with another campaign" in done.stderr) == (2, True), done.stderr
    assert call(campaign, "run", "smoke.toml", "--go-on").returncode in (0, 3)
    with Store(campaign / "out" / "tornpage.db", write=False) as store:
        assert [(run.state, run.trials) for run in store.runs()] == [
            ("failed", 120),
            ("finished", 20),
        ]


def test_a_killed_worker_ends_the_run_and_not_its_verdicts(campaign: Path) -> None:
    """Exit code 2 and one line; --resume comes to the end."""
    with running(campaign) as owner:
        children = psutil.Process(owner.pid).children()
        workers = [child for child in children if "spawn_main" in " ".join(child.cmdline())]
        workers[0].kill()
        _, errors = owner.communicate(timeout=DEADLINE_S)
    assert owner.returncode == 2, errors
    assert errors.decode().splitlines()[-1] == "tornpage: a worker process died; --resume goes on"
    assert call(campaign, "run", "smoke.toml", "--resume").returncode in (0, 3)
    with Store(campaign / "out" / "tornpage.db", write=False) as store:
        (run,) = store.runs()
        outcomes = {row.result.outcome for row in store.trials(run.id) if row.result}
        assert (run.state, len(store.finished_numbers(run.id))) == ("finished", 120)
    assert not outcomes & {Outcome.HARNESS_ERROR, Outcome.VIOLATION, Outcome.UNSTABLE}


def kills(place: Path) -> dict[int, str]:
    """Verdicts of the second run of a store, which kills, by their numbers; none where there is no store."""
    try:
        with sqlite3.connect(f"file:{place}?mode=ro", uri=True) as db:
            query = "select number, result from trial where run = 2 and outcome is not null"
            return dict(db.execute(query).fetchall())
    except sqlite3.OperationalError:
        return {}


@pytest.mark.extended
def test_a_try_that_was_killed_goes_on(tmp_path: Path) -> None:
    """From the kills that it had made, none of which it makes again, to what one comes to that nobody killed:
    the same verdict on the same bugs, and as many crashes."""
    few = ("try", "mydb", "--states", "60", "--trials", "24", "--jobs", "1", "--json")
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        write_skeleton("mydb", Language.PYTHON, tmp_path / name)
        store = tmp_path / name / "mydb" / "store.py"
        text = store.read_text("utf-8")
        store.write_text(text.replace("        os.fsync(log)\n", ""), "utf-8")
    whole = call(tmp_path / "whole", *few)
    folder = tmp_path / "killed"
    place = folder / "out" / "tornpage.db"
    with subprocess.Popen([*PYTHON, *few], cwd=folder, stdout=subprocess.DEVNULL) as owner:
        deadline = time.monotonic() + DEADLINE_S
        while len(kills(place)) < 3 and owner.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        owner.kill()
    before = kills(place)
    assert 3 <= len(before) < 24
    resumed = call(folder, *few, "--resume")
    assert before.items() <= kills(place).items()
    told, expected = (json.loads(done.stdout.splitlines()[-1]) for done in (resumed, whole))
    for key, value in (("exit_code", 1), ("verdict", "violations")):
        assert told[key] == expected[key] == value
    assert [run["run"] for run in told["runs"]] == [1, 2]
    same = (
        "trials",
        "exercised",
        "not_exercised",
        "violations",
        "by_invariant",
        "by_site",
        "scripts",
    )
    for key in same:
        assert [run[key] for run in told["runs"]] == [run[key] for run in expected["runs"]], key
    bugs = [[bug["fingerprint"] for bug in run["bugs"]] for run in told["runs"]]
    assert bugs == [[bug["fingerprint"] for bug in run["bugs"]] for run in expected["runs"]]
    assert len(kills(place)) == 24


FULL = """set -e
mount -t tmpfs -o size=600m none scratch
TORNPAGE_TMP=$PWD/scratch "$@" & owner=$!
until ls scratch/tornpage-*/trial-* >/dev/null 2>&1; do
    kill -0 $owner
    sleep 0.02
done
dd if=/dev/zero of=scratch/filler bs=1M 2>/dev/null || true
code=0
wait $owner || code=$?
exit $code
"""


@pytest.mark.extended
def test_a_full_scratch_is_no_violation(campaign: Path) -> None:
    """Filled to the brim in the middle, the run stops with exit code 2 and no verdict against the target;
    with room again it goes on to a clean end."""
    (campaign / "scratch").mkdir()
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", FULL, "sh", *PYTHON]
    done = subprocess.run(
        [*command, "run", "smoke.toml"],
        cwd=campaign,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    with Store(campaign / "out" / "tornpage.db", write=False) as store:
        (run,) = store.runs()
        bad = {Outcome.VIOLATION, Outcome.UNSTABLE, Outcome.HARNESS_ERROR}
        rows = [row for row in store.trials(run.id) if row.result and row.result.outcome in bad]
        assert (run.state, rows) == ("running", [])
    assert call(campaign, "run", "smoke.toml", "--resume").returncode in (0, 3)


@pytest.mark.extended
def test_a_printed_line_replays_its_finding(tmp_path: Path) -> None:
    """From any folder: reproduced is 1; on a target that is mended 0; a crash that cannot happen is 2."""
    done = call(tmp_path, *SMALL, "--option", "doublewrite=off", "--trials", "24", "--out", "o")
    assert done.returncode == 1, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines() if "tornpage replay" in line]
    words = shlex.split(lines[0])
    trial = words[words.index("replay") + 1]
    assert words[-2:] == ["--out", "o"]
    again = call(tmp_path, *words[words.index("tornpage") + 1 :])
    assert (again.returncode, "\nreproduced" in again.stdout) == (1, True), again.stdout
    with Store(tmp_path / "o" / "tornpage.db", write=False) as store:
        broken = [row for row in store.trials(1) if row.result and row.result.violations]
    early = min(broken, key=lambda row: row.spec.plan.run[0].nth)  # mended, it writes less often
    trial = f"1.{early.number}"
    _change(tmp_path / "o", trial, "$.options.doublewrite", "on")
    fixed = call(tmp_path, "replay", trial, "--out", "o")
    assert (fixed.returncode, "not reproduced: fixed?" in fixed.stdout) == (0, True), fixed.stdout
    _change(tmp_path / "o", trial, "$.plan.run[0].nth", 10**9)
    never = call(tmp_path, "replay", trial, "--out", "o")
    assert (never.returncode, "cannot be played: the fault" in never.stdout) == (2, True)
    kept = list((tmp_path / "o" / "images" / "1").iterdir())
    with Store(tmp_path / "o" / "tornpage.db", write=False) as store:
        broken = [row for row in store.trials(1) if row.result and row.result.violations]
        assert sorted(int(path.name) for path in kept) == [
            row.number for row in broken if row.result and row.result.image
        ]
        assert len(kept) < len(broken)


@pytest.mark.extended
def test_a_plan_in_a_file_is_played(tmp_path: Path) -> None:
    """That of a kept image breaks the same; with the whole write on disk nothing breaks; what hits nothing
    cannot be played; a mistake is refused with its line."""
    done = call(tmp_path, *SMALL, "--option", "doublewrite=off", "--trials", "24")
    assert done.returncode == 1, done.stderr
    image = sorted((tmp_path / "out" / "images" / "1").iterdir())[0]
    trial, own = f"1.{image.name}", (image / "plan.toml").read_text("utf-8")
    file = tmp_path / "plan.toml"

    def play(text: str) -> subprocess.CompletedProcess[str]:
        file.write_text(text, "utf-8")
        return call(tmp_path, "replay", trial, "--plan", str(file))

    again = play(own)
    assert (again.returncode, "\nreproduced" in again.stdout) == (1, True), again.stdout
    write = re.search(r'file = "(.*)"\nnth = (\d+)\n', own)
    assert write is not None
    whole = play(f'[[fault]]\nkind = "write"\n{write[0]}action = "kill"\nsectors = "all"\n')
    assert (whole.returncode, "not reproduced" in whole.stdout) == (0, True), whole.stdout
    never = play(own.replace(f"nth = {write[2]}", "nth = 1000000000"))
    assert (never.returncode, "cannot be played" in never.stdout) == (2, True), never.stdout
    wrong = play(own + "colour = 1\n")
    line = own.count("\n") + 1
    assert wrong.returncode == 2 and f"plan.toml: line {line}: " in wrong.stderr


@pytest.mark.extended
def test_a_power_loss_state_is_found_again(tmp_path: Path) -> None:
    """By its number in the same recording, by its fingerprint in another one."""
    options = ["--option", "doublewrite=off", "--option", "log_optimize_ddl=on"]
    options += ["--option", "log_write_through=off"]
    sizes = ["--scripts", "1", "--depth", "1", "--states", "300"]
    done = call(tmp_path, "run", "powerloss", *options, *sizes)
    assert done.returncode == 1, done.stderr
    same = call(tmp_path, "replay", "1.0")
    assert (same.returncode, "the same verdict" in same.stdout) == (1, True), same.stdout
    with sqlite3.connect(tmp_path / "out" / "tornpage.db") as db:
        db.execute("update trial set result = json_set(result, '$.trace_hash', 'of another build')")
    found = call(tmp_path, "replay", "1.0")
    assert (found.returncode, "found as state" in found.stdout) == (1, True), found.stdout
    _change(tmp_path / "out", "1.0", "$.options.doublewrite", "on")
    fixed = call(tmp_path, "replay", "1.0")
    assert (fixed.returncode, "fixed?" in fixed.stdout) == (0, True), fixed.stdout


@pytest.mark.extended
def test_old_runs_are_pruned(campaign: Path) -> None:
    """With their reports, and the index tells of the others; --keep does it after a run."""
    for _ in range(2):
        assert call(campaign, *SMALL, "--trials", "1").returncode in (0, 3)
    done = call(campaign, *SMALL, "--trials", "1", "--keep", "2")
    assert done.returncode in (0, 3), done.stderr
    assert sorted(path.name for path in (campaign / "out").glob("*.html")) == [
        "index.html",
        "report-2.html",
        "report-3.html",
    ]
    assert call(campaign, "prune", "--keep", "1").stdout.endswith(
        "\n1 runs deleted, 0.0 MiB, 1 left\n"
    )
    left = sorted(path.name for path in (campaign / "out").iterdir())
    assert left == ["index.html", "report-3.html", "tornpage.db"]
    index = (campaign / "out" / "index.html").read_text("utf-8")
    assert "report-3.html" in index and "report-2.html" not in index


def _change(out: Path, trial: str, key: str, value: object) -> None:
    run, number = trial.split(".")
    with sqlite3.connect(out / "tornpage.db") as db:
        db.execute(
            "update trial set spec = json_set(spec, ?, ?) where run = ? and number = ?",
            (key, value, run, number),
        )


@pytest.mark.extended
@pytest.mark.parametrize("model", ["smoke", "powerloss"])
def test_a_target_that_fails_fault_free_is_a_verdict(
    tmp_path: Path, build: Path, model: str
) -> None:
    """Every script is a violation, nothing is crashed, and the run is at its end. The one bug has a line that
    plays it as it is printed, though the campaign is a file and the store a folder of its own."""
    programs = tmp_path / "build"
    for folder in ("explorer", "faults"):
        (programs / folder).mkdir(parents=True)
        for path in (build / folder).iterdir():
            if path.is_file():
                (programs / folder / path.name).symlink_to(path)
    (programs / "engine").mkdir()
    engine = programs / "engine" / "engine"
    engine.write_text("#!/bin/sh\necho 'the log is lost' >&2\nexit 70\n", "ascii")
    engine.chmod(0o755)
    sizes = ["--scripts", "1", "--fault-free", "2"]
    sizes += ["--trials", "4"] if model == "smoke" else ["--depth", "1", "--states", "9"]
    env = {**os.environ, "TORNPAGE_BUILD": str(programs)}
    (tmp_path / "mine.toml").write_bytes((data_folder("workloads") / f"{model}.toml").read_bytes())
    out = tmp_path / "o o"
    command = [*PYTHON, "run", "mine.toml", *sizes, "--out", "o o"]
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "the log is lost" in done.stdout) == (1, True), done.stderr
    with Store(out / "tornpage.db", write=False) as store:
        (run,) = store.runs()
        assert (run.state, list(store.trials(run.id))) == ("finished", [])
        rows = store.golden_runs(run.id)
        assert sum(not row.crashed for row in rows) == 2
        assert all(row.violations for row in rows)
    lines = [line.strip() for line in done.stdout.splitlines() if "tornpage replay 1.s" in line]
    assert len(lines) == 1
    for line in lines:
        pasted = line.replace("tornpage replay", shlex.join([*PYTHON, "replay"]))
        again = subprocess.run(
            pasted, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (again.returncode, "the log is lost" in again.stdout) == (1, True), again.stderr
        assert "\nreproduced\nthe same verdict" in again.stdout
    for words, told in [
        (("show", "1.s0"), "the log is lost"),
        (("replay", "1.s999"), "no fault-free run"),
    ]:
        answer = call(tmp_path, *words, "--out", "o o")
        assert (answer.returncode, told in answer.stdout + answer.stderr) == (
            2 if words[0] == "replay" else 0,
            True,
        )
