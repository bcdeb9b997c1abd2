/** Private to dict/: state of the catalogue, rows of the system tables as they are read. */
#ifndef DICT_DICT_INT_H
#define DICT_DICT_INT_H

#include "dict/dict_sys.h"

struct dict {
    buf_pool_t *pool;
    dict_table_t sys[SYS_N];
    dict_table_t *first; /**< user tables in order of id */
    dict_table_t *last;
    uint32_t n_tables;
};

/** The id counters of DICT_HDR: every id in the catalogue is smaller. */
typedef struct dict_counters {
    uint64_t table_id;
    uint64_t index_id;
    uint64_t space_id;
} dict_counters_t;

/* ---- dict.c ---- */

WARN_UNUSED dberr_t dict_counters_read(dict_t *dict, dict_counters_t *out);
void dict_tables_free(dict_table_t *first);

/* ---- dict_sys.c ---- */

/** Builds the object of a system table, its root excepted. */
WARN_UNUSED dberr_t dict_sys_define(sys_table_t which, uint32_t page_size, dict_table_t *table,
                                    err_sink_t *err);

/* Rows as numbers. A negative or huge BIGINT becomes a number that no range check lets through; a
name that cannot be becomes "". */
typedef struct sys_tables_row {
    uint64_t id;
    char name[NAME_LEN_MAX + 1];
    uint64_t space;
    uint64_t n_cols;
    uint64_t status;
} sys_tables_row_t;

typedef struct sys_columns_row {
    uint64_t table_id;
    uint64_t pos;
    char name[NAME_LEN_MAX + 1];
    uint64_t type;
    uint64_t len;
} sys_columns_row_t;

typedef struct sys_indexes_row {
    uint64_t table_id;
    uint64_t id;
    char name[NAME_LEN_MAX + 1];
    uint64_t n_fields;
    uint64_t type;
    uint64_t root;
    uint64_t status;
} sys_indexes_row_t;

typedef struct sys_fields_row {
    uint64_t index_id;
    uint64_t pos;
    uint64_t col;
    uint64_t prefix_len;
} sys_fields_row_t;

void dict_sys_tables_read(const byte *row, sys_tables_row_t *out);
void dict_sys_columns_read(const byte *row, sys_columns_row_t *out);
void dict_sys_indexes_read(const byte *row, sys_indexes_row_t *out);
void dict_sys_fields_read(const byte *row, sys_fields_row_t *out);

#endif
