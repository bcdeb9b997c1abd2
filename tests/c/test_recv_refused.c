/** Images that no crash leaves, made by hand: their checksums are right, and what they say cannot
be. Each is refused with its cause, and not one byte of it is changed (I30). */
#include "base/crc32c.h"
#include "test_recv_fixture.h"

#define T9_PATH "t9.ibd"

#define SLOT_NO 4U
#define SLOT_MARKER 20U
#define SLOT_EPOCH 28U
#define BLOCK_CRC 508U

/** The same bytes in the file of this name in both images? */
static dberr_t same_file(void *ctx, const char *name)
{
    dbx_t *const *images = ctx;
    uint64_t size[2] = {0, 0};
    const byte *bytes[2];
    for (uint32_t i = 0; i < 2; i++) {
        bytes[i] = dbx_bytes(images[i], name, &size[i]);
    }
    if (size[0] != size[1] || memcmp(bytes[0], bytes[1], size[0]) != 0) {
        fail_msg("%s was changed before the refusal", name);
    }
    return DB_SUCCESS;
}

/** The start is refused with this message, and no file changes. Frees db. */
__attribute__((format(printf, 3, 4))) static void refused(dbx_t *db, refusal_t refusal,
                                                          const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char text[sizeof(db->env.err.msg)];
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    dbx_t *images[2] = {db, dbx_clone(db)};
    assert_int_equal(dbx_redo(db), DB_UNRECOVERABLE);
    assert_string_equal(db->env.err.msg, text);
    assert_string_equal(refusal_name(db->env.err.refusal), refusal_name(refusal));
    ASSERT_OK(db, env_list(&images[1]->env, same_file, images));
    ASSERT_OK(db, env_list(&db->env, same_file, images));
    dbx_free(images[1]);
    dbx_free(db);
}

/** Points the newest checkpoint slot to another marker. */
static void set_marker(dbx_t *db, lsn_t marker_lsn)
{
    byte *slot = dbx_slot(db, dbx_newest_slot(db));
    mach_write_8(slot + SLOT_MARKER, marker_lsn);
    mach_write_4(slot + BLOCK_CRC, crc32c(slot, BLOCK_CRC));
}

/** Makes `to` a copy of the file `from`. */
static void copy_file(dbx_t *db, const char *from, const char *to)
{
    os_file_t *file = NULL;
    uint64_t size = 0;
    const byte *bytes = dbx_bytes(db, from, &size);
    ASSERT_OK(db, env_open(&db->env, to, OS_CREATE_TRUNC, &file));
    ASSERT_OK(db, env_write(&db->env, file, 0, bytes, size));
    env_close(&db->env, file);
}

/* Where the slot says that its marker is, there is a record group without a marker, or with the
marker of another checkpoint. */
static void test_no_marker_at_its_lsn(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    log_checkpoint_t ckpt = *log_last_checkpoint(db->log);
    lsn_t change = log_lsn(db->log);
    lsn_t other = dbx_page_write(db, T1, 3, 3, false);
    redo_rec_t marker = {.op = OP_CHECKPOINT, .value = change};
    lsn_t end = 0;
    log_append_rec(db->log, &marker, &end);
    db = dbx_crash(db);
    const lsn_t wrong[] = {change, other};
    for (uint32_t i = 0; i < 2; i++) {
        dbx_t *image = dbx_clone(db);
        set_marker(image, wrong[i]);
        refused(image, REFUSAL_MARKER_MISSING,
                "the log is damaged: read from checkpoint %" PRIu64 " at %" PRIu64
                ", it ends at %" PRIu64 " without the marker at %" PRIu64,
                ckpt.no, ckpt.lsn, end, wrong[i]);
    }
    dbx_free(db);
}

