/** Private to check/: the state of one scan, its files with their page bitmaps, and what all parts
stand on. */
#ifndef CHECK_CHECK_INT_H
#define CHECK_CHECK_INT_H

#include "check/check.h"
#include "check/check_format.h"
#include "log/log.h"
#include "page/fil_page.h"

typedef struct chk_fact chk_fact_t;         /**< check_memo.h */
typedef struct chk_seg chk_seg_t;           /**< check_fsp.h */
typedef struct chk_table chk_table_t;       /**< check_table.h */
typedef struct chk_undo_ref chk_undo_ref_t; /**< check_table.h */

#define CHK_BROKEN_MAX 16U /**< owners per file whose pages could not all be walked */

/* Who uses a page. */
#define CHK_OWNER_FREE 0U
#define CHK_OWNER_FIXED                                                                            \
    1U /**< page 0, descriptor pages, pages 1 to 3 of the system space, 1 of undo ones */
#define CHK_OWNER_INODES 2U
#define CHK_OWNER_NONE 3U            /**< used, but by no segment */
#define CHK_OWNER_SEG 16U            /**< plus the position in chk_file_t.segs */
#define CHK_OWNER_UNKNOWN UINT32_MAX /**< what would tell is damaged, and reported */

/** One tablespace file. */
typedef struct chk_file {
    struct chk_file *next; /**< ibdata1 first, then by name */
    char path[PATH_LEN_MAX + 1];
    os_file_t *file; /**< NULL while another file is open */
    space_id_t space;
    bool usable;  /**< page 0 is right: space and size_pages are known */
    bool claimed; /**< a table of the catalogue has this space id, or it is an undo tablespace */
    uint32_t fsp_size;   /**< FSP_SIZE */
    uint32_t free_limit; /**< FSP_FREE_LIMIT */
    uint32_t size_pages; /**< pages that are committed and in the file */
    byte *reached;       /**< bit per page: a tree, a chain or space management led here */
    byte *bad;           /**< bit per page: damaged, and reported */
    uint32_t *owner;     /**< per page: CHK_OWNER_... */
    chk_fact_t *ways;    /**< of the memo; NULL: there is none */
    chk_fact_t **facts;  /**< per page: what the memo keeps of it, right now; NULL as above */
    chk_seg_t *segs;     /**< by id */
    uint32_t n_segs;
    bool segs_whole; /**< all inode pages could be read */
    uint32_t n_broken;
    uint32_t broken[CHK_BROKEN_MAX];
} chk_file_t;

typedef struct chk {
    env_t *env;
    check_report_t *report;
    check_memo_t *memo; /**< NULL: everything is looked at */
    uint32_t page_size;
    uint32_t extent_pages;
    lsn_t end_lsn;
    chk_file_t *files;
    chk_file_t *open_file; /**< the one file that is open, or NULL */
    byte *page;            /**< one page, for short use */
    chk_table_t **tables;  /**< user tables in order of id */
    uint32_t n_tables;
    bool dict_whole;           /**< the catalogue could be read */
    trx_id_t trx_id_limit;     /**< every id is below; 0 = unknown */
    chk_undo_ref_t *undo_refs; /**< by undo records */
    uint32_t n_undo_refs;
    bool quiet; /**< no history and no active transaction: purge is complete */
} chk_t;

/* ---- check_file.c ---- */

/** Adds a finding. file may be NULL. */
__attribute__((format(printf, 5, 6))) void chk_find(chk_t *chk, uint32_t invariant,
                                                    const chk_file_t *file, page_no_t page_no,
                                                    const char *format, ...);

bool chk_is_zero(const byte *bytes, uint32_t len);

void chk_files_close(chk_t *chk);
chk_file_t *chk_file_of_space(chk_t *chk, space_id_t space); /**< a usable one, or NULL */
/** Opens the file unless it is the one that is open. */
WARN_UNUSED dberr_t chk_file_use(chk_t *chk, chk_file_t *file);
WARN_UNUSED dberr_t chk_page_read(chk_t *chk, chk_file_t *file, page_no_t page_no, byte *page);
/** The page as it is stored. False: it can only be read. */
WARN_UNUSED bool chk_page_view(chk_t *chk, chk_file_t *file, page_no_t page_no, os_view_t *view);
/** Pages that one descriptor page describes. */
uint32_t chk_xdes_covers(const chk_t *chk);
static inline bool chk_bit(const byte *bits, uint32_t i)
{
    return (bits[i / 8] >> (i % 8) & 1) != 0;
}
void chk_bit_set(byte *bits, uint32_t i);
bool chk_is_bad(const chk_file_t *file, page_no_t page_no);

/* ---- check_reach.c ---- */

/** Something of `owner` leads to this page. *ok = it may be read on; otherwise why not was
reported, here or by the scan of the file. `twice` is the invariant that a second way to the page
breaks. */
void chk_reach(chk_t *chk, chk_file_t *file, page_no_t page_no, uint32_t owner, uint32_t twice,
               bool *ok);
/** Not all pages of owner (UNKNOWN: of some) could be walked: do not report those that nothing led
to. */
void chk_broken(chk_file_t *file, uint32_t owner);
/** Reports used pages and segments that nothing led to. */
void chk_file_unreached(chk_t *chk, chk_file_t *file);

/* ---- the parts of the scan, in their order ---- */

/** Reads the log behind the newest checkpoint: its end, and whether recovery has anything to do. */
WARN_UNUSED dberr_t chk_log(chk_t *chk);
WARN_UNUSED dberr_t chk_files_open(chk_t *chk);
/** Space management, then envelope and shape of every used page. */
WARN_UNUSED dberr_t chk_file_scan(chk_t *chk, chk_file_t *file);
/** TRX_SYS and, of each rollback segment, RSEG, the history and active undo logs. */
WARN_UNUSED dberr_t chk_undo(chk_t *chk);
/** Reads the catalogue into chk->tables and matches it with the files (I12). */
WARN_UNUSED dberr_t chk_dict(chk_t *chk);
/** Walks all trees of a READY table: I6 to I10, I25, and its digests. */
WARN_UNUSED dberr_t chk_table_rows(chk_t *chk, chk_table_t *table);

#endif
