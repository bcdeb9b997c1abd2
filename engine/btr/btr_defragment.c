/* Defragmentation in place (MariaDB 10.1, btr_defragment_n_pages): neighbouring leaves are packed,
and those that become empty are freed.

    group: up to n_pages leaves of one parent      after, or as far as it fits
        [ A 40% ] [ B 30% ] [ C 60% ] [ D 90% ]        [ A 70% ] [ C 90% ] [ D 60% ]

1. A group is worth it if fewer pages, filled as asked for, hold its records. A page keeps room for
   inserts: the part that fill_percent leaves, or n_recs records of the average size, whichever is
   less.
2. Records move from a leaf to its left neighbour, one pair in one mini-transaction, so that the
   tree is whole at every LSN. (InnoDB takes one for the group, which may be as many as 32 pages.)
3. A leaf whose records have all moved is freed; nothing else of it changes in that mini-transaction
   (I15). One that keeps some loses the first ones, and its node pointer's key rises to its first
   key: the keys below now belong to the left neighbour.
4. Only leaves under one parent: the node pointer that goes or rises is never the parent's first, so
   that no key above the parent changes.
5. Between two steps the tree may change: a pass goes on at a key, in the leaf where that is
   then. */
#include "btr/btr_int.h"

#include <string.h>

#include "base/check.h"

/** What the leaves of a group hold. */
typedef struct btr_group {
    uint32_t n;
    uint64_t bytes;
    uint64_t recs;
    buf_block_t *last;
} btr_group_t;

static void btr_place_set(btr_place_t *place, const btr_op_t *op, const buf_block_t *leaf)
{
    const byte *rec = page_rec(leaf->frame, op->page_size, 0);
    memcpy(place->key, rec_payload(rec), op->btr->key_len);
    place->begun = true;
}

static dberr_t btr_place_descend(btr_op_t *op, const btr_place_t *place)
{
    return btr_descend(op, place->begun ? place->key : NULL, place->begun ? op->btr->key_len : 0);
}

/** The group that begins with the leaf of the path. */
static dberr_t btr_group_read(btr_op_t *op, uint32_t n_pages, btr_group_t *group)
{
    const btr_step_t *parent = &op->path[1];
    uint32_t n_children = page_n_recs(parent->block->frame);
    *group = (btr_group_t){.last = op->path[0].block};
    for (uint32_t slot = parent->slot; slot < n_children && group->n < n_pages; slot++) {
        const byte *rec = page_rec(parent->block->frame, op->page_size, slot);
        TRY(btr_page_get(op->pool, op->mtr, op->btr, btr_node_child(op->btr, rec), 0,
                         &group->last));
        group->n++;
        group->bytes += page_data_size(group->last->frame);
        group->recs += page_n_recs(group->last->frame);
    }
    return DB_SUCCESS;
}

/** Bytes of records that a page is filled with (1). */
static uint32_t btr_packed_size(const btr_op_t *op, const btr_packing_t *packing,
                                const btr_group_t *group)
{
    uint64_t max = page_data_max(op->page_size);
    uint64_t by_factor = max * (100 - packing->fill_percent) / 100;
    uint64_t by_recs = group->bytes / group->recs * packing->n_recs;
    return (uint32_t)(max - (by_factor < by_recs ? by_factor : by_recs));
}

/** Goes on with the last leaf of the group, or behind it if that was all there is under the
parent. */
static dberr_t btr_group_pass(btr_op_t *op, const btr_packing_t *packing, const btr_group_t *group,
                              btr_place_t *place)
{
    buf_block_t *next = group->last;
    dberr_t err = DB_SUCCESS;
    if (group->n < packing->n_pages) {
        err = btr_sibling_get(op->pool, op->mtr, op->btr, group->last, true, &next);
    }
    if (err == DB_SUCCESS && next == NULL) {
        place->ended = true;
    } else if (err == DB_SUCCESS) {
        btr_place_set(place, op, next);
    }
    return err;
}

/** Reads the group at the place; *n: its leaves, or 0 if nothing can be gained, and the place is
behind it. */
static dberr_t btr_group_plan(buf_pool_t *pool, const btr_t *btr, const btr_packing_t *packing,
                              btr_place_t *place, uint32_t *n, uint32_t *packed)
{
    btr_op_t op;
    dberr_t err = btr_op_start(&op, pool, btr, MTR_READ_ONLY);
    *n = 0;
    TRY(err);
    err = btr_place_descend(&op, place);
    btr_group_t group = {.n = 0};
    if (err == DB_SUCCESS && op.root_level == 0) {
        place->ended = true;
    } else if (err == DB_SUCCESS) {
        err = btr_group_read(&op, packing->n_pages, &group);
        if (err == DB_SUCCESS) {
            *packed = btr_packed_size(&op, packing, &group);
            if ((group.bytes + *packed - 1) / *packed < group.n) {
                *n = group.n;
                btr_place_set(place, &op, op.path[0].block);
            } else {
                err = btr_group_pass(&op, packing, &group, place);
            }
        }
    }
    mtr_commit(op.mtr);
    return err;
}

