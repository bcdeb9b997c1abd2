/* Each rule on bytes: streams that keep it, and one for each way of breaking it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mach.h"
#include "explorer/model/models.h"
#include "world.h"

typedef struct scenario {
    const char *name;
    void (*play)(world_t *w);
    uint32_t invariant; /**< the only one that is broken; 0: none */
} scenario_t;

#define KEEPS(f)                                                                                   \
    {                                                                                              \
#f, f, 0                                                                                   \
    }
#define BREAKS(n, f)                                                                               \
    {                                                                                              \
#f, f, n                                                                                   \
    }

static void run(const scenario_t *scenarios, size_t n, bool doublewrite)
{
    for (size_t i = 0; i < n; i++) {
        world_t *w = calloc(1, sizeof(*w));
        assert_non_null(w);
        world_begin(w, doublewrite);
        scenarios[i].play(w);
        for (uint32_t k = 0; k < 32; k++) {
            if ((w->found[k] > 0) != (k == scenarios[i].invariant && k != 0)) {
                fail_msg("%s: I%u found %u times, I%u expected; last: %s", scenarios[i].name, k,
                         w->found[k], scenarios[i].invariant, w->what);
            }
        }
        world_end(w);
        free(w);
    }
}

#define RUN(scenarios) run(scenarios, sizeof(scenarios) / sizeof((scenarios)[0]), true)

/* ---- I4, I5 ---- */

static void home_in_order(world_t *w)
{
    (void)world_init(w, 4);
    lsn_t lsn = world_change(w, 4);
    world_log(w);
    world_flush(w, 4, lsn);
    world_checkpoint(w, w->end_lsn);
    lsn = world_change(w, 4);
    world_log(w);
    world_flush(w, 4, lsn);
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
    lsn_t start = w->end_lsn;
    redo_rec_t rec = {.type = MLOG_WRITE_STRING, .space = WORLD_SPACE, .offset = 100, .len = 600};
    byte data[600] = {1};
    rec.data = data;
    lsn_t lsn = world_append(w, &rec);
    world_log_raw(w, 2048 + lsn_block(start) - LOG_START_LSN,
                  w->log + 2048 + (lsn_block(start) - LOG_START_LSN), LOG_BLOCK_SIZE);
    world_sync(w, LOG_FILE);
    world_flush(w, 0, lsn);
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
        BREAKS(4, home_before_the_log_is_written),
        BREAKS(4, home_before_the_log_is_fsynced),
        BREAKS(4, home_of_half_a_group),
        BREAKS(5, home_elsewhere),
        BREAKS(5, home_unstamped),
    };
    (void)state;
    RUN(SCENARIOS);
}

/* ---- I13 ---- */

static lsn_t skip_once(world_t *w)
{
    (void)world_init(w, 4);
    lsn_t lsn = world_change(w, 4);
    world_log(w);
    world_home(w, 4, lsn);
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
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_home(w, 0, lsn);
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
    lsn_t lsn = world_change(w, 4);
    world_log(w);
    world_home(w, 4, lsn);
}

static void skip_behind_the_checkpoint(world_t *w)
{
    lsn_t lsn = world_init(w, 4);
    world_log(w);
    world_flush(w, 4, lsn);
    world_checkpoint(w, w->end_lsn);
    lsn = world_change(w, 4);
    world_log(w);
    world_home(w, 4, lsn);
}

static void skip_with_index_load(world_t *w)
{
    (void)world_load(w, 41);
    (void)skip_once(w);
}

static void skip_with_an_old_index_load(world_t *w)
{
    (void)world_load(w, 41);
    world_log(w);
    world_checkpoint(w, w->end_lsn);
    (void)skip_once(w);
}

static void skip_without_a_record(world_t *w)
{
    (void)world_init(w, 4);
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_home(w, 4, lsn);
}

