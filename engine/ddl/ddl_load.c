/* The steps of a load (WL#7277): of indexes of a table that is there (ADD INDEX), or of a table
with all of its indexes (rebuild).

Place: ddl/, above btr/ (bulk load), merge_sort.c and ddl_online.c; in the tables of ddl_index.c,
ddl_rebuild.c and ddl_import.c.

    for all indexes, or for as many at a time as there is memory for:
      scan    one pass over the clustered index feeds one merge sort per index; the first one of a
              rebuild loads the new clustered index too, which needs no sort if its order is that of
              the scan. Otherwise its keys are sorted, each with the old one, by which the load
              finds the row again: LOCK=SHARED keeps it there
      per index:
        merge   runs merged until one last merge can be read
        load    bottom-up, contents logged or not
        flush   if not logged, of ADD INDEX: the load's pages written, in parts
        sync    then: fsync
        announce  then: INDEX_LOAD
        apply   LOCK=NONE, ADD INDEX: what its rows have changed meanwhile, all but the last block
                of it
    flush, sync, announce  if not logged, of a rebuild: those of all loads, one fsync, INDEX_LOAD
              per index
    catch up  LOCK=NONE: what rows have changed meanwhile, for as long as whole blocks come
    commit    LOCK=NONE: the last blocks. One durable transaction

Invariants
1. (I16) INDEX_LOAD follows the fsync of all non-logged pages and comes before the commit in the
   log, so what is committed never depends on a page that neither log nor file has. The commit makes
   the record durable.
2. (I13, MDEV-19747) no page of the space has skipped doublewrite by init_on_flush at or after the
   last checkpoint when a load without redo starts: the flag is given only while log_optimize_ddl is
   OFF, switching it takes a full checkpoint and is refused for as long as a build exists
   (buf_set_log_optimize_ddl), and recovery goes on in the mode that the log was written in. Without
   that checkpoint buf_load_unlogged() tells.
3. Only rows without a delete mark are read. There is no MVCC, and no open transaction has
   changed the table, so a marked row is merely waiting for purge, which does not miss entries that
   are not there. LOCK=NONE: or the log tells what became of it (ddl_online.c).
4. The sorts of one scan share sort_buffer_size, each with enough to work in
   (merge_sort_memory_min): what is left over waits for the next scan. So memory never exceeds
   sort_buffer_size, whatever the number of indexes.
5. A table without rows has no load: no page of its indexes is written without redo, and there is
   nothing to flush and no INDEX_LOAD. As InnoDB, whose observer is made when the first row is
   buffered. */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "ddl/ddl_online.h"

#define LOAD_FILL_PERCENT 100U
#define FLUSH_PAGE_ROWS 64U /**< a step of so many rows more flushes a page more */

const dict_index_t *ddl_load_indexes(const ddl_build_t *build, uint32_t *n)
{
    *n = build->clustered != NULL ? build->table->n_indexes : build->n;
    return build->clustered != NULL ? build->clustered : build->indexes;
}

dberr_t ddl_load_prepare(ddl_build_t *build, const ddl_alter_t *alter)
{
    TRY(ddl_scan_prepare(build,
                         ddl_rec_size_max(build, build->table->indexes[0].tree.leaf_rec_size)));
    return alter->lock == LOCK_NONE ? ddl_online_create(build) : DB_SUCCESS;
}

/** A load begins. The pages of a new table carry one stamp, that of its clustered index. */
static dberr_t ddl_load_begin(ddl_build_t *build, const dict_index_t *index)
{
    const btr_t *tree = &index->tree;
    bool redo = !build->unlogged;
    index_id_t observer = build->clustered != NULL ? build->clustered->id : tree->id;
    PROBE_MARK(build_env(build)->probe, "load_begin space=%u index=%" PRIu64 " redo=%d",
               tree->space, tree->id, redo ? 1 : 0);
    PROBE_POINT(build_env(build)->probe, "ddl.load_begin");
    build->loaded = 0;
    return btr_bulk_create(build_pool(build), tree, redo ? 0 : observer, LOAD_FILL_PERCENT,
                           &build->bulk);
}

