/** Undo logs in pages: long chains, restart, crashes between two steps, hostile images, limits. */
#include "test_trx_fixture.h"
#include "trx/undo_format.h"

#define N_LONG 400U
#define N_CRASH 60U

/** Rows 0 ... n-1 with b = a, committed. */
static void fill(trx_fixture_t *fx, tfx_row_t *model, uint32_t n)
{
    trx_t *trx = tfx_begin(fx);
    for (uint32_t a = 0; a < n; a++) {
        ASSERT_OK(fx, tfx_insert(fx, trx, a, a, a));
        model[a] = (tfx_row_t){true, a, a};
    }
    ASSERT_OK(fx, trx_commit(trx));
}

/** A database on 4k pages with these rows. */
static trx_fixture_t *create_filled(tfx_row_t *model, uint32_t n)
{
    trx_fixture_t *fx = tfx_create(4096, 64);
    fill(fx, model, n);
    return fx;
}

/** Updates every third row, deletes every third, revives some of those; model may be NULL. */
static void change_all(trx_fixture_t *fx, trx_t *trx, tfx_row_t *model, uint32_t n)
{
    for (uint32_t a = 0; a < n; a++) {
        tfx_row_t row = {a % 3 != 1 || a % 2 == 0, a + 1000, 7};
        if (a % 3 == 0) {
            ASSERT_OK(fx, tfx_update(fx, trx, a, row.b, row.c));
        } else if (a % 3 == 1) {
            ASSERT_OK(fx, tfx_delete(fx, trx, a));
            if (a % 2 == 0) {
                ASSERT_OK(fx, tfx_insert(fx, trx, a, row.b, row.c));
            }
        } else {
            continue;
        }
        if (model != NULL) {
            model[a] = row;
        }
    }
}

static void long_rollback(uint32_t page_size, uint32_t n)
{
    trx_fixture_t *fx = tfx_create(page_size, 64);
    tfx_row_t *model = calloc(n, sizeof(*model));
    fill(fx, model, n);
    tfx_purge_all(fx);
    assert_int_equal(tfx_undo_pages(fx), 0);
    trx_t *trx = tfx_begin(fx);
    change_all(fx, trx, NULL, n);
    uint32_t n_pages = tfx_undo_pages(fx);
    assert_true(n_pages > 2);
    ASSERT_OK(fx, trx_rollback_to(trx, trx_savepoint(trx) / 2));
    assert_true(tfx_undo_pages(fx) < n_pages);
    ASSERT_OK(fx, trx_rollback(trx));
    assert_int_equal(fx->env.stats.trx_rollbacks, 1);
    tfx_verify(fx, model, n);
    tfx_verify_at_rest(fx);
    free(model);
    tfx_destroy(fx);
}

/** A transaction whose undo log fills many pages rolls back to the last byte of undo (I2, I11). */
static void test_long_rollback(void **state)
{
    (void)state;
    long_rollback(4096, N_LONG);
    long_rollback(65536, 4 * N_LONG);
}

/** Purge in small steps across pages and logs, interrupted by a restart in the middle of a log. */
static void test_long_purge(void **state)
{
    (void)state;
    tfx_row_t *model = calloc(N_LONG, sizeof(*model));
    trx_fixture_t *fx = create_filled(model, N_LONG);
    trx_t *trx = tfx_begin(fx);
    change_all(fx, trx, model, N_LONG);
    ASSERT_OK(fx, trx_commit(trx));
    assert_int_equal(trx_sys_history_len(fx->sys), 2);
    bool done = false;
    ASSERT_OK(fx, trx_purge_step(fx->sys, N_LONG / 2, &done));
    assert_false(done);
    tfx_restart(fx);
    assert_int_equal(trx_sys_history_len(fx->sys), 2);
    ASSERT_OK(fx, trx_purge_step(fx->sys, N_LONG + 50, &done));
    assert_int_equal(trx_sys_history_len(fx->sys), 1);
    tfx_restart(fx);
    tfx_purge_and_verify(fx, model, N_LONG);
    free(model);
    tfx_destroy(fx);
}