static void skip_and_no_drain(world_t *w)
{
    (void)skip_once(w);
    (void)world_load(w, 41);
    world_log(w);
}

static void skip_and_drain(world_t *w)
{
    lsn_t lsn = skip_once(w);
    world_checkpoint(w, lsn);
    (void)world_load(w, 41);
    world_log(w);
}

static void copy_of_another_version(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_copy(w, 0, 0, lsn - 1);
    world_sync(w, "ib_dblwr");
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
        BREAKS(13, skip_without_init),
        BREAKS(13, skip_a_freed_page),
        BREAKS(13, skip_twice),
        BREAKS(13, skip_behind_the_checkpoint),
        BREAKS(13, skip_with_index_load),
        BREAKS(13, skip_without_a_record),
        BREAKS(13, skip_and_no_drain),
        BREAKS(13, copy_of_another_version),
    };
    static const scenario_t OFF[] = {KEEPS(skip_without_init), KEEPS(skip_twice)};
    (void)state;
    RUN(SCENARIOS);
    run(OFF, 2, false);
}

/* ---- I16 ---- */

/** An index whose page 4 is loaded without redo under statement 3. @return LSN of the page */
static lsn_t load_begin(world_t *w)
{
    rules_journal(w->rules, JOURNAL_ISSUE, 3);
    (void)world_create_index(w, 4, 41);
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    return lsn;
}

/** Its root is made without redo too: the log says nothing of the index before INDEX_LOAD. */
static lsn_t load_begin_unlogged(world_t *w)
{
    rules_journal(w->rules, JOURNAL_ISSUE, 3);
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    return lsn;
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
    (void)world_load(w, 41);
    world_log(w);
}

static void load_in_order(world_t *w)
{
    load_write(w, load_begin(w), true);
    load_logged(w);
    rules_journal(w->rules, JOURNAL_ACK, 3);
}

static void load_of_an_unlogged_root(world_t *w)
{
    load_write(w, load_begin_unlogged(w), true);
    load_logged(w);
    rules_journal(w->rules, JOURNAL_ACK, 3);
}

static void load_of_an_unlogged_root_too_late(world_t *w)
{
    lsn_t lsn = load_begin_unlogged(w);
    load_logged(w);
    load_write(w, lsn, true);
    rules_journal(w->rules, JOURNAL_ACK, 3);
    (void)world_change(w, 4);
    world_log(w);
}

static void load_durable_before_the_fsync(world_t *w)
{
    load_write(w, load_begin(w), false);
    load_logged(w);
    world_sync(w, "t.ibd");
    rules_journal(w->rules, JOURNAL_ACK, 3);
    (void)world_change(w, 4);
    world_log(w);
}

static void load_durable_before_the_write(world_t *w)
{
    lsn_t lsn = load_begin(w);
    load_logged(w);
    load_write(w, lsn, true);
    rules_journal(w->rules, JOURNAL_ACK, 3);
    (void)world_change(w, 4);
    world_log(w);
}

static void load_write_after_the_end(world_t *w)
{
    lsn_t lsn = load_begin(w);
    load_logged(w);
    rules_journal(w->rules, JOURNAL_ACK, 3);
    load_write(w, lsn, true);
    (void)world_change(w, 4);
    world_log(w);
}

static void load_without_index_load(world_t *w)
{
    load_write(w, load_begin(w), true);
    rules_journal(w->rules, JOURNAL_ACK, 3);
    (void)world_change(w, 4);
    world_log(w);
}

static void load_given_up(world_t *w)
{
    load_write(w, load_begin(w), false);
    rules_journal(w->rules, JOURNAL_ACK, 3);
    rules_journal(w->rules, JOURNAL_ISSUE, 4);
    load_logged(w);
    (void)world_free(w, 4);
    world_log(w);
    rules_journal(w->rules, JOURNAL_ACK, 4);
}

