/** Page allocation by owner maps.

Place: above mtr/; all changes are logged mtrs. Below btr/ and trx/, which own pages.

Invariants
1. a page is allocated exactly if its map entry is not 0, and FSP_N_USED counts those entries (I11);
2. the map changes in always-logged mtrs, also for pages whose contents are not logged: recovery can
   free an incomplete tree from map pages alone;
3. the file is long enough before FSP_SIZE says so;
4. bytes of map pages are not trusted: each map page is checked when an mtr first looks at it, and
   a page in use is never given out twice within what the pool can see;
5. a page freed in an mtr is not given out in the same mtr (I15: FREE is its page's only record
   there). */
#include "fsp/fsp.h"

#include <inttypes.h>

#include "base/check.h"
#include "base/mach.h"

#define FSP_VERSION_1 1U
#define FSP_FREE_BATCH 32U /**< pages freed by one mtr of fsp_owner_free */

/** Page 0 of a space, checked. */
typedef struct fsp_header {
    buf_block_t *block;
    uint32_t size;
    uint32_t n_used;
} fsp_header_t;

static err_sink_t *fsp_err(const mtr_t *mtr)
{
    return &buf_env(mtr->pool)->err;
}

static uint32_t fsp_mtr_map_pages(const mtr_t *mtr)
{
    return fsp_map_pages(buf_page_size(mtr->pool));
}

static uint32_t fsp_entry_offset(const mtr_t *mtr, page_no_t page_no)
{
    return FSP_MAP + 4 * (page_no % fsp_mtr_map_pages(mtr));
}

static uint32_t fsp_entry(const mtr_t *mtr, const buf_block_t *map, page_no_t page_no)
{
    return mach_read_4(map->frame + fsp_entry_offset(mtr, page_no));
}

static dberr_t fsp_corrupt(const mtr_t *mtr, page_id_t id, const char *what)
{
    return err_set(fsp_err(mtr), DB_CORRUPTION,
                   "allocation map, page %" PRIu32 " of space %" PRIu32 ": %s", id.page_no,
                   id.space, what);
}

static const char *fsp_header_fault(const mtr_t *mtr, const buf_block_t *block)
{
    const byte *frame = block->frame;
    const fil_space_t *space = fil_space_get(buf_fil(mtr->pool), block->id.space);
    uint32_t size = mach_read_4(frame + FSP_SIZE);
    uint32_t n_used = mach_read_4(frame + FSP_N_USED);
    if (mach_read_4(frame + FSP_SPACE_ID) != block->id.space) {
        return "another space id in the header";
    }
    if (mach_read_4(frame + FSP_PAGE_SIZE) != buf_page_size(mtr->pool)) {
        return "another page size in the header";
    }
    if (mach_read_4(frame + FSP_VERSION) != FSP_VERSION_1) {
        return "unknown format version";
    }
    if (mach_read_6(frame + FSP_RESERVED) != 0) {
        return "reserved bytes are not zero";
    }
    if (size == 0 || size > FIL_PAGES_MAX || space == NULL || size > space->size_pages) {
        return "impossible size";
    }
    if (n_used == 0 || n_used > size) {
        return "impossible number of used pages";
    }
    return NULL;
}

/** The map page at page_no (a multiple of M), checked. */
static dberr_t fsp_map_get(mtr_t *mtr, space_id_t space, page_no_t page_no, buf_block_t **out)
{
    page_id_t id = {space, page_no};
    buf_block_t *block = NULL;
    dberr_t err = mtr_page_get(mtr, id, &block);
    if (err != DB_SUCCESS) {
        return err;
    }
    uint32_t type = page_no == 0 ? FIL_PAGE_TYPE_FSP_HDR : FIL_PAGE_TYPE_XDES;
    if (fil_page_get_type(block->frame) != type) {
        return fsp_corrupt(mtr, id, "not a map page");
    }
    if (fsp_entry(mtr, block, page_no) != FSP_OWNER_MAP) {
        return fsp_corrupt(mtr, id, "does not own itself");
    }
    *out = block;
    return DB_SUCCESS;
}

