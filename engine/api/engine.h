/** The engine's public interface: the only header that a user includes. One handle is one database;
many may live in one process. Nothing is global, nothing calls exit(). Single-threaded. After
DB_IO_ERROR or DB_CORRUPTION from a writing call the handle is poisoned: everything but
engine_close(), engine_status() and engine_error() is refused, and nothing more is written (I23). */
#ifndef API_ENGINE_H
#define API_ENGINE_H

#include "base/options.h"
#include "base/stats.h"
#include "buf/buf.h"
#include "ddl/ddl.h"
#include "os/os.h"

typedef struct engine engine_t;
typedef struct engine_status engine_status_t; /**< below */

/** Is there a database in os? DB_NOT_FOUND: no, or its creation was interrupted. DB_UNRECOVERABLE:
data files without a redo log. Changes nothing and takes no lock. */
WARN_UNUSED dberr_t engine_check_dir(os_t *os, err_sink_t *err);

/** Opens (create = true: creates if empty) the database in os, recovering it if needed. os and
probe are borrowed until engine_close(). On failure *err has the line to show.
DB_UNRECOVERABLE, DB_DIR_LOCKED, DB_NOT_FOUND (no database here), DB_ERROR (options), ... */
WARN_UNUSED dberr_t engine_open(os_t *os, probe_t *probe, const engine_options_t *options,
                                bool create, engine_t **out, err_sink_t *err);

/** clean = true: aborts index builds, rolls back open transactions, full checkpoint; false: just
lets go, as a crash would. The handle is gone in every case; on failure *err (which may be NULL) has
the line to show. */
WARN_UNUSED dberr_t engine_close(engine_t *engine, bool clean, err_sink_t *err);

const char *engine_error(const engine_t *engine); /**< of the last failure: its first cause */

WARN_UNUSED dberr_t engine_create_table(engine_t *engine, const dict_table_t *definition);
WARN_UNUSED dberr_t engine_drop_table(engine_t *engine, const char *name);
WARN_UNUSED dberr_t engine_rename_table(engine_t *engine, const char *from, const char *to);
/** ALTER TABLE, from beginning to end. DB_UNSUPPORTED: not in the way that its options ask for,
whatever the table; nothing was looked at. On any error nothing is left behind. */
WARN_UNUSED dberr_t engine_alter(engine_t *engine, const ddl_alter_t *alter);

/* The same in steps, for statements that build something (ddl_alter_is_build()). Between them the
caller does other things: everything but DDL of this table, but changes of it unless LOCK=NONE, and
but reading and flushing it with LOCK=EXCLUSIVE, which get DB_TABLE_LOCKED, and
engine_set_log_optimize_ddl(). Other tables may have builds of their own. A build whose step fails
is aborted. A crash leaves what is INCOMPLETE, which recovery drops. DB_NOT_FOUND: no table of this
name, or it has no build. */

#define BUILD_STEP_ROWS 1000U /**< rows of a step if nobody says otherwise */

/** Commits what is built as INCOMPLETE. */
WARN_UNUSED dberr_t engine_start_alter(engine_t *engine, const ddl_alter_t *alter);
/** Up to n_steps steps of about step_rows rows each. It stops before the commit, so that the result
appears in engine_finish_alter() and nowhere else. */
WARN_UNUSED dberr_t engine_step_alter(engine_t *engine, const char *table, uint32_t n_steps,
                                      uint32_t step_rows);
/** The rest, and the commit: the result is there, durably, on return. DB_TABLE_LOCKED: an open
transaction has changed the table (LOCK=NONE); the build goes on. */
WARN_UNUSED dberr_t engine_finish_alter(engine_t *engine, const char *table);
/** Leaves nothing of the build. */
WARN_UNUSED dberr_t engine_abort_alter(engine_t *engine, const char *table);
/** Off: defragmentations rest where they are. Steps and ends of them, and new ones in one
statement, get DB_PAUSED and do nothing; they can be begun and aborted. On, as after every start:
they go on there, by those calls, and by themselves as defragment_interval says. */
WARN_UNUSED dberr_t engine_set_defragment(engine_t *engine, bool on);

/* Hot backup: in steps, between which the caller does whatever else. One runs at a time. It costs
the database nothing but reads: what fails in the target aborts the backup (DB_BACKUP_ABORTED),
whose files are removed as far as they can be, and nothing else. */

#define BACKUP_FOLDER_SUFFIX ".backup"
#define BACKUP_STEP_PAGES 64U /**< pages of a step if nobody says otherwise */

