"""The recipes of docs/NIGHTLY.md: what can be checked of them without a network, and their commands, which
run with little time and a small campaign."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e_support import call
from junitparser import JUnitXml

from tornpage.vocabulary.paths import ROOT

pytestmark = pytest.mark.extended

SYSTEMD = ROOT / "examples" / "systemd"
WORKFLOW = ROOT / "examples" / "github" / "nightly.yml"
PAGE = ROOT / "docs" / "NIGHTLY.md"
HOME, STATE = "/opt/tornpage", "/var/lib/tornpage"
SHORT = "15s"


def unit(name: str) -> configparser.ConfigParser:
    """A unit file; names keep their case."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(SYSTEMD / name)
    return parser


def workflow() -> dict[str, Any]:
    """The workflow. YAML 1.1 reads its key `on` as true."""
    data: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text("utf-8"))
    return data


def steps() -> list[dict[str, Any]]:
    """Of its only job."""
    (job,) = workflow()["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def night_commands() -> dict[str, str]:
    """The `tornpage nightly` of each recipe, and the first of the page."""
    (service,) = re.findall(
        r"^ExecStart=(.+)$", (SYSTEMD / "tornpage-nightly.service").read_text(), re.M
    )
    (step,) = [step["run"] for step in steps() if "tornpage nightly" in step.get("run", "")]
    page, _of_a_tree = re.findall(r"^tornpage nightly .+$", PAGE.read_text("utf-8"), re.M)
    return {"systemd": service, "github": step, "page": page}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A campaign of few trials that claims nothing."""
    text = (ROOT / "workloads" / "smoke.toml").read_text("utf-8")
    for key, value in {"trials": "12", "scripts": "1", "fault_free": "0"}.items():
        text, found = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        assert found == 1, key
    text = re.sub(r"(?ms)^(run_)?claims = \[.*?\]$", "", text)
    (tmp_path / "small.toml").write_text(text, "utf-8")
    return tmp_path / "small.toml"


def short_night(command: str, campaign: Path) -> list[str]:
    """The arguments of a recipe's command with another campaign and less time, as JSON."""
    program, name, *arguments = shlex.split(command)
    assert (Path(program).name, name) == ("tornpage", "nightly")
    arguments[arguments.index("--for") + 1] = SHORT
    return [name, str(campaign), *arguments, "--json"]


def test_the_units_are_right(tmp_path: Path) -> None:
    """systemd finds nothing wrong with them, once the paths are those of this checkout."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    home = tmp_path / "home"
    (home / ".venv" / "bin").mkdir(parents=True)
    (home / ".venv" / "bin" / "tornpage").symlink_to(sys.executable)
    for path in SYSTEMD.iterdir():
        (tmp_path / path.name).write_text(path.read_text("utf-8").replace(HOME, str(home)), "utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", *(str(tmp_path / path.name) for path in SYSTEMD.iterdir())],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_timer_starts_the_service() -> None:
    """They have one name. The service keeps its store where systemd makes its folder, and is not cut off
    before its own time is up."""
    assert {path.name for path in SYSTEMD.iterdir()} == {
        "tornpage-nightly.service",
        "tornpage-nightly.timer",
    }
    service = unit("tornpage-nightly.service")["Service"]
    arguments = shlex.split(service["ExecStart"])
    assert arguments[0] == f"{service['WorkingDirectory']}/.venv/bin/tornpage"
    assert arguments[arguments.index("--out") + 1] == f"/var/lib/{service['StateDirectory']}"
    assert hours(arguments[arguments.index("--for") + 1]) < hours(service["TimeoutStartSec"])
    assert "OnCalendar" in unit("tornpage-nightly.timer")["Timer"]


def hours(text: str) -> int:
    """ "6h" -> 6."""
    return int(text.removesuffix("h"))


def test_the_workflow_keeps_the_store() -> None:
    """What the night writes to is what the cache brings and takes, also when the night fails; the reader of
    test results gets the file that the night writes; the job has more time than the night."""
    job = workflow()["jobs"]["nightly"]
    night = shlex.split(night_commands()["github"])
    out, junit = (night[night.index(name) + 1] for name in ("--out", "--junit"))
    used = {step["uses"].partition("@")[0]: step for step in steps() if "uses" in step}
    assert all(re.search(r"@v\d+$", step["uses"]) for step in used.values())
    restore, save = used["actions/cache/restore"], used["actions/cache/save"]
    assert restore["with"]["path"] == save["with"]["path"] == out
    assert restore["with"]["key"] == save["with"]["key"]
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"])
    assert used["mikepenz/action-junit-report"]["with"]["report_paths"] == junit
    assert workflow()["permissions"]["checks"] == "write"
    names = [step.get("name", "") for step in steps()]
    after = steps()[names.index("Past bugs again, then new seeds") + 1 :]
    assert len(after) == 3
    assert all(step["if"] == "always()" for step in after)
    assert 60 * hours(night[night.index("--for") + 1]) < job["timeout-minutes"] < 360
    assert re.search(r"--shm-size=\dg", job["container"]["options"])


def test_the_steps_of_the_workflow_are_shell() -> None:
    """And the target that it makes exists."""
    scripts = [step["run"] for step in steps() if "run" in step]
    for script in scripts:
        done = subprocess.run(["bash", "-n"], input=script, text=True, timeout=30, check=False)
        assert done.returncode == 0, script
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = [script.removeprefix("make ") for script in scripts if script.startswith("make ")]
    assert targets and all(re.search(rf"(?m)^{target}:", makefile) for target in targets)


@pytest.mark.usefixtures("build")
def test_two_nights_by_the_recipes(small: Path, tmp_path: Path) -> None:
    """Each command runs as it stands, but for its campaigns and its time; the second night finds the store of
    the first one; the files that are uploaded and published are there."""
    commands = night_commands()
    state = tmp_path / "state"
    done = call(tmp_path, *short_night(commands["systemd"].replace(STATE, str(state)), small))
    assert done.returncode == 0, done.stderr + done.stdout
    assert len(list(JUnitXml.fromfile(str(state / "junit.xml")))) >= 1
    shutil.copytree(state, tmp_path / "out" / "nightly")
    night = short_night(commands["github"], small)
    done = call(tmp_path, *night, GITHUB_ACTIONS="true")
    assert done.returncode == 0, done.stderr + done.stdout
    assert json.loads(done.stdout.splitlines()[-1])["night"] == 2
    assert all(line.startswith("::warning title=") for line in done.stderr.splitlines())
    (upload,) = [step["with"] for step in steps() if "upload-artifact" in step.get("uses", "")]
    for pattern in upload["path"].split():
        assert list(tmp_path.glob(pattern)), pattern


@pytest.mark.usefixtures("build")
def test_the_commands_of_the_page_are_real(tmp_path: Path) -> None:
    """Each option that it names is one of the command's; those that look at a store run on one."""
    page = PAGE.read_text("utf-8")
    commands = [
        shlex.split(line, comments=True)[1:]
        for block in re.findall(r"^```\n(.*?)^```$", page, re.M | re.S)
        for line in block.splitlines()
        if line.startswith("tornpage ")
    ]
    assert [command[0] for command in commands] == ["nightly", "bugs", "runs", "nightly"]
    for name, *arguments in commands:
        told = call(tmp_path, name, "--help").stdout
        assert [word for word in arguments if word.startswith("--") and word not in told] == []
    explained = re.findall(r"^\| `(--[a-z-]+)", page, re.M)
    assert set(explained) == {word for word in commands[0] if word.startswith("--")}
    few = ("--trials", "4", "--scripts", "1", "--fault-free", "0", "--out", "out/nightly")
    assert call(tmp_path, "run", "smoke", *few).returncode in (0, 3)
    for command in commands[1:3]:
        done = call(tmp_path, *command)
        assert done.returncode == 0, done.stderr
