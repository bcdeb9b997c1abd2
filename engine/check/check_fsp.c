/** Space management of one file: descriptors, lists of extents, who uses which page.

Place: check/; before the scan of the pages, which asks for their owners. check_seg.c has the
inodes.

Checked (I11): state, segment and bitmap of each extent agree; each extent is on exactly one list,
that of its state, with links both ways and the length that the base says; used pages are counted
right; descriptors behind the free limit, and those of pages behind FSP_SIZE, say nothing is used.

Memory: a few bytes per page and per extent of a file, which must be as long as that. What is
damaged is reported by the scan of the pages; what it would have told is UNKNOWN. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "check/check_fsp.h"

/* ---- descriptors ---- */

/** What a used page of an extent is, as far as its descriptor tells. seg: owner number of the
extent's segment. */
static uint32_t chk_extent_owner(const chk_fsp_t *fsp, const chk_extent_t *extent, uint32_t seg,
                                 page_no_t page_no)
{
    if (extent->state == CHK_XDES_FSEG) {
        return seg;
    }
    uint32_t n_fixed = fsp->file->space == SPACE_SYSTEM  ? CHK_SYSTEM_PAGES
                       : space_is_undo(fsp->file->space) ? CHK_UNDO_SPACE_PAGES
                                                         : 1;
    if (page_no % fsp->covers == 0 || page_no < n_fixed) {
        return CHK_OWNER_FIXED;
    }
    return fsp->file->segs_whole ? CHK_OWNER_NONE : CHK_OWNER_UNKNOWN;
}

static void chk_extent_read(chk_fsp_t *fsp, const byte *xdes, uint32_t no)
{
    chk_file_t *file = fsp->file;
    chk_extent_t *extent = &fsp->extents[no];
    uint32_t n_pages = fsp->chk->extent_pages;
    page_no_t first = no * n_pages;
    *extent = (chk_extent_t){.state = mach_read_4(xdes + CHK_XDES_STATE),
                             .seg = mach_read_8(xdes + CHK_XDES_ID),
                             .prev = chk_addr_read(xdes + CHK_XDES_NODE),
                             .next = chk_addr_read(xdes + CHK_XDES_NODE + 6)};
    uint32_t seg = extent->state == CHK_XDES_FSEG ? chk_seg_by_id(file, extent->seg) : 0;
    for (uint32_t i = 0; i < n_pages; i++) {
        bool used = chk_bit(xdes + CHK_XDES_BITMAP, i);
        extent->n_used += used;
        if (first + i < file->size_pages) {
            /* An inode page is known already; its bit is checked here. */
            bool inodes = file->owner[first + i] == CHK_OWNER_INODES;
            if (inodes && (!used || extent->state == CHK_XDES_FSEG)) {
                chk_fsp_find(fsp, first + i, "an inode page that is free, or a segment's");
            } else if (!inodes) {
                file->owner[first + i] =
                    used ? chk_extent_owner(fsp, extent, seg, first + i) : CHK_OWNER_FREE;
            }
        } else if (used && first + i >= file->fsp_size) {
            chk_fsp_find(fsp, first + i, "used beyond the space");
            fsp->whole = false;
        }
    }
}

/** State, segment and bitmap of an extent. */
static void chk_extent_check(chk_fsp_t *fsp, uint32_t no)
{
    const chk_extent_t *extent = &fsp->extents[no];
    uint32_t all = fsp->chk->extent_pages;
    page_no_t first = no * all;
    bool possible = false;
    switch (extent->state) {
    case CHK_XDES_FREE:
        possible = extent->n_used == 0 && extent->seg == 0;
        break;
    case CHK_XDES_FREE_FRAG:
        possible = extent->n_used > 0 && extent->n_used < all && extent->seg == 0;
        break;
    case CHK_XDES_FULL_FRAG:
        possible = extent->n_used == all && extent->seg == 0;
        break;
    case CHK_XDES_FSEG:
        possible = extent->seg != 0;
        break;
    default:
        break;
    }
    if (!possible) {
        chk_fsp_find(fsp, first,
                     "extent in state %" PRIu32 " of segment %" PRIu64 " with %" PRIu32
                     " used pages",
                     extent->state, extent->seg, extent->n_used);
        fsp->whole = false;
    } else if (extent->state == CHK_XDES_FSEG && fsp->file->segs_whole
               && chk_seg_by_id(fsp->file, extent->seg) == CHK_OWNER_UNKNOWN) {
        chk_fsp_find(fsp, first, "extent of segment %" PRIu64 ", which does not exist",
                     extent->seg);
        fsp->whole = false;
    }
    if (possible && first % fsp->covers == 0 && first < fsp->file->size_pages
        && fsp->file->owner[first] != CHK_OWNER_FIXED) {
        chk_fsp_find(fsp, first, "a descriptor page that is free, or a segment's");
        fsp->whole = false;
    }
}

