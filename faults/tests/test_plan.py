"""What is refused before main, and how operations are counted."""

from __future__ import annotations

import unittest

from support import FIRED, KILL, SIGKILL, WRITE, PreloadCase

REFUSED = 97

BAD_PLANS = {
    "flaut kind=write": "unknown directive 'flaut'",
    "fault kind=write file=f nth=1 action=kill sectors=all colour=red": "unknown key 'colour'",
    "fault kind=write file=f nth=1 action=kill =3": "unknown key ''",
    "fault kind=write file=f nth=1 action=kill all": "wants key=value, got 'all'",
    "fault kind=wrte file=f nth=1 action=kill": "kind: unknown 'wrte'",
    "fault kind=write file=f nth=1 action=explode": "action: unknown 'explode'",
    "fault kind=write file=f action=kill": "nth= is missing",
    "fault kind=write nth=1 action=kill": "file= is missing",
    "fault file=f nth=1 action=kill": "kind= is missing",
    "fault kind=mark nth=1 action=kill": "text= is missing",
    "fault kind=write file=f nth=1": "action= is missing",
    "fault kind=write file=f nth=0 action=kill": "nth: wants a number from 1",
    "fault kind=write file=f nth=-1 action=kill": "nth: wants a number from 1",
    "fault kind=write file=f nth=1x action=kill": "nth: wants a number from 1",
    "fault kind=write file=f nth=99999999999999999999 action=kill": "nth: wants a number from 1",
    "fault kind=write file=f nth=1 nth=2 action=kill": "nth= is given twice",
    "fault kind=write file= nth=1 action=kill": "file: empty",
    "fault kind=write file=%2 nth=1 action=kill": "two hexadecimal digits",
    "fault kind=write file=%00 nth=1 action=kill": "%00 is not allowed",
    "fault kind=write file=f nth=1 action=kill sector=1000": "sector: wants a power of two",
    "fault kind=write file=f nth=1 action=kill sector=256": "sector: wants a power of two",
    "fault kind=write file=f nth=1 action=kill sector=131072": "sector: wants a power of two",
    "fault kind=write file=f nth=1 action=kill sectors=10x": "sectors: wants 0s and 1s",
    "fault kind=write file=f nth=1 action=kill sectors=prefix:": "sectors: wants 0s and 1s",
    "fault kind=write file=f nth=1 action=kill sectors=all bytes=3": "exclude each other",
    "fault kind=write file=f nth=1 action=kill sectors=all when=after": "exclude each other",
    "fault kind=write file=f nth=1 action=kill times=2": "times= has no meaning",
    "fault kind=write file=f nth=1 action=kill errno=EIO": "errno= has no meaning",
    "fault kind=write file=f nth=1 action=kill shift=8": "shift= has no meaning",
    "fault kind=write file=f nth=1 action=error errno=EPERM": "errno: wants EIO, ENOSPC or EDQUOT",
    "fault kind=write file=f nth=1 action=error when=after": "when= has no meaning",
    "fault kind=write file=f nth=1 action=tear": "action=tear needs sectors= or bytes=",
    "fault kind=write file=f nth=1 action=corrupt": "action=corrupt needs sectors=",
    "fault kind=write file=f nth=1 action=corrupt bytes=3": "bytes= has no meaning",
    "fault kind=write file=f nth=1 action=misdirect": "action=misdirect needs shift=",
    "fault kind=write file=f nth=1 action=misdirect shift=0": "shift: wants a number",
    "fault kind=write file=f nth=1 action=short": "action=short needs bytes=",
    "fault kind=write file=f nth=1 action=drop sectors=all": "sectors= has no meaning",
    "fault kind=write file=f nth=1 offset=5 action=kill": "offset: wants MIN-MAX",
    "fault kind=write file=f nth=1 offset=5-4 action=kill": "offset: bad range",
    "fault kind=fsync file=f nth=1 offset=0-4 action=kill": "offset= needs a kind",
    "fault kind=fsync file=f nth=1 action=kill sectors=all": "for kind=write only",
    "fault kind=fsync file=f nth=1 action=kill sector=512": "for kind=write only",
    "fault kind=fsync file=f nth=1 action=tear sectors=all": "cannot be done to this kind",
    "fault kind=read file=f nth=1 action=drop": "cannot be done to this kind",
    "fault kind=rename file=f nth=1 action=drop": "cannot be done to this kind",
    "fault kind=mark text=x nth=1 action=error": "cannot be done to this kind",
    "fault kind=mark text=x nth=1 action=drop": "cannot be done to this kind",
    "fault kind=mark text=x file=f nth=1 action=kill": "text= is for kind=mark",
    "fault kind=write text=x file=f nth=1 action=kill": "text= is for kind=mark",
    "fault kind=write file=f nth=1 times=0 action=drop": "times: wants a number",
    "fault kind=write file=f nth=1 action=kill when=later": "when: wants before or after",
    "fault kind=write file=f nth=1 action=kill follows=no": "follows: wants yes",
    "fault kind=write file=f nth=1 action=kill follows=yes": "needs a fault before it",
    "fault kind=write file=f nth=1 action=kill\n" * 64: "more than 63 faults",
}


