/* ADD INDEX, one or several in one statement (WL#7277).

Place: ddl/, above btr/ (bulk load) and merge_sort.c.

    begin   rows INCOMPLETE, durable; empty trees
    for all indexes, or for as many at a time as there is memory for:
      SCAN    one pass over the clustered index feeds one merge sort per index
      per index:
        MERGE   runs merged until one last merge can be read
        LOAD    bottom-up, contents logged or not
        FLUSH   if not logged: the load's pages written, fsync; then MLOG_INDEX_LOAD
    COMMIT  all READY in one durable transaction; or DUPLICATE: refused, and aborted by the caller

Invariants
1. (I16) MLOG_INDEX_LOAD follows the fsync of all non-logged pages and comes before the commit in the
   log, so a committed index never depends on a page that neither log nor file has. The commit makes
   the record durable.
2. (I13, MDEV-19747) no page of the space has skipped doublewrite by init_on_flush at or after the
   last checkpoint when a load without redo starts: the flag is given only while log_optimize_ddl is
   OFF, switching it takes a full checkpoint and is refused for as long as a build exists
   (buf_set_log_optimize_ddl), and recovery goes on in the mode that the log was written in.
3. Only rows without a delete mark are indexed. There is no MVCC, and no open transaction has
   changed the table, so a marked row is merely waiting for purge, which does not miss entries that
   are not there.
4. No page is pinned between two steps: the scan goes on behind the last primary key it saw.
5. The sorts of one scan share sort_buffer_size, each with enough to work in (merge_sort_memory_min):
   what is left over waits for the next scan. So memory never exceeds sort_buffer_size, whatever
   the number of indexes.
6. Between two steps anything may happen but changes and DDL of this table (LOCK=SHARED: there is no
   row log of changes that come after the scan). The INCOMPLETE indexes in the cached table object
   are what refuses them (dict_table_has_build). The build has its own copy of that object.
7. An interrupted load ends with INDEX_LOAD too. Its pages stay dirty until the tree is free: a logged
   change of one (its root may be made by a logged mtr) is lost with them when they leave the flush
   list unwritten, and from then on the checkpoint may pass it. What recovery can meet of such a page
   after that ends with its being free, or starts with its next initialisation.
8. A duplicate in a unique index ends the build at the same point as the commit would: steps go no further, and
   the last one refuses. So the statements alone tell which of them fails.
9. A table without rows has no load: no page of its indexes is written without redo, and there is nothing to
   flush and no INDEX_LOAD. As InnoDB, whose observer is made when the first row is buffered. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "btr/btr_bulk.h"
#include "ddl/ddl_int.h"
#include "ddl/merge_sort.h"

#define LOAD_FILL_PERCENT 100U

typedef enum ddl_phase {
    DDL_SCAN,
    DDL_MERGE,
    DDL_LOAD,
    DDL_FLUSH,
    DDL_COMMIT,
    DDL_DUPLICATE,
    DDL_DONE
} ddl_phase_t;

struct ddl_build {
    trx_sys_t *sys;
    ddl_phase_t phase;
    bool redo;             /**< contents are logged (log_optimize_ddl=OFF) */
    bool aborting;         /**< what is left can only be aborted */
    bool has_rows;         /**< a scan has fed the sorts */
    uint32_t n;            /**< indexes being built */
    uint32_t current;      /**< index in MERGE, LOAD or FLUSH; the first one of a SCAN */
    uint32_t scan_end;     /**< the indexes before this one have been fed, or are */
    uint64_t sort_bytes;   /**< for all sorts together */
    dict_table_t *table;   /**< own copy, new indexes included */
    dict_index_t *indexes; /**< the new ones, in table */
    merge_sort_t *sorts[INDEXES_MAX];
    btr_bulk_t *bulk;
    bool scan_started;
    byte *last_pk; /**< key of the last clustered record seen */
    byte *row;
    byte *rec;       /**< a record for the sorts; in a load, the record before */
    bool has_before; /**< the load has one */
};

static env_t *build_env(const ddl_build_t *build)
{
    return ddl_env(build->sys);
}

static buf_pool_t *build_pool(const ddl_build_t *build)
{
    return trx_sys_pool(build->sys);
}

