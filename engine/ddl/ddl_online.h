/** Private to ddl/: builds with LOCK=NONE. Logs what changes behind the scan's back, and applies
it. */
#ifndef DDL_DDL_ONLINE_H
#define DDL_DDL_ONLINE_H

#include "ddl/ddl_build.h"
#include "ddl/row_log.h"

/** Makes the logs of a build whose tables and indexes are defined, and its watch: from its being
set on they see every change. */
WARN_UNUSED dberr_t ddl_online_create(ddl_build_t *build);

/** Has a log a full block that was not applied? */
bool ddl_online_is_behind(const ddl_build_t *build);
/** Applies what is in full blocks of the log of the current index. */
WARN_UNUSED dberr_t ddl_step_apply(ddl_build_t *build, uint32_t max_rows, bool *over);
/** The same of the first log that is behind. */
WARN_UNUSED dberr_t ddl_step_catch_up(ddl_build_t *build, uint32_t max_rows, bool *over);
/** What share of all logs was applied, in 10000ths. */
WARN_UNUSED dberr_t ddl_online_position(const ddl_build_t *build, uint32_t *out);
/** Before the commit: nothing may change meanwhile. What is built equals the table then.
DB_TABLE_LOCKED: an open transaction has changed the table; nothing was done. DB_ONLINE_LOG_TOO_BIG
and others: a change is missing. DB_DUPLICATE_KEY */
WARN_UNUSED dberr_t ddl_online_finish(ddl_build_t *build);

/** The load has met two rows with the same key of a unique index: one of them may go. */
void ddl_online_note_duplicate(ddl_build_t *build);

/** What users see of the logs. */
void ddl_online_use(const ddl_build_t *build, ddl_progress_t *out);

/** No change is looked at any more; temporary files are removed. The object stays. */
void ddl_online_stop(ddl_build_t *build);
void ddl_online_free(ddl_build_t *build); /**< what is in files stays there, as after a crash */

#endif