/** A transaction that has changed all rows; once `after` hits of the point have passed, it crashes.
model: see change_all(). */
static trx_t *change_to_crash(trx_fixture_t *fx, tfx_row_t *model, const char *point,
                              uint32_t after)
{
    trx_t *trx = tfx_begin(fx);
    change_all(fx, trx, model, N_CRASH);
    fx->crash_point = point;
    fx->crash_after = after;
    return trx;
}

/** After a crash: a start brings back the model. */
static void restart_and_verify(trx_fixture_t *fx, const tfx_row_t *model)
{
    fx->crash_point = NULL;
    tfx_restart(fx);
    tfx_purge_and_verify(fx, model, N_CRASH);
    tfx_destroy(fx);
}

/* setjmp() in a frame of its own, so that no loop variable lives across it. */
static __attribute__((noinline)) void crash_in_rollback(uint32_t after)
{
    tfx_row_t model[N_CRASH];
    trx_fixture_t *fx = create_filled(model, N_CRASH);
    trx_t *trx = change_to_crash(fx, NULL, "trx.rollback_step", after);
    if (setjmp(fx->crash) == 0) {
        dberr_t err = trx_rollback(trx);
        fail_msg("no crash: %s", err_name(err));
    }
    fx->crash_after = 0;
    tfx_close_sys(fx);
    tfx_open_sys(fx);
    if (setjmp(fx->crash) == 0) {
        dberr_t err = trx_sys_rollback_resurrected(fx->sys, NULL, NULL);
        fail_msg("no second crash: %s", err_name(err));
    }
    restart_and_verify(fx, model);
}

/** A crash after any record of a rollback was undone, but not truncated yet, and again: the repeat
ends it. */
static void test_crash_in_rollback(void **state)
{
    (void)state;
    for (uint32_t after = 0; after < 50; after += 7) {
        crash_in_rollback(after);
    }
}

/* setjmp() in a frame of its own, so that no loop variable lives across it. */
static __attribute__((noinline)) void crash_in_purge(uint32_t after)
{
    tfx_row_t model[N_CRASH];
    trx_fixture_t *fx = create_filled(model, N_CRASH);
    trx_t *trx = change_to_crash(fx, model, "purge.step", after);
    ASSERT_OK(fx, trx_commit(trx));
    if (setjmp(fx->crash) == 0) {
        bool done = false;
        dberr_t err = trx_purge_step(fx->sys, 1000, &done);
        fail_msg("no crash: %s", err_name(err));
    }
    restart_and_verify(fx, model);
}

/** A crash after any purge step: the log begins again, the result is the same (I17). */
static void test_crash_in_purge(void **state)
{
    (void)state;
    for (uint32_t after = 0; after < 110; after += 11) {
        crash_in_purge(after);
    }
}

static void note_id(void *ctx, trx_id_t id)
{
    trx_id_t *ids = ctx;
    ids[++ids[0]] = id;
}

/** Open transactions are resurrected under their ids, committed ones stay; ids never repeat (I25).
*/
static void test_resurrect(void **state)
{
    (void)state;
    tfx_row_t model[10];
    trx_fixture_t *fx = create_filled(model, 10);
    trx_t *t1 = tfx_begin(fx);
    trx_t *t2 = tfx_begin(fx);
    trx_t *idle = tfx_begin(fx);
    assert_int_equal(trx_id(idle), 0);
    ASSERT_OK(fx, tfx_delete(fx, t1, 1));
    ASSERT_OK(fx, tfx_update(fx, t2, 2, 50, 50));
    ASSERT_OK(fx, tfx_insert(fx, t2, 11, 50, 50));
    trx_id_t want[2] = {trx_id(t1), trx_id(t2)};
    tfx_close_sys(fx);
    tfx_open_sys(fx);
    assert_int_equal(trx_sys_n_active(fx->sys), 2);
    trx_id_t seen[8] = {0};
    ASSERT_OK(fx, trx_sys_rollback_resurrected(fx->sys, note_id, seen));
    fx->table = dict_table_get(fx->dict, "t1");
    assert_int_equal(seen[0], 2);
    assert_memory_equal(seen + 1, want, sizeof(want));
    tfx_verify(fx, model, 10);
    t1 = tfx_begin(fx);
    ASSERT_OK(fx, tfx_delete(fx, t1, 1));
    assert_true(trx_id(t1) > want[1]);
    model[1].present = false;
    ASSERT_OK(fx, trx_commit(t1));
    tfx_verify(fx, model, 10);
    tfx_purge_all(fx);
    tfx_verify_at_rest(fx);
    tfx_destroy(fx);
}

