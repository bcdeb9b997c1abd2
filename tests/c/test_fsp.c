/** fsp: the owner map, growth of a space, freeing, and maps with hostile bytes. */
#include <unistd.h>

#include "base/mach.h"
#include "test_fsp_fixture.h"
#include "test_mtr_fixture.h"

#define SPACE 3U
#define OWNER 16U

typedef struct fsp_fixture {
    buf_fixture_t *buf;
    fil_space_t *space;
} fsp_fixture_t;

static fsp_fixture_t *fsp_create_on(os_t *os)
{
    fsp_fixture_t *fx = calloc(1, sizeof *fx);
    assert_non_null(fx);
    fx->buf = fx_create_on(os, 4096, 64, true);
    base_fixture_t *base = &fx->buf->base;
    fx->space = space_create(&base->env, base->fil, fx->buf->pool, SPACE, "t3.ibd");
    return fx;
}

static int setup(void **state)
{
    os_t *os = NULL;
    assert_int_equal(os_mem_create(&os), DB_SUCCESS);
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

static page_no_t fsp_alloc(fsp_fixture_t *fx, uint32_t owner, page_no_t hint)
{
    FX_OK(fx->buf, buf_log_free_check(fx->buf->pool));
    mtr_t mtr;
    buf_block_t *block = NULL;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, fsp_page_alloc(&mtr, SPACE, owner, hint, FIL_PAGE_TYPE_SYS, &block));
    page_no_t page_no = block->id.page_no;
    mtr_commit(&mtr);
    return page_no;
}

static uint32_t fsp_owner(fsp_fixture_t *fx, page_no_t page_no)
{
    mtr_t mtr;
    uint32_t owner = UINT32_MAX;
    mtr_start(&mtr, fx->buf->pool, MTR_READ_ONLY);
    FX_OK(fx->buf, fsp_page_owner(&mtr, fx_id(SPACE, page_no), &owner));
    mtr_commit(&mtr);
    return owner;
}

static uint32_t fsp_header_field(fsp_fixture_t *fx, uint32_t offset)
{
    mtr_t mtr;
    buf_block_t *block = NULL;
    mtr_start(&mtr, fx->buf->pool, MTR_READ_ONLY);
    FX_OK(fx->buf, mtr_page_get(&mtr, fx_id(SPACE, 0), &block));
    uint32_t value = mach_read_4(block->frame + offset);
    mtr_commit(&mtr);
    return value;
}

/** I11: FSP_N_USED is the number of map entries that are not 0. */
static void assert_counts(fsp_fixture_t *fx)
{
    uint32_t size = fsp_header_field(fx, FSP_SIZE);
    uint32_t n_used = 0;
    for (page_no_t i = 0; i < size; i++) {
        n_used += fsp_owner(fx, i) != FSP_OWNER_FREE;
    }
    assert_int_equal(fsp_header_field(fx, FSP_N_USED), n_used);
    assert_true(size <= fx->space->size_pages);
}

/** The lowest free page from the hint on, else the lowest; freed pages come again. */
static void test_alloc_order(void **state)
{
    fsp_fixture_t *fx = *state;
    assert_int_equal(fsp_alloc(fx, OWNER, 0), 1);
    assert_int_equal(fsp_alloc(fx, OWNER, 5), 5);
    assert_int_equal(fsp_alloc(fx, OWNER + 1, 5), 6);
    assert_int_equal(fsp_alloc(fx, OWNER, 7), 7);
    assert_int_equal(fsp_alloc(fx, OWNER, 7), 2);
    assert_int_equal(fsp_alloc(fx, OWNER, FIL_NULL), 3);
    assert_int_equal(fsp_owner(fx, 0), FSP_OWNER_MAP);
    assert_int_equal(fsp_owner(fx, 6), OWNER + 1);
    assert_int_equal(fsp_owner(fx, 4), FSP_OWNER_FREE);
    mtr_t mtr;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, fsp_page_free(&mtr, fx_id(SPACE, 5), OWNER));
    mtr_commit(&mtr);
    assert_counts(fx);
    assert_int_equal(fsp_alloc(fx, OWNER, 0), 4);
    assert_int_equal(fsp_alloc(fx, OWNER, 0), 5);
    assert_counts(fx);
}