static dberr_t ddl_load_end(ddl_build_t *build)
{
    TRY(btr_bulk_finish(build->bulk));
    btr_bulk_free(build->bulk);
    build->bulk = NULL;
    PROBE_POINT(build_env(build)->probe, "ddl.loaded");
    return DB_SUCCESS;
}

/* ---- scan ---- */

/** How many of the indexes that are left the next scan can feed. */
static uint32_t ddl_scan_room(const ddl_build_t *build)
{
    uint64_t room =
        build->options->sort_buffer_size / merge_sort_memory_min(ddl_rec_size_max(build, 1));
    CHECK(room > 0); /* the least sort_buffer_size is room for the longest key */
    uint32_t left = build->n - build->current;
    return left > room ? (uint32_t)room : left;
}

/** Makes the sorts that the scan feeds, as many as there is memory for. */
static dberr_t ddl_scan_begin(ddl_build_t *build)
{
    uint32_t n = ddl_scan_room(build);
    build->scan_end = build->current + n;
    build_env(build)->stats.build_rescans += build->current > 0;
    for (uint32_t i = build->current; i < build->scan_end; i++) {
        const dict_index_t *index = &build->indexes[i];
        uint32_t size = ddl_sort_size(build, index);
        /* The info byte in front is 0 in every record: it does not change the order. */
        TRY(merge_sort_create(build_env(build), index->id, size,
                              index->clustered ? size : 1 + index->tree.key_len,
                              build->options->sort_buffer_size / n, &build->sorts[i]));
    }
    bool loads = build->clustered != NULL && !build->resorted && build->current == 0;
    return loads ? ddl_load_begin(build, build->clustered) : DB_SUCCESS;
}

/** Gives a row to the new clustered index, where its ids are 0: its history, if it has any, stays
with the old table. Its long values come first: nobody sees a table that is being built, and what a
crash leaves of it is dropped with its segments. */
static dberr_t ddl_feed_clustered(ddl_build_t *build, const byte *row)
{
    const dict_table_t *table = build->table;
    dict_ext_t ext;
    dict_ext_plan(table, row, NULL, &ext);
    for (uint32_t i = 0; i < table->n_cols; i++) {
        if (ext.is[i]) {
            uint32_t len = 0;
            const byte *value = dict_col_value(&table->cols[i], row, &len);
            TRY(btr_bulk_blob(build->bulk, value, len, &ext.refs[i]));
        }
    }
    uint32_t len = dict_row_to_rec(table, row, &ext, 0, 0, build->rec);
    dberr_t err = btr_bulk_add(build->bulk, build->rec, len);
    if (err == DB_DUPLICATE_KEY) { /* the row before has the same key of a new primary key */
        build->duplicate = build->clustered->name;
        return DB_SUCCESS;
    }
    return err;
}

/** Makes what is sorted for an index of a row of the source. made: the row of the new table. */
static void ddl_make_sorted(ddl_build_t *build, const dict_index_t *index, const byte *row,
                            const byte *made)
{
    if (!index->clustered) {
        dict_row_to_sec(index, made, build->rec);
        return;
    }
    build->rec[0] = 0;
    dict_row_to_pk(build->table, made, build->rec + 1);
    dict_row_to_pk(build->source, row, build->rec + 1 + build->table->pk_len);
}

/** Gives a row to the new clustered index and to the sorts. A load asks for room in the log. */
static dberr_t ddl_feed_row(ddl_build_t *build, void *ctx, const byte *row)
{
    (void)ctx;
    build->has_rows = true;
    const byte *made = row;
    if (build->clustered != NULL) {
        TRY(ddl_build_row(build, row));
        made = build->row;
    }
    if (build->bulk != NULL && build->duplicate == NULL) {
        TRY(ddl_feed_clustered(build, made));
    }
    for (uint32_t i = build->current; i < build->scan_end; i++) {
        ddl_make_sorted(build, &build->indexes[i], row, made);
        TRY(merge_sort_add(build->sorts[i], build->rec));
    }
    return DB_SUCCESS;
}

