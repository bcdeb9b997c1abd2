/* The options under which the judge recovers a state, other than those of the run; and that what it
comes to in other ways is compared. */
#include "engine_fixture.h"

#include "explorer/targets/engine/judge.h"

static struct {
    engine_options_t last; /**< under which an engine was opened */
    uint32_t n;
    uint32_t ended;    /**< so many of these have come to their end */
    uint32_t changes;  /**< the opening after which the database has another table; 0: none */
    uint32_t converts; /**< the opening that asked for a format of the log; 0: none did */
    dberr_t refusal;   /**< what became of that one; DB_SUCCESS: what comes of it */
    uint32_t forgets;  /**< the opening that finds the files as the one before it has; 0: none */
    image_t *image;
} opened;
/** A purge leaves some history for later. */
static bool purge_ends_early;

dberr_t __real_engine_open(os_t *os, probe_t *probe, const engine_options_t *options, bool writable,
                           engine_t **engine, err_sink_t *err);
dberr_t __wrap_engine_open(os_t *os, probe_t *probe, const engine_options_t *options, bool writable,
                           engine_t **engine, err_sink_t *err);

dberr_t __wrap_engine_open(os_t *os, probe_t *probe, const engine_options_t *options, bool writable,
                           engine_t **engine, err_sink_t *err)
{
    opened.last = *options;
    opened.n++;
    if (options->log_format != 0) {
        opened.converts = opened.n;
        if (opened.refusal != DB_SUCCESS) {
            return opened.refusal;
        }
    }
    if (opened.forgets > 0 && opened.n == opened.forgets - 1) {
        image_mark(opened.image);
    } else if (opened.forgets > 0 && opened.n == opened.forgets) {
        image_undo(opened.image);
    }
    dberr_t status = __real_engine_open(os, probe, options, writable, engine, err);
    opened.ended = opened.n;
    if (opened.n == opened.changes) {
        assert_int_equal(status, DB_SUCCESS);
        create_table_of_two(*engine, "more", DICT_CHAR, 60);
    }
    return status;
}

dberr_t __real_engine_purge(engine_t *engine, uint32_t limit, bool *done);
dberr_t __wrap_engine_purge(engine_t *engine, uint32_t limit, bool *done);

dberr_t __wrap_engine_purge(engine_t *engine, uint32_t limit, bool *done)
{
    dberr_t status = __real_engine_purge(engine, limit, done);
    *done = *done && !purge_ends_early;
    return status;
}

/** When the rules were told that a statement is issued. */
static struct {
    uint32_t n;
    uint32_t opening; /**< the last one that had ended by then */
} issued;

void __real_rules_journal(rules_t *rules, journal_kind_t kind, uint32_t line);
void __wrap_rules_journal(rules_t *rules, journal_kind_t kind, uint32_t line);

void __wrap_rules_journal(rules_t *rules, journal_kind_t kind, uint32_t line)
{
    issued.n += kind == JOURNAL_ISSUE;
    issued.opening = opened.ended;
    __real_rules_journal(rules, kind, line);
}

/** What a clean close of these files leaves. */
static void allow_what_is_there(image_t *image, probe_t *probe, const engine_options_t *options,
                                allowed_t *allowed)
{
    check_report_t report;
    err_sink_t err = {.msg = ""};
    image_mark(image);
    assert_int_equal(engine_close(open_engine_on(image, probe, options), true, NULL), DB_SUCCESS);
    assert_int_equal(check_run(image_os(image), &report, &err), DB_SUCCESS);
    allowed_add(allowed, report.tables, report.n_tables);
    check_report_free(&report);
    image_undo(image);
}

/** What comes of a database that was made with these, killed in an export if there is one. */
static const verdict_t *judged(const engine_options_t *options, judge_case_t c)
{
    static probe_t probe;
    static judge_t judge;
    static outcome_t outcome;
    opened.n = UINT32_MAX / 2; /* of the openings that are no recoveries */
    image_t *image = image_create();
    opened.image = image;
    engine_t *engine = open_engine_on(image, &probe, options);
    create_table_of_two(engine, "t", DICT_CHAR, 60);
    const ddl_alter_t export = {.kind = ALTER_EXPORT, .table = "t"};
    if (c.exported != NULL) {
        assert_int_equal(engine_start_alter(engine, &export), DB_SUCCESS);
    }
    assert_int_equal(engine_close(engine, c.exported == NULL, NULL), DB_SUCCESS);
    judge_init(&judge, image, options, NULL);
    allowed_t allowed = {0};
    allow_what_is_there(image, &probe, options, &allowed);
    const expected_t expected = {.allowed = &allowed};
    c.expected = &expected;
    outcome_init(&outcome);
    opened.n = 0;
    judge_state(&judge, &c, &outcome);
    judge_free(&judge);
    allowed_free(&allowed);
    allowed_free(&outcome.worked);
    image_destroy(image);
    return &outcome.verdict;
}

