/** mtr and buf: the doublewrite batch step by step, its latches, the page cleaner, a checkpoint
in the middle of a batch, fsyncs that others write under, and the flush observer's single-page
flushes. */
#include "buf/buf_int.h"
#include "test_mtr_fixture.h"

/** cleaner_interval = 1: something happens at every yield point. */
static int setup_steps(void **state)
{
    buf_fixture_t *fx = fx_create(4096, 32, true);
    buf_pool_free(fx->pool);
    fx->options.cleaner_interval = 1;
    fx_open_pool(fx);
    fx->base.rec.n = 0;
    *state = fx;
    return 0;
}

/** One step of the batch in flight; asserts that its first file operation or marker that starts so
is there, and nothing else is written or synced. NULL: no file is touched. */
static void step(buf_fixture_t *fx, const char *operation)
{
    uint32_t from = fx->base.rec.n;
    FX_OK(fx, buf_batch_step(fx->pool));
    uint32_t n = rec_count(&fx->base.rec, from, "write ") + rec_count(&fx->base.rec, from, "sync ");
    assert_int_equal(n, operation != NULL ? 1 : 0);
    if (operation != NULL) {
        rec_assert_order(&fx->base.rec, from, operation, NULL);
    }
}

/** Submits blocks, all dirty, as the batch in flight, and takes the steps up to the area write. */
static void submit(buf_fixture_t *fx, buf_block_t *const *blocks, uint32_t n)
{
    buf_batch_submit(fx->pool, blocks, n);
    step(fx, "write " LOG_FILE_NAME);
    step(fx, "sync " LOG_FILE_NAME);
    char area[40];
    snprintf(area, sizeof(area), "write ib_dblwr 0 %u", 4096 * n);
    step(fx, area);
}

/** Three dirty pages of space 1, and the batch with them submitted. */
static void submit_three(buf_fixture_t *fx, buf_block_t *blocks[3])
{
    for (page_no_t i = 0; i < 3; i++) {
        blocks[i] = fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3 + i));
    }
    submit(fx, blocks, 3);
}

/** One step is one operation; a page leaves the flush list at its home write; the region is free
again when the homes are fsynced, and every batch starts at its beginning. */
static void test_one_step_at_a_time(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *blocks[3];
    submit_three(fx, blocks);
    step(fx, "sync ib_dblwr");
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(buf_dirty_pages(fx->pool), 3 - i);
        assert_true(blocks[i]->in_flight);
        char home[40];
        snprintf(home, sizeof(home), "write t1.ibd %u 4096", (3 + i) * 4096);
        step(fx, home);
        assert_false(blocks[i]->in_flight);
    }
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
    fx_mtr_write(fx, MTR_LOG_ALL, fx_id(1, 4), 9);
    uint32_t from = fx->base.rec.n;
    FX_OK(fx, buf_batch_step(fx->pool)); /* the fsync begun */
    assert_int_equal(rec_count(&fx->base.rec, from, "# dblwr_done"), 0);
    FX_OK(fx, buf_batch_step(fx->pool)); /* and ended */
    assert_int_equal(rec_count(&fx->base.rec, from, "sync t1.ibd"), 1);
    rec_assert_order(&fx->base.rec, from, "sync t1.ibd", "# dblwr_done", NULL);
    step(fx, NULL);
    submit(fx, &blocks[1], 1);
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(fx->base.env.stats.batches_interleaved, 1);
}

/** A batch over several files ends when each of them was fsynced, one after the other. */
static void test_several_files(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *blocks[4];
    for (page_no_t i = 0; i < 4; i++) {
        blocks[i] = fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(i % 2 + 1, i));
    }
    buf_batch_submit(fx->pool, blocks, 4);
    FX_OK(fx, buf_batch_finish(fx->pool));
    rec_assert_order(&fx->base.rec, 0, "sync ib_dblwr", "write t1.ibd 0", "write t1.ibd 8192",
                     "write t2.ibd 4096", "write t2.ibd 12288", "sync t1.ibd", "sync t2.ibd",
                     "# dblwr_done", NULL);
    assert_int_equal(rec_count(&fx->base.rec, 0, "sync t"), 2);
}