dberr_t ddl_step_scan(ddl_build_t *build, uint32_t max_rows, bool *over)
{
    TRY(build->scan_started ? DB_SUCCESS : ddl_scan_begin(build));
    TRY(ddl_scan_rows(build, max_rows, ddl_feed_row, NULL, over));
    return *over && build->bulk != NULL ? ddl_load_end(build) : DB_SUCCESS;
}

/* ---- merge and load ---- */

dberr_t ddl_step_merge(ddl_build_t *build, uint32_t max_rows, bool *over)
{
    (void)max_rows;
    TRY(merge_sort_step(build->sorts[build->current], over));
    return *over ? ddl_load_begin(build, &build->indexes[build->current]) : DB_SUCCESS;
}

dberr_t ddl_merge_position(const ddl_build_t *build, uint32_t *out)
{
    *out = merge_sort_progress(build->sorts[build->current]);
    return DB_SUCCESS;
}

/** Adds the row of the source whose keys, new and old, were sorted. */
static dberr_t ddl_load_row(ddl_build_t *build, const byte *keys)
{
    const dict_table_t *source = build->source;
    uint32_t len = 0;
    TRY(btr_get(build_pool(build), &source->indexes[0].tree,
                rec_payload(keys) + build->table->pk_len, build->own, &len));
    TRY(dict_rec_read(build_pool(build), source, build->own, len, build->batch));
    TRY(ddl_build_row(build, build->batch));
    build->loaded++;
    build_env(build)->stats.rows_resorted++;
    return ddl_feed_clustered(build, build->row);
}

/** Adds a record to the load. Two rows with one key of a unique index lie next to each other. */
static dberr_t ddl_load_record(ddl_build_t *build, const byte *rec)
{
    const dict_index_t *index = &build->indexes[build->current];
    if (index->clustered) {
        return ddl_load_row(build, rec);
    }
    if (index->unique && build->loaded > 0 && !dict_key_has_null(index, rec_payload(rec))
        && memcmp(rec_payload(rec), rec_payload(build->rec), index->unique_len) == 0) {
        if (!build_is_online(build)) {
            build->duplicate = index->name;
            return DB_SUCCESS;
        }
        ddl_online_note_duplicate(build);
    }
    memcpy(build->rec, rec, index->tree.leaf_rec_size);
    build->loaded++;
    return btr_bulk_add(build->bulk, rec, index->tree.leaf_rec_size);
}

dberr_t ddl_step_load(ddl_build_t *build, uint32_t max_rows, bool *over)
{
    dberr_t err = DB_SUCCESS;
    for (uint32_t n = 0; err == DB_SUCCESS && build->duplicate == NULL && n < max_rows; n++) {
        const byte *rec = NULL;
        err = merge_sort_next(build->sorts[build->current], &rec);
        AND_THEN(err, ddl_load_record(build, rec));
    }
    if (err != DB_NOT_FOUND) {
        return err;
    }
    *over = true;
    TRY(ddl_load_end(build));
    build_env(build)->stats.rowlog_loads_behind += ddl_online_is_behind(build);
    merge_sort_free(build->sorts[build->current]);
    build->sorts[build->current] = NULL;
    return DB_SUCCESS;
}

dberr_t ddl_load_position(const ddl_build_t *build, uint32_t *out)
{
    uint64_t n = merge_sort_n_records(build->sorts[build->current]);
    *out = (uint32_t)(PROGRESS_MAX * build->loaded / (n + 1));
    return DB_SUCCESS;
}

/* ---- flush ---- */

