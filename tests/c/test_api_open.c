/** Opening and closing: what is refused and with which words, what is kept, poisoned handles,
counters. */
#include "test_api_fixture.h"

#include "api/api_int.h"

static dberr_t try_open(fixture_t *f, bool create)
{
    engine_t *engine = NULL;
    TRY(engine_open(f->os, &f->probe, &f->options, create, &engine, &f->err));
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    return DB_SUCCESS;
}

static void assert_refused(fixture_t *f, bool create, dberr_t expected, const char *words)
{
    f->err.msg[0] = '\0';
    assert_int_equal(try_open(f, create), expected);
    if (strstr(f->err.msg, words) == NULL) {
        fail_msg("'%s' instead of '...%s...'", f->err.msg, words);
    }
}

static void write_file(fixture_t *f, const char *path, const char *text)
{
    os_file_t *file = NULL;
    assert_int_equal(f->os->vt->open(f->os, path, OS_CREATE_TRUNC, &file), DB_SUCCESS);
    assert_int_equal(f->os->vt->write(file, 0, text, strlen(text)), DB_SUCCESS);
    f->os->vt->close(file);
}

/** A second handle on the same directory is refused, and welcome after the first one is gone. */
static void test_lock(void **state)
{
    fixture_t *f = *state;
    assert_int_equal(try_open(f, false), DB_DIR_LOCKED);
    assert_int_equal(try_open(f, true), DB_DIR_LOCKED);
    fixture_close(f, true);
    assert_int_equal(try_open(f, false), DB_SUCCESS);
}

/** What is fixed at creation is taken from the directory; other options are refused. */
static void test_fixed_options(void **state)
{
    fixture_t *f = *state;
    fixture_close(f, true);
    f->options.page_size = 8192;
    f->options.log_file_size = 0;
    assert_refused(f, true, DB_ERROR, "page_size is 4096 in this directory");
    f->options.page_size = 4096;
    f->options.log_file_size = 1 << 20;
    assert_refused(f, false, DB_ERROR, "log_file_size is 262144 in this directory");
    f->options.page_size = 0;
    f->options.log_file_size = 0;
    f->options.extent_pages = 16;
    assert_refused(f, false, DB_ERROR, "extent_pages is 8 in this directory");
    f->options.extent_pages = 0;
    fixture_open(f);
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_int_equal(status.page_size, 4096);
    assert_int_equal(status.log_file_size, 64 * 4096);
    f->options.buffer_pool_pages = 3;
    assert_refused(f, true, DB_ERROR, "buffer_pool_pages");
}

/** Every page size works, with its own default redo and extent size. */
static void test_page_sizes(void **state)
{
    fixture_t *f = *state;
    for (uint32_t size = 4096; size <= 65536; size *= 2) {
        fixture_empty(f);
        f->options.page_size = size;
        f->options.extent_pages = 0;
        f->options.log_file_size = 0;
        fixture_open(f);
        create_table(f, "t");
        insert_rows(f, "t", 1, 800);
        add_two_indexes(f, "t");
        engine_status_t status;
        engine_get_status(f->engine, &status);
        assert_int_equal(status.page_size, size);
        assert_int_equal(status.log_file_size,
                         size == 65536 || size == 32768 ? 64 * size : 1 << 20);
        fixture_close(f, true);
        check_report_t report;
        scan_clean(f->os, &report);
        assert_int_equal(report_table(&report, "t")->indexes[1].entries, 800);
        check_report_free(&report);
        fixture_open(f);
    }
    f->options.page_size = 65536;
    f->options.log_file_size = 1 << 20;
    fixture_empty(f);
    assert_refused(f, true, DB_ERROR, "at least 64 pages");
    f->options.log_file_size = 0;
    assert_refused(f, false, DB_NOT_FOUND, "it is empty");
    fixture_open(f);
}

/** What is no database is not opened, not changed, and not turned into one. */
static void test_no_database(void **state)
{
    fixture_t *f = *state;
    fixture_empty(f);
    assert_refused(f, false, DB_NOT_FOUND, "it is empty");
    write_file(f, "notes.txt", "mine");
    assert_refused(f, true, DB_NOT_FOUND, "other files");
    assert_refused(f, false, DB_NOT_FOUND, "other files");
    assert_false(file_exists(f, "ib_logfile0"));
    assert_int_equal(f->os->vt->unlink(f->os, "notes.txt"), DB_SUCCESS);
    write_file(f, "t.ibd", "data");
    assert_refused(f, true, DB_UNRECOVERABLE, "redo log missing");
    write_file(f, "ib_logfile101", "");
    assert_refused(f, true, DB_UNRECOVERABLE, "redo log missing");
    assert_int_equal(f->os->vt->unlink(f->os, "t.ibd"), DB_SUCCESS);
    write_file(f, "ibdata1", "leftover");
    assert_refused(f, false, DB_NOT_FOUND, "creation was interrupted");
    fixture_open(f);
    create_table(f, "t");
    assert_false(file_exists(f, "ib_logfile101"));
}

