/* Properties of the 10.5 format: what is encoded is decoded, in a group and alone; decoding is
total; the bytes are those of FORMAT.md. */
#include "test_log_rec_fixture.h"

/* One group: files first, then pages; runs of one page, ways back, other pages. */
static const redo_rec_t GROUP[] = {
    {.op = OP_FILE_NAME, .space = 5, .path = PATH, .path_len = 6},
    {.op = OP_FILE_CREATE, .space = 127, .path = PATH, .path_len = 6},
    {.op = OP_FILE_DELETE, .space = 128, .path = PATH, .path_len = 6},
    {.op = OP_FILE_RENAME,
     .space = UINT32_MAX,
     .path = PATH,
     .path_len = 6,
     .path2 = "tmp/x",
     .path2_len = 5},
    {.op = OP_CHECKPOINT, .value = 8204},
    {.op = OP_INIT_PAGE, .space = 5, .page_no = 7},
    {.op = OP_WRITE, .space = 5, .page_no = 7, .offset = 24, .data = DATA, .len = 2},
    {.op = OP_WRITE, .space = 5, .page_no = 7, .offset = 26, .data = DATA, .len = 12},
    {.op = OP_WRITE, .space = 5, .page_no = 7, .offset = 8, .data = DATA, .len = 40},
    {.op = OP_FILL, .space = 5, .page_no = 7, .offset = 48, .len = 4000, .value = 0xAB},
    {.op = OP_INDEX_CREATE,
     .space = 5,
     .page_no = 7,
     .level = 1,
     .index_id = 1ULL << 40,
     .rec_size = 300,
     .key_len = 295},
    {.op = OP_REC_INSERT, .space = 5, .page_no = 7, .slot = 0, .data = DATA, .len = 12},
    {.op = OP_REC_INSERT,
     .space = 5,
     .page_no = 7,
     .slot = 300,
     .info = 0x20,
     .shared = 20000,
     .data = DATA,
     .len = 1},
    {.op = OP_REC_DELETE, .space = 5, .page_no = 7, .slot = 9},
    {.op = OP_WRITE, .space = 5, .page_no = 7, .offset = 24, .data = DATA, .len = 1},
    {.op = OP_MOVE, .space = 5, .page_no = 7, .offset = 300, .len = 40, .from = 299},
    {.op = OP_MOVE, .space = 5, .page_no = 7, .offset = 340, .len = 1, .from = 341},
    {.op = OP_MOVE, .space = 5, .page_no = 7, .offset = 341, .len = 17000, .from = 40000},
    {.op = OP_MOVE, .space = 5, .page_no = 7, .offset = 40000, .len = 7, .from = 38},
    {.op = OP_PAGE_CHECKSUM, .space = 5, .page_no = 7, .value = 0x89ABCDEF},
    {.op = OP_WRITE, .space = 5, .page_no = 7, .offset = 40007, .data = DATA, .len = 1},
    {.op = OP_FREE_PAGE, .space = 5, .page_no = FIL_NULL},
    {.op = OP_WRITE,
     .space = 0x204080,
     .page_no = 0x10204080,
     .offset = 99,
     .data = DATA,
     .len = 3},
    {.op = OP_WRITE,
     .space = 0x20407F,
     .page_no = 0x1020407F,
     .offset = 99,
     .data = DATA,
     .len = 3},
    {.op = OP_WRITE, .space = 0x4080, .page_no = 0x407F, .offset = 99, .data = DATA, .len = 16},
    {.op = OP_WRITE, .space = 0x4080, .page_no = 0x4080, .offset = 16511, .data = DATA, .len = 17},
    {.op = OP_TRIM_PAGES, .space = 0x4080, .page_no = 4},
};

#define N_RECS (sizeof(GROUP) / sizeof(GROUP[0]))

