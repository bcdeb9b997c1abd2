/* What a statement says of a table's definition, checked and put into a table object.

Place: ddl/, below the statements. Knows no pages and no rows.

Rules
1. Records have the size that their values take, so that a VARCHAR can become longer under them.
   Parts of secondary keys are padded to the length that the index has of the column: where that is
   all of it, entries would change.
2. Clauses are applied in one order, however they are written: what goes, other names, what comes.
   So a name can go and come in one statement, and what comes says the new names. */
#include <string.h>

#include "ddl/ddl_int.h"

dberr_t ddl_name_check(err_sink_t *err, const char *what, const char *name)
{
    size_t len = strnlen(name, NAME_LEN_MAX + 1);
    if (len == 0 || len > NAME_LEN_MAX) {
        return err_set(err, DB_ERROR, "%s name must have 1 to %u characters", what, NAME_LEN_MAX);
    }
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !(c >= '0' && c <= '9') && c != '_') {
            return err_set(err, DB_ERROR, "%s name may have letters, digits and _ only", what);
        }
    }
    return DB_SUCCESS;
}

dberr_t ddl_find_col(const dict_table_t *table, const char *name, err_sink_t *err, uint32_t *out)
{
    for (uint32_t i = 0; i < table->n_cols; i++) {
        if (strcmp(table->cols[i].name, name) == 0) {
            *out = i;
            return DB_SUCCESS;
        }
    }
    return err_set(err, DB_NOT_FOUND, "no column '%s' in table '%s'", name, table->name);
}

static dberr_t ddl_define_field(const dict_table_t *table, const ddl_index_def_t *def, uint32_t pos,
                                dict_index_t *index, err_sink_t *err)
{
    uint32_t col = 0;
    TRY(ddl_find_col(table, def->fields[pos].col, err, &col));
    const dict_col_t *c = &table->cols[col];
    uint32_t prefix = def->fields[pos].prefix_len;
    if (prefix > c->len || (prefix != 0 && c->type == DICT_BIGINT)) {
        return err_set(err, DB_ERROR, "index '%s': prefix %u of column '%s' is not possible",
                       def->name, prefix, c->name);
    }
    for (uint32_t i = 0; i < pos; i++) {
        if (index->fields[i].col == col) {
            return err_set(err, DB_ERROR, "index '%s' names column '%s' twice", def->name, c->name);
        }
    }
    index->fields[pos].col = col;
    index->fields[pos].prefix_len = prefix != 0 ? prefix : c->len;
    return DB_SUCCESS;
}

dberr_t ddl_find_secondary(dict_table_t *table, const char *name, err_sink_t *err,
                           dict_index_t **out)
{
    *out = dict_index_get(table, name);
    if (*out == NULL) {
        return err_set(err, DB_NOT_FOUND, "no index '%s' in table '%s'", name, table->name);
    }
    if ((*out)->clustered) {
        return err_set(err, DB_ERROR, "the primary key can neither go nor get another name");
    }
    return DB_SUCCESS;
}

dberr_t ddl_index_name_free(const dict_table_t *table, const char *name, err_sink_t *err)
{
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        if (strcmp(table->indexes[i].name, name) == 0) {
            return err_set(err, DB_ALREADY_EXISTS, "index '%s' exists in table '%s'", name,
                           table->name);
        }
    }
    return DB_SUCCESS;
}

static dberr_t ddl_too_many(const dict_table_t *table, err_sink_t *err)
{
    return err_set(err, DB_ERROR, "table '%s' would have more than %u indexes", table->name,
                   INDEXES_MAX);
}

/** Appends an index, INCOMPLETE and without id, root and layout. */
static dberr_t ddl_define_index(dict_table_t *table, const ddl_index_def_t *def, err_sink_t *err)
{
    TRY(ddl_name_check(err, "index", def->name));
    TRY(ddl_index_name_free(table, def->name, err));
    if (table->n_indexes == INDEXES_MAX) {
        return ddl_too_many(table, err);
    }
    if (def->n_fields == 0 || def->n_fields > COLUMNS_MAX) {
        return err_set(err, DB_ERROR, "index '%s' must have 1 to %u columns", def->name,
                       COLUMNS_MAX);
    }
    dict_index_t *index = &table->indexes[table->n_indexes];
    *index = (dict_index_t){.table = table,
                            .status = DICT_INCOMPLETE,
                            .unique = def->unique,
                            .n_fields = def->n_fields};
    memcpy(index->name, def->name, sizeof(index->name));
    index->tree.space = table->space;
    index->tree.root = FIL_NULL;
    for (uint32_t pos = 0; pos < def->n_fields; pos++) {
        TRY(ddl_define_field(table, def, pos, index, err));
    }
    table->n_indexes++;
    return DB_SUCCESS;
}

