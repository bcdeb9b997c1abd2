"""What is told of a run: bugs that the run before had, and the line that replays each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from builders import make_result, make_spec

from tornpage.campaigns.fault_free import replay_line
from tornpage.campaigns.publish import write_report
from tornpage.campaigns.runner import load_summary
from tornpage.cli.console import bug_lines
from tornpage.plans.campaign import load_campaign
from tornpage.reports.annotations import github_lines
from tornpage.reports.junit import render_junit
from tornpage.reports.report import render_report
from tornpage.reports.verdict import verdict_of
from tornpage.store.bugs import Reproducer
from tornpage.store.store import Store
from tornpage.vocabulary.paths import data_folder, find_paths

SMOKE = load_campaign("smoke", data_folder("workloads"))


def a_run(store: Store, settings: dict[str, Any], broken: int | None) -> int:
    """A finished run of one trial."""
    run = store.begin_run("smoke", "engine", 1, 1, settings).id
    store.start_trial(run, make_spec(0), "page0", "none")
    store.finish_trial(run, make_result(0, broken=broken))
    assert store.finish_run(run).state == "finished"
    return run


@pytest.mark.parametrize(
    ("options", "seed", "told"), [({}, 1, True), ({}, 2, True), ({"doublewrite": "off"}, 1, False)]
)
def test_gone_is_told_of_the_same_work_only(
    tmp_path: Path, options: dict[str, str], seed: int, told: bool
) -> None:
    """Another seed looks again; other options look elsewhere, and say nothing of the bug."""
    changed = SMOKE.model_copy(
        update={"options": {**SMOKE.options, **options}, "seed": seed}
    ).model_dump(mode="json")
    with Store(tmp_path / "s.db") as store:
        a_run(store, SMOKE.model_dump(mode="json"), broken=5)
        second = a_run(store, changed, broken=None)
        page = write_report(
            store, load_summary(store, store.run(second)), find_paths(), tmp_path
        ).read_text("utf-8")
    assert ("<h3>Gone</h3>" in page) == told
    assert ("bug 1" in page.partition("<h3>Gone</h3>")[2]) == told


def test_a_bug_has_one_line_that_replays_it(tmp_path: Path) -> None:
    """In summary, report, JUnit, annotations, verdict and `bugs`; also of a run that sees it again,
    and when another trial has become its reproducer."""
    settings = SMOKE.model_dump(mode="json")
    templates = find_paths().templates
    with Store(tmp_path / "tornpage.db") as store:
        runs = [a_run(store, settings, broken=5) for _ in range(2)]
        for reproducer in [(runs[0], 0), (runs[1], 0)]:
            store.set_reproducer(1, Reproducer(*reproducer, make_spec(0).config))
            line = f"tornpage replay {reproducer[0]}.{reproducer[1]}"
            assert replay_line(store, store.bug(1)).startswith(line)
            for run in runs:
                summary = load_summary(store, store.run(run))
                told = [
                    bug_lines(summary.bugs[0], "trials"),
                    render_report(summary, templates, {}),
                    render_junit([summary]).decode(),
                    "\n".join(github_lines([summary])),
                    verdict_of(summary).line.replace("tornpage show", "tornpage replay"),
                    summary.to_json("", Path())["bugs"][0]["replay"],
                ]
                found = [set(re.findall("tornpage replay [0-9.]+", text)) for text in told]
                assert found == [{line}] * len(told)