/** I22: what is written under an fsync is not covered by it: the page in flight whose file somebody
else fsyncs, and the copy of a page that went home by itself. */
static void test_write_under_fsync(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *blocks[3];
    submit_three(fx, blocks);
    fil_sync_t sync;
    step(fx, "sync ib_dblwr");
    step(fx, "write t1.ibd 12288");
    fx_mtr_create(fx, MTR_LOG_NO_REDO, 20, fx_id(1, 9));
    FX_OK(fx, fil_sync_begin(fx->base.fil, fx->t1, &sync));
    step(fx, "write t1.ibd 16384");
    FX_OK(fx, buf_dblwr_write_single(fx->pool, buf_page_peek(fx->pool, fx_id(1, 9))));
    FX_OK(fx, fil_sync_end(fx->base.fil, &sync));
    assert_int_equal(fx->base.env.stats.writes_amid_fsync, 2);
    assert_false(fil_is_synced(fx->t1, fx->pool->single[0].n_write));
    uint32_t from = fx->base.rec.n;
    FX_OK(fx, buf_batch_finish(fx->pool));
    rec_assert_order(&fx->base.rec, from, "write t1.ibd 20480", "sync t1.ibd", "# dblwr_done",
                     NULL);
    assert_true(fil_is_synced(fx->t1, fx->pool->single[0].n_write));
}

/** One yield point in N is a step, at which one is drawn; the same seed draws the same. */
static void test_interval(void **state)
{
    buf_fixture_t *fx = *state;
    fx->pool->cleaner_interval = 3;
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    const uint32_t n = 3000;
    uint32_t n_steps[2] = {0};
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t twin = 0; twin < 2; twin++) {
            sched_t sched = {.state = i};
            fx->base.rec.n = 0;
            fx->base.env.sched = sched;
            FX_OK(fx, buf_batch_finish(fx->pool));
            fx_mtr_write(fx, MTR_LOG_ALL, fx_id(1, 3), (byte)(i + twin));
            fx->base.env.sched = sched;
            FX_OK(fx, buf_yield(fx->pool));
            n_steps[twin] += fx->pool->batch.state != BATCH_NONE;
        }
    }
    /* A third, but for what is a checkpoint. */
    assert_in_range(n_steps[0], n / 3 * 8 / 10, n / 3);
    assert_int_equal(n_steps[0], n_steps[1]);
}

/** Who wants to change a page in flight drives the batch to its home write, and no further; who
only reads it, or frees it, does not. */
static void test_latch(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *blocks[3];
    submit_three(fx, blocks);
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_READ_ONLY);
    buf_block_t *block = NULL;
    FX_OK(fx, mtr_page_get(&mtr, fx_id(1, 3), &block));
    mtr_commit(&mtr);
    assert_int_equal(buf_dirty_pages(fx->pool), 3);
    fx_mtr_free(fx, fx_id(1, 5));
    assert_int_equal(buf_dirty_pages(fx->pool), 3);

    uint32_t from = fx->base.rec.n;
    fx_mtr_write(fx, MTR_LOG_ALL, fx_id(1, 4), 77);
    rec_assert_order(&fx->base.rec, from, "sync ib_dblwr", "write t1.ibd 12288",
                     "write t1.ibd 16384", NULL);
    assert_int_equal(rec_count(&fx->base.rec, from, "sync t1.ibd"), 0);
    assert_int_equal(fx->base.env.stats.pages_freed_in_flight, 1);
    assert_int_equal(fx_home_byte(fx, "t1.ibd", 4), 0); /* what was copied */
    assert_true(!blocks[0]->in_flight && !blocks[1]->in_flight && blocks[2]->in_flight);
    assert_int_equal(buf_dirty_pages(fx->pool), 2);

    /* Given out again, the freed page is created when its write is over. */
    from = fx->base.rec.n;
    block = fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 5));
    rec_assert_order(&fx->base.rec, from, "write t1.ibd 20480", "# page_init space=1 page=5", NULL);
    assert_ptr_equal(block, blocks[2]);
    assert_false(block->freed || block->in_flight);
    assert_int_equal(fx->base.env.stats.latch_waits, 2);
    assert_int_equal(fx->base.env.stats.pages_reused_in_flight, 1);
    assert_int_equal(buf_oldest_modification(fx->pool), blocks[1]->oldest_modification);
}

