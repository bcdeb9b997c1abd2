"""The `tornpage` command. Parses arguments, shows progress, prints summaries; decides nothing itself.

Exit codes: 0 clean, 1 violations and nothing else, 2 usage or harness failure, 3 nothing (or not what was
claimed) exercised, 128 + N ended by signal N (130: Ctrl-C).

May import: the commands, options and errors.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import traceback
from types import FrameType
from typing import Annotated

import typer

from tornpage import __version__
from tornpage.cli import doctor, mutants, prune, replay, report, run, show, shrink
from tornpage.cli.options import USAGE_ERROR
from tornpage.faults.process import ENDING
from tornpage.vocabulary.errors import Interrupted, TornpageError

__all__ = ["main"]

app = typer.Typer(
    name="tornpage",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

# In the order of the help text.
app.command(epilog=run.EPILOG)(run.run)
app.command(epilog=replay.EPILOG)(replay.replay)
app.command(epilog=show.EPILOG)(show.show)
app.command(epilog=shrink.EPILOG)(shrink.shrink)
app.command(epilog=report.EPILOG)(report.report)
app.command(epilog=prune.EPILOG)(prune.prune)
app.command(epilog=mutants.EPILOG)(mutants.mutants)
app.command(epilog=doctor.EPILOG)(doctor.doctor)


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


def _end(number: int, _frame: FrameType | None) -> None:
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)  # one is enough; what is under way is put in order
    raise Interrupted(number)


def main() -> None:
    """Entry point: every error is one line on stderr and exit code 2."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, _end)
    settings: dict[str, bool] = {}
    try:
        code = app(standalone_mode=False, obj=settings)
        sys.stdout.flush()
    except Interrupted as stop:
        hint = "finished verdicts are kept, --resume goes on" if stop.kept else "nothing is kept"
        print(f"tornpage: interrupted; {hint}", file=sys.stderr)
        code = 128 + stop.number
    except typer.Exit as left:
        code = left.exit_code
    except Exception as error:
        if settings.get("debug"):
            traceback.print_exc()
        print(f"tornpage: {_one_line(error)}", file=sys.stderr)
        code = USAGE_ERROR
        if isinstance(error, OSError):  # stdout may be what failed: nothing is left to be flushed
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code or 0)


def _one_line(error: Exception) -> str:
    """What went wrong; of an error that nobody expected, its kind and the way to learn more."""
    if isinstance(error, TornpageError):
        text = str(error)
    elif hasattr(error, "format_message"):  # usage errors of the command-line library
        text = error.format_message() or "see tornpage --help"
    elif isinstance(error, sqlite3.Error):
        text = f"the result store: {error}"
    else:
        text = f"{type(error).__name__}: {error} (tornpage --debug ... shows where)"
    return " ".join(text.split())
