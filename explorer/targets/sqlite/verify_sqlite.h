/** The verifier for SQLite databases that tornpage.targets.sqlite.driver made: main.db,
main.db-wal, main.db-journal.

It links the SQLite library of the system, the same that recorded the run. */
#ifndef SQLITE_VERIFY_SQLITE_H
#define SQLITE_VERIFY_SQLITE_H

#include "explorer/targets/verifier.h"

extern const verifier_t verify_sqlite;

#endif