/** A page in flight is not evicted: a pool without another frame finishes the batch first. */
static void test_eviction(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *blocks[3];
    submit_three(fx, blocks);
    buf_block_t *pinned[29];
    for (page_no_t i = 0; i < 29; i++) {
        FX_OK(fx, buf_page_create(fx->pool, fx_id(2, i), &pinned[i]));
    }
    assert_int_equal(buf_dirty_pages(fx->pool), 3);
    uint32_t from = fx->base.rec.n;
    buf_block_t *block = NULL;
    FX_OK(fx, buf_page_create(fx->pool, fx_id(2, 40), &block));
    rec_assert_order(&fx->base.rec, from, "sync ib_dblwr", "write t1.ibd 20480", "sync t1.ibd",
                     "# dblwr_done", NULL);
    buf_block_unfix(fx->pool, block);
    for (uint32_t i = 0; i < 29; i++) {
        buf_block_unfix(fx->pool, pinned[i]);
    }
}

/** I19: a page in flight holds C back until its home write; one that is home and not synced does
not, because C comes before the fsync of the files. */
static void test_checkpoint_amid_batch(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *blocks[3];
    submit_three(fx, blocks);
    step(fx, "sync ib_dblwr");
    step(fx, "write t1.ibd 12288");
    lsn_t oldest = blocks[1]->oldest_modification;
    fx->base.env.stats = (stats_t){.data_reads = 0};
    uint32_t from = fx->base.rec.n;
    FX_OK(fx, buf_checkpoint(fx->pool));
    assert_int_equal(log_checkpoint_lsn(fx->base.log), oldest);
    /* The cleaner goes on at each of the checkpoint's yield points: page 4 goes home before the
    fsync that covers page 3 begins, page 5 while it runs, so that the batch needs an fsync of its
    own. */
    rec_assert_order(&fx->base.rec, from, "write t1.ibd 16384", "write t1.ibd 20480",
                     "# point name=ckpt.data_synced", "# point name=ckpt.marker_durable",
                     "# checkpoint no=", NULL);
    FX_OK(fx, buf_batch_finish(fx->pool));
    assert_int_equal(rec_count(&fx->base.rec, from, "sync t1.ibd"), 2);
    assert_int_equal(fx->base.env.stats.writes_amid_fsync, 1);
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
    FX_OK(fx, buf_checkpoint(fx->pool));
    assert_true(log_checkpoint_lsn(fx->base.log) > oldest);
}

/** Dropping a space waits for its pages in flight. */
static void test_discard_amid_batch(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *blocks[3];
    submit_three(fx, blocks);
    FX_OK(fx, buf_discard_space(fx->pool, 1));
    assert_int_equal(fx->base.env.stats.spaces_dropped_in_flight, 1);
    FX_OK(fx, fil_space_delete(fx->base.fil, fx->t1));
    assert_null(buf_page_peek(fx->pool, fx_id(1, 3)));
    FX_OK(fx, buf_flush_all(fx->pool));
}