static redo_group_t group_of(const redo_rec_t *recs, size_t n)
{
    redo_group_t group;

    redo_group_init(&group, &log_format_10_5);
    for (size_t i = 0; i < n; i++) {
        redo_group_add(&group, &recs[i]);
    }
    redo_group_finish(&group);
    return group;
}

static dberr_t decode(redo_context_t *at, const byte *bytes, size_t n, redo_rec_t *rec,
                      size_t *used, bool *last)
{
    return log_format_10_5.decode(at, bytes, n, rec, used, last);
}

/* Decoding gives back what was encoded, and every proper prefix asks for more and changes
nothing. */
static void test_group(void **state)
{
    redo_group_t group = group_of(GROUP, N_RECS);
    (void)state;
    redo_context_t at = {.n_recs = 0};
    size_t pos = 0;
    bool last = false;
    for (size_t i = 0; i <= N_RECS; i++) {
        const redo_context_t before = at;
        redo_rec_t rec;
        size_t used = 0;

        assert_int_equal(decode(&at, group.bytes + pos, group.len - pos, &rec, &used, &last),
                         DB_SUCCESS);
        for (size_t n = 0; n < used; n++) {
            redo_context_t cut = before;
            redo_rec_t none;
            size_t n_used;
            bool n_last;

            assert_int_equal(decode(&cut, group.bytes + pos, n, &none, &n_used, &n_last),
                             DB_NOT_FOUND);
            assert_true(cut.n_recs == before.n_recs && cut.offset == before.offset
                        && page_id_eq(cut.page, before.page));
        }
        assert_int_equal(last, i == N_RECS);
        pos += used;
        if (i < N_RECS) {
            assert_same(&rec, &GROUP[i]);
        } else {
            assert_int_equal(rec.op, OP_GROUP_END);
        }
    }
    assert_int_equal(pos, group.len);
    redo_group_free(&group);
}

/* A record that stands alone, as recovery keeps it, says the same. */
static void test_alone(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_RECS; i++) {
        redo_context_t at = {.n_recs = 0};
        static byte large[PAGE_SIZE_MAX + 1024];
        size_t len = 0;
        log_format_10_5.encode(&at, &GROUP[i], large, sizeof(large), &len);
        byte buf[256];
        assert_true(len <= sizeof(buf));
        memcpy(buf, large, len);
        size_t used = 0;
        bool last = true;
        redo_rec_t rec;
        for (size_t n = 0; n < len; n++) {
            at = (redo_context_t){.n_recs = 0};
            assert_int_equal(decode(&at, buf, n, &rec, &used, &last), DB_NOT_FOUND);
        }
        assert_int_equal(decode(&at, buf, len, &rec, &used, &last), DB_SUCCESS);
        assert_true(used == len && !last);
        assert_same(&rec, &GROUP[i]);
    }
}

/* The bytes that FORMAT.md promises: a page id once, offsets from where the last record ended. */
static void test_known_bytes(void **state)
{
    const redo_rec_t recs[] = {
        {.op = OP_FILE_NAME, .space = 5, .path = PATH, .path_len = 6},
        {.op = OP_INIT_PAGE, .space = 5, .page_no = 128, .value = FIL_PAGE_INDEX},
        {.op = OP_NUMBER, .space = 5, .page_no = 128, .offset = 42, .len = 4, .value = 513},
        {.op = OP_REC_INSERT,
         .space = 5,
         .page_no = 128,
         .slot = 3,
         .shared = 261,
         .data = DATA,
         .len = 1},
        {.op = OP_FILL, .space = 5, .page_no = 128, .offset = 8, .len = 8, .value = 0xFF},
        {.op = OP_MOVE, .space = 5, .page_no = 128, .offset = 100, .len = 9, .from = 90},
        {.op = OP_FREE_PAGE, .space = 5, .page_no = 129},
    };
    static const byte BYTES[] = "\xB7\x05t1.ibd"
                                "\x13\x05\x80\x00" /* page 128: the first value of two bytes */
                                "\xB3\x00\x45\xBF"
                                "\xB5\x10\x00\x00\x02\x01" /* 42 - 26 */
                                "\xA6\x06\x03\x00\x80\x85\x00"
                                "\x46\x05\x80\x00\x08\x08\xFF" /* back: page id again */
                                "\xD3\x54\x09\x13"             /* 100 - 16; 2 (10 - 1) + 1 */
                                "\x03\x05\x80\x01"
                                "";
    redo_group_t group = group_of(recs, sizeof(recs) / sizeof(recs[0]));

    (void)state;
    assert_int_equal(group.len, sizeof(BYTES));
    assert_memory_equal(group.bytes, BYTES, sizeof(BYTES));
    redo_group_free(&group);
}

