/** Private to check/: space management: extents, their lists, segments. */
#ifndef CHECK_CHECK_FSP_H
#define CHECK_CHECK_FSP_H

#include "check/check_int.h"

/** A list of extents or inode pages: addresses are page number and offset. */
typedef struct chk_addr {
    page_no_t page_no;
    uint32_t offset;
} chk_addr_t;

typedef struct chk_list {
    uint32_t len;
    chk_addr_t first;
    chk_addr_t last;
} chk_list_t;

struct chk_seg {
    uint64_t id;
    page_no_t page_no; /**< of the inode */
    uint32_t offset;
    uint32_t not_full_n_used;
    chk_list_t lists[3]; /**< FREE, NOT_FULL, FULL */
    bool claimed;        /**< something's header leads to it */
};

/** An extent descriptor. */
typedef struct chk_extent {
    uint32_t state;
    uint32_t n_used;
    uint64_t seg;
    chk_addr_t prev;
    chk_addr_t next;
    bool listed;
} chk_extent_t;

/** Descriptors of one file; their number is bounded by its size. */
typedef struct chk_fsp {
    chk_t *chk;
    chk_file_t *file;
    byte *page0;
    uint32_t covers; /**< pages per descriptor page */
    uint32_t xdes_size;
    uint32_t n_extents;
    chk_extent_t *extents;
    bool whole; /**< all descriptor pages could be read, and their contents are possible */
} chk_fsp_t;

/** Reads page 0, descriptors and inodes: fills owner and segs, marks inode pages as reached. */
WARN_UNUSED dberr_t chk_fsp(chk_t *chk, chk_file_t *file);
chk_addr_t chk_addr_read(const byte *at);
chk_list_t chk_list_read(const byte *base);
/** What the extents of a list have in common. */
typedef struct chk_rule {
    const char *name;
    uint32_t state;
    uint64_t seg;
    uint32_t used_min;
    uint32_t used_max;
} chk_rule_t;
/** Walks a list of extents; *n_used = their used pages. */
void chk_extent_list(chk_fsp_t *fsp, const chk_list_t *list, const chk_rule_t *rule,
                     uint64_t *n_used);
__attribute__((format(printf, 3, 4))) void chk_fsp_find(const chk_fsp_t *fsp, page_no_t page_no,
                                                        const char *format, ...);
/** Collects the inodes from their pages. */
WARN_UNUSED dberr_t chk_inodes(chk_fsp_t *fsp);
/** Lists and fragment pages of all segments. */
WARN_UNUSED dberr_t chk_segs(chk_fsp_t *fsp);
/** Owner number of the segment with this id; CHK_OWNER_UNKNOWN if there is none, or it is not
known. */
uint32_t chk_seg_by_id(const chk_file_t *file, uint64_t id);
/** The same by a segment header, and claims it. *valid = nothing is wrong with that, as far as the
inodes could be read. */
uint32_t chk_seg_claim(chk_file_t *file, const byte *header, bool *valid);

#endif
