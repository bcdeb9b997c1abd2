/** The doublewrite batch: the only code that writes pages of the pool home.

Place: below buf_flush.c and buf_lru.c, which choose the pages. File layout: slot s covers the pages
[s * dblwr_pages, (s + 1) * dblwr_pages) of "ib_dblwr"; batches use the slots in turn.

       batch --> freed: log durable, dropped
             --> others, by page id: copies stamped in memory
                   1. log durable      2. one write of the copies that need it, fsync of the area
                   3. home writes      4. fsync of the data files

Invariants
1. (I22) the four steps are strictly ordered, and one batch is in flight: when a slot is written
   again, the home writes it protected are fsynced;
2. (I4) the log is durable up to the newest LSN of the batch before the first home write, and before
   the first copy: a copy of changes whose log was lost would outlive that log, and once the new
   log has passed its LSN a later recovery could not tell it from a good one;
3. (I13) a page goes home without a copy only if doublewrite is off, or it is the first write since
   its logged initialisation and nothing in its space was written without redo;
4. (I15) a freed page is not written; its place on the flush lists is given up only when the freeing
   is durable, because the checkpoint may then pass the changes that were never written;
5. (I23) after a failure all pages of the batch stay dirty. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "buf/buf_int.h"
#include "page/page_index.h"

#define DBLWR_SLOTS 2U

dberr_t buf_dblwr_open(buf_pool_t *pool)
{
    env_t *env = pool->env;
    os_file_t *file = NULL;
    dberr_t err = env_open(env, DBLWR_FILE_NAME, OS_OPEN, &file);
    bool created = err == DB_NOT_FOUND;
    if (created) {
        err = env_open(env, DBLWR_FILE_NAME, OS_CREATE_NEW, &file);
    }
    if (err != DB_SUCCESS) {
        return err;
    }
    /* A file of larger slots than now is kept as it is: it may hold copies that recovery needs. */
    uint64_t want_bytes = (uint64_t)DBLWR_SLOTS * pool->dblwr_pages * pool->page_size;
    uint64_t size_bytes = 0;
    err = env_size(env, file, &size_bytes);
    if (err == DB_SUCCESS && size_bytes < want_bytes) {
        err = env_truncate(env, file, want_bytes);
        if (err == DB_SUCCESS) {
            err = env_sync(env, file);
        }
    }
    if (err == DB_SUCCESS && created) {
        err = env_sync_dir(env);
    }
    if (err != DB_SUCCESS) {
        env_close(env, file);
        return err;
    }
    pool->dblwr_file = file;
    return DB_SUCCESS;
}

static int buf_block_cmp(const void *a, const void *b)
{
    const buf_block_t *x = *(buf_block_t *const *)a;
    const buf_block_t *y = *(buf_block_t *const *)b;
    if (x->id.space != y->id.space) {
        return x->id.space < y->id.space ? -1 : 1;
    }
    return x->id.page_no < y->id.page_no ? -1 : x->id.page_no > y->id.page_no;
}

/** May this write go home without a copy thanks to the logged initialisation (I13)? */
static bool buf_dblwr_skips_init(buf_pool_t *pool, const buf_block_t *block)
{
    const fil_space_t *space = fil_space_get(pool->fil, block->id.space);
    CHECK(space != NULL);
    return block->init_on_flush && !space->nonlogged;
}

/** Drops the freed blocks of the batch; the others move to the front. @return in *n_left their
number */
static dberr_t buf_dblwr_drop_freed(buf_pool_t *pool, uint32_t n, uint32_t *n_left)
{
    lsn_t freed_lsn = 0;
    for (uint32_t i = 0; i < n; i++) {
        const buf_block_t *block = pool->batch[i];
        if (block->freed && block->newest_modification > freed_lsn) {
            freed_lsn = block->newest_modification;
        }
    }
    if (freed_lsn != 0) {
        dberr_t err = log_write_up_to(pool->log, freed_lsn, true);
        if (err != DB_SUCCESS) {
            return err;
        }
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < n; i++) {
        buf_block_t *block = pool->batch[i];
        if (!block->freed) {
            pool->batch[left++] = block;
            continue;
        }
        PROBE_MARK(pool->env->probe,
                   "page_drop_freed space=%" PRIu32 " page=%" PRIu32 " lsn=%" PRIu64,
                   block->id.space, block->id.page_no, block->newest_modification);
        buf_flush_remove(pool, block);
        buf_block_release(pool, block);
        pool->env->stats.pages_freed_unwritten++;
    }
    *n_left = left;
    return DB_SUCCESS;
}

