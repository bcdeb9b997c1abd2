"""`python -m tornpage` is the command `tornpage`."""

import signal
import sys

from tornpage.vocabulary.errors import Interrupted

__all__ = ["main"]

AGAIN_S = 0.001


def _raise_again(lost: "sys.UnraisableHookArgs") -> None:
    """Where Python raises nothing, as in the callbacks of weak references, a wish to end is lost, and the
    command would go on and never hear another one. It comes again when that callback has returned."""
    error = lost.exc_value
    if not isinstance(error, KeyboardInterrupt | Interrupted):
        sys.__unraisablehook__(lost)
        return

    def come(*_: object) -> None:
        raise error

    signal.signal(signal.SIGALRM, come)
    signal.setitimer(signal.ITIMER_REAL, AGAIN_S)


def main() -> None:
    """The command. It can be interrupted, or find no memory and no library, while it is loaded, before it
    listens to signals and tells errors itself."""
    sys.unraisablehook = _raise_again
    try:
        try:
            from tornpage.cli.main import main as command
        except Exception as error:  # whatever a library raises that cannot be loaded
            what = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"tornpage: could not be loaded: {what}", file=sys.stderr)
            sys.exit(2)
        command()
    except KeyboardInterrupt:
        print("tornpage: interrupted; nothing had begun", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
