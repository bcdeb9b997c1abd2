/** Undo logs: chains of undo pages that hang from a slot of the RSEG page or from the history list.

Place: above fsp/, below transactions and purge. Layout in undo_format.h. This file writes and reads
records; undo_end.c truncates, frees and commits logs.

    RSEG slots[i] ──> first page <──> page <──> last page        one log per writing transaction
    RSEG history  ──> first page ──(history next)──> first page  committed logs, oldest first

Invariants
1. each function is one mini-transaction, so that a log is always whole: linked both ways, reachable
   from exactly one place, its pages in the segment of all undo pages (I11);
2. a page other than the first holds at least one record;
3. an undo record is in the log before the change that it tells of: the caller changes the row only
   with the roll pointer that undo_append() returned;
4. bytes from disk are checked before use: DB_CORRUPTION, never a CHECK. */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "trx/trx_int.h"

dberr_t undo_corrupt(const trx_rseg_t *rseg, page_no_t page_no, const char *what)
{
    return err_set(&trx_sys_env(rseg->sys)->err, DB_CORRUPTION,
                   "undo page %" PRIu32 " of space %" PRIu32 ": %s", page_no, rseg->page.space,
                   what);
}

/* ---- pages ---- */

static uint32_t undo_page_end(const trx_sys_t *sys)
{
    return buf_page_size(sys->pool) - FIL_PAGE_TRAILER;
}

static dberr_t undo_page_decode(const trx_rseg_t *rseg, page_no_t page_no, const byte *frame,
                                undo_page_t *out)
{
    undo_page_t p = {.prev = mach_read_4(frame + UNDO_PREV),
                     .next = mach_read_4(frame + UNDO_NEXT),
                     .free = mach_read_2(frame + UNDO_FREE),
                     .n_recs = mach_read_2(frame + UNDO_N_RECS),
                     .state = mach_read_2(frame + UNDO_STATE),
                     .trx_id = mach_read_8(frame + UNDO_TRX_ID),
                     .trx_no = mach_read_8(frame + UNDO_TRX_NO),
                     .history_next = mach_read_4(frame + UNDO_HISTORY_NEXT),
                     .last_page = mach_read_4(frame + UNDO_LAST_PAGE)};
    if (p.free < UNDO_RECS || p.free > undo_page_end(rseg->sys)) {
        return undo_corrupt(rseg, page_no, "free offset out of range");
    }
    if ((p.n_recs == 0) != (p.free == UNDO_RECS) || p.n_recs > p.free / UNDO_REC_LEN_MIN) {
        return undo_corrupt(rseg, page_no, "impossible number of records");
    }
    bool first = p.prev == FIL_NULL;
    if (first ? p.state != UNDO_STATE_ACTIVE && p.state != UNDO_STATE_COMMITTED : p.state != 0) {
        return undo_corrupt(rseg, page_no, "impossible state");
    }
    if (first && (p.trx_id == 0 || p.trx_id >= rseg->sys->max_id)) {
        return undo_corrupt(rseg, page_no, "transaction id beyond the largest one given out");
    }
    if (first && (p.state == UNDO_STATE_COMMITTED) != (p.trx_no != 0)) {
        return undo_corrupt(rseg, page_no, "commit number does not fit the state");
    }
    if (first && (p.last_page == page_no) != (p.next == FIL_NULL)) {
        return undo_corrupt(rseg, page_no, "last page does not fit the chain");
    }
    *out = p;
    return DB_SUCCESS;
}

dberr_t undo_page_get(const trx_rseg_t *rseg, mtr_t *mtr, page_no_t page_no, buf_block_t **block,
                      undo_page_t *page)
{
    TRY(trx_page_get(mtr, undo_page_id(rseg, page_no), FIL_PAGE_UNDO_LOG, block));
    return undo_page_decode(rseg, page_no, (*block)->frame, page);
}

