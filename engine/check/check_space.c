/** Files: page 0, the allocation map, and every allocated page by itself.

Place: check/; the trees and chains of check_tree.c and check_undo.c mark what they reach, and what
is left over is reported here.

Checked: I4 page LSN against the end of the log; I5 envelope; I6 header fields and shape of index
pages, type against owner; I11 used pages, sizes, reachable = allocated; I12 page 0's space ids.

Files are read one after the other, so one of them is open at a time.
Memory: two bits per page that both the header and the file vouch for, and one map page per file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mach.h"
#include "check/check_int.h"
#include "page/page_index.h"

static bool chk_bit(const byte *bits, uint32_t i)
{
    return (bits[i / 8] >> (i % 8) & 1) != 0;
}

static void chk_bit_set(byte *bits, uint32_t i)
{
    bits[i / 8] = (byte)(bits[i / 8] | 1U << (i % 8));
}

#define OWNER_UNKNOWN UINT32_MAX /* index ids are smaller */

static uint32_t chk_map_pages(const chk_t *chk)
{
    return chk->page_size / 8;
}

static void chk_file_close(chk_t *chk)
{
    if (chk->open_file != NULL) {
        env_close(chk->env, chk->open_file->file);
        chk->open_file->file = NULL;
        chk->open_file = NULL;
    }
}

/** Opens the file unless it is the one that is open. */
static dberr_t chk_file_use(chk_t *chk, chk_file_t *file)
{
    if (file->file != NULL) {
        return DB_SUCCESS;
    }
    chk_file_close(chk);
    dberr_t err = env_open(chk->env, file->path, OS_OPEN, &file->file);
    if (err == DB_SUCCESS) {
        chk->open_file = file;
    }
    return err;
}

dberr_t chk_page_read(chk_t *chk, chk_file_t *file, page_no_t page_no, byte *page)
{
    size_t n_read = 0;
    dberr_t err = chk_file_use(chk, file);
    if (err == DB_SUCCESS) {
        err = env_read(chk->env, file->file, (uint64_t)page_no * chk->page_size, page,
                       chk->page_size, &n_read);
    }
    if (err == DB_SUCCESS) {
        memset(page + n_read, 0, chk->page_size - n_read);
    }
    return err;
}

chk_file_t *chk_file_of_space(chk_t *chk, space_id_t space)
{
    for (chk_file_t *file = chk->files; file != NULL; file = file->next) {
        if (file->usable && file->space == space) {
            return file;
        }
    }
    return NULL;
}

/* ---- opening ---- */

/** Page 0 decides whether the rest of the file can be looked at. */
static dberr_t chk_file_header(chk_t *chk, chk_file_t *file)
{
    dberr_t err = chk_page_read(chk, file, 0, chk->page);
    if (err != DB_SUCCESS) {
        return err;
    }
    const byte *page = chk->page;
    page_id_t id = {fil_page_get_id(page).space, 0};
    page_verdict_t verdict = fil_page_verify(page, chk->page_size, id);
    if (verdict != PAGE_OK) {
        chk_find(chk, 5, file, 0, "page 0: %s", page_verdict_name(verdict));
        return DB_SUCCESS;
    }
    bool system = strcmp(file->path, CHK_SYSTEM_PATH) == 0;
    if (mach_read_4(page + CHK_FSP_SPACE_ID) != id.space || (id.space == SPACE_SYSTEM) != system) {
        chk_find(chk, 12, file, 0, "page 0 carries space id %" PRIu32 ", its header says %" PRIu32,
                 id.space, mach_read_4(page + CHK_FSP_SPACE_ID));
        return DB_SUCCESS;
    }
    file->space = id.space;
    if (fil_page_get_type(page) != FIL_PAGE_TYPE_FSP_HDR
        || mach_read_4(page + CHK_FSP_PAGE_SIZE) != chk->page_size
        || mach_read_4(page + CHK_FSP_VERSION) != CHK_FSP_FORMAT_VERSION
        || !chk_is_zero(page + CHK_FSP_RESERVED, CHK_FSP_HEADER_END - CHK_FSP_RESERVED)) {
        chk_find(chk, 6, file, 0, "page 0: type, page size, version or reserved bytes are wrong");
        return DB_SUCCESS;
    }
    file->fsp_size = mach_read_4(page + CHK_FSP_SIZE);
    file->n_used = mach_read_4(page + CHK_FSP_N_USED);
    file->usable = file->fsp_size > 0 && file->fsp_size <= CHK_PAGES_MAX;
    if (!file->usable) {
        chk_find(chk, 11, file, 0, "impossible size of %" PRIu32 " pages", file->fsp_size);
    }
    return DB_SUCCESS;
}

