/** fsp on hostile bytes: headers, descriptors, lists and inodes that lie. */
#include "test_fsp_segments.h"
#include "test_random.h"

/** Several extents of each state. */
static fsp_fixture_t *fsp_create_used(void)
{
    os_t *os = image_os_create();
    fsp_fixture_t *fx = fsp_create_on(os);
    for (uint32_t i = 0; i < 100; i++) {
        alloc(fx, i % 2 != 0 ? HEADER_A : HEADER_B, 0);
    }
    return fx;
}

static byte *frame(fsp_fixture_t *fx, page_no_t page_no)
{
    buf_block_t *block = NULL;
    FX_OK(fx->buf, buf_page_get(fx->buf->pool, fx_id(SPACE, page_no), &block));
    buf_block_unfix(fx->buf->pool, block);
    return block->frame;
}

static void fsp_free(fsp_fixture_t *fx)
{
    fx_destroy(fx->buf);
    free(fx);
}

typedef struct damage {
    uint32_t offset;
    uint32_t value;
} damage_t;

/** Impossible bytes in page 0 are refused by every entry, before anything is changed. */
static void test_hostile_header(void **state)
{
    (void)state;
    static const damage_t damages[] = {
        {FSP_SPACE_ID, 9},           {FSP_SIZE, 0},          {FSP_SIZE, UINT32_MAX},
        {FSP_FREE_LIMIT, 0},         {FSP_FREE_LIMIT, 4},    {FSP_FREE_LIMIT, 1U << 20},
        {FSP_PAGE_SIZE, 8192},       {FSP_EXTENT_PAGES, 16}, {FSP_VERSION, 1},
        {FSP_FRAG_N_USED, 1U << 30},
    };
    fsp_fixture_t *fx = fsp_create_used();
    for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
        byte saved[4];
        byte *page0 = frame(fx, 0);
        memcpy(saved, page0 + damages[i].offset, 4);
        mach_write_4(page0 + damages[i].offset, damages[i].value);
        page_no_t page_no = 0;
        assert_int_equal(try_alloc(fx, HEADER_A, 0, &page_no), DB_CORRUPTION);
        assert_int_equal(try_free(fx, HEADER_A, 20), DB_CORRUPTION);
        mtr_t mtr;
        mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
        assert_int_equal(fsp_reserve(&mtr, SPACE, 1), DB_CORRUPTION);
        assert_int_equal(fseg_page_check(&mtr, seg(fx, &mtr, HEADER_A), 20), DB_CORRUPTION);
        bool done = false;
        assert_int_equal(fseg_free_step(&mtr, seg(fx, &mtr, HEADER_B), false, &done),
                         DB_CORRUPTION);
        mtr_abort(&mtr);
        memcpy(page0 + damages[i].offset, saved, 4);
    }
    assert_false(fx->buf->base.env.io_failed);
    assert_counts(fx);
    fsp_free(fx);
}

/** Lists whose ends or links lie, descriptors and inodes that contradict themselves. */
static void test_hostile_lists(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        fsp_fixture_t *fx = fsp_create_used();
        byte *page0 = frame(fx, 0);
        byte *header = frame(fx, fx->headers) + HEADER_B;
        byte *inode = frame(fx, mach_read_4(header + FSEG_HEADER_PAGE))
                      + mach_read_2(header + FSEG_HEADER_OFFSET);
        page_no_t in_full = mach_read_4(inode + FSEG_FULL + FLST_FIRST);
        byte *full = frame(fx, in_full) + mach_read_2(inode + FSEG_FULL + FLST_FIRST + 4);
        byte *xdes = full - XDES_NODE;
        switch (i) {
        case 0: /* a length and no nodes */
            mach_write_4(inode + FSEG_FULL + FLST_FIRST, FIL_NULL);
            break;
        case 1: /* between two descriptors */
            mach_write_2(inode + FSEG_FULL + FLST_FIRST + 4, 161);
            break;
        case 2: /* a page that is no descriptor page */
            mach_write_4(inode + FSEG_FULL + FLST_FIRST, 3);
            break;
        case 3: /* a circle */
            mach_write_4(full + FLST_NEXT, in_full);
            mach_write_2(full + FLST_NEXT + 4, mach_read_2(inode + FSEG_FULL + FLST_FIRST + 4));
            break;
        case 4: /* the neighbour does not link back */
            mach_write_4(full + FLST_NEXT, 0);
            mach_write_2(full + FLST_NEXT + 4, FSP_XDES + XDES_NODE);
            break;
        case 5:
            mach_write_4(xdes + XDES_STATE, XDES_STATE_FREE);
            break;
        case 6:
            mach_write_8(xdes + XDES_ID, 99);
            break;
        case 7:
            mach_write_4(inode + FSEG_MAGIC, 0);
            break;
        case 8:
            mach_write_2(header + FSEG_HEADER_OFFSET, 51);
            break;
        default:
            mach_write_4(page0 + FSP_FREE + FLST_LEN, mach_read_4(page0 + FSP_FREE + FLST_LEN) + 1);
            break;
        }
        dberr_t err = DB_SUCCESS;
        for (bool done = false; err == DB_SUCCESS && !done;) {
            mtr_t mtr;
            mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
            err = fseg_free_step(&mtr, seg(fx, &mtr, HEADER_B), false, &done);
            if (err == DB_SUCCESS) {
                mtr_commit(&mtr);
            } else {
                mtr_abort(&mtr);
            }
        }
        if (err != DB_CORRUPTION) {
            fail_msg("case %" PRIu32 ": %s", i, err_name(err));
        }
        fsp_free(fx);
    }
}

/** Random bytes in descriptors, lists, inodes and headers: errors, never a crash or a hang. */
static void test_fuzz(void **state)
{
    (void)state;
    uint64_t seed = 7;
    uint32_t refused = 0;
    for (uint32_t round = 0; round < 300; round++) {
        fsp_fixture_t *fx = fsp_create_used();
        byte *header = frame(fx, fx->headers) + HEADER_A;
        byte *inodes = frame(fx, mach_read_4(header + FSEG_HEADER_PAGE));
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t at = (uint32_t)(random_star(&seed) % 400);
            byte *where[] = {frame(fx, 0) + FSP_SIZE + at, inodes + FSEG_PAGE_NODE + at % 180,
                             header + at % 30};
            mach_write_1(where[random_star(&seed) % 3], (uint32_t)(random_star(&seed) % 256));
        }
        for (uint32_t i = 0; i < 40 && !fx->buf->base.env.io_failed; i++) {
            page_no_t page_no = (page_no_t)(random_star(&seed) % 120);
            page_no += page_no == fx->headers;
            uint32_t which = random_star(&seed) % 2 != 0 ? HEADER_A : HEADER_B;
            dberr_t err = random_star(&seed) % 2 != 0 ? try_alloc(fx, which, page_no, &page_no)
                                                      : try_free(fx, which, page_no);
            refused += err != DB_SUCCESS;
            assert_true(err == DB_SUCCESS || err == DB_CORRUPTION || err == DB_OUT_OF_SPACE);
        }
        bool done = false;
        for (uint32_t i = 0; i < 100 && !done && !fx->buf->base.env.io_failed; i++) {
            mtr_t mtr;
            mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
            if (fseg_free_step(&mtr, seg(fx, &mtr, HEADER_B), false, &done) == DB_SUCCESS) {
                mtr_commit(&mtr);
            } else {
                mtr_abort(&mtr);
                done = true;
            }
        }
        fsp_free(fx);
    }
    assert_true(refused > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_header),
        cmocka_unit_test(test_hostile_lists),
        cmocka_unit_test(test_fuzz),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
