/* A build in steps (WL#7277): indexes of a table that is there (ADD INDEX), or a table with all of its indexes
(rebuild); and the steps of ALGORITHM=COPY, which has but one phase before its commit (ddl_copy.c).

Place: ddl/, above btr/ (bulk load) and merge_sort.c; below ddl_index.c, ddl_rebuild.c and ddl_copy.c,
which begin and commit.

    for all indexes, or for as many at a time as there is memory for:
      SCAN    one pass over the clustered index feeds one merge sort per index; the first one of a rebuild
              loads the new clustered index too, which needs no sort: its order is that of the scan
      per index:
        MERGE   runs merged until one last merge can be read
        LOAD    bottom-up, contents logged or not
        FLUSH   if not logged, of ADD INDEX: the load's pages written, fsync; then INDEX_LOAD
        APPLY   LOCK=NONE, ADD INDEX: what its rows have changed meanwhile, all but the last block of it
    FLUSH   if not logged, of a rebuild: those of all loads, one fsync; then INDEX_LOAD per index
    COMMIT  LOCK=NONE: the same of all logs, for as long as whole blocks come; then the last ones.
            One durable transaction; or DUPLICATE: refused, and aborted by the caller

Invariants
1. (I16) INDEX_LOAD follows the fsync of all non-logged pages and comes before the commit in the
   log, so what is committed never depends on a page that neither log nor file has. The commit makes
   the record durable.
2. (I13, MDEV-19747) no page of the space has skipped doublewrite by init_on_flush at or after the
   last checkpoint when a load without redo starts: the flag is given only while log_optimize_ddl is
   OFF, switching it takes a full checkpoint and is refused for as long as a build exists
   (buf_set_log_optimize_ddl), and recovery goes on in the mode that the log was written in.
3. Only rows without a delete mark are read. There is no MVCC, and no open transaction has
   changed the table, so a marked row is merely waiting for purge, which does not miss entries that
   are not there. LOCK=NONE: or the log tells what became of it (ddl_online.c).
4. No page is pinned between two steps: the scan goes on behind the last primary key it saw.
5. The sorts of one scan share sort_buffer_size, each with enough to work in (merge_sort_memory_min):
   what is left over waits for the next scan. So memory never exceeds sort_buffer_size, whatever
   the number of indexes.
6. Between two steps anything may happen but DDL of the table that is read, and changes of it unless they
   are logged (LOCK=NONE). `building` and `watch` of its cached object say so. The build has its own copy of that object.
7. A duplicate in a unique index ends the build at the same point as the commit would: steps go no further, and
   the last one refuses. So the statements alone tell which of them fails. LOCK=NONE: the last step looks for it.
8. A table without rows has no load: no page of its indexes is written without redo, and there is nothing to
   flush and no INDEX_LOAD. As InnoDB, whose observer is made when the first row is buffered. */
#include "ddl/ddl_build.h"
#include "ddl/ddl_online.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define LOAD_FILL_PERCENT 100U

/* ---- beginning ---- */

static dberr_t ddl_build_create(trx_sys_t *sys, const ddl_build_kind_t *kind,
                                const dict_table_t *table, ddl_build_t **out)
{
    ddl_build_t *build = calloc(1, sizeof(*build));
    if (build == NULL) {
        return err_set(&ddl_env(sys)->err, DB_OUT_OF_MEMORY, "no memory for an index build");
    }
    build->sys = sys;
    build->kind = kind;
    build->redo = !buf_log_optimize_ddl(trx_sys_pool(sys));
    dberr_t err = dict_table_copy(trx_sys_dict(sys), table, &build->source);
    if (err != DB_SUCCESS) {
        ddl_build_free(build);
        return err;
    }
    *out = build;
    return DB_SUCCESS;
}

/** The longest record that is sorted. */
static uint32_t ddl_rec_size_max(const ddl_build_t *build)
{
    uint32_t size = 1;
    for (uint32_t i = 0; i < build->n; i++) {
        uint32_t rec_size = build->indexes[i].tree.leaf_rec_size;
        size = rec_size > size ? rec_size : size;
    }
    return size;
}

