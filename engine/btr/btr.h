/** B+-trees: search, scan, insert, delete, update, split and merge. Records have one size, but for
those of leaves whose rows vary; keys always have one.

A tree is described by btr_t, which dict/ builds from the catalogue. The root page number never
changes (a root split moves the contents down, a root merge moves them up). Keys are unique in every
tree: a secondary key ends with the primary key. Each operation is one mini-transaction of its own
and calls buf_log_free_check() first, so callers must have no page pinned.

Invariants: keys strictly ascend in a page and across siblings (I7); links are reciprocal and
FIL_NULL at the ends (I8); all keys below a node pointer are >= its key and < the next one's (I9),
the leftmost node pointer of a level being MIN_REC; a page other than the root is never empty. A
metadata record is smaller than any key: no search meets it, no scan gives it, and it stays in the
leftmost leaf. */
#ifndef BTR_BTR_H
#define BTR_BTR_H

#include "fsp/fsp.h"
#include "page/page_index.h"

/** Bytes of the longest key; dict/ narrows it so that node pages keep a useful fan-out. */
#define BTR_KEY_LEN_MAX 3072U

typedef struct btr {
    index_id_t id;
    space_id_t space;
    page_no_t root;         /**< FIL_NULL: no tree yet */
    uint32_t key_len;       /**< bytes compared */
    uint32_t leaf_rec_size; /**< info byte included; of the longest one */
    bool leaf_varies;       /**< leaf records have sizes of their own */
    /** the instant mark: 0: no metadata record; BTR_INSTANT_ANY: only the pages tell */
    uint32_t instant;
} btr_t;

#define BTR_INSTANT_ANY UINT32_MAX

static inline uint32_t btr_node_rec_size(const btr_t *btr)
{
    return 1 + btr->key_len + 4;
}

/** Creates the tree's two segments and an empty root (a leaf), and sets btr->root. In the caller's
mtr, which also writes the root's number where it will be looked for: a crash leaves both or
neither. */
WARN_UNUSED dberr_t btr_create(mtr_t *mtr, btr_t *btr);

/** Pins the record with this key for an mtr of the caller. DB_NOT_FOUND. */
WARN_UNUSED dberr_t btr_rec_find(mtr_t *mtr, const btr_t *btr, const byte *key, buf_block_t **block,
                                 uint32_t *slot);

/** Copies the record with this key (*len bytes, at most leaf_rec_size, info byte first) to rec.
DB_NOT_FOUND. */
WARN_UNUSED dberr_t btr_get(buf_pool_t *pool, const btr_t *btr, const byte *key, byte *rec,
                            uint32_t *len);

/** How much of the tree lies before the key, in 10000ths, 9999 at most: as if all pages of a level
had equally many records. */
WARN_UNUSED dberr_t btr_key_position(buf_pool_t *pool, const btr_t *btr, const byte *key,
                                     uint32_t *out);

/** rec: len bytes. DB_DUPLICATE_KEY if the key is there (delete-marked or not). */
WARN_UNUSED dberr_t btr_insert(buf_pool_t *pool, const btr_t *btr, const byte *rec, uint32_t len);

/** Puts a record of any size in place of the one with its key, whose delete mark stays.
DB_NOT_FOUND. */
WARN_UNUSED dberr_t btr_replace(buf_pool_t *pool, const btr_t *btr, const byte *rec, uint32_t len);

/** Has the tree no record at all? */
WARN_UNUSED dberr_t btr_is_empty(buf_pool_t *pool, const btr_t *btr, bool *empty);
/** Copies the metadata record as btr_get(). DB_NOT_FOUND. */
WARN_UNUSED dberr_t btr_meta_get(buf_pool_t *pool, const btr_t *btr, byte *rec, uint32_t *len);
/** One mini-transaction: the tree has this metadata record, in place of an older one, and this
instant mark. */
WARN_UNUSED dberr_t btr_meta_put(buf_pool_t *pool, const btr_t *btr, uint32_t mark, const byte *rec,
                                 uint32_t len);
/** The same: it has neither. */
WARN_UNUSED dberr_t btr_meta_remove(buf_pool_t *pool, const btr_t *btr);

/** Removes the record for good. DB_NOT_FOUND. Merges or drops pages that become too empty. */
WARN_UNUSED dberr_t btr_delete(buf_pool_t *pool, const btr_t *btr, const byte *key);

/** Overwrites len bytes from rec_offset (0 = info byte); never the key (CHECK). DB_NOT_FOUND. */
WARN_UNUSED dberr_t btr_update(buf_pool_t *pool, const btr_t *btr, const byte *key,
                               uint32_t rec_offset, const byte *bytes, uint32_t len);

/** How leaves are packed: groups of up to n_pages (2 at least); a packed page keeps fill_percent of
its room used, or room for n_recs more records, whichever is fuller. */
typedef struct btr_packing {
    uint32_t n_pages;
    uint32_t fill_percent;
    uint32_t n_recs;
} btr_packing_t;

/** Where a pass over the leaves stands; all zero: at the beginning. */
typedef struct btr_place {
    bool begun; /**< key is set */
    bool ended;
    byte key[BTR_KEY_LEN_MAX];
} btr_place_t;

/** What a step has done. */
typedef struct btr_packed {
    uint32_t n_pages; /**< of the group; 0: nothing could be gained */
    uint32_t n_freed;
} btr_packed_t;

/** Packs one group of leaves, and moves the place to where the next one begins. Between two steps
the tree may change. */
WARN_UNUSED dberr_t btr_defragment_step(buf_pool_t *pool, const btr_t *btr,
                                        const btr_packing_t *packing, btr_place_t *place,
                                        btr_packed_t *out);

/** A forward range scan. The tree must not change while one is open. Holds one leaf pinned. */
typedef struct btr_cursor {
    mtr_t mtr;
    buf_pool_t *pool;
    const btr_t *btr;
    buf_block_t *block;
    uint32_t slot;
    uint32_t len;        /**< of the record that btr_cursor_next() has given */
    uint64_t pages_seen; /**< bounds a scan over a damaged, circular chain */
    bool open;
} btr_cursor_t;

/** Positions before the first record with key >= key (NULL = the first); key_len may be short. */
WARN_UNUSED dberr_t btr_cursor_open(btr_cursor_t *cursor, buf_pool_t *pool, const btr_t *btr,
                                    const byte *key, uint32_t key_len);
/** Next record, valid until the next call; DB_NOT_FOUND at the end. */
WARN_UNUSED dberr_t btr_cursor_next(btr_cursor_t *cursor, const byte **rec);
void btr_cursor_close(btr_cursor_t *cursor); /**< always, also after an error */

/** Frees the leaves, then the inner levels: many small mtrs, each an extent or a page. Only the
root is read. Starting over after a crash goes on. No mtr may be open. */
WARN_UNUSED dberr_t btr_free_but_root(buf_pool_t *pool, const btr_t *btr);
/** Frees the root after that, with what is left of its segment, in the caller's mtr, which also
forgets the root's number. */
WARN_UNUSED dberr_t btr_free_root(mtr_t *mtr, const btr_t *btr);

#endif