/** Begins a backup into the folder NAME.backup of the data directory, which must be empty if it is
there. lock: what is loaded without redo meanwhile is copied again when the backup is finished;
otherwise it aborts the backup. DB_ALREADY_EXISTS: the folder has files, or a backup runs. */
WARN_UNUSED dberr_t engine_start_backup(engine_t *engine, const char *name, bool lock);
/** Copies up to n_pages pages. DB_NOT_FOUND: no backup of this name runs. */
WARN_UNUSED dberr_t engine_step_backup(engine_t *engine, const char *name, uint32_t n_pages);
/** The rest. On success the backup is whole and durable, and holds exactly what is committed
now. */
WARN_UNUSED dberr_t engine_finish_backup(engine_t *engine, const char *name);
WARN_UNUSED dberr_t engine_abort_backup(engine_t *engine, const char *name);
/** From beginning to end, into another directory. */
WARN_UNUSED dberr_t engine_backup(engine_t *engine, os_t *target);

/** Makes a database of the backup in os: recovery to the end of its log, which is that of the
backup at least. It may be cut short at any point and called again; of a prepared backup it changes
nothing. log_file_size and log_format of the options are ignored. *status: of the recovery; zero if
the backup is prepared already. DB_UNRECOVERABLE: it is not finished, or damaged; DB_NOT_FOUND: no
backup. */
WARN_UNUSED dberr_t engine_prepare(os_t *os, probe_t *probe, const engine_options_t *options,
                                   engine_status_t *status, err_sink_t *err);

WARN_UNUSED dberr_t engine_begin(engine_t *engine, trx_t **out);
WARN_UNUSED dberr_t engine_commit(engine_t *engine, trx_t *trx);
WARN_UNUSED dberr_t engine_rollback(engine_t *engine, trx_t *trx);
/** For statements of several rows: what came after the savepoint is undone, the transaction stays
open. */
uint64_t engine_savepoint(const engine_t *engine, const trx_t *trx);
WARN_UNUSED dberr_t engine_rollback_to(engine_t *engine, trx_t *trx, uint64_t savepoint);
WARN_UNUSED dberr_t engine_insert(engine_t *engine, trx_t *trx, const char *table, const byte *row);
WARN_UNUSED dberr_t engine_update(engine_t *engine, trx_t *trx, const char *table, const byte *pk,
                                  const row_upd_t *upd, uint32_t n_upd);
WARN_UNUSED dberr_t engine_delete(engine_t *engine, trx_t *trx, const char *table, const byte *pk);
WARN_UNUSED dberr_t engine_get(engine_t *engine, const char *table, const byte *pk, byte *row);
/** Calls fn for each live row, in primary key order, or in the order of a secondary index (NULL =
primary). fn must not call the engine; its failure ends the scan and is returned. */
WARN_UNUSED dberr_t engine_scan(engine_t *engine, const char *table, const char *index,
                                dberr_t (*fn)(void *ctx, const byte *row), void *ctx);

/** Table object for building rows; valid until the next DDL. NULL if there is no such table. */
const dict_table_t *engine_table(engine_t *engine, const char *name);

WARN_UNUSED dberr_t engine_checkpoint(engine_t *engine, bool full);
WARN_UNUSED dberr_t engine_flush_table(engine_t *engine,
                                       const char *table); /**< its pages home and fsynced */
WARN_UNUSED dberr_t engine_flush_log(engine_t *engine);
WARN_UNUSED dberr_t engine_clean_pages(engine_t *engine,
                                       uint32_t max_pages); /**< one page cleaner step */
/** Something at the n-th yield point from here on, n > 0 (buf_place). */
WARN_UNUSED dberr_t engine_place(engine_t *engine, buf_act_t act, uint32_t n);
WARN_UNUSED dberr_t engine_purge(engine_t *engine, uint32_t max_records, bool *done);
/** With a 10.5 log: nothing. */
WARN_UNUSED dberr_t engine_set_log_optimize_ddl(engine_t *engine, bool on);

/** What a running engine tells of itself (SHOW STATUS). */
struct engine_status {
    bool ignores_log_optimize_ddl; /**< a 10.5 log: all of a load is logged, whatever is set */
    uint32_t page_size;
    uint64_t log_file_size;
    uint64_t lsn_current;
    uint64_t lsn_flushed;
    uint64_t lsn_last_checkpoint;
    uint64_t checkpoint_age;
    uint64_t dirty_pages;
    uint64_t history_len;
    uint32_t active_trx;
    uint64_t onlineddl_rowlog_rows;     /**< changes in the logs of running builds with LOCK=NONE */
    uint32_t onlineddl_rowlog_pct_used; /**< of the fullest of them; 10000 = 100 % */
    /** of the running build that is least far; 10000 = 100 %: but for its last step. 0 without any
    */
    uint32_t onlineddl_pct_progress;
    bool recovered; /**< this open had to apply redo, restore pages, roll back or drop something */
    bool poisoned;
    stats_t stats;
};
void engine_get_status(const engine_t *engine, engine_status_t *status);

#endif
