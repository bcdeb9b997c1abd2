/** A database up to trx/ on the memory back end, with one table of two secondary indexes, and a
model of it.

Table t1: a BIGINT primary key, b BIGINT, c CHAR(10), d CHAR(200); index ib on (b), index icb on
(c(2), b): an index over two changing columns, one of them cut to a prefix. */
#ifndef TEST_TRX_FIXTURE_H
#define TEST_TRX_FIXTURE_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mach.h"
#include "dict/dict_sys.h"
#include "trx/trx.h"

typedef struct trx_fixture {
    os_t *os;
    probe_t probe;
    env_t env;
    engine_options_t options;
    log_t *log;
    fil_t *fil;
    buf_pool_t *pool;
    dict_t *dict;
    trx_sys_t *sys;
    dict_table_t *table;
    const char *crash_point; /**< point at which tfx_point() jumps; NULL: none */
    uint32_t crash_after;    /**< that many hits pass first */
    jmp_buf crash;
} trx_fixture_t;

#define TFX_OK(fx, call)                                                                           \
    do {                                                                                           \
        dberr_t ok_err_ = (call);                                                                  \
        if (ok_err_ != DB_SUCCESS) {                                                               \
            fail_msg("%s: %s: %s", #call, err_name(ok_err_), (fx)->env.err.msg);                   \
        }                                                                                          \
    } while (0)

#define TFX_ROW_MAX 300U

/** A fault point "crashes" by leaving the engine with longjmp; no page is pinned at the points of
trx/. */
static inline void tfx_point(void *ctx, const char *name)
{
    trx_fixture_t *fx = ctx;
    if (fx->crash_point != NULL && strcmp(name, fx->crash_point) == 0 && fx->crash_after-- == 0) {
        longjmp(fx->crash, 1);
    }
}

static inline void tfx_mark(void *ctx, const char *text, size_t len)
{
    (void)ctx;
    (void)text;
    (void)len;
}

/** Opens log, registry and pool of the directory fx->os; a missing log is created. */
static inline void tfx_open_pool(trx_fixture_t *fx)
{
    uint32_t page_size = fx->options.page_size;
    bool exists = false;
    TFX_OK(fx, env_exists(&fx->env, LOG_FILE_NAME, &exists));
    if (!exists) {
        TFX_OK(fx, log_file_create(&fx->env, LOG_FILE_NAME, page_size, fx->options.log_file_size));
    }
    TFX_OK(fx, log_open(&fx->env, &fx->log));
    log_checkpoint_t ckpt[2];
    uint32_t n = 0;
    log_checkpoints(fx->log, ckpt, &n);
    log_reader_t *reader = NULL;
    TFX_OK(fx, log_reader_create(fx->log, ckpt[0].lsn, &reader));
    log_group_t group;
    dberr_t err;
    do {
        err = log_reader_next(reader, &group);
    } while (err == DB_SUCCESS);
    assert_int_equal(err, DB_NOT_FOUND);
    lsn_t end = log_reader_end_lsn(reader);
    log_reader_free(reader);
    TFX_OK(fx, log_start_writing(fx->log, &ckpt[0], end));
    TFX_OK(fx, fil_create(&fx->env, fx->log, page_size, &fx->fil));
}

/** Catalogue and transaction system, as a start after a crash reads them. */
static inline void tfx_open_sys(trx_fixture_t *fx)
{
    TFX_OK(fx, dict_open(fx->pool, &fx->dict));
    TFX_OK(fx, trx_sys_open(fx->pool, fx->dict, fx->options.flush_log_at_trx_commit, &fx->sys));
}

static inline void tfx_close_sys(trx_fixture_t *fx)
{
    trx_sys_close(fx->sys);
    dict_close(fx->dict);
    fx->sys = NULL;
    fx->dict = NULL;
    fx->table = NULL;
}

/** A start on the same pool: open transactions are resurrected and rolled back. */
static inline void tfx_restart(trx_fixture_t *fx)
{
    tfx_close_sys(fx);
    tfx_open_sys(fx);
    TFX_OK(fx, trx_sys_rollback_resurrected(fx->sys, NULL, NULL));
    fx->table = dict_table_get(fx->dict, "t1");
    assert_non_null(fx->table);
}

static inline trx_fixture_t *tfx_alloc(uint32_t page_size, uint32_t pool_pages)
{
    trx_fixture_t *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    assert_int_equal(os_mem_create(&fx->os), DB_SUCCESS);
    fx->probe.point = tfx_point;
    fx->probe.mark = tfx_mark;
    fx->probe.ctx = fx;
    fx->env.os = fx->os;
    fx->env.probe = &fx->probe;
    options_set_defaults(&fx->options);
    fx->options.page_size = page_size;
    fx->options.log_file_size = 16ULL << 20;
    fx->options.buffer_pool_pages = pool_pages;
    atomic_store(&fx->probe.armed, true);
    return fx;
}

static inline void tfx_create_system(trx_fixture_t *fx)
{
    tfx_open_pool(fx);
    os_file_t *file = NULL;
    TFX_OK(fx, env_open(&fx->env, FIL_SYSTEM_PATH, OS_CREATE_NEW, &file));
    TFX_OK(fx, env_truncate(&fx->env, file, (uint64_t)FSP_INITIAL_PAGES * fx->options.page_size));
    env_close(&fx->env, file);
    fil_space_t *space = NULL;
    TFX_OK(fx, fil_space_open(fx->fil, SPACE_SYSTEM, FIL_SYSTEM_PATH, FSP_INITIAL_PAGES, &space));
    TFX_OK(fx, buf_pool_create(&fx->env, fx->log, fx->fil, &fx->options, &fx->pool));
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    TFX_OK(fx, fsp_header_init(&mtr, SPACE_SYSTEM, FSP_INITIAL_PAGES));
    mtr_commit(&mtr);
    TFX_OK(fx, trx_sys_bootstrap(fx->pool));
    TFX_OK(fx, dict_bootstrap(fx->pool));
}

static inline void tfx_def_col(dict_table_t *table, const char *name, dict_type_t type,
                               uint32_t len)
{
    dict_col_t *col = &table->cols[table->n_cols++];
    snprintf(col->name, sizeof col->name, "%s", name);
    col->type = type;
    col->len = len;
}

static inline dict_index_t *tfx_def_index(trx_fixture_t *fx, dict_table_t *table, const char *name)
{
    dict_index_t *index = &table->indexes[table->n_indexes];
    TFX_OK(fx, dict_new_index_id(fx->dict, &index->id));
    snprintf(index->name, sizeof index->name, "%s", name);
    index->table = table;
    index->status = DICT_READY;
    index->clustered = table->n_indexes++ == 0;
    index->tree.id = index->id;
    index->tree.space = table->space;
    index->tree.root = FIL_NULL;
    return index;
}

static inline void tfx_def_field(dict_index_t *index, uint32_t col, uint32_t prefix_len)
{
    index->fields[index->n_fields++] = (dict_field_t){.col = col, .prefix_len = prefix_len};
}

static inline void tfx_insert_sys_rows(trx_fixture_t *fx, const dict_table_t *table)
{
    byte row[SYS_ROW_MAX];
    trx_t *trx = NULL;
    TFX_OK(fx, trx_begin(fx->sys, &trx));
    dict_sys_tables_row(table, row);
    TFX_OK(fx, row_insert(trx, dict_sys_table(fx->dict, SYS_TABLES), row));
    for (uint32_t i = 0; i < table->n_cols; i++) {
        dict_sys_columns_row(table, i, row);
        TFX_OK(fx, row_insert(trx, dict_sys_table(fx->dict, SYS_COLUMNS), row));
    }
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        dict_sys_indexes_row(&table->indexes[i], row);
        TFX_OK(fx, row_insert(trx, dict_sys_table(fx->dict, SYS_INDEXES), row));
        for (uint32_t pos = 0; pos < table->indexes[i].n_fields; pos++) {
            dict_sys_fields_row(&table->indexes[i], pos, row);
            TFX_OK(fx, row_insert(trx, dict_sys_table(fx->dict, SYS_FIELDS), row));
        }
    }
    TFX_OK(fx, trx_commit(trx));
}

