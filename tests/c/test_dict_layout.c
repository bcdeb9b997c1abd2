/** dict_table_layout and the conversions between row bytes and records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mach.h"
#include "test_dict_fixture.h"
#include "test_random.h"

/** x CHAR(3), a BIGINT, y CHAR(5), b BIGINT; PRIMARY (b, x); i (y(2), a). */
static dict_table_t small_table(void)
{
    dict_table_t t = {.name = "t"};
    table_add_col(&t, "x", DICT_CHAR, 3);
    table_add_col(&t, "a", DICT_BIGINT, 8);
    table_add_col(&t, "y", DICT_CHAR, 5);
    table_add_col(&t, "b", DICT_BIGINT, 8);
    dict_index_t *index = table_add_index(&t, "PRIMARY");
    index_add_field(index, 3, 8);
    index_add_field(index, 0, 0);
    index = table_add_index(&t, "i");
    index_add_field(index, 2, 2);
    index_add_field(index, 1, 0);
    return t;
}

/** Offsets and bytes are exactly those that dict.h describes. */
static void test_bytes(void **state)
{
    dict_table_t t = small_table();
    static const byte ROW[] = "xxxAAAAAAAAyzzzzBBBBBBBB";
    (void)state;
    assert_int_equal(dict_table_layout(&t, 4096, NULL), DB_SUCCESS);
    assert_int_equal(t.row_size, 24);
    assert_int_equal(t.pk_len, 11);
    assert_int_equal(t.indexes[0].tree.key_len, 11);
    assert_int_equal(t.indexes[0].tree.leaf_rec_size, 1 + 24 + 13);
    assert_int_equal(t.indexes[1].tree.key_len, 2 + 8 + 11);
    assert_int_equal(t.indexes[1].tree.leaf_rec_size, 1 + 21);
    assert_true(t.indexes[0].clustered);
    assert_false(t.indexes[1].clustered);
    assert_int_equal(t.indexes[0].fields[1].prefix_len, 3);

    byte rec[64];
    uint32_t len = dict_row_to_rec(&t, ROW, NULL, 0x010203040506, 0x0708090A0B0C0D, rec);
    assert_memory_equal(rec,
                        "\0BBBBBBBBxxx\1\2\3\4\5\6\7\x8\x9\xA\xB\xC\xD"
                        "AAAAAAAAyzzzz",
                        38);
    assert_int_equal(dict_rec_trx_id(&t, rec), 0x010203040506);
    assert_int_equal(dict_rec_roll_ptr(&t, rec), 0x0708090A0B0C0D);
    assert_int_equal(dict_rec_trx_id_offset(&t), 12);
    byte row[64];
    assert_int_equal(dict_rec_read(NULL, &t, rec, len, row), DB_SUCCESS);
    assert_memory_equal(row, ROW, 24);
    byte pk[16];
    dict_row_to_pk(&t, ROW, pk);
    assert_memory_equal(pk, "BBBBBBBBxxx", 11);
    byte sec[64];
    dict_row_to_sec(&t.indexes[1], ROW, sec);
    assert_memory_equal(sec, "\0yzAAAAAAAABBBBBBBBxxx", 22);
}

/** BIGINT's stored bytes order as the numbers do. */
static void test_bigint(void **state)
{
    static const int64_t VALUES[] = {INT64_MIN, -70000, -1, 0, 1, 255, 256, INT64_MAX};
    (void)state;
    byte last[8] = {0};
    for (size_t i = 0; i < sizeof(VALUES) / sizeof(VALUES[0]); i++) {
        byte stored[8];

        mach_write_8(stored, dict_bigint_encode(VALUES[i]));
        assert_true(i == 0 || memcmp(last, stored, 8) < 0);
        assert_int_equal(dict_bigint_decode(mach_read_8(stored)), VALUES[i]);
        memcpy(last, stored, 8);
    }
}

/** Random layouts: every byte of a row comes back from its record, and the record has no byte
twice. */
static void test_random_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 4711;
    uint32_t laid_out = 0;
    for (uint32_t round = 0; round < 300; round++) {
        dict_table_t t = {.name = "t"};
        uint32_t n = 1 + (uint32_t)(random_next(&seed) % COLUMNS_MAX);
        for (uint32_t i = 0; i < n; i++) {
            char name[16];
            bool number = random_next(&seed) % 3 == 0;

            snprintf(name, sizeof(name), "c%u", i);
            table_add_col(&t, name, number ? DICT_BIGINT : DICT_CHAR,
                          number ? 8 : 1 + (uint32_t)(random_next(&seed) % 60));
        }
        dict_index_t *index = table_add_index(&t, "PRIMARY");
        for (uint32_t i = n; i-- > 0 && index->n_fields < 3;) {
            index_add_field(index, i, 0);
        }
        if (dict_table_layout(&t, 4096, NULL) != DB_SUCCESS) {
            continue;
        }
        laid_out++;
        byte row[COLUMNS_MAX * CHAR_LEN_MAX];
        for (uint32_t i = 0; i < t.row_size; i++) {
            row[i] = (byte)random_next(&seed);
        }
        byte rec[COLUMNS_MAX * CHAR_LEN_MAX + 64];
        memset(rec, 0x5A, sizeof(rec));
        uint32_t len = dict_row_to_rec(&t, row, NULL, round, 2 * round, rec);
        byte back[COLUMNS_MAX * CHAR_LEN_MAX];
        assert_int_equal(dict_rec_read(NULL, &t, rec, len, back), DB_SUCCESS);
        assert_memory_equal(row, back, t.row_size);
        assert_int_equal(dict_rec_trx_id(&t, rec), round);
        assert_int_equal(dict_rec_roll_ptr(&t, rec), 2 * round);
        assert_int_equal(t.row_size + 14, t.indexes[0].tree.leaf_rec_size);
        assert_int_equal(rec[t.indexes[0].tree.leaf_rec_size], 0x5A);
    }
    assert_true(laid_out > 150);
}

