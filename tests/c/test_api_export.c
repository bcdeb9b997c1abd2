/** FLUSH TABLES FOR EXPORT, UNLOCK TABLES, IMPORT TABLESPACE. */
#include "base/crc32c.h"
#include "page/page_compress.h"
#include "test_api_crash.h"

#define EXPORT(table_) (&(ddl_alter_t){.kind = ALTER_EXPORT, .table = (table_)})
#define IMPORT(table_, from_)                                                                      \
    (&(ddl_alter_t){.kind = ALTER_IMPORT, .table = (table_), .name = (from_)})

#define ROWS 700

static void make_tables(fixture_t *f)
{
    create_table(f, "t");
    insert_rows(f, "t", 1, ROWS);
    add_two_indexes(f, "t");
    delete_rows(f, "t", 100, 199);
    create_table(f, "u");
    insert_rows(f, "u", 1, 40);
    add_two_indexes(f, "u");
}

/** The file of an exported table is whole and alone: pages of its space only, all verified, and no
dirty page comes after them, whatever else goes on. */
static void test_exported_file(void **state)
{
    fixture_t *f = *state;
    make_tables(f);
    OK(f, engine_start_alter(f->engine, EXPORT("t")));
    assert_true(file_exists(f, "t.cfg"));
    byte *bytes = NULL;
    uint64_t size = 0;
    bytes = image_os_bytes(f->os, "t.ibd", &size);
    uint32_t space = engine_table(f->engine, "t")->space;
    for (uint32_t i = 0; i < size / 4096; i++) {
        page_verdict_t verdict =
            page_verify_stored(bytes + (size_t)i * 4096, 4096, (page_id_t){space, i});
        assert_true(verdict == PAGE_OK || verdict == PAGE_ZERO);
    }
    byte *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    byte row[8 + B_LEN + 8];
    make_row(ROWS + 1, row);
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    assert_int_equal(engine_insert(f->engine, trx, "t", row), DB_TABLE_LOCKED);
    OK(f, engine_insert(f->engine, trx, "u", row));
    OK(f, engine_commit(f->engine, trx));
    assert_int_equal(engine_drop_table(f->engine, "t"), DB_TABLE_LOCKED);
    delete_rows(f, "u", 1, 30);
    purge_all(f);
    OK(f, engine_checkpoint(f->engine, true));
    byte *later = image_os_bytes(f->os, "t.ibd", &size);
    assert_memory_equal(copy, later, size);
    free(copy);
    assert_int_equal(count_rows(f, "t", "ib"), ROWS - 100);
    OK(f, engine_finish_alter(f->engine, "t"));
    assert_false(file_exists(f, "t.cfg"));
    insert_rows(f, "t", ROWS + 1, ROWS + 5);
    purge_all(f);
}

/** An imported table has the rows and indexes of the exported one, which stays as it is; both go
on. */
static void check_import(fixture_t *f, bool optimize)
{
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    make_tables(f);
    OK(f, engine_start_alter(f->engine, EXPORT("t")));
    OK(f, engine_alter(f->engine, IMPORT("u", "t")));
    engine_status_t status;
    engine_get_status(f->engine, &status);
    assert_true(status.stats.tables_exported == 1 && status.stats.tables_imported == 1);
    OK(f, engine_alter(f->engine, IMPORT("u", "t")));
    OK(f, engine_finish_alter(f->engine, "t"));
    assert_int_equal(count_rows(f, "u", "ic"), ROWS - 100);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    const check_table_t *t = report_table(&report, "t");
    const check_table_t *u = report_table(&report, "u");
    assert_true(t->rows == u->rows && t->hash == u->hash && t->n_indexes == u->n_indexes);
    for (uint32_t i = 0; i < t->n_indexes; i++) {
        assert_true(t->indexes[i].hash == u->indexes[i].hash);
    }
    check_report_free(&report);
    fixture_open(f);
    update_rows(f, "u", 300, 500, 'x');
    delete_rows(f, "u", 1, 99);
    insert_rows(f, "t", 100, 199);
    purge_all(f);
    fixture_close(f, true);
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "u")->rows, ROWS - 199);
    assert_int_equal(report_table(&report, "t")->rows, ROWS);
    check_report_free(&report);
    fixture_open(f);
}

/** Another directory, whose pages go home compressed and are scrubbed when they are free. */
static int setup_compressed(void **state)
{
    (void)fixture_setup(state);
    fixture_t *f = *state;
    f->options.log_format = LOG_FORMAT_10_5;
    f->options.page_compression = PAGE_COMPRESSION_ZSTD;
    f->options.scrub = true;
    fixture_empty(f);
    fixture_open(f);
    return 0;
}

static void test_import_not_logged(void **state)
{
    check_import(*state, true);
}

