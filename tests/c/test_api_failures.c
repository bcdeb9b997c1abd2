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
    uint32_t n_spared; /**< of them, that succeed first */
    uint32_t n_failed;
} failing_t;

static dberr_t failing_before(void *ctx, const tap_op_t *op)
{
    failing_t *t = ctx;
    if (!t->on || op->kind != t->kind || strncmp(op->path, t->path, strlen(t->path)) != 0) {
        return DB_SUCCESS;
    }
    if (t->n_spared > 0) {
        t->n_spared--;
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
    t->f.os = image_os_create();
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

/** A statement that fails, whose undoing meets the failing disk: the statement's own cause
stays. */
static void test_cause_of_a_failed_undo(void **state)
{
    failing_t *t = *state;
    OK(&t->f, engine_checkpoint(t->f.engine, true));
    trx_t *trx = NULL;
    OK(&t->f, engine_begin(t->f.engine, &trx));
    fail_from_now(t, TAP_WRITE, LOG_FILE_NAME);
    dberr_t err = DB_SUCCESS;
    byte row[8 + B_LEN + 8];
    for (int64_t a = 5000; err == DB_SUCCESS && a < 20000; a++) {
        make_row(a, row);
        err = engine_insert(t->f.engine, trx, "t", row);
    }
    assert_int_equal(err, DB_IO_ERROR);
    assert_cause(engine_error(t->f.engine), LOG_FILE_NAME ": write");
    assert_int_equal(engine_rollback(t->f.engine, trx), DB_IO_ERROR);
    assert_cause(engine_error(t->f.engine), LOG_FILE_NAME ": write");
}

/** A statement whose log is written as it is appended: the call amid which that fails is not a
success. */
static void test_failed_append_fails_its_call(void **state)
{
    failing_t *t = *state;
    fixture_close(&t->f, true);
    t->f.options.log_write_through = true;
    OK(&t->f, engine_open(&t->tap.base, &t->f.probe, &t->f.options, true, &t->f.engine, &t->f.err));
    trx_t *trx = NULL;
    OK(&t->f, engine_begin(t->f.engine, &trx));
    byte row[8 + B_LEN + 8];
    make_row(5000, row);
    OK(&t->f, engine_insert(t->f.engine, trx, "t", row));
    fail_from_now(t, TAP_WRITE, LOG_FILE_NAME);
    const uint32_t many = UINT32_MAX;
    t->n_spared = many;
    make_row(5001, row);
    OK(&t->f, engine_insert(t->f.engine, trx, "t", row));
    t->n_spared = many - t->n_spared - 1; /* the next one writes as often: its last write fails */
    make_row(5002, row);
    assert_int_equal(engine_insert(t->f.engine, trx, "t", row), DB_IO_ERROR);
    assert_int_equal(t->n_failed, 1);
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

/** A statement whose sort file fails at this operation fails alone: its index is gone, no
temporary file is left, and everything else goes on, the same statement included once the disk
has room again. */
static void check_sort_file(failing_t *t, tap_kind_t kind)
{
    const ddl_index_def_t on_b = index_def("ib", "b", 0);
    fail_from_now(t, kind, "#sql-tmp-");
    dberr_t err = add_indexes(t->f.engine, "t", &on_b, 1);
    assert_true(t->n_failed > 0);
    if (kind == TAP_UNLINK) {
        assert_int_equal(err, DB_SUCCESS);
        OK(&t->f, drop_index(t->f.engine, "t", "ib"));
    } else {
        assert_int_equal(err, DB_TEMP_FILE_FAILED);
        assert_cause(engine_error(t->f.engine), "#sql-tmp-");
    }
    engine_status_t status;
    engine_get_status(t->f.engine, &status);
    assert_false(status.poisoned);
    insert_rows(&t->f, "t", 3001, 3100);
    t->on = false;
    OK(&t->f, add_indexes(t->f.engine, "t", &on_b, 1));
    assert_int_equal(count_rows(&t->f, "t", "ib"), 3100);
    fixture_close(&t->f, true);
    OK(&t->f, engine_open(&t->tap.base, &t->f.probe, &t->f.options, true, &t->f.engine, &t->f.err));
    fixture_close(&t->f, true);
    check_report_t report;
    scan_clean(t->f.os, &report); /* a temporary file would be a finding */
    assert_int_equal(report_table(&report, "t")->n_indexes, 1);
    check_report_free(&report);
}

static void test_sort_file_create(void **state)
{
    check_sort_file(*state, TAP_CREATE);
}

static void test_sort_file_write(void **state)
{
    check_sort_file(*state, TAP_WRITE);
}

static void test_sort_file_unlink(void **state)
{
    check_sort_file(*state, TAP_UNLINK);
}

/** A full disk takes no block of the log of row changes: rows change as before, and the build fails
at its end. */
static void test_row_log_file(void **state)
{
    failing_t *t = *state;
    const ddl_index_def_t on_b = index_def("ib", "b", 0);
    ddl_alter_t alter = *ADD_INDEXES("t", &on_b, 1);
    alter.lock = LOCK_NONE;
    OK(&t->f, engine_start_alter(t->f.engine, &alter));
    fail_from_now(t, TAP_WRITE, "#sql-tmp-");
    for (int64_t a = 1; t->n_failed == 0; a += 100) {
        update_rows(&t->f, "t", a, a + 99, 'x');
    }
    update_rows(&t->f, "t", 1, 200, 'y');
    t->on = false;
    OK(&t->f, engine_step_alter(t->f.engine, "t", 1000, 1000));
    assert_int_equal(engine_finish_alter(t->f.engine, "t"), DB_TEMP_FILE_FAILED);
    assert_non_null(strstr(engine_error(t->f.engine), "No space left on device"));
    assert_int_equal(engine_finish_alter(t->f.engine, "t"), DB_NOT_FOUND);
    OK(&t->f, add_indexes(t->f.engine, "t", &on_b, 1));
    fixture_close(&t->f, true);
    check_report_t report;
    scan_clean(t->f.os, &report); /* a temporary file would be a finding */
    check_report_free(&report);
}

/** A leftover of a crash that cannot be removed does not keep the database from opening. */
static void test_leftover_cannot_be_removed(void **state)
{
    failing_t *t = *state;
    fixture_close(&t->f, true);
    os_file_t *file = NULL;
    for (uint32_t i = 0; i < 2; i++) {
        const char *path = i == 0 ? "#sql-tmp-9-0" : "#sql-tmp-9-1";
        assert_int_equal(t->f.os->vt->open(t->f.os, path, OS_CREATE_NEW, &file), DB_SUCCESS);
        t->f.os->vt->close(file);
    }
    fail_from_now(t, TAP_UNLINK, "#sql-tmp-");
    OK(&t->f, engine_open(&t->tap.base, &t->f.probe, &t->f.options, true, &t->f.engine, &t->f.err));
    assert_int_equal(t->n_failed, 2);
    fixture_close(&t->f, true);
    t->on = false;
    OK(&t->f, engine_open(&t->tap.base, &t->f.probe, &t->f.options, true, &t->f.engine, &t->f.err));
    assert_false(file_exists(&t->f, "#sql-tmp-9-0") || file_exists(&t->f, "#sql-tmp-9-1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_first_cause_stays, failing_setup, failing_teardown),
        cmocka_unit_test_setup_teardown(test_cause_of_a_failed_undo, failing_setup,
                                        failing_teardown),
        cmocka_unit_test_setup_teardown(test_failed_append_fails_its_call, failing_setup,
                                        failing_teardown),
        cmocka_unit_test_setup_teardown(test_cause_of_a_failed_close, failing_setup,
                                        failing_teardown),
        cmocka_unit_test_setup_teardown(test_sort_file_create, failing_setup, failing_teardown),
        cmocka_unit_test_setup_teardown(test_sort_file_write, failing_setup, failing_teardown),
        cmocka_unit_test_setup_teardown(test_row_log_file, failing_setup, failing_teardown),
        cmocka_unit_test_setup_teardown(test_sort_file_unlink, failing_setup, failing_teardown),
        cmocka_unit_test_setup_teardown(test_leftover_cannot_be_removed, failing_setup,
                                        failing_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
