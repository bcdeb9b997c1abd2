/** Long values: chains of pages of their own in the segment of the leaves (FORMAT.md, "Long
values").

A chain hangs from a reference in a clustered record or, when that version has been replaced, in its
undo record. It grows at its end and is freed from its head, a page per mini-transaction, which
changes the reference too: whenever a crash strikes, the reference leads to all of the chain that
there is, and says how long that is. So a repeat goes on where it was. */
#ifndef BTR_BTR_BLOB_H
#define BTR_BTR_BLOB_H

#include "btr/btr.h"
#include "page/page_blob.h"

/** Copies the value (ref->len bytes) to `to`. */
WARN_UNUSED dberr_t btr_blob_read(buf_pool_t *pool, const btr_t *btr, const blob_ref_t *ref,
                                  byte *to);

/** Makes the chain of a reference without one, at this offset of the record with this key. */
WARN_UNUSED dberr_t btr_blob_store(buf_pool_t *pool, const btr_t *btr, const byte *key,
                                   uint32_t offset, const byte *value, uint32_t len);

/** Frees the chain that the reference at this offset of the record leads to; it has none then. */
WARN_UNUSED dberr_t btr_blob_free(buf_pool_t *pool, const btr_t *btr, const byte *key,
                                  uint32_t offset);
/** The same of a reference at this offset of a page, which is no index page. */
WARN_UNUSED dberr_t btr_blob_free_of_page(buf_pool_t *pool, const btr_t *btr, page_id_t page,
                                          uint32_t offset);

/** Fills a fresh page of a chain, in the caller's mtr. */
void btr_blob_fill(mtr_t *mtr, buf_block_t *block, const btr_t *btr, const byte *part, uint32_t len,
                   page_no_t next);

#endif
