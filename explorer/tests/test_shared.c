/* State ids and the set of visited images. */
#include "fixture.h"

#include "explorer/run/shared.h"

/** Format and parse are inverse; what is no id is refused. */
static void test_ids(void **state)
{
    static const char *const GOOD[] = {"0.all-persisted.0", "17.one-torn.31/4.subset.7",
                                       "1.ordered.2/3.none-persisted.0/99.one-dropped.15"};
    static const char *const BAD[] = {"",
                                      "1",
                                      "1.all-persisted",
                                      "1.all-persisted.",
                                      "x.subset.1",
                                      "1.nosuch.1",
                                      "1.subset.1/",
                                      "1.subset.1x",
                                      "-1.subset.1",
                                      "1.subset.1/2.subset.1/3.subset.1/4.subset.1"};
    (void)state;
    for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
        state_path_t path;
        char text[STATE_ID_MAX];
        assert_true(state_path_parse(GOOD[i], &path));
        state_path_format(&path, text);
        assert_string_equal(text, GOOD[i]);
    }
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        state_path_t path;
        assert_false(state_path_parse(BAD[i], &path));
    }
}

/** Skipped only when it was found right; counted as new once. */
static void test_visited(void **state)
{
    shared_t *shared = shared_create(1U << 12, false);
    (void)state;
    assert_non_null(shared);
    visit_t first = visited_enter(shared, 5);
    assert_true(first.fresh && !first.clean);
    visit_t again = visited_enter(shared, 5);
    assert_true(!again.fresh && !again.clean);
    visited_leave_clean(&first);
    assert_true(visited_enter(shared, 5).clean);
    assert_true(visited_enter(shared, 6).fresh);
    shared_destroy(shared);
}

/** A full table loses no state: it is run, and counted. */
static void test_full(void **state)
{
    shared_t *shared = shared_create(64, false);
    (void)state;
    for (uint64_t key = 1; key <= 64; key++) {
        assert_true(visited_enter(shared, key).fresh);
    }
    visit_t visit = visited_enter(shared, 1000);
    assert_true(visit.slot == NULL && !visit.fresh && !visit.clean);
    visited_leave_clean(&visit);
    assert_int_equal(atomic_load(&shared->counts.unvisited), 1);
    shared_destroy(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_visited),
        cmocka_unit_test(test_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
