/** Kills in the middle of every n-th write of a whole history, each recovered and scanned. A kill
loses nothing that was written, and the write in flight is there up to some sector. */
#include "test_check_fixture.h"
#include "test_random.h"

#define RESULTS_MAX 4000U
#define COMMITS_MAX 64U

typedef struct result {
    uint32_t acked; /**< commits acknowledged before the kill */
    uint32_t write_no;
    char state[CFX_STATE_MAX];
} result_t;

typedef struct history {
    dbx_t *db;
    uint32_t stride;
    uint32_t phase;
    uint32_t nested_stride; /**< kills inside recovery; 0 = none */
    uint32_t n_writes;
    uint32_t acked;
    uint64_t seed;
    result_t *results;
    uint32_t n_results;
    char (*states)[CFX_STATE_MAX]; /**< after each commit */
    uint64_t restored;             /**< sums over all recoveries: proof that the paths ran */
    uint64_t created;
    uint64_t index_loads;
    uint64_t indexes_dropped;
    uint64_t rolled_back;
    uint64_t batches;
} history_t;

static uint32_t next_random(history_t *h)
{
    return (uint32_t)(random_step(&h->seed) >> 33);
}

/** The image that a kill inside this write leaves: a random number of its sectors is there. */
static dbx_t *killed_image(history_t *h, dbx_t *db, const tap_op_t *op)
{
    dbx_t *image = dbx_clone(db);
    uint32_t sectors = (uint32_t)(op->len / SECTOR_SIZE);
    size_t kept = (size_t)(next_random(h) % (sectors + 1)) * SECTOR_SIZE;
    os_t *os = dbx_os(image);
    os_file_t *file = NULL;
    dberr_t err = os->vt->open(os, op->path, OS_OPEN, &file);
    if (err == DB_NOT_FOUND) {
        return image; /* a temporary file without a name any more */
    }
    assert_int_equal(err, DB_SUCCESS);
    if (kept > 0) {
        assert_int_equal(os->vt->write(file, op->offset, op->buf, kept), DB_SUCCESS);
    }
    os->vt->close(file);
    return image;
}

static void recover_and_scan(history_t *h, dbx_t *image, char state[CFX_STATE_MAX])
{
    dberr_t err = dbx_open(image);
    if (err != DB_SUCCESS) {
        fail_msg("write %" PRIu32 ": %s: %s", h->n_writes, err_name(err), image->env.err.msg);
    }
    h->restored += image->env.stats.recv_dblwr_restored;
    h->created += image->env.stats.recv_pages_created;
    h->index_loads += image->env.stats.recv_index_load_reads;
    h->indexes_dropped += image->env.stats.recv_indexes_dropped;
    h->rolled_back += image->env.stats.recv_trx_rolled_back;
    h->batches += image->env.stats.recv_batches;
    dbx_close_clean(image);
    check_report_t report;
    cfx_scan(image, &report);
    if (report.n_findings > 0) {
        cfx_print_findings(&report);
        fail_msg("write %" PRIu32 ": %" PRIu64 " findings", h->n_writes, report.n_findings);
    }
    cfx_state(&report, state);
    check_report_free(&report);
}

/* ---- kills inside recovery ---- */

typedef struct nested {
    history_t *h;
    dbx_t *image;
    uint32_t n_writes;
    uint32_t at; /**< the write to kill in */
    dbx_t *killed;
} nested_t;

static dberr_t nested_write(void *ctx, const tap_op_t *op)
{
    nested_t *n = ctx;
    if (op->kind == TAP_WRITE && n->n_writes++ == n->at && n->killed == NULL) {
        n->killed = killed_image(n->h, n->image, op);
    }
    return DB_SUCCESS;
}

/** Recovers a copy, killed in one of its writes, once more: it must end in the same state (I17). */
static void recover_nested(history_t *h, dbx_t *image, uint32_t at, const char *expected)
{
    nested_t n = {.h = h, .image = image, .at = at};
    image->tap.before = nested_write;
    image->tap.ctx = &n;
    char state[CFX_STATE_MAX];
    recover_and_scan(h, image, state);
    assert_string_equal(state, expected);
    dbx_free(image);
    if (n.killed != NULL) {
        recover_and_scan(h, n.killed, state);
        assert_string_equal(state, expected);
        dbx_free(n.killed);
    }
}

static dberr_t on_write(void *ctx, const tap_op_t *op)
{
    history_t *h = ctx;
    if (op->kind != TAP_WRITE || h->n_writes++ % h->stride != h->phase) {
        return DB_SUCCESS;
    }
    dbx_t *image = killed_image(h, h->db, op);
    dbx_t *again = dbx_clone(image);
    assert_true(h->n_results < RESULTS_MAX);
    result_t *result = &h->results[h->n_results++];
    result->acked = h->acked;
    result->write_no = h->n_writes - 1;
    recover_and_scan(h, image, result->state);
    dbx_free(image);
    if (h->nested_stride != 0 && h->n_results % h->nested_stride == 0) {
        recover_nested(h, again, next_random(h) % 40, result->state);
    } else {
        dbx_free(again);
    }
    return DB_SUCCESS;
}

/** A statement was acknowledged: keep the state that every later recovery must have at least. */
static void acked(history_t *h)
{
    dbx_t *image = dbx_clone(h->db);
    assert_true(h->acked + 1 < COMMITS_MAX);
    recover_and_scan(h, image, h->states[++h->acked]);
    dbx_free(image);
}

static void commit(history_t *h, trx_t *trx)
{
    ASSERT_OK(h->db, trx_commit(trx));
    acked(h);
}

