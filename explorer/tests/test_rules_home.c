/* Home writes: I4, I5; those that skip the doublewrite area: I13. */
#include "scenario.h"

#include <stdlib.h>

/* ---- I4, I5 ---- */

static void home_in_order(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_change_flushed(w, 4);
    world_checkpoint(w, w->end_lsn);
    (void)world_change_flushed(w, 4);
}

static void home_before_the_log_is_written(world_t *w)
{
    world_flush(w, 0, world_change(w, 0));
}

static void home_before_the_log_is_fsynced(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log_write(w);
    world_flush(w, 0, lsn);
}

static void home_of_half_a_group(world_t *w)
{
    world_flush(w, 0, world_half_group(w));
}

static void home_elsewhere(world_t *w)
{
    byte bytes[WORLD_PAGE];
    world_page_bytes(bytes, 4, w->c, WORLD_INDEX);
    world_write(w, "t.ibd", 5 * WORLD_PAGE, bytes, sizeof(bytes));
}

static void home_unstamped(world_t *w)
{
    byte bytes[WORLD_PAGE];
    world_page_bytes(bytes, 4, w->c, WORLD_INDEX);
    bytes[200] ^= 1;
    world_write(w, "t.ibd", 4 * WORLD_PAGE, bytes, sizeof(bytes));
}

static void test_home_writes(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(home_in_order),
        BREAKS(4, "write_ahead", home_before_the_log_is_written),
        BREAKS(4, "write_ahead", home_before_the_log_is_fsynced),
        BREAKS(4, "write_ahead", home_of_half_a_group),
        BREAKS(5, "home_page", home_elsewhere),
        BREAKS(5, "home_page", home_unstamped),
    };
    (void)state;
    RUN(SCENARIOS);
}

/* ---- I13 ---- */

/** A change of the page goes home without a copy. @return its LSN */
static lsn_t skip_home(world_t *w, uint32_t page)
{
    lsn_t lsn = world_change_durable(w, page);
    world_home(w, page, lsn);
    return lsn;
}

static lsn_t skip_once(world_t *w)
{
    (void)world_init(w, 4);
    lsn_t lsn = skip_home(w, 4);
    world_sync(w, "t.ibd");
    return lsn;
}

static void skip_the_first_write(world_t *w)
{
    (void)skip_once(w);
}

static void skip_after_free_and_init(world_t *w)
{
    (void)skip_once(w);
    (void)world_free(w, 4);
    (void)skip_once(w);
}

static void skip_without_init(world_t *w)
{
    (void)skip_home(w, 0);
}

static void skip_a_freed_page(world_t *w)
{
    (void)world_init(w, 4);
    lsn_t lsn = world_free(w, 4);
    world_log(w);
    world_home(w, 4, lsn);
}

static void skip_while_it_is_freed(world_t *w)
{
    lsn_t lsn = world_init(w, 4);
    (void)world_free(w, 4);
    (void)world_init(w, 4);
    world_log(w);
    world_home(w, 4, lsn);
}

static void skip_twice(world_t *w)
{
    (void)skip_once(w);
    (void)skip_home(w, 4);
}

static void skip_behind_the_checkpoint(world_t *w)
{
    lsn_t lsn = world_init(w, 4);
    world_log(w);
    world_flush(w, 4, lsn);
    world_checkpoint(w, w->end_lsn);
    (void)skip_home(w, 4);
}

static void skip_with_index_load(world_t *w)
{
    (void)world_load(w, 41);
    (void)skip_once(w);
}

/** A page that equals a copy which was found, and may not outlive a crash, is one that skips. */
static void skip_like_a_found_copy_and_load(world_t *w)
{
    lsn_t lsn = world_init(w, 4);
    world_log(w);
    world_copy(w, 3, 4, lsn);
    world_restart(w, true);
    world_sync(w, LOG_FILE);
    world_home(w, 4, lsn);
    world_load_durable(w, 41);
}

static void skip_with_an_old_index_load(world_t *w)
{
    world_load_durable(w, 41);
    world_checkpoint(w, w->end_lsn);
    (void)skip_once(w);
}

