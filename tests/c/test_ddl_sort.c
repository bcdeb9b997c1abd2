/** External merge sort: order, bounded memory, temporary files. */
#include "test_ddl_fixture.h"

#define REC_SIZE 24U
#define KEY_LEN 12U

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    return *seed >> 8;
}

/** n records with distinct keys in a random order; bytes behind the key tell which record it is. */
static byte *make_records(uint32_t n)
{
    byte *recs = calloc(n + 1, REC_SIZE);
    uint32_t seed = n;
    assert_non_null(recs);
    for (uint32_t i = 0; i < n; i++) {
        byte *rec = recs + (size_t)i * REC_SIZE;
        mach_write_4(rec + 1, next_random(&seed) % 7);
        mach_write_4(rec + 5, next_random(&seed));
        mach_write_2(rec + 9, i);
        mach_write_4(rec + KEY_LEN, i);
        rec[KEY_LEN - 1] = (byte)(i >> 16);
    }
    return recs;
}

static int compare_records(const void *a, const void *b)
{
    return memcmp(a, b, KEY_LEN);
}

static dberr_t count_name(void *ctx, const char *name)
{
    uint32_t *n = ctx;
    assert_memory_equal(name, MERGE_TMP_PREFIX, sizeof(MERGE_TMP_PREFIX) - 1);
    (*n)++;
    return DB_SUCCESS;
}

static uint32_t count_files(fixture_t *f)
{
    uint32_t n = 0;
    assert_int_equal(env_list(&f->env, count_name, &n), DB_SUCCESS);
    return n;
}

static void finish_sort(merge_sort_t *sort)
{
    bool done = false;
    for (uint32_t steps = 0; !done; steps++) {
        assert_true(steps < 1000000);
        assert_int_equal(merge_sort_step(sort, &done), DB_SUCCESS);
    }
}

static void check_sort(fixture_t *f, uint32_t n, uint64_t memory_bytes)
{
    byte *recs = make_records(n);
    merge_sort_t *sort = NULL;
    assert_int_equal(merge_sort_create(&f->env, 7, REC_SIZE, KEY_LEN, memory_bytes, &sort),
                     DB_SUCCESS);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(merge_sort_add(sort, recs + (size_t)i * REC_SIZE), DB_SUCCESS);
    }
    finish_sort(sort);
    qsort(recs, n, REC_SIZE, compare_records);
    const byte *rec = NULL;
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(merge_sort_next(sort, &rec), DB_SUCCESS);
        assert_memory_equal(rec, recs + (size_t)i * REC_SIZE, REC_SIZE);
    }
    assert_int_equal(merge_sort_next(sort, &rec), DB_NOT_FOUND);
    assert_int_equal(merge_sort_next(sort, &rec), DB_NOT_FOUND);
    merge_sort_free(sort);
    assert_int_equal(count_files(f), 0);
    uint64_t least = merge_sort_memory_min(REC_SIZE);
    assert_int_equal(f->env.stats.sort_bytes, 0);
    assert_true(f->env.stats.sort_bytes_max <= (memory_bytes > least ? memory_bytes : least));
    f->env.stats.sort_bytes_max = 0;
    free(recs);
}

/** Any number of records in any memory comes out as qsort would order it; the memory is not
exceeded. */
static void test_sorts_as_qsort(void **state)
{
    static const uint32_t SIZES[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1000, 4097};
    static const uint64_t MEMORIES[] = {0, 300, 1000, 70000, 1 << 20};
    for (size_t s = 0; s < sizeof(SIZES) / sizeof(SIZES[0]); s++) {
        for (size_t m = 0; m < sizeof(MEMORIES) / sizeof(MEMORIES[0]); m++) {
            check_sort(*state, SIZES[s], MEMORIES[m]);
        }
    }
}

/** 64 KiB and 100,000 records: several generations of runs. */
static void test_many_runs(void **state)
{
    fixture_t *f = *state;
    check_sort(f, 100000, 64 * 1024);
    assert_true(f->env.stats.sort_runs > 30);
}

/** What fits the budget touches no file. */
static void test_small_input_stays_in_memory(void **state)
{
    fixture_t *f = *state;
    check_sort(f, 1000, 1 << 20);
    assert_int_equal(f->env.stats.sort_runs, 0);
}

/** Until the first record comes, a sort has no buffer, whatever its budget. */
static void test_no_record_no_buffer(void **state)
{
    fixture_t *f = *state;
    merge_sort_t *sort = NULL;
    assert_int_equal(merge_sort_create(&f->env, 7, REC_SIZE, KEY_LEN, 1ULL << 40, &sort),
                     DB_SUCCESS);
    finish_sort(sort);
    const byte *rec = NULL;
    assert_int_equal(merge_sort_next(sort, &rec), DB_NOT_FOUND);
    assert_true(f->env.stats.sort_bytes_max < 1024);
    merge_sort_free(sort);
}

/** A sort given up half-way removes its files. */
static void test_abandoned_sort_leaves_no_file(void **state)
{
    fixture_t *f = *state;
    byte *recs = make_records(500);
    merge_sort_t *sort = NULL;
    assert_int_equal(merge_sort_create(&f->env, 1, REC_SIZE, KEY_LEN, 500, &sort), DB_SUCCESS);
    for (uint32_t i = 0; i < 500; i++) {
        assert_int_equal(merge_sort_add(sort, recs + (size_t)i * REC_SIZE), DB_SUCCESS);
    }
    bool done = false;
    assert_int_equal(merge_sort_step(sort, &done), DB_SUCCESS);
    assert_int_equal(merge_sort_step(sort, &done), DB_SUCCESS);
    assert_false(done);
    assert_int_equal(count_files(f), 2);
    merge_sort_free(sort);
    assert_int_equal(count_files(f), 0);
    free(recs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_sorts_as_qsort, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_many_runs, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_small_input_stays_in_memory, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(test_no_record_no_buffer, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_abandoned_sort_leaves_no_file, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
