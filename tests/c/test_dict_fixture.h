/** Definitions of tables, and their rows in the system tables. */
#ifndef TEST_DICT_FIXTURE_H
#define TEST_DICT_FIXTURE_H

#include <stdio.h>

#include "dict/dict_sys.h"

static inline void table_add_col(dict_table_t *table, const char *name, dict_type_t type,
                                 uint32_t len)
{
    dict_col_t *col = &table->cols[table->n_cols++];
    snprintf(col->name, sizeof col->name, "%s", name);
    col->type = type;
    col->len = len;
}

static inline dict_index_t *table_add_index(dict_table_t *table, const char *name)
{
    dict_index_t *index = &table->indexes[table->n_indexes++];
    snprintf(index->name, sizeof index->name, "%s", name);
    return index;
}

static inline void index_add_field(dict_index_t *index, uint32_t col, uint32_t prefix_len)
{
    index->fields[index->n_fields++] = (dict_field_t){.col = col, .prefix_len = prefix_len};
}

/** Calls put for each row that describes the table, as creating it would insert them. */
static inline void table_each_sys_row(const dict_table_t *table,
                                      void (*put)(void *ctx, sys_table_t which, const byte *row),
                                      void *ctx)
{
    byte row[SYS_ROW_MAX];
    dict_sys_tables_row(table, row);
    put(ctx, SYS_TABLES, row);
    for (uint32_t i = 0; i < table->n_cols; i++) {
        dict_sys_columns_row(table, i, row);
        put(ctx, SYS_COLUMNS, row);
    }
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        dict_sys_indexes_row(&table->indexes[i], row);
        put(ctx, SYS_INDEXES, row);
        for (uint32_t pos = 0; pos < table->indexes[i].n_fields; pos++) {
            dict_sys_fields_row(&table->indexes[i], pos, row);
            put(ctx, SYS_FIELDS, row);
        }
    }
}

#endif
