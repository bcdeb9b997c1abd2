/* Statements that are carried out in steps: their beginning, the order of their steps, their end.
What a statement does in them says its table (ddl_statement_t).

Place: ddl/, above ddl_online.c; below the statements (ddl_index.c, ddl_rebuild.c, ...) and
ddl_alter.c, which chooses one.

Invariants
1. No page is pinned between two calls.
2. Between two calls anything may happen but DDL of the table that is read, and changes of it unless
   they are watched (LOCK=NONE). `building` and `watch` of its cached object say so. The build has
   its own copy of that object.
3. A duplicate in a unique index ends the build at the same point as the commit would: steps go no
   further, and the last call refuses. So the statements alone tell which of them fails. LOCK=NONE:
   the last call looks for it.
4. Progress is an estimate by the work that is known. It never falls, though the table, and what is
   logged of its changes, may grow meanwhile. All of it means that nothing is left but the last
   call. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/check.h"
#include "ddl/ddl_online.h"

/* ---- beginning ---- */

static dberr_t ddl_build_create(trx_sys_t *sys, const ddl_statement_t *statement,
                                const ddl_alter_t *alter, const dict_table_t *table,
                                ddl_build_t **out)
{
    ddl_build_t *build = calloc(1, sizeof(*build));
    if (build == NULL) {
        return err_set(&ddl_env(sys)->err, DB_OUT_OF_MEMORY, "no memory for an index build");
    }
    *out = build;
    build->sys = sys;
    build->statement = statement;
    build->step = statement->steps;
    build->unlogged = buf_log_optimize_ddl(trx_sys_pool(sys));
    build->n_new = ddl_alter_new_indexes(alter);
    build->combined = alter->kind == ALTER_CLAUSES && alter->n_clauses > 1;
    return dict_table_copy(trx_sys_dict(sys), table, &build->source);
}

/** Is there nothing to do in a step that comes now? */
static bool ddl_step_is_passed(const ddl_build_t *build, const ddl_step_t *step)
{
    return (step->times == EACH_INDEX && build->current == build->n)
           || (step->times != UNTIL_COMMIT && step->wanted != NULL && !step->wanted(build));
}

dberr_t ddl_build_start(trx_sys_t *sys, const ddl_statement_t *statement, const ddl_alter_t *alter,
                        const engine_options_t *options, ddl_build_t **out)
{
    dict_t *dict = trx_sys_dict(sys);
    dict_table_t *table = NULL;
    ddl_build_t *build = NULL;
    dberr_t err = ddl_table_lock(sys, alter->table, &table);
    AND_THEN(err, ddl_build_create(sys, statement, alter, table, &build));
    if (err == DB_SUCCESS) {
        build->options = options;
        err = statement->begin(build, alter);
    }
    if (err != DB_SUCCESS) {
        ddl_build_free(build);
        return err;
    }
    dict_table_set_building(dict, build->source->id, true);
    dict_table_set_watch(dict, build->source->id, build->watch);
    if (alter->lock == LOCK_EXCLUSIVE) {
        dict_table_set_exclusive(dict, build->source->id);
    }
    while (ddl_step_is_passed(build, build->step)) {
        build->step++;
    }
    *out = build;
    return DB_SUCCESS;
}

dberr_t ddl_build_commit(ddl_build_t *build, const ddl_change_t *change)
{
    dict_table_t *cached = NULL;
    TRY(dict_table_copy(trx_sys_dict(build->sys), build->table, &cached));
    return ddl_commit_put(build->sys, change, cached);
}

dberr_t ddl_build_make_durable(ddl_build_t *build)
{
    buf_pool_t *pool = build_pool(build);
    return buf_log_wait(pool, log_lsn(buf_log(pool)), true);
}

/* ---- steps ---- */

bool ddl_build_is_loaded(const ddl_build_t *build)
{
    const ddl_step_t *step = build->step;
    return build->duplicate != NULL || step->run == NULL
           || (step->times == UNTIL_COMMIT && !step->wanted(build));
}

bool ddl_build_is_background(const ddl_build_t *build)
{
    return build->statement->background;
}

/** Goes on to the next step; behind those of an index to the next index, behind those of a scan to
the next scan. */
static void ddl_build_next(ddl_build_t *build)
{
    do {
        bool ends = build->step->times == EACH_INDEX && build->step[1].times != EACH_INDEX;
        build->step++;
        if (ends && build->current < build->n && ++build->current < build->n) {
            ddl_times_t times = build->current < build->scan_end ? EACH_INDEX : EACH_SCAN;
            build->step = build->statement->steps;
            while (build->step->times != times) {
                build->step++;
            }
        }
    } while (ddl_step_is_passed(build, build->step));
}

/** What is done of a step's work, in 10000ths of its share, and for how many indexes it is done.
The clustered index of a new table is one more of the first scan. */
static uint64_t ddl_step_work(const ddl_build_t *build, const ddl_step_t *step, uint32_t position,
                              uint32_t *times)
{
    uint64_t part = step < build->step ? PROGRESS_MAX : step == build->step ? position : 0;
    uint32_t clustered = step->times == EACH_SCAN && build->clustered != NULL;
    uint32_t before = build->current > 0 ? build->current + clustered : 0;
    uint32_t end = step->times == EACH_SCAN ? build->scan_end : build->current + 1;
    *times = 1;
    if (step->times == ONCE || step->times == UNTIL_COMMIT) {
        return part;
    }
    *times = build->n + clustered;
    end = end < build->n ? end : build->n;
    return (uint64_t)before * PROGRESS_MAX + (end + clustered - before) * part;
}

