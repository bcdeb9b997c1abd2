/** Data definition: CREATE, DROP, RENAME TABLE, ALTER TABLE. Each is a short chain of
small durable steps, so that recovery can finish or undo it from the catalogue alone:

CREATE TABLE: (1) commit catalogue rows with status INCOMPLETE; (2) FILE_CREATE2, file, page 0,
clustered root; (3) commit: status READY. DROP TABLE: (1) commit status DROPPING; (2)
forget pages, FILE_DELETE, unlink; (3) commit: rows gone. DROP INDEX: the same with its tree freed
in (2), step by step. RENAME TABLE: (1) FILE_RENAME2, rename; (2) commit the new name; recovery
makes the file's name follow the catalogue.

RENAME COLUMN, RENAME INDEX: (1) commit the new name. MODIFY COLUMN: the new length, or a copy.

ADD INDEX (WL#7277), one or several: commit rows INCOMPLETE; an empty tree each; one scan of the
clustered index feeds one external merge sort per index; bulk load; with log_optimize_ddl=ON the
contents are not logged, then per index: flush of its dirty pages, fsync, OP_INDEX_LOAD (I16);
finally one durable commit sets all READY. An interrupted build writes OP_INDEX_LOAD, frees its
trees through their segments, removes the rows and takes its dirty pages off the flush list. DDL
refuses a table that an open transaction has changed or whose index is being built
(DB_TABLE_LOCKED), and reads committed data.

Rebuild (FORCE): the same for a new table under an intermediate name, its clustered index loaded
while the old one is scanned; one flush at the end; the commit swaps the two tables (ddl_rebuild.c).

ADD COLUMN, DROP COLUMN: a rebuild whose rows are made of those of the old table (dict_row_map_t);
ADD COLUMN with ALGORITHM=INSTANT: one commit, with a metadata record (ddl_instant.c).

PRIMARY KEY: a rebuild with another primary key. Unless its order is that of the old one, the scan
feeds a sort of keys, new and old, by which the clustered index is loaded (ddl_load.c).

Several clauses: together, in place or by a rebuild, and true by one commit; the trees of indexes
that go are freed behind it (ddl_clauses.c, ddl_index.c).

ALGORITHM=COPY, of any ALTER: a new table by ordinary inserts, and the same swap (ddl_copy.c).

TRUNCATE TABLE: a new table without rows, and the same swap (ddl_rebuild.c).

Defragmentation: in steps like a build, but nothing is built: the rows of the table change as if
there were none (ddl_defragment.c).

Export: the lock of a build on a table whose file is whole and alone (ddl_export.c). Import: a new
table of such pages, and the swap of a rebuild (ddl_import.c).

While a build runs, between its steps, its table can be read but not changed (LOCK=SHARED):
DB_TABLE_LOCKED. With LOCK=EXCLUSIVE it cannot be read either. With LOCK=NONE it can be changed,
too: changes are logged and applied at the end (ddl_online.c). Other tables know nothing of it, and
may have builds of their own. */
#ifndef DDL_DDL_H
#define DDL_DDL_H

#include "base/options.h"
#include "trx/trx.h"

/** definition: name, cols, indexes[0].fields (the primary key) set; the rest is filled in here. */
WARN_UNUSED dberr_t ddl_create_table(trx_sys_t *sys, const dict_table_t *definition);
WARN_UNUSED dberr_t ddl_drop_table(trx_sys_t *sys, const char *name);
WARN_UNUSED dberr_t ddl_rename_table(trx_sys_t *sys, const char *from, const char *to);
WARN_UNUSED dberr_t ddl_drop_index(trx_sys_t *sys, const char *table, const char *index);

/** What a user says of a new index. prefix_len 0 = the whole column. */
typedef struct ddl_index_def {
    char name[NAME_LEN_MAX + 1];
    bool unique;
    uint32_t n_fields;
    struct {
        char col[NAME_LEN_MAX + 1];
        uint32_t prefix_len;
    } fields[COLUMNS_MAX];
} ddl_index_def_t;

typedef enum alter_kind {
    ALTER_REBUILD,    /**< FORCE */
    ALTER_TRUNCATE,   /**< TRUNCATE TABLE: the table anew, without rows */
    ALTER_DEFRAGMENT, /**< OPTIMIZE TABLE with innodb_defragment=ON: leaves are packed in place */
    ALTER_EXPORT,     /**< FLUSH TABLES ... FOR EXPORT; its end is UNLOCK TABLES */
    ALTER_IMPORT,     /**< IMPORT TABLESPACE: the pages of an exported table, and their copying */
    ALTER_ADD_INDEX,
    ALTER_DROP_INDEX,
    ALTER_RENAME_COLUMN,
    ALTER_RENAME_INDEX,
    ALTER_MODIFY_COLUMN,
    ALTER_ADD_COLUMN,
    ALTER_DROP_COLUMN,
    ALTER_PRIMARY_KEY, /**< DROP PRIMARY KEY, ADD PRIMARY KEY: the columns of defs[0] */
    ALTER_CLAUSES      /**< several of FORCE, ADD, DROP and RENAME, true by one commit */
} alter_kind_t;

/** How a statement is to be carried out. NOCOPY and INSTANT are promises: no table is copied,
nothing but the catalogue changes. */
typedef enum ddl_algorithm {
    ALGORITHM_DEFAULT, /**< the cheapest that will do */
    ALGORITHM_COPY,
    ALGORITHM_INPLACE,
    ALGORITHM_NOCOPY,
    ALGORITHM_INSTANT
} ddl_algorithm_t;

