/** buf: lookup, eviction, dirty lists, checkpoints, room in the log. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "buf/buf_int.h"
#include "test_buf_fixture.h"

static int setup_tiny(void **state)
{
    *state = fx_create(4096, 32, true);
    return 0;
}

/** A page written by a larger working set than the pool is read back with its contents. */
static void test_evict_dirty(void **state)
{
    buf_fixture_t *fx = *state;
    for (page_no_t i = 1; i <= 200; i++) {
        fx_new_page(fx, 1 + i % 2, i);
    }
    assert_true(fx->base.env.stats.pages_evicted >= 200 - 32);
    assert_true(buf_dirty_pages(fx->pool) <= 32);
    for (page_no_t i = 1; i <= 200; i++) {
        buf_block_t *block = NULL;
        FX_OK(fx, buf_page_get(fx->pool, fx_id(1 + i % 2, i), &block));
        assert_int_equal(block->frame[100], (byte)i);
        buf_block_unfix(fx->pool, block);
    }
    /* A dirty victim takes its dirty neighbours along: at most 8 pages (the slot) per batch here.
    */
    assert_true(fx->base.env.stats.dblwr_batches <= 200 / 8 + 1);
}

/** Some dirty victims are written by themselves: copy, home write and its fsync before the frame is
used again. So the single-page slots are free again, and one serves them all. */
static void test_evict_singly(void **state)
{
    buf_fixture_t *fx = *state;
    for (page_no_t i = 1; i <= 200; i++) {
        fx_new_page(fx, 1 + i % 2, i);
    }
    const stats_t *stats = &fx->base.env.stats;
    assert_true(stats->pages_evicted_singly > 0);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# dblwr_single slot=0"),
                     stats->pages_evicted_singly);
    rec_assert_order(&fx->base.rec, 0, "# dblwr_single slot=0", "write ib_dblwr 32768",
                     "sync ib_dblwr", "# page_write", "write t", "sync t", NULL);
}

/** A victim is written past the batch in flight, whose steps it neither takes nor disturbs. */
static void test_evict_amid_batch(void **state)
{
    buf_fixture_t *fx = *state;
    for (page_no_t i = 0; i < 32; i++) {
        fx_new_page(fx, 1, i);
    }
    uint64_t singly = 0;
    for (page_no_t i = 32; singly == 0; i++) {
        FX_OK(fx, buf_batch_finish(fx->pool));
        buf_block_t *first = fx->t1->flush_list;
        buf_batch_submit(fx->pool, &first, 1);
        fx_new_page(fx, 1, i);
        singly = fx->base.env.stats.pages_evicted_singly;
        assert_true(singly == 0 || first->in_flight);
    }
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
}

/** A pinned page is neither written nor evicted; with all pinned the pool says so. */
static void test_all_pinned(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *pinned[32];
    for (page_no_t i = 0; i < 32; i++) {
        FX_OK(fx, buf_page_create(fx->pool, fx_id(1, i), &pinned[i]));
        fil_page_init(pinned[i]->frame, 4096, pinned[i]->id, FIL_PAGE_TYPE_SYS);
        fx_touch(fx, pinned[i], (byte)i);
    }
    buf_block_t *block = NULL;
    assert_int_equal(buf_page_create(fx->pool, fx_id(1, 99), &block), DB_OUT_OF_SPACE);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write"), 0);
    buf_block_unfix(fx->pool, pinned[17]);
    FX_OK(fx, buf_page_create(fx->pool, fx_id(1, 99), &block));
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write"), 1);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write space=1 page=17"), 1);
    buf_block_unfix(fx->pool, block);
    for (uint32_t i = 0; i < 32; i++) {
        if (i != 17) {
            buf_block_unfix(fx->pool, pinned[i]);
        }
    }
}

