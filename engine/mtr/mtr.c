/** Mini-transactions: memo, page changes, commit.

Place: above buf/; everything above changes pages through here. mtr_log.c has the record group.

Invariants
1. do is redo: each change is a redo_rec_t given to log_rec_apply, the function that recovery uses;
2. a page has at most one open mtr that changes it, so that the order of records is the order of
   changes;
3. nothing can fail at commit: log and pages get the same LSN, or the process ends;
4. (I13) a page is marked init_on_flush by a logged initialisation only, if buf_init_may_skip() says
   so then; nothing else sets or asks it here;
5. (I15) a freed page has no other record in the freeing mtr. Freeing changes no byte of it and
   makes it no dirtier than it is. */
#include "mtr/mtr.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "mtr/mtr_int.h"
#include "page/page_index.h"

#define MTR_NOT_FOUND UINT32_MAX /**< no position in a memo */

void mtr_start(mtr_t *mtr, buf_pool_t *pool, mtr_mode_t mode)
{
    /* The memo is large, and an entry is set when it is taken. */
    mtr->pool = pool;
    mtr->mode = mode;
    mtr->observer = 0;
    mtr->changed = false;
    mtr->n_memo = 0;
    mtr->n_spaces = 0;
    mtr->end_lsn = 0;
    redo_group_init(&mtr->log, log_format(buf_log(pool)));
}

void mtr_set_observer(mtr_t *mtr, index_id_t observer)
{
    CHECK(mtr->mode == MTR_LOG_NO_REDO && !mtr->changed);
    mtr->observer = observer;
}

/** Position of a page in the memo, or MTR_NOT_FOUND. */
static uint32_t mtr_memo_find(const mtr_t *mtr, page_id_t id)
{
    for (uint32_t i = mtr->n_memo; i-- > 0;) {
        if (page_id_eq(mtr->memo[i].id, id)) {
            return i;
        }
    }
    return MTR_NOT_FOUND;
}

static dberr_t mtr_memo_check_room(const mtr_t *mtr)
{
    if (mtr->n_memo < MTR_MEMO_MAX) {
        return DB_SUCCESS;
    }
    return err_set(&buf_env(mtr->pool)->err, DB_OUT_OF_SPACE,
                   "one change needs more than %" PRIu32 " pages", (uint32_t)MTR_MEMO_MAX);
}

static uint32_t mtr_memo_push(mtr_t *mtr, page_id_t id, buf_block_t *block)
{
    CHECK(mtr->n_memo < MTR_MEMO_MAX);
    uint32_t i = mtr->n_memo++;
    memset(&mtr->memo[i], 0, sizeof(mtr->memo[i]));
    mtr->memo[i].id = id;
    mtr->memo[i].block = block;
    return i;
}

dberr_t mtr_page_get(mtr_t *mtr, page_id_t id, buf_block_t **out)
{
    uint32_t i = mtr_memo_find(mtr, id);
    if (i != MTR_NOT_FOUND) {
        if (mtr->memo[i].freed) {
            return err_set(&buf_env(mtr->pool)->err, DB_CORRUPTION,
                           "page %" PRIu32 " of space %" PRIu32 " is used right after it was freed",
                           id.page_no, id.space);
        }
        *out = mtr->memo[i].block;
        return DB_SUCCESS;
    }
    TRY(mtr_memo_check_room(mtr));
    buf_block_t *block = NULL;
    TRY(buf_page_get(mtr->pool, id, &block));
    if (mtr->mode != MTR_READ_ONLY) {
        /* Pinned, it is in no later batch: from here on it can be changed at any time. */
        dberr_t err = buf_block_wait(mtr->pool, block);
        if (err != DB_SUCCESS) {
            buf_block_unfix(mtr->pool, block);
            return err;
        }
    }
    mtr_memo_push(mtr, id, block);
    *out = block;
    return DB_SUCCESS;
}

/** Marks a pinned block as changed by this mtr. */
static uint32_t mtr_memo_dirty(mtr_t *mtr, buf_block_t *block)
{
    CHECK(mtr->mode != MTR_READ_ONLY);
    uint32_t i = mtr_memo_find(mtr, block->id);
    CHECK(i != MTR_NOT_FOUND && mtr->memo[i].block == block && !mtr->memo[i].freed);
    CHECK(block->writer == NULL || block->writer == mtr);
    block->writer = mtr;
    mtr->memo[i].dirty = true;
    mtr->changed = true;
    return i;
}

