/** Bottom-up load of a B+-tree from sorted records (WL#7277).

The root exists: btr_create(). Page numbers are reserved by an always-logged mtr; contents go into a
NO_REDO mtr with a flush observer, or into a logged one (observer = 0). Records of the page under
construction of each level wait in memory: a page is written into the pool only when it is complete,
directory, header and links (prev, next) included. No page stays pinned between calls. */
#ifndef BTR_BTR_BULK_H
#define BTR_BTR_BULK_H

#include "btr/btr.h"
#include "page/page_blob.h"

typedef struct btr_bulk btr_bulk_t;

/** For an empty tree. fill_percent (10 ... 100) of a page's capacity is used. Caller:
btr_bulk_free(). */
WARN_UNUSED dberr_t btr_bulk_create(buf_pool_t *pool, const btr_t *btr, index_id_t observer,
                                    uint32_t fill_percent, btr_bulk_t **out);
/** Adds a leaf record of len bytes; keys strictly ascend (DB_DUPLICATE_KEY otherwise). */
WARN_UNUSED dberr_t btr_bulk_add(btr_bulk_t *bulk, const byte *rec, uint32_t len);
/** Makes a chain of pages of a long value, logged like the load or not; *ref leads to it. */
WARN_UNUSED dberr_t btr_bulk_blob(btr_bulk_t *bulk, const byte *value, uint32_t len,
                                  blob_ref_t *ref);
/** Completes all levels, and copies the topmost page into the root. That page is freed without a
word of its contents in the log, and belongs to no observer any more: it may be written any time
later. */
WARN_UNUSED dberr_t btr_bulk_finish(btr_bulk_t *bulk);
void btr_bulk_free(btr_bulk_t *bulk); /**< memory only; NULL is fine */

#endif
