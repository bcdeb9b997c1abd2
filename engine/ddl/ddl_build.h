/** Private to ddl/: a build in steps, as ADD INDEX and the rebuild of a table share it. */
#ifndef DDL_DDL_BUILD_H
#define DDL_DDL_BUILD_H

#include "btr/btr_bulk.h"
#include "ddl/ddl_int.h"
#include "ddl/merge_sort.h"
#include "ddl/row_log.h"

#define BATCH_ROWS 16U /**< rows that a scan copies at a time */

typedef enum ddl_phase {
    DDL_DEFRAGMENT,
    DDL_IMPORT,
    DDL_COPY,
    DDL_SCAN,
    DDL_MERGE,
    DDL_LOAD,
    DDL_FLUSH,
    DDL_APPLY,
    DDL_COMMIT,
    DDL_DUPLICATE,
    DDL_DONE
} ddl_phase_t;

/** What tells the kinds of builds apart. */
typedef struct ddl_build_kind {
    /** Makes the durable beginning of it; failing, leaves nothing but memory. source is set. */
    dberr_t (*start)(ddl_build_t *build, const ddl_alter_t *alter);
    /** Makes what was built appear, durably. phase is DDL_DONE from the commit on. */
    dberr_t (*commit)(ddl_build_t *build);
    /** Leaves nothing of it; failing, it can be called again. */
    dberr_t (*discard)(ddl_build_t *build);
    bool rebuild;                  /**< a table is made, its clustered index first */
    const dict_row_watch_t *watch; /**< rows change meanwhile, and this is told of it; or NULL */
} ddl_build_kind_t;

typedef struct ddl_online ddl_online_t;
typedef struct ddl_defragment ddl_defragment_t;
typedef struct ddl_import ddl_import_t;

struct ddl_build {
    trx_sys_t *sys;
    const ddl_build_kind_t *kind;
    ddl_phase_t phase;
    bool redo;         /**< contents are logged (log_optimize_ddl=OFF) */
    bool aborting;     /**< what is left can only be aborted */
    bool has_rows;     /**< a scan has met some */
    uint32_t n;        /**< indexes that are sorted */
    uint32_t current;  /**< index in MERGE, LOAD, FLUSH or APPLY; the first one of a SCAN */
    uint32_t scan_end; /**< the indexes before this one have been fed, or are */
    const engine_options_t *options; /**< the caller's */
    dict_table_t *source;            /**< own copy: the table whose rows are read */
    dict_table_t *table;   /**< own copy: what is built, or gets indexes; ADD INDEX: source */
    dict_index_t *indexes; /**< the n of them, in table */
    merge_sort_t *sorts[INDEXES_MAX];
    btr_bulk_t *rows; /**< rebuild: the load of the clustered index, during the first scan */
    btr_bulk_t *bulk; /**< that of the current index */
    bool scan_started;
    byte *last_pk; /**< key of the last clustered record seen */
    byte *batch;   /**< rows that the scan has copied, n_rows of them */
    uint32_t n_rows;
    byte *rec;                    /**< a record for the sorts; in a load, the record before */
    byte *row;                    /**< COPY: a row as the new table has it */
    bool has_before;              /**< the load has one */
    const char *duplicate;        /**< DDL_DUPLICATE: name of the index, in table */
    bool is_online;               /**< LOCK=NONE */
    ddl_online_t *online;         /**< LOCK=NONE (ddl_online.c), else NULL */
    ddl_defragment_t *defragment; /**< of a defragmentation (ddl_defragment.c), else NULL */
    ddl_import_t *import;         /**< of an import (ddl_import.c), else NULL */
    uint64_t loaded;              /**< records of the current load */
    uint32_t progress;            /**< in 10000ths, never falling (ddl_progress.c) */
};

static inline env_t *build_env(const ddl_build_t *build)
{
    return ddl_env(build->sys);
}

static inline buf_pool_t *build_pool(const ddl_build_t *build)
{
    return trx_sys_pool(build->sys);
}

/** Are there pages that the log says nothing of (WL#7277)? */
static inline bool build_is_unlogged(const ddl_build_t *build)
{
    return !build->redo && build->has_rows;
}

