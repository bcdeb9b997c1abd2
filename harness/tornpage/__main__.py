"""`python -m tornpage` is the command `tornpage`.

May import: main.
"""

from tornpage.cli.main import main

main()
