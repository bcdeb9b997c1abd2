"""The pytest plugin: campaigns in files *.torture.toml are tests, and own tests get a fixture. docs/PYTEST.md
explains both. Every pytest loads it where Tornpage is installed, so the harness is imported when needed.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tornpage.plans.limits import OF_PYTEST
from tornpage.vocabulary.shown import one_line

if TYPE_CHECKING:
    from tornpage.api import Finding, Summary

__all__ = ["Torture", "torture"]

SUFFIX = ".torture.toml"
SHRINK_S = 20.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, which all begin with --torture."""
    group = parser.getgroup("torture", "crash-recovery torture (Tornpage)")
    for bound in OF_PYTEST.values():
        group.addoption(
            bound.of_pytest,
            type=str if bound.form else int,
            metavar=bound.form or "N",
            help=f"{bound.what}; default: the file's.",
        )
    group.addoption(
        "--torture-budget",
        type=float,
        metavar="SECONDS",
        help="Time limit per campaign item, approximate; default: the file's.",
    )
    group.addoption("--torture-replay", metavar="ID", help="Replay only this trial, such as 3.117.")
    group.addoption(
        "--torture-cells",
        action="store_true",
        help="An item per site and mask, or model, not only per configuration.",
    )
    group.addoption(
        "--torture-shrink",
        type=float,
        default=SHRINK_S,
        metavar="SECONDS",
        help="Search for a smaller script of a finding (0: none). Default: %(default)s.",
    )
    group.addoption(
        "--torture-jobs", type=int, default=1, metavar="N", help="Worker processes per item."
    )
    group.addoption(
        "--torture-out",
        metavar="DIR",
        help="Folder of the result database and reports. Default: .tornpage in the root of the tests.",
    )
    group.addoption(
        "--torture-store",
        metavar="PLACE",
        help="The result database, if not in that folder: a file, or postgresql://USER@HOST/DATABASE.",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A campaign file is a collector of its portions."""
    if not file_path.name.endswith(SUFFIX):
        return None
    from tornpage.torture_items import TortureFile

    return TortureFile.from_parent(parent, path=file_path)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --torture-replay only the item that the trial belongs to is left."""
    trial = config.getoption("--torture-replay")
    limited = [config.getoption(bound.of_pytest) for bound in OF_PYTEST.values()]
    if trial is None and limited == [None] * len(limited):
        return
    from tornpage.torture_items import owner_of, require_heard

    require_heard(config, items)
    if trial is None:
        return

    owner = owner_of(trial, items)
    config.hook.pytest_deselected(items=[item for item in items if item is not owner])
    items[:] = [owner]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed with findings of the fixture tells them as a campaign file does."""
    report = yield
    given = getattr(item, "funcargs", {}).get("torture")
    if report.when == "call" and report.failed and isinstance(given, Torture) and given.found:
        from tornpage.torture_items import told_findings

        report.sections.append(("torture", "\n".join(told_findings(given.found, item.config))))
    return report


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Findings in place of none, a line each."""
    if op != "==" or right != [] or type(left).__name__ != "Rows" or not left:
        return None
    from tornpage.api import Finding

    if not isinstance(left, list) or not all(isinstance(one, Finding) for one in left):
        return None
    lines = [f"  I{one.invariant} at {one.site}: {one.what}" for one in left]
    return [f"{len(left)} findings, and none was expected:", *map(one_line, lines)]


class Torture:
    """What the fixture gives: the names of tornpage.api that make findings, with the session's store, seed
    and number of workers. `out` is the folder of reports, and of the store unless that is elsewhere; `found`
    has all that this test has found, which its report tells if it fails."""

    def __init__(self, name: str, config: pytest.Config) -> None:
        """name: of the runs in the store."""
        from tornpage.torture_items import store_folder, store_name

        self.out = store_folder(config)
        self.found: list[Finding] = []
        self._name = name
        self._options: dict[str, Any] = {
            "out": self.out,
            "store": store_name(config),
            "jobs": config.getoption("--torture-jobs"),
        }
        seed = config.getoption("--torture-seed")
        if seed is not None:
            self._options["seed"] = seed

    def powerloss(self, target: str | Path, script: str = "", **options: Any) -> list[Finding]:
        """As tornpage.api.powerloss(): what crash states of this script break, as objects."""
        from tornpage import api

        given = {**self._options, "name": self._name, **options}
        return self._noted(api.powerloss(target, script, **given))

    def run(
        self, campaign: str | Path, target: str | Path | None = None, **options: Any
    ) -> Summary:
        """As tornpage.api.run()."""
        from tornpage import api

        summary = api.run(campaign, target, **{**self._options, **options})
        self._noted(summary.findings)
        return summary

    def _noted(self, found: list[Finding]) -> list[Finding]:
        self.found += found
        return found


@pytest.fixture
def torture(request: pytest.FixtureRequest) -> Torture:
    """Tortures a target from within a test: `assert torture.powerloss("engine", SCRIPT) == []`."""
    return Torture(request.node.nodeid, request.config)
