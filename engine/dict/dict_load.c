/* Builds the cache of table objects from the catalogue pages.

Each system table is scanned once in key order, and joined with what the scan before it has built:

    SYS_TABLES ──> tables by id <── SYS_COLUMNS, SYS_INDEXES ──> indexes by id <── SYS_FIELDS

1. No row is believed: numbers have ranges, ids lie below the counters of DICT_HDR, positions are
   complete, every reference has its target, names, ids and spaces occur once, and
   dict_table_layout() has the last word on sizes. Anything else is DB_CORRUPTION.
2. Memory is bounded by DICT_TABLES_MAX table objects.
3. The old cache stays in force until the new one is complete; n_trx survives by id. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "dict/dict_int.h"

typedef struct dict_loader {
    dict_t *dict;
    err_sink_t *err;
    dict_counters_t next;
    dict_table_t *first;
    dict_table_t *last;
    uint32_t n_tables;
    dict_table_t *table;    /* joined with the current row */
    uint32_t n_cols;        /* columns of it seen so far */
    dict_index_t **indexes; /* of all tables, by id */
    uint32_t n_indexes;
    uint32_t index_pos; /* joined with the current row of SYS_FIELDS */
    uint32_t n_fields;  /* fields of it seen so far */
} dict_loader_t;

typedef dberr_t (*dict_row_fn)(dict_loader_t *loader, const byte *row);

__attribute__((format(printf, 2, 3))) static dberr_t dict_bad(dict_loader_t *loader,
                                                              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char what[256];
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return err_set(loader->err, DB_CORRUPTION, "catalogue: %s", what);
}

/** Calls fn for each row of a system table that is not delete-marked, in key order. */
static dberr_t dict_scan(dict_loader_t *loader, sys_table_t which, dict_row_fn fn)
{
    const dict_table_t *sys = dict_sys_table(loader->dict, which);
    btr_cursor_t cursor;
    dberr_t err = btr_cursor_open(&cursor, loader->dict->pool, &sys->indexes[0].tree, NULL, 0);
    CHECK(sys->row_size <= SYS_ROW_MAX);
    byte row[SYS_ROW_MAX];
    while (err == DB_SUCCESS) {
        const byte *rec = NULL;
        err = btr_cursor_next(&cursor, &rec);
        if (err == DB_SUCCESS && !rec_is_deleted(rec)) {
            err = dict_rec_read(loader->dict->pool, sys, rec, cursor.len, row);
            AND_THEN(err, fn(loader, row));
        }
    }
    btr_cursor_close(&cursor);
    return err == DB_NOT_FOUND ? DB_SUCCESS : err;
}

static bool dict_status_is_valid(uint64_t status)
{
    return status == DICT_READY || status == DICT_INCOMPLETE || status == DICT_DROPPING;
}

/* ---- SYS_TABLES ---- */

static dberr_t dict_load_table(dict_loader_t *loader, const byte *row)
{
    sys_tables_row_t r;
    dict_sys_tables_read(row, &r);
    dict_table_t *table;
    if (r.id < USER_TABLE_ID_FIRST || r.id >= loader->next.table_id
        || (loader->last != NULL && r.id <= loader->last->id)) {
        return dict_bad(loader, "table id %" PRIu64, r.id);
    }
    if (r.name[0] == 0) {
        return dict_bad(loader, "name of table %" PRIu64, r.id);
    }
    bool in_system = r.space == SPACE_SYSTEM;
    if (!in_system && (r.space < USER_SPACE_ID_FIRST || r.space >= loader->next.space_id)) {
        return dict_bad(loader, "table %" PRIu64 ": space %" PRIu64, r.id, r.space);
    }
    if (r.n_cols == 0 || r.n_cols > COLUMNS_MAX || !dict_status_is_valid(r.status)) {
        return dict_bad(loader, "table %" PRIu64 ": number of columns or status", r.id);
    }
    if (loader->n_tables == DICT_TABLES_MAX) {
        return dict_bad(loader, "more than %u tables", DICT_TABLES_MAX);
    }
    table = calloc(1, sizeof(*table));
    if (table == NULL) {
        return err_set(loader->err, DB_OUT_OF_MEMORY, "no memory for the catalogue");
    }
    table->id = r.id;
    memcpy(table->name, r.name, sizeof(table->name));
    table->space = (space_id_t)r.space;
    table->in_system = in_system;
    table->n_cols = (uint32_t)r.n_cols;
    table->status = (dict_status_t)r.status;
    *(loader->last != NULL ? &loader->last->next : &loader->first) = table;
    loader->last = table;
    loader->n_tables++;
    return DB_SUCCESS;
}

