/** The doublewrite batch as a sequence of steps.

Place: above buf_dblwr.c, below buf_flush.c, buf_lru.c and buf_checkpoint.c, which choose the pages.

    NONE --submit: pages latched and copied--> COPIED --log written--> LOG_WRITTEN
    --log fsynced--> LOGGED --area written--> AREA_WRITTEN --area fsynced--> HOME
    --one home write per step--> UNSYNCED
    --fsync of the next file begun--> SYNCING --ended--> UNSYNCED, or NONE after the last file

A batch without copies (all its pages skip doublewrite) goes from LOG_WRITTEN to HOME, and ends with
its last home write: it has nothing to free, and the next checkpoint fsyncs the files. One batch is
in flight. Between its steps other work goes on: log writes, changes and frees of other pages,
reads, checkpoints. A call that needs it done drives it, as a waiting thread would.

Invariants
1. (I22) the region is written only when no batch is in flight: the home writes that it protected
   are fsynced, whoever asked for the fsync;
2. a page is latched from submit to its home write (in_flight): nobody changes, recreates or evicts
   it, so that what goes home is what was copied, and the frame is not ahead of the file when the
   page leaves the flush list. That happens at its home write, before the fsync: a checkpoint
   chooses C first and fsyncs all files then (buf_checkpoint.c), so it covers such pages;
3. (I23) after a failure the batch stays where it is, and no step is taken any more. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

/** Latches the pages and copies them, those that need doublewrite first. */
static void buf_batch_copy(buf_pool_t *pool)
{
    buf_batch_t *batch = &pool->batch;
    batch->n_copies = 0;
    for (uint32_t i = 0; i < batch->n; i++) {
        batch->n_copies += !buf_dblwr_skips(pool, batch->pages[i].block);
    }
    batch->newest_lsn = 0;
    uint32_t used = 0;
    uint32_t skipped = batch->n_copies;
    for (uint32_t i = 0; i < batch->n; i++) {
        buf_block_t *block = batch->pages[i].block;
        batch->pages[i].pos = buf_dblwr_skips(pool, block) ? skipped++ : used++;
        buf_dblwr_copy(pool, block,
                       pool->dblwr_buf + (size_t)batch->pages[i].pos * pool->page_size);
        if (block->newest_modification > batch->newest_lsn) {
            batch->newest_lsn = block->newest_modification;
        }
        block->in_flight = true;
    }
}

void buf_batch_submit(buf_pool_t *pool, buf_block_t *const *blocks, uint32_t n)
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
    batch->n_synced = 0;
    batch->submit_lsn = log_lsn(pool->log);
    qsort(batch->pages, n, sizeof(batch->pages[0]), buf_batch_cmp);
    buf_batch_copy(pool);
    batch->state = BATCH_COPIED;
}

static dberr_t buf_batch_write_log(buf_pool_t *pool)
{
    TRY(log_write_up_to(pool->log, pool->batch.newest_lsn, false));
    pool->batch.state = BATCH_LOG_WRITTEN;
    return DB_SUCCESS;
}

static dberr_t buf_batch_sync_log(buf_pool_t *pool)
{
    buf_batch_t *batch = &pool->batch;
    TRY(buf_dblwr_write_log(pool, batch->newest_lsn));
    batch->state = batch->n_copies > 0 ? BATCH_LOGGED : BATCH_HOME;
    return DB_SUCCESS;
}

static dberr_t buf_batch_write_area(buf_pool_t *pool)
{
    buf_batch_t *batch = &pool->batch;
    PROBE_MARK(pool->env->probe, "dblwr_batch pages=%" PRIu32, batch->n_copies);
    TRY(buf_dblwr_write_area(pool, 0, pool->dblwr_buf, batch->n_copies));
    batch->state = BATCH_AREA_WRITTEN;
    pool->env->stats.dblwr_batches++;
    pool->env->stats.dblwr_full_batches += batch->n_copies == pool->dblwr_pages;
    return DB_SUCCESS;
}

static dberr_t buf_batch_sync_area(buf_pool_t *pool)
{
    TRY(buf_dblwr_sync_area(pool));
    pool->batch.state = BATCH_HOME;
    PROBE_MARK(pool->env->probe, "dblwr_synced");
    PROBE_POINT(pool->env->probe, "dblwr.area_synced");
    return DB_SUCCESS;
}

static dberr_t buf_batch_write_page(buf_pool_t *pool, const buf_batch_page_t *page)
{
    buf_batch_t *batch = &pool->batch;
    bool skip = page->pos >= batch->n_copies;
    const char *why = pool->dblwr_file == NULL ? "off" : skip ? "init" : "batch";
    return buf_dblwr_write_home(pool, page->block,
                                pool->dblwr_buf + (size_t)page->pos * pool->page_size,
                                skip ? -1 : (int)page->pos, why);
}

/** The region is free: all pages are home and, if there are copies, durable. */
static void buf_batch_end(buf_pool_t *pool)
{
    buf_batch_t *batch = &pool->batch;
    if (batch->n_copies > 0) {
        PROBE_POINT(pool->env->probe, "dblwr.home_synced");
        PROBE_MARK(pool->env->probe, "dblwr_done");
    }
    pool->env->stats.batches_interleaved += log_lsn(pool->log) != batch->submit_lsn;
    pool->env->stats.batches_unsynced += batch->n_copies == 0;
    batch->state = BATCH_NONE;
}

