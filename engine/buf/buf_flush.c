/** Dirty page lists and what walks them: page cleaning, flushing a space, discarding.

Place: beside buf_pool.c, above buf_batch.c, which writes. The calls here finish the batch in flight
before they choose pages.

The global list runs from the oldest to the newest modification, so that its head bounds the
checkpoint. fil_space->flush_list is the head of a ring in the same order through space_prev and
space_next: flushing a space looks at that space's dirty pages only.

Invariants
1. both lists ascend in oldest_modification, because pages become dirty in the order of the log:
   buf_block_set_dirty checks it, and only ever appends;
2. nothing here runs with a page pinned: a pinned page may be half changed. */
#include <inttypes.h>

#include "base/check.h"
#include "buf/buf_int.h"

static fil_space_t *buf_space_of(buf_pool_t *pool, const buf_block_t *block)
{
    fil_space_t *space = fil_space_get(pool->fil, block->id.space);
    CHECK(space != NULL); /* a space's pages are discarded before it goes */
    return space;
}

/** Puts a block that becomes dirty at the end of both lists. */
static void buf_flush_append(buf_pool_t *pool, fil_space_t *space, buf_block_t *block)
{
    block->flush_prev = pool->flush_last;
    block->flush_next = NULL;
    if (pool->flush_last != NULL) {
        pool->flush_last->flush_next = block;
    } else {
        pool->flush_first = block;
    }
    pool->flush_last = block;
    buf_block_t *head = space->flush_list;
    if (head == NULL) {
        block->space_prev = block;
        block->space_next = block;
        space->flush_list = block;
    } else {
        block->space_prev = head->space_prev;
        block->space_next = head;
        head->space_prev->space_next = block;
        head->space_prev = block;
    }
    pool->n_dirty++;
}

void buf_flush_remove(buf_pool_t *pool, buf_block_t *block)
{
    CHECK(block->oldest_modification != 0);
    if (block->flush_prev != NULL) {
        block->flush_prev->flush_next = block->flush_next;
    } else {
        pool->flush_first = block->flush_next;
    }
    if (block->flush_next != NULL) {
        block->flush_next->flush_prev = block->flush_prev;
    } else {
        pool->flush_last = block->flush_prev;
    }
    fil_space_t *space = buf_space_of(pool, block);
    if (block->space_next == block) {
        space->flush_list = NULL;
    } else {
        block->space_prev->space_next = block->space_next;
        block->space_next->space_prev = block->space_prev;
        if (space->flush_list == block) {
            space->flush_list = block->space_next;
        }
    }
    block->flush_prev = block->flush_next = NULL;
    block->space_prev = block->space_next = NULL;
    block->oldest_modification = 0;
    pool->n_dirty--;
}

void buf_block_set_dirty(buf_pool_t *pool, buf_block_t *block, lsn_t start_lsn, lsn_t end_lsn)
{
    CHECK(block->fix_count > 0 && !block->in_flight);
    CHECK(start_lsn != 0 && start_lsn <= end_lsn && end_lsn >= block->newest_modification);
    CHECK(pool->flush_last == NULL || pool->flush_last->oldest_modification <= start_lsn);
    fil_space_t *space = buf_space_of(pool, block);
    block->newest_modification = end_lsn;
    if (space->max_lsn < end_lsn) {
        space->max_lsn = end_lsn;
    }
    if (block->oldest_modification == 0) {
        block->oldest_modification = start_lsn;
        buf_flush_append(pool, space, block);
    }
}

lsn_t buf_oldest_modification(const buf_pool_t *pool)
{
    return pool->flush_first != NULL ? pool->flush_first->oldest_modification : 0;
}

uint32_t buf_dirty_pages(const buf_pool_t *pool)
{
    return pool->n_dirty;
}

dberr_t buf_flush_list(buf_pool_t *pool, uint32_t max_pages, lsn_t lsn_limit, uint32_t *n_flushed)
{
    CHECK(pool->n_fixed == 0);
    dberr_t err = buf_batch_finish(pool);
    if (err != DB_SUCCESS) {
        return err;
    }
    uint32_t n = 0;
    for (buf_block_t *block = pool->flush_first;
         block != NULL && n < max_pages && block->oldest_modification < lsn_limit;
         block = block->flush_next) {
        pool->collected[n++] = block;
    }
    err = buf_batch_write(pool, pool->collected, n);
    if (err == DB_SUCCESS && n_flushed != NULL) {
        *n_flushed = n;
    }
    return err == DB_SUCCESS ? buf_scrub_pages(pool, max_pages) : err;
}

dberr_t buf_flush_space(buf_pool_t *pool, space_id_t space_id)
{
    CHECK(pool->n_fixed == 0);
    fil_space_t *space = fil_space_get(pool->fil, space_id);
    CHECK(space != NULL);
    dberr_t err = buf_batch_finish(pool);
    if (err != DB_SUCCESS) {
        return err;
    }
    uint32_t n = 0;
    buf_block_t *block = space->flush_list;
    while (block != NULL) {
        pool->collected[n++] = block;
        pool->env->stats.flush_list_visited++;
        block = block->space_next != space->flush_list ? block->space_next : NULL;
    }
    err = buf_batch_write(pool, pool->collected, n);
    if (err == DB_SUCCESS) {
        err = fil_sync(pool->fil, space);
    }
    if (err == DB_SUCCESS) {
        err = buf_scrub_pages(pool, UINT32_MAX); /* nothing comes after it */
    }
    return err == DB_SUCCESS ? fil_sync(pool->fil, space) : err;
}

dberr_t buf_flush_all(buf_pool_t *pool)
{
    dberr_t err = buf_flush_list(pool, UINT32_MAX, LSN_MAX, NULL);
    if (err == DB_SUCCESS) {
        err = fil_sync_all(pool->fil);
    }
    return err;
}

dberr_t buf_flush_and_evict_all(buf_pool_t *pool)
{
    dberr_t err = buf_flush_all(pool);
    if (err != DB_SUCCESS) {
        return err;
    }
    while (pool->lru_last != NULL) {
        buf_block_release(pool, pool->lru_last);
        pool->env->stats.pages_evicted++;
    }
    return DB_SUCCESS;
}

void buf_block_discard(buf_pool_t *pool, buf_block_t *block)
{
    CHECK(block->fix_count == 0);
    PROBE_MARK(pool->env->probe, "page_discard space=%" PRIu32 " page=%" PRIu32, block->id.space,
               block->id.page_no);
    buf_flush_remove(pool, block);
    block->observer = 0;
}

dberr_t buf_discard_space(buf_pool_t *pool, space_id_t space)
{
    pool->env->stats.spaces_dropped_in_flight += buf_batch_has_space(pool, space);
    dberr_t err = buf_batch_finish(pool);
    if (err != DB_SUCCESS) {
        return err;
    }
    buf_scrub_forget_space(pool, space);
    buf_block_t *block = pool->lru_last;
    while (block != NULL) {
        buf_block_t *next = block->lru_prev;
        if (block->id.space == space) {
            if (block->oldest_modification != 0) {
                buf_block_discard(pool, block);
            }
            buf_block_release(pool, block);
        }
        block = next;
    }
    return DB_SUCCESS;
}
