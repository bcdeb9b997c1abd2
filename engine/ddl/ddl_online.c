/* Builds with LOCK=NONE: rows change while a build goes on, and what it misses is applied
afterwards.

Place: ddl/, above row_log.c, below ddl_build.c and ddl_load.c. trx/ tells of each change
(dict_row_watch_t).

    ADD INDEX   a log per index: its entries        put KEY, delete KEY
    rebuild     one log: rows of the old table      put ROW, delete PRIMARY KEY

Invariants
1. (I26) What is built equals the rows of the table at the commit. The scan reads the newest version
   of each row, whoever made it; each change from the beginning on is in the log, in order,
   rollbacks too; putting what is there and deleting what is not is nothing. So whether the scan has
   met a change or not, the last operation on an entry or row decides. At the commit no transaction
   is open that has changed the table: the newest versions are the committed ones.
2. Full blocks are applied while rows go on changing; what is in the last one when the table is not
   changed any more, in the step of the commit.
3. (I16) A log is applied to pages that the log of the database says nothing of only after they are
   flushed and INDEX_LOAD is written. Its own changes are ordinary logged ones, onto these pages.
4. Uniqueness is decided at the end, by what is there then. Until then two rows may have one key:
   the scan has met one of them before it changed, the other one after that.
5. Rows are logged as the old table has them, and become rows of the new one when they are applied
   (ddl_build_row).
6. A log that lacks a change is not applied any more, and fails the build in its last step: so the
   statements alone tell which one fails, and what may be changed before that. */
#include "ddl/ddl_online.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/** The logs: one of rows, which a new table gets, or one for each index, of its entries. */
struct ddl_online {
    dict_row_watch_t watch;
    bool of_rows;
    uint32_t n; /**< logs; 0 when it is stopped */
    row_log_t *logs[INDEXES_MAX];
    bool has_duplicate[INDEXES_MAX]; /**< of each index: its load has met one */
    byte *row;                       /**< of a rebuild: a version that goes, or its key, */
    byte *rec;                       /**< and a record of it */
    byte *before;                    /**< secondary records of both */
    byte *after;
};

/* ---- logging ---- */

/** The secondary records before and after a change: what is different goes into the log of the
index. */
static void ddl_online_log_entry(const ddl_build_t *build, uint32_t i, const byte *before,
                                 const byte *after)
{
    const ddl_online_t *online = build->online;
    const dict_index_t *index = &build->indexes[i];
    if (before != NULL) {
        dict_row_to_sec(index, before, online->before);
    }
    if (after != NULL) {
        dict_row_to_sec(index, after, online->after);
    }
    if (before != NULL && after != NULL
        && memcmp(online->before, online->after, index->tree.leaf_rec_size) == 0) {
        return;
    }
    if (before != NULL) {
        row_log_add(online->logs[i], ROW_LOG_DELETE, rec_payload(online->before));
    }
    if (after != NULL) {
        row_log_add(online->logs[i], ROW_LOG_PUT, rec_payload(online->after));
    }
}

static void ddl_online_entries_changed(void *ctx, const byte *before, const byte *after)
{
    const ddl_build_t *build = ctx;
    for (uint32_t i = 0; i < build->online->n; i++) {
        ddl_online_log_entry(build, i, before, after);
    }
}

static void ddl_online_row_changed(void *ctx, const byte *before, const byte *after)
{
    const ddl_build_t *build = ctx;
    const ddl_online_t *online = build->online;
    if (online->n == 0) {
        return;
    }
    if (after != NULL) {
        row_log_add(online->logs[0], ROW_LOG_PUT, after);
    } else {
        dict_row_to_pk(build->source, before, online->row);
        row_log_add(online->logs[0], ROW_LOG_DELETE, online->row);
    }
}

/* ---- beginning ---- */

