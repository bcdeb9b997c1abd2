/** Buffer pool: a bounded set of frames, LRU eviction, dirty page lists, page cleaning, checkpoint.

Invariants
- a page with an open mtr on it (fix_count > 0) is neither evicted nor chosen to be written;
- a page that is being written (in_flight) is neither changed nor evicted: who wants to drives the
  write first;
- (I4) a page is written home only when the log is durable up to its LSN;
- (I13) doublewrite is skipped only as buf_dblwr.h says;
- (I15) a freed page is not handed out before it is created again; if it is dirty it is still
  written with a 10.4 log, and only taken off the flush list with a log of all frees: nobody reads
  it there;
- every dirty block is on the global flush list (ascending oldest_modification) and on its space's
  list, so that flushing a space costs in proportion to that space's dirty pages. */
#ifndef BUF_BUF_H
#define BUF_BUF_H

#include "base/options.h"
#include "fil/fil.h"
#include "page/fil_page.h"

typedef struct buf_pool buf_pool_t;

typedef struct buf_block {
    page_id_t id;
    byte *frame; /**< page_size bytes */
    uint32_t fix_count;
    lsn_t oldest_modification; /**< start LSN of the first unflushed change; 0 = clean */
    lsn_t newest_modification;
    lsn_t init_lsn; /**< end LSN of the logged mtr that last initialised the page here, if it has
                                     not gone home since; 0 = none */
    bool init_on_flush;   /**< a logged initialisation with log_optimize_ddl off is not yet written:
                                     that write skips doublewrite (I13) */
    bool in_flight;       /**< in the doublewrite batch, not yet home */
    bool freed;           /**< OP_FREE_PAGE logged, no initialisation since */
    bool logged;          /**< it has changes that the log has and its home has not */
    index_id_t observer;  /**< index of the NO_REDO load that dirtied it; 0 = none */
    const void *writer;   /**< the open mtr that has changed it (one at a time); NULL = none */
    index_id_t validated; /**< kept by btr/: the index as whose page the whole frame was validated
                                     since it was read or created; 0 = not yet */
    struct buf_block *hash_next;
    struct buf_block *lru_prev, *lru_next;
    struct buf_block *flush_prev, *flush_next; /**< global, ascending oldest_modification */
    struct buf_block *space_prev, *space_next; /**< the space's dirty pages, the same order */
} buf_block_t;

/** options: page size resolved (not 0), buffer_pool_pages, doublewrite, atomic_write_unit,
dblwr_pages, log_optimize_ddl, cleaner_interval, scrub, page_compression. Opens or creates the
doublewrite file when doublewrite is on, and needed. Caller: buf_pool_free(). */
WARN_UNUSED dberr_t buf_pool_create(env_t *env, log_t *log, fil_t *fil,
                                    const engine_options_t *options, buf_pool_t **out);
void buf_pool_free(buf_pool_t *pool); /**< writes nothing; NULL is fine */

env_t *buf_env(const buf_pool_t *pool);
log_t *buf_log(const buf_pool_t *pool);
fil_t *buf_fil(const buf_pool_t *pool);
uint32_t buf_page_size(const buf_pool_t *pool);

/** log_optimize_ddl as it is now; at creation, as options says. It is written with each checkpoint.
Switching it flushes everything and takes a full checkpoint, so that the log from the checkpoint on
has either INDEX_LOADs or pages whose write skipped doublewrite, never both (MDEV-19747). Mixed
(optimize_ddl_drain=OFF): it may have both, and the two functions below keep them apart in each
space; to become or cease to be mixed takes a full checkpoint too. No index build may be running:
its load goes on as it began (the owner of the catalogue sees to that). */
bool buf_log_optimize_ddl(const buf_pool_t *pool);
WARN_UNUSED dberr_t buf_set_log_optimize_ddl(buf_pool_t *pool, bool on, bool mixed);
/** May the first write of a page that a logged mtr initialises skip doublewrite? Not while an
INDEX_LOAD of its space may make recovery read it (I13). */
bool buf_init_may_skip(buf_pool_t *pool, space_id_t space);
/** May a load into the space, which exists, go without redo? Not while a page that its INDEX_LOAD
would make recovery read may be torn without a copy (I13). If it may, no page of the space skips
doublewrite from now on. */
bool buf_load_unlogged(buf_pool_t *pool, space_id_t space);
/** log_page_checksums, if the log has such records. */
bool buf_log_page_checksums(const buf_pool_t *pool);

