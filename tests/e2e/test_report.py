"""Reports of real runs: what they say of a crash is what its image holds, and a browser shows them well."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from browser import CONTRAST, Browser, headless_browser
from e2e_support import ONE_CONFIGURATION, call

from tornpage.evidence.evidence import load_evidence
from tornpage.store.store import Store
from tornpage.vocabulary.evidence import Evidence, Fate
from tornpage.vocabulary.model import TrialResult
from tornpage.vocabulary.paths import data_folder

pytestmark = pytest.mark.extended

CONTROL = ("--option", "doublewrite=off")
KILLS, CLEAN, LOSSES, NESTED, SHRUNK = 1, 2, 3, 4, 5
"""The runs of the store that all tests here read."""
TEAR = re.compile(r"\bpage (\d+) of ([\w.]+)")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory, build: Path) -> Path:
    """A store with a control of each crash model, a clean run, and a shrunk trial."""
    folder = tmp_path_factory.mktemp("reports") / "out"
    commands = [
        ("run", "smoke", *CONTROL, "--trials", "40", "--scripts", "1", "--fault-free", "0"),
        ("run", "smoke", "--trials", "40", "--scripts", "1", "--fault-free", "0"),
        ("run", "powerloss", *CONTROL, "--states", "60", *ONE_CONFIGURATION),
        ("run", "powerloss", "--states", "60", *ONE_CONFIGURATION, "--depth", "2", *NESTED_BUG),
        ("shrink", "3.0", "--budget", "2"),
        ("report", "--run", str(LOSSES)),
    ]
    for command in commands:
        done = call(folder.parent, *command, "--out", str(folder), TORNPAGE_BUILD=str(build))
        assert done.returncode in (0, 1, 3), done.stderr
    return folder


NESTED_BUG = ("--models", "all-persisted,one-torn", *CONTROL)
"""Every first crash that tears nothing is survived; the second one tears a page."""


def kept(out: Path, run: int) -> list[tuple[TrialResult, Evidence]]:
    """Every trial of a run with an image, and what was written down of it."""
    with Store(out / "tornpage.db", write=False) as store:
        results = [row.result for row in store.trials(run) if row.result and row.result.image]
    found = [(result, load_evidence(result.image)) for result in results]
    assert found
    return [(result, evidence) for result, evidence in found if evidence is not None]


def test_a_kill_is_told_as_its_image_shows_it(out: Path) -> None:
    """The last operation is the one that was hit; the page it tore is the one that recovery refuses,
    and has the sectors that the verdict has."""
    for result, evidence in kept(out, KILLS):
        (phase,) = evidence.phases
        last = phase.steps[-1]
        assert result.torn is not None
        assert (last.path, last.offset, last.kept) == (
            result.path,
            result.offset,
            result.torn.kept if last.fate is Fate.TORN else last.kept,
        )
        named = TEAR.search(result.violations[0].what)
        assert named and evidence.pages
        page = evidence.pages[0]
        assert (str(page.page), page.path) == named.groups()
        assert page.decoded and {"o"} <= set(page.sectors) <= set("nos")
        assert page.redo_note.startswith("none ") or page.redo
        assert all(re.match(r"\d+\.\.\d+ MLOG_", record) for record in page.redo)
        verdict = next(field for field in page.fields if field.name == "verdict")
        assert verdict.after != "ok" and (verdict.before, verdict.written) == ("ok", "ok")


@pytest.mark.parametrize("run", [LOSSES, NESTED])
def test_a_power_loss_is_told_as_its_image_shows_it(out: Path, run: int) -> None:
    """A phase per crash; something was lost in the last one, and the page that recovery refuses is the
    first of those that are shown, neither as it was nor as it was written."""
    for result, evidence in kept(out, run):
        levels = result.mask.split("/")
        assert len(evidence.phases) == len(levels)
        for phase, level in zip(evidence.phases, levels, strict=True):
            assert level.split(".")[1] in phase.how
        lost = [step for step in evidence.phases[-1].steps if step.fate in (Fate.TORN, Fate.LOST)]
        assert lost
        named = TEAR.search(result.violations[0].what)
        if named is None:
            continue
        page = evidence.pages[0]
        assert (str(page.page), page.path) == named.groups()
        assert {*"ox"} & {*page.sectors} and page.decoded
        assert any(step.path == page.path for step in lost)
    assert run != NESTED or any("/" in result.mask for result, _ in kept(out, run))


def test_the_report_tells_new_and_open(out: Path) -> None:
    """The first run has a new bug; the clean one, with other options, says nothing of it; the power losses
    have it again."""
    kills, clean, losses = (
        (out / f"report-{run}.html").read_text("utf-8") for run in (KILLS, CLEAN, LOSSES)
    )
    assert '<span class="badge new">new</span> Bug 1' in kills
    assert "bug 1" not in clean and "<h3>Gone</h3>" not in clean
    assert '<span class="badge open">open</span> Bug 1' in losses
    assert "How it crashed" in kills and "How it crashed" in losses


def test_each_replay_line_works(out: Path, build: Path) -> None:
    """As it stands in the page, from any folder."""
    page = (out / f"report-{KILLS}.html").read_text("utf-8")
    line = re.search(r'<pre class="line"><code>(.*?)</code>', page)
    assert line
    argv = line[1].replace("&#34;", '"').split()
    assert argv[0].startswith("TORNPAGE_BUILD=") or argv[0] == "tornpage"
    arguments = argv[argv.index("tornpage") + 1 :]
    env = {**os.environ, "TORNPAGE_BUILD": str(build)}
    done = subprocess.run(
        [sys.executable, "-m", "tornpage", *arguments], env=env, capture_output=True, check=False
    )
    assert done.returncode == 1, done.stderr


# ---- in a browser ----


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all pages."""
    with headless_browser() as opened:
        yield opened


