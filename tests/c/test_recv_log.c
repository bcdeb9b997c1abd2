/** Recovery's choices about the log and the files: checkpoint slots, marker, end of the log, file
operations, batches, and what a second recovery does. */
#include "test_recv_fixture.h"

static byte page_byte(dbx_t *db, space_id_t space, page_no_t page_no)
{
    return dbx_page_byte(db, (page_id_t){space, page_no}, 100);
}

/* A slot torn while it was written leaves the older one, from which everything is recovered. */
static void test_torn_slot(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    lsn_t older = log_checkpoint_lsn(db->log);
    ASSERT_OK(db, buf_flush_all(db->pool));
    ASSERT_OK(db, buf_checkpoint(db->pool));
    dbx_page_write(db, T1, 3, 4, false);
    db = dbx_crash(db);
    memset(dbx_slot(db, dbx_newest_slot(db)) + 256, 0xEE, 256);
    ASSERT_OK(db, dbx_redo(db));
    char text[60];
    snprintf(text, sizeof(text), "recv_start c=%" PRIu64 " ", older);
    assert_true(dbx_marked(db, text));
    assert_int_equal(page_byte(db, T1, 3), 4);
    dbx_free(db);
}

/* Two torn slots leave nothing to start from. */
static void test_both_slots_torn(void **state)
{
    (void)state;
    dbx_t *db = dbx_crash(dbx_create_t1());
    dbx_slot(db, 0)[100] ^= 1;
    dbx_slot(db, 1)[100] ^= 1;
    dbx_assert_refused(db, "both checkpoint slots are damaged");
    dbx_free(db);
}

/* A valid slot whose marker is not in the log tells of a damaged log. The older slot is no way out:
what it needs may be overwritten (here it is not, and still the start is refused). */
static void test_marker_missing(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    lsn_t marker = log_last_checkpoint(db->log)->marker_lsn;
    db = dbx_crash(db);
    memset(dbx_log_block(db, marker), 0, LOG_BLOCK_SIZE);
    dbx_assert_refused(db, "without the marker");
    dbx_free(db);
}

/* Garbage, and blocks of an earlier life with the right numbers and checksums, never move the end
(I21). */
static void test_stale_tail(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    dbx_flush_log(db);
    dbx_t *image = dbx_clone(db);
    lsn_t end = log_lsn(db->log);
    /* The life of db goes on: its blocks are what the image's log area had before. */
    for (byte i = 0; i < 10; i++) {
        dbx_page_write(db, T1, 3, i, false);
    }
    dbx_flush_log(db);
    lsn_t db_end = log_lsn(db->log);
    assert_true(db_end > end + 3 * LOG_BLOCK_SIZE);
    ASSERT_OK(image, dbx_redo(image)); /* takes a new epoch */
    dbx_page_write(image, T1, 3, 77, false);
    dbx_flush_log(image);
    lsn_t image_end = log_lsn(image->log);
    dbx_t *again = dbx_clone(image);
    lsn_t next_block = image_end - image_end % LOG_BLOCK_SIZE + LOG_BLOCK_SIZE;
    for (lsn_t lsn = next_block; lsn < next_block + 8 * LOG_BLOCK_SIZE; lsn += LOG_BLOCK_SIZE) {
        memcpy(dbx_log_block(again, lsn), dbx_log_block(db, lsn), LOG_BLOCK_SIZE);
    }
    ASSERT_OK(again, dbx_redo(again));
    char text[60];
    snprintf(text, sizeof(text), "end=%" PRIu64 "\n", image_end);
    assert_true(dbx_marked(again, text));
    assert_int_equal(page_byte(again, T1, 3), 77);
    dbx_free(again);
    memset(dbx_log_block(image, next_block), 0xEE, 4 * LOG_BLOCK_SIZE);
    again = dbx_clone(image);
    ASSERT_OK(again, dbx_redo(again));
    assert_true(dbx_marked(again, text));
    dbx_free(again);
    dbx_free(image);
    dbx_free(db);
}

