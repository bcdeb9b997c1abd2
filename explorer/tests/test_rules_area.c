/* The doublewrite area: I22. */
#include "scenario.h"

/** The copy of page 0 is durable, its home write not fsynced. @return LSN of the page */
static lsn_t area_needed(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 0);
    world_copy_and_home(w, 0, 0, lsn);
    return lsn;
}

static void area_order(world_t *w)
{
    lsn_t lsn = world_change_flushed(w, 0);
    world_copy(w, 7, 4, lsn);
}

static void area_of_two_regions(world_t *w)
{
    lsn_t lsn = area_needed(w);
    world_copy_durable(w, 6, 4, lsn);
}

static void area_not_fsynced(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 0);
    world_copy(w, 0, 0, lsn);
    world_home(w, 0, lsn);
}

static void area_reused_before_the_home_fsync(world_t *w)
{
    lsn_t lsn = area_needed(w);
    world_copy(w, 0, 4, lsn);
}

/** A write need not begin where a position does. */
static void area_reused_in_part(world_t *w)
{
    byte bytes[WORLD_PAGE] = {0};
    lsn_t lsn = world_change_durable(w, 0);
    world_copy_and_home(w, 1, 0, lsn);
    world_write(w, "ib_dblwr", WORLD_PAGE + 512, bytes, 512);
}

static void area_reused_and_not_fsynced(world_t *w)
{
    (void)area_needed(w);
    world_sync(w, "t.ibd");
    lsn_t lsn = world_change_durable(w, 0);
    world_copy(w, 0, 0, lsn);
    world_home(w, 0, lsn);
}

static void area_reused_after_another_files_fsync(world_t *w)
{
    lsn_t lsn = area_needed(w);
    world_entry(w, FS_LINK, "ibdata1", NULL);
    world_sync(w, "ibdata1");
    world_copy(w, 0, 4, lsn);
}

static void area_ahead_of_the_log(world_t *w)
{
    world_copy(w, 0, 0, world_change(w, 0));
}

/** Page 6 is restored from a copy that recovery found. @return its LSN */
static lsn_t restored(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 6);
    world_copy_durable(w, 3, 6, lsn);
    world_restart(w, false);
    world_home(w, 6, lsn);
    return lsn;
}

static void area_found_and_reused_after_the_home_fsync(world_t *w)
{
    lsn_t lsn = restored(w);
    world_sync(w, "t.ibd");
    world_copy(w, 3, 0, lsn);
}

static void area_found_and_reused_before_the_home_fsync(world_t *w)
{
    world_copy(w, 3, 0, restored(w));
}

/** Killed with a copy of page 6 that was never fsynced; the log is durable. @return LSN of the
page */
static lsn_t killed_with_a_copy(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 6);
    world_copy(w, 3, 6, lsn);
    world_restart(w, true);
    world_sync(w, LOG_FILE);
    return lsn;
}

static void area_found_and_not_fsynced(world_t *w)
{
    world_home(w, 6, killed_with_a_copy(w));
}

static void area_found_and_fsynced(world_t *w)
{
    lsn_t lsn = killed_with_a_copy(w);
    world_sync(w, "ib_dblwr");
    world_home(w, 6, lsn);
}

/** Built from the log, it goes home as a page that skips: that it equals the copy is chance. */
static void area_found_and_not_needed(world_t *w)
{
    lsn_t lsn = world_init(w, 6);
    world_log(w);
    world_copy(w, 3, 6, lsn);
    world_restart(w, true);
    world_sync(w, LOG_FILE);
    world_home(w, 6, lsn);
}

static void test_area(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(area_order),
        KEEPS(area_of_two_regions),
        BREAKS(22, "area_sync", area_not_fsynced),
        BREAKS(4, "write_ahead", area_ahead_of_the_log),
        BREAKS(22, "area_reuse", area_reused_before_the_home_fsync),
        BREAKS(22, "area_reuse", area_reused_in_part),
        BREAKS(22, "area_sync", area_reused_and_not_fsynced),
        BREAKS(22, "area_reuse", area_reused_after_another_files_fsync),
        KEEPS(area_found_and_reused_after_the_home_fsync),
        BREAKS(22, "area_reuse", area_found_and_reused_before_the_home_fsync),
        KEEPS(area_found_and_fsynced),
        BREAKS(22, "area_sync", area_found_and_not_fsynced),
        KEEPS(area_found_and_not_needed),
    };
    (void)state;
    RUN(SCENARIOS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_area),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
