/* Delete, merge and drop of pages.

1. Plan first, from the leaf upwards: what happens to the page of each level, with siblings pinned
   and checked and the segment of each page to be freed looked up. After that only page changes
   follow, which cannot fail on checked pages.
2. A page that is freed has no other change in the mtr (I15): its records are copied out, it is
   never edited first.
3. A merge moves the right page of two under the same parent into the left one, so the node pointer
   that goes is never the parent's first.
4. When the leftmost page of a level goes, the next one becomes leftmost: its first record is
   MIN_REC then.
5. A root with one child takes over the child's contents, in an mtr of its own, since the child may
   have just been changed (2). A crash between the two leaves a valid tree.
6. Merges are optional: they stop where log or pins of one mtr would grow beyond bounds. Dropping an
   empty page is not. */
#include "btr/btr_int.h"

#include "base/check.h"

/* A page is merged when less than 1 / BTR_MERGE_FRACTION of its room is used. */
#define BTR_MERGE_FRACTION 3U
/* Merges stop when this many levels are pinned. */
#define BTR_MERGE_LEVELS 4U

typedef enum btr_del_action {
    BTR_DEL_REC,         /* only the record goes */
    BTR_DEL_PAGE,        /* it was the last one: the page goes */
    BTR_DEL_MERGE_RIGHT, /* the right sibling's records come here, it goes */
    BTR_DEL_MERGE_LEFT   /* the other records go to the left sibling, the page goes */
} btr_del_action_t;

typedef struct btr_del_step {
    btr_del_action_t action;
    uint32_t slot;      /* the record to delete */
    buf_block_t *prev;  /* DEL_PAGE: left sibling; MERGE_LEFT: the page that remains */
    buf_block_t *next;  /* DEL_PAGE, MERGE_LEFT: right sibling; MERGE_RIGHT: the page that goes */
    buf_block_t *after; /* MERGE_RIGHT: right sibling of that */
} btr_del_step_t;

typedef struct btr_del_plan {
    uint32_t n_levels;
    uint64_t log_bytes; /* of the records that merges move */
    btr_del_step_t step[BTR_LEVEL_MAX + 1];
} btr_del_plan_t;

dberr_t btr_check_segment(btr_op_t *op, const buf_block_t *block)
{
    fseg_header_t segment;
    TRY(btr_segment(op, page_level(block->frame), &segment));
    return fseg_page_check(op->mtr, segment, block->id.page_no);
}

dberr_t btr_page_drop(btr_op_t *op, const buf_block_t *block)
{
    fseg_header_t segment;
    TRY(btr_segment(op, page_level(block->frame), &segment));
    return fseg_page_free(op->mtr, segment, block->id.page_no, FSP_FREE_LOGGED);
}

dberr_t btr_brother_get(btr_op_t *op, uint32_t level, uint32_t parent_slot, bool next,
                        buf_block_t **out)
{
    const buf_block_t *parent = op->path[level + 1].block;
    const buf_block_t *block = op->path[level].block;
    const byte *rec = page_rec(parent->frame, op->page_size, parent_slot);
    TRY(btr_sibling_get(op->pool, op->mtr, op->btr, block, next, out));
    if (*out == NULL || (*out)->id.page_no != btr_node_child(op->btr, rec)) {
        return btr_corrupt(op->pool, op->btr, block->id.page_no,
                           "its sibling is not the next child of the parent");
    }
    return DB_SUCCESS;
}

/** May n records, of `size` bytes, move in this mtr? Counts them if so. */
static bool btr_merge_allowed(btr_op_t *op, btr_del_plan_t *plan, uint32_t n, uint32_t size)
{
    uint64_t bytes = size + (uint64_t)n * BTR_INSERT_OVERHEAD;
    if (plan->log_bytes + bytes > (uint64_t)BTR_MERGE_LOG_PAGES * op->page_size) {
        return false;
    }
    plan->log_bytes += bytes;
    return true;
}

/** Turns a plain delete that leaves left_size bytes of records into a merge if a sibling has
room. */
static dberr_t btr_plan_merge(btr_op_t *op, btr_del_plan_t *plan, uint32_t level,
                              uint32_t left_size)
{
    btr_del_step_t *step = &plan->step[level];
    uint32_t n_left = page_n_recs(op->path[level].block->frame) - 1;
    uint32_t room = page_data_max(op->page_size) - left_size;
    const btr_step_t *parent = &op->path[level + 1];
    if (parent->slot + 1 < page_n_recs(parent->block->frame)) {
        buf_block_t *right = NULL;
        TRY(btr_brother_get(op, level, parent->slot + 1, true, &right));
        if (page_data_size(right->frame) <= room
            && btr_merge_allowed(op, plan, page_n_recs(right->frame),
                                 page_data_size(right->frame))) {
            step->action = BTR_DEL_MERGE_RIGHT;
            step->next = right;
            TRY(btr_sibling_get(op->pool, op->mtr, op->btr, right, true, &step->after));
            return btr_check_segment(op, right);
        }
    }
    if (parent->slot > 0) {
        buf_block_t *left = NULL;
        TRY(btr_brother_get(op, level, parent->slot - 1, false, &left));
        if (page_data_size(left->frame) <= room && btr_merge_allowed(op, plan, n_left, left_size)) {
            const buf_block_t *block = op->path[level].block;
            step->action = BTR_DEL_MERGE_LEFT;
            step->prev = left;
            TRY(btr_sibling_get(op->pool, op->mtr, op->btr, block, true, &step->next));
            return btr_check_segment(op, block);
        }
    }
    return DB_SUCCESS;
}

