/* What a user says of a new index, checked and put into a table object.

Place: ddl/, below ddl_index.c and ddl_alter.c. Knows no pages and no rows. */
#include <string.h>

#include "ddl/ddl_int.h"

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
    dberr_t e = ddl_find_col(table, def->fields[pos].col, err, &col);
    if (e != DB_SUCCESS) {
        return e;
    }
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

dberr_t ddl_define_index(dict_table_t *table, const ddl_index_def_t *def, err_sink_t *err)
{
    dberr_t e = ddl_name_check(err, "index", def->name);
    if (e == DB_SUCCESS) {
        e = ddl_index_name_free(table, def->name, err);
    }
    if (e != DB_SUCCESS) {
        return e;
    }
    if (table->n_indexes == INDEXES_MAX) {
        return err_set(err, DB_ERROR, "table '%s' would have more than %u indexes", table->name,
                       INDEXES_MAX);
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
        e = ddl_define_field(table, def, pos, index, err);
        if (e != DB_SUCCESS) {
            return e;
        }
    }
    table->n_indexes++;
    return DB_SUCCESS;
}