/** Copies the batch into dblwr_buf, the pages that need doublewrite first. @return their number */
static uint32_t buf_dblwr_copy(buf_pool_t *pool, uint32_t n, byte *copies[DBLWR_PAGES_MAX])
{
    uint32_t n_used = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (pool->dblwr_file != NULL && !buf_dblwr_skips_init(pool, pool->batch[i])) {
            n_used++;
        }
    }
    pool->env->stats.dblwr_full_batches += n_used == pool->dblwr_pages;
    uint32_t used = 0;
    uint32_t skipped = n_used;
    for (uint32_t i = 0; i < n; i++) {
        bool skip = pool->dblwr_file == NULL || buf_dblwr_skips_init(pool, pool->batch[i]);
        uint32_t pos = skip ? skipped++ : used++;
        copies[i] = pool->dblwr_buf + (size_t)pos * pool->page_size;
        memcpy(copies[i], pool->batch[i]->frame, pool->page_size);
        fil_page_stamp(copies[i], pool->page_size);
    }
    return n_used;
}

static dberr_t buf_dblwr_write_area(buf_pool_t *pool, uint32_t n_used)
{
    env_t *env = pool->env;
    uint64_t slot_bytes = (uint64_t)pool->dblwr_pages * pool->page_size;
    PROBE_MARK(env->probe, "dblwr_batch slot=%" PRIu32 " pages=%" PRIu32, pool->dblwr_slot, n_used);
    dberr_t err = env_write(env, pool->dblwr_file, pool->dblwr_slot * slot_bytes, pool->dblwr_buf,
                            (size_t)n_used * pool->page_size);
    if (err != DB_SUCCESS) {
        return err;
    }
    env->stats.data_writes += n_used;
    env->stats.dblwr_writes += n_used;
    env->stats.dblwr_batches++;
    PROBE_POINT(env->probe, "dblwr.area_written");
    err = env_sync(env, pool->dblwr_file);
    if (err != DB_SUCCESS) {
        return err;
    }
    env->stats.data_fsyncs++;
    PROBE_MARK(env->probe, "dblwr_synced slot=%" PRIu32, pool->dblwr_slot);
    PROBE_POINT(env->probe, "dblwr.area_synced");
    return DB_SUCCESS;
}

static void buf_dblwr_mark_home(buf_pool_t *pool, const buf_block_t *block)
{
    const byte *frame = block->frame;
    bool index = fil_page_get_type(frame) == FIL_PAGE_INDEX;
    bool off = pool->dblwr_file == NULL;
    bool init = !off && buf_dblwr_skips_init(pool, block);
    PROBE_MARK(pool->env->probe,
               "page_write space=%" PRIu32 " page=%" PRIu32 " lsn=%" PRIu64
               " type=%s level=%" PRIu32 " index=%" PRIu64 " dblwr=%s why=%s init_lsn=%" PRIu64
               " load=%d",
               block->id.space, block->id.page_no, fil_page_get_lsn(frame),
               page_type_name(fil_page_get_type(frame)), index ? page_level(frame) : 0,
               index ? page_index_id(frame) : 0, off || init ? "skip" : "used",
               off    ? "off"
               : init ? "init"
                      : "batch",
               block->init_lsn, block->observer != 0);
}

/** Invariant 2. */
static dberr_t buf_dblwr_write_log(buf_pool_t *pool, uint32_t n)
{
    lsn_t lsn = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (pool->batch[i]->newest_modification > lsn) {
            lsn = pool->batch[i]->newest_modification;
        }
    }
    dberr_t err = log_write_up_to(pool->log, lsn, true);
    if (err == DB_SUCCESS) {
        PROBE_POINT(pool->env->probe, "dblwr.log_durable");
    }
    return err;
}

