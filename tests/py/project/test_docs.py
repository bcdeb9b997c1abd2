"""The documents against the sources: links, invariants, markers, fault points, offsets, record numbers."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path

import pytest

from tornpage.cli.main import root
from tornpage.vocabulary.paths import ROOT

DOCS = ROOT / "docs"
ENGINE = ROOT / "engine"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
POINT = re.compile(r'PROBE_POINT\([^;]*?"([^"]+)"\)')
# The format of a marker: string literals and PRI macros in a row.
MARK = re.compile(r'(?:PROBE_MARK|probe_mark)\([^";]*,\s*((?:"[^"]*"|PRI\w+|\s)+)[,)]')
DEFINE = re.compile(r"^#define (\w+) (\d+)U?\b", re.MULTILINE)
MLOG = re.compile(r"^\s*(MLOG_\w+) = (\d+)\b", re.MULTILINE)


def prose(path: Path) -> str:
    """The text of a document without its fenced blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def section(text: str, title: str) -> str:
    """What stands below a heading, up to the next one of its rank or above."""
    match = re.search(rf"^(#+) {re.escape(title)}\n(.*?)(?=^#{{1,6}} |\Z)", text, re.M | re.S)
    assert match, f"no heading {title}"
    return match[2]


def rows(text: str) -> list[list[str]]:
    """Cells of every row of the tables in text; an escaped bar belongs to its cell."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def anchors(path: Path) -> set[str]:
    """The anchors that a renderer gives to the headings of a document."""
    titles = HEADING.findall(prose(path))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def engine_files() -> list[Path]:
    """C sources and headers of the engine."""
    files = sorted(ENGINE.rglob("*.[ch]"))
    assert len(files) > 50
    return files


def layer(path: Path) -> str:
    """The folder of engine/ that a file belongs to."""
    return path.relative_to(ENGINE).parts[0]


# ---- links ----


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page: Path) -> None:
    """Each relative link names an existing file, and an existing heading where it names one. A folder is no
    page of the site."""
    broken = []
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.is_file() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


def test_sections_that_the_engine_cites_exist() -> None:
    """`NAME.md, "Section"` in a comment names a heading, or a bold lead, of that document."""
    cited = set()
    for path in engine_files():
        text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
        cited |= set(re.findall(r'([A-Z_]+\.md), "([^"]+)"', text))
    assert len(cited) >= 8
    missing = []
    for name, title in sorted(cited):
        text = prose(DOCS / name)
        if title not in HEADING.findall(text) and f"**{title}.**" not in text:
            missing.append(f'{name}, "{title}"')
    assert missing == []


# ---- code ----

BLOCK = re.compile(r"^```([a-z]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands_of(page: Path) -> list[list[str]]:
    """Words of the lines in code blocks that call our command."""
    found = []
    for language, block in BLOCK.findall(page.read_text("utf-8")):
        for line in block.splitlines() if language in ("", "sh", "console") else []:
            words = line.partition("  #")[0].split(" | ")[0].split()
            while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
                words.pop(0)
            if words and words[0] in ("tornpage", ".venv/bin/tornpage"):
                found.append(words[1:])
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_in_documents_exist(page: Path) -> None:
    """Each call of our command in a code block names a command, and options that it has."""
    for words in commands_of(page):
        command = root()
        rest = [word for word in words if word != "--debug"]
        while rest and hasattr(command, "commands") and rest[0] in command.commands:
            command = command.commands[rest.pop(0)]
        known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
        options = {
            word.partition("=")[0].strip("[]") for word in rest if word.strip("[").startswith("--")
        }
        assert not hasattr(command, "commands") or options, words
        assert options <= known | {"--help"}, words


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_python_in_documents_compiles(page: Path) -> None:
    """Python blocks are Python, and TOML blocks TOML."""
    for language, block in BLOCK.findall(page.read_text("utf-8")):
        if language == "python":
            compile(block, str(page), "exec")
        elif language == "toml":
            tomllib.loads(block)


# ---- tests ----


def test_testing_groups_every_end_to_end_test() -> None:
    """Each file of tests/e2e is in one group of TESTING.md, and each name there is a file."""
    text = section(prose(DOCS / "TESTING.md"), "End-to-end tests")
    groups = re.findall(r"^- \*\*[^*]+\*\*\s+\(([^)]+)\):", text, re.M)
    grouped = [name for names in groups for name in re.findall(r"`(\w+)`", names)]
    files = [path.stem.removeprefix("test_") for path in (ROOT / "tests" / "e2e").glob("test_*.py")]
    assert sorted(grouped) == sorted(files)


# ---- invariants ----


def test_invariants_are_numbered_once_each() -> None:
    """The table has I1 to I30, each in one row, in order."""
    numbers = [r[0] for r in rows(prose(DOCS / "INVARIANTS.md")) if re.fullmatch(r"I\d+", r[0])]
    assert numbers == [f"I{n}" for n in range(1, 31)]


def test_cited_invariants_exist() -> None:
    """Sources and documents cite no invariant that the table does not have."""
    known = {r[0] for r in rows(prose(DOCS / "INVARIANTS.md"))}
    files = [*engine_files(), *sorted((ROOT / "harness").rglob("*.py")), *PAGES]
    unknown = [
        f"{path.relative_to(ROOT)}: {number}"
        for path in files
        for number in re.findall(r"\bI\d{1,2}\b", path.read_text(encoding="utf-8"))
        if number not in known
    ]
    assert unknown == []


# ---- markers and fault points ----


def engine_markers() -> dict[str, tuple[set[tuple[str, ...]], set[str]]]:
    """By verb: the key sequences with which the engine emits it, and the folders that do."""
    found: dict[str, tuple[set[tuple[str, ...]], set[str]]] = {}
    for path in engine_files():
        for match in MARK.finditer(path.read_text(encoding="utf-8")):
            text = "".join(re.findall(r'"([^"]*)"', match[1]))
            keys, layers = found.setdefault(text.split()[0], (set(), set()))
            keys.add(tuple(re.findall(r"(\w+)=", text)))
            layers.add(layer(path))
    return found


def documented_markers() -> dict[str, tuple[tuple[str, ...], tuple[str, ...], set[str]]]:
    """By verb: its keys, further keys that the meaning names, and the folders that emit it."""
    found = {}
    table = section(prose(DOCS / "FAULT_MODEL.md"), "Markers")
    for cell, folders, meaning in rows(table)[2:]:
        extra = tuple(re.findall(r"` (\w+)=", meaning))
        for text in re.findall(r"`([^`]+)`", cell):
            verb = text.split()[0]
            assert verb not in found, f"{verb} is documented twice"
            keys = tuple(re.findall(r"(\w+)=", text))
            found[verb] = (keys, extra, set(re.split(r",\s*", folders)))
    return found


def test_markers_are_those_of_the_fault_model() -> None:
    """Engine and FAULT_MODEL.md have the same markers."""
    assert set(engine_markers()) == set(documented_markers())


@pytest.mark.parametrize("verb", sorted(documented_markers()))
def test_marker_has_the_documented_keys_and_writers(verb: str) -> None:
    """Each place that emits a marker gives all of its keys in order, from a folder that is named."""
    keys, extra, folders = documented_markers()[verb]
    emitted, layers = engine_markers().get(verb, (set(), set()))
    assert emitted <= {keys, keys + extra}
    assert layers == folders


def test_fault_points_are_those_of_the_fault_model() -> None:
    """Every point of the engine is in the list of FAULT_MODEL.md once, and nothing else is."""
    table = section(prose(DOCS / "FAULT_MODEL.md"), "Markers")
    documented = re.findall(r"`([a-z]+(?:\.[a-z_]+)+)`", table)
    assert sorted(documented) == sorted(set(documented))
    engine = {
        name for path in engine_files() for name in POINT.findall(path.read_text(encoding="utf-8"))
    }
    assert engine == set(documented)


# ---- FORMAT.md ----


def engine_constants() -> dict[str, set[int]]:
    """Every plain decimal #define of the engine; private ones of two files may share a name."""
    found: dict[str, set[int]] = {}
    for path in engine_files():
        for name, value in DEFINE.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(int(value))
    return found


