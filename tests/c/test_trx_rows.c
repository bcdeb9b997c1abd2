/** Rows under several open transactions, against a model: statements, conflicts, savepoints,
rollback, purge. */
#include "test_trx_fixture.h"

#define N_ROWS 24U
#define N_TRX 4U
#define N_UNDO_MAX 4000U

/** The model: newest version and owner of each row, and per transaction what to put back. */
typedef struct model_undo {
    uint32_t a;
    tfx_row_t row;
    int owner;
} model_undo_t;

typedef struct model {
    tfx_row_t rows[N_ROWS];
    int owner[N_ROWS]; /**< open transaction that changed it last, or -1 */
    trx_t *trx[N_TRX]; /**< NULL: not open */
    uint32_t n_undo[N_TRX];
    model_undo_t undo[N_TRX][N_UNDO_MAX];
} model_t;

static model_t *model_create(void)
{
    model_t *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    for (uint32_t a = 0; a < N_ROWS; a++) {
        m->owner[a] = -1;
    }
    return m;
}

static void model_set(model_t *m, int t, uint32_t a, tfx_row_t row)
{
    assert_true(m->n_undo[t] < N_UNDO_MAX);
    m->undo[t][m->n_undo[t]++] = (model_undo_t){a, m->rows[a], m->owner[a]};
    m->rows[a] = row;
    m->owner[a] = t;
}

static void model_rollback_to(model_t *m, int t, uint32_t n)
{
    while (m->n_undo[t] > n) {
        const model_undo_t *u = &m->undo[t][--m->n_undo[t]];
        m->rows[u->a] = u->row;
        m->owner[u->a] = u->owner;
    }
}

static void model_end(model_t *m, int t)
{
    for (uint32_t a = 0; a < N_ROWS; a++) {
        if (m->owner[a] == t) {
            m->owner[a] = -1;
        }
    }
    m->n_undo[t] = 0;
    m->trx[t] = NULL;
}

/** One random statement, whose outcome the model foretells. */
static void random_statement(trx_fixture_t *fx, model_t *m, int t, uint64_t *seed)
{
    uint32_t a = tfx_random(seed, N_ROWS);
    uint32_t kind = tfx_random(seed, 3);
    tfx_row_t new_row = {kind != 2, tfx_random(seed, 6), tfx_random(seed, 100)};
    uint64_t savepoint = trx_savepoint(m->trx[t]);
    dberr_t want = DB_SUCCESS;
    if (m->owner[a] != -1 && m->owner[a] != t) {
        want = DB_LOCK_CONFLICT;
    } else if (kind == 0 && m->rows[a].present) {
        want = DB_DUPLICATE_KEY;
    } else if (kind != 0 && !m->rows[a].present) {
        want = DB_RECORD_NOT_FOUND;
    }
    if (kind == 2) {
        new_row = (tfx_row_t){false, m->rows[a].b, m->rows[a].c};
    }
    dberr_t err = kind == 0   ? tfx_insert(fx, m->trx[t], a, new_row.b, new_row.c)
                  : kind == 1 ? tfx_update(fx, m->trx[t], a, new_row.b, new_row.c)
                              : tfx_delete(fx, m->trx[t], a);
    if (err != want) {
        fail_msg("%s instead of %s: %s", err_name(err), err_name(want), fx->env.err.msg);
    }
    if (err == DB_SUCCESS) {
        model_set(m, t, a, new_row);
    }
    assert_int_equal(trx_savepoint(m->trx[t]), savepoint + (err == DB_SUCCESS));
}

static void random_savepoint(trx_fixture_t *fx, model_t *m, int t, uint64_t *seed)
{
    uint64_t savepoint = trx_savepoint(m->trx[t]);
    uint32_t model_savepoint = m->n_undo[t];
    for (uint32_t i = tfx_random(seed, 6); i > 0; i--) {
        random_statement(fx, m, t, seed);
    }
    ASSERT_OK(fx, trx_rollback_to(m->trx[t], savepoint));
    model_rollback_to(m, t, model_savepoint);
}