class Refusal(PreloadCase):
    """Exit status 97, one line on standard error, the program never runs."""

    def check(self, message: str, plan: str | None = None, **extra: str) -> None:
        run = self.run_ops("open 0 f wc", plan=plan, **extra)
        self.assertEqual(run.status, REFUSED, message)
        self.assertIn(message, run.errors)
        self.assertTrue(run.errors.startswith("tornpage_preload: "))
        self.assertEqual(run.errors.count("\n"), 1)
        self.assertFalse((self.root / "f").exists())

    def test_bad_plans(self) -> None:
        """Whatever is not understood or cannot be done names its line."""
        for plan, message in BAD_PLANS.items():
            with self.subTest(plan=plan[:90]):
                self.check(message, f"# a comment\n\n{plan}\n")
        self.check("line 3: unknown directive", "# a comment\n\nfualt\n")

    def test_bad_environment(self) -> None:
        """A variable that cannot be obeyed is refused."""
        self.check("TORNPAGE_ROOT is not set", TORNPAGE_ROOT="")
        self.check("not an absolute path", TORNPAGE_ROOT="root")
        self.check("No such file", TORNPAGE_ROOT=str(self.base / "none"))
        self.check("Not a directory", TORNPAGE_ROOT="/proc/version")
        self.check("No such file", TORNPAGE_PLAN=str(self.base / "none"))
        self.check("Is a directory", TORNPAGE_PLAN=str(self.base))
        self.check("No such file", TORNPAGE_TRACE=str(self.base / "none" / "trace"))
        self.check("not an absolute path", TORNPAGE_TRACE="trace")
        self.check("wants full or hash", TORNPAGE_PAYLOAD="half")
        for size in ("100", "-1", "1e9", "99999999999999999999"):
            self.check("wants a number of bytes", TORNPAGE_TRACE_MAX=size)

    def test_a_plan_that_is_too_long(self) -> None:
        """Nothing is cut off silently."""
        self.check("longer than 65536 bytes", "#" * 70000)
        self.check("not a text", "fault\0")


