/** fsp: pages for segments, growth, freeing, whole segments in steps, descriptor pages. */
#include <unistd.h>

#include "test_fsp_segments.h"

static int setup(void **state)
{
    os_t *os = image_os_create();
    *state = fsp_create_on(os);
    return 0;
}

static int teardown(void **state)
{
    fsp_fixture_t *fx = *state;
    fx_destroy(fx->buf);
    free(fx);
    return 0;
}

/** A small segment gets single pages of shared extents, then whole extents, whose pages come in
order; the hinted page is taken if it is free in an own extent. */
static void test_fragments_then_extents(void **state)
{
    fsp_fixture_t *fx = *state;
    assert_int_equal(n_used(fx, HEADER_A), 1);
    assert_int_equal(n_used(fx, HEADER_B), 0);
    for (uint32_t i = 0; i < E / 2; i++) {
        page_no_t page_no = alloc(fx, HEADER_B, 0);
        assert_int_equal(extent_state(fx, page_no),
                         page_no == E - 1 ? XDES_STATE_FULL_FRAG : XDES_STATE_FREE_FRAG);
    }
    assert_counts(fx);
    page_no_t first = alloc(fx, HEADER_B, 0);
    assert_int_equal(first % E, 0);
    assert_int_equal(extent_state(fx, first), XDES_STATE_FSEG);
    for (page_no_t i = 1; i < E; i++) {
        assert_int_equal(alloc(fx, HEADER_B, first + i), first + i);
    }
    assert_int_equal(n_used(fx, HEADER_B), E / 2 + E);
    FX_OK(fx->buf, try_free(fx, HEADER_B, first + 3));
    assert_int_equal(alloc(fx, HEADER_B, first + 3), first + 3);
    assert_counts(fx);
}

/** Growth: by pages up to one extent, by one extent up to 128 pages, by four from there on. The
file is extended and fsynced before anything is logged. */
static void test_growth(void **state)
{
    fsp_fixture_t *fx = *state;
    uint32_t sizes[64];
    uint32_t n = 0;
    sizes[n++] = field(fx, FSP_SIZE);
    uint32_t from = fx->buf->base.rec.n;
    page_no_t hint = 0;
    for (uint32_t i = 0; i < 300; i++) {
        hint = alloc(fx, i % 3 != 0 ? HEADER_A : HEADER_B, hint + 1);
        uint32_t size = field(fx, FSP_SIZE);
        if (size != sizes[n - 1]) {
            assert_true(n < 64);
            sizes[n++] = size;
        }
    }
    for (uint32_t i = 1; i < n; i++) {
        uint32_t grown = sizes[i] - sizes[i - 1];
        if (sizes[i] <= E) {
            assert_int_equal(grown, 1);
        } else {
            assert_int_equal(grown, sizes[i - 1] < COVERS ? E : 4 * E);
        }
    }
    assert_true(sizes[n - 1] > 2 * COVERS);
    rec_assert_order(&fx->buf->base.rec, from, "# extend space=3 pages=5", "truncate t3.ibd 20480",
                     "sync t3.ibd", "# page_init space=3 page=4", NULL);
    assert_counts(fx);
    FX_OK(fx->buf, buf_flush_and_evict_all(fx->buf->pool));
    assert_counts(fx);
}

/** Each descriptor page is created when the free limit passes it, its extent shared from birth. */
static void test_descriptor_pages(void **state)
{
    fsp_fixture_t *fx = *state;
    page_no_t hint = 0;
    for (uint32_t i = 0; i < 280; i++) {
        hint = alloc(fx, HEADER_A, hint + 1);
        assert_int_not_equal(hint % COVERS, 0);
    }
    for (page_no_t page_no = COVERS; page_no <= 2 * COVERS; page_no += COVERS) {
        byte page[4096];
        page_copy(&fx->buf->base.env, fx->buf->pool, fx_id(SPACE, page_no), page);
        assert_int_equal(fil_page_get_type(page), FIL_PAGE_TYPE_XDES);
        assert_true(page_is_used(&fx->buf->base.env, fx->buf->pool, fx_id(SPACE, page_no)));
        assert_in_range(extent_state(fx, page_no), XDES_STATE_FREE_FRAG, XDES_STATE_FULL_FRAG);
        char text[80];
        snprintf(text, sizeof(text), "# page_init space=3 page=%" PRIu32 " ", page_no);
        assert_int_equal(rec_count(&fx->buf->base.rec, 0, text), 1);
    }
    assert_counts(fx);
}