static dberr_t chk_file_bitmaps(chk_t *chk, chk_file_t *file)
{
    uint64_t size_bytes = 0;
    dberr_t err = chk_file_use(chk, file);
    if (err == DB_SUCCESS) {
        err = env_size(chk->env, file->file, &size_bytes);
    }
    if (err != DB_SUCCESS) {
        return err;
    }
    uint64_t in_file = size_bytes / chk->page_size;
    file->size_pages = in_file < file->fsp_size ? (uint32_t)in_file : file->fsp_size;
    if (file->size_pages < file->fsp_size) {
        chk_find(chk, 11, file, FIL_NULL,
                 "the file has %" PRIu64 " bytes, too few for its %" PRIu32 " pages", size_bytes,
                 file->fsp_size);
    }
    file->map_no = FIL_NULL;
    file->map_page = malloc(chk->page_size);
    file->reached = calloc(file->size_pages / 8 + 1, 1);
    file->bad = calloc(file->size_pages / 8 + 1, 1);
    return file->map_page != NULL && file->reached != NULL && file->bad != NULL
               ? DB_SUCCESS
               : err_set(&chk->env->err, DB_OUT_OF_MEMORY, "no memory to scan %s", file->path);
}

static dberr_t chk_file_open(chk_t *chk, const char *path)
{
    chk_file_t *file = calloc(1, sizeof *file);
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
    return err;
}

static dberr_t chk_list_entry(void *ctx, const char *name)
{
    chk_t *chk = ctx;
    size_t len = strlen(name);
    size_t suffix_len = sizeof CHK_IBD_SUFFIX - 1;
    if (strncmp(name, CHK_TMP_PREFIX, sizeof CHK_TMP_PREFIX - 1) == 0
        || strcmp(name, CHK_LOG_TMP_PATH) == 0) {
        chk_file_t left = {.next = NULL};
        memcpy(left.path, name, len < PATH_LEN_MAX ? len : PATH_LEN_MAX);
        chk_find(chk, 12, &left, FIL_NULL, "leftover of an interrupted operation");
        return DB_SUCCESS;
    }
    if (len <= suffix_len || len > PATH_LEN_MAX || name[0] == '.'
        || strcmp(name + len - suffix_len, CHK_IBD_SUFFIX) != 0) {
        return DB_SUCCESS;
    }
    return chk_file_open(chk, name);
}

dberr_t chk_files_open(chk_t *chk)
{
    dberr_t err = chk_file_open(chk, CHK_SYSTEM_PATH);
    return err == DB_SUCCESS ? env_list(chk->env, chk_list_entry, chk) : err;
}

void chk_files_close(chk_t *chk)
{
    chk_file_close(chk);
    while (chk->files != NULL) {
        chk_file_t *next = chk->files->next;
        free(chk->files->map_page);
        free(chk->files->reached);
        free(chk->files->bad);
        free(chk->files);
        chk->files = next;
    }
}

/* ---- the map ---- */

static uint32_t chk_map_entry(const chk_t *chk, const byte *map, page_no_t page_no)
{
    return mach_read_4(map + CHK_FSP_MAP + (size_t)(page_no % chk_map_pages(chk)) * 4);
}

/** Owner of a page below size_pages; OWNER_UNKNOWN under a damaged map page, which the scan
reports. */
static dberr_t chk_owner(chk_t *chk, chk_file_t *file, page_no_t page_no, uint32_t *owner)
{
    page_no_t map_no = page_no - page_no % chk_map_pages(chk);
    if (map_no != file->map_no) {
        file->map_no = FIL_NULL;
        dberr_t err = chk_page_read(chk, file, map_no, file->map_page);
        if (err != DB_SUCCESS) {
            return err;
        }
        page_id_t id = {file->space, map_no};
        if (fil_page_verify(file->map_page, chk->page_size, id) != PAGE_OK) {
            memset(file->map_page, 0xFF, chk->page_size);
        }
        file->map_no = map_no;
    }
    *owner = chk_map_entry(chk, file->map_page, page_no);
    return DB_SUCCESS;
}

