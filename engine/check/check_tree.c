/** One B+-tree, from its root: shape, order, links, bounds.

Place: check/; the scan of the file has seen every page by itself before.

Checked: I6 shape of the pages as this index has it; I7 keys ascend in a page and across siblings;
I8 links and levels; I9 bounds of node pointers, one parent per page; I11 every page belongs to the
segment of its level, both of which the root names.

The walk is a depth-first descent with one page in memory per level. It ends, because a page is
entered only when its bit in the file's bitmap is not set yet. It stops at the first thing that is
wrong: behind a broken link or pointer nothing more can be said, and one finding per tree is enough.
*/
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "check/check_fsp.h"
#include "check/check_memo.h"
#include "page/page_index.h"

/** What the walk keeps per level. */
typedef struct chk_level {
    byte *page;        /**< the page entered last */
    page_no_t page_no; /**< FIL_NULL: none yet */
    page_no_t next;    /**< its right sibling by its own link */
    uint32_t n_recs;
    uint32_t slot;   /**< next child to enter */
    const byte *low; /**< key bounds that the levels above give; NULL = none */
    const byte *high;
    byte *last_key; /**< greatest key so far; valid when has_last */
    bool has_last;
    bool last_is_away;  /**< last_key is still in the page entered last */
    uint64_t last_hash; /**< of last_key, on the leaves of a tree with ops */
} chk_level_t;

typedef struct chk_walk {
    chk_t *chk;
    const chk_tree_t *tree;
    chk_rec_fn fn;
    void *ctx;       /**< of fn and tree->ops */
    uint64_t place;  /**< of the leaf entered last */
    bool taken;      /**< that leaf need not be read */
    uint32_t leaves; /**< owner numbers */
    uint32_t top;
    uint32_t n_levels;
    chk_level_t levels[BTR_LEVEL_MAX + 1];
    bool whole;
} chk_walk_t;

__attribute__((format(printf, 4, 5))) static void
chk_walk_find(chk_walk_t *walk, uint32_t invariant, page_no_t page_no, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char what[160];
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    walk->whole = false;
    chk_find(walk->chk, invariant, walk->tree->file, page_no, "index %s of table %s: %s",
             walk->tree->index, walk->tree->table, what);
}

/** The shape that a page of this level has in this index. */
static bool chk_page_shape(chk_walk_t *walk, const byte *page, page_no_t page_no, uint32_t level)
{
    const chk_tree_t *tree = walk->tree;
    uint32_t rec_size = level == 0 ? tree->rec_size : 1 + tree->key_len + 4;
    if (page_level(page) != level) {
        chk_walk_find(walk, 8, page_no, "level %" PRIu32 " instead of %" PRIu32, page_level(page),
                      level);
    } else if (page_index_id(page) != tree->id || page_rec_size(page) != rec_size
               || page_key_len(page) != tree->key_len) {
        chk_walk_find(walk, 6, page_no, "index id, record size or key length is not this index's");
    } else if (page_instant(page) != (page_no == tree->root ? tree->instant : 0)) {
        chk_walk_find(walk, 6, page_no, "instant mark %" PRIu32 " is not the catalogue's",
                      page_instant(page));
    } else if (page_n_recs(page) == 0
               && (page_no != tree->root || level != 0 || tree->instant != 0)) {
        chk_walk_find(walk, 6, page_no, "an empty page that is not an empty tree");
    } else if (page_no != tree->root
               && !chk_is_zero(page + CHK_PAGE_SEG_LEAF, 2 * CHK_SEG_HEADER_SIZE)) {
        chk_walk_find(walk, 6, page_no, "segment headers in a page that is not the root");
    } else if (fil_page_get_type(page) != FIL_PAGE_INDEX) {
        chk_walk_find(walk, 6, page_no, "a page of another type");
    }
    return walk->whole;
}