/** I23: after a failed step no step is taken any more, and who waits is told. */
static void test_failed_step(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *blocks[3];
    submit_three(fx, blocks);
    fx->base.rec.fail_prefix = "write t1.ibd 16384";
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    assert_int_equal(mtr_page_get(&mtr, fx_id(1, 5), &block), DB_IO_ERROR);
    mtr_abort(&mtr);
    assert_true(fx->base.env.io_failed);
    assert_int_equal(blocks[2]->fix_count, 0);
    fx->base.rec.fail_prefix = NULL;
    uint32_t from = fx->base.rec.n;
    assert_int_equal(buf_batch_step(fx->pool), DB_IO_ERROR);
    assert_int_equal(buf_flush_all(fx->pool), DB_IO_ERROR);
    assert_int_equal(buf_checkpoint(fx->pool), DB_IO_ERROR);
    assert_int_equal(rec_count(&fx->base.rec, from, "write "), 0);
    assert_int_equal(buf_dirty_pages(fx->pool), 2);
}

/** The observer writes the pages with its stamp, whatever else of the space is dirty: from the
oldest on, each with its copy in a slot of its own behind the batch region, and fsyncs the space at
the end. */
static void test_observer_own_pages(void **state)
{
    buf_fixture_t *fx = *state;
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 2));
    fx_mtr_create(fx, MTR_LOG_NO_REDO, 20, fx_id(1, 9));
    fx_mtr_create(fx, MTR_LOG_NO_REDO, 21, fx_id(1, 5));
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 6));
    fx_mtr_create(fx, MTR_LOG_NO_REDO, 20, fx_id(1, 4));
    for (page_no_t i = 0; i < 15; i++) {
        fx_mtr_create(fx, MTR_LOG_NO_REDO, 20, fx_id(2, i));
    }
    uint32_t from = fx->base.rec.n;
    FX_OK(fx, flush_load(fx->pool, 1, 20));
    rec_assert_order(&fx->base.rec, from, "# flush_observer space=1 index=20 pages=2",
                     "sync " LOG_FILE_NAME, "# dblwr_single slot=0 space=1 page=9 pos=8",
                     "write ib_dblwr 32768 4096", "sync ib_dblwr", "# page_write space=1 page=9",
                     "write t1.ibd 36864", "# dblwr_single slot=1 space=1 page=4 pos=9",
                     "write ib_dblwr 36864 4096", "sync ib_dblwr", "write t1.ibd 16384",
                     "sync t1.ibd", NULL);
    uint32_t at = rec_find(&fx->base.rec, from, "# page_write space=1 page=9");
    assert_non_null(strstr(fx->base.rec.lines[at], "dblwr=used why=single init_lsn=0 load=1"));
    assert_int_equal(rec_count(&fx->base.rec, from, "# page_write"), 2);
    assert_int_equal(fx->base.env.stats.flush_list_visited, 5);
    assert_int_equal(buf_dirty_pages(fx->pool), 18);
    assert_int_equal(buf_page_peek(fx->pool, fx_id(1, 5))->observer, 21);
}

/** I22: a slot is used again only when its home write is fsynced; with none free the files are
fsynced first, and then all are. A checkpoint's fsync frees them as well. */
static void test_single_slots(void **state)
{
    buf_fixture_t *fx = *state;
    for (page_no_t i = 0; i < 11; i++) {
        fx_mtr_create(fx, MTR_LOG_NO_REDO, 20, fx_id(1, i));
    }
    FX_OK(fx, flush_load(fx->pool, 1, 20));
    uint32_t sync = rec_find(&fx->base.rec, 0, "sync t1.ibd");
    uint32_t ninth = rec_find(&fx->base.rec, 0, "# page_write space=1 page=8");
    assert_true(rec_find(&fx->base.rec, 0, "# page_write space=1 page=7") < sync && sync < ninth);
    rec_assert_order(&fx->base.rec, sync, "# dblwr_single slot=0 space=1 page=8 pos=8",
                     "# dblwr_single slot=1 space=1 page=9 pos=9",
                     "# dblwr_single slot=2 space=1 page=10 pos=10", "sync t1.ibd", NULL);
    assert_int_equal(rec_count(&fx->base.rec, 0, "sync t1.ibd"), 2);
    assert_int_equal(rec_count(&fx->base.rec, 0, "write ib_dblwr"), 11);
}

