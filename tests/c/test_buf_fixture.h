/** A buffer pool over test_fil_fixture.h, with spaces 1 (t1.ibd), 2 (t2.ibd). */
#ifndef TEST_BUF_FIXTURE_H
#define TEST_BUF_FIXTURE_H

#include "buf/buf.h"
#include "buf/buf_dblwr.h"
#include "test_fil_fixture.h"

#define FX_SPACE_PAGES 600U

typedef struct buf_fixture {
    base_fixture_t base;
    engine_options_t options;
    buf_pool_t *pool;
    fil_space_t *t1;
    fil_space_t *t2;
} buf_fixture_t;

#define FX_OK(fx, call) ENV_OK_NAMED(&(fx)->base.env, call, #call)

static inline void fx_open_pool(buf_fixture_t *fx)
{
    fx->options.page_size = fx->base.page_size;
    FX_OK(fx, buf_pool_create(&fx->base.env, fx->base.log, fx->base.fil, &fx->options, &fx->pool));
}

/** Over the empty data directory os, which it owns: pool_pages frames, doublewrite of 8 pages a
slot, log_optimize_ddl on. */
static inline buf_fixture_t *fx_create_in(os_t *os, uint32_t page_size, uint32_t pool_pages,
                                          bool doublewrite, uint32_t log_format)
{
    buf_fixture_t *fx = calloc(1, sizeof(*fx));
    assert_non_null(fx);
    fx->base.os = os;
    base_open(&fx->base, page_size, log_format);
    FX_OK(fx, fil_space_create(fx->base.fil, 1, "t1.ibd", FX_SPACE_PAGES, &fx->t1));
    FX_OK(fx, fil_space_create(fx->base.fil, 2, "t2.ibd", FX_SPACE_PAGES, &fx->t2));
    fx->options.buffer_pool_pages = pool_pages;
    fx->options.doublewrite = doublewrite;
    fx->options.dblwr_pages = 8;
    fx->options.log_optimize_ddl = true;
    fx->options.log_page_checksums = true; /* of a physical log */
    fx_open_pool(fx);
    fx->base.env.stats = (stats_t){0};
    fx->base.rec.n = 0;
    return fx;
}

static inline buf_fixture_t *fx_create_on(os_t *os, uint32_t page_size, uint32_t pool_pages,
                                          bool doublewrite)
{
    return fx_create_in(os, page_size, pool_pages, doublewrite, LOG_FORMAT_10_4);
}

static inline buf_fixture_t *fx_create(uint32_t page_size, uint32_t pool_pages, bool doublewrite)
{
    os_t *os = image_os_create();
    return fx_create_on(os, page_size, pool_pages, doublewrite);
}

/** Closes log, files and pool and opens them again; nothing is flushed. Spaces 1 and 2 are open. */
static inline void fx_reopen(buf_fixture_t *fx)
{
    buf_pool_free(fx->pool);
    fil_close(fx->base.fil);
    log_close(fx->base.log);
    files_open(&fx->base.env, fx->base.page_size, &fx->base.log, &fx->base.fil);
    FX_OK(fx, fil_space_open(fx->base.fil, 1, "t1.ibd", 0, &fx->t1));
    FX_OK(fx, fil_space_open(fx->base.fil, 2, "t2.ibd", 0, &fx->t2));
    fx_open_pool(fx);
}

static inline void fx_destroy(buf_fixture_t *fx)
{
    buf_pool_free(fx->pool);
    base_close(&fx->base);
    free(fx);
}

/** For tests that need nothing special: 64 frames, doublewrite on. */
static inline int fx_setup(void **state)
{
    *state = fx_create(4096, 64, true);
    return 0;
}

static inline int fx_teardown(void **state)
{
    fx_destroy(*state);
    return 0;
}

static inline page_id_t fx_id(space_id_t space, page_no_t page_no)
{
    return (page_id_t){space, page_no};
}

/** Changes a pinned block as an mtr of one record would: byte 100 becomes value. */
static inline void fx_touch(buf_fixture_t *fx, buf_block_t *block, byte value)
{
    lsn_t start = log_lsn(fx->base.log);
    lsn_t end = 0;
    redo_rec_t rec = {.op = OP_NUMBER,
                      .len = 1,
                      .space = block->id.space,
                      .page_no = block->id.page_no,
                      .offset = 100,
                      .value = value};
    log_append_rec(fx->base.log, &rec, &end);
    block->frame[100] = value;
    fil_page_set_lsn(block->frame, fx->base.page_size, end);
    buf_block_set_dirty(fx->pool, block, start, end);
}

/** A new dirty page, unpinned. */
static inline buf_block_t *fx_new_page(buf_fixture_t *fx, space_id_t space, page_no_t page_no)
{
    buf_block_t *block = NULL;
    FX_OK(fx, buf_page_create(fx->pool, fx_id(space, page_no), &block));
    fil_page_init(block->frame, fx->base.page_size, block->id, FIL_PAGE_TYPE_SYS);
    fx_touch(fx, block, (byte)page_no);
    buf_block_unfix(fx->pool, block);
    return block;
}

/** Changes a page that exists. */
static inline void fx_change_page(buf_fixture_t *fx, space_id_t space, page_no_t page_no,
                                  byte value)
{
    buf_block_t *block = NULL;
    FX_OK(fx, buf_page_get(fx->pool, fx_id(space, page_no), &block));
    fx_touch(fx, block, value);
    buf_block_unfix(fx->pool, block);
}

/** Byte 100 of the page in its file. */
static inline byte fx_home_byte(buf_fixture_t *fx, const char *path, page_no_t page_no)
{
    uint64_t size = 0;
    byte *bytes = image_os_bytes(fx->base.os, path, &size);
    assert_true((uint64_t)(page_no + 1) * fx->base.page_size <= size);
    return bytes[(size_t)page_no * fx->base.page_size + 100];
}

/** All of it, as the steps of a build do. */
static inline dberr_t flush_load(buf_pool_t *pool, space_id_t space, index_id_t observer)
{
    bool over = false;
    while (!over) {
        TRY(buf_observer_flush(pool, space, observer, 8, &over));
    }
    return buf_observer_sync(pool, space);
}

#endif
