/* Index loads without redo: I16. */
#include "scenario.h"

static void issue(world_t *w, uint32_t line)
{
    rules_journal(w->rules, JOURNAL_ISSUE, line);
}

static void ack(world_t *w, uint32_t line)
{
    rules_journal(w->rules, JOURNAL_ACK, line);
}

static void change_loaded_page(world_t *w)
{
    (void)world_delete_rec(w, 4);
    world_log(w);
}

/** After the statement a record relies on the loaded page, which asks for the load's INDEX_LOAD. */
static void ack_and_change(world_t *w, uint32_t line)
{
    ack(w, line);
    change_loaded_page(w);
}

/** An index whose page 4 is loaded without redo under statement 3. @return LSN of the page */
static lsn_t load_begin(world_t *w)
{
    issue(w, 3);
    (void)world_create_index(w, 4, 41);
    return world_change_durable(w, 0);
}

/** Its root is made without redo too: the log says nothing of the index before INDEX_LOAD. */
static lsn_t load_begin_unlogged(world_t *w)
{
    issue(w, 3);
    return world_change_durable(w, 0);
}

static void load_write(world_t *w, lsn_t lsn, bool sync)
{
    world_copy_of(w, 0, 4, lsn, 41);
    world_sync(w, "ib_dblwr");
    world_home_of(w, 4, lsn, 41);
    if (sync) {
        world_sync(w, "t.ibd");
    }
}

static void load_logged(world_t *w)
{
    world_load_durable(w, 41);
}

/** Page, then INDEX_LOAD, then the end of the statement. */
static void load_end(world_t *w, lsn_t lsn)
{
    load_write(w, lsn, true);
    load_logged(w);
    ack(w, 3);
}

static void load_end_too_late(world_t *w, lsn_t lsn)
{
    load_logged(w);
    load_write(w, lsn, true);
    ack_and_change(w, 3);
}

/** Statement 3 writes the page, statement 4 the INDEX_LOAD. */
static void load_by_two_statements(world_t *w, bool sync)
{
    load_write(w, load_begin(w), sync);
    ack(w, 3);
    issue(w, 4);
    load_logged(w);
}

static void load_in_order(world_t *w)
{
    load_end(w, load_begin(w));
}

static void load_of_an_unlogged_root(world_t *w)
{
    load_end(w, load_begin_unlogged(w));
}

static void load_of_an_unlogged_root_too_late(world_t *w)
{
    load_end_too_late(w, load_begin_unlogged(w));
}

static void load_durable_before_the_fsync(world_t *w)
{
    load_write(w, load_begin(w), false);
    load_logged(w);
    world_sync(w, "t.ibd");
    ack_and_change(w, 3);
}

static void load_durable_before_the_write(world_t *w)
{
    load_end_too_late(w, load_begin(w));
}

static void load_write_after_the_end(world_t *w)
{
    lsn_t lsn = load_begin(w);
    load_logged(w);
    ack(w, 3);
    load_write(w, lsn, true);
    change_loaded_page(w);
}

static void load_without_index_load(world_t *w)
{
    load_write(w, load_begin(w), true);
    ack_and_change(w, 3);
}

/** The engine ends and starts: what it relies on then is what it wrote before. */
static void start_and_change(world_t *w)
{
    world_start_again(w);
    world_epoch(w);
    issue(w, 4);
    ack_and_change(w, 4);
}

static void load_without_index_load_and_a_start(world_t *w)
{
    load_write(w, load_begin(w), true);
    start_and_change(w);
}

static void load_durable_before_the_fsync_and_a_start(world_t *w)
{
    load_write(w, load_begin(w), false);
    load_logged(w);
    start_and_change(w);
}

static void load_in_order_and_a_start(world_t *w)
{
    load_in_order(w);
    start_and_change(w);
}

static void load_given_up(world_t *w)
{
    load_by_two_statements(w, false);
    (void)world_free(w, 4);
    world_log(w);
    ack(w, 4);
}

/** Bytes in the root's header, while the tree is freed. */
static void load_given_up_in_steps(world_t *w)
{
    load_by_two_statements(w, false);
    world_flush(w, 4, world_change_durable(w, 4));
    (void)world_free(w, 4);
    world_log(w);
    ack(w, 4);
}

/** Such bytes alone do not make the page one that its record has written. */
static void load_without_index_load_and_plain_bytes(world_t *w)
{
    load_write(w, load_begin(w), true);
    world_flush(w, 4, world_change_durable(w, 4));
    ack_and_change(w, 3);
}

static void load_in_steps(world_t *w)
{
    load_by_two_statements(w, true);
    ack_and_change(w, 4);
}

static void load_in_steps_durable_before_the_fsync(world_t *w)
{
    load_by_two_statements(w, false);
    ack_and_change(w, 4);
}

static void load_not_acknowledged(world_t *w)
{
    lsn_t lsn = load_begin(w);
    load_write(w, lsn, false);
    load_logged(w);
    world_sync(w, "t.ibd");
    load_write(w, lsn, true);
}

static void load_that_is_cut_short(world_t *w)
{
    load_write(w, load_begin(w), false);
    load_logged(w);
}

static void load_page_freed_and_written(world_t *w)
{
    lsn_t lsn = load_begin(w);
    (void)world_free(w, 4);
    load_logged(w);
    load_write(w, lsn, true);
    ack(w, 3);
}

static void test_index_loads(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(load_in_order),
        KEEPS(load_of_an_unlogged_root),
        BREAKS(16, "index_load", load_of_an_unlogged_root_too_late),
        KEEPS(load_not_acknowledged),
        KEEPS(load_that_is_cut_short),
        KEEPS(load_page_freed_and_written),
        BREAKS(16, "index_load", load_durable_before_the_fsync),
        BREAKS(16, "index_load", load_durable_before_the_write),
        BREAKS(16, "index_load", load_write_after_the_end),
        BREAKS(16, "index_load", load_without_index_load),
        BREAKS(16, "index_load", load_in_steps_durable_before_the_fsync),
        BREAKS(16, "index_load", load_without_index_load_and_a_start),
        BREAKS(16, "index_load", load_durable_before_the_fsync_and_a_start),
        KEEPS(load_in_order_and_a_start),
        KEEPS(load_in_steps),
        KEEPS(load_given_up),
        KEEPS(load_given_up_in_steps),
        BREAKS(16, "index_load", load_without_index_load_and_plain_bytes),
    };
    (void)state;
    RUN(SCENARIOS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_loads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
