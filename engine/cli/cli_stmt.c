/* Execution of one script statement.

Place: cli/, below cli_run.c; above api/.

Rules
1. A statement of several rows is all or nothing: it is undone to a savepoint.
2. What a script says is checked against the table as it is now: a wrong column, type or length is a
   failure of the statement, and nothing was changed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "cli/cli_run.h"

/* ---- values and rows ---- */

static dberr_t run_table(run_t *run, const stmt_t *stmt, const dict_table_t **out)
{
    *out = engine_table(run->engine, stmt->table);
    return *out != NULL ? DB_SUCCESS
                        : err_set(&run->err, DB_NOT_FOUND, "no table '%s'", stmt->table);
}

static dberr_t run_find_col(run_t *run, const dict_table_t *table, const char *name, uint32_t *out)
{
    for (uint32_t i = 0; i < table->n_cols; i++) {
        if (strcmp(table->cols[i].name, name) == 0) {
            *out = i;
            return DB_SUCCESS;
        }
    }
    return err_set(&run->err, DB_NOT_FOUND, "no column '%s' in table '%s'", name, table->name);
}

static bool is_primary_col(const dict_table_t *table, uint32_t col)
{
    const dict_index_t *primary = &table->indexes[0];
    for (uint32_t i = 0; i < primary->n_fields; i++) {
        if (primary->fields[i].col == col) {
            return true;
        }
    }
    return false;
}

static dberr_t row_set_value(run_t *run, const dict_table_t *table, const stmt_assign_t *assign,
                             byte *row, uint32_t *col_out)
{
    TRY(run_find_col(run, table, assign->col, col_out));
    const dict_col_t *col = &table->cols[*col_out];
    if (assign->kind == VALUE_NULL) {
        if (!col->nullable) {
            return err_set(&run->err, DB_ERROR, "column '%s' cannot be NULL", col->name);
        }
        dict_col_set(col, row, NULL);
        return DB_SUCCESS;
    }
    if ((assign->kind == VALUE_NUMBER) != (col->type == DICT_BIGINT)) {
        return err_set(&run->err, DB_ERROR, "column '%s' takes %s", col->name,
                       col->type == DICT_BIGINT ? "an integer" : "a \"text\"");
    }
    if (assign->kind == VALUE_NUMBER) {
        byte number[DICT_BIGINT_LEN];
        mach_write_8(number, dict_bigint_encode(assign->number));
        dict_col_put(col, row, number, sizeof(number));
        return DB_SUCCESS;
    }
    if (assign->len > col->len) {
        return err_set(&run->err, DB_ERROR, "value of column '%s' has %u bytes, at most %u fit",
                       col->name, assign->len, col->len);
    }
    dict_col_put(col, row, assign->text, assign->len);
    return DB_SUCCESS;
}

/** A row of defaults. Caller: free(). */
static dberr_t row_create(run_t *run, const dict_table_t *table, byte **out)
{
    *out = malloc(table->row_size);
    if (*out == NULL) {
        return err_set(&run->err, DB_OUT_OF_MEMORY, "no memory for a row");
    }
    dict_row_init(table, *out);
    return DB_SUCCESS;
}

/** Fills pk (pk_len bytes) from the statement: every primary key column, no other. */
static dberr_t run_primary_key(run_t *run, const dict_table_t *table, const stmt_t *stmt, byte *pk)
{
    byte *row = NULL;
    dberr_t err = row_create(run, table, &row);
    for (uint32_t i = 0; err == DB_SUCCESS && i < stmt->n_assigns; i++) {
        uint32_t col = 0;
        err = row_set_value(run, table, &stmt->assigns[i], row, &col);
        if (err == DB_SUCCESS && !is_primary_col(table, col)) {
            err = err_set(&run->err, DB_ERROR, "column '%s' is not in the primary key",
                          table->cols[col].name);
        }
    }
    if (err == DB_SUCCESS && stmt->n_assigns != table->indexes[0].n_fields) {
        err = err_set(&run->err, DB_ERROR, "the primary key has %u columns, %u are given",
                      table->indexes[0].n_fields, stmt->n_assigns);
    }
    if (err == DB_SUCCESS) {
        dict_row_to_pk(table, row, pk);
    }
    free(row);
    return err;
}

/* ---- transactions ---- */

static named_trx_t **run_find_trx(run_t *run, const char *name)
{
    named_trx_t **link = &run->open;
    while (*link != NULL && strcmp((*link)->name, name) != 0) {
        link = &(*link)->next;
    }
    return link;
}

