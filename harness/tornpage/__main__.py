"""`python -m tornpage` is the command `tornpage`.

May import: main.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """The command. It can be interrupted while it is loaded, before it listens to signals itself."""
    try:
        from tornpage.cli.main import main as command

        command()
    except KeyboardInterrupt:
        print("tornpage: interrupted; nothing had begun", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