def test_offsets_of_format_are_those_of_the_engine() -> None:
    """A row of FORMAT.md that names a constant has its offset."""
    constants = engine_constants()
    named = [
        (int(r[0]), r[2].strip("`"))
        for r in rows(prose(DOCS / "FORMAT.md"))
        if r[0].isdigit() and len(r) == 4 and re.fullmatch(r"`[A-Z_0-9]+`", r[2])
        and not r[2].startswith("`MLOG_")
    ]  # fmt: skip
    assert len(named) >= 60
    wrong = [(offset, name) for offset, name in named if constants.get(name) != {offset}]
    assert wrong == []


def test_tables_of_format_have_no_gap() -> None:
    """In each offset / size table a row starts where the one before it ends."""
    n_checked = 0
    for table in re.split(r"^(?!\|)", prose(DOCS / "FORMAT.md"), flags=re.MULTILINE):
        lines = rows(table)
        if not lines or lines[0][:2] != ["offset", "size"]:
            continue
        for before, after in itertools.pairwise(lines[2:]):
            if before[0].isdigit() and before[1].isdigit() and after[0].isdigit():
                n_checked += 1
                assert int(before[0]) + int(before[1]) == int(after[0]), f"{before} / {after}"
    assert n_checked >= 60


def test_redo_records_of_format_are_those_of_the_engine() -> None:
    """FORMAT.md lists every record of mlog_type_t with its number, and no other."""
    header = (ENGINE / "log" / "log_rec_10_4.c").read_text(encoding="utf-8")
    engine = {name: int(number) for name, number in MLOG.findall(header)}
    table = section(prose(DOCS / "FORMAT.md"), "Bodies")
    documented = {r[1].strip("`"): int(r[0]) for r in rows(table) if r[0].isdigit()}
    assert len(engine) >= 20
    assert documented == engine