/** Bad pages are refused with a message, and cost no frame. */
static void test_bad_pages(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *block = NULL;
    assert_int_equal(buf_page_get(fx->pool, fx_id(9, 0), &block), DB_CORRUPTION);
    assert_int_equal(buf_page_get(fx->pool, fx_id(1, FX_SPACE_PAGES), &block), DB_CORRUPTION);
    assert_int_equal(buf_page_create(fx->pool, fx_id(1, FIL_NULL), &block), DB_CORRUPTION);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(buf_page_get(fx->pool, fx_id(1, 7), &block), DB_CORRUPTION); /* zeros */
    }
    fx_new_page(fx, 1, 5);
    FX_OK(fx, buf_flush_and_evict_all(fx->pool));
    assert_null(buf_page_peek(fx->pool, fx_id(1, 5)));
    uint64_t size = 0;
    byte *bytes = image_os_bytes(fx->base.os, "t1.ibd", &size);
    memcpy(bytes + 6 * 4096, bytes + 5 * 4096, 4096);
    assert_int_equal(buf_page_get(fx->pool, fx_id(1, 6), &block), DB_CORRUPTION); /* misplaced */
    FX_OK(fx, buf_page_get(fx->pool, fx_id(1, 5), &block));
    buf_block_unfix(fx->pool, block);
    FX_OK(fx, buf_flush_and_evict_all(fx->pool));
    bytes = image_os_bytes(fx->base.os, "t1.ibd", &size);
    bytes[5 * 4096 + 3000] ^= 1; /* torn */
    assert_int_equal(buf_page_get(fx->pool, fx_id(1, 5), &block), DB_CORRUPTION);
    assert_non_null(strstr(fx->base.env.err.msg, "t1.ibd"));
}

/** Creating a page voids what the pool knew of its former life, but not its place on the lists. */
static void test_create_again(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *block = fx_new_page(fx, 1, 5);
    lsn_t oldest = block->oldest_modification;
    block->freed = true;
    block->init_on_flush = true;
    block->init_lsn = oldest;
    block->observer = 20;
    block->validated = 20;
    buf_block_t *again = NULL;
    FX_OK(fx, buf_page_create(fx->pool, fx_id(1, 5), &again));
    assert_ptr_equal(again, block);
    assert_false(block->freed || block->init_on_flush);
    assert_true(block->init_lsn == 0 && block->observer == 0 && block->validated == 0);
    assert_int_equal(block->frame[100], 0);
    assert_int_equal(block->oldest_modification, oldest);
    buf_block_unfix(fx->pool, block);
}

/** I4: a page from beyond the end of the log is refused. */
static void test_page_from_the_future(void **state)
{
    buf_fixture_t *fx = *state;
    byte page[4096];
    fil_page_init(page, 4096, fx_id(1, 5), FIL_PAGE_TYPE_SYS);
    fil_page_set_lsn(page, 4096, log_lsn(fx->base.log) + 1);
    fil_page_stamp(page, 4096);
    FX_OK(fx, fil_page_write(fx->base.fil, fx->t1, 5, page));
    buf_block_t *block = NULL;
    assert_int_equal(buf_page_get(fx->pool, fx_id(1, 5), &block), DB_CORRUPTION);
    fil_page_set_lsn(page, 4096, log_lsn(fx->base.log));
    fil_page_stamp(page, 4096);
    FX_OK(fx, fil_page_write(fx->base.fil, fx->t1, 5, page));
    FX_OK(fx, buf_page_get(fx->pool, fx_id(1, 5), &block));
    buf_block_unfix(fx->pool, block);
}

/** Flushing one space looks at and writes its own dirty pages only, and fsyncs its file. */
static void test_flush_space_cost(void **state)
{
    buf_fixture_t *fx = *state;
    for (page_no_t i = 0; i < 40; i++) {
        fx_new_page(fx, 1, i);
        if (i % 8 == 0) {
            fx_new_page(fx, 2, i / 8);
        }
    }
    FX_OK(fx, buf_flush_space(fx->pool, 2));
    assert_int_equal(fx->base.env.stats.flush_list_visited, 5);
    rec_assert_order(&fx->base.rec, 0, "# page_write space=2 page=0", "sync t2.ibd", NULL);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write space=1"), 0);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write space=2"), 5);
    assert_int_equal(buf_dirty_pages(fx->pool), 40);
    assert_null(fx->t2->flush_list);
    FX_OK(fx, buf_flush_space(fx->pool, 2));
    assert_int_equal(fx->base.env.stats.flush_list_visited, 5);
}

/** For an export each page goes home by itself, through slots that are used again only when the
file was fsynced. */
static void test_flush_for_export(void **state)
{
    buf_fixture_t *fx = *state;
    for (page_no_t i = 0; i < 20; i++) {
        fx_new_page(fx, 1, i);
        fx_new_page(fx, 2, i);
    }
    FX_OK(fx, buf_flush_for_export(fx->pool, 1));
    assert_int_equal(fx->base.env.stats.pages_exported_singly, 20);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write space=1"), 20);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write space=2"), 0);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# dblwr_batch"), 0);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# dblwr_single slot=0"), 3);
    uint32_t first = rec_find(&fx->base.rec, 0, "# dblwr_single slot=0");
    uint32_t again = rec_find(&fx->base.rec, first + 1, "# dblwr_single slot=0");
    uint32_t synced = rec_find(&fx->base.rec, first, "sync t1.ibd");
    assert_true(rec_find(&fx->base.rec, first, "# dblwr_single slot=7") < synced && synced < again);
    assert_null(fx->t1->flush_list);
    assert_int_equal(buf_dirty_pages(fx->pool), 20);
}