static dberr_t run_begin(run_t *run, const stmt_t *stmt)
{
    named_trx_t **link = run_find_trx(run, stmt->trx);
    if (*link != NULL) {
        return err_set(&run->err, DB_ALREADY_EXISTS, "transaction '%s' is open", stmt->trx);
    }
    named_trx_t *named = calloc(1, sizeof(*named));
    if (named == NULL) {
        return err_set(&run->err, DB_OUT_OF_MEMORY, "no memory for a transaction");
    }
    dberr_t err = engine_begin(run->engine, &named->trx);
    if (err != DB_SUCCESS) {
        free(named);
        return err;
    }
    named->name = stmt->trx;
    *link = named;
    return DB_SUCCESS;
}

static dberr_t run_end(run_t *run, const stmt_t *stmt)
{
    named_trx_t **link = run_find_trx(run, stmt->trx);
    if (*link == NULL) {
        return err_set(&run->err, DB_NOT_FOUND, "no open transaction '%s'", stmt->trx);
    }
    named_trx_t *named = *link;
    trx_t *trx = named->trx;
    *link = named->next;
    free(named);
    return stmt->kind == STMT_COMMIT ? engine_commit(run->engine, trx)
                                     : engine_rollback(run->engine, trx);
}

/* ---- row statements ---- */

static dberr_t run_insert(run_t *run, const stmt_t *stmt, trx_t *trx)
{
    const dict_table_t *table = NULL;
    byte *row = NULL;
    dberr_t err = run_table(run, stmt, &table);
    AND_THEN(err, row_create(run, table, &row));
    for (uint32_t i = 0; err == DB_SUCCESS && i < stmt->n_assigns; i++) {
        uint32_t col = 0;
        err = row_set_value(run, table, &stmt->assigns[i], row, &col);
    }
    AND_THEN(err, engine_insert(run->engine, trx, stmt->table, row));
    free(row);
    return err;
}

static dberr_t run_insert_rows(run_t *run, const stmt_t *stmt, trx_t *trx, const dict_col_t *key,
                               byte *row)
{
    for (int64_t value = stmt->first;; value++) {
        mach_write_8(row + key->row_offset, dict_bigint_encode(value));
        dberr_t err = engine_insert(run->engine, trx, stmt->table, row);
        if (err != DB_SUCCESS || value == stmt->last) {
            return err;
        }
    }
}

static dberr_t run_insert_seq(run_t *run, const stmt_t *stmt, trx_t *trx)
{
    const dict_table_t *table = NULL;
    TRY(run_table(run, stmt, &table));
    const dict_index_t *primary = &table->indexes[0];
    const dict_col_t *key = &table->cols[primary->fields[0].col];
    if (primary->n_fields != 1 || key->type != DICT_BIGINT) {
        return err_set(&run->err, DB_ERROR, "the primary key of '%s' is not one bigint column",
                       table->name);
    }
    byte *row = NULL;
    TRY(row_create(run, table, &row));
    uint64_t savepoint = engine_savepoint(run->engine, trx);
    dberr_t err = run_insert_rows(run, stmt, trx, key, row);
    free(row);
    if (err != DB_SUCCESS) {
        (void)err_set(&run->err, err, "%s", engine_error(run->engine));
        dberr_t undo_err = engine_rollback_to(run->engine, trx, savepoint);
        if (undo_err != DB_SUCCESS) {
            run->err.msg[0] = '\0';
            return undo_err;
        }
    }
    return err;
}

static dberr_t run_set_values(run_t *run, const dict_table_t *table, const stmt_t *stmt, byte *row,
                              row_upd_t *upd)
{
    for (uint32_t i = 0; i < stmt->n_sets; i++) {
        TRY(row_set_value(run, table, &stmt->sets[i], row, &upd[i].col));
        if (is_primary_col(table, upd[i].col)) {
            return err_set(&run->err, DB_ERROR,
                           "column '%s' is in the primary key: it cannot change",
                           table->cols[upd[i].col].name);
        }
        const dict_col_t *col = &table->cols[upd[i].col];
        upd[i].value = dict_col_is_null(col, row) ? NULL : row + col->row_offset;
    }
    return DB_SUCCESS;
}

static dberr_t run_update(run_t *run, const stmt_t *stmt, trx_t *trx)
{
    const dict_table_t *table = NULL;
    TRY(run_table(run, stmt, &table));
    dberr_t err = DB_SUCCESS;
    byte *pk = malloc(table->pk_len);
    row_upd_t *upd = calloc(stmt->n_sets, sizeof(*upd));
    if (pk == NULL || upd == NULL) {
        err = err_set(&run->err, DB_OUT_OF_MEMORY, "no memory for an update");
    }
    AND_THEN(err, run_primary_key(run, table, stmt, pk));
    byte *row = NULL;
    AND_THEN(err, row_create(run, table, &row));
    AND_THEN(err, run_set_values(run, table, stmt, row, upd));
    AND_THEN(err, engine_update(run->engine, trx, stmt->table, pk, upd, stmt->n_sets));
    free(row);
    free(upd);
    free(pk);
    return err;
}

