/** Kills and power losses one thing at a time: what recovery may build upon, whose a name is, and
which copies the log vouches for. test_api_powerloss.c draws them at random. */
#include "log/log.h"
#include "page/fil_page.h"
#include "test_api_fixture.h"

#include "test_disk_fixture.h"
#include "test_env_fixture.h"

#define PAGE_BYTES 4096U /**< of fixture_options() */

/** A database on a disk. */
static disk_t *plain_open(fixture_t *f)
{
    disk_t *disk = disk_create();
    *f = (fixture_t){.os = disk_os(disk)};
    fixture_options(&f->options);
    fixture_open(f);
    return disk;
}

static void plain_close(fixture_t *f, disk_t *disk)
{
    if (f->engine != NULL) {
        fixture_close(f, false);
    }
    disk_destroy(disk);
}

/** Opens, closes cleanly and scans. @return the digest of table t */
static uint64_t recover_clean(const fixture_t *of, disk_t *disk, probe_t *probe, const char *where)
{
    engine_t *engine = NULL;
    err_sink_t err = {.msg = ""};
    if (engine_open(disk_os(disk), probe, &of->options, true, &engine, &err) != DB_SUCCESS) {
        fail_msg("%s: %s", where, err.msg);
    }
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    check_report_t report;
    scan_clean(disk_os(disk), &report);
    const check_table_t *t = report_table(&report, "t");
    assert_non_null(t);
    uint64_t hash = t->hash;
    check_report_free(&report);
    return hash;
}

/** A recovery after a kill, with a power loss at some of its points, and one at its end. */
typedef struct loss {
    const fixture_t *f;
    disk_t *disk;
    uint64_t hash;
    const char *killed_at;
    uint32_t hits;
    uint32_t n;
} loss_t;

static void on_loss_point(void *ctx, const char *name)
{
    loss_t *loss = ctx;
    bool log_only = strcmp(loss->killed_at, "log.written") == 0; /* seen, but not durable */
    if (loss->hits++ % 5 != 0 && !log_only) {
        return;
    }
    disk_t *disk = disk_kill(loss->disk);
    disk_settle(disk);
    char where[128];
    (void)snprintf(where, sizeof(where), "kill at %s, power loss at %s (%u)", loss->killed_at, name,
                   loss->hits);
    probe_t probe = {.point = NULL};
    if (recover_clean(loss->f, disk, &probe, where) != loss->hash) {
        fail_msg("%s: acknowledged changes are lost", where);
    }
    disk_destroy(disk);
    loss->n++;
}

typedef struct kill {
    fixture_t *f;
    disk_t *disk;
    uint64_t hash; /**< of table t, all the time */
    uint32_t hits;
    uint32_t n;
} kill_t;

static void on_kill_point(void *ctx, const char *name)
{
    kill_t *kill = ctx;
    kill->hits++;
    disk_t *disk = disk_kill(kill->disk);
    loss_t loss = {
        .f = kill->f, .disk = disk, .hash = kill->hash, .killed_at = name, .hits = kill->hits};
    probe_t probe = {.point = on_loss_point, .ctx = &loss};
    atomic_store(&probe.armed, true);
    assert_true(recover_clean(kill->f, disk, &probe, name) == kill->hash);
    disk_settle(disk);
    atomic_store(&probe.armed, false);
    if (recover_clean(kill->f, disk, &probe, name) != kill->hash) {
        fail_msg("kill at %s, power loss after the recovery: acknowledged changes are lost", name);
    }
    disk_destroy(disk);
    kill->n += loss.n;
}

/** What a killed process wrote and did not sync, recovery can read but must not build upon: pages
that are up to date, the record of a file operation, directory entries. After its checkpoint, or in
the middle of it, the power fails. */
static void test_kill_then_power_loss(void **state)
{
    fixture_t f;
    kill_t kill = {.f = &f};
    (void)state;
    kill.disk = plain_open(&f);
    create_table(&f, "t");
    insert_rows(&f, "t", 1, 200);
    OK(&f, engine_checkpoint(f.engine, true));
    update_rows(&f, "t", 50, 70, 'k');
    disk_t *updated = disk_kill(kill.disk);
    kill.hash = recover_clean(&f, updated, &f.probe, "update");
    disk_destroy(updated);
    f.probe.point = on_kill_point;
    f.probe.ctx = &kill;
    atomic_store(&f.probe.armed, true);
    OK(&f, engine_clean_pages(f.engine, 8));
    create_table(&f, "u");
    OK(&f, engine_rename_table(f.engine, "u", "v"));
    OK(&f, engine_drop_table(f.engine, "v"));
    atomic_store(&f.probe.armed, false);
    assert_true(kill.n > 50);
    plain_close(&f, kill.disk);
}

/** Names that changed hands since the checkpoint: of the renames of a space only the last may be
repeated, because all before it were durable and their names may belong to others now. */
static void test_names_change_hands(void **state)
{
    (void)state;
    fixture_t f;
    check_report_t report;
    for (int taker = 0; taker < 2; taker++) {
        disk_t *disk = plain_open(&f);
        create_table(&f, "t");
        create_table(&f, "v");
        insert_rows(&f, "t", 1, 20);
        insert_rows(&f, "v", 1, 10);
        OK(&f, engine_checkpoint(f.engine, true));
        OK(&f, engine_rename_table(f.engine, "t", "u"));
        OK(&f, engine_rename_table(f.engine, "u", "t"));
        if (taker == 0) {
            create_table(&f, "u");
            insert_rows(&f, "u", 1, 10);
        } else {
            OK(&f, engine_rename_table(f.engine, "v", "u"));
        }
        fixture_close(&f, false);
        fixture_open(&f);
        assert_int_equal(count_rows(&f, "t", NULL), 20);
        assert_int_equal(count_rows(&f, "u", NULL), 10);
        fixture_close(&f, true);
        scan_clean(f.os, &report);
        check_report_free(&report);
        plain_close(&f, disk);
    }
}

