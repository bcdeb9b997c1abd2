/** Segments: inode pages, their lists of extents, fragment pages.

Place: check/, beside check_fsp.c.

Checked (I11): inode pages are on the list that their free slots say, linked both ways; ids are
given out and unique; a free slot is zero; lists as in check_fsp.c; used pages of NOT_FULL are
counted right; a fragment slot names a page of a shared extent that nothing else uses. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "check/check_fsp.h"

static uint32_t chk_inode_size(const chk_t *chk)
{
    return CHK_INODE_FRAGS + 2 * chk->extent_pages;
}

static uint32_t chk_inodes_per_page(const chk_t *chk)
{
    return (chk->page_size - FIL_PAGE_TRAILER - CHK_INODES) / chk_inode_size(chk);
}

/** Adds the inode at an offset of chk->page. */
static dberr_t chk_inode_add(const chk_fsp_t *fsp, page_no_t page_no, uint32_t offset)
{
    chk_file_t *file = fsp->file;
    const byte *inode = fsp->chk->page + offset;
    if (file->n_segs % 64 == 0) {
        chk_seg_t *segs = realloc(file->segs, (file->n_segs + 64) * sizeof(*segs));
        if (segs == NULL) {
            return err_set(&fsp->chk->env->err, DB_OUT_OF_MEMORY,
                           "no memory for the segments of %s", file->path);
        }
        file->segs = segs;
    }
    file->segs[file->n_segs++] = (chk_seg_t){
        .id = mach_read_8(inode),
        .page_no = page_no,
        .offset = offset,
        .not_full_n_used = mach_read_4(inode + CHK_INODE_NOT_FULL_N_USED),
        .lists = {chk_list_read(inode + CHK_INODE_FREE), chk_list_read(inode + CHK_INODE_NOT_FULL),
                  chk_list_read(inode + CHK_INODE_FULL)}};
    return DB_SUCCESS;
}

/** The inodes of the page in chk->page. */
static dberr_t chk_inode_page(chk_fsp_t *fsp, page_no_t page_no, bool full)
{
    chk_t *chk = fsp->chk;
    uint32_t size = chk_inode_size(chk);
    uint32_t n = chk_inodes_per_page(chk);
    uint32_t n_used = 0;
    for (uint32_t i = 0; i < n; i++) {
        const byte *inode = chk->page + CHK_INODES + i * size;
        uint64_t id = mach_read_8(inode);
        if (id == 0) {
            if (!chk_is_zero(inode, size)) {
                chk_find(chk, 6, fsp->file, page_no, "a free inode is not zero");
            }
            continue;
        }
        n_used++;
        if (mach_read_4(inode + CHK_INODE_MAGIC) != CHK_INODE_MAGIC_VALUE
            || id >= mach_read_8(fsp->page0 + CHK_FSP_SEG_ID)) {
            chk_fsp_find(fsp, page_no,
                         "inode of segment %" PRIu64 ": no magic, or id not given out", id);
            fsp->file->segs_whole = false;
            return DB_SUCCESS;
        }
        TRY(chk_inode_add(fsp, page_no, CHK_INODES + i * size));
    }
    if (n_used == 0 || full != (n_used == n)) {
        chk_fsp_find(fsp, page_no, "inode page with %" PRIu32 " inodes on the list of %s ones",
                     n_used, full ? "full" : "other");
    }
    return DB_SUCCESS;
}

/** Walks one of the two lists. A damaged page ends it, and is reported by the scan of the pages. */
static dberr_t chk_inode_list(chk_fsp_t *fsp, const chk_list_t *list, bool full)
{
    chk_t *chk = fsp->chk;
    chk_file_t *file = fsp->file;
    chk_addr_t at = list->first;
    page_no_t prev = FIL_NULL;
    uint32_t n = 0;
    for (; at.page_no != FIL_NULL && file->segs_whole; n++) {
        page_id_t id = {file->space, at.page_no};
        if (at.page_no >= file->size_pages || at.offset != CHK_INODE_NODE
            || file->owner[at.page_no] == CHK_OWNER_INODES) {
            chk_fsp_find(fsp, at.page_no, "list of inode pages: no page, or one twice");
            file->segs_whole = false;
            return DB_SUCCESS;
        }
        TRY(chk_page_read(chk, file, at.page_no, chk->page));
        file->owner[at.page_no] = CHK_OWNER_INODES;
        if (fil_page_verify(chk->page, chk->page_size, id) != PAGE_OK
            || fil_page_get_type(chk->page) != FIL_PAGE_INODE) {
            file->segs_whole = false;
            return DB_SUCCESS;
        }
        if (mach_read_4(chk->page + CHK_INODE_NODE) != prev
            || mach_read_2(chk->page + CHK_INODE_NODE + 4) != (n == 0 ? 0 : CHK_INODE_NODE)) {
            chk_fsp_find(fsp, at.page_no, "list of inode pages: wrong link back");
        }
        prev = at.page_no;
        TRY(chk_inode_page(fsp, at.page_no, full));
        at = chk_addr_read(chk->page + CHK_INODE_NODE + 6);
    }
    if (file->segs_whole
        && (n != list->len || prev != list->last.page_no || at.offset != 0
            || list->last.offset != (n == 0 ? 0 : CHK_INODE_NODE))) {
        chk_fsp_find(fsp, 0,
                     "list of inode pages: %" PRIu32 " pages, but its base says %" PRIu32
                     ", or has another end",
                     n, list->len);
    }
    return DB_SUCCESS;
}

