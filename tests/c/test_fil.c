/** fil: order of file operations, bounds of page I/O, fsync bookkeeping. */
#include "test_fil_fixture.h"

static int setup(void **state)
{
    base_fixture_t *fx = calloc(1, sizeof(*fx));
    assert_non_null(fx);
    fx->os = image_os_create();
    base_open(fx, 4096, LOG_FORMAT_10_4);
    *state = fx;
    return 0;
}

static int teardown(void **state)
{
    base_close(*state);
    free(*state);
    return 0;
}

/** I24: record durable, then the operation, then the directory sync; the file is as long as asked.
*/
static void test_create_order(void **state)
{
    base_fixture_t *fx = *state;
    fil_space_t *space = NULL;
    ASSERT_OK(fx, fil_space_create(fx->fil, 5, "t1.ibd", 8, &space));
    rec_assert_order(&fx->rec, 0, "write " LOG_FILE_NAME, "sync " LOG_FILE_NAME,
                     "# point name=fil.create.logged",
                     "# file_op op=create path=t1.ibd lsn=", "create t1.ibd",
                     "truncate t1.ibd 32768", "sync t1.ibd", "syncdir",
                     "# file_op_done op=create path=t1.ibd", NULL);
    assert_int_equal(space->size_pages, 8);
    assert_true(space->max_lsn <= log_flushed_lsn(fx->log));
    assert_ptr_equal(fil_space_get(fx->fil, 5), space);
    assert_ptr_equal(fil_space_by_path(fx->fil, "t1.ibd"), space);
}

/** I24 for delete and rename; the registry follows. */
static void test_rename_delete_order(void **state)
{
    base_fixture_t *fx = *state;
    fil_space_t *space = NULL;
    ASSERT_OK(fx, fil_space_create(fx->fil, 5, "t1.ibd", 8, &space));
    uint32_t from = fx->rec.n;
    space->named = true;
    ASSERT_OK(fx, fil_space_rename(fx->fil, space, "t2.ibd"));
    rec_assert_order(&fx->rec, from, "sync " LOG_FILE_NAME,
                     "# file_op op=rename path=t1.ibd lsn=", "rename t1.ibd t2.ibd", "syncdir",
                     "# file_op_done op=rename path=t1.ibd", NULL);
    assert_string_equal(space->path, "t2.ibd");
    assert_false(space->named);
    from = fx->rec.n;
    ASSERT_OK(fx, fil_space_delete(fx->fil, space));
    rec_assert_order(&fx->rec, from, "sync " LOG_FILE_NAME,
                     "# file_op op=delete path=t2.ibd lsn=", "unlink t2.ibd", "syncdir",
                     "# file_op_done op=delete path=t2.ibd", NULL);
    assert_null(fil_space_get(fx->fil, 5));
}

/** A taken name or id is refused before anything is logged. */
static void test_create_refused(void **state)
{
    base_fixture_t *fx = *state;
    fil_space_t *space = NULL;
    ASSERT_OK(fx, fil_space_create(fx->fil, 5, "t1.ibd", 8, &space));
    lsn_t lsn = log_lsn(fx->log);
    fil_space_t *other = NULL;
    assert_int_equal(fil_space_create(fx->fil, 5, "t2.ibd", 8, &other), DB_ALREADY_EXISTS);
    assert_int_equal(fil_space_create(fx->fil, 6, "t1.ibd", 8, &other), DB_ALREADY_EXISTS);
    assert_int_equal(fil_space_rename(fx->fil, space, "t1.ibd"), DB_ALREADY_EXISTS);
    assert_null(other);
    assert_int_equal(log_lsn(fx->log), lsn);
    assert_false(fx->env.io_failed);
}

