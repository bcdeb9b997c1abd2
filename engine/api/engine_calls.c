/* Calls on an open database: statements, transactions, background work by hand.

Place: top of the engine, above engine_guard.c and engine_build.c. */
#include <stdlib.h>
#include <string.h>

#include "api/api_int.h"
#include "base/check.h"

/** The same for a statement that reads it: a build may lock that out. */
static dberr_t engine_enter_read(engine_t *engine, const char *name, dict_table_t **out)
{
    TRY(engine_enter_table(engine, name, out));
    if ((*out)->exclusive) {
        return err_set(&engine->env.err, DB_TABLE_LOCKED,
                       "table '%s': a build with LOCK=EXCLUSIVE is running", name);
    }
    return DB_SUCCESS;
}

/* ---- data definition ---- */

dberr_t engine_create_table(engine_t *engine, const dict_table_t *definition)
{
    TRY(engine_enter(engine));
    return engine_leave(engine, ddl_create_table(engine->sys, definition));
}

dberr_t engine_drop_table(engine_t *engine, const char *name)
{
    TRY(engine_enter(engine));
    return engine_leave(engine, ddl_drop_table(engine->sys, name));
}

dberr_t engine_rename_table(engine_t *engine, const char *from, const char *to)
{
    TRY(engine_enter(engine));
    return engine_leave(engine, ddl_rename_table(engine->sys, from, to));
}

/* ---- transactions ---- */

dberr_t engine_begin(engine_t *engine, trx_t **out)
{
    TRY(engine_enter(engine));
    if (engine->n_open == engine->open_capacity) {
        uint32_t capacity = engine->open_capacity == 0 ? 8 : 2 * engine->open_capacity;
        trx_t **open = realloc(engine->open, capacity * sizeof(trx_t *));
        if (open == NULL) {
            return err_set(&engine->env.err, DB_OUT_OF_MEMORY, "no memory for a transaction");
        }
        engine->open = open;
        engine->open_capacity = capacity;
    }
    dberr_t err = trx_begin(engine->sys, out);
    if (err == DB_SUCCESS) {
        engine->open[engine->n_open++] = *out;
    }
    return engine_leave(engine, err);
}

/** Both ends of a transaction free it, whatever they return. */
static void engine_forget_trx(engine_t *engine, const trx_t *trx)
{
    uint32_t i = 0;
    while (i < engine->n_open && engine->open[i] != trx) {
        i++;
    }
    CHECK(i < engine->n_open);
    engine->n_open--;
    memmove(&engine->open[i], &engine->open[i + 1], (engine->n_open - i) * sizeof(trx_t *));
}

dberr_t engine_commit(engine_t *engine, trx_t *trx)
{
    TRY(engine_enter(engine));
    engine_forget_trx(engine, trx);
    dberr_t err = engine_leave(engine, trx_commit(trx));
    AND_THEN(err, engine_builds_go_on(engine));
    return err;
}

dberr_t engine_rollback(engine_t *engine, trx_t *trx)
{
    TRY(engine_enter(engine));
    engine_forget_trx(engine, trx);
    return engine_leave(engine, trx_rollback(trx));
}

uint64_t engine_savepoint(const engine_t *engine, const trx_t *trx)
{
    (void)engine;
    return trx_savepoint(trx);
}

dberr_t engine_rollback_to(engine_t *engine, trx_t *trx, uint64_t savepoint)
{
    TRY(engine_enter(engine));
    return engine_leave(engine, trx_rollback_to(trx, savepoint));
}

/* ---- rows ---- */

dberr_t engine_insert(engine_t *engine, trx_t *trx, const char *table, const byte *row)
{
    dict_table_t *t = NULL;
    TRY(engine_enter_table(engine, table, &t));
    return engine_leave(engine, row_insert(trx, t, row));
}

dberr_t engine_update(engine_t *engine, trx_t *trx, const char *table, const byte *pk,
                      const row_upd_t *upd, uint32_t n_upd)
{
    dict_table_t *t = NULL;
    TRY(engine_enter_table(engine, table, &t));
    return engine_leave(engine, row_update(trx, t, pk, upd, n_upd));
}

dberr_t engine_delete(engine_t *engine, trx_t *trx, const char *table, const byte *pk)
{
    dict_table_t *t = NULL;
    TRY(engine_enter_table(engine, table, &t));
    return engine_leave(engine, row_delete(trx, t, pk));
}

