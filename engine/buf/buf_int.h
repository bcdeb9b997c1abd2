/** Private to buf/: the pool's state and the helpers its files share. */
#ifndef BUF_BUF_INT_H
#define BUF_BUF_INT_H

#include "buf/buf.h"
#include "buf/buf_dblwr.h"
#include "page/page_compress.h"

#define BUF_LRU_FLUSH_PAGES 16U    /**< dirty pages written at once when a victim is dirty */
#define BUF_LRU_SINGLE 4U          /**< one dirty victim in so many is written by itself */
#define BUF_CLEANER_STEP_PAGES 32U /**< pages of one step of the page cleaner */
#define BUF_CLEANER_CHECKPOINT 16U /**< one step in so many is a checkpoint instead */
#define BUF_CLEANER_FULL 4U        /**< one of these in so many is a full one */
#define BUF_FILL_NAMES 16U         /**< records of each space in a group that fills the log */
#define BUF_FILL_BLOCKS 4U         /**< what a full log has left, beside a marker */
#define BUF_SCRUB_STEPS 4U         /**< one step in so many scrubs, if there is what to scrub */
#define BUF_SYNC_STEPS 6U          /**< an fsync takes as long as so many steps, on average */

typedef enum buf_batch_state {
    BATCH_NONE,         /**< none in flight: the batch region is free */
    BATCH_COPIED,       /**< pages latched, copies in memory */
    BATCH_LOG_WRITTEN,  /**< up to the newest of the pages */
    BATCH_LOGGED,       /**< the log of the copies is durable */
    BATCH_AREA_WRITTEN, /**< copies written, not fsynced */
    BATCH_HOME,         /**< copies durable: pages go home one by one */
    BATCH_UNSYNCED,     /**< all pages are home, not all files fsynced */
    BATCH_SYNCING       /**< the fsync of a file is under way */
} buf_batch_state_t;

typedef struct buf_batch_page {
    page_id_t id;
    buf_block_t *block; /**< the page's until it is home */
    uint32_t pos;       /**< of its copy in dblwr_buf; from n_copies on: not in the area */
} buf_batch_page_t;

/** Bytes of a page's home, from `from` to its end, that nobody needs. */
typedef struct buf_blank {
    page_id_t id;
    uint32_t from;    /**< 0: the page is free */
    lsn_t lsn;        /**< of a free page: end of the mtr that says so */
    uint64_t n_write; /**< of a hole behind a compressed page: number of that write in the file */
} buf_blank_t;

/** What waits to be blanked (buf_scrub.c), the oldest first. */
typedef struct buf_scrub {
    bool on; /**< freed pages are */
    buf_blank_t *blanks;
    uint32_t n;
    uint32_t capacity;
} buf_scrub_t;

/** The batch in flight (buf_batch.c). */
typedef struct buf_batch {
    buf_batch_state_t state;
    buf_batch_page_t *pages; /**< dblwr_pages, in order of page id */
    uint32_t n;
    uint32_t n_copies; /**< pages that have a copy in the area */
    uint32_t n_home;   /**< pages[0 .. n_home) are home */
    uint32_t n_synced; /**< pages[0 .. n_synced) are durable */
    lsn_t newest_lsn;  /**< of the copies */
    lsn_t submit_lsn;  /**< end of the log when they were made */
    fil_sync_t sync;   /**< in SYNCING */
} buf_batch_t;

struct buf_pool {
    env_t *env;
    log_t *log;
    fil_t *fil;
    uint32_t page_size;
    uint32_t n_blocks;
    bool log_optimize_ddl; /**< only if the log knows unlogged loads */
    bool ddl_mixed;        /**< it may have been another one since C */
    bool log_page_checksums;
    page_algorithm_t compression; /**< of pages of tables that go home */

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
    buf_batch_t batch;
    buf_scrub_t scrub;

    bool atomic_writes;    /**< the storage writes a page whole or not at all */
    os_file_t *dblwr_file; /**< NULL: doublewrite is off, or not needed */
    uint32_t dblwr_pages;
    byte *dblwr_buf;  /**< dblwr_pages pages: the copies of a batch */
    byte *single_buf; /**< one page: the copy of a single-page flush */
    struct {
        bool used;
        space_id_t space; /**< whose home write the copy protects */
        uint64_t n_write; /**< that write's number in its file */
    } single[DBLWR_SINGLE_SLOTS];

    buf_copier_t copier;       /**< step is NULL: there is none */
    uint32_t cleaner_interval; /**< 0: no page cleaner */
    struct {
        buf_act_t act;
        uint32_t left; /**< yield points to go */
        bool cleans;   /**< the batch in flight makes a step at each */
    } placed;
    bool in_checkpoint; /**< what works at its yield points takes none */

    lsn_t ckpt_end_lsn; /**< end of the last checkpoint's marker, 0 before the first */
    bool ckpt_sharp;    /**< nothing was dirty at the last checkpoint */
    bool ckpt_names;    /**< its marker's group names spaces */
    bool ends;          /**< the next checkpoint is the last one */
};

