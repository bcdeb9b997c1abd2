/** Private to the 10.5 format: what its encoder (log_rec_10_5.c) and its decoder (log_read_10_5.c)
must agree in. */
#ifndef LOG_LOG_REC_10_5_H
#define LOG_LOG_REC_10_5_H

#include "log/log_codec.h"
#include "log/log_rec.h"
#include "page/fil_page.h"

#define SAME_PAGE 0x80U
#define LEN_MASK 0x0FU
#define LEN_BYTES_MAX 3U
#define BODY_MAX (PAGE_SIZE_MAX + LOG_REC_OVERHEAD_MAX)

enum { FREE_PAGE, INIT_PAGE, EXTENDED, WRITE, MEMSET, MEMMOVE, RESERVED, OPTION };
enum { FILE_CREATE, FILE_DELETE, FILE_RENAME, FILE_MODIFY, FILE_CHECKPOINT = 7 };
enum { INIT_INDEX = 0, INSERT = 6, DELETE = 9, TRIM_PAGES = 10 };
enum { OPTION_PAGE_CHECKSUM = 0 };

/** Least value of the integer with so many bytes. */
static const uint32_t VARINT_MIN[] = {0, 0, 0x80U, 0x4080U, 0x204080U, 0x10204080U};

/** Does the record lie in the page at an offset? */
static inline bool op_has_offset(redo_op_t op)
{
    return op == OP_NUMBER || op == OP_WRITE || op == OP_FILL || op == OP_MOVE;
}

/** Where the next record's offset counts from. */
static inline uint32_t next_offset(const redo_context_t *at, const redo_rec_t *rec)
{
    if (op_has_offset(rec->op)) {
        return rec->offset + rec->len;
    }
    return rec->op == OP_PAGE_CHECKSUM ? at->offset : FIL_PAGE_TYPE;
}

dberr_t decode_10_5(redo_context_t *at, const byte *buf, size_t n, redo_rec_t *rec, size_t *used,
                    bool *last);

#endif
