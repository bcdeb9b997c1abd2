/** Rows: digests, what transactions left in them. check_record.c reads them.

Place: check/, on the tree walk.

Checked: I6 each record is a row of its table; I7 no two entries of a unique index that carry no delete mark have the same key columns; I10 each secondary index has exactly the entries that the live rows call for (count and a
hash sum that does not depend on order); I25 no row carries a transaction id at or above the limit,
and once the history is empty none carries any, nor a delete mark.

The digest of a table is over row bytes, that of an index over entries, as check.h says. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "check/check_int.h"
#include "page/page_index.h"

/* ---- marks ---- */

static void chk_marks_add(chk_marks_t *marks, uint64_t *counter, page_no_t page_no)
{
    if (marks->n_deleted + marks->n_trx_id + marks->n_beyond == 0) {
        marks->page_no = page_no;
    }
    ++*counter;
}

void chk_marks_row(const chk_t *chk, const chk_table_t *table, page_no_t page_no, const byte *rec,
                   chk_marks_t *marks)
{
    const byte *sys = rec + 1 + table->pk_len;
    trx_id_t trx_id = mach_read_6(sys);
    roll_ptr_t roll_ptr = mach_read_7(sys + CHK_TRX_ID_LEN);
    if (chk->trx_id_limit != 0 && trx_id >= chk->trx_id_limit) {
        chk_marks_add(marks, &marks->n_beyond, page_no);
    }
    if (chk->quiet && (trx_id != 0 || roll_ptr != 0)) {
        chk_marks_add(marks, &marks->n_trx_id, page_no);
    }
    if (chk->quiet && rec_is_deleted(rec)) {
        chk_marks_add(marks, &marks->n_deleted, page_no);
    }
}

void chk_marks_report(chk_t *chk, const chk_tree_t *tree, const chk_marks_t *marks)
{
    if (marks->n_deleted + marks->n_trx_id + marks->n_beyond == 0) {
        return;
    }
    chk_find(chk, 25, tree->file, marks->page_no,
             "index %s of table %s: %" PRIu64 " delete marks and %" PRIu64
             " transaction ids although there is no history; %" PRIu64
             " ids not below the maximum of %" PRIu64,
             tree->index, tree->table, marks->n_deleted, marks->n_trx_id, marks->n_beyond,
             chk->trx_id_limit);
}

/* ---- rows of a table ---- */

static void chk_sum_add(chk_sum_t *sum, const byte *bytes, uint32_t len)
{
    sum->n++;
    sum->hash += XXH64(bytes, len, 0);
}

uint64_t chk_names_hash(const chk_table_t *table)
{
    char names[COLUMNS_MAX * (NAME_LEN_MAX + sizeof("(65535),")) + 1];
    size_t len = 0;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        const chk_col_t *col = &table->cols[i];
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s", col->name);
        if (col->type == CHK_TYPE_VARCHAR) {
            len += (size_t)snprintf(names + len, sizeof(names) - len, "(%" PRIu32 ")", col->len);
        }
        names[len++] = ',';
    }
    return XXH64(names, len, 0);
}

typedef struct chk_row_scan {
    chk_t *chk;
    chk_table_t *table;
    chk_index_t *index;
    chk_marks_t marks;
    byte *row;         /**< what the digest of a row is over */
    byte *long_values; /**< of a row */
    byte *entry;       /**< a secondary entry, at most page_size bytes */
    byte *before;      /**< key of the last live entry, the same */
    bool has_before;
    uint64_t n_same; /**< live entries of a unique index with the key columns of the one before */
    page_no_t same_page; /**< the first of them */
    uint64_t n_bad;      /**< clustered records that are no rows */
    page_no_t bad_page;  /**< the first of them */
    bool torn;           /**< a long value is not whole, which was reported */
} chk_row_scan_t;

/** Adds the entries that a live row calls for in each READY secondary index. */
static void chk_expect_entries(chk_row_scan_t *scan, const chk_value_t *values)
{
    for (uint32_t i = 1; i < scan->table->n_indexes; i++) {
        chk_index_t *index = &scan->table->indexes[i];
        chk_entry_bytes(scan->table, index, values, scan->entry);
        chk_sum_add(&index->expected, scan->entry, index->key_len);
    }
}

/** Replaces references by what they lead to, in scan->long_values. */
static dberr_t chk_long_values(chk_row_scan_t *scan, chk_value_t *values, bool *valid)
{
    byte *to = scan->long_values;
    for (uint32_t i = 0; i < scan->table->n_cols; i++) {
        chk_value_t *value = &values[i];
        chk_ref_t ref;
        bool owner = false;
        bool whole = true;
        if (value->at == NULL || !value->external) {
            continue;
        }
        *valid = chk_ref_read(value->at, scan->table->space, &ref, &owner) && owner
                 && ref.len <= scan->table->cols[i].len;
        if (!*valid) {
            return DB_SUCCESS;
        }
        dberr_t err = chk_blob_walk(scan->chk, scan->table, &ref, to, &whole);
        if (err != DB_SUCCESS) {
            return err;
        }
        scan->torn = scan->torn || !whole;
        *value = (chk_value_t){.at = to, .len = ref.len};
        to += ref.len;
    }
    return DB_SUCCESS;
}

