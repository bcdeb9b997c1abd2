/* Outcomes: what was found, what other ways to it must find too, and what a crash in the recovery
may leave. */
#include "disk/tests/fixture.h"

#include "explorer/judge/outcome.h"

#define PREFIXES 4U

typedef struct outcome_fixture {
    allowed_t allowed;
    outcome_t outcome;
} outcome_fixture_t;

static check_table_t table_of(uint64_t hash)
{
    return (check_table_t){.name = "t", .rows = 1, .hash = hash};
}

/** Prefixes 2 and 3 have the same state. */
static int setup(void **state)
{
    static const uint64_t HASHES[PREFIXES] = {10, 11, 12, 12};
    static outcome_fixture_t f;
    f = (outcome_fixture_t){.allowed = {.n = 0}};
    for (uint32_t i = 0; i < PREFIXES; i++) {
        check_table_t table = table_of(HASHES[i]);
        allowed_add(&f.allowed, &table, 1);
        f.allowed.prefixes[i].line = i;
    }
    outcome_init(&f.outcome);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    outcome_fixture_t *f = *state;
    outcome_free(&f->outcome);
    allowed_free(&f->allowed);
    return 0;
}

/** A recovery that comes to the state of this hash. @return the invariant that it breaks; 0:
none */
static uint32_t judge(outcome_fixture_t *f, const expected_t *expected, uint64_t hash)
{
    check_table_t table = table_of(hash);
    const check_report_t report = {.n_tables = 1, .tables = &table};
    outcome_free(&f->outcome);
    outcome_init(&f->outcome);
    outcome_judge(&f->outcome, expected, &report);
    assert_true(f->outcome.found == (f->outcome.verdict.n == 0));
    return f->outcome.verdict.n == 0 ? 0 : f->outcome.verdict.findings[0].invariant;
}

static void test_found(void **state)
{
    outcome_fixture_t *f = *state;
    const expected_t expected = {.allowed = &f->allowed, .low = 1, .high = 2};
    assert_int_equal(judge(f, &expected, 11), 0);
    assert_int_equal(f->outcome.prefix, 1);
    assert_int_equal(judge(f, &expected, 12), 0);
    assert_int_equal(f->outcome.prefix, 2);
    assert_int_equal(judge(f, &expected, 10), 1);
    assert_int_equal(judge(f, &expected, 99), 2);
}

/** One state in several sentences: another way to the same image must come to it. */
static void test_compare(void **state)
{
    outcome_fixture_t *f = *state;
    const expected_t expected = {.allowed = &f->allowed, .low = 1, .high = 2};
    assert_int_equal(judge(f, &expected, 11), 0);
    outcome_compare(&f->outcome, 18, "in small batches: ", f->outcome.digest);
    assert_int_equal(f->outcome.verdict.n, 0);
    outcome_compare(&f->outcome, 18, "in small batches: ", f->allowed.prefixes[2].digest);
    assert_int_equal(f->outcome.verdict.n, 1);
    assert_int_equal(f->outcome.verdict.findings[0].invariant, 18);
}

/** Below a crash in the recovery the range is what it had come to; of prefixes with one state
either is right. What was never allowed is told as that. */
static void test_shown(void **state)
{
    outcome_fixture_t *f = *state;
    uint32_t low;
    uint32_t high;
    const expected_t first = {.allowed = &f->allowed, .low = 1, .high = 3};
    assert_int_equal(judge(f, &first, 12), 0);
    assert_int_equal(f->outcome.prefix, 3);
    expected_t below = outcome_expects(&f->outcome, &first, 0, 0);
    expected_range(&below, &low, &high);
    assert_true(low == 3 && high == 3);
    assert_int_equal(judge(f, &below, 12), 0);
    assert_int_equal(judge(f, &below, 11), 17);
    assert_int_equal(judge(f, &below, 10), 1);
    below.high = 2; /* the same state, under the other number */
    assert_int_equal(judge(f, &below, 12), 0);
}

