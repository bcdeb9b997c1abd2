/* Properties of log/log_rec and log/log_apply: one encoding per record, total decoding, and page
changes that either fit or change nothing. */
#include "test_log_rec_fixture.h"

#define BUF_SIZE 512U

static const redo_rec_t RECS[] = {
    {.op = OP_NUMBER, .len = 1, .space = 1, .page_no = 2, .offset = 100, .value = 0xFF},
    {.op = OP_NUMBER, .len = 2, .space = 127, .page_no = 128, .offset = 0x3FFF, .value = 0xFFFF},
    {.op = OP_NUMBER,
     .len = 4,
     .space = 0x3FFF,
     .page_no = 0x4000,
     .offset = 8,
     .value = 0xFFFFFFFF},
    {.op = OP_NUMBER,
     .len = 8,
     .space = 0x1FFFFF,
     .page_no = 0x200000,
     .offset = 99,
     .value = UINT64_MAX},
    {.op = OP_NUMBER,
     .len = 8,
     .space = 0xFFFFFFF,
     .page_no = 0x10000000,
     .offset = 99,
     .value = 5},
    {.op = OP_WRITE, .space = 5, .page_no = 7, .offset = 200, .data = DATA, .len = 12},
    {.op = OP_FILLER},
    {.op = OP_FILE_DELETE, .space = 5, .path = PATH, .path_len = 6},
    {.op = OP_INDEX_CREATE,
     .space = 5,
     .page_no = 7,
     .level = 1,
     .index_id = 1ULL << 40,
     .rec_size = 300,
     .key_len = 295},
    {.op = OP_REC_INSERT,
     .space = 5,
     .page_no = 7,
     .slot = 300,
     .info = 0x20,
     .shared = 200,
     .data = DATA,
     .len = 12},
    {.op = OP_REC_UPDATE, .space = 5, .page_no = 7, .slot = 3, .offset = 4, .data = DATA, .len = 3},
    {.op = OP_REC_DELETE, .space = 5, .page_no = 7, .slot = 0},
    {.op = OP_LIST_END_DELETE, .space = 5, .page_no = 7, .slot = 9},
    {.op = OP_LIST_START_DELETE, .space = 5, .page_no = 7, .slot = 9},
    {.op = OP_FILE_CREATE, .space = 5, .path = PATH, .path_len = 6},
    {.op = OP_FILE_RENAME,
     .space = 5,
     .path = PATH,
     .path_len = 6,
     .path2 = "tmp/x",
     .path2_len = 5},
    {.op = OP_FILE_NAME, .space = UINT32_MAX, .path = PATH, .path_len = 6},
    {.op = OP_CHECKPOINT, .value = 8204},
    {.op = OP_INIT_PAGE, .space = 5, .page_no = 7, .value = FIL_PAGE_INDEX},
    {.op = OP_INDEX_LOAD, .space = 5, .page_no = 7, .value = 12},
    {.op = OP_FILL, .space = 5, .page_no = 7, .offset = 38, .len = 4000, .value = 0xAB},
    {.op = OP_FREE_PAGE, .space = 5, .page_no = FIL_NULL},
    {.op = OP_TRIM_PAGES, .space = 5, .page_no = 4, .path = PATH, .path_len = 6},
};

#define N_RECS (sizeof(RECS) / sizeof(RECS[0]))

static size_t encode(const redo_rec_t *rec, bool single, byte *buf)
{
    static byte large[PAGE_SIZE_MAX + 1024];
    redo_context_t at = {.n_recs = 0};
    size_t len = 0;

    log_format_10_4.encode(&at, rec, large, sizeof(large), &len);
    if (single) {
        log_format_10_4.finish(&at, large, &len);
    }
    assert_true(len <= BUF_SIZE);
    memcpy(buf, large, len);
    return len;
}

