/** Hot backup: what a prepared one holds, whatever went on meanwhile; what is refused; what fails
without harm; what can be repeated. */
#include "backup/backup_info.h"
#include "base/sched.h"
#include "test_api_fixture.h"
#include "test_tap_os.h"

#define FOLDER "b" BACKUP_FOLDER_SUFFIX

/** Digest of all tables and indexes of a closed directory without findings. */
static uint64_t digest_of(os_t *os)
{
    check_report_t report;
    scan_clean(os, &report);
    uint64_t digest = 0;
    for (uint32_t i = 0; i < report.n_tables; i++) {
        const check_table_t *t = &report.tables[i];
        digest += t->hash ^ t->rows << 32 ^ (uint64_t)t->name[0] << 56;
        for (uint32_t j = 0; j < t->n_indexes; j++) {
            digest += t->indexes[j].hash * 31 + t->indexes[j].entries;
        }
    }
    check_report_free(&report);
    return digest;
}

static dberr_t prepare(fixture_t *f, os_t *os)
{
    f->err = (err_sink_t){.msg = ""};
    engine_status_t status;
    return engine_prepare(os, &f->probe, &f->options, &status, &f->err);
}

/** What a recovery of the database as it is now comes to. */
static uint64_t digest_now(fixture_t *f)
{
    engine_t *engine = NULL;
    OK(f, engine_flush_log(f->engine));
    os_t *os = image_os_clone(f->os);
    assert_int_equal(engine_open(os, &f->probe, &f->options, false, &engine, &f->err), DB_SUCCESS);
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    uint64_t digest = digest_of(os);
    os_destroy(os);
    return digest;
}

static os_t *backup_folder(os_t *os)
{
    os_t *folder = NULL;
    assert_int_equal(os_folder_create(os, FOLDER, &folder), DB_SUCCESS);
    return folder;
}

/** A backup elsewhere, prepared, has what is committed now. */
static void check_backup(fixture_t *f)
{
    uint64_t wanted = digest_now(f);
    os_t *target = image_os_create();
    OK(f, engine_backup(f->engine, target));
    OK(f, prepare(f, target));
    assert_true(digest_of(target) == wanted);
    os_destroy(target);
}

static void check_prepared(fixture_t *f, uint64_t wanted)
{
    os_t *folder = backup_folder(f->os);
    OK(f, prepare(f, folder));
    assert_true(digest_of(folder) == wanted);
    OK(f, prepare(f, folder));
    assert_true(digest_of(folder) == wanted);
    os_destroy(folder);
}

/** One change of any kind; deterministic by the generator. */
static void change(fixture_t *f, sched_t *rng, int64_t *next)
{
    const ddl_index_def_t ib = index_def("ib", "b", 0);
    switch (sched_draw(rng, 9)) {
    case 0:
    case 1:
    case 2:
        insert_rows(f, "t", *next, *next + 40);
        *next += 41;
        break;
    case 3:
        update_rows(f, "t", 1, 60, (char)('a' + sched_draw(rng, 20)));
        break;
    case 4:
        if (add_indexes(f->engine, "t", &ib, 1) != DB_SUCCESS) {
            OK(f, drop_index(f->engine, "t", "ib"));
        }
        break;
    case 5:
        OK(f, rebuild_table(f->engine, "t"));
        break;
    case 6:
        create_table(f, "x");
        insert_rows(f, "x", 1, 30);
        OK(f, engine_rename_table(f->engine, "x", "y"));
        OK(f, engine_rename_table(f->engine, "y", "z"));
        if (sched_draw(rng, 2) == 0) {
            OK(f, engine_drop_table(f->engine, "s"));
            OK(f, engine_rename_table(f->engine, "z", "s"));
        } else {
            OK(f, engine_drop_table(f->engine, "z"));
        }
        break;
    case 7:
        OK(f, engine_checkpoint(f->engine, sched_draw(rng, 2) == 0));
        break;
    default:
        OK(f, engine_step_backup(f->engine, "b", 1 + sched_draw(rng, 12)));
        break;
    }
}

static void round_of_changes(fixture_t *f, uint32_t seed, stats_t *sum)
{
    sched_t rng = {.state = seed};
    create_table(f, "t");
    create_table(f, "s");
    insert_rows(f, "t", 1, 300);
    insert_rows(f, "s", 1, 90);
    OK(f, engine_start_backup(f->engine, "b", true));
    int64_t next = 1000;
    for (uint32_t i = 0; i < 12; i++) {
        change(f, &rng, &next);
    }
    trx_t *open = NULL;
    OK(f, engine_begin(f->engine, &open));
    byte row[8 + B_LEN + 8];
    make_row(7777, row);
    OK(f, engine_insert(f->engine, open, "s", row));
    uint64_t wanted = digest_now(f);
    OK(f, engine_finish_backup(f->engine, "b"));
    OK(f, engine_commit(f->engine, open));
    insert_rows(f, "t", 100000, 100050);
    engine_status_t status;
    engine_get_status(f->engine, &status);
    sum->backup_rereads += status.stats.backup_rereads;
    sum->backup_files_again += status.stats.backup_files_again;
    sum->backup_files_moved += status.stats.backup_files_moved;
    sum->log_wraps += status.stats.log_wraps;
    check_prepared(f, wanted);
}