/** A transaction that changed the catalogue is rolled back before the catalogue is read: half a
table's rows would be refused as damage. */
static void test_catalogue_first(void **state)
{
    (void)state;
    tfx_row_t model[10];
    trx_fixture_t *fx = create_filled(model, 10);
    trx_t *user = tfx_begin(fx);
    ASSERT_OK(fx, tfx_update(fx, user, 2, 50, 50));
    trx_t *ddl = tfx_begin(fx);
    dict_table_t *table = calloc(1, sizeof(*table));
    *table = *fx->table;
    table->id = 999;
    snprintf(table->name, sizeof(table->name), "half");
    byte row[SYS_ROW_MAX];
    dict_sys_tables_row(table, row);
    ASSERT_OK(fx, row_insert(ddl, dict_sys_table(fx->dict, SYS_TABLES), row));
    free(table);
    tfx_restart(fx);
    assert_null(dict_table_get(fx->dict, "half"));
    tfx_verify(fx, model, 10);
    tfx_destroy(fx);
}

/** 64 transactions may have uncommitted changes; the next one is refused and stays usable. */
static void test_slots(void **state)
{
    (void)state;
    trx_fixture_t *fx = tfx_create(4096, 256);
    trx_t *trx[RSEG_N_SLOTS + 1];
    for (uint32_t i = 0; i < RSEG_N_SLOTS; i++) {
        trx[i] = tfx_begin(fx);
        ASSERT_OK(fx, tfx_insert(fx, trx[i], i, i, i));
    }
    trx[RSEG_N_SLOTS] = tfx_begin(fx);
    assert_int_equal(tfx_insert(fx, trx[RSEG_N_SLOTS], 100, 1, 1), DB_OUT_OF_SPACE);
    ASSERT_OK(fx, trx_rollback(trx[0]));
    ASSERT_OK(fx, tfx_insert(fx, trx[RSEG_N_SLOTS], 100, 1, 1));
    for (uint32_t i = 1; i <= RSEG_N_SLOTS; i++) {
        ASSERT_OK(fx, trx_commit(trx[i]));
    }
    assert_int_equal(trx_sys_history_len(fx->sys), RSEG_N_SLOTS);
    tfx_purge_all(fx);
    tfx_verify_at_rest(fx);
    tfx_destroy(fx);
}

/** flush_log_at_trx_commit decides what a commit waits for; trx_commit_durable() always waits (I1).
*/
static void test_durability(void **state)
{
    (void)state;
    for (uint32_t mode = 0; mode <= 2; mode++) {
        trx_fixture_t *fx = tfx_create(4096, 64);
        fx->options.flush_log_at_trx_commit = mode;
        tfx_restart(fx);
        ASSERT_OK(fx, log_write_up_to(fx->log, log_lsn(fx->log), true));
        trx_t *trx = tfx_begin(fx);
        ASSERT_OK(fx, tfx_insert(fx, trx, 1, 1, 1));
        ASSERT_OK(fx, trx_commit(trx));
        lsn_t end = log_lsn(fx->log);
        assert_int_equal(log_flushed_lsn(fx->log) == end, mode == 1);
        assert_int_equal(log_written_lsn(fx->log) == end, mode != 0);
        trx = tfx_begin(fx);
        ASSERT_OK(fx, tfx_insert(fx, trx, 2, 1, 1));
        ASSERT_OK(fx, trx_commit_durable(trx));
        assert_int_equal(log_flushed_lsn(fx->log), log_lsn(fx->log));
        lsn_t lsn = log_lsn(fx->log);
        ASSERT_OK(fx, trx_commit(tfx_begin(fx)));
        ASSERT_OK(fx, trx_rollback(tfx_begin(fx)));
        assert_int_equal(log_lsn(fx->log), lsn);
        tfx_destroy(fx);
    }
}