/** What fseg_free_step() logs: descriptors, lists and inode for an extent; FREE for a single
page. */
static void test_drop_logs_no_page_of_an_extent(void **state)
{
    fsp_fixture_t *fx = *state;
    page_no_t hint = 0;
    for (uint32_t i = 0; i < E / 2 + 2 * E; i++) {
        hint = alloc(fx, HEADER_B, hint + 1);
    }
    page_no_t in_extent = hint;
    buf_block_t *block = buf_page_peek(fx->buf->pool, fx_id(SPACE, in_extent));
    assert_non_null(block);
    lsn_t oldest = block->oldest_modification;
    assert_true(oldest != 0);
    lsn_t lsn = log_lsn(fx->buf->base.log);
    uint32_t steps = 0;
    for (bool done = false; !done; steps++) {
        mtr_t mtr;
        mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
        FX_OK(fx->buf, fseg_free_step(&mtr, seg(fx, &mtr, HEADER_B), false, &done));
        mtr_commit(&mtr);
        assert_true(steps < 100);
    }
    assert_int_equal(steps, 2 + E / 2 + 1);
    char text[20000];
    fx_log_text(fx->buf, lsn, text, sizeof(text));
    uint32_t n_free = 0;
    for (const char *at = text; (at = strstr(at, "MLOG_INIT_FREE_PAGE")) != NULL; at++) {
        n_free++;
    }
    assert_int_equal(n_free, E / 2);
    char record[40];
    snprintf(record, sizeof(record), " 3 %" PRIu32 ";", in_extent);
    assert_null(strstr(text, record));
    /* The frame is as it was: dirty, not marked as freed, and given out again it is taken over. */
    assert_false(block->freed);
    assert_int_equal(block->oldest_modification, oldest);
    assert_int_equal(n_used(fx, HEADER_B), 0);
    assert_counts(fx);
    /* The header is zero: one more step has nothing to do. */
    mtr_t mtr;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    bool done = false;
    FX_OK(fx->buf, fseg_free_step(&mtr, seg(fx, &mtr, HEADER_B), false, &done));
    mtr_commit(&mtr);
    assert_true(done);
    page_no_t again = 0;
    for (uint32_t i = 0; i < 4 * E && again != in_extent; i++) {
        again = alloc(fx, HEADER_A, in_extent);
    }
    assert_int_equal(again, in_extent);
    assert_ptr_equal(buf_page_peek(fx->buf->pool, fx_id(SPACE, in_extent)), block);
    assert_counts(fx);
}

/** The last page of an extent takes it back to FREE; a page freed in an mtr is not given out by it
(I15), and the page of the inode goes with its last one. */
static void test_single_frees(void **state)
{
    fsp_fixture_t *fx = *state;
    page_no_t pages[E / 2 + E];
    page_no_t hint = 0;
    for (uint32_t i = 0; i < E / 2 + E; i++) {
        hint = alloc(fx, HEADER_B, hint + 1);
        pages[i] = hint;
    }
    page_no_t extent = pages[E / 2] / E * E;
    for (uint32_t i = E / 2; i < E / 2 + E; i++) {
        assert_int_equal(extent_state(fx, extent), XDES_STATE_FSEG);
        FX_OK(fx->buf, try_free(fx, HEADER_B, pages[i]));
        assert_counts(fx);
    }
    assert_int_equal(extent_state(fx, extent), XDES_STATE_FREE);
    mtr_t mtr;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, fseg_page_free(&mtr, seg(fx, &mtr, HEADER_B), pages[1], FSP_FREE_LOGGED));
    buf_block_t *block = NULL;
    FX_OK(fx->buf,
          fseg_page_alloc(&mtr, seg(fx, &mtr, HEADER_B), pages[1], FIL_PAGE_TYPE_SYS, &block));
    assert_int_not_equal(block->id.page_no, pages[1]);
    mtr_commit(&mtr);
    assert_int_equal(alloc(fx, HEADER_A, pages[1]), pages[1]);
    assert_counts(fx);
}