/* A slot whose marker lies before its checkpoint is a damaged slot: the older one counts. */
static void test_marker_before_checkpoint(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    lsn_t older = log_checkpoint_lsn(db->log);
    ASSERT_OK(db, buf_checkpoint_full(db->pool));
    dbx_page_write(db, T1, 3, 4, false);
    db = dbx_crash(db);
    set_marker(db, older);
    ASSERT_OK(db, dbx_redo(db));
    char text[60];
    snprintf(text, sizeof(text), "recv_start c=%" PRIu64 " ", older);
    assert_true(dbx_marked(db, text));
    assert_int_equal(dbx_page_byte(db, (page_id_t){T1, 3}, 100), 4);
    dbx_free(db);
}

/* A checkpoint number, or an epoch, that starts and log cannot have led to. Taken for true, the
number would have no successor after one or a few starts; so it is refused, each time. */
static void test_impossible_checkpoint_number(void **state)
{
    (void)state;
    static const struct {
        uint64_t no;
        uint32_t epoch;
    } forged[] = {
        {(1ULL << 62) - 1, 1}, {(1ULL << 62) - 4, 2}, {(1ULL << 33), 3}, {5, UINT32_MAX - 1}};
    for (uint32_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
        dbx_t *db = dbx_crash(dbx_create_t1());
        byte *slot = dbx_slot(db, forged[i].no);
        memmove(slot, dbx_slot(db, dbx_newest_slot(db)), LOG_BLOCK_SIZE);
        mach_write_8(slot + SLOT_NO, forged[i].no);
        mach_write_4(slot + SLOT_EPOCH, forged[i].epoch);
        mach_write_4(slot + BLOCK_CRC, crc32c(slot, BLOCK_CRC));
        refused(db, REFUSAL_LOG_DAMAGED,
                "%s: checkpoint slot %u: no start and no log up to %" PRIu64
                " can have led to number %" PRIu64 " with epoch %" PRIu32,
                LOG_FILE_NAME, (uint32_t)(forged[i].no % 2), mach_read_8(slot + SLOT_MARKER),
                forged[i].no, forged[i].epoch);
    }
}

/** A crash after a record that was appended by hand; *end_lsn = where it ends. */
static dbx_t *crash_after(dbx_t *db, const redo_rec_t *rec, lsn_t *end_lsn)
{
    log_append_rec(db->log, rec, end_lsn);
    return dbx_crash(db);
}

/* A record about a page number that no space can have. */
static void test_impossible_page_number(void **state)
{
    (void)state;
    static const page_no_t numbers[] = {FIL_PAGES_MAX, FIL_NULL};
    for (uint32_t i = 0; i < 2; i++) {
        redo_rec_t rec = {.op = OP_NUMBER,
                          .len = 1,
                          .space = T1,
                          .page_no = numbers[i],
                          .offset = 200,
                          .value = 1};
        lsn_t end = 0;
        dbx_t *db = crash_after(dbx_create_t1(), &rec, &end);
        refused(db, REFUSAL_BAD_RECORD,
                "redo record at %" PRIu64 ": impossible page number %" PRIu32, end, numbers[i]);
    }
}

/* A record that gives a space no pages, or more than a space can have. */
static void test_impossible_space_size(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, FIL_PAGES_MAX + 1};
    for (uint32_t i = 0; i < 2; i++) {
        redo_rec_t rec = {
            .op = OP_NUMBER, .len = 4, .space = T1, .offset = FSP_SIZE, .value = sizes[i]};
        dbx_t *db = dbx_create_t1();
        ASSERT_OK(db, buf_checkpoint_full(db->pool));
        lsn_t end = 0;
        db = crash_after(db, &rec, &end);
        refused(db, REFUSAL_BAD_RECORD,
                "redo record at %" PRIu64 ": impossible size of space 5: %" PRIu32 " pages after 0",
                end, sizes[i]);
    }
}

