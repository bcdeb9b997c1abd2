/** Page 0 of a space: its header, and how a space grows.

Place: in fsp/, above the lists, below extents and segments.

    0 ........ FREE_LIMIT ........ FSP_SIZE ........ end of the file
    descriptors valid   in the file,        left by a crash between
                        no descriptor yet   extension and its log

Invariants
1. the file is longer, and that is fsynced, before the record of FSP_SIZE exists;
2. FSP_FREE_LIMIT is a multiple of the extent size; only the first extent may reach beyond FSP_SIZE,
   whose pages are then added one by one;
3. an extent with a descriptor page is FREE_FRAG from birth, with that page used;
4. header bytes are checked each time an mtr looks at them. */
#include <inttypes.h>

#include "base/check.h"
#include "base/mach.h"
#include "fsp/fsp_int.h"

#define FSP_FREE_ADD 4U        /**< extents that enter FREE at a time */
#define FSP_SMALL_EXTENTS 32U  /**< up to here a space grows by one extent */
#define FSP_RESERVE_EXTENTS 3U /**< one per segment of a tree, one for shared pages */

dberr_t fsp_corrupt(const fsp_space_t *space, page_no_t page_no, const char *what)
{
    return err_set(&buf_env(space->mtr->pool)->err, DB_CORRUPTION,
                   "space management, page %" PRIu32 " of space %" PRIu32 ": %s", page_no,
                   space->id, what);
}

static void fsp_space_init(fsp_space_t *space, mtr_t *mtr, space_id_t id)
{
    *space = (fsp_space_t){.mtr = mtr, .id = id};
    space->page_size = buf_page_size(mtr->pool);
    space->extent_pages = log_info(buf_log(mtr->pool))->extent_pages;
    space->xdes_covers = xdes_page_covers(space->page_size, space->extent_pages);
}

static const char *fsp_header_fault(const fsp_space_t *space)
{
    const byte *frame = space->header->frame;
    const fil_space_t *file = fil_space_get(buf_fil(space->mtr->pool), space->id);
    uint32_t extent = space->extent_pages;
    if (fil_page_get_type(frame) != FIL_PAGE_TYPE_FSP_HDR) {
        return "not a space header";
    }
    if (mach_read_4(frame + FSP_SPACE_ID) != space->id) {
        return "another space id in the header";
    }
    if (mach_read_4(frame + FSP_PAGE_SIZE) != space->page_size
        || mach_read_4(frame + FSP_EXTENT_PAGES) != extent) {
        return "another page or extent size in the header";
    }
    if (mach_read_4(frame + FSP_VERSION) != FSP_FORMAT_VERSION) {
        return "unknown format version";
    }
    if (space->size == 0 || space->size > FIL_PAGES_MAX || file == NULL
        || space->size > file->size_pages) {
        return "impossible size";
    }
    if (space->free_limit == 0 || space->free_limit % extent != 0
        || (space->free_limit > space->size && space->free_limit != extent)) {
        return "impossible free limit";
    }
    if (fsp_frag_n_used(space) >= space->free_limit || mach_read_8(frame + FSP_SEG_ID) == 0) {
        return "impossible number of used pages or segment id";
    }
    return NULL;
}

dberr_t fsp_space_get(mtr_t *mtr, space_id_t id, fsp_space_t *out)
{
    fsp_space_t space;
    fsp_space_init(&space, mtr, id);
    TRY(mtr_page_get(mtr, (page_id_t){id, 0}, &space.header));
    space.size = mach_read_4(space.header->frame + FSP_SIZE);
    space.free_limit = mach_read_4(space.header->frame + FSP_FREE_LIMIT);
    const char *fault = fsp_header_fault(&space);
    if (fault != NULL) {
        return fsp_corrupt(&space, 0, fault);
    }
    *out = space;
    return DB_SUCCESS;
}

uint32_t fsp_frag_n_used(const fsp_space_t *space)
{
    return mach_read_4(space->header->frame + FSP_FRAG_N_USED);
}

void fsp_set_frag_n_used(const fsp_space_t *space, uint32_t n)
{
    mtr_write_4(space->mtr, space->header, FSP_FRAG_N_USED, n);
}