/** A transaction that rolled back to its start commits like one without changes. */
static void test_empty_commit(void **state)
{
    (void)state;
    trx_fixture_t *fx = tfx_create(4096, 64);
    trx_t *trx = tfx_begin(fx);
    ASSERT_OK(fx, tfx_insert(fx, trx, 1, 1, 1));
    ASSERT_OK(fx, trx_rollback_to(trx, 0));
    assert_int_equal(tfx_undo_pages(fx), 1);
    ASSERT_OK(fx, trx_commit(trx));
    assert_int_equal(tfx_undo_pages(fx), 0);
    assert_int_equal(trx_sys_history_len(fx->sys), 0);
    trx = tfx_begin(fx);
    ASSERT_OK(fx, tfx_insert(fx, trx, 1, 1, 1));
    ASSERT_OK(fx, trx_rollback_to(trx, 0));
    tfx_restart(fx);
    tfx_verify_at_rest(fx);
    tfx_destroy(fx);
}

/** History of a table that is gone is skipped, and its undo pages are freed. */
static void test_dropped_table(void **state)
{
    (void)state;
    tfx_row_t model[10];
    trx_fixture_t *fx = create_filled(model, 10);
    fx->table->status = DICT_DROPPING;
    tfx_purge_all(fx);
    assert_int_equal(tfx_undo_pages(fx), 0);
    fx->table->status = DICT_READY;
    tfx_counts_t n = {0};
    tfx_count_index(fx, &fx->table->indexes[0], &n);
    assert_int_equal(n.with_ids, 10);
    tfx_destroy(fx);
}

static void poke(trx_fixture_t *fx, page_no_t page_no, uint32_t offset, uint32_t len,
                 uint64_t value)
{
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    ASSERT_OK(fx, mtr_page_get(&mtr, (page_id_t){SPACE_SYSTEM, page_no}, &block));
    if (offset == FIL_PAGE_TYPE) {
        mach_write_2(block->frame + offset, (uint32_t)value); /* no record changes the envelope */
    } else if (len == 2) {
        mtr_write_2(&mtr, block, offset, (uint32_t)value);
    } else if (len == 4) {
        mtr_write_4(&mtr, block, offset, (uint32_t)value);
    } else {
        mtr_write_8(&mtr, block, offset, value);
    }
    mtr_commit(&mtr);
}

static uint32_t peek_4(trx_fixture_t *fx, page_no_t page_no, uint32_t offset)
{
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_READ_ONLY);
    buf_block_t *block = NULL;
    ASSERT_OK(fx, mtr_page_get(&mtr, (page_id_t){SPACE_SYSTEM, page_no}, &block));
    uint32_t value = mach_read_4(block->frame + offset);
    mtr_commit(&mtr);
    return value;
}

typedef enum where { ON_TRX_SYS, ON_RSEG, ON_FIRST, ON_SECOND, ON_LAST, ON_HISTORY } where_t;

