/** Rows: digests, what transactions left in them. check_record.c reads them.

Place: check/, on the tree walk.

Checked: I6 each record is a row of its table, and the metadata record, the first one, has a value
for each column; I7 no two entries of a unique index that carry no
delete mark have the same key columns; I10 each secondary index has exactly the entries that the
live rows call for (count and a hash sum that does not depend on order); I25 no row carries a
transaction id at or above the limit, and once the history is empty none carries any, nor a delete
mark.

The digest of a table is over row bytes, that of an index over entries, as check.h says. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "check/check_memo.h"
#include "check/check_table.h"
#include "page/page_index.h"

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
    chk_file_t *file;
    chk_table_t *table;
    uint64_t definition; /**< hash of the table's */
    chk_index_t *index;
    chk_marks_t marks;
    byte *row;                      /**< what the digest of a row is over */
    byte *meta;                     /**< the metadata record */
    chk_value_t metas[COLUMNS_MAX]; /**< its values */
    uint64_t meta_hash;             /**< 0: there is none */
    byte *long_values;              /**< of a row */
    byte *entry;                    /**< a secondary entry, at most page_size bytes */
    byte *before;                   /**< key of the last live entry, the same */
    bool has_before;
    bool before_is_away;   /**< it is still in its page ... */
    page_no_t before_page; /**< ... which is this one */
    uint32_t before_slot;
    uint64_t before_hash; /**< where a leaf begins */
    uint64_t n_same; /**< live entries of a unique index with the key columns of the one before */
    page_no_t same_page; /**< the first of them */
    uint64_t n_bad;      /**< clustered records that are no rows */
    page_no_t bad_page;  /**< the first of them */
    bool torn;           /**< a long value is not whole, which was reported */
    chk_leaf_t leaf;     /**< of the records of the page so far */
    uint64_t n_beyond;   /**< the same: ids at or above the limit */
    uint32_t slot;       /**< records of the page so far */
    bool odd;            /**< there is more to say of the page than its sums */
} chk_row_scan_t;

/* ---- sums of a leaf ---- */

static uint64_t chk_mix(uint64_t hash, uint64_t a, uint64_t b)
{
    const uint64_t parts[] = {hash, a, b};
    return XXH3_64bits(parts, sizeof(parts));
}

/** Hash of what the records of each index of the table must be. */
static uint64_t chk_table_definition(const chk_table_t *table)
{
    uint64_t hash = chk_mix(table->id, table->space, table->n_cols);
    for (uint32_t i = 0; i < table->n_cols; i++) {
        const chk_col_t *col = &table->cols[i];
        hash = chk_mix(hash, col->type, col->len);
        hash = chk_mix(hash, col->instant, col->nullable);
        hash = chk_mix(hash, col->nullable ? 1 + col->null_bit : 0,
                       col->primary ? col->rec_offset : 0);
    }
    for (uint32_t i = 0; i < table->n_indexes; i++) {
        const chk_index_t *index = &table->indexes[i];
        hash = chk_mix(hash, index->id, index->n_fields);
        for (uint32_t k = 0; k < index->n_fields; k++) {
            hash = chk_mix(hash, index->fields[k].col, index->fields[k].prefix_len);
        }
        hash = chk_mix(hash, index->unique, index->clustered);
    }
    return hash;
}

static uint64_t chk_sums_context(void *ctx)
{
    const chk_row_scan_t *scan = ctx;
    return scan->index->clustered                    ? scan->meta_hash
           : scan->index->unique && scan->has_before ? scan->before_hash
                                                     : 0;
}

static void chk_sums_begin(void *ctx)
{
    chk_row_scan_t *scan = ctx;
    uint32_t n_expected = scan->index->clustered ? scan->table->n_indexes - 1 : 0;
    uint64_t *expected = scan->leaf.expected;
    if (n_expected > 0) {
        memset(expected, 0, n_expected * sizeof(*expected));
    }
    scan->leaf =
        (chk_leaf_t){.n_expected = n_expected, .expected = expected, .unique_slot = UINT32_MAX};
    scan->n_beyond = 0;
    scan->slot = 0;
    scan->odd = false;
}

/** Adds what the records of a leaf come to. */
static void chk_leaf_add(chk_row_scan_t *scan, page_no_t page_no, const chk_leaf_t *leaf,
                         uint64_t n_beyond)
{
    scan->index->live.n += leaf->live.n;
    scan->index->live.hash += leaf->live.hash;
    for (uint32_t i = 0; i < leaf->n_expected; i++) {
        scan->table->indexes[i + 1].expected.n += leaf->live.n;
        scan->table->indexes[i + 1].expected.hash += leaf->expected[i];
    }
    const chk_marks_t marks = {.n_beyond = n_beyond,
                               .n_trx_id = scan->chk->quiet ? leaf->n_history : 0,
                               .n_deleted = scan->chk->quiet ? leaf->n_deleted : 0};
    chk_marks_add(&scan->marks, &marks, page_no);
}

