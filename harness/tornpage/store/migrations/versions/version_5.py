"""From version 4 to 5: the tables stay. The origin of a run says which target it is about, and a bug belongs
to that, not to the path of a target file. What is known by a path is the target's when it is seen there again
(store/bugs.py): the file may be on another machine now.
"""

revision = "5"
down_revision = "4"


def upgrade() -> None:
    """The number alone, so that an older Tornpage refuses the store."""