static dberr_t ddl_build_note_progress(ddl_build_t *build)
{
    uint32_t position = 0;
    uint64_t work = 0;
    uint64_t total = 0;
    uint64_t progress = PROGRESS_MAX;
    if (!ddl_build_is_loaded(build)) {
        const ddl_step_t *at = build->step;
        TRY(at->position != NULL ? at->position(build, &position) : DB_SUCCESS);
        for (const ddl_step_t *step = build->statement->steps; step->run != NULL; step++) {
            uint32_t times = 0;
            work += step->share * ddl_step_work(build, step, position, &times);
            total += (uint64_t)step->share * times;
        }
        progress = work / total;
        CHECK(progress < PROGRESS_MAX);
    }
    if (build->progress < progress) {
        build->progress = (uint32_t)progress;
    }
    return DB_SUCCESS;
}

ddl_progress_t ddl_build_progress(const ddl_build_t *build)
{
    ddl_progress_t progress = {.pct_progress = build->progress};
    ddl_online_use(build, &progress);
    return progress;
}

/* ---- end ---- */

/** The table is everybody's again; one that was replaced is gone. */
static void ddl_build_unlock(const ddl_build_t *build)
{
    dict_t *dict = trx_sys_dict(build->sys);
    if (dict_table_by_id(dict, build->source->id) != NULL) {
        dict_table_set_building(dict, build->source->id, false);
    }
}

/** The last call: nothing may change meanwhile. */
static dberr_t ddl_build_finish(ddl_build_t *build)
{
    if (build->duplicate != NULL) {
        return ddl_table_refuse_duplicate(build->sys, build->source, build->duplicate);
    }
    TRY(build_is_online(build) ? ddl_online_finish(build) : DB_SUCCESS);
    TRY(build->statement->commit(build));
    build->committed = true;
    stats_t *stats = &build_env(build)->stats;
    stats->alters_combined += build->combined;
    stats->rebuilds_combined += build->combined && build->table != build->source;
    ddl_build_unlock(build);
    ddl_online_stop(build);
    uint32_t n = 0;
    const dict_index_t *made = ddl_load_indexes(build, &n);
    for (uint32_t i = 0; i < n; i++) {
        PROBE_MARK(build_env(build)->probe, "load_end space=%u index=%" PRIu64, build->table->space,
                   made[i].id);
    }
    return DB_SUCCESS;
}

dberr_t ddl_build_step(ddl_build_t *build, uint32_t max_rows, bool *done)
{
    CHECK(max_rows > 0 && !build->committed);
    *done = false;
    if (build->aborting) {
        return err_set(&build_env(build)->err, DB_ERROR,
                       "the build of table '%s' failed and could not be aborted",
                       build->source->name);
    }
    if (ddl_build_is_loaded(build)) {
        dberr_t end = ddl_build_finish(build);
        *done = end == DB_SUCCESS;
        return end;
    }
    bool over = false;
    dberr_t err = build->step->run(build, max_rows, &over);
    if (err == DB_SUCCESS && over) {
        ddl_build_next(build);
    }
    TRY(err);
    return ddl_build_note_progress(build);
}

static dberr_t ddl_build_discard(ddl_build_t *build)
{
    TRY(build->step->undo != NULL ? build->step->undo(build) : DB_SUCCESS);
    return build->statement->discard(build);
}

dberr_t ddl_build_abort(ddl_build_t *build)
{
    if (build->committed) { /* what failed came after the commit */
        ddl_online_stop(build);
        ddl_build_unlock(build);
        return DB_SUCCESS;
    }
    build->aborting = true;
    build_env(build)->stats.builds_aborted++;
    btr_bulk_free(build->bulk);
    build->bulk = NULL;
    ddl_online_stop(build);
    for (uint32_t i = 0; i < INDEXES_MAX; i++) {
        merge_sort_free(build->sorts[i]);
        build->sorts[i] = NULL;
    }
    if (build_env(build)->io_failed) {
        /* Nothing can be written any more: recovery drops what is INCOMPLETE. */
        return DB_IO_ERROR;
    }
    TRY(ddl_build_discard(build));
    ddl_build_unlock(build);
    return DB_SUCCESS;
}

void ddl_build_free(ddl_build_t *build)
{
    if (build == NULL) {
        return;
    }
    btr_bulk_free(build->bulk);
    ddl_online_free(build);
    for (uint32_t i = 0; i < INDEXES_MAX; i++) {
        merge_sort_abandon(build->sorts[i]);
    }
    if (build->own != NULL && build->statement->free != NULL) {
        build->statement->free(build);
    }
    if (build->table != build->source) {
        free(build->table);
    }
    free(build->source);
    free(build->own);
    free(build->last_pk);
    free(build->batch);
    free(build->row);
    free(build->rec);
    free(build);
}