static bool chk_sums_take(void *ctx, page_no_t page_no, const chk_leaf_t *leaf)
{
    chk_row_scan_t *scan = ctx;
    trx_id_t limit = scan->chk->trx_id_limit;
    if (limit != 0 && leaf->trx_id_max >= limit) {
        return false;
    }
    chk_leaf_add(scan, page_no, leaf, 0);
    if (leaf->unique_slot != UINT32_MAX) {
        scan->has_before = true;
        scan->before_is_away = true;
        scan->before_page = page_no;
        scan->before_slot = leaf->unique_slot;
        scan->before_hash = leaf->unique_key;
    }
    return true;
}

static bool chk_sums_end(void *ctx, page_no_t page_no, chk_leaf_t *leaf)
{
    chk_row_scan_t *scan = ctx;
    chk_leaf_add(scan, page_no, &scan->leaf, scan->n_beyond);
    if (scan->leaf.unique_slot != UINT32_MAX) {
        scan->before_hash = XXH3_64bits(scan->before, scan->index->key_len - scan->table->pk_len);
        scan->leaf.unique_key = scan->before_hash;
    }
    leaf->live = scan->leaf.live;
    leaf->n_deleted = scan->leaf.n_deleted;
    leaf->n_history = scan->leaf.n_history;
    leaf->trx_id_max = scan->leaf.trx_id_max;
    leaf->unique_slot = scan->leaf.unique_slot;
    leaf->unique_key = scan->leaf.unique_key;
    leaf->n_expected = scan->leaf.n_expected;
    leaf->expected = scan->leaf.expected;
    return !scan->odd;
}

static const chk_leaf_ops_t CHK_LEAF_OPS = {.context = chk_sums_context,
                                            .begin = chk_sums_begin,
                                            .take = chk_sums_take,
                                            .end = chk_sums_end};

/* ---- records ---- */

/** Adds the entries that a live row calls for in each READY secondary index. */
static void chk_expect_entries(chk_row_scan_t *scan, const chk_value_t *values)
{
    for (uint32_t i = 1; i < scan->table->n_indexes; i++) {
        const chk_index_t *index = &scan->table->indexes[i];
        chk_entry_bytes(scan->table, index, values, scan->entry);
        scan->leaf.expected[i - 1] += XXH64(scan->entry, index->key_len, 0);
    }
}

/** Replaces references by what they lead to, in scan->long_values. */
static dberr_t chk_long_values(chk_row_scan_t *scan, chk_value_t *values, bool *valid)
{
    byte *to = scan->long_values;
    for (uint32_t i = 0; i < scan->table->n_cols; i++) {
        chk_value_t *value = &values[i];
        if (value->at == NULL || !value->external) {
            continue;
        }
        scan->odd = true; /* its pages have to be walked each time */
        chk_ref_t ref;
        bool owner = false;
        *valid = chk_ref_read(value->at, scan->table->space, &ref, &owner) && owner
                 && ref.len <= scan->table->cols[i].len;
        if (!*valid) {
            return DB_SUCCESS;
        }
        bool whole = true;
        TRY(chk_blob_walk(scan->chk, scan->table, &ref, to, &whole));
        scan->torn = scan->torn || !whole;
        if (!whole) {
            memset(to, 0, ref.len); /* or the digest would be over what an earlier row left there */
        }
        *value = (chk_value_t){.at = to, .len = ref.len};
        to += ref.len;
    }
    return DB_SUCCESS;
}

/** What transactions left in a row, whatever the limit and the history say of that. */
static void chk_leaf_marks(chk_row_scan_t *scan, const byte *rec)
{
    chk_row_marks_t row = chk_row_marks(rec, scan->table->pk_len);
    chk_leaf_t *leaf = &scan->leaf;
    leaf->trx_id_max = row.trx_id > leaf->trx_id_max ? row.trx_id : leaf->trx_id_max;
    leaf->n_history += row.history;
    leaf->n_deleted += row.deleted;
    scan->n_beyond += scan->chk->trx_id_limit != 0 && row.trx_id >= scan->chk->trx_id_limit;
}

/** The values that records have for columns that they are without. */
static void chk_meta_rec(chk_row_scan_t *scan, page_no_t page_no, const byte *rec, uint32_t len)
{
    const chk_table_t *table = scan->table;
    scan->odd = true; /* it is needed each time */
    memcpy(scan->meta, rec, len);
    bool valid = !rec_is_deleted(rec) && chk_is_zero(rec + 1, table->pk_len)
                 && chk_row_read(table, scan->meta, len, NULL, scan->metas);
    for (uint32_t i = 0; valid && i < table->n_cols; i++) {
        valid = !scan->metas[i].external;
    }
    scan->meta_hash = valid ? XXH3_64bits(rec, len) | 1U : 0;
    if (!valid) {
        scan->torn = true;
        chk_find(scan->chk, 6, scan->file, page_no,
                 "table %s: its metadata record does not have the values of all columns",
                 table->name);
    }
}