/** Those of the last of so many openings. */
static engine_options_t judged_under(const engine_options_t *options, judge_case_t c, uint32_t n)
{
    assert_int_equal(judged(options, c)->n, 0);
    assert_int_equal(opened.n, n);
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
    engine_options_t torn = judged_under(&options, (judge_case_t){.torn = "t", .seed = 6}, 1);
    assert_false(torn.log_optimize_ddl); /* drawn, too */
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

/** Another way to recover the image must come to what the first one has. */
static void test_other_ways(void **state)
{
    static const struct {
        judge_case_t c;
        uint32_t openings;
        uint32_t invariant;
    } WAYS[] = {{{.twice = true}, 3, 17},
                {{.in_batches = true}, 2, 18},
                {{.converted = true}, 3, 18},
                {{.purged = true}, 3, 25},
                {{.exported = "t", .export_acked = true}, 2, 28},
                {{.worked = true}, 3, 2}};
    (void)state;
    engine_options_t options;
    options_set_defaults(&options);
    options.page_size = 4096;
    for (size_t i = 0; i < sizeof(WAYS) / sizeof(WAYS[0]); i++) {
        opened.changes = 0;
        assert_int_equal(judged(&options, WAYS[i].c)->n, 0);
        assert_int_equal(opened.n, WAYS[i].openings);
        opened.changes = WAYS[i].openings;
        const verdict_t *verdict = judged(&options, WAYS[i].c);
        opened.changes = 0;
        assert_int_equal(verdict->n, 1);
        assert_int_equal(verdict->findings[0].invariant, WAYS[i].invariant);
    }
}

/** The rules on recoveries hold up to the end of the one before new work, whose backup reads every
page, and no further; where there is no new work nobody ends one. */
static void test_recovery_is_over_when_work_begins(void **state)
{
    (void)state;
    engine_options_t options;
    options_set_defaults(&options);
    options.page_size = 4096;
    for (uint32_t worked = 0; worked < 2; worked++) {
        issued.n = opened.ended = 0;
        assert_int_equal(judged(&options, (judge_case_t){.worked = worked != 0})->n, 0);
        assert_int_equal(issued.n, worked);
    }
    assert_int_equal(issued.opening, 2);
}

/** New work must be there, all of it, when the database is started again. */
static void test_work_is_kept(void **state)
{
    (void)state;
    engine_options_t options;
    options_set_defaults(&options);
    options.page_size = 4096;
    opened.forgets = 3;
    const verdict_t *verdict = judged(&options, (judge_case_t){.worked = true});
    opened.forgets = 0;
    assert_int_equal(verdict->n, 1);
    assert_int_equal(verdict->findings[0].invariant, 1);
    assert_non_null(strstr(verdict->findings[0].what, "after new work"));
}

/** A purge that has not done all of it says nothing of what it leaves. */
static void test_a_purge_ends(void **state)
{
    (void)state;
    engine_options_t options;
    options_set_defaults(&options);
    options.page_size = 4096;
    purge_ends_early = true;
    const verdict_t *verdict = judged(&options, (judge_case_t){.purged = true});
    purge_ends_early = false;
    assert_int_equal(verdict->n, 1);
    assert_int_equal(verdict->findings[0].invariant, 30);
}

/** A start that asks for another log format is refused for that, or not at all; in both cases
the database is looked at. */
static void test_another_log_format(void **state)
{
    (void)state;
    engine_options_t options;
    options_set_defaults(&options);
    options.page_size = 4096;
    const judge_case_t c = {.converted = true};
    opened.converts = 0;
    (void)judged_under(&options, c, 3);
    assert_int_equal(opened.converts, 2);
    opened.refusal = DB_UNSUPPORTED;
    (void)judged_under(&options, c, 3);
    opened.refusal = DB_CORRUPTION;
    const verdict_t *verdict = judged(&options, c);
    opened.refusal = DB_SUCCESS;
    assert_int_equal(verdict->n, 1);
    assert_int_equal(verdict->findings[0].invariant, 18);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_log_format),
        cmocka_unit_test(test_other_ways),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_no_copies),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_another_mode),
        cmocka_unit_test(test_work_is_kept),
        cmocka_unit_test(test_recovery_is_over_when_work_begins),
        cmocka_unit_test(test_a_purge_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
