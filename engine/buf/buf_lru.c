/** Eviction.

Place: above buf_list.c and buf_batch.c. The victim is the least recently used unpinned page. If it
is dirty, the dirty pages nearest to the tail are written with it in one doublewrite batch, as
InnoDB's page cleaner does, so that the next misses find clean victims; or, as a user's thread does
that comes too early for that, it is written by itself. A batch in flight is driven to its end, or
passed by such a write. The schedule draws which.

Invariants
1. the choice depends on the order of page accesses only: the same accesses give the same I/O;
2. a pinned page is neither written nor evicted, and a page on its way home is not evicted. */
#include <inttypes.h>

#include "base/check.h"
#include "buf/buf_int.h"

/** The least recently used page that nobody uses or writes, or NULL. */
static buf_block_t *buf_lru_victim(const buf_pool_t *pool)
{
    buf_block_t *block = pool->lru_last;
    while (block != NULL && (block->fix_count > 0 || block->in_flight)) {
        block = block->lru_prev;
    }
    return block;
}

/** Writes the dirty unpinned pages nearest to the tail, starting with the victim. */
static dberr_t buf_lru_flush_tail(buf_pool_t *pool, buf_block_t *victim)
{
    uint32_t max =
        pool->dblwr_pages < BUF_LRU_FLUSH_PAGES ? pool->dblwr_pages : BUF_LRU_FLUSH_PAGES;
    buf_block_t *chosen[BUF_LRU_FLUSH_PAGES];
    uint32_t n = 0;
    for (buf_block_t *block = victim; block != NULL && n < max; block = block->lru_prev) {
        if (block->fix_count == 0 && block->oldest_modification != 0) {
            chosen[n++] = block;
            pool->env->stats.load_pages_evicted += block->observer != 0;
        }
    }
    return buf_batch_write(pool, chosen, n);
}

/** Writes the victim by itself, and waits until it is durable, as InnoDB does. */
static dberr_t buf_lru_flush_victim(buf_pool_t *pool, buf_block_t *victim)
{
    stats_t *stats = &pool->env->stats;
    stats->load_pages_evicted += victim->observer != 0;
    stats->pages_evicted_singly++;
    TRY(buf_dblwr_write_single(pool, victim));
    return fil_sync(pool->fil, fil_space_get(pool->fil, victim->id.space));
}

/** Brings a clean page towards the tail: finishes the batch in flight, or writes the victim. */
static dberr_t buf_lru_make_clean(buf_pool_t *pool, buf_block_t *victim)
{
    if (victim != NULL && sched_draw(&pool->env->sched, BUF_LRU_SINGLE) == 0) {
        return buf_lru_flush_victim(pool, victim);
    }
    if (pool->batch.state != BATCH_NONE) {
        return buf_batch_finish(pool);
    }
    if (victim == NULL) {
        return err_set(&pool->env->err, DB_OUT_OF_SPACE,
                       "all %" PRIu32 " pages of the buffer pool are in use", pool->n_blocks);
    }
    return buf_lru_flush_tail(pool, victim);
}

dberr_t buf_lru_get_free(buf_pool_t *pool, buf_block_t **out)
{
    while (pool->free_first == NULL) {
        buf_block_t *victim = buf_lru_victim(pool);
        if (victim == NULL || victim->oldest_modification != 0) {
            TRY(buf_lru_make_clean(pool, victim));
            continue;
        }
        buf_block_release(pool, victim);
        pool->env->stats.pages_evicted++;
    }
    buf_block_t *block = pool->free_first;
    pool->free_first = block->hash_next;
    *out = block;
    return DB_SUCCESS;
}

dberr_t buf_lru_evict_all(buf_pool_t *pool)
{
    TRY(buf_batch_finish(pool));
    buf_block_t *victim = buf_lru_victim(pool);
    while (victim != NULL) {
        if (victim->oldest_modification != 0) {
            TRY(buf_lru_flush_tail(pool, victim));
        }
        buf_block_release(pool, victim);
        pool->env->stats.pages_evicted++;
        victim = buf_lru_victim(pool);
    }
    return DB_SUCCESS;
}