extern const ddl_build_kind_t DDL_BUILD_ADD_INDEX;  /**< ddl_index.c */
extern const ddl_build_kind_t DDL_BUILD_REBUILD;    /**< ddl_rebuild.c */
extern const ddl_build_kind_t DDL_BUILD_TRUNCATE;   /**< ddl_rebuild.c */
extern const ddl_build_kind_t DDL_BUILD_COPY;       /**< ddl_copy.c */
extern const ddl_build_kind_t DDL_BUILD_DEFRAGMENT; /**< ddl_defragment.c */
extern const ddl_build_kind_t DDL_BUILD_EXPORT;     /**< ddl_export.c */
extern const ddl_build_kind_t DDL_BUILD_IMPORT;     /**< ddl_import.c */

/** Memory for the steps, when table, indexes and n are set; first: DDL_COPY or DDL_SCAN. */
WARN_UNUSED dberr_t ddl_build_prepare(ddl_build_t *build, ddl_phase_t first);
/** What the scan does with a row of the source; no page is pinned. */
typedef dberr_t (*ddl_row_fn)(ddl_build_t *build, void *ctx, const byte *row);
/** The rows of the next records, at most max_rows of them; marked ones are passed. DB_NOT_FOUND: there were
fewer. */
WARN_UNUSED dberr_t ddl_build_scan(ddl_build_t *build, uint32_t max_rows, ddl_row_fn fn, void *ctx);
/** Commits a change of the catalogue; the cache then has the built table as the build has it. */
WARN_UNUSED dberr_t ddl_build_commit(ddl_build_t *build, ddl_change_fn change);
/** The end of a statement that commits nothing: as every one of data definition it makes durable what was
committed before. */
WARN_UNUSED dberr_t ddl_build_make_durable(ddl_build_t *build);
/** DB_DUPLICATE_KEY, with the name of the index. */
WARN_UNUSED dberr_t ddl_build_refuse_duplicate(ddl_build_t *build, const char *index);
/** How far the build is after a step. */
WARN_UNUSED dberr_t ddl_build_note_progress(ddl_build_t *build);
/** INDEX_LOAD; whatever makes the log durable next makes it durable too. */
WARN_UNUSED dberr_t ddl_build_index_load(ddl_build_t *build, const dict_index_t *index,
                                         bool aborted);

/* ---- ddl_import.c ---- */

/** A step of DDL_IMPORT. */
WARN_UNUSED dberr_t ddl_step_import(ddl_build_t *build, uint32_t max_pages);
/** Memory, and the exported file. */
void ddl_import_free(ddl_build_t *build);

/* ---- ddl_defragment.c ---- */

/** A step of DDL_DEFRAGMENT. */
WARN_UNUSED dberr_t ddl_step_defragment(ddl_build_t *build);
/** How much of it is done, in 10000ths. */
WARN_UNUSED dberr_t ddl_defragment_position(const ddl_build_t *build, uint32_t *out);

/* ---- ddl_copy.c, ddl_rebuild.c: what they share ---- */

/** build->table: as the statement wants it, with ids of its own, INCOMPLETE, under an intermediate name. */
WARN_UNUSED dberr_t ddl_rebuild_define(ddl_build_t *build, const ddl_alter_t *alter,
                                       const char *prefix);
/** Its rows, durably, its file and its empty trees; or nothing of that. size_pages: of the file, which is left
empty if its trees have roots already; 0: as a new one. */
WARN_UNUSED dberr_t ddl_rebuild_make(ddl_build_t *build, uint32_t size_pages);
/** It takes the place of the source. phase is DDL_DONE from the commit on. */
WARN_UNUSED dberr_t ddl_rebuild_swap(ddl_build_t *build);
/** Nothing is left of it. Failing, it can be called again. */
WARN_UNUSED dberr_t ddl_rebuild_discard(ddl_build_t *build);
/** A step of DDL_COPY. */
WARN_UNUSED dberr_t ddl_step_copy(ddl_build_t *build, uint32_t max_rows);

#endif
