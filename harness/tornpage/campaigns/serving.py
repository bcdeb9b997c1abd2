"""The result database in a browser of this machine: Datasette, with our views, questions and links, and one
thing that can be changed there: what a person thinks of a bug (docs/adr/0012). Needs the extra `serve`.
"""

from __future__ import annotations

import asyncio
import socket
import sqlite3
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from datasette import hookimpl
from datasette.app import Datasette
from datasette.database import Database
from datasette.plugins import pm
from datasette.utils.asgi import NotFound, Response
from markupsafe import Markup

from tornpage.campaigns.fault_free import replay_line
from tornpage.campaigns.marking import Mark, mark_bug
from tornpage.store.bugs import Bug
from tornpage.store.questions import QUESTIONS
from tornpage.store.schema import TABLES
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError, MachineError

__all__ = ["serve_store"]

HOST = "127.0.0.1"
NAMES = frozenset({HOST, "localhost"})
"""What a browser of this machine calls it. Under another name it may be a page of somebody else that asks."""
ERRORS = "datasette.handle_exception"
"""Its plugin that answers errors."""
FILES = "files"
"""Where the reports are: below this address."""
FACETS = {
    "runs": ["campaign", "target", "state", "verdict"],
    "bugs": ["status", "target"],
    "lives": ["status", "host"],
    "sightings": ["bug", "campaign", "novelty"],
    "findings": ["bug", "site", "invariant", "source"],
    "trials": ["run", "outcome", "site"],
    "cells": ["run", "site", "mask"],
    "coverage": ["run", "site", "flush"],
    "counters": ["run", "during"],
    "nights": ["state"],
}
"""Of each view: by which columns one goes into it."""
NEWEST_FIRST = {"runs": "id", "bugs": "last_seen", "nights": "id", "lives": "at"}
LIMITS = {"sql_time_limit_ms": 20_000, "facet_time_limit_ms": 5_000, "suggest_facets": False}


def serve_store(
    store: Path, out: Path, templates: Path, port: int, tell: Callable[[str], None]
) -> None:
    """Serves it until a signal ends the process. out: where its reports are; port: 0 = one that is free;
    tell: gets the address once it answers. MachineError: somebody has the port."""
    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        raise MachineError(f"port {port}: {error.strerror}; --port chooses another") from error
    with listening, _plugged_in(_Pages(store, out)):
        pages = Datasette(
            [str(store)],
            metadata=_metadata(store),
            settings=LIMITS,
            template_dir=str(templates / "serve"),
            static_mounts=[(FILES, str(out))] if out.is_dir() else [],
        )
        pages.remove_database(store.stem)
        pages.add_database(_Quiet(pages, str(store), is_mutable=True), store.stem)
        server = uvicorn.Server(uvicorn.Config(pages.app(), log_level="warning"))
        tell(f"http://{HOST}:{listening.getsockname()[1]}/")
        server.run(sockets=[listening])


@contextmanager
def _plugged_in(plugin: _Pages) -> Iterator[None]:
    """In Datasette, in place of its own answer to errors, which prints pages of traceback; nor is anything
    printed of what it leaves when it fails in the middle."""
    theirs = pm.unregister(name=ERRORS)
    pm.register(plugin)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            yield
    finally:
        pm.unregister(plugin)
        pm.register(theirs, name=ERRORS)


class _Quiet(Database):  # type: ignore[misc]
    """Prints no query that is wrong: whoever asked it is answered."""

    async def execute(self, *args: Any, **given: Any) -> Any:
        """As of its class."""
        return await super().execute(*args, **{**given, "log_sql_errors": False})


def _metadata(store: Path) -> dict[str, Any]:
    views: dict[str, Any] = {name: {"facets": facets} for name, facets in FACETS.items()}
    for name, column in NEWEST_FIRST.items():
        views[name]["sort_desc"] = column
    hidden = {table: {"hidden": True} for table in TABLES.tables}
    queries = {
        one.name: {"sql": one.sql, "title": one.title, "hide_sql": True} for one in QUESTIONS
    }
    return {
        "title": "Tornpage",
        "source": str(store),
        "databases": {store.stem: {"tables": {**views, **hidden}, "queries": queries}},
    }


