/** Recovery's two entries: what is done in which order.

Place: above everything that stores, below api/, which calls recv_redo() before the catalogue can be
read and recv_finish() after.

    recv_redo    scan -> doublewrite copies listed -> spaces -> torn pages that a converted log left
    blanked -> log writable (new epoch) -> files extended -> doublewrite restore -> apply in batches
    recv_finish  rollback (catalogue first, then it is loaded, then users) -> incomplete DDL

Invariants
1. recovery takes no checkpoint of its own: C stays where it is until log or age ask for another,
   and a crash in or after recovery starts over from it, over a log that is longer by what recovery
   and the work after it have appended (I17). So nothing that recovery found in the log is
   forgotten: initialisations, INDEX_LOADs, file names;
2. refusals (I30) name their cause; those of the scan come before anything is changed;
3. every step may be cut short and repeated. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "recv/recv_int.h"

static void recv_free(recv_t *recv)
{
    for (uint32_t i = 0; i < recv->spaces.n; i++) {
        recv_space_t *space = recv_table_at(&recv->spaces, i);
        free(space->name);
        free(space->path);
    }
    recv_table_reset(&recv->spaces);
    recv_table_reset(&recv->hist);
    recv_batch_reset(&recv->batch);
    while (recv->events != NULL) {
        recv_event_t *next = recv->events->next;
        free(recv->events->path);
        free(recv->events->path2);
        free(recv->events);
        recv->events = next;
    }
    free(recv->page_buf);
    free(recv);
}

static dberr_t recv_create(log_t *log, fil_t *fil, buf_pool_t *pool,
                           const engine_options_t *options, recv_t **out)
{
    env_t *env = fil_env(fil);
    recv_t *recv = calloc(1, sizeof(*recv));
    byte *page_buf = malloc(fil_page_size(fil));
    if (recv == NULL || page_buf == NULL) {
        free(recv);
        free(page_buf);
        return err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for recovery");
    }
    recv->env = env;
    recv->log = log;
    recv->fil = fil;
    recv->pool = pool;
    recv->page_size = fil_page_size(fil);
    recv->memory_max = options->recv_memory;
    recv->batch.pages.entry_size = sizeof(recv_page_t);
    recv->hist.entry_size = sizeof(recv_hist_t);
    recv->spaces.entry_size = sizeof(recv_space_t);
    recv->events_tail = &recv->events;
    recv->page_buf = page_buf;
    *out = recv;
    return DB_SUCCESS;
}

static dberr_t recv_run(recv_t *recv)
{
    TRY(recv_scan(recv));
    TRY(recv_dblwr_collect(recv));
    TRY(recv_spaces_open(recv));
    TRY(recv_dblwr_converted(recv));
    /* Syncs the log file too: what was read from it is durable before any page follows it. */
    TRY(log_start_writing(recv->log, &recv->ckpt, recv->end_lsn));
    TRY(recv_spaces_extend(recv));
    TRY(recv_dblwr_restore(recv));
    TRY(recv_apply(recv));
    PROBE_POINT(recv->env->probe, "recv.applied");
    return DB_SUCCESS;
}

dberr_t recv_redo(log_t *log, fil_t *fil, buf_pool_t *pool, const engine_options_t *options)
{
    CHECK(fil_first(fil) == NULL);
    CHECK(log_info(log)->page_size == fil_page_size(fil));
    recv_t *recv = NULL;
    TRY(recv_create(log, fil, pool, options, &recv));
    dberr_t err = recv_run(recv);
    recv_free(recv);
    /* Bad bytes met on the way, whoever met them, make the image unrecoverable. */
    return err == DB_CORRUPTION ? DB_UNRECOVERABLE : err;
}

static void recv_on_rollback(void *ctx, trx_id_t id)
{
    env_t *env = ctx;
    PROBE_MARK(env->probe, "recv_rollback trx=%" PRIu64, id);
    env->stats.recv_trx_rolled_back++;
}

static void recv_on_drop_index(void *ctx, space_id_t space, index_id_t index)
{
    env_t *env = ctx;
    PROBE_MARK(env->probe, "recv_drop_index space=%" PRIu32 " index=%" PRIu64, space, index);
    env->stats.recv_indexes_dropped++;
}

static void recv_on_drop_table(void *ctx, table_id_t table)
{
    env_t *env = ctx;
    PROBE_MARK(env->probe, "recv_drop_table table=%" PRIu64, table);
    env->stats.recv_tables_dropped++;
}

static void recv_on_finish_swap(void *ctx, table_id_t table)
{
    env_t *env = ctx;
    PROBE_MARK(env->probe, "recv_finish_swap table=%" PRIu64, table);
    env->stats.recv_swaps_finished++;
}

dberr_t recv_finish(trx_sys_t *sys)
{
    buf_pool_t *pool = trx_sys_pool(sys);
    env_t *env = buf_env(pool);
    TRY(trx_sys_rollback_resurrected(sys, recv_on_rollback, env));
    PROBE_POINT(env->probe, "recv.rolled_back");
    const ddl_cleanup_hooks_t hooks = {.ctx = env,
                                       .drop_index = recv_on_drop_index,
                                       .drop_table = recv_on_drop_table,
                                       .finish_swap = recv_on_finish_swap};
    TRY(ddl_recover(sys, &hooks));
    PROBE_POINT(env->probe, "recv.dropped");
    PROBE_MARK(env->probe, "recv_done lsn=%" PRIu64, log_lsn(buf_log(pool)));
    PROBE_POINT(env->probe, "recv.done");
    return DB_SUCCESS;
}
