/* Properties of page/page_index: order and shape after any changes (I6), determinism (I27), refusal
of what does not fit, and no harm from hostile pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "page/page_index.h"
#include "test_random.h"

#define KEY_LEN 6U
#define REC_SIZE 20U

static const page_id_t ID = {3, 9};

static void make_page(byte *page, uint32_t page_size, uint32_t level, uint32_t rec_size)
{
    page_shape_t shape = {.level = level, .index_id = 77, .rec_size = rec_size, .key_len = KEY_LEN};

    fil_page_init(page, page_size, ID, FIL_PAGE_TYPE_ALLOCATED);
    assert_int_equal(page_index_create(page, page_size, &shape), DB_SUCCESS);
}

static void make_rec(byte *rec, uint32_t key, byte fill)
{
    memset(rec, fill, REC_SIZE);
    rec[0] = 0;
    mach_write_2(rec + 1, 0);
    mach_write_4(rec + 3, key);
}

/** Inserts a whole record as the engine does: by its difference to the one before. */
static dberr_t insert_rec(byte *page, uint32_t page_size, uint32_t slot, const byte *rec,
                          uint32_t len)
{
    rec_delta_t delta = len >= 2 ? page_rec_delta(page, page_size, slot, rec, len)
                                 : (rec_delta_t){rec[0], 0, rec, len};

    return page_rec_insert(page, page_size, slot, &delta);
}

static void insert_key(byte *page, uint32_t page_size, uint32_t key)
{
    byte rec[REC_SIZE];
    make_rec(rec, key, (byte)key);
    bool exact;
    uint32_t slot = page_search(page, page_size, rec + 1, KEY_LEN, &exact);
    assert_false(exact);
    assert_int_equal(insert_rec(page, page_size, slot, rec, REC_SIZE), DB_SUCCESS);
}

static void assert_valid(const byte *page, uint32_t page_size)
{
    const char *why = "nothing";

    if (page_index_validate(page, page_size, &why) != DB_SUCCESS) {
        fail_msg("page is invalid: %s", why);
    }
}

static uint32_t key_at(const byte *page, uint32_t page_size, uint32_t slot)
{
    return mach_read_4(rec_payload(page_rec(page, page_size, slot)) + 2);
}

/* A page of any size takes exactly page_capacity() records, and refuses one more unchanged. */
static void test_capacity(void **state)
{
    static byte page[PAGE_SIZE_MAX];
    static byte copy[PAGE_SIZE_MAX];

    (void)state;
    for (uint32_t size = PAGE_SIZE_MIN; size <= PAGE_SIZE_MAX; size *= 2) {
        uint32_t n = page_capacity(size, REC_SIZE);
        make_page(page, size, 0, REC_SIZE);
        byte rec[REC_SIZE];
        for (uint32_t i = 0; i < n; i++) {
            assert_true(page_has_room(page, size, page_rec_size(page)));
            make_rec(rec, i, 1);
            assert_int_equal(insert_rec(page, size, i, rec, REC_SIZE), DB_SUCCESS);
        }
        assert_valid(page, size);
        assert_false(page_has_room(page, size, page_rec_size(page)));
        memcpy(copy, page, size);
        assert_int_equal(insert_rec(page, size, 0, rec, REC_SIZE), DB_CORRUPTION);
        assert_memory_equal(page, copy, size);
        assert_int_equal(page_rec_delete(page, size, n / 2), DB_SUCCESS);
        assert_true(page_has_room(page, size, page_rec_size(page)));
        assert_int_equal(insert_rec(page, size, n / 2, rec, REC_SIZE), DB_SUCCESS);
        assert_valid(page, size);
    }
}