PAGES = [
    "index.html",
    "bug-1.html",
    *(f"report-{run}.html" for run in (KILLS, CLEAN, LOSSES, NESTED)),
]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_the_window(out: Path, browser: Browser, name: str) -> None:
    """On a desk and on a phone nothing is wider than the window but what scrolls by itself, and the
    console is silent."""
    for width in (1400, 800, 390):
        for scheme in ("light", "dark"):
            browser.open(out / name, width, scheme)
            wide = browser.run(
                "const root = document.documentElement;"
                "return [root.scrollWidth <= root.clientWidth, innerWidth]"
            )
            assert wide == [True, width], (name, width, scheme)
            assert browser.messages() == []


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_have_contrast(out: Path, browser: Browser, name: str, scheme: str) -> None:
    """4.5 to 1 at least, and the colours do follow the scheme."""
    browser.open(out / name, 1400, scheme)
    browser.run("for (const d of document.querySelectorAll('details')) d.open = true")
    assert browser.run(CONTRAST) == []
    paper = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.parametrize("name", PAGES)
def test_every_rule_of_the_style_holds(out: Path, browser: Browser, name: str) -> None:
    """A browser has all that the file says, fonts by their quoted names too."""
    browser.open(out / name, 1400, "light")
    fonts = browser.run(
        "const code = document.body.appendChild(document.createElement('code'));"
        "return [document.body, code].map(e => getComputedStyle(e).fontFamily)"
    )
    assert fonts == [
        'system-ui, "Liberation Sans", sans-serif',
        'ui-monospace, "Liberation Mono", monospace',
    ]
    own = browser.run("return document.querySelector('style').textContent")
    files = (data_folder("reports") / f"{name}.css" for name in ("report", "timeline"))
    assert own.strip() == "".join(file.read_text("utf-8") for file in files).strip()


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(out: Path, browser: Browser, name: str) -> None:
    """To a file that is there, and to an element of it."""
    browser.open(out / name, 1400, "light")
    targets = browser.run(
        "return [...document.querySelectorAll('a')].map(a => a.href.baseVal || a.href)"
    )
    assert targets
    for target in set(targets):
        path, _, anchor = target.removeprefix("file://").partition("#")
        file = (out / path).resolve()
        assert file.is_file(), target
        assert not anchor or f'id="{anchor}"' in file.read_text("utf-8"), target


def test_from_the_index_to_a_bug_and_back(out: Path, browser: Browser) -> None:
    """By clicks alone."""
    browser.open(out / "index.html", 390, "dark")
    assert browser.click("a[href$='bug-1.html']").endswith("bug-1.html")
    assert browser.run("return document.querySelector('.list .badge').textContent")
    assert browser.click("nav a[href^='report-']").endswith(".html")
    assert browser.click("a[href$='#bug-1']").endswith("#bug-1")
    assert browser.click(".bug .to").endswith("#bugs")
    assert browser.click("nav a").endswith("index.html")
    assert browser.messages() == []


def test_lists_are_sorted_and_filtered_in_the_page(out: Path, browser: Browser) -> None:
    """By a click on a heading, numbers as numbers, the other way round by a second one; by words of a row.
    No request is made."""
    browser.open(out / "index.html", 1400, "light")
    column = "return [...document.querySelectorAll('.list')[0].tBodies[0].rows]"
    runs = browser.run(f"{column}.map(row => +row.cells[0].textContent)")
    assert runs == sorted(runs, reverse=True) and len(runs) == 4
    for wanted in (sorted(runs), runs):
        browser.click(".list th button")
        assert browser.run(f"{column}.map(row => +row.cells[0].textContent)") == wanted
    crashes = (
        "[...document.querySelectorAll('.list th')].findIndex(e => e.textContent === 'crashes')"
    )
    browser.run(f"document.querySelectorAll('.list th button')[{crashes}].click()")
    numbers = browser.run(
        f"{column}.map(row => +row.cells[{crashes}].textContent.replaceAll(',', ''))"
    )
    assert numbers == sorted(numbers)
    browser.run(
        "const field = document.querySelector('input'); field.value = 'Powerloss';"
        "field.dispatchEvent(new Event('input'))"
    )
    assert browser.run(f"{column}.filter(row => !row.hidden).length") == 2
    assert browser.run("return performance.getEntriesByType('resource').length") == 0