static lsn_t log_end(disk_t *disk)
{
    probe_t probe = {.point = NULL};
    env_t env = {.os = disk_os(disk), .probe = &probe};
    log_t *log = NULL;
    lsn_t end = efx_log_open(&env, &log);
    log_close(log);
    return end;
}

typedef struct copies {
    disk_t *disk;
    uint32_t n;
} copies_t;

static void on_copies_point(void *ctx, const char *name)
{
    copies_t *copies = ctx;
    if (strcmp(name, "dblwr.area_synced") != 0) {
        return;
    }
    disk_t *disk = disk_kill(copies->disk);
    disk_settle(disk);
    lsn_t end = log_end(disk);
    uint32_t file =
        image_lookup(disk->live, image_name(disk->live, "ib_dblwr", strlen("ib_dblwr")));
    assert_int_not_equal(file, IMAGE_NONE);
    for (uint64_t at = 0; at + PAGE_BYTES <= image_size(disk->live, file); at += PAGE_BYTES) {
        byte page[PAGE_BYTES];
        image_read(disk->live, file, at, page, sizeof(page));
        if (fil_page_verify(page, PAGE_BYTES, fil_page_get_id(page)) == PAGE_OK) {
            assert_true(fil_page_get_lsn(page) <= end);
            copies->n++;
        }
    }
    disk_destroy(disk);
}

/** No copy in the doublewrite file is newer than the durable log: after a power loss it would
belong to a history that never was, and once the log has grown past its LSN again a later recovery
would take it for the newest copy of its page. */
static void test_copies_within_log(void **state)
{
    fixture_t f;
    copies_t copies = {.disk = plain_open(&f)};
    (void)state;
    create_table(&f, "t");
    f.probe.point = on_copies_point;
    f.probe.ctx = &copies;
    atomic_store(&f.probe.armed, true);
    insert_rows(&f, "t", 1, 2000); /* one transaction, more pages than the pool has */
    atomic_store(&f.probe.armed, false);
    assert_true(copies.n > 20);
    plain_close(&f, copies.disk);
}

/** A conversion of the log: the database as each of its file operations leaves it, killed or
without power, is opened with the same wish, and without one. */
typedef struct conversion {
    const fixture_t *f;
    disk_t *disk;
    uint64_t hash;
    uint32_t n;
} conversion_t;

static void on_conversion_change(void *ctx)
{
    conversion_t *c = ctx;
    for (uint32_t i = 0; i < 4; i++) {
        disk_t *disk = disk_kill(c->disk);
        fixture_t wish = *c->f;
        if (i / 2 == 1) {
            disk_settle(disk);
        }
        wish.options.log_format = i % 2 == 1 ? wish.options.log_format : 0;
        char where[64];
        (void)snprintf(where, sizeof(where), "crash %u after operation %u", i, c->n);
        probe_t probe = {.point = NULL};
        assert_true(recover_clean(&wish, disk, &probe, where) == c->hash);
        disk_destroy(disk);
    }
    c->n++;
}

static void test_conversion(void **state)
{
    static const uint32_t TO[] = {LOG_FORMAT_10_5, LOG_FORMAT_10_4, LOG_FORMAT_10_5};
    fixture_t f;
    disk_t *disk = plain_open(&f);
    conversion_t c = {.f = &f, .disk = disk};
    (void)state;
    create_table(&f, "t");
    insert_rows(&f, "t", 1, 100);
    add_two_indexes(&f, "t");
    fixture_close(&f, true);
    probe_t probe = {.point = NULL};
    c.hash = recover_clean(&f, disk, &probe, "before");
    for (uint32_t i = 0; i < 3; i++) {
        f.options.log_format = TO[i];
        disk->on_change = on_conversion_change;
        disk->ctx = &c;
        f.engine = NULL;
        fixture_open(&f);
        disk->on_change = NULL;
        fixture_close(&f, true);
        assert_true(recover_clean(&f, disk, &probe, "converted") == c.hash);
    }
    assert_true(c.n > 3 * 8);
    disk_destroy(disk);
}

/** A log with changes is not converted, and refuses with the way out. */
static void test_no_conversion(void **state)
{
    fixture_t f;
    disk_t *disk = plain_open(&f);
    (void)state;
    create_table(&f, "t");
    fixture_close(&f, false);
    f.options.log_format = LOG_FORMAT_10_5;
    engine_t *engine = NULL;
    assert_int_equal(engine_open(f.os, &f.probe, &f.options, true, &engine, &f.err),
                     DB_UNSUPPORTED);
    assert_non_null(strstr(f.err.msg, "redo format 10.4, and the log may hold changes"));
    f.options.log_format = 0;
    fixture_open(&f);
    plain_close(&f, disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_then_power_loss), cmocka_unit_test(test_names_change_hands),
        cmocka_unit_test(test_copies_within_log),    cmocka_unit_test(test_conversion),
        cmocka_unit_test(test_no_conversion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
