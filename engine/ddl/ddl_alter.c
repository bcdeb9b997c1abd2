/* ALTER TABLE: which way a statement can be carried out, and the statements that are done at once.

Place: ddl/, beside ddl_table.c; what builds something is in ddl_build.c.

    RENAME COLUMN, RENAME INDEX   INSTANT   one row of the catalogue, one durable commit
    MODIFY COLUMN                 INSTANT   the same, for a longer VARCHAR that no index has as a whole
                                  COPY      another length otherwise
    DROP INDEX                    NOCOPY    pages of the index are freed
    ADD INDEX                     NOCOPY    pages of the index are loaded
    DEFRAGMENT                    NOCOPY    leaves are packed in place
    EXPORT                        NOCOPY    the file is brought up to date
    IMPORT                        INPLACE   pages are copied
    FORCE, TRUNCATE               INPLACE   the table is built anew, with its rows or without

Rules
1. A statement whose options cannot be kept is refused before anything is looked at: ALGORITHM=NOCOPY and
   INSTANT are promises, and a build that turns out to be something else would break them.
2. A name or a length changes by one commit. The object in the cache is replaced, as after every DDL, and no page
   but the catalogue's is touched.
3. Records have the size that their values take, so that a VARCHAR can become longer under them. Parts of secondary
   keys are padded to the length that the index has of the column: where that is all of it, entries would change.
   A shorter VARCHAR may have values that are too long. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ddl/ddl_int.h"

static const char *const ALGORITHM_NAMES[] = {
    [ALGORITHM_COPY] = "COPY",
    [ALGORITHM_INPLACE] = "INPLACE",
    [ALGORITHM_NOCOPY] = "NOCOPY",
    [ALGORITHM_INSTANT] = "INSTANT",
};

/** What the statement says, and the best that can be promised of it. */
typedef struct alter_class {
    const char *name;
    ddl_algorithm_t best;
    const char *why; /**< there is no better one */
    bool builds;     /**< in steps */
} alter_class_t;

static const alter_class_t CLASSES[] = {
    [ALTER_REBUILD] = {"FORCE", ALGORITHM_INPLACE, "the table is built anew", true},
    [ALTER_TRUNCATE] = {"TRUNCATE", ALGORITHM_INPLACE, "the table is built anew", true},
    [ALTER_DEFRAGMENT] = {"DEFRAGMENT", ALGORITHM_NOCOPY, "pages are packed", true},
    [ALTER_EXPORT] = {"EXPORT", ALGORITHM_NOCOPY, "pages are written", true},
    [ALTER_IMPORT] = {"IMPORT", ALGORITHM_INPLACE, "pages are copied", true},
    [ALTER_ADD_INDEX] = {"ADD INDEX", ALGORITHM_NOCOPY, "an index is loaded", true},
    [ALTER_DROP_INDEX] = {"DROP INDEX", ALGORITHM_NOCOPY, "the pages of an index are freed", false},
    [ALTER_RENAME_COLUMN] = {"RENAME COLUMN", ALGORITHM_INSTANT, "", false},
    [ALTER_RENAME_INDEX] = {"RENAME INDEX", ALGORITHM_INSTANT, "", false},
    [ALTER_MODIFY_COLUMN] = {"MODIFY COLUMN", ALGORITHM_INSTANT, "",
                             false}, /* ddl_alter_choose() */
};

bool ddl_alter_is_build(const ddl_alter_t *alter)
{
    return alter->algorithm == ALGORITHM_COPY || CLASSES[alter->kind].builds;
}

/** DB_UNSUPPORTED: it would take more than what the statement promises. */
static dberr_t ddl_alter_refuse(const ddl_alter_t *alter, const char *why, ddl_algorithm_t best,
                                err_sink_t *err)
{
    return err_set(
        err, DB_UNSUPPORTED, "%s with ALGORITHM=%s is not supported: %s. Try ALGORITHM=%s",
        CLASSES[alter->kind].name, ALGORITHM_NAMES[alter->algorithm], why, ALGORITHM_NAMES[best]);
}

dberr_t ddl_alter_check(const ddl_alter_t *alter, err_sink_t *err)
{
    const alter_class_t *class = &CLASSES[alter->kind];
    if (alter->algorithm > class->best) {
        return ddl_alter_refuse(alter, class->why, class->best, err);
    }
    if (alter->lock == LOCK_NONE && alter->algorithm == ALGORITHM_COPY) {
        return err_set(err, DB_UNSUPPORTED,
                       "%s with ALGORITHM=COPY and LOCK=NONE is not supported: rows are copied, "
                       "changes of them are not logged. Try LOCK=SHARED",
                       class->name);
    }
    return DB_SUCCESS;
}

