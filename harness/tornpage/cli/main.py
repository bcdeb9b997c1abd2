"""The `tornpage` command. Parses arguments, shows progress, prints summaries; decides nothing itself.

Exit codes: 0 clean, 1 violations, 2 usage or harness failure, 3 nothing (or not what was claimed) exercised,
128 + N ended by signal N (130: Ctrl-C).

May import: the commands, options and errors.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from tornpage import __version__
from tornpage.cli import doctor, mutants, replay, report, run, show, shrink
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
app.command(epilog=mutants.EPILOG)(mutants.mutants)
app.command(epilog=doctor.EPILOG)(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"tornpage {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    """Tortures the crash recovery of page-based storage engines."""


def _end(number: int, _frame: FrameType | None) -> None:
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)  # one is enough; what is under way is put in order
    raise Interrupted(number)


def main() -> None:
    """Entry point: every error of ours is one line on stderr and exit code 2."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, _end)
    try:
        code = app(standalone_mode=False)
    except TornpageError as error:
        print(f"tornpage: {error}", file=sys.stderr)
        code = USAGE_ERROR
    except Interrupted as stop:
        print(
            "tornpage: interrupted; finished verdicts are kept, --resume goes on", file=sys.stderr
        )
        code = 128 + stop.number
    except typer.Exit as left:
        code = left.exit_code
    except Exception as error:
        if hasattr(error, "format_message"):  # usage errors of the command-line library
            print(f"tornpage: {error.format_message()}", file=sys.stderr)
            code = USAGE_ERROR
        else:
            raise
    sys.exit(code or 0)