/** Page I/O stays inside the committed size, and bytes past the end of the file read as zeros. */
static void test_page_bounds(void **state)
{
    base_fixture_t *fx = *state;
    fil_space_t *space = NULL;
    ASSERT_OK(fx, fil_space_create(fx->fil, 5, "t1.ibd", 2, &space));
    byte page[4096];
    memset(page, 0x5A, sizeof(page));
    assert_int_equal(fil_page_write(fx->fil, space, 2, page), DB_CORRUPTION);
    assert_int_equal(fil_page_read(fx->fil, space, 2, page), DB_CORRUPTION);
    assert_int_equal(fil_page_read(fx->fil, space, FIL_NULL, page), DB_CORRUPTION);
    ASSERT_OK(fx, fil_page_write(fx->fil, space, 1, page));
    space->size_pages = 10; /* as when page 0 says more than the file holds */
    ASSERT_OK(fx, fil_page_read(fx->fil, space, 9, page));
    for (size_t i = 0; i < sizeof(page); i++) {
        assert_int_equal(page[i], 0);
    }
    ASSERT_OK(fx, fil_page_read(fx->fil, space, 1, page));
    assert_int_equal(page[4095], 0x5A);
}

/** A file is fsynced once per writes, and only if written; extension counts as a write. */
static void test_sync_when_needed(void **state)
{
    base_fixture_t *fx = *state;
    fil_space_t *b = NULL;
    ASSERT_OK(fx, fil_space_create(fx->fil, 7, "b.ibd", 2, &b));
    fil_space_t *a = NULL;
    ASSERT_OK(fx, fil_space_create(fx->fil, 5, "a.ibd", 2, &a));
    assert_ptr_equal(fil_first(fx->fil), a); /* in order of id */
    byte page[4096] = {0};
    uint32_t from = fx->rec.n;
    ASSERT_OK(fx, fil_page_write(fx->fil, a, 1, page));
    ASSERT_OK(fx, fil_sync_all(fx->fil));
    ASSERT_OK(fx, fil_sync_all(fx->fil));
    assert_int_equal(rec_count(&fx->rec, from, "sync a.ibd"), 1);
    assert_int_equal(rec_count(&fx->rec, from, "sync b.ibd"), 0);
    ASSERT_OK(fx, fil_space_extend(fx->fil, b, 18));
    rec_assert_order(&fx->rec, from, "# extend space=7 pages=18", "truncate b.ibd 73728",
                     "# point name=fil.extend", NULL);
    assert_int_equal(b->size_pages, 18);
    ASSERT_OK(fx, fil_sync_all(fx->fil));
    assert_int_equal(rec_count(&fx->rec, from, "sync b.ibd"), 1);
    assert_int_equal(fil_space_extend(fx->fil, b, FIL_PAGES_MAX + 1), DB_OUT_OF_SPACE);
}

/** I19: an fsync covers what was written before it began, whenever the system is called; what is
written under it needs another, and one that began later covers both. */
static void test_write_under_fsync(void **state)
{
    base_fixture_t *fx = *state;
    fil_space_t *a = NULL;
    ASSERT_OK(fx, fil_space_create(fx->fil, 5, "a.ibd", 2, &a));
    byte page[4096] = {0};
    uint32_t n_issued = 0;
    for (uint32_t i = 0; i < 20; i++) {
        ASSERT_OK(fx, fil_page_write(fx->fil, a, 1, page));
        uint64_t covered = a->n_writes;
        fil_sync_t first;
        ASSERT_OK(fx, fil_sync_begin(fx->fil, a, &first));
        n_issued += first.issued;
        assert_false(fil_is_synced(a, covered));
        ASSERT_OK(fx, fil_page_write(fx->fil, a, 1, page));
        fil_sync_t second;
        if (i % 2 == 0) {
            ASSERT_OK(fx, fil_sync_begin(fx->fil, a, &second));
            ASSERT_OK(fx, fil_sync_end(fx->fil, &second));
            assert_false(fil_needs_sync(a));
        }
        ASSERT_OK(fx, fil_sync_end(fx->fil, &first));
        assert_true(fil_is_synced(a, covered));
        assert_int_equal(fil_needs_sync(a), i % 2 != 0);
        ASSERT_OK(fx, fil_sync(fx->fil, a));
        assert_false(fil_needs_sync(a));
        uint32_t from = fx->rec.n;
        fil_sync_t none;
        ASSERT_OK(fx, fil_sync_begin(fx->fil, a, &none));
        ASSERT_OK(fx, fil_sync_end(fx->fil, &none));
        assert_int_equal(fx->rec.n, from);
        assert_int_equal(a->n_syncing, 0);
    }
    assert_in_range(n_issued, 4, 16);
    assert_int_equal(fx->env.stats.writes_amid_fsync, 20);
}

