/* Properties of page/fil_page: the envelope finds every damage (I5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mach.h"
#include "page/fil_page.h"

static const page_id_t ID = {7, 42};

static void make_page(byte *page, uint32_t page_size, lsn_t lsn)
{
    fil_page_init(page, page_size, ID, FIL_PAGE_UNDO_LOG);
    for (uint32_t i = FIL_PAGE_DATA; i < page_size - FIL_PAGE_TRAILER; i++) {
        page[i] = (byte)(i * 31 + lsn);
    }
    fil_page_set_lsn(page, page_size, lsn);
    fil_page_stamp(page, page_size);
}

/* A stamped page of every size is right, and only for its own id. */
static void test_verify_ok(void **state)
{
    static byte page[PAGE_SIZE_MAX];

    (void)state;
    for (uint32_t size = PAGE_SIZE_MIN; size <= PAGE_SIZE_MAX; size *= 2) {
        make_page(page, size, 0x123456789ABCULL);
        assert_int_equal(fil_page_verify(page, size, ID), PAGE_OK);
        assert_int_equal(fil_page_verify(page, size, (page_id_t){7, 43}), PAGE_BAD_ID);
        assert_int_equal(fil_page_verify(page, size, (page_id_t){8, 42}), PAGE_BAD_ID);
        assert_true(fil_page_get_lsn(page) == 0x123456789ABCULL);
        assert_int_equal(fil_page_get_type(page), FIL_PAGE_UNDO_LOG);
        assert_int_equal(fil_page_get_prev(page), FIL_NULL);
        assert_int_equal(fil_page_get_next(page), FIL_NULL);
        memset(page, 0, size);
        assert_int_equal(fil_page_verify(page, size, ID), PAGE_ZERO);
        page[size - 1] = 1;
        assert_int_equal(fil_page_verify(page, size, ID), PAGE_BAD_CHECKSUM);
    }
}

/* No single changed byte of a page goes unnoticed. */
static void test_verify_every_byte(void **state)
{
    (void)state;
    byte page[PAGE_SIZE_MIN];
    make_page(page, sizeof(page), 5000);
    for (uint32_t i = 0; i < sizeof(page); i++) {
        page[i] ^= 0x10;
        assert_int_not_equal(fil_page_verify(page, sizeof(page), ID), PAGE_OK);
        page[i] ^= 0x10;
    }
    assert_int_equal(fil_page_verify(page, sizeof(page), ID), PAGE_OK);
}

/* A page of which any proper part of the sectors was written is found torn. */
static void test_verify_torn(void **state)
{
    uint32_t n = PAGE_SIZE_MIN / SECTOR_SIZE;

    (void)state;
    byte old[PAGE_SIZE_MIN];
    make_page(old, sizeof(old), 5000);
    byte new[PAGE_SIZE_MIN];
    make_page(new, sizeof(new), 6001);
    byte page[PAGE_SIZE_MIN];
    for (uint32_t mask = 1; mask < (1U << n) - 1; mask++) {
        for (uint32_t i = 0; i < n; i++) {
            const byte *from = (mask >> i & 1) != 0 ? new : old;

            memcpy(page + (size_t)i * SECTOR_SIZE, from + (size_t)i * SECTOR_SIZE, SECTOR_SIZE);
        }
        assert_int_equal(fil_page_verify(page, sizeof(page), ID), PAGE_BAD_CHECKSUM);
    }
}

/* With right checksums the LSN pair and the reserved bytes are still looked at. */
static void test_verify_fields(void **state)
{
    (void)state;
    byte page[PAGE_SIZE_MIN];
    make_page(page, sizeof(page), 5000);
    mach_write_4(page + sizeof(page) - 4, 4999);
    fil_page_stamp(page, sizeof(page));
    assert_int_equal(fil_page_verify(page, sizeof(page), ID), PAGE_BAD_LSN);
    make_page(page, sizeof(page), 5000);
    mach_write_8(page + FIL_PAGE_RESERVED, 1);
    fil_page_stamp(page, sizeof(page));
    assert_int_equal(fil_page_verify(page, sizeof(page), ID), PAGE_BAD_ID);
}

/* Names are as the tools print them. */
static void test_names(void **state)
{
    (void)state;
    assert_string_equal(page_verdict_name(PAGE_BAD_CHECKSUM), "bad checksum");
    assert_string_equal(page_verdict_name(PAGE_OK), "ok");
    assert_string_equal(page_type_name(FIL_PAGE_INDEX), "index");
    assert_string_equal(page_type_name(FIL_PAGE_TYPE_FSP_HDR), "fsp_hdr");
    assert_string_equal(page_type_name(12345), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verify_ok),   cmocka_unit_test(test_verify_every_byte),
        cmocka_unit_test(test_verify_torn), cmocka_unit_test(test_verify_fields),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
