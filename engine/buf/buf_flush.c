/** What walks the lists of dirty pages: page cleaning, flushing a space, discarding.

Place: above buf_list.c and buf_batch.c, which writes. The calls here finish the batch in flight
before they choose pages.

Nothing here runs with a page pinned: a pinned page may be half changed. */
#include "base/check.h"
#include "buf/buf_int.h"

dberr_t buf_flush_list(buf_pool_t *pool, uint32_t max_pages, lsn_t lsn_limit, uint32_t *n_flushed)
{
    CHECK(pool->n_fixed == 0);
    TRY(buf_batch_finish(pool));
    uint32_t n = 0;
    for (buf_block_t *block = pool->flush_first;
         block != NULL && n < max_pages && block->oldest_modification < lsn_limit;
         block = block->flush_next) {
        pool->collected[n++] = block;
    }
    dberr_t err = buf_batch_write(pool, pool->collected, n);
    if (err == DB_SUCCESS && n_flushed != NULL) {
        *n_flushed = n;
    }
    TRY(err);
    return buf_scrub_pages(pool, max_pages);
}

dberr_t buf_flush_space(buf_pool_t *pool, space_id_t space_id)
{
    CHECK(pool->n_fixed == 0);
    fil_space_t *space = fil_space_get(pool->fil, space_id);
    CHECK(space != NULL);
    TRY(buf_batch_finish(pool));
    uint32_t n = 0;
    buf_block_t *block = space->flush_list;
    while (block != NULL) {
        pool->collected[n++] = block;
        pool->env->stats.flush_list_visited++;
        block = block->space_next != space->flush_list ? block->space_next : NULL;
    }
    TRY(buf_batch_write(pool, pool->collected, n));
    TRY(fil_sync(pool->fil, space));
    TRY(buf_scrub_pages(pool, UINT32_MAX)); /* nothing comes after it */
    return fil_sync(pool->fil, space);
}

dberr_t buf_flush_all(buf_pool_t *pool)
{
    TRY(buf_flush_list(pool, UINT32_MAX, LSN_MAX, NULL));
    return fil_sync_all(pool->fil);
}

dberr_t buf_flush_and_evict_all(buf_pool_t *pool)
{
    TRY(buf_flush_all(pool));
    while (pool->lru_last != NULL) {
        buf_block_release(pool, pool->lru_last);
        pool->env->stats.pages_evicted++;
    }
    return DB_SUCCESS;
}

dberr_t buf_discard_space(buf_pool_t *pool, space_id_t space)
{
    pool->env->stats.spaces_dropped_in_flight += buf_batch_has_space(pool, space);
    TRY(buf_batch_finish(pool));
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