static dberr_t fsp_header_get(mtr_t *mtr, space_id_t space, fsp_header_t *header)
{
    buf_block_t *block = NULL;
    dberr_t err = fsp_map_get(mtr, space, 0, &block);
    if (err != DB_SUCCESS) {
        return err;
    }
    const char *fault = fsp_header_fault(mtr, block);
    if (fault != NULL) {
        return fsp_corrupt(mtr, block->id, fault);
    }
    header->block = block;
    header->size = mach_read_4(block->frame + FSP_SIZE);
    header->n_used = mach_read_4(block->frame + FSP_N_USED);
    return DB_SUCCESS;
}

/** Header and the map page that covers page_no; the page must lie within the committed size. */
static dberr_t fsp_entry_get(mtr_t *mtr, page_id_t id, fsp_header_t *header, buf_block_t **map)
{
    dberr_t err = fsp_header_get(mtr, id.space, header);
    if (err != DB_SUCCESS) {
        return err;
    }
    if (id.page_no >= header->size) {
        return fsp_corrupt(mtr, id, "lies beyond the space");
    }
    return fsp_map_get(mtr, id.space, id.page_no - id.page_no % fsp_mtr_map_pages(mtr), map);
}

dberr_t fsp_header_init(mtr_t *mtr, space_id_t space, uint32_t size_pages)
{
    CHECK(size_pages > 0 && size_pages <= fsp_mtr_map_pages(mtr));
    buf_block_t *block = NULL;
    page_id_t id = {space, 0};
    dberr_t err = mtr_page_create(mtr, id, FIL_PAGE_TYPE_FSP_HDR, &block);
    if (err != DB_SUCCESS) {
        return err;
    }
    mtr_write_4(mtr, block, FSP_SPACE_ID, space);
    mtr_write_4(mtr, block, FSP_SIZE, size_pages);
    mtr_write_4(mtr, block, FSP_N_USED, 1);
    mtr_write_4(mtr, block, FSP_PAGE_SIZE, buf_page_size(mtr->pool));
    mtr_write_4(mtr, block, FSP_VERSION, FSP_VERSION_1);
    mtr_write_4(mtr, block, fsp_entry_offset(mtr, 0), FSP_OWNER_MAP);
    return DB_SUCCESS;
}

/** Lowest free page of [from, to), or FIL_NULL; what `mtr` itself has freed is not free yet. Map pages are
looked at in an mtr of their own, so that a long search does not pin them all. */
static dberr_t fsp_find_free(const mtr_t *mtr, space_id_t space, page_no_t from, page_no_t to,
                             page_no_t *found)
{
    uint32_t m = fsp_mtr_map_pages(mtr);
    *found = FIL_NULL;
    page_no_t page_no = from;
    while (page_no < to && *found == FIL_NULL) {
        mtr_t look;
        mtr_start(&look, mtr->pool, MTR_READ_ONLY);
        buf_block_t *map = NULL;
        page_no_t map_no = page_no - page_no % m;
        dberr_t err = fsp_map_get(&look, space, map_no, &map);
        for (; err == DB_SUCCESS && page_no < to && page_no - map_no < m; page_no++) {
            page_id_t id = {space, page_no};
            if (fsp_entry(&look, map, page_no) == FSP_OWNER_FREE && !mtr_page_is_freed(mtr, id)) {
                *found = page_no;
                break;
            }
        }
        mtr_commit(&look);
        if (err != DB_SUCCESS) {
            return err;
        }
    }
    return DB_SUCCESS;
}

/** May page_no be given away? Whatever can fail comes before the map changes. */
static dberr_t fsp_check_free(const mtr_t *mtr, const fsp_header_t *header, const buf_block_t *map,
                              page_no_t page_no)
{
    page_id_t id = {map->id.space, page_no};
    if (header->n_used >= header->size) {
        return fsp_corrupt(mtr, id, "free although no page is counted as free");
    }
    if (fsp_entry(mtr, map, page_no) != FSP_OWNER_FREE) {
        return fsp_corrupt(mtr, id, "already allocated");
    }
    return DB_SUCCESS;
}

static void fsp_set_owner(mtr_t *mtr, const fsp_header_t *header, buf_block_t *map,
                          page_no_t page_no, uint32_t owner)
{
    mtr_write_4(mtr, map, fsp_entry_offset(mtr, page_no), owner);
    mtr_write_4(mtr, header->block, FSP_N_USED, header->n_used + 1);
}