static dberr_t chk_clustered_rec(void *ctx, page_no_t page_no, const byte *rec, uint32_t len)
{
    chk_row_scan_t *scan = ctx;
    chk_leaf_marks(scan, rec);
    if (rec_is_min(rec)) {
        chk_meta_rec(scan, page_no, rec, len);
        return DB_SUCCESS;
    }
    chk_value_t values[COLUMNS_MAX];
    const chk_value_t *meta = scan->meta_hash != 0 ? scan->metas : NULL;
    bool valid = chk_row_read(scan->table, rec, len, meta, values);
    TRY(valid ? chk_long_values(scan, values, &valid) : DB_SUCCESS);
    if (!valid) {
        scan->bad_page = scan->n_bad++ == 0 ? page_no : scan->bad_page;
        scan->odd = true;
        return DB_SUCCESS;
    }
    if (!rec_is_deleted(rec)) {
        chk_sum_add(&scan->leaf.live, scan->row, chk_row_bytes(scan->table, values, scan->row));
        chk_expect_entries(scan, values);
    }
    return DB_SUCCESS;
}

/** The key of the last live entry is needed itself. */
static dberr_t chk_before_key(chk_row_scan_t *scan, uint32_t len)
{
    chk_t *chk = scan->chk;
    if (!scan->before_is_away) {
        return DB_SUCCESS;
    }
    TRY(chk_page_read(chk, scan->file, scan->before_page, chk->page));
    memcpy(scan->before, page_rec(chk->page, chk->page_size, scan->before_slot) + 1, len);
    scan->before_is_away = false;
    return DB_SUCCESS;
}

/** A live entry of a unique index against the one before. */
static dberr_t chk_unique_rec(chk_row_scan_t *scan, page_no_t page_no, const byte *key)
{
    uint32_t len = scan->index->key_len - scan->table->pk_len;
    TRY(chk_before_key(scan, len));
    if (scan->has_before && memcmp(scan->before, key, len) == 0) {
        scan->same_page = scan->n_same++ == 0 ? page_no : scan->same_page;
        scan->odd = true;
    }
    memcpy(scan->before, key, len);
    scan->has_before = true;
    scan->leaf.unique_slot = scan->slot;
    return DB_SUCCESS;
}

static dberr_t chk_secondary_rec(void *ctx, page_no_t page_no, const byte *rec, uint32_t len)
{
    chk_row_scan_t *scan = ctx;
    (void)len;
    dberr_t err = DB_SUCCESS;
    if (!rec_is_deleted(rec) && scan->index->unique
        && !chk_key_has_null(scan->table, scan->index, rec + 1)) {
        err = chk_unique_rec(scan, page_no, rec + 1);
    }
    if (!rec_is_deleted(rec)) {
        chk_sum_add(&scan->leaf.live, rec + 1, scan->index->key_len);
    } else {
        scan->leaf.n_deleted++;
    }
    scan->slot++;
    return err;
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
                       .instant = index->clustered && scan->table->n_core < scan->table->n_cols
                                      ? scan->table->n_core
                                      : 0,
                       .leaves = index->clustered ? &scan->table->leaves : NULL,
                       .definition = chk_mix(scan->definition, index->id, index->root),
                       .ops = &CHK_LEAF_OPS};
    scan->file = file;
    scan->index = index;
    scan->marks = (chk_marks_t){.page_no = FIL_NULL};
    scan->has_before = false;
    scan->before_is_away = false;
    scan->n_same = 0;
    scan->n_bad = 0;
    scan->torn = false;
    scan->meta_hash = 0;
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
            chk_broken(file, CHK_OWNER_UNKNOWN); /* reported with the catalogue */
            continue;
        }
        bool whole = true;
        TRY(chk_index_walk(scan, file, index, &whole));
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
                           .definition = chk_table_definition(table),
                           .leaf = {.expected = malloc(INDEXES_MAX * sizeof(uint64_t))},
                           .row = malloc(CHK_ROW_BYTES_MAX),
                           .meta = malloc(chk->page_size),
                           .long_values = malloc(ROW_SIZE_MAX),
                           .entry = malloc(chk->page_size),
                           .before = malloc(chk->page_size)};
    dberr_t err = scan.row != NULL && scan.meta != NULL && scan.long_values != NULL
                          && scan.entry != NULL && scan.before != NULL && scan.leaf.expected != NULL
                      ? chk_indexes_walk(&scan, file)
                      : err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory for a row");
    free(scan.leaf.expected);
    free(scan.row);
    free(scan.meta);
    free(scan.long_values);
    free(scan.entry);
    free(scan.before);
    return err;
}
