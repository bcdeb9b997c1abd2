"""`tornpage serve`: the result database in a browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tornpage.cli.options import OutOption, StoreOption
from tornpage.cli.terminal import say
from tornpage.store.place import place_in
from tornpage.store.store import Store
from tornpage.vocabulary.errors import ConfigError, Interrupted
from tornpage.vocabulary.paths import DEFAULT_OUT, find_paths

__all__ = ["EPILOG", "serve"]

EPILOG = "Examples: [bold]tornpage serve[/] · tornpage serve --out out/nightly --port 0"
PORT = 8001


def _say_at_once(line: str) -> None:
    say(line, sys.stdout)


def serve(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0: any free one.")
    ] = PORT,
    out: OutOption = DEFAULT_OUT,
    store_place: StoreOption = None,
) -> int:
    """Shows the result database in a browser of this machine, until Ctrl-C (exit code 130) or SIGTERM (143):
    browse, filter, facet, compare runs, mark bugs."""
    place = place_in(out, store_place)
    if place.shared:
        raise ConfigError(
            f"tornpage serve reads a file: tornpage store copy {place.name} copy.db, "
            "then tornpage serve --store copy.db"
        )
    with Store(place, create=False, write=False):
        """It is there, and of this schema."""
    try:
        from tornpage.campaigns.serving import serve_store
    except ImportError as error:
        raise ConfigError(
            "tornpage serve needs Datasette: pip install 'tornpage[serve]'"
        ) from error
    try:
        serve_store(Path(place.name), out, find_paths().templates, port, _say_at_once)
    except Interrupted as stop:
        stop.told = "nothing is lost"
        raise
    return 0
