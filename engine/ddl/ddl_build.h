/** Private to ddl/: statements that are carried out in steps, each a table (ddl_statement_t), and
what their steps share. A new statement is a new table: a beginning, steps, most of which are here,
a commit, and what takes them back. */
#ifndef DDL_DDL_BUILD_H
#define DDL_DDL_BUILD_H

#include "btr/btr_bulk.h"
#include "ddl/ddl_int.h"
#include "ddl/merge_sort.h"

#define BATCH_ROWS 16U /**< rows that a scan copies at a time */
#define STEPS_MAX 9U   /**< of a statement, with the end of its table */

/** How often a step is taken. */
typedef enum ddl_times {
    ONCE,
    EACH_SCAN, /**< for as many indexes at a time as there is memory to sort for */
    /** that the scan has fed; such steps in a row are taken for one index after the other */
    EACH_INDEX,
    UNTIL_COMMIT /**< the last one: whenever it is wanted, until the commit is taken */
} ddl_times_t;

/** A step, carried out in one call or more. */
typedef struct ddl_step {
    ddl_times_t times;
    /** A part of it, of about max_rows rows; *over, false before: nothing of it is left. */
    dberr_t (*run)(ddl_build_t *build, uint32_t max_rows, bool *over);
    /** NULL: always taken; else passed over while false. UNTIL_COMMIT must have one. */
    bool (*wanted)(const ddl_build_t *build);
    /** Takes back what it has begun and not ended, before `discard`. Can be called again. NULL:
       nothing. */
    dberr_t (*undo)(ddl_build_t *build);
    uint32_t share; /**< of the work, for each index */
    /** How much of it is done, in 10000ths; NULL: not known. */
    dberr_t (*position)(const ddl_build_t *build, uint32_t *out);
} ddl_step_t;

typedef struct ddl_statement {
    /** Makes the durable beginning of it; failing, leaves nothing but memory. source is set. */
    dberr_t (*begin)(ddl_build_t *build, const ddl_alter_t *alter);
    ddl_step_t steps[STEPS_MAX]; /**< up to one without run */
    /** Makes what was built appear, durably. */
    dberr_t (*commit)(ddl_build_t *build);
    /** Leaves nothing of it; failing, it can be called again. */
    dberr_t (*discard)(ddl_build_t *build);
    void (*free)(ddl_build_t *build); /**< what `own` owns; or NULL */
    bool background;                  /**< commits make its steps, and a switch lets it rest */
} ddl_statement_t;

typedef struct ddl_online ddl_online_t;

struct ddl_build {
    trx_sys_t *sys;
    const ddl_statement_t *statement;
    const ddl_step_t *step;          /**< the one at hand, or the end of the table */
    bool committed;                  /**< there is nothing to take back */
    bool unlogged;                   /**< contents of a load are not logged (WL#7277) */
    bool aborting;                   /**< what is left can only be aborted */
    uint32_t progress;               /**< in 10000ths, never falling */
    const engine_options_t *options; /**< the caller's */
    dict_table_t *source;            /**< own copy: the table whose rows are read */
    dict_table_t *table; /**< own copy: what is built, or gets indexes; ADD INDEX: source */
    const dict_index_t *clustered; /**< a table is built: its first index, in table; else NULL */
    bool resorted;                 /**< it is one of `indexes`, because its order is another one */
    dict_index_t *indexes;         /**< those that are sorted, in table: n of them */
    uint32_t n;
    uint32_t n_new;    /**< the last ones of them, which the source does not have */
    bool combined;     /**< it is one of several clauses */
    uint32_t current;  /**< the index that EACH_INDEX is about; the first one of a scan */
    uint32_t scan_end; /**< the indexes before this one have been fed, or are */
    bool scan_started; /**< the scan has seen a record */
    bool has_rows;     /**< a row was read that is loaded */
    byte *last_pk;     /**< key of the last clustered record seen */
    byte *batch;       /**< rows that the scan has copied, n_rows of them */
    uint32_t n_rows;
    merge_sort_t *sorts[INDEXES_MAX];
    btr_bulk_t *bulk;      /**< the load at hand: during a scan that of the clustered index */
    uint64_t loaded;       /**< records of it */
    dict_row_map_t map;    /**< a table is made: of what its rows are made, */
    byte *row;             /**< and one of them (ddl_build_row()) */
    byte *rec;             /**< a record for the sorts; in a load, the record before */
    lsn_t flush_lsn;       /**< where the log was when the last step of a flush ended, or 0 */
    const char *duplicate; /**< two rows have one key of the unique index of this name, in table */
    ddl_online_t *online;  /**< LOCK=NONE (ddl_online.c), else NULL */
    const dict_row_watch_t *watch; /**< rows change meanwhile, and this is told of it; or NULL */
    void *own;                     /**< what else the statement has */
};

static inline env_t *build_env(const ddl_build_t *build)
{
    return ddl_env(build->sys);
}

static inline buf_pool_t *build_pool(const ddl_build_t *build)
{
    return trx_sys_pool(build->sys);
}

/** May the rows change meanwhile (LOCK=NONE)? */
static inline bool build_is_online(const ddl_build_t *build)
{
    return build->online != NULL;
}

/** Are there pages that the log says nothing of (WL#7277)? */
static inline bool build_is_unlogged(const ddl_build_t *build)
{
    return build->unlogged && build->has_rows;
}

