/** ALTER statements of one column of table `t`, and what its rows then have. */
#ifndef TEST_API_COLUMNS_H
#define TEST_API_COLUMNS_H

#include "test_api_fixture.h"

/** A column, and a row of it alone. */
typedef struct new_column {
    dict_col_t col;
    byte row[1 + DICT_LEN_SIZE + VARCHAR_LEN_MAX];
} new_column_t;

static inline ddl_alter_t add_column(new_column_t *new, const char *name, dict_type_t type,
                                     uint32_t len)
{
    memset(new, 0, sizeof(*new));
    new->col = (dict_col_t){.type = type, .nullable = true, .len = len, .row_offset = 1};
    (void)snprintf(new->col.name, sizeof(new->col.name), "%s", name);
    dict_col_set(&new->col, new->row, NULL);
    return (ddl_alter_t){.kind = ALTER_ADD_COLUMN,
                         .table = "t",
                         .name = new->col.name,
                         .col = &new->col,
                         .value = new->row};
}

static inline ddl_alter_t drop_column(const char *name)
{
    return (ddl_alter_t){.kind = ALTER_DROP_COLUMN, .table = "t", .name = name};
}

/** The position of a column of `t` as it is now; n_cols: none. */
static inline uint32_t find_col(fixture_t *f, const char *name)
{
    const dict_table_t *t = engine_table(f->engine, "t");
    uint32_t i = 0;
    while (i < t->n_cols && strcmp(t->cols[i].name, name) != 0) {
        i++;
    }
    return i;
}

/** The row of this key has this text in a column; NULL: it is NULL. */
static inline void check_value(fixture_t *f, int64_t a, const char *name, const byte *text,
                               uint32_t len)
{
    const dict_table_t *t = engine_table(f->engine, "t");
    const dict_col_t *col = &t->cols[find_col(f, name)];
    byte *row = malloc(t->row_size);
    assert_non_null(row);
    byte key[8];
    mach_write_8(key, dict_bigint_encode(a));
    OK(f, engine_get(f->engine, "t", key, row));
    assert_true(dict_col_is_null(col, row) == (text == NULL));
    uint32_t found = 0;
    const byte *value = dict_col_value(col, row, &found);
    assert_true(text == NULL || (found == len && memcmp(value, text, len) == 0));
    free(row);
}

#endif