/** Asserts that both lists hold these n pages in this order, and ascend. */
static void assert_lists(buf_fixture_t *fx, const page_id_t *ids, uint32_t n)
{
    assert_int_equal(buf_dirty_pages(fx->pool), n);
    buf_block_t *global = buf_page_peek(fx->pool, ids[0]);
    const buf_block_t *in_space[3] = {NULL, fx->t1->flush_list, fx->t2->flush_list};
    assert_int_equal(buf_oldest_modification(fx->pool), global->oldest_modification);
    assert_null(global->flush_prev);
    for (uint32_t i = 0; i < n; i++) {
        const buf_block_t *block = buf_page_peek(fx->pool, ids[i]);
        const buf_block_t **next = &in_space[ids[i].space];
        assert_ptr_equal(global, block);
        assert_ptr_equal(*next, block);
        assert_ptr_equal(block->space_next->space_prev, block);
        *next = block->space_next;
        global = block->flush_next;
        assert_true(global == NULL
                    || (global->flush_prev == block
                        && global->oldest_modification >= block->oldest_modification));
    }
    assert_null(global);
    assert_ptr_equal(in_space[1], fx->t1->flush_list);
    assert_ptr_equal(in_space[2], fx->t2->flush_list);
}

/** The lists ascend in oldest_modification: a page enters at the end when it becomes dirty, and
stays there when it is changed again. */
static void test_list_order(void **state)
{
    buf_fixture_t *fx = *state;
    for (page_no_t i = 0; i < 9; i++) {
        fx_new_page(fx, i % 3 == 1 ? 2 : 1, i);
    }
    const page_id_t entered[] = {{1, 0}, {2, 1}, {1, 2}, {1, 3}, {2, 4},
                                 {1, 5}, {1, 6}, {2, 7}, {1, 8}};
    assert_lists(fx, entered, 9);
    lsn_t oldest = buf_oldest_modification(fx->pool);
    fx_change_page(fx, 1, 0, 1);
    fx_change_page(fx, 2, 4, 1);
    assert_lists(fx, entered, 9);
    assert_int_equal(buf_oldest_modification(fx->pool), oldest);
    /* Clean again, a page enters at the end; others may leave from the middle and from the end. */
    FX_OK(fx, buf_flush_list(fx->pool, 2, LSN_MAX, NULL));
    assert_lists(fx, entered + 2, 7);
    fx_change_page(fx, 2, 1, 2);
    buf_page_peek(fx->pool, fx_id(1, 5))->observer = 20;
    buf_page_peek(fx->pool, fx_id(1, 8))->observer = 20;
    FX_OK(fx, buf_observer_drop(fx->pool, 1, 20));
    fx_change_page(fx, 1, 0, 2);
    const page_id_t left[] = {{1, 2}, {1, 3}, {2, 4}, {1, 6}, {2, 7}, {2, 1}, {1, 0}};
    assert_lists(fx, left, 7);
}

/** Pages of one LSN, as a batch of recovery dirties them, are on the lists in the order of the
calls. */
static void test_list_order_of_one_lsn(void **state)
{
    buf_fixture_t *fx = *state;
    lsn_t lsn = log_lsn(fx->base.log);
    static const page_id_t ids[] = {{1, 7}, {2, 3}, {1, 5}};
    for (uint32_t i = 0; i < 3; i++) {
        buf_block_t *block = NULL;
        FX_OK(fx, buf_page_create(fx->pool, ids[i], &block));
        fil_page_init(block->frame, 4096, block->id, FIL_PAGE_TYPE_SYS);
        buf_block_set_dirty(fx->pool, block, lsn, lsn + 100 - i);
        buf_block_unfix(fx->pool, block);
    }
    assert_lists(fx, ids, 3);
    assert_int_equal(buf_oldest_modification(fx->pool), lsn);
}

