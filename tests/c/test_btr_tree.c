/** btr: inserts, deletes, updates and scans against a sorted model, over many record shapes; the
tree's shape is walked independently after each phase. */
#include "test_btr_fixture.h"
#include "test_random.h"

#define INDEX_ID 40U

typedef struct shape {
    const char *name;
    uint32_t page_size;
    uint32_t key_len;
    uint32_t rec_size;
    uint32_t domain; /* keys 0 ... domain - 1 */
    bool varies;     /* rec_size is that of the longest record */
} shape_t;

static const shape_t SHAPES[] = {
    {"two records a leaf", 4096, 8, 1800, 600, false},
    {"two records a leaf, five pointers a node", 4096, 768, 1900, 700, false},
    {"fifteen of each", 4096, 263, 264, 3000, false},
    {"tiny records", 4096, 3, 4, 30000, false},
    {"wide leaves on 16k", 16384, 8, 5000, 500, false},
    {"many records on 16k", 16384, 16, 40, 12000, false},
    {"any size up to half a page", 4096, 8, 1998, 800, true},
    {"any small size", 4096, 20, 90, 4000, true},
    {"any size on 16k", 16384, 263, 8142, 400, true},
};

typedef struct model {
    btr_fixture_t *fx;
    const shape_t *shape;
    btr_t btr;
    uint32_t *version; /* per key, 0 = absent */
    uint32_t n;
    uint32_t stamp;
    uint64_t seed;
    uint64_t log_max; /* most log bytes of one insert */
} model_t;

/** Key bytes: number, big-endian, in the last 4 bytes at most, in front of it a constant. */
static void key_of(const model_t *m, uint32_t k, byte *key)
{
    uint32_t len = m->shape->key_len;

    memset(key, 'k', len);
    for (uint32_t i = 0; i < 4 && i < len; i++) {
        key[len - 1 - i] = (byte)(k >> (8 * i));
    }
}

/** @return its length */
static uint32_t rec_of(const model_t *m, uint32_t k, uint32_t version, byte *rec)
{
    uint32_t least = m->shape->key_len + 2;
    uint32_t len = m->shape->rec_size;

    if (m->shape->varies) {
        uint32_t drawn = (k * 2654435761U ^ version * 40503U) >> 4;
        uint32_t most = drawn % 5 == 0 ? len : least + (len - least) / 6;

        len = drawn % 13 == 0 ? most : least + drawn % (most - least + 1);
    }
    memset(rec, (int)(version & 0xFF), len);
    rec[0] = 0;
    key_of(m, k, rec + 1);
    return len;
}

static model_t model_create_in(const shape_t *shape, uint64_t seed, uint32_t log_format)
{
    model_t m = {.shape = shape, .seed = seed};

    m.fx = bfx_create_in(shape->page_size, 64, BFX_SPACE, log_format);
    m.btr =
        (btr_t){INDEX_ID, BFX_SPACE, FIL_NULL, shape->key_len, shape->rec_size, shape->varies, 0};
    m.version = calloc(shape->domain, sizeof(*m.version));
    assert_non_null(m.version);
    tree_create(&m.fx->env, m.fx->pool, &m.btr);
    return m;
}

static model_t model_create(const shape_t *shape, uint64_t seed)
{
    return model_create_in(shape, seed, LOG_FORMAT_10_4);
}

static void model_free(model_t *m)
{
    bfx_destroy(m->fx);
    free(m->version);
}

static void model_insert(model_t *m, uint32_t k)
{
    byte rec[8192];
    uint32_t version = m->version[k] != 0 ? 77 : ++m->stamp;
    uint32_t len = rec_of(m, k, version, rec);
    ASSERT_OK(m->fx, buf_log_free_check(m->fx->pool));
    lsn_t before = log_lsn(m->fx->log);
    dberr_t err = btr_insert(m->fx->pool, &m->btr, rec, len);
    if (log_lsn(m->fx->log) - before > m->log_max) {
        m->log_max = log_lsn(m->fx->log) - before;
    }
    if (m->version[k] != 0) {
        assert_int_equal(err, DB_DUPLICATE_KEY);
        return;
    }
    ASSERT_OK(m->fx, err);
    m->version[k] = version;
    m->n++;
}

