/** Transactions: TRX_SYS, the RSEG pages, and every undo log that hangs from them.

Place: check/; before the rows, because what a row may carry depends on whether history is left
(I25).

Checked: I2 no transaction is active any more (recovery and shutdown roll them back); I6 fields and
records of undo pages; I8 links of a chain; I12 the undo
tablespaces are there; I11 every undo page is reached once, the history is as
long as it says; I25 transaction ids are below the stored maximum. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mach.h"
#include "check/check_fsp.h"
#include "check/check_table.h"

typedef struct chk_undo_scan {
    chk_t *chk;
    uint64_t next_no;
    uint32_t n_undo_spaces;
    /* Of one rollback segment: */
    chk_file_t *file;
    page_no_t rseg_page;
    bool whole;
    uint64_t last_no; /**< commit number of the log before */
    uint32_t owner;   /**< the segment of its undo pages */
} chk_undo_scan_t;

__attribute__((format(printf, 4, 5))) static void
chk_undo_find(chk_undo_scan_t *scan, uint32_t invariant, page_no_t page_no, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char what[160];
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    scan->whole = false;
    chk_find(scan->chk, invariant, scan->file, page_no, "%s", what);
}

/** The records of the page in chk->page, back to back. *valid = they can be. */
static dberr_t chk_undo_records(chk_t *chk, bool *valid)
{
    const byte *page = chk->page;
    uint32_t end = mach_read_2(page + CHK_UNDO_FREE);
    uint32_t at = CHK_UNDO_RECS;
    uint32_t n = 0;
    while (at < end) {
        const byte *rec = page + at;
        uint32_t room = end - at;
        uint32_t len = room >= CHK_UNDO_REC_MIN ? mach_read_2(rec) : 0;
        if (len < CHK_UNDO_REC_MIN || len > room || mach_read_2(rec + len - 2) != len
            || mach_read_1(rec + CHK_UNDO_REC_TYPE) == 0
            || mach_read_1(rec + CHK_UNDO_REC_TYPE) > CHK_UNDO_TYPE_MAX
            || CHK_UNDO_REC_PK + mach_read_2(rec + CHK_UNDO_REC_PK_LEN) + 2 > len) {
            *valid = false;
            return DB_SUCCESS;
        }
        dberr_t err = chk_undo_refs_note(chk, rec, len, valid);
        if (err != DB_SUCCESS || !*valid) {
            return err;
        }
        at += len;
        n++;
    }
    *valid = n == mach_read_2(page + CHK_UNDO_N_RECS);
    return DB_SUCCESS;
}

/** One page of a log: chk->page gets it. */
static dberr_t chk_undo_page(chk_undo_scan_t *scan, page_no_t page_no, page_no_t prev)
{
    chk_t *chk = scan->chk;
    bool ok = false;
    chk_reach(chk, scan->file, page_no, scan->owner, 11, &ok);
    scan->whole &= ok;
    dberr_t err = DB_SUCCESS;
    if (ok) {
        err = chk_page_read(chk, scan->file, page_no, chk->page);
    }
    if (err != DB_SUCCESS || !ok) {
        return err;
    }
    const byte *page = chk->page;
    uint32_t end = mach_read_2(page + CHK_UNDO_FREE);
    if (mach_read_4(page + CHK_UNDO_PREV) != prev) {
        chk_undo_find(scan, 8, page_no, "undo page links back to %" PRIu32 " instead of %" PRIu32,
                      mach_read_4(page + CHK_UNDO_PREV), prev);
        return DB_SUCCESS;
    }
    bool valid = fil_page_get_type(page) == FIL_PAGE_UNDO_LOG && end >= CHK_UNDO_RECS
                 && end <= chk->page_size - FIL_PAGE_TRAILER;
    if (valid) {
        err = chk_undo_records(chk, &valid);
    }
    if (err == DB_SUCCESS && !valid) {
        chk_undo_find(scan, 6, page_no, "undo page: type, free offset or records are wrong");
    }
    return err;
}

/** What the first page of a log says. */
typedef struct chk_undo_log {
    uint32_t state;
    trx_id_t trx_id;
    uint64_t trx_no;
    page_no_t history_next;
} chk_undo_log_t;

