/* New work: what it computes is what the scanner then finds, whatever was drawn; what stands in its
way is found. engine_insert(), engine_delete() and engine_prepare() are linked through
__wrap_engine_insert() and so on. */
#include "engine_fixture.h"

#include <stdio.h>

#include "base/mach.h"
#include "explorer/targets/engine/torn_table.h"
#include "explorer/targets/engine/work.h"

#define SEEDS 300U
#define ROWS 40U
#define PAGE 16384U /* bytes of one */

typedef struct fixture {
    image_t *image;
    engine_options_t options;
    probe_t probe;
    check_report_t found;
    allowed_t base;
} fixture_t;

/** Which error of the engine becomes which; DB_SUCCESS: none. */
static struct {
    dberr_t real;
    dberr_t told;
} refusal;

static dberr_t told(dberr_t err)
{
    return err != DB_SUCCESS && err == refusal.real ? refusal.told : err;
}

dberr_t __real_engine_insert(engine_t *engine, trx_t *trx, const char *table, const byte *row);
dberr_t __wrap_engine_insert(engine_t *engine, trx_t *trx, const char *table, const byte *row);

dberr_t __wrap_engine_insert(engine_t *engine, trx_t *trx, const char *table, const byte *row)
{
    return told(__real_engine_insert(engine, trx, table, row));
}

dberr_t __real_engine_delete(engine_t *engine, trx_t *trx, const char *table, const byte *pk);
dberr_t __wrap_engine_delete(engine_t *engine, trx_t *trx, const char *table, const byte *pk);

dberr_t __wrap_engine_delete(engine_t *engine, trx_t *trx, const char *table, const byte *pk)
{
    return told(__real_engine_delete(engine, trx, table, pk));
}

/** What becomes of a backup that was prepared. */
static enum { PREPARED, REFUSED, DAMAGED, LOSES_A_ROW } prepares;

/** A row of t or k is gone. */
static void lose_a_row(os_t *os, probe_t *probe, const engine_options_t *options, err_sink_t *err)
{
    engine_t *engine = NULL;
    trx_t *trx = NULL;
    byte pk[8];
    assert_int_equal(engine_open(os, probe, options, false, &engine, err), DB_SUCCESS);
    assert_int_equal(engine_begin(engine, &trx), DB_SUCCESS);
    uint32_t i = 0;
    do {
        mach_write_8(pk, dict_bigint_encode((int64_t)i++));
    } while (__real_engine_delete(engine, trx, "k", pk) != DB_SUCCESS
             && __real_engine_delete(engine, trx, "t", pk) != DB_SUCCESS);
    assert_int_equal(engine_commit(engine, trx), DB_SUCCESS);
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
}

dberr_t __real_engine_prepare(os_t *os, probe_t *probe, const engine_options_t *options,
                              engine_status_t *status, err_sink_t *err);
dberr_t __wrap_engine_prepare(os_t *os, probe_t *probe, const engine_options_t *options,
                              engine_status_t *status, err_sink_t *err);

dberr_t __wrap_engine_prepare(os_t *os, probe_t *probe, const engine_options_t *options,
                              engine_status_t *status, err_sink_t *err)
{
    assert_int_equal(__real_engine_prepare(os, probe, options, status, err), DB_SUCCESS);
    uint64_t size = 0;
    switch (prepares) {
    case REFUSED:
        return err_set(err, DB_UNRECOVERABLE, "no backup");
    case DAMAGED:
        image_os_bytes(os, "t.ibd", &size)[PAGE / 2] ^= 1;
        break;
    case LOSES_A_ROW:
        lose_a_row(os, probe, options, err);
        break;
    case PREPARED:
        break;
    }
    return DB_SUCCESS;
}

static engine_t *open_engine(fixture_t *f)
{
    return open_engine_on(f->image, &f->probe, &f->options);
}

static void scan(fixture_t *f, check_report_t *report)
{
    err_sink_t err = {.msg = ""};
    assert_int_equal(check_run(image_os(f->image), report, &err), DB_SUCCESS);
    assert_int_equal(report->n_findings, 0);
    assert_false(report->needs_recovery);
}

