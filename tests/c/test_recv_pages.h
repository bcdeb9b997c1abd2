/** Single pages of a bare space, made and changed by mini-transactions without a catalogue: on top
of test_recv_fixture.h. */
#ifndef TEST_RECV_PAGES_H
#define TEST_RECV_PAGES_H

#include "test_recv_fixture.h"

/** A bare database with one table space of 8 pages, checkpointed. */
static inline dbx_t *pages_create(void)
{
    dbx_t *db = dbx_create(true);
    dbx_space_create(db, T1, T1_PATH);
    ASSERT_OK(db, buf_checkpoint_full(db->pool));
    return db;
}

/** Initialises a page and writes `value` into it; commits in the given mode. @return end LSN */
static inline lsn_t page_init(dbx_t *db, page_no_t page_no, byte value, mtr_mode_t mode)
{
    mtr_t mtr;
    buf_block_t *block = NULL;
    ASSERT_OK(db, buf_log_free_check(db->pool));
    mtr_start(&mtr, db->pool, mode);
    if (mode == MTR_LOG_NO_REDO) {
        mtr_set_observer(&mtr, 77);
    }
    ASSERT_OK(db, mtr_page_create(&mtr, (page_id_t){T1, page_no}, FIL_PAGE_TYPE_SYS, &block));
    mtr_memset(&mtr, block, 100, 3000, value);
    mtr_commit(&mtr);
    return mtr.end_lsn;
}

static inline lsn_t page_change(dbx_t *db, page_no_t page_no, uint32_t offset, byte value)
{
    mtr_t mtr;
    buf_block_t *block = NULL;
    ASSERT_OK(db, buf_log_free_check(db->pool));
    mtr_start(&mtr, db->pool, MTR_LOG_ALL);
    ASSERT_OK(db, mtr_page_get(&mtr, (page_id_t){T1, page_no}, &block));
    mtr_write_1(&mtr, block, offset, value);
    mtr_commit(&mtr);
    return mtr.end_lsn;
}

static inline byte page_byte(dbx_t *db, page_no_t page_no, uint32_t offset)
{
    return dbx_page_byte(db, (page_id_t){T1, page_no}, offset);
}

/** A database with page 3, of bytes 0xA1, behind the checkpoint or before it. */
static inline dbx_t *page_3_create(bool checkpointed)
{
    dbx_t *db = pages_create();
    page_init(db, 3, 0xA1, MTR_LOG_ALL);
    if (checkpointed) {
        ASSERT_OK(db, buf_checkpoint_full(db->pool));
    }
    return db;
}

static inline void lose_copies(dbx_t *db)
{
    memset(dbx_bytes(db, DBLWR_FILE_NAME, NULL), 0, 4096 * 16);
}

/** Without doublewrite copies the start is refused with a message that contains text; frees db. */
static inline void refused_without_copy(dbx_t *db, const char *text)
{
    lose_copies(db);
    dbx_assert_refused(db, text);
    dbx_free(db);
}

#endif