/** More spaces than open files: every page is still read and written, a file that needs its fsync
gets it before it is closed, and no fsync is lost or done twice. */
static void test_open_files_bounded(void **state)
{
    base_fixture_t *fx = *state;
    fil_space_t *spaces[4 * FX_OPEN_FILES];
    const uint32_t n = sizeof(spaces) / sizeof(spaces[0]);
    for (uint32_t i = 0; i < n; i++) {
        char path[PATH_LEN_MAX + 1];
        (void)snprintf(path, sizeof(path), "t%u.ibd", i);
        ASSERT_OK(fx, fil_space_create(fx->fil, 5 + i, path, 2, &spaces[i]));
        assert_true(tap_n_open(&fx->rec.tap) <= FX_OPEN_FILES + 1); /* and the log */
    }
    uint32_t from = fx->rec.n;
    byte page[4096] = {0};
    for (uint32_t i = 0; i < n; i++) {
        page[0] = (byte)i;
        ASSERT_OK(fx, fil_page_write(fx->fil, spaces[i], 1, page));
        assert_true(tap_n_open(&fx->rec.tap) <= FX_OPEN_FILES + 1);
    }
    rec_assert_order(&fx->rec, from, "write t0.ibd", "sync t0.ibd", "write t2.ibd", NULL);
    assert_int_equal(rec_count(&fx->rec, from, "sync t"), n - FX_OPEN_FILES);
    ASSERT_OK(fx, fil_sync_all(fx->fil));
    for (uint32_t i = 0; i < n; i++) {
        char line[PATH_LEN_MAX + 1];
        (void)snprintf(line, sizeof(line), "sync t%u.ibd", i);
        assert_int_equal(rec_count(&fx->rec, from, line), 1);
        ASSERT_OK(fx, fil_page_read(fx->fil, spaces[i], 1, page));
        assert_int_equal(page[0], i);
    }
    ASSERT_OK(fx, fil_space_rename(fx->fil, spaces[0], "t99.ibd")); /* closed at the moment */
    ASSERT_OK(fx, fil_page_read(fx->fil, spaces[0], 1, page));
    assert_int_equal(page[0], 0);
    ASSERT_OK(fx, fil_space_delete(fx->fil, spaces[1]));
}

/** What bounds the FILE_NAME records of a checkpoint follows every change of the registry. */
static void test_names(void **state)
{
    base_fixture_t *fx = *state;
    fil_space_t *a = NULL;
    ASSERT_OK(fx, fil_space_create(fx->fil, 5, "a.ibd", 2, &a));
    fil_space_t *b = NULL;
    ASSERT_OK(fx, fil_space_create(fx->fil, 6, "bb.ibd", 2, &b));
    assert_int_equal(fil_names(fx->fil).n, 2);
    assert_int_equal(fil_names(fx->fil).path_bytes, 5 + 6);
    ASSERT_OK(fx, fil_space_rename(fx->fil, a, "longer.ibd"));
    assert_int_equal(fil_names(fx->fil).path_bytes, 10 + 6);
    fil_space_set_path(fx->fil, b, "b.ibd");
    assert_int_equal(fil_names(fx->fil).path_bytes, 10 + 5);
    ASSERT_OK(fx, fil_space_delete(fx->fil, a));
    assert_int_equal(fil_names(fx->fil).n, 1);
    assert_int_equal(fil_names(fx->fil).path_bytes, 5);
}