static void model_delete(model_t *m, uint32_t k)
{
    byte key[1024];
    key_of(m, k, key);
    dberr_t err = btr_delete(m->fx->pool, &m->btr, key);
    if (m->version[k] == 0) {
        assert_int_equal(err, DB_NOT_FOUND);
        return;
    }
    ASSERT_OK(m->fx, err);
    m->version[k] = 0;
    m->n--;
}

static void model_get(model_t *m, uint32_t k)
{
    byte key[1024];
    key_of(m, k, key);
    byte rec[8192];
    uint32_t len = 0;
    dberr_t err = btr_get(m->fx->pool, &m->btr, key, rec, &len);
    if (m->version[k] == 0) {
        assert_int_equal(err, DB_NOT_FOUND);
        return;
    }
    ASSERT_OK(m->fx, err);
    byte want[8192];
    assert_int_equal(len, rec_of(m, k, m->version[k], want));
    assert_memory_equal(rec, want, len);
}

/** The record gets another version, of another size. */
static void model_replace(model_t *m, uint32_t k)
{
    byte rec[8192];
    uint32_t version = ++m->stamp;
    uint32_t len = rec_of(m, k, version, rec);
    dberr_t err = btr_replace(m->fx->pool, &m->btr, rec, len);

    assert_int_equal(err, m->version[k] != 0 ? DB_SUCCESS : DB_NOT_FOUND);
    if (m->version[k] != 0) {
        m->version[k] = version;
    }
}

static void model_update(model_t *m, uint32_t k)
{
    uint32_t offset = 1 + m->shape->key_len;
    uint32_t len = m->shape->rec_size - offset;
    if (m->shape->varies) {
        model_replace(m, k);
        return;
    }
    if (len == 0) {
        return;
    }
    byte key[1024];
    key_of(m, k, key);
    if (m->version[k] != 0) {
        m->version[k] = ++m->stamp;
    }
    byte value[8192];
    memset(value, (int)(m->version[k] & 0xFF), sizeof(value));
    dberr_t err = btr_update(m->fx->pool, &m->btr, key, offset, value, len);
    assert_int_equal(err, m->version[k] != 0 ? DB_SUCCESS : DB_NOT_FOUND);
}

/** Tree shape, keys in order, and a scan that gives the same records as the model. */
static bfx_walk_t model_check(model_t *m)
{
    bfx_walk_t w = bfx_walk_tree(m->fx, &m->btr);
    uint32_t n = 0;
    assert_int_equal(w.n, m->n);
    btr_cursor_t cursor;
    ASSERT_OK(m->fx, btr_cursor_open(&cursor, m->fx->pool, &m->btr, NULL, 0));
    byte want[8192];
    const byte *rec = NULL;
    for (uint32_t k = 0; k < m->shape->domain; k++) {
        if (m->version[k] != 0) {
            uint32_t len = rec_of(m, k, m->version[k], want);
            assert_memory_equal(w.keys + (size_t)n * m->shape->key_len, want + 1,
                                m->shape->key_len);
            ASSERT_OK(m->fx, btr_cursor_next(&cursor, &rec));
            assert_int_equal(cursor.len, len);
            assert_memory_equal(rec, want, len);
            n++;
        }
    }
    assert_int_equal(btr_cursor_next(&cursor, &rec), DB_NOT_FOUND);
    btr_cursor_close(&cursor);
    bfx_walk_free(&w);
    return w;
}

/** A range scan from key k gives the first present key >= k. */
static void model_seek(model_t *m, uint32_t k)
{
    byte key[1024];
    key_of(m, k, key);
    while (k < m->shape->domain && m->version[k] == 0) {
        k++;
    }
    btr_cursor_t cursor;
    ASSERT_OK(m->fx, btr_cursor_open(&cursor, m->fx->pool, &m->btr, key, m->shape->key_len));
    const byte *rec = NULL;
    dberr_t err = btr_cursor_next(&cursor, &rec);
    byte want[8192];
    if (k == m->shape->domain) {
        assert_int_equal(err, DB_NOT_FOUND);
    } else {
        ASSERT_OK(m->fx, err);
        assert_memory_equal(rec, want, rec_of(m, k, m->version[k], want));
    }
    btr_cursor_close(&cursor);
}

