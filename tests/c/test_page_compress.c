/** Compressed page images: they give the page back, and nothing that a file may hold goes further
than a verdict. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/mach.h"
#include "page/page_compress.h"
#include "test_random.h"

#define SIZE 16384U

static const page_algorithm_t ALGORITHMS[] = {PAGE_ALGORITHM_LZ4, PAGE_ALGORITHM_ZSTD};
static const page_id_t ID = {7, 3};

/** A stamped page, half of it random. */
static void make_page(byte *page, uint32_t size)
{
    fil_page_init(page, size, ID, FIL_PAGE_INDEX);
    uint64_t seed = 11;
    for (uint32_t i = 100; i < size / 2; i++) {
        page[i] = (byte)random_next(&seed);
    }
    fil_page_set_lsn(page, size, 123456);
    fil_page_stamp(page, size);
}

static void make_compressed(byte *page, page_algorithm_t algorithm)
{
    make_page(page, SIZE);
    page_compress(page, SIZE, algorithm);
    assert_int_equal(fil_page_get_type(page), FIL_PAGE_PAGE_COMPRESSED);
}

/** As who writes it would. */
static void stamp(byte *page)
{
    uint32_t length = mach_read_2(page + PAGE_COMP_LENGTH);
    mach_write_4(page, crc32c(page + 4, PAGE_COMP_DATA + length - 4));
}

static void test_round_trip(void **state)
{
    static byte page[PAGE_SIZE_MAX];
    static byte plain[PAGE_SIZE_MAX];
    (void)state;
    for (uint32_t size = PAGE_SIZE_MIN; size <= PAGE_SIZE_MAX; size *= 2) {
        for (int i = 0; i < 2; i++) {
            make_page(plain, size);
            memcpy(page, plain, size);
            page_compress(page, size, ALGORITHMS[i]);
            uint32_t stored = page_stored_bytes(page, size);
            assert_true(stored >= size / 2 && stored < size && stored % PAGE_COMP_BLOCK == 0);
            assert_int_equal(page_verify_stored(page, size, ID), PAGE_OK);
            assert_int_equal(fil_page_verify(page, size, ID), PAGE_BAD_CHECKSUM);
            memset(page + stored, 0xa5, size - stored); /* what lies behind it does not matter */
            page_decompress(page, size);
            assert_memory_equal(page, plain, size);
            assert_int_equal(page_stored_bytes(page, size), size);
        }
    }
}

/** What saves no block stays as it is. */
static void test_incompressible(void **state)
{
    static byte page[SIZE];
    static byte plain[SIZE];
    (void)state;
    make_page(plain, SIZE);
    uint64_t seed = 5;
    for (uint32_t i = 100; i < SIZE - 100; i++) {
        plain[i] = (byte)random_next(&seed);
    }
    fil_page_stamp(plain, SIZE);
    for (int i = 0; i < 2; i++) {
        memcpy(page, plain, SIZE);
        page_compress(page, SIZE, ALGORITHMS[i]);
        assert_memory_equal(page, plain, SIZE);
    }
}

/** A torn or damaged one has a bad checksum, wherever it was hit. */
static void test_damaged(void **state)
{
    static byte page[SIZE];
    static byte before[SIZE];
    (void)state;
    for (int i = 0; i < 2; i++) {
        make_compressed(page, ALGORITHMS[i]);
        uint32_t used = PAGE_COMP_DATA + mach_read_2(page + PAGE_COMP_LENGTH);
        for (uint32_t at = 0; at < used; at += at < 64 ? 1 : 97) {
            page[at] ^= 0x10;
            memcpy(before, page, SIZE);
            page_decompress(page, SIZE);
            assert_memory_equal(page, before, SIZE);
            assert_true(page_verify_stored(page, SIZE, ID) != PAGE_OK);
            page[at] ^= 0x10;
        }
        assert_int_equal(page_verify_stored(page, SIZE, ID), PAGE_OK);
        assert_int_equal(page_verify_stored(page, SIZE, (page_id_t){7, 4}), PAGE_BAD_ID);
    }
}

/** The checksum is right, and what it vouches for is not: another verdict. */
static void test_forged(void **state)
{
    static byte page[SIZE];
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < 2; i++) {
        make_compressed(page, ALGORITHMS[i]);
        mach_write_8(page + PAGE_COMP_ALGORITHM, 99);
        stamp(page);
        assert_int_equal(page_verify_stored(page, SIZE, ID), PAGE_BAD_COMPRESSION);
        make_compressed(page, ALGORITHMS[i]);
        mach_write_8(page + FIL_PAGE_LSN, 1); /* not the LSN of the page inside */
        stamp(page);
        assert_int_equal(page_verify_stored(page, SIZE, ID), PAGE_BAD_COMPRESSION);
        for (uint32_t length = 1; length < 3000; length += 7) {
            make_compressed(page, ALGORITHMS[1 - i]);
            mach_write_8(page + PAGE_COMP_ALGORITHM, (uint64_t)ALGORITHMS[i]);
            mach_write_2(page + PAGE_COMP_LENGTH, length);
            page[PAGE_COMP_DATA + random_next(&seed) % length] ^= 0x55;
            stamp(page);
            assert_int_equal(page_verify_stored(page, SIZE, ID), PAGE_BAD_COMPRESSION);
        }
        make_compressed(page, ALGORITHMS[i]);
        mach_write_2(page + PAGE_COMP_LENGTH, SIZE - PAGE_COMP_DATA + 1);
        assert_int_equal(page_verify_stored(page, SIZE, ID), PAGE_BAD_CHECKSUM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_incompressible),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_forged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