static void test_import_logged(void **state)
{
    check_import(*state, false);
}

/** At 10000 nothing of an import is left but its last step: its pages are in the file. */
static void test_progress(void **state)
{
    fixture_t *f = *state;
    OK(f, engine_set_log_optimize_ddl(f->engine, true));
    make_tables(f);
    OK(f, engine_start_alter(f->engine, EXPORT("t")));
    OK(f, engine_start_alter(f->engine, IMPORT("u", "t")));
    OK(f, engine_finish_alter(f->engine, "t"));
    engine_status_t status;
    uint32_t n_steps = 0;
    for (uint32_t progress = 0; progress < 10000; n_steps++) {
        OK(f, engine_step_alter(f->engine, "u", 1, 10));
        engine_get_status(f->engine, &status);
        assert_true(status.onlineddl_pct_progress >= progress);
        progress = status.onlineddl_pct_progress;
    }
    assert_true(n_steps > 2);
    uint64_t written = status.stats.data_writes;
    OK(f, engine_step_alter(f->engine, "u", 1, 10));
    engine_get_status(f->engine, &status);
    assert_int_equal(status.stats.data_writes, written);
    OK(f, engine_finish_alter(f->engine, "u"));
    assert_int_equal(count_rows(f, "u", "ic"), ROWS - 100);
}

/** What is not exported, or differs, or is damaged, is refused, and the table keeps its rows. */
static void test_refused(void **state)
{
    fixture_t *f = *state;
    make_tables(f);
    create_table(f, "bare");
    assert_int_equal(engine_alter(f->engine, IMPORT("u", "t")), DB_NOT_FOUND);
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    assert_int_equal(engine_start_alter(f->engine, EXPORT("t")), DB_TABLE_LOCKED);
    OK(f, engine_rollback(f->engine, trx));
    OK(f, engine_start_alter(f->engine, EXPORT("t")));
    assert_int_equal(engine_alter(f->engine, IMPORT("bare", "t")), DB_ERROR);
    assert_int_equal(engine_start_alter(f->engine, EXPORT("u")), DB_TABLE_LOCKED);
    assert_int_equal(engine_alter(f->engine, IMPORT("t", "t")), DB_TABLE_LOCKED);
    byte *bytes = NULL;
    uint64_t size = 0;
    bytes = image_os_bytes(f->os, "t.ibd", &size);
    bytes[3 * 4096 + 100] ^= 1;
    assert_int_equal(engine_alter(f->engine, IMPORT("u", "t")), DB_ERROR);
    bytes[3 * 4096 + 100] ^= 1;
    bytes = image_os_bytes(f->os, "t.cfg", &size);
    for (uint64_t i = 0; i < size; i++) {
        bytes[i] ^= 0x40;
        assert_int_equal(engine_alter(f->engine, IMPORT("u", "t")), DB_ERROR);
        bytes[i] ^= 0x40;
    }
    OK(f, engine_alter(f->engine, IMPORT("u", "t")));
    fixture_close(f, true); /* ends the export */
    fixture_open(f);
    assert_false(file_exists(f, "t.cfg"));
    assert_int_equal(count_rows(f, "u", NULL), ROWS - 100);
}

/** Free pages that are damaged at rest are no obstacle; a file of other extents is. */
static void test_damaged_free_pages(void **state)
{
    fixture_t *f = *state;
    make_tables(f);
    delete_rows(f, "t", 200, 600);
    purge_all(f);
    OK(f, engine_checkpoint(f->engine, true));
    assert_true(turn_pages(f, "t.ibd", false) > 4);
    OK(f, engine_start_alter(f->engine, EXPORT("t")));
    OK(f, engine_alter(f->engine, IMPORT("u", "t")));
    assert_int_equal(count_rows(f, "u", "ic"), ROWS - 501);
    assert_true(turn_pages(f, "t.ibd", true) > 1);
    assert_int_equal(engine_alter(f->engine, IMPORT("u", "t")), DB_ERROR);
    (void)turn_pages(f, "t.ibd", true);
    uint64_t size = 0;
    byte *bytes = image_os_bytes(f->os, "t.ibd", &size);
    mach_write_4(bytes + FSP_EXTENT_PAGES, 16);
    fil_page_stamp(bytes, PAGE_SIZE_MIN);
    assert_int_equal(engine_alter(f->engine, IMPORT("u", "t")), DB_ERROR);
    assert_non_null(strstr(engine_error(f->engine), "another extent size"));
    mach_write_4(bytes + FSP_EXTENT_PAGES, 8);
    fil_page_stamp(bytes, PAGE_SIZE_MIN);
    OK(f, engine_finish_alter(f->engine, "t"));
}