/* ---- begin ---- */

/** A copy of the table object with the new indexes behind the old ones, laid out and with ids. */
static dberr_t ddl_build_define(ddl_build_t *build, const dict_table_t *table,
                                const ddl_index_def_t *defs, uint32_t n_defs)
{
    err_sink_t *sink = &build_env(build)->err;
    dberr_t err = dict_table_copy(trx_sys_dict(build->sys), table, &build->table);
    if (err != DB_SUCCESS) {
        return err;
    }
    dict_table_t *copy = build->table;
    build->indexes = &copy->indexes[copy->n_indexes];
    for (uint32_t i = 0; i < n_defs; i++) {
        err = ddl_define_index(copy, &defs[i], sink);
        if (err != DB_SUCCESS) {
            return err;
        }
    }
    build->n = n_defs;
    err = dict_table_layout(copy, buf_page_size(build_pool(build)), sink);
    for (uint32_t i = 0; err == DB_SUCCESS && i < n_defs; i++) {
        err = dict_new_index_id(trx_sys_dict(build->sys), &build->indexes[i].id);
        build->indexes[i].tree.id = build->indexes[i].id;
    }
    return err;
}

/** Commits a change of the new indexes' rows; the cache then has the table as the build has it. */
static dberr_t ddl_build_commit(ddl_build_t *build, ddl_change_fn change)
{
    dict_t *dict = trx_sys_dict(build->sys);
    dict_table_t *cached = NULL;
    dberr_t err = dict_table_copy(dict, build->table, &cached);
    if (err == DB_SUCCESS) {
        err = ddl_commit(build->sys, change, build);
    }
    if (err != DB_SUCCESS) {
        free(cached);
        return err;
    }
    dict_table_put(dict, cached);
    return DB_SUCCESS;
}

static dberr_t ddl_build_insert_rows(trx_t *trx, void *ctx)
{
    const ddl_build_t *build = ctx;
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; err == DB_SUCCESS && i < build->n; i++) {
        err = ddl_rows_insert_index(trx, trx_sys_dict(build->sys), &build->indexes[i]);
    }
    return err;
}

static uint32_t ddl_rec_size_max(const ddl_build_t *build)
{
    uint32_t size = 0;
    for (uint32_t i = 0; i < build->n; i++) {
        uint32_t rec_size = build->indexes[i].tree.leaf_rec_size;
        size = rec_size > size ? rec_size : size;
    }
    return size;
}

/** Makes the sorts that the next scan feeds, as many as there is memory for. */
static dberr_t ddl_scan_begin(ddl_build_t *build)
{
    uint64_t room = build->sort_bytes / merge_sort_memory_min(ddl_rec_size_max(build));
    uint32_t n = build->n - build->current;
    CHECK(room > 0); /* the least sort_buffer_size is room for the longest key */
    if (n > room) {
        n = (uint32_t)room;
    }
    build->scan_end = build->current + n;
    build->scan_started = false;
    build->phase = DDL_SCAN;
    build_env(build)->stats.build_rescans += build->current > 0;
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = build->current; err == DB_SUCCESS && i < build->scan_end; i++) {
        const btr_t *tree = &build->indexes[i].tree;
        /* The info byte in front is 0 in every record: it does not change the order. */
        err = merge_sort_create(build_env(build), tree->id, tree->leaf_rec_size, 1 + tree->key_len,
                                build->sort_bytes / n, &build->sorts[i]);
    }
    return err;
}

static dberr_t ddl_build_prepare(ddl_build_t *build, const dict_table_t *table,
                                 const ddl_index_def_t *defs, uint32_t n_defs)
{
    dberr_t err = ddl_build_define(build, table, defs, n_defs);
    if (err != DB_SUCCESS) {
        return err;
    }
    build->last_pk = malloc(build->table->pk_len);
    build->row = malloc(build->table->row_size);
    build->rec = malloc(ddl_rec_size_max(build));
    if (build->last_pk == NULL || build->row == NULL || build->rec == NULL) {
        return err_set(&build_env(build)->err, DB_OUT_OF_MEMORY, "no memory for an index build");
    }
    return ddl_scan_begin(build);
}

