"""The `tornpage` command. Parses arguments, shows progress, prints summaries; decides nothing itself.

Exit codes: 0 clean, 1 violations and nothing else, 2 usage or harness failure, 3 nothing (or not what was
claimed) exercised, 128 + N ended by signal N (130: Ctrl-C).

May import: attempt, bench, bugs, console, diff, doctor, errors, listing, mutants, new, nightly, options,
pricing, process, prune, qualify, replay, report, run, runs, show, shrink, sql, store, target.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TextIO, cast

import typer
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from tornpage import __version__
from tornpage.cli import (
    attempt,
    bench,
    bugs,
    diff,
    doctor,
    listing,
    mutants,
    new,
    nightly,
    pricing,
    prune,
    qualify,
    replay,
    report,
    run,
    runs,
    show,
    shrink,
    store,
    target,
)
from tornpage.cli.console import say
from tornpage.cli.options import USAGE_ERROR
from tornpage.faults.process import ENDING
from tornpage.store.sql import line_of
from tornpage.vocabulary.errors import Interrupted, MachineError, TornpageError

__all__ = ["main"]

app = typer.Typer(
    name="tornpage",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="In a checkout, `make help` lists coverage, benchmarks and tests.",
)
files = typer.Typer(no_args_is_help=True, help="Writes a file to begin with.")
targets = typer.Typer(no_args_is_help=True, help="Target files: stores that nobody here wrote.")
stores = typer.Typer(no_args_is_help=True, help="Result stores as a whole.")
DEVELOPERS = "For developers of Tornpage"
benches = typer.Typer(
    no_args_is_help=True,
    help="Measures Tornpage, and its engine beside published figures, and disks.",
)

# In the order of the help text.
app.command(epilog=run.EPILOG)(run.run)
app.command("try", epilog=attempt.EPILOG)(attempt.try_target)
app.command(epilog=nightly.EPILOG)(nightly.nightly)
app.command(epilog=replay.EPILOG)(replay.replay)
app.command(epilog=show.EPILOG)(show.show)
app.command(epilog=shrink.EPILOG)(shrink.shrink)
app.command(epilog=report.EPILOG)(report.report)
app.command(epilog=runs.EPILOG)(runs.runs)
app.command(epilog=bugs.EPILOG)(bugs.bugs)
app.command(epilog=diff.EPILOG)(diff.diff)
app.command(epilog=prune.EPILOG)(prune.prune)
app.add_typer(stores, name="store")
stores.command(epilog=store.EPILOG)(store.copy)
app.command("list", epilog=listing.EPILOG)(listing.listing)
app.add_typer(files, name="new")
files.command(epilog=new.EPILOG)(new.campaign)
app.add_typer(targets, name="target")
targets.command("new", epilog=target.NEW_EPILOG)(target.new)
targets.command("check", epilog=target.CHECK_EPILOG)(target.check)
targets.command("fetch", epilog=target.FETCH_EPILOG)(target.get)
app.command(epilog=doctor.EPILOG)(doctor.doctor)
app.command(epilog=mutants.EPILOG, rich_help_panel=DEVELOPERS)(mutants.mutants)
app.command(epilog=qualify.EPILOG, rich_help_panel=DEVELOPERS)(qualify.qualify)
app.add_typer(benches, name="bench", rich_help_panel=DEVELOPERS)
benches.command(epilog=bench.SPEED_EPILOG)(bench.speed)
benches.command(epilog=bench.SEEDS_EPILOG)(bench.seeds)
benches.command(epilog=bench.FINDS_EPILOG)(bench.finds)
benches.command(epilog=pricing.EPILOG)(pricing.doublewrite)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tornpage {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Print the traceback of a failure of the harness.")
    ] = False,
) -> None:
    """Tortures the crash recovery of page-based storage engines.

    Exit codes: 0 clean, 1 violations, 2 usage or harness failure, 3 nothing (or not what was claimed)
    exercised, 128 + N ended by signal N (130: Ctrl-C).
    """
    context.obj["debug"] = debug


def _ignore_signals() -> None:
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _end(number: int, _frame: FrameType | None) -> None:
    _ignore_signals()  # one is enough; what is under way is put in order
    raise Interrupted(number)


def main() -> None:
    """Entry point: every error is one line on stderr and exit code 2."""
    sys.stdout = _open_output()
    try:
        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
                signal.signal(number, _end)
        code = _call()
        _ignore_signals()  # it is done
    except Interrupted as stop:
        hint = (
            f"finished verdicts are kept, {stop.go_on} goes on" if stop.kept else "nothing is kept"
        )
        _say(f"interrupted; {hint}")
        code = 128 + stop.number
    sys.exit(code)


def _call() -> int:
    settings: dict[str, bool] = {}
    try:
        code = app(standalone_mode=False, obj=settings)
        sys.stdout.flush()
    except typer.Exit as left:
        return left.exit_code
    except Exception as error:
        if settings.get("debug"):
            traceback.print_exc()
        _say(_one_line(error))
        if isinstance(error, OSError):  # stdout may be what failed: nothing is left to be flushed
            _discard(sys.stdout)
        return USAGE_ERROR
    return int(code or 0)


def _discard(stream: TextIO) -> None:
    """What it holds, and what is still to come."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Output:
    """Standard output whose reader may leave, as that of `tornpage runs | head -1`. No exit code says so."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """As of a text file."""
        with self._unread():
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """As of a text file."""
        with self._unread():
            self._stream.flush()

    @contextlib.contextmanager
    def _unread(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            _discard(self._stream)


def _open_output() -> TextIO:
    """Somewhere to print to, also where standard output is closed."""
    if sys.stdout is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    return cast(TextIO, _Output(sys.stdout))


def _say(text: str) -> None:
    """One line on stderr, if anybody is there to read it."""
    with contextlib.suppress(OSError):
        say(f"tornpage: {text}", sys.stderr)


def _one_line(error: Exception) -> str:
    """What went wrong; of an error that nobody expected, its kind and the way to learn more."""
    if isinstance(error, TornpageError):
        kept = isinstance(error, MachineError) and error.kept
        text = f"{error}; --resume goes on" if kept else str(error)
    elif hasattr(error, "format_message"):  # usage errors of the command-line library
        text = error.format_message() or "a command is missing"
    elif isinstance(error, DBAPIError):  # the words of the database, without the statement
        text = f"the result store: {line_of(error)}"
    elif isinstance(error, SQLAlchemyError):
        text = f"the result store: {error}"
    else:
        text = f"{type(error).__name__}: {error} (tornpage --debug ... shows where)"
    return " ".join(text.split())