/** An older change than one on the lists is a programmer's mistake: it ends the process. */
static void test_list_order_is_checked(void **state)
{
    buf_fixture_t *fx = *state;
    fx_new_page(fx, 1, 1);
    lsn_t oldest = buf_oldest_modification(fx->pool);
    buf_block_t *block = NULL;
    FX_OK(fx, buf_page_create(fx->pool, fx_id(2, 2), &block));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (signal(SIGABRT, SIG_DFL) != SIG_ERR && freopen("/dev/null", "w", stderr) != NULL) {
            buf_block_set_dirty(fx->pool, block, oldest - 1, log_lsn(fx->base.log));
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    buf_block_set_dirty(fx->pool, block, oldest, log_lsn(fx->base.log));
    buf_block_unfix(fx->pool, block);
    assert_int_equal(buf_dirty_pages(fx->pool), 2);
}

/** The page cleaner takes the oldest pages first, and none from the limit on. */
static void test_flush_list_limit(void **state)
{
    buf_fixture_t *fx = *state;
    lsn_t limit = 0;
    for (page_no_t i = 0; i < 6; i++) {
        buf_block_t *block = fx_new_page(fx, 1 + i % 2, i);
        limit = i == 4 ? block->oldest_modification : limit;
    }
    uint32_t n = 0;
    FX_OK(fx, buf_flush_list(fx->pool, 2, limit, &n));
    assert_int_equal(n, 2);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write space=1 page=0"), 1);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write space=2 page=1"), 1);
    FX_OK(fx, buf_flush_list(fx->pool, 100, limit, &n));
    assert_int_equal(n, 2);
    FX_OK(fx, buf_flush_list(fx->pool, 100, limit, &n));
    assert_int_equal(n, 0);
    assert_int_equal(buf_oldest_modification(fx->pool), limit);
}

/** A space's pages vanish unwritten; others stay. */
static void test_discard(void **state)
{
    buf_fixture_t *fx = *state;
    fx_new_page(fx, 1, 1);
    fx_new_page(fx, 1, 2);
    fx_new_page(fx, 2, 4);
    FX_OK(fx, buf_discard_space(fx->pool, 1));
    assert_int_equal(buf_dirty_pages(fx->pool), 1);
    assert_null(fx->t1->flush_list);
    assert_null(buf_page_peek(fx->pool, fx_id(1, 1)));
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_discard space=1"), 2);
    FX_OK(fx, fil_space_delete(fx->base.fil, fx->t1));
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write"), 1);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write space=2 page=4"), 1);
}

/** I19: C is the oldest modification; data fsync, marker group, log fsync, slot write, slot fsync.
The group names exactly the spaces changed at or after C, and starts at the marker LSN. */
static void test_checkpoint_order(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *old = fx_new_page(fx, 1, 1);
    lsn_t oldest = old->oldest_modification;
    fx_new_page(fx, 1, 2);
    fx->t2->max_lsn = oldest - 1; /* last change before C */
    fx->t2->named = true;
    byte page[4096] = {0};
    FX_OK(fx, fil_page_write(fx->base.fil, fx->t2, 9, page)); /* a write not yet fsynced */
    uint64_t no = log_last_checkpoint(fx->base.log)->no;
    uint32_t from = fx->base.rec.n;
    FX_OK(fx, buf_checkpoint(fx->pool));
    const log_checkpoint_t *ckpt = log_last_checkpoint(fx->base.log);
    assert_int_equal(ckpt->lsn, oldest);
    assert_int_equal(ckpt->no, no + 1);
    assert_int_equal(log_checkpoint_lsn(fx->base.log), oldest);
    assert_true(fx->t1->named);
    assert_false(fx->t2->named);
    char slot[64];
    snprintf(slot, sizeof(slot), "# checkpoint no=%" PRIu64 " slot=%d c=%" PRIu64, ckpt->no,
             (int)(ckpt->no % 2), oldest);
    rec_assert_order(&fx->base.rec, from, "sync t2.ibd", "# point name=ckpt.data_synced",
                     "write " LOG_FILE_NAME, "sync " LOG_FILE_NAME,
                     "# point name=ckpt.marker_durable", slot, "write " LOG_FILE_NAME,
                     "sync " LOG_FILE_NAME, "# checkpoint_done", "# point name=ckpt.done", NULL);
    assert_int_equal(rec_count(&fx->base.rec, from, "# page_write"), 0);

    log_reader_t *reader = NULL;
    FX_OK(fx, log_reader_create(fx->base.log, ckpt->marker_lsn, &reader));
    log_group_t group;
    FX_OK(fx, log_reader_next(reader, &group));
    assert_int_equal(group.start_lsn, ckpt->marker_lsn);
    assert_true(group.n_recs >= 2);
    assert_int_equal(group.recs[0].op, OP_FILE_NAME);
    assert_int_equal(group.recs[0].space, 1);
    assert_int_equal(group.recs[1].op, OP_CHECKPOINT);
    assert_int_equal(group.recs[1].value, oldest);
    log_reader_free(reader);
}