/** INDEX_LOAD; whatever makes the log durable next makes it durable too. */
static dberr_t ddl_index_load(ddl_build_t *build, const dict_index_t *index, bool aborted)
{
    buf_pool_t *pool = build_pool(build);
    const btr_t *tree = &index->tree;
    TRY(buf_log_free_check(pool));
    mtr_t mtr;
    mtr_start(&mtr, pool, MTR_LOG_ALL);
    mtr_index_load(&mtr, tree->space, tree->root, tree->id);
    mtr_commit(&mtr);
    fil_space_get(buf_fil(pool), tree->space)->enable_lsn = mtr.end_lsn;
    build_env(build)->stats.system_index_loads += tree->space == SPACE_SYSTEM;
    PROBE_MARK(build_env(build)->probe,
               "index_load space=%u index=%" PRIu64 " root=%u lsn=%" PRIu64 "%s", tree->space,
               tree->id, tree->root, mtr.end_lsn, aborted ? " aborted=1" : "");
    return DB_SUCCESS;
}

static dberr_t ddl_index_loads(ddl_build_t *build, const dict_index_t *indexes, uint32_t n,
                               bool aborted)
{
    for (uint32_t i = 0; i < n; i++) {
        TRY(ddl_index_load(build, &indexes[i], aborted));
    }
    return DB_SUCCESS;
}

/** Whose pages the next flush, fsync and INDEX_LOAD are about: those of one index, or of all that a
table is built with, *n of them, which carry the stamp of the first. */
static const dict_index_t *ddl_flushed(const ddl_build_t *build, uint32_t *n)
{
    *n = 1;
    return build->clustered != NULL ? ddl_load_indexes(build, n) : &build->indexes[build->current];
}

/** Between two of these steps anything else may happen. */
static void ddl_flush_goes_on(ddl_build_t *build)
{
    lsn_t lsn = log_lsn(buf_log(build_pool(build)));
    build_env(build)->stats.load_flushes_amid += build->flush_lsn != 0 && build->flush_lsn != lsn;
}

static void ddl_flush_pauses(ddl_build_t *build, bool goes_on)
{
    build->flush_lsn = goes_on ? log_lsn(buf_log(build_pool(build))) : 0;
}

dberr_t ddl_step_flush(ddl_build_t *build, uint32_t max_rows, bool *over)
{
    uint32_t n = 0;
    const dict_index_t *first = ddl_flushed(build, &n);
    ddl_flush_goes_on(build);
    TRY(buf_observer_flush(build_pool(build), first->tree.space, first->id,
                           1 + max_rows / FLUSH_PAGE_ROWS, over));
    ddl_flush_pauses(build, true);
    return DB_SUCCESS;
}

dberr_t ddl_step_sync(ddl_build_t *build, uint32_t max_rows, bool *over)
{
    (void)max_rows;
    ddl_flush_goes_on(build);
    TRY(buf_observer_sync(build_pool(build), build->table->space));
    PROBE_POINT(build_env(build)->probe, "ddl.flushed");
    ddl_flush_pauses(build, true);
    *over = true;
    return DB_SUCCESS;
}

dberr_t ddl_step_index_load(ddl_build_t *build, uint32_t max_rows, bool *over)
{
    uint32_t n = 0;
    const dict_index_t *first = ddl_flushed(build, &n);
    (void)max_rows;
    ddl_flush_goes_on(build);
    TRY(ddl_index_loads(build, first, n, false));
    PROBE_POINT(build_env(build)->probe, "ddl.index_load_logged");
    ddl_flush_pauses(build, false);
    *over = true;
    return DB_SUCCESS;
}

dberr_t ddl_load_undo(ddl_build_t *build)
{
    bool file_goes = build->clustered != NULL && !build->table->in_system;
    if (!build_is_unlogged(build) || file_goes) {
        return DB_SUCCESS;
    }
    uint32_t n = 0;
    const dict_index_t *first = ddl_flushed(build, &n);
    TRY(buf_observer_drop(build_pool(build), first->tree.space, first->id));
    /* Some of the pages may be in the file. */
    return ddl_index_loads(build, first, n, true);
}