/** A lost redo log, data file or system file is named, never papered over (I30). */
static void test_lost_files(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    fixture_close(f, true);
    assert_int_equal(f->os->vt->rename(f->os, "t.ibd", "kept"), DB_SUCCESS);
    assert_refused(f, true, DB_UNRECOVERABLE, "t.ibd");
    assert_int_equal(f->os->vt->rename(f->os, "kept", "t.ibd"), DB_SUCCESS);
    assert_int_equal(try_open(f, false), DB_SUCCESS);
    assert_int_equal(f->os->vt->rename(f->os, "ib_logfile0", "kept"), DB_SUCCESS);
    assert_refused(f, true, DB_UNRECOVERABLE, "redo log missing");
    assert_int_equal(f->os->vt->rename(f->os, "kept", "ib_logfile0"), DB_SUCCESS);
    assert_int_equal(f->os->vt->rename(f->os, "ibdata1", "kept"), DB_SUCCESS);
    assert_refused(f, true, DB_UNRECOVERABLE, "ibdata1");
    assert_int_equal(f->os->vt->rename(f->os, "kept", "ibdata1"), DB_SUCCESS);
    fixture_open(f);
    assert_int_equal(count_rows(f, "t", NULL), 0);
}

/** Sort files that a crash left are removed; files that nobody knows are not. */
static void test_temporary_files(void **state)
{
    fixture_t *f = *state;
    fixture_close(f, true);
    write_file(f, "#sql-tmp-99-0", "run");
    write_file(f, "#sql-tmp-99-1", "run");
    write_file(f, "README", "mine");
    fixture_open(f);
    assert_false(file_exists(f, "#sql-tmp-99-0"));
    assert_false(file_exists(f, "#sql-tmp-99-1"));
    assert_true(file_exists(f, "README"));
}

/** A clean close rolls open transactions back and leaves nothing to recover; letting go does not,
and the next open says so. */
static void test_close(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    insert_rows(f, "t", 1, 10);
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    byte row[8 + B_LEN + 8];
    make_row(11, row);
    OK(f, engine_insert(f->engine, trx, "t", row));
    fixture_close(f, true);
    fixture_open(f);
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_false(status.recovered);
    assert_int_equal(status.active_trx, 0);
    assert_int_equal(count_rows(f, "t", NULL), 10);
    insert_rows(f, "t", 11, 20);
    OK(f, engine_begin(f->engine, &trx));
    make_row(21, row);
    OK(f, engine_insert(f->engine, trx, "t", row));
    OK(f, engine_flush_log(f->engine));
    fixture_close(f, false);
    fixture_open(f);
    engine_get_status(f->engine, &status);
    assert_true(status.recovered);
    assert_int_equal(status.stats.recv_trx_rolled_back, 1);
    assert_int_equal(count_rows(f, "t", NULL), 20);
}

/* ---- poisoned handles ---- */

static os_vtable_t failing;
static const os_vtable_t *real;
static uint32_t writes_left;
static uint32_t calls_after_failure;

static dberr_t failing_write(os_file_t *file, uint64_t offset, const void *buf, size_t len)
{
    if (writes_left == 0) {
        calls_after_failure++;
        return DB_IO_ERROR;
    }
    writes_left--;
    return real->write(file, offset, buf, len);
}

/** After a failed write every call is refused, nothing more is written, a clean close fails, and a
reopen recovers everything that was acknowledged (I23); whichever write of the statement fails. */
static bool check_poison(fixture_t *f, uint32_t writes)
{
    const ddl_index_def_t on_b = index_def("ib", "b", 0);
    create_table(f, "t");
    insert_rows(f, "t", 1, 300);
    real = f->os->vt;
    failing = *real;
    failing.write = failing_write;
    writes_left = writes;
    calls_after_failure = 0;
    f->os->vt = &failing;
    dberr_t err = add_indexes(f->engine, "t", &on_b, 1);
    engine_status_t status;
    if (err == DB_SUCCESS) {
        f->os->vt = real;
        fixture_close(f, true);
    } else {
        assert_int_equal(err, DB_IO_ERROR);
        engine_get_status(f->engine, &status);
        assert_true(status.poisoned);
        assert_true(engine_error(f->engine)[0] != '\0');
        assert_int_equal(engine_checkpoint(f->engine, true), DB_IO_ERROR);
        assert_int_equal(add_indexes(f->engine, "t", &on_b, 1), DB_IO_ERROR);
        assert_int_equal(engine_close(f->engine, true, NULL), DB_IO_ERROR);
        f->engine = NULL;
        assert_int_equal(calls_after_failure, 1);
        f->os->vt = real;
    }
    fixture_open(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->rows, 300);
    assert_int_equal(report_table(&report, "t")->n_indexes, err == DB_SUCCESS ? 1 : 0);
    check_report_free(&report);
    fixture_open(f);
    OK(f, engine_drop_table(f->engine, "t"));
    return err != DB_SUCCESS;
}

