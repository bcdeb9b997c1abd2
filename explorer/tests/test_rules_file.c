/* Names of files: I24. */
#include "scenario.h"

#include <stdlib.h>
#include <string.h>

#include "explorer/judge/sites.h"

static void log_op(world_t *w, redo_op_t type, const char *path, const char *path2)
{
    (void)world_file_op(w, type, path, path2);
    world_log(w);
}

static void entry_durable(world_t *w, fs_kind_t kind, const char *path, const char *to)
{
    world_entry(w, kind, path, to);
    world_sync_dir(w);
}

/** By the log; the entry itself is not durable. */
static void create_unsynced(world_t *w)
{
    log_op(w, OP_FILE_CREATE, "u.ibd", NULL);
    world_entry(w, FS_LINK, "u.ibd", NULL);
}

static void rename_by_the_log(world_t *w)
{
    log_op(w, OP_FILE_RENAME, "u.ibd", "v.ibd");
    entry_durable(w, FS_RENAME, "u.ibd", "v.ibd");
}

static void file_created(world_t *w)
{
    create_unsynced(w);
    world_sync_dir(w);
    rules_journal(w->rules, JOURNAL_ACK, 1);
}

static void file_renamed_and_removed(world_t *w)
{
    file_created(w);
    rename_by_the_log(w);
    log_op(w, OP_FILE_DELETE, "v.ibd", NULL);
    entry_durable(w, FS_UNLINK, "v.ibd", NULL);
    rules_journal(w->rules, JOURNAL_ACK, 2);
    file_created(w);
}

/** A copy that gets its name in a folder is no file of the database, and its folder's fsync not the
directory's. */
static void backup_in_a_folder(world_t *w)
{
    entry_durable(w, FS_LINK, "b.backup/copy_1", NULL);
    entry_durable(w, FS_RENAME, "b.backup/copy_1", "b.backup/u.ibd");
    rules_failed(w->rules, "b.backup/u.ibd");
    rules_journal(w->rules, JOURNAL_ACK, 1);
}

static void file_created_and_another_folder_synced(world_t *w)
{
    create_unsynced(w);
    fs_event_t event = {.kind = FS_SYNC_DIR, .inode = IMAGE_NONE};
    rules_event(w->rules, &event, "b.backup");
    rules_journal(w->rules, JOURNAL_ACK, 1);
}

static void file_created_without_record(world_t *w)
{
    entry_durable(w, FS_LINK, "u.ibd", NULL);
}

static void file_created_before_the_fsync(world_t *w)
{
    (void)world_file_op(w, OP_FILE_CREATE, "u.ibd", NULL);
    world_log_write(w);
    entry_durable(w, FS_LINK, "u.ibd", NULL);
}

static void file_removed_by_an_old_record(world_t *w)
{
    file_renamed_and_removed(w);
    rename_by_the_log(w);
    entry_durable(w, FS_UNLINK, "v.ibd", NULL);
}

static void file_renamed_to_another_name(world_t *w)
{
    file_created(w);
    log_op(w, OP_FILE_RENAME, "u.ibd", "v.ibd");
    entry_durable(w, FS_RENAME, "u.ibd", "x.ibd");
}

static void file_entry_unsynced_at_ack(world_t *w)
{
    create_unsynced(w);
    rules_journal(w->rules, JOURNAL_ACK, 1);
}

static void file_entry_unsynced_at_checkpoint(world_t *w)
{
    create_unsynced(w);
    world_checkpoint(w, w->end_lsn);
}

static void file_operation_repeated(world_t *w)
{
    (void)world_file_op(w, OP_FILE_CREATE, "u.ibd", NULL);
    log_op(w, OP_FILE_RENAME, "u.ibd", "v.ibd");
    world_restart(w, false);
    world_entry(w, FS_LINK, "u.ibd", NULL);
    entry_durable(w, FS_RENAME, "u.ibd", "v.ibd");
}

static void log_put_in_force(world_t *w)
{
    world_entry(w, FS_LINK, "ib_logfile101", NULL);
    world_sync_dir(w);
    world_entry(w, FS_RENAME, "ib_logfile101", LOG_FILE);
}

static void log_replaced(world_t *w)
{
    log_put_in_force(w);
    world_sync_dir(w);
    rules_journal(w->rules, JOURNAL_ACK, 1);
}

static void log_entry_unsynced_at_ack(world_t *w)
{
    log_put_in_force(w);
    rules_journal(w->rules, JOURNAL_ACK, 1);
}

static void pages_written(world_t *w)
{
    for (uint32_t page = 1; page < 4; page++) {
        (void)world_init(w, page);
        (void)world_change_flushed(w, page);
    }
}

static void file_cut(world_t *w)
{
    pages_written(w);
    (void)world_trim(w, 1);
    world_log(w);
    world_cut(w, 1);
    pages_written(w);
}

static void file_cut_again_by_recovery(world_t *w)
{
    file_cut(w);
    world_restart(w, false);
    world_cut(w, 1);
}

/** What a space held before it began anew need not be in its file. */
static void checkpoint_past_a_life_that_is_over(world_t *w)
{
    pages_written(w);
    (void)world_change(w, 3);
    (void)world_trim(w, 1);
    world_log(w);
    world_cut(w, 1);
    world_checkpoint(w, w->end_lsn);
}

static void file_cut_without_record(world_t *w)
{
    pages_written(w);
    world_cut(w, 1);
}

static void file_cut_before_the_fsync(world_t *w)
{
    pages_written(w);
    (void)world_trim(w, 1);
    world_log_write(w);
    world_cut(w, 1);
}