static dberr_t ddl_online_alloc(ddl_build_t *build)
{
    ddl_online_t *online = calloc(1, sizeof(*online));
    build->online = online;
    if (online != NULL) {
        online->of_rows = build->clustered != NULL;
        online->watch.changed =
            online->of_rows ? ddl_online_row_changed : ddl_online_entries_changed;
        online->watch.ctx = build;
        build->watch = &online->watch;
        online->row = malloc(build->table->row_size);
        online->rec = malloc(ddl_rec_size_max(build, build->table->indexes[0].tree.leaf_rec_size));
        online->before = malloc(ddl_rec_size_max(build, 1));
        online->after = malloc(ddl_rec_size_max(build, 1));
    }
    if (online == NULL || online->row == NULL || online->rec == NULL || online->before == NULL
        || online->after == NULL) {
        return err_set(&build_env(build)->err, DB_OUT_OF_MEMORY, "no memory for a row log");
    }
    return DB_SUCCESS;
}

dberr_t ddl_online_create(ddl_build_t *build)
{
    TRY(ddl_online_alloc(build));
    bool of_rows = build->clustered != NULL;
    uint32_t n = of_rows ? 1 : build->n;
    for (uint32_t i = 0; i < n; i++) {
        const btr_t *tree = of_rows ? &build->clustered->tree : &build->indexes[i].tree;
        row_log_def_t def = {.table = build->source->name,
                             .id = tree->id,
                             .put_len = of_rows ? build->source->row_size : tree->key_len,
                             .delete_len = of_rows ? build->source->pk_len : tree->key_len,
                             .block_bytes = build->options->sort_buffer_size / n,
                             .max_bytes = build->options->online_alter_log_max_size};
        TRY(row_log_create(build_env(build), &def, &build->online->logs[i]));
        build->online->n++;
    }
    return DB_SUCCESS;
}

/* ---- applying ---- */

/** Makes the entry be there, or not be there. rec: its record, info byte 0. */
static dberr_t ddl_online_set_entry(ddl_build_t *build, const dict_index_t *index, row_log_op_t op,
                                    const byte *rec)
{
    dberr_t err = DB_SUCCESS;
    if (op == ROW_LOG_PUT) {
        err = btr_insert(build_pool(build), &index->tree, rec, index->tree.leaf_rec_size);
        return err == DB_DUPLICATE_KEY ? DB_SUCCESS : err;
    }
    err = btr_delete(build_pool(build), &index->tree, rec_payload(rec));
    return err == DB_NOT_FOUND ? DB_SUCCESS : err;
}

/** All entries of a row of the new table. */
static dberr_t ddl_online_set_entries(ddl_build_t *build, row_log_op_t op, const byte *row)
{
    for (uint32_t i = 0; i < build->n; i++) {
        dict_row_to_sec(&build->indexes[i], row, build->online->before);
        TRY(ddl_online_set_entry(build, &build->indexes[i], op, build->online->before));
    }
    return DB_SUCCESS;
}

/** Whatever the new table has under this primary key goes, with its entries. */
static dberr_t ddl_online_remove_row(ddl_build_t *build, const byte *pk)
{
    const ddl_online_t *online = build->online;
    const dict_index_t *clustered = &build->table->indexes[0];
    uint32_t len = 0;
    dberr_t err = btr_get(build_pool(build), &clustered->tree, pk, online->rec, &len);
    if (err != DB_SUCCESS) {
        return err == DB_NOT_FOUND ? DB_SUCCESS : err;
    }
    TRY(dict_rec_read(build_pool(build), build->table, online->rec, len, online->row));
    TRY(ddl_online_set_entries(build, ROW_LOG_DELETE, online->row));
    dict_ext_t ext;
    dict_rec_ext(build->table, online->rec, &ext);
    TRY(row_free_chains(build_pool(build), build->table, pk, &ext, NULL,
                        &build_env(build)->stats.blobs_reapplied));
    return btr_delete(build_pool(build), &clustered->tree, pk);
}

