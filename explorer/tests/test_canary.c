/* Canaries: each is condemned by an honest judge, a deaf one is told, and what cannot be made is
said to be so. The trace is the creation of a database, recorded in memory. */
#include "runner_fixture.h"

static const run_limits_t LIMITS = {.jobs = 1, .deadline_s = 5};

static canaries_t run(fixture_t *f)
{
    canaries_t canaries;
    uint64_t hash = image_hash(f->image);
    canaries.n = 0;
    runner_run_canaries(&f->explorer, &LIMITS, 0, &canaries);
    assert_int_equal(atomic_load(&f->shared->machine_failures), 0);
    assert_int_equal(image_hash(f->image), hash);
    return canaries;
}

/** Without tables and commits few can be made, and those are condemned. */
static void test_an_honest_judge_hears(void **state)
{
    static const char *const CONDEMNED[] = {"no_prefix", "other_indexes", "other_recovery",
                                            "no_checkpoint", "unlogged_page"};
    static const char *const UNTRIED[] = {
        "lost_commit", "never_issued", "foreign_page", "torn_page", "future_page", "page_shape",
        "row_order",   "siblings",     "one_parent",   "extents",   "trx_id",      "swapped_name"};
    canaries_t canaries = run(*state);
    assert_null(canaries_deaf(&canaries));
    assert_int_equal(canaries.n, 17);
    for (size_t i = 0; i < sizeof(CONDEMNED) / sizeof(CONDEMNED[0]); i++) {
        assert_int_equal(find(&canaries, CONDEMNED[i])->fate, CANARY_CONDEMNED);
    }
    for (size_t i = 0; i < sizeof(UNTRIED) / sizeof(UNTRIED[0]); i++) {
        assert_int_equal(find(&canaries, UNTRIED[i])->fate, CANARY_UNTRIED);
    }
}

/** Whatever else is wrong with the page. */
static void tell_all_but_i4(void *ctx, uint32_t invariant, const char *rule, uint64_t page,
                            const char *what)
{
    judge_t *judge = ctx;
    (void)page;
    if (invariant != 4) {
        verdict_add_rule(judge->verdict, invariant, rule, 0, what);
    }
}

/** Rules that have lost one: what others say of the canary does not count. */
static void test_a_deaf_judge_is_told(void **state)
{
    fixture_t *f = *state;
    judge_t *judge = engine_target_judge(&f->explorer.target);
    const rules_config_t deaf = {.doublewrite = true, .found = tell_all_but_i4, .ctx = judge};
    rules_destroy(judge->rules);
    judge->watch.ctx = judge->rules = rules_create(&deaf);
    canaries_t canaries = run(f);
    assert_non_null(canaries_deaf(&canaries));
    assert_string_equal(canaries_deaf(&canaries)->name, "unlogged_page");
    assert_non_null(strstr(canaries_deaf(&canaries)->by, "nobody, but: page 0:0"));
    assert_string_equal(find(&canaries, "no_prefix")->by, "oracle, I3");
}

/** Where two ranges may hold the same state, nothing must be condemned. */
static void test_a_range_of_equal_states_is_no_canary(void **state)
{
    fixture_t *f = *state;
    allowed_prefix_t prefixes[3] = {f->prefix, f->prefix, f->prefix};
    allowed_t allowed = {.prefixes = prefixes, .n = 3};
    f->explorer.allowed = &allowed;
    prefixes[1].digest = ~f->prefix.digest;
    for (uint32_t line = 0; line < 3; line++) {
        prefixes[line].line = line;
    }
    fs_event_t *last = &f->trace.list.events[f->trace.list.n - 1];
    last->acked_line = last->issued_line = 1;
    canaries_t canaries = run(f);
    /* The run shows an empty database where a commit is acknowledged: the judge finds that one
    missing, whatever was recorded, and an empty database where nothing is issued is right. */
    assert_int_equal(find(&canaries, "lost_commit")->fate, CANARY_CONDEMNED);
    assert_string_equal(find(&canaries, "lost_commit")->by, "oracle, I1");
    last->acked_line = last->issued_line = 2;
    canaries = run(f);
    assert_int_equal(find(&canaries, "lost_commit")->fate, CANARY_UNTRIED);
    assert_int_equal(find(&canaries, "never_issued")->fate, CANARY_UNTRIED);
    last->acked_line = last->issued_line = 0;
    f->explorer.allowed = &f->allowed;
}

static const target_kind_t *honest;
static uint32_t low_is_less;
static uint32_t high_is_more;