dberr_t mtr_page_create(mtr_t *mtr, page_id_t id, page_type_t type, buf_block_t **out)
{
    CHECK(mtr->mode != MTR_READ_ONLY);
    TRY(mtr_memo_check_room(mtr));
    if (mtr_memo_find(mtr, id) != MTR_NOT_FOUND) {
        return err_set(&buf_env(mtr->pool)->err, DB_CORRUPTION,
                       "page %" PRIu32 " of space %" PRIu32 " is given out although it is in use",
                       id.page_no, id.space);
    }
    buf_block_t *block = NULL;
    TRY(buf_page_create(mtr->pool, id, &block));
    mtr_memo_push(mtr, id, block);
    uint32_t i = mtr_memo_dirty(mtr, block);
    mtr->memo[i].init = mtr->mode == MTR_LOG_ALL;
    redo_rec_t rec = {
        .op = OP_INIT_PAGE, .space = id.space, .page_no = id.page_no, .value = (uint64_t)type};
    CHECK(log_rec_apply(&rec, block->frame, buf_page_size(mtr->pool)) == DB_SUCCESS);
    mtr_log_add(mtr, &rec);
    *out = block;
    return DB_SUCCESS;
}

void mtr_page_free(mtr_t *mtr, page_id_t id)
{
    CHECK(mtr->mode == MTR_LOG_ALL);
    uint32_t i = mtr_memo_find(mtr, id);
    if (i == MTR_NOT_FOUND) {
        buf_block_t *block = buf_page_peek(mtr->pool, id);
        if (block != NULL) {
            buf_block_fix(mtr->pool, block);
        }
        i = mtr_memo_push(mtr, id, block);
    }
    CHECK(!mtr->memo[i].dirty && !mtr->memo[i].freed);
    buf_block_t *block = mtr->memo[i].block;
    if (block != NULL) {
        CHECK(block->writer == NULL);
        block->writer = mtr;
    }
    mtr->memo[i].freed = true;
    mtr->changed = true;
    redo_rec_t rec = {.op = OP_FREE_PAGE, .space = id.space, .page_no = id.page_no};
    mtr_log_add(mtr, &rec);
}

bool mtr_page_is_changed(const mtr_t *mtr, page_id_t id)
{
    uint32_t i = mtr_memo_find(mtr, id);
    return i != MTR_NOT_FOUND && (mtr->memo[i].dirty || mtr->memo[i].freed);
}

bool mtr_page_is_freed(const mtr_t *mtr, page_id_t id)
{
    uint32_t i = mtr_memo_find(mtr, id);
    return i != MTR_NOT_FOUND && mtr->memo[i].freed;
}

dberr_t mtr_refused(mtr_t *mtr, const buf_block_t *block, const redo_rec_t *rec, dberr_t err)
{
    return err_set(&buf_env(mtr->pool)->err, err,
                   "page %" PRIu32 " of space %" PRIu32 " cannot take a %s", block->id.page_no,
                   block->id.space, mtr->log.format->rec_name(rec));
}

dberr_t mtr_step(mtr_t *mtr, buf_block_t *block, redo_rec_t *rec)
{
    rec->space = block->id.space;
    rec->page_no = block->id.page_no;
    dberr_t err = log_rec_apply(rec, block->frame, buf_page_size(mtr->pool));
    if (err != DB_SUCCESS) {
        return mtr_refused(mtr, block, rec, err);
    }
    mtr_memo_dirty(mtr, block);
    mtr_log_add(mtr, rec);
    return DB_SUCCESS;
}

/** A change that bytes from disk can make impossible: the page is unchanged then. */
static dberr_t mtr_try(mtr_t *mtr, buf_block_t *block, redo_rec_t *rec)
{
    CHECK(mtr->mode != MTR_READ_ONLY);
    CHECK(block->writer == NULL || block->writer == mtr);
    CHECK(!block->in_flight);
    return mtr->log.format->by_bytes ? mtr_physical(mtr, block, rec) : mtr_step(mtr, block, rec);
}

/** A change that only a programmer's mistake can make impossible. */
static void mtr_do(mtr_t *mtr, buf_block_t *block, redo_rec_t *rec)
{
    CHECK(mtr_try(mtr, block, rec) == DB_SUCCESS);
}

