/** A database in memory for the tests of api/ and ddl/. */
#ifndef TEST_API_FIXTURE_H
#define TEST_API_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/engine.h"
#include "base/mach.h"
#include "check/check.h"
#include "disk/image.h"
#include "fsp/fsp_format.h"
#include "test_alter.h"

#define B_LEN 60U

typedef struct fixture {
    os_t *os;
    probe_t probe;
    engine_options_t options;
    engine_t *engine;
    err_sink_t err;
} fixture_t;

#define OK(f, call)                                                                                \
    do {                                                                                           \
        dberr_t ok_err_ = (call);                                                                  \
        if (ok_err_ != DB_SUCCESS) {                                                               \
            fail_msg("%s:%d: %s: %s", __FILE__, __LINE__, err_name(ok_err_),                       \
                     (f)->engine != NULL ? engine_error((f)->engine) : (f)->err.msg);              \
        }                                                                                          \
    } while (0)

static inline void fixture_open(fixture_t *f)
{
    f->engine = NULL;
    OK(f, engine_open(f->os, &f->probe, &f->options, true, &f->engine, &f->err));
}

static inline void fixture_close(fixture_t *f, bool clean)
{
    engine_t *engine = f->engine;
    f->engine = NULL;
    assert_int_equal(engine_close(engine, clean, NULL), DB_SUCCESS);
}

/** A small pool, and a small log that wraps soon. */
static inline void fixture_options(engine_options_t *options)
{
    options_set_defaults(options);
    options->log_file_size = 64 * 4096;
    options->extent_pages = 8;
    options->buffer_pool_pages = 32;
    options->dblwr_pages = 8;
    options->sort_buffer_size = 64 * 1024;
}

static inline int fixture_setup(void **state)
{
    fixture_t *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->os = image_os_create();
    fixture_options(&f->options);
    fixture_open(f);
    *state = f;
    return 0;
}

/** Closes the database and goes on with an empty directory. */
static inline void fixture_empty(fixture_t *f)
{
    fixture_close(f, true);
    os_destroy(f->os);
    f->os = image_os_create();
}

static inline int fixture_teardown(void **state)
{
    fixture_t *f = *state;
    if (f->engine != NULL) {
        (void)!engine_close(f->engine, false, NULL);
    }
    os_destroy(f->os);
    free(f);
    return 0;
}

/** a BIGINT primary key, b CHAR(60), c BIGINT. */
static inline void define_table(dict_table_t *t, const char *name)
{
    memset(t, 0, sizeof(*t));
    (void)snprintf(t->name, sizeof(t->name), "%s", name);
    t->n_cols = 3;
    memcpy(t->cols[0].name, "a", 2);
    memcpy(t->cols[1].name, "b", 2);
    memcpy(t->cols[2].name, "c", 2);
    t->cols[0].type = DICT_BIGINT;
    t->cols[0].len = 8;
    t->cols[1].type = DICT_CHAR;
    t->cols[1].len = B_LEN;
    t->cols[2].type = DICT_BIGINT;
    t->cols[2].len = 8;
    t->indexes[0].n_fields = 1;
    t->indexes[0].fields[0].prefix_len = 8;
}

static inline void create_table(fixture_t *f, const char *name)
{
    dict_table_t *t = malloc(sizeof(*t));
    assert_non_null(t);
    define_table(t, name);
    OK(f, engine_create_table(f->engine, t));
    free(t);
}

static inline void make_row(int64_t a, byte row[8 + B_LEN + 8])
{
    mach_write_8(row, dict_bigint_encode(a));
    memset(row + 8, ' ', B_LEN);
    /* A secondary order that is not the primary one. */
    (void)snprintf((char *)row + 8, B_LEN, "%05lld", (long long)(a * 7919 % 10007));
    row[8 + strlen((char *)row + 8)] = ' ';
    mach_write_8(row + 8 + B_LEN, dict_bigint_encode(-a));
}

/** Rows first ... last in one transaction. */
static inline void insert_rows(fixture_t *f, const char *table, int64_t first, int64_t last)
{
    byte row[8 + B_LEN + 8];
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    for (int64_t a = first; a <= last; a++) {
        make_row(a, row);
        OK(f, engine_insert(f->engine, trx, table, row));
    }
    OK(f, engine_commit(f->engine, trx));
}

