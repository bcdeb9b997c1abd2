"""`tornpage serve`: the result database over HTTP, as a browser of this machine asks for it."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlencode, urlsplit

import pytest
from called import called

pytestmark = pytest.mark.extended

BROKEN = "--option doublewrite=off --scripts 1 --fault-free 0 --jobs 1"
DEADLINE_S = 60


@dataclass(frozen=True)
class Served:
    """A server of a folder's database."""

    folder: Path
    port: int

    def ask(
        self, path: str, form: Mapping[str, str] | None = None, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, str]:
        """What it answers: status, headers, body. form: is posted."""
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        try:
            if form is not None:
                headers["Content-Type"] = "application/x-www-form-urlencoded"
            method, body = ("GET", None) if form is None else ("POST", urlencode(form))
            asked.request(method, path, body, headers)
            answer = asked.getresponse()
            return answer.status, answer.headers, answer.read().decode("utf-8")
        finally:
            asked.close()

    def rows(self, path: str) -> list[dict[str, Any]]:
        """Those of a view or a question."""
        status, _, body = self.ask(path)
        assert status == 200, body
        found: list[dict[str, Any]] = json.loads(body)
        return found

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        """What the database itself says."""
        with sqlite3.connect(self.folder / "out" / "tornpage.db") as db:
            return db.execute(query).fetchall()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Of a run of kills with a bug, and a clean one. It ends when it is told to; whatever it was asked, it
    has printed nothing but its address and that."""
    folder = tmp_path_factory.mktemp("serve")
    for line in (
        f"run smoke --trials 12 {BROKEN}",
        "run smoke --trials 4 --scripts 1 --fault-free 0",
    ):
        assert called(folder, *line.split()).returncode in (0, 1, 3)
    command = [sys.executable, "-m", "tornpage", "serve", "--port", "0"]
    server = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        assert select.select([server.stdout], [], [], DEADLINE_S)[0], "it does not say where it is"
        line = server.stdout.readline()
        port = urlsplit(line.strip()).port
        assert port is not None, line
        yield Served(folder, port)
        server.send_signal(signal.SIGINT)
        assert server.wait(DEADLINE_S) == 130
        assert server.stderr is not None and server.stdout.read() == ""
        assert server.stderr.read() == "tornpage: interrupted; nothing is lost\n"
    finally:
        server.kill()
        server.wait(DEADLINE_S)


def test_views_are_browsed_filtered_and_faceted(served: Served) -> None:
    """They say what the database says; the tables behind them are not offered."""
    status, _, page = served.ask("/tornpage")
    assert status == 200 and 'href="/tornpage/findings"' in page and "compare" in page
    assert json.loads(served.ask("/tornpage.json")[2])["hidden_count"] > 0
    bugs = served.rows("/tornpage/bugs.json?_shape=array")
    assert [(bug["id"], bug["title"]) for bug in bugs] == served.sql("select id, title from bugs")
    clean = served.rows("/tornpage/runs.json?_shape=array&bugs=0")
    assert [run["id"] for run in clean] == [2]
    faceted = json.loads(served.ask("/tornpage/findings.json?_facet=site")[2])
    sites = faceted["facet_results"]["site"]["results"]
    assert {(one["value"], one["count"]) for one in sites} == set(
        served.sql("select site, count(*) from findings group by site")
    )


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/nothing", 404),
        ("/tornpage/nothing", 404),
        ("/tornpage/bugs/x", 404),
        ("/-/bugs/99999999999999999999", 404),
        ("/files/nothing.html", 404),
        ("/files/%2e%2e/x", 404),
        ("/tornpage?sql=select", 400),
        ("/tornpage?sql=drop+table+run", 400),
        ("/tornpage/trial/1", 400),
        ("/tornpage/bugs?_sort=nothing", 400),
        ("/tornpage/bugs?_facet=nothing", 400),
        ("/tornpage/bugs?_next=nothing", 400),
        ("/tornpage/bugs.json?_next=nothing", 400),
        ("/tornpage/bugs?_through=x", 400),
        ("/tornpage/bugs?id__gt=99999999999999999999999", 400),
        ("/tornpage/slowest?run=1&_timelimit=x", 400),
    ],
)
def test_a_wrong_address_is_told_shortly(address: str, status: int, served: Served) -> None:
    """Nothing is printed where the server runs: see the fixture."""
    told, _, page = served.ask(address)
    assert told == status and "Traceback" not in page and len(page) < 6_000


def test_runs_are_compared(served: Served) -> None:
    """What one has and the other has not, either way round."""
    bugs = served.sql("select bug from sightings where run = 1")
    for old, new, change in ((1, 2, "gone"), (2, 1, "new"), (1, 1, "still there")):
        rows = served.rows(f"/tornpage/compare.json?_shape=array&old={old}&new={new}")
        assert [(row["bug"],) for row in rows] == bugs and bugs
        assert {row["change"] for row in rows} == {change}


@pytest.mark.parametrize(
    "question", ["life?bug=1", "builds?bug=1", "places?run=1", "slowest?run=1"]
)
def test_every_question_has_an_answer(served: Served, question: str) -> None:
    """With the numbers of things that there are."""
    name, parameters = question.split("?")
    assert served.rows(f"/tornpage/{name}.json?_shape=array&{parameters}")


def test_what_is_shown_leads_on(served: Served) -> None:
    """A run to its report, a bug to its page and to the line that replays it."""
    runs = served.ask("/tornpage/runs")[2]
    assert "/files/report-1.html" in runs
    assert "<title>" in served.ask("/files/report-1.html")[2]
    assert "/-/bugs/1" in served.ask("/tornpage/findings")[2]
    page = served.ask("/-/bugs/1")[2]
    assert "tornpage replay 1." in page and "/files/bug-1.html" in page
    assert served.ask("/-/bugs/99")[0] == 404


def test_a_bug_is_marked(served: Served) -> None:
    """By the form of its page, which no other page may send."""
    said = {"mark": "known", "reason": "seen in a browser"}
    assert served.ask("/-/bugs/1", said, Origin="http://evil.example")[0] == 403
    assert served.sql("select status from bugs where id = 1") == [("new",)]
    _, headers, page = served.ask("/-/bugs/1")
    found = re.search(r'name="csrftoken" value="([^"]+)"', page)
    assert found is not None
    cookie = headers["Set-Cookie"].split(";")[0]
    assert served.ask("/-/bugs/1", said, Cookie=cookie)[0] == 403
    here = {"Cookie": cookie, "Origin": f"http://127.0.0.1:{served.port}"}
    status, _, _ = served.ask("/-/bugs/1", {**said, "csrftoken": found[1]}, **here)
    assert status == 302
    told = json.loads(called(served.folder, "bugs", "1", "--json").stdout)["bugs"][0]
    assert (told["status"], told["reason"]) == ("known", "seen in a browser")
    last = served.rows("/tornpage/life.json?_shape=array&bug=1")[-1]
    assert (last["status"], last["host"]) == ("known", os.uname().nodename)
    wrong = {"mark": "new", "csrftoken": found[1]}
    assert served.ask("/-/bugs/1", wrong, Cookie=cookie)[0] == 404
    assert served.sql("select status from bugs where id = 1") == [("known",)]


def test_only_this_machine_is_answered(served: Served) -> None:
    """A page of somebody else that has its own name lead here is refused."""
    assert served.ask("/tornpage", Host="evil.example")[0] == 403
    assert served.ask("/tornpage", Host=f"localhost:{served.port}")[0] == 200


def test_what_cannot_be_served_is_refused(served: Served, tmp_path: Path) -> None:
    """In one line that says what to do: a server's database, no database, no Datasette, a port in use."""
    refused = called(tmp_path, "serve", "--store", "postgresql://lab@db/tornpage")
    assert refused.returncode == 2
    assert "tornpage store copy postgresql://lab@db/tornpage copy.db" in refused.stderr
    assert "no result database here" in called(tmp_path, "serve").stderr
    hidden = {"tornpage.campaigns.serving": None}
    with mock.patch.dict(sys.modules, hidden):
        assert "pip install 'tornpage[serve]'" in called(served.folder, "serve").stderr
    taken = called(served.folder, "serve", "--port", str(served.port))
    assert taken.returncode == 2 and "--port chooses another" in taken.stderr