static dberr_t ddl_define_indexes(const ddl_alter_t *alter, dict_table_t *table, err_sink_t *sink)
{
    TRY(alter->n_defs > 0 ? DB_SUCCESS : err_set(sink, DB_ERROR, "no index is named"));
    for (uint32_t i = 0; i < alter->n_defs; i++) {
        TRY(ddl_define_index(table, &alter->defs[i], sink));
    }
    return DB_SUCCESS;
}

static dberr_t ddl_define_without(const ddl_alter_t *alter, dict_table_t *table, err_sink_t *sink)
{
    dict_index_t *index = NULL;
    TRY(ddl_find_secondary(table, alter->name, sink, &index));
    const dict_index_t *end = &table->indexes[table->n_indexes--];
    memmove(index, index + 1, (size_t)(end - (index + 1)) * sizeof(*index));
    return DB_SUCCESS;
}

static dberr_t ddl_column_name_free(const dict_table_t *table, const char *name, err_sink_t *err)
{
    for (uint32_t i = 0; i < table->n_cols; i++) {
        if (strcmp(table->cols[i].name, name) == 0) {
            return err_set(err, DB_ALREADY_EXISTS, "column '%s' exists in table '%s'", name,
                           table->name);
        }
    }
    return DB_SUCCESS;
}

static dberr_t ddl_define_column_name(const ddl_alter_t *alter, dict_table_t *table,
                                      err_sink_t *sink)
{
    TRY(ddl_name_check(sink, "column", alter->new_name));
    uint32_t col = 0;
    TRY(ddl_find_col(table, alter->name, sink, &col));
    TRY(ddl_column_name_free(table, alter->new_name, sink));
    memcpy(table->cols[col].name, alter->new_name, strlen(alter->new_name) + 1);
    return DB_SUCCESS;
}

static dberr_t ddl_define_index_name(const ddl_alter_t *alter, dict_table_t *table,
                                     err_sink_t *sink)
{
    dict_index_t *index = NULL;
    TRY(ddl_name_check(sink, "index", alter->new_name));
    TRY(ddl_find_secondary(table, alter->name, sink, &index));
    TRY(ddl_index_name_free(table, alter->new_name, sink));
    memcpy(index->name, alter->new_name, strlen(alter->new_name) + 1);
    return DB_SUCCESS;
}

dberr_t ddl_modify_find(const ddl_alter_t *alter, const dict_table_t *table, err_sink_t *err,
                        uint32_t *col)
{
    TRY(ddl_find_col(table, alter->name, err, col));
    if (table->cols[*col].type != DICT_VARCHAR || alter->type != DICT_VARCHAR) {
        return err_set(err, DB_UNSUPPORTED,
                       "column '%s' of table '%s': nothing but the length of a VARCHAR can change",
                       alter->name, table->name);
    }
    return DB_SUCCESS;
}

/** An index that has all of the column, which has len bytes, still has all of it; no prefix is
longer. */
static dberr_t ddl_define_length(const ddl_alter_t *alter, dict_table_t *table, err_sink_t *sink)
{
    uint32_t pos = 0;
    TRY(ddl_modify_find(alter, table, sink, &pos));
    dict_col_t *col = &table->cols[pos];
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        dict_index_t *index = &table->indexes[i];
        for (uint32_t f = 0; f < index->n_fields; f++) {
            uint32_t *prefix = &index->fields[f].prefix_len;
            if (index->fields[f].col == pos && (*prefix == col->len || *prefix > alter->len)) {
                *prefix = alter->len;
            }
        }
    }
    col->len = alter->len;
    return DB_SUCCESS;
}

/** The columns from `at` on move by one, up or down; indexes name them by their positions. */
static void ddl_move_columns(dict_table_t *table, uint32_t at, bool up)
{
    uint32_t from = up ? at : at + 1;
    uint32_t to = up ? at + 1 : at;
    memmove(&table->cols[to], &table->cols[from], (table->n_cols - from) * sizeof(table->cols[0]));
    table->n_cols = up ? table->n_cols + 1 : table->n_cols - 1;
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        dict_index_t *index = &table->indexes[i];
        for (uint32_t f = 0; f < index->n_fields; f++) {
            uint32_t *col = &index->fields[f].col;
            *col = *col < from ? *col : up ? *col + 1 : *col - 1;
        }
    }
}