extern const ddl_statement_t DDL_IN_PLACE;   /**< ddl_index.c */
extern const ddl_statement_t DDL_REBUILD;    /**< ddl_rebuild.c */
extern const ddl_statement_t DDL_TRUNCATE;   /**< ddl_rebuild.c */
extern const ddl_statement_t DDL_COPY;       /**< ddl_copy.c */
extern const ddl_statement_t DDL_DEFRAGMENT; /**< ddl_defragment.c */
extern const ddl_statement_t DDL_EXPORT;     /**< ddl_export.c */
extern const ddl_statement_t DDL_IMPORT;     /**< ddl_import.c */

/* ---- ddl_build.c ---- */

/** ddl_build_begin() of a statement that is chosen. */
WARN_UNUSED dberr_t ddl_build_start(trx_sys_t *sys, const ddl_statement_t *statement,
                                    const ddl_alter_t *alter, const engine_options_t *options,
                                    ddl_build_t **out);
/** Commits a change of the catalogue; the cache then has the built table as the build has it. */
WARN_UNUSED dberr_t ddl_build_commit(ddl_build_t *build, const ddl_change_t *change);
/** The end of a statement that commits nothing: as every one of data definition it makes durable
what was committed before. */
WARN_UNUSED dberr_t ddl_build_make_durable(ddl_build_t *build);

/* ---- ddl_scan.c ---- */

/** What the scan does with a row of the source; no page is pinned. */
typedef dberr_t (*ddl_row_fn)(ddl_build_t *build, void *ctx, const byte *row);
/** Bytes of what is sorted for an index: its record; of a clustered one both keys, new and old. */
uint32_t ddl_sort_size(const ddl_build_t *build, const dict_index_t *index);
/** The longest record that is sorted, or size. */
uint32_t ddl_rec_size_max(const ddl_build_t *build, uint32_t size);
/** Memory for a scan, and for `rec`, of so many bytes. */
WARN_UNUSED dberr_t ddl_scan_prepare(ddl_build_t *build, uint32_t rec_size);
/** The rows of the next records, at most max_rows of them; marked ones are passed. *over: there
were fewer. */
WARN_UNUSED dberr_t ddl_scan_rows(ddl_build_t *build, uint32_t max_rows, ddl_row_fn fn, void *ctx,
                                  bool *over);
/** build->row: the row of the new table that a row of the source becomes. */
WARN_UNUSED dberr_t ddl_build_row(ddl_build_t *build, const byte *row);
/** How much of the table the scan has passed, in 10000ths. */
WARN_UNUSED dberr_t ddl_scan_position(const ddl_build_t *build, uint32_t *out);

/* ---- ddl_load.c ---- */

/** Memory for the steps of a load, with logs if rows may change; table, indexes, n and clustered
are set. */
WARN_UNUSED dberr_t ddl_load_prepare(ddl_build_t *build, const ddl_alter_t *alter);
/** The indexes that are built, *n of them. */
const dict_index_t *ddl_load_indexes(const ddl_build_t *build, uint32_t *n);
WARN_UNUSED dberr_t ddl_step_scan(ddl_build_t *build, uint32_t max_rows, bool *over);
WARN_UNUSED dberr_t ddl_step_merge(ddl_build_t *build, uint32_t max_rows, bool *over);
WARN_UNUSED dberr_t ddl_step_load(ddl_build_t *build, uint32_t max_rows, bool *over);
/** Pages of the load; behind them ddl_step_sync(), then ddl_step_index_load(). */
WARN_UNUSED dberr_t ddl_step_flush(ddl_build_t *build, uint32_t max_rows, bool *over);
WARN_UNUSED dberr_t ddl_step_sync(ddl_build_t *build, uint32_t max_rows, bool *over);
WARN_UNUSED dberr_t ddl_step_index_load(ddl_build_t *build, uint32_t max_rows, bool *over);
WARN_UNUSED dberr_t ddl_merge_position(const ddl_build_t *build, uint32_t *out);
WARN_UNUSED dberr_t ddl_load_position(const ddl_build_t *build, uint32_t *out);
/** The pages of a load that goes no further leave the flush list unwritten, and are logged again
from here (INDEX_LOAD). Not if their file goes, too. */
WARN_UNUSED dberr_t ddl_load_undo(ddl_build_t *build);

/* ---- ddl_rebuild.c: what statements that make a table share ---- */

/** build->table: as the statement wants it, with ids of its own, INCOMPLETE, under an intermediate
name. */
WARN_UNUSED dberr_t ddl_rebuild_define(ddl_build_t *build, const ddl_alter_t *alter,
                                       const char *prefix);
/** Its rows, durably, its file and its empty trees; or nothing of that. size_pages: of the file,
which is left empty if its trees have roots already; 0: as a new one. */
WARN_UNUSED dberr_t ddl_rebuild_make(ddl_build_t *build, uint32_t size_pages);
/** It takes the place of the source; *counter counts it. */
WARN_UNUSED dberr_t ddl_rebuild_swap(ddl_build_t *build, uint64_t *counter);
/** Nothing is left of it. Failing, it can be called again. */
WARN_UNUSED dberr_t ddl_rebuild_discard(ddl_build_t *build);

#endif