/** A whole life: both segments freed in steps, the header's page last, the inode page with it. */
static void test_free_everything(void **state)
{
    fsp_fixture_t *fx = *state;
    page_no_t hint = 0;
    for (uint32_t i = 0; i < 200; i++) {
        hint = alloc(fx, i % 2 != 0 ? HEADER_A : HEADER_B, hint + 1);
    }
    static const uint32_t headers[] = {HEADER_B, HEADER_A};
    mtr_t mtr;
    for (uint32_t i = 0; i < 2; i++) {
        for (bool done = false; !done;) {
            mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
            FX_OK(fx->buf, fseg_free_step(&mtr, seg(fx, &mtr, headers[i]), i == 1, &done));
            mtr_commit(&mtr);
        }
    }
    assert_int_equal(n_used(fx, HEADER_A), 1);
    lsn_t lsn = log_lsn(fx->buf->base.log);
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, fseg_free_last(&mtr, seg(fx, &mtr, HEADER_A)));
    mtr_commit(&mtr);
    char text[2000];
    fx_log_text(fx->buf, lsn, text, sizeof(text));
    char record[60];
    snprintf(record, sizeof(record), "MLOG_INIT_FREE_PAGE 3 %" PRIu32 ";", fx->headers);
    assert_non_null(strstr(text, record));
    assert_int_equal(field(fx, FSP_SEG_INODES_FREE), 0);
    uint32_t limit = field(fx, FSP_FREE_LIMIT);
    assert_int_equal(space_n_used(&fx->buf->base.env, fx->buf->pool, SPACE),
                     (limit + COVERS - 1) / COVERS);
    /* The space can be used again. */
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    FX_OK(fx->buf, fseg_create(&mtr, SPACE, FIL_PAGE_TYPE_SYS, HEADER_A, &block));
    mtr_commit(&mtr);
}

/** More segments than an inode page holds: the pages move between their two lists. */
static void test_many_segments(void **state)
{
    fsp_fixture_t *fx = *state;
    uint32_t per_page = fseg_inodes_per_page(4096, E);
    assert_in_range(per_page, 40, 60);
    buf_block_t *blocks[120];
    page_no_t pages[120];
    mtr_t mtr;
    for (uint32_t i = 0; i < 120; i++) {
        mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
        blocks[i] = NULL;
        FX_OK(fx->buf, fseg_create(&mtr, SPACE, FIL_PAGE_TYPE_SYS, HEADER_A, &blocks[i]));
        pages[i] = blocks[i]->id.page_no;
        mtr_commit(&mtr);
    }
    assert_int_equal(field(fx, FSP_SEG_INODES_FULL), 122 / per_page);
    for (uint32_t i = 0; i < 120; i++) {
        uint32_t at = (i * 7) % 120;
        mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
        buf_block_t *block = NULL;
        FX_OK(fx->buf, mtr_page_get(&mtr, fx_id(SPACE, pages[at]), &block));
        FX_OK(fx->buf, fseg_free_last(&mtr, (fseg_header_t){block, HEADER_A}));
        mtr_commit(&mtr);
    }
    assert_int_equal(field(fx, FSP_SEG_INODES_FULL), 0);
    assert_int_equal(field(fx, FSP_SEG_INODES_FREE), 1);
    assert_counts(fx);
}

/** Reserving takes a number, logged, and touches no page of that number. */
static void test_reserve_for_load(void **state)
{
    fsp_fixture_t *fx = *state;
    mtr_t mtr;
    lsn_t lsn = log_lsn(fx->buf->base.log);
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    page_no_t page_no = FIL_NULL;
    FX_OK(fx->buf, fseg_page_reserve(&mtr, seg(fx, &mtr, HEADER_B), 0, &page_no));
    mtr_commit(&mtr);
    assert_null(buf_page_peek(fx->buf->pool, fx_id(SPACE, page_no)));
    char text[2000];
    fx_log_text(fx->buf, lsn, text, sizeof(text));
    char record[40];
    snprintf(record, sizeof(record), " 3 %" PRIu32 ";", page_no);
    assert_null(strstr(text, record));
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_NO_REDO);
    mtr_set_observer(&mtr, 16);
    buf_block_t *block = NULL;
    FX_OK(fx->buf, mtr_page_create(&mtr, fx_id(SPACE, page_no), FIL_PAGE_TYPE_SYS, &block));
    mtr_write_1(&mtr, block, 100, 5);
    mtr_commit(&mtr);
    assert_int_equal(block->observer, 16);
    assert_int_equal(fil_page_get_lsn(block->frame), log_lsn(fx->buf->base.log));
    assert_counts(fx);
}