/** Lets one acknowledged commit be missing, or one be there that was never issued. */
static dberr_t judge_leniently(void *self, const target_case_t *c, outcome_t *outcome,
                               err_sink_t *err)
{
    expected_t expected = *c->expected;
    target_case_t lenient = *c;
    expected.low -= expected.low >= low_is_less ? low_is_less : 0;
    expected.high += expected.high + high_is_more < expected.allowed->n ? high_is_more : 0;
    lenient.expected = &expected;
    return honest->judge(self, &lenient, outcome, err);
}

/** The recorded run, as one of two commits that ends in the state of prefix `found`. */
static canaries_t run_of_commits(fixture_t *f, uint32_t found)
{
    allowed_prefix_t prefixes[3] = {f->prefix, f->prefix, f->prefix};
    const allowed_t allowed = {.prefixes = prefixes, .n = 3};
    for (uint32_t k = 0; k < 3; k++) {
        prefixes[k].line = k;
        prefixes[k].digest += k - found;
    }
    fs_event_t *last = &f->trace.list.events[f->trace.list.n - 1];
    last->acked_line = last->issued_line = 2;
    f->explorer.allowed = &allowed;
    canaries_t canaries = run(f);
    last->acked_line = last->issued_line = 0;
    f->explorer.allowed = &f->allowed;
    return canaries;
}

/** A judge that is one commit too lenient is as deaf as one that hears nothing. */
static void test_one_commit_too_lenient_is_deaf(void **state)
{
    fixture_t *f = *state;
    honest = f->explorer.target.kind;
    target_kind_t kind = *honest;
    kind.judge = judge_leniently;
    f->explorer.target.kind = &kind;
    for (low_is_less = 0; low_is_less < 2; low_is_less++) {
        canaries_t canaries = run_of_commits(f, 0);
        assert_int_equal(find(&canaries, "lost_commit")->fate,
                         low_is_less == 0 ? CANARY_CONDEMNED : CANARY_DEAF);
    }
    low_is_less = 0;
    for (high_is_more = 0; high_is_more < 2; high_is_more++) {
        canaries_t canaries = run_of_commits(f, 2);
        assert_int_equal(find(&canaries, "never_issued")->fate,
                         high_is_more == 0 ? CANARY_CONDEMNED : CANARY_DEAF);
    }
    high_is_more = 0;
    f->explorer.target.kind = honest;
}

/** A canary that is not condemned since its state is broken without it says nothing of the judge:
the state is a finding. */
static void test_a_state_that_is_broken_by_itself_is_a_finding(void **state)
{
    fixture_t *f = *state;
    uint64_t lost;
    (void)run(f);
    assert_int_equal(shared_records(f->shared, &lost), 0);
    canaries_t canaries = run_of_commits(f, 7); /* none of the prefixes is there */
    assert_null(canaries_deaf(&canaries));
    assert_int_equal(find(&canaries, "lost_commit")->fate, CANARY_UNTRIED);
    assert_true(shared_records(f->shared, &lost) > 0);
    assert_int_equal(f->shared->records[0].path.level[0].model, MODEL_ALL_PERSISTED);
    assert_int_equal(f->shared->records[0].path.level[0].seq, 0);
}

/** What is told can be read back. */
static void test_canaries_are_told(void **state)
{
    canaries_t told = {.n = 3,
                       .list = {{"one", 5, CANARY_CONDEMNED, "scan, I5"},
                                {"two", 12, CANARY_UNTRIED, "no table"},
                                {"three", 1, CANARY_DEAF, "nobody"}}};
    json_t *object = canaries_object(&told);
    (void)state;
    canaries_t read;
    assert_true(canaries_read(object, &read));
    assert_int_equal(read.n, told.n);
    for (uint32_t i = 0; i < told.n; i++) {
        assert_string_equal(read.list[i].name, told.list[i].name);
        assert_string_equal(read.list[i].by, told.list[i].by);
        assert_int_equal(read.list[i].invariant, told.list[i].invariant);
        assert_int_equal(read.list[i].fate, told.list[i].fate);
    }
    assert_ptr_equal(canaries_deaf(&read), &read.list[2]);
    assert_int_equal(json_object_set_new(json_array_get(object, 0), "name", json_integer(1)), 0);
    assert_false(canaries_read(object, &read));
    json_decref(object);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_an_honest_judge_hears, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_deaf_judge_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_range_of_equal_states_is_no_canary, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_commit_too_lenient_is_deaf, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_state_that_is_broken_by_itself_is_a_finding, setup,
                                        teardown),
        cmocka_unit_test(test_canaries_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