dberr_t undo_page_read(const trx_rseg_t *rseg, page_no_t page_no, undo_page_t *out)
{
    mtr_t mtr;
    mtr_start(&mtr, rseg->sys->pool, MTR_READ_ONLY);
    buf_block_t *block = NULL;
    dberr_t err = undo_page_get(rseg, &mtr, page_no, &block, out);
    mtr_commit(&mtr);
    return err;
}

/** Length of the record at offset: 0 if it cannot be one. */
static uint32_t undo_rec_len_at(const byte *frame, uint32_t offset, uint32_t free)
{
    if (free - offset < UNDO_REC_LEN_MIN) {
        return 0;
    }
    uint32_t len = mach_read_2(frame + offset + UNDO_REC_LEN);
    if (len < UNDO_REC_LEN_MIN || len > free - offset
        || mach_read_2(frame + offset + len - UNDO_REC_TRAILER) != len) {
        return 0;
    }
    return len;
}

uint32_t undo_last_rec_len(const byte *frame, uint32_t free)
{
    if (free - UNDO_RECS < UNDO_REC_LEN_MIN) {
        return 0;
    }
    uint32_t len = mach_read_2(frame + free - UNDO_REC_TRAILER);
    if (len < UNDO_REC_LEN_MIN || len > free - UNDO_RECS
        || mach_read_2(frame + free - len + UNDO_REC_LEN) != len) {
        return 0;
    }
    return len;
}

static dberr_t undo_page_validate(const trx_rseg_t *rseg, page_no_t page_no, undo_page_t *page)
{
    mtr_t mtr;
    mtr_start(&mtr, rseg->sys->pool, MTR_READ_ONLY);
    buf_block_t *block = NULL;
    dberr_t err = undo_page_get(rseg, &mtr, page_no, &block, page);
    uint32_t n = 0;
    for (uint32_t offset = UNDO_RECS; err == DB_SUCCESS && offset < page->free; n++) {
        undo_rec_t rec;
        uint32_t len = undo_rec_len_at(block->frame, offset, page->free);
        if (len == 0 || undo_rec_decode(block->frame + offset, len, &rec) != DB_SUCCESS) {
            err = undo_corrupt(rseg, page_no, "damaged record");
        }
        offset += len;
    }
    if (err == DB_SUCCESS && n != page->n_recs) {
        err = undo_corrupt(rseg, page_no, "wrong number of records");
    }
    mtr_commit(&mtr);
    return err;
}

dberr_t undo_log_validate(const trx_rseg_t *rseg, page_no_t first, uint64_t *n_recs)
{
    const fil_space_t *space = fil_space_get(buf_fil(rseg->sys->pool), rseg->page.space);
    page_no_t last = FIL_NULL;
    page_no_t prev = FIL_NULL;
    uint64_t total = 0;
    uint32_t n_pages = 0;
    for (page_no_t page_no = first; page_no != FIL_NULL;) {
        undo_page_t page;
        TRY(undo_page_validate(rseg, page_no, &page));
        if (page.prev != prev || ++n_pages > space->size_pages
            || (prev != FIL_NULL && page.n_recs == 0)) {
            return undo_corrupt(rseg, page_no, "broken chain");
        }
        if (prev == FIL_NULL) {
            last = page.last_page;
        }
        total += page.n_recs;
        prev = page_no;
        page_no = page.next;
    }
    if (prev != last) {
        return undo_corrupt(rseg, first, "last page is not the end of the chain");
    }
    *n_recs = total;
    return DB_SUCCESS;
}

/* ---- append ---- */