def test_a_picture_is_moved_and_zoomed(out: Path, browser: Browser) -> None:
    """By buttons, keys and the mouse, on a phone as well; what is chosen is told, and the names of the lanes
    stay."""
    for width in (1400, 390):
        browser.open(out / f"report-{KILLS}.html", width, "light")
        browser.run(VIEW)
        assert browser.run("return view.scrollLeft > 0 && hurt.left > 0 && hurt.right < innerWidth")
        whole, wide = browser.run("return [box.width, svg.clientWidth]")
        assert wide == whole > width
        browser.run("key('+')")
        assert browser.run("return svg.clientWidth") == pytest.approx(1.25 * whole, abs=1)
        browser.run("key('-'); key('0')")
        assert browser.run("return svg.clientWidth <= view.clientWidth && view.scrollLeft") == 0
        browser.run("buttons[0].click(); buttons[0].click(); key('Home')")
        assert browser.run("return view.scrollLeft") == 0
        browser.run("key('ArrowRight')")
        assert browser.run("return view.scrollLeft") == 60
        browser.run("key('p')")
        told = browser.run("return told.textContent")
        assert re.match(r"\d+ write ", told) and "is lost" in told, told
        assert browser.run("return svg.querySelectorAll('.chosen').length") == 1
        browser.run("key('p'); key('n')")
        assert browser.run("return told.textContent") == told
        first = "svg.querySelector('.call[data-seq]')"
        browser.run(f"{first}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
        assert browser.run(
            f"return told.textContent === {first}.querySelector('title').textContent"
        )
        shift = browser.run(
            "view.scrollLeft = 40; view.onscroll();"
            "const names = svg.querySelector('.names').getBoundingClientRect();"
            "return Math.abs(names.left - view.getBoundingClientRect().left) < 2"
        )
        assert shift
        before = browser.run("return svg.clientWidth")
        turn = "new WheelEvent('wheel', {deltaY: -1, ctrlKey: %s, cancelable: true})"
        browser.run(f"view.dispatchEvent({turn % 'false'})")
        assert browser.run("return svg.clientWidth") == before
        browser.run(f"view.dispatchEvent({turn % 'true'})")
        assert browser.run("return svg.clientWidth") > before
        assert browser.messages() == []


VIEW = """
view = document.querySelector('.view'); svg = view.querySelector('svg'); box = svg.viewBox.baseVal;
told = view.parentElement.querySelector('figcaption');
buttons = view.parentElement.querySelectorAll('.zoom button');
hurt = svg.querySelector('.torn[data-seq], .lost[data-seq]').getBoundingClientRect();
key = name => view.dispatchEvent(new KeyboardEvent('keydown', {key: name, cancelable: true}));
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("run", [KILLS, NESTED])
def test_a_picture_stands_alone(
    out: Path, browser: Browser, tmp_path: Path, run: int, scheme: str
) -> None:
    """`show --svg` writes it as a file with the same calls as `show --json` tells, on its own paper, whose
    letters can be read; and prints the same."""
    file = tmp_path / "crash.svg"
    asked = ("show", f"{run}.0", "--out", str(out))
    assert call(out, *asked, "--svg", str(file)).returncode == 0
    told = json.loads(call(out, *asked, "--json").stdout)["evidence"]["phases"]
    printed = call(out, *asked, "--svg", "-").stdout
    assert printed == file.read_text("utf-8")
    root = ElementTree.fromstring(printed)
    numbers = [
        int(one.get("data-seq", "0"))
        for one in root.iter()
        if one.get("class", "").startswith("call ") and one.get("data-seq")
    ]
    wanted = [
        step["seq"]
        for phase in told
        for step in (*phase["steps"], *phase["around"])
        if step["fate"] != "mark"
    ]
    assert sorted(numbers) == sorted(wanted) and len(told) == 1 + (run == NESTED)
    browser.open(file, 1400, scheme)
    paper = browser.run("return getComputedStyle(document.querySelector('.paper')).fill")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    low = browser.run(
        CONTRAST.replace("body *", "text").replace(
            "return [255, 255, 255]", f"return parse('{paper}')"
        )
    )
    assert low == []
    assert browser.messages() == []


def test_what_was_not_kept_is_not_drawn(out: Path, tmp_path: Path) -> None:
    """One line says so, and nothing is written."""
    file = tmp_path / "crash.svg"
    done = call(out, "show", f"{CLEAN}.0", "--out", str(out), "--svg", str(file))
    assert done.returncode == 2 and "nothing was kept of 2.0 that could be drawn" in done.stderr
    assert not file.exists()
    (tmp_path / "no").touch()
    there = call(
        out, "show", f"{KILLS}.0", "--out", str(out), "--svg", str(tmp_path / "no" / "x.svg")
    )
    assert there.returncode == 2 and "no: File exists" in there.stderr


@pytest.mark.parametrize("name", ["report-1.html", "report-3.html", "index.html", "bug-1.html"])
def test_a_page_is_small(out: Path, name: str) -> None:
    """Below 150 KB, whatever it tells."""
    assert (out / name).stat().st_size < 150_000