/* Recovery takes no checkpoint of its own and appends nothing: a crash after it, and after more
work, starts over from the same C, and meets the same initialisations and INDEX_LOADs again
(I17). */
static void test_no_checkpoint_of_its_own(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    dbx_page_write(db, T1, 4, 4, true);
    mtr_t mtr;
    mtr_start(&mtr, db->pool, MTR_LOG_ALL);
    mtr_index_load(&mtr, T1, 3, 77);
    mtr_commit(&mtr);
    dbx_flush_log(db);
    lsn_t log_end = log_lsn(db->log);
    log_checkpoint_t ckpt = *log_last_checkpoint(db->log);
    char start[60];
    snprintf(start, sizeof(start), "recv_start c=%" PRIu64 " ", ckpt.lsn);
    for (uint32_t round = 0; round < 3; round++) {
        db = dbx_crash_and_redo(db);
        assert_true(log_lsn(db->log) == log_end);
        assert_int_equal(db->env.stats.checkpoints, 0);
        assert_true(log_last_checkpoint(db->log)->lsn == ckpt.lsn);
        assert_true(log_last_checkpoint(db->log)->marker_lsn == ckpt.marker_lsn);
        assert_true(dbx_marked(db, start));
        assert_true(dbx_marked(db, "recv_read space=5 page=4 why=index_load"));
        assert_false(dbx_marked(db, "page_write"));
        assert_true(fil_space_get(db->fil, T1)->named);
        /* The only log write is the cut of the last block: no new LSN in it. */
        const char *cut = strstr(db->marks, "log_write ");
        assert_non_null(cut);
        lsn_t from = 0;
        lsn_t to = 0;
        assert_int_equal(sscanf(cut, "log_write start=%" SCNu64 " end=%" SCNu64, &from, &to), 2);
        assert_true(from == to && strstr(cut + 1, "log_write ") == NULL);
        assert_int_equal(page_byte(db, T1, 4), round == 0 ? 4 : 60 + round - 1);
        log_end = dbx_page_write(db, T1, 4, (byte)(60 + round), false);
    }
    dbx_free(db);
}

/* A missing file without FILE_DELETE refuses the start and is named. */
static void test_missing_file(void **state)
{
    (void)state;
    dbx_t *db = dbx_crash(dbx_create_t1());
    ASSERT_OK(db, env_unlink(&db->env, T1_PATH));
    dbx_assert_refused(db, "the file of t1.ibd (space id 5) is missing");
    dbx_free(db);
}

/* A file shorter than its page 0 says, with nothing in the log to make it grow, is refused. */
static void test_file_cut_short(void **state)
{
    (void)state;
    dbx_t *db = dbx_crash(dbx_create_t1());
    os_file_t *file = NULL;
    ASSERT_OK(db, env_open(&db->env, T1_PATH, OS_OPEN, &file));
    ASSERT_OK(db, env_truncate(&db->env, file, 5 * 4096));
    env_close(&db->env, file);
    dbx_assert_refused(db, "t1.ibd is cut short");
    dbx_free(db);
}

/* FILE_CREATE2 without its file: the file is made again, and redo fills it. */
static void test_create_again(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    dbx_space_create(db, 6, "t2.ibd");
    dbx_page_write(db, 6, 4, 0x66, true);
    db = dbx_crash(db);
    ASSERT_OK(db, env_unlink(&db->env, "t2.ibd"));
    ASSERT_OK(db, dbx_redo(db));
    assert_int_equal(page_byte(db, 6, 4), 0x66);
    assert_int_equal(fil_space_get(db->fil, 6)->size_pages, FX_EXTENT_PAGES);
    dbx_free(db);
}