/** Starts the log of trx in a free slot. */
static dberr_t undo_log_start(trx_t *trx, mtr_t *mtr, buf_block_t **out)
{
    uint32_t slot = 0;
    trx_rseg_t *rseg = undo_space_choose(trx->sys, &slot);
    if (slot == RSEG_N_SLOTS) {
        return err_set(&trx_sys_env(trx->sys)->err, DB_OUT_OF_SPACE,
                       "more than %u transactions have uncommitted changes", RSEG_N_SLOTS);
    }
    buf_block_t *header = NULL;
    TRY(trx_page_get(mtr, rseg->page, FIL_PAGE_TYPE_SYS, &header));
    buf_block_t *block = NULL;
    TRY(fseg_page_alloc(mtr, undo_segment(header), FIL_NULL, FIL_PAGE_UNDO_LOG, &block));
    mtr_write_4(mtr, block, UNDO_PREV, FIL_NULL);
    mtr_write_4(mtr, block, UNDO_NEXT, FIL_NULL);
    mtr_write_2(mtr, block, UNDO_FREE, UNDO_RECS);
    mtr_write_2(mtr, block, UNDO_STATE, UNDO_STATE_ACTIVE);
    mtr_write_8(mtr, block, UNDO_TRX_ID, trx->id);
    mtr_write_4(mtr, block, UNDO_HISTORY_NEXT, FIL_NULL);
    mtr_write_4(mtr, block, UNDO_LAST_PAGE, block->id.page_no);
    mtr_write_4(mtr, header, RSEG_SLOTS + 4 * slot, block->id.page_no);
    trx->rseg = rseg;
    trx->slot = slot;
    *out = block;
    return DB_SUCCESS;
}

/** The last page of the log of trx, or a new one behind it if len bytes do not fit. */
static dberr_t undo_log_extend(trx_t *trx, mtr_t *mtr, uint32_t len, buf_block_t **out)
{
    const trx_rseg_t *rseg = trx->rseg;
    buf_block_t *first = NULL;
    undo_page_t page;
    TRY(undo_page_get(rseg, mtr, trx->undo_first, &first, &page));
    buf_block_t *last = NULL;
    TRY(undo_page_get(rseg, mtr, trx->undo_last, &last, &page));
    if (len <= undo_page_end(rseg->sys) - page.free) {
        *out = last;
        return DB_SUCCESS;
    }
    buf_block_t *header = NULL;
    TRY(trx_page_get(mtr, rseg->page, FIL_PAGE_TYPE_SYS, &header));
    buf_block_t *block = NULL;
    TRY(fseg_page_alloc(mtr, undo_segment(header), trx->undo_last, FIL_PAGE_UNDO_LOG, &block));
    mtr_write_4(mtr, block, UNDO_PREV, trx->undo_last);
    mtr_write_4(mtr, block, UNDO_NEXT, FIL_NULL);
    mtr_write_2(mtr, block, UNDO_FREE, UNDO_RECS);
    mtr_write_4(mtr, last, UNDO_NEXT, block->id.page_no);
    mtr_write_4(mtr, first, UNDO_LAST_PAGE, block->id.page_no);
    *out = block;
    return DB_SUCCESS;
}

dberr_t undo_append(trx_t *trx, const byte *rec, uint32_t len, roll_ptr_t *out)
{
    trx_sys_t *sys = trx->sys;
    CHECK(len >= UNDO_REC_LEN_MIN && len <= undo_page_end(sys) - UNDO_RECS);
    TRY(buf_log_free_check(sys->pool));
    mtr_t mtr;
    mtr_start(&mtr, sys->pool, MTR_LOG_ALL);
    buf_block_t *block = NULL;
    bool start = trx->undo_first == FIL_NULL;
    dberr_t err =
        start ? undo_log_start(trx, &mtr, &block) : undo_log_extend(trx, &mtr, len, &block);
    if (err != DB_SUCCESS) {
        mtr_abort(&mtr);
        return err;
    }
    page_no_t page_no = block->id.page_no;
    uint32_t offset = mach_read_2(block->frame + UNDO_FREE);
    mtr_write_string(&mtr, block, offset, rec, len);
    mtr_write_2(&mtr, block, UNDO_FREE, offset + len);
    mtr_write_2(&mtr, block, UNDO_N_RECS, mach_read_2(block->frame + UNDO_N_RECS) + 1);
    mtr_commit(&mtr);
    if (start) {
        trx->undo_first = page_no;
        trx->rseg->slots[trx->slot] = page_no;
    }
    trx->undo_last = page_no;
    trx->n_recs++;
    *out = roll_ptr_make(trx->rseg->id, page_no, offset, rec[UNDO_REC_TYPE] == UNDO_INSERT);
    return DB_SUCCESS;
}