static dberr_t buf_batch_write_next(buf_pool_t *pool)
{
    buf_batch_t *batch = &pool->batch;
    const buf_batch_page_t *page = &batch->pages[batch->n_home];
    TRY(buf_dblwr_drops(pool, page->block) ? buf_dblwr_drop_page(pool, page->block)
                                           : buf_batch_write_page(pool, page));
    page->block->in_flight = false;
    if (++batch->n_home == batch->n && batch->n_copies > 0) {
        batch->state = BATCH_UNSYNCED;
    } else if (batch->n_home == batch->n) {
        buf_batch_end(pool);
    }
    return DB_SUCCESS;
}

static dberr_t buf_batch_begin_sync(buf_pool_t *pool)
{
    buf_batch_t *batch = &pool->batch;
    fil_space_t *space = fil_space_get(pool->fil, batch->pages[batch->n_synced].id.space);
    CHECK(space != NULL); /* who deletes a space finishes the batch first */
    TRY(fil_sync_begin(pool->fil, space, &batch->sync));
    batch->state = BATCH_SYNCING;
    return DB_SUCCESS;
}

static dberr_t buf_batch_end_sync(buf_pool_t *pool)
{
    buf_batch_t *batch = &pool->batch;
    TRY(fil_sync_end(pool->fil, &batch->sync));
    space_id_t space = batch->pages[batch->n_synced].id.space;
    while (batch->n_synced < batch->n && batch->pages[batch->n_synced].id.space == space) {
        batch->n_synced++;
    }
    if (batch->n_synced < batch->n) {
        batch->state = BATCH_UNSYNCED;
    } else {
        buf_batch_end(pool);
    }
    return DB_SUCCESS;
}

dberr_t buf_batch_step(buf_pool_t *pool)
{
    if (pool->env->io_failed) {
        return err_set(&pool->env->err, DB_IO_ERROR, "no page is written after a failed operation");
    }
    switch (pool->batch.state) {
    case BATCH_NONE:
        break;
    case BATCH_COPIED:
        return buf_batch_write_log(pool);
    case BATCH_LOG_WRITTEN:
        return buf_batch_sync_log(pool);
    case BATCH_LOGGED:
        return buf_batch_write_area(pool);
    case BATCH_AREA_WRITTEN:
        return buf_batch_sync_area(pool);
    case BATCH_HOME:
        return buf_batch_write_next(pool);
    case BATCH_UNSYNCED:
        return buf_batch_begin_sync(pool);
    case BATCH_SYNCING:
        return buf_batch_end_sync(pool);
    }
    return DB_SUCCESS;
}

dberr_t buf_batch_finish(buf_pool_t *pool)
{
    while (pool->batch.state != BATCH_NONE) {
        TRY(buf_batch_step(pool));
    }
    return DB_SUCCESS;
}

bool buf_batch_has_space(const buf_pool_t *pool, space_id_t space)
{
    const buf_batch_t *batch = &pool->batch;
    bool found = false;
    for (uint32_t i = batch->n_home; batch->state != BATCH_NONE && i < batch->n; i++) {
        found = found || batch->pages[i].id.space == space;
    }
    return found;
}

bool buf_page_tear(buf_pool_t *pool, page_id_t id, byte *page)
{
    const buf_batch_t *batch = &pool->batch;
    uint32_t i = batch->n_home;
    if (batch->state != BATCH_HOME) {
        return false;
    }
    while (i < batch->n
           && (batch->pages[i].id.space != id.space || batch->pages[i].id.page_no != id.page_no)) {
        i++;
    }
    if (i == batch->n) {
        return false;
    }
    const byte *copy = pool->dblwr_buf + (size_t)batch->pages[i].pos * pool->page_size;
    uint32_t n_sectors = pool->page_size / SECTOR_SIZE;
    size_t n_new = (size_t)sched_draw(&pool->env->sched, n_sectors + 1) * SECTOR_SIZE;
    size_t from = sched_draw(&pool->env->sched, 2) == 0 ? 0 : pool->page_size - n_new;
    memcpy(page + from, copy + from, n_new);
    page_decompress(page, pool->page_size);
    return true;
}

dberr_t buf_block_wait(buf_pool_t *pool, buf_block_t *block)
{
    pool->env->stats.latch_waits += block->in_flight;
    while (block->in_flight) {
        TRY(buf_batch_step(pool));
    }
    return DB_SUCCESS;
}

dberr_t buf_batch_write(buf_pool_t *pool, buf_block_t *const *blocks, uint32_t n)
{
    for (uint32_t done = 0; done < n;) {
        uint32_t n_batch = n - done < pool->dblwr_pages ? n - done : pool->dblwr_pages;
        buf_batch_submit(pool, blocks + done, n_batch);
        TRY(buf_batch_finish(pool));
        done += n_batch;
    }
    return DB_SUCCESS;
}
