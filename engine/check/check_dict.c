/** The catalogue: rows of the four system tables, put together and matched with the files.

Place: check/, on the tree walk; it knows the rows by FORMAT.md, not through dict/.

    SYS_TABLES -> tables by id <- SYS_COLUMNS, SYS_INDEXES -> indexes by id <- SYS_FIELDS

Checked: I12 rows that make sense together; tables and files one to one, by name and by the space id
of page 0; nothing left of an unfinished operation.

A row that makes no sense is reported, and its table is not looked at further. Memory: at most
CHK_TABLES_MAX tables. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "check/check_fsp.h"
#include "check/check_table.h"
#include "page/page_index.h"

#define SYS_NAME_LEN 64U
#define SYS_COLS_MAX 7U

typedef struct chk_sys_def {
    const char *name;
    uint32_t n_cols;
    uint32_t n_key;
    uint32_t name_col; /**< position of the only CHAR(64); COLUMNS_MAX = none */
} chk_sys_def_t;

static const chk_sys_def_t sys_defs[CHK_SYS_TABLES] = {
    {"SYS_TABLES", 5, 1, 1},           /* ID | NAME SPACE N_COLS STATUS */
    {"SYS_COLUMNS", 5, 2, 2},          /* TABLE_ID POS | NAME TYPE LEN */
    {"SYS_INDEXES", 7, 2, 2},          /* TABLE_ID ID | NAME N_FIELDS CLUSTERED ROOT STATUS */
    {"SYS_FIELDS", 4, 2, COLUMNS_MAX}, /* INDEX_ID POS | COL PREFIX_LEN */
};

typedef struct chk_index_ref {
    chk_table_t *table;
    uint32_t i;
    uint32_t n_fields; /**< seen so far */
} chk_index_ref_t;

typedef struct chk_dict_scan {
    chk_t *chk;
    chk_file_t *file;
    bool whole;
    chk_table_t *sys; /**< the system table being read */
    chk_marks_t marks;
    uint64_t next_ids[3];  /**< counters of DICT_HDR: table, index, space */
    chk_index_ref_t *refs; /**< in order of index id */
    uint32_t n_refs;
    uint32_t refs_size;
} chk_dict_scan_t;

__attribute__((format(printf, 3, 4))) static void
chk_dict_find(chk_dict_scan_t *scan, chk_table_t *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char what[160];
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    if (table != NULL) {
        table->sound = false;
    }
    chk_find(scan->chk, 12, scan->file, FIL_NULL, "catalogue: %s", what);
}

/* ---- rows ---- */

static uint64_t chk_sys_number(const chk_table_t *sys, const byte *rec, uint32_t col)
{
    return mach_read_8(rec + sys->cols[col].rec_offset) ^ 1ULL << 63;
}

/** False: no name that a table, column or index can have. */
static bool chk_sys_name(const chk_table_t *sys, const byte *rec, uint32_t col, char *name)
{
    const char *p = (const char *)rec + sys->cols[col].rec_offset;
    uint32_t len = SYS_NAME_LEN;
    while (len > 0 && p[len - 1] == ' ') {
        len--;
    }
    if (len == 0 || len > NAME_LEN_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < len; i++) {
        if (p[i] <= ' ' || p[i] > '~' || p[i] == '/' || p[i] == '.') {
            return false;
        }
    }
    memcpy(name, p, len);
    name[len] = '\0';
    return true;
}

