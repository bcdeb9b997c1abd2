/* State ids and the set of visited images. */
#include "disk/tests/fixture.h"

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
        assert_true(state_path_parse(GOOD[i], &path));
        char text[STATE_ID_MAX];
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
    assert_true(visited_enter(shared, 5 + (1ULL << 32)).fresh); /* in the place of another */
    shared_destroy(shared);
}

/** The smallest of several states is the same one in each run: all that an id has counts. */
static void test_order_of_ids(void **state)
{
    static const char *const SORTED[] = {"2.subset.0",
                                         "2.subset.1",
                                         "10.all-persisted.0",
                                         "2.subset.0/3.subset.0",
                                         "2.subset.0/3.subset.2",
                                         "2.subset.1/3.subset.0"};
    const size_t n = sizeof(SORTED) / sizeof(SORTED[0]);
    (void)state;
    for (size_t i = 0; i < n * n; i++) {
        state_path_t a;
        state_path_t b;
        assert_true(state_path_parse(SORTED[i / n], &a) && state_path_parse(SORTED[i % n], &b));
        assert_int_equal(state_path_compare(&a, &b), i / n < i % n ? -1 : i / n > i % n);
    }
}

/** What was found right with less below it is seen again with more, and with as much it is not. */
static void test_visited_with_more_below(void **state)
{
    shared_t *shared = shared_create(1U << 12, false);
    (void)state;
    assert_non_null(shared);
    for (uint32_t remaining = 0; remaining < DEPTH_MAX; remaining++) {
        for (uint32_t less = 0; less < remaining; less++) {
            assert_true(visited_enter(shared, visited_key(5, less)).clean);
        }
        visit_t visit = visited_enter(shared, visited_key(5, remaining));
        assert_true(visit.fresh && !visit.clean);
        visited_leave_clean(&visit);
    }
    assert_true(visited_enter(shared, visited_key(5, 0)).clean);
    shared_destroy(shared);
}

/** The state from which stream_next() draws this number. */
static uint64_t state_before(uint64_t drawn)
{
    uint64_t z = drawn ^ drawn >> 31 ^ drawn >> 62;
    z *= 0x319642b2d24d8ec3U;
    z ^= z >> 27 ^ z >> 54;
    z *= 0x96de1b173f119089U;
    z ^= z >> 30 ^ z >> 60;
    return z - 0x9e3779b97f4a7c15U;
}

/** Whatever is below an image, it is neither a free slot nor counted as what belongs to no
image. */
static void test_reserved_keys(void **state)
{
    static const uint64_t RESERVED[] = {TALLY_STATE, TALLY_RECORDING};
    (void)state;
    for (size_t i = 0; i < sizeof(RESERVED) / sizeof(RESERVED[0]); i++) {
        for (uint32_t remaining = 0; remaining < DEPTH_MAX; remaining++) {
            uint64_t key = RESERVED[i];
            if (remaining > 0) {
                key = state_before(state_before(state_before(state_before(key))) ^ remaining);
                assert_true(stream_mix(key, remaining, 0, 0) == RESERVED[i]);
            }
            uint64_t mapped = visited_key(key, remaining);
            assert_true(mapped != TALLY_STATE && mapped != TALLY_RECORDING);
        }
    }
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

/** Findings that find no room are counted. */
static void test_records_lost(void **state)
{
    static const record_t RECORD;
    shared_t *shared = shared_create(64, false);
    (void)state;
    shared_record(shared, &RECORD);
    uint64_t lost = 7;
    assert_int_equal(shared_records(shared, &lost), 1);
    assert_int_equal(lost, 0);
    for (uint32_t i = 0; i < RECORDS_MAX + 2U; i++) {
        shared_record(shared, &RECORD);
    }
    assert_int_equal(shared_records(shared, &lost), RECORDS_MAX);
    assert_int_equal(lost, 3);
    shared_destroy(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),           cmocka_unit_test(test_visited),
        cmocka_unit_test(test_order_of_ids),  cmocka_unit_test(test_visited_with_more_below),
        cmocka_unit_test(test_reserved_keys), cmocka_unit_test(test_full),
        cmocka_unit_test(test_records_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