/** How many of the indexes that are left the next scan can feed. */
static uint32_t ddl_scan_room(const ddl_build_t *build)
{
    uint64_t room =
        build->options->sort_buffer_size / merge_sort_memory_min(ddl_rec_size_max(build));
    CHECK(room > 0); /* the least sort_buffer_size is room for the longest key */
    uint32_t left = build->n - build->current;
    return left > room ? (uint32_t)room : left;
}

/** Makes the sorts that the next scan feeds, as many as there is memory for. */
static dberr_t ddl_scan_begin(ddl_build_t *build)
{
    uint32_t n = ddl_scan_room(build);
    build->scan_end = build->current + n;
    build->scan_started = false;
    build->phase = DDL_SCAN;
    build_env(build)->stats.build_rescans += build->current > 0;
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = build->current; err == DB_SUCCESS && i < build->scan_end; i++) {
        const btr_t *tree = &build->indexes[i].tree;
        /* The info byte in front is 0 in every record: it does not change the order. */
        err = merge_sort_create(build_env(build), tree->id, tree->leaf_rec_size, 1 + tree->key_len,
                                build->options->sort_buffer_size / n, &build->sorts[i]);
    }
    return err;
}

dberr_t ddl_build_prepare(ddl_build_t *build, ddl_phase_t first)
{
    build->last_pk = malloc(build->source->pk_len);
    build->batch = malloc((size_t)BATCH_ROWS * build->source->row_size);
    uint32_t rec_size = ddl_rec_size_max(build);
    uint32_t clust_size = build->table->indexes[0].tree.leaf_rec_size;
    build->rec = malloc(rec_size > clust_size ? rec_size : clust_size);
    if (build->last_pk == NULL || build->batch == NULL || build->rec == NULL) {
        return err_set(&build_env(build)->err, DB_OUT_OF_MEMORY, "no memory for an index build");
    }
    build->phase = first;
    dberr_t err = build->is_online ? ddl_online_create(build) : DB_SUCCESS;
    return err == DB_SUCCESS && first == DDL_SCAN ? ddl_scan_begin(build) : err;
}

static const ddl_build_kind_t *ddl_build_kind(const ddl_alter_t *alter)
{
    if (alter->algorithm == ALGORITHM_COPY) {
        return &DDL_BUILD_COPY;
    }
    switch (alter->kind) {
    case ALTER_ADD_INDEX:
        return &DDL_BUILD_ADD_INDEX;
    case ALTER_TRUNCATE:
        return &DDL_BUILD_TRUNCATE;
    case ALTER_DEFRAGMENT:
        return &DDL_BUILD_DEFRAGMENT;
    case ALTER_EXPORT:
        return &DDL_BUILD_EXPORT;
    case ALTER_IMPORT:
        return &DDL_BUILD_IMPORT;
    default:
        return &DDL_BUILD_REBUILD;
    }
}

dberr_t ddl_build_begin(trx_sys_t *sys, const ddl_alter_t *alter, const engine_options_t *options,
                        ddl_build_t **out)
{
    const ddl_build_kind_t *kind = ddl_build_kind(alter);
    dict_table_t *table = NULL;
    ddl_build_t *build = NULL;
    dberr_t err = ddl_table_lock(sys, alter->table, &table);
    if (err == DB_SUCCESS) {
        err = ddl_build_create(sys, kind, table, &build);
    }
    if (err == DB_SUCCESS) {
        build->options = options;
        build->is_online = alter->lock == LOCK_NONE;
        err = kind->start(build, alter);
    }
    if (err != DB_SUCCESS) {
        ddl_build_free(build);
        return err;
    }
    dict_table_set_building(trx_sys_dict(sys), build->source->id, true);
    dict_table_set_watch(trx_sys_dict(sys), build->source->id, kind->watch);
    if (alter->lock == LOCK_EXCLUSIVE) {
        dict_table_set_exclusive(trx_sys_dict(sys), build->source->id);
    }
    if (build->online != NULL) {
        ddl_online_start(build);
    }
    *out = build;
    return DB_SUCCESS;
}

dberr_t ddl_build_commit(ddl_build_t *build, ddl_change_fn change)
{
    dict_table_t *cached = NULL;
    dberr_t err = dict_table_copy(trx_sys_dict(build->sys), build->table, &cached);
    return err == DB_SUCCESS ? ddl_commit_put(build->sys, change, build, cached) : err;
}