/** A row of the source. */
static dberr_t ddl_online_put_row(ddl_build_t *build, const byte *source_row)
{
    const ddl_online_t *online = build->online;
    TRY(ddl_build_row(build, source_row));
    const byte *row = build->row;
    byte pk[PAGE_SIZE_MAX / 2];
    dict_row_to_pk(build->table, row, pk);
    TRY(ddl_online_remove_row(build, pk));
    dict_ext_t ext;
    dict_ext_plan(build->table, row, NULL, &ext);
    uint32_t len = dict_row_to_rec(build->table, row, &ext, 0, 0, online->rec);
    TRY(btr_insert(build_pool(build), &build->table->indexes[0].tree, online->rec, len));
    TRY(row_store_chains(build_pool(build), build->table, online->rec, row));
    return ddl_online_set_entries(build, ROW_LOG_PUT, row);
}

/** The next record of a log; DB_NOT_FOUND. */
static dberr_t ddl_online_apply_one(ddl_build_t *build, uint32_t number)
{
    const ddl_online_t *online = build->online;
    row_log_op_t op = ROW_LOG_PUT;
    const byte *payload = NULL;
    TRY(row_log_next(online->logs[number], &op, &payload));
    if (!online->of_rows) {
        const dict_index_t *index = &build->indexes[number];
        online->rec[0] = 0;
        memcpy(online->rec + 1, payload, index->tree.key_len);
        TRY(ddl_online_set_entry(build, index, op, online->rec));
    } else {
        TRY(op == ROW_LOG_PUT ? ddl_online_put_row(build, payload)
                              : ddl_online_remove_row(build, payload));
        build_env(build)->stats.rowlog_mapped += build->table->n_cols != build->source->n_cols;
    }
    build_env(build)->stats.rowlog_applied++;
    PROBE_POINT(build_env(build)->probe, "ddl.rowlog_applied");
    return DB_SUCCESS;
}

/** What is in full blocks of a log, at most max_rows records of it. */
static dberr_t ddl_online_apply(ddl_build_t *build, uint32_t number, uint32_t max_rows)
{
    const row_log_t *log = build->online->logs[number];
    for (uint32_t n = 0; n < max_rows && row_log_has_full_block(log); n++) {
        TRY(ddl_online_apply_one(build, number));
    }
    return DB_SUCCESS;
}

dberr_t ddl_step_apply(ddl_build_t *build, uint32_t max_rows, bool *over)
{
    dberr_t err = ddl_online_apply(build, build->current, max_rows);
    *over = err == DB_SUCCESS && !row_log_has_full_block(build->online->logs[build->current]);
    if (*over) {
        PROBE_POINT(build_env(build)->probe, "ddl.applied");
    }
    return err;
}

/** The number of the first log that has a full block; of none: that of logs. */
static uint32_t ddl_online_find_behind(const ddl_build_t *build)
{
    uint32_t i = 0;
    while (i < build->online->n && !row_log_has_full_block(build->online->logs[i])) {
        i++;
    }
    return i;
}

bool ddl_online_is_behind(const ddl_build_t *build)
{
    return build_is_online(build) && ddl_online_find_behind(build) < build->online->n;
}

dberr_t ddl_step_catch_up(ddl_build_t *build, uint32_t max_rows, bool *over)
{
    (void)over; /* rows may change again */
    return ddl_online_apply(build, ddl_online_find_behind(build), max_rows);
}

/* ---- the last step ---- */

void ddl_online_note_duplicate(ddl_build_t *build)
{
    build->online->has_duplicate[build->current] = true;
}

/** Two entries of a unique index with the same key lie next to each other. */
static dberr_t ddl_online_check_unique(ddl_build_t *build, const dict_index_t *index)
{
    ddl_online_t *online = build->online;
    bool has_before = false;
    const byte *rec = NULL;
    btr_cursor_t cursor;
    dberr_t err = btr_cursor_open(&cursor, build_pool(build), &index->tree, NULL, 0);
    while (err == DB_SUCCESS && (err = btr_cursor_next(&cursor, &rec)) == DB_SUCCESS) {
        if (has_before && !dict_key_has_null(index, rec_payload(rec))
            && memcmp(rec_payload(rec), rec_payload(online->before), index->unique_len) == 0) {
            err = ddl_table_refuse_duplicate(build->sys, build->source, index->name);
            break;
        }
        memcpy(online->before, rec, index->tree.leaf_rec_size);
        has_before = true;
    }
    btr_cursor_close(&cursor);
    return err == DB_NOT_FOUND ? DB_SUCCESS : err;
}