static dberr_t buf_dblwr_write_home(buf_pool_t *pool, uint32_t n, byte *const *copies)
{
    env_t *env = pool->env;
    dberr_t err = DB_SUCCESS;
    for (uint32_t i = 0; i < n; i++) {
        const buf_block_t *block = pool->batch[i];
        buf_dblwr_mark_home(pool, block);
        err = fil_page_write(pool->fil, fil_space_get(pool->fil, block->id.space),
                             block->id.page_no, copies[i]);
        if (err != DB_SUCCESS) {
            return err;
        }
        PROBE_POINT(env->probe, "dblwr.home_written");
    }
    for (uint32_t i = 0; i < n; i++) {
        err = fil_sync(pool->fil, fil_space_get(pool->fil, pool->batch[i]->id.space));
        if (err != DB_SUCCESS) {
            return err;
        }
    }
    return DB_SUCCESS;
}

static void buf_dblwr_complete(buf_pool_t *pool, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        buf_block_t *block = pool->batch[i];
        if (pool->dblwr_file != NULL && buf_dblwr_skips_init(pool, block)) {
            pool->env->stats.dblwr_skipped_init++;
        }
        buf_flush_remove(pool, block);
        block->init_on_flush = false;
        block->nonlogged = false;
        block->observer = 0;
    }
}

/** One batch of at most a slot's worth of pages: pool->batch[0..n). */
static dberr_t buf_dblwr_batch(buf_pool_t *pool, uint32_t n)
{
    env_t *env = pool->env;
    PROBE_POINT(env->probe, "dblwr.batch_start");
    dberr_t err = buf_dblwr_drop_freed(pool, n, &n);
    if (err != DB_SUCCESS || n == 0) {
        return err;
    }
    qsort(pool->batch, n, sizeof(buf_block_t *), buf_block_cmp);
    byte *copies[DBLWR_PAGES_MAX];
    uint32_t n_used = buf_dblwr_copy(pool, n, copies);
    err = buf_dblwr_write_log(pool, n);
    if (err == DB_SUCCESS && n_used > 0) {
        err = buf_dblwr_write_area(pool, n_used);
    }
    if (err == DB_SUCCESS) {
        err = buf_dblwr_write_home(pool, n, copies);
    }
    if (err != DB_SUCCESS) {
        return err;
    }
    PROBE_POINT(env->probe, "dblwr.home_synced");
    if (n_used > 0) {
        PROBE_MARK(env->probe, "dblwr_done slot=%" PRIu32, pool->dblwr_slot);
        pool->dblwr_slot = (pool->dblwr_slot + 1) % DBLWR_SLOTS;
    }
    buf_dblwr_complete(pool, n);
    return DB_SUCCESS;
}

dberr_t buf_dblwr_flush(buf_pool_t *pool, buf_block_t **blocks, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        CHECK(blocks[i]->fix_count == 0 && blocks[i]->oldest_modification != 0);
    }
    for (uint32_t done = 0; done < n;) {
        uint32_t n_batch = n - done < pool->dblwr_pages ? n - done : pool->dblwr_pages;
        memcpy(pool->batch, blocks + done, n_batch * sizeof(buf_block_t *));
        dberr_t err = buf_dblwr_batch(pool, n_batch);
        if (err != DB_SUCCESS) {
            return err;
        }
        done += n_batch;
    }
    return DB_SUCCESS;
}

dberr_t buf_dblwr_each_copy(env_t *env, uint32_t page_size, buf_dblwr_copy_fn fn, void *ctx)
{
    os_file_t *file = NULL;
    dberr_t err = env_open(env, DBLWR_FILE_NAME, OS_OPEN, &file);
    if (err != DB_SUCCESS) {
        return err == DB_NOT_FOUND ? DB_SUCCESS : err;
    }
    byte *page = malloc(page_size);
    if (page == NULL) {
        err = err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for a doublewrite copy");
    }
    for (uint32_t i = 0; err == DB_SUCCESS && i < DBLWR_SLOTS * DBLWR_PAGES_MAX; i++) {
        size_t n_read = 0;
        err = env_read(env, file, (uint64_t)i * page_size, page, page_size, &n_read);
        if (err != DB_SUCCESS || n_read < page_size) {
            break;
        }
        page_id_t id = fil_page_get_id(page);
        if (fil_page_verify(page, page_size, id) == PAGE_OK) {
            err = fn(ctx, id, fil_page_get_lsn(page), page);
        }
    }
    free(page);
    env_close(env, file);
    return err;
}
