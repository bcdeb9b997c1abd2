/** A space with two segments, over test_mtr_fixture.h. */
#ifndef TEST_FSP_SEGMENTS_H
#define TEST_FSP_SEGMENTS_H

#include "base/mach.h"
#include "test_fsp_fixture.h"
#include "test_mtr_fixture.h"

#define SPACE 3U
#define E FX_EXTENT_PAGES
#define COVERS 128U /**< pages per descriptor page: 4096 / 256 * 8 */
#define HEADER_A 100U
#define HEADER_B 120U

typedef struct fsp_fixture {
    buf_fixture_t *buf;
    fil_space_t *space;
    page_no_t headers; /**< page with both segment headers; it belongs to A */
} fsp_fixture_t;

/** A space with two empty segments; A has the page of the headers. */
static inline fsp_fixture_t *fsp_create_on(os_t *os)
{
    fsp_fixture_t *fx = calloc(1, sizeof(*fx));
    assert_non_null(fx);
    fx->buf = fx_create_on(os, 4096, 64, true);
    base_fixture_t *base = &fx->buf->base;
    FX_OK(fx->buf, fil_space_create(base->fil, SPACE, "t3.ibd", FSP_INITIAL_PAGES, &fx->space));
    mtr_t mtr;
    buf_block_t *block = NULL;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, fsp_header_init(&mtr, SPACE, FSP_INITIAL_PAGES));
    FX_OK(fx->buf, fseg_create(&mtr, SPACE, FIL_PAGE_TYPE_SYS, HEADER_A, &block));
    FX_OK(fx->buf, fseg_create(&mtr, SPACE, FIL_PAGE_TYPE_SYS, HEADER_B, &block));
    fx->headers = block->id.page_no;
    mtr_commit(&mtr);
    return fx;
}

static inline fseg_header_t seg(fsp_fixture_t *fx, mtr_t *mtr, uint32_t header)
{
    buf_block_t *block = NULL;
    FX_OK(fx->buf, mtr_page_get(mtr, fx_id(SPACE, fx->headers), &block));
    return (fseg_header_t){block, header};
}

static inline dberr_t try_alloc(fsp_fixture_t *fx, uint32_t header, page_no_t hint,
                                page_no_t *page_no)
{
    FX_OK(fx->buf, buf_log_free_check(fx->buf->pool));
    mtr_t mtr;
    buf_block_t *block = NULL;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    dberr_t err = fseg_page_alloc(&mtr, seg(fx, &mtr, header), hint, FIL_PAGE_TYPE_SYS, &block);
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    *page_no = block->id.page_no;
    mtr_commit(&mtr);
    return DB_SUCCESS;
}

static inline page_no_t alloc(fsp_fixture_t *fx, uint32_t header, page_no_t hint)
{
    page_no_t page_no = FIL_NULL;
    FX_OK(fx->buf, try_alloc(fx, header, hint, &page_no));
    assert_true(page_no < space_field(&fx->buf->base.env, fx->buf->pool, SPACE, FSP_SIZE));
    assert_true(page_is_used(&fx->buf->base.env, fx->buf->pool, fx_id(SPACE, page_no)));
    return page_no;
}

static inline dberr_t try_free(fsp_fixture_t *fx, uint32_t header, page_no_t page_no)
{
    FX_OK(fx->buf, buf_log_free_check(fx->buf->pool));
    mtr_t mtr;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    dberr_t err = fseg_page_free(&mtr, seg(fx, &mtr, header), page_no, FSP_FREE_LOGGED);
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
    } else {
        mtr_commit(&mtr);
    }
    return err;
}

static inline uint32_t n_used(fsp_fixture_t *fx, uint32_t header)
{
    return segment_n_used(&fx->buf->base.env, fx->buf->pool, fx_id(SPACE, fx->headers), header);
}

static inline uint32_t field(fsp_fixture_t *fx, uint32_t offset)
{
    return space_field(&fx->buf->base.env, fx->buf->pool, SPACE, offset);
}

static inline uint32_t extent_state(fsp_fixture_t *fx, page_no_t page_no)
{
    byte page[4096];
    page_copy(&fx->buf->base.env, fx->buf->pool, fx_id(SPACE, page_no - page_no % COVERS), page);
    return mach_read_4(xdes_in(page, 4096, page_no) + XDES_STATE);
}

/** I11 by another way than the engine's: every used page is a descriptor page, an inode page or one
of a segment; the header counts the fragment pages; extents and lists are as many. */
static inline void assert_counts(fsp_fixture_t *fx)
{
    env_t *env = &fx->buf->base.env;
    uint32_t limit = field(fx, FSP_FREE_LIMIT);
    uint32_t n_inode_pages = field(fx, FSP_SEG_INODES_FREE) + field(fx, FSP_SEG_INODES_FULL);
    uint32_t by_state[5] = {0};
    uint32_t frag_used = 0;
    for (page_no_t first = 0; first < limit; first += E) {
        uint32_t state = extent_state(fx, first);
        assert_in_range(state, XDES_STATE_FREE, XDES_STATE_FSEG);
        by_state[state]++;
        for (page_no_t i = first; i < first + E; i++) {
            frag_used +=
                state == XDES_STATE_FREE_FRAG && page_is_used(env, fx->buf->pool, fx_id(SPACE, i));
        }
    }
    assert_int_equal(by_state[XDES_STATE_FREE], field(fx, FSP_FREE));
    assert_int_equal(by_state[XDES_STATE_FREE_FRAG], field(fx, FSP_FREE_FRAG));
    assert_int_equal(by_state[XDES_STATE_FULL_FRAG], field(fx, FSP_FULL_FRAG));
    assert_int_equal(frag_used, field(fx, FSP_FRAG_N_USED));
    assert_int_equal(space_n_used(env, fx->buf->pool, SPACE),
                     n_used(fx, HEADER_A) + n_used(fx, HEADER_B) + n_inode_pages
                         + (limit + COVERS - 1) / COVERS);
    assert_true(field(fx, FSP_SIZE) <= fx->space->size_pages);
}

#endif