/* ---- what changes in the catalogue only ---- */

/** A name or a length that changes, in a copy of the cached table. */
typedef struct alter_change {
    dict_t *dict;
    dict_table_t *table;
    const dict_index_t *index; /**< NULL: a column */
    uint32_t col;
} alter_change_t;

static dberr_t ddl_change_row(trx_t *trx, void *ctx)
{
    const alter_change_t *change = ctx;
    return change->index != NULL
               ? ddl_rows_update_index(trx, change->dict, change->index)
               : ddl_rows_update_column(trx, change->dict, change->table, change->col);
}

/** The place of the name of a column, and that the new one is free. */
static dberr_t ddl_rename_find_column(const ddl_alter_t *alter, alter_change_t *change,
                                      err_sink_t *sink, char **name)
{
    dict_table_t *table = change->table;
    dberr_t err = ddl_find_col(table, alter->name, sink, &change->col);
    for (uint32_t i = 0; err == DB_SUCCESS && i < table->n_cols; i++) {
        if (strcmp(table->cols[i].name, alter->new_name) == 0) {
            err = err_set(sink, DB_ALREADY_EXISTS, "column '%s' exists in table '%s'",
                          alter->new_name, table->name);
        }
    }
    if (err == DB_SUCCESS) {
        *name = table->cols[change->col].name;
    }
    return err;
}

/** The same of an index. */
static dberr_t ddl_rename_find_index(const ddl_alter_t *alter, alter_change_t *change,
                                     err_sink_t *sink, char **name)
{
    dict_index_t *index = NULL;
    dberr_t err = ddl_find_secondary(change->table, alter->name, sink, &index);
    if (err == DB_SUCCESS) {
        err = ddl_index_name_free(change->table, alter->new_name, sink);
    }
    if (err == DB_SUCCESS) {
        change->index = index;
        *name = index->name;
    }
    return err;
}

static dberr_t ddl_rename_define(const ddl_alter_t *alter, alter_change_t *change, err_sink_t *sink)
{
    bool column = alter->kind == ALTER_RENAME_COLUMN;
    char *name = NULL;
    dberr_t err = ddl_name_check(sink, column ? "column" : "index", alter->new_name);
    if (err == DB_SUCCESS) {
        err = column ? ddl_rename_find_column(alter, change, sink, &name)
                     : ddl_rename_find_index(alter, change, sink, &name);
    }
    if (err == DB_SUCCESS) {
        memcpy(name, alter->new_name, strlen(alter->new_name) + 1);
    }
    return err;
}

/** The column that MODIFY is about, if it can become what is asked for. */
static dberr_t ddl_modify_find(const ddl_alter_t *alter, const dict_table_t *table,
                               err_sink_t *sink, uint32_t *col)
{
    dberr_t err = ddl_find_col(table, alter->name, sink, col);
    if (err == DB_SUCCESS
        && (table->cols[*col].type != DICT_VARCHAR || alter->type != DICT_VARCHAR)) {
        err = err_set(sink, DB_UNSUPPORTED,
                      "column '%s' of table '%s': nothing but the length of a VARCHAR can change",
                      alter->name, table->name);
    }
    return err;
}

/** An index that has all of the column, which has len bytes, still has all of it; no prefix is longer. */
static dberr_t ddl_modify_define(const ddl_alter_t *alter, alter_change_t *change, err_sink_t *sink)
{
    dict_table_t *table = change->table;
    dberr_t err = ddl_modify_find(alter, table, sink, &change->col);
    if (err != DB_SUCCESS) {
        return err;
    }
    dict_col_t *col = &table->cols[change->col];
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        dict_index_t *index = &table->indexes[i];
        for (uint32_t f = 0; f < index->n_fields; f++) {
            uint32_t *prefix = &index->fields[f].prefix_len;
            if (index->fields[f].col == change->col
                && (*prefix == col->len || *prefix > alter->len)) {
                *prefix = alter->len;
            }
        }
    }
    col->len = alter->len;
    return DB_SUCCESS;
}

static dberr_t ddl_change_define(const ddl_alter_t *alter, alter_change_t *change, err_sink_t *sink)
{
    return alter->kind == ALTER_MODIFY_COLUMN ? ddl_modify_define(alter, change, sink)
                                              : ddl_rename_define(alter, change, sink);
}

