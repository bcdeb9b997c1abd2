/** Tables and statements for tests that scan: on top of test_recv_fixture.h. */
#ifndef TEST_CHECK_FIXTURE_H
#define TEST_CHECK_FIXTURE_H

#include "check/check.h"
#include "ddl/ddl.h"
#include "test_alter.h"
#include "test_dict_fixture.h"
#include "test_recv_fixture.h"

#define CFX_ROW_MAX 300U

/** Table (a BIGINT primary key, b CHAR(20), c CHAR(200)): 18 rows in a page of 4k. */
static inline void cfx_create_table(dbx_t *db, const char *name)
{
    dict_table_t *table = calloc(1, sizeof(*table));
    assert_non_null(table);
    snprintf(table->name, sizeof(table->name), "%s", name);
    table_add_col(table, "a", DICT_BIGINT, 8);
    table_add_col(table, "b", DICT_CHAR, 20);
    table_add_col(table, "c", DICT_CHAR, 200);
    table->indexes[0].n_fields = 1;
    ASSERT_OK(db, ddl_create_table(db->sys, table));
    free(table);
}

/** Index `name` on b, and one named after it with an "x" on (c(10), b): both in one statement. */
static inline void cfx_add_indexes(dbx_t *db, const char *table, const char *name, uint32_t n)
{
    ddl_index_def_t defs[2] = {{.n_fields = 1}, {.n_fields = 2}};
    snprintf(defs[0].name, sizeof(defs[0].name), "%s", name);
    snprintf(defs[0].fields[0].col, sizeof(defs[0].fields[0].col), "b");
    snprintf(defs[1].name, sizeof(defs[1].name), "%sx", name);
    snprintf(defs[1].fields[0].col, sizeof(defs[1].fields[0].col), "c");
    defs[1].fields[0].prefix_len = 10;
    snprintf(defs[1].fields[1].col, sizeof(defs[1].fields[1].col), "b");
    ddl_build_t *build = NULL;
    engine_options_t options;
    options_set_defaults(&options);
    ASSERT_OK(db, ddl_build_begin(db->sys, ADD_INDEXES(table, defs, n), &options, &build));
    bool done = false;
    while (!done) {
        ASSERT_OK(db, ddl_build_step(build, 50, &done));
    }
    ddl_build_free(build);
}

static inline void cfx_row(int64_t a, uint32_t version, byte row[CFX_ROW_MAX])
{
    char text[201];
    mach_write_8(row, dict_bigint_encode(a));
    int n = snprintf(text, sizeof(text), "b%" PRId64 ".%" PRIu32, a * 7919 % 1000, version);
    memset(row + 8, ' ', 220);
    memcpy(row + 8, text, (size_t)n);
    n = snprintf(text, sizeof(text), "%" PRId64 "c%" PRIu32, a * 31 % 97, version);
    memcpy(row + 28, text, (size_t)n);
}

static inline dict_table_t *cfx_table(dbx_t *db, const char *name)
{
    dict_table_t *table = dict_table_get(db->dict, name);
    assert_non_null(table);
    return table;
}

static inline void cfx_insert(dbx_t *db, trx_t *trx, const char *name, int64_t first, int64_t last)
{
    byte row[CFX_ROW_MAX];
    for (int64_t a = first; a <= last; a++) {
        cfx_row(a, 0, row);
        ASSERT_OK(db, row_insert(trx, cfx_table(db, name), row));
    }
}

static inline void cfx_update(dbx_t *db, trx_t *trx, const char *name, int64_t first, int64_t last,
                              uint32_t version)
{
    byte row[CFX_ROW_MAX];
    for (int64_t a = first; a <= last; a++) {
        cfx_row(a, version, row);
        row_upd_t upd[2] = {{.col = 1, .value = row + 8}, {.col = 2, .value = row + 28}};
        ASSERT_OK(db, row_update(trx, cfx_table(db, name), row, upd, version % 2 ? 2 : 1));
    }
}

static inline void cfx_delete(dbx_t *db, trx_t *trx, const char *name, int64_t first, int64_t last)
{
    byte row[CFX_ROW_MAX];
    for (int64_t a = first; a <= last; a++) {
        cfx_row(a, 0, row);
        ASSERT_OK(db, row_delete(trx, cfx_table(db, name), row));
    }
}

static inline trx_t *cfx_begin(dbx_t *db)
{
    trx_t *trx = NULL;
    ASSERT_OK(db, trx_begin(db->sys, &trx));
    return trx;
}

static inline void cfx_purge(dbx_t *db)
{
    bool done = false;
    while (!done) {
        ASSERT_OK(db, trx_purge_step(db->sys, 50, &done));
    }
}

static inline void cfx_print_findings(const check_report_t *report)
{
    for (uint64_t i = 0; i < report->n_findings && i < CHECK_FINDINGS_MAX; i++) {
        const check_finding_t *f = &report->findings[i];
        print_message("  I%" PRIu32 " %s page %" PRIu32 ": %s\n", f->invariant, f->path, f->page_no,
                      f->what);
    }
}

/** Scans the closed database; the caller frees the report. */
static inline void cfx_scan(dbx_t *db, check_report_t *report)
{
    err_sink_t sink = {.msg = ""};
    dberr_t err = check_run(dbx_os(db), report, &sink);
    if (err != DB_SUCCESS) {
        fail_msg("check_run: %s: %s", err_name(err), sink.msg);
    }
    assert_false(report->needs_recovery);
}

/** Fails if the scan of the closed database finds anything; the caller frees the report. */
static inline void cfx_scan_clean(dbx_t *db, check_report_t *report)
{
    cfx_scan(db, report);
    cfx_print_findings(report);
    assert_int_equal(report->n_findings, 0);
}

#define CFX_STATE_MAX 600U

/** What a user could tell of the database: tables, rows, contents, indexes. */
static inline void cfx_state(const check_report_t *report, char state[CFX_STATE_MAX])
{
    size_t n = 0;
    state[0] = '\0';
    for (uint32_t i = 0; i < report->n_tables; i++) {
        const check_table_t *t = &report->tables[i];
        n += (size_t)snprintf(state + n, CFX_STATE_MAX - n, "%s %" PRIu64 " %016" PRIx64 ":",
                              t->name, t->rows, t->hash);
        for (uint32_t j = 0; j < t->n_indexes; j++) {
            n += (size_t)snprintf(state + n, CFX_STATE_MAX - n, " %s", t->indexes[j].name);
        }
        n += (size_t)snprintf(state + n, CFX_STATE_MAX - n, "; ");
        assert_true(n < CFX_STATE_MAX);
    }
}

#endif
