"""Where the recovery of a broken state goes another way than that of a right one: what only one of them does,
by the same calls nowhere."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_stacks import FakeStacks
from fake_trace import FakeTrace

from tornpage.causes.parting import Recoveries, deeds_of
from tornpage.faults.stacks import Call, stacks_path
from tornpage.targets.target import Capability, Recorded, Target

SCAN, READ, REPAIR, REFUSE = (Call("/bin/no-store", "", at) for at in (16, 32, 48, 64))
Said = tuple[str, Call]


class Recovery:
    """A recovery under construction: reads at offsets of pages, each by a call, and notes between them."""

    def __init__(self) -> None:
        self.trace, self.stacks = FakeTrace().open("f"), FakeStacks()
        self.seq = 1

    def read(self, page: int, call: Call) -> Recovery:
        self.seq += 1
        self.trace.read("f", 4096 * page, 4096)
        self.stacks.stack(self.seq, call)
        return self

    def say(self, text: str, call: Call) -> Recovery:
        self.stacks.note(self.seq, text, call)
        return self


class Store:
    """A target whose recovery of an image is the next one of those that the image's file names."""

    capabilities = frozenset({Capability.DETERMINISTIC})
    wrappers: tuple[str, ...] = ()

    def __init__(self, **recoveries: list[Recovery]) -> None:
        self.recoveries = {name: list(made) for name, made in recoveries.items()}

    def recover_command(self, data: Path, _options: object) -> Path:
        return data / "name"

    def recorded(self, name: Path, how: Recorded) -> Any:
        assert how.stacks and how.data == name.parent
        recovery = self.recoveries[name.read_text("utf-8")].pop(0)

        def run(_env: object) -> None:
            how.trace.write_bytes(recovery.trace.data())
            recovery.stacks.beside(how.trace)
            (how.data / "made").touch()

        return SimpleNamespace(run=run)


@pytest.fixture
def images(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "broken", tmp_path / "right"
    for image in made:
        image.mkdir()
        (image / "name").write_text(image.name, "utf-8")
    return made


def recoveries(store: Store, scratch: Path, at: Path | None = None) -> Recoveries:
    return Recoveries(cast(Target, store), {}, at, scratch, ())


def begun() -> Recovery:
    return Recovery().read(0, SCAN)


def test_what_only_one_of_them_does_is_told(images: tuple[Path, Path], tmp_path: Path) -> None:
    """Not how often it reads by the same call, which pages, and numbers of a note; the last failure too."""
    broken = begun().read(1, SCAN).say("batch n=2 lsn=9", SCAN).read(7, READ)
    broken.say("error err=MISSING refusal=", SCAN).say("error err=CORRUPT refusal=torn", REFUSE)
    right = begun().say("batch n=1 lsn=5", SCAN).read(4, REPAIR)
    parting = recoveries(Store(broken=[broken], right=[right]), tmp_path).parting(
        *images, "with it"
    )
    assert parting is not None and parting.than == "with it" and not parting.blames
    assert parting.goes is not None and parting.goes.frames[0].offset == READ.offset
    assert parting.goes.what == "read of 4096 bytes at 28672 of f (operation 4)"
    assert parting.instead is not None and parting.instead.frames[0].offset == REPAIR.offset
    assert parting.fails is not None and parting.fails.frames[0].offset == REFUSE.offset
    assert parting.fails.what == "error err=CORRUPT refusal=torn (behind operation 4)"
    assert not (images[0] / "made").exists(), "the images stay as they were"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "right"]


def test_the_same_way_is_no_parting(images: tuple[Path, Path], tmp_path: Path) -> None:
    """Nor is one of which nothing was recorded."""
    store = Store(broken=[begun().read(5, READ)], right=[begun().read(9, READ).read(2, SCAN)])
    assert recoveries(store, tmp_path).parting(*images, "with it") is None
    store = Store(broken=[Recovery()], right=[begun()])
    store.recoveries["broken"][0].trace = FakeTrace()
    assert recoveries(store, tmp_path).parting(*images, "with it") is None


def test_another_kind_of_failure_is_another_way(images: tuple[Path, Path], tmp_path: Path) -> None:
    """By the same calls."""
    broken, right = (begun().say(f"error err={err}", REFUSE) for err in ("CORRUPT", "NOT_FOUND"))
    parting = recoveries(Store(broken=[broken], right=[right]), tmp_path).parting(
        *images, "with it"
    )
    assert parting is not None and parting.fails is not None and parting.fails == parting.goes
    assert "err=CORRUPT" in parting.fails.what


def test_what_a_recovery_does_by_chance_is_no_parting(
    images: tuple[Path, Path], tmp_path: Path
) -> None:
    """Of a store whose recoveries differ by themselves: the broken one is looked at twice, where its files
    name its place too, which stays there and empty."""
    place = tmp_path / "place"
    place.mkdir()
    store = Store(
        broken=[begun().read(1, READ).read(1, REFUSE), begun().read(1, REPAIR).read(1, REFUSE)],
        right=[begun().read(3, REPAIR)],
    )
    store.capabilities = frozenset()
    parting = recoveries(store, tmp_path, place).parting(*images, "with it")
    assert parting is not None and parting.goes is not None and parting.instead is None
    assert parting.goes.frames[0].offset == REFUSE.offset
    assert list(place.iterdir()) == []


def test_notes_stand_behind_the_operation_that_had_ended(tmp_path: Path) -> None:
    """And before the next one; marks of the trace are no deeds beside their notes."""
    recovery = begun().say("one", SCAN).say("two", SCAN).read(1, READ).say("last", SCAN)
    recovery.trace.mark("never").close("f")
    path = tmp_path / "trace"
    recovery.stacks.beside(path)
    deeds = deeds_of(recovery.trace.trace(), recovery.stacks.log())
    assert [deed.told.op for deed in deeds] == ["open", "read", "one", "two", "read", "last"]
    assert stacks_path(path).exists()
    bare = list(deeds_of(recovery.trace.trace(), None))
    assert [deed.key for deed in bare] == [(("open", "f"),), (("read", "f"),), (("read", "f"),)]