/** prev and next against the page that was entered before on this level. */
static bool chk_page_links(chk_walk_t *walk, const byte *page, page_no_t page_no,
                           const chk_level_t *level)
{
    page_no_t prev = fil_page_get_prev(page);
    if (prev != level->page_no) {
        chk_walk_find(walk, 8, page_no, "previous page is %" PRIu32 ", but links to %" PRIu32,
                      level->page_no, prev);
    } else if (level->page_no != FIL_NULL && level->next != page_no) {
        chk_walk_find(walk, 8, level->page_no, "next page is %" PRIu32 ", but links to %" PRIu32,
                      page_no, level->next);
    }
    return walk->whole;
}

static bool chk_rec_is_min(const byte *rec)
{
    return (rec_info(rec) & REC_INFO_MIN_REC) != 0;
}

/** Order inside the page and against the left sibling; bounds of the parent's node pointer. */
static bool chk_page_keys(chk_walk_t *walk, const byte *page, page_no_t page_no,
                          const chk_level_t *level, bool leftmost)
{
    uint32_t key_len = walk->tree->key_len;
    uint32_t page_size = walk->chk->page_size;
    uint32_t n = page_n_recs(page);
    const byte *before = level->has_last ? level->last_key : NULL;
    for (uint32_t slot = 0; slot < n && walk->whole; slot++) {
        const byte *rec = page_rec(page, page_size, slot);
        const byte *key = rec_payload(rec);
        bool min = chk_rec_is_min(rec);
        bool leaf = page_level(page) == 0;
        if (min != (leftmost && slot == 0 && (!leaf || walk->tree->instant != 0))) {
            chk_walk_find(walk, leaf ? 6 : 9, page_no,
                          "record %" PRIu32 ": wrong minimum record mark", slot);
        } else if (min) {
            continue;
        } else if (before != NULL && memcmp(before, key, key_len) >= 0) {
            chk_walk_find(walk, 7, page_no, "record %" PRIu32 " is not above the one before", slot);
        } else if ((level->low != NULL && memcmp(key, level->low, key_len) < 0)
                   || (level->high != NULL && memcmp(key, level->high, key_len) >= 0)) {
            chk_walk_find(walk, 9, page_no,
                          "record %" PRIu32 " is outside its node pointer's bounds", slot);
        }
        before = key;
    }
    return walk->whole;
}

/** The greatest key so far is needed itself: a page whose records were not read has left it where
it is. */
static dberr_t chk_last_key(chk_walk_t *walk, chk_level_t *level)
{
    if (!level->last_is_away) {
        return DB_SUCCESS;
    }
    uint32_t page_size = walk->chk->page_size;
    TRY(chk_page_read(walk->chk, walk->tree->file, level->page_no, level->page));
    const byte *last = page_rec(level->page, page_size, level->n_recs - 1);
    memcpy(level->last_key, rec_payload(last), walk->tree->key_len);
    level->last_is_away = false;
    return DB_SUCCESS;
}

/** Reads a page that was reached, and holds it against the tree. */
static dberr_t chk_page_look(chk_walk_t *walk, page_no_t page_no, uint32_t level_no)
{
    chk_t *chk = walk->chk;
    chk_level_t *level = &walk->levels[level_no];
    bool leftmost = level->page_no == FIL_NULL;
    TRY(chk_last_key(walk, level));
    TRY(chk_page_read(chk, walk->tree->file, page_no, level->page));
    const byte *page = level->page;
    if (!chk_page_shape(walk, page, page_no, level_no)
        || !chk_page_links(walk, page, page_no, level)
        || !chk_page_keys(walk, page, page_no, level, leftmost)) {
        return DB_SUCCESS;
    }
    level->page_no = page_no;
    level->next = fil_page_get_next(page);
    level->n_recs = page_n_recs(page);
    level->slot = 0;
    if (level->n_recs > 0) {
        const byte *last = page_rec(page, chk->page_size, level->n_recs - 1);
        if (!chk_rec_is_min(last)) {
            memcpy(level->last_key, rec_payload(last), walk->tree->key_len);
            level->has_last = true;
        }
    }
    return DB_SUCCESS;
}

/* ---- leaves that are known ---- */

static uint64_t chk_key_hash(const chk_walk_t *walk, const byte *key)
{
    return key != NULL ? XXH3_64bits(key, walk->tree->key_len) : 0;
}