/** How many of the first records of `from` fit into a page that is filled to `packed` bytes. */
static uint32_t btr_count_fitting(const btr_op_t *op, const byte *to, const byte *from,
                                  uint32_t packed)
{
    uint32_t rec_size = page_rec_size(from);
    uint32_t used = page_data_size(to);
    uint64_t log_bytes = 0;
    uint32_t n = 0;
    for (; n < page_n_recs(from); n++) {
        uint32_t len = page_rec_len(from, op->page_size, n);
        used += page_rec_cost(rec_size, len);
        log_bytes += len + BTR_INSERT_OVERHEAD;
        if (used > packed || log_bytes > (uint64_t)BTR_MERGE_LOG_PAGES * op->page_size) {
            break;
        }
    }
    return n;
}

/** All of the right leaf moves: it goes, and its node pointer. */
static dberr_t btr_pack_all(btr_op_t *op, buf_block_t *left, const buf_block_t *right)
{
    buf_block_t *after = NULL;
    TRY(btr_sibling_get(op->pool, op->mtr, op->btr, right, true, &after));
    TRY(btr_check_segment(op, right));
    TRY(btr_append_recs(op, left, right, 0, page_n_recs(right->frame), UINT32_MAX));
    btr_link(op, left, after);
    TRY(mtr_rec_delete(op->mtr, op->path[1].block, op->path[1].slot + 1));
    return btr_page_drop(op, right);
}

/** Its first n records move. */
static dberr_t btr_pack_some(btr_op_t *op, buf_block_t *left, buf_block_t *right, uint32_t n)
{
    TRY(btr_append_recs(op, left, right, 0, n, UINT32_MAX));
    TRY(mtr_list_start_delete(op->mtr, right, n));
    const byte *first = page_rec(right->frame, op->page_size, 0);
    return mtr_rec_update(op->mtr, op->path[1].block, op->path[1].slot + 1, 1, rec_payload(first),
                          op->btr->key_len);
}

/** Packs the leaf of the path and its right neighbour; the place is then the leaf to go on with. */
static dberr_t btr_pack_pair(btr_op_t *op, uint32_t packed, btr_place_t *place, uint32_t *n_freed)
{
    buf_block_t *left = op->path[0].block;
    buf_block_t *right = NULL;
    TRY(btr_brother_get(op, 0, op->path[1].slot + 1, true, &right));
    uint32_t n = btr_count_fitting(op, left->frame, right->frame, packed);
    if (n == page_n_recs(right->frame)) {
        ++*n_freed;
        return btr_pack_all(op, left, right);
    }
    if (n > 0) {
        TRY(btr_pack_some(op, left, right, n));
    }
    btr_place_set(place, op, right);
    return DB_SUCCESS;
}

static dberr_t btr_pack_next(buf_pool_t *pool, const btr_t *btr, uint32_t packed,
                             btr_place_t *place, uint32_t *n_freed)
{
    btr_op_t op;
    TRY(btr_op_start(&op, pool, btr, MTR_LOG_ALL));
    dberr_t err = btr_place_descend(&op, place);
    AND_THEN(err, btr_pack_pair(&op, packed, place, n_freed));
    if (err != DB_SUCCESS) {
        mtr_abort(op.mtr);
        return err;
    }
    bool lift = page_n_recs(op.path[op.root_level].block->frame) == 1;
    mtr_commit(op.mtr);
    PROBE_POINT(buf_env(pool)->probe, "btr.packed");
    return lift ? btr_root_lift(pool, btr) : DB_SUCCESS;
}

dberr_t btr_defragment_step(buf_pool_t *pool, const btr_t *btr, const btr_packing_t *packing,
                            btr_place_t *place, btr_packed_t *out)
{
    uint32_t n = 0;
    uint32_t packed = 0;
    dberr_t err = btr_group_plan(pool, btr, packing, place, &n, &packed);
    CHECK(packing->n_pages >= 2 && packing->fill_percent <= 100);
    TRY(err);
    uint32_t n_freed = 0;
    for (uint32_t i = 1; i < n; i++) {
        TRY(btr_pack_next(pool, btr, packed, place, &n_freed));
    }
    *out = (btr_packed_t){.n_pages = n, .n_freed = n_freed};
    return DB_SUCCESS;
}
