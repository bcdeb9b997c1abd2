"""The explorer from outside: a recorded run of the engine is clean, a lying disk is found, and neither
workers nor batches change what is found.

The allowed states come from the engine itself, run on each beginning of the script: enough to test the
explorer, which must only compare. Campaigns use the harness's oracle.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ENGINE = os.environ["TORNPAGE_TEST_ENGINE"]
EXPLORE = os.environ["TORNPAGE_TEST_EXPLORE"]
PRELOAD = os.environ["TORNPAGE_TEST_PRELOAD"]
IN_BOTH_WAYS = int(os.environ["TORNPAGE_TEST_IN_BOTH_WAYS"])
"""Distinct states that are scanned with and without what earlier scans know: fewer under sanitizers."""
PLANTED = os.environ.get("TORNPAGE_TEST_PLANTED", "") != ""
"""The programs have a planted bug, which shows without a lying disk."""
OPTIONS = ["--option", "buffer_pool_pages=48", "--option", "dblwr_pages=16"]
SCRIPT = """create table t1 id:bigint a:bigint c:char(40) primary id
insert_seq - t1 1 40
begin x
update x t1 id=3 set a=7 c="hello"
delete x t1 id=5
commit x
add index t1 ia(a) ic(c:10)
begin y
update y t1 id=9 set a=8
checkpoint
insert - t1 id=100 a=5 c="zz"
rollback y
clean 10
checkpoint full
rename table t1 t2
insert - t2 id=1000 a=9
drop index t2 ia
"""
VISIBLE = [1, 2, 6, 7, 11, 15, 16, 17]
"""Lines whose acknowledgement makes a change visible."""
SECTOR = 512


def run(command: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end."""
    return subprocess.run(
        command,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def read_way(file: Path) -> list[dict[str, object]]:
    """What --way wrote, by level."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def sectors_told(events: list[dict[str, object]]) -> dict[tuple[str, int], bool]:
    """By file and sector, whether the last of these writes to it is there."""
    told = {}
    for event in events:
        if event["op"] == "write" and event["fate"] != "gone":
            first = event["offset"] // SECTOR
            count = (event["offset"] + event["length"] - 1) // SECTOR - first + 1
            kept = event.get("kept", ("0" if event["fate"] == "lost" else "1") * count)
            for number, letter in enumerate(kept, first):
                told[event["path"], number] = letter == "1"
            assert len(kept) == count and (event["fate"] == "torn") == (len(set(kept)) == 2)
    return told


def read_sector(file: Path, number: int) -> bytes:
    """Empty behind the end of the file."""
    return file.read_bytes()[number * SECTOR : (number + 1) * SECTOR]


class Program(unittest.TestCase):
    """One recorded run for all tests."""

    folder: tempfile.TemporaryDirectory[str]
    trace: Path
    allowed: Path

    @classmethod
    def setUpClass(cls) -> None:
        """Records the script and writes the allowed states."""
        cls.folder = tempfile.TemporaryDirectory()
        root = Path(cls.folder.name)
        cls.trace, cls.allowed = root / "trace", root / "allowed"
        data, script = root / "data", root / "script"
        data.mkdir()
        script.write_text(SCRIPT, "ascii")
        env = {
            "LD_PRELOAD": PRELOAD,
            "TORNPAGE_ROOT": str(data),
            "TORNPAGE_TRACE": str(cls.trace),
            "TORNPAGE_PAYLOAD": "full",
        }
        done = run([ENGINE, "run", *OPTIONS, str(data), str(script)], env)
        assert done.returncode == 0, done.stderr
        lines = SCRIPT.splitlines(keepends=True)
        prefixes = [{"prefix": 0, "line": 0, "tables": []}]
        for number, line in enumerate(VISIBLE, 1):
            script.write_text("".join(lines[:line]), "ascii")
            copy = root / f"prefix{number}"
            assert run([ENGINE, "run", *OPTIONS, str(copy), str(script)]).returncode == 0
            tables = json.loads(run([ENGINE, "check", "--json", str(copy)]).stdout)["tables"]
            prefixes.append({"prefix": number, "line": line, "tables": tables})
        cls.allowed.write_text("".join(json.dumps(p) + "\n" for p in prefixes), "ascii")

    @classmethod
    def tearDownClass(cls) -> None:
        """Removes the files."""
        cls.folder.cleanup()

    def run_explorer(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """On the recorded run."""
        files = ["--trace", str(self.trace), "--allowed", str(self.allowed)]
        return run([EXPLORE, *files, *arguments])

    def explore(self, *arguments: str, code: int = 0) -> list[dict[str, object]]:
        """Runs the explorer; its JSON lines."""
        done = self.run_explorer(*OPTIONS, "--json", *arguments)
        self.assertEqual(done.returncode, code, done.stdout[-2000:] + done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_every_canary_is_condemned(self) -> None:
        """Each by its own invariant, or one that the same damage may show as; and the slices tell the
        same."""
        (summary,) = self.explore("--states", "40", "--canaries")
        canaries = summary["canaries"]
        assert isinstance(canaries, list)
        untried = [canary["name"] for canary in canaries if canary["condemned"] is None]
        # The log is one of 10.4, and the tree has one level.
        self.assertEqual(untried, ["freed_page", "one_parent"])
        self.assertEqual([canary for canary in canaries if canary["condemned"] is False], [])
        by = {canary["name"]: canary["by"] for canary in canaries}
        self.assertEqual(by["lost_commit"], "oracle, I1")
        self.assertEqual(by["never_issued"], "oracle, I3")
        self.assertEqual(by["foreign_page"], "scan, I5")
        self.assertEqual(by["torn_page"], "scan, I5")
        self.assertEqual(by["future_page"], "scan, I4")
        self.assertEqual(by["unlogged_page"], "write_ahead, I4")
        self.assertEqual(by["ckpt_pages"], "ckpt_pages, I19")
        self.assertEqual(len(by), 20 + 17)
        (without,) = self.explore("--states", "40")
        self.assertNotIn("canaries", without)
        parts = b""
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "slice"
            for part in ("1/2", "2/2"):
                self.explore(
                    "--states", "40", "--canaries", "--slice", part, "--slice-file", str(file)
                )
                parts += file.read_bytes()
            file.write_bytes(parts)
            (merged,) = self.explore("--merge", str(file))
        self.assertEqual(merged["canaries"], canaries)

    def test_clean_engine_has_no_violation(self) -> None:
        """All states of all models, and recovery paths that really ran."""
        (summary,) = self.explore("--jobs", "2")
        self.assertEqual(summary["violations"], 0)
        self.assertGreater(summary["distinct"], 500)
        self.assertLess(summary["distinct"], summary["states"])
        for path in (
            "dblwr_restored",
            "redo_records",
            "trx_rolled_back",
            "indexes_dropped",
            "recovered_twice",
            "worked",
        ):
            self.assertGreater(summary["paths"][path], 0, path)

    def test_second_crash_has_no_violation(self) -> None:
        """Recoveries that are crashed again, twice."""
        (summary,) = self.explore(
            "--depth", "3", "--nested", "3", "--states", "3000", "--jobs", "2"
        )
        self.assertEqual(summary["violations"], 0)
        self.assertGreater(summary["paths"]["second_crash"], 300)

    def test_sectors_of_4096(self) -> None:
        """A disk that writes 4 KiB atomically is a weaker enemy: fewer states, none wrong."""
        (small,) = self.explore("--model", "one-torn")
        (large,) = self.explore("--model", "one-torn", "--sector", "4096")
        self.assertLess(large["states"], small["states"])
        self.assertGreater(large["states"], 0)
        self.assertEqual((small["violations"], large["violations"]), (0, 0))

    def test_torn_page_matrix(self) -> None:
        """A state can only lose what was written; whole, all that can be lost in a way is. Pages have first
        and later flushes, also those of a load; a header has one sector; large sectors leave fewer ways."""
        (small,) = self.explore("--jobs", "2")
        (large,) = self.explore("--sector", "4096", "--jobs", "2")
        for summary in (small, large):
            for site, flushes in summary["torn_pages"].items():
                for flush, tears in flushes.items():
                    for tear, cell in tears.items():
                        with self.subTest(site=site, flush=flush, tear=tear):
                            self.assertEqual(cell["states"] > 0, cell["writes"] > 0)
        pages = small["torn_pages"]["index_load_page"]
        self.assertGreater(pages["first_flush"]["interior"]["states"], 0)
        self.assertGreater(small["torn_pages"]["page0"]["later_flush"]["interior"]["states"], 0)
        header = small["torn_pages"]["checkpoint_header"]["later_flush"]
        self.assertGreater(header["dropped"]["writes"], 0)
        self.assertEqual(header["prefix"]["writes"], 0)
        self.assertEqual(large["torn_pages"]["data_page"]["first_flush"]["prefix"]["writes"], 0)

    def test_recovery_has_writes_of_its_own(self) -> None:
        """At depth 2 what recoveries write counts too, and is lost."""
        flat, deep = (self.explore("--depth", d, "--states", "2000")[-1] for d in ("1", "2"))
        for key in ("writes", "states"):
            one, two = (
                s["torn_pages"]["page0"]["later_flush"]["dropped"][key] for s in (flat, deep)
            )
            self.assertNotEqual(one, two)
        self.assertGreater(
            deep["torn_pages"]["doublewrite"]["first_flush"]["dropped"]["writes"],
            flat["torn_pages"]["doublewrite"]["first_flush"]["dropped"]["writes"],
        )

    def test_lying_disk_is_found(self) -> None:
        """Without an fsync that the protocol needs there are violations, of the expected kinds."""
        for pattern, wanted in {
            "ib_dblwr": {"5"},
            "*.ibd": {"5", "30"},
            "ib_logfile*": {"1", "4"},
            ".": {"1", "30"},
        }.items():
            with self.subTest(pattern=pattern):
                *violations, summary = self.explore("--ignore-fsync", pattern, "--states", "3000", code=1)
                self.assertTrue(violations)
                self.assertLessEqual(wanted, set(summary["by_invariant"]))

    def test_workers_and_batches_change_nothing(self) -> None:
        """Same seed, same lines, but for speed and size of the machinery."""
        outputs = []
        for jobs, batch in ((1, 1000), (1, 7), (2, 64), (3, 13)):
            lines = self.explore(
                "--ignore-fsync", "ib_dblwr", "--depth", "2", "--states", "3000", "--seed", "3",
                "--jobs", str(jobs), "--batch", str(batch), code=1,
            )  # fmt: skip
            for key in ("seconds", "states_per_s", "jobs"):
                lines[-1].pop(key)
            outputs.append(lines)
        for other in outputs[1:]:
            self.assertEqual(outputs[0], other)

    def test_slices_come_to_the_same(self) -> None:
        """What slices say, merged in any order, is what one process says of all states, whatever the depth
        and the number of slices; images that several slices have met count once."""
        root = Path(self.folder.name)
        of_slices = 0
        for arguments, n, code in (
            (("--states", "1500"), 4, 0),
            (("--depth", "2", "--states", "3000", "--ignore-fsync", "ib_dblwr"), 7, 1),
            (
                ("--depth", "3", "--nested", "3", "--states", "2000", "--ignore-fsync", "*.ibd"),
                3,
                1,
            ),
        ):
            whole = self.explore(*arguments, code=code)
            told = []
            for i in range(n, 0, -1):
                file = ("--slice", f"{i}/{n}", "--slice-file", str(root / "slice"))
                self.explore(*arguments, *file)
                told.append((root / "slice").read_text())
            (root / "slices").write_text("".join(told))
            merged = self.explore("--merge", str(root / "slices"), code=code)
            for lines in (whole, merged):
                for key in ("seconds", "states_per_s"):
                    lines[-1].pop(key)
            self.assertEqual(whole, merged)
            images = [line for text in told for line in text.splitlines() if "image" in line]
            of_slices += len(images) - whole[-1]["distinct"]
            damaged = (told[:-1], [*told, told[0]], [*told, '{"image":1}\n'], ["{}\n", *told])
            for number, bad in enumerate(damaged):
                (root / "slices").write_text("".join(bad))
                with self.subTest(damaged=number):
                    self.explore("--merge", str(root / "slices"), code=2)
        self.assertGreater(of_slices, 0)

    def test_scan_in_full_changes_nothing(self) -> None:
        """What earlier scans know spares work and never a check: IN_BOTH_WAYS images, right and broken ones,
        are scanned in both ways, to the same report, and the exploration says the same as with the scan in
        full nearly never. Where a bug is planted the scanner finds broken images, else there are none without
        a lie."""
        distinct = 0
        lies = (("--ignore-fsync", "ib_dblwr"), ("--ignore-fsync", "*.ibd"))
        for lie, code in ((), int(PLANTED)), *((lie, 1) for lie in lies):
            outputs = []
            for in_full in ("1", "1000000"):
                more = (
                    "--depth",
                    "2",
                    "--nested",
                    "4",
                    "--states",
                    str(IN_BOTH_WAYS),
                    "--jobs",
                    "2",
                )
                lines = self.explore(*lie, *more, "--in-full", in_full, code=code)
                for key in ("seconds", "states_per_s"):
                    lines[-1].pop(key)
                outputs.append(lines)
            self.assertEqual(outputs[0], outputs[1])
            *violations, summary = outputs[0]
            if not lie:
                self.assertEqual("scan" in {v["source"] for v in violations}, PLANTED)
            distinct += summary["distinct"]
        self.assertGreater(distinct, IN_BOTH_WAYS)

    def test_seed_changes_the_choice(self) -> None:
        """Another seed, other states."""
        one = self.explore("--states", "400", "--seed", "1")[-1]
        two = self.explore("--states", "400", "--seed", "2")[-1]
        self.assertEqual(one["states"], two["states"])
        self.assertNotEqual(one["torn_pages"], two["torn_pages"])

    def test_one_state_is_replayed_and_dumped(self) -> None:
        """Its id alone gives the same verdict; its files give the engine the same trouble."""
        lie = ("--ignore-fsync", "ib_dblwr")
        violation = next(v for v in self.explore(*lie, code=1) if v.get("invariant") == 5)
        image = Path(self.folder.name) / "image"
        *again, _ = self.explore(
            *lie, "--only", violation["state"], "--dump-state", str(image), code=1
        )
        self.assertEqual([v["what"] for v in again if v["invariant"] == 5], [violation["what"]])
        done = run([ENGINE, "recover", *OPTIONS, "--json", str(image)])
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn(json.loads(done.stdout)["message"], violation["what"])

    def test_the_way_of_a_state_is_told(self) -> None:
        """What became of each operation is what the image shows: sectors that are there are as they were
        written, lost ones are not, and with everything persisted nothing is lost."""
        root = Path(self.folder.name)
        lie = ("--ignore-fsync", "ib_dblwr")
        violation = next(v for v in self.explore(*lie, code=1) if v.get("invariant") == 5)
        seq = violation["state"].partition(".")[0]
        ways = []
        for state, name, code in (
            (violation["state"], "left", 1),
            (f"{seq}.all-persisted.0", "whole", 0),
        ):
            files = ("--dump-state", str(root / name), "--way", str(root / f"{name}.way"))
            self.explore(*lie, "--only", state, *files, code=code)
            (level,) = read_way(root / f"{name}.way")
            ways.append(level["events"])
        torn, whole = ways
        self.assertLessEqual({event["fate"] for event in whole}, {"kept", "durable", "gone"})
        seqs = [event["seq"] for event in torn]
        self.assertEqual(seqs, sorted(seqs))
        self.assertEqual(seqs[-1], int(seq))
        self.assertTrue({event["fate"] for event in torn} & {"lost", "torn"})
        lost = 0
        for (path, number), there in sectors_told(torn).items():
            left, written = (read_sector(root / name / path, number) for name in ("left", "whole"))
            if there:
                self.assertEqual(left, written, (path, number))
            else:
                lost += left != written
        self.assertGreater(lost, 0)

    def test_a_state_is_looked_at_as_another_one(self) -> None:
        """By the number that draws it: its own changes nothing, another one asks for more, or for less."""
        way = Path(self.folder.name) / "drawn"
        lie = ("--ignore-fsync", "ib_dblwr")
        violation = next(v for v in self.explore(*lie, code=1) if v.get("invariant") == 5)
        state = ("--only", f"{violation['state'].partition('.')[0]}.all-persisted.0")
        own = self.explore(*state, "--way", str(way), code=0)[-1]
        drawn = read_way(way)[0]["sample"]
        way.unlink()
        self.assertEqual(self.explore(*state, "--sample", drawn, code=0)[-1]["paths"], own["paths"])
        looks = ("purged", "worked", "recovered_in_batches")
        every, none = (
            self.explore(*state, "--sample", number, "--way", str(way), code=0)[-1]["paths"]
            for number in ("0", "21777")
        )
        self.assertEqual([every[look] for look in looks], [1, 1, 1])
        self.assertEqual([none[look] for look in looks], [0, 0, 0])
        self.assertEqual([told["sample"] for told in read_way(way)], ["0", "21777"])

    def test_replay_of_a_nested_state(self) -> None:
        """An id of two levels leads through the same recovery to the same state."""
        lie = ("--ignore-fsync", "*.ibd")
        lines = self.explore(*lie, "--depth", "2", "--states", "4000", code=1)
        nested = [v for v in lines[:-1] if "/" in v["state"]]
        self.assertTrue(nested)
        for number, violation in enumerate(nested[:3]):
            way = Path(self.folder.name) / f"way{number}"
            only = ("--only", violation["state"], "--way", str(way))
            *again, _ = self.explore(*lie, *only, code=1)
            found = [v for v in again if v["state"] == violation["state"]]
            self.assertIn(violation["invariant"], [v["invariant"] for v in found])
            self.assertEqual([level["level"] for level in read_way(way)], [1, 2])

    def test_budget_and_range(self) -> None:
        """A budget ends a campaign; crash points outside of the range are not run."""
        progress = Path(self.folder.name) / "progress"
        (summary,) = self.explore(
            "--budget", "0.5", "--depth", "3", "--nested", "60", "--jobs", "2", "--progress", str(progress)
        )  # fmt: skip
        self.assertFalse(summary["complete"])
        self.assertGreater(summary["states"], 0)
        self.assertLess(summary["seconds"], 0.5 + 5)  # within one, on a machine that is not busy
        self.assertLessEqual(int(progress.read_text().split()[0]), summary["states"])
        (few,) = self.explore("--from-seq", "100", "--to-seq", "200")
        self.assertLess(few["crash_points"], summary["crash_points"])
        (none,) = self.explore("--from-seq", "99999999", code=3)
        self.assertEqual(none["states"], 0)

    def test_usage(self) -> None:
        """What cannot be done is refused with exit code 2 and one line."""
        for arguments in (
            ["--model", "nosuch"],
            ["--sector", "1000"],
            ["--option", "nosuch=1"],
            ["--only", "1.subset"],
            ["--only", "1.all-persisted.7"],
            ["--dump-state", "/nowhere"],
            ["--way", "/nowhere"],
            ["--depth", "4"],
            ["--in-full", "0"],
            ["--slice", "1/2"],
            ["--slice", "3/2", "--slice-file", "/nowhere"],
            ["--slice", "1/2", "--slice-file", "/nowhere", "--budget", "1"],
            ["--slice", "1/2", "--slice-file", "/nowhere", "--only", "0.all-persisted.0"],
            ["--only", "0.all-persisted.0", "--budget", "60"],
            ["--merge", "/nowhere"],
            ["--budget", "1y"],
            ["--budget", "-5m"],
            ["--progress", "/nosuch/file"],
            ["--trace", "/nosuch"],
            ["--allowed", "/nosuch"],
        ):
            with self.subTest(arguments=arguments):
                done = self.run_explorer(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertTrue(done.stderr.startswith("tornpage-explore: "))


if __name__ == "__main__":
    unittest.main()