/* ---- pages; every success pins the block, the caller (mtr) unpins it ---- */

/** The page, read and verified if it is not here. DB_CORRUPTION: torn or wrong page, freed page,
page beyond the space, page LSN beyond the end of the log (which must be writable). DB_OUT_OF_SPACE:
every frame is pinned. May flush and evict others. */
WARN_UNUSED dberr_t buf_page_get(buf_pool_t *pool, page_id_t id, buf_block_t **out);

/** A frame for a page that will be initialised: never read; contents zeroed; freed flag cleared.
DB_CORRUPTION: page beyond the space, or pinned (only damaged descriptors give out a page that is in
use). */
WARN_UNUSED dberr_t buf_page_create(buf_pool_t *pool, page_id_t id, buf_block_t **out);

/** The block if it is in the pool, unpinned, else NULL. */
buf_block_t *buf_page_peek(buf_pool_t *pool, page_id_t id);

void buf_block_fix(buf_pool_t *pool,
                   buf_block_t *block); /**< one more pin of a block in the pool */
void buf_block_unfix(buf_pool_t *pool, buf_block_t *block);

/** Before a change of a pinned page: drives the doublewrite batch in flight until the page is
home. */
WARN_UNUSED dberr_t buf_block_wait(buf_pool_t *pool, buf_block_t *block);

/** For mtr commit: enters the block into the flush lists if it is clean, and sets its LSNs and the
space's max_lsn. The frame's LSN is the caller's to set. Calls come in the order of the log:
start_lsn is not below the oldest_modification of any dirty page (CHECK). */
void buf_block_set_dirty(buf_pool_t *pool, buf_block_t *block, lsn_t start_lsn, lsn_t end_lsn);

/** For the commit of an mtr that freed the page, and for recovery that finds it freed: with the
option scrub and a log of all frees its home is overwritten with zeros, or a hole punched, some time
later, unless it is created again before. lsn: end of that mtr. */
void buf_scrub_note(buf_pool_t *pool, page_id_t id, lsn_t lsn);

/** Forgets every page of a space without writing (before its file is deleted). None pinned
(CHECK). */
WARN_UNUSED dberr_t buf_discard_space(buf_pool_t *pool, space_id_t space);

/** For an interrupted NO_REDO load, before its pages are freed: takes the dirty pages that have its
stamp off the flush list, unwritten, but for those with logged changes. The frames stay in the pool
as if they were clean. */
WARN_UNUSED dberr_t buf_observer_drop(buf_pool_t *pool, space_id_t space, index_id_t observer);

/** A point at which a background thread could run: one call in cleaner_interval, as the schedule
draws, is a step of the page cleaner: a step of the doublewrite batch in flight, or the start of one
with the oldest dirty pages; now and then a checkpoint. Changes nothing that a caller without the
page's latch could see. */
WARN_UNUSED dberr_t buf_yield(buf_pool_t *pool);

typedef enum buf_act {
    BUF_ACT_NONE,
    BUF_ACT_CHECKPOINT,
    BUF_ACT_CHECKPOINT_FULL,
    /** a batch of the oldest dirty pages begins: a step here, and at each yield point behind it */
    BUF_ACT_CLEAN,
    /** every page that is not pinned leaves the pool, written before if it is dirty */
    BUF_ACT_EVICT,
    /** the log is filled up: nobody who does not ask for room has any */
    BUF_ACT_FILL
} buf_act_t;
/** Places something at the n-th yield point from here on, n > 0, once, whatever the schedule draws.
A checkpoint that cannot be taken there is taken at the next one where it can; the log is not filled
amid one either. In place of what was
placed and not reached. */
void buf_place(buf_pool_t *pool, buf_act_t act, uint32_t n);