/* ---- reading ---- */

/** Copies a record of a pinned page to buf and decodes it. */
static dberr_t undo_rec_copy(const trx_rseg_t *rseg, const buf_block_t *block, uint32_t offset,
                             uint32_t len, byte *buf, undo_rec_t *rec, roll_ptr_t *roll_ptr)
{
    memcpy(buf, block->frame + offset, len);
    if (undo_rec_decode(buf, len, rec) != DB_SUCCESS) {
        return undo_corrupt(rseg, block->id.page_no, "damaged record");
    }
    *roll_ptr = roll_ptr_make(rseg->id, block->id.page_no, offset, rec->type == UNDO_INSERT);
    return DB_SUCCESS;
}

dberr_t undo_read_last(trx_t *trx, byte *buf, undo_rec_t *rec, roll_ptr_t *roll_ptr)
{
    const trx_rseg_t *rseg = trx->rseg;
    mtr_t mtr;
    mtr_start(&mtr, rseg->sys->pool, MTR_READ_ONLY);
    buf_block_t *block = NULL;
    undo_page_t page;
    dberr_t err = undo_page_get(rseg, &mtr, trx->undo_last, &block, &page);
    if (err == DB_SUCCESS) {
        uint32_t len = undo_last_rec_len(block->frame, page.free);
        err = len == 0 ? undo_corrupt(rseg, trx->undo_last, "no last record")
                       : undo_rec_copy(rseg, block, page.free - len, len, buf, rec, roll_ptr);
    }
    mtr_commit(&mtr);
    return err;
}

dberr_t undo_read_at(trx_sys_t *sys, roll_ptr_t roll_ptr, byte *buf, undo_rec_t *rec)
{
    uint32_t id = roll_ptr_rseg(roll_ptr);
    page_no_t page_no = roll_ptr_page(roll_ptr);
    uint32_t offset = roll_ptr_offset(roll_ptr);
    if (id >= sys->n_rsegs) {
        return err_set(&trx_sys_env(sys)->err, DB_CORRUPTION,
                       "a row names rollback segment %" PRIu32 ", which is not there", id);
    }
    const trx_rseg_t *rseg = &sys->rsegs[id];
    roll_ptr_t found = 0;
    dberr_t err = undo_read_next(rseg, &page_no, &offset, buf, rec, &found);
    if (err == DB_NOT_FOUND || (err == DB_SUCCESS && found != roll_ptr)) {
        err = undo_corrupt(rseg, roll_ptr_page(roll_ptr), "no record where a row says");
    }
    return err;
}

dberr_t undo_read_next(const trx_rseg_t *rseg, page_no_t *page_no, uint32_t *offset, byte *buf,
                       undo_rec_t *rec, roll_ptr_t *roll_ptr)
{
    mtr_t mtr;
    mtr_start(&mtr, rseg->sys->pool, MTR_READ_ONLY);
    buf_block_t *block = NULL;
    undo_page_t page;
    dberr_t err = undo_page_get(rseg, &mtr, *page_no, &block, &page);
    if (err == DB_SUCCESS && *offset >= page.free) {
        page_no_t here = *page_no;
        err = page.next == FIL_NULL ? DB_NOT_FOUND
                                    : undo_page_get(rseg, &mtr, page.next, &block, &page);
        if (err == DB_SUCCESS && (page.prev != here || page.n_recs == 0)) {
            err = undo_corrupt(rseg, block->id.page_no, "broken chain");
        }
        if (err == DB_SUCCESS) {
            *page_no = block->id.page_no;
            *offset = UNDO_RECS;
        }
    }
    if (err == DB_SUCCESS) {
        uint32_t len = undo_rec_len_at(block->frame, *offset, page.free);
        err = len == 0 ? undo_corrupt(rseg, *page_no, "damaged record")
                       : undo_rec_copy(rseg, block, *offset, len, buf, rec, roll_ptr);
        if (err == DB_SUCCESS) {
            *offset += len;
        }
    }
    mtr_commit(&mtr);
    return err;
}
