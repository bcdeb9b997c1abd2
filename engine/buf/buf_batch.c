/** The doublewrite batch as a sequence of steps, and the page cleaner that takes them one at a time.

Place: above buf_dblwr.c, below buf_flush.c and buf_lru.c, which choose the pages.

    NONE --submit--> AREA_WRITTEN --fsync of the area--> HOME --one home write per step--> UNSYNCED
      ^               log durable, copies written                                            |
      +------------------------- fsync of the data files, region free -----------------------+

A batch without copies (all its pages skip doublewrite) goes from submit to HOME. One batch is in
flight. Between its steps other work goes on; a call that needs it done drives it, as a waiting
thread would.

Invariants
1. (I22) the region is written only in NONE: the home writes that it protected are fsynced;
2. a page is latched from submit to its home write (in_flight): nobody changes, recreates or evicts
   it, so that what goes home is what was copied, and the frame is not ahead of the file when the
   page leaves the flush list. That happens at its home write, before the fsync: a checkpoint
   chooses C first and fsyncs all files then (buf_checkpoint.c), so it covers such pages;
3. (I23) after a failure the batch stays where it is, and no step is taken any more. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "buf/buf_int.h"

static int buf_batch_cmp(const void *a, const void *b)
{
    const buf_batch_page_t *x = a;
    const buf_batch_page_t *y = b;
    if (x->id.space != y->id.space) {
        return x->id.space < y->id.space ? -1 : 1;
    }
    return x->id.page_no < y->id.page_no ? -1 : x->id.page_no > y->id.page_no;
}

/** Latches the pages and copies them, those that need doublewrite first. @return newest LSN */
static lsn_t buf_batch_copy(buf_pool_t *pool)
{
    buf_batch_t *batch = &pool->batch;
    batch->n_copies = 0;
    for (uint32_t i = 0; i < batch->n; i++) {
        batch->n_copies += !buf_dblwr_skips(pool, batch->pages[i].block);
    }
    lsn_t lsn = 0;
    uint32_t used = 0;
    uint32_t skipped = batch->n_copies;
    for (uint32_t i = 0; i < batch->n; i++) {
        buf_block_t *block = batch->pages[i].block;
        batch->pages[i].pos = buf_dblwr_skips(pool, block) ? skipped++ : used++;
        buf_dblwr_copy(pool, block,
                       pool->dblwr_buf + (size_t)batch->pages[i].pos * pool->page_size);
        lsn = block->newest_modification > lsn ? block->newest_modification : lsn;
        block->in_flight = true;
    }
    return lsn;
}

/** Submits the blocks as the batch in flight. */
static dberr_t buf_batch_submit(buf_pool_t *pool, buf_block_t *const *blocks, uint32_t n)
{
    buf_batch_t *batch = &pool->batch;
    CHECK(batch->state == BATCH_NONE && n > 0 && n <= pool->dblwr_pages);
    PROBE_POINT(pool->env->probe, "dblwr.batch_start");
    for (uint32_t i = 0; i < n; i++) {
        CHECK(blocks[i]->fix_count == 0 && blocks[i]->oldest_modification != 0);
        batch->pages[i] = (buf_batch_page_t){.id = blocks[i]->id, .block = blocks[i]};
    }
    batch->n = n;
    batch->n_home = 0;
    qsort(batch->pages, n, sizeof(batch->pages[0]), buf_batch_cmp);
    lsn_t lsn = buf_batch_copy(pool);
    batch->state = BATCH_HOME;
    dberr_t err = buf_dblwr_write_log(pool, lsn);
    if (err == DB_SUCCESS && batch->n_copies > 0) {
        PROBE_MARK(pool->env->probe, "dblwr_batch pages=%" PRIu32, batch->n_copies);
        batch->state = BATCH_AREA_WRITTEN;
        err = buf_dblwr_write_area(pool, 0, pool->dblwr_buf, batch->n_copies);
        pool->env->stats.dblwr_batches += err == DB_SUCCESS;
        pool->env->stats.dblwr_full_batches +=
            err == DB_SUCCESS && batch->n_copies == pool->dblwr_pages;
    }
    return err;
}

static dberr_t buf_batch_sync_area(buf_pool_t *pool)
{
    dberr_t err = buf_dblwr_sync_area(pool);
    if (err == DB_SUCCESS) {
        pool->batch.state = BATCH_HOME;
        PROBE_MARK(pool->env->probe, "dblwr_synced");
        PROBE_POINT(pool->env->probe, "dblwr.area_synced");
    }
    return err;
}