static void load_in_steps(world_t *w)
{
    load_write(w, load_begin(w), true);
    rules_journal(w->rules, JOURNAL_ACK, 3);
    rules_journal(w->rules, JOURNAL_ISSUE, 4);
    load_logged(w);
    rules_journal(w->rules, JOURNAL_ACK, 4);
    (void)world_change(w, 4);
    world_log(w);
}

static void load_in_steps_durable_before_the_fsync(world_t *w)
{
    load_write(w, load_begin(w), false);
    rules_journal(w->rules, JOURNAL_ACK, 3);
    rules_journal(w->rules, JOURNAL_ISSUE, 4);
    load_logged(w);
    rules_journal(w->rules, JOURNAL_ACK, 4);
    (void)world_change(w, 4);
    world_log(w);
}

static void load_that_fails(world_t *w)
{
    lsn_t lsn = load_begin(w);
    load_write(w, lsn, false);
    load_logged(w);
    rules_journal(w->rules, JOURNAL_FAIL, 3);
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
    rules_journal(w->rules, JOURNAL_ACK, 3);
}

static void test_index_loads(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(load_in_order),
        KEEPS(load_of_an_unlogged_root),
        BREAKS(16, load_of_an_unlogged_root_too_late),
        KEEPS(load_that_fails),
        KEEPS(load_that_is_cut_short),
        KEEPS(load_page_freed_and_written),
        BREAKS(16, load_durable_before_the_fsync),
        BREAKS(16, load_durable_before_the_write),
        BREAKS(16, load_write_after_the_end),
        BREAKS(16, load_without_index_load),
        BREAKS(16, load_in_steps_durable_before_the_fsync),
        KEEPS(load_in_steps),
        KEEPS(load_given_up),
    };
    (void)state;
    RUN(SCENARIOS);
}

/* ---- I22 ---- */

static void area_order(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_flush(w, 0, lsn);
    world_copy(w, 7, 4, lsn);
}

static void area_of_two_regions(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_copy(w, 0, 0, lsn);
    world_sync(w, "ib_dblwr");
    world_home(w, 0, lsn);
    world_copy(w, 6, 4, lsn);
    world_sync(w, "ib_dblwr");
}

static void area_not_fsynced(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_copy(w, 0, 0, lsn);
    world_home(w, 0, lsn);
}

static void area_reused_before_the_home_fsync(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_copy(w, 0, 0, lsn);
    world_sync(w, "ib_dblwr");
    world_home(w, 0, lsn);
    world_copy(w, 0, 4, lsn);
}

static void area_reused_after_another_files_fsync(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_copy(w, 0, 0, lsn);
    world_sync(w, "ib_dblwr");
    world_home(w, 0, lsn);
    world_entry(w, FS_LINK, "ibdata1", NULL);
    world_sync(w, "ibdata1");
    world_copy(w, 0, 4, lsn);
}

static void test_area(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(area_order),
        KEEPS(area_of_two_regions),
        BREAKS(22, area_not_fsynced),
        BREAKS(22, area_reused_before_the_home_fsync),
        BREAKS(22, area_reused_after_another_files_fsync),
    };
    (void)state;
    RUN(SCENARIOS);
}

/* ---- I19, I23, I24 of a slot ---- */