/** A hot backup that goes on beside all other work. Its calls read files and write its own; they
neither touch the pool nor append to the log, and keep their failures to themselves. */
typedef struct buf_copier {
    void (*step)(void *ctx); /**< at a yield point */
    void (*before_slot)(
        /** a checkpoint is about to take effect: log before it may be overwritten then */
        void *ctx);
    void *ctx;
} buf_copier_t;
/** Who works at the yield points besides the page cleaner; NULL: nobody. */
void buf_set_copier(buf_pool_t *pool, const buf_copier_t *copier);

/** What a reader of the file may get of a page while it is written: any part of the new contents,
as the schedule draws, goes into the old ones in `page`, which is decompressed if it can be. False:
the page is not being written, and nothing is changed. */
bool buf_page_tear(buf_pool_t *pool, page_id_t id, byte *page);

/** log_write_up_to(), as a wait in which others work: a yield point before the write, and some
between it and the fsync. */
WARN_UNUSED dberr_t buf_log_wait(buf_pool_t *pool, lsn_t lsn, bool sync);

/* ---- flushing; none of these may be called with an mtr open ---- */

/** Writes up to max_pages of the oldest dirty pages with oldest_modification < lsn_limit; one step
of the page cleaner. *n_flushed may be NULL. */
WARN_UNUSED dberr_t buf_flush_list(buf_pool_t *pool, uint32_t max_pages, lsn_t lsn_limit,
                                   uint32_t *n_flushed);
/** Writes every dirty page of the space, blanks what waits for that, and fsyncs its file: nothing
more comes. */
WARN_UNUSED dberr_t buf_flush_space(buf_pool_t *pool, space_id_t space);
/** The same, each page by itself (FLUSH TABLES ... FOR EXPORT). */
WARN_UNUSED dberr_t buf_flush_for_export(buf_pool_t *pool, space_id_t space);
/** Writes dirty pages that carry the stamp of a NO_REDO load, at most max_pages, each as a
single-page flush, from the oldest on. *over: none is left. */
WARN_UNUSED dberr_t buf_observer_flush(buf_pool_t *pool, space_id_t space, index_id_t observer,
                                       uint32_t max_pages, bool *over);
/** Behind the last part: waits for the writes in flight and fsyncs the space's file. */
WARN_UNUSED dberr_t buf_observer_sync(buf_pool_t *pool, space_id_t space);
WARN_UNUSED dberr_t buf_flush_all(buf_pool_t *pool); /**< all spaces, fsynced */

lsn_t buf_oldest_modification(const buf_pool_t *pool); /**< 0 if nothing is dirty */
uint32_t buf_dirty_pages(const buf_pool_t *pool);

/** Empties the pool: flushes all, then evicts every page (between recovery batches). */
WARN_UNUSED dberr_t buf_flush_and_evict_all(buf_pool_t *pool);

/* ---- checkpoint (buf_checkpoint.c) ---- */

/** A checkpoint at the present oldest modification, in the order of I19: C, fsync of all data
files, FILE_NAME of spaces with max_lsn >= C and marker into the log, log fsync, slot, fsync. No
page is flushed. Does nothing when C is the last checkpoint's and nothing was logged since. */
WARN_UNUSED dberr_t buf_checkpoint(buf_pool_t *pool);

/** Flushes everything, then checkpoints: "sharp". */
WARN_UNUSED dberr_t buf_checkpoint_full(buf_pool_t *pool);

/** The same before a clean close. Its marker names no space: nothing is written behind it, and a
log without names may be converted (log_convert()). */
WARN_UNUSED dberr_t buf_checkpoint_last(buf_pool_t *pool);

/** Call before starting a writing mtr or a logged file operation, with no page pinned: makes room
in the log for one mtr of MTR_LOG_MAX_PAGES pages of records, or the operation's record, by page
cleaning and checkpoints as the age demands. */
WARN_UNUSED dberr_t buf_log_free_check(buf_pool_t *pool);
#define MTR_LOG_MAX_PAGES 12U

#endif
