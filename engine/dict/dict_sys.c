/* The four system tables: their columns, and their rows as C values.

Rows are written and read in the order of the columns below, so that writer, reader and table object
cannot disagree: BIGINT for numbers, CHAR(64) padded with spaces for names. */
#include "dict/dict_sys.h"

#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "dict/dict_int.h"

#define SYS_NUMBER_LEN 8U
#define SYS_NAME_LEN (NAME_LEN_MAX + 1)
#define SYS_COLS_MAX 7U

typedef struct sys_def {
    const char *name;
    uint32_t n_cols;
    uint32_t n_key; /* the first columns are the primary key */
    const char *cols[SYS_COLS_MAX];
} sys_def_t;

/* Every column is BIGINT but "NAME". */
static const sys_def_t sys_defs[SYS_N] = {
    {"SYS_TABLES", 5, 1, {"ID", "NAME", "SPACE", "N_COLS", "STATUS"}},
    {"SYS_COLUMNS", 5, 2, {"TABLE_ID", "POS", "NAME", "TYPE", "LEN"}},
    {"SYS_INDEXES", 7, 2, {"TABLE_ID", "ID", "NAME", "N_FIELDS", "TYPE", "ROOT", "STATUS"}},
    {"SYS_FIELDS", 4, 2, {"INDEX_ID", "POS", "COL", "PREFIX_LEN"}},
};

static void dict_name_set(char *name, const char *text)
{
    size_t len = strlen(text);
    CHECK(len <= NAME_LEN_MAX);
    memcpy(name, text, len + 1);
}

dberr_t dict_sys_define(sys_table_t which, uint32_t page_size, dict_table_t *table, err_sink_t *err)
{
    const sys_def_t *def = &sys_defs[which];
    dict_index_t *primary = &table->indexes[0];
    memset(table, 0, sizeof(*table));
    table->id = SYS_TABLE_ID_FIRST + (table_id_t)which;
    table->space = SPACE_SYSTEM;
    table->in_system = true;
    table->status = DICT_READY;
    table->n_cols = def->n_cols;
    table->n_indexes = 1;
    dict_name_set(table->name, def->name);
    for (uint32_t i = 0; i < def->n_cols; i++) {
        bool is_name = strcmp(def->cols[i], "NAME") == 0;
        table->cols[i].type = is_name ? DICT_CHAR : DICT_BIGINT;
        table->cols[i].len = is_name ? SYS_NAME_LEN : SYS_NUMBER_LEN;
        dict_name_set(table->cols[i].name, def->cols[i]);
    }
    dict_name_set(primary->name, "PRIMARY");
    primary->id = INDEX_ID_FIRST + (index_id_t)which;
    primary->status = DICT_READY;
    primary->n_fields = def->n_key;
    for (uint32_t i = 0; i < def->n_key; i++) {
        primary->fields[i].col = i;
    }
    primary->tree.id = primary->id;
    primary->tree.space = SPACE_SYSTEM;
    primary->tree.root = FIL_NULL;
    return dict_table_layout(table, page_size, err);
}

/* ---- writing and reading one column after the other ---- */

static byte *sys_put_number(byte *p, uint64_t value)
{
    CHECK(value <= INT64_MAX);
    mach_write_8(p, dict_bigint_encode((int64_t)value));
    return p + SYS_NUMBER_LEN;
}

static byte *sys_put_name(byte *p, const char *name)
{
    size_t len = strlen(name);
    CHECK(len <= NAME_LEN_MAX);
    memset(p, ' ', SYS_NAME_LEN);
    memcpy(p, name, len);
    return p + SYS_NAME_LEN;
}

static const byte *sys_get_number(const byte *p, uint64_t *value)
{
    *value = (uint64_t)dict_bigint_decode(mach_read_8(p));
    return p + SYS_NUMBER_LEN;
}

static const byte *sys_get_name(const byte *p, char name[NAME_LEN_MAX + 1])
{
    uint32_t len = SYS_NAME_LEN;
    while (len > 0 && p[len - 1] == ' ') {
        len--;
    }
    if (len > NAME_LEN_MAX || memchr(p, 0, len) != NULL) {
        len = 0;
    }
    memset(name, 0, SYS_NAME_LEN);
    memcpy(name, p, len);
    return p + SYS_NAME_LEN;
}

void dict_sys_tables_row(const dict_table_t *table, byte *row)
{
    row = sys_put_number(row, table->id);
    row = sys_put_name(row, table->name);
    row = sys_put_number(row, table->space);
    row = sys_put_number(row, table->n_cols);
    (void)sys_put_number(row, (uint64_t)table->status);
}

void dict_sys_tables_read(const byte *row, sys_tables_row_t *out)
{
    row = sys_get_number(row, &out->id);
    row = sys_get_name(row, out->name);
    row = sys_get_number(row, &out->space);
    row = sys_get_number(row, &out->n_cols);
    (void)sys_get_number(row, &out->status);
}

void dict_sys_columns_row(const dict_table_t *table, uint32_t pos, byte *row)
{
    const dict_col_t *col = &table->cols[pos];
    CHECK(pos < table->n_cols);
    row = sys_put_number(row, table->id);
    row = sys_put_number(row, pos);
    row = sys_put_name(row, col->name);
    row = sys_put_number(row, (uint64_t)col->type | (col->nullable ? SYS_COL_NULLABLE : 0)
                                  | (col->instant ? SYS_COL_INSTANT : 0));
    (void)sys_put_number(row, col->len);
}

void dict_sys_columns_read(const byte *row, sys_columns_row_t *out)
{
    row = sys_get_number(row, &out->table_id);
    row = sys_get_number(row, &out->pos);
    row = sys_get_name(row, out->name);
    row = sys_get_number(row, &out->type);
    (void)sys_get_number(row, &out->len);
}

void dict_sys_indexes_row(const dict_index_t *index, byte *row)
{
    row = sys_put_number(row, index->table->id);
    row = sys_put_number(row, index->id);
    row = sys_put_name(row, index->name);
    row = sys_put_number(row, index->n_fields);
    row = sys_put_number(row, index->clustered ? SYS_INDEX_CLUSTERED
                              : index->unique  ? SYS_INDEX_UNIQUE
                                               : 0);
    row = sys_put_number(row, index->tree.root);
    (void)sys_put_number(row, (uint64_t)index->status);
}

void dict_sys_indexes_read(const byte *row, sys_indexes_row_t *out)
{
    row = sys_get_number(row, &out->table_id);
    row = sys_get_number(row, &out->id);
    row = sys_get_name(row, out->name);
    row = sys_get_number(row, &out->n_fields);
    row = sys_get_number(row, &out->type);
    row = sys_get_number(row, &out->root);
    (void)sys_get_number(row, &out->status);
}

void dict_sys_fields_row(const dict_index_t *index, uint32_t pos, byte *row)
{
    CHECK(pos < index->n_fields);
    row = sys_put_number(row, index->id);
    row = sys_put_number(row, pos);
    row = sys_put_number(row, index->fields[pos].col);
    (void)sys_put_number(row, index->fields[pos].prefix_len);
}

void dict_sys_fields_read(const byte *row, sys_fields_row_t *out)
{
    row = sys_get_number(row, &out->index_id);
    row = sys_get_number(row, &out->pos);
    row = sys_get_number(row, &out->col);
    (void)sys_get_number(row, &out->prefix_len);
}