static void history_dml(history_t *h)
{
    dbx_t *db = h->db;
    cfx_create_table(db, "t1");
    acked(h);
    for (int64_t i = 0; i < 4; i++) {
        trx_t *trx = cfx_begin(db);
        cfx_insert(db, trx, "t1", i * 40, i * 40 + 39);
        commit(h, trx);
    }
    trx_t *open = cfx_begin(db);
    trx_t *trx = cfx_begin(db);
    cfx_update(db, open, "t1", 0, 9, 1);
    cfx_update(db, trx, "t1", 10, 29, 3);
    cfx_insert(db, open, "t1", 500, 519);
    commit(h, trx);
    cfx_delete(db, open, "t1", 100, 109);
    ASSERT_OK(db, buf_flush_list(db->pool, 8, LSN_MAX, NULL));
    ASSERT_OK(db, trx_rollback(open));
    trx = cfx_begin(db);
    cfx_delete(db, trx, "t1", 60, 99);
    commit(h, trx);
}

static void history_ddl(history_t *h)
{
    dbx_t *db = h->db;
    cfx_add_indexes(db, "t1", "ib", 2);
    acked(h);
    trx_t *trx = cfx_begin(db);
    cfx_update(db, trx, "t1", 0, 19, 5);
    cfx_insert(db, trx, "t1", 300, 330);
    commit(h, trx);
    cfx_purge(db);
    ASSERT_OK(db, buf_checkpoint(db->pool));
    ASSERT_OK(db, ddl_drop_index(db->sys, "t1", "ibx"));
    acked(h);
    cfx_add_indexes(db, "t1", "ic", 2); /* on pages that had another life in the log */
    acked(h);
    trx = cfx_begin(db);
    cfx_delete(db, trx, "t1", 300, 315);
    commit(h, trx);
    ASSERT_OK(db, ddl_rename_table(db->sys, "t1", "t2"));
    acked(h);
    cfx_create_table(db, "t1");
    acked(h);
    ASSERT_OK(db, buf_flush_list(db->pool, 30, LSN_MAX, NULL));
    ASSERT_OK(db, ddl_drop_table(db->sys, "t1"));
    acked(h);
    cfx_purge(db);
    ASSERT_OK(db, buf_checkpoint_full(db->pool));
}

/** Each kill must show the state after the last acknowledged commit, or after the one under way
(I1, I3). */
static void assert_results(const history_t *h)
{
    for (uint32_t i = 0; i < h->n_results; i++) {
        const result_t *r = &h->results[i];
        bool ok = strcmp(r->state, h->states[r->acked]) == 0
                  || (r->acked < h->acked && strcmp(r->state, h->states[r->acked + 1]) == 0);
        if (!ok) {
            fail_msg("kill in write %" PRIu32 " after commit %" PRIu32
                     ":\n  is     %s\n  after  %s\n  before %s",
                     r->write_no, r->acked, r->state, h->states[r->acked],
                     h->states[r->acked + (r->acked < h->acked)]);
        }
    }
}

static void run_history(history_t *h, const engine_options_t *options)
{
    os_t *os = image_os_create();
    h->db = dbx_alloc(os);
    h->db->options = *options;
    h->results = calloc(RESULTS_MAX, sizeof(*h->results));
    h->states = calloc(COMMITS_MAX, sizeof(*h->states));
    assert_true(h->results != NULL && h->states != NULL);
    dbx_bootstrap(h->db, false);
    h->db->tap.before = on_write;
    h->db->tap.ctx = h;
    history_dml(h);
    history_ddl(h);
    h->db->tap.before = NULL;
    assert_results(h);
    assert_true(h->n_results > 100);
    dbx_free(h->db);
    free(h->results);
    free(h->states);
}

static engine_options_t small_options(void)
{
    engine_options_t options;
    options_set_defaults(&options);
    options.page_size = 4096;
    options.log_file_size = 512U << 10;
    options.dblwr_pages = 8;
    options.buffer_pool_pages = 40;
    return options;
}

/* Kills with non-logged index loads: nothing is lost, nothing is left over; doublewrite restores,
INDEX_LOAD fallbacks, drops of incomplete indexes and rollbacks really happen. */
static void test_kills_nonlogged(void **state)
{
    (void)state;
    engine_options_t options = small_options();
    history_t h = {.stride = 1, .nested_stride = 2, .seed = 1};
    run_history(&h, &options);
    assert_true(h.restored > 0);
    assert_true(h.created > 0);
    assert_true(h.indexes_dropped > 0);
    assert_true(h.rolled_back > 0);
    assert_true(h.index_loads > 0);
}

/* The same with logged loads, where first flushes skip doublewrite and torn pages are rebuilt from
the log. */
static void test_kills_logged(void **state)
{
    (void)state;
    engine_options_t options = small_options();
    options.log_optimize_ddl = false;
    history_t h = {.stride = 1, .nested_stride = 2, .seed = 2};
    run_history(&h, &options);
    assert_true(h.created > 0);
    assert_int_equal(h.index_loads, 0);
}

/* With the least memory for redo records, recovery takes several batches and ends in the same
states (I18). */
static void test_kills_small_batches(void **state)
{
    (void)state;
    engine_options_t options = small_options();
    options.log_file_size = 2U << 20;
    options.recv_memory = 8U << 10;
    history_t h = {.stride = 1, .nested_stride = 2, .seed = 3};
    run_history(&h, &options);
    assert_true(h.batches > 4 * h.n_results);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kills_nonlogged),
        cmocka_unit_test(test_kills_logged),
        cmocka_unit_test(test_kills_small_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