/** Why the catalogue is not enough for it (rule 3); NULL: it is. */
static const char *ddl_modify_why(const ddl_alter_t *alter, const dict_table_t *table, uint32_t col)
{
    uint32_t len = table->cols[col].len;
    if (alter->len < len) {
        return "a value may be longer";
    }
    return alter->len > len && dict_col_prefix(table, col) == len ? "an index has all of the column"
                                                                  : NULL;
}

dberr_t ddl_alter_choose(trx_sys_t *sys, ddl_alter_t *alter)
{
    err_sink_t *sink = &ddl_env(sys)->err;
    dict_table_t *table = NULL;
    uint32_t col = 0;
    if (alter->kind != ALTER_MODIFY_COLUMN) {
        return DB_SUCCESS;
    }
    dberr_t err = ddl_table_lock(sys, alter->table, &table);
    if (err == DB_SUCCESS) {
        err = ddl_modify_find(alter, table, sink, &col);
    }
    const char *why = err == DB_SUCCESS ? ddl_modify_why(alter, table, col) : NULL;
    if (why == NULL || alter->algorithm == ALGORITHM_COPY) {
        return err;
    }
    if (alter->algorithm != ALGORITHM_DEFAULT) {
        return ddl_alter_refuse(alter, why, ALGORITHM_COPY, sink);
    }
    alter->algorithm = ALGORITHM_COPY;
    return ddl_alter_check(alter, sink);
}

/* ---- definitions ---- */

static dberr_t ddl_define_indexes(const ddl_alter_t *alter, dict_table_t *table, err_sink_t *sink)
{
    dberr_t err = alter->n_defs > 0 ? DB_SUCCESS : err_set(sink, DB_ERROR, "no index is named");
    for (uint32_t i = 0; err == DB_SUCCESS && i < alter->n_defs; i++) {
        err = ddl_define_index(table, &alter->defs[i], sink);
    }
    return err;
}

static dberr_t ddl_define_without(const ddl_alter_t *alter, dict_table_t *table, err_sink_t *sink)
{
    dict_index_t *index = NULL;
    dberr_t err = ddl_find_secondary(table, alter->name, sink, &index);
    if (err == DB_SUCCESS) {
        const dict_index_t *end = &table->indexes[table->n_indexes--];
        memmove(index, index + 1, (size_t)(end - (index + 1)) * sizeof(*index));
    }
    return err;
}

dberr_t ddl_alter_define(const ddl_alter_t *alter, dict_table_t *table, err_sink_t *err)
{
    alter_change_t change = {.table = table};
    switch (alter->kind) {
    case ALTER_REBUILD:
    case ALTER_TRUNCATE:
    case ALTER_DEFRAGMENT:
    case ALTER_EXPORT:
    case ALTER_IMPORT:
        return DB_SUCCESS;
    case ALTER_ADD_INDEX:
        return ddl_define_indexes(alter, table, err);
    case ALTER_DROP_INDEX:
        return ddl_define_without(alter, table, err);
    default:
        return ddl_change_define(alter, &change, err);
    }
}

static dberr_t ddl_change_part(trx_sys_t *sys, const ddl_alter_t *alter)
{
    env_t *env = ddl_env(sys);
    alter_change_t change = {.dict = trx_sys_dict(sys)};
    dict_table_t *table = NULL;
    dberr_t err = ddl_table_lock(sys, alter->table, &table);
    if (err == DB_SUCCESS) {
        err = dict_table_copy(change.dict, table, &change.table);
    }
    if (err != DB_SUCCESS) {
        return err;
    }
    err = ddl_change_define(alter, &change, &env->err);
    if (err == DB_SUCCESS) {
        err = dict_table_layout(change.table, buf_page_size(trx_sys_pool(sys)), &env->err);
    }
    if (err != DB_SUCCESS) {
        free(change.table);
        return err;
    }
    err = ddl_commit_put(sys, ddl_change_row, &change, change.table);
    if (err == DB_SUCCESS) {
        PROBE_POINT(env->probe, "ddl.committed");
        env->stats.alters_instant++;
        env->stats.varchars_extended += alter->kind == ALTER_MODIFY_COLUMN;
    }
    return err;
}

dberr_t ddl_alter_at_once(trx_sys_t *sys, const ddl_alter_t *alter)
{
    CHECK(!ddl_alter_is_build(alter));
    return alter->kind == ALTER_DROP_INDEX ? ddl_drop_index(sys, alter->table, alter->name)
                                           : ddl_change_part(sys, alter);
}
