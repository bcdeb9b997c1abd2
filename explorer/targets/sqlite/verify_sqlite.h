/** The verifier for SQLite databases that tornpage.targets.sqlite.driver made: main.db, main.db-wal, main.db-journal.

It links the SQLite library of the system, the same that recorded the run. */
#ifndef SQLITE_VERIFY_SQLITE_H
#define SQLITE_VERIFY_SQLITE_H

#include "explorer/targets/verifier.h"

/** Not part of a crashed image: a shared mapping that no recorder of writes sees, nothing syncs it, and the first
connection after a crash makes it anew. */
#define VERIFY_SQLITE_IGNORED "main.db-shm"

extern const verifier_t verify_sqlite;
/** Opens and closes as an application does that sets nothing. */
extern const verifier_t verify_sqlite_application;

#endif
