"""Whatever ends a run, it leaves no process and no scratch folder behind, and --resume ends it as if nothing
had been."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
GONE_S = 10.0
"""A process that was told to die is given so long to be gone."""
CAMPAIGNS = {
    "smoke": {"trials": "40", "scripts": "2", "undisturbed": "6"},
    "powerloss": {"states": "300", "seeds": "1", "depths": "[1, 2]"},
}
"""Shortened, as files: --resume takes no limits."""


def _command(out: Path, kind: str) -> list[str]:
    file = out.parent / f"{kind}.toml"
    text = (ROOT / "workloads" / f"{kind}.toml").read_text("utf-8")
    for key, value in CAMPAIGNS[kind].items():
        text, found = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", text)
        assert found == 1, key
    file.write_text(text, "utf-8")
    command = [sys.executable, "-m", "tornpage", "run", str(file), "--out", str(out)]
    return [*command, "--go-on", "--json"]


def _environment(tmp: Path) -> dict[str, str]:
    return {**os.environ, "TORNPAGE_TMP": str(tmp)}


def _ours(tmp: Path) -> list[psutil.Process]:
    """Processes whose environment names this test's scratch folder: owner, workers, targets, explorers."""
    found = []
    for process in psutil.process_iter():
        try:
            arguments = " ".join(process.cmdline())
            environment = Path(f"/proc/{process.pid}/environ").read_bytes()
        except (psutil.Error, OSError):
            continue
        if process.pid != os.getpid() and (
            str(tmp) in arguments or str(tmp).encode() in environment
        ):
            found.append(process)
    return found


def _wait_until_gone(tmp: Path) -> None:
    end = time.monotonic() + GONE_S
    while (left := _ours(tmp)) and time.monotonic() < end:
        psutil.wait_procs(left, timeout=0.05)
    assert not left, [process.cmdline() for process in left]


def _verdict(text: str) -> tuple[str, int]:
    summary = json.loads(text.splitlines()[-1])
    return summary["trace_hash"], summary["violations"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, int]]:
    """The verdicts of runs that nobody ended."""
    found = {}
    for kind in CAMPAIGNS:
        tmp = tmp_path_factory.mktemp("scratch")
        command = _command(tmp_path_factory.mktemp("store") / "out", kind)
        done = subprocess.run(
            command, env=_environment(tmp), capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 3), done.stderr
        found[kind] = _verdict(done.stdout)
    return found


@pytest.mark.parametrize("kind", CAMPAIGNS)
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_ended_and_resumed(
    tmp_path: Path, undisturbed: dict[str, tuple[str, int]], kind: str, sent: signal.Signals
) -> None:
    """The owner is ended at a random moment, again and again, until a --resume comes to the end."""
    rng = random.Random(f"{kind} {sent}")
    tmp, out = tmp_path / "scratch", tmp_path / "out"
    tmp.mkdir()
    for _ in range(2):
        owner = subprocess.Popen(
            _command(out, kind),
            env=_environment(tmp),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        time.sleep(rng.uniform(0.2, 2.5))
        owner.send_signal(sent)
        _, errors = owner.communicate(timeout=30)
        _wait_until_gone(tmp)
        if owner.returncode == 128 + sent:
            line = errors.decode().removesuffix("\n")
            assert line.startswith("tornpage: interrupted; ")
            assert line.endswith(("--resume goes on", "nothing is kept"))
            assert "\n" not in line
            assert list(tmp.iterdir()) == []
        else:
            assert owner.returncode in (0, 3, -sent), errors
    done = subprocess.run(
        _command(out, kind),
        env=_environment(tmp),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 3), done.stderr
    assert _verdict(done.stdout) == undisturbed[kind]
    assert list(tmp.iterdir()) == []
    assert _ours(tmp) == []
