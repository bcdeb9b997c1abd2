/* Index builds on an open database: in one call, or in steps between other calls.

Place: api/, above engine_guard.c; below engine_calls.c, whose commits let builds go on.

Rules
1. A build is found by the id of its table: objects of the catalogue's cache come and go.
2. A build that fails is aborted by the call that met the failure, which has then changed nothing.
   If even that fails (no undo slot is free), the build stays, its table stays locked, and only
   engine_abort_alter() or a restart ends it.
3. A build that an open transaction keeps from its last step (LOCK=NONE) has not failed: it goes on.
4. (I23) On a poisoned handle nothing is aborted: recovery drops the INCOMPLETE indexes.
5. A background build belongs to nobody's statement. A commit that lets it take a step has been
   done before, and fails only if the handle is poisoned. */
#include <stdlib.h>

#include "api/api_int.h"
#include "base/check.h"

/** The place of a table's build in the list. */
static dberr_t engine_find_build(engine_t *engine, const char *name, engine_build_t ***out)
{
    dict_table_t *table = NULL;
    TRY(engine_enter_table(engine, name, &table));
    engine_build_t **link = &engine->builds;
    while (*link != NULL && (*link)->table != table->id) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        return err_set(&engine->env.err, DB_NOT_FOUND, "table '%s': no index build is running",
                       name);
    }
    *out = link;
    return DB_SUCCESS;
}

static void engine_forget_build(engine_build_t **link)
{
    engine_build_t *build = *link;
    *link = build->next;
    ddl_build_free(build->ddl);
    free(build);
}

static dberr_t engine_abort_build(engine_t *engine, engine_build_t **link)
{
    TRY(engine_leave(engine, ddl_build_abort((*link)->ddl)));
    engine_forget_build(link);
    return DB_SUCCESS;
}

/** Ends a call that met err in a build. */
static dberr_t engine_fail_build(engine_t *engine, engine_build_t **link, dberr_t err)
{
    err = engine_leave(engine, err);
    if (engine->env.io_failed) {
        return err;
    }
    bool held = env_hold(&engine->env);
    dberr_t abort_err = engine_abort_build(engine, link);
    env_release(&engine->env, held);
    TRY(abort_err);
    return err;
}

/** The statement is one that can be carried out as it asks for; *out: with the algorithm that it
takes. */
static dberr_t engine_enter_alter(engine_t *engine, const ddl_alter_t *alter, ddl_alter_t *out)
{
    *out = *alter;
    TRY(engine_enter(engine));
    TRY(ddl_alter_check(out, &engine->env.err));
    return ddl_alter_choose(engine->sys, out);
}

static dberr_t engine_begin_build(engine_t *engine, const ddl_alter_t *alter)
{
    dict_table_t *t = NULL;
    TRY(engine_enter_table(engine, alter->table, &t));
    engine_build_t *build = calloc(1, sizeof(*build));
    if (build == NULL) {
        return err_set(&engine->env.err, DB_OUT_OF_MEMORY, "no memory for an index build");
    }
    build->table = t->id;
    dberr_t err = ddl_build_begin(engine->sys, alter, &engine->options, &build->ddl);
    if (err != DB_SUCCESS) {
        free(build);
        return engine_leave(engine, err);
    }
    build->next = engine->builds;
    engine->builds = build;
    return DB_SUCCESS;
}

dberr_t engine_start_alter(engine_t *engine, const ddl_alter_t *alter)
{
    ddl_alter_t chosen;
    TRY(engine_enter(engine));
    if (alter->kind != ALTER_CLAUSES && !ddl_alter_is_build(alter)) {
        return err_set(&engine->env.err, DB_UNSUPPORTED, "an instant change has no steps");
    }
    TRY(engine_enter_alter(engine, alter, &chosen));
    return engine_begin_build(engine, &chosen);
}

/** Background builds are switched off: says so. */
static dberr_t engine_rest(engine_t *engine, const char *table)
{
    engine->env.stats.defragment_pauses++;
    return err_set(&engine->env.err, DB_PAUSED,
                   "table '%s': defragmentation rests, because it is off", table);
}

/** The place of a build that is to do something, and may. */
static dberr_t engine_enter_build(engine_t *engine, const char *table, engine_build_t ***out)
{
    TRY(engine_find_build(engine, table, out));
    return engine->defragment_off && ddl_build_is_background((**out)->ddl)
               ? engine_rest(engine, table)
               : DB_SUCCESS;
}