/** One descriptor page; a damaged one leaves its pages UNKNOWN. */
static dberr_t chk_xdes_page(chk_fsp_t *fsp, page_no_t page_no)
{
    chk_t *chk = fsp->chk;
    chk_file_t *file = fsp->file;
    page_id_t id = {file->space, page_no};
    TRY(chk_page_read(chk, file, page_no, chk->page));
    uint32_t type = page_no == 0 ? FIL_PAGE_TYPE_FSP_HDR : FIL_PAGE_TYPE_XDES;
    if (fil_page_verify(chk->page, chk->page_size, id) != PAGE_OK
        || fil_page_get_type(chk->page) != type) {
        fsp->whole = false;
        return DB_SUCCESS;
    }
    uint32_t n = fsp->covers / chk->extent_pages;
    uint32_t from = page_no / chk->extent_pages;
    uint32_t used = fsp->n_extents - from < n ? fsp->n_extents - from : n;
    for (uint32_t i = 0; i < used; i++) {
        chk_extent_read(fsp, chk->page + CHK_FSP_XDES + i * fsp->xdes_size, from + i);
        chk_extent_check(fsp, from + i);
    }
    uint32_t end = CHK_FSP_XDES + used * fsp->xdes_size;
    if (!chk_is_zero(chk->page + end, chk->page_size - FIL_PAGE_TRAILER - end)
        || (page_no != 0
            && !chk_is_zero(chk->page + CHK_FSP_SPACE_ID, CHK_FSP_XDES - CHK_FSP_SPACE_ID))) {
        chk_find(chk, 6, file, page_no, "reserved bytes of a descriptor page are not zero");
    }
    return DB_SUCCESS;
}

/* ---- lists ---- */

static void chk_space_lists(chk_fsp_t *fsp)
{
    const byte *page0 = fsp->page0;
    uint32_t all = fsp->chk->extent_pages;
    chk_list_t list = chk_list_read(page0 + CHK_FSP_FREE);
    chk_rule_t rule = {.name = "FREE", .state = CHK_XDES_FREE};
    uint64_t n_used = 0;
    chk_extent_list(fsp, &list, &rule, &n_used);
    list = chk_list_read(page0 + CHK_FSP_FULL_FRAG);
    rule = (chk_rule_t){"FULL_FRAG", CHK_XDES_FULL_FRAG, 0, all, all};
    chk_extent_list(fsp, &list, &rule, &n_used);
    list = chk_list_read(page0 + CHK_FSP_FREE_FRAG);
    rule = (chk_rule_t){"FREE_FRAG", CHK_XDES_FREE_FRAG, 0, 1, all - 1};
    chk_extent_list(fsp, &list, &rule, &n_used);
    if (n_used != mach_read_4(page0 + CHK_FSP_FRAG_N_USED)) {
        chk_fsp_find(fsp, 0, "%" PRIu64 " used pages in list FREE_FRAG, the header counts %" PRIu32,
                     n_used, mach_read_4(page0 + CHK_FSP_FRAG_N_USED));
    }
}

static void chk_extents_listed(chk_fsp_t *fsp)
{
    for (uint32_t no = 0; no < fsp->n_extents; no++) {
        if (!fsp->extents[no].listed) {
            chk_fsp_find(fsp, no * fsp->chk->extent_pages, "extent on no list");
            return;
        }
    }
}

static dberr_t chk_fsp_parts(chk_fsp_t *fsp)
{
    dberr_t err = chk_page_read(fsp->chk, fsp->file, 0, fsp->page0);
    AND_THEN(err, chk_inodes(fsp));
    for (page_no_t page_no = 0;
         err == DB_SUCCESS && page_no < fsp->n_extents * fsp->chk->extent_pages;
         page_no += fsp->covers) {
        err = chk_xdes_page(fsp, page_no);
    }
    if (err != DB_SUCCESS || !fsp->whole || !fsp->file->segs_whole) {
        /* The lists cannot be followed, and single pages may be of any segment. */
        for (page_no_t page_no = 0; page_no < fsp->file->size_pages; page_no++) {
            uint32_t *owner = &fsp->file->owner[page_no];
            *owner = *owner == CHK_OWNER_NONE ? CHK_OWNER_UNKNOWN : *owner;
        }
        return err;
    }
    chk_space_lists(fsp);
    TRY(chk_segs(fsp));
    chk_extents_listed(fsp);
    return DB_SUCCESS;
}

dberr_t chk_fsp(chk_t *chk, chk_file_t *file)
{
    chk_fsp_t fsp = {.chk = chk, .file = file, .whole = true};
    uint32_t extent = chk->extent_pages;
    fsp.covers = chk_xdes_covers(chk);
    fsp.xdes_size = CHK_XDES_BITMAP + extent / 8;
    /* A file that is too short has been reported: only what is there is looked at. */
    uint32_t in_file = (file->size_pages + extent - 1) / extent;
    fsp.n_extents = file->free_limit / extent < in_file ? file->free_limit / extent : in_file;
    fsp.page0 = malloc(chk->page_size);
    fsp.extents = calloc((size_t)fsp.n_extents + 1, sizeof(*fsp.extents));
    dberr_t err = DB_SUCCESS;
    if (fsp.page0 == NULL || fsp.extents == NULL) {
        err = err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory for the extents of %s",
                      file->path);
    } else {
        err = chk_fsp_parts(&fsp);
    }
    free(fsp.page0);
    free(fsp.extents);
    return err;
}