/** Nothing new, no checkpoint; new C or new log, a new one. A clean pool gives C = the log's end.
*/
static void test_checkpoint_when_needed(void **state)
{
    buf_fixture_t *fx = *state;
    fx_new_page(fx, 1, 1);
    FX_OK(fx, buf_checkpoint(fx->pool));
    FX_OK(fx, buf_checkpoint(fx->pool));
    assert_int_equal(fx->base.env.stats.checkpoints, 1);
    FX_OK(fx, buf_flush_all(fx->pool));
    lsn_t end = log_lsn(fx->base.log);
    FX_OK(fx, buf_checkpoint(fx->pool));
    assert_int_equal(fx->base.env.stats.checkpoints, 2);
    assert_int_equal(log_checkpoint_lsn(fx->base.log), end);
    FX_OK(fx, buf_checkpoint_full(fx->pool));
    assert_int_equal(fx->base.env.stats.checkpoints, 2);
    fx_change_page(fx, 1, 1, 9);
    FX_OK(fx, buf_checkpoint_full(fx->pool));
    assert_int_equal(fx->base.env.stats.checkpoints, 3);
    /* C is a group's start: the reader accepts it and finds the marker. */
    log_reader_t *reader = NULL;
    FX_OK(fx, log_reader_create(fx->base.log, log_checkpoint_lsn(fx->base.log), &reader));
    log_group_t group;
    FX_OK(fx, log_reader_next(reader, &group));
    assert_int_equal(group.recs[group.n_recs - 1].op, OP_CHECKPOINT);
    assert_int_equal(log_reader_next(reader, &group), DB_NOT_FOUND);
    log_reader_free(reader);
}

/** I20: however much is logged, the age stays below the capacity, by cleaning and checkpoints; and
the checkpoints are few, because each is taken when it frees much. */
static void test_log_free_check(void **state)
{
    buf_fixture_t *fx = *state;
    byte data[2000];
    memset(data, 3, sizeof(data));
    for (page_no_t i = 0; i < 40; i++) {
        fx_new_page(fx, 1, i);
    }
    uint64_t capacity = log_capacity(fx->base.log);
    uint64_t written = 0;
    uint32_t n = 0;
    while (written < 6 * capacity) {
        FX_OK(fx, buf_log_free_check(fx->pool));
        assert_true(log_lsn(fx->base.log) + MTR_LOG_MAX_PAGES * 4096ULL
                        - log_checkpoint_lsn(fx->base.log)
                    <= capacity);
        buf_block_t *block = NULL;
        FX_OK(fx, buf_page_get(fx->pool, fx_id(1, n++ % 40), &block));
        lsn_t start = log_lsn(fx->base.log);
        lsn_t end = 0;
        for (uint32_t i = 0; i < 20; i++) {
            redo_rec_t rec = {.op = OP_WRITE,
                              .space = 1,
                              .page_no = block->id.page_no,
                              .offset = 200,
                              .data = data,
                              .len = sizeof(data)};
            log_append_rec(fx->base.log, &rec, &end);
        }
        fil_page_set_lsn(block->frame, 4096, end);
        buf_block_set_dirty(fx->pool, block, start, end);
        buf_block_unfix(fx->pool, block);
        written += end - start;
    }
    assert_true(fx->base.env.stats.checkpoints >= 6);
    assert_true(fx->base.env.stats.checkpoints <= 6 * 6);
}

/** MDEV-19747: switching log_optimize_ddl flushes all and takes a sharp checkpoint first. */
static void test_switch_log_optimize_ddl(void **state)
{
    buf_fixture_t *fx = *state;
    fx_new_page(fx, 1, 1);
    FX_OK(fx, buf_set_log_optimize_ddl(fx->pool, true, false));
    assert_int_equal(buf_dirty_pages(fx->pool), 1);
    FX_OK(fx, buf_set_log_optimize_ddl(fx->pool, false, false));
    assert_false(buf_log_optimize_ddl(fx->pool));
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
    assert_int_equal(fx->base.env.stats.checkpoints, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_evict_dirty, setup_tiny, fx_teardown),
        cmocka_unit_test_setup_teardown(test_evict_singly, setup_tiny, fx_teardown),
        cmocka_unit_test_setup_teardown(test_evict_amid_batch, setup_tiny, fx_teardown),
        cmocka_unit_test_setup_teardown(test_all_pinned, setup_tiny, fx_teardown),
        cmocka_unit_test_setup_teardown(test_bad_pages, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_create_again, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_page_from_the_future, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_flush_space_cost, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_flush_for_export, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_list_order, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_list_order_of_one_lsn, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_list_order_is_checked, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_flush_list_limit, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_discard, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_checkpoint_order, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_checkpoint_when_needed, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_log_free_check, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_switch_log_optimize_ddl, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
