/* The options under which the judge recovers a state, other than those of the run. */
#include "engine_fixture.h"

#include "explorer/targets/engine/judge.h"

static struct {
    engine_options_t last; /**< under which an engine was opened */
    uint32_t n;
} opened;

dberr_t __real_engine_open(os_t *os, probe_t *probe, const engine_options_t *options, bool writable,
                           engine_t **engine, err_sink_t *err);
dberr_t __wrap_engine_open(os_t *os, probe_t *probe, const engine_options_t *options, bool writable,
                           engine_t **engine, err_sink_t *err);

dberr_t __wrap_engine_open(os_t *os, probe_t *probe, const engine_options_t *options, bool writable,
                           engine_t **engine, err_sink_t *err)
{
    opened.last = *options;
    opened.n++;
    return __real_engine_open(os, probe, options, writable, engine, err);
}

/** Those of the last of so many openings, of a database that was made with these. */
static engine_options_t judged_under(const engine_options_t *options, judge_case_t c, uint32_t n)
{
    static probe_t probe;
    static judge_t judge;
    static outcome_t outcome;
    image_t *image = image_create();
    engine_t *engine = open_engine_on(image, &probe, options);
    create_table_of_two(engine, "t", DICT_CHAR, 60);
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    judge_init(&judge, image, options, NULL);
    allowed_t allowed = {0};
    check_report_t report;
    err_sink_t err = {.msg = ""};
    assert_int_equal(check_run(image_os(image), &report, &err), DB_SUCCESS);
    allowed_add(&allowed, report.tables, report.n_tables);
    check_report_free(&report);
    const expected_t expected = {.allowed = &allowed};
    c.expected = &expected;
    outcome_init(&outcome);
    opened.n = 0;
    judge_state(&judge, &c, &outcome);
    assert_int_equal(opened.n, n);
    assert_int_equal(outcome.verdict.n, 0);
    judge_free(&judge);
    allowed_free(&allowed);
    image_destroy(image);
    return opened.last;
}

/** A database may be started where nobody would write copies: those that are there count. */
static void test_copies(void **state)
{
    (void)state;
    engine_options_t options;
    options_set_defaults(&options);
    options.page_size = 4096;
    engine_options_t other = judged_under(&options, (judge_case_t){.in_batches = true}, 2);
    assert_false(other.doublewrite);
    assert_true(other.atomic_write_unit >= options.page_size);
    assert_false(other.log_optimize_ddl);
    assert_false(other.optimize_ddl_drain);
    assert_true(other.scrub);
    assert_true(other.recv_memory < options.recv_memory);
}

/** And the other way round. */
static void test_no_copies(void **state)
{
    (void)state;
    engine_options_t options;
    options_set_defaults(&options);
    options.page_size = 4096;
    options.doublewrite = false;
    options.atomic_write_unit = 4096;
    engine_options_t other = judged_under(&options, (judge_case_t){.in_batches = true}, 2);
    assert_true(other.doublewrite);
    assert_int_equal(other.atomic_write_unit, 0);
}

/** The first recovery of some states, which may be crashed itself: its copies must count. */
static void test_small(void **state)
{
    (void)state;
    engine_options_t options;
    options_set_defaults(&options);
    options.page_size = 4096;
    for (uint64_t seed = 0; seed < 4; seed++) {
        engine_options_t small =
            judged_under(&options, (judge_case_t){.small = true, .seed = seed}, 1);
        assert_int_equal(small.dblwr_pages, 4);
        assert_int_equal(small.log_optimize_ddl, (seed & 1) != 0);
        assert_int_equal(small.optimize_ddl_drain, (seed & 2) != 0);
        assert_true(small.doublewrite);
        assert_int_equal(small.atomic_write_unit, options.atomic_write_unit);
        assert_true(small.recv_memory < options.recv_memory);
        assert_true(small.buffer_pool_pages < options.buffer_pool_pages);
    }
    engine_options_t other = judged_under(&options, (judge_case_t){.small = false, .seed = 7}, 1);
    assert_int_equal(other.dblwr_pages, options.dblwr_pages);
    assert_int_equal(other.log_optimize_ddl, options.log_optimize_ddl);
    assert_int_equal(other.recv_memory, options.recv_memory);
}

/** Half of the others have a mode of loads that is drawn, and as much memory as the run. */
static void test_another_mode(void **state)
{
    (void)state;
    engine_options_t options;
    options_set_defaults(&options);
    for (uint64_t seed = 0; seed < 4; seed++) {
        engine_options_t other = judged_under(&options, (judge_case_t){.seed = seed}, 1);
        assert_int_equal(other.log_optimize_ddl, (seed & 1) != 0);
        assert_int_equal(other.optimize_ddl_drain, (seed & 2) != 0);
        assert_int_equal(other.dblwr_pages, options.dblwr_pages);
        assert_int_equal(other.buffer_pool_pages, options.buffer_pool_pages);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_no_copies),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_another_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