chk_table_t *chk_table_by_id(const chk_t *chk, table_id_t id)
{
    uint32_t low = 0;
    uint32_t high = chk->n_tables;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (chk->tables[mid]->id < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < chk->n_tables && chk->tables[low]->id == id ? chk->tables[low] : NULL;
}

static dberr_t chk_sys_tables_rec(chk_dict_scan_t *scan, const byte *rec)
{
    chk_t *chk = scan->chk;
    uint64_t id = chk_sys_number(scan->sys, rec, 0);
    uint64_t space = chk_sys_number(scan->sys, rec, 2);
    uint64_t n_cols = chk_sys_number(scan->sys, rec, 3);
    uint64_t status = chk_sys_number(scan->sys, rec, 4);
    char name[NAME_LEN_MAX + 1];
    if (!chk_sys_name(scan->sys, rec, 1, name) || id < CHK_USER_TABLE_ID_FIRST
        || id >= scan->next_ids[0] || space >= scan->next_ids[2] || n_cols == 0
        || n_cols > COLUMNS_MAX || status < CHK_READY || status > CHK_DROPPING) {
        chk_dict_find(scan, NULL, "impossible row of table %" PRIu64 " in SYS_TABLES", id);
        return DB_SUCCESS;
    }
    if (chk->n_tables == CHK_TABLES_MAX) {
        chk_dict_find(scan, NULL, "more than %u tables", CHK_TABLES_MAX);
        return DB_SUCCESS;
    }
    chk_table_t *table = calloc(1, sizeof(*table));
    if (table == NULL) {
        return err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory for the catalogue");
    }
    memcpy(table->name, name, sizeof(name));
    table->id = id;
    table->space = (space_id_t)space;
    table->n_cols = (uint32_t)n_cols;
    table->status = (uint32_t)status;
    table->sound = true;
    table->leaves = CHK_OWNER_UNKNOWN;
    chk->tables[chk->n_tables++] = table;
    return DB_SUCCESS;
}

static dberr_t chk_sys_columns_rec(chk_dict_scan_t *scan, const byte *rec)
{
    uint64_t id = chk_sys_number(scan->sys, rec, 0);
    uint64_t pos = chk_sys_number(scan->sys, rec, 1);
    uint64_t flags = chk_sys_number(scan->sys, rec, 3);
    uint64_t type = flags & ~(uint64_t)(CHK_TYPE_NULLABLE | CHK_TYPE_INSTANT);
    uint64_t len = chk_sys_number(scan->sys, rec, 4);
    chk_table_t *table = chk_table_by_id(scan->chk, id);
    if (table == NULL || pos >= table->n_cols) {
        chk_dict_find(scan, table, "column %" PRIu64 " of table %" PRIu64 " has no table", pos, id);
        return DB_SUCCESS;
    }
    chk_col_t *col = &table->cols[pos];
    if (!chk_sys_name(scan->sys, rec, 2, col->name) || type > CHK_TYPE_VARCHAR
        || len > VARCHAR_LEN_MAX) {
        chk_dict_find(scan, table, "impossible row of column %" PRIu64 " of table %s", pos,
                      table->name);
        return DB_SUCCESS;
    }
    col->type = (uint32_t)type;
    col->nullable = (flags & CHK_TYPE_NULLABLE) != 0;
    col->instant = (flags & CHK_TYPE_INSTANT) != 0;
    col->len = (uint32_t)len;
    return DB_SUCCESS;
}

static dberr_t chk_ref_add(chk_dict_scan_t *scan, chk_table_t *table, uint32_t i)
{
    if (scan->n_refs == scan->refs_size) {
        uint32_t size = scan->refs_size != 0 ? 2 * scan->refs_size : 64;
        chk_index_ref_t *refs = realloc(scan->refs, size * sizeof(*refs));
        if (refs == NULL) {
            return err_set(&scan->chk->env->err, DB_OUT_OF_MEMORY, "no memory for the catalogue");
        }
        scan->refs = refs;
        scan->refs_size = size;
    }
    scan->refs[scan->n_refs++] = (chk_index_ref_t){.table = table, .i = i};
    return DB_SUCCESS;
}

static dberr_t chk_sys_indexes_rec(chk_dict_scan_t *scan, const byte *rec)
{
    const chk_table_t *sys = scan->sys;
    uint64_t table_id = chk_sys_number(sys, rec, 0);
    uint64_t id = chk_sys_number(sys, rec, 1);
    uint64_t n_fields = chk_sys_number(sys, rec, 3);
    uint64_t type = chk_sys_number(sys, rec, 4);
    uint64_t root = chk_sys_number(sys, rec, 5);
    uint64_t status = chk_sys_number(sys, rec, 6);
    chk_table_t *table = chk_table_by_id(scan->chk, table_id);
    if (table == NULL || table->n_indexes == INDEXES_MAX) {
        chk_dict_find(scan, table, "index %" PRIu64 " of table %" PRIu64 " has no place", id,
                      table_id);
        return DB_SUCCESS;
    }
    char name[NAME_LEN_MAX + 1];
    if (!chk_sys_name(sys, rec, 2, name) || id < CHK_USER_INDEX_ID_FIRST || id >= scan->next_ids[1]
        || n_fields == 0 || n_fields > COLUMNS_MAX || type > CHK_INDEX_UNIQUE
        || (type == CHK_INDEX_CLUSTERED) != (table->n_indexes == 0) || root == 0 || root > FIL_NULL
        || (root == FIL_NULL && status == CHK_READY && table->status == CHK_READY)
        || status < CHK_READY || status > CHK_DROPPING) {
        chk_dict_find(scan, table, "impossible row of index %" PRIu64 " of table %s", id,
                      table->name);
        return DB_SUCCESS;
    }
    chk_index_t *index = &table->indexes[table->n_indexes];
    memcpy(index->name, name, sizeof(name));
    index->id = id;
    index->n_fields = (uint32_t)n_fields;
    index->clustered = type == CHK_INDEX_CLUSTERED;
    index->unique = type == CHK_INDEX_UNIQUE;
    index->root = (page_no_t)root;
    index->status = (uint32_t)status;
    return chk_ref_add(scan, table, table->n_indexes++);
}

static int chk_ref_cmp(const void *a, const void *b)
{
    const chk_index_ref_t *x = a;
    const chk_index_ref_t *y = b;
    index_id_t ix = x->table->indexes[x->i].id;
    index_id_t iy = y->table->indexes[y->i].id;
    return ix < iy ? -1 : ix > iy;
}

static dberr_t chk_sys_fields_rec(chk_dict_scan_t *scan, const byte *rec)
{
    uint64_t id = chk_sys_number(scan->sys, rec, 0);
    uint64_t pos = chk_sys_number(scan->sys, rec, 1);
    uint64_t col = chk_sys_number(scan->sys, rec, 2);
    uint64_t prefix_len = chk_sys_number(scan->sys, rec, 3);
    uint32_t low = 0;
    uint32_t high = scan->n_refs;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (scan->refs[mid].table->indexes[scan->refs[mid].i].id < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    chk_index_ref_t *ref = low < scan->n_refs ? &scan->refs[low] : NULL;
    chk_index_t *index = ref != NULL ? &ref->table->indexes[ref->i] : NULL;
    if (index == NULL || index->id != id || pos != ref->n_fields || pos >= index->n_fields
        || col >= ref->table->n_cols || prefix_len > CHK_KEY_LEN_MAX) {
        chk_dict_find(scan, index != NULL && index->id == id ? ref->table : NULL,
                      "impossible row of key column %" PRIu64 " of index %" PRIu64, pos, id);
        return DB_SUCCESS;
    }
    index->fields[pos].col = (uint32_t)col;
    index->fields[pos].prefix_len = (uint32_t)prefix_len;
    ref->n_fields++;
    return DB_SUCCESS;
}

/* ---- reading ---- */

static dberr_t chk_sys_rec(void *ctx, page_no_t page_no, const byte *rec, uint32_t len)
{
    (void)len;
    static dberr_t (*const readers[CHK_SYS_TABLES])(chk_dict_scan_t *, const byte *) = {
        chk_sys_tables_rec, chk_sys_columns_rec, chk_sys_indexes_rec, chk_sys_fields_rec};
    chk_dict_scan_t *scan = ctx;
    chk_marks_row(scan->chk, scan->sys, page_no, rec, &scan->marks);
    return rec_is_deleted(rec) ? DB_SUCCESS : readers[scan->sys->id](scan, rec);
}

static void chk_sys_define(chk_table_t *sys, uint32_t which, uint32_t page_size)
{
    const chk_sys_def_t *def = &sys_defs[which];
    *sys = (chk_table_t){.id = which, .n_cols = def->n_cols, .n_indexes = 1, .sound = true};
    for (uint32_t i = 0; i < def->n_cols; i++) {
        bool is_name = i == def->name_col;
        sys->cols[i].type = is_name ? CHK_TYPE_CHAR : CHK_TYPE_BIGINT;
        sys->cols[i].len = is_name ? SYS_NAME_LEN : 8;
    }
    chk_index_t *primary = &sys->indexes[0];
    primary->id = CHK_SYS_INDEX_ID_FIRST + which;
    primary->clustered = true;
    primary->n_fields = def->n_key;
    for (uint32_t i = 0; i < def->n_key; i++) {
        primary->fields[i].col = i;
        primary->fields[i].prefix_len = 8;
    }
    sys->sound = chk_table_layout(sys, page_size);
}

static dberr_t chk_sys_read(chk_dict_scan_t *scan, uint32_t which, page_no_t root)
{
    chk_t *chk = scan->chk;
    chk_sys_define(scan->sys, which, chk->page_size);
    chk_tree_t tree = {.file = scan->file,
                       .table = sys_defs[which].name,
                       .index = "PRIMARY",
                       .id = scan->sys->indexes[0].id,
                       .root = root,
                       .key_len = scan->sys->indexes[0].key_len,
                       .rec_size = scan->sys->indexes[0].rec_size};
    scan->marks = (chk_marks_t){.page_no = FIL_NULL};
    bool whole = true;
    dberr_t err = chk_tree_walk(chk, &tree, chk_sys_rec, scan, &whole);
    scan->whole &= whole;
    if (err == DB_SUCCESS) {
        chk_marks_report(chk, &tree, &scan->marks);
    }
    if (err == DB_SUCCESS && which == 2 && scan->n_refs > 1) {
        qsort(scan->refs, scan->n_refs, sizeof(*scan->refs), chk_ref_cmp);
    }
    return err;
}

static dberr_t chk_dict_header(chk_dict_scan_t *scan, page_no_t roots[CHK_SYS_TABLES])
{
    chk_t *chk = scan->chk;
    bool ok = false;
    chk_reach(chk, scan->file, CHK_DICT_HDR_PAGE, CHK_OWNER_FIXED, 11, &ok);
    dberr_t err = DB_SUCCESS;
    if (ok) {
        err = chk_page_read(chk, scan->file, CHK_DICT_HDR_PAGE, chk->page);
    }
    scan->whole = ok;
    if (err != DB_SUCCESS || !ok) {
        return err;
    }
    const byte *page = chk->page;
    for (uint32_t i = 0; i < 3; i++) {
        scan->next_ids[i] = mach_read_8(page + CHK_DICT_TABLE_ID + 8 * (size_t)i);
    }
    for (uint32_t i = 0; i < CHK_SYS_TABLES; i++) {
        roots[i] = mach_read_4(page + CHK_DICT_ROOTS + 4 * (size_t)i);
    }
    scan->whole =
        fil_page_get_type(page) == FIL_PAGE_TYPE_SYS
        && mach_read_4(page + CHK_DICT_MAGIC) == CHK_DICT_MAGIC_VALUE
        && mach_read_4(page + CHK_DICT_VERSION) == CHK_DICT_FORMAT_VERSION
        && chk_is_zero(page + CHK_DICT_END, chk->page_size - FIL_PAGE_TRAILER - CHK_DICT_END)
        && scan->next_ids[0] <= INT64_MAX && scan->next_ids[1] <= UINT32_MAX
        && scan->next_ids[2] <= UINT32_MAX;
    if (!scan->whole) {
        chk_find(chk, 6, scan->file, CHK_DICT_HDR_PAGE,
                 "catalogue header: magic, version, counters or reserved bytes are wrong");
    }
    return DB_SUCCESS;
}

/** Rows that are there but do not make a whole table. */
static void chk_dict_complete(chk_dict_scan_t *scan)
{
    chk_t *chk = scan->chk;
    for (uint32_t i = 0; i < scan->n_refs; i++) {
        chk_index_ref_t *ref = &scan->refs[i];
        if (ref->n_fields != ref->table->indexes[ref->i].n_fields && ref->table->sound) {
            chk_dict_find(scan, ref->table, "key columns of index %s of table %s are missing",
                          ref->table->indexes[ref->i].name, ref->table->name);
        }
    }
    for (uint32_t i = 0; i < chk->n_tables; i++) {
        chk_table_t *table = chk->tables[i];
        if (table->sound && !chk_table_layout(table, chk->page_size)) {
            chk_dict_find(scan, table, "columns or indexes of table %s are missing or impossible",
                          table->name);
        }
    }
}

/* ---- files ---- */

static bool chk_path_is(const chk_file_t *file, const char *table)
{
    size_t len = strlen(table);
    return strncmp(file->path, table, len) == 0 && strcmp(file->path + len, CHK_IBD_SUFFIX) == 0;
}

static bool chk_file_is_reported(const chk_t *chk, const char *table)
{
    for (const chk_file_t *file = chk->files; file != NULL; file = file->next) {
        if (!file->usable && chk_path_is(file, table)) {
            return true;
        }
    }
    return false;
}

static void chk_dict_match_table(chk_dict_scan_t *scan, const chk_table_t *table)
{
    chk_t *chk = scan->chk;
    chk_file_t *file = chk_file_of_space(chk, table->space);
    if (table->status != CHK_READY) {
        chk_dict_find(scan, NULL, "table %s was left %s", table->name,
                      table->status == CHK_INCOMPLETE ? "incomplete" : "half dropped");
    } else if (file == NULL && !chk_file_is_reported(chk, table->name)) {
        chk_dict_find(scan, NULL, "table %s: no file carries its space id %" PRIu32, table->name,
                      table->space);
    }
    for (uint32_t i = 0; i < table->n_indexes && table->status == CHK_READY; i++) {
        if (table->indexes[i].status != CHK_READY) {
            chk_dict_find(
                scan, NULL, "index %s of table %s was left %s", table->indexes[i].name, table->name,
                table->indexes[i].status == CHK_INCOMPLETE ? "incomplete" : "half dropped");
        }
    }
    if (file == NULL) {
        return;
    }
    if (table->space == SPACE_SYSTEM) {
        return; /* as many as there are */
    }
    if (!chk_path_is(file, table->name)) {
        chk_dict_find(scan, NULL, "table %s has the file %s", table->name, file->path);
    }
    if (file->claimed) {
        chk_dict_find(scan, NULL, "two tables have the space id %" PRIu32, table->space);
    }
    file->claimed = true;
}

static void chk_dict_match(chk_dict_scan_t *scan)
{
    chk_t *chk = scan->chk;
    for (uint32_t i = 0; i < chk->n_tables; i++) {
        chk_dict_match_table(scan, chk->tables[i]);
    }
    for (chk_file_t *file = chk->files; file != NULL; file = file->next) {
        if (file->usable && !file->claimed && scan->whole) {
            chk_find(chk, 12, file, FIL_NULL, "no table of the catalogue has this file");
        }
    }
}

dberr_t chk_dict(chk_t *chk)
{
    chk_dict_scan_t scan = {.chk = chk, .file = chk_file_of_space(chk, SPACE_SYSTEM)};
    if (scan.file == NULL) {
        return DB_SUCCESS;
    }
    scan.file->claimed = true;
    scan.sys = malloc(sizeof(*scan.sys));
    chk->tables = malloc(CHK_TABLES_MAX * sizeof(chk_table_t *));
    page_no_t roots[CHK_SYS_TABLES];
    dberr_t err = scan.sys != NULL && chk->tables != NULL
                      ? chk_dict_header(&scan, roots)
                      : err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory for the catalogue");
    for (uint32_t i = 0; err == DB_SUCCESS && scan.whole && i < CHK_SYS_TABLES; i++) {
        err = chk_sys_read(&scan, i, roots[i]);
    }
    if (err == DB_SUCCESS && scan.whole) {
        chk_dict_complete(&scan);
        chk_dict_match(&scan);
    }
    chk->dict_whole = err == DB_SUCCESS && scan.whole;
    free(scan.sys);
    free(scan.refs);
    return err;
}