/** Gives a free page to owner and initialises it. */
static dberr_t fsp_take(mtr_t *mtr, const fsp_header_t *header, buf_block_t *map, uint32_t owner,
                        page_no_t page_no, page_type_t type, buf_block_t **out)
{
    buf_block_t *block = NULL;
    dberr_t err = fsp_check_free(mtr, header, map, page_no);
    if (err == DB_SUCCESS) {
        err = mtr_page_create(mtr, (page_id_t){map->id.space, page_no}, type, &block);
    }
    if (err != DB_SUCCESS) {
        return err;
    }
    fsp_set_owner(mtr, header, map, page_no, owner);
    *out = block;
    return DB_SUCCESS;
}

/** Makes the space longer: file first, then FSP_SIZE and a new map page where one falls into the
new range. *header is as after the change; *first is the first new page that is free. */
static dberr_t fsp_extend(mtr_t *mtr, fsp_header_t *header, page_no_t *first)
{
    fil_t *fil = buf_fil(mtr->pool);
    space_id_t space_id = header->block->id.space;
    uint32_t size = header->size + FSP_EXTEND_PAGES;
    fil_space_t *space = fil_space_get(fil, space_id);
    dberr_t err = fil_space_extend(fil, space, size);
    if (err != DB_SUCCESS) {
        return err;
    }
    *first = header->size;
    uint32_t m = fsp_mtr_map_pages(mtr);
    page_no_t map_no = (header->size + m - 1) / m * m;
    if (map_no < size) {
        buf_block_t *map = NULL;
        page_id_t map_id = {space_id, map_no};
        err = mtr_page_create(mtr, map_id, FIL_PAGE_TYPE_XDES, &map);
        if (err != DB_SUCCESS) {
            return err;
        }
        mtr_write_4(mtr, map, fsp_entry_offset(mtr, map_no), FSP_OWNER_MAP);
        header->n_used++;
        mtr_write_4(mtr, header->block, FSP_N_USED, header->n_used);
        if (*first == map_no) {
            (*first)++;
        }
    }
    header->size = size;
    mtr_write_4(mtr, header->block, FSP_SIZE, size);
    return DB_SUCCESS;
}

/** Chooses a free page, extending the space if there is none, and gets what describes it. */
static dberr_t fsp_pick(mtr_t *mtr, space_id_t space, page_no_t hint, fsp_header_t *header,
                        buf_block_t **map, page_no_t *out)
{
    dberr_t err = fsp_header_get(mtr, space, header);
    if (err != DB_SUCCESS) {
        return err;
    }
    page_no_t page_no = FIL_NULL;
    if (header->n_used < header->size) {
        err = fsp_find_free(mtr, space, hint, header->size, &page_no);
        if (err == DB_SUCCESS && page_no == FIL_NULL) {
            page_no_t to = hint < header->size ? hint : header->size;
            err = fsp_find_free(mtr, space, 0, to, &page_no);
        }
    }
    if (err == DB_SUCCESS && page_no == FIL_NULL) {
        err = fsp_extend(mtr, header, &page_no);
    }
    if (err == DB_SUCCESS) {
        page_no_t map_no = page_no - page_no % fsp_mtr_map_pages(mtr);
        err = fsp_map_get(mtr, space, map_no, map);
    }
    *out = page_no;
    return err;
}

dberr_t fsp_page_alloc(mtr_t *mtr, space_id_t space, uint32_t owner, page_no_t hint,
                       page_type_t type, buf_block_t **out)
{
    CHECK(owner != FSP_OWNER_FREE && mtr->mode == MTR_LOG_ALL);
    fsp_header_t header;
    buf_block_t *map = NULL;
    page_no_t page_no = FIL_NULL;
    dberr_t err = fsp_pick(mtr, space, hint, &header, &map, &page_no);
    if (err != DB_SUCCESS) {
        return err;
    }
    return fsp_take(mtr, &header, map, owner, page_no, type, out);
}

dberr_t fsp_page_reserve(mtr_t *mtr, space_id_t space, uint32_t owner, page_no_t hint,
                         page_no_t *out)
{
    CHECK(owner != FSP_OWNER_FREE && mtr->mode == MTR_LOG_ALL);
    fsp_header_t header;
    buf_block_t *map = NULL;
    page_no_t page_no = FIL_NULL;
    dberr_t err = fsp_pick(mtr, space, hint, &header, &map, &page_no);
    if (err == DB_SUCCESS) {
        err = fsp_check_free(mtr, &header, map, page_no);
    }
    if (err != DB_SUCCESS) {
        return err;
    }
    fsp_set_owner(mtr, &header, map, page_no, owner);
    *out = page_no;
    return DB_SUCCESS;
}

