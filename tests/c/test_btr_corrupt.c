/** btr on damaged pages: each kind of damage gives DB_CORRUPTION and a message, and arbitrary bytes
never crash or hang an operation. Checksums do not help here: the damage is in pages as they come
from a hostile image. */
#include "test_btr_fixture.h"
#include "test_random.h"

#define INDEX_ID 60U
#define N_KEYS 400U
#define KEY_LEN 150U
#define REC_SIZE 1500U

typedef struct tree {
    btr_fixture_t *fx;
    btr_t btr;
} tree_t;

static void key_set(uint32_t k, byte *key)
{
    memset(key, 0, KEY_LEN);
    mach_write_4(key, k);
}

/** Three levels: 25 pointers a node, 2 records a leaf. Only even keys are there. */
static tree_t tree_create_full(void)
{
    tree_t t = {bfx_create(4096, 400, BFX_SPACE),
                {INDEX_ID, BFX_SPACE, FIL_NULL, KEY_LEN, REC_SIZE, false, 0}};
    tree_create(&t.fx->env, t.fx->pool, &t.btr);
    byte rec[REC_SIZE] = {0};
    for (uint32_t k = 0; k < N_KEYS; k++) {
        key_set(2 * ((k * 7919) % N_KEYS), rec + 1);
        ASSERT_OK(t.fx, btr_insert(t.fx->pool, &t.btr, rec, t.btr.leaf_rec_size));
    }
    byte *root = bfx_page(t.fx, BFX_SPACE, t.btr.root);
    assert_int_equal(page_level(root), 2);
    free(root);
    return t;
}

/** The path of page numbers to a key: path[level]. */
static void tree_path(tree_t *t, uint32_t k, page_no_t path[3])
{
    byte key[KEY_LEN];

    key_set(k, key);
    path[2] = t->btr.root;
    for (uint32_t level = 2; level > 0; level--) {
        byte *page = bfx_page(t->fx, BFX_SPACE, path[level]);
        bool exact = false;
        uint32_t slot = page_search(page, 4096, key, KEY_LEN, &exact);
        const byte *rec = page_rec(page, 4096, exact ? slot : slot - 1);

        path[level - 1] = mach_read_4(rec + 1 + KEY_LEN);
        free(page);
    }
}

/** Puts bytes into a page of the pool as if it had been read like that. */
static void tree_damage(tree_t *t, page_no_t page_no, uint32_t offset, const byte *bytes,
                        uint32_t len)
{
    buf_block_t *block = NULL;

    ASSERT_OK(t->fx, buf_page_get(t->fx->pool, (page_id_t){BFX_SPACE, page_no}, &block));
    memcpy(block->frame + offset, bytes, len);
    block->validated = 0;
    buf_block_unfix(t->fx->pool, block);
}

static void expect_get(tree_t *t, uint32_t k, const char *message)
{
    byte key[KEY_LEN];
    key_set(k, key);
    uint32_t len = 0;
    byte rec[REC_SIZE];
    assert_int_equal(btr_get(t->fx->pool, &t->btr, key, rec, &len), DB_CORRUPTION);
    assert_non_null(strstr(t->fx->env.err.msg, "space 5 page"));
    if (strstr(t->fx->env.err.msg, message) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", t->fx->env.err.msg, message);
    }
}