dberr_t ddl_build_begin(trx_sys_t *sys, const ddl_alter_t *alter, uint64_t sort_buffer_size,
                        ddl_build_t **out)
{
    env_t *env = ddl_env(sys);
    dict_table_t *table = NULL;
    dberr_t err = ddl_table_lock(sys, alter->table, &table);
    if (err != DB_SUCCESS) {
        return err;
    }
    if (alter->n_defs == 0) {
        return err_set(&env->err, DB_ERROR, "no index is named");
    }
    ddl_build_t *build = calloc(1, sizeof(*build));
    if (build == NULL) {
        return err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for an index build");
    }
    build->sys = sys;
    build->redo = !buf_log_optimize_ddl(trx_sys_pool(sys));
    build->sort_bytes = sort_buffer_size;
    err = ddl_build_prepare(build, table, alter->defs, alter->n_defs);
    if (err == DB_SUCCESS) {
        err = ddl_build_commit(build, ddl_build_insert_rows);
    }
    if (err != DB_SUCCESS) {
        ddl_build_free(build);
        return err;
    }
    PROBE_POINT(env->probe, "ddl.create_logged");
    err = ddl_trees_create(sys, build->indexes, build->n);
    if (err != DB_SUCCESS) {
        ddl_build_free(build);
        return err;
    }
    *out = build;
    return DB_SUCCESS;
}

/* ---- steps ---- */

static dberr_t ddl_scan_record(ddl_build_t *build, const byte *rec)
{
    if (rec_is_deleted(rec)) {
        return DB_SUCCESS;
    }
    dict_rec_to_row(build->table, rec, build->row);
    dberr_t err = DB_SUCCESS;
    build->has_rows = true;
    for (uint32_t i = build->current; err == DB_SUCCESS && i < build->scan_end; i++) {
        dict_row_to_sec(&build->indexes[i], build->row, build->rec);
        err = merge_sort_add(build->sorts[i], build->rec);
    }
    return err;
}

static dberr_t ddl_step_scan(ddl_build_t *build, uint32_t max_rows)
{
    const btr_t *tree = &build->table->indexes[0].tree;
    uint32_t pk_len = build->table->pk_len;
    btr_cursor_t cursor;
    const byte *rec = NULL;
    dberr_t err = btr_cursor_open(&cursor, build_pool(build), tree,
                                  build->scan_started ? build->last_pk : NULL, pk_len);
    if (err != DB_SUCCESS) {
        return err;
    }
    for (uint32_t n = 0; n < max_rows; n++) {
        err = btr_cursor_next(&cursor, &rec);
        if (err == DB_SUCCESS && n == 0 && build->scan_started
            && memcmp(rec_payload(rec), build->last_pk, pk_len) == 0) {
            err = btr_cursor_next(&cursor, &rec);
        }
        if (err == DB_SUCCESS) {
            err = ddl_scan_record(build, rec);
        }
        if (err != DB_SUCCESS) {
            break;
        }
        memcpy(build->last_pk, rec_payload(rec), pk_len);
        build->scan_started = true;
    }
    btr_cursor_close(&cursor);
    if (err == DB_NOT_FOUND) {
        build->phase = DDL_MERGE;
        err = DB_SUCCESS;
    }
    return err;
}

static dberr_t ddl_step_merge(ddl_build_t *build)
{
    const btr_t *tree = &build->indexes[build->current].tree;
    bool done = false;
    dberr_t err = merge_sort_step(build->sorts[build->current], &done);
    if (err != DB_SUCCESS || !done) {
        return err;
    }
    PROBE_MARK(build_env(build)->probe, "load_begin space=%u index=%" PRIu64 " redo=%d",
               tree->space, tree->id, build->redo ? 1 : 0);
    PROBE_POINT(build_env(build)->probe, "ddl.load_begin");
    err = btr_bulk_create(build_pool(build), tree, build->redo, LOAD_FILL_PERCENT, &build->bulk);
    build->has_before = false;
    if (err == DB_SUCCESS) {
        build->phase = DDL_LOAD;
    }
    return err;
}