/* Records that make a space grow by more than any step of the engine: after another one, and as the
first one of the log, for which the file stands, whatever its page 0 says. */
static void test_impossible_growth(void **state)
{
    (void)state;
    redo_rec_t rec = {.op = OP_NUMBER, .len = 4, .space = T1, .offset = FSP_SIZE};
    lsn_t end = 0;
    for (uint32_t first = 0; first < 2; first++) {
        dbx_t *db = dbx_create_t1();
        ASSERT_OK(db, buf_checkpoint_full(db->pool));
        size_t size_bytes = 0;
        (void)dbx_bytes(db, "t1.ibd", &size_bytes);
        uint64_t before = size_bytes / buf_page_size(db->pool);
        if (!first) {
            rec.value = before + FSP_GROW_PAGES_MAX;
            log_append_rec(db->log, &rec, NULL);
            before = rec.value;
        }
        rec.value = before + FSP_GROW_PAGES_MAX + 1;
        db = crash_after(db, &rec, &end);
        if (first) {
            refused(db, REFUSAL_BAD_RECORD,
                    "t1.ibd: the redo log makes its %" PRIu64 " pages %" PRIu64 " in one step",
                    before, rec.value);
        } else {
            refused(db, REFUSAL_BAD_RECORD,
                    "redo record at %" PRIu64 ": impossible size of space 5: %" PRIu64
                    " pages after %" PRIu64,
                    end, rec.value, before);
        }
    }
}

/* After FILE_DELETE a space id has no file any more, whatever a later record says. */
static void test_file_record_after_delete(void **state)
{
    (void)state;
    static const redo_op_t types[] = {OP_FILE_NAME, OP_FILE_CREATE, OP_FILE_RENAME, OP_FILE_DELETE};
    for (uint32_t i = 0; i < 4; i++) {
        dbx_t *db = dbx_create_t1();
        redo_rec_t rec = {.op = OP_FILE_DELETE, .space = 7, .path = "t7.ibd", .path_len = 6};
        log_append_rec(db->log, &rec, NULL);
        rec.op = types[i];
        if (rec.op == OP_FILE_RENAME) {
            rec.path2 = "t8.ibd";
            rec.path2_len = 6;
        }
        lsn_t end = 0;
        db = crash_after(db, &rec, &end);
        refused(db, REFUSAL_BAD_RECORD, "%s at %" PRIu64 ": space 7 was deleted before",
                log_format_10_4.rec_name(&rec), end);
    }
}

/* Two files with one space id: recovery does not choose. */
static void test_two_files_of_one_space(void **state)
{
    (void)state;
    dbx_t *db = dbx_crash(dbx_create_t1());
    copy_file(db, T1_PATH, T9_PATH);
    refused(db, REFUSAL_FILE_CONFLICT, "t1.ibd and t9.ibd both carry space id 5");
}

/* The system space lies in its own file, and nothing else lies there. */
static void test_system_space_misplaced(void **state)
{
    (void)state;
    dbx_t *db = dbx_crash(dbx_create_t1());
    dbx_t *image = dbx_clone(db);
    copy_file(image, FIL_SYSTEM_PATH, T9_PATH);
    refused(image, REFUSAL_FILE_CONFLICT, "t9.ibd carries the id of the system space");
    copy_file(db, T1_PATH, FIL_SYSTEM_PATH);
    refused(db, REFUSAL_FILE_CONFLICT, "ibdata1 carries space id 5");
}

/* A rename that was logged but not done does not replace the file of another space. */
static void test_rename_onto_a_file(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    dbx_space_create(db, 9, T9_PATH);
    ASSERT_OK(db, buf_checkpoint_full(db->pool));
    dbx_keeper_t k;
    dbx_keep_at(&k, db, "fil.rename.logged");
    ASSERT_OK(db, buf_log_free_check(db->pool));
    ASSERT_OK(db, fil_space_rename(db->fil, fil_space_get(db->fil, T1), "t7.ibd"));
    dbx_free(db);
    ASSERT_OK(k.image, env_rename(&k.image->env, T9_PATH, "t7.ibd"));
    refused(k.image, REFUSAL_FILE_CONFLICT,
            "t1.ibd cannot be renamed to t7.ibd: another space has this file");
}