/** Each impossible value in a TRX_SYS, RSEG or undo page is refused at the start with a message. */
static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        where_t where;
        uint32_t offset;
        uint32_t len;
        uint64_t value;
    } CASES[] = {
        {ON_TRX_SYS, TRX_SYS_MAX_ID, 8, 0},
        {ON_TRX_SYS, TRX_SYS_MAX_ID, 8, 1},
        {ON_TRX_SYS, TRX_SYS_MAX_ID, 8, UINT64_MAX},
        {ON_TRX_SYS, TRX_SYS_NEXT_NO, 8, 0},
        {ON_TRX_SYS, TRX_SYS_NEXT_NO, 8, 1},
        {ON_TRX_SYS, FIL_PAGE_TYPE, 2, FIL_PAGE_INDEX},
        {ON_RSEG, RSEG_HISTORY_HEAD, 4, FIL_NULL},
        {ON_RSEG, RSEG_HISTORY_HEAD, 4, 0},
        {ON_RSEG, RSEG_HISTORY_TAIL, 4, FIL_NULL},
        {ON_RSEG, RSEG_HISTORY_LEN, 8, 17},
        {ON_RSEG, RSEG_SLOTS + 4 * 7, 4, 2},
        {ON_RSEG, RSEG_SLOTS + 4 * 7, 4, 123456},
        {ON_FIRST, FIL_PAGE_TYPE, 2, FIL_PAGE_TYPE_SYS},
        {ON_FIRST, UNDO_PREV, 4, 7},
        {ON_FIRST, UNDO_NEXT, 4, FIL_NULL},
        {ON_FIRST, UNDO_NEXT, 4, 0x7FFFFFFF},
        {ON_FIRST, UNDO_FREE, 2, 0},
        {ON_FIRST, UNDO_FREE, 2, 0xFFFF},
        {ON_FIRST, UNDO_FREE, 2, UNDO_RECS + 1},
        {ON_FIRST, UNDO_N_RECS, 2, 0},
        {ON_FIRST, UNDO_N_RECS, 2, 1},
        {ON_FIRST, UNDO_N_RECS, 2, 0xFFFF},
        {ON_FIRST, UNDO_STATE, 2, UNDO_STATE_COMMITTED},
        {ON_FIRST, UNDO_STATE, 2, 0},
        {ON_FIRST, UNDO_STATE, 2, 9},
        {ON_FIRST, UNDO_TRX_ID, 8, 0},
        {ON_FIRST, UNDO_TRX_ID, 8, UINT64_MAX},
        {ON_FIRST, UNDO_TRX_NO, 8, 1},
        {ON_FIRST, UNDO_HISTORY_NEXT, 4, 5},
        {ON_FIRST, UNDO_LAST_PAGE, 4, 5},
        {ON_FIRST, UNDO_RECS + UNDO_REC_LEN, 2, 0},
        {ON_FIRST, UNDO_RECS + UNDO_REC_LEN, 2, 0xFFFF},
        {ON_FIRST, UNDO_RECS + UNDO_REC_TYPE - 1, 2, 0},
        {ON_FIRST, UNDO_RECS + UNDO_REC_PK_LEN, 2, 0xFFFF},
        {ON_FIRST, UNDO_RECS + UNDO_REC_PK_LEN, 2, 0},
        {ON_SECOND, UNDO_PREV, 4, FIL_NULL},
        {ON_SECOND, UNDO_PREV, 4, 3},
        {ON_SECOND, UNDO_STATE, 2, UNDO_STATE_ACTIVE},
        {ON_SECOND, UNDO_NEXT, 4, FIL_NULL},
        {ON_LAST, UNDO_NEXT, 4, 4},
        {ON_HISTORY, UNDO_STATE, 2, UNDO_STATE_ACTIVE},
        {ON_HISTORY, UNDO_TRX_NO, 8, 0},
        {ON_HISTORY, UNDO_TRX_NO, 8, UINT64_MAX},
        {ON_HISTORY, UNDO_HISTORY_NEXT, 4, 0},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        tfx_row_t model[60];
        trx_fixture_t *fx = create_filled(model, 60);
        change_all(fx, tfx_begin(fx), NULL, 60);
        page_no_t first = peek_4(fx, RSEG_PAGE, RSEG_SLOTS);
        page_no_t pages[] = {TRX_SYS_PAGE,
                             RSEG_PAGE,
                             first,
                             peek_4(fx, first, UNDO_NEXT),
                             peek_4(fx, first, UNDO_LAST_PAGE),
                             peek_4(fx, RSEG_PAGE, RSEG_HISTORY_HEAD)};
        assert_true(pages[ON_SECOND] != pages[ON_LAST]);
        tfx_close_sys(fx);
        fx->env.err.msg[0] = 0;
        poke(fx, pages[CASES[i].where], CASES[i].offset, CASES[i].len, CASES[i].value);
        ASSERT_OK(fx, dict_open(fx->pool, &fx->dict));
        dberr_t err = trx_sys_open(fx->pool, fx->dict, 1, &fx->sys);
        if (err != DB_CORRUPTION || fx->env.err.msg[0] == 0) {
            fail_msg("case %zu: %s '%s'", i, err_name(err), fx->env.err.msg);
        }
        tfx_destroy(fx);
    }
}