/* Whatever is inserted and deleted, the page holds the model's keys in order and stays valid;
envelope fields other than the type are never touched. */
static void test_random_against_model(void **state)
{
    bool model[256] = {false};
    (void)state;
    byte page[PAGE_SIZE_MIN];
    make_page(page, sizeof(page), 0, REC_SIZE);
    uint64_t seed = 20240611;
    for (uint32_t step = 0; step < 4000; step++) {
        uint32_t key = (uint32_t)(random_next(&seed) % 256);
        byte wanted[KEY_LEN] = {0};
        mach_write_4(wanted + 2, key);
        uint32_t rank = 0;
        for (uint32_t i = 0; i < key; i++) {
            rank += model[i] ? 1 : 0;
        }
        bool exact;
        uint32_t slot = page_search(page, sizeof(page), wanted, KEY_LEN, &exact);
        assert_int_equal(slot, rank);
        assert_int_equal(exact, model[key]);
        if (exact) {
            assert_int_equal(page_rec_delete(page, sizeof(page), slot), DB_SUCCESS);
            model[key] = false;
        } else if (page_has_room(page, sizeof(page), page_rec_size(page))) {
            insert_key(page, sizeof(page), key);
            model[key] = true;
        }
        assert_valid(page, sizeof(page));
    }
    for (uint32_t i = 0, slot = 0; i < 256; i++) {
        if (model[i]) {
            assert_int_equal(key_at(page, sizeof(page), slot++), i);
        }
        assert_true(i < 255 || slot == page_n_recs(page));
    }
    assert_true(page_id_eq(fil_page_get_id(page), ID));
    assert_int_equal(fil_page_get_prev(page), FIL_NULL);
    assert_true(fil_page_get_lsn(page) == 0);
}

/* (I27) List deletes leave the page that inserting the survivors in order into a new page gives. */
static void test_list_delete_is_canonical(void **state)
{
    (void)state;
    byte page[PAGE_SIZE_MIN];
    byte fresh[PAGE_SIZE_MIN];
    for (uint32_t cut = 0; cut <= 49; cut += 7) {
        for (int end = 0; end < 2; end++) {
            make_page(page, sizeof(page), 0, REC_SIZE);
            make_page(fresh, sizeof(fresh), 0, REC_SIZE);
            for (uint32_t i = 0; i < 50; i++) {
                insert_key(page, sizeof(page), i * 37 % 50);
            }
            assert_int_equal(page_rec_delete(page, sizeof(page), 49), DB_SUCCESS);
            assert_int_equal(end ? page_list_end_delete(page, sizeof(page), cut)
                                 : page_list_start_delete(page, sizeof(page), cut),
                             DB_SUCCESS);
            for (uint32_t i = end ? 0 : cut; i < (end ? cut : 49); i++) {
                insert_key(fresh, sizeof(fresh), i);
            }
            assert_memory_equal(page, fresh, sizeof(page));
            assert_valid(page, sizeof(page));
        }
    }
}

/* A prefix finds the first key that starts with it; the minimum record is below every key. */
static void test_search_prefix_and_min_rec(void **state)
{
    byte rec[1 + KEY_LEN + 4] = {REC_INFO_MIN_REC, 0xFF, 0xFF};
    (void)state;
    byte page[PAGE_SIZE_MIN];
    make_page(page, sizeof(page), 1, sizeof(rec));
    assert_int_equal(insert_rec(page, sizeof(page), 0, rec, sizeof(rec)), DB_SUCCESS);
    byte zeros[KEY_LEN] = {0};
    bool exact = true;
    assert_int_equal(page_search(page, sizeof(page), zeros, KEY_LEN, &exact), 1);
    assert_false(exact);
    rec[0] = 0;
    for (uint32_t i = 0; i < 9; i++) {
        mach_write_2(rec + 1, i / 3);
        mach_write_4(rec + 3, i % 3);
        assert_int_equal(insert_rec(page, sizeof(page), i + 1, rec, sizeof(rec)), DB_SUCCESS);
    }
    assert_valid(page, sizeof(page));
    for (uint32_t i = 0; i < 3; i++) {
        byte prefix[2];

        mach_write_2(prefix, i);
        assert_int_equal(page_search(page, sizeof(page), prefix, 2, &exact), 1 + 3 * i);
        assert_true(exact);
    }
    assert_int_equal(page_search(page, sizeof(page), (const byte *)"\x7F\xFF", 2, &exact), 10);
    assert_false(exact);
}

