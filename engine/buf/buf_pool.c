/** The buffer pool: frames, lookup by page id, pins.

Place: above fil/ (the only way to the files) and log/ (write-ahead rule); mtr/ is the only client
that changes pages. Top of buf/.

    free list --get/create--> hash + LRU, clean --set_dirty--> + both flush lists
        ^                           |  ^                              |
        +------- evict, discard ----+  +--- home write, observer_drop ---+

Invariants
1. memory is one allocation of frames made at creation: no image makes the pool grow;
2. (I15) a freed page is never handed out, only recreated;
3. (I4) a page from beyond the end of the log is never used: it tells that log and files do not
   belong together. */
#include "buf/buf_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define BUF_FRAME_ALIGN 4096U

static dberr_t buf_pool_alloc(buf_pool_t *pool)
{
    uint32_t chains = 64;
    while (chains < 2 * pool->n_blocks) {
        chains *= 2;
    }
    pool->hash_mask = chains - 1;
    pool->hash = calloc(chains, sizeof(buf_block_t *));
    pool->blocks = calloc(pool->n_blocks, sizeof(*pool->blocks));
    pool->collected = calloc(pool->n_blocks, sizeof(buf_block_t *));
    pool->batch.pages = calloc(pool->dblwr_pages, sizeof(pool->batch.pages[0]));
    pool->frames = aligned_alloc(BUF_FRAME_ALIGN, (size_t)pool->n_blocks * pool->page_size);
    pool->dblwr_buf = aligned_alloc(BUF_FRAME_ALIGN, (size_t)pool->dblwr_pages * pool->page_size);
    pool->single_buf = aligned_alloc(BUF_FRAME_ALIGN, pool->page_size);
    if (pool->hash == NULL || pool->blocks == NULL || pool->collected == NULL
        || pool->batch.pages == NULL || pool->frames == NULL || pool->dblwr_buf == NULL
        || pool->single_buf == NULL) {
        return err_set(&pool->env->err, DB_OUT_OF_MEMORY,
                       "no memory for a buffer pool of %" PRIu32 " pages", pool->n_blocks);
    }
    for (uint32_t i = pool->n_blocks; i-- > 0;) {
        pool->blocks[i].frame = pool->frames + (size_t)i * pool->page_size;
        buf_block_push_free(pool, &pool->blocks[i]);
    }
    return DB_SUCCESS;
}

dberr_t buf_pool_create(env_t *env, log_t *log, fil_t *fil, const engine_options_t *options,
                        buf_pool_t **out)
{
    CHECK(options->page_size == fil_page_size(fil));
    CHECK(options->buffer_pool_pages > 0 && options->buffer_pool_pages <= 1U << 30);
    CHECK(options->dblwr_pages > 0 && options->dblwr_pages <= DBLWR_PAGES_MAX);
    buf_pool_t *pool = calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return err_set(&env->err, DB_OUT_OF_MEMORY, "no memory for the buffer pool");
    }
    pool->env = env;
    pool->log = log;
    pool->fil = fil;
    pool->page_size = options->page_size;
    pool->n_blocks = options->buffer_pool_pages;
    pool->dblwr_pages = options->dblwr_pages;
    pool->atomic_writes = options->atomic_write_unit >= options->page_size;
    pool->log_optimize_ddl = options->log_optimize_ddl && log_format(log)->unlogged_loads;
    pool->ddl_mixed = log_last_checkpoint(log)->loads == LOG_LOADS_MIXED;
    pool->log_page_checksums = options->log_page_checksums && log_format(log)->page_checksums;
    pool->cleaner_interval = options->cleaner_interval;
    pool->compression = (page_algorithm_t)options->page_compression;
    pool->scrub.on = options->scrub && log_format(log)->all_frees;
    dberr_t err = buf_pool_alloc(pool);
    if (err == DB_SUCCESS && options->doublewrite && !pool->atomic_writes) {
        err = buf_dblwr_open(pool);
    }
    if (err != DB_SUCCESS) {
        buf_pool_free(pool);
        return err;
    }
    *out = pool;
    return DB_SUCCESS;
}

void buf_pool_free(buf_pool_t *pool)
{
    if (pool == NULL) {
        return;
    }
    for (fil_space_t *space = fil_first(pool->fil); space != NULL; space = space->next) {
        space->flush_list = NULL;
    }
    if (pool->dblwr_file != NULL) {
        env_close(pool->env, pool->dblwr_file);
    }
    free(pool->scrub.blanks);
    free(pool->single_buf);
    free(pool->dblwr_buf);
    free(pool->frames);
    free(pool->batch.pages);
    free(pool->collected);
    free(pool->blocks);
    free(pool->hash);
    free(pool);
}

env_t *buf_env(const buf_pool_t *pool)
{
    return pool->env;
}

log_t *buf_log(const buf_pool_t *pool)
{
    return pool->log;
}

fil_t *buf_fil(const buf_pool_t *pool)
{
    return pool->fil;
}

uint32_t buf_page_size(const buf_pool_t *pool)
{
    return pool->page_size;
}

bool buf_log_optimize_ddl(const buf_pool_t *pool)
{
    return pool->log_optimize_ddl;
}

bool buf_log_page_checksums(const buf_pool_t *pool)
{
    return pool->log_page_checksums;
}

bool buf_init_may_skip(buf_pool_t *pool, space_id_t space_id)
{
    if (pool->log_optimize_ddl) {
        return false;
    }
    bool is_read =
        pool->ddl_mixed
        && fil_space_get(pool->fil, space_id)->enable_lsn > log_checkpoint_lsn(pool->log);
    pool->env->stats.dblwr_unskipped += is_read;
    return !is_read;
}