static uint32_t model_pick(model_t *m)
{
    return (uint32_t)(random_star(&m->seed) % m->shape->domain);
}

/** insert_percent of the operations insert, as many as 90 permits update or read, the rest delete.
*/
static void model_churn(model_t *m, uint32_t ops, uint32_t insert_percent)
{
    for (uint32_t i = 0; i < ops; i++) {
        uint32_t dice = (uint32_t)(random_star(&m->seed) % 100);
        uint32_t k = model_pick(m);

        if (dice < insert_percent) {
            model_insert(m, k);
        } else if (dice < 90) {
            model_delete(m, k);
        } else if (dice < 94) {
            model_update(m, k);
        } else if (dice < 97) {
            model_get(m, k);
        } else {
            model_seek(m, k);
        }
    }
}

/** Any mix of inserts and deletes leaves a well-formed tree with exactly the model's records, and
no insert logs more than one mtr may. */
static void random_mix(const shape_t *shape, uint64_t seed, uint32_t log_format)
{
    model_t m = model_create_in(shape, seed, log_format);
    uint32_t deepest = 0;
    bfx_walk_t w;

    for (uint32_t round = 0; round < 2; round++) {
        model_churn(&m, shape->domain, 80);
        w = model_check(&m);
        deepest = w.levels > deepest ? w.levels : deepest;
        for (uint32_t i = 0; i < 4; i++) {
            model_churn(&m, shape->domain / 4, 45);
            (void)model_check(&m);
        }
        model_churn(&m, shape->domain * 2, 12);
        (void)model_check(&m);
        for (uint32_t k = 0; k < shape->domain; k++) {
            if (m.version[k] != 0) {
                model_delete(&m, k);
            }
        }
        w = model_check(&m);
        assert_int_equal(w.pages, 1);
        assert_int_equal(w.levels, 1);
    }
    assert_true(deepest >= 2);
    assert_true(m.log_max <= (uint64_t)MTR_LOG_MAX_PAGES * shape->page_size);
    assert_true(m.fx->env.stats.btr_splits > 0);
    assert_int_equal(m.fx->env.stats.pages_reorganized > 0, shape->varies);
    model_free(&m);
}

static void test_random_mix(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(SHAPES) / sizeof(SHAPES[0]); i++) {
        print_message("  %s\n", SHAPES[i].name);
        random_mix(&SHAPES[i], 1000 + i, LOG_FORMAT_10_4);
        random_mix(&SHAPES[i], 1000 + i, LOG_FORMAT_10_5);
    }
}

/** Ascending inserts leave full pages; whatever order deletes come in, the tree stays well-formed
and ends as one empty leaf. */
static void test_ordered(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(SHAPES) / sizeof(SHAPES[0]); i++) {
        const shape_t *shape = &SHAPES[i];
        model_t m = model_create(shape, 7);
        uint32_t n = shape->domain / 2;
        uint32_t capacity = shape->varies ? 0 : page_capacity(shape->page_size, shape->rec_size);
        for (uint32_t k = 0; k < n; k++) {
            model_insert(&m, k);
        }
        bfx_walk_t w = model_check(&m);
        assert_true(shape->varies || w.leaves == (n + capacity - 1) / capacity);
        for (uint32_t k = 0; k < n; k++) {
            model_delete(&m, k);
            if (k % (n / 4) == 0) {
                (void)model_check(&m);
            }
        }
        w = model_check(&m);
        assert_int_equal(w.pages, 1);
        for (uint32_t k = n; k-- > 0;) {
            model_insert(&m, k);
        }
        (void)model_check(&m);
        for (uint32_t k = n; k-- > 0;) {
            model_delete(&m, k);
            if (k % (n / 4) == 0) {
                (void)model_check(&m);
            }
        }
        w = model_check(&m);
        assert_int_equal(w.pages, 1);
        model_free(&m);
    }
}

