/** A database up to trx/ on the simulated disk, with one table of two secondary indexes, and a
model of it.

Table t1: a BIGINT primary key, b BIGINT, c CHAR(10), d CHAR(200); index ib on (b), index icb on
(c(2), b): an index over two changing columns, one of them cut to a prefix. */
#ifndef TEST_TRX_FIXTURE_H
#define TEST_TRX_FIXTURE_H

#include "base/mach.h"
#include "test_dict_fixture.h"
#include "test_fsp_fixture.h"
#include "test_random.h"
#include "test_tree.h"
#include "trx/trx.h"
#include "trx/undo_format.h"

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

/** A new log and an empty registry in the directory fx->os. */
static inline void tfx_create_files(trx_fixture_t *fx)
{
    files_create(&fx->env, fx->options.page_size, FX_EXTENT_PAGES, fx->options.log_file_size,
                 LOG_FORMAT_10_4, &fx->log, &fx->fil);
}

/** Catalogue and transaction system, as a start after a crash reads them. */
static inline void tfx_open_sys(trx_fixture_t *fx)
{
    ASSERT_OK(fx, dict_open(fx->pool, &fx->dict));
    ASSERT_OK(fx, trx_sys_open(fx->pool, fx->dict, fx->options.flush_log_at_trx_commit, &fx->sys));
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
    ASSERT_OK(fx, trx_sys_rollback_resurrected(fx->sys, NULL, NULL));
    fx->table = dict_table_get(fx->dict, "t1");
    assert_non_null(fx->table);
}

static inline trx_fixture_t *tfx_alloc(uint32_t page_size, uint32_t pool_pages)
{
    trx_fixture_t *fx = calloc(1, sizeof(*fx));
    assert_non_null(fx);
    fx->os = image_os_create();
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
    tfx_create_files(fx);
    system_create(&fx->env, fx->log, fx->fil, &fx->options, &fx->pool);
    ASSERT_OK(fx, trx_sys_bootstrap(fx->pool, 0));
    ASSERT_OK(fx, dict_bootstrap(fx->pool));
}

static inline dict_index_t *tfx_def_index(trx_fixture_t *fx, dict_table_t *table, const char *name)
{
    dict_index_t *index = table_add_index(table, name);
    ASSERT_OK(fx, dict_new_index_id(fx->dict, &index->id));
    index->table = table;
    index->status = DICT_READY;
    index->clustered = table->n_indexes == 1;
    index->tree.id = index->id;
    index->tree.space = table->space;
    index->tree.root = FIL_NULL;
    return index;
}

static inline trx_t *tfx_begin(trx_fixture_t *fx)
{
    trx_t *trx = NULL;
    ASSERT_OK(fx, trx_begin(fx->sys, &trx));
    return trx;
}

typedef struct tfx_sys_insert {
    trx_fixture_t *fx;
    trx_t *trx;
} tfx_sys_insert_t;

static inline void tfx_insert_sys_row(void *ctx, sys_table_t which, const byte *row)
{
    const tfx_sys_insert_t *in = ctx;
    ASSERT_OK(in->fx, row_insert(in->trx, dict_sys_table(in->fx->dict, which), row));
}

static inline void tfx_create_table(trx_fixture_t *fx, const char *name)
{
    dict_table_t *table = calloc(1, sizeof(*table));
    assert_non_null(table);
    ASSERT_OK(fx, dict_new_table_id(fx->dict, &table->id));
    ASSERT_OK(fx, dict_new_space_id(fx->dict, &table->space));
    snprintf(table->name, sizeof(table->name), "%s", name);
    table->status = DICT_READY;
    table_add_col(table, "a", DICT_BIGINT, 8);
    table_add_col(table, "b", DICT_BIGINT, 8);
    table_add_col(table, "c", DICT_CHAR, 10);
    table_add_col(table, "d", DICT_CHAR, 200);
    index_add_field(tfx_def_index(fx, table, "PRIMARY"), 0, 8);
    index_add_field(tfx_def_index(fx, table, "ib"), 1, 8);
    dict_index_t *icb = tfx_def_index(fx, table, "icb");
    index_add_field(icb, 2, 2);
    index_add_field(icb, 1, 8);
    ASSERT_OK(fx, dict_table_layout(table, fx->options.page_size, &fx->env.err));
    char path[PATH_LEN_MAX + 1];
    fil_path_of_table(name, path);
    space_create(&fx->env, fx->fil, fx->pool, table->space, path);
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        tree_create(&fx->env, fx->pool, &table->indexes[i].tree);
    }
    tfx_sys_insert_t in = {fx, tfx_begin(fx)};
    table_each_sys_row(table, tfx_insert_sys_row, &in);
    ASSERT_OK(fx, trx_commit(in.trx));
    free(table);
    ASSERT_OK(fx, dict_load(fx->dict));
}

static inline void tfx_purge_all(trx_fixture_t *fx)
{
    bool done = false;
    while (!done) {
        ASSERT_OK(fx, trx_purge_step(fx->sys, 10, &done));
    }
}

/** A database with the empty table t1 and an empty history. */
static inline trx_fixture_t *tfx_create(uint32_t page_size, uint32_t pool_pages)
{
    trx_fixture_t *fx = tfx_alloc(page_size, pool_pages);
    tfx_create_system(fx);
    tfx_open_sys(fx);
    ASSERT_OK(fx, dict_load(fx->dict));
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
    ASSERT_OK(fx, btr_cursor_open(&cursor, fx->pool, &index->tree, NULL, 0));
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
            uint32_t len = 0;
            const btr_t *tree = &fx->table->indexes[i].tree;
            dict_row_to_sec(&fx->table->indexes[i], want, entry);
            ASSERT_OK(fx, btr_get(fx->pool, tree, entry + 1, rec, &len));
            assert_memory_equal(entry, rec, tree->leaf_rec_size);
        }
    }
    assert_int_equal(n.rows, present);
    assert_int_equal(n.entries, present * (fx->table->n_indexes - 1));
}

/** Undo pages of the system space: 0 when nothing is open and the history is empty (I11). */
static inline uint32_t tfx_undo_pages(trx_fixture_t *fx)
{
    return segment_n_used(&fx->env, fx->pool, (page_id_t){SPACE_SYSTEM, RSEG_PAGE}, RSEG_UNDO_SEG);
}

/** With an empty history and no open transaction: no ids, no marks (I25), no undo pages (I11). */
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
    assert_int_equal(tfx_undo_pages(fx), 0);
}

/** The rows of the model before purge and after it, and then nothing of the history. */
static inline void tfx_purge_and_verify(trx_fixture_t *fx, const tfx_row_t *model, uint32_t n_model)
{
    tfx_verify(fx, model, n_model);
    tfx_purge_all(fx);
    tfx_verify(fx, model, n_model);
    tfx_verify_at_rest(fx);
}

static inline uint32_t tfx_random(uint64_t *seed, uint32_t below)
{
    return (uint32_t)(random_step(seed) >> 33) % below;
}

#endif