/** Whatever is done meanwhile, and however cleaner, checkpoints and the backup's own steps meet:
prepared, it is the state at its end. */
static void test_state_at_the_end(void **state)
{
    static const uint32_t FORMATS[] = {LOG_FORMAT_10_4, LOG_FORMAT_10_4, LOG_FORMAT_10_5};
    (void)state;
    stats_t sum = {.data_reads = 0};
    for (uint32_t seed = 1; seed <= 36; seed++) {
        fixture_t f = {.engine = NULL};
        f.os = image_os_create();
        fixture_options(&f.options);
        f.options.log_format = FORMATS[seed % 3];
        f.options.log_optimize_ddl = seed % 4 != 0;
        f.options.cleaner_interval = seed % 3;
        f.options.page_compression = seed % 5 == 0 ? PAGE_COMPRESSION_LZ4 : PAGE_COMPRESSION_NONE;
        f.options.scrub = seed % 2 == 0;
        f.options.backup_interval = seed % 4;
        f.options.schedule_seed = seed;
        fixture_open(&f);
        round_of_changes(&f, seed, &sum);
        fixture_close(&f, true);
        os_destroy(f.os);
    }
    assert_true(sum.backup_rereads > 0);
    assert_true(sum.backup_files_again > 0);
    assert_true(sum.backup_files_moved > 0);
    assert_true(sum.log_wraps > 0);
}

/** Without the lock a late load ends the backup; nothing of it stays, and the next one is made. */
static void test_no_lock(void **state)
{
    fixture_t *f = *state;
    OK(f, engine_set_log_optimize_ddl(f->engine, true));
    create_table(f, "t");
    insert_rows(f, "t", 1, 200);
    OK(f, engine_start_backup(f->engine, "b", false));
    OK(f, engine_step_backup(f->engine, "b", 1000));
    add_two_indexes(f, "t");
    assert_int_equal(engine_finish_backup(f->engine, "b"), DB_BACKUP_ABORTED);
    assert_non_null(strstr(engine_error(f->engine), "t.ibd"));
    assert_false(file_exists(f, FOLDER "/" BACKUP_LOG_NAME));
    assert_false(file_exists(f, FOLDER "/copy_0"));
    assert_int_equal(engine_finish_backup(f->engine, "b"), DB_NOT_FOUND);
    OK(f, engine_start_backup(f->engine, "b", false));
    insert_rows(f, "t", 201, 240);
    uint64_t wanted = digest_now(f);
    OK(f, engine_finish_backup(f->engine, "b"));
    check_prepared(f, wanted);
}

/** One at a time, into an empty folder; step, finish and abort want the one that runs. */
static void test_names(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    assert_int_equal(engine_step_backup(f->engine, "b", 1), DB_NOT_FOUND);
    assert_int_equal(engine_abort_backup(f->engine, "b"), DB_NOT_FOUND);
    OK(f, engine_start_backup(f->engine, "b", true));
    assert_int_equal(engine_start_backup(f->engine, "c", true), DB_ALREADY_EXISTS);
    assert_int_equal(engine_step_backup(f->engine, "c", 1), DB_NOT_FOUND);
    OK(f, engine_step_backup(f->engine, "b", 1));
    OK(f, engine_abort_backup(f->engine, "b"));
    assert_false(file_exists(f, FOLDER "/" BACKUP_LOG_NAME));
    OK(f, engine_start_backup(f->engine, "b", true));
    OK(f, engine_finish_backup(f->engine, "b"));
    assert_int_equal(engine_start_backup(f->engine, "b", true), DB_ALREADY_EXISTS);
    OK(f, engine_start_backup(f->engine, "c", true));
    OK(f, engine_drop_table(f->engine, "t"));
    OK(f, engine_finish_backup(f->engine, "c"));
}

static void assert_refused(fixture_t *f, os_t *os, refusal_t refusal)
{
    assert_int_equal(prepare(f, os), DB_UNRECOVERABLE);
    assert_int_equal(f->err.refusal, refusal);
}