/** A full space grows: file first, then FSP_SIZE in the log. */
static void test_extend(void **state)
{
    fsp_fixture_t *fx = *state;
    for (page_no_t i = 1; i < FSP_INITIAL_PAGES; i++) {
        assert_int_equal(fsp_alloc(fx, OWNER, 0), i);
    }
    assert_int_equal(fx->space->size_pages, FSP_INITIAL_PAGES);
    uint32_t from = fx->buf->base.rec.n;
    lsn_t lsn = log_lsn(fx->buf->base.log);
    assert_int_equal(fsp_alloc(fx, OWNER, 3), FSP_INITIAL_PAGES);
    rec_assert_order(&fx->buf->base.rec, from, "# extend space=3 pages=24", "truncate t3.ibd 98304",
                     "# page_init space=3 page=8", NULL);
    assert_int_equal(fx->space->size_pages, 24);
    assert_int_equal(fsp_header_field(fx, FSP_SIZE), 24);
    char text[1000];
    fx_log_text(fx->buf, lsn, text, sizeof text);
    assert_string_equal(text, "MLOG_4BYTES 3 0; MLOG_INIT_FILE_PAGE2 3 8; MLOG_4BYTES 3 0; "
                              "MLOG_4BYTES 3 0; | ");
    assert_counts(fx);
}

/** Growth over a map page boundary (M = 512 at 4k): the new map page owns itself, is logged, and
maps its pages; freeing an owner finds them. */
static void test_second_map_page(void **state)
{
    fsp_fixture_t *fx = *state;
    page_no_t hint = 0;
    for (uint32_t i = 0; i < 520; i++) {
        hint = fsp_alloc(fx, OWNER + i % 2, hint);
        assert_int_not_equal(hint, 512);
    }
    assert_int_equal(hint, 521);
    assert_int_equal(fsp_owner(fx, 512), FSP_OWNER_MAP);
    assert_int_equal(rec_count(&fx->buf->base.rec, 0, "# page_init space=3 page=512"), 1);
    assert_counts(fx);
    FX_OK(fx->buf, fsp_owner_free(fx->buf->pool, SPACE, OWNER));
    assert_counts(fx);
    assert_int_equal(fsp_header_field(fx, FSP_N_USED), 2 + 260);
    for (page_no_t i = 1; i < 522; i++) {
        assert_int_not_equal(fsp_owner(fx, i), OWNER);
    }
    assert_int_equal(rec_count(&fx->buf->base.rec, 0, "# page_free space=3"), 260);
    /* Again is harmless: nothing is left to free. */
    lsn_t lsn = log_lsn(fx->buf->base.log);
    FX_OK(fx->buf, fsp_owner_free(fx->buf->pool, SPACE, OWNER));
    assert_int_equal(rec_count(&fx->buf->base.rec, 0, "# page_free space=3"), 260);
    assert_true(log_lsn(fx->buf->base.log) >= lsn);
    assert_int_equal(fsp_alloc(fx, OWNER, 0), 1);
    /* Map pages survive eviction and reading back. */
    FX_OK(fx->buf, buf_flush_and_evict_all(fx->buf->pool));
    assert_counts(fx);
}

/** Growth that lands exactly on a map page. */
static void test_extend_at_boundary(void **state)
{
    fsp_fixture_t *fx = *state;
    mtr_t mtr;
    buf_block_t *block = NULL;
    FX_OK(fx->buf, fil_space_extend(fx->buf->base.fil, fx->space, 512));
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, mtr_page_get(&mtr, fx_id(SPACE, 0), &block));
    mtr_write_4(&mtr, block, FSP_SIZE, 512);
    mtr_write_4(&mtr, block, FSP_N_USED, 512);
    mtr_commit(&mtr);
    assert_int_equal(fsp_alloc(fx, OWNER, 0), 513);
    assert_int_equal(fsp_owner(fx, 512), FSP_OWNER_MAP);
    assert_int_equal(fsp_owner(fx, 513), OWNER);
    assert_int_equal(fsp_header_field(fx, FSP_N_USED), 514);
}

