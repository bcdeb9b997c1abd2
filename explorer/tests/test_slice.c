/* Slices: what they say, merged, is what one process would have said, and what is no slice of the
exploration is refused. */
#include "disk/tests/fixture.h"

#include <stdio.h>

#include "explorer/run/slice.h"

typedef struct merge_fixture {
    char path[32]; /**< of all slices, one behind the other */
    uint64_t events;
    uint64_t possible; /**< states of one model */
    uint64_t records;  /**< that each slice has had, nearly all of them without room */
    merged_t merged;
    summary_t summary;
    err_sink_t err;
} merge_fixture_t;

static int setup(void **state)
{
    merge_fixture_t *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    (void)snprintf(f->path, sizeof(f->path), "/tmp/slices-XXXXXX");
    f->events = 9;
    f->possible = 70;
    put_text(f->path, "");
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    merge_fixture_t *f = *state;
    (void)unlink(f->path);
    free(f);
    return 0;
}

/** Appends what a worker says of slice `number` of `of`. complete: of it; hung: states that hung in
it; image: one that it has met, which adds a distinct state; 0: none. */
static void say(const merge_fixture_t *f, uint32_t number, uint32_t of, bool complete,
                uint32_t hung, uint64_t image)
{
    shared_t *shared = shared_create(64, true);
    summary_t summary = {.depth = 1,
                         .jobs = 1,
                         .crash_points = 4,
                         .events = f->events,
                         .complete = complete,
                         .possible = {[MODEL_ALL_PERSISTED] = 4, [MODEL_ONE_TORN] = f->possible}};
    assert_non_null(shared);
    for (uint64_t i = 0; i < f->records; i++) {
        record_t record = {.low = 1};
        assert_true(state_path_parse("1.subset.0", &record.path));
        shared_record(shared, &record);
    }
    shared_count(shared, TALLY_STATE, COUNT_OF(hung), hung);
    if (image != 0) {
        shared_count(shared, image, COUNT_OF(distinct), 1);
    }
    char path[] = "/tmp/slice-XXXXXX";
    put_text(path, "");
    assert_true(slice_write(path, shared, &summary, number, of));
    FILE *from = fopen(path, "re");
    FILE *to = fopen(f->path, "ae");
    assert_true(from != NULL && to != NULL);
    char line[4096];
    while (fgets(line, sizeof(line), from) != NULL) {
        assert_true(fputs(line, to) >= 0);
    }
    assert_int_equal(fclose(from), 0);
    assert_int_equal(fclose(to), 0);
    (void)unlink(path);
    shared_destroy(shared);
}

static dberr_t merge(merge_fixture_t *f)
{
    f->summary = (summary_t){.fs = "xfs"};
    dberr_t status = slice_merge(f->path, &f->merged, &f->summary, &f->err);
    return status;
}

/** Counts per state are added up; an image that two slices have met counts once. */
static void test_counts(void **state)
{
    merge_fixture_t *f = *state;
    say(f, 2, 3, true, 1, 77);
    say(f, 1, 3, true, 2, 77);
    say(f, 3, 3, true, 0, 78);
    assert_int_equal(merge(f), DB_SUCCESS);
    assert_int_equal(atomic_load(&f->merged.counts.hung), 3);
    assert_int_equal(atomic_load(&f->merged.counts.distinct), 2);
    assert_true(f->summary.complete);
    assert_int_equal(f->summary.crash_points, 4);
    assert_int_equal(f->summary.possible[MODEL_ALL_PERSISTED], 4);
    assert_int_equal(f->summary.possible[MODEL_ONE_TORN], 70);
    assert_string_equal(f->summary.fs, "xfs");
    merged_free(&f->merged);
}

/** An exploration is complete if each of its slices is, whichever is not. */
static void test_complete(void **state)
{
    merge_fixture_t *f = *state;
    say(f, 1, 2, true, 0, 0);
    say(f, 2, 2, false, 0, 0);
    assert_int_equal(merge(f), DB_SUCCESS);
    assert_false(f->summary.complete);
    merged_free(&f->merged);
    assert_int_equal(truncate(f->path, 0), 0);
    say(f, 1, 2, false, 0, 0);
    say(f, 2, 2, true, 0, 0);
    assert_int_equal(merge(f), DB_SUCCESS);
    assert_false(f->summary.complete);
    merged_free(&f->merged);
}

/** One that is missing, there twice, or of another number of slices is an error. */
static void test_refused(void **state)
{
    merge_fixture_t *f = *state;
    assert_int_equal(merge(f), DB_ERROR);
    merged_free(&f->merged);
    say(f, 1, 3, true, 0, 0);
    say(f, 3, 3, true, 0, 0);
    assert_int_equal(merge(f), DB_ERROR);
    merged_free(&f->merged);
    say(f, 3, 3, true, 0, 0);
    assert_int_equal(merge(f), DB_ERROR);
    merged_free(&f->merged);
    assert_int_equal(truncate(f->path, 0), 0);
    say(f, 1, 2, true, 0, 0);
    say(f, 2, 3, true, 0, 0);
    assert_int_equal(merge(f), DB_ERROR);
    merged_free(&f->merged);
}

/** Of one recording, and of the same states in it. */
static void test_another_exploration(void **state)
{
    merge_fixture_t *f = *state;
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(truncate(f->path, 0), 0);
        say(f, 1, 2, true, 0, 0);
        f->events += i == 1;
        f->possible += i == 2;
        say(f, 2, 2, true, 0, 0);
        assert_int_equal(merge(f), i == 0 ? DB_SUCCESS : DB_ERROR);
        merged_free(&f->merged);
    }
}

/** A slice in place of another is none of its own. */
static void test_one_slice_twice(void **state)
{
    merge_fixture_t *f = *state;
    say(f, 1, 2, true, 0, 0);
    say(f, 1, 2, true, 0, 0);
    assert_int_equal(merge(f), DB_ERROR);
    merged_free(&f->merged);
}

/** Findings that found no room, of all slices. */
static void test_lost(void **state)
{
    merge_fixture_t *f = *state;
    f->records = RECORDS_MAX + 3U;
    say(f, 1, 2, true, 0, 0);
    f->records = 0;
    say(f, 2, 2, true, 0, 0);
    assert_int_equal(merge(f), DB_SUCCESS);
    assert_int_equal(f->summary.records_lost, 3);
    merged_free(&f->merged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_complete, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_exploration, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_slice_twice, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
