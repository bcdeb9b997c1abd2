/** The log of row changes: order, blocks, overflow. */
#include "test_ddl_fixture.h"

#define PUT_LEN 37U
#define DELETE_LEN 9U
#define BLOCK 64U

static void create(fixture_t *f, uint64_t block, uint64_t max)
{
    const row_log_def_t def = {.table = "t",
                               .id = 7,
                               .put_len = PUT_LEN,
                               .delete_len = DELETE_LEN,
                               .block_bytes = block,
                               .max_bytes = max};
    assert_int_equal(row_log_create(&f->env, &def, &f->log), DB_SUCCESS);
}

static row_log_op_t op_of(uint32_t i)
{
    return i % 3 == 2 ? ROW_LOG_DELETE : ROW_LOG_PUT;
}

static void make_payload(uint32_t i, byte payload[PUT_LEN])
{
    memset(payload, (int)(i & 0xff), PUT_LEN);
    mach_write_4(payload, i);
}

static void add(fixture_t *f, uint32_t i)
{
    byte payload[PUT_LEN];
    make_payload(i, payload);
    row_log_add(f->log, op_of(i), payload);
}

static void expect(fixture_t *f, uint32_t i)
{
    byte wanted[PUT_LEN];
    make_payload(i, wanted);
    row_log_op_t op = ROW_LOG_PUT;
    const byte *payload = NULL;
    assert_int_equal(row_log_next(f->log, &op, &payload), DB_SUCCESS);
    assert_int_equal(op, op_of(i));
    assert_memory_equal(payload, wanted, op == ROW_LOG_PUT ? PUT_LEN : DELETE_LEN);
}

static bool has_file(fixture_t *f)
{
    uint64_t size = 0;
    return image_os_bytes(f->os, MERGE_TMP_PREFIX "7-log", &size) != NULL;
}

/** Records come back in order, whatever is written between two reads, across blocks smaller than a
record too. */
static void test_order(void **state)
{
    static const uint64_t blocks[] = {1, 10, BLOCK, 4096};
    fixture_t *f = *state;
    row_log_op_t op = ROW_LOG_PUT;
    const byte *payload = NULL;
    for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++) {
        create(f, blocks[b], 1 << 20);
        uint32_t added = 0;
        uint32_t read = 0;
        for (uint32_t round = 1; round < 40; round++) {
            for (uint32_t i = 0; i < round % 7; i++) {
                add(f, added++);
            }
            for (uint32_t i = 0; i < round % 5 && read < added; i++) {
                expect(f, read++);
            }
        }
        while (read < added) {
            expect(f, read++);
        }
        assert_int_equal(row_log_next(f->log, &op, &payload), DB_NOT_FOUND);
        assert_int_equal(row_log_n_records(f->log), added);
        assert_int_equal(row_log_bytes(f->log), row_log_bytes_read(f->log));
        row_log_free(f->log);
        f->log = NULL;
    }
}

/** A log that fits its first block has no file; a full one is written when the next byte comes. The
file goes with the log. */
static void test_file(void **state)
{
    fixture_t *f = *state;
    create(f, 4 * (1 + PUT_LEN), 1 << 20);
    for (uint32_t i = 0; i < 4; i++) {
        byte payload[PUT_LEN] = {0};
        row_log_add(f->log, ROW_LOG_PUT, payload);
    }
    assert_false(has_file(f));
    assert_false(row_log_has_full_block(f->log));
    add(f, 4);
    assert_true(has_file(f));
    assert_true(row_log_has_full_block(f->log));
    assert_int_equal(f->env.stats.rowlog_blocks_written, 1);
    row_log_free(f->log);
    f->log = NULL;
    assert_false(has_file(f));
}

/** The limit counts whole blocks, at least one. A record that does not fit any more ends the log,
and so does nothing before that. */
static void test_overflow(void **state)
{
    static const struct {
        uint64_t max;
        uint64_t capacity;
    } cases[] = {{1, BLOCK}, {BLOCK, BLOCK}, {3 * BLOCK - 1, 2 * BLOCK}, {3 * BLOCK, 3 * BLOCK}};
    fixture_t *f = *state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        uint64_t left = cases[c].capacity;
        create(f, BLOCK, cases[c].max);
        assert_int_equal(row_log_capacity(f->log), cases[c].capacity);
        for (; left > DELETE_LEN; left -= 1 + DELETE_LEN) {
            add(f, 2);
            assert_int_equal(row_log_check(f->log), DB_SUCCESS);
        }
        add(f, 2);
        assert_int_equal(row_log_check(f->log), DB_ONLINE_LOG_TOO_BIG);
        assert_non_null(strstr(f->env.err.msg, "online_alter_log_max_size"));
        assert_int_equal(row_log_bytes(f->log), cases[c].capacity - left);
        assert_false(row_log_has_full_block(f->log));
        row_log_free(f->log);
        f->log = NULL;
    }
    assert_int_equal(f->env.stats.rowlog_overflows, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_file, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(test_overflow, fixture_setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