static dberr_t decode_first(const void *bytes, size_t n)
{
    redo_context_t at = {.n_recs = 0};
    redo_rec_t rec;
    size_t used;
    bool last;

    return decode(&at, bytes, n, &rec, &used, &last);
}

/* What no encoder writes is corruption, not a request for more. */
static void test_impossible_records(void **state)
{
    (void)state;
    assert_int_equal(decode_first("\0", 1), DB_CORRUPTION);         /* an empty group */
    assert_int_equal(decode_first("\x63\1\1\1", 4), DB_CORRUPTION); /* RESERVED */
    assert_int_equal(decode_first("\xC3\1\1\1", 4), DB_CORRUPTION); /* no such file record */
    assert_int_equal(decode_first("\x03\1\1\1", 4), DB_CORRUPTION); /* FREE_PAGE with a body */
    assert_int_equal(decode_first("\x32\1\1", 3), DB_CORRUPTION);   /* WRITE without an offset */
    assert_int_equal(decode_first("\x33\1\1\1", 4), DB_CORRUPTION); /* nor bytes */
    assert_int_equal(decode_first("\x45\1\1\1\0\1", 6), DB_CORRUPTION);   /* MEMSET of no bytes */
    assert_int_equal(decode_first("\x23\1\1\5", 4), DB_CORRUPTION);       /* no such subtype */
    assert_int_equal(decode_first("\x26\1\1\6\0\0\1", 7), DB_CORRUPTION); /* INSERT of no bytes */
    assert_int_equal(decode_first("\x12\xF1\0", 3), DB_CORRUPTION);
    assert_int_equal(decode_first("\x30\xE0\0\0\0", 5), DB_CORRUPTION); /* longer than any record */
    assert_int_equal(decode_first("\xB3\1..", 4), DB_CORRUPTION);       /* not a path */
    assert_int_equal(decode_first("\xA4\1y.x", 5), DB_CORRUPTION);      /* one path of two */
    assert_int_equal(decode_first("\xF1\1", 2), DB_CORRUPTION);         /* LSN of one byte */
    assert_int_equal(decode_first("\xB3\1xy", 4), DB_SUCCESS);
}

/* Nothing of a page follows its freeing in a group but its initialisation. */
static void test_after_free(void **state)
{
    (void)state;
    redo_context_t at = {.n_recs = 0};
    redo_rec_t rec;
    size_t used;
    bool last;
    assert_int_equal(decode(&at, (const byte *)"\x02\1\1", 3, &rec, &used, &last), DB_SUCCESS);
    assert_int_equal(decode(&at, (const byte *)"\xB3\1\1\1", 4, &rec, &used, &last), DB_CORRUPTION);
    assert_int_equal(decode(&at, (const byte *)"\x12\1\1", 3, &rec, &used, &last), DB_SUCCESS);
    assert_int_equal(decode(&at, (const byte *)"\xB3\1\1\1", 4, &rec, &used, &last), DB_SUCCESS);
}