static inline void delete_rows(fixture_t *f, const char *table, int64_t first, int64_t last)
{
    byte pk[8];
    trx_t *trx = NULL;
    OK(f, engine_begin(f->engine, &trx));
    for (int64_t a = first; a <= last; a++) {
        mach_write_8(pk, dict_bigint_encode(a));
        OK(f, engine_delete(f->engine, trx, table, pk));
    }
    OK(f, engine_commit(f->engine, trx));
}

/** Gives rows first ... last another b, in one transaction. */
static inline void update_rows(fixture_t *f, const char *table, int64_t first, int64_t last, char c)
{
    byte pk[8];
    byte b[B_LEN];
    const row_upd_t upd = {.col = 1, .value = b};
    trx_t *trx = NULL;
    memset(b, c, sizeof(b));
    OK(f, engine_begin(f->engine, &trx));
    for (int64_t a = first; a <= last; a++) {
        mach_write_8(pk, dict_bigint_encode(a));
        OK(f, engine_update(f->engine, trx, table, pk, &upd, 1));
    }
    OK(f, engine_commit(f->engine, trx));
}

static inline void purge_all(fixture_t *f)
{
    for (bool done = false; !done;) {
        OK(f, engine_purge(f->engine, 100, &done));
    }
}

static inline ddl_index_def_t index_def(const char *name, const char *col, uint32_t prefix)
{
    ddl_index_def_t def = {.n_fields = 1};
    (void)snprintf(def.name, sizeof(def.name), "%s", name);
    (void)snprintf(def.fields[0].col, sizeof(def.fields[0].col), "%s", col);
    def.fields[0].prefix_len = prefix;
    return def;
}

/** ib(b) and ic(c), in one statement. */
static inline void add_two_indexes(fixture_t *f, const char *table)
{
    const ddl_index_def_t defs[] = {index_def("ib", "b", 0), index_def("ic", "c", 0)};
    OK(f, add_indexes(f->engine, table, defs, 2));
}

static inline dberr_t count_row_fn(void *ctx, const byte *row)
{
    (void)row;
    ++*(uint64_t *)ctx;
    return DB_SUCCESS;
}

static inline uint64_t count_rows(fixture_t *f, const char *table, const char *index)
{
    uint64_t n = 0;
    OK(f, engine_scan(f->engine, table, index, count_row_fn, &n));
    return n;
}

/** Scans a closed directory; any finding fails the test. Caller: check_report_free(). */
static inline void scan_clean(os_t *os, check_report_t *report)
{
    err_sink_t err = {.msg = ""};
    if (check_run(os, report, &err) != DB_SUCCESS) {
        fail_msg("check: %s", err.msg);
    }
    assert_false(report->needs_recovery);
    for (uint64_t i = 0; i < report->n_findings && i < CHECK_FINDINGS_MAX; i++) {
        print_error("I%u %s page %u: %s\n", report->findings[i].invariant, report->findings[i].path,
                    report->findings[i].page_no, report->findings[i].what);
    }
    assert_int_equal(report->n_findings, 0);
}

static inline const check_table_t *report_table(const check_report_t *report, const char *name)
{
    for (uint32_t i = 0; i < report->n_tables; i++) {
        if (strcmp(report->tables[i].name, name) == 0) {
            return &report->tables[i];
        }
    }
    return NULL;
}

/** Damages the pages of a table's file that are free, and not zero, or those that are used; or
mends them, the second time. Page 0 excepted. @return how many */
static inline uint32_t turn_pages(fixture_t *f, const char *path, bool used)
{
    uint64_t size = 0;
    byte *bytes = image_os_bytes(f->os, path, &size);
    uint32_t n = 0;
    for (uint32_t i = 1; i < size / PAGE_SIZE_MIN; i++) {
        byte *page = bytes + (size_t)i * PAGE_SIZE_MIN;
        if (xdes_frame_has_page(bytes, PAGE_SIZE_MIN, 8, i) == used
            && page[FIL_PAGE_TYPE + 1] != 0) {
            page[PAGE_SIZE_MIN / 2] ^= 1;
            n++;
        }
    }
    return n;
}

static inline bool file_exists(fixture_t *f, const char *path)
{
    uint64_t size = 0;
    return image_os_bytes(f->os, path, &size) != NULL;
}

#endif
