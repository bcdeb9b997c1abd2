/** Freed pages with a 10.5 log: a dirty one is not written, and with scrub its home is overwritten
with zeros when the log that frees it is durable, unless it is given out again before. Compressed
pages, and the holes behind them. */
#include "test_mtr_fixture.h"

static int setup(void **state)
{
    os_t *os = image_os_create();
    buf_fixture_t *fx = fx_create_in(os, 4096, 64, true, LOG_FORMAT_10_5);
    buf_pool_free(fx->pool);
    fx->options.scrub = true;
    fx_open_pool(fx);
    *state = fx;
    return 0;
}

/** Page 3 of t1.ibd, home, with byte 100 not zero. */
static void page_at_home(buf_fixture_t *fx)
{
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    fx_mtr_write(fx, MTR_LOG_ALL, fx_id(1, 3), 7);
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(fx_home_byte(fx, "t1.ibd", 3), 7);
}

/** The same where pages are compressed, with byte 101. */
static void page_at_home_compressed(buf_fixture_t *fx)
{
    fx_mtr_create(fx, MTR_LOG_ALL, 0, fx_id(1, 3));
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    FX_OK(fx, mtr_page_get(&mtr, fx_id(1, 3), &block));
    mtr_write_1(&mtr, block, 101, 7);
    mtr_commit(&mtr);
    block->init_on_flush = false; /* with a copy */
    FX_OK(fx, buf_flush_all(fx->pool));
}

static void test_dirty_is_not_written(void **state)
{
    buf_fixture_t *fx = *state;
    page_at_home(fx);
    fx_mtr_write(fx, MTR_LOG_ALL, fx_id(1, 3), 8);
    fx_mtr_free(fx, fx_id(1, 3));
    lsn_t freed = log_lsn(fx->base.log);
    uint32_t from = fx->base.rec.n;
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(buf_dirty_pages(fx->pool), 0);
    assert_int_equal(fx->base.env.stats.pages_freed_unwritten, 1);
    assert_int_equal(rec_count(&fx->base.rec, from, "write ib_dblwr"), 0);
    assert_true(log_flushed_lsn(fx->base.log) >= freed);
}

static void test_zeros_behind_the_log(void **state)
{
    buf_fixture_t *fx = *state;
    page_at_home(fx);
    fx_mtr_free(fx, fx_id(1, 3));
    uint32_t from = fx->base.rec.n;
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(fx_home_byte(fx, "t1.ibd", 3), 0);
    rec_assert_order(&fx->base.rec, from, "sync ib_logfile0", "write t1.ibd 12288", "sync t1.ibd",
                     NULL);
    assert_int_equal(fx->base.env.stats.pages_scrubbed, 1);
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(fx->base.env.stats.pages_scrubbed, 1);
}

static void test_given_out_again(void **state)
{
    buf_fixture_t *fx = *state;
    page_at_home(fx);
    fx_mtr_free(fx, fx_id(1, 3));
    page_at_home(fx);
    assert_int_equal(fx->base.env.stats.pages_scrubbed, 0);
}

static void test_space_goes(void **state)
{
    buf_fixture_t *fx = *state;
    page_at_home(fx);
    fx_mtr_free(fx, fx_id(1, 3));
    FX_OK(fx, buf_discard_space(fx->pool, 1));
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(fx->base.env.stats.pages_scrubbed, 0);
    assert_int_equal(fx_home_byte(fx, "t1.ibd", 3), 7);
}

/** Reopens the pool with compression. */
static void compress(buf_fixture_t *fx)
{
    buf_pool_free(fx->pool);
    fx->options.page_compression = PAGE_COMPRESSION_LZ4;
    fx_open_pool(fx);
}

/** Only what is stored is written, and the hole comes behind the fsync; the copy has the same form;
what is read is the page. */
static void test_compressed(void **state)
{
    buf_fixture_t *fx = *state;
    compress(fx);
    uint32_t from = fx->base.rec.n;
    page_at_home_compressed(fx);
    rec_assert_order(&fx->base.rec, from, "write ib_dblwr 0 4096", "sync ib_dblwr",
                     "write t1.ibd 12288 512", "sync t1.ibd", "punch t1.ibd 12800 3584", NULL);
    FX_OK(fx, buf_flush_and_evict_all(fx->pool));
    fx_change_page(fx, 1, 3, 9);
    buf_block_t *block = buf_page_peek(fx->pool, fx_id(1, 3));
    assert_int_equal(block->frame[101], 7);
    fx_mtr_free(fx, fx_id(1, 3));
    from = fx->base.rec.n;
    FX_OK(fx, buf_flush_all(fx->pool));
    rec_assert_order(&fx->base.rec, from, "sync ib_logfile0", "punch t1.ibd 12288 4096", NULL);
    assert_int_equal(fx->base.env.stats.pages_punched, 2);
    assert_int_equal(fx->base.env.stats.pages_scrubbed, 0);
}

/** A page that is written again before its hole: only the newest image counts. */
static void test_written_again(void **state)
{
    buf_fixture_t *fx = *state;
    compress(fx);
    page_at_home_compressed(fx);
    uint32_t from = fx->base.rec.n;
    FX_OK(fx, buf_flush_all(fx->pool));
    assert_int_equal(rec_count(&fx->base.rec, from, "punch"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dirty_is_not_written, setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_zeros_behind_the_log, setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_given_out_again, setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_space_goes, setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_compressed, setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_written_again, setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
