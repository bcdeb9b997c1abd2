/** Freed pages with a 10.5 log: a dirty one is not written, and with scrub its home is overwritten with zeros when the
log that frees it is durable, unless it is given out again before. */
#include "test_mtr_fixture.h"

static int setup(void **state)
{
    os_t *os = NULL;
    assert_int_equal(os_mem_create(&os), DB_SUCCESS);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dirty_is_not_written, setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_zeros_behind_the_log, setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_given_out_again, setup, fx_teardown),
        cmocka_unit_test_setup_teardown(test_space_goes, setup, fx_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