/** Decides what happens on one level, whose record in `slot` must go. */
static dberr_t btr_plan_level(btr_op_t *op, btr_del_plan_t *plan, uint32_t level, uint32_t slot)
{
    btr_del_step_t *step = &plan->step[level];
    const buf_block_t *block = op->path[level].block;
    uint32_t n_left = page_n_recs(block->frame) - 1;
    uint32_t left_size = page_data_size(block->frame)
                         - page_rec_cost(page_rec_size(block->frame),
                                         page_rec_len(block->frame, op->page_size, slot));
    *step = (btr_del_step_t){.action = BTR_DEL_REC, .slot = slot};
    plan->n_levels = level + 1;
    if (level == op->root_level) {
        return DB_SUCCESS;
    }
    if (n_left == 0) {
        step->action = BTR_DEL_PAGE;
        TRY(btr_sibling_get(op->pool, op->mtr, op->btr, block, false, &step->prev));
        TRY(btr_sibling_get(op->pool, op->mtr, op->btr, block, true, &step->next));
        return btr_check_segment(op, block);
    }
    if (level < BTR_MERGE_LEVELS && left_size * BTR_MERGE_FRACTION < page_data_max(op->page_size)) {
        TRY(btr_plan_merge(op, plan, level, left_size));
    }
    return DB_SUCCESS;
}

static dberr_t btr_delete_plan(btr_op_t *op, btr_del_plan_t *plan)
{
    uint32_t slot = op->path[0].slot;
    plan->log_bytes = 0;
    uint32_t level = 0;
    for (;;) {
        dberr_t err = btr_plan_level(op, plan, level, slot);
        if (err != DB_SUCCESS || plan->step[level].action == BTR_DEL_REC) {
            return err;
        }
        level++;
        slot = op->path[level].slot;
        if (plan->step[level - 1].action == BTR_DEL_MERGE_RIGHT) {
            slot++;
        }
    }
}

static dberr_t btr_set_min_rec(btr_op_t *op, buf_block_t *block)
{
    byte info = (byte)(rec_info(page_rec(block->frame, op->page_size, 0)) | REC_INFO_MIN_REC);
    return mtr_rec_update(op->mtr, block, 0, 0, &info, 1);
}

/** Deletes a record; the page keeps MIN_REC in front if that is due. */
static dberr_t btr_delete_rec(btr_op_t *op, buf_block_t *block, uint32_t slot)
{
    uint32_t level = page_level(block->frame);
    if (level > 0 && page_n_recs(block->frame) == 1) {
        /* Only the root: its last subtree is gone, and it becomes an empty leaf. */
        CHECK(block->id.page_no == op->btr->root);
        return mtr_index_create(op->mtr, block, 0, op->btr->id, btr_rec_size(op->btr, 0),
                                op->btr->key_len);
    }
    TRY(mtr_rec_delete(op->mtr, block, slot));
    if (level > 0 && slot == 0 && fil_page_get_prev(block->frame) == FIL_NULL) {
        TRY(btr_set_min_rec(op, block));
    }
    return DB_SUCCESS;
}

void btr_link(btr_op_t *op, buf_block_t *left, buf_block_t *right)
{
    if (left != NULL) {
        mtr_write_4(op->mtr, left, FIL_PAGE_NEXT, right != NULL ? right->id.page_no : FIL_NULL);
    }
    if (right != NULL) {
        mtr_write_4(op->mtr, right, FIL_PAGE_PREV, left != NULL ? left->id.page_no : FIL_NULL);
    }
}

static dberr_t btr_apply_drop(btr_op_t *op, const btr_del_step_t *step, buf_block_t *block)
{
    btr_link(op, step->prev, step->next);
    if (page_level(block->frame) > 0 && step->prev == NULL && step->next != NULL) {
        TRY(btr_set_min_rec(op, step->next));
    }
    return btr_page_drop(op, block);
}

