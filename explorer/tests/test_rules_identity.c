/* Whose a page and a file are: never what they say of themselves (I5, I13, I19, I24). */
#include "scenario.h"

#include "page/page_index.h"

static const page_id_t ELSEWHERE = {WORLD_OTHER, 4};

static void put(world_t *w, const char *path, page_id_t place, page_id_t says, lsn_t lsn)
{
    byte bytes[WORLD_PAGE];
    world_page_of(bytes, says, lsn, WORLD_INDEX);
    world_write(w, path, (uint64_t)place.page_no * WORLD_PAGE, bytes, sizeof(bytes));
}

/** A copy of what the page says, then its home; fsynced. */
static void flush_as(world_t *w, const char *path, page_id_t says, lsn_t lsn)
{
    put(w, "ib_dblwr", (page_id_t){0, 6}, says, lsn);
    world_sync(w, "ib_dblwr");
    put(w, path, says, says, lsn);
    world_sync(w, path);
}

/** The crash left another space's page 0 in "t.ibd"; the log, where it is named, says whose it
is. */
static void found_with_another_page0(world_t *w, bool named)
{
    if (named) {
        (void)world_file_op(w, OP_FILE_NAME, "t.ibd", NULL);
    } else {
        world_checkpoint(w, w->end_lsn);
    }
    byte bytes[WORLD_PAGE];
    world_page_of(bytes, (page_id_t){WORLD_OTHER, 0}, w->c, WORLD_INDEX);
    lsn_t lsn = world_init(w, 4);
    world_log(w);
    world_damage(w, "t.ibd", 0, bytes, sizeof(bytes));
    world_restart(w, false);
    w->end_lsn = w->written_lsn = lsn;
}

static lsn_t page_logged(world_t *w)
{
    (void)world_init(w, 4);
    return world_change_durable(w, 4);
}

/* ---- pages ---- */

static void page_of_another_space(world_t *w)
{
    flush_as(w, "t.ibd", ELSEWHERE, page_logged(w));
}

static void page_of_another_space_and_checkpoint(world_t *w)
{
    page_of_another_space(w);
    world_checkpoint(w, w->end_lsn);
}

static void page0_of_another_space(world_t *w)
{
    flush_as(w, "t.ibd", (page_id_t){WORLD_OTHER, 0}, world_change_durable(w, 0));
}

static void page0_of_another_space_and_more_pages(world_t *w)
{
    page0_of_another_space(w);
    flush_as(w, "t.ibd", ELSEWHERE, page_logged(w));
    world_checkpoint(w, w->end_lsn);
}

static void copy_that_names_another_page(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 0);
    put(w, "ib_dblwr", (page_id_t){0, 6}, (page_id_t){WORLD_OTHER, 0}, lsn);
    world_sync(w, "ib_dblwr");
    world_home(w, 0, lsn);
}

static void found_page_torn_inside(world_t *w)
{
    const byte junk[512] = {1};
    world_home(w, 0, world_change_durable(w, 0));
    world_forget(w);
    world_damage(w, "t.ibd", 1024, junk, sizeof(junk));
    world_restart(w, false);
    world_epoch(w);
    world_checkpoint(w, w->end_lsn);
}

/* ---- files ---- */

static void file_made(world_t *w, const char *path)
{
    (void)world_file_op(w, OP_FILE_CREATE, path, NULL);
    world_log(w);
    world_entry(w, FS_LINK, path, NULL);
    world_sync_dir(w);
}

static lsn_t logged_elsewhere(world_t *w)
{
    const redo_rec_t rec = {
        .op = OP_INIT_PAGE, .space = WORLD_OTHER, .page_no = 4, .value = FIL_PAGE_INDEX};
    lsn_t lsn = world_append(w, &rec);
    world_log(w);
    return lsn;
}

static void file_of_its_own_space(world_t *w)
{
    file_made(w, "u.ibd");
    flush_as(w, "u.ibd", ELSEWHERE, logged_elsewhere(w));
    world_checkpoint(w, w->end_lsn);
}

static void file_renamed_with_its_space(world_t *w)
{
    file_made(w, "u.ibd");
    (void)world_file_op(w, OP_FILE_RENAME, "u.ibd", "v.ibd");
    world_log(w);
    world_entry(w, FS_RENAME, "u.ibd", "v.ibd");
    world_sync_dir(w);
    file_made(w, "w.ibd");
    flush_as(w, "v.ibd", ELSEWHERE, logged_elsewhere(w));
}

static void file_with_the_pages_of_another(world_t *w)
{
    file_made(w, "u.ibd");
    flush_as(w, "u.ibd", (page_id_t){WORLD_SPACE, 4}, page_logged(w));
}

static void found_page0_lies(world_t *w)
{
    found_with_another_page0(w, true);
    flush_as(w, "t.ibd", (page_id_t){WORLD_SPACE, 4}, w->end_lsn);
}

static void found_page0_is_believed(world_t *w)
{
    found_with_another_page0(w, true);
    flush_as(w, "t.ibd", ELSEWHERE, w->end_lsn);
}

