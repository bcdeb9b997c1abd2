"""`make finds`: runs the campaigns of workloads/finds and writes docs/FINDS.md: what was found, in which
engine, and after how many crash states. A campaign whose target is not here keeps its row. What a file
NAME.md beside NAME.toml tells of a find stands below the table.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tornpage.campaigns.campaign import Campaign, load_campaign
from tornpage.targets.registry import make_target
from tornpage.vocabulary.errors import TornpageError
from tornpage.vocabulary.paths import ROOT, find_paths

PAGE = ROOT / "docs" / "FINDS.md"
PLANS = ROOT / "workloads" / "finds"
STATES_FIRST = 100
HEAD = """\
# Finds

What Tornpage has found in engines that nobody here wrote, and how to see it again. `make finds` runs the
campaigns of `workloads/finds` and writes this page; do not edit it. Of each the states
were doubled, from 100 on, until one broke; a server's threads make that a matter of chance. Most of these
are known upstream, and later versions are free of them: they are controls. [TARGETS.md](TARGETS.md) tells
what each target shows when nothing is wrong. Below the table stands what has not been told to its makers yet.

| engine | what is wrong | what Tornpage says of it | states | repeat it |
|---|---|---|---:|---|
"""


def row(file: Path, campaign: Campaign) -> str | None:
    """What comes of the campaign; None if its target is not here."""
    try:
        target = make_target(campaign.target, find_paths().build)
    except TornpageError as error:
        print(f"{file.stem}: {error}", file=sys.stderr)
        return None
    assert campaign.explore is not None, "these are power losses"
    states = STATES_FIRST
    while True:
        found = bugs_of(file, states)
        if found or states >= campaign.explore.states:
            break
        states = min(2 * states, campaign.explore.states)
    command = f"`tornpage run workloads/finds/{file.name} --states {states} --depth 1`"
    said = found or "nothing"
    count = str(states) if found else f"none in {states}"
    cells = (target.what, campaign.description, said, count, command)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def bugs_of(file: Path, states: int) -> str:
    """Invariants and words of what was found, "" if there is nothing."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "tornpage", "run", str(file), "--states", str(states)]
        command += ["--depth", "1", "--jobs", "1", "--json", "--out", out]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{file.name}: {done.stderr.strip()}")
    bugs = json.loads(done.stdout.splitlines()[-1])["bugs"]
    told = [", ".join(f"I{n}" for n in bug["invariants"]) + f": {bug['title']}" for bug in bugs]
    return "<br>".join(told)


def main() -> None:
    """Every file, or those that are named."""
    old = PAGE.read_text("utf-8").splitlines() if PAGE.exists() else []
    rows = []
    for file in sorted(PLANS.glob("*.toml")):
        kept = next((line for line in old if f"/{file.name} " in line), None)
        wanted = not sys.argv[1:] or file.stem in sys.argv[1:]
        campaign = load_campaign(str(file), PLANS)
        made = row(file, campaign) if wanted else None
        rows += [made or kept or ""]
    tales = [file.read_text("utf-8") for file in sorted(PLANS.glob("*.md"))]
    PAGE.write_text("\n".join([HEAD + "\n".join(filter(None, rows)) + "\n", *tales]), "utf-8")


if __name__ == "__main__":
    main()
