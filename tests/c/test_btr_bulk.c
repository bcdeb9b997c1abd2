/** btr_bulk: a loaded tree has the records it was given, in every redo mode, shape and fill, and
can be changed like any other afterwards. */
#include "test_btr_fixture.h"

#define INDEX_ID 50U

typedef struct load {
    uint32_t page_size;
    uint32_t key_len;
    uint32_t rec_size;
    uint32_t n;
    uint32_t fill;
    bool redo;
} load_t;

static void rec_set(const btr_t *btr, uint32_t k, byte *rec)
{
    memset(rec, 'x', btr->leaf_rec_size);
    rec[0] = 0;
    memset(rec + 1, 0, btr->key_len);
    mach_write_4(rec + 1 + btr->key_len - 4, k);
}

static btr_t load(btr_fixture_t *fx, const load_t *l)
{
    btr_t btr = {INDEX_ID, BFX_SPACE, FIL_NULL, l->key_len, l->rec_size, false, 0};
    tree_create(&fx->env, fx->pool, &btr);
    btr_bulk_t *bulk = NULL;
    ASSERT_OK(fx, btr_bulk_create(fx->pool, &btr, l->redo ? 0 : btr.id, l->fill, &bulk));
    byte rec[8192];
    for (uint32_t k = 0; k < l->n; k++) {
        rec_set(&btr, 2 * k, rec);
        ASSERT_OK(fx, btr_bulk_add(bulk, rec, btr.leaf_rec_size));
    }
    ASSERT_OK(fx, btr_bulk_finish(bulk));
    btr_bulk_free(bulk);
    return btr;
}

static void check_scan(btr_fixture_t *fx, const btr_t *btr, uint32_t n)
{
    btr_cursor_t cursor;
    ASSERT_OK(fx, btr_cursor_open(&cursor, fx->pool, btr, NULL, 0));
    const byte *rec = NULL;
    byte want[8192];
    for (uint32_t k = 0; k < n; k++) {
        ASSERT_OK(fx, btr_cursor_next(&cursor, &rec));
        rec_set(btr, 2 * k, want);
        assert_memory_equal(rec, want, btr->leaf_rec_size);
    }
    assert_int_equal(btr_cursor_next(&cursor, &rec), DB_NOT_FOUND);
    btr_cursor_close(&cursor);
}

/** Scan and tree walk agree with what was loaded; the leaves are as full as asked; a page dirtied
without redo names the index as its observer; inserts and deletes work on the loaded tree. */
static void check_load(const load_t *l)
{
    btr_fixture_t *fx = bfx_create(l->page_size, 64, BFX_SPACE);
    btr_t btr = load(fx, l);
    uint32_t capacity = page_capacity(l->page_size, l->rec_size);
    uint32_t per_leaf = capacity * l->fill / 100 > 0 ? capacity * l->fill / 100 : 1;
    buf_block_t *root = buf_page_peek(fx->pool, (page_id_t){BFX_SPACE, btr.root});
    if (root != NULL && root->oldest_modification != 0) {
        assert_int_equal(root->observer, l->redo || l->n == 0 ? 0 : INDEX_ID);
    }
    bfx_walk_t w = bfx_walk_tree(fx, &btr);
    assert_int_equal(w.n, l->n);
    assert_int_equal(w.leaves, l->n == 0 ? 1 : (l->n + per_leaf - 1) / per_leaf);
    assert_int_equal(fx->env.stats.bulk_rows, l->n);
    bfx_walk_free(&w);
    check_scan(fx, &btr, l->n);
    byte rec[8192];
    for (uint32_t k = 0; k < l->n; k += 3) {
        rec_set(&btr, 2 * k + 1, rec);
        ASSERT_OK(fx, btr_insert(fx->pool, &btr, rec, btr.leaf_rec_size));
    }
    for (uint32_t k = 0; k < l->n; k += 3) {
        rec_set(&btr, 2 * k + 1, rec);
        ASSERT_OK(fx, btr_delete(fx->pool, &btr, rec + 1));
    }
    w = bfx_walk_tree(fx, &btr);
    bfx_walk_free(&w);
    check_scan(fx, &btr, l->n);
    bfx_destroy(fx);
}