dberr_t fsp_header_init(mtr_t *mtr, space_id_t id, uint32_t size_pages)
{
    fsp_space_t space;
    fsp_space_init(&space, mtr, id);
    uint32_t n_used = fsp_fixed_pages(id);
    CHECK(size_pages >= n_used && size_pages <= space.extent_pages);
    TRY(mtr_page_create(mtr, (page_id_t){id, 0}, FIL_PAGE_TYPE_FSP_HDR, &space.header));
    static const uint32_t LISTS[] = {FSP_FREE, FSP_FREE_FRAG, FSP_FULL_FRAG, FSP_SEG_INODES_FULL,
                                     FSP_SEG_INODES_FREE};
    byte empty[FLST_BASE_SIZE];
    flst_encode_empty(empty);
    mtr_write_4(mtr, space.header, FSP_SPACE_ID, id);
    mtr_write_4(mtr, space.header, FSP_SIZE, size_pages);
    mtr_write_4(mtr, space.header, FSP_FREE_LIMIT, space.extent_pages);
    mtr_write_4(mtr, space.header, FSP_PAGE_SIZE, space.page_size);
    mtr_write_4(mtr, space.header, FSP_VERSION, FSP_FORMAT_VERSION);
    mtr_write_4(mtr, space.header, FSP_EXTENT_PAGES, space.extent_pages);
    mtr_write_8(mtr, space.header, FSP_SEG_ID, 1);
    for (size_t i = 0; i < sizeof(LISTS) / sizeof(LISTS[0]); i++) {
        mtr_write_string(mtr, space.header, LISTS[i], empty, FLST_BASE_SIZE);
    }
    space.size = size_pages;
    space.free_limit = space.extent_pages;
    xdes_t xdes = {.block = space.header, .offset = FSP_XDES, .first = 0};
    xdes_set_state(&space, &xdes, XDES_STATE_FREE_FRAG, 0);
    for (page_no_t page_no = 0; page_no < n_used; page_no++) {
        xdes_set_used(&space, &xdes, page_no, true);
    }
    fsp_set_frag_n_used(&space, n_used);
    return flst_add_last(&space, fsp_list(&space, FSP_FREE_FRAG), space.header,
                         FSP_XDES + XDES_NODE);
}

/* ---- growth ---- */

dberr_t fsp_extend_to(fsp_space_t *space, uint32_t size)
{
    fil_t *fil = buf_fil(space->mtr->pool);
    TRY(fil_space_extend(fil, fil_space_get(fil, space->id), size));
    mtr_write_4(space->mtr, space->header, FSP_SIZE, size);
    space->size = size;
    return DB_SUCCESS;
}

/** Size after one more step of growth. */
static uint32_t fsp_next_size(const fsp_space_t *space, uint32_t size)
{
    uint32_t extent = space->extent_pages;
    uint32_t small = FSP_SMALL_EXTENTS * extent;
    if (small > space->xdes_covers) {
        small = space->xdes_covers;
    }
    size = size < extent ? extent : size;
    return size + (size < small ? extent : FSP_FREE_ADD * extent);
}

/** Initialises the descriptor of the extent at the free limit. */
static dberr_t fsp_add_extent(fsp_space_t *space, bool *is_free)
{
    page_no_t first = space->free_limit;
    *is_free = first % space->xdes_covers != 0;
    if (!*is_free) {
        buf_block_t *block = NULL;
        TRY(mtr_page_create(space->mtr, (page_id_t){space->id, first}, FIL_PAGE_TYPE_XDES, &block));
    }
    xdes_t xdes;
    TRY(xdes_locate(space, first, &xdes));
    space->free_limit += space->extent_pages;
    mtr_write_4(space->mtr, space->header, FSP_FREE_LIMIT, space->free_limit);
    xdes_set_state(space, &xdes, *is_free ? XDES_STATE_FREE : XDES_STATE_FREE_FRAG, 0);
    if (!*is_free) {
        buf_env(space->mtr->pool)->stats.xdes_pages++;
        xdes_set_used(space, &xdes, first, true);
        fsp_set_frag_n_used(space, fsp_frag_n_used(space) + 1);
    }
    return flst_add_last(space, fsp_list(space, *is_free ? FSP_FREE : FSP_FREE_FRAG), xdes.block,
                         xdes.offset + XDES_NODE);
}

dberr_t fsp_fill_free_list(fsp_space_t *space)
{
    uint32_t extent = space->extent_pages;
    dberr_t err = DB_SUCCESS;
    if (space->size < space->free_limit + FSP_FREE_ADD * extent) {
        err = fsp_extend_to(space, fsp_next_size(space, space->size));
    }
    if (err == DB_OUT_OF_SPACE && space->free_limit + extent <= space->size) {
        err = DB_SUCCESS; /* there is some left below FSP_SIZE */
    }
    TRY(err);
    for (uint32_t n = 0; n < FSP_FREE_ADD && space->free_limit + extent <= space->size;) {
        bool is_free = false;
        TRY(fsp_add_extent(space, &is_free));
        n += is_free;
    }
    return DB_SUCCESS;
}

dberr_t fsp_reserve(mtr_t *mtr, space_id_t id, uint32_t n_pages)
{
    fsp_space_t space;
    TRY(fsp_space_get(mtr, id, &space));
    xdes_t xdes;
    TRY(xdes_get(&space, 0, &xdes));
    uint32_t n_used = xdes_n_used(&space, &xdes);
    uint32_t size = space.size;
    if (size < space.extent_pages && n_used + n_pages <= space.extent_pages) {
        size = n_used + n_pages > size ? n_used + n_pages : size;
    } else {
        uint32_t n_free = flst_len(fsp_list(&space, FSP_FREE));
        while (n_free + (size > space.free_limit ? size - space.free_limit : 0) / space.extent_pages
               < FSP_RESERVE_EXTENTS) {
            size = fsp_next_size(&space, size);
        }
    }
    return size > space.size ? fsp_extend_to(&space, size) : DB_SUCCESS;
}