class _Pages:
    """What Datasette asks for: the names of the methods are its hooks. It takes a plugin for a module."""

    __name__ = "tornpage"

    def __init__(self, store: Path, out: Path) -> None:
        self._store = store
        self._out = out

    @hookimpl  # type: ignore[untyped-decorator]
    def render_cell(self, value: Any, column: str, table: str | None, datasette: Any) -> Any:
        """A run leads to its report, or where there is none to its row; a bug to its page."""
        if not isinstance(value, int):
            return None
        if column == "bug" or (table == "bugs" and column == "id"):
            return _link(datasette.urls.path(f"/-/bugs/{value}"), value)
        if table == "runs" and column == "id":
            page = self._file(datasette, f"report-{value}.html")
            return _link(page, value) if page else None
        if column in ("run", "first_run", "last_run"):
            return _link(datasette.urls.table(self._store.stem, "runs") + f"?id={value}", value)
        return None

    @hookimpl  # type: ignore[untyped-decorator]
    def register_routes(self) -> list[tuple[str, Any]]:
        """The pages of single bugs."""
        return [(r"^/-/bugs/(?P<bug>[0-9]{1,18})$", self._bug)]

    @hookimpl  # type: ignore[untyped-decorator]
    def asgi_wrapper(self) -> Any:
        """Nobody is answered who calls this machine by another name, or sends a form of another page."""

        def wrap(pages: Any) -> Any:
            async def asked(scope: Any, receive: Any, send: Any) -> None:
                if scope["type"] == "http" and _is_foreign(scope):
                    refused = Response.text("only for this machine's browser\n", status=403)
                    await refused.asgi_send(send)
                else:
                    await pages(scope, receive, send)

            return asked

        return wrap

    @hookimpl  # type: ignore[untyped-decorator]
    def handle_exception(
        self, datasette: Any, request: Any, exception: Exception
    ) -> Callable[[], Awaitable[Any]]:
        """What was asked is wrong, unless the database or the machine fails: a short page says so."""
        status = _status_of(exception)
        what = getattr(exception, "message", None) or str(exception) or type(exception).__name__
        data = {"ok": False, "error": what, "status": status, "title": f"Error {status}"}

        async def answer() -> Any:
            if request.path.endswith(".json"):
                return Response.json(data, status=status)
            page = await datasette.render_template("error.html", data)
            return Response.html(page, status=status)

        return answer

    async def _bug(self, request: Any, datasette: Any) -> Any:
        """Its page; a form that was sent marks it first."""
        number = int(request.url_vars["bug"])
        try:
            if request.method == "POST":
                said = await request.post_vars()
                await asyncio.to_thread(self._mark, number, said)
                return Response.redirect(request.path)
            bug, replay = await asyncio.to_thread(self._told, number)
        except ConfigError as error:
            raise NotFound(str(error)) from error
        data = {
            "bug": bug,
            "replay": replay,
            "page": self._file(datasette, f"bug-{number}.html"),
            "base": datasette.urls.database(self._store.stem),
            "database": self._store.stem,
            "marks": list(Mark),
        }
        return Response.html(
            await datasette.render_template("tornpage_bug.html", data, request=request)
        )

    def _mark(self, number: int, said: dict[str, str]) -> None:
        if said.get("mark") not in list(Mark):
            raise ConfigError(f"no mark {said.get('mark')!r}")
        with Store(self._store, create=False) as store:
            mark_bug(store, number, Mark(said["mark"]), said.get("reason", "").strip())

    def _told(self, number: int) -> tuple[Bug, str]:
        with Store(self._store, create=False, write=False) as store:
            bug = store.bug(number)
            return bug, replay_line(store, bug)

    def _file(self, datasette: Any, name: str) -> str:
        """Where a file that lies beside the store is served, "" if it is not there."""
        found: str = datasette.urls.path(f"/{FILES}/{name}")
        return found if (self._out / name).is_file() else ""


def _is_foreign(scope: Any) -> bool:
    """A browser names the page that a form is on, as its origin; a program need not."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    host = headers.get("host", "")
    return (
        host.partition(":")[0] not in NAMES
        or headers.get("origin", f"http://{host}") != f"http://{host}"
    )


def _status_of(error: Exception) -> int:
    """Those that Datasette gives to what was asked stay; it gives 500 where it has not looked."""
    status: int = getattr(error, "status", 400)
    if isinstance(error, sqlite3.ProgrammingError):  # too few parameters
        return 400
    if isinstance(error, sqlite3.DatabaseError | OSError | MachineError):
        return 500
    return status if status < 500 else 400


def _link(address: str, text: object) -> Markup:
    return Markup('<a href="{}">{}</a>').format(address, text)