dberr_t fsp_page_alloc_at(mtr_t *mtr, space_id_t space, uint32_t owner, page_no_t page_no,
                          page_type_t type, buf_block_t **out)
{
    CHECK(owner != FSP_OWNER_FREE && mtr->mode == MTR_LOG_ALL);
    fsp_header_t header;
    buf_block_t *map = NULL;
    page_id_t id = {space, page_no};
    dberr_t err = fsp_entry_get(mtr, id, &header, &map);
    if (err != DB_SUCCESS) {
        return err;
    }
    return fsp_take(mtr, &header, map, owner, page_no, type, out);
}

dberr_t fsp_page_free(mtr_t *mtr, page_id_t id, uint32_t owner)
{
    CHECK(owner != FSP_OWNER_FREE && owner != FSP_OWNER_MAP);
    fsp_header_t header;
    buf_block_t *map = NULL;
    dberr_t err = fsp_entry_get(mtr, id, &header, &map);
    if (err != DB_SUCCESS) {
        return err;
    }
    if (fsp_entry(mtr, map, id.page_no) != owner) {
        return fsp_corrupt(mtr, id, "to be freed, but it belongs to another owner");
    }
    if (mtr_page_is_changed(mtr, id)) {
        return fsp_corrupt(mtr, id, "to be freed, but in use by the same change");
    }
    if (header.n_used <= 1) {
        return fsp_corrupt(mtr, id, "allocated although no page is counted as used");
    }
    mtr_write_4(mtr, map, fsp_entry_offset(mtr, id.page_no), FSP_OWNER_FREE);
    mtr_write_4(mtr, header.block, FSP_N_USED, header.n_used - 1);
    mtr_page_free(mtr, id);
    return DB_SUCCESS;
}

/** Frees the owner's next pages from *cursor on, within one map page; advances *cursor. */
static dberr_t fsp_owner_free_batch(mtr_t *mtr, space_id_t space, uint32_t owner, page_no_t *cursor,
                                    uint32_t *size)
{
    fsp_header_t header;
    buf_block_t *map = NULL;
    page_id_t id = {space, *cursor};
    dberr_t err = fsp_entry_get(mtr, id, &header, &map);
    if (err != DB_SUCCESS) {
        return err;
    }
    *size = header.size;
    uint32_t m = fsp_mtr_map_pages(mtr);
    uint32_t n = 0;
    for (; id.page_no < header.size && id.page_no - map->id.page_no < m && n < FSP_FREE_BATCH;
         id.page_no++) {
        if (fsp_entry(mtr, map, id.page_no) != owner) {
            continue;
        }
        if (header.n_used <= n + 1) {
            return fsp_corrupt(mtr, id, "allocated although no page is counted as used");
        }
        mtr_write_4(mtr, map, fsp_entry_offset(mtr, id.page_no), FSP_OWNER_FREE);
        mtr_page_free(mtr, id);
        n++;
    }
    if (n > 0) {
        mtr_write_4(mtr, header.block, FSP_N_USED, header.n_used - n);
    }
    *cursor = id.page_no;
    return DB_SUCCESS;
}

dberr_t fsp_owner_free(buf_pool_t *pool, space_id_t space, uint32_t owner)
{
    CHECK(owner != FSP_OWNER_FREE && owner != FSP_OWNER_MAP);
    page_no_t cursor = 0;
    uint32_t size = 1;
    while (cursor < size) {
        dberr_t err = buf_log_free_check(pool);
        if (err != DB_SUCCESS) {
            return err;
        }
        mtr_t mtr;
        mtr_start(&mtr, pool, MTR_LOG_ALL);
        err = fsp_owner_free_batch(&mtr, space, owner, &cursor, &size);
        if (err != DB_SUCCESS) {
            mtr_abort(&mtr);
            return err;
        }
        mtr_commit(&mtr);
    }
    return DB_SUCCESS;
}

dberr_t fsp_page_owner(mtr_t *mtr, page_id_t id, uint32_t *owner)
{
    fsp_header_t header;
    buf_block_t *map = NULL;
    dberr_t err = fsp_entry_get(mtr, id, &header, &map);
    if (err == DB_SUCCESS) {
        *owner = fsp_entry(mtr, map, id.page_no);
    }
    return err;
}