static dberr_t ddl_next_index(ddl_build_t *build)
{
    build->current++;
    if (build->current < build->scan_end) {
        build->phase = DDL_MERGE;
    } else if (build->current < build->n) {
        return ddl_scan_begin(build);
    } else {
        build->phase = DDL_COMMIT;
    }
    return DB_SUCCESS;
}

/** Are there pages that the log says nothing of (WL#7277)? */
static bool ddl_is_unlogged(const ddl_build_t *build)
{
    return !build->redo && build->has_rows;
}

/** Adds a record to the load. Two rows with one key of a unique index lie next to each other. */
static dberr_t ddl_load_record(ddl_build_t *build, const byte *rec)
{
    const dict_index_t *index = &build->indexes[build->current];
    if (index->unique && build->has_before
        && memcmp(rec_payload(rec), rec_payload(build->rec), index->unique_len) == 0) {
        build->phase = DDL_DUPLICATE;
        return DB_SUCCESS;
    }
    memcpy(build->rec, rec, index->tree.leaf_rec_size);
    build->has_before = true;
    return btr_bulk_add(build->bulk, rec);
}

static dberr_t ddl_step_load(ddl_build_t *build, uint32_t max_rows)
{
    dberr_t err = DB_SUCCESS;
    for (uint32_t n = 0; err == DB_SUCCESS && build->phase == DDL_LOAD && n < max_rows; n++) {
        const byte *rec = NULL;
        err = merge_sort_next(build->sorts[build->current], &rec);
        if (err == DB_SUCCESS) {
            err = ddl_load_record(build, rec);
        }
    }
    if (err != DB_NOT_FOUND) {
        return err;
    }
    err = btr_bulk_finish(build->bulk);
    if (err != DB_SUCCESS) {
        return err;
    }
    btr_bulk_free(build->bulk);
    build->bulk = NULL;
    merge_sort_free(build->sorts[build->current]);
    build->sorts[build->current] = NULL;
    PROBE_POINT(build_env(build)->probe, "ddl.loaded");
    if (ddl_is_unlogged(build)) {
        build->phase = DDL_FLUSH;
        return DB_SUCCESS;
    }
    return ddl_next_index(build);
}

/** MLOG_INDEX_LOAD of the current index; whatever makes the log durable next makes it durable too. */
static dberr_t ddl_write_index_load(ddl_build_t *build, bool aborted)
{
    buf_pool_t *pool = build_pool(build);
    const btr_t *tree = &build->indexes[build->current].tree;
    dberr_t err = buf_log_free_check(pool);
    if (err != DB_SUCCESS) {
        return err;
    }
    mtr_t mtr;
    mtr_start(&mtr, pool, MTR_LOG_ALL);
    mtr_index_load(&mtr, tree->space, tree->root, tree->id);
    mtr_commit(&mtr);
    PROBE_MARK(build_env(build)->probe,
               "index_load space=%u index=%" PRIu64 " root=%u lsn=%" PRIu64 "%s", tree->space,
               tree->id, tree->root, mtr.end_lsn, aborted ? " aborted=1" : "");
    return DB_SUCCESS;
}

static dberr_t ddl_step_flush(ddl_build_t *build)
{
    buf_pool_t *pool = build_pool(build);
    const dict_index_t *index = &build->indexes[build->current];
    const btr_t *tree = &index->tree;
    dberr_t err = buf_observer_flush(pool, tree->space, tree->id);
    if (err != DB_SUCCESS) {
        return err;
    }
    PROBE_POINT(build_env(build)->probe, "ddl.flushed");
    err = ddl_write_index_load(build, false);
    if (err != DB_SUCCESS) {
        return err;
    }
    PROBE_POINT(build_env(build)->probe, "ddl.index_load_logged");
    return ddl_next_index(build);
}

static dberr_t ddl_build_update_rows(trx_t *trx, void *ctx)
{
    const ddl_build_t *build = ctx;
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; err == DB_SUCCESS && i < build->n; i++) {
        err = ddl_rows_update_index(trx, trx_sys_dict(build->sys), &build->indexes[i]);
    }
    return err;
}