/** Each broken header field or slot is named. */
static void test_named_damage(void **state)
{
    static const struct {
        uint32_t level;
        uint32_t offset;
        byte bytes[8];
        uint32_t len;
        const char *message;
    } CASES[] = {
        {0, FIL_PAGE_TYPE, {0, 2}, 2, "not an index page"},
        {1, PAGE_INDEX_ID, {0, 0, 0, 0, 0, 0, 0, 9}, 8, "another index"},
        {1, PAGE_LEVEL, {0}, 1, "wrong level"},
        {1, PAGE_LEVEL, {2}, 1, "wrong level"},
        {2, PAGE_LEVEL, {200}, 1, "wrong level"},
        {0, PAGE_REC_SIZE, {0, 20}, 2, "record shape"},
        {1, PAGE_KEY_LEN, {0, 20}, 2, "record shape"},
        {0, PAGE_N_RECS, {0, 0}, 2, "no records"},
        {2, FIL_PAGE_NEXT, {0, 0, 0, 3}, 4, "sibling"},
        {0, 4096 - 10, {0xFF, 0xF0}, 2, "slot"},
        {1, PAGE_FREE, {0, 99}, 2, "free"},
        {0, PAGE_SEG_LEAF, {0, 0, 0, 5}, 4, "segment header"},
        {1, FIL_PAGE_PREV, {0xFF, 0xFF, 0xFF, 0xFF}, 4, "minimum record"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        tree_t t = tree_create_full();
        page_no_t path[3];

        tree_path(&t, N_KEYS, path);
        tree_damage(&t, path[CASES[i].level], CASES[i].offset, CASES[i].bytes, CASES[i].len);
        expect_get(&t, N_KEYS, CASES[i].message);
        assert_false(t.fx->env.io_failed);
        bfx_destroy(t.fx);
    }
}

/** A child pointer out of the space, to the root or to an own ancestor, and swapped keys are
refused. */
static void test_bad_contents(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        tree_t t = tree_create_full();
        page_no_t path[3];
        tree_path(&t, N_KEYS, path);
        byte *page = bfx_page(t.fx, BFX_SPACE, path[1]);
        byte bytes[KEY_LEN] = {0};
        uint32_t offset;
        for (uint32_t slot = 0; slot < page_n_recs(page); slot++) {
            offset = page_rec_offset(page, 4096, slot);
            if (i < 3) {
                const page_no_t to[] = {FIL_NULL - 1, t.btr.root, path[1]};

                mach_write_4(bytes, to[i]);
                tree_damage(&t, path[1], offset + 1 + KEY_LEN, bytes, 4);
            }
        }
        if (i == 3) {
            offset = page_rec_offset(page, 4096, page_n_recs(page) - 1);
            tree_damage(&t, path[1], offset + 1, bytes, KEY_LEN);
        }
        free(page);
        byte key[KEY_LEN];
        key_set(N_KEYS, key);
        byte rec[REC_SIZE];
        uint32_t len = 0;
        assert_int_equal(btr_get(t.fx->pool, &t.btr, key, rec, &len), DB_CORRUPTION);
        assert_int_equal(btr_insert(t.fx->pool, &t.btr,
                                    (memcpy(rec + 1, key, KEY_LEN), rec[0] = 0, rec), REC_SIZE),
                         DB_CORRUPTION);
        assert_int_equal(btr_delete(t.fx->pool, &t.btr, key), DB_CORRUPTION);
        assert_false(t.fx->env.io_failed);
        bfx_destroy(t.fx);
    }
}

/** A circular chain of leaves ends a scan with an error, and so does one that does not link back.
*/
static void test_circular_chain(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        tree_t t = tree_create_full();
        page_no_t a[3];
        tree_path(&t, 100, a);
        page_no_t b[3];
        tree_path(&t, 300, b);
        byte bytes[4];
        mach_write_4(bytes, a[0]);
        tree_damage(&t, b[0], FIL_PAGE_NEXT, bytes, 4);
        if (i == 1) {
            mach_write_4(bytes, b[0]);
            tree_damage(&t, a[0], FIL_PAGE_PREV, bytes, 4);
        }
        btr_cursor_t cursor;
        dberr_t err = btr_cursor_open(&cursor, t.fx->pool, &t.btr, NULL, 0);
        if (i == 1) {
            btr_cursor_close(&cursor);
            byte key[KEY_LEN];
            key_set(100, key);
            err = btr_cursor_open(&cursor, t.fx->pool, &t.btr, key, KEY_LEN);
        }
        const byte *rec = NULL;
        uint32_t n = 0;
        while (err == DB_SUCCESS) {
            err = btr_cursor_next(&cursor, &rec);
            n++;
        }
        assert_int_equal(err, DB_CORRUPTION);
        assert_non_null(strstr(t.fx->env.err.msg, i == 0 ? "link back" : "circular"));
        assert_true(n < 10000);
        btr_cursor_close(&cursor);
        bfx_destroy(t.fx);
    }
}