bool buf_load_unlogged(buf_pool_t *pool, space_id_t space_id)
{
    if (!pool->log_optimize_ddl || !pool->ddl_mixed) {
        return pool->log_optimize_ddl;
    }
    fil_space_t *space = fil_space_get(pool->fil, space_id);
    if (space->torn_lsn > log_checkpoint_lsn(pool->log)) {
        pool->env->stats.loads_logged_after_skip++;
        return false;
    }
    bool found = false;
    buf_block_t *block = space->flush_list;
    while (block != NULL) {
        found |= block->init_on_flush;
        block->init_on_flush = false;
        block = block->space_next != space->flush_list ? block->space_next : NULL;
    }
    pool->env->stats.loads_amid_inits += found;
    return true;
}

dberr_t buf_set_log_optimize_ddl(buf_pool_t *pool, bool on, bool mixed)
{
    if (!log_format(pool->log)->unlogged_loads) {
        return DB_SUCCESS;
    }
    if (pool->ddl_mixed == mixed && (pool->log_optimize_ddl == on || mixed)) {
        pool->log_optimize_ddl = on;
        return DB_SUCCESS;
    }
    TRY(buf_flush_all(pool));
    /* The slot says how the log behind it is written: until it is durable, recovery starts from
    the old one, in the old mode. */
    pool->log_optimize_ddl = on;
    pool->ddl_mixed = mixed;
    return buf_checkpoint(pool);
}

/** Refuses a page number that no page can have, before a frame is spent on it. */
static dberr_t buf_page_check(buf_pool_t *pool, page_id_t id, fil_space_t **out)
{
    fil_space_t *space = fil_space_get(pool->fil, id.space);
    if (space == NULL) {
        return err_set(&pool->env->err, DB_CORRUPTION, "page %" PRIu32 " of unknown space %" PRIu32,
                       id.page_no, id.space);
    }
    if (id.page_no >= space->size_pages) {
        return err_set(&pool->env->err, DB_CORRUPTION,
                       "page %" PRIu32 " lies beyond the %" PRIu32 " pages of %s", id.page_no,
                       space->size_pages, space->path);
    }
    *out = space;
    return DB_SUCCESS;
}

static dberr_t buf_page_read(buf_pool_t *pool, fil_space_t *space, page_no_t page_no, byte *frame)
{
    TRY(fil_page_read(pool->fil, space, page_no, frame));
    page_id_t id = {space->id, page_no};
    page_verdict_t verdict = fil_page_verify(frame, pool->page_size, id);
    if (verdict != PAGE_OK) {
        return err_refuse(&pool->env->err, DB_CORRUPTION, REFUSAL_TORN_PAGE,
                          "page %" PRIu32 " of %s: %s", page_no, space->path,
                          page_verdict_name(verdict));
    }
    if (fil_page_get_lsn(frame) > log_lsn(pool->log)) {
        return err_refuse(&pool->env->err, DB_CORRUPTION, REFUSAL_PAGE_BEYOND_LOG,
                          "page %" PRIu32 " of %s: LSN %" PRIu64
                          " is beyond the end of the log, %" PRIu64,
                          page_no, space->path, fil_page_get_lsn(frame), log_lsn(pool->log));
    }
    return DB_SUCCESS;
}

dberr_t buf_page_get(buf_pool_t *pool, page_id_t id, buf_block_t **out)
{
    buf_block_t *block = buf_page_peek(pool, id);
    if (block != NULL) {
        if (block->freed) {
            return err_refuse(&pool->env->err, DB_CORRUPTION, REFUSAL_PAGE_FREED,
                              "page %" PRIu32 " of space %" PRIu32 " is used although it is free",
                              id.page_no, id.space);
        }
        buf_block_fix(pool, block);
        *out = block;
        return DB_SUCCESS;
    }
    fil_space_t *space = NULL;
    TRY(buf_page_check(pool, id, &space));
    TRY(buf_lru_get_free(pool, &block));
    dberr_t err = buf_page_read(pool, space, id.page_no, block->frame);
    if (err != DB_SUCCESS) {
        buf_block_push_free(pool, block);
        return err;
    }
    buf_block_enter(pool, block, id);
    buf_block_fix(pool, block);
    *out = block;
    return DB_SUCCESS;
}

dberr_t buf_page_create(buf_pool_t *pool, page_id_t id, buf_block_t **out)
{
    fil_space_t *space = NULL;
    TRY(buf_page_check(pool, id, &space));
    buf_block_t *block = buf_page_peek(pool, id);
    if (block == NULL) {
        TRY(buf_lru_get_free(pool, &block));
        buf_block_enter(pool, block, id);
    } else if (block->fix_count > 0) {
        return err_set(&pool->env->err, DB_CORRUPTION,
                       "page %" PRIu32 " of %s is given out as free although it is in use",
                       id.page_no, space->path);
    }
    pool->env->stats.pages_reused_in_flight += block->in_flight;
    TRY(buf_block_wait(pool, block));
    buf_scrub_forget(pool, id);
    /* What the page was before is void; only its place on the flush lists stays. */
    memset(block->frame, 0, pool->page_size);
    block->init_lsn = 0;
    block->init_on_flush = false;
    block->freed = false;
    block->observer = 0;
    block->validated = 0;
    buf_block_fix(pool, block);
    *out = block;
    return DB_SUCCESS;
}
