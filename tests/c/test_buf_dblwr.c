/** buf: the doublewrite batch, its order, its skips, and what a failure leaves. */
#include "page/page_index.h"
#include "test_buf_fixture.h"

static int setup_off(void **state)
{
    *state = fx_create(4096, 64, false);
    return 0;
}

/** I22, I4: log durable, area write, area fsync, home writes by page id, fsync of each file once;
every batch starts at the
beginning of the area. */
static void test_batch_order(void **state)
{
    buf_fixture_t *fx = *state;
    fx_new_page(fx, 2, 3);
    fx_new_page(fx, 1, 9);
    fx_new_page(fx, 1, 4);
    lsn_t lsn = log_lsn(fx->base.log);
    char durable[64];
    snprintf(durable, sizeof(durable), "# log_durable lsn=%" PRIu64, lsn);
    FX_OK(fx, buf_flush_all(fx->pool));
    rec_assert_order(&fx->base.rec, 0, "# point name=dblwr.batch_start", "sync " LOG_FILE_NAME,
                     durable, "# point name=dblwr.log_durable", "# dblwr_batch pages=3",
                     "write ib_dblwr 0 12288", "# point name=dblwr.area_written", "sync ib_dblwr",
                     "# dblwr_synced", "# point name=dblwr.area_synced",
                     "# page_write space=1 page=4", "write t1.ibd 16384",
                     "# page_write space=1 page=9", "write t1.ibd 36864",
                     "# page_write space=2 page=3", "write t2.ibd 12288", "sync t1.ibd",
                     "sync t2.ibd", "# point name=dblwr.home_synced", "# dblwr_done", NULL);
    assert_int_equal(rec_count(&fx->base.rec, 0, "write ib_dblwr"), 1);
    assert_int_equal(rec_count(&fx->base.rec, 0, "sync t1.ibd"), 1);
    assert_int_equal(fx->base.env.stats.data_writes, 6);
    assert_int_equal(fx->base.env.stats.dblwr_writes, 3);
    assert_int_equal(fx->base.env.stats.dblwr_batches, 1);
    assert_int_equal(buf_dirty_pages(fx->pool), 0);

    uint32_t from = fx->base.rec.n;
    fx_change_page(fx, 1, 4, 77);
    FX_OK(fx, buf_flush_all(fx->pool));
    rec_assert_order(&fx->base.rec, from, "# dblwr_batch pages=1", "write ib_dblwr 0 4096",
                     "# dblwr_done", NULL);
    assert_int_equal(fx_home_byte(fx, "t1.ibd", 4), 77);
}

/** More pages than the region holds are split; each part is a complete batch. */
static void test_batch_split(void **state)
{
    buf_fixture_t *fx = *state;
    for (page_no_t i = 0; i < 19; i++) {
        fx_new_page(fx, 1, 30 - i);
    }
    FX_OK(fx, buf_flush_all(fx->pool));
    rec_assert_order(&fx->base.rec, 0, "# dblwr_batch pages=8", "# dblwr_done",
                     "# dblwr_batch pages=8", "# dblwr_done", "# dblwr_batch pages=3",
                     "# dblwr_done", NULL);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# page_write"), 19);
}

/** I13: option and flag decide, nothing else. */
static void assert_skip(bool doublewrite, bool init_on_flush, const char *how)
{
    buf_fixture_t *fx = fx_create(4096, 64, doublewrite);
    buf_block_t *block = fx_new_page(fx, 1, 5);
    block->init_on_flush = init_on_flush;
    block->init_lsn = block->newest_modification;
    FX_OK(fx, buf_flush_all(fx->pool));
    uint32_t at = rec_find(&fx->base.rec, 0, "# page_write space=1 page=5");
    assert_int_not_equal(at, UINT32_MAX);
    assert_non_null(strstr(fx->base.rec.lines[at], how));
    bool used = strstr(how, "used") != NULL;
    assert_int_equal(rec_count(&fx->base.rec, 0, "write ib_dblwr"), used ? 1 : 0);
    assert_int_equal(fx->base.env.stats.dblwr_skipped_init, strstr(how, "init") != NULL ? 1 : 0);
    assert_false(block->init_on_flush);

    /* Only the first flush after the initialisation skips. */
    uint32_t from = fx->base.rec.n;
    fx_change_page(fx, 1, 5, 1);
    FX_OK(fx, buf_flush_all(fx->pool));
    at = rec_find(&fx->base.rec, from, "# page_write space=1 page=5");
    assert_non_null(
        strstr(fx->base.rec.lines[at], doublewrite ? "dblwr=used why=batch" : "why=off"));
    fx_destroy(fx);
}

