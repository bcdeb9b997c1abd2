/** Doublewrite: two slots of dblwr_pages pages each in the file "ib_dblwr", swapped; one batch in
flight (FORMAT.md, "Doublewrite file"; RECOVERY.md, "Doublewrite restore").

A file of its own, so that its place depends on no page that a torn write can damage.

Batch (I22): 1. log durable up to the newest LSN of the batch  2. area write, fsync of the area
3. home writes  4. fsync of the data files; only then may a slot be used again.

Doublewrite is skipped for a page (MDEV-19738) only if
- it is off altogether ("off"), or
- block->init_on_flush is set ("init"); the flag is cleared by that write, so only the first flush
  after the initialisation skips. */
#ifndef BUF_BUF_DBLWR_H
#define BUF_BUF_DBLWR_H

#include "buf/buf.h"

#define DBLWR_FILE_NAME "ib_dblwr"

/** Writes a batch of dirty, unpinned blocks (any number: split into slots' worth) in the above order;
On success all are clean and their files fsynced. */
WARN_UNUSED dberr_t buf_dblwr_flush(buf_pool_t *pool, buf_block_t **blocks, uint32_t n);

/** Page copies of a doublewrite file, for recovery: called for every slot position that holds a page
which verifies under its own id. page is valid during the call. */
typedef dberr_t (*buf_dblwr_copy_fn)(void *ctx, page_id_t id, lsn_t lsn, const byte *page);
WARN_UNUSED dberr_t buf_dblwr_each_copy(env_t *env, uint32_t page_size, buf_dblwr_copy_fn fn,
                                        void *ctx);

#endif