static void random_purge(trx_fixture_t *fx, const model_t *m, uint64_t *seed)
{
    bool changed = false;
    for (uint32_t t = 0; t < N_TRX; t++) {
        changed = changed || (m->trx[t] != NULL && m->n_undo[t] > 0);
    }
    uint64_t before = trx_sys_history_len(fx->sys);
    bool done = false;
    ASSERT_OK(fx, trx_purge_step(fx->sys, 1 + tfx_random(seed, 8), &done));
    if (changed) {
        assert_true(done);
        assert_int_equal(trx_sys_history_len(fx->sys), before);
    }
    /* A transaction that has rolled back to its start keeps its undo log, so purge may rest without
    changes. */
}

static void random_end(trx_fixture_t *fx, model_t *m, int t, bool commit)
{
    if (commit) {
        ASSERT_OK(fx, trx_commit(m->trx[t]));
    } else {
        ASSERT_OK(fx, trx_rollback(m->trx[t]));
        model_rollback_to(m, t, 0);
    }
    model_end(m, t);
}

static void random_restart(trx_fixture_t *fx, model_t *m)
{
    tfx_restart(fx);
    for (int t = 0; t < (int)N_TRX; t++) {
        model_rollback_to(m, t, 0);
    }
    for (int t = 0; t < (int)N_TRX; t++) {
        model_end(m, t);
    }
    assert_int_equal(trx_sys_n_active(fx->sys), 0);
}

static void random_run(trx_fixture_t *fx, uint64_t seed, uint32_t n_steps)
{
    model_t *m = model_create();
    for (uint32_t step = 0; step < n_steps; step++) {
        int t = (int)tfx_random(&seed, N_TRX);
        uint32_t what = tfx_random(&seed, 100);
        if (what < 8) {
            random_purge(fx, m, &seed);
        } else if (what == 8) {
            random_restart(fx, m);
        } else if (m->trx[t] == NULL) {
            m->trx[t] = tfx_begin(fx);
        } else if (what < 75) {
            random_statement(fx, m, t, &seed);
        } else if (what < 80) {
            random_savepoint(fx, m, t, &seed);
        } else if (what < 95) {
            random_end(fx, m, t, what < 88);
        }
        if (step % 16 == 0) {
            tfx_verify(fx, m->rows, N_ROWS);
        }
    }
    for (int t = 0; t < (int)N_TRX; t++) {
        if (m->trx[t] != NULL) {
            random_end(fx, m, t, t % 2 == 0);
        }
    }
    tfx_purge_and_verify(fx, m->rows, N_ROWS);
    free(m);
}

/** Whatever several transactions do, rows and indexes equal the model, and once the history is
purged no id, mark or undo page is left (I2, I10, I11, I25). */
static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        trx_fixture_t *fx = tfx_create(4096, 64);
        random_run(fx, seed, 500);
        tfx_destroy(fx);
    }
}

/** The same on pages of every other size, with a pool that evicts all the time. */
static void test_random_small_pool(void **state)
{
    (void)state;
    static const uint32_t PAGE_SIZES[] = {8192, 16384, 32768, 65536};
    for (size_t i = 0; i < sizeof(PAGE_SIZES) / sizeof(*PAGE_SIZES); i++) {
        trx_fixture_t *fx = tfx_create(PAGE_SIZES[i], 32);
        random_run(fx, 77 + i, 1000);
        tfx_destroy(fx);
    }
}