class Counting(PreloadCase):
    """Which operation is the n-th."""

    def killed_at(self, rule: str, *ops: str) -> tuple[int, int, int]:
        """Offset of the operation that was hit, its kind, writes completed before."""
        run = self.run_ops(*ops, plan=f"fault {rule} action=kill\n")
        self.assertEqual(run.status, SIGKILL, run.errors)
        self.assertEqual(run.trace.flags, FIRED)
        self.assertEqual(run.trace.records[-1].kind, KILL)
        kill = run.trace.records[-1]
        return kill.offset, kill.flags & 0xFF, len(run.trace.of(WRITE))

    OPS = (
        "mkdir d", "open 0 d/t1.ibd wc", "open 1 t2.ibd wc", "open 2 log wc", "pwrite 0 0 100 a",
        "pwrite 1 100 100 a", "pwrite 2 200 100 a", "pwrite 0 300 100 a", "writev 1 50 a",
        "pwrite 2 4000 200 a",
    )  # fmt: skip

    def test_nth_of_a_pattern(self) -> None:
        """Only operations on files that match count; a pattern's * crosses directories."""
        self.assertEqual(self.killed_at("kind=write file=*.ibd nth=1", *self.OPS), (0, WRITE, 0))

    def test_nth_of_a_pattern_later(self) -> None:
        """The third match is the fourth write."""
        self.assertEqual(self.killed_at("kind=write file=*.ibd nth=3", *self.OPS), (300, WRITE, 3))

    def test_a_fault_that_follows_counts_from_the_one_before_it(self) -> None:
        """Neither what happened before that one nor the operation that it hit."""
        first = "kind=write file=t2.ibd nth=1 action=error\nfault"
        then = f"{first} kind=write file=* nth={{}} follows=yes"
        self.assertEqual(self.killed_at(then.format(1), *self.OPS), (200, WRITE, 2))
        for name in ("d", "t2.ibd", "log"):
            self.tearDownPath(name)
        self.assertEqual(self.killed_at(then.format(3), *self.OPS), (0, WRITE, 4))

    def test_a_fault_that_follows_one_that_never_comes(self) -> None:
        """It never comes either."""
        first = "fault kind=write file=no nth=1 action=error\n"
        then = "fault kind=write file=* nth=1 action=kill follows=yes\n"
        self.assertEqual(self.run_ops(*self.OPS, plan=first + then).trace.flags, 0)

    def test_pattern_is_anchored(self) -> None:
        """A name without a directory does not match a file in one."""
        self.assertEqual(self.killed_at("kind=write file=t*.ibd nth=2", *self.OPS), (0, WRITE, 4))

    def test_offset_range_is_touched(self) -> None:
        """A write counts if it has a byte in the range."""
        self.assertEqual(
            self.killed_at("kind=write file=* nth=1 offset=299-299", *self.OPS)[0], 200
        )
        for name in ("d", "t2.ibd", "log"):
            self.tearDownPath(name)
        self.assertEqual(
            self.killed_at("kind=write file=log nth=1 offset=4199-", *self.OPS)[0], 4000
        )

    def tearDownPath(self, name: str) -> None:
        """Removes what a run left."""
        path = self.root / name
        if path.is_dir():
            for child in path.iterdir():
                child.unlink()
            path.rmdir()
        else:
            path.unlink()

    def test_a_range_that_nothing_touches(self) -> None:
        """A plan that does not fire leaves no flag and no trace of itself."""
        run = self.run_ops(
            *self.OPS, plan="fault kind=write file=* nth=1 offset=4200-9999 action=kill"
        )
        self.assertEqual((run.status, run.trace.flags, len(run.trace.of(WRITE))), (0, 0, 6))

    def test_renamed_file_matches_by_its_new_name(self) -> None:
        """The pattern is about the name at the time of the operation."""
        ops = ("open 0 old wc", "pwrite 0 0 8 a", "rename old new", "pwrite 0 8 8 a")
        self.assertEqual(self.killed_at("kind=write file=new nth=1", *ops), (8, WRITE, 1))

    def test_every_rule_counts_for_itself(self) -> None:
        """Two rules on the same writes do not disturb each other; a rule can hit many in a row."""
        plan = (
            "fault kind=write file=f nth=2 action=error errno=ENOSPC\n"
            "fault kind=write file=f nth=3 times=2 action=drop\n"
            "fault kind=write file=f nth=5 times=forever action=error\n"
        )
        run = self.run_ops("open 0 f wc", *["pwrite 0 0 8 a"] * 6, plan=plan)
        self.assertEqual(
            [r[1:] for r in run.results[1:]], [(8, 0), (-1, 28), (8, 0), (8, 0), (-1, 5), (-1, 5)]
        )
        rules = [(r.flags >> 10, r.payload[0]) for r in run.trace.records if r.kind == 16]
        self.assertEqual(rules, [(0, 6), (1, 2), (1, 2), (2, 6), (2, 6)])


if __name__ == "__main__":
    unittest.main()