/** Undo records whose contents do not fit their table are refused by rollback and by purge. */
static void test_hostile_records(void **state)
{
    (void)state;
    static const struct {
        uint32_t offset;
        uint32_t len;
        uint64_t value;
    } CASES[] = {
        {UNDO_REC_TABLE_ID, 8, 0x7FFFFFFF},                  /* no such table: rollback only */
        {UNDO_REC_PK + 8 + 1, 2, 1},                         /* fewer columns than bytes */
        {UNDO_REC_PK + 8 + 1, 2, 0xFFFF},                    /* more columns than bytes */
        {UNDO_REC_PK + 8 + UNDO_REC_UPDATE_FIXED, 2, 0},     /* a primary key column */
        {UNDO_REC_PK + 8 + UNDO_REC_UPDATE_FIXED, 2, 4},     /* no such column */
        {UNDO_REC_PK + 8 + UNDO_REC_UPDATE_FIXED + 2, 2, 9}, /* wrong length */
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        for (int committed = 0; committed < 2; committed++) {
            tfx_row_t model[2];
            trx_fixture_t *fx = create_filled(model, 2);
            tfx_purge_all(fx);
            trx_t *trx = tfx_begin(fx);
            ASSERT_OK(fx, tfx_update(fx, trx, 1, 2, 3));
            page_no_t first = peek_4(fx, RSEG_PAGE, RSEG_SLOTS);
            poke(fx, first, UNDO_RECS + CASES[i].offset, CASES[i].len, CASES[i].value);
            bool done = false;
            if (committed) {
                ASSERT_OK(fx, trx_commit(trx));
                dberr_t want = i == 0 ? DB_SUCCESS : DB_CORRUPTION;
                assert_int_equal(trx_purge_step(fx->sys, 10, &done), want);
            } else {
                assert_int_equal(trx_rollback(trx), DB_CORRUPTION);
            }
            tfx_destroy(fx);
        }
    }
}

/** Ids are promised in steps, across the limit and across restarts: each is greater than all
before. */
static void test_ids(void **state)
{
    (void)state;
    trx_fixture_t *fx = tfx_create(4096, 64);
    trx_id_t last = 0;
    for (uint32_t i = 0; i < 3 * TRX_ID_STEP; i++) {
        trx_t *trx = tfx_begin(fx);
        ASSERT_OK(fx, tfx_insert(fx, trx, 1, i, i));
        assert_true(trx_id(trx) > last);
        last = trx_id(trx);
        assert_true(last < ((uint64_t)peek_4(fx, TRX_SYS_PAGE, TRX_SYS_MAX_ID) << 32
                            | peek_4(fx, TRX_SYS_PAGE, TRX_SYS_MAX_ID + 4)));
        if (i % 100 == 99) {
            tfx_restart(fx);
        } else {
            ASSERT_OK(fx, trx_rollback(trx));
        }
    }
    tfx_verify_at_rest(fx);
    tfx_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_rollback),
        cmocka_unit_test(test_long_purge),
        cmocka_unit_test(test_crash_in_rollback),
        cmocka_unit_test(test_crash_in_purge),
        cmocka_unit_test(test_resurrect),
        cmocka_unit_test(test_catalogue_first),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_durability),
        cmocka_unit_test(test_empty_commit),
        cmocka_unit_test(test_dropped_table),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_hostile_records),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