/** Of new indexes that the rows were changed in, or that have had duplicates without that. The
others of a rebuild are unique because the ones of the table are. */
static dberr_t ddl_online_check_all_unique(ddl_build_t *build)
{
    const ddl_online_t *online = build->online;
    for (uint32_t i = build->n - build->n_new; i < build->n; i++) {
        const row_log_t *log = online->logs[online->of_rows ? 0 : i];
        bool doubtful = online->has_duplicate[i] || row_log_n_records(log) > 0;
        if (build->indexes[i].unique && doubtful) {
            TRY(ddl_online_check_unique(build, &build->indexes[i]));
        }
    }
    return DB_SUCCESS;
}

/** No open transaction has changed the table, and no change is missing. */
static dberr_t ddl_online_check(const ddl_build_t *build)
{
    const dict_table_t *table = dict_table_by_id(trx_sys_dict(build->sys), build->source->id);
    if (table->n_trx > 0) {
        return ddl_table_is_changed(build->sys, table);
    }
    for (uint32_t i = 0; i < build->online->n; i++) {
        TRY(row_log_check(build->online->logs[i]));
    }
    return DB_SUCCESS;
}

/** All that the logs have left. */
static dberr_t ddl_online_apply_rest(ddl_build_t *build)
{
    for (uint32_t i = 0; i < build->online->n; i++) {
        dberr_t err = DB_SUCCESS;
        while (err == DB_SUCCESS) {
            err = ddl_online_apply_one(build, i);
        }
        TRY(err == DB_NOT_FOUND ? DB_SUCCESS : err);
    }
    return DB_SUCCESS;
}

dberr_t ddl_online_finish(ddl_build_t *build)
{
    TRY(ddl_online_check(build));
    TRY(ddl_online_apply_rest(build));
    return ddl_online_check_all_unique(build);
}

/* ---- what users see; end ---- */

void ddl_online_use(const ddl_build_t *build, ddl_progress_t *out)
{
    const ddl_online_t *online = build->online;
    for (uint32_t i = 0; online != NULL && i < online->n; i++) {
        const row_log_t *log = online->logs[i];
        uint64_t used = row_log_bytes(log) * PROGRESS_MAX / row_log_capacity(log);
        out->rowlog_pct_used = used > out->rowlog_pct_used ? (uint32_t)used : out->rowlog_pct_used;
        out->rowlog_records += row_log_n_records(log);
    }
}

dberr_t ddl_online_position(const ddl_build_t *build, uint32_t *out)
{
    uint64_t bytes = 0;
    uint64_t read = 0;
    for (uint32_t i = 0; i < build->online->n; i++) {
        bytes += row_log_bytes(build->online->logs[i]);
        read += row_log_bytes_read(build->online->logs[i]);
    }
    *out = bytes > 0 ? (uint32_t)(read * PROGRESS_MAX / bytes) : PROGRESS_MAX;
    return DB_SUCCESS;
}

void ddl_online_stop(ddl_build_t *build)
{
    ddl_online_t *online = build->online;
    for (uint32_t i = 0; online != NULL && i < online->n; i++) {
        row_log_free(online->logs[i]);
        online->logs[i] = NULL;
    }
    if (online != NULL) {
        online->n = 0;
    }
}

void ddl_online_free(ddl_build_t *build)
{
    ddl_online_t *online = build->online;
    if (online == NULL) {
        return;
    }
    for (uint32_t i = 0; i < online->n; i++) {
        row_log_abandon(online->logs[i]);
    }
    free(online->row);
    free(online->rec);
    free(online->before);
    free(online->after);
    free(online);
}