dberr_t engine_get(engine_t *engine, const char *table, const byte *pk, byte *row)
{
    dict_table_t *t = NULL;
    TRY(engine_enter_read(engine, table, &t));
    return engine_explain(engine, row_get(t, engine->pool, pk, row));
}

/** The row that a record of the index, len bytes, stands for. */
static dberr_t engine_scan_row(engine_t *engine, dict_table_t *table, const dict_index_t *index,
                               const byte *rec, uint32_t len, byte *row)
{
    if (index->clustered) {
        return dict_rec_read(engine->pool, table, rec, len, row);
    }
    const byte *pk = rec_payload(rec) + index->tree.key_len - table->pk_len;
    dberr_t err = row_get(table, engine->pool, pk, row);
    if (err == DB_RECORD_NOT_FOUND) {
        return err_set(&engine->env.err, DB_CORRUPTION,
                       "index '%s' of table '%s' has an entry without "
                       "a row",
                       index->name, table->name);
    }
    return err;
}

dberr_t engine_scan(engine_t *engine, const char *table, const char *index,
                    dberr_t (*fn)(void *ctx, const byte *row), void *ctx)
{
    dict_table_t *t = NULL;
    TRY(engine_enter_read(engine, table, &t));
    const dict_index_t *i = index == NULL ? &t->indexes[0] : dict_index_get(t, index);
    if (i == NULL) {
        return err_set(&engine->env.err, DB_NOT_FOUND, "no index '%s' in table '%s'", index, table);
    }
    byte *row = malloc(t->row_size);
    if (row == NULL) {
        return err_set(&engine->env.err, DB_OUT_OF_MEMORY, "no memory for a scan");
    }
    btr_cursor_t cursor;
    dberr_t err = btr_cursor_open(&cursor, engine->pool, &i->tree, NULL, 0);
    if (err == DB_SUCCESS) {
        const byte *rec = NULL;
        while ((err = btr_cursor_next(&cursor, &rec)) == DB_SUCCESS) {
            if (rec_is_deleted(rec)) {
                continue;
            }
            err = engine_scan_row(engine, t, i, rec, cursor.len, row);
            AND_THEN(err, fn(ctx, row));
            if (err != DB_SUCCESS) {
                break;
            }
        }
        btr_cursor_close(&cursor);
    }
    free(row);
    return err == DB_NOT_FOUND ? DB_SUCCESS : engine_explain(engine, err);
}

const dict_table_t *engine_table(engine_t *engine, const char *name)
{
    return dict_table_get(engine->dict, name);
}

/* ---- background work, by hand ---- */

dberr_t engine_checkpoint(engine_t *engine, bool full)
{
    TRY(engine_enter(engine));
    dberr_t err = full ? buf_checkpoint_full(engine->pool) : buf_checkpoint(engine->pool);
    return engine_leave(engine, err);
}

dberr_t engine_flush_table(engine_t *engine, const char *table)
{
    dict_table_t *t = NULL;
    TRY(engine_enter_read(engine, table, &t));
    return engine_leave(engine, buf_flush_space(engine->pool, t->space));
}

dberr_t engine_flush_log(engine_t *engine)
{
    TRY(engine_enter(engine));
    return engine_leave(engine, buf_log_wait(engine->pool, log_lsn(engine->log), true));
}

dberr_t engine_clean_pages(engine_t *engine, uint32_t max_pages)
{
    TRY(engine_enter(engine));
    return engine_leave(engine, buf_flush_list(engine->pool, max_pages, LSN_MAX, NULL));
}

dberr_t engine_place(engine_t *engine, buf_act_t act, uint32_t n)
{
    TRY(engine_enter(engine));
    buf_place(engine->pool, act, n);
    return engine_leave(engine, DB_SUCCESS);
}

dberr_t engine_purge(engine_t *engine, uint32_t max_records, bool *done)
{
    TRY(engine_enter(engine));
    return engine_leave(engine, trx_purge_step(engine->sys, max_records, done));
}

dberr_t engine_set_log_optimize_ddl(engine_t *engine, bool on)
{
    dberr_t err = engine_enter(engine);
    if (err == DB_SUCCESS && dict_has_build(engine->dict)) {
        /* (I13) A load without redo relies on the setting that it has begun with. */
        return err_set(&engine->env.err, DB_TABLE_LOCKED,
                       "log_optimize_ddl cannot change: a build is running");
    }
    AND_THEN(err, engine_leave(engine, buf_set_log_optimize_ddl(
                                           engine->pool, on, !engine->options.optimize_ddl_drain)));
    engine->env.stats.optimize_ddl_sets += err == DB_SUCCESS;
    return err;
}
