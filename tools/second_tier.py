"""What `make test` leaves out, because it is slow and far from the core: tests with the marker `extended`,
and the longest C tests under sanitizers.

    tools/second_tier.py           runs those that this branch touches
    tools/second_tier.py --all     runs all

The branch is what lies between its beginning on origin/main and the working tree; on main itself, what the
last commit or merge has brought. Where that cannot be told, all are touched.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAB = "harness/tornpage/lab/"
RUNS = tuple(
    f"harness/tornpage/{name}/"
    for name in ("plans", "live", "evidence", "workers", "powerloss", "campaigns")
)
STORE = "harness/tornpage/store/"
BUNDLED = "harness/tornpage/targets/bundled/"

TOUCHED_BY: Mapping[str, tuple[str, ...]] = {
    "tests/e2e/test_api.py": ("docs/API.md", "harness/tornpage/api.py"),
    "tests/e2e/test_bench_seeds.py": (LAB, "harness/tornpage/cli/bench.py", "engine/"),
    "tests/e2e/test_bench_speed.py": (LAB, "harness/tornpage/cli/bench.py"),
    "tests/e2e/test_bisect.py": (
        "harness/tornpage/campaigns/bisect.py",
        "harness/tornpage/campaigns/recheck.py",
        "harness/tornpage/cli/bisect.py",
        "harness/tornpage/live/kept.py",
    ),
    "tests/e2e/test_ci_recipes.py": ("examples/", "harness/tornpage/reports/", "tools/setup.sh"),
    "tests/e2e/test_cluster.py": RUNS,
    "tests/e2e/test_confirm.py": (
        "faults/fs/",
        "faults/under.c",
        "harness/tornpage/causes/",
        "harness/tornpage/faults/under.py",
    ),
    "tests/e2e/test_drawn_names.py": (
        "harness/tornpage/evidence/",
        "harness/tornpage/live/",
        "harness/tornpage/shrinking/",
    ),
    "tests/e2e/test_e2e_powerloss.py": (
        "disk/",
        "explorer/",
        "harness/tornpage/powerloss/",
    ),
    "tests/e2e/test_e2e_shared_store.py": (STORE, "tests/py/private_postgresql.py"),
    "tests/e2e/test_e2e_shrink.py": ("harness/tornpage/shrinking/",),
    "tests/e2e/test_explain.py": (
        "explorer/run/",
        "faults/calls",
        "harness/tornpage/causes/",
        "harness/tornpage/targets/engine/",
    ),
    "tests/e2e/test_e2e_sqlite.py": (
        "explorer/targets/sqlite/",
        "harness/tornpage/targets/sqlite/",
    ),
    "tests/e2e/test_findings_walk.py": (
        "docs/FINDINGS.md",
        "docs/LOST_KEY.md",
        "harness/tornpage/cli/",
        "harness/tornpage/shrinking/",
        "tests/mutants/dblwr_off.patch",
    ),
    "tests/e2e/test_fio_neighbour.py": (LAB, "workloads/fio/"),
    "tests/e2e/test_hunt.py": (
        "harness/tornpage/hunting/",
        "harness/tornpage/cli/hunt.py",
        "harness/tornpage/workloads/mutation.py",
    ),
    "tests/e2e/test_kept_find.py": (
        "harness/tornpage/campaigns/kept_verdict.py",
        "harness/tornpage/campaigns/recheck.py",
        "harness/tornpage/campaigns/replay.py",
        "harness/tornpage/live/kept.py",
    ),
    "tests/e2e/test_mariadb.py": (
        BUNDLED,
        "harness/tornpage/targets/command/",
        "harness/tornpage/targets/innodb/",
        "explorer/",
        "faults/",
    ),
    "tests/e2e/test_moved_find.py": (
        "harness/tornpage/campaigns/packed.py",
        "harness/tornpage/campaigns/unpacked.py",
        "harness/tornpage/shrinking/",
    ),
    "tests/e2e/test_mutants.py": (LAB, "tests/mutants/", "engine/", "explorer/judge/"),
    "tests/e2e/test_night.py": (*RUNS, STORE, "harness/tornpage/faults/", "faults/launch.c"),
    "tests/e2e/test_nightly.py": (
        "harness/tornpage/campaigns/night.py",
        "harness/tornpage/cli/nightly.py",
    ),
    "tests/e2e/test_odd_stores.py": ("faults/", "explorer/run/", *RUNS),
    "tests/e2e/test_own_path.py": (
        "harness/tornpage/faults/",
        "harness/tornpage/targets/command/",
    ),
    "tests/e2e/test_owner.py": (
        "harness/tornpage/campaigns/attempt.py",
        "harness/tornpage/campaigns/replay.py",
        "harness/tornpage/powerloss/",
        STORE,
    ),
    "tests/e2e/test_printed.py": (
        "harness/tornpage/cli/",
        "harness/tornpage/reports/",
    ),
    "tests/e2e/test_publish.py": (
        "harness/tornpage/cli/",
        "harness/tornpage/reports/",
    ),
    "tests/e2e/test_pytest_plugin.py": (
        "harness/tornpage/pytest_plugin.py",
        "harness/tornpage/torture_items.py",
    ),
    "tests/e2e/test_qualify_fs.py": (
        LAB + "file",
        LAB + "fsprobes.py",
        LAB + "realdisk.py",
        "disk/",
        "faults/under.c",
    ),
    "tests/e2e/test_recipes.py": (
        "examples/",
        "docs/NIGHTLY.md",
        "harness/tornpage/campaigns/night.py",
    ),
    "tests/e2e/test_recorder_fs.py": (
        "faults/",
        "explorer/run/",
        "harness/tornpage/faults/recorder.py",
        "harness/tornpage/targets/target.py",
    ),
    "tests/e2e/test_report.py": (
        "harness/tornpage/evidence/",
        "harness/tornpage/reports/",
        "reports/",
    ),
    "tests/e2e/test_serve.py": (
        "harness/tornpage/campaigns/serving.py",
        "harness/tornpage/cli/serve.py",
    ),
    "tests/e2e/test_site.py": ("docs/", "mkdocs.yml", "README.md", "CHANGELOG.md", "tools/site"),
    "tests/e2e/test_stacks.py": (
        "faults/stacks",
        "harness/tornpage/evidence/symbols.py",
        "harness/tornpage/faults/stacks.py",
    ),
    "tests/e2e/test_target_file.py": (
        "explorer/targets/command/",
        "harness/tornpage/oracle/",
        "harness/tornpage/shrinking/",
        "harness/tornpage/targets/command/",
    ),
    "tests/e2e/test_under.py": (
        "faults/fs/",
        "faults/under.c",
        "harness/tornpage/faults/under.py",
    ),
    "tests/e2e/test_upstream.py": (BUNDLED, "harness/tornpage/causes/"),
    "tests/e2e/test_wheel.py": (
        "CMakeLists.txt",
        "harness/tornpage/vocabulary/paths.py",
        "pyproject.toml",
        "tools/arm64",
        "tools/build_backend.py",
        "tools/dist.sh",
    ),
    "tests/py/lab/test_harness_mutants.py": (LAB, "tests/py/tiny_project.py"),
}
"""By the file of extended tests, beginnings of the paths whose change they are run for; of their own, too."""
C_SOURCES = (
    "CMakeLists.txt",
    "CMakePresets.json",
    "disk/",
    "engine/",
    "explorer/",
    "faults/",
    "tests/c/",
)
"""What the C tests under sanitizers are run for."""


def touched_tests(changed: Collection[str]) -> list[str]:
    """Files of extended tests that a change of these paths touches."""
    return [
        tests
        for tests, beginnings in TOUCHED_BY.items()
        if any(path.startswith((tests, *beginnings)) for path in changed)
    ]


def touches_c(changed: Collection[str]) -> bool:
    """It may have changed what the C tests find."""
    return any(path.startswith(C_SOURCES) for path in changed)


def changed_paths(root: Path = ROOT) -> list[str] | None:
    """Paths that the branch has changed, those of the working tree included. None if that cannot be told: no
    repository, or a commit that nothing is known of before it."""
    base = _git(root, "merge-base", "HEAD", "origin/main")
    if base is None or base == _git(root, "rev-parse", "HEAD"):
        base = _git(root, "rev-parse", "--verify", "HEAD^1")
    if base is None:
        return None
    changed = _git(root, "diff", "--name-only", "--no-renames", base.strip())
    return None if changed is None else changed.splitlines()


def _git(root: Path, *words: str) -> str | None:
    command = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


def commands(changed: Collection[str] | None) -> list[list[str]]:
    """What is run for it; None: everything."""
    tests = list(TOUCHED_BY) if changed is None else touched_tests(changed)
    found = []
    if tests:
        line = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-m", "extended"]
        found.append([*line, *tests])
    if changed is None or touches_c(changed):
        found.append(["ctest", "--preset", "asan", "--parallel", "2", "--label-regex", "long"])
    return found


def main(words: list[str]) -> int:
    """1 if one of the commands fails."""
    changed = None if words == ["--all"] else changed_paths()
    failed = False
    for command in commands(changed):
        print(f"second tier: {' '.join(command)}", flush=True)
        failed |= subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
