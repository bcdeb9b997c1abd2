/** The doublewrite area, and the write of one page home.

Place: below buf_batch.c and buf_observer.c, which order the steps of a write; this file has the
steps. Positions [0, dblwr_pages) of "ib_dblwr" are the batch region, the next DBLWR_SINGLE_SLOTS
the single-page slots.

Invariants
1. (I4, I22) the log is durable up to a page's LSN before its copy is written: a copy of changes
   whose log was lost would outlive that log, and once the new log has passed its LSN a later
   recovery could not tell it from a good one;
2. (I13) a page goes home without a copy only if doublewrite is off, the storage promises whole
   pages, or it is the first write since its logged initialisation. That is asked in one place. It
   is safe because log_optimize_ddl is off for as long as the log holds such an initialisation, or,
   with optimize_ddl_drain=OFF, because its space has no INDEX_LOAD for as long (buf_pool.c);
3. (I22) a single-page slot is free again when its page's home file was fsynced after the home
   write. */
#include "buf/buf_dblwr.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "buf/buf_int.h"
#include "page/page_index.h"

dberr_t buf_dblwr_open(buf_pool_t *pool)
{
    env_t *env = pool->env;
    os_file_t *file = NULL;
    dberr_t err = env_open(env, DBLWR_FILE_NAME, OS_OPEN, &file);
    bool created = err == DB_NOT_FOUND;
    if (created) {
        err = env_open(env, DBLWR_FILE_NAME, OS_CREATE_NEW, &file);
    }
    TRY(err);
    /* A longer file than now is kept as it is: it may hold copies that recovery needs. */
    uint64_t want_bytes = (uint64_t)(pool->dblwr_pages + DBLWR_SINGLE_SLOTS) * pool->page_size;
    uint64_t size_bytes = 0;
    err = env_size(env, file, &size_bytes);
    if (err == DB_SUCCESS && size_bytes < want_bytes) {
        err = env_truncate(env, file, want_bytes);
        AND_THEN(err, env_sync(env, file));
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

bool buf_dblwr_skips(const buf_pool_t *pool, const buf_block_t *block)
{
    return pool->dblwr_file == NULL || block->init_on_flush || buf_dblwr_drops(pool, block);
}

bool buf_dblwr_drops(const buf_pool_t *pool, const buf_block_t *block)
{
    return block->freed && log_format(pool->log)->all_frees;
}

void buf_dblwr_copy(const buf_pool_t *pool, const buf_block_t *block, byte *copy)
{
    if (pool->ddl_mixed && pool->dblwr_file != NULL && block->init_on_flush) {
        fil_space_torn(fil_space_get(pool->fil, block->id.space), block->init_lsn);
    }
    memcpy(copy, block->frame, pool->page_size);
    fil_page_stamp(copy, pool->page_size);
    bool fixed =
        block->id.page_no == 0 || block->id.space == SPACE_SYSTEM || space_is_undo(block->id.space);
    if (pool->compression != PAGE_ALGORITHM_NONE && !fixed) {
        page_compress(copy, pool->page_size, pool->compression);
    }
}

dberr_t buf_dblwr_write_log(buf_pool_t *pool, lsn_t lsn)
{
    TRY(log_write_up_to(pool->log, lsn, true));
    PROBE_POINT(pool->env->probe, "dblwr.log_durable");
    return DB_SUCCESS;
}

dberr_t buf_dblwr_write_area(buf_pool_t *pool, uint32_t pos, const byte *copies, uint32_t n)
{
    env_t *env = pool->env;
    TRY(env_write(env, pool->dblwr_file, (uint64_t)pos * pool->page_size, copies,
                  (size_t)n * pool->page_size));
    env->stats.data_writes += n;
    env->stats.dblwr_writes += n;
    PROBE_POINT(env->probe, "dblwr.area_written");
    return DB_SUCCESS;
}

dberr_t buf_dblwr_sync_area(buf_pool_t *pool)
{
    env_t *env = pool->env;
    TRY(env_sync(env, pool->dblwr_file));
    env->stats.data_fsyncs++;
    return DB_SUCCESS;
}

dberr_t buf_dblwr_write_home(buf_pool_t *pool, buf_block_t *block, const byte *copy, int pos,
                             const char *why)
{
    fil_space_t *space = fil_space_get(pool->fil, block->id.space);
    CHECK(space != NULL);             /* a space's pages are discarded before it goes */
    const byte *frame = block->frame; /* latched: what the copy holds, perhaps compressed */
    bool index = fil_page_get_type(frame) == FIL_PAGE_INDEX;
    PROBE_MARK(pool->env->probe,
               "page_write space=%" PRIu32 " page=%" PRIu32 " lsn=%" PRIu64
               " type=%s level=%" PRIu32 " index=%" PRIu64 " dblwr=%s why=%s init_lsn=%" PRIu64
               " load=%d oldest=%" PRIu64 " pos=%d",
               block->id.space, block->id.page_no, fil_page_get_lsn(frame),
               page_type_name(fil_page_get_type(frame)), index ? page_level(frame) : 0,
               index ? page_index_id(frame) : 0, pos < 0 ? "skip" : "used", why, block->init_lsn,
               block->observer != 0, block->oldest_modification, pos);
    TRY(fil_page_write(pool->fil, space, block->id.page_no, copy));
    block->init_lsn = 0;
    pool->env->stats.dblwr_skipped_init += pos < 0 && pool->dblwr_file != NULL;
    uint32_t stored = page_stored_bytes(copy, pool->page_size);
    pool->env->stats.pages_compressed += stored < pool->page_size;
    buf_scrub_written(pool, space, block->id.page_no, stored);
    pool->env->stats.dblwr_skipped_atomic += pool->atomic_writes;
    buf_flush_remove(pool, block);
    block->init_on_flush = false;
    block->observer = 0;
    PROBE_POINT(pool->env->probe, "dblwr.home_written");
    return DB_SUCCESS;
}

dberr_t buf_dblwr_write_freed(buf_pool_t *pool, page_id_t id)
{
    fil_space_t *space = fil_space_get(pool->fil, id.space);
    CHECK(space != NULL); /* a dropped one is forgotten */
    PROBE_MARK(pool->env->probe,
               "page_write space=%" PRIu32 " page=%" PRIu32
               " lsn=0 type=freed level=0 index=0 dblwr=skip why=scrub init_lsn=0 load=0 oldest=0 "
               "pos=-1",
               id.space, id.page_no);
    memset(pool->single_buf, 0, pool->page_size);
    dberr_t err = fil_page_write(pool->fil, space, id.page_no, pool->single_buf);
    pool->env->stats.pages_scrubbed += err == DB_SUCCESS;
    return err;
}

/* ---- one page by itself ---- */

/** Is the home write that this slot protected durable, or its file gone? */
static bool buf_single_slot_is_free(const buf_pool_t *pool, uint32_t slot)
{
    if (!pool->single[slot].used) {
        return true;
    }
    const fil_space_t *space = fil_space_get(pool->fil, pool->single[slot].space);
    return space == NULL || fil_is_synced(space, pool->single[slot].n_write);
}

/** A free slot; if there is none, the files are fsynced, and then all are. */
static dberr_t buf_single_slot_take(buf_pool_t *pool, uint32_t *out)
{
    for (uint32_t slot = 0; slot < DBLWR_SINGLE_SLOTS; slot++) {
        if (buf_single_slot_is_free(pool, slot)) {
            *out = slot;
            return DB_SUCCESS;
        }
    }
    for (uint32_t slot = 0; slot < DBLWR_SINGLE_SLOTS; slot++) {
        TRY(fil_sync(pool->fil, fil_space_get(pool->fil, pool->single[slot].space)));
    }
    *out = 0;
    return DB_SUCCESS;
}

/** The copy into a single-page slot, durable; *pos = where. The slot is in use from now on: the
home write is the next write of the page's file. */
static dberr_t buf_single_write_copy(buf_pool_t *pool, const buf_block_t *block, uint32_t *pos)
{
    uint32_t slot = 0;
    TRY(buf_single_slot_take(pool, &slot));
    *pos = pool->dblwr_pages + slot;
    pool->single[slot].used = true;
    pool->single[slot].space = block->id.space;
    pool->single[slot].n_write = fil_space_get(pool->fil, block->id.space)->n_writes + 1;
    PROBE_MARK(pool->env->probe,
               "dblwr_single slot=%" PRIu32 " space=%" PRIu32 " page=%" PRIu32 " pos=%" PRIu32,
               slot, block->id.space, block->id.page_no, *pos);
    TRY(buf_dblwr_write_area(pool, *pos, pool->single_buf, 1));
    TRY(buf_dblwr_sync_area(pool));
    PROBE_POINT(pool->env->probe, "dblwr.area_synced");
    return DB_SUCCESS;
}

dberr_t buf_dblwr_drop_page(buf_pool_t *pool, buf_block_t *block)
{
    TRY(buf_dblwr_write_log(pool, block->newest_modification));
    buf_block_discard(pool, block);
    pool->env->stats.pages_freed_unwritten++;
    return DB_SUCCESS;
}

dberr_t buf_dblwr_write_single(buf_pool_t *pool, buf_block_t *block)
{
    CHECK(block->fix_count == 0 && !block->in_flight && block->oldest_modification != 0);
    if (buf_dblwr_drops(pool, block)) {
        return buf_dblwr_drop_page(pool, block);
    }
    bool skip = buf_dblwr_skips(pool, block);
    buf_dblwr_copy(pool, block, pool->single_buf);
    TRY(buf_dblwr_write_log(pool, block->newest_modification));
    uint32_t pos = 0;
    if (!skip) {
        TRY(buf_single_write_copy(pool, block, &pos));
    }
    const char *why = pool->dblwr_file == NULL ? "off" : skip ? "init" : "single";
    return buf_dblwr_write_home(pool, block, pool->single_buf, skip ? -1 : (int)pos, why);
}

/* ---- recovery ---- */

dberr_t buf_dblwr_sync_found(env_t *env)
{
    os_file_t *file = NULL;
    dberr_t err = env_open(env, DBLWR_FILE_NAME, OS_OPEN, &file);
    if (err != DB_SUCCESS) {
        return err == DB_NOT_FOUND ? DB_SUCCESS : err;
    }
    err = env_sync(env, file);
    env_close(env, file);
    return err;
}

dberr_t buf_dblwr_each_copy(env_t *env, uint32_t page_size, buf_dblwr_copy_fn fn, void *ctx)
{
    os_file_t *file = NULL;
    dberr_t err = env_open(env, DBLWR_FILE_NAME, OS_OPEN, &file);
    if (err != DB_SUCCESS) {
        return err == DB_NOT_FOUND ? DB_SUCCESS : err;
    }
    byte *image = malloc(2U * page_size);
    if (image == NULL) {
        err = err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for a doublewrite copy");
    }
    for (uint32_t i = 0; err == DB_SUCCESS && i < DBLWR_POSITIONS_MAX; i++) {
        size_t n_read = 0;
        err = env_read(env, file, (uint64_t)i * page_size, image, page_size, &n_read);
        if (err != DB_SUCCESS || n_read < page_size) {
            break;
        }
        const byte *page = image;
        if (fil_page_get_type(image) == FIL_PAGE_PAGE_COMPRESSED) {
            page = memcpy(image + page_size, image, page_size);
            page_decompress(image + page_size, page_size);
        }
        page_id_t id = fil_page_get_id(page);
        if (fil_page_verify(page, page_size, id) == PAGE_OK) {
            err = fn(ctx, id, fil_page_get_lsn(page), page, image);
        }
    }
    free(image);
    env_close(env, file);
    return err;
}