static inline void tfx_create_table(trx_fixture_t *fx, const char *name)
{
    dict_table_t *table = calloc(1, sizeof *table);
    assert_non_null(table);
    TFX_OK(fx, dict_new_table_id(fx->dict, &table->id));
    TFX_OK(fx, dict_new_space_id(fx->dict, &table->space));
    snprintf(table->name, sizeof table->name, "%s", name);
    table->status = DICT_READY;
    tfx_def_col(table, "a", DICT_BIGINT, 8);
    tfx_def_col(table, "b", DICT_BIGINT, 8);
    tfx_def_col(table, "c", DICT_CHAR, 10);
    tfx_def_col(table, "d", DICT_CHAR, 200);
    tfx_def_field(tfx_def_index(fx, table, "PRIMARY"), 0, 8);
    tfx_def_field(tfx_def_index(fx, table, "ib"), 1, 8);
    dict_index_t *icb = tfx_def_index(fx, table, "icb");
    tfx_def_field(icb, 2, 2);
    tfx_def_field(icb, 1, 8);
    TFX_OK(fx, dict_table_layout(table, fx->options.page_size, &fx->env.err));
    char path[PATH_LEN_MAX + 1];
    fil_path_of_table(name, path);
    fil_space_t *space = NULL;
    TFX_OK(fx, fil_space_create(fx->fil, table->space, path, FSP_INITIAL_PAGES, &space));
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    TFX_OK(fx, fsp_header_init(&mtr, table->space, FSP_INITIAL_PAGES));
    mtr_commit(&mtr);
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        TFX_OK(fx, btr_create(fx->pool, &table->indexes[i].tree));
    }
    tfx_insert_sys_rows(fx, table);
    free(table);
    TFX_OK(fx, dict_load(fx->dict));
}