static dberr_t chk_clustered_rec(void *ctx, page_no_t page_no, const byte *rec, uint32_t len)
{
    chk_row_scan_t *scan = ctx;
    chk_value_t values[COLUMNS_MAX];
    chk_marks_row(scan->chk, scan->table, page_no, rec, &scan->marks);
    bool valid = chk_row_read(scan->table, rec, len, values);
    dberr_t err = valid ? chk_long_values(scan, values, &valid) : DB_SUCCESS;
    if (err != DB_SUCCESS) {
        return err;
    }
    if (!valid) {
        scan->bad_page = scan->n_bad++ == 0 ? page_no : scan->bad_page;
        return DB_SUCCESS;
    }
    if (!rec_is_deleted(rec)) {
        chk_sum_add(&scan->index->live, scan->row, chk_row_bytes(scan->table, values, scan->row));
        chk_expect_entries(scan, values);
    }
    return DB_SUCCESS;
}

/** A live entry of a unique index against the one before. */
static void chk_unique_rec(chk_row_scan_t *scan, page_no_t page_no, const byte *key)
{
    uint32_t len = scan->index->key_len - scan->table->pk_len;
    if (scan->has_before && memcmp(scan->before, key, len) == 0) {
        scan->same_page = scan->n_same++ == 0 ? page_no : scan->same_page;
    }
    memcpy(scan->before, key, len);
    scan->has_before = true;
}

static dberr_t chk_secondary_rec(void *ctx, page_no_t page_no, const byte *rec, uint32_t len)
{
    chk_row_scan_t *scan = ctx;
    (void)len;
    if (!rec_is_deleted(rec) && scan->index->unique
        && !chk_key_has_null(scan->table, scan->index, rec + 1)) {
        chk_unique_rec(scan, page_no, rec + 1);
    }
    if (!rec_is_deleted(rec)) {
        chk_sum_add(&scan->index->live, rec + 1, scan->index->key_len);
    } else if (scan->chk->quiet) {
        chk_marks_add(&scan->marks, &scan->marks.n_deleted, page_no);
    }
    return DB_SUCCESS;
}

static dberr_t chk_index_walk(chk_row_scan_t *scan, chk_file_t *file, chk_index_t *index,
                              bool *whole)
{
    chk_tree_t tree = {.file = file,
                       .table = scan->table->name,
                       .index = index->name,
                       .id = index->id,
                       .root = index->root,
                       .key_len = index->key_len,
                       .rec_size = index->rec_size,
                       .leaves = index->clustered ? &scan->table->leaves : NULL};
    scan->index = index;
    scan->marks = (chk_marks_t){.page_no = FIL_NULL};
    scan->has_before = false;
    scan->n_same = 0;
    scan->n_bad = 0;
    scan->torn = false;
    dberr_t err = chk_tree_walk(
        scan->chk, &tree, index->clustered ? chk_clustered_rec : chk_secondary_rec, scan, whole);
    if (err == DB_SUCCESS) {
        chk_marks_report(scan->chk, &tree, &scan->marks);
    }
    if (err == DB_SUCCESS && scan->n_same > 0) {
        chk_find(scan->chk, 7, file, scan->same_page,
                 "unique index %s of table %s: %" PRIu64 " live entries have the key of another",
                 index->name, scan->table->name, scan->n_same);
    }
    if (err == DB_SUCCESS && scan->n_bad > 0) {
        *whole = false;
        chk_find(scan->chk, 6, file, scan->bad_page,
                 "table %s: %" PRIu64 " records are not rows of it", scan->table->name,
                 scan->n_bad);
    }
    if (err == DB_SUCCESS && index->clustered && (!*whole || scan->torn)) {
        chk_broken(file, scan->table->leaves);
        scan->table->leaves = CHK_OWNER_UNKNOWN;
        *whole = false;
    }
    return err;
}

static dberr_t chk_indexes_walk(chk_row_scan_t *scan, chk_file_t *file)
{
    chk_table_t *table = scan->table;
    bool rows_whole = true;
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        chk_index_t *index = &table->indexes[i];
        if (index->status != CHK_READY) {
            chk_broken(file, (uint32_t)index->id); /* reported with the catalogue */
            continue;
        }
        bool whole = true;
        dberr_t err = chk_index_walk(scan, file, index, &whole);
        if (err != DB_SUCCESS) {
            return err;
        }
        rows_whole = index->clustered ? whole : rows_whole;
        if (!index->clustered && whole && rows_whole
            && (index->live.n != index->expected.n || index->live.hash != index->expected.hash)) {
            chk_find(scan->chk, 10, file, index->root,
                     "index %s of table %s: %" PRIu64 " entries (hash %016" PRIx64
                     "), the rows call for %" PRIu64 " (hash %016" PRIx64 ")",
                     index->name, table->name, index->live.n, index->live.hash, index->expected.n,
                     index->expected.hash);
        }
    }
    return DB_SUCCESS;
}

dberr_t chk_table_rows(chk_t *chk, chk_table_t *table)
{
    chk_file_t *file = chk_file_of_space(chk, table->space);
    if (file == NULL || !table->sound) {
        return DB_SUCCESS;
    }
    chk_row_scan_t scan = {.chk = chk,
                           .table = table,
                           .row = malloc(CHK_ROW_BYTES_MAX),
                           .long_values = malloc(ROW_SIZE_MAX),
                           .entry = malloc(chk->page_size),
                           .before = malloc(chk->page_size)};
    dberr_t err =
        scan.row != NULL && scan.long_values != NULL && scan.entry != NULL && scan.before != NULL
            ? chk_indexes_walk(&scan, file)
            : err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory for a row");
    free(scan.row);
    free(scan.long_values);
    free(scan.entry);
    free(scan.before);
    return err;
}