static dberr_t run_delete(run_t *run, const stmt_t *stmt, trx_t *trx)
{
    const dict_table_t *table = NULL;
    TRY(run_table(run, stmt, &table));
    byte *pk = malloc(table->pk_len);
    if (pk == NULL) {
        return err_set(&run->err, DB_OUT_OF_MEMORY, "no memory for a key");
    }
    dberr_t err = run_primary_key(run, table, stmt, pk);
    AND_THEN(err, engine_delete(run->engine, trx, stmt->table, pk));
    free(pk);
    return err;
}

static dberr_t run_change(run_t *run, const stmt_t *stmt, trx_t *trx)
{
    switch (stmt->kind) {
    case STMT_INSERT:
        return run_insert(run, stmt, trx);
    case STMT_INSERT_SEQ:
        return run_insert_seq(run, stmt, trx);
    case STMT_UPDATE:
        return run_update(run, stmt, trx);
    default:
        CHECK(stmt->kind == STMT_DELETE);
        return run_delete(run, stmt, trx);
    }
}

/** A row statement in its transaction, or in one of its own. */
static dberr_t run_dml(run_t *run, const stmt_t *stmt)
{
    if (strcmp(stmt->trx, "-") != 0) {
        named_trx_t *named = *run_find_trx(run, stmt->trx);
        return named != NULL
                   ? run_change(run, stmt, named->trx)
                   : err_set(&run->err, DB_NOT_FOUND, "no open transaction '%s'", stmt->trx);
    }
    trx_t *trx = NULL;
    TRY(engine_begin(run->engine, &trx));
    dberr_t err = run_change(run, stmt, trx);
    if (err == DB_SUCCESS) {
        return engine_commit(run->engine, trx);
    }
    if (run->err.msg[0] == '\0') {
        (void)err_set(&run->err, err, "%s", engine_error(run->engine));
    }
    TRY(engine_rollback(run->engine, trx));
    return err;
}

/* ---- output ---- */

/** The value, that of CHAR without its padding. */
static const byte *text_value(const dict_col_t *col, const byte *row, uint32_t *len)
{
    const byte *value = dict_col_value(col, row, len);
    while (col->type == DICT_CHAR && *len > 0 && value[*len - 1] == ' ') {
        --*len;
    }
    return value;
}

static void print_row_text(const dict_table_t *table, const byte *row)
{
    for (uint32_t i = 0; i < table->n_cols; i++) {
        const dict_col_t *col = &table->cols[i];
        (void)printf("%s%s=", i == 0 ? "" : " ", col->name);
        if (dict_col_is_null(col, row)) {
            (void)printf("null");
            continue;
        }
        uint32_t len = 0;
        const byte *value = text_value(col, row, &len);
        if (col->type == DICT_BIGINT) {
            (void)printf("%" PRId64, dict_bigint_decode(mach_read_8(value)));
            continue;
        }
        char *text = cli_escape(value, len);
        (void)printf("\"%s\"", text != NULL ? text : "?");
        free(text);
    }
    (void)putchar('\n');
}

static json_t *value_json(const dict_col_t *col, const byte *row)
{
    if (dict_col_is_null(col, row)) {
        return json_null();
    }
    uint32_t len = 0;
    const byte *value = text_value(col, row, &len);
    return col->type == DICT_BIGINT ? json_integer(dict_bigint_decode(mach_read_8(value)))
                                    : cli_escaped(value, len);
}

static json_t *row_json(const dict_table_t *table, const byte *row)
{
    json_t *object = json_object();
    for (uint32_t i = 0; i < table->n_cols; i++) {
        const dict_col_t *col = &table->cols[i];
        (void)json_object_set_new(object, col->name, value_json(col, row));
    }
    return object;
}

static dberr_t run_select(run_t *run, const stmt_t *stmt)
{
    const dict_table_t *table = NULL;
    TRY(run_table(run, stmt, &table));
    dberr_t err = DB_SUCCESS;
    byte *pk = malloc(table->pk_len);
    byte *row = malloc(table->row_size);
    if (pk == NULL || row == NULL) {
        err = err_set(&run->err, DB_OUT_OF_MEMORY, "no memory for a row");
    }
    AND_THEN(err, run_primary_key(run, table, stmt, pk));
    AND_THEN(err, engine_get(run->engine, stmt->table, pk, row));
    if (err == DB_SUCCESS && run->args->json) {
        cli_print_json(
            json_pack("{s:I, s:o}", "line", (json_int_t)stmt->line, "row", row_json(table, row)));
    } else if (err == DB_SUCCESS) {
        print_row_text(table, row);
    }
    free(row);
    free(pk);
    return err;
}

static dberr_t count_row(void *ctx, const byte *row)
{
    uint64_t *n = ctx;
    (void)row;
    (*n)++;
    return DB_SUCCESS;
}