/* Impossible shapes, slots, lengths and info bytes are refused, and nothing changes. */
static void test_refusals(void **state)
{
    static const page_shape_t BAD[] = {
        {.level = 16, .rec_size = 11, .key_len = 6},   {.level = 0, .rec_size = 2, .key_len = 1},
        {.level = 0, .rec_size = 20, .key_len = 20},   {.level = 0, .rec_size = 20, .key_len = 0},
        {.level = 1, .rec_size = 20, .key_len = 6},    {.level = 0, .rec_size = 2011, .key_len = 6},
        {.level = 0, .rec_size = 65535, .key_len = 6},
    };
    byte page[PAGE_SIZE_MIN];
    uint32_t size = sizeof(page);

    (void)state;
    fil_page_init(page, size, ID, FIL_PAGE_TYPE_ALLOCATED);
    byte copy[PAGE_SIZE_MIN];
    memcpy(copy, page, size);
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        assert_int_equal(page_index_create(page, size, &BAD[i]), DB_CORRUPTION);
    }
    byte rec[REC_SIZE];
    make_rec(rec, 1, 1);
    assert_int_equal(insert_rec(page, size, 0, rec, REC_SIZE), DB_CORRUPTION);
    assert_memory_equal(page, copy, size);

    make_page(page, size, 0, REC_SIZE);
    insert_key(page, size, 5);
    memcpy(copy, page, size);
    assert_int_equal(insert_rec(page, size, 2, rec, REC_SIZE), DB_CORRUPTION);
    assert_int_equal(insert_rec(page, size, 0, rec, REC_SIZE - 1), DB_CORRUPTION);
    rec[0] = REC_INFO_FREED;
    assert_int_equal(insert_rec(page, size, 0, rec, REC_SIZE), DB_CORRUPTION);
    assert_int_equal(page_rec_delete(page, size, 1), DB_CORRUPTION);
    assert_int_equal(page_rec_update(page, size, 1, 0, rec, 1), DB_CORRUPTION);
    assert_int_equal(page_rec_update(page, size, 0, 0, rec, 1), DB_CORRUPTION);
    assert_int_equal(page_rec_update(page, size, 0, 10, rec, 11), DB_CORRUPTION);
    assert_int_equal(page_rec_update(page, size, 0, UINT32_MAX, rec, 2), DB_CORRUPTION);
    assert_int_equal(page_list_end_delete(page, size, 2), DB_CORRUPTION);
    assert_int_equal(page_list_start_delete(page, size, 2), DB_CORRUPTION);
    assert_memory_equal(page, copy, size);
    assert_int_equal(page_rec_update(page, size, 0, 10, rec + 1, 10), DB_SUCCESS);
    assert_valid(page, size);
}

static void damage_and_restore(byte *page, uint32_t offset, uint32_t value, const char *expected)
{
    uint32_t old = mach_read_2(page + offset);
    mach_write_2(page + offset, value);
    const char *why = "nothing";
    assert_int_equal(page_index_validate(page, PAGE_SIZE_MIN, &why), DB_CORRUPTION);
    assert_string_equal(why, expected);
    mach_write_2(page + offset, old);
    assert_valid(page, PAGE_SIZE_MIN);
}

