/* The file of an exported table after a crash: by itself it is the table, whatever the log could
still make of it. */
#include "engine_fixture.h"

#include <stdio.h>

#include "base/mach.h"
#include "explorer/targets/engine/judge.h"

#define ROWS 200U
#define LAST_PAGE 5U /* of the rows, and never home before the export */

typedef struct fixture {
    image_t *image;
    engine_options_t options;
    probe_t probe;
    judge_t judge;
    allowed_t allowed;
} fixture_t;

static engine_t *open_engine(fixture_t *f)
{
    return open_engine_on(f->image, &f->probe, &f->options);
}

static void create_and_fill(engine_t *engine)
{
    create_table_of_two(engine, "t", DICT_CHAR, 60);
    trx_t *trx = NULL;
    assert_int_equal(engine_begin(engine, &trx), DB_SUCCESS);
    for (uint32_t i = 0; i < ROWS; i++) {
        byte row[69] = {0};
        mach_write_8(row, dict_bigint_encode((int64_t)i));
        (void)snprintf((char *)row + 8, 61, "row %056u", i);
        assert_int_equal(engine_insert(engine, trx, "t", row), DB_SUCCESS);
    }
    assert_int_equal(engine_commit(engine, trx), DB_SUCCESS);
}

/** What a clean close of these files leaves is what is allowed. */
static void allow_what_is_there(fixture_t *f)
{
    err_sink_t err = {.msg = ""};
    image_mark(f->image);
    assert_int_equal(engine_close(open_engine(f), true, NULL), DB_SUCCESS);
    check_report_t report;
    assert_int_equal(check_run(image_os(f->image), &report, &err), DB_SUCCESS);
    allowed_add(&f->allowed, report.tables, report.n_tables);
    check_report_free(&report);
    image_undo(f->image);
}

/** Killed while the table is exported. */
static int setup(void **state)
{
    static fixture_t f;
    f = (fixture_t){.image = image_create()};
    options_set_defaults(&f.options);
    f.options.page_size = 4096;
    engine_t *engine = open_engine(&f);
    create_and_fill(engine);
    const ddl_alter_t export = {.kind = ALTER_EXPORT, .table = "t"};
    assert_int_equal(engine_start_alter(engine, &export), DB_SUCCESS);
    assert_int_equal(engine_close(engine, false, NULL), DB_SUCCESS);
    judge_init(&f.judge, f.image, &f.options, NULL);
    allow_what_is_there(&f);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    judge_free(&f->judge);
    allowed_free(&f->allowed);
    image_destroy(f->image);
    return 0;
}

/** As of one of many states, and by itself: both must find the same. */
static verdict_t judge(fixture_t *f, bool acked)
{
    static outcome_t outcome;
    static outcome_t by_itself;
    const expected_t expected = {.allowed = &f->allowed};
    const judge_case_t c = {.expected = &expected, .exported = "t", .export_acked = acked};
    outcome_init(&outcome);
    outcome_init(&by_itself);
    judge_state(&f->judge, &c, &outcome);
    judge_export(&f->judge, "t", acked, &by_itself);
    const verdict_t *verdict = &outcome.verdict;
    const verdict_t *alone = &by_itself.verdict;
    assert_int_equal(alone->n, verdict->n);
    for (uint32_t i = 0; i < verdict->n; i++) {
        assert_int_equal(verdict_finding_compare(&alone->findings[i], &verdict->findings[i]), 0);
        assert_string_equal(alone->findings[i].what, verdict->findings[i].what);
    }
    return *verdict;
}

static uint32_t inode_of(fixture_t *f, const char *path)
{
    return image_lookup(f->image, name_of(f->image, path));
}

static void test_whole(void **state)
{
    fixture_t *f = *state;
    assert_int_equal(judge(f, true).n, 0);
    assert_int_equal(judge(f, false).n, 0);
}

/** Recovery makes the page anew; who has taken the file away cannot. */
static void test_page_not_home(void **state)
{
    fixture_t *f = *state;
    image_zero(f->image, inode_of(f, "t.ibd"), LAST_PAGE * 4096U, 4096);
    verdict_t verdict = judge(f, true);
    assert_true(verdict.n > 0);
    for (uint32_t i = 0; i < verdict.n; i++) {
        const char *what = verdict.findings[i].what;
        assert_true(strstr(what, "export") != NULL);
    }
    assert_true(judge(f, false).n > 0); /* the .cfg vouches for it */
}

/** It is no promise before the export is acknowledged. */
static void test_cfg(void **state)
{
    fixture_t *f = *state;
    assert_true(image_truncate(f->image, inode_of(f, "t.cfg"), 40));
    assert_int_equal(judge(f, false).n, 0);
    verdict_t verdict = judge(f, true);
    assert_int_equal(verdict.n, 1);
    assert_int_equal(verdict.findings[0].invariant, 28);
    assert_true(
        image_truncate(f->image, inode_of(f, "t.cfg"), IMAGE_FILE_MAX)); /* and no memory for it */
    assert_int_equal(judge(f, true).n, 1);
    image_link(f->image, name_of(f->image, "t.cfg"), IMAGE_NONE);
    assert_int_equal(judge(f, false).n, 0);
    assert_int_equal(judge(f, true).n, 1);
}

/** Once the export is over a whole .cfg would vouch for a table that changes. */
static void test_over(void **state)
{
    fixture_t *f = *state;
    allow_what_is_there(f);
    (void)snprintf(f->allowed.prefixes[0].exported, sizeof(f->allowed.prefixes[0].exported), "t");
    static outcome_t outcome;
    expected_t expected = {.allowed = &f->allowed, .high = 1};
    const judge_case_t c = {.expected = &expected};
    outcome_init(&outcome);
    judge_state(&f->judge, &c, &outcome);
    assert_int_equal(outcome.verdict.n, 0); /* it may not be over */
    expected.low = expected.script_low = 1;
    judge_state(&f->judge, &c, &outcome);
    assert_int_equal(outcome.verdict.n, 1);
    assert_int_equal(outcome.verdict.findings[0].invariant, 28);
    assert_true(image_truncate(f->image, inode_of(f, "t.cfg"), 40));
    outcome_init(&outcome);
    judge_state(&f->judge, &c, &outcome);
    assert_int_equal(outcome.verdict.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_page_not_home, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cfg, setup, teardown),
        cmocka_unit_test_setup_teardown(test_over, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
