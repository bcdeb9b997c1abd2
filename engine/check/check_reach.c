/** Which page is reached from where.

Place: check/, above check_file.c. check_fsp.c tells who uses which page; the trees and chains of
check_tree.c, check_undo.c and check_blob.c mark what they reach; what is left over is reported
here.

Checked: I11 reachable = used. */
#include <inttypes.h>
#include <stdio.h>

#include "check/check_fsp.h"

/** In words, for messages. */
static const char *chk_owner_name(const chk_file_t *file, uint32_t owner, char text[40])
{
    switch (owner) {
    case CHK_OWNER_FREE:
        return "free";
    case CHK_OWNER_FIXED:
        return "a fixed page";
    case CHK_OWNER_INODES:
        return "an inode page";
    case CHK_OWNER_NONE:
        return "of no segment";
    case CHK_OWNER_UNKNOWN:
        return "of an unknown segment";
    default:
        snprintf(text, 40, "of segment %" PRIu64, file->segs[owner - CHK_OWNER_SEG].id);
        return text;
    }
}

void chk_reach(chk_t *chk, chk_file_t *file, page_no_t page_no, uint32_t owner, uint32_t twice,
               bool *ok)
{
    *ok = false;
    char text[40];
    if (page_no >= file->size_pages) {
        chk_find(chk, 11, file, page_no, "reachable as %s, but beyond the space",
                 chk_owner_name(file, owner, text));
        return;
    }
    uint32_t is = file->owner[page_no];
    char is_text[40];
    if (is != owner && is != CHK_OWNER_UNKNOWN) {
        chk_find(chk, 11, file, page_no, "reachable as %s, but it is %s",
                 chk_owner_name(file, owner, text), chk_owner_name(file, is, is_text));
        return;
    }
    if (chk_bit(file->reached, page_no)) {
        chk_find(chk, twice, file, page_no, "reached twice as %s",
                 chk_owner_name(file, owner, text));
        return;
    }
    chk_bit_set(file->reached, page_no);
    *ok = is != CHK_OWNER_UNKNOWN && !chk_bit(file->bad, page_no);
}

void chk_broken(chk_file_t *file, uint32_t owner)
{
    for (uint32_t i = 0; i < file->n_broken; i++) {
        if (file->broken[i] == owner) {
            return;
        }
    }
    if (owner == CHK_OWNER_UNKNOWN) {
        file->n_broken = CHK_BROKEN_MAX;
    } else if (file->n_broken < CHK_BROKEN_MAX) {
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

void chk_file_unreached(chk_t *chk, chk_file_t *file)
{
    uint64_t n = 0;
    page_no_t first = FIL_NULL;
    for (page_no_t page_no = 0; page_no < file->size_pages; page_no++) {
        uint32_t owner = file->owner[page_no];
        if (owner != CHK_OWNER_FREE && owner != CHK_OWNER_UNKNOWN && owner != CHK_OWNER_INODES
            && !chk_bit(file->reached, page_no) && !chk_is_broken(file, owner) && n++ == 0) {
            first = page_no;
        }
    }
    char text[40];
    if (n > 0) {
        chk_find(chk, 11, file, first,
                 "%" PRIu64 " used pages are reachable from nowhere; the first is %s", n,
                 chk_owner_name(file, file->owner[first], text));
    }
    for (uint32_t i = 0; i < file->n_segs && file->segs_whole; i++) {
        const chk_seg_t *seg = &file->segs[i];
        if (!seg->claimed && !chk_is_broken(file, CHK_OWNER_SEG + i)) {
            chk_find(chk, 11, file, seg->page_no, "segment %" PRIu64 " is nobody's", seg->id);
            return;
        }
    }
}