/* (I6) One item damaged by hand is reported under its name. */
static void test_validate_names_the_item(void **state)
{
    uint32_t slot_0 = PAGE_SIZE_MIN - FIL_PAGE_TRAILER - 2;
    (void)state;
    byte page[PAGE_SIZE_MIN];
    make_page(page, sizeof(page), 0, REC_SIZE);
    for (uint32_t i = 0; i < 10; i++) {
        insert_key(page, sizeof(page), i);
    }
    assert_int_equal(page_rec_delete(page, sizeof(page), 3), DB_SUCCESS);
    assert_int_equal(page_rec_delete(page, sizeof(page), 5), DB_SUCCESS);
    assert_valid(page, sizeof(page));
    uint32_t freed = mach_read_2(page + PAGE_FREE);
    damage_and_restore(page, FIL_PAGE_TYPE, FIL_PAGE_UNDO_LOG, "page type");
    damage_and_restore(page, PAGE_N_RECS, 9, "record count");
    damage_and_restore(page, PAGE_HEAP_TOP, PAGE_DATA + 11 * REC_SIZE, "heap top");
    damage_and_restore(page, PAGE_N_HEAP, 11, "heap top");
    damage_and_restore(page, PAGE_FREE, 0, "free list head");
    damage_and_restore(page, PAGE_FREE, PAGE_DATA, "free list");
    damage_and_restore(page, PAGE_FREE, freed + 1, "free list");
    damage_and_restore(page, PAGE_LEVEL - 1, 16, "level, record size or key length");
    damage_and_restore(page, PAGE_REC_SIZE, 2, "level, record size or key length");
    damage_and_restore(page, PAGE_REC_SIZE, PAGE_REC_VARIES, "free list head");
    damage_and_restore(page, PAGE_KEY_LEN, REC_SIZE, "level, record size or key length");
    damage_and_restore(page, PAGE_GARBAGE, 1, "reserved bytes");
    damage_and_restore(page, slot_0, 0, "directory slot");
    damage_and_restore(page, slot_0, freed, "directory slot");
    damage_and_restore(page, slot_0, 65535, "directory slot");
    damage_and_restore(page, slot_0, mach_read_2(page + slot_0 - 2), "two slots of one record");
    damage_and_restore(page, mach_read_2(page + slot_0 - 2), REC_INFO_MIN_REC << 8,
                       "minimum record flag");
    damage_and_restore(page, freed + 1, 0, "free list");
    damage_and_restore(page, freed + 4, 1, "bytes of a freed record");
    damage_and_restore(page, 2000, 1, "bytes between heap and directory");
}

static void attack(byte *page, uint32_t size, uint64_t *seed)
{
    byte rec[64] = {0};
    uint32_t n = page_n_recs(page);
    uint32_t slot = (uint32_t)(random_next(seed) % (n + 2));
    uint32_t len = random_next(seed) % 2 == 0 && page_rec_size(page) <= sizeof(rec)
                       ? page_rec_size(page)
                       : (uint32_t)(random_next(seed) % sizeof(rec));
    mach_write_8(rec + 1, random_next(seed));
    dberr_t err = DB_SUCCESS;
    bool exact;
    switch (random_next(seed) % 7) {
    case 0:
        err = insert_rec(page, size, slot, rec, len);
        break;
    case 1:
        err = page_rec_delete(page, size, slot);
        break;
    case 2:
        err = page_rec_update(page, size, slot, (uint32_t)(random_next(seed) % 64), rec, len);
        break;
    case 3:
        err = page_list_end_delete(page, size, slot);
        break;
    case 4:
        err = page_list_start_delete(page, size, slot);
        break;
    case 5:
        assert_true(page_search(page, size, rec, len, &exact) <= n);
        break;
    default:
        (void)page_has_room(page, size, page_rec_size(page));
        err = page_index_validate(page, size, NULL);
        break;
    }
    assert_true(err == DB_SUCCESS || err == DB_CORRUPTION);
}

