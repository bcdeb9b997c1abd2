/* The blocks of the redo log: I20; a start on a log that it finds: I21. */
#include "base/mach.h"
#include "scenario.h"

static void log_overwrites_c(world_t *w)
{
    world_fill_log(w, 520);
}

static void log_overwrites_the_block_of_c(world_t *w)
{
    world_fill_log(w, 512);
}

static void log_elsewhere(world_t *w)
{
    const byte *block = w->log + world_log_offset(w->end_lsn);
    world_log_raw(w, 2048 + 100 * LOG_BLOCK_SIZE, block, LOG_BLOCK_SIZE);
}

static void log_takes_back(world_t *w)
{
    byte block[LOG_BLOCK_SIZE];
    uint64_t at = world_log_offset(w->end_lsn);
    memcpy(block, w->log + at, sizeof(block));
    block[20] ^= 1;
    world_log_raw(w, at, block, sizeof(block));
}

/** The bytes stay, and count no more. */
static void log_ends_earlier(world_t *w)
{
    byte block[LOG_BLOCK_SIZE];
    uint64_t at = world_log_offset(w->end_lsn);
    memcpy(block, w->log + at, sizeof(block));
    mach_write_2(block + LOG_BLOCK_USED, (uint16_t)(mach_read_2(block + LOG_BLOCK_USED) - 1));
    world_log_raw(w, at, block, sizeof(block));
}

static void start_in_order(world_t *w)
{
    world_restart(w, false);
    world_epoch(w);
    (void)world_change_durable(w, 0);
}

static void start_behind_half_a_group(world_t *w)
{
    lsn_t end = w->end_lsn;
    (void)world_half_group(w);
    world_restart(w, false);
    w->end_lsn = end;
    world_epoch(w);
    (void)world_change_durable(w, 0);
}

static void start_with_the_old_epoch(world_t *w)
{
    world_restart(w, false);
    (void)world_change_durable(w, 0);
}

static void start_with_an_epoch_of_no_slot(world_t *w)
{
    world_restart(w, false);
    w->epoch++;
    world_epoch_cut(w, true);
}

static void start_before_the_slot_is_fsynced(world_t *w)
{
    world_restart(w, false);
    world_epoch_slot(w, false);
    world_epoch_cut(w, false);
}

static void start_without_the_cut(world_t *w)
{
    world_restart(w, false);
    world_epoch_slot(w, true);
    (void)world_change_durable(w, 0);
}

static void start_before_the_cut_is_fsynced(world_t *w)
{
    world_restart(w, false);
    world_epoch_slot(w, true);
    world_epoch_cut(w, false);
    (void)world_change_durable(w, 0);
}

static void start_with_a_shared_history(world_t *w)
{
    const rules_config_t config = {.keep_history = true, .found = NULL};
    rules_t *history = rules_create(&config);
    world_fill_log(w, 20);
    world_restart(w, false);
    rules_log_facts_t alone;
    rules_log_facts(w->rules, &alone);
    rules_start(w->rules, w->image, false, history); /* empty: nothing in common */
    rules_log_facts_t shared;
    rules_log_facts(w->rules, &shared);
    assert_int_equal(alone.found, shared.found);
    assert_int_equal(alone.checkpoint, shared.checkpoint);
    assert_int_equal(alone.end_lsn, shared.end_lsn);
    assert_int_equal(alone.last_lsn, shared.last_lsn);
    rules_destroy(history);
}

/** A recovery finds in the last block another record than the run wrote: of page 5, not of page
4. */
static void log_that_differs_from_the_run(world_t *w)
{
    byte block[LOG_BLOCK_SIZE];
    lsn_t from = w->end_lsn;
    uint64_t at = world_log_offset(from);
    lsn_t end = world_change(w, 5);
    memcpy(block, w->log + at, sizeof(block));
    w->end_lsn = from;
    (void)world_change_durable(w, 4);
    world_damage(w, LOG_FILE, at, block, sizeof(block));
    memcpy(w->log + at, block, sizeof(block));
    w->end_lsn = w->written_lsn = end;
    world_restart_sharing(w);
    world_epoch(w);
    world_copy_and_home(w, 3, 4, end);
    world_sync(w, "t.ibd");
    world_checkpoint(w, w->end_lsn);
}

static void test_log(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(scenario_log_around),
        KEEPS(start_in_order),
        KEEPS(start_behind_half_a_group),
        KEEPS(start_with_a_shared_history),
        BREAKS(19, "ckpt_pages", log_that_differs_from_the_run),
        BREAKS(20, "log_overwrite", log_overwrites_c),
        BREAKS(20, "log_overwrite", log_overwrites_the_block_of_c),
        BREAKS(20, "log_place", log_elsewhere),
        BREAKS(20, "log_rewritten", log_takes_back),
        BREAKS(20, "log_rewritten", log_ends_earlier),
        BREAKS(21, "log_epoch", start_with_the_old_epoch),
        BREAKS(21, "log_epoch", start_with_an_epoch_of_no_slot),
        BREAKS(21, "log_epoch", start_before_the_slot_is_fsynced),
        BREAKS(21, "log_cut", start_without_the_cut),
        BREAKS(21, "log_cut", start_before_the_cut_is_fsynced),
    };
    (void)state;
    RUN(SCENARIOS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