static dberr_t chk_undo_log(chk_undo_scan_t *scan, page_no_t first, chk_undo_log_t *log)
{
    const byte *page = scan->chk->page;
    dberr_t err = chk_undo_page(scan, first, FIL_NULL);
    if (err != DB_SUCCESS || !scan->whole) {
        return err;
    }
    log->state = mach_read_2(page + CHK_UNDO_STATE);
    log->trx_id = mach_read_8(page + CHK_UNDO_TRX_ID);
    log->trx_no = mach_read_8(page + CHK_UNDO_TRX_NO);
    log->history_next = mach_read_4(page + CHK_UNDO_HISTORY_NEXT);
    page_no_t last = mach_read_4(page + CHK_UNDO_LAST_PAGE);
    page_no_t prev = first;
    page_no_t page_no = mach_read_4(page + CHK_UNDO_NEXT);
    while (page_no != FIL_NULL) {
        err = chk_undo_page(scan, page_no, prev);
        if (err != DB_SUCCESS || !scan->whole) {
            return err;
        }
        prev = page_no;
        page_no = mach_read_4(page + CHK_UNDO_NEXT);
    }
    if (prev != last) {
        chk_undo_find(scan, 8, first, "undo log ends at page %" PRIu32 ", but says %" PRIu32, prev,
                      last);
    } else if (log->trx_id == 0 || log->trx_id >= scan->chk->trx_id_limit) {
        chk_undo_find(scan, 25, first, "transaction id %" PRIu64 " is not below %" PRIu64,
                      log->trx_id, scan->chk->trx_id_limit);
    }
    return DB_SUCCESS;
}

static dberr_t chk_history(chk_undo_scan_t *scan, page_no_t head, page_no_t tail, uint64_t len)
{
    uint64_t n = 0;
    page_no_t last = FIL_NULL;
    page_no_t page_no = head;
    while (page_no != FIL_NULL) {
        chk_undo_log_t log;
        dberr_t err = chk_undo_log(scan, page_no, &log);
        if (err != DB_SUCCESS || !scan->whole) {
            return err;
        }
        if (log.state != CHK_UNDO_COMMITTED || log.trx_no <= scan->last_no
            || log.trx_no >= scan->next_no) {
            chk_undo_find(scan, 6, page_no, "history: state %" PRIu32 ", commit number %" PRIu64,
                          log.state, log.trx_no);
            return DB_SUCCESS;
        }
        scan->last_no = log.trx_no;
        last = page_no;
        page_no = log.history_next;
        n++;
    }
    scan->chk->report->history_len += n;
    if (n != len || last != tail) {
        chk_undo_find(scan, 11, scan->rseg_page,
                      "the history has %" PRIu64 " logs and ends at page %" PRIu32
                      ", but says %" PRIu64 " and %" PRIu32,
                      n, last, len, tail);
    }
    return DB_SUCCESS;
}

static dberr_t chk_active(chk_undo_scan_t *scan, page_no_t page_no, bool *active)
{
    chk_undo_log_t log;
    dberr_t err = chk_undo_log(scan, page_no, &log);
    if (err != DB_SUCCESS || !scan->whole) {
        return err;
    }
    *active = true;
    if (log.state != CHK_UNDO_ACTIVE || log.history_next != FIL_NULL) {
        chk_undo_find(scan, 6, page_no, "active undo log in state %" PRIu32, log.state);
        return DB_SUCCESS;
    }
    chk_find(scan->chk, 2, scan->file, page_no, "transaction %" PRIu64 " is still active",
             log.trx_id);
    return DB_SUCCESS;
}

/** A fixed page of the space into chk->page; *ok = it may be used. */
static dberr_t chk_fixed_page(chk_undo_scan_t *scan, page_no_t page_no, uint32_t type, bool *ok)
{
    chk_t *chk = scan->chk;
    chk_reach(chk, scan->file, page_no, CHK_OWNER_FIXED, 11, ok);
    dberr_t err = DB_SUCCESS;
    if (*ok) {
        err = chk_page_read(chk, scan->file, page_no, chk->page);
    }
    scan->whole &= *ok;
    if (err == DB_SUCCESS && *ok && fil_page_get_type(chk->page) != type) {
        chk_undo_find(scan, 6, page_no, "a page of type %s",
                      page_type_name(fil_page_get_type(chk->page)));
        *ok = false;
    }
    return err;
}

static dberr_t chk_trx_sys(chk_undo_scan_t *scan)
{
    chk_t *chk = scan->chk;
    bool ok = false;
    dberr_t err = chk_fixed_page(scan, CHK_TRX_SYS_PAGE, FIL_PAGE_TYPE_TRX_SYS, &ok);
    if (err != DB_SUCCESS || !ok) {
        return err;
    }
    chk->trx_id_limit = mach_read_8(chk->page + CHK_TRX_SYS_MAX_ID);
    scan->next_no = mach_read_8(chk->page + CHK_TRX_SYS_NEXT_NO);
    scan->n_undo_spaces = mach_read_4(chk->page + CHK_TRX_SYS_N_UNDO_SPACES);
    if (chk->trx_id_limit == 0 || scan->next_no == 0
        || (scan->n_undo_spaces != 0 && scan->n_undo_spaces != UNDO_SPACES_MAX)
        || !chk_is_zero(chk->page + CHK_TRX_SYS_END,
                        chk->page_size - FIL_PAGE_TRAILER - CHK_TRX_SYS_END)) {
        chk_undo_find(scan, 6, CHK_TRX_SYS_PAGE, "transaction system: counters or reserved bytes");
    }
    return DB_SUCCESS;
}