/** Where no recovery has come to a state, nothing is bound. */
static void test_nothing_shown(void **state)
{
    outcome_fixture_t *f = *state;
    const expected_t first = {.allowed = &f->allowed, .low = 1, .high = 3};
    assert_int_equal(judge(f, &first, 99), 2);
    expected_t below = outcome_expects(&f->outcome, &first, 0, 0);
    assert_false(below.is_shown);
    assert_int_equal(judge(f, &below, 11), 0);
    assert_int_equal(judge(f, &below, 12), 0);
}

/** New work: until its first commit is acknowledged it may be there or what was shown; from then on
it must. */
static void test_worked(void **state)
{
    outcome_fixture_t *f = *state;
    check_table_t made = table_of(50);
    const expected_t first = {.allowed = &f->allowed, .low = 1, .high = 2};
    assert_int_equal(judge(f, &first, 12), 0);
    outcome_t shown = f->outcome;
    outcome_init(&f->outcome);
    allowed_extend(&shown.worked, &f->allowed, first.high, 7);
    allowed_add(&shown.worked, &made, 1);
    expected_t under_way = outcome_expects(&shown, &first, 0, 1);
    assert_int_equal(judge(f, &under_way, 50), 0);
    assert_int_equal(judge(f, &under_way, 12), 0);
    assert_int_equal(judge(f, &under_way, 11), 17);
    expected_t acked = outcome_expects(&shown, &first, 1, 1);
    assert_int_equal(judge(f, &acked, 50), 0);
    assert_int_equal(judge(f, &acked, 12), 1);
    expected_t unheard_of = outcome_expects(&shown, &first, 2, 2); /* than there are */
    assert_int_equal(unheard_of.high, first.high);
    assert_ptr_equal(unheard_of.allowed, first.allowed);
    outcome_free(&shown);
}

/** A prepare binds from its acknowledgement on, and what bound above binds below. */
static void test_prepared(void **state)
{
    outcome_fixture_t *f = *state;
    expected_t below = {.prepared = 4};
    f->outcome.prepared[0] = 3;
    outcome_expect_prepared(&f->outcome, 1, &below);
    assert_int_equal(below.prepared, 4);
    outcome_expect_prepared(&f->outcome, 2, &below);
    assert_int_equal(below.prepared, 5);
}

/** Each client by itself: none may come to another of its states than it was shown in. */
static void test_clients(void **state)
{
    outcome_fixture_t *f = *state;
    check_table_t tables[] = {{.name = "a", .rows = 1, .hash = 1}, {.name = "b", .rows = 1}};
    allowed_t allowed = {.n = 0};
    static const uint64_t HASHES_OF_B[] = {20, 21, 22};
    allowed_add(&allowed, &tables[0], 1);
    for (uint32_t i = 0; i < 3; i++) {
        tables[1].hash = HASHES_OF_B[i];
        allowed_add(&allowed, &tables[1], 1);
    }
    for (uint32_t i = 0; i < allowed.n; i++) {
        allowed.prefixes[i].client = i == 0 ? 1 : 2;
        allowed.prefixes[i].line = i > 1 ? i : 0;
    }
    allowed.by_client = true;
    const check_report_t report = {.n_tables = 2, .tables = tables};
    const expected_t first = {.allowed = &allowed, .low = 1, .high = 1};
    tables[1].hash = 21; /* under way */
    outcome_judge(&f->outcome, &first, &report);
    assert_true(f->outcome.found);
    expected_t below = outcome_expects(&f->outcome, &first, 0, 0);
    outcome_t second;
    outcome_init(&second);
    tables[1].hash = 20;
    outcome_judge(&second, &below, &report);
    assert_int_equal(second.verdict.n, 1);
    assert_int_equal(second.verdict.findings[0].invariant, 17);
    allowed_free(&allowed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_compare, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(test_worked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_prepared, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clients, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
