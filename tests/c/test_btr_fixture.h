/** An engine up to fsp/ on the simulated disk, and an independent walk over a tree's pages. */
#ifndef TEST_BTR_FIXTURE_H
#define TEST_BTR_FIXTURE_H

#include "base/mach.h"
#include "btr/btr_bulk.h"
#include "test_fsp_fixture.h"
#include "test_tree.h"

#define BFX_SPACE 5U

typedef struct btr_fixture {
    os_t *os;
    probe_t probe;
    env_t env;
    log_t *log;
    fil_t *fil;
    buf_pool_t *pool;
    uint32_t page_size;
} btr_fixture_t;

/** One space of this id with its page 0; pool of pool_pages frames. */
static inline btr_fixture_t *bfx_create_in(uint32_t page_size, uint32_t pool_pages,
                                           space_id_t space, uint32_t log_format)
{
    btr_fixture_t *fx = calloc(1, sizeof(*fx));
    engine_options_t options;

    assert_non_null(fx);
    fx->os = image_os_create();
    fx->page_size = page_size;
    fx->env.os = fx->os;
    fx->env.probe = &fx->probe;
    files_create(&fx->env, page_size, FX_EXTENT_PAGES, 128ULL * page_size, log_format, &fx->log,
                 &fx->fil);
    options_set_defaults(&options);
    options.page_size = page_size;
    options.buffer_pool_pages = pool_pages;
    options.dblwr_pages = 8;
    ASSERT_OK(fx, buf_pool_create(&fx->env, fx->log, fx->fil, &options, &fx->pool));
    space_create(&fx->env, fx->fil, fx->pool, space, space == 0 ? FIL_SYSTEM_PATH : "t.ibd");
    return fx;
}

static inline btr_fixture_t *bfx_create(uint32_t page_size, uint32_t pool_pages, space_id_t space)
{
    return bfx_create_in(page_size, pool_pages, space, LOG_FORMAT_10_4);
}

static inline void bfx_destroy(btr_fixture_t *fx)
{
    buf_pool_free(fx->pool);
    fil_close(fx->fil);
    log_close(fx->log);
    os_destroy(fx->os);
    free(fx);
}

/** The page's present bytes; the caller frees them. */
static inline byte *bfx_page(btr_fixture_t *fx, space_id_t space, page_no_t page_no)
{
    byte *copy = malloc(fx->page_size);
    buf_block_t *block = NULL;

    assert_non_null(copy);
    ASSERT_OK(fx, buf_page_get(fx->pool, (page_id_t){space, page_no}, &block));
    memcpy(copy, block->frame, fx->page_size);
    buf_block_unfix(fx->pool, block);
    return copy;
}

static inline uint32_t bfx_space_pages(btr_fixture_t *fx, space_id_t space)
{
    return fil_space_get(fx->fil, space)->size_pages;
}

/* ---- the walk ---- */

typedef struct bfx_walk {
    btr_fixture_t *fx;
    const btr_t *btr;
    byte *reached;                       /**< per page */
    page_no_t last[BTR_LEVEL_MAX + 1];   /**< page seen last on the level */
    page_no_t expect[BTR_LEVEL_MAX + 1]; /**< its NEXT */
    byte *keys;                          /**< leaf keys in order */
    uint32_t n;
    uint32_t size;
    uint32_t pages;
    uint32_t leaves;
    uint32_t levels;
} bfx_walk_t;

static inline void bfx_walk_leaf_key(bfx_walk_t *w, const byte *key)
{
    uint32_t len = w->btr->key_len;

    if (w->n == w->size) {
        w->size = 2 * w->size + 64;
        w->keys = realloc(w->keys, (size_t)w->size * len);
        assert_non_null(w->keys);
    }
    memcpy(w->keys + (size_t)w->n * len, key, len);
    w->n++;
}