/* Decoding gives back what was encoded, and every proper prefix asks for more bytes. */
static void test_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_RECS; i++) {
        byte buf[BUF_SIZE];
        size_t len = encode(&RECS[i], i % 2 == 0, buf);
        size_t used = 0;
        bool single = false;
        redo_context_t at = {.n_recs = 0};
        redo_rec_t rec;

        assert_int_equal(log_format_10_4.decode(&at, buf, len, &rec, &used, &single), DB_SUCCESS);
        at.n_recs = 0;
        assert_int_equal(used, len);
        assert_int_equal(single, i % 2 == 0);
        assert_same(&rec, &RECS[i]);
        for (size_t n = 0; n < len; n++) {
            assert_int_equal(log_format_10_4.decode(&at, buf, n, &rec, &used, &single),
                             DB_NOT_FOUND);
        }
    }
}

/* The bytes that FORMAT.md promises. */
static void test_known_bytes(void **state)
{
    (void)state;
    byte buf[BUF_SIZE];
    assert_int_equal(encode(&RECS[17], true, buf), 9);
    assert_memory_equal(buf, "\xB8\0\0\0\0\0\0\x20\x0C", 9);
    assert_int_equal(encode(&RECS[0], false, buf), 6);
    assert_memory_equal(buf, "\x01\x01\x02\x64\x80\xFF", 6);
    assert_int_equal(encode(&RECS[19], false, buf), 11);
    assert_memory_equal(buf, "\x3D\x05\x07\0\0\0\0\0\0\0\x0C", 11);
    assert_int_equal(encode(&RECS[4], false, buf), 1 + 4 + 5 + 1 + 1 + 4);
    assert_memory_equal(buf, "\x08\xEF\xFF\xFF\xFF\xF0\x10\0\0\0\x63\0\0\0\0\x05", 16);
}

static dberr_t decode(const void *bytes, size_t n)
{
    redo_rec_t rec;
    redo_context_t at = {.n_recs = 0};
    size_t used;
    bool single;

    return log_format_10_4.decode(&at, bytes, n, &rec, &used, &single);
}

/* What no encoder writes is corruption, not a request for more. */
static void test_impossible_records(void **state)
{
    (void)state;
    assert_int_equal(decode("\0", 1), DB_CORRUPTION); /* no such type */
    assert_int_equal(decode("\x7F", 1), DB_CORRUPTION);
    assert_int_equal(decode("\x9F", 1), DB_CORRUPTION);             /* single MULTI_REC_END */
    assert_int_equal(decode("\x40\x80\x7F\x01", 4), DB_CORRUPTION); /* 127 in two bytes */
    assert_int_equal(decode("\x40\xF1", 2), DB_CORRUPTION);         /* no such length byte */
    assert_int_equal(decode("\x40\xF0\x0F\xFF\xFF\xFF\x01", 7), DB_CORRUPTION);
    assert_int_equal(decode("\x01\x01\x01\x40\x81\x00", 6), DB_CORRUPTION); /* 256 in one byte */
    assert_int_equal(decode("\x1E\x01\x01\x40\x00", 5), DB_CORRUPTION);     /* string of no bytes */
    assert_int_equal(decode("\x1E\x01\x01\x40\xE0\x10\x00\x00", 8), DB_CORRUPTION);
    assert_int_equal(decode("\x37\x01\x01\x00\x01x", 6), DB_CORRUPTION); /* page number of a file */
    assert_int_equal(decode("\x37\x01\x00\x00\x03../", 8), DB_CORRUPTION);
    assert_int_equal(decode("\x37\x01\x00\x00\x02y\0", 7), DB_CORRUPTION);
    assert_int_equal(decode("\x37\x01\x00\x01\x00", 5), DB_CORRUPTION); /* path of 256 bytes */
    assert_int_equal(decode("\x37\x01\x00\x00\x01y", 6), DB_SUCCESS);
}