dberr_t chk_reach(chk_t *chk, chk_file_t *file, page_no_t page_no, uint32_t owner, uint32_t twice,
                  bool *ok)
{
    *ok = false;
    if (page_no >= file->size_pages) {
        chk_find(chk, 11, file, page_no, "reachable for owner %" PRIu32 ", but beyond the space",
                 owner);
        return DB_SUCCESS;
    }
    uint32_t is = 0;
    dberr_t err = chk_owner(chk, file, page_no, &is);
    if (err != DB_SUCCESS) {
        return err;
    }
    if (is == CHK_OWNER_FREE) {
        chk_find(chk, 11, file, page_no, "reachable for owner %" PRIu32 ", but free", owner);
        return DB_SUCCESS;
    }
    if (is != owner && is != OWNER_UNKNOWN) {
        chk_find(chk, 11, file, page_no,
                 "reachable for owner %" PRIu32 ", but it belongs to %" PRIu32, owner, is);
        return DB_SUCCESS;
    }
    if (chk_bit(file->reached, page_no)) {
        chk_find(chk, twice, file, page_no, "reached twice for owner %" PRIu32, owner);
        return DB_SUCCESS;
    }
    chk_bit_set(file->reached, page_no);
    *ok = is != OWNER_UNKNOWN && !chk_bit(file->bad, page_no);
    return DB_SUCCESS;
}

void chk_broken(chk_file_t *file, uint32_t owner)
{
    for (uint32_t i = 0; i < file->n_broken; i++) {
        if (file->broken[i] == owner) {
            return;
        }
    }
    if (file->n_broken < CHK_BROKEN_MAX) {
        file->broken[file->n_broken++] = owner;
    }
}

static bool chk_is_broken(const chk_file_t *file, uint32_t owner)
{
    for (uint32_t i = 0; i < file->n_broken; i++) {
        if (file->broken[i] == owner) {
            return true;
        }
    }
    return file->n_broken == CHK_BROKEN_MAX; /* who else is, is no longer known */
}

dberr_t chk_file_unreached(chk_t *chk, chk_file_t *file)
{
    uint64_t n = 0;
    page_no_t first = FIL_NULL;
    uint32_t first_owner = 0;
    for (page_no_t page_no = 0; page_no < file->size_pages; page_no++) {
        uint32_t owner = 0;
        dberr_t err = chk_owner(chk, file, page_no, &owner);
        if (err != DB_SUCCESS) {
            return err;
        }
        if (owner == CHK_OWNER_FREE || owner == OWNER_UNKNOWN || chk_bit(file->reached, page_no)
            || chk_is_broken(file, owner)) {
            continue;
        }
        if (n++ == 0) {
            first = page_no;
            first_owner = owner;
        }
    }
    if (n > 0) {
        chk_find(chk, 11, file, first,
                 "%" PRIu64 " allocated pages are reachable from nowhere; the first belongs to "
                 "owner %" PRIu32,
                 n, first_owner);
    }
    return DB_SUCCESS;
}

/* ---- every page by itself ---- */

static bool chk_type_fits(const chk_file_t *file, page_no_t page_no, uint32_t owner, uint32_t type,
                          bool is_map)
{
    if (is_map) {
        return type == (page_no == 0 ? FIL_PAGE_TYPE_FSP_HDR : FIL_PAGE_TYPE_XDES);
    }
    switch (owner) {
    case CHK_OWNER_MAP:
        return file->space == SPACE_SYSTEM
               && type == (page_no == CHK_TRX_SYS_PAGE ? FIL_PAGE_TYPE_TRX_SYS : FIL_PAGE_TYPE_SYS);
    case CHK_OWNER_UNDO:
        return file->space == SPACE_SYSTEM && type == FIL_PAGE_UNDO_LOG;
    default:
        return owner >= CHK_INDEX_ID_FIRST && type == FIL_PAGE_INDEX;
    }
}

