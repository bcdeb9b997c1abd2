/** The page cleaner, and the points at which it works: the yield points.

Place: above buf_batch.c, whose steps the cleaner takes one at a time; beside buf_flush.c and
buf_checkpoint.c, which wait here.

A yield point is a place at which a thread would wait, or could be passed by another. What happens there
is drawn from the schedule: nothing, one step of the batch in flight, a new batch of the oldest dirty
pages, or a checkpoint, as InnoDB's master thread takes them at any moment; now and then a full one, whose C no
dirty page holds back. So other work, half-finished
batches and checkpoints meet in every order, and in the same one when the run is repeated.

Invariants
1. a yield point changes nothing that a caller without the page's latch could see: pages go home,
   frames do not change;
2. no page is pinned where a checkpoint is taken, and none is taken within another. */
#include "base/check.h"
#include "buf/buf_int.h"

/** Starts a batch of the oldest dirty pages, if there are any; how many is drawn. */
static void buf_cleaner_start(buf_pool_t *pool)
{
    uint32_t max =
        pool->dblwr_pages < BUF_CLEANER_STEP_PAGES ? pool->dblwr_pages : BUF_CLEANER_STEP_PAGES;
    uint32_t wanted = 1 + sched_draw(&pool->env->sched, max);
    buf_block_t *chosen[BUF_CLEANER_STEP_PAGES];
    uint32_t n = 0;
    for (buf_block_t *block = pool->flush_first; block != NULL && n < wanted;
         block = block->flush_next) {
        if (block->fix_count == 0) {
            chosen[n++] = block;
        }
    }
    if (n > 0) {
        buf_batch_submit(pool, chosen, n);
    }
}

/** An fsync under way takes its time: the step that ends it may have to wait for several turns. */
static dberr_t buf_cleaner_step(buf_pool_t *pool)
{
    if (pool->scrub.n > 0 && sched_draw(&pool->env->sched, BUF_SCRUB_STEPS) == 0) {
        return buf_scrub_pages(pool, 1 + sched_draw(&pool->env->sched, BUF_SCRUB_STEPS));
    }
    if (pool->batch.state == BATCH_NONE) {
        buf_cleaner_start(pool);
        return DB_SUCCESS;
    }
    if (pool->batch.state == BATCH_SYNCING && sched_draw(&pool->env->sched, BUF_SYNC_STEPS) != 0) {
        return DB_SUCCESS;
    }
    return buf_batch_step(pool);
}

void buf_set_copier(buf_pool_t *pool, const buf_copier_t *copier)
{
    pool->copier = copier != NULL ? *copier : (buf_copier_t){.step = NULL};
}

dberr_t buf_yield(buf_pool_t *pool)
{
    sched_t *sched = &pool->env->sched;
    if (pool->copier.step != NULL) {
        pool->copier.step(pool->copier.ctx);
    }
    if (pool->cleaner_interval == 0 || sched_draw(sched, pool->cleaner_interval) != 0) {
        return DB_SUCCESS;
    }
    bool is_turn = sched_draw(sched, BUF_CLEANER_CHECKPOINT) == 0;
    if (!is_turn || pool->in_checkpoint || pool->n_fixed > 0) {
        return buf_cleaner_step(pool);
    }
    if (sched_draw(sched, BUF_CLEANER_FULL) != 0) {
        return buf_checkpoint(pool);
    }
    pool->env->stats.full_checkpoints_amid++;
    return buf_checkpoint_full(pool);
}

/** Until the log is durable up to lsn, or it is this caller's turn to fsync it. */
static dberr_t buf_log_sync_turns(buf_pool_t *pool, lsn_t lsn)
{
    stats_t *stats = &pool->env->stats;
    uint64_t before = stats->data_writes + stats->os_log_written;
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; err == DB_SUCCESS && i < BUF_SYNC_STEPS; i++) {
        if (log_flushed_lsn(pool->log) >= lsn) {
            break;
        }
        err = buf_yield(pool);
    }
    stats->log_waits_overtaken += stats->data_writes + stats->os_log_written != before;
    return err;
}

dberr_t buf_log_wait(buf_pool_t *pool, lsn_t lsn, bool sync)
{
    dberr_t err = buf_yield(pool);
    if (err == DB_SUCCESS) {
        err = log_write_up_to(pool->log, lsn, false);
    }
    if (err == DB_SUCCESS && sync) {
        err = buf_log_sync_turns(pool, lsn);
    }
    return err == DB_SUCCESS && sync ? log_write_up_to(pool->log, lsn, true) : err;
}

dberr_t buf_sync_wait(buf_pool_t *pool, fil_space_t *space)
{
    fil_sync_t sync;
    dberr_t err = fil_sync_begin(pool->fil, space, &sync);
    uint32_t n = sync.space != NULL ? 1 + sched_draw(&pool->env->sched, 2 * BUF_SYNC_STEPS) : 0;
    for (uint32_t i = 0; err == DB_SUCCESS && i < n; i++) {
        err = buf_yield(pool);
    }
    return err == DB_SUCCESS ? fil_sync_end(pool->fil, &sync) : err;
}
