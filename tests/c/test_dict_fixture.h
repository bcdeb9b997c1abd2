/** Definitions of tables, their rows in the system tables, and their comparison. */
#ifndef TEST_DICT_FIXTURE_H
#define TEST_DICT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "dict/dict_sys.h"

static inline void table_add_col(dict_table_t *table, const char *name, dict_type_t type,
                                 uint32_t len)
{
    dict_col_t *col = &table->cols[table->n_cols++];
    snprintf(col->name, sizeof(col->name), "%s", name);
    col->type = type;
    col->len = len;
}

static inline dict_index_t *table_add_index(dict_table_t *table, const char *name)
{
    dict_index_t *index = &table->indexes[table->n_indexes++];
    snprintf(index->name, sizeof(index->name), "%s", name);
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

/** Fails unless both say the same of an index; whose it is, the caller compares. */
static inline void assert_same_index(const dict_index_t *a, const dict_index_t *b)
{
    assert_int_equal(a->id, b->id);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->clustered, b->clustered);
    assert_int_equal(a->n_fields, b->n_fields);
    assert_memory_equal(a->fields, b->fields, a->n_fields * sizeof(a->fields[0]));
    assert_int_equal(a->tree.root, b->tree.root);
    assert_int_equal(a->tree.key_len, b->tree.key_len);
    assert_int_equal(a->tree.leaf_rec_size, b->tree.leaf_rec_size);
}

/** Fails unless both objects describe the same table. */
static inline void assert_same_table(const dict_table_t *a, const dict_table_t *b)
{
    assert_int_equal(a->id, b->id);
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->space, b->space);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->n_cols, b->n_cols);
    assert_int_equal(a->row_size, b->row_size);
    assert_int_equal(a->pk_len, b->pk_len);
    assert_memory_equal(a->cols, b->cols, a->n_cols * sizeof(a->cols[0]));
    assert_int_equal(a->n_indexes, b->n_indexes);
    for (uint32_t i = 0; i < a->n_indexes; i++) {
        assert_same_index(&a->indexes[i], &b->indexes[i]);
    }
}

#endif