/** Roots that are none in the file, and that no start would accept in the catalogue. */
static void test_roots(void **state)
{
    fixture_t *f = *state;
    static const uint32_t wrong[] = {0, 1, 5, 1U << 20, FIL_NULL};
    const uint32_t at = 28 + 3 * (NAME_LEN_MAX + 7) + 8;
    make_tables(f);
    OK(f, engine_start_alter(f->engine, EXPORT("t")));
    for (uint32_t i = 0; i <= sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint64_t size = 0;
        byte *bytes = image_os_bytes(f->os, "t.cfg", &size);
        bool right = i == sizeof(wrong) / sizeof(wrong[0]);
        mach_write_4(bytes + at, right ? 2 : wrong[i]);
        mach_write_4(bytes, crc32c(bytes + 4, size - 4));
        assert_int_equal(engine_alter(f->engine, IMPORT("u", "t")), right ? DB_SUCCESS : DB_ERROR);
    }
    fixture_close(f, false);
    fixture_open(f);
    assert_int_equal(count_rows(f, "u", "ic"), ROWS - 100);
}

/** A page 0 that no recovery would accept is refused before it is the database's. */
static void test_space_header(void **state)
{
    fixture_t *f = *state;
    static const struct {
        uint32_t offset;
        uint32_t value;
    } wrong[] = {{FSP_SIZE, 1U << 20},
                 {FSP_SIZE, 0},
                 {FSP_PAGE_SIZE, 8192},
                 {FSP_VERSION, 9},
                 {FIL_PAGE_TYPE, 0}};
    make_tables(f);
    OK(f, engine_start_alter(f->engine, EXPORT("t")));
    for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint64_t size = 0;
        byte *bytes = image_os_bytes(f->os, "t.ibd", &size);
        uint32_t right = mach_read_4(bytes + wrong[i].offset);
        mach_write_4(bytes + wrong[i].offset, wrong[i].value);
        fil_page_stamp(bytes, PAGE_SIZE_MIN);
        assert_int_equal(engine_alter(f->engine, IMPORT("u", "t")), DB_ERROR);
        bytes = image_os_bytes(f->os, "t.ibd", &size);
        mach_write_4(bytes + wrong[i].offset, right);
        fil_page_stamp(bytes, PAGE_SIZE_MIN);
    }
    uint64_t size = 0;
    byte *bytes = image_os_bytes(f->os, "t.ibd", &size);
    byte page[PAGE_SIZE_MIN];
    memcpy(page, bytes, PAGE_SIZE_MIN);
    memset(bytes, 0, PAGE_SIZE_MIN);
    assert_int_equal(engine_alter(f->engine, IMPORT("u", "t")), DB_ERROR);
    memcpy(image_os_bytes(f->os, "t.ibd", &size), page, PAGE_SIZE_MIN);
    OK(f, engine_alter(f->engine, IMPORT("u", "t")));
    OK(f, engine_finish_alter(f->engine, "t"));
    fixture_close(f, false);
    fixture_open(f);
}

/** A crash at any fault point leaves the old rows or the imported ones, and no other file (I3, I12,
I16). */
static void check_crashes(fixture_t *f, bool optimize, bool nested)
{
    const shape_t before = {.exists = true, .rows = 40, .n_indexes = 2};
    const shape_t after = {.exists = true, .rows = ROWS - 100, .n_indexes = 2};
    crash_t crash = {.f = f, .table = "u", .every = nested ? 3 : 1, .nested = nested};
    OK(f, engine_set_log_optimize_ddl(f->engine, optimize));
    make_tables(f);
    crash_arm(&crash, before, after);
    OK(f, engine_start_alter(f->engine, EXPORT("t")));
    OK(f, engine_alter(f->engine, IMPORT("u", "t")));
    assert_true(crash.seen_before > 0 && crash.seen_after > 0);
    crash.before = after;
    OK(f, engine_finish_alter(f->engine, "t"));
    /* Changes of the imported pages: recovery must read what the import wrote. */
    update_rows(f, "u", 300, 330, 'x');
    OK(f, engine_flush_log(f->engine));
    crash_disarm(&crash);
    assert_int_equal(point_count(&crash, "ddl.imported"), 1);
    assert_int_equal(point_count(&crash, "ddl.flushed"), optimize);
    assert_true(!optimize || crash.load_reads > 0);
}

static void test_crashes_not_logged(void **state)
{
    check_crashes(*state, true, false);
}

static void test_crashes_logged(void **state)
{
    check_crashes(*state, false, false);
}

static void test_crashes_nested(void **state)
{
    check_crashes(*state, true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_exported_file, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_exported_file, setup_compressed, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_import_logged, setup_compressed, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_import_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_import_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_progress, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_damaged_free_pages, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_roots, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_space_header, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_refused, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes_not_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes_logged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_crashes_nested, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
