/** Undo records: bytes and back.

Place: bottom of trx/, no I/O. Layout in undo_format.h.

Invariants
1. a decoded record never points outside its bytes, whatever they are;
2. the longest record of any table that the catalogue accepts fits an empty undo page: a clustered
   record is less than half a page, and an undo record adds less than UNDO_REC_EXTRA_MAX bytes to
   it. */
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "trx/trx_int.h"

#define UNDO_REC_EXTRA_MAX                                                                         \
    (UNDO_REC_PK + UNDO_REC_UPDATE_FIXED + UNDO_REC_COL_FIXED * COLUMNS_MAX + UNDO_REC_TRAILER)

_Static_assert(PAGE_SIZE_MIN / 2 + UNDO_REC_EXTRA_MAX
                   < PAGE_SIZE_MIN - UNDO_RECS - FIL_PAGE_TRAILER,
               "an undo record fits a page");

uint32_t undo_rec_start(byte *buf, const undo_rec_t *rec)
{
    mach_write_1(buf + UNDO_REC_TYPE, rec->type);
    mach_write_8(buf + UNDO_REC_TABLE_ID, rec->table_id);
    mach_write_6(buf + UNDO_REC_OLD_TRX_ID, rec->old_trx_id);
    mach_write_7(buf + UNDO_REC_OLD_ROLL_PTR, rec->old_roll_ptr);
    mach_write_2(buf + UNDO_REC_PK_LEN, rec->pk_len);
    memcpy(buf + UNDO_REC_PK, rec->pk, rec->pk_len);
    uint32_t len = UNDO_REC_PK + rec->pk_len;
    if (rec->type == UNDO_UPDATE) {
        mach_write_1(buf + len, rec->old_info);
        mach_write_2(buf + len + 1, rec->n_cols);
        len += UNDO_REC_UPDATE_FIXED;
    }
    return len;
}

uint32_t undo_rec_add_col(byte *buf, uint32_t len, uint32_t pos, const byte *value,
                          uint32_t value_len)
{
    mach_write_2(buf + len, pos);
    mach_write_2(buf + len + 2, value_len);
    memcpy(buf + len + UNDO_REC_COL_FIXED, value, value_len);
    return len + UNDO_REC_COL_FIXED + value_len;
}

uint32_t undo_rec_finish(byte *buf, uint32_t len)
{
    len += UNDO_REC_TRAILER;
    mach_write_2(buf + UNDO_REC_LEN, len);
    mach_write_2(buf + len - UNDO_REC_TRAILER, len);
    return len;
}

dberr_t undo_rec_decode(const byte *buf, uint32_t len, undo_rec_t *rec)
{
    if (len < UNDO_REC_LEN_MIN || mach_read_2(buf + UNDO_REC_LEN) != len
        || mach_read_2(buf + len - UNDO_REC_TRAILER) != len) {
        return DB_CORRUPTION;
    }
    undo_rec_t r = {.type = mach_read_1(buf + UNDO_REC_TYPE),
                    .table_id = mach_read_8(buf + UNDO_REC_TABLE_ID),
                    .old_trx_id = mach_read_6(buf + UNDO_REC_OLD_TRX_ID),
                    .old_roll_ptr = mach_read_7(buf + UNDO_REC_OLD_ROLL_PTR),
                    .pk = buf + UNDO_REC_PK,
                    .pk_len = mach_read_2(buf + UNDO_REC_PK_LEN)};
    uint32_t room = len - UNDO_REC_PK - UNDO_REC_TRAILER;
    if (r.type < UNDO_INSERT || r.type > UNDO_DELETE_MARK || r.pk_len == 0 || r.pk_len > room) {
        return DB_CORRUPTION;
    }
    room -= r.pk_len;
    if (r.type == UNDO_UPDATE) {
        const byte *p = r.pk + r.pk_len;
        if (room < UNDO_REC_UPDATE_FIXED) {
            return DB_CORRUPTION;
        }
        r.old_info = mach_read_1(p);
        r.n_cols = mach_read_2(p + 1);
        r.cols = p + UNDO_REC_UPDATE_FIXED;
        r.cols_len = room - UNDO_REC_UPDATE_FIXED;
        if ((r.old_info & ~REC_INFO_DELETE_MARK) != 0) {
            return DB_CORRUPTION;
        }
    } else if (room != 0) {
        return DB_CORRUPTION;
    }
    *rec = r;
    return DB_SUCCESS;
}

dberr_t undo_rec_check(const undo_rec_t *rec, const dict_table_t *table)
{
    if (rec->pk_len != table->pk_len) {
        return DB_CORRUPTION;
    }
    const byte *p = rec->cols;
    uint32_t room = rec->cols_len;
    for (uint32_t i = 0; i < rec->n_cols; i++) {
        if (room < UNDO_REC_COL_FIXED) {
            return DB_CORRUPTION;
        }
        uint32_t pos = mach_read_2(p);
        uint32_t len = mach_read_2(p + 2);
        if (pos >= table->n_cols || len != table->cols[pos].len || len > room - UNDO_REC_COL_FIXED
            || row_col_is_pk(table, pos)) {
            return DB_CORRUPTION;
        }
        p += UNDO_REC_COL_FIXED + len;
        room -= UNDO_REC_COL_FIXED + len;
    }
    return room == 0 ? DB_SUCCESS : DB_CORRUPTION;
}

void undo_rec_restore(const undo_rec_t *rec, const dict_table_t *table, byte *row)
{
    const byte *p = rec->cols;
    for (uint32_t i = 0; i < rec->n_cols; i++) {
        const dict_col_t *col = &table->cols[mach_read_2(p)];
        memcpy(row + col->row_offset, p + UNDO_REC_COL_FIXED, col->len);
        p += UNDO_REC_COL_FIXED + col->len;
    }
}