/* Mutated records: decoding ends inside the bytes (a heap block of the exact size), and whatever it
accepts encodes to the same bytes and, applied to a page, succeeds or changes nothing. */
static void test_fuzz(void **state)
{
    (void)state;
    uint64_t seed = 42424242;
    for (uint32_t round = 0; round < 30000; round++) {
        byte buf[BUF_SIZE];
        size_t len = encode(&RECS[random_next(&seed) % N_RECS], false, buf);
        for (uint64_t hits = random_next(&seed) % 4; hits > 0; hits--) {
            buf[random_next(&seed) % len] = (byte)random_next(&seed);
        }
        len = random_next(&seed) % 4 == 0 ? random_next(&seed) % (len + 1) : len;
        byte *exact = malloc(len + 1);
        assert_non_null(exact);
        memcpy(exact + 1, buf, len);
        redo_context_t at = {.n_recs = 0};
        size_t used = 0;
        bool single = false;
        redo_rec_t rec;
        dberr_t err = log_format_10_4.decode(&at, exact + 1, len, &rec, &used, &single);
        assert_true(err == DB_SUCCESS || err == DB_NOT_FOUND || err == DB_CORRUPTION);
        if (err == DB_SUCCESS) {
            assert_true(used <= len);
            assert_int_equal(encode(&rec, single, buf), used);
            assert_memory_equal(buf, exact + 1, used);
            assert_whole_or_nothing(&rec);
        }
        free(exact);
    }
}

static dberr_t apply(byte *page, redo_rec_t rec)
{
    rec.space = 5;
    rec.page_no = 7;
    return log_rec_apply(&rec, page, PAGE_SIZE_MIN);
}

/* Direct writes reach PREV, NEXT, the type as a whole, and the contents, to the last byte before
the trailer, nothing else. */
static void test_apply_bounds(void **state)
{
    (void)state;
    byte page[PAGE_SIZE_MIN];
    assert_int_equal(apply(page, (redo_rec_t){.op = OP_INIT_PAGE, .value = 2}), DB_SUCCESS);
    byte copy[PAGE_SIZE_MIN];
    memcpy(copy, page, sizeof(page));
    byte bytes[PAGE_SIZE_MIN] = {0};
    for (uint32_t offset = 0; offset < PAGE_SIZE_MIN + 10; offset++) {
        for (uint32_t n = 1; n <= 8; n *= 2) {
            bool envelope = offset < 8 || (offset + n > 16 && offset < 38);
            bool type = offset == 24 && n == 2;
            bool allowed = type || (!envelope && offset + n <= PAGE_SIZE_MIN - 8);
            redo_rec_t number = {.op = OP_NUMBER, .len = n, .offset = offset, .value = 0x5A};
            redo_rec_t string = {.op = OP_WRITE, .offset = offset, .data = bytes, .len = n};
            redo_rec_t set = {.op = OP_FILL, .offset = offset, .len = n, .value = 0x77};

            assert_int_equal(apply(page, number), allowed ? DB_SUCCESS : DB_CORRUPTION);
            assert_int_equal(apply(page, string), allowed ? DB_SUCCESS : DB_CORRUPTION);
            assert_int_equal(apply(page, set), allowed ? DB_SUCCESS : DB_CORRUPTION);
        }
    }
    assert_memory_equal(page, copy, 8);
    assert_memory_equal(page + 16, copy + 16, 8);
    assert_memory_equal(page + 26, copy + 26, 12);
    assert_memory_equal(page + PAGE_SIZE_MIN - 8, copy + PAGE_SIZE_MIN - 8, 8);
    assert_int_equal(
        apply(page,
              (redo_rec_t){.op = OP_WRITE, .offset = 38, .data = bytes, .len = PAGE_SIZE_MIN - 46}),
        DB_SUCCESS);
    assert_int_equal(
        apply(page,
              (redo_rec_t){.op = OP_WRITE, .offset = 38, .data = bytes, .len = PAGE_SIZE_MIN - 45}),
        DB_CORRUPTION);
}

