/** Doublewrite: the area file "ib_dblwr" (FORMAT.md, "Doublewrite file"; RECOVERY.md, "Doublewrite
restore").

    [ batch region: dblwr_pages positions ][ single-page slots: DBLWR_SINGLE_SLOTS positions ]

A file of its own, so that its place depends on no page that a torn write can damage.

Every page write (I22, I4): 1. log durable up to the page's LSN  2. copy into the area, fsync of the
area  3. home write  4. fsync of the home file; only then may the copy's position be used again.

A page goes home without a copy (MDEV-19738) only if
- doublewrite is off altogether, or the storage promises that a page is written whole or not at all
  ("off"), or
- block->init_on_flush is set ("init"); the flag is cleared by that write, so only the first flush
  after the initialisation skips. */
#ifndef BUF_BUF_DBLWR_H
#define BUF_BUF_DBLWR_H

#include "buf/buf.h"

#define DBLWR_FILE_NAME "ib_dblwr"
#define DBLWR_PAGES_MAX 256U  /**< upper limit of the option dblwr_pages */
#define DBLWR_SINGLE_SLOTS 8U /**< behind the batch region */
#define DBLWR_POSITIONS_MAX (DBLWR_PAGES_MAX + DBLWR_SINGLE_SLOTS)

/** Page copies of a doublewrite file, for recovery: called for every position that holds a page
which verifies under its own id. page is valid during the call, and so is image, the same as it lies
there: perhaps compressed. */
typedef dberr_t (*buf_dblwr_copy_fn)(void *ctx, page_id_t id, lsn_t lsn, const byte *page,
                                     const byte *image);
/** The copies that a killed process has left may lie in the page cache only: before a home page is
written from one, they are made durable. */
WARN_UNUSED dberr_t buf_dblwr_sync_found(env_t *env);
WARN_UNUSED dberr_t buf_dblwr_each_copy(env_t *env, uint32_t page_size, buf_dblwr_copy_fn fn,
                                        void *ctx);

#endif