/* ---- SYS_COLUMNS ---- */

/** Leaves the tables before id behind, which must have all their columns. */
static dberr_t dict_pass_columns(dict_loader_t *loader, table_id_t id)
{
    while (loader->table != NULL && loader->table->id < id) {
        if (loader->n_cols != loader->table->n_cols) {
            return dict_bad(loader, "table %" PRIu64 ": columns are missing", loader->table->id);
        }
        loader->table = loader->table->next;
        loader->n_cols = 0;
    }
    return DB_SUCCESS;
}

static dberr_t dict_load_column(dict_loader_t *loader, const byte *row)
{
    sys_columns_row_t r;
    dict_sys_columns_read(row, &r);
    TRY(dict_pass_columns(loader, r.table_id));
    if (loader->table == NULL || loader->table->id != r.table_id) {
        return dict_bad(loader, "a column of table %" PRIu64 ", which does not exist", r.table_id);
    }
    if (r.pos != loader->n_cols || r.pos >= loader->table->n_cols) {
        return dict_bad(loader, "table %" PRIu64 ": column position %" PRIu64, r.table_id, r.pos);
    }
    uint64_t type = r.type & ~(uint64_t)(SYS_COL_NULLABLE | SYS_COL_INSTANT);
    if (r.name[0] == 0 || type < DICT_BIGINT || type > DICT_VARCHAR || r.len > VARCHAR_LEN_MAX) {
        return dict_bad(loader, "table %" PRIu64 ": name, type or length of column %" PRIu64,
                        r.table_id, r.pos);
    }
    dict_col_t *col = &loader->table->cols[loader->n_cols++];
    memcpy(col->name, r.name, sizeof(col->name));
    col->instant = (r.type & SYS_COL_INSTANT) != 0;
    col->type = (dict_type_t)type;
    col->nullable = (r.type & SYS_COL_NULLABLE) != 0;
    col->len = (uint32_t)r.len;
    return DB_SUCCESS;
}

/* ---- SYS_INDEXES ---- */

/** Of a table that is not READY the indexes may be, and their trees free already. */
static dberr_t dict_check_root(dict_loader_t *loader, const sys_indexes_row_t *r)
{
    const dict_table_t *table = loader->table;
    const fil_space_t *space = fil_space_get(buf_fil(loader->dict->pool), table->space);
    bool none = r->root == FIL_NULL;
    bool ready = r->status == DICT_READY;
    if (r->root == 0 || r->root > FIL_NULL || (none && ready && table->status == DICT_READY)
        || (!none && ready && space != NULL && r->root >= space->size_pages)) {
        return dict_bad(loader, "index %" PRIu64 ": root page %" PRIu64, r->id, r->root);
    }
    return DB_SUCCESS;
}

static dberr_t dict_check_index(dict_loader_t *loader, const sys_indexes_row_t *r)
{
    const dict_table_t *table = loader->table;
    if (table == NULL || table->id != r->table_id) {
        return dict_bad(loader, "index %" PRIu64 " of table %" PRIu64 ", which does not exist",
                        r->id, r->table_id);
    }
    if (r->id < USER_INDEX_ID_FIRST || r->id >= loader->next.index_id) {
        return dict_bad(loader, "table %" PRIu64 ": index id %" PRIu64, table->id, r->id);
    }
    if (table->n_indexes == INDEXES_MAX) {
        return dict_bad(loader, "table %" PRIu64 ": more than %u indexes", table->id, INDEXES_MAX);
    }
    bool clustered = r->type == SYS_INDEX_CLUSTERED;
    if (clustered != (table->n_indexes == 0)) {
        return dict_bad(loader, "table %" PRIu64 ": its first index, and only that, is clustered",
                        table->id);
    }
    if (r->name[0] == 0 || r->type > SYS_INDEX_UNIQUE || r->n_fields == 0
        || r->n_fields > COLUMNS_MAX || !dict_status_is_valid(r->status)
        || (clustered && r->status != (uint64_t)table->status && table->status == DICT_READY)) {
        return dict_bad(loader, "index %" PRIu64 ": name, number of fields or status", r->id);
    }
    return dict_check_root(loader, r);
}

