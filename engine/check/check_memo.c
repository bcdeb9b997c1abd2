/** The memo: pages that earlier scans found right.

Place: check/, beside check_space.c and check_tree.c, which ask it.

    bytes --version of the back end, else hash of the content--> way of (space, page number) -->
    fact

Invariants
1. a fact is about content at a place: whatever else it was held against is in its leaf's hash, or
   is asked again (LSN against the end of the log, type against the owner, counts against the
   history);
2. a version and a content mean the same bytes: versions by the back end's promise, contents by 128
   bits of hash;
3. memory is bounded: what has no room in bytes_max goes without, and before the next scan
   everything is forgotten. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

#include "check/check_memo.h"

#define CHK_MEMO_WAYS                                                                              \
    2U /**< contents per page: as the files have it, as the last recovery left it */

typedef struct chk_memo_space {
    space_id_t id;
    uint32_t n_pages;
    chk_fact_t *facts; /**< CHK_MEMO_WAYS per page */
} chk_memo_space_t;

struct check_memo {
    chk_memo_space_t *spaces;
    uint32_t n_spaces;
    uint32_t page_size;
    uint64_t n_scans;
    size_t bytes_max;
    size_t bytes; /**< of spaces, facts and what facts lead to */
    bool full;    /**< something had no room */
};

check_memo_t *check_memo_create(size_t bytes_max)
{
    check_memo_t *memo = calloc(1, sizeof(*memo));
    if (memo != NULL) {
        memo->bytes_max = bytes_max;
    }
    return memo;
}

size_t check_memo_bytes(const check_memo_t *memo)
{
    return memo->bytes;
}

/** Is there room for so many more bytes? */
static bool memo_room(check_memo_t *memo, size_t more)
{
    memo->full |= more > memo->bytes_max - memo->bytes;
    return !memo->full;
}

static void memo_clear(check_memo_t *memo)
{
    for (uint32_t i = 0; i < memo->n_spaces; i++) {
        chk_memo_space_t *space = &memo->spaces[i];
        for (uint32_t k = 0; k < space->n_pages * CHK_MEMO_WAYS; k++) {
            free(space->facts[k].leaf.expected);
        }
        free(space->facts);
    }
    free(memo->spaces);
    *memo = (check_memo_t){.n_scans = memo->n_scans, .bytes_max = memo->bytes_max};
}

void check_memo_free(check_memo_t *memo)
{
    if (memo != NULL) {
        memo_clear(memo);
        free(memo);
    }
}

void chk_memo_begin(chk_t *chk)
{
    check_memo_t *memo = chk->memo;
    if (memo == NULL) {
        return;
    }
    if (memo->page_size != chk->page_size || memo->full) {
        memo_clear(memo);
        memo->page_size = chk->page_size;
    }
    memo->n_scans++;
}

/** The space, with room for so many pages. NULL: no memory, or no room. */
static chk_memo_space_t *memo_space(check_memo_t *memo, space_id_t id, uint32_t n_pages)
{
    uint32_t i = 0;
    while (i < memo->n_spaces && memo->spaces[i].id != id) {
        i++;
    }
    if (i == memo->n_spaces) {
        size_t n = i + 1U;
        chk_memo_space_t *spaces =
            memo_room(memo, sizeof(*spaces)) ? realloc(memo->spaces, n * sizeof(*spaces)) : NULL;
        if (spaces == NULL) {
            return NULL;
        }
        memo->bytes += sizeof(*spaces);
        memo->spaces = spaces;
        spaces[memo->n_spaces++] = (chk_memo_space_t){.id = id};
    }
    chk_memo_space_t *space = &memo->spaces[i];
    if (space->n_pages < n_pages) {
        size_t more = (size_t)(n_pages - space->n_pages) * CHK_MEMO_WAYS;
        size_t n = (size_t)space->n_pages * CHK_MEMO_WAYS;
        chk_fact_t *facts = memo_room(memo, more * sizeof(*facts))
                                ? realloc(space->facts, (n + more) * sizeof(*facts))
                                : NULL;
        if (facts == NULL) {
            return NULL;
        }
        memset(facts + n, 0, more * sizeof(*facts));
        space->facts = facts;
        space->n_pages = n_pages;
        memo->bytes += more * sizeof(*facts);
    }
    return space;
}

void chk_memo_file(chk_t *chk, chk_file_t *file)
{
    const chk_memo_space_t *space =
        chk->memo != NULL ? memo_space(chk->memo, file->space, file->size_pages) : NULL;
    if (space != NULL) {
        file->ways = space->facts;
        file->facts = calloc((size_t)file->size_pages + 1, sizeof(chk_fact_t *));
    }
}

/** The way whose content this is, or the older one, emptied for it. */
static chk_fact_t *memo_way(chk_fact_t *ways, const os_view_t *view, uint32_t page_size)
{
    for (uint32_t i = 0; i < CHK_MEMO_WAYS; i++) {
        if (ways[i].right && ways[i].version == view->version) {
            return &ways[i];
        }
    }
    XXH128_hash_t hash = XXH3_128bits(view->bytes, page_size);
    chk_fact_t *oldest = &ways[0];
    for (uint32_t i = 0; i < CHK_MEMO_WAYS; i++) {
        if (ways[i].right && ways[i].content[0] == hash.low64
            && ways[i].content[1] == hash.high64) {
            ways[i].version = view->version;
            return &ways[i];
        }
        oldest = ways[i].used < oldest->used ? &ways[i] : oldest;
    }
    *oldest = (chk_fact_t){.version = view->version,
                           .content = {hash.low64, hash.high64},
                           .leaf = {.expected = oldest->leaf.expected},
                           .expected_room = oldest->expected_room};
    return oldest;
}

bool chk_memo_find(chk_t *chk, chk_file_t *file, page_no_t page_no)
{
    os_view_t view;
    if (file->facts == NULL || !chk_page_view(chk, file, page_no, &view)) {
        return false;
    }
    chk_fact_t *fact = memo_way(&file->ways[page_no * CHK_MEMO_WAYS], &view, chk->page_size);
    fact->used = chk->memo->n_scans;
    file->facts[page_no] = fact;
    return fact->right;
}

void chk_memo_learn(const chk_t *chk, const chk_file_t *file, page_no_t page_no)
{
    chk_fact_t *fact = chk_fact_of(file, page_no);
    if (fact != NULL) {
        fact->right = true;
        fact->lsn = fil_page_get_lsn(chk->page);
        fact->type = fil_page_get_type(chk->page);
    }
}

chk_fact_t *chk_fact_of(const chk_file_t *file, page_no_t page_no)
{
    return file->facts != NULL ? file->facts[page_no] : NULL;
}

void chk_leaf_learn(chk_t *chk, chk_fact_t *fact, const chk_leaf_t *leaf)
{
    check_memo_t *memo = chk->memo;
    uint32_t n = leaf->n_expected;
    if (n > fact->expected_room) {
        size_t more = (n - fact->expected_room) * sizeof(*fact->leaf.expected);
        uint64_t *expected =
            memo_room(memo, more) ? realloc(fact->leaf.expected, n * sizeof(*expected)) : NULL;
        if (expected == NULL) {
            return;
        }
        memo->bytes += more;
        fact->leaf.expected = expected;
        fact->expected_room = n;
    }
    uint64_t *expected = fact->leaf.expected;
    if (n > 0) {
        memcpy(expected, leaf->expected, n * sizeof(*expected));
    }
    fact->leaf = *leaf;
    fact->leaf.expected = expected;
}