static inline void tfx_purge_all(trx_fixture_t *fx)
{
    bool done = false;
    while (!done) {
        TFX_OK(fx, trx_purge_step(fx->sys, 10, &done));
    }
}

/** A database with the empty table t1 and an empty history. */
static inline trx_fixture_t *tfx_create(uint32_t page_size, uint32_t pool_pages)
{
    trx_fixture_t *fx = tfx_alloc(page_size, pool_pages);
    tfx_create_system(fx);
    tfx_open_sys(fx);
    TFX_OK(fx, dict_load(fx->dict));
    tfx_create_table(fx, "t1");
    tfx_purge_all(fx);
    fx->table = dict_table_get(fx->dict, "t1");
    assert_non_null(fx->table);
    assert_int_equal(fx->table->row_size, 226);
    return fx;
}

static inline void tfx_destroy(trx_fixture_t *fx)
{
    tfx_close_sys(fx);
    buf_pool_free(fx->pool);
    fil_close(fx->fil);
    log_close(fx->log);
    os_destroy(fx->os);
    free(fx);
}

/* ---- rows ---- */

/** What the model knows of a row; d follows from b. */
typedef struct tfx_row {
    bool present;
    int64_t b;
    uint32_t c; /**< 0 ... 675: two letters and a constant tail */
} tfx_row_t;

static inline void tfx_pk(int64_t a, byte pk[8])
{
    mach_write_8(pk, dict_bigint_encode(a));
}

static inline void tfx_value_c(uint32_t c, byte value[10])
{
    memcpy(value, "..tail    ", 10);
    value[0] = (byte)('a' + c / 26 % 26);
    value[1] = (byte)('a' + c % 26);
}

static inline void tfx_row_bytes(int64_t a, const tfx_row_t *r, byte row[TFX_ROW_MAX])
{
    tfx_pk(a, row);
    tfx_pk(r->b, row + 8);
    tfx_value_c(r->c, row + 16);
    memset(row + 26, 'a' + (int)((uint64_t)r->b % 26), 200);
}

static inline dberr_t tfx_insert(trx_fixture_t *fx, trx_t *trx, int64_t a, int64_t b, uint32_t c)
{
    byte row[TFX_ROW_MAX];
    tfx_row_t r = {true, b, c};
    tfx_row_bytes(a, &r, row);
    return row_insert(trx, fx->table, row);
}

/** Sets b (and with it d) and c. */
static inline dberr_t tfx_update(trx_fixture_t *fx, trx_t *trx, int64_t a, int64_t b, uint32_t c)
{
    byte row[TFX_ROW_MAX];
    tfx_row_t r = {true, b, c};
    tfx_row_bytes(a, &r, row);
    row_upd_t upd[3] = {{1, row + 8}, {2, row + 16}, {3, row + 26}};
    return row_update(trx, fx->table, row, upd, 3);
}

static inline dberr_t tfx_delete(trx_fixture_t *fx, trx_t *trx, int64_t a)
{
    byte pk[8];
    tfx_pk(a, pk);
    return row_delete(trx, fx->table, pk);
}

/* ---- verification ---- */