/** One allocated page: chk->page holds it. */
static void chk_page_check(chk_t *chk, chk_file_t *file, page_no_t page_no, uint32_t owner)
{
    const byte *page = chk->page;
    page_id_t id = {file->space, page_no};
    chk->report->pages_checked++;
    page_verdict_t verdict = fil_page_verify(page, chk->page_size, id);
    if (verdict != PAGE_OK) {
        chk_find(chk, 5, file, page_no, "%s", page_verdict_name(verdict));
        chk_bit_set(file->bad, page_no);
        return;
    }
    if (fil_page_get_lsn(page) > chk->end_lsn) {
        chk_find(chk, 4, file, page_no, "LSN %" PRIu64 " is beyond the end of the log, %" PRIu64,
                 fil_page_get_lsn(page), chk->end_lsn);
    }
    uint32_t type = fil_page_get_type(page);
    bool is_map = page_no % chk_map_pages(chk) == 0;
    if (!chk_type_fits(file, page_no, owner, type, is_map)) {
        chk_find(chk, 6, file, page_no, "a page of type %s belongs to owner %" PRIu32,
                 page_type_name(type), owner);
        chk_bit_set(file->bad, page_no);
        return;
    }
    const char *why = "";
    if (type == FIL_PAGE_INDEX && page_index_validate(page, chk->page_size, &why) != DB_SUCCESS) {
        chk_find(chk, 6, file, page_no, "index page: %s", why);
        chk_bit_set(file->bad, page_no);
    }
}

/** A map page must be there for its range, whatever the map says of it. */
static dberr_t chk_map_page(chk_t *chk, chk_file_t *file, page_no_t map_no, uint64_t *n_used)
{
    dberr_t err = chk_page_read(chk, file, map_no, chk->page);
    if (err != DB_SUCCESS) {
        return err;
    }
    chk_page_check(chk, file, map_no, CHK_OWNER_MAP);
    chk_bit_set(file->reached, map_no);
    if (chk_bit(file->bad, map_no)) {
        return DB_SUCCESS;
    }
    const byte *map = chk->page;
    if (chk_map_entry(chk, map, map_no) != CHK_OWNER_MAP) {
        chk_find(chk, 11, file, map_no, "the map does not own itself");
    }
    if (map_no != 0
        && !chk_is_zero(map + CHK_FSP_SPACE_ID, CHK_FSP_HEADER_END - CHK_FSP_SPACE_ID)) {
        chk_find(chk, 6, file, map_no, "reserved bytes of a map page are not zero");
    }
    for (page_no_t i = 0; i < chk_map_pages(chk); i++) {
        uint32_t owner = chk_map_entry(chk, map, map_no + i);
        *n_used += owner != CHK_OWNER_FREE;
        if (owner != CHK_OWNER_FREE && map_no + i >= file->fsp_size) {
            chk_find(chk, 11, file, map_no + i, "allocated to owner %" PRIu32 " beyond the space",
                     owner);
            break;
        }
    }
    return DB_SUCCESS;
}

dberr_t chk_file_scan(chk_t *chk, chk_file_t *file)
{
    uint64_t n_used = 0;
    bool maps_whole = true;
    for (page_no_t page_no = 0; page_no < file->size_pages; page_no++) {
        uint32_t owner = 0;
        dberr_t err = DB_SUCCESS;
        if (page_no % chk_map_pages(chk) == 0) {
            err = chk_map_page(chk, file, page_no, &n_used);
            maps_whole &= !chk_bit(file->bad, page_no);
        } else {
            err = chk_owner(chk, file, page_no, &owner);
            if (err == DB_SUCCESS && owner != CHK_OWNER_FREE && owner != OWNER_UNKNOWN) {
                err = chk_page_read(chk, file, page_no, chk->page);
                if (err == DB_SUCCESS) {
                    chk_page_check(chk, file, page_no, owner);
                }
            }
        }
        if (err != DB_SUCCESS) {
            return err;
        }
    }
    if (maps_whole && file->size_pages == file->fsp_size && n_used != file->n_used) {
        chk_find(chk, 11, file, 0,
                 "page 0 counts %" PRIu32 " allocated pages, the map has %" PRIu64, file->n_used,
                 n_used);
    }
    return DB_SUCCESS;
}