/* ---- buf_list.c ---- */

void buf_block_push_free(buf_pool_t *pool, buf_block_t *block);
/** Makes a frame that is on no list a page of the pool. */
void buf_block_enter(buf_pool_t *pool, buf_block_t *block, page_id_t id);
/** Takes a clean, unpinned block out of hash and LRU; its frame becomes free. */
void buf_block_release(buf_pool_t *pool, buf_block_t *block);
/** Takes a block out of both flush lists: it is clean afterwards. */
void buf_flush_remove(buf_pool_t *pool, buf_block_t *block);
/** Takes a dirty page that must not reach its file off the flush lists. */
void buf_block_discard(buf_pool_t *pool, buf_block_t *block);
/** The page is given out again, or its space goes: it is not scrubbed. */
void buf_scrub_forget(buf_pool_t *pool, page_id_t id);
void buf_scrub_forget_space(buf_pool_t *pool, space_id_t space);
/** A page went home, by the write of its file that was the last: of it `stored` bytes are
needed. */
void buf_scrub_written(buf_pool_t *pool, const fil_space_t *space, page_no_t page_no,
                       uint32_t stored);

/* ---- buf_lru.c ---- */

/** A frame without a page, taken from the free list or by eviction. DB_OUT_OF_SPACE: all pinned. */
WARN_UNUSED dberr_t buf_lru_get_free(buf_pool_t *pool, buf_block_t **out);

/** Every page that nobody uses leaves the pool; dirty ones are written first. */
WARN_UNUSED dberr_t buf_lru_evict_all(buf_pool_t *pool);

/* ---- buf_dblwr.c ---- */

WARN_UNUSED dberr_t buf_dblwr_open(buf_pool_t *pool);
/** The one place that decides it: does this page go home without a copy (I13)? */
bool buf_dblwr_skips(const buf_pool_t *pool, const buf_block_t *block);
/** The one place that decides it: is this page, freed and dirty, not written at all (10.5,
MDEV-15528)? */
bool buf_dblwr_drops(const buf_pool_t *pool, const buf_block_t *block);
void buf_dblwr_copy(const buf_pool_t *pool, const buf_block_t *block, byte *copy);
/** The first step of every page write: the log durable up to lsn. */
WARN_UNUSED dberr_t buf_dblwr_write_log(buf_pool_t *pool, lsn_t lsn);
WARN_UNUSED dberr_t buf_dblwr_write_area(buf_pool_t *pool, uint32_t pos, const byte *copies,
                                         uint32_t n);
WARN_UNUSED dberr_t buf_dblwr_sync_area(buf_pool_t *pool);
/** The home write; the page is clean then. pos: of its copy in the area, or -1. */
WARN_UNUSED dberr_t buf_dblwr_write_home(buf_pool_t *pool, buf_block_t *block, const byte *copy,
                                         int pos, const char *why);
/** Overwrites the home of a freed page with zeros. The log that frees it is durable. */
WARN_UNUSED dberr_t buf_dblwr_write_freed(buf_pool_t *pool, page_id_t id);
/** A freed page that is not written at all: the log that frees it is made durable, then the page is
off the flush list. */
WARN_UNUSED dberr_t buf_dblwr_drop_page(buf_pool_t *pool, buf_block_t *block);
/** Writes one dirty, unpinned page by itself, up to its home write; or drops it. */
WARN_UNUSED dberr_t buf_dblwr_write_single(buf_pool_t *pool, buf_block_t *block);

/* ---- buf_scrub.c ---- */

/** Blanks what has waited longest and may be blanked, at most max pages. */
WARN_UNUSED dberr_t buf_scrub_pages(buf_pool_t *pool, uint32_t max);

/* ---- buf_checkpoint.c ---- */

/** fil_sync(), as a wait in which others work: a yield point between its two steps. */
WARN_UNUSED dberr_t buf_sync_wait(buf_pool_t *pool, fil_space_t *space);

/* ---- buf_batch.c ---- */

/** Makes dirty, unpinned blocks, at most dblwr_pages, the batch in flight. There is none
(CHECK). */
void buf_batch_submit(buf_pool_t *pool, buf_block_t *const *blocks, uint32_t n);
/** Are pages of the space in flight? */
bool buf_batch_has_space(const buf_pool_t *pool, space_id_t space);
/** One step of the batch in flight. */
WARN_UNUSED dberr_t buf_batch_step(buf_pool_t *pool);
/** Drives the batch in flight, if there is one, to its end. */
WARN_UNUSED dberr_t buf_batch_finish(buf_pool_t *pool);
/** Writes dirty, unpinned blocks (any number: split into batches), each batch to its end. None is
in flight (CHECK). On success all are clean; the files of a batch with copies are fsynced. */
WARN_UNUSED dberr_t buf_batch_write(buf_pool_t *pool, buf_block_t *const *blocks, uint32_t n);

#endif
