/** Private to ddl/: builds with LOCK=NONE. Logs what changes behind the scan's back, and applies it. */
#ifndef DDL_DDL_ONLINE_H
#define DDL_DDL_ONLINE_H

#include "ddl/ddl_build.h"

/** Makes the logs of a build whose tables and indexes are defined. From ddl_online_start() on they see every
change. */
WARN_UNUSED dberr_t ddl_online_create(ddl_build_t *build);
void ddl_online_start(ddl_build_t *build);

/** Applies what is in full blocks, at most max_rows records of it: of the log of the index of this number; of a rebuild,
which has but one log, the number is 0. *behind: there is more of that. */
WARN_UNUSED dberr_t ddl_online_apply(ddl_build_t *build, uint32_t number, uint32_t max_rows,
                                     bool *behind);
/** The same of the first log that has a full block. */
WARN_UNUSED dberr_t ddl_online_catch_up(ddl_build_t *build, uint32_t max_rows);
/** Has a log a full block that was not applied? */
bool ddl_online_is_behind(const ddl_build_t *build);
/** The last step before the commit: nothing may change meanwhile. What is built equals the table then.
DB_TABLE_LOCKED: an open transaction has changed the table; nothing was done. DB_ONLINE_LOG_TOO_BIG and others: a
change is missing. DB_DUPLICATE_KEY */
WARN_UNUSED dberr_t ddl_online_finish(ddl_build_t *build);

/** The load has met two rows with the same key of a unique index: one of them may go. */
void ddl_online_note_duplicate(ddl_build_t *build);

/** Records in all logs; how full the fullest is, and what share of all was applied, in 10000ths. */
typedef struct ddl_online_use {
    uint64_t records;
    uint32_t used;
    uint32_t applied;
} ddl_online_use_t;
ddl_online_use_t ddl_online_use(const ddl_build_t *build);

/** No change is looked at any more; temporary files are removed. The object stays. */
void ddl_online_stop(ddl_build_t *build);
void ddl_online_free(ddl_build_t *build); /**< what is in files stays there, as after a crash */

#endif
