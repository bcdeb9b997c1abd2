"""The `tornpage` command and what a person sees of it in the terminal."""