typedef struct tfx_counts {
    uint32_t rows;
    uint32_t marked;   /**< delete-marked clustered records */
    uint32_t with_ids; /**< clustered records with DB_TRX_ID or DB_ROLL_PTR not 0 */
    uint32_t entries;  /**< secondary entries that are not delete-marked, all indexes together */
    uint32_t marked_entries;
} tfx_counts_t;

static inline void tfx_count_index(trx_fixture_t *fx, const dict_index_t *index, tfx_counts_t *n)
{
    btr_cursor_t cursor;
    const byte *rec = NULL;
    TFX_OK(fx, btr_cursor_open(&cursor, fx->pool, &index->tree, NULL, 0));
    dberr_t err;
    while ((err = btr_cursor_next(&cursor, &rec)) == DB_SUCCESS) {
        bool marked = rec_is_deleted(rec);
        if (index->clustered) {
            n->marked += marked;
            n->rows += !marked;
            n->with_ids +=
                dict_rec_trx_id(fx->table, rec) != 0 || dict_rec_roll_ptr(fx->table, rec) != 0;
        } else {
            n->marked_entries += marked;
            n->entries += !marked;
        }
    }
    assert_int_equal(err, DB_NOT_FOUND);
    btr_cursor_close(&cursor);
}

/** Every row of the model is there with exactly its values and its entries, and nothing else is
(I10). */
static inline void tfx_verify(trx_fixture_t *fx, const tfx_row_t *model, uint32_t n_model)
{
    tfx_counts_t n = {0};
    uint32_t present = 0;
    for (uint32_t i = 0; i < fx->table->n_indexes; i++) {
        tfx_count_index(fx, &fx->table->indexes[i], &n);
    }
    for (uint32_t a = 0; a < n_model; a++) {
        byte want[TFX_ROW_MAX];
        byte got[TFX_ROW_MAX];
        byte rec[TFX_ROW_MAX];
        tfx_row_bytes((int64_t)a, &model[a], want);
        dberr_t err = row_get(fx->table, fx->pool, want, got);
        assert_int_equal(err, model[a].present ? DB_SUCCESS : DB_RECORD_NOT_FOUND);
        if (!model[a].present) {
            continue;
        }
        present++;
        assert_memory_equal(want, got, fx->table->row_size);
        for (uint32_t i = 1; i < fx->table->n_indexes; i++) {
            byte entry[TFX_ROW_MAX];
            const btr_t *tree = &fx->table->indexes[i].tree;
            dict_row_to_sec(&fx->table->indexes[i], want, entry);
            TFX_OK(fx, btr_get(fx->pool, tree, entry + 1, rec));
            assert_memory_equal(entry, rec, tree->leaf_rec_size);
        }
    }
    assert_int_equal(n.rows, present);
    assert_int_equal(n.entries, present * (fx->table->n_indexes - 1));
}

/** With an empty history and no open transaction: no ids, no marks (I25). */
static inline void tfx_verify_at_rest(trx_fixture_t *fx)
{
    tfx_counts_t n = {0};
    assert_int_equal(trx_sys_history_len(fx->sys), 0);
    assert_int_equal(trx_sys_n_active(fx->sys), 0);
    assert_int_equal(fx->table->n_trx, 0);
    for (uint32_t i = 0; i < fx->table->n_indexes; i++) {
        tfx_count_index(fx, &fx->table->indexes[i], &n);
    }
    assert_int_equal(n.marked, 0);
    assert_int_equal(n.with_ids, 0);
    assert_int_equal(n.marked_entries, 0);
}

/** Allocated undo pages of the system space: 0 when nothing is open and the history is empty (I11).
*/
static inline uint32_t tfx_undo_pages(trx_fixture_t *fx)
{
    uint32_t n = 0;
    uint32_t size = fil_space_get(fx->fil, SPACE_SYSTEM)->size_pages;
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_READ_ONLY);
    for (page_no_t page_no = 0; page_no < size; page_no++) {
        uint32_t owner = 0;
        TFX_OK(fx, fsp_page_owner(&mtr, (page_id_t){SPACE_SYSTEM, page_no}, &owner));
        n += owner == FSP_OWNER_UNDO;
    }
    mtr_commit(&mtr);
    return n;
}

/** A small deterministic generator: the seed decides everything. */
static inline uint32_t tfx_random(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*state >> 33) % below;
}

#endif