static void mtr_number(mtr_t *mtr, buf_block_t *block, uint32_t offset, uint32_t len,
                       uint64_t value)
{
    redo_rec_t rec = {.op = OP_NUMBER, .offset = offset, .len = len, .value = value};
    mtr_do(mtr, block, &rec);
}

void mtr_write_1(mtr_t *mtr, buf_block_t *block, uint32_t offset, uint32_t value)
{
    mtr_number(mtr, block, offset, 1, value);
}

void mtr_write_2(mtr_t *mtr, buf_block_t *block, uint32_t offset, uint32_t value)
{
    mtr_number(mtr, block, offset, 2, value);
}

void mtr_write_4(mtr_t *mtr, buf_block_t *block, uint32_t offset, uint32_t value)
{
    mtr_number(mtr, block, offset, 4, value);
}

void mtr_write_8(mtr_t *mtr, buf_block_t *block, uint32_t offset, uint64_t value)
{
    mtr_number(mtr, block, offset, 8, value);
}

void mtr_write_string(mtr_t *mtr, buf_block_t *block, uint32_t offset, const byte *data,
                      uint32_t len)
{
    redo_rec_t rec = {.op = OP_WRITE, .offset = offset, .data = data, .len = len};
    mtr_do(mtr, block, &rec);
}

void mtr_memset(mtr_t *mtr, buf_block_t *block, uint32_t offset, uint32_t len, byte value)
{
    redo_rec_t rec = {.op = OP_FILL, .offset = offset, .len = len, .value = value};
    mtr_do(mtr, block, &rec);
}

dberr_t mtr_index_create(mtr_t *mtr, buf_block_t *block, uint32_t level, index_id_t index_id,
                         uint32_t rec_size, uint32_t key_len)
{
    redo_rec_t rec = {.op = OP_INDEX_CREATE,
                      .level = level,
                      .index_id = index_id,
                      .rec_size = rec_size,
                      .key_len = key_len};
    return mtr_try(mtr, block, &rec);
}

dberr_t mtr_rec_insert(mtr_t *mtr, buf_block_t *block, uint32_t slot, const byte *rec_bytes,
                       uint32_t len)
{
    rec_delta_t delta =
        page_rec_delta(block->frame, buf_page_size(mtr->pool), slot, rec_bytes, len);
    redo_rec_t rec = {.op = OP_REC_INSERT,
                      .slot = slot,
                      .info = delta.info,
                      .shared = delta.shared,
                      .data = delta.rest,
                      .len = delta.rest_len};
    return mtr_try(mtr, block, &rec);
}

dberr_t mtr_rec_delete(mtr_t *mtr, buf_block_t *block, uint32_t slot)
{
    redo_rec_t rec = {.op = OP_REC_DELETE, .slot = slot};
    return mtr_try(mtr, block, &rec);
}

dberr_t mtr_rec_update(mtr_t *mtr, buf_block_t *block, uint32_t slot, uint32_t rec_offset,
                       const byte *bytes, uint32_t len)
{
    redo_rec_t rec = {
        .op = OP_REC_UPDATE, .slot = slot, .offset = rec_offset, .data = bytes, .len = len};
    return mtr_try(mtr, block, &rec);
}

dberr_t mtr_list_end_delete(mtr_t *mtr, buf_block_t *block, uint32_t slot)
{
    redo_rec_t rec = {.op = OP_LIST_END_DELETE, .slot = slot};
    return mtr_try(mtr, block, &rec);
}

dberr_t mtr_list_start_delete(mtr_t *mtr, buf_block_t *block, uint32_t slot)
{
    redo_rec_t rec = {.op = OP_LIST_START_DELETE, .slot = slot};
    return mtr_try(mtr, block, &rec);
}

dberr_t mtr_reorganize(mtr_t *mtr, buf_block_t *block)
{
    redo_rec_t rec = {.op = OP_REORGANIZE};
    return mtr_try(mtr, block, &rec);
}

void mtr_index_load(mtr_t *mtr, space_id_t space, page_no_t root, index_id_t index_id)
{
    CHECK(mtr->mode == MTR_LOG_ALL);
    redo_rec_t rec = {.op = OP_INDEX_LOAD, .space = space, .page_no = root, .value = index_id};
    mtr_log_add(mtr, &rec);
    mtr->changed = true;
}