static void test_skip_rules(void **state)
{
    (void)state;
    assert_skip(true, false, "dblwr=used why=batch");
    assert_skip(true, true, "dblwr=skip why=init");
    assert_skip(false, false, "dblwr=skip why=off");
    assert_skip(false, true, "dblwr=skip why=off");
}

/** Skipping pages share a batch with the others: one area write without them, one fsync for all. */
static void test_mixed_batch(void **state)
{
    buf_fixture_t *fx = *state;
    fx_new_page(fx, 1, 5)->init_on_flush = true;
    fx_new_page(fx, 1, 6);
    FX_OK(fx, buf_flush_all(fx->pool));
    rec_assert_order(&fx->base.rec, 0, "# dblwr_batch pages=1", "write ib_dblwr 0 4096",
                     "sync ib_dblwr", "# page_write space=1 page=5", "write t1.ibd 20480",
                     "# page_write space=1 page=6", "write t1.ibd 24576", "sync t1.ibd",
                     "# dblwr_done", NULL);
    assert_int_equal(fx_home_byte(fx, "t1.ibd", 5), 5);
    assert_int_equal(fx_home_byte(fx, "t1.ibd", 6), 6);
    assert_int_equal(fx_home_byte(fx, "ib_dblwr", 0), 6);
}

/** Where the storage promises to write as much as a page whole there is no area; a smaller promise
changes nothing. */
static void test_atomic_writes(void **state)
{
    buf_fixture_t *fx = *state;
    fx_destroy(fx);
    for (uint32_t unit = 4096; unit <= 8192; unit *= 2) {
        fx = fx_create(8192, 64, true);
        buf_pool_free(fx->pool);
        fx->options.atomic_write_unit = unit;
        fx_open_pool(fx);
        uint32_t from = fx->base.rec.n;
        fx_new_page(fx, 1, 5);
        FX_OK(fx, buf_flush_all(fx->pool));
        assert_int_equal(rec_count(&fx->base.rec, from, "write ib_dblwr"), unit == 4096);
        rec_assert_order(&fx->base.rec, from, "sync ib_logfile0", "write t1.ibd 40960",
                         "sync t1.ibd", NULL);
        assert_int_equal(fx->base.env.stats.dblwr_skipped_atomic, unit == 8192);
        if (unit == 4096) {
            fx_destroy(fx);
        }
    }
    *state = fx;
}

/** I15: a freed page is not handed out, but written like any other dirty page. */
static void test_freed_is_written(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *block = fx_new_page(fx, 1, 5);
    block->freed = true;
    buf_block_t *other = NULL;
    assert_int_equal(buf_page_get(fx->pool, fx_id(1, 5), &other), DB_CORRUPTION);
    FX_OK(fx, buf_flush_all(fx->pool));
    rec_assert_order(&fx->base.rec, 0, "write ib_dblwr 0 4096", "# page_write space=1 page=5",
                     "write t1.ibd 20480", "sync t1.ibd", NULL);
    assert_int_equal(fx_home_byte(fx, "t1.ibd", 5), 5);
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
    assert_int_equal(buf_page_get(fx->pool, fx_id(1, 5), &other), DB_CORRUPTION);
}

/** The marker tells what the page is: type, level, index, load. */
static void test_marker_of_index_page(void **state)
{
    buf_fixture_t *fx = *state;
    buf_block_t *block = NULL;
    FX_OK(fx, buf_page_create(fx->pool, fx_id(1, 5), &block));
    fil_page_init(block->frame, 4096, block->id, FIL_PAGE_INDEX);
    page_shape_t shape = {.level = 2, .index_id = 33, .rec_size = 13, .key_len = 8};
    assert_int_equal(page_index_create(block->frame, 4096, &shape), DB_SUCCESS);
    fx_touch(fx, block, 0);
    block->observer = 33;
    lsn_t lsn = block->newest_modification;
    lsn_t oldest = block->oldest_modification;
    buf_block_unfix(fx->pool, block);
    FX_OK(fx, buf_flush_all(fx->pool));
    char line[256];
    snprintf(line, sizeof(line),
             "# page_write space=1 page=5 lsn=%" PRIu64
             " type=index level=2 index=33 dblwr=used why=batch init_lsn=0 load=1"
             " oldest=%" PRIu64 " pos=0",
             lsn, oldest);
    uint32_t at = rec_find(&fx->base.rec, 0, "# page_write");
    assert_string_equal(fx->base.rec.lines[at], line);
    assert_int_equal(block->observer, 0);
}