/** Deletes give space back: a tree thinned to a tenth has fewer pages, thanks to merges. */
static void test_merges(void **state)
{
    const shape_t *shape = &SHAPES[2];
    model_t m = model_create(shape, 9);
    (void)state;
    for (uint32_t k = 0; k < shape->domain; k++) {
        model_insert(&m, k);
    }
    uint32_t full = model_check(&m).pages;
    for (uint32_t k = 0; k < shape->domain; k++) {
        if (k % 10 != 0) {
            model_delete(&m, k);
        }
    }
    bfx_walk_t w = model_check(&m);
    assert_true(w.pages * 3 < full);
    assert_true(m.fx->env.stats.btr_merges > 0);
    model_free(&m);
}

/** A prefix finds its first record even where equal prefixes span leaves. */
static void test_prefix(void **state)
{
    btr_fixture_t *fx = bfx_create(4096, 64, BFX_SPACE);
    btr_t btr = {INDEX_ID, BFX_SPACE, FIL_NULL, 8, 1800, false, 0};
    (void)state;
    tree_create(&fx->env, fx->pool, &btr);
    byte rec[1800] = {0};
    for (uint32_t i = 0; i < 200; i++) {
        mach_write_4(rec + 1, i / 20 * 2);
        mach_write_4(rec + 5, i % 20);
        ASSERT_OK(fx, btr_insert(fx->pool, &btr, rec, btr.leaf_rec_size));
    }
    byte prefix[4];
    for (uint32_t p = 0; p < 20; p++) {
        uint32_t want = (p + 1) / 2 * 2;

        mach_write_4(prefix, p);
        btr_cursor_t cursor;
        ASSERT_OK(fx, btr_cursor_open(&cursor, fx->pool, &btr, prefix, sizeof(prefix)));
        const byte *found = NULL;
        if (want == 20) {
            assert_int_equal(btr_cursor_next(&cursor, &found), DB_NOT_FOUND);
        } else {
            ASSERT_OK(fx, btr_cursor_next(&cursor, &found));
            assert_int_equal(mach_read_4(found + 1), want);
            assert_int_equal(mach_read_4(found + 5), 0);
        }
        btr_cursor_close(&cursor);
    }
    bfx_destroy(fx);
}

/** A tree gives back every page but those of descriptors, and delete marks are updates of the info
byte. */
static void test_free_and_mark(void **state)
{
    model_t m = model_create(&SHAPES[0], 11);
    (void)state;
    model_churn(&m, 500, 80);
    model_insert(&m, 3);
    byte key[8];
    key_of(&m, 3, key);
    byte mark = REC_INFO_DELETE_MARK;
    ASSERT_OK(m.fx, btr_update(m.fx->pool, &m.btr, key, 0, &mark, 1));
    byte rec[1800];
    uint32_t len = 0;
    ASSERT_OK(m.fx, btr_get(m.fx->pool, &m.btr, key, rec, &len));
    assert_true(rec_is_deleted(rec));
    tree_free(&m.fx->env, m.fx->pool, &m.btr);
    uint32_t limit = space_field(&m.fx->env, m.fx->pool, BFX_SPACE, FSP_FREE_LIMIT);
    uint32_t covers = xdes_page_covers(4096, FX_EXTENT_PAGES);
    assert_true(limit > covers);
    assert_int_equal(space_n_used(&m.fx->env, m.fx->pool, BFX_SPACE),
                     (limit + covers - 1) / covers);
    model_free(&m);
}

/** A key behind the last record, which can be that of a row that is gone, is not at the end. */
static void test_position_behind_all(void **state)
{
    model_t m = model_create(&SHAPES[0], 12);
    (void)state;
    byte key[8];
    key_of(&m, m.shape->domain, key);
    uint32_t before = 0;
    for (uint32_t k = 0; k < 40; k++) {
        model_insert(&m, k);
        ASSERT_OK(m.fx, btr_key_position(m.fx->pool, &m.btr, key, &before));
        assert_in_range(before, 9990, 9999);
    }
    model_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_mix),    cmocka_unit_test(test_ordered),
        cmocka_unit_test(test_merges),        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_free_and_mark), cmocka_unit_test(test_position_behind_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
