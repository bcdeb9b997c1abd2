/** Helpers for tests that change pages through mini-transactions, over test_buf_fixture.h. */
#ifndef TEST_MTR_FIXTURE_H
#define TEST_MTR_FIXTURE_H

#include "mtr/mtr.h"
#include "test_buf_fixture.h"

/** Creates a page in an mtr of its own; @return its block, unpinned. */
static inline buf_block_t *fx_mtr_create(buf_fixture_t *fx, mtr_mode_t mode, index_id_t observer,
                                         page_id_t id)
{
    mtr_t mtr;
    buf_block_t *block = NULL;
    mtr_start(&mtr, fx->pool, mode);
    if (observer != 0) {
        mtr_set_observer(&mtr, observer);
    }
    FX_OK(fx, mtr_page_create(&mtr, id, FIL_PAGE_TYPE_SYS, &block));
    mtr_commit(&mtr);
    return block;
}

static inline void fx_mtr_write(buf_fixture_t *fx, mtr_mode_t mode, page_id_t id, byte value)
{
    mtr_t mtr;
    buf_block_t *block = NULL;
    mtr_start(&mtr, fx->pool, mode);
    FX_OK(fx, mtr_page_get(&mtr, id, &block));
    mtr_write_1(&mtr, block, 100, value);
    mtr_commit(&mtr);
}

static inline void fx_mtr_free(buf_fixture_t *fx, page_id_t id)
{
    mtr_t mtr;
    mtr_start(&mtr, fx->pool, MTR_LOG_ALL);
    mtr_page_free(&mtr, id);
    mtr_commit(&mtr);
}

/** Every record group from `from` on, flattened as text "TYPE space page; ..." per group. */
static inline void fx_log_text(buf_fixture_t *fx, lsn_t from, char *text, size_t size)
{
    FX_OK(fx, log_write_up_to(fx->base.log, log_lsn(fx->base.log), true));
    log_reader_t *reader = NULL;
    FX_OK(fx, log_reader_create(fx->base.log, from, &reader));
    log_group_t group;
    size_t len = 0;
    text[0] = 0;
    dberr_t err;
    while ((err = log_reader_next(reader, &group)) == DB_SUCCESS) {
        for (uint32_t i = 0; i < group.n_recs; i++) {
            const redo_rec_t *rec = &group.recs[i];
            len +=
                (size_t)snprintf(text + len, size - len, "%s %" PRIu32 " %" PRIu32 "; ",
                                 log_format(fx->base.log)->rec_name(rec), rec->space, rec->page_no);
            assert_true(len < size);
        }
        len += (size_t)snprintf(text + len, size - len, "| ");
        assert_true(len < size);
    }
    assert_int_equal(err, DB_NOT_FOUND);
    log_reader_free(reader);
}

#endif
