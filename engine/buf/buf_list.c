/** What the pool is made of: pages by their id, the order of their use, the dirty ones, and what
waits to be blanked.

Place: bottom of buf/: it reads and writes nothing.

The global list of dirty pages runs from the oldest to the newest modification, so that its head
bounds the checkpoint. fil_space->flush_list is the head of a ring in the same order through
space_prev and space_next: flushing a space looks at that space's dirty pages only.

Invariants
1. a block is on the free list, or in the hash and on the LRU list; a dirty one also on both flush
   lists;
2. the flush lists ascend in oldest_modification, because pages become dirty in the order of the
   log: buf_block_set_dirty checks it, and only ever appends. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "buf/buf_int.h"

/* ---- by id ---- */

static buf_block_t **buf_hash_chain(const buf_pool_t *pool, page_id_t id)
{
    uint32_t h = id.space * 0x9E3779B1U + id.page_no;
    h = (h ^ h >> 15) * 0x85EBCA6BU;
    return &pool->hash[(h ^ h >> 13) & pool->hash_mask];
}

buf_block_t *buf_page_peek(buf_pool_t *pool, page_id_t id)
{
    buf_block_t *block = *buf_hash_chain(pool, id);
    while (block != NULL && !page_id_eq(block->id, id)) {
        block = block->hash_next;
    }
    return block;
}

void buf_block_push_free(buf_pool_t *pool, buf_block_t *block)
{
    block->hash_next = pool->free_first;
    pool->free_first = block;
}

/* ---- by use ---- */

static void buf_lru_add_first(buf_pool_t *pool, buf_block_t *block)
{
    block->lru_prev = NULL;
    block->lru_next = pool->lru_first;
    if (pool->lru_first != NULL) {
        pool->lru_first->lru_prev = block;
    } else {
        pool->lru_last = block;
    }
    pool->lru_first = block;
}

static void buf_lru_remove(buf_pool_t *pool, buf_block_t *block)
{
    if (block->lru_prev != NULL) {
        block->lru_prev->lru_next = block->lru_next;
    } else {
        pool->lru_first = block->lru_next;
    }
    if (block->lru_next != NULL) {
        block->lru_next->lru_prev = block->lru_prev;
    } else {
        pool->lru_last = block->lru_prev;
    }
    block->lru_prev = NULL;
    block->lru_next = NULL;
}

static void buf_lru_touch(buf_pool_t *pool, buf_block_t *block)
{
    if (pool->lru_first != block) {
        buf_lru_remove(pool, block);
        buf_lru_add_first(pool, block);
    }
}

void buf_block_enter(buf_pool_t *pool, buf_block_t *block, page_id_t id)
{
    byte *frame = block->frame;
    memset(block, 0, sizeof(*block));
    block->frame = frame;
    block->id = id;
    buf_block_t **chain = buf_hash_chain(pool, id);
    block->hash_next = *chain;
    *chain = block;
    buf_lru_add_first(pool, block);
}

void buf_block_release(buf_pool_t *pool, buf_block_t *block)
{
    CHECK(block->fix_count == 0 && block->oldest_modification == 0 && !block->in_flight);
    buf_block_t **link = buf_hash_chain(pool, block->id);
    while (*link != block) {
        CHECK(*link != NULL);
        link = &(*link)->hash_next;
    }
    *link = block->hash_next;
    buf_lru_remove(pool, block);
    buf_block_push_free(pool, block);
}

void buf_block_fix(buf_pool_t *pool, buf_block_t *block)
{
    if (block->fix_count++ == 0) {
        pool->n_fixed++;
    }
    buf_lru_touch(pool, block);
}

void buf_block_unfix(buf_pool_t *pool, buf_block_t *block)
{
    CHECK(block->fix_count > 0);
    if (--block->fix_count == 0) {
        pool->n_fixed--;
    }
}

/* ---- dirty ---- */

static fil_space_t *buf_space_of(buf_pool_t *pool, const buf_block_t *block)
{
    fil_space_t *space = fil_space_get(pool->fil, block->id.space);
    CHECK(space != NULL); /* a space's pages are discarded before it goes */
    return space;
}

/** Puts a block that becomes dirty at the end of both lists. */
static void buf_flush_append(buf_pool_t *pool, fil_space_t *space, buf_block_t *block)
{
    block->flush_prev = pool->flush_last;
    block->flush_next = NULL;
    if (pool->flush_last != NULL) {
        pool->flush_last->flush_next = block;
    } else {
        pool->flush_first = block;
    }
    pool->flush_last = block;
    buf_block_t *head = space->flush_list;
    if (head == NULL) {
        block->space_prev = block;
        block->space_next = block;
        space->flush_list = block;
    } else {
        block->space_prev = head->space_prev;
        block->space_next = head;
        head->space_prev->space_next = block;
        head->space_prev = block;
    }
    pool->n_dirty++;
}

