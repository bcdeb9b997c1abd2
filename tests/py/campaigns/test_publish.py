"""A run tells the bugs that the run before had, where both did the same work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import make_result, make_spec

from tornpage.campaigns.publish import write_report
from tornpage.campaigns.runner import load_summary
from tornpage.plans.campaign import load_campaign
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