/** What others may do to the table meanwhile. */
typedef enum ddl_lock {
    LOCK_DEFAULT, /**< SHARED */
    LOCK_NONE,    /**< read and change it */
    LOCK_SHARED,  /**< read it */
    LOCK_EXCLUSIVE
} ddl_lock_t;

/** An ALTER TABLE statement, or a clause of one. */
typedef struct ddl_alter ddl_alter_t;
struct ddl_alter {
    alter_kind_t kind;
    const char *table;
    /** ADD, DROP, RENAME, MODIFY: the column or index; DEFRAGMENT: NULL for all; IMPORT: the
    exported table */
    const char *name;
    const char *new_name;        /**< RENAME */
    dict_type_t type;            /**< MODIFY: what the column becomes */
    uint32_t len;                /**< MODIFY: bytes of it, 1 ... of its type */
    const dict_col_t *col;       /**< ADD COLUMN: the column, as the only one of a row, */
    const byte *value;           /**< that row: the value that it has in each row, */
    const char *after;           /**< and the column that it follows, "": none, NULL: all */
    const ddl_index_def_t *defs; /**< ADD INDEX; PRIMARY KEY: one */
    uint32_t n_defs;
    /** CLAUSES: they have no table, algorithm and lock of their own; col and value of the one that
    adds a column stand here, too */
    const ddl_alter_t *clauses;
    uint32_t n_clauses;
    ddl_algorithm_t algorithm;
    ddl_lock_t lock;
};

/** Can the statement be carried out as its options ask for? DB_UNSUPPORTED, with what to try
instead. Knows no table. */
WARN_UNUSED dberr_t ddl_alter_check(const ddl_alter_t *alter, err_sink_t *err);
/** ALGORITHM=DEFAULT becomes COPY where the table leaves no better way: MODIFY COLUMN, but for a
longer VARCHAR that no index has as a whole. DB_UNSUPPORTED: the statement promises more, or wants
another type. DB_NOT_FOUND, DB_TABLE_LOCKED. */
WARN_UNUSED dberr_t ddl_alter_choose(trx_sys_t *sys, ddl_alter_t *alter);
/** Does it build something, so that it can be done in steps? */
bool ddl_alter_is_build(const ddl_alter_t *alter);
/** A build that leaves nothing but what its steps have done: it may take them by itself, or rest
(DEFRAGMENT). */
bool ddl_alter_is_background(const ddl_alter_t *alter);
/** Carries out one that does not. */
WARN_UNUSED dberr_t ddl_alter_at_once(trx_sys_t *sys, const ddl_alter_t *alter);

/** A build in progress, advanced in steps that the caller interleaves with other work. */
typedef struct ddl_build ddl_build_t;

/** Commits the INCOMPLETE rows. Of the options, sort_buffer_size bounds the memory of all sorts
together, online_alter_log_max_size each log of row changes (LOCK=NONE); defragment_* tell how
leaves are packed. The statement has passed ddl_alter_check() and ddl_alter_choose(). Caller:
ddl_build_free(). */
WARN_UNUSED dberr_t ddl_build_begin(trx_sys_t *sys, const ddl_alter_t *alter,
                                    const engine_options_t *options, ddl_build_t **out);
/** One call: a part of the step at hand, about max_rows rows of it. *done =
committed. After an error the build is over: call ddl_build_abort(). */
WARN_UNUSED dberr_t ddl_build_step(ddl_build_t *build, uint32_t max_rows, bool *done);
/** Is nothing left to do but the last step: the commit, or to say that two rows have the same key
of a unique index (DB_DUPLICATE_KEY)? LOCK=NONE: it applies the last changes, may find that too much
was changed (DB_ONLINE_LOG_TOO_BIG), and is refused while an open transaction has changed the table
(DB_TABLE_LOCKED): then nothing has happened, and it can be taken later. Rows that change meanwhile
may leave more to do before it. */
bool ddl_build_is_loaded(const ddl_build_t *build);
bool ddl_build_is_background(const ddl_build_t *build); /**< ddl_alter_is_background() */
#define PROGRESS_MAX 10000U                             /**< all of it, where progress is told */
/** What users see of a build. */
typedef struct ddl_progress {
    uint64_t rowlog_records;  /**< in its logs of row changes */
    uint32_t rowlog_pct_used; /**< how full the fullest is, in 10000ths */
    uint32_t pct_progress;    /**< of the build, in 10000ths: all but its last step */
} ddl_progress_t;
ddl_progress_t ddl_build_progress(const ddl_build_t *build);
/** Leaves nothing behind: pages freed and given up unwritten, rows and temporary files removed.
When it fails it can be called again, and nothing else. */
WARN_UNUSED dberr_t ddl_build_abort(ddl_build_t *build);
/** Memory. What a build that neither committed nor was aborted has in files stays there for
recovery, as after a crash. NULL is fine. */
void ddl_build_free(ddl_build_t *build);

/** Recovery step 8: drops INCOMPLETE indexes and tables, finishes DROPPING ones, removes temporary
files, makes file names follow the catalogue. fn callbacks (may be NULL) see what is dropped. */
typedef struct ddl_cleanup_hooks {
    void *ctx;
    void (*drop_index)(void *ctx, space_id_t space, index_id_t index);
    void (*drop_table)(void *ctx, table_id_t table);
    void (*finish_swap)(void *ctx, table_id_t table); /**< a rebuilt table's file gets its name */
} ddl_cleanup_hooks_t;
WARN_UNUSED dberr_t ddl_recover(trx_sys_t *sys, const ddl_cleanup_hooks_t *hooks);

#endif