void buf_flush_remove(buf_pool_t *pool, buf_block_t *block)
{
    CHECK(block->oldest_modification != 0);
    if (block->flush_prev != NULL) {
        block->flush_prev->flush_next = block->flush_next;
    } else {
        pool->flush_first = block->flush_next;
    }
    if (block->flush_next != NULL) {
        block->flush_next->flush_prev = block->flush_prev;
    } else {
        pool->flush_last = block->flush_prev;
    }
    fil_space_t *space = buf_space_of(pool, block);
    if (block->space_next == block) {
        space->flush_list = NULL;
    } else {
        block->space_prev->space_next = block->space_next;
        block->space_next->space_prev = block->space_prev;
        if (space->flush_list == block) {
            space->flush_list = block->space_next;
        }
    }
    block->flush_prev = block->flush_next = NULL;
    block->space_prev = block->space_next = NULL;
    block->oldest_modification = 0;
    block->logged = false;
    pool->n_dirty--;
}

void buf_block_set_dirty(buf_pool_t *pool, buf_block_t *block, lsn_t start_lsn, lsn_t end_lsn)
{
    CHECK(block->fix_count > 0 && !block->in_flight);
    CHECK(start_lsn != 0 && start_lsn <= end_lsn && end_lsn >= block->newest_modification);
    CHECK(pool->flush_last == NULL || pool->flush_last->oldest_modification <= start_lsn);
    fil_space_t *space = buf_space_of(pool, block);
    block->newest_modification = end_lsn;
    if (space->max_lsn < end_lsn) {
        space->max_lsn = end_lsn;
    }
    if (block->oldest_modification == 0) {
        block->oldest_modification = start_lsn;
        buf_flush_append(pool, space, block);
    }
}

lsn_t buf_oldest_modification(const buf_pool_t *pool)
{
    return pool->flush_first != NULL ? pool->flush_first->oldest_modification : 0;
}

uint32_t buf_dirty_pages(const buf_pool_t *pool)
{
    return pool->n_dirty;
}

void buf_block_discard(buf_pool_t *pool, buf_block_t *block)
{
    CHECK(block->fix_count == 0);
    PROBE_MARK(pool->env->probe, "page_discard space=%" PRIu32 " page=%" PRIu32, block->id.space,
               block->id.page_no);
    buf_flush_remove(pool, block);
    block->observer = 0;
}

/* ---- to be blanked ---- */

static void buf_scrub_add(buf_scrub_t *scrub, const buf_blank_t *blank)
{
    if (scrub->n == scrub->capacity) {
        scrub->capacity = scrub->capacity == 0 ? 64 : 2 * scrub->capacity;
        scrub->blanks = realloc(scrub->blanks, scrub->capacity * sizeof(scrub->blanks[0]));
        CHECK(scrub->blanks != NULL); /* a commit cannot fail */
    }
    scrub->blanks[scrub->n++] = *blank;
}

void buf_scrub_note(buf_pool_t *pool, page_id_t id, lsn_t lsn)
{
    if (pool->scrub.on) {
        buf_scrub_add(&pool->scrub, &(buf_blank_t){.id = id, .lsn = lsn});
    }
}

/** Keeps the entries of other pages: of those with this space, and this number or any
(FIL_NULL). */
static void buf_scrub_filter(buf_scrub_t *scrub, space_id_t space, page_no_t page_no)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < scrub->n; i++) {
        page_id_t id = scrub->blanks[i].id;
        if (id.space != space || (page_no != FIL_NULL && id.page_no != page_no)) {
            scrub->blanks[kept++] = scrub->blanks[i];
        }
    }
    scrub->n = kept;
}

void buf_scrub_forget(buf_pool_t *pool, page_id_t id)
{
    buf_scrub_filter(&pool->scrub, id.space, id.page_no);
}

void buf_scrub_forget_space(buf_pool_t *pool, space_id_t space)
{
    buf_scrub_filter(&pool->scrub, space, FIL_NULL);
}

void buf_scrub_written(buf_pool_t *pool, const fil_space_t *space, page_no_t page_no,
                       uint32_t stored)
{
    buf_blank_t blank = {.id = {space->id, page_no}, .from = stored, .n_write = space->n_writes};
    buf_scrub_forget(pool, blank.id);
    if (stored < pool->page_size && fil_can_punch(pool->fil)) {
        buf_scrub_add(&pool->scrub, &blank);
    }
}