/** Contents may be NO_REDO, the map never is. */
static void test_alloc_for_load(void **state)
{
    fsp_fixture_t *fx = *state;
    lsn_t lsn = log_lsn(fx->buf->base.log);
    mtr_t mtr;
    page_no_t page_no = FIL_NULL;
    buf_block_t *block = NULL;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, fsp_page_reserve(&mtr, SPACE, OWNER, 0, &page_no));
    mtr_commit(&mtr);
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_NO_REDO);
    mtr_set_observer(&mtr, OWNER);
    FX_OK(fx->buf, mtr_page_create(&mtr, fx_id(SPACE, page_no), FIL_PAGE_TYPE_SYS, &block));
    mtr_write_1(&mtr, block, 100, 5);
    mtr_commit(&mtr);
    char text[1000];
    fx_log_text(fx->buf, lsn, text, sizeof text);
    assert_string_equal(text, "MLOG_4BYTES 3 0; MLOG_4BYTES 3 0; | ");
    assert_int_equal(block->observer, OWNER);
    assert_int_equal(fil_page_get_lsn(block->frame), log_lsn(fx->buf->base.log));
    assert_int_equal(fsp_owner(fx, 1), OWNER);
    assert_counts(fx);
}

/** Reserving takes a number in the map, logged, and touches no page of that number; it is not given out
again, and its owner's pages are freed with it. */
static void test_reserve(void **state)
{
    fsp_fixture_t *fx = *state;
    lsn_t lsn = log_lsn(fx->buf->base.log);
    page_no_t page_no = FIL_NULL;
    mtr_t mtr;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, fsp_page_reserve(&mtr, SPACE, OWNER, 4, &page_no));
    mtr_commit(&mtr);
    assert_int_equal(page_no, 4);
    char text[1000];
    fx_log_text(fx->buf, lsn, text, sizeof text);
    assert_string_equal(text, "MLOG_4BYTES 3 0; MLOG_4BYTES 3 0; | ");
    assert_null(buf_page_peek(fx->buf->pool, fx_id(SPACE, page_no)));
    assert_int_equal(fsp_alloc(fx, OWNER, 4), 5);
    assert_counts(fx);
    FX_OK(fx->buf, fsp_owner_free(fx->buf->pool, SPACE, OWNER));
    assert_int_equal(fsp_owner(fx, page_no), FSP_OWNER_FREE);
    assert_counts(fx);
}

/** I15: a page freed in an mtr is not given out by the same mtr. */
static void test_no_reuse_within_mtr(void **state)
{
    fsp_fixture_t *fx = *state;
    assert_int_equal(fsp_alloc(fx, OWNER, 0), 1);
    mtr_t mtr;
    buf_block_t *block = NULL;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, fsp_page_free(&mtr, fx_id(SPACE, 1), OWNER));
    FX_OK(fx->buf, fsp_page_alloc(&mtr, SPACE, OWNER, 0, FIL_PAGE_TYPE_SYS, &block));
    assert_int_equal(block->id.page_no, 2);
    mtr_commit(&mtr);
    assert_int_equal(fsp_alloc(fx, OWNER, 0), 1);
}

/** Wrong owner, map page, free page, page beyond the space: refused, nothing changed. */
static void test_free_refused(void **state)
{
    fsp_fixture_t *fx = *state;
    assert_int_equal(fsp_alloc(fx, OWNER, 0), 1);
    mtr_t mtr;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    assert_int_equal(fsp_page_free(&mtr, fx_id(SPACE, 1), OWNER + 1), DB_CORRUPTION);
    assert_int_equal(fsp_page_free(&mtr, fx_id(SPACE, 0), OWNER), DB_CORRUPTION);
    assert_int_equal(fsp_page_free(&mtr, fx_id(SPACE, 2), OWNER), DB_CORRUPTION);
    assert_int_equal(fsp_page_free(&mtr, fx_id(SPACE, 8), OWNER), DB_CORRUPTION);
    assert_int_equal(fsp_page_free(&mtr, fx_id(SPACE, FIL_NULL), OWNER), DB_CORRUPTION);
    buf_block_t *block = NULL;
    assert_int_equal(fsp_page_alloc_at(&mtr, SPACE, OWNER, 1, FIL_PAGE_TYPE_SYS, &block),
                     DB_CORRUPTION);
    assert_int_equal(fsp_page_alloc_at(&mtr, SPACE, OWNER, 8, FIL_PAGE_TYPE_SYS, &block),
                     DB_CORRUPTION);
    mtr_abort(&mtr);
    assert_false(fx->buf->base.env.io_failed);
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, fsp_page_alloc_at(&mtr, SPACE, FSP_OWNER_MAP, 5, FIL_PAGE_TYPE_SYS, &block));
    assert_int_equal(block->id.page_no, 5);
    mtr_commit(&mtr);
    assert_counts(fx);
}

typedef struct damage {
    uint32_t offset;
    uint32_t value;
} damage_t;