/** I23: after a failed write or fsync the pages that are not home stay dirty, and nothing more is
written.
*/
static void assert_failure(const char *prefix, uint32_t n_dirty)
{
    buf_fixture_t *fx = fx_create(4096, 64, true);
    fx_new_page(fx, 1, 5);
    fx_new_page(fx, 1, 6);
    lsn_t checkpoint = log_checkpoint_lsn(fx->base.log);
    fx->base.rec.fail_prefix = prefix;
    assert_int_equal(buf_flush_all(fx->pool), DB_IO_ERROR);
    assert_true(fx->base.env.io_failed);
    assert_int_equal(buf_dirty_pages(fx->pool), n_dirty);
    fx->base.rec.fail_prefix = NULL;
    uint32_t from = fx->base.rec.n;
    assert_int_equal(buf_flush_all(fx->pool), DB_IO_ERROR);
    assert_int_equal(buf_checkpoint(fx->pool), DB_IO_ERROR);
    assert_int_equal(buf_log_free_check(fx->pool), DB_IO_ERROR);
    assert_int_equal(rec_count(&fx->base.rec, from, "write "), 0);
    assert_int_equal(rec_count(&fx->base.rec, from, "sync "), 0);
    assert_int_equal(log_checkpoint_lsn(fx->base.log), checkpoint);
    fx_destroy(fx);
}

static void test_poison(void **state)
{
    (void)state;
    assert_failure("write ib_dblwr", 2);
    assert_failure("sync ib_dblwr", 2);
    assert_failure("write " LOG_FILE_NAME, 2);
    assert_failure("sync " LOG_FILE_NAME, 2);
    assert_failure("write t1.ibd 24576", 1);
    assert_failure("sync t1.ibd", 0);
}

typedef struct copies {
    uint32_t n;
    page_id_t id[64];
    lsn_t lsn[64];
} copies_t;

static dberr_t collect_copy(void *ctx, page_id_t id, lsn_t lsn, const byte *page, const byte *image)
{
    (void)image;
    copies_t *copies = ctx;
    assert_true(copies->n < 64);
    assert_int_equal(page[100], id.page_no);
    copies->id[copies->n] = id;
    copies->lsn[copies->n++] = lsn;
    return DB_SUCCESS;
}

/** Recovery sees every valid copy, whatever the size of the region is now, and no damaged one. */
static void test_each_copy(void **state)
{
    buf_fixture_t *fx = *state;
    copies_t copies = {0};
    FX_OK(fx, buf_dblwr_each_copy(&fx->base.env, 4096, collect_copy, &copies));
    assert_int_equal(copies.n, 0);
    for (page_no_t i = 1; i <= 8; i++) {
        fx_new_page(fx, 1, i);
    }
    FX_OK(fx, buf_flush_all(fx->pool));
    fx_new_page(fx, 1, 9)->observer = 20;
    fx_new_page(fx, 1, 10)->observer = 20;
    FX_OK(fx, flush_load(fx->pool, 1, 20));
    uint64_t size = 0;
    byte *bytes = image_os_bytes(fx->base.os, DBLWR_FILE_NAME, &size);
    assert_int_equal(size, 16 * 4096);
    bytes[2 * 4096 + 2000] ^= 1; /* page 3 */
    buf_pool_free(fx->pool);
    fx->options.dblwr_pages = 16;
    fx_open_pool(fx);
    FX_OK(fx, buf_dblwr_each_copy(&fx->base.env, 4096, collect_copy, &copies));
    assert_int_equal(copies.n, 9);
    for (uint32_t i = 0; i < 9; i++) {
        assert_int_equal(copies.id[i].page_no, i < 2 ? i + 1 : i + 2);
        assert_true(copies.lsn[i] >= LOG_START_LSN);
    }
}

/** Without doublewrite there is no area file; the log still comes first and the fsync last. */
static void test_doublewrite_off(void **state)
{
    buf_fixture_t *fx = *state;
    bool exists = true;
    FX_OK(fx, env_exists(&fx->base.env, DBLWR_FILE_NAME, &exists));
    assert_false(exists);
    fx_new_page(fx, 1, 5);
    FX_OK(fx, buf_flush_all(fx->pool));
    rec_assert_order(&fx->base.rec, 0, "sync " LOG_FILE_NAME, "# page_write space=1 page=5",
                     "write t1.ibd 20480", "sync t1.ibd", NULL);
    assert_int_equal(rec_count(&fx->base.rec, 0, "# dblwr_"), 0);
    copies_t copies = {0};
    FX_OK(fx, buf_dblwr_each_copy(&fx->base.env, 4096, collect_copy, &copies));
    assert_int_equal(copies.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_batch_order, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_batch_split, fx_setup, fx_teardown),
        cmocka_unit_test(test_skip_rules),
        cmocka_unit_test_setup_teardown(test_mixed_batch, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_atomic_writes, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_freed_is_written, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_marker_of_index_page, fx_setup, fx_teardown),
        cmocka_unit_test(test_poison),
        cmocka_unit_test_setup_teardown(test_each_copy, fx_setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_doublewrite_off, setup_off, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
