"""The `tornpage` command. Parses arguments, shows progress, prints summaries; decides nothing itself.

Exit codes: 0 clean, 1 violations and nothing else, 2 usage or harness failure, 3 nothing (or not what was
claimed) exercised, 128 + N ended by signal N (130: Ctrl-C).

A call loads the module of the command that it names, and no other: the help of all loads all.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, TextIO, cast

import typer

from tornpage import __version__
from tornpage.cli.options import USAGE_ERROR
from tornpage.faults.process import ENDING
from tornpage.vocabulary.errors import Interrupted, MachineError, TornpageError
from tornpage.vocabulary.paths import DEFAULT_OUT

__all__ = ["main", "root"]

DEVELOPERS = "For developers of Tornpage"


@dataclass(frozen=True, slots=True)
class _Command:
    """Where a command is: a function, and the text below its help."""

    module: str
    function: str
    epilog: str = "EPILOG"
    panel: str | None = None

    def load(self, name: str) -> Any:
        """As the command-line library wants it."""
        module = importlib.import_module(self.module)
        own = typer.Typer(add_completion=False, rich_markup_mode="rich")
        function = getattr(module, self.function)
        help_ = " ".join(function.__doc__.split())
        epilog = getattr(module, self.epilog)
        own.command(name, help=help_, epilog=epilog, rich_help_panel=self.panel)(function)
        return _with_bare_flags(typer.main.get_command(own))


def _with_bare_flags(command: Any) -> Any:
    """Its help says nothing of a value where an option takes none."""
    context = typer.Context(command)
    for option in command.get_params(context):
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return command


@dataclass(frozen=True, slots=True)
class _Group:
    """Commands under one name."""

    what: str
    commands: Mapping[str, _Command]
    panel: str | None = None

    def load(self, name: str) -> Any:
        """As the command-line library wants it."""
        own = typer.Typer(
            name=name,
            no_args_is_help=True,
            help=self.what,
            rich_markup_mode="rich",
        )
        group = typer.main.get_group(own)
        group.rich_help_panel = self.panel
        group.commands = cast(Any, _Loaded(self.commands))
        return _with_bare_flags(group)


class _Loaded(Mapping[str, Any]):
    """Commands by name, each loaded when it is asked for."""

    def __init__(self, places: Mapping[str, _Command | _Group]) -> None:
        self._places = places

    def __getitem__(self, name: str) -> Any:
        return self._places[name].load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


# In the order of the help text.
COMMANDS: dict[str, _Command | _Group] = {
    "run": _Command("tornpage.cli.run", "run"),
    "try": _Command("tornpage.cli.attempt", "try_target"),
    "nightly": _Command("tornpage.cli.nightly", "nightly"),
    "hunt": _Command("tornpage.cli.hunt", "hunt_scripts"),
    "replay": _Command("tornpage.cli.replay", "replay"),
    "show": _Command("tornpage.cli.show", "show"),
    "shrink": _Command("tornpage.cli.shrink", "shrink"),
    "bisect": _Command("tornpage.cli.bisect", "bisect"),
    "explain": _Command("tornpage.cli.explain", "explain"),
    "confirm": _Command("tornpage.cli.confirm", "confirm"),
    "upstream": _Command("tornpage.cli.upstream", "upstream"),
    "export": _Command("tornpage.cli.find", "export", "EXPORT_EPILOG"),
    "import": _Command("tornpage.cli.find", "import_", "IMPORT_EPILOG"),
    "report": _Command("tornpage.cli.report", "report"),
    "runs": _Command("tornpage.cli.runs", "runs"),
    "bugs": _Command("tornpage.cli.bugs", "bugs"),
    "diff": _Command("tornpage.cli.diff", "diff"),
    "serve": _Command("tornpage.cli.serve", "serve"),
    "prune": _Command("tornpage.cli.prune", "prune"),
    "list": _Command("tornpage.cli.listing", "listing"),
    "doctor": _Command("tornpage.cli.doctor", "doctor"),
    "mutants": _Command("tornpage.cli.mutants", "mutants", panel=DEVELOPERS),
    "qualify": _Command("tornpage.cli.qualify", "qualify", panel=DEVELOPERS),
    "store": _Group(
        "Commands on a whole result database.", {"copy": _Command("tornpage.cli.store", "copy")}
    ),
    "new": _Group(
        "Writes a file to start from.", {"campaign": _Command("tornpage.cli.new", "campaign")}
    ),
    "target": _Group(
        "Target files: third-party stores.",
        {
            "new": _Command("tornpage.cli.target", "new", "NEW_EPILOG"),
            "check": _Command("tornpage.cli.target", "check", "CHECK_EPILOG"),
            "fetch": _Command("tornpage.cli.target", "get", "FETCH_EPILOG"),
        },
    ),
    "bench": _Group(
        "Measures Tornpage, disks, and the engine beside published figures.",
        {
            "speed": _Command("tornpage.cli.bench", "speed", "SPEED_EPILOG"),
            "seeds": _Command("tornpage.cli.bench", "seeds", "SEEDS_EPILOG"),
            "finds": _Command("tornpage.cli.bench", "finds", "FINDS_EPILOG"),
            "doublewrite": _Command("tornpage.cli.pricing", "doublewrite"),
        },
        DEVELOPERS,
    ),
}

app = typer.Typer(
    name="tornpage",
    no_args_is_help=True,
    rich_markup_mode="rich",
    epilog="Exit codes: 0 clean, 1 violations, 2 usage or harness failure, 3 no crash was exercised, or a "
    "required path never ran, 128 + N ended by signal N (130: Ctrl-C). In a checkout, `make help` lists "
    "coverage, benchmarks and tests.",
)


def root() -> Any:
    """The command with all others below it, as the command-line library wants it."""
    group = cast(Any, typer.main.get_command(app))
    group.commands = _Loaded(COMMANDS)
    return _with_bare_flags(group)


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
    """Tortures the crash recovery of page-based storage engines."""
    context.obj["debug"] = debug


def _ignore_signals() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)  # one that was to come again: __main__.py
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
        kept = (
            f"finished verdicts are kept, {stop.go_on} goes on" if stop.kept else "nothing is kept"
        )
        _say(f"interrupted; {stop.told or kept}")
        code = 128 + stop.number
    sys.exit(code)


def _call() -> int:
    chosen: dict[str, Any] = {}
    try:
        code = root()(standalone_mode=False, obj=chosen)
        sys.stdout.flush()
    except typer.Exit as left:
        return left.exit_code
    except Exception as error:
        if chosen.get("debug"):
            traceback.print_exc()
        _say(_one_line(error, chosen.get("out", DEFAULT_OUT)))
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
    from tornpage.cli.terminal import say

    with contextlib.suppress(OSError):
        say(f"tornpage: {text}", sys.stderr)


def _one_line(error: Exception, out: Path = DEFAULT_OUT) -> str:
    """What went wrong; of an error that nobody expected, its kind and the way to learn more. out: the folder
    that was to be written."""
    if isinstance(error, TornpageError):
        kept = isinstance(error, MachineError) and error.kept
        text = f"{error}; --resume goes on" if kept else str(error)
    elif hasattr(error, "format_message"):  # usage errors of the command-line library
        text = _of_usage(error)
    else:
        text = _of_disk(error, out) or _of_database(error)
        text = text or f"{type(error).__name__}: {error} (tornpage --debug ... shows where)"
    return " ".join(text.split())


def _of_usage(error: Any) -> str:
    """In the library's words, unless the option has another name now."""
    from tornpage.vocabulary.closest import FORMER, meant

    option = getattr(error, "option_name", "")
    if option in FORMER:
        return f"no such option: {option}{meant(option, ())}"
    return error.format_message() or "a command is missing"


def _of_disk(error: Exception, out: Path) -> str:
    """Which one is full, "" of others."""
    from tornpage.vocabulary.outputs import FULL, told_full

    if isinstance(error, OSError) and error.errno in FULL:
        return told_full(error, [out])
    return ""


def _of_database(error: Exception) -> str:
    """In its words, without the statement; "" of others. What was not loaded has raised nothing."""
    if "sqlalchemy" not in sys.modules:
        return ""
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    from tornpage.store.sql import line_of

    if isinstance(error, DBAPIError):
        return f"the result database: {line_of(error)}"
    return f"the result database: {error}" if isinstance(error, SQLAlchemyError) else ""
