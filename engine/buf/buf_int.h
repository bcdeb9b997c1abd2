/** Private to buf/: the pool's state and the helpers its files share. */
#ifndef BUF_BUF_INT_H
#define BUF_BUF_INT_H

#include "buf/buf.h"
#include "buf/buf_dblwr.h"

#define DBLWR_PAGES_MAX 256U       /**< upper limit of the option dblwr_pages */
#define BUF_LRU_FLUSH_PAGES 16U    /**< dirty pages written at once when a victim is dirty */
#define BUF_CLEANER_STEP_PAGES 32U /**< pages of one step of the page cleaner */

struct buf_pool {
    env_t *env;
    log_t *log;
    fil_t *fil;
    uint32_t page_size;
    uint32_t n_blocks;
    bool log_optimize_ddl;
    uint32_t n_builds; /**< index builds under way */

    buf_block_t *blocks;     /**< n_blocks */
    byte *frames;            /**< n_blocks * page_size, one allocation */
    buf_block_t **hash;      /**< chains through hash_next */
    uint32_t hash_mask;      /**< number of chains - 1 */
    buf_block_t *free_first; /**< blocks without a page, through hash_next */
    buf_block_t *lru_first;  /**< most recently used */
    buf_block_t *lru_last;
    buf_block_t *flush_first; /**< oldest modification */
    buf_block_t *flush_last;
    uint32_t n_dirty;
    uint32_t n_fixed; /**< blocks with fix_count > 0 */

    buf_block_t **collected; /**< n_blocks: what a flush call has chosen */
    buf_block_t **batch;     /**< dblwr_pages: one batch in order of page id */

    os_file_t *dblwr_file; /**< NULL: doublewrite is off */
    uint32_t dblwr_pages;
    uint32_t dblwr_slot; /**< of the next batch */
    byte *dblwr_buf;     /**< dblwr_pages pages: the copies of a batch */

    lsn_t ckpt_end_lsn; /**< end of the last checkpoint's marker, 0 before the first */
    bool ckpt_sharp;    /**< nothing was dirty at the last checkpoint */
};

/* ---- buf_lru.c ---- */

/** A frame without a page, taken from the free list or by eviction. DB_OUT_OF_SPACE: all pinned. */
WARN_UNUSED dberr_t buf_lru_get_free(buf_pool_t *pool, buf_block_t **out);
void buf_lru_add_first(buf_pool_t *pool, buf_block_t *block);
void buf_lru_touch(buf_pool_t *pool, buf_block_t *block);
void buf_lru_remove(buf_pool_t *pool, buf_block_t *block);

/* ---- buf_pool.c ---- */

void buf_block_push_free(buf_pool_t *pool, buf_block_t *block);
/** Takes a clean, unpinned block out of hash and LRU; its frame becomes free. */
void buf_block_release(buf_pool_t *pool, buf_block_t *block);

/* ---- buf_flush.c ---- */

/** Takes a block out of both flush lists: it is clean afterwards. */
void buf_flush_remove(buf_pool_t *pool, buf_block_t *block);

/* ---- buf_dblwr.c ---- */

WARN_UNUSED dberr_t buf_dblwr_open(buf_pool_t *pool);

#endif