static void test_failed_write(void **state)
{
    fixture_t *f = *state;
    uint32_t writes = 0;
    while (check_poison(f, writes)) {
        writes++;
    }
    assert_in_range(writes, 10, 1000);
}

/* ---- counters ---- */

/** Page images written by FLUSH TABLES FOR EXPORT of 1000 fresh rows of two per page. */
static void count_flush(fixture_t *f, bool optimize, uint64_t *data_writes, uint64_t *dblwr_writes)
{
    dict_table_t *t = calloc(1, sizeof(*t));
    byte *row = malloc(8 + 7 * 255);
    assert_true(t != NULL && row != NULL);
    fixture_empty(f);
    f->options.buffer_pool_pages = 2048;
    f->options.log_file_size = 16 << 20;
    f->options.dblwr_pages = 64;
    f->options.log_optimize_ddl = optimize;
    fixture_open(f);
    memcpy(t->name, "t1", 3);
    t->n_cols = 8;
    for (uint32_t i = 0; i < 8; i++) {
        t->cols[i].name[0] = (char)('a' + i);
        t->cols[i].type = i == 0 ? DICT_BIGINT : DICT_CHAR;
        t->cols[i].len = i == 0 ? 8 : 255;
    }
    t->indexes[0].n_fields = 1;
    t->indexes[0].fields[0].prefix_len = 8;
    OK(f, engine_create_table(f->engine, t));
    memset(row, ' ', 8 + 7 * 255);
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    for (int64_t a = 1; a <= 1000; a++) {
        mach_write_8(row, dict_bigint_encode(a));
        OK(f, engine_insert(f->engine, trx, "t1", row));
    }
    OK(f, engine_commit(f->engine, trx));
    engine_status_t before;
    engine_get_status(f->engine, &before);
    OK(f, engine_flush_table(f->engine, "t1"));
    engine_status_t after;
    engine_get_status(f->engine, &after);
    *data_writes = after.stats.data_writes - before.stats.data_writes;
    *dblwr_writes = after.stats.dblwr_writes - before.stats.dblwr_writes;
    free(row);
    free(t);
}

/** Plain doublewrite writes every fresh page twice; log_optimize_ddl=OFF only once. */
static void test_flush_counters(void **state)
{
    fixture_t *f = *state;
    uint64_t data_on = 0;
    uint64_t dblwr_on = 0;
    count_flush(f, true, &data_on, &dblwr_on);
    uint64_t data_off = 0;
    uint64_t dblwr_off = 0;
    count_flush(f, false, &data_off, &dblwr_off);
    assert_in_range(data_on, 1000, 1100);
    assert_int_equal(dblwr_on * 2, data_on);
    assert_int_equal(data_off * 2, data_on);
    assert_int_equal(dblwr_off, 0);
}

/* ---- real files ---- */

/** The same code on POSIX files: create, crash, recover, scan. */
static void test_posix(void **state)
{
    fixture_t *f = *state;
    char dir[] = "/tmp/test_api_XXXXXX";
    assert_non_null(mkdtemp(dir));
    fixture_close(f, true);
    os_destroy(f->os);
    f->os = NULL;
    assert_int_equal(os_posix_create(dir, false, &f->err, &f->os), DB_SUCCESS);
    fixture_open(f);
    create_table(f, "t");
    insert_rows(f, "t", 1, 400);
    add_two_indexes(f, "t");
    insert_rows(f, "t", 401, 410);
    fixture_close(f, false);
    fixture_open(f);
    assert_int_equal(count_rows(f, "t", "ic"), 410);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->rows, 410);
    check_report_free(&report);
    char command[64];
    (void)snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lock, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_fixed_options, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_page_sizes, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_no_database, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_lost_files, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_temporary_files, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_close, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_failed_write, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_flush_counters, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_posix, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