/** I23: the fsync before a close that fails poisons the handle, and is not tried again; reads go
on. */
static void test_failed_sync_before_close(void **state)
{
    base_fixture_t *fx = *state;
    fil_space_t *spaces[FX_OPEN_FILES + 1];
    for (uint32_t i = 0; i <= FX_OPEN_FILES; i++) {
        char path[PATH_LEN_MAX + 1];
        (void)snprintf(path, sizeof(path), "t%u.ibd", i);
        ASSERT_OK(fx, fil_space_create(fx->fil, 5 + i, path, 2, &spaces[i]));
    }
    byte page[4096] = {0};
    for (uint32_t i = 0; i < FX_OPEN_FILES; i++) {
        ASSERT_OK(fx, fil_page_write(fx->fil, spaces[i], 1, page));
    }
    fx->rec.fail_prefix = "sync t0.ibd";
    assert_int_equal(fil_page_write(fx->fil, spaces[FX_OPEN_FILES], 1, page), DB_IO_ERROR);
    assert_true(fx->env.io_failed);
    fx->rec.fail_prefix = NULL;
    uint32_t from = fx->rec.n;
    ASSERT_OK(fx, fil_page_read(fx->fil, spaces[FX_OPEN_FILES], 1, page));
    assert_int_equal(fil_sync_all(fx->fil), DB_IO_ERROR);
    assert_int_equal(fx->rec.n, from);
}

/** I23: a logged operation that fails poisons the handle: nothing more reaches any file. */
static void test_failed_create_poisons(void **state)
{
    base_fixture_t *fx = *state;
    fx->rec.fail_prefix = "create t1.ibd";
    fil_space_t *space = NULL;
    assert_int_not_equal(fil_space_create(fx->fil, 5, "t1.ibd", 2, &space), DB_SUCCESS);
    assert_true(fx->env.io_failed);
    fx->rec.fail_prefix = NULL;
    uint32_t from = fx->rec.n;
    assert_int_equal(fil_space_create(fx->fil, 6, "t2.ibd", 2, &space), DB_IO_ERROR);
    assert_int_equal(fx->rec.n, from);
    assert_null(space);
}

/** recreate: creates without log, keeps what exists. */
static void test_recreate(void **state)
{
    base_fixture_t *fx = *state;
    fil_space_t *space = NULL;
    lsn_t lsn = log_lsn(fx->log);
    ASSERT_OK(fx, fil_space_recreate(fx->fil, 5, "t1.ibd", &space));
    assert_int_equal(space->size_pages, 0);
    assert_int_equal(log_lsn(fx->log), lsn);
    ASSERT_OK(fx, fil_space_extend(fx->fil, space, 3));
    byte page[4096];
    memset(page, 1, sizeof(page));
    ASSERT_OK(fx, fil_page_write(fx->fil, space, 2, page));
    fil_close(fx->fil);
    ASSERT_OK(fx, fil_create(&fx->env, fx->log, 4096, FX_OPEN_FILES, &fx->fil));
    ASSERT_OK(fx, fil_space_recreate(fx->fil, 5, "t1.ibd", &space));
    assert_int_equal(space->size_pages, 3);
    ASSERT_OK(fx, fil_page_read(fx->fil, space, 2, page));
    assert_int_equal(page[0], 1);
    fil_space_t *other = NULL;
    assert_int_equal(fil_space_open(fx->fil, 6, "missing.ibd", 0, &other), DB_NOT_FOUND);
    assert_null(other);
}

static void test_path_of_table(void **state)
{
    (void)state;
    char path[PATH_LEN_MAX + 1];
    fil_path_of_table("t1", path);
    assert_string_equal(path, "t1.ibd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_create_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rename_delete_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_create_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_page_bounds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sync_when_needed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_write_under_fsync, setup, teardown),
        cmocka_unit_test_setup_teardown(test_open_files_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_sync_before_close, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_create_poisons, setup, teardown),
        cmocka_unit_test_setup_teardown(test_recreate, setup, teardown),
        cmocka_unit_test(test_path_of_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