static int chk_seg_cmp(const void *a, const void *b)
{
    const chk_seg_t *x = a;
    const chk_seg_t *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

dberr_t chk_inodes(chk_fsp_t *fsp)
{
    chk_file_t *file = fsp->file;
    chk_list_t full = chk_list_read(fsp->page0 + CHK_FSP_INODES_FULL);
    chk_list_t other = chk_list_read(fsp->page0 + CHK_FSP_INODES_FREE);
    file->segs_whole = true;
    dberr_t err = chk_inode_list(fsp, &full, true);
    AND_THEN(err, chk_inode_list(fsp, &other, false));
    if (file->n_segs > 1) {
        qsort(file->segs, file->n_segs, sizeof(*file->segs), chk_seg_cmp);
    }
    for (uint32_t i = 1; i < file->n_segs; i++) {
        if (file->segs[i].id == file->segs[i - 1].id) {
            chk_fsp_find(fsp, file->segs[i].page_no, "two inodes of segment %" PRIu64,
                         file->segs[i].id);
            file->segs_whole = false;
        }
    }
    return err;
}

uint32_t chk_seg_by_id(const chk_file_t *file, uint64_t id)
{
    const chk_seg_t key = {.id = id};
    const chk_seg_t *seg =
        file->n_segs > 0 ? bsearch(&key, file->segs, file->n_segs, sizeof(key), chk_seg_cmp) : NULL;
    return seg != NULL ? CHK_OWNER_SEG + (uint32_t)(seg - file->segs) : CHK_OWNER_UNKNOWN;
}

uint32_t chk_seg_claim(chk_file_t *file, const byte *header, bool *valid)
{
    *valid = !file->segs_whole;
    if (mach_read_4(header) != file->space) {
        return CHK_OWNER_UNKNOWN;
    }
    for (uint32_t i = 0; i < file->n_segs; i++) {
        chk_seg_t *seg = &file->segs[i];
        if (seg->page_no == mach_read_4(header + CHK_SEG_HEADER_PAGE)
            && seg->offset == mach_read_2(header + CHK_SEG_HEADER_OFFSET)) {
            *valid = !seg->claimed;
            seg->claimed = true;
            return CHK_OWNER_SEG + i;
        }
    }
    return CHK_OWNER_UNKNOWN;
}

/** Enters the fragment pages of a segment whose inode page is in chk->page. */
static void chk_seg_frags(const chk_fsp_t *fsp, uint32_t no)
{
    chk_file_t *file = fsp->file;
    const chk_seg_t *seg = &file->segs[no];
    const byte *slots = fsp->chk->page + seg->offset + CHK_INODE_FRAGS;
    for (uint32_t i = 0; i < fsp->chk->extent_pages / 2; i++) {
        page_no_t page_no = mach_read_4(slots + 4 * (size_t)i);
        if (page_no == FIL_NULL) {
            continue;
        }
        if (page_no >= file->size_pages || file->owner[page_no] != CHK_OWNER_NONE) {
            chk_fsp_find(fsp, page_no,
                         "fragment page of segment %" PRIu64 ", but free or used by another",
                         seg->id);
        } else {
            file->owner[page_no] = CHK_OWNER_SEG + no;
        }
    }
}

dberr_t chk_segs(chk_fsp_t *fsp)
{
    chk_file_t *file = fsp->file;
    uint32_t all = fsp->chk->extent_pages;
    for (uint32_t no = 0; no < file->n_segs; no++) {
        const chk_seg_t *seg = &file->segs[no];
        const chk_rule_t rules[3] = {
            {"FREE of a segment", CHK_XDES_FSEG, seg->id, 0, 0},
            {"NOT_FULL of a segment", CHK_XDES_FSEG, seg->id, 1, all - 1},
            {"FULL of a segment", CHK_XDES_FSEG, seg->id, all, all},
        };
        uint64_t n_used[3];
        for (uint32_t i = 0; i < 3; i++) {
            chk_extent_list(fsp, &seg->lists[i], &rules[i], &n_used[i]);
        }
        if (n_used[1] != seg->not_full_n_used) {
            chk_fsp_find(fsp, seg->page_no,
                         "segment %" PRIu64 ": %" PRIu64
                         " used pages in list NOT_FULL, the inode counts "
                         "%" PRIu32,
                         seg->id, n_used[1], seg->not_full_n_used);
        }
        TRY(chk_page_read(fsp->chk, file, seg->page_no, fsp->chk->page));
        chk_seg_frags(fsp, no);
    }
    return DB_SUCCESS;
}