/** By its page 0 alone, for the log names it no more; the page 4 of space 5 has no home. */
static void found_page0_counts_where_the_log_is_silent(world_t *w)
{
    found_with_another_page0(w, false);
    flush_as(w, "t.ibd", (page_id_t){WORLD_SPACE, 4}, w->end_lsn);
}

static void file_of_nobody(world_t *w)
{
    const byte junk[512] = {1};
    world_checkpoint(w, w->end_lsn);
    world_damage(w, "t.ibd", 1024, junk, sizeof(junk));
    world_restart(w, false);
    world_home(w, 0, w->c);
}

static void file_made_without_a_record(world_t *w)
{
    world_entry(w, FS_LINK, "u.ibd", NULL);
    put(w, "u.ibd", (page_id_t){WORLD_SPACE, 0}, (page_id_t){WORLD_SPACE, 0}, w->c);
}

static void renamed_by_the_record_of_another(world_t *w)
{
    file_made(w, "u.ibd");
    (void)world_file_op_of(w, OP_FILE_RENAME, WORLD_SPACE, "u.ibd", "v.ibd");
    world_log(w);
    world_entry(w, FS_RENAME, "u.ibd", "v.ibd");
}

static void removed_by_the_record_of_another(world_t *w)
{
    file_made(w, "u.ibd");
    (void)world_file_op_of(w, OP_FILE_DELETE, WORLD_SPACE, "u.ibd", NULL);
    world_log(w);
    world_entry(w, FS_UNLINK, "u.ibd", NULL);
}

static void moved_in_from_a_folder(world_t *w)
{
    world_entry(w, FS_LINK, "b.backup/u.ibd", NULL);
    world_entry(w, FS_RENAME, "b.backup/u.ibd", "u.ibd");
}

/* ---- checkpoints ---- */

static void checkpoint_of_a_file_that_is_gone(world_t *w)
{
    (void)world_change_durable(w, 0);
    world_entry(w, FS_UNLINK, "t.ibd", NULL);
    world_sync_dir(w);
    world_checkpoint(w, w->end_lsn);
}

static void checkpoint_by_a_deletion_that_may_be_lost(world_t *w)
{
    (void)world_change_durable(w, 0);
    lsn_t c = w->end_lsn;
    lsn_t marker = world_marker(w, c);
    (void)world_file_op(w, OP_FILE_DELETE, "t.ibd", NULL);
    world_log_write(w);
    world_slot(w, 0, 2, c, marker);
}

static void checkpoint_by_a_new_life_that_may_be_lost(world_t *w)
{
    (void)world_change_durable(w, 0);
    lsn_t c = w->end_lsn;
    lsn_t marker = world_marker(w, c);
    (void)world_trim(w, 1);
    world_log_write(w);
    world_slot(w, 0, 2, c, marker);
}

static void checkpoint_by_an_older_deletion(world_t *w)
{
    (void)world_file_op(w, OP_FILE_DELETE, "t.ibd", NULL);
    (void)world_change_durable(w, 0);
    world_checkpoint(w, w->end_lsn);
}

static void checkpoint_of_an_earlier_epoch(world_t *w)
{
    world_restart(w, false);
    world_epoch(w);
    w->epoch--;
    lsn_t marker = world_marker(w, w->end_lsn);
    world_forget(w);
    world_slot(w, 1, w->slot_no + 1, marker, marker);
}

static void test_identity(void **state)
{
    static const scenario_t SCENARIOS[] = {
        BREAKS(5, "home_page", page_of_another_space),
        BREAKS_BOTH(5, 19, "home_page ckpt_pages", page_of_another_space_and_checkpoint),
        BREAKS(5, "home_page", page0_of_another_space),
        BREAKS_BOTH(5, 19, "home_page ckpt_pages", page0_of_another_space_and_more_pages),
        BREAKS(13, "dblwr_skip", copy_that_names_another_page),
        BREAKS(19, "ckpt_pages", found_page_torn_inside),
        KEEPS(file_of_its_own_space),
        KEEPS(file_renamed_with_its_space),
        BREAKS(5, "home_page", file_with_the_pages_of_another),
        KEEPS(found_page0_lies),
        BREAKS(5, "home_page", found_page0_is_believed),
        BREAKS(5, "home_page", found_page0_counts_where_the_log_is_silent),
        BREAKS(5, "home_page", file_of_nobody),
        BREAKS_BOTH(5, 24, "file_record home_page", file_made_without_a_record),
        BREAKS(24, "file_record", renamed_by_the_record_of_another),
        BREAKS(24, "file_record", removed_by_the_record_of_another),
        BREAKS(24, "file_record", moved_in_from_a_folder),
        BREAKS_BOTH(19, 24, "file_record ckpt_pages", checkpoint_of_a_file_that_is_gone),
        BREAKS(19, "ckpt_pages", checkpoint_by_a_deletion_that_may_be_lost),
        BREAKS(19, "ckpt_pages", checkpoint_by_a_new_life_that_may_be_lost),
        BREAKS(19, "ckpt_pages", checkpoint_by_an_older_deletion),
        BREAKS(19, "ckpt_slot", checkpoint_of_an_earlier_epoch),
    };
    (void)state;
    RUN(SCENARIOS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