static dberr_t chk_rseg(chk_undo_scan_t *scan)
{
    chk_t *chk = scan->chk;
    bool ok = false;
    dberr_t err = chk_fixed_page(scan, scan->rseg_page, FIL_PAGE_TYPE_SYS, &ok);
    if (err != DB_SUCCESS || !ok) {
        return err;
    }
    if (!chk_is_zero(chk->page + CHK_RSEG_RESERVED, CHK_RSEG_SLOTS - CHK_RSEG_RESERVED)
        || !chk_is_zero(chk->page + CHK_RSEG_END,
                        chk->page_size - FIL_PAGE_TRAILER - CHK_RSEG_END)) {
        chk_undo_find(scan, 6, scan->rseg_page, "rollback segment: reserved bytes are not zero");
        return DB_SUCCESS;
    }
    bool valid = false;
    scan->owner = chk_seg_claim(scan->file, chk->page + CHK_RSEG_UNDO_SEG, &valid);
    if (scan->owner == CHK_OWNER_UNKNOWN || !valid) {
        if (!valid) {
            chk_undo_find(scan, 11, scan->rseg_page, "rollback segment: no segment for undo pages");
        }
        scan->whole = false;
        return DB_SUCCESS;
    }
    page_no_t head = mach_read_4(chk->page + CHK_RSEG_HISTORY_HEAD);
    page_no_t tail = mach_read_4(chk->page + CHK_RSEG_HISTORY_TAIL);
    uint64_t len = mach_read_8(chk->page + CHK_RSEG_HISTORY_LEN);
    page_no_t slots[CHK_RSEG_N_SLOTS];
    for (uint32_t i = 0; i < CHK_RSEG_N_SLOTS; i++) {
        slots[i] = mach_read_4(chk->page + CHK_RSEG_SLOTS + 4 * (size_t)i);
    }
    err = chk_history(scan, head, tail, len);
    bool active = false;
    for (uint32_t i = 0; err == DB_SUCCESS && scan->whole && i < CHK_RSEG_N_SLOTS; i++) {
        err = slots[i] != FIL_NULL ? chk_active(scan, slots[i], &active) : DB_SUCCESS;
    }
    chk->quiet = chk->quiet && !active && head == FIL_NULL;
    return err;
}

static dberr_t chk_rseg_with_logs(chk_undo_scan_t *scan)
{
    dberr_t err = chk_rseg(scan);
    if (!scan->whole) {
        chk_broken(scan->file, scan->owner);
        scan->chk->quiet = false;
    }
    return err;
}

/** Rollback segment N lies in undo tablespace N. */
static dberr_t chk_rseg_of_space(chk_undo_scan_t *scan, uint32_t number)
{
    chk_file_t *file = chk_file_of_space(scan->chk, space_of_undo(number));
    if (file == NULL) {
        chk_undo_find(scan, 12, FIL_NULL, "undo tablespace %" PRIu32 " is missing or unusable",
                      number);
        scan->chk->quiet = false;
        return DB_SUCCESS;
    }
    chk_undo_scan_t rseg = {.chk = scan->chk,
                            .next_no = scan->next_no,
                            .file = file,
                            .rseg_page = CHK_RSEG_PAGE_UNDO_SPACE,
                            .owner = CHK_OWNER_UNKNOWN,
                            .whole = true};
    file->claimed = true;
    return chk_rseg_with_logs(&rseg);
}

/** How many undo tablespaces there are cannot be said, and that was reported: nothing is said of
any. */
static void chk_undo_spaces_unknown(chk_t *chk)
{
    for (uint32_t i = 1; i <= UNDO_SPACES_MAX; i++) {
        chk_file_t *file = chk_file_of_space(chk, space_of_undo(i));
        if (file != NULL) {
            file->claimed = true;
            chk_broken(file, CHK_OWNER_UNKNOWN);
        }
    }
}

dberr_t chk_undo(chk_t *chk)
{
    chk_undo_scan_t scan = {.chk = chk,
                            .file = chk_file_of_space(chk, SPACE_SYSTEM),
                            .rseg_page = CHK_RSEG_PAGE,
                            .owner = CHK_OWNER_UNKNOWN,
                            .whole = true};
    if (scan.file == NULL) {
        chk_undo_spaces_unknown(chk);
        return DB_SUCCESS;
    }
    dberr_t err = chk_trx_sys(&scan);
    uint32_t n_undo_spaces = scan.whole ? scan.n_undo_spaces : 0;
    if (!scan.whole) {
        chk_undo_spaces_unknown(chk);
    }
    chk->quiet = true;
    TRY(err);
    TRY(chk_rseg_with_logs(&scan));
    for (uint32_t i = 1; i <= n_undo_spaces; i++) {
        TRY(chk_rseg_of_space(&scan, i));
    }
    return DB_SUCCESS;
}