/* A page that is another one than the record names is left alone; freeing changes no byte; a record
without a page is no page change. */
static void test_apply_identity(void **state)
{
    redo_rec_t rec = {
        .op = OP_NUMBER, .len = 1, .space = 5, .page_no = 8, .offset = 100, .value = 1};

    (void)state;
    byte page[PAGE_SIZE_MIN];
    assert_int_equal(apply(page, (redo_rec_t){.op = OP_INIT_PAGE, .value = 2}), DB_SUCCESS);
    byte copy[PAGE_SIZE_MIN];
    memcpy(copy, page, sizeof(page));
    assert_int_equal(log_rec_apply(&rec, page, sizeof(page)), DB_CORRUPTION);
    assert_int_equal(apply(page, (redo_rec_t){.op = OP_FREE_PAGE}), DB_SUCCESS);
    assert_int_equal(apply(page, (redo_rec_t){.op = OP_INDEX_LOAD}), DB_CORRUPTION);
    assert_int_equal(apply(page, (redo_rec_t){.op = OP_CHECKPOINT}), DB_CORRUPTION);
    assert_memory_equal(page, copy, sizeof(page));
    assert_true(redo_op_is_page(OP_FREE_PAGE) && redo_op_is_page(OP_FILL));
    assert_false(redo_op_is_page(OP_INDEX_LOAD) || redo_op_is_page(OP_FILE_NAME)
                 || redo_op_is_page(OP_CHECKPOINT) || redo_op_is_page(OP_FILLER));
    assert_string_equal(log_format_10_4.rec_name(&(redo_rec_t){.op = OP_INDEX_LOAD}),
                        "MLOG_INDEX_LOAD");
    assert_string_equal(log_format_10_4.rec_name(&(redo_rec_t){.op = OP_NUMBER, .len = 3}),
                        "unknown");
}

/* Index records do what the page functions do. */
static void test_apply_index(void **state)
{
    (void)state;
    byte page[PAGE_SIZE_MIN];
    assert_int_equal(apply(page, (redo_rec_t){.op = OP_INIT_PAGE, .value = 0}), DB_SUCCESS);
    assert_int_equal(
        apply(page,
              (redo_rec_t){.op = OP_INDEX_CREATE, .index_id = 4, .rec_size = 13, .key_len = 4}),
        DB_SUCCESS);
    byte rec[13] = {0};
    for (uint32_t i = 0; i < 6; i++) {
        mach_write_4(rec + 1, i);
        assert_int_equal(
            apply(page, (redo_rec_t){.op = OP_REC_INSERT, .slot = i, .data = rec + 1, .len = 12}),
            DB_SUCCESS);
    }
    assert_int_equal(apply(page, (redo_rec_t){.op = OP_REC_DELETE, .slot = 2}), DB_SUCCESS);
    assert_int_equal(apply(page, (redo_rec_t){.op = OP_LIST_END_DELETE, .slot = 4}), DB_SUCCESS);
    assert_int_equal(apply(page, (redo_rec_t){.op = OP_LIST_START_DELETE, .slot = 1}), DB_SUCCESS);
    assert_int_equal(apply(page, (redo_rec_t){.op = OP_REC_UPDATE,
                                              .slot = 0,
                                              .offset = 0,
                                              .data = (const byte *)"\x20",
                                              .len = 1}),
                     DB_SUCCESS);
    assert_int_equal(page_index_validate(page, sizeof(page), NULL), DB_SUCCESS);
    assert_int_equal(page_n_recs(page), 3);
    assert_true(rec_is_deleted(page_rec(page, sizeof(page), 0)));
    assert_int_equal(mach_read_4(rec_payload(page_rec(page, sizeof(page), 0))), 1);
    assert_int_equal(mach_read_4(rec_payload(page_rec(page, sizeof(page), 1))), 3);
    assert_int_equal(mach_read_4(rec_payload(page_rec(page, sizeof(page), 2))), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),         cmocka_unit_test(test_known_bytes),
        cmocka_unit_test(test_impossible_records), cmocka_unit_test(test_fuzz),
        cmocka_unit_test(test_apply_bounds),       cmocka_unit_test(test_apply_identity),
        cmocka_unit_test(test_apply_index),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