/** An unfinished one is told from a finished one, and neither is opened as a database. */
static void test_unfinished(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    engine_t *engine = NULL;
    OK(f, engine_start_backup(f->engine, "b", true));
    OK(f, engine_step_backup(f->engine, "b", 3));
    fixture_close(f, false);
    os_t *folder = backup_folder(f->os);
    assert_refused(f, folder, REFUSAL_BACKUP_UNFINISHED);
    assert_int_equal(engine_open(folder, &f->probe, &f->options, true, &engine, &f->err),
                     DB_UNRECOVERABLE);
    assert_int_equal(f->err.refusal, REFUSAL_BACKUP_UNPREPARED);
    os_destroy(folder);
    fixture_open(f);
    os_t *none = NULL;
    assert_int_equal(os_folder_create(f->os, "none", &none), DB_SUCCESS);
    assert_int_equal(prepare(f, none), DB_NOT_FOUND);
    os_destroy(none);
}

static void finished_backup(fixture_t *f)
{
    create_table(f, "t");
    insert_rows(f, "t", 1, 200);
    OK(f, engine_start_backup(f->engine, "b", true));
    OK(f, engine_step_backup(f->engine, "b", 5));
    insert_rows(f, "t", 201, 400);
    OK(f, engine_finish_backup(f->engine, "b"));
}

/** A log that ends before the backup, a file that does not say what it must: refused, whatever byte
is wrong. */
static void test_damaged(void **state)
{
    fixture_t *f = *state;
    finished_backup(f);
    os_t *folder = backup_folder(f->os);
    env_t env = {.os = folder, .probe = &f->probe};
    backup_info_t info;
    OK(f, backup_info_read(&env, &info));
    byte *bytes = NULL;
    uint64_t size = 0;
    bytes = image_os_bytes(f->os, FOLDER "/" BACKUP_INFO_NAME, &size);
    for (uint32_t i = 0; i < SECTOR_SIZE; i++) {
        bytes[i] ^= 1U << i % 8;
        assert_refused(f, folder, REFUSAL_BACKUP_UNFINISHED);
        bytes[i] ^= 1U << i % 8;
    }
    info.end_lsn += 512;
    OK(f, backup_info_write(&env, &info));
    assert_refused(f, folder, REFUSAL_LOG_DAMAGED);
    OK(f, env_unlink(&env, BACKUP_LOG_NAME));
    assert_refused(f, folder, REFUSAL_LOG_MISSING);
    os_destroy(folder);
}

/* ---- failures ---- */

typedef struct fuse {
    uint32_t left; /**< operations until the one that fails */
    bool blown;
} fuse_t;

static dberr_t fuse_op(void *ctx, const tap_op_t *op)
{
    fuse_t *fuse = ctx;
    (void)op;
    if (fuse->left-- == 0) {
        fuse->blown = true;
        return DB_IO_ERROR;
    }
    return DB_SUCCESS;
}

/** Any operation in the target fails: the backup is given up or not begun, and the database goes
on. */
static void test_target_fails(void **state)
{
    fixture_t *f = *state;
    fuse_t fuse = {.blown = true};
    create_table(f, "t");
    insert_rows(f, "t", 1, 100);
    int64_t next = 1000;
    for (uint32_t n = 0; fuse.blown; n++) {
        os_t *os = image_os_create();
        tap_t tap = tap_of(os);
        fuse = (fuse_t){.left = n};
        tap.before = fuse_op;
        tap.ctx = &fuse;
        dberr_t err = engine_backup(f->engine, &tap.base);
        assert_int_equal(err, fuse.blown ? DB_BACKUP_ABORTED : DB_SUCCESS);
        insert_rows(f, "t", next, next + 2);
        next += 3;
        purge_all(f); /* or each backup has another page to copy */
        if (err != DB_SUCCESS) {
            dberr_t refused = prepare(f, os);
            /* The last fsyncs of a whole backup may be what has failed. */
            assert_true(refused == DB_SUCCESS || refused == DB_NOT_FOUND
                        || f->err.refusal == REFUSAL_BACKUP_UNFINISHED);
        }
        os_destroy(os);
    }
    assert_int_equal(count_rows(f, "t", NULL), 100 + next - 1000);
}

/** Prepare is cut short at any operation, and repeated: the same database. */
static void test_prepare_repeated(void **state)
{
    fixture_t *f = *state;
    fuse_t fuse = {.blown = true};
    finished_backup(f);
    uint64_t wanted = digest_now(f);
    for (uint32_t n = 0; fuse.blown; n++) {
        os_t *copy = image_os_clone(f->os);
        tap_t tap = tap_of(copy);
        fuse = (fuse_t){.left = n};
        tap.before = fuse_op;
        tap.ctx = &fuse;
        os_t *cut = backup_folder(&tap.base);
        dberr_t err = prepare(f, cut);
        assert_int_equal(err == DB_SUCCESS, !fuse.blown);
        os_destroy(cut);
        os_t *folder = backup_folder(copy);
        OK(f, prepare(f, folder));
        assert_true(digest_of(folder) == wanted);
        os_destroy(folder);
        os_destroy(copy);
    }
}