static dberr_t dict_load_index(dict_loader_t *loader, const byte *row)
{
    sys_indexes_row_t r;
    dict_sys_indexes_read(row, &r);
    while (loader->table != NULL && loader->table->id < r.table_id) {
        loader->table = loader->table->next;
    }
    TRY(dict_check_index(loader, &r));
    dict_index_t *index = &loader->table->indexes[loader->table->n_indexes++];
    index->id = r.id;
    memcpy(index->name, r.name, sizeof(index->name));
    index->table = loader->table;
    index->status = (dict_status_t)r.status;
    index->clustered = r.type == SYS_INDEX_CLUSTERED;
    index->unique = r.type == SYS_INDEX_UNIQUE;
    index->n_fields = (uint32_t)r.n_fields;
    index->tree.id = r.id;
    index->tree.space = loader->table->space;
    index->tree.root = (page_no_t)r.root;
    loader->n_indexes++;
    return DB_SUCCESS;
}

static int dict_compare_indexes(const void *a, const void *b)
{
    const dict_index_t *x = *(const dict_index_t *const *)a;
    const dict_index_t *y = *(const dict_index_t *const *)b;
    return x->id < y->id ? -1 : x->id > y->id;
}

static dberr_t dict_sort_indexes(dict_loader_t *loader)
{
    loader->indexes = malloc((loader->n_indexes + 1) * sizeof(*loader->indexes));
    if (loader->indexes == NULL) {
        return err_set(loader->err, DB_OUT_OF_MEMORY, "no memory for the catalogue");
    }
    uint32_t n = 0;
    for (dict_table_t *table = loader->first; table != NULL; table = table->next) {
        for (uint32_t i = 0; i < table->n_indexes; i++) {
            loader->indexes[n++] = &table->indexes[i];
        }
    }
    qsort(loader->indexes, n, sizeof(*loader->indexes), dict_compare_indexes);
    for (uint32_t i = 1; i < n; i++) {
        if (loader->indexes[i - 1]->id == loader->indexes[i]->id) {
            return dict_bad(loader, "index id %" PRIu64 " occurs twice", loader->indexes[i]->id);
        }
    }
    return DB_SUCCESS;
}

/* ---- SYS_FIELDS ---- */

/** Leaves the indexes before id behind, which must have all their fields. */
static dberr_t dict_pass_fields(dict_loader_t *loader, index_id_t id)
{
    while (loader->index_pos < loader->n_indexes && loader->indexes[loader->index_pos]->id < id) {
        const dict_index_t *index = loader->indexes[loader->index_pos];
        if (loader->n_fields != index->n_fields) {
            return dict_bad(loader, "index %" PRIu64 ": key columns are missing", index->id);
        }
        loader->index_pos++;
        loader->n_fields = 0;
    }
    return DB_SUCCESS;
}

static dberr_t dict_load_field(dict_loader_t *loader, const byte *row)
{
    sys_fields_row_t r;
    dict_sys_fields_read(row, &r);
    TRY(dict_pass_fields(loader, r.index_id));
    dict_index_t *index;
    if (loader->index_pos == loader->n_indexes
        || loader->indexes[loader->index_pos]->id != r.index_id) {
        return dict_bad(loader, "a key column of index %" PRIu64 ", which does not exist",
                        r.index_id);
    }
    index = loader->indexes[loader->index_pos];
    if (r.pos != loader->n_fields || r.pos >= index->n_fields) {
        return dict_bad(loader, "index %" PRIu64 ": position %" PRIu64, r.index_id, r.pos);
    }
    if (r.col >= index->table->n_cols || r.prefix_len == 0 || r.prefix_len > BTR_KEY_LEN_MAX) {
        return dict_bad(loader, "index %" PRIu64 ": column or prefix at position %" PRIu64,
                        r.index_id, r.pos);
    }
    index->fields[r.pos].col = (uint32_t)r.col;
    index->fields[r.pos].prefix_len = (uint32_t)r.prefix_len;
    loader->n_fields++;
    return DB_SUCCESS;
}

