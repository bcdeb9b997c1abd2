/* A recovery: I14, I15, and what a killed process has not fsynced. */
#include "scenario.h"

/** It finds page 8 initialised and page 9 freed. @return LSN of page 8 */
static lsn_t recv_start(world_t *w)
{
    lsn_t lsn = scenario_init_and_free(w);
    world_restart(w, false);
    return lsn;
}

/** It finds an INDEX_LOAD behind those. */
static lsn_t recv_start_with_load(world_t *w)
{
    lsn_t lsn = scenario_init_and_free(w);
    world_load_durable(w, 41);
    world_restart(w, false);
    return lsn;
}

/** It finds a copy in the area. */
static void restart_with_copy(world_t *w, uint32_t page, lsn_t lsn)
{
    world_copy_durable(w, 3, page, lsn);
    world_restart(w, false);
}

static void read_and_flush(world_t *w, uint32_t page, lsn_t lsn)
{
    world_read(w, page);
    world_flush(w, page, lsn);
}

static void recv_of_a_logged_page(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 0);
    world_restart(w, false);
    read_and_flush(w, 0, lsn);
}

static void recv_creates(world_t *w)
{
    world_home(w, 8, recv_start(w));
    world_sync(w, "t.ibd");
    world_read(w, 8);
    world_checkpoint(w, w->c);
}

static void recv_builds_a_page_twice(world_t *w)
{
    lsn_t lsn = recv_start(w);
    world_home(w, 8, lsn);
    world_home(w, 8, lsn);
}

/** The copy may be an older one, and a page of it may be compared again after that. */
static void recv_skips_again_for_a_page_that_it_builds(world_t *w)
{
    lsn_t lsn = recv_start(w);
    world_home(w, 8, lsn);
    world_read(w, 8);
    world_home(w, 8, lsn);
}

/** What is initialised after the recovery is no page that it has found. */
static void recv_skips_for_a_page_of_its_own(world_t *w)
{
    (void)recv_start(w);
    world_epoch(w);
    lsn_t lsn = world_init(w, 10);
    world_log(w);
    world_home(w, 10, lsn);
    world_home(w, 10, lsn);
}

static void recv_reads_what_redo_initialises(world_t *w)
{
    (void)recv_start(w);
    world_read(w, 8);
}

static void recv_reads_to_compare_a_copy(world_t *w)
{
    restart_with_copy(w, 8, scenario_init_and_free(w));
    world_read(w, 8);
}

static void recv_reads_after_the_log_is_closed(world_t *w)
{
    (void)recv_start(w);
    rules_closed(w->rules, LOG_FILE);
    world_read(w, 8);
    world_read(w, 9);
}

static void recv_reads_where_an_index_load_is(world_t *w)
{
    (void)recv_start_with_load(w);
    world_read(w, 8);
    world_read(w, 9);
}

/** The INDEX_LOAD lies before what is freed. */
static void recv_reads_freed_where_an_index_load_was(world_t *w)
{
    world_load_durable(w, 41);
    (void)recv_start(w);
    world_read(w, 9);
}

static void recv_writes_freed_where_an_index_load_is(world_t *w)
{
    world_flush(w, 9, recv_start_with_load(w));
}

static void recv_creates_where_an_index_load_is(world_t *w)
{
    world_flush(w, 8, recv_start_with_load(w));
}

static void recv_makes_up_a_page(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 6);
    world_restart(w, false);
    world_flush(w, 6, lsn);
}

static void recv_reads_a_freed_page(world_t *w)
{
    (void)recv_start(w);
    world_read(w, 9);
}

static void backup_reads_a_freed_page(world_t *w)
{
    (void)recv_start(w);
    rules_journal(w->rules, JOURNAL_ACK, 1);
    world_read(w, 9);
}

static void recv_restores_a_freed_page(world_t *w)
{
    lsn_t lsn = scenario_init_and_free(w);
    restart_with_copy(w, 9, lsn);
    world_home(w, 9, lsn);
}

static void recv_restores_a_page(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 6);
    restart_with_copy(w, 6, lsn);
    world_home(w, 6, lsn);
}

/** Position 3 has what the log builds of page 8, and of page 6 what nothing else has. */
static void recv_reuses_the_copy_of(world_t *w, uint32_t page, lsn_t lsn)
{
    restart_with_copy(w, page, lsn);
    world_home(w, page, lsn);
    world_copy(w, 3, page, lsn);
}

static void recv_reuses_a_copy_that_it_does_not_need(world_t *w)
{
    recv_reuses_the_copy_of(w, 8, scenario_init_and_free(w));
}

