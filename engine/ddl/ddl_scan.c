/* The scan of a build over the rows of its table.

Place: ddl/, below ddl_load.c and ddl_copy.c, which say what becomes of a row.

Rules
1. No page is pinned when a row is handed out, nor between two calls: the scan goes on behind the
   last primary key it saw, whether purge has taken that record away or not.
2. Rows with a delete mark are passed. */
#include <stdlib.h>
#include <string.h>

#include "ddl/ddl_build.h"

uint32_t ddl_sort_size(const ddl_build_t *build, const dict_index_t *index)
{
    return index->clustered ? 1 + build->table->pk_len + build->source->pk_len
                            : index->tree.leaf_rec_size;
}

uint32_t ddl_rec_size_max(const ddl_build_t *build, uint32_t size)
{
    for (uint32_t i = 0; i < build->n; i++) {
        uint32_t rec_size = ddl_sort_size(build, &build->indexes[i]);
        size = rec_size > size ? rec_size : size;
    }
    return size;
}

dberr_t ddl_scan_prepare(ddl_build_t *build, uint32_t rec_size)
{
    build->last_pk = malloc(build->source->pk_len);
    build->batch = malloc((size_t)BATCH_ROWS * build->source->row_size);
    build->rec = malloc(rec_size);
    return build->last_pk != NULL && build->batch != NULL && build->rec != NULL
               ? DB_SUCCESS
               : err_set(&build_env(build)->err, DB_OUT_OF_MEMORY, "no memory for an index build");
}

/** Copies the rows of the next records, at most max_rows and BATCH_ROWS of them, into batch.
DB_NOT_FOUND: there were fewer. */
static dberr_t ddl_scan_fetch(ddl_build_t *build, uint32_t max_rows)
{
    const btr_t *tree = &build->source->indexes[0].tree;
    uint32_t pk_len = build->source->pk_len;
    build->n_rows = 0;
    btr_cursor_t cursor;
    TRY(btr_cursor_open(&cursor, build_pool(build), tree,
                        build->scan_started ? build->last_pk : NULL, pk_len));
    dberr_t err = DB_SUCCESS;
    const byte *rec = NULL;
    for (uint32_t n = 0; n < max_rows; n++) {
        err = btr_cursor_next(&cursor, &rec);
        if (err == DB_SUCCESS && n == 0 && build->scan_started
            && memcmp(rec_payload(rec), build->last_pk, pk_len) == 0) {
            err = btr_cursor_next(&cursor, &rec);
        }
        if (err != DB_SUCCESS) {
            break;
        }
        memcpy(build->last_pk, rec_payload(rec), pk_len);
        build->scan_started = true;
        if (!rec_is_deleted(rec)) {
            err = dict_rec_read(build_pool(build), build->source, rec, cursor.len,
                                build->batch + (size_t)build->n_rows++ * build->source->row_size);
        }
        if (err != DB_SUCCESS) {
            break;
        }
    }
    btr_cursor_close(&cursor);
    return err;
}

dberr_t ddl_scan_rows(ddl_build_t *build, uint32_t max_rows, ddl_row_fn fn, void *ctx, bool *over)
{
    dberr_t err = DB_SUCCESS;
    for (uint32_t n = 0; n < max_rows && err == DB_SUCCESS && !*over; n += BATCH_ROWS) {
        uint32_t left = max_rows - n;
        err = ddl_scan_fetch(build, left < BATCH_ROWS ? left : BATCH_ROWS);
        *over = err == DB_NOT_FOUND;
        err = *over ? DB_SUCCESS : err;
        for (uint32_t i = 0; err == DB_SUCCESS && i < build->n_rows; i++) {
            err = fn(build, ctx, build->batch + (size_t)i * build->source->row_size);
        }
    }
    build->scan_started = build->scan_started && !*over;
    return err;
}

dberr_t ddl_build_row(ddl_build_t *build, const byte *row)
{
    return dict_row_convert(&build->map, row, build->table, build->row, &build_env(build)->err);
}

dberr_t ddl_scan_position(const ddl_build_t *build, uint32_t *out)
{
    return build->scan_started ? btr_key_position(
               build_pool(build), &build->source->indexes[0].tree, build->last_pk, out)
                               : DB_SUCCESS;
}