/** Checks I6 to I9 of a subtree whose keys must lie in [low, high); NULL = no bound. */
static inline void bfx_walk_page(bfx_walk_t *w, page_no_t page_no, uint32_t level, const byte *low,
                                 const byte *high)
{
    const btr_t *btr = w->btr;
    byte *page = bfx_page(w->fx, btr->space, page_no);
    uint32_t page_size = w->fx->page_size;
    uint32_t n = page_n_recs(page);
    const char *why = "";
    const byte *prev = low;

    if (page_index_validate(page, page_size, &why) != DB_SUCCESS) {
        fail_msg("page %" PRIu32 ": %s", page_no, why);
    }
    assert_int_equal(page_level(page), level);
    assert_int_equal(page_index_id(page), btr->id);
    uint32_t leaf_size = btr->leaf_varies ? PAGE_REC_VARIES : btr->leaf_rec_size;
    assert_int_equal(page_rec_size(page), level == 0 ? leaf_size : btr_node_rec_size(btr));
    assert_int_equal(page_key_len(page), btr->key_len);
    assert_true(n > 0 || (page_no == btr->root && level == 0));
    assert_int_equal(w->reached[page_no], 0);
    w->reached[page_no] = 1;
    w->pages++;
    w->leaves += level == 0;
    assert_int_equal(fil_page_get_prev(page), w->last[level]);
    if (w->last[level] != FIL_NULL) {
        assert_int_equal(w->expect[level], page_no);
    }
    w->last[level] = page_no;
    w->expect[level] = fil_page_get_next(page);
    for (uint32_t i = 0; i < n; i++) {
        const byte *rec = page_rec(page, page_size, i);
        const byte *key = rec_payload(rec);
        bool min_rec = (rec_info(rec) & REC_INFO_MIN_REC) != 0;

        assert_int_equal(min_rec, level > 0 && low == NULL && i == 0);
        if (!min_rec) {
            if (prev != NULL) {
                int order = memcmp(prev, key, btr->key_len);

                assert_true(i == 0 ? order <= 0 : order < 0);
            }
            if (high != NULL) {
                assert_true(memcmp(key, high, btr->key_len) < 0);
            }
            prev = key;
        }
        if (level == 0) {
            bfx_walk_leaf_key(w, key);
        } else {
            const byte *next = i + 1 < n ? rec_payload(page_rec(page, page_size, i + 1)) : high;

            bfx_walk_page(w, mach_read_4(key + btr->key_len), level - 1, min_rec ? NULL : key,
                          next);
        }
    }
    free(page);
}

/** The page belongs to the segment of its level. */
static inline void bfx_assert_segment(btr_fixture_t *fx, const btr_t *btr, page_no_t page_no)
{
    mtr_t mtr;
    buf_block_t *root = NULL;
    byte *page = bfx_page(fx, btr->space, page_no);
    bool leaf = page_level(page) == 0 && page_no != btr->root;

    mtr_start(&mtr, fx->pool, MTR_READ_ONLY);
    ASSERT_OK(fx, mtr_page_get(&mtr, (page_id_t){btr->space, btr->root}, &root));
    ASSERT_OK(fx, fseg_page_check(&mtr, (fseg_header_t){root, leaf ? PAGE_SEG_LEAF : PAGE_SEG_TOP},
                                  page_no));
    mtr_commit(&mtr);
    free(page);
}

/** The whole tree, and that its segments use as many pages as it has, each level its own (I11).
keys: see bfx_walk_free. */
static inline bfx_walk_t bfx_walk_tree(btr_fixture_t *fx, const btr_t *btr)
{
    uint32_t size = bfx_space_pages(fx, btr->space);
    bfx_walk_t w = {.fx = fx, .btr = btr, .reached = calloc(size, 1)};
    byte *root = bfx_page(fx, btr->space, btr->root);

    assert_non_null(w.reached);
    w.levels = page_level(root) + 1;
    /* A root with one child would be a level too much. */
    assert_true(w.levels == 1 || page_n_recs(root) > 1);
    free(root);
    for (uint32_t i = 0; i <= BTR_LEVEL_MAX; i++) {
        w.last[i] = FIL_NULL;
        w.expect[i] = FIL_NULL;
    }
    bfx_walk_page(&w, btr->root, w.levels - 1, NULL, NULL);
    for (uint32_t i = 0; i <= BTR_LEVEL_MAX; i++) {
        assert_int_equal(w.expect[i], FIL_NULL);
    }
    for (page_no_t no = 0; no < size; no++) {
        if (w.reached[no] != 0) {
            bfx_assert_segment(fx, btr, no);
        }
    }
    assert_int_equal(
        w.pages,
        segment_n_used(&fx->env, fx->pool, (page_id_t){btr->space, btr->root}, PAGE_SEG_TOP)
            + segment_n_used(&fx->env, fx->pool, (page_id_t){btr->space, btr->root},
                             PAGE_SEG_LEAF));
    free(w.reached);
    w.reached = NULL;
    return w;
}

static inline void bfx_walk_free(bfx_walk_t *w)
{
    free(w->keys);
}

#endif
