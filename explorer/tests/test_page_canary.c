/* Canaries of pages: each is condemned by the scanner, and a scanner that has lost an invariant is
told by the canary's name. What the scanner says goes through the test: scan_run() is linked through
__wrap_scan_run(). */
#include "runner_fixture.h"

#include "base/mach.h"
#include "engine_fixture.h"

#define ROWS 900U /* the tree has two levels */

static const run_limits_t LIMITS = {.jobs = 1, .deadline_s = 20};

/** By the invariant that it breaks. */
static const struct {
    const char *name;
    uint32_t invariant;
} PAGES[] = {{"foreign_page", 5}, {"torn_page", 5}, {"future_page", 4},
             {"page_shape", 6},   {"row_order", 7}, {"siblings", 8},
             {"one_parent", 9},   {"extents", 11},  {"trx_id", 25}};

static uint32_t deaf; /* to this invariant; 0: to none */

dberr_t __real_scan_run(const scan_t *scan, os_t *os, check_report_t *report, err_sink_t *err);
dberr_t __wrap_scan_run(const scan_t *scan, os_t *os, check_report_t *report, err_sink_t *err);
dberr_t __wrap_scan_run(const scan_t *scan, os_t *os, check_report_t *report, err_sink_t *err)
{
    uint64_t kept = 0;
    dberr_t e = __real_scan_run(scan, os, report, err);
    for (uint64_t i = 0; e == DB_SUCCESS && i < report->n_findings && i < CHECK_FINDINGS_MAX; i++) {
        if (report->findings[i].invariant != deaf) {
            report->findings[kept++] = report->findings[i];
        }
    }
    report->n_findings = e == DB_SUCCESS ? kept : 0;
    return e;
}

static void fill_table(engine_t *engine)
{
    create_table_of_two(engine, "t", DICT_CHAR, 40);
    trx_t *trx = NULL;
    assert_int_equal(engine_begin(engine, &trx), DB_SUCCESS);
    byte row[64] = {0};
    for (int64_t i = 1; i <= ROWS; i++) {
        mach_write_8(row, dict_bigint_encode(i));
        assert_int_equal(engine_insert(engine, trx, "t", row), DB_SUCCESS);
    }
    assert_int_equal(engine_commit(engine, trx), DB_SUCCESS);
}

static canaries_t run(fixture_t *f)
{
    canaries_t canaries = {.n = 0};
    runner_run_canaries(&f->explorer, &LIMITS, 0, &canaries);
    assert_int_equal(atomic_load(&f->shared->machine_failures), 0);
    return canaries;
}

static void test_a_scanner_hears_and_a_deaf_one_is_told(void **state)
{
    canaries_t canaries = run(*state);
    if (canaries_deaf(&canaries) != NULL) {
        fail_msg("%s: %s", canaries_deaf(&canaries)->name, canaries_deaf(&canaries)->by);
    }
    for (size_t i = 0; i < sizeof(PAGES) / sizeof(PAGES[0]); i++) {
        const canary_t *canary = find(&canaries, PAGES[i].name);
        assert_int_equal(canary->invariant, PAGES[i].invariant);
        assert_int_equal(canary->fate, CANARY_CONDEMNED);
        assert_int_equal(strncmp(canary->by, "scan, I", 7), 0);
        deaf = PAGES[i].invariant;
        canaries_t told = run(*state);
        deaf = 0;
        assert_int_equal(find(&told, PAGES[i].name)->fate, CANARY_DEAF);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_scanner_hears_and_a_deaf_one_is_told, setup,
                                        teardown),
    };
    fixture_work = fill_table;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