static dberr_t btr_apply_merge(btr_op_t *op, const btr_del_step_t *step, buf_block_t *block)
{
    bool right = step->action == BTR_DEL_MERGE_RIGHT;
    buf_block_t *from = right ? step->next : block;
    buf_block_t *to = right ? block : step->prev;
    if (right) {
        TRY(btr_delete_rec(op, block, step->slot));
    }
    TRY(btr_append_recs(op, to, from, 0, page_n_recs(from->frame),
                        right ? UINT32_MAX : step->slot));
    btr_link(op, to, right ? step->after : step->next);
    buf_env(op->pool)->stats.btr_merges++;
    return btr_page_drop(op, from);
}

static dberr_t btr_delete_apply(btr_op_t *op, const btr_del_plan_t *plan)
{
    for (uint32_t level = 0; level < plan->n_levels; level++) {
        const btr_del_step_t *step = &plan->step[level];
        buf_block_t *block = op->path[level].block;
        dberr_t err;
        if (step->action == BTR_DEL_REC) {
            err = btr_delete_rec(op, block, step->slot);
        } else if (step->action == BTR_DEL_PAGE) {
            err = btr_apply_drop(op, step, block);
        } else {
            err = btr_apply_merge(op, step, block);
        }
        TRY(err);
    }
    return DB_SUCCESS;
}

/** Pins the chain of only children below the root, down to a page with several records or a leaf.
*/
static dberr_t btr_lift_plan(btr_op_t *op, buf_block_t *root, buf_block_t **chain, uint32_t *n)
{
    const buf_block_t *block = root;
    *n = 0;
    while (page_level(block->frame) > 0 && page_n_recs(block->frame) == 1) {
        const byte *rec = page_rec(block->frame, op->page_size, 0);
        buf_block_t *child = NULL;
        TRY(btr_page_get(op->pool, op->mtr, op->btr, btr_node_child(op->btr, rec),
                         page_level(block->frame) - 1, &child));
        if (fil_page_get_prev(child->frame) != FIL_NULL
            || fil_page_get_next(child->frame) != FIL_NULL) {
            return btr_corrupt(op->pool, op->btr, child->id.page_no, "an only child has a sibling");
        }
        TRY(btr_check_segment(op, child));
        chain[(*n)++] = child;
        block = child;
    }
    return DB_SUCCESS;
}

static dberr_t btr_lift_apply(btr_op_t *op, buf_block_t *root, buf_block_t **chain, uint32_t n)
{
    const buf_block_t *last = chain[n - 1];
    uint32_t level = page_level(last->frame);
    TRY(mtr_index_create(op->mtr, root, level, op->btr->id, btr_rec_size(op->btr, level),
                         op->btr->key_len));
    TRY(btr_append_recs(op, root, last, 0, page_n_recs(last->frame), UINT32_MAX));
    for (uint32_t i = 0; i < n; i++) {
        TRY(btr_page_drop(op, chain[i]));
    }
    return DB_SUCCESS;
}

/* The tree is too deep (5). */
dberr_t btr_root_lift(buf_pool_t *pool, const btr_t *btr)
{
    btr_op_t op;
    TRY(btr_op_start(&op, pool, btr, MTR_LOG_ALL));
    buf_block_t *root = NULL;
    dberr_t err = btr_page_get(pool, op.mtr, btr, btr->root, BTR_LEVEL_ANY, &root);
    buf_block_t *chain[BTR_LEVEL_MAX + 1];
    uint32_t n = 0;
    AND_THEN(err, btr_lift_plan(&op, root, chain, &n));
    if (err == DB_SUCCESS && n > 0) {
        err = btr_lift_apply(&op, root, chain, n);
    }
    return mtr_end(op.mtr, err);
}

/** key NULL: the metadata record, with the instant mark of the root. */
static dberr_t btr_delete_low(buf_pool_t *pool, const btr_t *btr, const byte *key)
{
    btr_op_t op;
    TRY(btr_op_start(&op, pool, btr, MTR_LOG_ALL));
    dberr_t err = btr_descend(&op, key, btr->key_len);
    if (err == DB_SUCCESS && !op.exact) {
        err = DB_NOT_FOUND;
    }
    if (key == NULL) {
        op.path[0].slot = 0;
    }
    btr_del_plan_t plan;
    AND_THEN(err, btr_delete_plan(&op, &plan));
    AND_THEN(err, btr_delete_apply(&op, &plan));
    if (err != DB_SUCCESS) {
        mtr_abort(op.mtr);
        return err;
    }
    if (key == NULL) {
        mtr_write_1(op.mtr, op.path[op.root_level].block, PAGE_INSTANT, 0);
    }
    bool lift = page_level(op.path[op.root_level].block->frame) > 0
                && page_n_recs(op.path[op.root_level].block->frame) == 1;
    mtr_commit(op.mtr);
    return lift ? btr_root_lift(pool, btr) : DB_SUCCESS;
}

dberr_t btr_delete(buf_pool_t *pool, const btr_t *btr, const byte *key)
{
    return btr_delete_low(pool, btr, key);
}

dberr_t btr_meta_remove(buf_pool_t *pool, const btr_t *btr)
{
    return btr_delete_low(pool, btr, NULL);
}