/** Hostile header and map bytes give DB_CORRUPTION from every entry point, never a crash. */
static void test_hostile_map(void **state)
{
    fsp_fixture_t *fx = *state;
    static const damage_t damages[] = {
        {FSP_SPACE_ID, 9},      {FSP_SIZE, 0},    {FSP_SIZE, FSP_INITIAL_PAGES + 1},
        {FSP_SIZE, UINT32_MAX}, {FSP_N_USED, 0},  {FSP_N_USED, FSP_INITIAL_PAGES + 1},
        {FSP_PAGE_SIZE, 8192},  {FSP_VERSION, 2}, {FSP_RESERVED, 1},
        {FSP_MAP, 0},           {FSP_MAP, OWNER},
    };
    buf_block_t *header = buf_page_peek(fx->buf->pool, fx_id(SPACE, 0));
    assert_non_null(header);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        byte saved[4];
        memcpy(saved, header->frame + damages[i].offset, 4);
        mach_write_4(header->frame + damages[i].offset, damages[i].value);
        mtr_t mtr;
        buf_block_t *block = NULL;
        uint32_t owner = 0;
        mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
        assert_int_equal(fsp_page_alloc(&mtr, SPACE, OWNER, 0, FIL_PAGE_TYPE_SYS, &block),
                         DB_CORRUPTION);
        assert_int_equal(fsp_page_free(&mtr, fx_id(SPACE, 1), OWNER), DB_CORRUPTION);
        assert_int_equal(fsp_page_owner(&mtr, fx_id(SPACE, 1), &owner), DB_CORRUPTION);
        mtr_abort(&mtr);
        assert_int_equal(fsp_owner_free(fx->buf->pool, SPACE, OWNER), DB_CORRUPTION);
        memcpy(header->frame + damages[i].offset, saved, 4);
    }
    assert_false(fx->buf->base.env.io_failed);
    /* A map that gives out a page in use: refused while that page is pinned. */
    assert_int_equal(fsp_alloc(fx, OWNER, 0), 1);
    mach_write_4(header->frame + FSP_MAP + 4, FSP_OWNER_FREE);
    mtr_t mtr;
    buf_block_t *block = NULL;
    mtr_start(&mtr, fx->buf->pool, MTR_LOG_ALL);
    FX_OK(fx->buf, mtr_page_get(&mtr, fx_id(SPACE, 1), &block));
    assert_int_equal(fsp_page_alloc(&mtr, SPACE, OWNER, 0, FIL_PAGE_TYPE_SYS, &block),
                     DB_CORRUPTION);
    mtr_abort(&mtr);
    assert_false(fx->buf->base.env.io_failed);
}

static int unlink_entry(const char *dir, const char *name)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return unlink(path);
}

/** On real files, closed and opened again: map and pages are in the files. */
static void test_reopen_posix(void **state)
{
    (void)state;
    char dir[] = "/tmp/test_fsp_XXXXXX";
    assert_non_null(mkdtemp(dir));
    os_t *os = NULL;
    assert_int_equal(os_posix_create(dir, false, NULL, &os), DB_SUCCESS);
    fsp_fixture_t *fx = fsp_create_on(os);
    for (page_no_t i = 1; i <= 150; i++) {
        assert_int_equal(fsp_alloc(fx, OWNER + i % 3, 0), i);
    }
    FX_OK(fx->buf, buf_checkpoint_full(fx->buf->pool));
    fx_reopen(fx->buf);
    FX_OK(fx->buf, fil_space_open(fx->buf->base.fil, SPACE, "t3.ibd", 0, &fx->space));
    assert_int_equal(fx->space->size_pages, 152);
    assert_counts(fx);
    for (page_no_t i = 1; i <= 150; i++) {
        assert_int_equal(fsp_owner(fx, i), OWNER + i % 3);
    }
    assert_int_equal(fsp_alloc(fx, OWNER, 0), 151);
    fx_destroy(fx->buf);
    free(fx);
    static const char *const names[] = {"t1.ibd", "t2.ibd", "t3.ibd", LOG_FILE_NAME,
                                        DBLWR_FILE_NAME};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(unlink_entry(dir, names[i]), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_alloc_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_extend, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second_map_page, setup, teardown),
        cmocka_unit_test_setup_teardown(test_extend_at_boundary, setup, teardown),
        cmocka_unit_test_setup_teardown(test_alloc_for_load, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reserve, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_reuse_within_mtr, setup, teardown),
        cmocka_unit_test_setup_teardown(test_free_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile_map, setup, teardown),
        cmocka_unit_test(test_reopen_posix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