/** t: a BIGINT key, two columns, a unique index; e: the same, empty; k: its key is all it has. */
static void create_tables(engine_t *engine)
{
    static const ddl_index_def_t UNIQUE = {
        .name = "u", .unique = true, .n_fields = 1, .fields = {{.col = "b"}}};
    dict_table_t made = {.name = "t",
                         .n_cols = 3,
                         .cols = {{.name = "a", .type = DICT_BIGINT, .len = 8},
                                  {.name = "b", .type = DICT_CHAR, .len = 12},
                                  {.name = "c", .type = DICT_BIGINT, .len = 8}},
                         .n_indexes = 1};
    made.indexes[0].n_fields = 1;
    made.indexes[0].fields[0] = (dict_field_t){.col = 0, .prefix_len = 8};
    assert_int_equal(engine_create_table(engine, &made), DB_SUCCESS);
    (void)snprintf(made.name, sizeof(made.name), "e");
    assert_int_equal(engine_create_table(engine, &made), DB_SUCCESS);
    assert_int_equal(
        engine_alter(
            engine,
            &(ddl_alter_t){.kind = ALTER_ADD_INDEX, .table = "t", .defs = &UNIQUE, .n_defs = 1}),
        DB_SUCCESS);
    assert_int_equal(
        engine_alter(
            engine,
            &(ddl_alter_t){.kind = ALTER_ADD_INDEX, .table = "e", .defs = &UNIQUE, .n_defs = 1}),
        DB_SUCCESS);
    (void)snprintf(made.name, sizeof(made.name), "k");
    made.n_cols = 1;
    assert_int_equal(engine_create_table(engine, &made), DB_SUCCESS);
}

static void fill(engine_t *engine, const char *table)
{
    trx_t *trx = NULL;
    assert_int_equal(engine_begin(engine, &trx), DB_SUCCESS);
    for (uint32_t i = 0; i < ROWS; i++) {
        byte row[28] = {0};
        mach_write_8(row, dict_bigint_encode((int64_t)i));
        (void)snprintf((char *)row + 8, 13, "row %08u", i);
        mach_write_8(row + 20, dict_bigint_encode((int64_t)(i % 3)));
        assert_int_equal(engine_insert(engine, trx, table, row), DB_SUCCESS);
    }
    assert_int_equal(engine_commit(engine, trx), DB_SUCCESS);
}

static int setup(void **state)
{
    static fixture_t f;
    f = (fixture_t){.image = image_create()};
    options_set_defaults(&f.options);
    f.options.buffer_pool_pages = 64;
    f.options.dblwr_pages = 8;
    engine_t *engine = open_engine(&f);
    create_tables(engine);
    fill(engine, "t");
    fill(engine, "k");
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    scan(&f, &f.found);
    allowed_add(&f.base, f.found.tables, f.found.n_tables);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    check_report_free(&f->found);
    allowed_free(&f->base);
    image_destroy(f->image);
    return 0;
}

/** The stamps of the events count up, and end with what was acknowledged. */
static void assert_promises(const fs_list_t *list, uint32_t n)
{
    uint32_t issued = 0;
    uint32_t acked = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        const fs_event_t *event = &list->events[i];
        assert_true(event->issued_line >= issued && event->issued_line <= event->acked_line + 1);
        assert_true(event->acked_line >= acked);
        issued = event->issued_line;
        acked = event->acked_line;
    }
    assert_int_equal(acked, n);
}

static const work_draw_t *draw_of(fixture_t *f, uint64_t seed, const char *torn)
{
    static work_draw_t draw;
    draw = (work_draw_t){.seed = seed, .torn = torn, .options = &f->options, .probe = &f->probe};
    return &draw;
}

/** One seed, on the image of before. @return prefixes that the work added */
static uint32_t work_once(fixture_t *f, uint64_t seed, const char *torn, verdict_t *verdict)
{
    image_mark(f->image);
    fs_list_t list = {.n = 0};
    image_os_record(f->image, &list);
    engine_t *engine = open_engine(f);
    allowed_t allowed;
    allowed_extend(&allowed, &f->base, 0, 1);
    bool right = work_run(engine, f->image, &f->found, draw_of(f, seed, torn), &allowed, verdict);
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    image_os_record(f->image, NULL);
    uint32_t n = allowed.n - 1;
    check_report_t report;
    if (right) {
        assert_promises(&list, n);
        scan(f, &report);
        uint32_t prefix;
        (void)allowed_judge(&allowed, &report, n, n, "", verdict, &prefix);
        check_report_free(&report);
    }
    image_undo(f->image);
    allowed_free(&allowed);
    fs_list_free(&list);
    return n;
}

