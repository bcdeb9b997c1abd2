/** Pages written one by one, by single-page flushes: those of a load without redo, and all of a
space that is exported. And the flush observer: what becomes of the pages of such a load.

Place: beside buf_flush.c. A page carries the stamp of its load (block->observer) from the commit of
the NO_REDO mtr to its write, its next initialisation, or the end of an interrupted load. The stamp
tells whose it is, not the space.

Invariants
1. of a load only its pages are written, each by itself, from the oldest on, in parts: between two
   of them the page cleaner and eviction may write any page, and the next part begins anew at the
   head of the list. The walk costs what the space's dirty pages cost;
2. (I16) when buf_observer_sync returns behind the last part, every page of the load is home and
   fsynced, whoever wrote it;
3. an interrupted load's pages leave the flush list unwritten, and the checkpoint may pass what they
   held. Their frames stay, looking clean: nobody reads them before they are created again, because
   nobody finds their tree, which is freed through its segments. A page that has a logged change
   which is not home stays on the list, like any other: behind a checkpoint that passes its
   initialisation its home could not take the records that follow, and the root has the headers of
   the segments. */
#include <inttypes.h>

#include "base/check.h"
#include "buf/buf_int.h"

#define OBSERVER_ANY 0U /**< all dirty pages of a space, of no load too */

/** Collects the oldest dirty pages of the load, at most max, in the order of the flush list.
@return their number */
static uint32_t buf_observer_collect(buf_pool_t *pool, const fil_space_t *space,
                                     index_id_t observer, uint32_t max)
{
    uint32_t n = 0;
    buf_block_t *block = space->flush_list;
    while (block != NULL && n < max) {
        if (observer == OBSERVER_ANY || block->observer == observer) {
            pool->collected[n++] = block;
        }
        pool->env->stats.flush_list_visited++;
        block = block->space_next != space->flush_list ? block->space_next : NULL;
    }
    return n;
}

/** Is there still something to do for this page? The page cleaner may have been faster. */
static bool buf_observer_is_due(const buf_block_t *block, space_id_t space, index_id_t observer)
{
    return block->oldest_modification != 0 && block->id.space == space
           && (observer == OBSERVER_ANY || block->observer == observer);
}

static dberr_t buf_observer_write(buf_pool_t *pool, buf_block_t *block, space_id_t space,
                                  index_id_t observer)
{
    TRY(buf_yield(pool));
    TRY(buf_block_wait(pool, block));
    if (!buf_observer_is_due(block, space, observer)) {
        return DB_SUCCESS;
    }
    if (block->freed && observer != OBSERVER_ANY) {
        /* The load has given it up: it is written some time later, like any freed page. */
        block->observer = 0;
        return DB_SUCCESS;
    }
    pool->env->stats.pages_exported_singly += observer == OBSERVER_ANY;
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
        TRY(buf_observer_write(pool, pool->collected[i], space_id, observer));
    }
    *over = n < max_pages;
    return DB_SUCCESS;
}

dberr_t buf_observer_sync(buf_pool_t *pool, space_id_t space_id)
{
    TRY(buf_batch_finish(pool));
    return buf_sync_wait(pool, fil_space_get(pool->fil, space_id));
}

dberr_t buf_flush_for_export(buf_pool_t *pool, space_id_t space_id)
{
    bool over = false;
    TRY(buf_observer_flush(pool, space_id, OBSERVER_ANY, pool->n_blocks, &over));
    return buf_flush_space(pool, space_id);
}

dberr_t buf_observer_drop(buf_pool_t *pool, space_id_t space_id, index_id_t observer)
{
    fil_space_t *space = fil_space_get(pool->fil, space_id);
    CHECK(space != NULL && observer != OBSERVER_ANY);
    TRY(buf_batch_finish(pool));
    uint32_t n = buf_observer_collect(pool, space, observer, pool->n_blocks);
    for (uint32_t i = 0; i < n; i++) {
        buf_block_t *block = pool->collected[i];
        block->observer = 0;
        if (!block->logged) {
            buf_block_discard(pool, block);
        }
    }
    return DB_SUCCESS;
}