static dberr_t run_scan(run_t *run, const stmt_t *stmt)
{
    uint64_t n = 0;
    dberr_t err = engine_scan(run->engine, stmt->table, stmt->name, count_row, &n);
    if (err == DB_SUCCESS && run->args->json) {
        cli_print_json(json_pack("{s:I, s:o}", "line", (json_int_t)stmt->line, "rows", cli_u64(n)));
    } else if (err == DB_SUCCESS) {
        (void)printf("%" PRIu64 " rows\n", n);
    }
    return err;
}

static dberr_t run_status(run_t *run, const stmt_t *stmt)
{
    engine_status_t status;
    engine_get_status(run->engine, &status);
    cli_print_json(json_pack("{s:I, s:o}", "line", (json_int_t)stmt->line, "status",
                             cli_status_json(&status)));
    return DB_SUCCESS;
}

/** ALTER, in one statement or in steps; ADD COLUMN with the row of its column's value. */
static dberr_t run_alter(run_t *run, const stmt_t *stmt)
{
    ddl_alter_t alter = stmt->alter;
    byte *row = NULL;
    dberr_t err = stmt->definition != NULL ? row_create(run, stmt->definition, &row) : DB_SUCCESS;
    if (stmt->preset != NULL) {
        uint32_t col = 0;
        AND_THEN(err, row_set_value(run, stmt->definition, stmt->preset, row, &col));
    }
    alter.value = row;
    AND_THEN(err, stmt->kind == STMT_ALTER ? engine_alter(run->engine, &alter)
                                           : engine_start_alter(run->engine, &alter));
    free(row);
    return err;
}

/* ---- dispatch ---- */

static dberr_t run_purge(run_t *run, const stmt_t *stmt)
{
    bool done = false;
    if (stmt->count > 0) {
        return engine_purge(run->engine, stmt->count, &done);
    }
    while (!done) {
        TRY(engine_purge(run->engine, 1000, &done));
    }
    return DB_SUCCESS;
}

dberr_t run_statement(run_t *run, const stmt_t *stmt)
{
    switch (stmt->kind) {
    case STMT_CREATE_TABLE:
        return engine_create_table(run->engine, stmt->definition);
    case STMT_DROP_TABLE:
        return engine_drop_table(run->engine, stmt->table);
    case STMT_RENAME_TABLE:
        return engine_rename_table(run->engine, stmt->table, stmt->name);
    case STMT_ALTER:
    case STMT_START_ALTER:
        return run_alter(run, stmt);
    case STMT_STEP_ALTER:
        return engine_step_alter(run->engine, stmt->table, stmt->count, stmt->rows);
    case STMT_FINISH_ALTER:
        return engine_finish_alter(run->engine, stmt->table);
    case STMT_ABORT_ALTER:
        return engine_abort_alter(run->engine, stmt->table);
    case STMT_START_BACKUP:
        return engine_start_backup(run->engine, stmt->name, stmt->flag);
    case STMT_STEP_BACKUP:
        return engine_step_backup(run->engine, stmt->name, stmt->count);
    case STMT_FINISH_BACKUP:
        return engine_finish_backup(run->engine, stmt->name);
    case STMT_ABORT_BACKUP:
        return engine_abort_backup(run->engine, stmt->name);
    case STMT_BEGIN:
        return run_begin(run, stmt);
    case STMT_COMMIT:
    case STMT_ROLLBACK:
        return run_end(run, stmt);
    case STMT_INSERT:
    case STMT_INSERT_SEQ:
    case STMT_UPDATE:
    case STMT_DELETE:
        return run_dml(run, stmt);
    case STMT_SELECT:
        return run_select(run, stmt);
    case STMT_SCAN:
        return run_scan(run, stmt);
    case STMT_PURGE:
        return run_purge(run, stmt);
    case STMT_AT:
        return engine_place(run->engine, stmt->act, stmt->count);
    case STMT_CLEAN:
        return engine_clean_pages(run->engine, stmt->count);
    case STMT_CHECKPOINT:
        return engine_checkpoint(run->engine, stmt->flag);
    case STMT_FLUSH_TABLE:
        return engine_flush_table(run->engine, stmt->table);
    case STMT_FLUSH_LOG:
        return engine_flush_log(run->engine);
    case STMT_SET_OPTIMIZE:
        cli_warn_ignored(run->engine);
        return engine_set_log_optimize_ddl(run->engine, stmt->flag);
    case STMT_SET_DEFRAGMENT:
        return engine_set_defragment(run->engine, stmt->flag);
    case STMT_RESTART:
        return run_restart(run, stmt);
    case STMT_STATUS:
        return run_status(run, stmt);
    }
    return DB_UNSUPPORTED;
}
