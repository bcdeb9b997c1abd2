/** Files: page 0, and every used page by itself.

Place: check/; check_fsp.c tells who uses which page; the trees and chains of check_tree.c and
check_undo.c mark what they reach (check_reach.c).

Checked: I4 page LSN against the end of the log; I5 envelope; I29 compressed pages decompress; I6
header fields and shape of index pages, type against owner; I11 sizes; I12 page 0's space ids.

Memory: a few bytes per page that both the header and the file vouch for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "check/check_fsp.h"
#include "check/check_memo.h"
#include "page/page_compress.h"
#include "page/page_index.h"

/* ---- opening ---- */

/** The space id that a file of this name has; false: the name is a table's. */
static bool chk_path_space(const char *path, space_id_t *space)
{
    bool known = strcmp(path, CHK_SYSTEM_PATH) == 0;
    *space = SPACE_SYSTEM;
    char undo[PATH_LEN_MAX];
    for (uint32_t i = 1; !known && i <= UNDO_SPACES_MAX; i++) {
        (void)snprintf(undo, sizeof(undo), CHK_UNDO_PATH, i);
        known = strcmp(path, undo) == 0;
        *space = space_of_undo(i);
    }
    return known;
}

static bool chk_path_fits(const char *path, space_id_t space)
{
    space_id_t wanted = SPACE_SYSTEM;
    return chk_path_space(path, &wanted) ? space == wanted
                                         : space != SPACE_SYSTEM && !space_is_undo(space);
}

/** Page 0 decides whether the rest of the file can be looked at. */
static dberr_t chk_file_header(chk_t *chk, chk_file_t *file)
{
    TRY(chk_page_read(chk, file, 0, chk->page));
    const byte *page = chk->page;
    page_id_t id = {fil_page_get_id(page).space, 0};
    page_verdict_t verdict = fil_page_verify(page, chk->page_size, id);
    if (verdict != PAGE_OK) {
        chk_find(chk, 5, file, 0, "page 0: %s", page_verdict_name(verdict));
        return DB_SUCCESS;
    }
    if (mach_read_4(page + CHK_FSP_SPACE_ID) != id.space) {
        chk_find(chk, 12, file, 0, "page 0 carries space id %" PRIu32 ", its header says %" PRIu32,
                 id.space, mach_read_4(page + CHK_FSP_SPACE_ID));
        return DB_SUCCESS;
    }
    if (!chk_path_fits(file->path, id.space)) {
        chk_find(chk, 12, file, 0, "space id %" PRIu32 " is not one of a file of this name",
                 id.space);
        return DB_SUCCESS;
    }
    file->space = id.space;
    if (fil_page_get_type(page) != FIL_PAGE_TYPE_FSP_HDR
        || mach_read_4(page + CHK_FSP_PAGE_SIZE) != chk->page_size
        || mach_read_4(page + CHK_FSP_EXTENT_PAGES) != chk->extent_pages
        || mach_read_4(page + CHK_FSP_VERSION) != CHK_FSP_FORMAT_VERSION) {
        chk_find(chk, 6, file, 0, "page 0: type, page size, extent size or version are wrong");
        return DB_SUCCESS;
    }
    file->fsp_size = mach_read_4(page + CHK_FSP_SIZE);
    file->free_limit = mach_read_4(page + CHK_FSP_FREE_LIMIT);
    file->usable = file->fsp_size > 0 && file->fsp_size <= CHK_PAGES_MAX && file->free_limit > 0
                   && file->free_limit % chk->extent_pages == 0
                   && (file->free_limit <= file->fsp_size || file->free_limit == chk->extent_pages);
    if (!file->usable) {
        chk_find(chk, 11, file, 0, "impossible size of %" PRIu32 " pages, or free limit %" PRIu32,
                 file->fsp_size, file->free_limit);
    }
    return DB_SUCCESS;
}

static dberr_t chk_file_bitmaps(chk_t *chk, chk_file_t *file)
{
    TRY(chk_file_use(chk, file));
    uint64_t size_bytes = 0;
    TRY(env_size(chk->env, file->file, &size_bytes));
    uint64_t in_file = size_bytes / chk->page_size;
    file->size_pages = in_file < file->fsp_size ? (uint32_t)in_file : file->fsp_size;
    if (file->size_pages < file->fsp_size) {
        chk_find(chk, 11, file, FIL_NULL,
                 "the file has %" PRIu64 " bytes, too few for its %" PRIu32 " pages", size_bytes,
                 file->fsp_size);
    }
    file->owner = malloc((file->size_pages + 1) * sizeof(*file->owner));
    file->reached = calloc(file->size_pages / 8 + 1, 1);
    file->bad = calloc(file->size_pages / 8 + 1, 1);
    if (file->owner == NULL || file->reached == NULL || file->bad == NULL) {
        return err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory to scan %s", file->path);
    }
    for (page_no_t page_no = 0; page_no < file->size_pages; page_no++) {
        file->owner[page_no] = page_no < file->free_limit ? CHK_OWNER_UNKNOWN : CHK_OWNER_FREE;
    }
    return DB_SUCCESS;
}

static dberr_t chk_file_open(chk_t *chk, const char *path)
{
    chk_file_t *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        return err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory to open %s", path);
    }
    memcpy(file->path, path, strlen(path) + 1);
    chk_file_t **link = &chk->files;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = file;
    dberr_t err = chk_file_header(chk, file);
    if (err != DB_SUCCESS || !file->usable) {
        return err;
    }
    file->usable = false;
    const chk_file_t *other = chk_file_of_space(chk, file->space);
    if (other != NULL) {
        chk_find(chk, 12, file, 0, "%s has the same space id %" PRIu32, other->path, file->space);
        return DB_SUCCESS;
    }
    err = chk_file_bitmaps(chk, file);
    file->usable = err == DB_SUCCESS;
    if (file->usable) {
        chk_memo_file(chk, file);
    }
    return err;
}