/* A delete that was logged but not done is finished; a file that has the name by now is another
space's, and stays. */
static void test_delete_again(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    dbx_page_write(db, T1, 4, 1, true);
    ASSERT_OK(db, buf_discard_space(db->pool, T1));
    dbx_keeper_t k;
    dbx_keep_at(&k, db, "fil.delete.logged");
    ASSERT_OK(db, buf_log_free_check(db->pool));
    ASSERT_OK(db, fil_space_delete(db->fil, fil_space_get(db->fil, T1)));
    ASSERT_OK(k.image, dbx_redo(k.image));
    bool exists = false;
    ASSERT_OK(k.image, env_exists(&k.image->env, T1_PATH, &exists));
    assert_false(exists);
    assert_null(fil_space_get(k.image->fil, T1));
    dbx_free(k.image);
    dbx_space_create(db, 9, T1_PATH);
    dbx_page_write(db, 9, 3, 0x99, true);
    db = dbx_crash_and_redo(db);
    assert_int_equal(page_byte(db, 9, 3), 0x99);
    dbx_free(db);
}

/* A rename that was logged but not done is finished, also when the old name is taken again later in
the log. */
static void test_rename_again(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    dbx_keeper_t k;
    dbx_keep_at(&k, db, "fil.rename.logged");
    ASSERT_OK(db, buf_log_free_check(db->pool));
    ASSERT_OK(db, fil_space_rename(db->fil, fil_space_get(db->fil, T1), "t7.ibd"));
    ASSERT_OK(k.image, dbx_redo(k.image));
    assert_string_equal(fil_space_get(k.image->fil, T1)->path, "t7.ibd");
    assert_int_equal(page_byte(k.image, T1, 3), 2);
    dbx_free(k.image);
    dbx_keep_at(&k, db, "fil.create.created");
    dbx_space_create(db, 9, T1_PATH);
    ASSERT_OK(k.image, dbx_redo(k.image));
    assert_string_equal(fil_space_get(k.image->fil, T1)->path, "t7.ibd");
    assert_string_equal(fil_space_get(k.image->fil, 9)->path, T1_PATH);
    dbx_free(k.image);
    db->on_point = NULL;
    db = dbx_crash_and_redo(db);
    assert_int_equal(page_byte(db, T1, 3), 2);
    assert_string_equal(fil_space_get(db->fil, 9)->path, T1_PATH);
    dbx_free(db);
}

/* A file record that names anything but a table file is refused: it must not reach for the log. */
static void test_hostile_path(void **state)
{
    (void)state;
    static const char *const paths[] = {LOG_FILE_NAME, "d/x.ibd", FIL_SYSTEM_PATH};
    for (uint32_t i = 0; i < 3; i++) {
        dbx_t *db = dbx_create_t1();
        redo_rec_t rec = {.op = OP_FILE_DELETE,
                          .space = 7,
                          .path = paths[i],
                          .path_len = (uint32_t)strlen(paths[i])};
        log_append_rec(db->log, &rec, NULL);
        db = dbx_crash(db);
        dberr_t err = dbx_redo(db);
        assert_int_equal(err, DB_UNRECOVERABLE);
        dbx_free(db);
    }
}