static void recv_reuses_a_copy_before_the_fsync(world_t *w)
{
    recv_reuses_the_copy_of(w, 6, world_change_durable(w, 6));
}

static void recv_trusts_a_cold_log(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 0);
    world_restart(w, true);
    read_and_flush(w, 0, lsn);
}

static void recv_fsyncs_a_cold_log(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 0);
    world_restart(w, true);
    world_sync(w, LOG_FILE);
    read_and_flush(w, 0, lsn);
}

static void recv_checkpoint_over_a_cold_file(world_t *w)
{
    (void)world_change_flushed(w, 0);
    world_restart(w, true);
    world_sync(w, LOG_FILE);
    world_epoch(w);
    world_checkpoint(w, w->end_lsn);
}

static void test_recovery(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(recv_of_a_logged_page),
        KEEPS(recv_reads_to_compare_a_copy),
        KEEPS(recv_reads_after_the_log_is_closed),
        KEEPS(recv_reads_where_an_index_load_is),
        KEEPS(recv_restores_a_page),
        KEEPS(recv_builds_a_page_twice),
        KEEPS(recv_skips_again_for_a_page_that_it_builds),
        BREAKS(13, "dblwr_skip", recv_skips_for_a_page_of_its_own),
        KEEPS(recv_fsyncs_a_cold_log),
        BREAKS(21, "log_epoch", recv_creates),
        BREAKS(14, "recv_read", recv_reads_what_redo_initialises),
        KEEPS(recv_reads_freed_where_an_index_load_was),
        BREAKS(14, "recv_unread", recv_writes_freed_where_an_index_load_is),
        BREAKS(14, "recv_unread", recv_creates_where_an_index_load_is),
        BREAKS(14, "recv_unread", recv_makes_up_a_page),
        BREAKS(15, "recv_freed", recv_reads_a_freed_page),
        KEEPS(backup_reads_a_freed_page),
        KEEPS(recv_restores_a_freed_page),
        KEEPS(recv_reuses_a_copy_that_it_does_not_need),
        BREAKS(22, "area_reuse", recv_reuses_a_copy_before_the_fsync),
        BREAKS(4, "write_ahead", recv_trusts_a_cold_log),
        BREAKS(19, "ckpt_pages", recv_checkpoint_over_a_cold_file),
    };
    (void)state;
    RUN(SCENARIOS);
}

/* ---- a process that starts again ---- */

static void again_goes_on(world_t *w)
{
    lsn_t lsn = world_change_flushed(w, 0);
    world_start_again(w);
    world_epoch(w);
    read_and_flush(w, 0, lsn);
    world_checkpoint(w, w->end_lsn);
    world_flush(w, 0, world_change_durable(w, 0));
}

static void again_reads_what_redo_initialises(world_t *w)
{
    (void)scenario_init_and_free(w);
    world_read(w, 8); /* the log is its own: no recovery */
    world_start_again(w);
    world_read(w, 8);
}

static void again_makes_up_a_page(world_t *w)
{
    lsn_t lsn = world_change_flushed(w, 6);
    world_start_again(w);
    world_flush(w, 6, lsn);
}

static void again_restores_from_its_own_copy(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 6);
    world_copy_durable(w, 3, 6, lsn);
    world_start_again(w);
    world_home(w, 6, lsn);
}

static void again_restores_from_a_copy_that_may_go(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 6);
    world_copy(w, 3, 6, lsn);
    world_start_again(w);
    world_home(w, 6, lsn);
}

static void again_reuses_the_area(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 0);
    world_copy_and_home(w, 3, 0, lsn);
    world_start_again(w);
    world_copy(w, 3, 0, lsn);
}

static void again_checkpoint_over_what_was_not_fsynced(world_t *w)
{
    world_copy_and_home(w, 3, 0, world_change_durable(w, 0));
    world_start_again(w);
    world_epoch(w);
    world_checkpoint(w, w->end_lsn);
}

static void again_with_the_old_epoch(world_t *w)
{
    world_start_again(w);
    (void)world_change_durable(w, 0);
}

static void test_started_again(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(again_goes_on),
        BREAKS(14, "recv_read", again_reads_what_redo_initialises),
        BREAKS(14, "recv_unread", again_makes_up_a_page),
        KEEPS(again_restores_from_its_own_copy),
        BREAKS(22, "area_sync", again_restores_from_a_copy_that_may_go),
        BREAKS(22, "area_reuse", again_reuses_the_area),
        BREAKS(19, "ckpt_pages", again_checkpoint_over_what_was_not_fsynced),
        BREAKS(21, "log_epoch", again_with_the_old_epoch),
    };
    (void)state;
    RUN(SCENARIOS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_started_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