static dberr_t ddl_step_commit(ddl_build_t *build)
{
    for (uint32_t i = 0; i < build->n; i++) {
        build->indexes[i].status = DICT_READY;
    }
    dberr_t err = ddl_build_commit(build, ddl_build_update_rows);
    if (err != DB_SUCCESS) {
        return err;
    }
    build->phase = DDL_DONE;
    PROBE_POINT(build_env(build)->probe, "ddl.committed");
    for (uint32_t i = 0; i < build->n; i++) {
        PROBE_MARK(build_env(build)->probe, "load_end space=%u index=%" PRIu64, build->table->space,
                   build->indexes[i].id);
    }
    return DB_SUCCESS;
}

static dberr_t ddl_step_duplicate(ddl_build_t *build)
{
    build_env(build)->stats.builds_duplicate++;
    return err_set(&build_env(build)->err, DB_DUPLICATE_KEY,
                   "table '%s': two rows have the same key of the unique index '%s'",
                   build->table->name, build->indexes[build->current].name);
}

dberr_t ddl_build_step(ddl_build_t *build, uint32_t max_rows, bool *done)
{
    CHECK(max_rows > 0);
    dberr_t err = DB_SUCCESS;
    if (build->aborting) {
        return err_set(&build_env(build)->err, DB_ERROR,
                       "the index build of table '%s' failed and could not be aborted",
                       build->table->name);
    }
    switch (build->phase) {
    case DDL_SCAN:
        err = ddl_step_scan(build, max_rows);
        break;
    case DDL_MERGE:
        err = ddl_step_merge(build);
        break;
    case DDL_LOAD:
        err = ddl_step_load(build, max_rows);
        break;
    case DDL_FLUSH:
        err = ddl_step_flush(build);
        break;
    case DDL_COMMIT:
        err = ddl_step_commit(build);
        break;
    case DDL_DUPLICATE:
        err = ddl_step_duplicate(build);
        break;
    case DDL_DONE:
        break;
    }
    *done = err == DB_SUCCESS && build->phase == DDL_DONE;
    return err;
}

bool ddl_build_is_loaded(const ddl_build_t *build)
{
    return build->phase == DDL_COMMIT || build->phase == DDL_DUPLICATE;
}

/* ---- end ---- */

static void ddl_build_free_bulk(ddl_build_t *build)
{
    btr_bulk_free(build->bulk);
    build->bulk = NULL;
}

/** Has a load begun, and is not yet flushed? */
static bool ddl_is_loading(const ddl_build_t *build)
{
    return build->phase == DDL_LOAD || build->phase == DDL_FLUSH || build->phase == DDL_DUPLICATE;
}

dberr_t ddl_build_abort(ddl_build_t *build)
{
    CHECK(build->phase != DDL_DONE);
    build->aborting = true;
    build_env(build)->stats.builds_aborted++;
    ddl_build_free_bulk(build);
    for (uint32_t i = 0; i < INDEXES_MAX; i++) {
        merge_sort_free(build->sorts[i]);
        build->sorts[i] = NULL;
    }
    if (build_env(build)->io_failed) {
        /* Nothing can be written any more: recovery drops the INCOMPLETE indexes. */
        return DB_IO_ERROR;
    }
    dberr_t err = DB_SUCCESS;
    if (ddl_is_unlogged(build) && ddl_is_loading(build)) {
        /* Pages without redo exist, some of them in the file: their space is logged again from here. */
        err = ddl_write_index_load(build, true);
    }
    if (err == DB_SUCCESS) {
        err = ddl_indexes_remove(build->sys, build->indexes, build->n);
    }
    /* Only now: while the tree is there, its pages hold the checkpoint back (invariant 7). */
    for (uint32_t i = 0; err == DB_SUCCESS && i < build->n; i++) {
        err = buf_observer_drop(build_pool(build), build->table->space, build->indexes[i].id);
    }
    return err;
}

void ddl_build_free(ddl_build_t *build)
{
    if (build == NULL) {
        return;
    }
    ddl_build_free_bulk(build);
    for (uint32_t i = 0; i < INDEXES_MAX; i++) {
        merge_sort_abandon(build->sorts[i]);
    }
    free(build->last_pk);
    free(build->row);
    free(build->rec);
    free(build->table);
    free(build);
}
