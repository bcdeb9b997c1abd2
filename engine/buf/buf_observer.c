/** The flush observer: what becomes of the pages of a load without redo.

Place: beside buf_flush.c. A page carries the stamp of its load (block->observer) from the commit of
the NO_REDO mtr to its write, its next initialisation, or the end of an interrupted load. The stamp
tells whose it is, not the space.

Invariants
1. only the load's pages are written here, each by itself, from the oldest on, in parts: between two
   of them the page cleaner and eviction may write any page, and the next part begins anew at the
   head of the list. The walk costs what the space's dirty pages cost;
2. (I16) when buf_observer_sync returns behind the last part, every page of the load is home and
   fsynced, whoever wrote it;
3. an interrupted load's pages leave the flush list unwritten. Their frames stay, looking clean: the
   tree must be free by then, so that nobody reads them before they are created again, and so that
   the checkpoint may pass what they held. */
#include <inttypes.h>

#include "base/check.h"
#include "buf/buf_int.h"

/** Collects the oldest dirty pages of the load, at most max, in the order of the flush list.
@return their number */
static uint32_t buf_observer_collect(buf_pool_t *pool, const fil_space_t *space,
                                     index_id_t observer, uint32_t max)
{
    CHECK(observer != 0);
    uint32_t n = 0;
    buf_block_t *block = space->flush_list;
    while (block != NULL && n < max) {
        if (block->observer == observer) {
            pool->collected[n++] = block;
        }
        pool->env->stats.flush_list_visited++;
        block = block->space_next != space->flush_list ? block->space_next : NULL;
    }
    return n;
}

static dberr_t buf_observer_write(buf_pool_t *pool, buf_block_t *block, index_id_t observer)
{
    dberr_t err = buf_yield(pool);
    AND_THEN(err, buf_block_wait(pool, block));
    if (err != DB_SUCCESS || block->observer != observer) {
        return err; /* the page cleaner was faster */
    }
    if (block->freed) {
        /* The load has given it up: it is written some time later, like any freed page. */
        block->observer = 0;
        return DB_SUCCESS;
    }
    return buf_dblwr_write_single(pool, block);
}

dberr_t buf_observer_flush(buf_pool_t *pool, space_id_t space_id, index_id_t observer,
                           uint32_t max_pages, bool *over)
{
    CHECK(pool->n_fixed == 0 && max_pages > 0);
    fil_space_t *space = fil_space_get(pool->fil, space_id);
    CHECK(space != NULL);
    uint32_t n = buf_observer_collect(pool, space, observer, max_pages);
    PROBE_MARK(pool->env->probe,
               "flush_observer space=%" PRIu32 " index=%" PRIu64 " pages=%" PRIu32, space_id,
               observer, n);
    for (uint32_t i = 0; i < n; i++) {
        TRY(buf_observer_write(pool, pool->collected[i], observer));
    }
    *over = n < max_pages;
    return DB_SUCCESS;
}

dberr_t buf_observer_sync(buf_pool_t *pool, space_id_t space_id)
{
    TRY(buf_batch_finish(pool));
    return buf_sync_wait(pool, fil_space_get(pool->fil, space_id));
}

dberr_t buf_observer_drop(buf_pool_t *pool, space_id_t space_id, index_id_t observer)
{
    fil_space_t *space = fil_space_get(pool->fil, space_id);
    CHECK(space != NULL);
    TRY(buf_batch_finish(pool));
    uint32_t n = buf_observer_collect(pool, space, observer, pool->n_blocks);
    for (uint32_t i = 0; i < n; i++) {
        buf_block_discard(pool, pool->collected[i]);
    }
    return DB_SUCCESS;
}
