"""InnoDB's own bytes, read only: pages and redo logs of MariaDB, and the rules that they must keep."""