/** A conflicting statement changes nothing and writes no undo; the row is free again when its owner
ends. */
static void test_conflict(void **state)
{
    (void)state;
    trx_fixture_t *fx = tfx_create(4096, 64);
    trx_t *t1 = tfx_begin(fx);
    trx_t *t2 = tfx_begin(fx);
    ASSERT_OK(fx, tfx_insert(fx, t1, 1, 10, 0));
    assert_int_equal(fx->table->n_trx, 1);
    lsn_t lsn = log_lsn(fx->log);
    assert_int_equal(tfx_insert(fx, t2, 1, 20, 0), DB_LOCK_CONFLICT);
    assert_int_equal(tfx_update(fx, t2, 1, 20, 0), DB_LOCK_CONFLICT);
    assert_int_equal(tfx_delete(fx, t2, 1), DB_LOCK_CONFLICT);
    assert_int_equal(log_lsn(fx->log), lsn);
    assert_int_equal(trx_id(t2), 0);
    ASSERT_OK(fx, trx_commit(t1));
    ASSERT_OK(fx, tfx_delete(fx, t2, 1));
    assert_true(trx_id(t2) > 0);
    assert_int_equal(tfx_insert(fx, t2, 2, 1, 1), DB_SUCCESS);
    t1 = tfx_begin(fx);
    assert_int_equal(tfx_insert(fx, t1, 1, 30, 0), DB_LOCK_CONFLICT);
    assert_int_equal(fx->table->n_trx, 1);
    ASSERT_OK(fx, trx_rollback(t2));
    assert_int_equal(fx->table->n_trx, 0);
    assert_int_equal(tfx_insert(fx, t1, 1, 30, 0), DB_DUPLICATE_KEY);
    ASSERT_OK(fx, trx_commit(t1));
    tfx_row_t model[3] = {{false, 0, 0}, {true, 10, 0}, {false, 0, 0}};
    tfx_verify(fx, model, 3);
    tfx_destroy(fx);
}

/** n_trx, by which DDL refuses tables with open changes, survives a reload of the catalogue. */
static void test_reload_keeps_count(void **state)
{
    (void)state;
    trx_fixture_t *fx = tfx_create(4096, 64);
    trx_t *trx = tfx_begin(fx);
    ASSERT_OK(fx, tfx_insert(fx, trx, 1, 10, 0));
    tfx_create_table(fx, "t2");
    fx->table = dict_table_get(fx->dict, "t1");
    assert_non_null(fx->table);
    assert_int_equal(fx->table->n_trx, 1);
    assert_int_equal(dict_table_get(fx->dict, "t2")->n_trx, 0);
    ASSERT_OK(fx, trx_rollback(trx));
    assert_int_equal(fx->table->n_trx, 0);
    tfx_destroy(fx);
}

/** A column of the primary key cannot be updated; a failed statement leaves the transaction open.
*/
static void test_primary_key_is_fixed(void **state)
{
    (void)state;
    trx_fixture_t *fx = tfx_create(4096, 64);
    byte pk[8];
    tfx_pk(1, pk);
    byte other[8];
    tfx_pk(2, other);
    row_upd_t upd = {0, other};
    trx_t *trx = tfx_begin(fx);
    ASSERT_OK(fx, tfx_insert(fx, trx, 1, 10, 0));
    assert_int_equal(row_update(trx, fx->table, pk, &upd, 1), DB_ERROR);
    ASSERT_OK(fx, tfx_update(fx, trx, 1, 11, 3));
    ASSERT_OK(fx, trx_commit(trx));
    tfx_row_t model[2] = {{false, 0, 0}, {true, 11, 3}};
    tfx_verify(fx, model, 2);
    tfx_destroy(fx);
}

/** One index over two columns that change one after the other: purge drops every entry in between.
*/
static void test_purge_between_versions(void **state)
{
    (void)state;
    trx_fixture_t *fx = tfx_create(4096, 64);
    byte pk[8];
    tfx_pk(1, pk);
    byte b[8];
    tfx_pk(5, b);
    byte c[10];
    tfx_value_c(99, c);
    row_upd_t upd_b = {1, b};
    row_upd_t upd_c = {2, c};
    trx_t *trx = tfx_begin(fx);
    ASSERT_OK(fx, tfx_insert(fx, trx, 1, 1, 1));
    ASSERT_OK(fx, row_update(trx, fx->table, pk, &upd_b, 1));
    ASSERT_OK(fx, row_update(trx, fx->table, pk, &upd_c, 1));
    ASSERT_OK(fx, trx_commit(trx));
    tfx_counts_t n = {0};
    tfx_count_index(fx, &fx->table->indexes[2], &n);
    assert_int_equal(n.marked_entries, 2);
    tfx_purge_all(fx);
    tfx_verify_at_rest(fx);
    n = (tfx_counts_t){0};
    tfx_count_index(fx, &fx->table->indexes[2], &n);
    assert_int_equal(n.entries, 1);
    tfx_destroy(fx);
}