/** A page that its load has freed is not the observer's any more; it is written some time later. */
static void test_observer_freed_page(void **state)
{
    buf_fixture_t *fx = *state;
    fx_mtr_create(fx, MTR_LOG_NO_REDO, 20, fx_id(1, 3));
    buf_block_t *freed = fx_mtr_create(fx, MTR_LOG_NO_REDO, 20, fx_id(1, 4));
    fx_mtr_free(fx, fx_id(1, 4));
    FX_OK(fx, flush_load(fx->pool, 1, 20));
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write"), 1);
    assert_true(freed->observer == 0 && freed->oldest_modification != 0);
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write space=1 page=4"), 1);
}

/** The cleaner at work on the same pages: none is written twice. */
static void test_observer_and_cleaner(void **state)
{
    buf_fixture_t *fx = *state;
    for (page_no_t i = 0; i < 12; i++) {
        fx_mtr_create(fx, MTR_LOG_NO_REDO, 20, fx_id(1, i));
    }
    FX_OK(fx, buf_yield(fx->pool));
    FX_OK(fx, flush_load(fx->pool, 1, 20));
    for (page_no_t i = 0; i < 12; i++) {
        char text[64];
        snprintf(text, sizeof(text), "# page_write space=1 page=%u ", i);
        assert_int_equal(rec_count(&fx->base.rec, 0, text), 1);
    }
    assert_true(rec_count(&fx->base.rec, 0, "# dblwr_single") > 0);
    assert_true(rec_count(&fx->base.rec, 0, "# dblwr_single") < 12);
    uint32_t last = rec_find(&fx->base.rec, 0, "# page_write space=1 page=11 ");
    assert_int_not_equal(rec_find(&fx->base.rec, last, "sync t1.ibd"), UINT32_MAX);
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
    assert_false(fil_needs_sync(fx->t1));
}

/** An interrupted load: its pages hold the checkpoint back until they are given up, unwritten; the
frames stay and look clean; a page given out again is created. One with a logged change stays dirty,
and holds it back from there on. */
static void test_observer_drop(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *root = fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    lsn_t oldest = root->oldest_modification;
    fx_mtr_write(fx, MTR_LOG_NO_REDO, fx_id(1, 3), 5);
    root->observer = 20;
    fx_mtr_create(fx, MTR_LOG_NO_REDO, 20, fx_id(1, 4));
    buf_block_t *other = fx_mtr_create(fx, MTR_LOG_NO_REDO, 21, fx_id(1, 5));
    assert_int_equal(buf_oldest_modification(fx->pool), oldest);
    FX_OK(fx, buf_observer_drop(fx->pool, 1, 20));
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_discard space=1 page=4"), 1);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_discard"), 1);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write"), 0);
    assert_int_equal(buf_page_peek(fx->pool, fx_id(1, 4))->oldest_modification, 0);
    assert_int_equal(buf_oldest_modification(fx->pool), oldest);
    assert_true(root->oldest_modification == oldest && root->observer == 0);
    assert_true(other->oldest_modification != 0 && other->observer == 21);
    fx_mtr_free(fx, fx_id(1, 3));
    fx_mtr_free(fx, fx_id(1, 4));
    buf_block_t *block = NULL;
    assert_int_equal(buf_page_get(fx->pool, fx_id(1, 4), &block), DB_CORRUPTION);
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 4));
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write"), 3);
}

