/** Rows: layout of records, digests, what transactions left in them.

Place: check/, on the tree walk.

Checked: I7 no two entries of a unique index that carry no delete mark have the same key columns; I10 each secondary index has exactly the entries that the live rows call for (count and a
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

/* ---- layout ---- */

static bool chk_layout_index(const chk_table_t *table, chk_index_t *index, uint32_t page_size)
{
    uint32_t len = 0;
    for (uint32_t i = 0; i < index->n_fields; i++) {
        if (index->fields[i].col >= table->n_cols) {
            return false;
        }
        const chk_col_t *col = &table->cols[index->fields[i].col];
        uint32_t prefix_len = index->fields[i].prefix_len;
        if (prefix_len == 0 || prefix_len > col->len
            || (prefix_len < col->len && (index->clustered || col->type != CHK_TYPE_CHAR))) {
            return false;
        }
        len += prefix_len;
    }
    index->key_len = index->clustered ? len : len + table->pk_len;
    index->rec_size = index->clustered ? 1 + table->row_size + CHK_TRX_ID_LEN + CHK_ROLL_PTR_LEN
                                       : 1 + index->key_len;
    return index->n_fields > 0 && page_capacity(page_size, index->rec_size) >= 2;
}

bool chk_table_layout(chk_table_t *table, uint32_t page_size)
{
    table->row_size = 0;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        chk_col_t *col = &table->cols[i];
        bool ok = (col->type == CHK_TYPE_BIGINT && col->len == 8)
                  || (col->type == CHK_TYPE_CHAR && col->len >= 1 && col->len <= CHAR_LEN_MAX);
        if (!ok) {
            return false;
        }
        col->row_offset = table->row_size;
        col->rec_offset = 0;
        table->row_size += col->len;
    }
    if (table->n_cols == 0 || table->n_indexes == 0) {
        return false;
    }
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        if (!chk_layout_index(table, &table->indexes[i], page_size)) {
            return false;
        }
        table->pk_len = table->indexes[0].key_len;
    }
    uint32_t offset = 1;
    for (uint32_t i = 0; i < table->indexes[0].n_fields; i++) {
        chk_col_t *col = &table->cols[table->indexes[0].fields[i].col];
        if (col->rec_offset != 0) {
            return false; /* twice in the primary key */
        }
        col->rec_offset = offset;
        offset += col->len;
    }
    offset += CHK_TRX_ID_LEN + CHK_ROLL_PTR_LEN;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        if (table->cols[i].rec_offset == 0) {
            table->cols[i].rec_offset = offset;
            offset += table->cols[i].len;
        }
    }
    return true;
}

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
    char names[COLUMNS_MAX * (NAME_LEN_MAX + 1) + 1];
    size_t len = 0;
    for (uint32_t i = 0; i < table->n_cols; i++) {
        len += (size_t)snprintf(names + len, sizeof(names) - len, "%s,", table->cols[i].name);
    }
    return XXH64(names, len, 0);
}

typedef struct chk_row_scan {
    chk_t *chk;
    chk_table_t *table;
    chk_index_t *index;
    chk_marks_t marks;
    byte *row;    /**< row_size bytes */
    byte *entry;  /**< a secondary entry, at most page_size bytes */
    byte *before; /**< key of the last live entry, the same */
    bool has_before;
    uint64_t n_same; /**< live entries of a unique index with the key columns of the one before */
    page_no_t same_page; /**< the first of them */
} chk_row_scan_t;

/** Adds the entries that a live row calls for in each READY secondary index. */
static void chk_expect_entries(chk_row_scan_t *scan)
{
    const chk_table_t *table = scan->table;
    const chk_index_t *primary = &table->indexes[0];
    for (uint32_t i = 1; i < table->n_indexes; i++) {
        chk_index_t *index = &scan->table->indexes[i];
        byte *to = scan->entry;
        for (uint32_t f = 0; f < index->n_fields; f++) {
            memcpy(to, scan->row + table->cols[index->fields[f].col].row_offset,
                   index->fields[f].prefix_len);
            to += index->fields[f].prefix_len;
        }
        for (uint32_t f = 0; f < primary->n_fields; f++) {
            const chk_col_t *col = &table->cols[primary->fields[f].col];
            memcpy(to, scan->row + col->row_offset, col->len);
            to += col->len;
        }
        chk_sum_add(&index->expected, scan->entry, index->key_len);
    }
}

static dberr_t chk_clustered_rec(void *ctx, page_no_t page_no, const byte *rec)
{
    chk_row_scan_t *scan = ctx;
    const chk_table_t *table = scan->table;
    chk_marks_row(scan->chk, table, page_no, rec, &scan->marks);
    if (rec_is_deleted(rec)) {
        return DB_SUCCESS;
    }
    for (uint32_t i = 0; i < table->n_cols; i++) {
        memcpy(scan->row + table->cols[i].row_offset, rec + table->cols[i].rec_offset,
               table->cols[i].len);
    }
    chk_sum_add(&scan->index->live, scan->row, table->row_size);
    chk_expect_entries(scan);
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

static dberr_t chk_secondary_rec(void *ctx, page_no_t page_no, const byte *rec)
{
    chk_row_scan_t *scan = ctx;
    if (!rec_is_deleted(rec) && scan->index->unique) {
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
                       .rec_size = index->rec_size};
    scan->index = index;
    scan->marks = (chk_marks_t){.page_no = FIL_NULL};
    scan->has_before = false;
    scan->n_same = 0;
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
                           .row = malloc(table->row_size),
                           .entry = malloc(chk->page_size),
                           .before = malloc(chk->page_size)};
    dberr_t err = scan.row != NULL && scan.entry != NULL && scan.before != NULL
                      ? chk_indexes_walk(&scan, file)
                      : err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory for a row");
    free(scan.row);
    free(scan.entry);
    free(scan.before);
    return err;
}
