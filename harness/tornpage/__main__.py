"""`python -m tornpage` is the command `tornpage`.

May import: cli.main.
"""

from tornpage.cli.main import main

main()