static void test_all_seeds(void **state)
{
    uint32_t most = 0;
    uint32_t least = UINT32_MAX;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        verdict_t verdict = {.n = 0};
        uint32_t n = work_once(*state, seed, "", &verdict);
        assert_int_equal(verdict.n, 0);
        most = n > most ? n : most;
        least = n < least ? n : least;
    }
    assert_true(least >= 2 && most >= 6);
}

static const check_table_t *table_of(const check_report_t *report, const char *name)
{
    uint32_t i = 0;
    while (strcmp(report->tables[i].name, name) != 0) {
        i++;
    }
    return &report->tables[i];
}

/** One seed, without a finding; the image is marked before, and closed. */
static void work_rightly(fixture_t *f, uint64_t seed, const char *torn, allowed_t *allowed)
{
    image_mark(f->image);
    engine_t *engine = open_engine(f);
    verdict_t verdict = {.n = 0};
    allowed_extend(allowed, &f->base, 0, 1);
    assert_true(work_run(engine, f->image, &f->found, draw_of(f, seed, torn), allowed, &verdict));
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
}

/** A torn table is worked on, and its new index often comes alone, before any page is written. */
static void test_torn(void **state)
{
    fixture_t *f = *state;
    uint32_t alone = 0;
    for (uint64_t seed = 0; seed < 32; seed++) {
        allowed_t allowed;
        work_rightly(f, seed, "k", &allowed);
        check_report_t report;
        scan(f, &report);
        const check_table_t *k = table_of(&report, "k");
        assert_int_equal(table_of(&report, "t")->hash, table_of(&f->found, "t")->hash);
        assert_int_equal(table_of(&report, "e")->rows, 0);
        alone += k->rows == ROWS && k->n_indexes == 1;
        check_report_free(&report);
        image_undo(f->image);
        allowed_free(&allowed);
    }
    assert_true(alone > 4 && alone < 24);
}

/** Only a page whose ends are of two writes; the first table by name. */
static void test_torn_table(void **state)
{
    fixture_t *f = *state;
    static const char *const FILES[] = {"t.ibd", "k.ibd"};
    static const byte OTHER[] = {0xff, 0xff, 0xff, 0xff};
    char table[NAME_LEN_MAX + 1];
    image_mark(f->image);
    assert_false(torn_table_find(f->image, table));
    assert_string_equal(table, "");
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t inode = image_lookup(f->image, image_name_find(f->image, FILES[i]));
        assert_true(image_write(f->image, inode, PAGE - sizeof(OTHER), OTHER, sizeof(OTHER)));
        assert_true(torn_table_find(f->image, table));
        assert_int_equal(table[0], FILES[i][0]);
    }
    image_undo(f->image);
}

/** Rows that are others than those that it goes by. */
static void test_other_rows(void **state)
{
    fixture_t *f = *state;
    f->found.tables[0].hash++;
    verdict_t verdict = {.n = 0};
    (void)work_once(f, 7, "", &verdict);
    f->found.tables[0].hash--;
    assert_int_equal(verdict.n, 1);
    assert_int_equal(verdict.findings[0].invariant, 2);
    assert_int_equal(verdict.findings[0].source, SOURCE_ORACLE);
}

/** A table of which the engine knows nothing. */
static void test_no_table(void **state)
{
    fixture_t *f = *state;
    check_table_t *tables = f->found.tables;
    check_table_t unknown = tables[0];
    memcpy(unknown.name, "nobody", sizeof("nobody"));
    f->found.tables = &unknown;
    uint32_t n_tables = f->found.n_tables;
    f->found.n_tables = 1;
    verdict_t verdict = {.n = 0};
    (void)work_once(f, 7, "", &verdict);
    f->found.tables = tables;
    f->found.n_tables = n_tables;
    assert_int_equal(verdict.n, 1);
    assert_int_equal(verdict.findings[0].invariant, 30);
    assert_non_null(strstr(verdict.findings[0].what, "nobody"));
}