static void skip_without_a_record(world_t *w)
{
    (void)world_init(w, 4);
    lsn_t lsn = world_change_durable(w, 0);
    world_home(w, 4, lsn);
}

static void skip_and_no_drain(world_t *w)
{
    (void)skip_once(w);
    world_load_durable(w, 41);
}

/** The initialisation is the first record behind the checkpoint. */
static void skip_at_the_checkpoint_and_no_drain(world_t *w)
{
    lsn_t c = w->end_lsn;
    (void)skip_once(w);
    world_checkpoint(w, c);
    world_load_durable(w, 41);
}

static void skip_and_drain(world_t *w)
{
    world_checkpoint(w, skip_once(w));
    world_load_durable(w, 41);
}

static void copy_of_another_version(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 0);
    world_copy_durable(w, 0, 0, lsn - 1);
    world_home(w, 0, lsn);
}

static void test_skips(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(skip_the_first_write),
        KEEPS(skip_after_free_and_init),
        KEEPS(skip_while_it_is_freed),
        KEEPS(skip_with_an_old_index_load),
        KEEPS(skip_and_drain),
        BREAKS(13, "dblwr_skip", skip_without_init),
        BREAKS(13, "dblwr_skip", skip_a_freed_page),
        BREAKS(13, "dblwr_skip", skip_twice),
        BREAKS(13, "dblwr_skip", skip_behind_the_checkpoint),
        BREAKS(13, "dblwr_skip", skip_with_index_load),
        BREAKS_BOTH(13, 21, "log_epoch skip_drain", skip_like_a_found_copy_and_load),
        BREAKS(13, "dblwr_skip", skip_without_a_record),
        BREAKS(13, "skip_drain", skip_and_no_drain),
        BREAKS(13, "skip_drain", skip_at_the_checkpoint_and_no_drain),
        BREAKS(13, "dblwr_skip", copy_of_another_version),
    };
    static const scenario_t OFF[] = {KEEPS(skip_without_init), KEEPS(skip_twice)};
    (void)state;
    RUN(SCENARIOS);
    scenario_run(OFF, 2, false);
}

/** Where the page is, for whoever crashes there; a file that is gone has none. */
static void test_the_page_is_accused(void **state)
{
    uint32_t inode = IMAGE_NONE;
    uint64_t offset = 0;
    world_t *w = calloc(1, sizeof(*w));
    (void)state;
    assert_non_null(w);
    world_begin(w, true);
    skip_twice(w);
    assert_int_equal(w->accused, redo_key(WORLD_SPACE, 4));
    assert_true(rules_page_place(w->rules, w->accused, &inode, &offset));
    assert_int_equal(inode, image_lookup(w->image, image_name_find(w->image, "t.ibd")));
    assert_int_equal(offset, 4 * WORLD_PAGE);
    assert_false(rules_page_place(w->rules, RULES_NO_PAGE, &inode, &offset));
    assert_false(rules_page_place(w->rules, redo_key(WORLD_OTHER, 4), &inode, &offset));
    world_entry(w, FS_UNLINK, "t.ibd", NULL);
    assert_false(rules_page_place(w->rules, redo_key(WORLD_SPACE, 4), &inode, &offset));
    world_end(w);
    free(w);
}

/** What the storage promises to write whole must be a page: sectors are not enough. */
static void test_units(void **state)
{
    static const struct {
        uint32_t unit;
        bool skipped;
    } UNITS[] = {{0, false}, {512, false}, {WORLD_PAGE / 2, false}, {WORLD_PAGE, true}};
    (void)state;
    for (size_t i = 0; i < sizeof(UNITS) / sizeof(UNITS[0]); i++) {
        world_t *w = calloc(1, sizeof(*w));
        assert_non_null(w);
        w->atomic_unit = UNITS[i].unit;
        world_begin(w, true);
        skip_without_init(w);
        assert_int_equal(w->found[13] == 0, UNITS[i].skipped);
        world_end(w);
        free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_home_writes),
        cmocka_unit_test(test_skips),
        cmocka_unit_test(test_the_page_is_accused),
        cmocka_unit_test(test_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