static void test_loads(void **state)
{
    static const uint32_t COUNTS[] = {0, 1, 2, 3, 4, 5, 9, 30, 31, 300, 2000};
    static const load_t SHAPES[] = {
        {4096, 8, 1800, 0, 100, false},  {4096, 8, 1800, 0, 100, true},
        {4096, 768, 769, 0, 100, false}, {4096, 700, 1900, 0, 10, true},
        {4096, 263, 264, 0, 69, false},  {16384, 12, 13, 0, 90, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(SHAPES) / sizeof(SHAPES[0]); i++) {
        for (size_t j = 0; j < sizeof(COUNTS) / sizeof(COUNTS[0]); j++) {
            load_t l = SHAPES[i];

            l.n = COUNTS[j];
            check_load(&l);
        }
    }
}

/** Keys that do not ascend are refused, equal ones too. */
static void test_order(void **state)
{
    btr_fixture_t *fx = bfx_create(4096, 32, BFX_SPACE);
    btr_t btr = {INDEX_ID, BFX_SPACE, FIL_NULL, 8, 1800, false, 0};
    (void)state;
    tree_create(&fx->env, fx->pool, &btr);
    btr_bulk_t *bulk = NULL;
    ASSERT_OK(fx, btr_bulk_create(fx->pool, &btr, false, 100, &bulk));
    byte rec[1800];
    for (uint32_t k = 10; k < 15; k++) {
        rec_set(&btr, k, rec);
        ASSERT_OK(fx, btr_bulk_add(bulk, rec, btr.leaf_rec_size));
        assert_int_equal(btr_bulk_add(bulk, rec, btr.leaf_rec_size), DB_DUPLICATE_KEY);
        rec_set(&btr, k - 1, rec);
        assert_int_equal(btr_bulk_add(bulk, rec, btr.leaf_rec_size), DB_DUPLICATE_KEY);
    }
    btr_bulk_free(bulk);
    bfx_destroy(fx);
}

/** Pages of the space, without page 0, that are dirty, and carry the stamp of the load. */
static uint32_t n_stamped(btr_fixture_t *fx)
{
    uint32_t n = 0;
    for (page_no_t no = 1; no < bfx_space_pages(fx, BFX_SPACE); no++) {
        const buf_block_t *block = buf_page_peek(fx->pool, (page_id_t){BFX_SPACE, no});
        n += block != NULL && block->oldest_modification != 0 && block->observer == INDEX_ID;
    }
    return n;
}

/** An interrupted load leaves nothing: its dirty pages are given up, its numbers are freed through
the segments. */
static void test_interrupted(void **state)
{
    btr_fixture_t *fx = bfx_create(4096, 64, BFX_SPACE);
    btr_t btr = {INDEX_ID, BFX_SPACE, FIL_NULL, 8, 1800, false, 0};
    (void)state;
    tree_create(&fx->env, fx->pool, &btr);
    btr_bulk_t *bulk = NULL;
    ASSERT_OK(fx, btr_bulk_create(fx->pool, &btr, INDEX_ID, 100, &bulk));
    byte rec[1800];
    for (uint32_t k = 0; k < 61; k++) {
        rec_set(&btr, k, rec);
        ASSERT_OK(fx, btr_bulk_add(bulk, rec, btr.leaf_rec_size));
    }
    btr_bulk_free(bulk);
    assert_true(n_stamped(fx) > 20);
    ASSERT_OK(fx, buf_observer_drop(fx->pool, BFX_SPACE, INDEX_ID));
    assert_int_equal(n_stamped(fx), 0);
    tree_free(&fx->env, fx->pool, &btr);
    assert_int_equal(space_n_used(&fx->env, fx->pool, BFX_SPACE), 1);
    bfx_destroy(fx);
}

/** A load that is given up after its last page, with a root that was never written: that one stays
dirty, because the log alone has its initialisation. */
static void test_interrupted_at_the_end(void **state)
{
    btr_fixture_t *fx = bfx_create(4096, 64, BFX_SPACE);
    load_t l = {4096, 8, 1800, 9, 100, false};
    btr_t btr = load(fx, &l);

    (void)state;
    const buf_block_t *root = buf_page_peek(fx->pool, (page_id_t){BFX_SPACE, btr.root});
    lsn_t oldest = root->oldest_modification;
    assert_true(oldest != 0 && root->logged);
    ASSERT_OK(fx, buf_observer_drop(fx->pool, BFX_SPACE, INDEX_ID));
    assert_int_equal(n_stamped(fx), 0);
    assert_true(root->oldest_modification == oldest && root->observer == 0);
    tree_free(&fx->env, fx->pool, &btr);
    assert_int_equal(space_n_used(&fx->env, fx->pool, BFX_SPACE), 1);
    bfx_destroy(fx);
}

/** The page that the root is a copy of is free, in no log record of its own, and of no observer: it
is dirty and may be written at any time. */
static void test_topmost_page(void **state)
{
    btr_fixture_t *fx = bfx_create(4096, 64, BFX_SPACE);
    load_t l = {4096, 8, 1800, 9, 100, false};
    btr_t btr = load(fx, &l);
    (void)state;
    uint32_t n_stray = 0;
    for (page_no_t no = 0; no < bfx_space_pages(fx, BFX_SPACE); no++) {
        buf_block_t *block = buf_page_peek(fx->pool, (page_id_t){BFX_SPACE, no});

        if (block != NULL && !page_is_used(&fx->env, fx->pool, block->id)) {
            assert_true(block->oldest_modification != 0);
            assert_false(block->freed);
            assert_int_equal(block->observer, 0);
            assert_int_equal(page_level(block->frame), 1);
            n_stray++;
        }
    }
    assert_int_equal(n_stray, 1);
    assert_int_equal(buf_page_peek(fx->pool, (page_id_t){BFX_SPACE, btr.root})->observer, INDEX_ID);
    bfx_destroy(fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads),        cmocka_unit_test(test_order),
        cmocka_unit_test(test_interrupted),  cmocka_unit_test(test_interrupted_at_the_end),
        cmocka_unit_test(test_topmost_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