/* ---- all of it ---- */

static int dict_compare_names(const void *a, const void *b)
{
    const dict_table_t *x = *(const dict_table_t *const *)a;
    const dict_table_t *y = *(const dict_table_t *const *)b;
    return strcmp(x->name, y->name);
}

static int dict_compare_spaces(const void *a, const void *b)
{
    const dict_table_t *x = *(const dict_table_t *const *)a;
    const dict_table_t *y = *(const dict_table_t *const *)b;
    return x->space < y->space ? -1 : x->space > y->space;
}

static dberr_t dict_check_unique(dict_loader_t *loader)
{
    const dict_table_t **tables = malloc((loader->n_tables + 1) * sizeof(*tables));
    dberr_t err = DB_SUCCESS;
    if (tables == NULL) {
        return err_set(loader->err, DB_OUT_OF_MEMORY, "no memory for the catalogue");
    }
    uint32_t n = 0;
    for (const dict_table_t *table = loader->first; table != NULL; table = table->next) {
        tables[n++] = table;
    }
    qsort(tables, n, sizeof(*tables), dict_compare_names);
    for (uint32_t i = 1; i < n && err == DB_SUCCESS; i++) {
        if (strcmp(tables[i - 1]->name, tables[i]->name) == 0) {
            err = dict_bad(loader, "two tables are named %s", tables[i]->name);
        }
    }
    qsort(tables, n, sizeof(*tables), dict_compare_spaces);
    for (uint32_t i = 1; i < n && err == DB_SUCCESS; i++) {
        if (!tables[i]->in_system && tables[i - 1]->space == tables[i]->space) {
            err = dict_bad(loader, "tables %s and %s have the same space %" PRIu32,
                           tables[i - 1]->name, tables[i]->name, tables[i]->space);
        }
    }
    free(tables);
    return err;
}

static dberr_t dict_layout_all(dict_loader_t *loader)
{
    uint32_t page_size = buf_page_size(loader->dict->pool);
    const dict_table_t *old = loader->dict->first;
    for (dict_table_t *table = loader->first; table != NULL; table = table->next) {
        err_sink_t why = {.msg = ""};
        if (dict_table_layout(table, page_size, &why) != DB_SUCCESS) {
            return dict_bad(loader, "table %" PRIu64 ": %.200s", table->id, why.msg);
        }
        while (old != NULL && old->id < table->id) {
            old = old->next;
        }
        table->n_trx = old != NULL && old->id == table->id ? old->n_trx : 0;
    }
    return DB_SUCCESS;
}

static dberr_t dict_load_rows(dict_loader_t *loader)
{
    dberr_t err = dict_counters_read(loader->dict, &loader->next);
    AND_THEN(err, dict_scan(loader, SYS_TABLES, dict_load_table));
    loader->table = loader->first;
    AND_THEN(err, dict_scan(loader, SYS_COLUMNS, dict_load_column));
    AND_THEN(err, dict_pass_columns(loader, UINT64_MAX));
    loader->table = loader->first;
    TRY(err);
    TRY(dict_scan(loader, SYS_INDEXES, dict_load_index));
    TRY(dict_sort_indexes(loader));
    TRY(dict_scan(loader, SYS_FIELDS, dict_load_field));
    TRY(dict_pass_fields(loader, UINT64_MAX));
    TRY(dict_check_unique(loader));
    return dict_layout_all(loader);
}

dberr_t dict_load(dict_t *dict)
{
    dict_loader_t loader = {.dict = dict, .err = &buf_env(dict->pool)->err};
    dberr_t err = dict_load_rows(&loader);
    free(loader.indexes);
    if (err != DB_SUCCESS) {
        dict_tables_free(loader.first);
        return err;
    }
    dict_tables_free(dict->first);
    dict->first = loader.first;
    dict->last = loader.last;
    dict->n_tables = loader.n_tables;
    return DB_SUCCESS;
}