/** A page that is damaged at rest is not copied. */
static void test_damaged_source(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    insert_rows(f, "t", 1, 100);
    OK(f, engine_flush_table(f->engine, "t"));
    byte *bytes = NULL;
    uint64_t size = 0;
    bytes = image_os_bytes(f->os, "t.ibd", &size);
    bytes[3 * 4096 + 2000] ^= 1;
    OK(f, engine_start_backup(f->engine, "b", true));
    assert_int_equal(engine_finish_backup(f->engine, "b"), DB_BACKUP_ABORTED);
    assert_non_null(strstr(engine_error(f->engine), "page 3 is damaged"));
    bytes[3 * 4096 + 2000] ^= 1;
    insert_rows(f, "t", 101, 110);
    /* Nor is one that went home once, and has changed since. */
    update_rows(f, "t", 1, 100, 'z');
    bytes = image_os_bytes(f->os, "t.ibd", &size);
    bytes[3 * 4096 + 2000] ^= 1;
    OK(f, engine_start_backup(f->engine, "b", true));
    assert_int_equal(engine_finish_backup(f->engine, "b"), DB_BACKUP_ABORTED);
    assert_non_null(strstr(engine_error(f->engine), "page 3 is damaged"));
}

/** Free pages that are damaged at rest are no obstacle, nor are they when they are used again and
not yet home. */
static void test_damaged_free_pages(void **state)
{
    fixture_t *f = *state;
    create_table(f, "t");
    insert_rows(f, "t", 1, 700);
    delete_rows(f, "t", 50, 700);
    purge_all(f);
    OK(f, engine_checkpoint(f->engine, true));
    uint32_t n = turn_pages(f, "t.ibd", false);
    assert_true(n > 4);
    for (uint32_t again = 0; again < 2; again++) {
        check_backup(f);
        insert_rows(f, "t", 50 + 100 * again, 149 + 100 * again);
    }
}

/** Damages the homes of pages that are free by now, whatever the file's own descriptors say. */
static void turn_freed(fixture_t *f, const char *path)
{
    os_t *os = f->os;
    uint32_t n = 0;
    engine_t *engine = NULL;
    f->os = image_os_clone(os);
    OK(f, engine_open(f->os, &f->probe, &f->options, false, &engine, &f->err));
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    uint64_t size = 0;
    const byte *now = image_os_bytes(f->os, path, &size);
    byte *bytes = image_os_bytes(os, path, &size);
    for (uint32_t i = 1; i < size / PAGE_SIZE_MIN; i++) {
        byte *page = bytes + (size_t)i * PAGE_SIZE_MIN;
        if (!xdes_frame_has_page(now, PAGE_SIZE_MIN, 8, i) && page[FIL_PAGE_TYPE + 1] != 0) {
            page[PAGE_SIZE_MIN / 2] ^= 1;
            n++;
        }
    }
    assert_true(n > 4);
    os_destroy(f->os);
    f->os = os;
}

/** A load takes page numbers before it writes the pages: what a crash has torn there, when they
were free, is no obstacle in between. */
static void check_torn_reserved(fixture_t *f, uint32_t format)
{
    const ddl_index_def_t ib = index_def("ib", "b", 0);
    fixture_empty(f);
    f->options.log_format = format;
    f->options.log_optimize_ddl = false;
    f->options.log_file_size = 1 << 20;
    f->options.buffer_pool_pages = 256;
    fixture_open(f);
    create_table(f, "t");
    insert_rows(f, "t", 1, 1500);
    OK(f, engine_checkpoint(f->engine, true));
    delete_rows(f, "t", 250, 1500);
    purge_all(f);
    OK(f, engine_flush_log(f->engine));
    /* What the log frees last, as a crash amid writes without a copy leaves it. */
    turn_freed(f, "t.ibd");
    fixture_close(f, false);
    fixture_open(f);
    OK(f, start_indexes(f->engine, "t", &ib, 1));
    for (uint32_t i = 0; i < 30; i++) {
        OK(f, engine_step_alter(f->engine, "t", 1, 20));
        check_backup(f);
    }
    OK(f, engine_finish_alter(f->engine, "t"));
}

static void test_torn_reserved(void **state)
{
    check_torn_reserved(*state, LOG_FORMAT_10_5);
    check_torn_reserved(*state, LOG_FORMAT_10_4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_state_at_the_end),
        cmocka_unit_test_setup_teardown(test_no_lock, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_names, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_unfinished, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_damaged, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_target_fails, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_prepare_repeated, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_damaged_source, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_damaged_free_pages, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_torn_reserved, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
