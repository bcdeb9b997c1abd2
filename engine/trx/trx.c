/** One transaction: begin, savepoint, rollback, commit.

Place: above undo.c and rollback.c, below trx_sys.c.

Invariants
1. a transaction without changes has no id and no undo log, and its end writes nothing;
2. commit is the one mini-transaction of undo_commit(); with flush_log_at_trx_commit = 1 it is
   durable before the caller hears of it (I1);
3. rollback undoes the last record, then removes it from the log: a crash in between repeats that
   one step, which is harmless (row_undo);
4. an end that fails half way poisons the handle: nobody may go on as if the transaction were over.
   */
#include <inttypes.h>
#include <stdlib.h>

#include "trx/trx_int.h"

#define TRX_PURGE_RECORDS 8U /**< at most so many in one commit's wait */

dberr_t trx_begin(trx_sys_t *sys, trx_t **out)
{
    return trx_sys_add(sys, out);
}

const dict_index_t *trx_error_index(const trx_t *trx)
{
    return trx->error_index;
}

/** Uncounts the tables whose first change came at or after this savepoint, and is undone. */
static void trx_release_tables(trx_t *trx, uint64_t savepoint)
{
    while (trx->n_tables > 0 && trx->tables[trx->n_tables - 1].at >= savepoint) {
        trx->n_tables--;
        dict_table_t *table = dict_table_by_id(trx->sys->dict, trx->tables[trx->n_tables].id);
        if (table != NULL && table->n_trx > 0) {
            table->n_trx--;
        }
    }
}

void trx_end(trx_t *trx)
{
    trx_sys_t *sys = trx->sys;
    trx_release_tables(trx, 0);
    trx_t **link = &sys->first;
    while (*link != trx) {
        link = &(*link)->next;
    }
    *link = trx->next;
    free(trx->tables);
    free(trx);
}

uint64_t trx_savepoint(const trx_t *trx)
{
    return trx->n_recs;
}

/** What follows a failure in the middle of a rollback or a commit: the transaction is neither there
nor gone, so the handle is poisoned. Recovery ends the transaction. */
static dberr_t trx_broken(trx_t *trx, dberr_t err)
{
    env_t *env = trx_sys_env(trx->sys);
    if (err == DB_SUCCESS) {
        return DB_SUCCESS;
    }
    if (err != DB_IO_ERROR && err != DB_CORRUPTION) {
        err = err_set(&env->err, DB_IO_ERROR, "transaction %" PRIu64 " cannot be ended: %.400s",
                      trx->id, env->err.msg);
    }
    env_poison(env);
    return err;
}

static dberr_t trx_rollback_last(trx_t *trx)
{
    trx_sys_t *sys = trx->sys;
    undo_rec_t rec;
    roll_ptr_t roll_ptr = 0;
    TRY(undo_read_last(trx, sys->bufs.undo, &rec, &roll_ptr));
    TRY(row_undo(trx, &rec, roll_ptr));
    PROBE_POINT(trx_sys_env(sys)->probe, "trx.rollback_step");
    return undo_truncate_last(trx);
}

dberr_t trx_rollback_to(trx_t *trx, uint64_t savepoint)
{
    dberr_t err = DB_SUCCESS;
    while (err == DB_SUCCESS && trx->n_recs > savepoint) {
        err = trx_rollback_last(trx);
    }
    if (err == DB_SUCCESS) {
        trx_release_tables(trx, savepoint);
    }
    return trx_broken(trx, err);
}

dberr_t trx_rollback(trx_t *trx)
{
    dberr_t err = DB_SUCCESS;
    if (trx->undo_first != FIL_NULL) {
        err = trx_rollback_to(trx, 0);
        AND_THEN(err, trx_broken(trx, undo_free_active(trx)));
    }
    if (err == DB_SUCCESS) {
        trx_sys_env(trx->sys)->stats.trx_rollbacks++;
    }
    trx_end(trx);
    return err;
}

/** Purge in its own thread, while a commit waits: it may take the records of that very transaction,
because what it logs about them comes behind the commit, and is lost if that is. */
static dberr_t trx_purge_meanwhile(trx_sys_t *sys)
{
    env_t *env = trx_sys_env(sys);
    if (sys->purge_interval == 0 || sched_draw(&env->sched, sys->purge_interval) != 0) {
        return DB_SUCCESS;
    }
    bool done = false;
    uint64_t before = env->stats.purged_records;
    dberr_t err = trx_purge_step(sys, 1 + sched_draw(&env->sched, TRX_PURGE_RECORDS), &done);
    env->stats.purged_amid_commit += env->stats.purged_records - before;
    return err;
}

/** rows: the transaction has changed rows only, not the catalogue, so that purge finds all tables
as the catalogue in memory has them. */
static dberr_t trx_commit_low(trx_t *trx, uint32_t flush_mode, bool rows)
{
    trx_sys_t *sys = trx->sys;
    env_t *env = trx_sys_env(sys);
    if (trx->n_recs == 0) {
        return trx->undo_first == FIL_NULL ? DB_SUCCESS : undo_free_active(trx);
    }
    lsn_t end_lsn = 0;
    TRY(undo_commit(trx, &end_lsn));
    PROBE_POINT(env->probe, "trx.commit_logged");
    dberr_t err = rows ? trx_purge_meanwhile(sys) : DB_SUCCESS;
    if (err == DB_SUCCESS && flush_mode != 0) {
        err = buf_log_wait(sys->pool, end_lsn, flush_mode == 1);
    }
    if (err == DB_SUCCESS && flush_mode == 1) {
        PROBE_POINT(env->probe, "trx.commit_durable");
    }
    return err;
}

static dberr_t trx_commit_and_end(trx_t *trx, uint32_t flush_mode, bool rows)
{
    dberr_t err = trx_broken(trx, trx_commit_low(trx, flush_mode, rows));
    if (err == DB_SUCCESS) {
        trx_sys_env(trx->sys)->stats.trx_commits++;
    }
    trx_end(trx);
    return err;
}

dberr_t trx_commit(trx_t *trx)
{
    return trx_commit_and_end(trx, trx->sys->flush_mode, true);
}

dberr_t trx_commit_durable(trx_t *trx)
{
    return trx_commit_and_end(trx, 1, false);
}