/** Pages of extents whose descriptors name another segment are not freed, and nothing was changed
before that was found out. */
static void test_wrong_owner(void **state)
{
    tree_t t = tree_create_full();
    uint32_t covers = xdes_page_covers(4096, FX_EXTENT_PAGES);

    (void)state;
    byte other[8];
    mach_write_8(other, 99);
    for (page_no_t no = 0; no < bfx_space_pages(t.fx, BFX_SPACE); no += FX_EXTENT_PAGES) {
        byte *page = bfx_page(t.fx, BFX_SPACE, no - no % covers);
        const byte *xdes = xdes_in(page, 4096, no);

        if (mach_read_4(xdes + XDES_STATE) == XDES_STATE_FSEG) {
            tree_damage(&t, no - no % covers, (uint32_t)(xdes - page) + XDES_ID, other, 8);
        }
        free(page);
    }
    byte key[KEY_LEN];
    dberr_t err = DB_SUCCESS;
    for (uint32_t k = 0; k < 40 && err == DB_SUCCESS; k++) {
        key_set(2 * k, key);
        err = btr_delete(t.fx->pool, &t.btr, key);
    }
    assert_int_equal(err, DB_CORRUPTION);
    assert_non_null(strstr(t.fx->env.err.msg, "does not belong to its segment"));
    assert_false(t.fx->env.io_failed);
    bfx_destroy(t.fx);
}

/** Changes a few random bytes of a random page, more often where they hurt. */
static void fuzz_page(tree_t *t, uint64_t *seed)
{
    uint32_t n = 1 + (uint32_t)(random_star(seed) % 4);

    for (uint32_t i = 0; i < n; i++) {
        page_no_t page_no = (page_no_t)(random_star(seed) % bfx_space_pages(t->fx, BFX_SPACE));
        uint32_t offset = (uint32_t)(random_star(seed) % 4096);
        byte bytes[4];
        mach_write_4(bytes, (uint32_t)random_star(seed));
        switch (random_star(seed) % 5) {
        case 0:
            offset = FIL_PAGE_PREV + 4 * (offset % 2);
            mach_write_4(bytes, (uint32_t)(random_star(seed) % 230));
            break;
        case 1:
            offset = PAGE_N_RECS + offset % 26;
            break;
        case 2:
            offset = 4096 - 8 - 4 * (1 + offset % 8);
            break;
        case 3: /* the child of some node pointer */
            offset = PAGE_DATA + (1 + KEY_LEN + 4) * (offset % 25) + 1 + KEY_LEN;
            mach_write_4(bytes, (uint32_t)(random_star(seed) % 230));
            break;
        default:
            break;
        }
        if (offset > 4092) {
            offset = 4092;
        }
        buf_block_t *block = NULL;
        if (buf_page_get(t->fx->pool, (page_id_t){BFX_SPACE, page_no}, &block) == DB_SUCCESS) {
            memcpy(block->frame + offset, bytes, sizeof(bytes));
            block->validated = 0;
            buf_block_unfix(t->fx->pool, block);
        }
    }
}

static void fuzz_ops(tree_t *t, uint64_t *seed)
{
    uint32_t len = 0;
    byte rec[REC_SIZE] = {0};
    dberr_t err;
    for (uint32_t i = 0; i < 60 && !t->fx->env.io_failed; i++) {
        key_set((uint32_t)(random_star(seed) % (2 * N_KEYS)), rec + 1);
        switch (random_star(seed) % 3) {
        case 0:
            err = btr_get(t->fx->pool, &t->btr, rec + 1, rec, &len);
            rec[0] = 0;
            break;
        case 1:
            err = btr_insert(t->fx->pool, &t->btr, rec, t->btr.leaf_rec_size);
            break;
        default:
            err = btr_delete(t->fx->pool, &t->btr, rec + 1);
            break;
        }
        assert_true(err == DB_SUCCESS || err == DB_NOT_FOUND || err == DB_DUPLICATE_KEY
                    || err == DB_CORRUPTION || err == DB_OUT_OF_SPACE || err == DB_IO_ERROR);
    }
    btr_cursor_t cursor;
    err = btr_cursor_open(&cursor, t->fx->pool, &t->btr, NULL, 0);
    const byte *found = NULL;
    uint32_t n = 0;
    while (err == DB_SUCCESS) {
        err = btr_cursor_next(&cursor, &found);
        assert_true(++n < 1000000);
    }
    btr_cursor_close(&cursor);
}

/** No bytes make an operation crash, loop or return an unknown status. */
static void test_fuzz(void **state)
{
    (void)state;
    uint64_t seed = 20240607;
    uint32_t refused = 0;
    for (uint32_t round = 0; round < 150; round++) {
        tree_t t = tree_create_full();

        fuzz_page(&t, &seed);
        fuzz_ops(&t, &seed);
        refused += t.fx->env.err.msg[0] != 0;
        bfx_destroy(t.fx);
    }
    assert_true(refused > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_named_damage),   cmocka_unit_test(test_bad_contents),
        cmocka_unit_test(test_circular_chain), cmocka_unit_test(test_wrong_owner),
        cmocka_unit_test(test_fuzz),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