/** Hash of all that the leaf to enter is held against, but for its links. */
static uint64_t chk_leaf_place(const chk_walk_t *walk, const chk_level_t *leaf, page_no_t page_no)
{
    const uint64_t parts[] = {walk->tree->definition,
                              page_no == walk->tree->root,
                              chk_key_hash(walk, leaf->low),
                              chk_key_hash(walk, leaf->high),
                              leaf->has_last ? leaf->last_hash : 0,
                              walk->tree->ops->context(walk->ctx)};
    uint64_t place = XXH3_64bits(parts, sizeof(parts));
    return place != 0 ? place : 1;
}

/** Takes the leaf as it was found right at this place before. False: it has to be read. */
static bool chk_leaf_take(chk_walk_t *walk, page_no_t page_no)
{
    chk_level_t *level = &walk->levels[0];
    const chk_fact_t *fact = chk_fact_of(walk->tree->file, page_no);
    walk->place = chk_leaf_place(walk, level, page_no);
    const chk_leaf_t *leaf = fact != NULL ? &fact->leaf : NULL;
    if (leaf == NULL || leaf->place != walk->place || leaf->prev != level->page_no
        || (level->page_no != FIL_NULL && level->next != page_no)
        || !walk->tree->ops->take(walk->ctx, page_no, leaf)) {
        return false;
    }
    level->page_no = page_no;
    level->next = leaf->next;
    level->n_recs = leaf->n_recs;
    if (leaf->n_recs > 0) {
        level->last_hash = leaf->last_key;
        level->last_is_away = true;
        level->has_last = true;
    }
    return true;
}

/** Behind the records of a leaf that was read. */
static void chk_leaf_end(chk_walk_t *walk)
{
    chk_level_t *level = &walk->levels[0];
    chk_fact_t *fact = chk_fact_of(walk->tree->file, level->page_no);
    chk_leaf_t leaf = {.place = walk->place,
                       .prev = fil_page_get_prev(level->page),
                       .next = level->next,
                       .n_recs = level->n_recs};
    level->last_hash = level->has_last ? chk_key_hash(walk, level->last_key) : 0;
    leaf.last_key = level->last_hash;
    if (walk->tree->ops->end(walk->ctx, level->page_no, &leaf) && fact != NULL) {
        chk_leaf_learn(walk->chk, fact, &leaf);
    }
}

/** Enters a page: level->low and high are set. On a finding walk->whole is false. */
static dberr_t chk_page_enter(chk_walk_t *walk, page_no_t page_no, uint32_t level_no)
{
    bool ok = false;
    bool root = page_no == walk->tree->root;
    chk_reach(walk->chk, walk->tree->file, page_no,
              level_no == 0 && !root ? walk->leaves : walk->top, 9, &ok);
    walk->whole &= ok;
    if (!walk->whole) {
        return DB_SUCCESS;
    }
    walk->taken = level_no == 0 && walk->tree->ops != NULL && chk_leaf_take(walk, page_no);
    return walk->taken ? DB_SUCCESS : chk_page_look(walk, page_no, level_no);
}

/** Page number and bounds of the next child of a level. */
static page_no_t chk_next_child(chk_walk_t *walk, uint32_t level_no)
{
    chk_level_t *level = &walk->levels[level_no];
    chk_level_t *below = &walk->levels[level_no - 1];
    uint32_t page_size = walk->chk->page_size;
    const byte *rec = page_rec(level->page, page_size, level->slot++);
    below->low = chk_rec_is_min(rec) ? level->low : rec_payload(rec);
    below->high = level->slot < level->n_recs
                      ? rec_payload(page_rec(level->page, page_size, level->slot))
                      : level->high;
    return mach_read_4(rec_payload(rec) + walk->tree->key_len);
}

static dberr_t chk_leaf_records(chk_walk_t *walk)
{
    const chk_level_t *leaf = &walk->levels[0];
    const chk_leaf_ops_t *ops = walk->tree->ops;
    if (walk->taken) {
        return DB_SUCCESS;
    }
    if (ops != NULL) {
        ops->begin(walk->ctx);
    }
    for (uint32_t slot = 0; slot < leaf->n_recs; slot++) {
        TRY(walk->fn(walk->ctx, leaf->page_no, page_rec(leaf->page, walk->chk->page_size, slot),
                     page_rec_len(leaf->page, walk->chk->page_size, slot)));
    }
    if (ops != NULL) {
        chk_leaf_end(walk);
    }
    return DB_SUCCESS;
}