dberr_t engine_set_defragment(engine_t *engine, bool on)
{
    TRY(engine_enter(engine));
    engine->defragment_off = !on;
    return DB_SUCCESS;
}

/** A step by itself, if there is one left before the last call. */
static dberr_t engine_build_go_on(engine_t *engine, engine_build_t **link)
{
    ddl_build_t *ddl = (*link)->ddl;
    if (!ddl_build_is_background(ddl) || ddl_build_is_loaded(ddl)) {
        return DB_SUCCESS;
    }
    engine->env.stats.defragment_own_steps++;
    bool done = false;
    dberr_t err = ddl_build_step(ddl, BUILD_STEP_ROWS, &done);
    if (err != DB_SUCCESS) {
        err = engine_fail_build(engine, link, err);
    }
    return engine->env.io_failed ? err : DB_SUCCESS;
}

dberr_t engine_builds_go_on(engine_t *engine)
{
    uint32_t interval = engine->options.defragment_interval;
    if (interval == 0 || engine->defragment_off || ++engine->n_commits < interval) {
        return DB_SUCCESS;
    }
    engine->n_commits = 0;
    engine_build_t **link = &engine->builds;
    while (*link != NULL) {
        const engine_build_t *build = *link;
        TRY(engine_build_go_on(engine, link));
        link = *link == build ? &(*link)->next : link;
    }
    return DB_SUCCESS;
}

dberr_t engine_step_alter(engine_t *engine, const char *table, uint32_t n_steps, uint32_t step_rows)
{
    engine_build_t **link = NULL;
    TRY(engine_enter_build(engine, table, &link));
    ddl_build_t *ddl = (*link)->ddl;
    dberr_t err = DB_SUCCESS;
    bool done = false;
    for (uint32_t i = 0; err == DB_SUCCESS && i < n_steps && !ddl_build_is_loaded(ddl); i++) {
        err = ddl_build_step(ddl, step_rows, &done);
    }
    return err == DB_SUCCESS ? err : engine_fail_build(engine, link, err);
}

dberr_t engine_finish_alter(engine_t *engine, const char *table)
{
    engine_build_t **link = NULL;
    TRY(engine_enter_build(engine, table, &link));
    dberr_t err = DB_SUCCESS;
    bool done = false;
    while (err == DB_SUCCESS && !done) {
        err = ddl_build_step((*link)->ddl, BUILD_STEP_ROWS, &done);
    }
    if (err == DB_TABLE_LOCKED) {
        return engine_leave(engine, err);
    }
    if (err != DB_SUCCESS) {
        return engine_fail_build(engine, link, err);
    }
    engine_forget_build(link);
    return DB_SUCCESS;
}

dberr_t engine_alter(engine_t *engine, const ddl_alter_t *alter)
{
    ddl_alter_t chosen;
    dberr_t err = engine_enter_alter(engine, alter, &chosen);
    if (err == DB_SUCCESS && !ddl_alter_is_build(&chosen)) {
        return engine_leave(engine, ddl_alter_at_once(engine->sys, &chosen));
    }
    TRY(err);
    if (engine->defragment_off && ddl_alter_is_background(&chosen)) {
        return engine_rest(engine, alter->table);
    }
    TRY(engine_begin_build(engine, &chosen));
    return engine_finish_alter(engine, alter->table);
}

dberr_t engine_abort_alter(engine_t *engine, const char *table)
{
    engine_build_t **link = NULL;
    TRY(engine_find_build(engine, table, &link));
    return engine_abort_build(engine, link);
}

dberr_t engine_abort_builds(engine_t *engine)
{
    while (engine->builds != NULL) {
        TRY(engine_abort_build(engine, &engine->builds));
    }
    return DB_SUCCESS;
}

void engine_builds_progress(const engine_t *engine, ddl_progress_t *out)
{
    *out = (ddl_progress_t){.pct_progress = engine->builds != NULL ? PROGRESS_MAX : 0};
    for (const engine_build_t *build = engine->builds; build != NULL; build = build->next) {
        ddl_progress_t one = ddl_build_progress(build->ddl);
        out->rowlog_records += one.rowlog_records;
        if (out->rowlog_pct_used < one.rowlog_pct_used) {
            out->rowlog_pct_used = one.rowlog_pct_used;
        }
        if (out->pct_progress > one.pct_progress) {
            out->pct_progress = one.pct_progress;
        }
    }
}

void engine_free_builds(engine_t *engine)
{
    while (engine->builds != NULL) {
        engine_forget_build(&engine->builds);
    }
}
