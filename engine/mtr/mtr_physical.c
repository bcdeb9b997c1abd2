/** Changes as a format logs them by the bytes that become others (log_format_t.by_bytes).

Place: between mtr.c's functions and mtr_step().

    number, bytes, fill    as they are; nothing at all if the page has them
    part of a record       bytes at its place in the page
    list of records, page  the difference of the pages before and after: MEMSET, MEMMOVE, WRITE
    all else               as it is

Invariants
1. a page that is not changed is not touched either: no record, no new LSN, not dirty;
2. each step is done on the page before the next one is chosen, so that a MEMMOVE finds its source
   as recovery will. */
#include <string.h>

#include "base/check.h"
#include "mtr/mtr_int.h"
#include "page/page_index.h"

#define DIFF_GAP 8U      /* so many equal bytes do not end a run */
#define MOVE_LEN_MIN 16U /* shorter runs are not looked for elsewhere in the page */

/** Does the page hold already what the record writes? */
static bool mtr_is_noop(const buf_block_t *block, uint32_t page_size, const redo_rec_t *rec)
{
    if (rec->len == 0 || rec->len > page_size || rec->offset > page_size - rec->len) {
        return false; /* it will be refused */
    }
    for (uint32_t i = 0; i < rec->len; i++) {
        byte b = rec->op == OP_WRITE    ? rec->data[i]
                 : rec->op == OP_NUMBER ? (byte)(rec->value >> 8 * (rec->len - 1 - i))
                                        : (byte)rec->value;
        if (block->frame[rec->offset + i] != b) {
            return false;
        }
    }
    return true;
}

static dberr_t mtr_bytes(mtr_t *mtr, buf_block_t *block, redo_rec_t *rec)
{
    bool noop = mtr_is_noop(block, buf_page_size(mtr->pool), rec);
    return noop ? DB_SUCCESS : mtr_step(mtr, block, rec);
}

static dberr_t mtr_rec_bytes(mtr_t *mtr, buf_block_t *block, const redo_rec_t *rec)
{
    uint32_t place = 0;
    dberr_t err = page_rec_place(block->frame, buf_page_size(mtr->pool), rec->slot, rec->offset,
                                 rec->data, rec->len, &place);
    redo_rec_t bytes = {.op = OP_WRITE, .offset = place, .data = rec->data, .len = rec->len};
    return err == DB_SUCCESS ? mtr_bytes(mtr, block, &bytes) : mtr_refused(mtr, block, rec, err);
}

/** The run of bytes at `at` that become others: its length, a few equal ones in between
included. */
static uint32_t mtr_diff_run(const byte *page, const byte *after, uint32_t at, uint32_t end)
{
    uint32_t last = at;
    for (uint32_t i = at; i < end && i - last <= DIFF_GAP; i++) {
        if (page[i] != after[i]) {
            last = i;
        }
    }
    return last - at + 1;
}

/** Makes len bytes at `at` what they are in after, by the shortest record. */
static dberr_t mtr_diff_step(mtr_t *mtr, buf_block_t *block, const byte *after, uint32_t at,
                             uint32_t len, uint32_t end)
{
    const byte *page = block->frame;
    redo_rec_t rec = {.op = OP_WRITE, .offset = at, .data = after + at, .len = len};
    bool one_value = memcmp(after + at, after + at + 1, len - 1) == 0;
    const byte *source = len < MOVE_LEN_MIN
                             ? NULL
                             : memmem(page + FIL_PAGE_DATA, end - FIL_PAGE_DATA, after + at, len);
    if (one_value) {
        rec = (redo_rec_t){.op = OP_FILL, .offset = at, .len = len, .value = after[at]};
    } else if (source != NULL) {
        rec = (redo_rec_t){
            .op = OP_MOVE, .offset = at, .len = len, .from = (uint32_t)(source - page)};
        buf_env(mtr->pool)->stats.log_moves++;
    }
    return mtr_step(mtr, block, &rec);
}

static dberr_t mtr_list_bytes(mtr_t *mtr, buf_block_t *block, redo_rec_t *rec)
{
    byte after[PAGE_SIZE_MAX];
    uint32_t end = buf_page_size(mtr->pool) - FIL_PAGE_TRAILER;
    memcpy(after, block->frame, buf_page_size(mtr->pool));
    rec->space = block->id.space;
    rec->page_no = block->id.page_no;
    dberr_t err = log_rec_apply(rec, after, buf_page_size(mtr->pool));
    if (err != DB_SUCCESS) {
        return mtr_refused(mtr, block, rec, err);
    }
    for (uint32_t at = FIL_PAGE_DATA; at < end; at++) {
        if (block->frame[at] != after[at]) {
            uint32_t len = mtr_diff_run(block->frame, after, at, end);
            TRY(mtr_diff_step(mtr, block, after, at, len, end));
            at += len - 1;
        }
    }
    return DB_SUCCESS;
}

dberr_t mtr_physical(mtr_t *mtr, buf_block_t *block, redo_rec_t *rec)
{
    switch (rec->op) {
    case OP_NUMBER:
    case OP_WRITE:
    case OP_FILL:
        return mtr_bytes(mtr, block, rec);
    case OP_REC_UPDATE:
        return mtr_rec_bytes(mtr, block, rec);
    case OP_LIST_END_DELETE:
    case OP_LIST_START_DELETE:
    case OP_REORGANIZE:
        return mtr_list_bytes(mtr, block, rec);
    default:
        return mtr_step(mtr, block, rec);
    }
}
