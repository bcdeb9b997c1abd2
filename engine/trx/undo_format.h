/** On-disk layout of transactions: TRX_SYS page, RSEG page, undo pages, undo records. Constants
only; all numbers big-endian; everything that is not named here is zero. FORMAT.md, "Transactions",
says the same.

TRX_SYS page: page 2 of space 0, type FIL_PAGE_TYPE_TRX_SYS

    38  8  max trx id: every id ever given out is >= 1 and less than this (written ahead, in steps)
    46  8  next commit number: every commit number in the history is >= 1 and less than this
    54  4  number of undo tablespaces, 0 or 2; fixed at creation
    58  ..  zero

RSEG page: page 3 of space 0, page 1 of each undo tablespace, type FIL_PAGE_TYPE_SYS

    38  4  history head: first undo page of the oldest committed, unpurged log, or FIL_NULL
    42  4  history tail: that of the newest one, or FIL_NULL
    46  8  history length: number of logs in that list
    54  10 zero
    64  4 * 64  undo slots: first undo page of an active transaction's log, or FIL_NULL
    320 10 header of the segment that its undo pages belong to
    330 ..  zero

Undo log: one per transaction that changed something; a chain of undo pages. Each log hangs either
from one slot (active) or from the history list (committed, in ascending order of commit number); a
page belongs to one log only.

Undo page: in the space of its RSEG page, type FIL_PAGE_UNDO_LOG

    38  4  previous page of this log, or FIL_NULL (first page)
    42  4  next page of this log, or FIL_NULL (last page)
    46  2  free offset: end of the last record, 96 ... page_size - 8
    48  2  number of records in this page; 0 is possible in the first page of a log only
           -- 50 to 75 on the first page of a log; zero on the others --
    50  2  state: 1 active, 2 committed
    52  8  trx id
    60  8  commit number; 0 while active
    68  4  first page of the next log in the history list; FIL_NULL at the tail and while active
    72  4  last page of this log (the page itself when there is only one)
    76  20 zero
    96  ..  records, back to back up to the free offset; bytes behind it are left over from
            truncated records and mean nothing

Undo record: what rollback needs to bring back the version before the change, and purge to remove it

    0       2  length of the whole record, L
    2       1  type: 1 INSERT, 2 UPDATE, 3 DELETE_MARK, 4 METADATA
    3       8  table id
    11      6  DB_TRX_ID of the clustered record before the change   (zero for INSERT)
    17      7  DB_ROLL_PTR before the change                         (zero for INSERT)
    24      2  length of the primary key, P
    26      P  primary key, as at the start of the clustered record
            -- UPDATE only --
    26+P    1  info byte of the clustered record before the change (REC_INFO_DELETE_MARK: the
               change revived a deleted row), else 0
    27+P    2  number of columns that follow
    29+P    .. per column: 2 position in the table, 2 length, then the value before the change, as
               in the clustered record but without the length of a VARCHAR; length 65535 and
               nothing: NULL; length with 32768 added: of a text that has pages of its own the
               reference (20), and as many bytes of its start as indexes look at. The undo record
               owns these pages if the change has left them
               All columns outside the primary key when a secondary key changed or a row was
               revived
            -- METADATA: in place of the primary key of a row stands the tree (19), because recovery
            needs it before the catalogue can be read: 4 space, 4 root, 8 index id, 2 key length, 1
            instant mark before the change --
    26+P    .. the metadata record before the change; nothing: there was none
            -- all types --
    L-2     2  L again, so that a page can be walked backwards

Roll pointer (DB_ROLL_PTR, 7 bytes): bit 55 = the record is an INSERT; bits 48 to 54 = the rollback
segment: 0 that of space 0, N that of undo tablespace N; bits 16 to 47 = page number in its space;
bits 0 to 15 = offset of the record in the page. 0 = no history. The pair (DB_TRX_ID, DB_ROLL_PTR)
names one undo record; the roll pointer alone may be used again by a later one. */
#ifndef TRX_UNDO_FORMAT_H
#define TRX_UNDO_FORMAT_H

#include "page/fil_page.h"

#define TRX_SYS_MAX_ID 38
#define TRX_SYS_NEXT_NO 46
#define TRX_SYS_N_UNDO_SPACES 54

#define TRX_ID_MAX ((1ULL << 48) - 1)
#define TRX_ID_STEP 256U /**< ids made durable ahead at a time */

#define RSEG_HISTORY_HEAD 38
#define RSEG_HISTORY_TAIL 42
#define RSEG_HISTORY_LEN 46
#define RSEG_SLOTS 64
#define RSEG_N_SLOTS 64U
#define RSEG_PAGE_UNDO_SPACE 1U /**< in an undo tablespace */
#define TRX_RSEGS_MAX (1U + UNDO_SPACES_MAX)
#define RSEG_UNDO_SEG 320

#define UNDO_PREV 38
#define UNDO_NEXT 42
#define UNDO_FREE 46
#define UNDO_N_RECS 48
#define UNDO_STATE 50
#define UNDO_TRX_ID 52
#define UNDO_TRX_NO 60
#define UNDO_HISTORY_NEXT 68
#define UNDO_LAST_PAGE 72
#define UNDO_RECS 96

#define UNDO_STATE_ACTIVE 1U
#define UNDO_STATE_COMMITTED 2U

#define UNDO_REC_LEN 0
#define UNDO_REC_TYPE 2
#define UNDO_REC_TABLE_ID 3
#define UNDO_REC_OLD_TRX_ID 11
#define UNDO_REC_OLD_ROLL_PTR 17
#define UNDO_REC_PK_LEN 24
#define UNDO_REC_PK 26
#define UNDO_REC_TRAILER 2U       /**< the length again */
#define UNDO_REC_UPDATE_FIXED 3U  /**< info byte and number of columns */
#define UNDO_REC_COL_FIXED 4U     /**< position and length of one column */
#define UNDO_COL_NULL 0xFFFFU     /**< in place of the length */
#define UNDO_COL_EXTERNAL 0x8000U /**< added to it */
#define UNDO_REC_LEN_MIN (UNDO_REC_PK + 1U + UNDO_REC_TRAILER)

#define UNDO_INSERT 1U
#define UNDO_UPDATE 2U
#define UNDO_DELETE_MARK 3U
#define UNDO_METADATA 4U
#define UNDO_TREE_SIZE 19U

#define ROLL_PTR_INSERT (1ULL << 55)

static inline roll_ptr_t roll_ptr_make(uint32_t rseg, page_no_t page_no, uint32_t offset,
                                       bool insert)
{
    return (insert ? ROLL_PTR_INSERT : 0) | (uint64_t)rseg << 48 | (uint64_t)page_no << 16 | offset;
}

static inline uint32_t roll_ptr_rseg(roll_ptr_t roll_ptr)
{
    return roll_ptr >> 48 & 0x7FU;
}

static inline page_no_t roll_ptr_page(roll_ptr_t roll_ptr)
{
    return (page_no_t)(roll_ptr >> 16);
}

static inline uint32_t roll_ptr_offset(roll_ptr_t roll_ptr)
{
    return roll_ptr & 0xFFFFU;
}

#endif
