/* The finished backups that a crash has left (I28). */
#include "engine_fixture.h"

#include <stdlib.h>

#include "backup/backup_info.h"
#include "explorer/targets/engine/judge.h"

typedef struct fixture {
    image_t *image;
    engine_options_t options;
    probe_t probe;
    judge_t judge;
    allowed_t allowed; /**< without a table, of table t, of t and u */
    uint32_t prepared; /**< expected_t.prepared */
    uint32_t told;     /**< outcome_t.prepared of the first one */
    uint32_t recorded; /**< operations */
    bool worked;       /**< judge_case_t.worked */
} fixture_t;

/** What a clean close of these files leaves. */
static void allow_what_is_there(fixture_t *f)
{
    err_sink_t err = {.msg = ""};
    check_report_t report;
    image_mark(f->image);
    engine_t *engine = open_engine_on(f->image, &f->probe, &f->options);
    assert_int_equal(engine_close(engine, true, NULL), DB_SUCCESS);
    assert_int_equal(check_run(image_os(f->image), &report, &err), DB_SUCCESS);
    allowed_add(&f->allowed, report.tables, report.n_tables);
    check_report_free(&report);
    image_undo(f->image);
}

/** The database of a prefix more, let go of. */
static void add_table(fixture_t *f, const char *name)
{
    engine_t *engine = open_engine_on(f->image, &f->probe, &f->options);
    if (name != NULL) {
        create_table_of_two(engine, name, DICT_CHAR, 60);
    }
    assert_int_equal(engine_close(engine, false, NULL), DB_SUCCESS);
    allow_what_is_there(f);
}

static void back_up(fixture_t *f, bool finish)
{
    engine_t *engine = open_engine_on(f->image, &f->probe, &f->options);
    assert_int_equal(engine_start_backup(engine, "b", true), DB_SUCCESS);
    if (finish) {
        assert_int_equal(engine_finish_backup(engine, "b"), DB_SUCCESS);
    }
    assert_int_equal(engine_close(engine, false, NULL), DB_SUCCESS);
}

static int setup(void **state)
{
    fixture_t *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->image = image_create();
    options_set_defaults(&f->options);
    f->options.page_size = 4096;
    judge_init(&f->judge, f->image, &f->options, NULL);
    add_table(f, NULL);
    add_table(f, "t");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture_t *f = *state;
    judge_free(&f->judge);
    allowed_free(&f->allowed);
    image_destroy(f->image);
    free(f);
    return 0;
}

/** The last prefix is there. named: the one that finished the backup, as is claimed; acked: up to
which all was. @return whether I28 is broken, and nothing else */
static bool breaks(fixture_t *f, uint32_t named, uint32_t acked)
{
    static outcome_t outcome;
    uint32_t last = f->allowed.n - 1;
    allowed_prefix_t *prefix = &f->allowed.prefixes[named];
    (void)snprintf(prefix->backup, sizeof(prefix->backup), "b");
    prefix->backup_is_sure = true;
    const expected_t expected = {.allowed = &f->allowed,
                                 .low = acked,
                                 .high = last,
                                 .script_low = acked,
                                 .prepared = f->prepared};
    fs_list_t record = {.n = 0};
    const judge_case_t c = {.expected = &expected, .record = &record, .worked = f->worked};
    outcome_init(&outcome);
    judge_state(&f->judge, &c, &outcome);
    prefix->backup[0] = '\0';
    f->told = outcome.prepared[0];
    f->recorded = record.n;
    fs_list_free(&record);
    outcome_free(&outcome);
    for (uint32_t i = 0; i < outcome.verdict.n; i++) {
        assert_int_equal(outcome.verdict.findings[i].invariant, 28);
    }
    return outcome.verdict.n > 0;
}

/** It has the state of the prefix that finished it, whatever came later. */
static void test_finished(void **state)
{
    fixture_t *f = *state;
    back_up(f, true);
    assert_false(breaks(f, 1, 1));
    assert_true(breaks(f, 0, 1));
    add_table(f, "u");
    assert_false(breaks(f, 1, 2));
    assert_true(breaks(f, 0, 2));
    assert_true(breaks(f, 2, 2));
    assert_true(breaks(f, 2, 1)); /* what is there is judged, acknowledged or not */
}

/** It must be there once it was acknowledged. */
static void test_unfinished(void **state)
{
    fixture_t *f = *state;
    back_up(f, false);
    assert_true(breaks(f, 1, 1));
    assert_true(breaks(f, 0, 1));
    assert_false(breaks(f, 1, 0));
}

/** A copy is no longer enough once its prepare was acknowledged. */
static void test_prepared(void **state)
{
    fixture_t *f = *state;
    back_up(f, true);
    f->prepared = 2; /* another one */
    assert_false(breaks(f, 1, 1));
    assert_int_equal(f->told, f->recorded + 1); /* it is the last thing that is recorded */
    f->worked = true; /* what is recorded at last is new work, with no backup */
    assert_false(breaks(f, 1, 1));
    assert_int_equal(f->told, 0);
    f->worked = false;
    f->prepared = 1;
    assert_true(breaks(f, 1, 1));
    assert_int_equal(f->told, 0);
    os_t *folder = NULL;
    engine_status_t status;
    assert_int_equal(os_folder_create(image_os(f->image), "b" BACKUP_FOLDER_SUFFIX, &folder),
                     DB_SUCCESS);
    assert_int_equal(engine_prepare(folder, &f->probe, &f->options, &status, NULL), DB_SUCCESS);
    os_destroy(folder);
    assert_false(breaks(f, 1, 1));
}

/** The finished backup calls itself prepared, and nobody has recovered it. */
static void call_prepared(fixture_t *f)
{
    os_t *folder = NULL;
    backup_info_t info;
    assert_int_equal(os_folder_create(image_os(f->image), "b" BACKUP_FOLDER_SUFFIX, &folder),
                     DB_SUCCESS);
    env_t env = {.os = folder, .probe = &f->probe};
    assert_int_equal(env_rename(&env, BACKUP_LOG_NAME, LOG_FILE_NAME), DB_SUCCESS);
    assert_int_equal(backup_info_read(&env, &info), DB_SUCCESS);
    info.state = BACKUP_PREPARED;
    assert_int_equal(backup_info_write(&env, &info), DB_SUCCESS);
    os_destroy(folder);
}

/** A backup that needs recovery is of no state, nor of the one without tables, as which it is
read. */
static void test_called_prepared(void **state)
{
    fixture_t *f = *state;
    back_up(f, true);
    call_prepared(f);
    assert_true(breaks(f, 0, 1));
    assert_true(breaks(f, 1, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_finished, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unfinished, setup, teardown),
        cmocka_unit_test_setup_teardown(test_prepared, setup, teardown),
        cmocka_unit_test_setup_teardown(test_called_prepared, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
