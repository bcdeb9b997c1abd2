/* A checkpoint slot: I19, and what I23 asks of it. */
#include "scenario.h"

/** Of two changes of page 0 the first is durable at home. @return its LSN */
static lsn_t older_version_home(world_t *w)
{
    lsn_t lsn = world_change(w, 0);
    (void)world_change_durable(w, 0);
    world_flush(w, 0, lsn);
    return lsn;
}

/** A slot with the durable marker of that checkpoint. */
static void slot_and_marker(world_t *w, uint32_t slot, uint64_t no, lsn_t c)
{
    world_slot(w, slot, no, c, world_marker(w, c));
}

static void ckpt_page_not_home(world_t *w)
{
    (void)world_change(w, 0);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_page_not_fsynced(world_t *w)
{
    lsn_t lsn = world_change_durable(w, 0);
    world_copy_and_home(w, 0, 0, lsn);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_of_an_older_version(world_t *w)
{
    (void)older_version_home(w);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_behind_what_is_home(world_t *w)
{
    world_checkpoint(w, older_version_home(w));
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
    (void)world_file_op(w, OP_FILE_DELETE, "t.ibd", NULL);
    world_log(w);
    world_entry(w, FS_UNLINK, "t.ibd", NULL);
    world_sync_dir(w);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_extent_given_back(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_free_extent(w, 0);
    world_change_flushed(w, 0);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_other_extent_given_back(world_t *w)
{
    (void)world_init(w, 4);
    (void)world_free_extent(w, 1);
    world_change_flushed(w, 0);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_extent_before_given_back(world_t *w)
{
    (void)world_init(w, WORLD_EXTENT);
    (void)world_free_extent(w, 0);
    world_change_flushed(w, 0);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_extent_given_back_before(world_t *w)
{
    (void)world_free_extent(w, 0);
    (void)world_init(w, 4);
    world_change_flushed(w, 0);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_page_of_a_load_not_home(world_t *w)
{
    (void)world_init(w, 4);
    world_log(w);
    world_checkpoint(w, w->end_lsn);
}

static void ckpt_marker_missing(world_t *w)
{
    world_slot(w, 0, 2, w->end_lsn, w->end_lsn);
}

static void ckpt_marker_not_fsynced(world_t *w)
{
    const redo_rec_t rec = {.op = OP_CHECKPOINT, .value = w->end_lsn};
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
    slot_and_marker(w, 1, 3, w->end_lsn);
}

static void ckpt_old_number(world_t *w)
{
    slot_and_marker(w, 0, 0, w->end_lsn);
}

static void ckpt_wrong_place(world_t *w)
{
    slot_and_marker(w, 1, 2, w->end_lsn);
}

static void ckpt_garbage(world_t *w)
{
    byte block[LOG_BLOCK_SIZE] = {7};
    world_log_raw(w, 512, block, sizeof(block));
}

static void ckpt_inside_a_group(world_t *w)
{
    lsn_t start = w->end_lsn;
    (void)world_change_flushed(w, 0);
    slot_and_marker(w, 0, 2, start + 1);
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

/** A failure is not forgotten: what the next statement writes may rest on it. */
static void ack_of_another_statement_after_a_failure(world_t *w)
{
    rules_failed(w->rules, "t.ibd");
    rules_journal(w->rules, JOURNAL_ISSUE, 2);
    rules_journal(w->rules, JOURNAL_ACK, 2);
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
}

static void test_checkpoints(void **state)
{
    static const scenario_t SCENARIOS[] = {
        KEEPS(ckpt_behind_what_is_home),
        KEEPS(ckpt_freed_page),
        KEEPS(ckpt_page_of_a_new_life),
        KEEPS(ckpt_deleted_space),
        KEEPS(ckpt_extent_given_back),
        KEEPS(failure_alone),
        KEEPS(failure_of_a_sort_file),
        BREAKS(19, "ckpt_pages", ckpt_page_not_home),
        BREAKS(19, "ckpt_pages", ckpt_page_not_fsynced),
        BREAKS(19, "ckpt_pages", ckpt_of_an_older_version),
        BREAKS(19, "ckpt_pages", ckpt_other_extent_given_back),
        BREAKS(19, "ckpt_pages", ckpt_extent_before_given_back),
        BREAKS(19, "ckpt_pages", ckpt_extent_given_back_before),
        BREAKS(19, "ckpt_pages", ckpt_page_of_a_load_not_home),
        BREAKS(19, "ckpt_marker", ckpt_marker_missing),
        BREAKS(19, "ckpt_marker", ckpt_marker_not_fsynced),
        BREAKS(19, "ckpt_marker", ckpt_marker_of_another),
        BREAKS(19, "ckpt_slot", ckpt_same_slot),
        BREAKS(19, "ckpt_slot", ckpt_old_number),
        BREAKS(19, "ckpt_slot", ckpt_wrong_place),
        BREAKS(19, "ckpt_slot", ckpt_garbage),
        BREAKS(19, "ckpt_lsn", ckpt_inside_a_group),
        BREAKS(19, "ckpt_lsn", ckpt_goes_back),
        BREAKS(23, "failed_io", ckpt_after_a_failure),
        BREAKS(23, "failed_io", ack_after_a_failure),
        BREAKS(23, "failed_io", ack_of_another_statement_after_a_failure),
    };
    (void)state;
    RUN(SCENARIOS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
