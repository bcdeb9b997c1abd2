/* The table of keys against a plain list. */
#include "disk/tests/fixture.h"

#include "explorer/judge/key_table.h"

#define N_KEYS 3000U

static uint64_t key_at(uint32_t round, uint32_t i)
{
    return (uint64_t)(i % 7) << 32 | (i / 7 * 3U + round); /* seven spaces, the same pages */
}

/** Each key has the position in which it was added, through all growth; others have none; a table
that was cleared begins anew. */
static void test_positions(void **state)
{
    (void)state;
    key_table_t table = {.n = 0};
    assert_int_equal(key_table_find(&table, 5), KEY_NONE);
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < N_KEYS; i++) {
            assert_int_equal(key_table_find(&table, key_at(round, i)), KEY_NONE);
            assert_int_equal(key_table_add(&table, key_at(round, i)), i);
        }
        for (uint32_t i = 0; i < N_KEYS; i++) {
            assert_int_equal(key_table_find(&table, key_at(round, i)), i);
            assert_int_equal(key_table_find(&table, key_at(1 - round, i)), KEY_NONE);
        }
        key_table_clear(&table);
        assert_int_equal(key_table_find(&table, key_at(round, 0)), KEY_NONE);
    }
    key_table_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_positions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