/* Pages of all kinds, in many batches and in one: the files are the same, byte for byte (I18); so
are they after a second recovery of the same image (I17). */
static void test_batches_equal(void **state)
{
    (void)state;
    dbx_t *db = dbx_create_t1();
    for (uint32_t round = 0; round < 60; round++) {
        for (page_no_t page_no = 1; page_no < FX_EXTENT_PAGES; page_no++) {
            bool init = round == 0 || (round + page_no) % 17 == 0;
            dbx_page_write(db, T1, page_no, (byte)(round + page_no), init && page_no != 3);
        }
    }
    dbx_page_free(db, (page_id_t){T1, 6});
    db = dbx_crash(db);
    dbx_t *small = dbx_clone(db);
    small->options.recv_memory = 4096;
    ASSERT_OK(db, dbx_redo(db));
    ASSERT_OK(small, dbx_redo(small));
    ASSERT_OK(db, buf_checkpoint_full(db->pool));
    ASSERT_OK(small, buf_checkpoint_full(small->pool));
    assert_int_equal(db->env.stats.recv_batches, 1);
    assert_true(small->env.stats.recv_batches > 5);
    for (page_no_t page_no = 0; page_no < FX_EXTENT_PAGES; page_no++) {
        /* A page freed last is what it was before, or what an earlier batch had already written. */
        if (page_no != 6) {
            assert_memory_equal(dbx_home(db, T1_PATH, page_no), dbx_home(small, T1_PATH, page_no),
                                4096);
        }
    }
    /* Each page is created once, in the batch of its last initialisation, and freed once. */
    static const char *const once[] = {"recv_create space=5 page=1 ", "recv_free space=5 page=6 "};
    for (uint32_t i = 0; i < 2; i++) {
        const char *first = strstr(small->marks, once[i]);
        assert_non_null(first);
        assert_null(strstr(first + 1, once[i]));
    }
    byte before[8 * 4096];
    memcpy(before, dbx_home(db, T1_PATH, 0), sizeof(before));
    dbx_close(db);
    ASSERT_OK(db, dbx_redo(db));
    assert_int_equal(db->env.stats.recv_records, 0);
    assert_memory_equal(before, dbx_home(db, T1_PATH, 0), sizeof(before));
    dbx_free(small);
    dbx_free(db);
}

/* A crash at any fault point of recovery and of the checkpoint after it, and recovery again, gives
the same files (I17). */
static void test_crash_in_recovery(void **state)
{
    (void)state;
    static const char *const points[] = {
        "recv.scanned",      "recv.dblwr_restored", "recv.batch_applied",  "dblwr.area_written",
        "dblwr.area_synced", "dblwr.home_written",  "dblwr.home_synced",   "recv.batch_flushed",
        "recv.applied",      "ckpt.data_synced",    "ckpt.marker_durable", "ckpt.slot_written",
    };
    dbx_t *db = dbx_create_t1();
    for (page_no_t page_no = 1; page_no < FX_EXTENT_PAGES; page_no++) {
        dbx_page_write(db, T1, page_no, 0x40, page_no != 3);
    }
    ASSERT_OK(db, buf_flush_all(db->pool));
    for (page_no_t page_no = 1; page_no < FX_EXTENT_PAGES; page_no++) {
        dbx_page_write(db, T1, page_no, (byte)page_no, false);
    }
    db = dbx_crash(db);
    dbx_tear(db, T1_PATH, 3);
    db->options.recv_memory = 2048;
    for (uint32_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        dbx_t *image = dbx_clone(db);
        dbx_keeper_t k;
        dbx_keep_at(&k, image, points[i]);
        ASSERT_OK(image, dbx_redo(image));
        ASSERT_OK(image, buf_checkpoint_full(image->pool));
        if (k.image == NULL) {
            fail_msg("%s was not reached", points[i]);
        }
        ASSERT_OK(k.image, dbx_redo(k.image));
        ASSERT_OK(k.image, buf_checkpoint_full(k.image->pool));
        for (page_no_t page_no = 1; page_no < FX_EXTENT_PAGES; page_no++) {
            assert_int_equal(page_byte(k.image, T1, page_no), page_no);
            assert_memory_equal(dbx_home(k.image, T1_PATH, page_no),
                                dbx_home(image, T1_PATH, page_no), 4096);
        }
        dbx_free(k.image);
        dbx_free(image);
    }
    dbx_free(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_torn_slot),
        cmocka_unit_test(test_both_slots_torn),
        cmocka_unit_test(test_marker_missing),
        cmocka_unit_test(test_stale_tail),
        cmocka_unit_test(test_no_checkpoint_of_its_own),
        cmocka_unit_test(test_missing_file),
        cmocka_unit_test(test_file_cut_short),
        cmocka_unit_test(test_create_again),
        cmocka_unit_test(test_delete_again),
        cmocka_unit_test(test_rename_again),
        cmocka_unit_test(test_hostile_path),
        cmocka_unit_test(test_batches_equal),
        cmocka_unit_test(test_crash_in_recovery),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