static void file_cut_by_an_old_record(world_t *w)
{
    file_cut(w);
    world_cut(w, 1);
}

/** The first page that is cut off is one of the new life, the only one. */
static void file_cut_at_a_page_of_its_new_life(world_t *w)
{
    pages_written(w);
    (void)world_trim(w, 1);
    world_log(w);
    world_cut(w, 1);
    (void)world_init(w, 1);
    (void)world_change_flushed(w, 1);
    world_cut(w, 1);
}

/** An interrupted creation left this file, and no log; another process finds it. */
static void leftover(world_t *w, const char *path)
{
    log_op(w, OP_FILE_CREATE, path, NULL);
    entry_durable(w, FS_LINK, path, NULL);
    entry_durable(w, FS_UNLINK, LOG_FILE, NULL);
    world_restart(w, false);
    entry_durable(w, FS_UNLINK, path, NULL);
}

static void undo_tablespace_of_no_log_removed(world_t *w)
{
    leftover(w, "undo002");
}

static void table_of_no_log_removed(world_t *w)
{
    leftover(w, "u.ibd");
}

static void name_like_an_undo_tablespace_removed(world_t *w)
{
    leftover(w, "undo0.ibd");
}

static void test_files(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(file_created),
        KEEPS(file_renamed_and_removed),
        KEEPS(file_operation_repeated),
        KEEPS(log_replaced),
        KEEPS(file_cut),
        KEEPS(file_cut_again_by_recovery),
        KEEPS(checkpoint_past_a_life_that_is_over),
        BREAKS(24, "file_record", file_cut_without_record),
        BREAKS(24, "file_record", file_cut_before_the_fsync),
        BREAKS(24, "file_record", file_cut_by_an_old_record),
        BREAKS(24, "file_record", file_cut_at_a_page_of_its_new_life),
        BREAKS(24, "file_sync", log_entry_unsynced_at_ack),
        KEEPS(backup_in_a_folder),
        BREAKS(24, "file_record", file_created_without_record),
        BREAKS(24, "file_record", file_created_before_the_fsync),
        BREAKS(24, "file_record", file_removed_by_an_old_record),
        BREAKS(24, "file_record", file_renamed_to_another_name),
        BREAKS(24, "file_sync", file_entry_unsynced_at_ack),
        BREAKS(24, "file_sync", file_created_and_another_folder_synced),
        BREAKS(24, "file_sync", file_entry_unsynced_at_checkpoint),
        KEEPS(undo_tablespace_of_no_log_removed),
        BREAKS(24, "file_record", table_of_no_log_removed),
        BREAKS(24, "file_record", name_like_an_undo_tablespace_removed),
    };
    (void)state;
    RUN(SCENARIOS);
}

/** What the storage promises of pages holds for a copy of them too, and for nothing that holds no
pages. */
static void test_units(void **state)
{
    static const struct {
        const char *path;
        uint32_t unit;
    } FILES[] = {{"b1.backup/ibdata1", WORLD_PAGE},
                 {"b1.backup/u.ibd", WORLD_PAGE},
                 {"b1.backup/undo001", WORLD_PAGE},
                 {"b1.backup/ib_logfile0", 0},
                 {"b1.backup/backup_info", 0},
                 {"u.cfg", 0},
                 {"undo0010", 0},
                 {"ib_dblwr", 0}};
    const rules_config_t config = {.atomic_unit = WORLD_PAGE};
    (void)state;
    for (size_t i = 0; i < sizeof(FILES) / sizeof(FILES[0]); i++) {
        rules_t *rules = rules_create(&config);
        image_t *image = image_create();
        rules_start(rules, image, false, NULL);
        fs_event_t event = {.kind = FS_WRITE, .data = (const byte *)"", .length = 1};
        rules_event(rules, &event, FILES[i].path);
        assert_int_equal(event.unit, FILES[i].unit);
        rules_destroy(rules);
        image_destroy(image);
    }
}

/** A write to a copy of the database has the site that it would have in the database: recoveries of
both are crashed by site. */
static void test_sites_of_a_copy(void **state)
{
    static const struct {
        const char *path;
        uint64_t offset;
        fs_site_t site;
    } WRITES[] = {{"b.backup/u.ibd", 4 * WORLD_PAGE, SITE_DATA_PAGE},
                  {"b.backup/u.ibd", 0, SITE_PAGE0},
                  {"b.backup/u.ibd", 100, SITE_OTHER},
                  {"b.backup/ib_logfile0", 2048, SITE_REDO},
                  {"b.backup/ib_logfile0", 512, SITE_CHECKPOINT_HEADER},
                  {"b.backup/ib_dblwr", 0, SITE_DOUBLEWRITE},
                  {"b.backup/backup_info", 0, SITE_METADATA}};
    byte page[WORLD_PAGE];
    world_t *w = calloc(1, sizeof(*w));
    (void)state;
    assert_non_null(w);
    world_begin(w, true);
    world_page_bytes(page, 4, w->end_lsn, WORLD_INDEX);
    for (size_t i = 0; i < sizeof(WRITES) / sizeof(WRITES[0]); i++) {
        if (i == 0 || strcmp(WRITES[i].path, WRITES[i - 1].path) != 0) {
            world_entry(w, FS_LINK, WRITES[i].path, NULL);
        }
        world_write(w, WRITES[i].path, WRITES[i].offset, page, sizeof(page));
        assert_int_equal(w->site, WRITES[i].site);
    }
    world_end(w);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sites_of_a_copy),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
