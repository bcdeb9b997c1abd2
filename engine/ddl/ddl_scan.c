/* The scan of a build over the rows of its table.

Place: ddl/, beside ddl_build.c and ddl_copy.c, which say what becomes of a row.

Rules
1. No page is pinned when a row is handed out, nor between two calls: the scan goes on behind the last primary key
   it saw, whether purge has taken that record away or not.
2. Rows with a delete mark are passed. */
#include <string.h>

#include "ddl/ddl_build.h"

/** Copies the rows of the next records, at most max_rows and BATCH_ROWS of them, into batch. DB_NOT_FOUND:
there were fewer. */
static dberr_t ddl_scan_fetch(ddl_build_t *build, uint32_t max_rows)
{
    const btr_t *tree = &build->source->indexes[0].tree;
    uint32_t pk_len = build->source->pk_len;
    btr_cursor_t cursor;
    const byte *rec = NULL;
    build->n_rows = 0;
    dberr_t err = btr_cursor_open(&cursor, build_pool(build), tree,
                                  build->scan_started ? build->last_pk : NULL, pk_len);
    if (err != DB_SUCCESS) {
        return err;
    }
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

dberr_t ddl_build_scan(ddl_build_t *build, uint32_t max_rows, ddl_row_fn fn, void *ctx)
{
    dberr_t end = DB_SUCCESS;
    for (uint32_t n = 0; n < max_rows && end == DB_SUCCESS; n += BATCH_ROWS) {
        uint32_t left = max_rows - n;
        end = ddl_scan_fetch(build, left < BATCH_ROWS ? left : BATCH_ROWS);
        dberr_t err = end == DB_NOT_FOUND ? DB_SUCCESS : end;
        for (uint32_t i = 0; err == DB_SUCCESS && i < build->n_rows; i++) {
            err = fn(build, ctx, build->batch + (size_t)i * build->source->row_size);
        }
        if (err != DB_SUCCESS) {
            return err;
        }
    }
    return end;
}