/** A transaction that recovery has forgotten to roll back locks all rows of t and k. */
static void test_in_the_way(void **state)
{
    fixture_t *f = *state;
    verdict_t verdict = {.n = 0};
    uint32_t hits = 0;
    for (uint64_t seed = 0; seed < 32; seed++) {
        image_mark(f->image);
        engine_t *engine = open_engine(f);
        trx_t *trx = NULL;
        assert_int_equal(engine_begin(engine, &trx), DB_SUCCESS);
        for (uint32_t i = 0; i < ROWS; i++) {
            byte pk[8];
            mach_write_8(pk, dict_bigint_encode((int64_t)i));
            assert_int_equal(engine_delete(engine, trx, "t", pk), DB_SUCCESS);
            assert_int_equal(engine_delete(engine, trx, "k", pk), DB_SUCCESS);
        }
        allowed_t allowed;
        allowed_extend(&allowed, &f->base, 0, 1);
        hits += !work_run(engine, f->image, &f->found, draw_of(f, seed, ""), &allowed, &verdict);
        assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
        image_undo(f->image);
        allowed_free(&allowed);
    }
    assert_true(hits > 4);
    assert_int_equal(verdict.findings[0].invariant, 30);
    assert_int_equal(verdict.findings[0].source, SOURCE_RECOVERY);
}

/** @return of how many of these works this is the finding, and the only one */
static uint32_t works_with(fixture_t *f, const char *finding)
{
    uint32_t hits = 0;
    for (uint64_t seed = 0; seed < 32; seed++) {
        verdict_t verdict = {.n = 0};
        (void)work_once(f, seed, "", &verdict);
        assert_true(verdict.n <= 1);
        if (verdict.n == 1) {
            assert_int_equal(verdict.findings[0].invariant, 30);
            assert_non_null(strstr(verdict.findings[0].what, finding));
            hits++;
        }
    }
    refusal.real = DB_SUCCESS;
    prepares = PREPARED;
    return hits;
}

/** A key that is there is always refused, and a locked row of each table with something to update;
here for another reason. */
static void test_other_refusal(void **state)
{
    refusal.real = DB_DUPLICATE_KEY;
    refusal.told = DB_LOCK_CONFLICT;
    assert_int_equal(works_with(*state, "DB_LOCK_CONFLICT, not DB_DUPLICATE_KEY"), 32);
    refusal.real = DB_LOCK_CONFLICT;
    refusal.told = DB_NOT_FOUND;
    assert_in_range(works_with(*state, "DB_NOT_FOUND, not DB_LOCK_CONFLICT"), 12, 28);
}

/** A backup that cannot be prepared, one that is damaged then, one without a row. */
static void test_wrong_backup(void **state)
{
    prepares = REFUSED;
    assert_in_range(works_with(*state, "prepare of a backup: no backup"), 1, 16);
    prepares = DAMAGED;
    assert_in_range(works_with(*state, "prepared backup: bad checksum"), 1, 16);
    prepares = LOSES_A_ROW;
    assert_in_range(works_with(*state, "another state than that of the last commit"), 1, 16);
}

/** While a table is exported the prefixes say so: judges look for its .cfg. */
static void test_exported(void **state)
{
    fixture_t *f = *state;
    uint32_t exported = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        allowed_t allowed;
        work_rightly(f, seed, "", &allowed);
        for (uint32_t i = 1; i < allowed.n; i++) {
            exported += allowed.prefixes[i].exported[0] != '\0';
        }
        assert_string_equal(allowed.prefixes[allowed.n - 1].exported, "");
        image_undo(f->image);
        allowed_free(&allowed);
    }
    assert_true(exported > 4 && exported % 2 == 0); /* with the export, and with the import */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_seeds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_torn, setup, teardown),
        cmocka_unit_test_setup_teardown(test_torn_table, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_table, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_the_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_refusal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_backup, setup, teardown),
        cmocka_unit_test_setup_teardown(test_exported, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