/* Mutated groups: decoding ends inside the bytes (a heap block of the exact size), and whatever it
accepts, applied to a page, succeeds or changes nothing, and says the same when it stands alone. */
static void test_fuzz(void **state)
{
    static byte alone[PAGE_SIZE_MAX + 1024];
    redo_group_t group = group_of(GROUP, N_RECS);

    (void)state;
    uint64_t seed = 77;
    for (uint32_t round = 0; round < 20000; round++) {
        size_t len = random_next(&seed) % 4 == 0 ? random_next(&seed) % group.len : group.len;
        byte *exact = malloc(len + 1);
        assert_non_null(exact);
        memcpy(exact + 1, group.bytes, len);
        for (uint64_t hits = 1 + random_next(&seed) % 4; hits > 0 && len > 0; hits--) {
            exact[1 + random_next(&seed) % len] = (byte)random_next(&seed);
        }
        redo_context_t at = {.n_recs = 0};
        bool last = false;
        for (size_t pos = 0; !last;) {
            redo_rec_t rec;
            size_t used = 0;
            if (decode(&at, exact + 1 + pos, len - pos, &rec, &used, &last) != DB_SUCCESS) {
                break;
            }
            pos += used;
            assert_true(pos <= len);
            if (last) {
                break;
            }
            size_t n = 0;
            redo_context_t none = {.n_recs = 0};
            log_format_10_5.encode(&none, &rec, alone, sizeof(alone), &n);
            none = (redo_context_t){.n_recs = 0};
            bool end;
            redo_rec_t again;
            assert_int_equal(decode(&none, alone, n, &again, &used, &end), DB_SUCCESS);
            assert_same(&again, &rec);
            assert_whole_or_nothing(&rec);
        }
        free(exact);
    }
    redo_group_free(&group);
}

/* A move takes the bytes as they are then, also where both ranges overlap, from nowhere but the
page; the checksum is that of what redo makes, not of LSN and trailer. */
static void test_apply(void **state)
{
    redo_rec_t rec = {
        .op = OP_MOVE, .space = 5, .page_no = 7, .offset = 103, .len = 6, .from = 100};
    (void)state;
    byte page[PAGE_SIZE_MIN];
    fil_page_init(page, sizeof(page), (page_id_t){5, 7}, FIL_PAGE_TYPE_SYS);
    memcpy(page + 100, "abcdefghi", 9);
    assert_int_equal(log_rec_apply(&rec, page, sizeof(page)), DB_SUCCESS);
    assert_memory_equal(page + 100, "abcabcdef", 9);
    rec.from = sizeof(page) - 5;
    assert_int_equal(log_rec_apply(&rec, page, sizeof(page)), DB_CORRUPTION);
    uint64_t value = 0;
    rec = (redo_rec_t){.op = OP_PAGE_CHECKSUM,
                       .space = 5,
                       .page_no = 7,
                       .value = fil_page_contents_checksum(page, sizeof(page))};
    fil_page_set_lsn(page, sizeof(page), 4711);
    fil_page_stamp(page, sizeof(page));
    assert_int_equal(log_rec_apply(&rec, page, sizeof(page)), DB_SUCCESS);
    for (uint32_t at = 8; at < sizeof(page) - 8; at = at == 15 ? 24 : at == 25 ? 38 : at + 1) {
        page[at] ^= 1;
        assert_int_equal(log_rec_apply(&rec, page, sizeof(page)), DB_CORRUPTION);
        page[at] ^= 1;
    }
    assert_true(redo_rec_writes(&GROUP[6], 24, 2, &value) && value == 't');
    assert_false(redo_rec_writes(&GROUP[6], 24, 4, &value));
    assert_false(redo_rec_writes(&GROUP[9], 48, 4, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group),       cmocka_unit_test(test_alone),
        cmocka_unit_test(test_known_bytes), cmocka_unit_test(test_impossible_records),
        cmocka_unit_test(test_after_free),  cmocka_unit_test(test_fuzz),
        cmocka_unit_test(test_apply),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
