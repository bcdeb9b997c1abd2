/** Tables with instant columns. */
#ifndef TEST_API_INSTANT_H
#define TEST_API_INSTANT_H

#include "test_api_columns.h"

/** `t` with rows of sizes of their own, the last column a VARCHAR. */
static inline void create_varied(fixture_t *f, int64_t rows)
{
    new_column_t *new = malloc(sizeof(*new));
    assert_non_null(new);
    create_table(f, "t");
    if (rows > 0) {
        insert_rows(f, "t", 1, rows);
    }
    add_two_indexes(f, "t");
    const ddl_alter_t alter = add_column(new, "v", DICT_VARCHAR, 50);
    OK(f, engine_alter(f->engine, &alter));
    free(new);
}

/** A BIGINT or a text; NULL: that. */
static inline dberr_t try_instant(fixture_t *f, const char *name, const char *text)
{
    new_column_t *new = malloc(sizeof(*new));
    assert_non_null(new);
    ddl_alter_t alter = add_column(new, name, DICT_VARCHAR, 60);
    alter.algorithm = ALGORITHM_INSTANT;
    if (text != NULL) {
        dict_col_put(&new->col, new->row, (const byte *)text, (uint32_t)strlen(text));
    }
    dberr_t err = engine_alter(f->engine, &alter);
    free(new);
    return err;
}

static inline void add_instant(fixture_t *f, const char *name, const char *text)
{
    OK(f, try_instant(f, name, text));
}

static inline void check_text(fixture_t *f, int64_t a, const char *name, const char *text)
{
    check_value(f, a, name, (const byte *)text, text != NULL ? (uint32_t)strlen(text) : 0);
}

/** A row of this key whose text is that of all its VARCHAR columns. */
static inline void insert_whole(fixture_t *f, int64_t a, const char *text)
{
    const dict_table_t *t = engine_table(f->engine, "t");
    byte *row = malloc(t->row_size);
    trx_t *trx = NULL;
    assert_non_null(row);
    dict_row_init(t, row);
    mach_write_8(row + t->cols[0].row_offset, dict_bigint_encode(a));
    for (uint32_t i = 0; i < t->n_cols; i++) {
        if (t->cols[i].type == DICT_VARCHAR) {
            dict_col_put(&t->cols[i], row, (const byte *)text, (uint32_t)strlen(text));
        }
    }
    OK(f, engine_begin(f->engine, &trx));
    OK(f, engine_insert(f->engine, trx, "t", row));
    OK(f, engine_commit(f->engine, trx));
    free(row);
}

static inline stats_t stats_of(fixture_t *f)
{
    engine_status_t status;
    engine_get_status(f->engine, &status);
    return status.stats;
}

/** Clean by the scanner, and open again. */
static inline void check_and_reopen(fixture_t *f, uint64_t rows)
{
    purge_all(f);
    fixture_close(f, true);
    check_report_t report;
    scan_clean(f->os, &report);
    assert_int_equal(report_table(&report, "t")->rows, rows);
    check_report_free(&report);
    fixture_open(f);
}

#endif
