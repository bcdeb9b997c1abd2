"""Third-party stores, ready to be tortured: a target file each, and the programs of its commands."""