void mtr_trim_pages(mtr_t *mtr, space_id_t space, uint32_t size_pages)
{
    CHECK(mtr->mode == MTR_LOG_ALL);
    const char *path = fil_space_get(buf_fil(mtr->pool), space)->path;
    redo_rec_t rec = {.op = OP_TRIM_PAGES,
                      .space = space,
                      .page_no = size_pages,
                      .path = path,
                      .path_len = (uint32_t)strlen(path)};
    mtr_log_add(mtr, &rec);
    mtr->changed = true;
}

static void mtr_commit_logged(mtr_t *mtr, buf_block_t *block, bool init)
{
    block->logged = true;
    if (!init) {
        return;
    }
    block->init_lsn = mtr->end_lsn;
    block->init_on_flush = buf_init_may_skip(mtr->pool, block->id.space);
    PROBE_MARK(buf_env(mtr->pool)->probe,
               "page_init space=%" PRIu32 " page=%" PRIu32 " lsn=%" PRIu64, block->id.space,
               block->id.page_no, mtr->end_lsn);
}

static void mtr_commit_free(mtr_t *mtr, page_id_t id, buf_block_t *block)
{
    PROBE_MARK(buf_env(mtr->pool)->probe,
               "page_free space=%" PRIu32 " page=%" PRIu32 " lsn=%" PRIu64, id.space, id.page_no,
               mtr->end_lsn);
    if (block != NULL) {
        buf_env(mtr->pool)->stats.pages_freed_in_flight += block->in_flight;
        block->freed = true;
        block->init_on_flush = false;
        if (mtr->log.format->all_frees) {
            block->newest_modification = mtr->end_lsn; /* durable before the page is given up */
        }
    }
    buf_scrub_note(mtr->pool, id, mtr->end_lsn);
}

static void mtr_commit_noredo(mtr_t *mtr, buf_block_t *block)
{
    block->observer = mtr->observer;
    PROBE_MARK(buf_env(mtr->pool)->probe,
               "page_noredo space=%" PRIu32 " page=%" PRIu32 " lsn=%" PRIu64, block->id.space,
               block->id.page_no, mtr->end_lsn);
}

/** Stamps and dirties the changed pages. */
static void mtr_commit_pages(mtr_t *mtr, lsn_t start_lsn)
{
    for (uint32_t i = 0; i < mtr->n_memo; i++) {
        buf_block_t *block = mtr->memo[i].block;
        if (mtr->memo[i].freed) {
            mtr_commit_free(mtr, mtr->memo[i].id, block);
            continue;
        }
        if (!mtr->memo[i].dirty) {
            continue;
        }
        fil_page_set_lsn(block->frame, buf_page_size(mtr->pool), mtr->end_lsn);
        if (mtr->mode == MTR_LOG_NO_REDO) {
            mtr_commit_noredo(mtr, block);
        } else {
            mtr_commit_logged(mtr, block, mtr->memo[i].init);
        }
        buf_block_set_dirty(mtr->pool, block, start_lsn, mtr->end_lsn);
    }
}

static void mtr_release(mtr_t *mtr)
{
    while (mtr->n_memo > 0) {
        buf_block_t *block = mtr->memo[--mtr->n_memo].block;
        if (block != NULL) {
            if (block->writer == mtr) {
                block->writer = NULL;
            }
            buf_block_unfix(mtr->pool, block);
        }
    }
    redo_group_free(&mtr->log);
}

void mtr_commit(mtr_t *mtr)
{
    lsn_t start_lsn = log_lsn(buf_log(mtr->pool));
    mtr->end_lsn = start_lsn;
    if (mtr->log.len > 0) {
        mtr_log_checksums(mtr);
        mtr_log_append(mtr, &start_lsn, &mtr->end_lsn);
    }
    if (mtr->changed) {
        mtr_commit_pages(mtr, start_lsn);
    }
    mtr_release(mtr);
}

void mtr_abort(mtr_t *mtr)
{
    if (mtr->changed) {
        env_poison(buf_env(mtr->pool));
    }
    mtr_release(mtr);
}

dberr_t mtr_end(mtr_t *mtr, dberr_t err)
{
    if (err == DB_SUCCESS) {
        mtr_commit(mtr);
    } else {
        mtr_abort(mtr);
    }
    return err;
}