static dberr_t chk_descend(chk_walk_t *walk)
{
    uint32_t top = walk->n_levels - 1;
    uint32_t level = top;
    dberr_t err = chk_page_enter(walk, walk->tree->root, top);
    while (err == DB_SUCCESS && walk->whole) {
        if (level == 0) {
            err = chk_leaf_records(walk);
        } else if (walk->levels[level].slot < walk->levels[level].n_recs) {
            page_no_t child = chk_next_child(walk, level--);
            err = chk_page_enter(walk, child, level);
            continue;
        }
        if (level == top) {
            break;
        }
        level++;
    }
    TRY(err);
    for (uint32_t i = 0; walk->whole && i <= top; i++) {
        if (walk->levels[i].next != FIL_NULL) {
            chk_walk_find(walk, 8, walk->levels[i].page_no,
                          "the last page of its level links to %" PRIu32, walk->levels[i].next);
        }
    }
    return DB_SUCCESS;
}

/** Both segments, as the root in chk->page names them. */
static void chk_walk_segments(chk_walk_t *walk)
{
    const chk_tree_t *tree = walk->tree;
    const byte *page = walk->chk->page;
    bool top = false;
    walk->top = chk_seg_claim(tree->file, page + CHK_PAGE_SEG_TOP, &top);
    bool leaves = false;
    walk->leaves = chk_seg_claim(tree->file, page + CHK_PAGE_SEG_LEAF, &leaves);
    if (tree->leaves != NULL) {
        *tree->leaves = walk->leaves;
    }
    if (!top || !leaves) {
        chk_walk_find(walk, 11, tree->root, "the root names a segment that is not its own");
    }
    /* Without inodes nothing can be said of the pages; that was reported. */
    walk->whole &= walk->top != CHK_OWNER_UNKNOWN && walk->leaves != CHK_OWNER_UNKNOWN;
}

/** Levels and segments are the root's business; its page is looked at twice. */
static dberr_t chk_walk_init(chk_walk_t *walk, byte **memory)
{
    chk_t *chk = walk->chk;
    const chk_tree_t *tree = walk->tree;
    walk->n_levels = 1;
    if (tree->root < tree->file->size_pages) {
        TRY(chk_page_read(chk, tree->file, tree->root, chk->page));
        uint32_t level = page_level(chk->page);
        if (chk_is_bad(tree->file, tree->root)) {
            walk->whole = false;
        } else {
            chk_walk_segments(walk);
        }
        walk->n_levels = level <= BTR_LEVEL_MAX ? level + 1 : 1;
    }
    size_t per_level = (size_t)chk->page_size + tree->key_len;
    *memory = malloc(per_level * walk->n_levels);
    if (*memory == NULL) {
        return err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory to walk an index");
    }
    for (uint32_t i = 0; i < walk->n_levels; i++) {
        walk->levels[i] = (chk_level_t){.page = *memory + i * per_level,
                                        .page_no = FIL_NULL,
                                        .next = FIL_NULL,
                                        .last_key = *memory + i * per_level + chk->page_size};
    }
    return DB_SUCCESS;
}

dberr_t chk_tree_walk(chk_t *chk, const chk_tree_t *tree, chk_rec_fn fn, void *ctx, bool *whole)
{
    chk_walk_t walk = {.chk = chk,
                       .tree = tree,
                       .fn = fn,
                       .ctx = ctx,
                       .leaves = CHK_OWNER_UNKNOWN,
                       .top = CHK_OWNER_UNKNOWN,
                       .whole = true};
    byte *memory = NULL;
    dberr_t err = chk_walk_init(&walk, &memory);
    if (err == DB_SUCCESS && walk.whole) {
        err = chk_descend(&walk);
    }
    free(memory);
    if (!walk.whole) {
        chk_broken(tree->file, walk.top);
        chk_broken(tree->file, walk.leaves);
    }
    *whole = walk.whole;
    return err;
}