dberr_t ddl_build_make_durable(ddl_build_t *build)
{
    buf_pool_t *pool = build_pool(build);
    return buf_log_wait(pool, log_lsn(buf_log(pool)), true);
}

/* ---- steps ---- */

/** The load of one index. The pages of a rebuild's loads carry one stamp, that of its clustered index. */
static dberr_t ddl_load_begin(ddl_build_t *build, const dict_index_t *index, btr_bulk_t **out)
{
    const btr_t *tree = &index->tree;
    index_id_t observer = build->kind->rebuild ? build->table->indexes[0].id : tree->id;
    PROBE_MARK(build_env(build)->probe, "load_begin space=%u index=%" PRIu64 " redo=%d",
               tree->space, tree->id, build->redo ? 1 : 0);
    PROBE_POINT(build_env(build)->probe, "ddl.load_begin");
    return btr_bulk_create(build_pool(build), tree, build->redo ? 0 : observer, LOAD_FILL_PERCENT,
                           out);
}

static dberr_t ddl_load_end(ddl_build_t *build, btr_bulk_t **bulk)
{
    dberr_t err = btr_bulk_finish(*bulk);
    if (err == DB_SUCCESS) {
        btr_bulk_free(*bulk);
        *bulk = NULL;
        PROBE_POINT(build_env(build)->probe, "ddl.loaded");
    }
    return err;
}

/** Gives a row to the new clustered index, where its ids are 0: its history, if it has any, stays with the old
table. Its long values come first: nobody sees a table that is being built, and what a crash leaves of it is
dropped with its segments. */
static dberr_t ddl_feed_clustered(ddl_build_t *build, const byte *row)
{
    const dict_table_t *table = build->table;
    dict_ext_t ext;
    dberr_t err = DB_SUCCESS;
    dict_ext_plan(table, row, NULL, &ext);
    for (uint32_t i = 0; err == DB_SUCCESS && i < table->n_cols; i++) {
        if (ext.is[i]) {
            uint32_t len = 0;
            const byte *value = dict_col_value(&table->cols[i], row, &len);
            err = btr_bulk_blob(build->rows, value, len, &ext.refs[i]);
        }
    }
    if (err != DB_SUCCESS) {
        return err;
    }
    uint32_t len = dict_row_to_rec(table, row, &ext, 0, 0, build->rec);
    return btr_bulk_add(build->rows, build->rec, len);
}

/** Gives a row to the new clustered index and to the sorts. A load asks for room in the log. */
static dberr_t ddl_feed_row(ddl_build_t *build, void *ctx, const byte *row)
{
    (void)ctx;
    dberr_t err = DB_SUCCESS;
    build->has_rows = true;
    if (build->rows != NULL) {
        err = ddl_feed_clustered(build, row);
    }
    for (uint32_t i = build->current; err == DB_SUCCESS && i < build->scan_end; i++) {
        dict_row_to_sec(&build->indexes[i], row, build->rec);
        err = merge_sort_add(build->sorts[i], build->rec);
    }
    return err;
}

/** What follows when an index is loaded, or a scan has fed nothing. */
static dberr_t ddl_next_index(ddl_build_t *build)
{
    if (build->current < build->scan_end) {
        build->phase = DDL_MERGE;
    } else if (build->current < build->n) {
        return ddl_scan_begin(build);
    } else if (build->kind->rebuild && build_is_unlogged(build) && build->phase != DDL_FLUSH) {
        build->phase = DDL_FLUSH;
    } else {
        build->phase = DDL_COMMIT;
    }
    return DB_SUCCESS;
}

static dberr_t ddl_step_scan(ddl_build_t *build, uint32_t max_rows)
{
    dberr_t err = DB_SUCCESS;
    if (build->kind->rebuild && build->current == 0 && !build->scan_started
        && build->rows == NULL) {
        err = ddl_load_begin(build, &build->table->indexes[0], &build->rows);
    }
    if (err == DB_SUCCESS) {
        err = ddl_build_scan(build, max_rows, ddl_feed_row, NULL);
    }
    if (err != DB_NOT_FOUND) {
        return err;
    }
    err = build->rows != NULL ? ddl_load_end(build, &build->rows) : DB_SUCCESS;
    return err == DB_SUCCESS ? ddl_next_index(build) : err;
}