static dberr_t buf_batch_write_next(buf_pool_t *pool)
{
    buf_batch_t *batch = &pool->batch;
    const buf_batch_page_t *page = &batch->pages[batch->n_home];
    bool skip = page->pos >= batch->n_copies;
    const char *why = pool->dblwr_file == NULL ? "off" : skip ? "init" : "batch";
    dberr_t err = buf_dblwr_write_home(pool, page->block,
                                       pool->dblwr_buf + (size_t)page->pos * pool->page_size,
                                       skip ? -1 : (int)page->pos, why);
    if (err != DB_SUCCESS) {
        return err;
    }
    page->block->in_flight = false;
    if (++batch->n_home == batch->n) {
        batch->state = BATCH_UNSYNCED;
    }
    return DB_SUCCESS;
}

static dberr_t buf_batch_sync_home(buf_pool_t *pool)
{
    buf_batch_t *batch = &pool->batch;
    for (uint32_t i = 0; i < batch->n; i++) {
        fil_space_t *space = fil_space_get(pool->fil, batch->pages[i].id.space);
        CHECK(space != NULL);
        dberr_t err = fil_sync(pool->fil, space);
        if (err != DB_SUCCESS) {
            return err;
        }
    }
    PROBE_POINT(pool->env->probe, "dblwr.home_synced");
    if (batch->n_copies > 0) {
        PROBE_MARK(pool->env->probe, "dblwr_done");
    }
    batch->state = BATCH_NONE;
    return DB_SUCCESS;
}

static dberr_t buf_batch_step(buf_pool_t *pool)
{
    if (pool->env->io_failed) {
        return err_set(&pool->env->err, DB_IO_ERROR, "no page is written after a failed operation");
    }
    switch (pool->batch.state) {
    case BATCH_NONE:
        break;
    case BATCH_AREA_WRITTEN:
        return buf_batch_sync_area(pool);
    case BATCH_HOME:
        return buf_batch_write_next(pool);
    case BATCH_UNSYNCED:
        return buf_batch_sync_home(pool);
    }
    return DB_SUCCESS;
}

dberr_t buf_batch_finish(buf_pool_t *pool)
{
    dberr_t err = DB_SUCCESS;
    while (err == DB_SUCCESS && pool->batch.state != BATCH_NONE) {
        err = buf_batch_step(pool);
    }
    return err;
}

dberr_t buf_block_wait(buf_pool_t *pool, buf_block_t *block)
{
    dberr_t err = DB_SUCCESS;
    while (err == DB_SUCCESS && block->in_flight) {
        err = buf_batch_step(pool);
    }
    return err;
}

dberr_t buf_batch_write(buf_pool_t *pool, buf_block_t *const *blocks, uint32_t n)
{
    dberr_t err = DB_SUCCESS;
    for (uint32_t done = 0; err == DB_SUCCESS && done < n;) {
        uint32_t n_batch = n - done < pool->dblwr_pages ? n - done : pool->dblwr_pages;
        err = buf_batch_submit(pool, blocks + done, n_batch);
        if (err == DB_SUCCESS) {
            err = buf_batch_finish(pool);
        }
        done += n_batch;
    }
    return err;
}

/* ---- the page cleaner ---- */

/** One step of the batch in flight, or a new batch of the oldest dirty pages. */
static dberr_t buf_cleaner_step(buf_pool_t *pool)
{
    if (pool->batch.state != BATCH_NONE) {
        return buf_batch_step(pool);
    }
    uint32_t max =
        pool->dblwr_pages < BUF_CLEANER_STEP_PAGES ? pool->dblwr_pages : BUF_CLEANER_STEP_PAGES;
    buf_block_t *chosen[BUF_CLEANER_STEP_PAGES];
    uint32_t n = 0;
    for (buf_block_t *block = pool->flush_first; block != NULL && n < max;
         block = block->flush_next) {
        if (block->fix_count == 0) {
            chosen[n++] = block;
        }
    }
    return n > 0 ? buf_batch_submit(pool, chosen, n) : DB_SUCCESS;
}

dberr_t buf_yield(buf_pool_t *pool)
{
    if (pool->cleaner_interval == 0 || ++pool->n_yields % pool->cleaner_interval != 0) {
        return DB_SUCCESS;
    }
    bool is_turn = pool->n_yields / pool->cleaner_interval % BUF_CLEANER_CHECKPOINT == 0;
    return is_turn && !pool->in_checkpoint && pool->n_fixed == 0 ? buf_checkpoint(pool)
                                                                 : buf_cleaner_step(pool);
}

dberr_t buf_log_wait(buf_pool_t *pool, lsn_t lsn, bool sync)
{
    dberr_t err = buf_yield(pool);
    return err == DB_SUCCESS ? log_write_up_to(pool->log, lsn, sync) : err;
}