static dberr_t ddl_define_new_column(const ddl_alter_t *alter, dict_table_t *table,
                                     err_sink_t *sink)
{
    TRY(ddl_name_check(sink, "column", alter->name));
    TRY(ddl_column_name_free(table, alter->name, sink));
    uint32_t at = table->n_cols;
    if (alter->after != NULL && alter->after[0] != '\0') {
        TRY(ddl_find_col(table, alter->after, sink, &at));
        at++;
    } else if (alter->after != NULL) {
        at = 0;
    }
    if (table->n_cols == COLUMNS_MAX) {
        return err_set(sink, DB_ERROR, "table '%s' would have more than %u columns", table->name,
                       COLUMNS_MAX);
    }
    ddl_move_columns(table, at, true);
    table->cols[at] = *alter->col;
    return DB_SUCCESS;
}

static dberr_t ddl_define_without_column(const ddl_alter_t *alter, dict_table_t *table,
                                         err_sink_t *sink)
{
    uint32_t at = 0;
    TRY(ddl_find_col(table, alter->name, sink, &at));
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        const dict_index_t *index = &table->indexes[i];
        for (uint32_t f = 0; f < index->n_fields; f++) {
            if (index->fields[f].col == at) {
                return err_set(sink, DB_ERROR, "column '%s' is in the %s '%s' of table '%s'",
                               alter->name, i == 0 ? "key" : "index", index->name, table->name);
            }
        }
    }
    ddl_move_columns(table, at, false);
    return DB_SUCCESS;
}

static dberr_t ddl_define_key(const ddl_alter_t *alter, dict_table_t *table, err_sink_t *sink)
{
    dict_index_t *primary = &table->indexes[0];
    primary->n_fields = alter->defs[0].n_fields;
    for (uint32_t pos = 0; pos < primary->n_fields; pos++) {
        TRY(ddl_define_field(table, alter->defs, pos, primary, sink));
    }
    return DB_SUCCESS;
}

/** A clause that stands for itself. */
static dberr_t ddl_define_clause(const ddl_alter_t *clause, dict_table_t *table, err_sink_t *err)
{
    switch (clause->kind) {
    case ALTER_ADD_COLUMN:
        return ddl_define_new_column(clause, table, err);
    case ALTER_PRIMARY_KEY:
        return ddl_define_key(clause, table, err);
    case ALTER_DROP_COLUMN:
        return ddl_define_without_column(clause, table, err);
    case ALTER_ADD_INDEX:
        return ddl_define_indexes(clause, table, err);
    case ALTER_DROP_INDEX:
        return ddl_define_without(clause, table, err);
    case ALTER_RENAME_COLUMN:
        return ddl_define_column_name(clause, table, err);
    case ALTER_RENAME_INDEX:
        return ddl_define_index_name(clause, table, err);
    case ALTER_MODIFY_COLUMN:
        return ddl_define_length(clause, table, err);
    default:
        return DB_SUCCESS; /* it stays as it is */
    }
}

uint32_t ddl_alter_new_indexes(const ddl_alter_t *alter)
{
    uint32_t n = 0;
    uint32_t n_new = 0;
    const ddl_alter_t *clauses = ddl_alter_clauses(alter, &n);
    for (uint32_t i = 0; i < n; i++) {
        n_new += clauses[i].kind == ALTER_ADD_INDEX ? clauses[i].n_defs : 0;
    }
    return n_new;
}

dberr_t ddl_alter_define(const ddl_alter_t *alter, dict_table_t *table, err_sink_t *err)
{
    static const alter_kind_t ORDER[] = {
        ALTER_DROP_INDEX,    ALTER_DROP_COLUMN, ALTER_RENAME_INDEX, ALTER_RENAME_COLUMN,
        ALTER_MODIFY_COLUMN, ALTER_PRIMARY_KEY, ALTER_ADD_COLUMN,   ALTER_ADD_INDEX};
    uint32_t n = 0;
    uint32_t n_before = table->n_indexes;
    const ddl_alter_t *clauses = ddl_alter_clauses(alter, &n);
    for (size_t turn = 0; turn < sizeof(ORDER) / sizeof(ORDER[0]); turn++) {
        for (uint32_t i = 0; i < n; i++) {
            if (clauses[i].kind == ORDER[turn]) {
                TRY(ddl_define_clause(&clauses[i], table, err));
            }
        }
    }
    /* Those that go are there until the commit. */
    return n_before + ddl_alter_new_indexes(alter) <= INDEXES_MAX ? DB_SUCCESS
                                                                  : ddl_too_many(table, err);
}
