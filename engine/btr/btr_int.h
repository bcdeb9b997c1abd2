/** Private to btr/: one operation on a tree, with its mini-transaction and the path from the root.
*/
#ifndef BTR_BTR_INT_H
#define BTR_BTR_INT_H

#include "btr/btr.h"

#define BTR_LEVEL_ANY UINT32_MAX
#define BTR_NODE_REC_MAX (1U + BTR_KEY_LEN_MAX + 4U)

/** Where the path crosses a level. */
typedef struct btr_step {
    buf_block_t *block;
    uint32_t slot; /**< leaf: first record >= key; above: the node pointer that was followed */
    bool low;      /**< key < first node pointer of a page that is not the leftmost one */
} btr_step_t;

typedef struct btr_op {
    buf_pool_t *pool;
    const btr_t *btr;
    uint32_t page_size;
    uint32_t root_level;
    btr_step_t path[BTR_LEVEL_MAX + 1]; /**< by level; valid up to root_level */
    bool exact;                         /**< path[0] is on a record with this key */
    mtr_t *mtr;                         /**< own, or the caller's */
    mtr_t own;
} btr_op_t;

/* ---- btr_page.c ---- */

/** Makes room in the log if mode writes it, and starts the mtr. */
WARN_UNUSED dberr_t btr_op_start(btr_op_t *op, buf_pool_t *pool, const btr_t *btr, mtr_mode_t mode);

/** DB_CORRUPTION with a message that names space and page. */
WARN_UNUSED dberr_t btr_corrupt(buf_pool_t *pool, const btr_t *btr, page_no_t page_no,
                                const char *what);

/** Of the records of a level, or PAGE_REC_VARIES. */
uint32_t btr_rec_size(const btr_t *btr, uint32_t level);

/** Pins a page of the tree and checks that it can be trusted: its header at each access, all of it
when it is met for the first time since it came into the pool. */
WARN_UNUSED dberr_t btr_page_get(buf_pool_t *pool, mtr_t *mtr, const btr_t *btr, page_no_t page_no,
                                 uint32_t level, buf_block_t **out);

/** Pins the next or previous page on the level; *out = NULL at the end. DB_CORRUPTION unless it
links back (I8). */
WARN_UNUSED dberr_t btr_sibling_get(buf_pool_t *pool, mtr_t *mtr, const btr_t *btr,
                                    const buf_block_t *block, bool next, buf_block_t **out);

/** The segment that the tree's pages of this level belong to, the root excepted. */
WARN_UNUSED dberr_t btr_segment(const btr_op_t *op, uint32_t level, fseg_header_t *out);

/** Child page number of a node pointer. */
page_no_t btr_node_child(const btr_t *btr, const byte *rec);

/** Inserts a record that fits the page once it is reorganized, which is done if need be. */
WARN_UNUSED dberr_t btr_page_insert(btr_op_t *op, buf_block_t *block, uint32_t slot,
                                    const byte *rec, uint32_t len);
/** Does a record of len bytes fit the page, reorganized, once `freed` bytes of its records are
gone? */
bool btr_page_fits(const btr_op_t *op, const buf_block_t *block, uint32_t len, uint32_t freed);

/** Appends the records [from, to) of src to dst, slot `skip` left out (UINT32_MAX: none). */
WARN_UNUSED dberr_t btr_append_recs(btr_op_t *op, buf_block_t *dst, const buf_block_t *src,
                                    uint32_t from, uint32_t to, uint32_t skip);

/* ---- btr_delete.c ---- */

/** Upper bound of what a logged insert adds to its record. */
#define BTR_INSERT_OVERHEAD 24U
/** Records stop moving to another page when they would take so many pages of log in one mtr. */
#define BTR_MERGE_LOG_PAGES 6U

/** The sibling of the page of the path that the parent lists in this slot. */
WARN_UNUSED dberr_t btr_brother_get(btr_op_t *op, uint32_t level, uint32_t parent_slot, bool next,
                                    buf_block_t **out);
/** Makes two pages neighbours; either may be NULL, the end of the level. */
void btr_link(btr_op_t *op, buf_block_t *left, buf_block_t *right);
/** Can btr_page_drop() free the page? */
WARN_UNUSED dberr_t btr_check_segment(btr_op_t *op, const buf_block_t *block);
/** Frees a page of the tree that this mtr has not changed. */
WARN_UNUSED dberr_t btr_page_drop(btr_op_t *op, const buf_block_t *block);
/** In an mtr of its own: while the root has one child only, the contents of that move up. */
WARN_UNUSED dberr_t btr_root_lift(buf_pool_t *pool, const btr_t *btr);

/* ---- btr_search.c ---- */

/** Pins the path to the leaf for key: its first key_len bytes count. NULL = smaller than any key:
the slot is that of the first record but for metadata; op->exact tells if there is that. */
WARN_UNUSED dberr_t btr_descend(btr_op_t *op, const byte *key, uint32_t key_len);

#endif