/* Hostile pages, from single changed fields to noise: every function ends, inside of the page (the
sanitizer watches the heap block), with success or DB_CORRUPTION. */
static void test_fuzz(void **state)
{
    static const uint32_t SIZES[] = {PAGE_SIZE_MIN, PAGE_SIZE_MAX};
    (void)state;
    uint64_t seed = 987654321;
    for (uint32_t round = 0; round < 3000; round++) {
        uint32_t size = SIZES[round % 16 == 0];
        byte *page = malloc(size);
        uint32_t hits = (uint32_t)(random_next(&seed) % 12);

        assert_non_null(page);
        make_page(page, size, 0, REC_SIZE);
        for (uint32_t i = 0; i < 40; i++) {
            insert_key(page, size, i);
        }
        for (uint32_t i = 0; i < 5; i++) {
            assert_int_equal(page_rec_delete(page, size, i * 3), DB_SUCCESS);
        }
        for (uint32_t i = 0; i < hits; i++) {
            uint32_t header = 24 + (uint32_t)(random_next(&seed) % 40);
            uint32_t slots = size - 8 - 2 * (uint32_t)(random_next(&seed) % 40) - 1;
            uint32_t heap = PAGE_DATA + (uint32_t)(random_next(&seed) % 1000);
            uint32_t where[] = {header, slots, heap};

            page[where[random_next(&seed) % 3]] = (byte)random_next(&seed);
        }
        mach_write_2(page + FIL_PAGE_TYPE, FIL_PAGE_INDEX);
        for (uint32_t i = 0; i < 10; i++) {
            attack(page, size, &seed);
        }
        free(page);
    }
}

/* A record is logged by its difference to the one before it. What that one does not have, or a
length that is not the page's, is refused with the page unchanged. */
static void test_delta(void **state)
{
    (void)state;
    byte page[PAGE_SIZE_MIN];
    make_page(page, sizeof(page), 0, REC_SIZE);
    insert_key(page, sizeof(page), 5);
    byte rec[REC_SIZE];
    make_rec(rec, 6, 5);
    assert_int_equal(page_rec_delta(page, sizeof(page), 0, rec, REC_SIZE).shared, 0);
    rec_delta_t delta = page_rec_delta(page, sizeof(page), 1, rec, REC_SIZE);
    assert_int_equal(delta.shared, 5); /* all but the last byte of the key */
    assert_true(delta.rest == rec + 6 && delta.rest_len == REC_SIZE - 6);
    assert_int_equal(page_rec_insert(page, sizeof(page), 1, &delta), DB_SUCCESS);
    assert_memory_equal(page_rec(page, sizeof(page), 1), rec, REC_SIZE);
    delta = page_rec_delta(page, sizeof(page), 2, rec, REC_SIZE);
    assert_int_equal(delta.rest_len, 1); /* of equal records the last byte is left */

    byte copy[PAGE_SIZE_MIN];
    memcpy(copy, page, sizeof(page));
    assert_int_equal(page_rec_insert(page, sizeof(page), 0, &delta), DB_CORRUPTION);
    delta.shared--;
    assert_int_equal(page_rec_insert(page, sizeof(page), 2, &delta), DB_CORRUPTION);
    delta.shared += 2;
    assert_int_equal(page_rec_insert(page, sizeof(page), 2, &delta), DB_CORRUPTION);
    assert_memory_equal(page, copy, sizeof(page));
    mach_write_2(page + sizeof(page) - 8 - 2 * 2, 3); /* the slot of the record before is broken */
    memcpy(copy, page, sizeof(page));
    delta.shared--;
    assert_int_equal(page_rec_insert(page, sizeof(page), 2, &delta), DB_CORRUPTION);
    assert_memory_equal(page, copy, sizeof(page));
    assert_int_equal(page_rec_delta(page, sizeof(page), 2, rec, REC_SIZE).shared, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_random_against_model),
        cmocka_unit_test(test_list_delete_is_canonical),
        cmocka_unit_test(test_search_prefix_and_min_rec),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_delta),
        cmocka_unit_test(test_validate_names_the_item),
        cmocka_unit_test(test_fuzz),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