static dberr_t ddl_step_merge(ddl_build_t *build)
{
    bool done = false;
    dberr_t err = merge_sort_step(build->sorts[build->current], &done);
    if (err != DB_SUCCESS || !done) {
        return err;
    }
    err = ddl_load_begin(build, &build->indexes[build->current], &build->bulk);
    build->has_before = false;
    build->loaded = 0;
    if (err == DB_SUCCESS) {
        build->phase = DDL_LOAD;
    }
    return err;
}

/** Adds a record to the load. Two rows with one key of a unique index lie next to each other. */
static dberr_t ddl_load_record(ddl_build_t *build, const byte *rec)
{
    const dict_index_t *index = &build->indexes[build->current];
    if (index->unique && build->has_before && !dict_key_has_null(index, rec_payload(rec))
        && memcmp(rec_payload(rec), rec_payload(build->rec), index->unique_len) == 0) {
        if (build->online == NULL) {
            build->phase = DDL_DUPLICATE;
            build->duplicate = index->name;
            return DB_SUCCESS;
        }
        ddl_online_note_duplicate(build);
    }
    memcpy(build->rec, rec, index->tree.leaf_rec_size);
    build->has_before = true;
    build->loaded++;
    return btr_bulk_add(build->bulk, rec, index->tree.leaf_rec_size);
}

/** The current index is loaded, durably if its pages are not logged. */
static dberr_t ddl_index_is_loaded(ddl_build_t *build)
{
    if (build->online != NULL && !build->kind->rebuild) {
        build->phase = DDL_APPLY;
        return DB_SUCCESS;
    }
    build->current++;
    return ddl_next_index(build);
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
    err = ddl_load_end(build, &build->bulk);
    if (err != DB_SUCCESS) {
        return err;
    }
    build_env(build)->stats.rowlog_loads_behind +=
        build->online != NULL && ddl_online_is_behind(build);
    merge_sort_free(build->sorts[build->current]);
    build->sorts[build->current] = NULL;
    if (!build->kind->rebuild && build_is_unlogged(build)) {
        build->phase = DDL_FLUSH;
        return DB_SUCCESS;
    }
    return ddl_index_is_loaded(build);
}