/** What is placed is done at that yield point and nowhere else, and once. */
static void test_placed(void **state)
{
    buf_fixture_t *fx = *state;
    stats_t *stats = &fx->base.env.stats;
    fx->pool->cleaner_interval = 0;
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(2, 3));
    buf_place(fx->pool, BUF_ACT_CLEAN, 2);
    FX_OK(fx, buf_yield(fx->pool));
    assert_int_equal(fx->pool->batch.state, BATCH_NONE);
    FX_OK(fx, buf_yield(fx->pool));
    assert_int_equal(fx->pool->batch.state, BATCH_COPIED);
    for (uint32_t i = 0; i < 11; i++) { /* log, its fsync, area, its fsync, two pages, two files */
        FX_OK(fx, buf_yield(fx->pool));
    }
    assert_int_equal(fx->pool->batch.state, BATCH_NONE);
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 4));
    buf_place(fx->pool, BUF_ACT_EVICT, 1);
    FX_OK(fx, buf_yield(fx->pool));
    assert_null(buf_page_peek(fx->pool, fx_id(1, 3)));
    assert_null(buf_page_peek(fx->pool, fx_id(1, 4)));
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 5));
    FX_OK(fx, buf_yield(fx->pool));
    assert_int_equal(buf_dirty_pages(fx->pool), 1);
    assert_int_equal(stats->placed_cleans + 2 * stats->placed_evictions, 3);
}

/** A checkpoint is not taken with a page pinned: it waits for the next yield point. */
static void test_placed_checkpoint_waits(void **state)
{
    buf_fixture_t *fx = *state;
    fx->pool->cleaner_interval = 0;
    buf_block_t *block = fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    buf_block_fix(fx->pool, block);
    buf_place(fx->pool, BUF_ACT_CHECKPOINT_FULL, 1);
    FX_OK(fx, buf_yield(fx->pool));
    assert_int_equal(fx->base.env.stats.placed_checkpoints, 0);
    buf_block_unfix(fx->pool, block);
    FX_OK(fx, buf_yield(fx->pool));
    assert_int_equal(fx->base.env.stats.placed_checkpoints, 1);
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
}

/** A full log: it can be opened for writing still; whoever asks for room gets it by a checkpoint.
Amid a checkpoint it waits for the marker. */
static void test_placed_fill(void **state)
{
    buf_fixture_t *fx = *state;
    log_t *log = fx->base.log;
    fx->pool->cleaner_interval = 0;
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    fx->pool->in_checkpoint = true;
    buf_place(fx->pool, BUF_ACT_FILL, 1);
    FX_OK(fx, buf_yield(fx->pool));
    fx->pool->in_checkpoint = false;
    assert_int_equal(fx->base.env.stats.placed_fills, 0);
    FX_OK(fx, buf_yield(fx->pool));
    assert_int_equal(fx->base.env.stats.placed_fills, 1);
    uint64_t age = log_lsn(log) - log_checkpoint_lsn(log);
    assert_true(age > log_capacity(log) && age <= log_age_max(log));
    assert_true(log_age_max(log) - age < 4096);
    FX_OK(fx, buf_log_free_check(fx->pool));
    assert_int_equal(fx->base.env.stats.log_room_waits, 1);
    assert_true(log_lsn(log) - log_checkpoint_lsn(log) < 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_step_at_a_time, setup_steps, fx_teardown),
        cmocka_unit_test_setup_teardown(test_several_files, setup_steps, fx_teardown),
        cmocka_unit_test_setup_teardown(test_write_under_fsync, setup_steps, fx_teardown),
        cmocka_unit_test_setup_teardown(test_interval, setup_steps, fx_teardown),
        cmocka_unit_test_setup_teardown(test_latch, setup_steps, fx_teardown),
        cmocka_unit_test_setup_teardown(test_eviction, setup_steps, fx_teardown),
        cmocka_unit_test_setup_teardown(test_checkpoint_amid_batch, setup_steps, fx_teardown),
        cmocka_unit_test_setup_teardown(test_discard_amid_batch, setup_steps, fx_teardown),
        cmocka_unit_test_setup_teardown(test_failed_step, setup_steps, fx_teardown),
        cmocka_unit_test_setup_teardown(test_observer_own_pages, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_single_slots, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_observer_freed_page, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_observer_and_cleaner, setup_steps, fx_teardown),
        cmocka_unit_test_setup_teardown(test_observer_drop, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_placed, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_placed_checkpoint_waits, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_placed_fill, fx_setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
