/** Failing file operations under an open database: what the user is told, and what goes on. */
#include <errno.h>

#include "test_api_fixture.h"
#include "test_tap_os.h"

/** A database behind a tap that fails chosen operations. */
typedef struct failing {
    fixture_t f;
    tap_t tap;
    const char *path; /**< of the file whose operations fail; a prefix */
    tap_kind_t kind;
    bool on;
    uint32_t n_failed;
} failing_t;

static dberr_t failing_before(void *ctx, const tap_op_t *op)
{
    failing_t *t = ctx;
    if (!t->on || op->kind != t->kind || strncmp(op->path, t->path, strlen(t->path)) != 0) {
        return DB_SUCCESS;
    }
    t->n_failed++;
    t->tap.base.last_errno = ENOSPC;
    return DB_IO_ERROR;
}

static int failing_setup(void **state)
{
    failing_t *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    assert_int_equal(os_mem_create(&t->f.os), DB_SUCCESS);
    t->tap = tap_of(t->f.os);
    t->tap.before = failing_before;
    t->tap.ctx = t;
    fixture_options(&t->f.options);
    OK(&t->f, engine_open(&t->tap.base, &t->f.probe, &t->f.options, true, &t->f.engine, &t->f.err));
    create_table(&t->f, "t");
    insert_rows(&t->f, "t", 1, 3000);
    *state = t;
    return 0;
}

static void fail_from_now(failing_t *t, tap_kind_t kind, const char *path)
{
    t->kind = kind;
    t->path = path;
    t->n_failed = 0;
    t->on = true;
}

static int failing_teardown(void **state)
{
    failing_t *t = *state;
    if (t->f.engine != NULL) {
        (void)!engine_close(t->f.engine, false, NULL);
    }
    os_destroy(t->f.os);
    free(t);
    return 0;
}

static void assert_cause(const char *message, const char *path)
{
    if (strncmp(message, path, strlen(path)) != 0
        || strstr(message, "failed: No space left on device") == NULL) {
        fail_msg("not the first cause: %s", message);
    }
}

/** The message is that of the write that failed: neither the rollback that failed because of it nor
any later call replaces it, and a failed close hands it out. */
static void test_first_cause_stays(void **state)
{
    failing_t *t = *state;
    dict_table_t *u = malloc(sizeof(*u));
    assert_non_null(u);
    define_table(u, "u");
    fail_from_now(t, TAP_CREATE, "u.ibd");
    assert_int_equal(engine_create_table(t->f.engine, u), DB_IO_ERROR);
    free(u);
    assert_int_equal(t->n_failed, 1);
    assert_cause(engine_error(t->f.engine), "u.ibd: create");
    assert_int_equal(engine_checkpoint(t->f.engine, true), DB_IO_ERROR);
    assert_int_equal(engine_rename_table(t->f.engine, "t", "v"), DB_IO_ERROR);
    assert_cause(engine_error(t->f.engine), "u.ibd: create");
    assert_int_equal(engine_close(t->f.engine, true, &t->f.err), DB_IO_ERROR);
    t->f.engine = NULL;
    assert_cause(t->f.err.msg, "u.ibd: create");
}

/** A statement that fails, whose undoing meets the failing disk: the statement's own cause stays. */
static void test_cause_of_a_failed_undo(void **state)
{
    failing_t *t = *state;
    trx_t *trx = NULL;
    byte row[8 + B_LEN + 8];
    OK(&t->f, engine_checkpoint(t->f.engine, true));
    OK(&t->f, engine_begin(t->f.engine, &trx));
    fail_from_now(t, TAP_WRITE, LOG_FILE_NAME);
    dberr_t err = DB_SUCCESS;
    for (int64_t a = 5000; err == DB_SUCCESS && a < 20000; a++) {
        make_row(a, row);
        err = engine_insert(t->f.engine, trx, "t", row);
    }
    assert_int_equal(err, DB_IO_ERROR);
    assert_cause(engine_error(t->f.engine), LOG_FILE_NAME ": write");
    assert_int_equal(engine_rollback(t->f.engine, trx), DB_IO_ERROR);
    assert_cause(engine_error(t->f.engine), LOG_FILE_NAME ": write");
}

/** A close that fails by itself tells why. */
static void test_cause_of_a_failed_close(void **state)
{
    failing_t *t = *state;
    fail_from_now(t, TAP_SYNC, "t.ibd");
    assert_int_equal(engine_close(t->f.engine, true, &t->f.err), DB_IO_ERROR);
    t->f.engine = NULL;
    assert_cause(t->f.err.msg, "t.ibd: fsync");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_cause_stays, failing_setup, failing_teardown),
        cmocka_unit_test_setup_teardown(test_cause_of_a_failed_undo, failing_setup,
                                        failing_teardown),
        cmocka_unit_test_setup_teardown(test_cause_of_a_failed_close, failing_setup,
                                        failing_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
