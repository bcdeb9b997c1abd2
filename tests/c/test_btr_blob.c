/** Long values: a chain is stored, read and freed page by page; what is left at any point is what
the reference says; damaged pages are refused. */
#include "btr/btr_blob.h"
#include "test_btr_fixture.h"

#define INDEX_ID 40U
#define KEY_LEN 8U
#define REF_AT (1U + KEY_LEN)
#define REC_LEN (REF_AT + BLOB_REF_SIZE)
#define PART (4096U - 66U)
#define LEN (2 * PART + 100)

typedef struct world {
    btr_fixture_t *fx;
    btr_t btr;
    byte rec[REC_LEN];
    byte value[LEN];
} world_t;

static world_t world_create(void)
{
    world_t w = {.fx = bfx_create(4096, 64, BFX_SPACE),
                 .btr = {INDEX_ID, BFX_SPACE, FIL_NULL, KEY_LEN, 200, true, 0},
                 .rec = {0, 'k', 'e', 'y'}};
    blob_ref_t none = {.space = BFX_SPACE, .page_no = FIL_NULL, .owner = true};
    tree_create(&w.fx->env, w.fx->pool, &w.btr);
    blob_ref_write(w.rec + REF_AT, &none);
    ASSERT_OK(w.fx, btr_insert(w.fx->pool, &w.btr, w.rec, REC_LEN));
    for (uint32_t i = 0; i < LEN; i++) {
        w.value[i] = (byte)(i % 251);
    }
    return w;
}

static void world_store(world_t *w, uint32_t len)
{
    ASSERT_OK(w->fx, btr_blob_store(w->fx->pool, &w->btr, w->rec + 1, REF_AT, w->value, len));
}

static blob_ref_t world_ref(world_t *w)
{
    byte rec[200];
    uint32_t len = 0;
    ASSERT_OK(w->fx, btr_get(w->fx->pool, &w->btr, w->rec + 1, rec, &len));
    assert_int_equal(len, REC_LEN);
    blob_ref_t ref;
    assert_true(blob_ref_read(rec + REF_AT, &ref));
    return ref;
}

/** What was stored is read, whatever its length, and its pages come back to the space. */
static void test_store_read_free(void **state)
{
    static const uint32_t LENS[] = {1, PART - 1, PART, PART + 1, 2 * PART, LEN};
    world_t w = world_create();
    (void)state;
    byte read[LEN];
    uint32_t pages = 0;
    for (uint32_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof(LENS) / sizeof(LENS[0]); i++) {
            world_store(&w, LENS[i]);
            blob_ref_t ref = world_ref(&w);
            assert_int_equal(ref.len, LENS[i]);
            memset(read, 0, sizeof(read));
            ASSERT_OK(w.fx, btr_blob_read(w.fx->pool, &w.btr, &ref, read));
            assert_memory_equal(read, w.value, LENS[i]);
            ASSERT_OK(w.fx, btr_blob_free(w.fx->pool, &w.btr, w.rec + 1, REF_AT));
            assert_int_equal(world_ref(&w).page_no, FIL_NULL);
            /* A repeat finds nothing to do. */
            ASSERT_OK(w.fx, btr_blob_free(w.fx->pool, &w.btr, w.rec + 1, REF_AT));
        }
        pages = round == 0 ? bfx_space_pages(w.fx, BFX_SPACE) : pages;
        assert_int_equal(bfx_space_pages(w.fx, BFX_SPACE), pages);
    }
    bfx_destroy(w.fx);
}

static void damage(world_t *w, page_no_t page_no, uint32_t offset, uint32_t value)
{
    ASSERT_OK(w->fx, buf_log_free_check(w->fx->pool));
    mtr_t mtr;
    mtr_start(&mtr, w->fx->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    ASSERT_OK(w->fx, mtr_page_get(&mtr, (page_id_t){BFX_SPACE, page_no}, &block));
    mtr_write_4(&mtr, block, offset, value);
    mtr_commit(&mtr);
}

/** A chain that cannot be is neither read nor freed, and nothing was changed. */
static void test_damage(void **state)
{
    world_t probe = world_create();
    world_store(&probe, LEN);
    page_no_t first = world_ref(&probe).page_no;
    const struct {
        uint32_t offset;
        uint32_t value;
    } WRONG[] = {{BLOB_PART_LEN, 0},
                 {BLOB_PART_LEN, LEN + 1},
                 {BLOB_PART_LEN, PART + 1},
                 {BLOB_NEXT, FIL_NULL},
                 {BLOB_INDEX_ID + 4, 41}};
    (void)state;
    bfx_destroy(probe.fx);
    for (size_t i = 0; i < sizeof(WRONG) / sizeof(WRONG[0]); i++) {
        world_t w = world_create();
        world_store(&w, LEN);
        blob_ref_t ref = world_ref(&w);
        assert_int_equal(ref.page_no, first);
        damage(&w, first, WRONG[i].offset, WRONG[i].value);
        byte read[LEN];
        assert_int_equal(btr_blob_read(w.fx->pool, &w.btr, &ref, read), DB_CORRUPTION);
        assert_int_equal(btr_blob_free(w.fx->pool, &w.btr, w.rec + 1, REF_AT), DB_CORRUPTION);
        assert_int_equal(world_ref(&w).len, LEN);
        assert_false(w.fx->env.io_failed);
        bfx_destroy(w.fx);
    }
    /* A chain in a circle ends with its length. */
    world_t w = world_create();
    world_store(&w, LEN);
    blob_ref_t ref = world_ref(&w);
    damage(&w, first, BLOB_NEXT, first);
    byte read[LEN];
    assert_int_equal(btr_blob_read(w.fx->pool, &w.btr, &ref, read), DB_CORRUPTION);
    ref.page_no = w.btr.root;
    assert_int_equal(btr_blob_read(w.fx->pool, &w.btr, &ref, read), DB_CORRUPTION);
    bfx_destroy(w.fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store_read_free),
        cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