static void expect_refused(dict_table_t *t, uint32_t page_size, const char *message)
{
    err_sink_t err = {.msg = ""};

    assert_int_equal(dict_table_layout(t, page_size, &err), DB_ERROR);
    if (strstr(err.msg, message) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.msg, message);
    }
}

#define FIELD(name) offsetof(dict_table_t, name)

/** Each limit of a number has its message. */
static void test_limits(void **state)
{
    static const struct {
        size_t field; /**< a uint32_t */
        uint32_t value;
        const char *message;
    } CASES[] = {
        {FIELD(n_cols), 0, "columns"},
        {FIELD(n_cols), COLUMNS_MAX + 1, "columns"},
        {FIELD(cols[0].len), 0, "CHAR"},
        {FIELD(cols[0].len), CHAR_LEN_MAX + 1, "CHAR"},
        {FIELD(cols[1].len), 4, "BIGINT"},
        {FIELD(n_indexes), 0, "indexes"},
        {FIELD(indexes[0].n_fields), 0, "key columns"},
        {FIELD(indexes[1].fields[1].col), 2, "twice"},
        {FIELD(indexes[1].fields[1].col), 4, "no column"},
        {FIELD(indexes[1].fields[0].prefix_len), 6, "longer than column"},
        {FIELD(indexes[1].fields[1].prefix_len), 4, "not a text"},
        {FIELD(indexes[0].fields[1].prefix_len), 1, "primary key"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        dict_table_t t = small_table();

        memcpy((byte *)&t + CASES[i].field, &CASES[i].value, sizeof(CASES[i].value));
        expect_refused(&t, 4096, CASES[i].message);
    }
}

/** Each rule of names has its message. */
static void test_names(void **state)
{
    static const struct {
        size_t field; /**< characters */
        const char *value;
        size_t len; /**< of the value, with what follows its end */
        const char *message;
    } CASES[] = {
        {FIELD(name), "../x", 5, "letters"},
        {FIELD(cols[1].name), "", 1, "no name"},
        {FIELD(cols[1].name), "x", 1, "two columns"},
        {FIELD(indexes[1].name), "PRIMARY", 8, "two indexes"},
    };
    dict_table_t t = small_table();

    (void)state;
    memset(t.name, 'n', sizeof(t.name));
    expect_refused(&t, 4096, "longer than 63");
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        t = small_table();
        memcpy((byte *)&t + CASES[i].field, CASES[i].value, CASES[i].len);
        expect_refused(&t, 4096, CASES[i].message);
    }
}

/** Records of which two do not fit a page, and keys that leave too few node pointers, depend on the
page size. */
static void test_sizes(void **state)
{
    dict_table_t t = {.name = "t"};
    (void)state;
    table_add_col(&t, "id", DICT_BIGINT, 8);
    for (uint32_t i = 0; i < 8; i++) {
        char name[16];

        snprintf(name, sizeof(name), "c%u", i);
        table_add_col(&t, name, DICT_CHAR, 255);
    }
    index_add_field(table_add_index(&t, "PRIMARY"), 0, 0);
    expect_refused(&t, 4096, "two records");
    assert_int_equal(dict_table_layout(&t, 8192, NULL), DB_SUCCESS);
    t.n_cols = 8;
    assert_int_equal(dict_table_layout(&t, 4096, NULL), DB_SUCCESS);
    dict_index_t *index = table_add_index(&t, "i");
    index_add_field(index, 1, 0);
    index_add_field(index, 2, 0);
    assert_int_equal(dict_table_layout(&t, 4096, NULL), DB_SUCCESS);
    index_add_field(index, 3, 251);
    expect_refused(&t, 4096, "key of 769 bytes");
    assert_int_equal(dict_table_layout(&t, 8192, NULL), DB_SUCCESS);
    index->fields[2].prefix_len = 250;
    assert_int_equal(dict_table_layout(&t, 4096, NULL), DB_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_bigint),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_random_round_trip),
        cmocka_unit_test(test_sizes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