/** After fsp_reserve() the pages it spoke of do not make the file grow. */
static void test_reserve_room(void **state)
{
    fsp_fixture_t *fx = *state;
    mtr_t mtr;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, fsp_reserve(&mtr, SPACE, 4));
    mtr_commit(&mtr);
    assert_int_equal(field(fx, FSP_SIZE), 7);
    for (uint32_t i = 0; i < 4; i++) {
        alloc(fx, i % 2 != 0 ? HEADER_A : HEADER_B, 0);
        assert_int_equal(field(fx, FSP_SIZE), 7);
    }
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, fsp_reserve(&mtr, SPACE, 4));
    mtr_commit(&mtr);
    assert_int_equal(field(fx, FSP_SIZE), 4 * E);
    assert_counts(fx);
}

/** Pages that are not the segment's are not freed, and nothing is changed. */
static void test_free_refused(void **state)
{
    fsp_fixture_t *fx = *state;
    page_no_t page_no = alloc(fx, HEADER_B, 0);
    const page_no_t others[] = {0, 1, page_no + 1, 1000, FIL_NULL};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_int_equal(try_free(fx, HEADER_B, others[i]), DB_CORRUPTION);
    }
    assert_int_equal(try_free(fx, HEADER_A, page_no), DB_CORRUPTION);
    assert_false(fx->buf->base.env.io_failed);
    FX_OK(fx->buf, try_free(fx, HEADER_B, page_no));
    assert_counts(fx);
}

static int unlink_entry(const char *dir, const char *name)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return unlink(path);
}

/** On real files, closed and opened again: everything is in the files. */
static void test_reopen_posix(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_fsp_XXXXXX";
    assert_non_null(mkdtemp(dir));
    os_t *os = NULL;
    assert_int_equal(os_posix_create(dir, false, NULL, &os), DB_SUCCESS);
    fsp_fixture_t *fx = fsp_create_on(os);
    for (page_no_t i = 1; i <= 150; i++) {
        alloc(fx, i % 3 != 0 ? HEADER_A : HEADER_B, i);
    }
    uint32_t size = field(fx, FSP_SIZE);
    FX_OK(fx->buf, buf_checkpoint_full(fx->buf->pool));
    fx_reopen(fx->buf);
    FX_OK(fx->buf, fil_space_open(fx->buf->base.fil, SPACE, "t3.ibd", 0, &fx->space));
    assert_int_equal(fx->space->size_pages, size);
    assert_int_equal(n_used(fx, HEADER_A), 101);
    assert_int_equal(n_used(fx, HEADER_B), 50);
    assert_counts(fx);
    fx_destroy(fx->buf);
    free(fx);
    static const char *const names[] = {"t1.ibd", "t2.ibd", "t3.ibd", LOG_FILE_NAME,
                                        DBLWR_FILE_NAME};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        assert_int_equal(unlink_entry(dir, names[i]), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fragments_then_extents, setup, teardown),
        cmocka_unit_test_setup_teardown(test_growth, setup, teardown),
        cmocka_unit_test_setup_teardown(test_descriptor_pages, setup, teardown),
        cmocka_unit_test_setup_teardown(test_drop_logs_no_page_of_an_extent, setup, teardown),
        cmocka_unit_test_setup_teardown(test_single_frees, setup, teardown),
        cmocka_unit_test_setup_teardown(test_free_everything, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_segments, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reserve_for_load, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reserve_room, setup, teardown),
        cmocka_unit_test_setup_teardown(test_free_refused, setup, teardown),
        cmocka_unit_test(test_reopen_posix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
