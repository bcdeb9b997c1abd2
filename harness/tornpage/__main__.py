"""`python -m tornpage` is the command `tornpage`.

May import: main.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """The command. It can be interrupted while it is loaded, which takes a moment."""
    try:
        from tornpage.cli.main import main as command
    except KeyboardInterrupt:
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