static dberr_t chk_list_entry(void *ctx, const char *name)
{
    chk_t *chk = ctx;
    size_t len = strlen(name);
    size_t suffix_len = sizeof(CHK_IBD_SUFFIX) - 1;
    if (strncmp(name, CHK_TMP_PREFIX, sizeof(CHK_TMP_PREFIX) - 1) == 0
        || strcmp(name, CHK_LOG_TMP_PATH) == 0) {
        chk_file_t left = {.next = NULL};
        memcpy(left.path, name, len < PATH_LEN_MAX ? len : PATH_LEN_MAX);
        chk_find(chk, 12, &left, FIL_NULL, "leftover of an interrupted operation");
        return DB_SUCCESS;
    }
    bool table = len > suffix_len && len <= PATH_LEN_MAX && name[0] != '.'
                 && strcmp(name + len - suffix_len, CHK_IBD_SUFFIX) == 0;
    space_id_t space = SPACE_SYSTEM;
    bool undo = chk_path_space(name, &space) && space != SPACE_SYSTEM;
    return table || undo ? chk_file_open(chk, name) : DB_SUCCESS;
}

dberr_t chk_files_open(chk_t *chk)
{
    TRY(chk_file_open(chk, CHK_SYSTEM_PATH));
    return env_list(chk->env, chk_list_entry, chk);
}

/* ---- every page by itself ---- */

static bool chk_type_fits(const chk_t *chk, const chk_file_t *file, page_no_t page_no,
                          uint32_t type)
{
    if (page_no % chk_xdes_covers(chk) == 0) {
        return type == (page_no == 0 ? FIL_PAGE_TYPE_FSP_HDR : FIL_PAGE_TYPE_XDES);
    }
    switch (file->owner[page_no]) {
    case CHK_OWNER_FIXED:
        return type == (page_no == CHK_TRX_SYS_PAGE ? FIL_PAGE_TYPE_TRX_SYS : FIL_PAGE_TYPE_SYS);
    case CHK_OWNER_INODES:
        return type == FIL_PAGE_INODE;
    case CHK_OWNER_NONE:
        return true; /* reported as reachable from nowhere */
    default:
        return type == FIL_PAGE_INDEX
               || (type == FIL_PAGE_UNDO_LOG
                   && (file->space == SPACE_SYSTEM || space_is_undo(file->space)))
               || (type == FIL_PAGE_TYPE_BLOB && !space_is_undo(file->space));
    }
}

/** What the page's content leaves open. False: reported, and it must not be read on. */
static bool chk_page_fits(chk_t *chk, chk_file_t *file, page_no_t page_no, uint32_t type, lsn_t lsn)
{
    if (lsn > chk->end_lsn) {
        chk_find(chk, 4, file, page_no, "LSN %" PRIu64 " is beyond the end of the log, %" PRIu64,
                 lsn, chk->end_lsn);
    }
    if (!chk_type_fits(chk, file, page_no, type)) {
        chk_find(chk, 6, file, page_no, "a page of type %s in this place", page_type_name(type));
        chk_bit_set(file->bad, page_no);
        return false;
    }
    return true;
}

/** One used page: chk->page holds it. */
static void chk_page_check(chk_t *chk, chk_file_t *file, page_no_t page_no)
{
    const byte *page = chk->page;
    page_id_t id = {file->space, page_no};
    page_verdict_t verdict = page_verify_stored(page, chk->page_size, id);
    if (verdict != PAGE_OK) {
        chk_find(chk, verdict == PAGE_BAD_COMPRESSION ? 29 : 5, file, page_no, "%s",
                 page_verdict_name(verdict));
        chk_bit_set(file->bad, page_no);
        return;
    }
    uint32_t type = fil_page_get_type(page);
    if (!chk_page_fits(chk, file, page_no, type, fil_page_get_lsn(page))) {
        return;
    }
    const char *why = "";
    if (type == FIL_PAGE_INDEX && page_index_validate(page, chk->page_size, &why) != DB_SUCCESS) {
        chk_find(chk, 6, file, page_no, "index page: %s", why);
        chk_bit_set(file->bad, page_no);
        return;
    }
    chk_memo_learn(chk, file, page_no);
}

static dberr_t chk_page_scan(chk_t *chk, chk_file_t *file, page_no_t page_no)
{
    chk->report->pages_checked++;
    if (chk_memo_find(chk, file, page_no)) {
        const chk_fact_t *fact = chk_fact_of(file, page_no);
        (void)chk_page_fits(chk, file, page_no, fact->type, fact->lsn);
        return DB_SUCCESS;
    }
    TRY(chk_page_read(chk, file, page_no, chk->page));
    chk_page_check(chk, file, page_no);
    return DB_SUCCESS;
}

dberr_t chk_file_scan(chk_t *chk, chk_file_t *file)
{
    dberr_t err = chk_fsp(chk, file);
    for (page_no_t page_no = 0; err == DB_SUCCESS && page_no < file->size_pages; page_no++) {
        uint32_t owner = file->owner[page_no];
        bool is_xdes = page_no % chk_xdes_covers(chk) == 0 && page_no < file->free_limit;
        if (owner == CHK_OWNER_FREE || (owner == CHK_OWNER_UNKNOWN && !is_xdes)) {
            continue;
        }
        err = chk_page_scan(chk, file, page_no);
        if (is_xdes) {
            chk_bit_set(file->reached, page_no);
        }
    }
    return err;
}