dberr_t ddl_build_index_load(ddl_build_t *build, const dict_index_t *index, bool aborted)
{
    buf_pool_t *pool = build_pool(build);
    const btr_t *tree = &index->tree;
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

/** The indexes whose pages one flush writes: the current one, or all of a rebuild. */
static dberr_t ddl_step_flush(ddl_build_t *build)
{
    bool all = build->kind->rebuild;
    const dict_index_t *first = all ? &build->table->indexes[0] : &build->indexes[build->current];
    uint32_t n = all ? build->table->n_indexes : 1;
    dberr_t err = buf_observer_flush(build_pool(build), first->tree.space, first->id);
    if (err != DB_SUCCESS) {
        return err;
    }
    PROBE_POINT(build_env(build)->probe, "ddl.flushed");
    for (uint32_t i = 0; err == DB_SUCCESS && i < n; i++) {
        err = ddl_build_index_load(build, &first[i], false);
    }
    if (err != DB_SUCCESS) {
        return err;
    }
    PROBE_POINT(build_env(build)->probe, "ddl.index_load_logged");
    return all ? ddl_next_index(build) : ddl_index_is_loaded(build);
}

static dberr_t ddl_step_apply(ddl_build_t *build, uint32_t max_rows)
{
    bool behind = false;
    dberr_t err = ddl_online_apply(build, build->current, max_rows, &behind);
    if (err != DB_SUCCESS || behind) {
        return err;
    }
    PROBE_POINT(build_env(build)->probe, "ddl.applied");
    build->current++;
    return ddl_next_index(build);
}

/** Everything is loaded. */
static dberr_t ddl_step_commit(ddl_build_t *build, uint32_t max_rows)
{
    if (build->online != NULL && ddl_online_is_behind(build)) {
        return ddl_online_catch_up(build, max_rows);
    }
    dberr_t err = build->online != NULL ? ddl_online_finish(build) : DB_SUCCESS;
    if (err == DB_SUCCESS) {
        err = build->kind->commit(build);
    }
    if (err != DB_SUCCESS) {
        return err;
    }
    ddl_online_stop(build);
    const dict_index_t *first = build->kind->rebuild ? &build->table->indexes[0] : build->indexes;
    uint32_t n = build->kind->rebuild ? build->table->n_indexes : build->n;
    for (uint32_t i = 0; i < n; i++) {
        PROBE_MARK(build_env(build)->probe, "load_end space=%u index=%" PRIu64, build->table->space,
                   first[i].id);
    }
    return DB_SUCCESS;
}

dberr_t ddl_build_refuse_duplicate(ddl_build_t *build, const char *index)
{
    build_env(build)->stats.builds_duplicate++;
    return err_set(&build_env(build)->err, DB_DUPLICATE_KEY,
                   "table '%s': two rows have the same key of the unique index '%s'",
                   build->source->name, index);
}

dberr_t ddl_build_step(ddl_build_t *build, uint32_t max_rows, bool *done)
{
    CHECK(max_rows > 0);
    dberr_t err = DB_SUCCESS;
    if (build->aborting) {
        return err_set(&build_env(build)->err, DB_ERROR,
                       "the build of table '%s' failed and could not be aborted",
                       build->source->name);
    }
    switch (build->phase) {
    case DDL_DEFRAGMENT:
        err = ddl_step_defragment(build);
        break;
    case DDL_IMPORT:
        err = ddl_step_import(build, max_rows);
        break;
    case DDL_COPY:
        err = ddl_step_copy(build, max_rows);
        break;
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
    case DDL_APPLY:
        err = ddl_step_apply(build, max_rows);
        break;
    case DDL_COMMIT:
        err = ddl_step_commit(build, max_rows);
        break;
    case DDL_DUPLICATE:
        err = ddl_build_refuse_duplicate(build, build->duplicate);
        break;
    case DDL_DONE:
        break;
    }
    if (err == DB_SUCCESS) {
        err = ddl_build_note_progress(build);
    }
    *done = err == DB_SUCCESS && build->phase == DDL_DONE;
    return err;
}

bool ddl_build_is_loaded(const ddl_build_t *build)
{
    bool behind = build->online != NULL && ddl_online_is_behind(build);
    return (build->phase == DDL_COMMIT && !behind) || build->phase == DDL_DUPLICATE;
}

/* ---- end ---- */

static void ddl_build_free_bulks(ddl_build_t *build)
{
    btr_bulk_free(build->rows);
    btr_bulk_free(build->bulk);
    build->rows = NULL;
    build->bulk = NULL;
}

dberr_t ddl_build_abort(ddl_build_t *build)
{
    if (build->phase == DDL_DONE) {
        return DB_SUCCESS; /* what failed came after the commit */
    }
    build->aborting = true;
    build_env(build)->stats.builds_aborted++;
    ddl_build_free_bulks(build);
    ddl_online_stop(build);
    for (uint32_t i = 0; i < INDEXES_MAX; i++) {
        merge_sort_free(build->sorts[i]);
        build->sorts[i] = NULL;
    }
    if (build_env(build)->io_failed) {
        /* Nothing can be written any more: recovery drops what is INCOMPLETE. */
        return DB_IO_ERROR;
    }
    dberr_t err = build->kind->discard(build);
    if (err == DB_SUCCESS) {
        dict_table_set_building(trx_sys_dict(build->sys), build->source->id, false);
    }
    return err;
}

void ddl_build_free(ddl_build_t *build)
{
    if (build == NULL) {
        return;
    }
    ddl_build_free_bulks(build);
    ddl_online_free(build);
    for (uint32_t i = 0; i < INDEXES_MAX; i++) {
        merge_sort_abandon(build->sorts[i]);
    }
    if (build->table != build->source) {
        free(build->table);
    }
    free(build->source);
    free(build->defragment);
    ddl_import_free(build);
    free(build->last_pk);
    free(build->batch);
    free(build->rec);
    free(build->row);
    free(build);
}
