"""`python -m tornpage` is the command `tornpage`."""

import sys

__all__ = ["main"]


def main() -> None:
    """The command. It can be interrupted, or find no memory and no library, while it is loaded, before it
    listens to signals and tells errors itself."""
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