/* A space that the log creates has no file, and another space's file has its name. */
static void test_creation_onto_a_file(void **state)
{
    (void)state;
    redo_rec_t rec = {.op = OP_FILE_CREATE, .space = 7, .path = T1_PATH, .path_len = 6};
    lsn_t end = 0;
    dbx_t *db = crash_after(dbx_create_t1(), &rec, &end);
    refused(db, REFUSAL_FILE_MISSING, "the file t1.ibd of space 7 is missing");
}

/* Page 0 is looked at before any other page: it tells whose file it is (I4). */
static void test_page0_beyond_log(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    lsn_t end = log_lsn(db->log);
    db = dbx_crash(db);
    byte *page = dbx_home(db, T1_PATH, 0);
    fil_page_set_lsn(page, db->options.page_size, 1U << 30);
    dbx_stamp(db, page);
    refused(db, REFUSAL_PAGE_BEYOND_LOG,
            "page 0 of t1.ibd: LSN 1073741824 is beyond the end of the log, %" PRIu64, end);
}

/** A log block that is lost at a fault point of recovery. */
typedef struct loser {
    dbx_t *db;
    const char *point;
    lsn_t lsn;
} loser_t;

static void lose_block(void *ctx, const char *name)
{
    const loser_t *loser = ctx;
    if (strcmp(name, loser->point) == 0) {
        memset(dbx_log_block(loser->db, loser->lsn), 0, LOG_BLOCK_SIZE);
    }
}

/* The log is read once by the scan and again for the later batches: if it is shorter by then, the
start is refused, after the batches that were read. */
static void test_log_changed_between_readings(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    lsn_t ends[40];
    for (uint32_t i = 0; i < 40; i++) {
        ends[i] = dbx_page_write(db, T1, 3 + i % 4, (byte)i, i > 0 && i < 4);
    }
    lsn_t lost = ends[30] - ends[30] % LOG_BLOCK_SIZE;
    lsn_t last = 0; /* end of the last group that lies before the lost block */
    for (uint32_t i = 0; i < 40; i++) {
        last = ends[i] <= lost + LOG_BLOCK_HDR_SIZE ? ends[i] : last;
    }
    assert_true(last > ends[20] && lost + LOG_BLOCK_SIZE < ends[39]);
    db = dbx_crash(db);
    db->options.recv_memory = 2048;
    dbx_t *whole = dbx_clone(db);
    ASSERT_OK(whole, dbx_redo(whole));
    assert_true(whole->env.stats.recv_batches > 2);
    dbx_free(whole);
    loser_t loser = {.db = db, .point = "recv.scanned", .lsn = lost};
    db->on_point = lose_block;
    db->point_ctx = &loser;
    assert_int_equal(dbx_redo(db), DB_UNRECOVERABLE);
    char text[sizeof(db->env.err.msg)];
    snprintf(text, sizeof(text),
             "the log changed while it was read: it ended at %" PRIu64 ", and now at %" PRIu64,
             ends[39], last);
    assert_string_equal(db->env.err.msg, text);
    dbx_free(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_marker_at_its_lsn),
        cmocka_unit_test(test_marker_before_checkpoint),
        cmocka_unit_test(test_impossible_checkpoint_number),
        cmocka_unit_test(test_impossible_page_number),
        cmocka_unit_test(test_impossible_space_size),
        cmocka_unit_test(test_impossible_growth),
        cmocka_unit_test(test_file_record_after_delete),
        cmocka_unit_test(test_two_files_of_one_space),
        cmocka_unit_test(test_system_space_misplaced),
        cmocka_unit_test(test_rename_onto_a_file),
        cmocka_unit_test(test_creation_onto_a_file),
        cmocka_unit_test(test_page0_beyond_log),
        cmocka_unit_test(test_log_changed_between_readings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