static void ckpt_page_not_home(world_t *w)
{
    (void)world_change(w, 0);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_page_not_fsynced(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_copy(w, 0, 0, lsn);
    world_sync(w, "ib_dblwr");
    world_home(w, 0, lsn);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_of_an_older_version(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    (void)world_change(w, 0);
    world_log(w);
    world_flush(w, 0, lsn);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_behind_what_is_home(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    (void)world_change(w, 0);
    world_log(w);
    world_flush(w, 0, lsn);
    world_checkpoint(w, lsn);
}

static void ckpt_freed_page(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_free(w, 4);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_page_of_a_new_life(world_t *w)
{
    lsn_t c = world_init(w, 4);
    (void)world_init(w, 4);
    world_log(w);
    world_checkpoint(w, c);
}

static void ckpt_deleted_space(world_t *w)
{
    (void)world_change(w, 0);
    (void)world_file_op(w, MLOG_FILE_DELETE, "t.ibd", NULL);
    world_log(w);
    world_entry(w, FS_UNLINK, "t.ibd", NULL);
    world_sync_dir(w);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_after_a_failed_statement(world_t *w)
{
    (void)world_init(w, 4);
    world_log(w);
    rules_journal(w->rules, JOURNAL_FAIL, 3);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_marker_missing(world_t *w)
{
    world_slot(w, 0, 2, w->end_lsn, w->end_lsn);
}

static void ckpt_marker_not_fsynced(world_t *w)
{
    const redo_rec_t rec = {.type = MLOG_CHECKPOINT, .value = w->end_lsn};
    lsn_t c = w->end_lsn;
    (void)world_append(w, &rec);
    world_log_write(w);
    world_slot(w, 0, 2, c, c);
}

static void ckpt_marker_of_another(world_t *w)
{
    lsn_t marker = world_marker(w, w->c);
    world_slot(w, 0, 2, marker, marker);
}

static void ckpt_same_slot(world_t *w)
{
    lsn_t c = w->end_lsn;
    world_slot(w, 1, 3, c, world_marker(w, c));
}

static void ckpt_old_number(world_t *w)
{
    lsn_t c = w->end_lsn;
    world_slot(w, 0, 0, c, world_marker(w, c));
}

static void ckpt_wrong_place(world_t *w)
{
    lsn_t c = w->end_lsn;
    world_slot(w, 1, 2, c, world_marker(w, c));
}

static void ckpt_garbage(world_t *w)
{
    byte block[LOG_BLOCK_SIZE] = {7};
    world_log_raw(w, 512, block, sizeof(block));
}

static void ckpt_inside_a_group(world_t *w)
{
    lsn_t c = w->end_lsn + 1;
    world_slot(w, 0, 2, c, world_marker(w, c));
}

static void ckpt_goes_back(world_t *w)
{
    world_checkpoint(w, w->end_lsn);
    world_checkpoint(w, LOG_FIRST_LSN);
}

static void ckpt_after_a_failure(world_t *w)
{
    rules_failed(w->rules, "t.ibd");
    world_checkpoint(w, w->end_lsn);
}

static void ack_after_a_failure(world_t *w)
{
    rules_failed(w->rules, "t.ibd");
    rules_journal(w->rules, JOURNAL_ACK, 1);
}

static void failure_of_a_sort_file(world_t *w)
{
    rules_failed(w->rules, "#sql-tmp-33-0");
    rules_journal(w->rules, JOURNAL_ACK, 1);
    world_checkpoint(w, w->end_lsn);
}

static void failure_alone(world_t *w)
{
    rules_failed(w->rules, "t.ibd");
    rules_journal(w->rules, JOURNAL_FAIL, 1);
}

static void test_checkpoints(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(ckpt_behind_what_is_home),
        KEEPS(ckpt_freed_page),
        KEEPS(ckpt_page_of_a_new_life),
        KEEPS(ckpt_deleted_space),
        KEEPS(ckpt_after_a_failed_statement),
        KEEPS(failure_alone),
        KEEPS(failure_of_a_sort_file),
        BREAKS(19, ckpt_page_not_home),
        BREAKS(19, ckpt_page_not_fsynced),
        BREAKS(19, ckpt_of_an_older_version),
        BREAKS(19, ckpt_marker_missing),
        BREAKS(19, ckpt_marker_not_fsynced),
        BREAKS(19, ckpt_marker_of_another),
        BREAKS(19, ckpt_same_slot),
        BREAKS(19, ckpt_old_number),
        BREAKS(19, ckpt_wrong_place),
        BREAKS(19, ckpt_garbage),
        BREAKS(19, ckpt_inside_a_group),
        BREAKS(19, ckpt_goes_back),
        BREAKS(23, ckpt_after_a_failure),
        BREAKS(23, ack_after_a_failure),
    };
    (void)state;
    RUN(SCENARIOS);
}

/* ---- I20, I21 ---- */

/** Fills the log with that many blocks' worth of changes of page 0, taking them home on the way. */
static void fill_log(world_t *w, uint32_t blocks)
{
    byte data[400] = {1};
    const redo_rec_t rec = {
        .type = MLOG_WRITE_STRING, .space = WORLD_SPACE, .offset = 100, .data = data, .len = 400};
    lsn_t until = w->end_lsn + blocks * LOG_BLOCK_SIZE;
    while (w->end_lsn < until) {
        (void)world_append(w, &rec);
        world_log(w);
    }
}

static void log_around_with_checkpoints(world_t *w)
{
    for (uint32_t i = 0; i < 5; i++) {
        fill_log(w, 200);
        world_flush(w, 0, w->end_lsn);
        world_checkpoint(w, w->end_lsn);
    }
}

static void log_overwrites_c(world_t *w)
{
    fill_log(w, 520);
}

static void log_elsewhere(world_t *w)
{
    const byte *block = w->log + 2048 + (lsn_block(w->end_lsn) - LOG_START_LSN);
    world_log_raw(w, 2048 + 100 * LOG_BLOCK_SIZE, block, LOG_BLOCK_SIZE);
}

static void log_takes_back(world_t *w)
{
    byte block[LOG_BLOCK_SIZE];
    uint64_t at = 2048 + (lsn_block(w->end_lsn) - LOG_START_LSN);
    memcpy(block, w->log + at, sizeof(block));
    block[20] ^= 1;
    world_log_raw(w, at, block, sizeof(block));
}

static void start_in_order(world_t *w)
{
    world_restart(w, false);
    world_epoch(w);
    (void)world_change(w, 0);
    world_log(w);
}

static void start_behind_half_a_group(world_t *w)
{
    byte data[600] = {1};
    const redo_rec_t rec = {
        .type = MLOG_WRITE_STRING, .space = WORLD_SPACE, .offset = 100, .data = data, .len = 600};
    lsn_t end = w->end_lsn;
    uint64_t at = 2048 + lsn_block(end) - LOG_START_LSN;
    (void)world_append(w, &rec);
    world_log_raw(w, at, w->log + at, LOG_BLOCK_SIZE);
    world_sync(w, LOG_FILE);
    world_restart(w, false);
    w->end_lsn = end;
    world_epoch(w);
    (void)world_change(w, 0);
    world_log(w);
}

static void start_with_the_old_epoch(world_t *w)
{
    world_restart(w, false);
    (void)world_change(w, 0);
    world_log(w);
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
    (void)world_change(w, 0);
    world_log(w);
}

static void start_before_the_cut_is_fsynced(world_t *w)
{
    world_restart(w, false);
    world_epoch_slot(w, true);
    world_epoch_cut(w, false);
    (void)world_change(w, 0);
    world_log(w);
}

static void start_with_a_shared_history(world_t *w)
{
    const rules_config_t config = {.keep_history = true, .found = NULL};
    rules_t *history = rules_create(&config);
    rules_log_facts_t alone;
    rules_log_facts_t shared;
    fill_log(w, 20);
    world_restart(w, false);
    rules_log_facts(w->rules, &alone);
    rules_start(w->rules, w->image, false, history); /* empty: nothing in common */
    rules_log_facts(w->rules, &shared);
    assert_memory_equal(&alone, &shared, sizeof(alone));
    rules_destroy(history);
}

static void test_log(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(log_around_with_checkpoints),
        KEEPS(start_in_order),
        KEEPS(start_behind_half_a_group),
        KEEPS(start_with_a_shared_history),
        BREAKS(20, log_overwrites_c),
        BREAKS(20, log_elsewhere),
        BREAKS(20, log_takes_back),
        BREAKS(21, start_with_the_old_epoch),
        BREAKS(21, start_with_an_epoch_of_no_slot),
        BREAKS(21, start_before_the_slot_is_fsynced),
        BREAKS(21, start_without_the_cut),
        BREAKS(21, start_before_the_cut_is_fsynced),
    };
    (void)state;
    RUN(SCENARIOS);
}

/* ---- I24 ---- */

static void file_created(world_t *w)
{
    (void)world_file_op(w, MLOG_FILE_CREATE2, "u.ibd", NULL);
    world_log(w);
    world_entry(w, FS_LINK, "u.ibd", NULL);
    world_sync_dir(w);
    rules_journal(w->rules, JOURNAL_ACK, 1);
}

static void file_renamed_and_removed(world_t *w)
{
    file_created(w);
    (void)world_file_op(w, MLOG_FILE_RENAME2, "u.ibd", "v.ibd");
    world_log(w);
    world_entry(w, FS_RENAME, "u.ibd", "v.ibd");
    world_sync_dir(w);
    (void)world_file_op(w, MLOG_FILE_DELETE, "v.ibd", NULL);
    world_log(w);
    world_entry(w, FS_UNLINK, "v.ibd", NULL);
    world_sync_dir(w);
    rules_journal(w->rules, JOURNAL_ACK, 2);
    file_created(w);
}

static void file_created_without_record(world_t *w)
{
    world_entry(w, FS_LINK, "u.ibd", NULL);
    world_sync_dir(w);
}

static void file_created_before_the_fsync(world_t *w)
{
    (void)world_file_op(w, MLOG_FILE_CREATE2, "u.ibd", NULL);
    world_log_write(w);
    world_entry(w, FS_LINK, "u.ibd", NULL);
    world_sync_dir(w);
}

static void file_removed_by_an_old_record(world_t *w)
{
    file_renamed_and_removed(w);
    (void)world_file_op(w, MLOG_FILE_RENAME2, "u.ibd", "v.ibd");
    world_log(w);
    world_entry(w, FS_RENAME, "u.ibd", "v.ibd");
    world_sync_dir(w);
    world_entry(w, FS_UNLINK, "v.ibd", NULL);
    world_sync_dir(w);
}

static void file_renamed_to_another_name(world_t *w)
{
    file_created(w);
    (void)world_file_op(w, MLOG_FILE_RENAME2, "u.ibd", "v.ibd");
    world_log(w);
    world_entry(w, FS_RENAME, "u.ibd", "x.ibd");
    world_sync_dir(w);
}

static void file_entry_unsynced_at_ack(world_t *w)
{
    (void)world_file_op(w, MLOG_FILE_CREATE2, "u.ibd", NULL);
    world_log(w);
    world_entry(w, FS_LINK, "u.ibd", NULL);
    rules_journal(w->rules, JOURNAL_ACK, 1);
}

static void file_entry_unsynced_at_checkpoint(world_t *w)
{
    (void)world_file_op(w, MLOG_FILE_CREATE2, "u.ibd", NULL);
    world_log(w);
    world_entry(w, FS_LINK, "u.ibd", NULL);
    world_checkpoint(w, w->end_lsn);
}

static void file_operation_repeated(world_t *w)
{
    (void)world_file_op(w, MLOG_FILE_CREATE2, "u.ibd", NULL);
    (void)world_file_op(w, MLOG_FILE_RENAME2, "u.ibd", "v.ibd");
    world_log(w);
    world_restart(w, false);
    world_entry(w, FS_LINK, "u.ibd", NULL);
    world_entry(w, FS_RENAME, "u.ibd", "v.ibd");
    world_sync_dir(w);
}

static void test_files(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(file_created),
        KEEPS(file_renamed_and_removed),
        KEEPS(file_operation_repeated),
        BREAKS(24, file_created_without_record),
        BREAKS(24, file_created_before_the_fsync),
        BREAKS(24, file_removed_by_an_old_record),
        BREAKS(24, file_renamed_to_another_name),
        BREAKS(24, file_entry_unsynced_at_ack),
        BREAKS(24, file_entry_unsynced_at_checkpoint),
    };
    (void)state;
    RUN(SCENARIOS);
}

/* ---- recovery: I14, I15, and what a killed process has not fsynced ---- */

static void recv_of_a_logged_page(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_restart(w, false);
    world_read(w, 0);
    world_flush(w, 0, lsn);
}

/** Pages 8 (initialised) and 9 (changed, freed) are in the log. @return LSN of page 8 */
static lsn_t recv_begin(world_t *w)
{
    lsn_t lsn = world_init(w, 8);
    (void)world_init(w, 9);
    (void)world_free(w, 9);
    world_log(w);
    return lsn;
}

static void recv_creates(world_t *w)
{
    lsn_t lsn = recv_begin(w);
    world_restart(w, false);
    world_home(w, 8, lsn);
    world_sync(w, "t.ibd");
    world_read(w, 8);
    world_checkpoint(w, w->c);
}

static void recv_builds_a_page_twice(world_t *w)
{
    lsn_t lsn = recv_begin(w);
    world_restart(w, false);
    world_home(w, 8, lsn);
    world_home(w, 8, lsn);
}

/** The copy may be an older one, and a page of it may be compared again after that. */
static void recv_skips_again_for_a_page_that_it_builds(world_t *w)
{
    lsn_t lsn = recv_begin(w);
    world_restart(w, false);
    world_home(w, 8, lsn);
    world_read(w, 8);
    world_home(w, 8, lsn);
}

/** What is initialised after the recovery is no page that it has found. */
static void recv_skips_for_a_page_of_its_own(world_t *w)
{
    (void)recv_begin(w);
    world_restart(w, false);
    world_epoch(w);
    lsn_t lsn = world_init(w, 10);
    world_log(w);
    world_home(w, 10, lsn);
    world_home(w, 10, lsn);
}

static void recv_reads_what_redo_initialises(world_t *w)
{
    (void)recv_begin(w);
    world_restart(w, false);
    world_read(w, 8);
}

static void recv_reads_to_compare_a_copy(world_t *w)
{
    lsn_t lsn = recv_begin(w);
    world_copy(w, 3, 8, lsn);
    world_sync(w, "ib_dblwr");
    world_restart(w, false);
    world_read(w, 8);
}

static void recv_reads_after_the_log_is_closed(world_t *w)
{
    (void)recv_begin(w);
    world_restart(w, false);
    rules_closed(w->rules, LOG_FILE);
    world_read(w, 8);
    world_read(w, 9);
}

static void recv_reads_where_an_index_load_is(world_t *w)
{
    (void)recv_begin(w);
    (void)world_load(w, 41);
    world_log(w);
    world_restart(w, false);
    world_read(w, 8);
    world_read(w, 9);
}

static void recv_creates_where_an_index_load_is(world_t *w)
{
    lsn_t lsn = recv_begin(w);
    (void)world_load(w, 41);
    world_log(w);
    world_restart(w, false);
    world_flush(w, 8, lsn);
}

static void recv_makes_up_a_page(world_t *w)
{
    lsn_t lsn = world_change(w, 6);
    world_log(w);
    world_restart(w, false);
    world_flush(w, 6, lsn);
}

static void recv_reads_a_freed_page(world_t *w)
{
    (void)recv_begin(w);
    world_restart(w, false);
    world_read(w, 9);
}

static void recv_restores_a_freed_page(world_t *w)
{
    lsn_t lsn = recv_begin(w);
    world_copy(w, 3, 9, lsn);
    world_sync(w, "ib_dblwr");
    world_restart(w, false);
    world_home(w, 9, lsn);
}

static void recv_restores_a_page(world_t *w)
{
    lsn_t lsn = world_change(w, 6);
    world_log(w);
    world_copy(w, 3, 6, lsn);
    world_sync(w, "ib_dblwr");
    world_restart(w, false);
    world_home(w, 6, lsn);
}

static void recv_trusts_a_cold_log(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_restart(w, true);
    world_read(w, 0);
    world_flush(w, 0, lsn);
}

static void recv_fsyncs_a_cold_log(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_restart(w, true);
    world_sync(w, LOG_FILE);
    world_read(w, 0);
    world_flush(w, 0, lsn);
}

static void recv_checkpoint_over_a_cold_file(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    world_log(w);
    world_flush(w, 0, lsn);
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
        BREAKS(13, recv_skips_for_a_page_of_its_own),
        KEEPS(recv_fsyncs_a_cold_log),
        BREAKS(21, recv_creates), /* its checkpoint is of the old epoch; the rest is right */
        BREAKS(14, recv_reads_what_redo_initialises),
        BREAKS(14, recv_creates_where_an_index_load_is),
        BREAKS(14, recv_makes_up_a_page),
        BREAKS(15, recv_reads_a_freed_page),
        BREAKS(15, recv_restores_a_freed_page),
        BREAKS(4, recv_trusts_a_cold_log),
        BREAKS(19, recv_checkpoint_over_a_cold_file),
    };
    (void)state;
    RUN(SCENARIOS);
}

/* ---- hostile bytes ---- */

/** Whatever lies in the files and is written to them: the judge ends, and reads nothing that is not there. */
static void test_hostile_bytes(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        stream_t stream = {.state = seed};
        world_t *w = calloc(1, sizeof(*w));
        assert_non_null(w);
        world_begin(w, true);
        log_around_with_checkpoints(w);
        (void)recv_begin(w);
        for (uint32_t step = 0; step < 60; step++) {
            static const char *const FILES[] = {LOG_FILE, "ib_dblwr", "t.ibd"};
            const char *file = FILES[stream_below(&stream, 3)];
            byte bytes[WORLD_PAGE];
            uint64_t len = 1 + stream_below(&stream, sizeof(bytes));
            uint64_t at = stream_below(&stream, 4) == 0 ? stream_below(&stream, 4096)
                                                        : stream_below(&stream, WORLD_LOG_BYTES);
            if (stream_below(&stream, 2) == 0) { /* what was there, with a flaw */
                uint32_t inode = image_lookup(w->image, image_name_find(w->image, file));
                uint64_t size = image_size(w->image, inode);
                at = size < LOG_BLOCK_SIZE ? 0 : stream_below(&stream, size / 512) * 512;
                len = size - at < sizeof(bytes) ? size - at : sizeof(bytes);
                memcpy(bytes, image_bytes(w->image, inode) + at, len);
                bytes[stream_below(&stream, sizeof(bytes))] ^=
                    (byte)(1U << stream_below(&stream, 8));
            } else {
                for (uint32_t i = 0; i < sizeof(bytes); i += 8) {
                    mach_write_8(bytes + i, stream_next(&stream));
                }
            }
            world_write(w, file, at, bytes, len);
            if (stream_below(&stream, 3) == 0) {
                world_sync(w, file);
            }
            if (stream_below(&stream, 8) == 0) {
                world_restart(w, stream_below(&stream, 2) == 0);
            }
            world_read(w, (uint32_t)stream_below(&stream, 100));
        }
        world_end(w);
        free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_home_writes),   cmocka_unit_test(test_skips),
        cmocka_unit_test(test_index_loads),   cmocka_unit_test(test_area),
        cmocka_unit_test(test_checkpoints),   cmocka_unit_test(test_log),
        cmocka_unit_test(test_files),         cmocka_unit_test(test_recovery),
        cmocka_unit_test(test_hostile_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