/** Purge while a commit waits takes the records of that very transaction, a few at a time; while
another transaction has changes it rests; a commit durable by itself, as those of DDL, has none. */
static void test_purge_amid_commit(void **state)
{
    (void)state;
    trx_fixture_t *fx = tfx_create(4096, 64);
    tfx_row_t model[60] = {{0}};
    trx_sys_set_purge(fx->sys, 1, 0);
    trx_t *other = tfx_begin(fx);
    ASSERT_OK(fx, tfx_insert(fx, other, 59, 1, 1));
    for (uint32_t i = 0; i < 40; i++) {
        trx_t *trx = tfx_begin(fx);
        ASSERT_OK(fx, tfx_insert(fx, trx, i, 1, 2));
        ASSERT_OK(fx, trx_commit(trx));
        model[i] = (tfx_row_t){true, 1, 2};
    }
    assert_int_equal(fx->env.stats.purged_amid_commit, 0);
    assert_int_equal(trx_sys_history_len(fx->sys), 40);
    ASSERT_OK(fx, trx_rollback(other));
    for (uint32_t i = 0; i < 40; i++) {
        trx_t *trx = tfx_begin(fx);
        if (i % 2 == 0) {
            ASSERT_OK(fx, tfx_delete(fx, trx, i));
            model[i] = (tfx_row_t){false, 0, 0};
        } else {
            ASSERT_OK(fx, tfx_update(fx, trx, i, 5, 3));
            model[i] = (tfx_row_t){true, 5, 3};
        }
        ASSERT_OK(fx, i < 39 ? trx_commit(trx) : trx_commit_durable(trx));
        if (i == 38) {
            assert_int_equal(trx_sys_history_len(fx->sys), 0);
        }
    }
    assert_int_equal(trx_sys_history_len(fx->sys), 1);
    assert_int_equal(fx->env.stats.purged_amid_commit, 79);
    tfx_verify(fx, model, 60);
    tfx_restart(fx);
    tfx_purge_and_verify(fx, model, 60);
    tfx_destroy(fx);
}

/** On a handle that an I/O failure has poisoned, statements, commit and rollback fail; the
transaction is left to recovery, which undoes it (I23). */
static void test_poisoned(void **state)
{
    (void)state;
    trx_fixture_t *fx = tfx_create(4096, 64);
    tfx_row_t model[4] = {{0}};
    trx_t *trx[2] = {NULL};
    for (int i = 0; i < 2; i++) {
        trx[i] = tfx_begin(fx);
        ASSERT_OK(fx, tfx_insert(fx, trx[i], i, 1, 1));
    }
    fx->env.io_failed = true;
    assert_int_equal(tfx_insert(fx, trx[0], 2, 1, 1), DB_IO_ERROR);
    assert_int_equal(trx_commit(trx[0]), DB_IO_ERROR);
    assert_int_equal(trx_rollback(trx[1]), DB_IO_ERROR);
    assert_int_equal(trx_sys_n_active(fx->sys), 0);
    fx->env.io_failed = false;
    fx->env.err = (err_sink_t){.msg = ""};
    tfx_restart(fx);
    tfx_verify(fx, model, 4);
    tfx_verify_at_rest(fx);
    tfx_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conflict),
        cmocka_unit_test(test_reload_keeps_count),
        cmocka_unit_test(test_primary_key_is_fixed),
        cmocka_unit_test(test_purge_between_versions),
        cmocka_unit_test(test_purge_amid_commit),
        cmocka_unit_test(test_poisoned),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_random_small_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
