/** Undo records: bytes and back.

Place: bottom of trx/, no I/O. Layout in undo_format.h.

Invariants
1. a decoded record never points outside its bytes, whatever they are;
2. the longest record of any table that the catalogue accepts fits an empty undo page: what it adds
   to the values of a clustered record and the starts of texts is less than DICT_UNDO_OVERHEAD. */
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "trx/trx_int.h"

#define UNDO_REC_EXTRA_MAX                                                                         \
    (UNDO_REC_PK + UNDO_REC_UPDATE_FIXED + UNDO_REC_COL_FIXED * COLUMNS_MAX + UNDO_REC_TRAILER)

_Static_assert(UNDO_REC_EXTRA_MAX + UNDO_RECS + FIL_PAGE_TRAILER
                   <= DICT_UNDO_OVERHEAD + DATA_TRX_ID_LEN + DATA_ROLL_PTR_LEN,
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

uint32_t undo_rec_add_col(byte *buf, uint32_t len, const dict_table_t *table, uint32_t pos,
                          const byte *row, const blob_ref_t *ref)
{
    const dict_col_t *col = &table->cols[pos];
    mach_write_2(buf + len, pos);
    if (dict_col_is_null(col, row)) {
        mach_write_2(buf + len + 2, UNDO_COL_NULL);
        return len + UNDO_REC_COL_FIXED;
    }
    uint32_t value_len = 0;
    const byte *value = dict_col_value(col, row, &value_len);
    if (ref != NULL) {
        uint32_t start = dict_col_prefix(table, pos);
        start = start < value_len ? start : value_len;
        mach_write_2(buf + len + 2, UNDO_COL_EXTERNAL | (BLOB_REF_SIZE + start));
        blob_ref_write(buf + len + UNDO_REC_COL_FIXED, ref);
        len += UNDO_REC_COL_FIXED + BLOB_REF_SIZE;
        memcpy(buf + len, value, start);
        return len + start;
    }
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
    if (r.type < UNDO_INSERT || r.type > UNDO_METADATA || r.pk_len == 0 || r.pk_len > room) {
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
    } else if (r.type == UNDO_METADATA) {
        r.cols = r.pk + r.pk_len;
        r.cols_len = room;
        if (r.pk_len != UNDO_TREE_SIZE) {
            return DB_CORRUPTION;
        }
    } else if (room != 0) {
        return DB_CORRUPTION;
    }
    *rec = r;
    return DB_SUCCESS;
}

/** A column of an undo record, decoded. */
typedef struct undo_col {
    uint32_t pos;
    bool null;
    bool external;
    blob_ref_t ref;     /**< external */
    const byte *value;  /**< external: the start of the text */
    uint32_t value_len; /**< of value */
    uint32_t size;      /**< bytes of the undo record */
} undo_col_t;

/** Decodes the column at p, of room bytes that are left. False: it cannot be one. */
static bool undo_col_read(const byte *p, uint32_t room, undo_col_t *out)
{
    if (room < UNDO_REC_COL_FIXED) {
        return false;
    }
    uint32_t len = mach_read_2(p + 2);
    *out = (undo_col_t){.pos = mach_read_2(p),
                        .null = len == UNDO_COL_NULL,
                        .external = len != UNDO_COL_NULL && (len & UNDO_COL_EXTERNAL) != 0,
                        .value = p + UNDO_REC_COL_FIXED};
    len = out->null ? 0 : len & ~UNDO_COL_EXTERNAL;
    if (len > room - UNDO_REC_COL_FIXED) {
        return false;
    }
    out->size = UNDO_REC_COL_FIXED + len;
    out->value_len = len;
    if (out->external) {
        if (len < BLOB_REF_SIZE || !blob_ref_read(out->value, &out->ref)) {
            return false;
        }
        out->value += BLOB_REF_SIZE;
        out->value_len -= BLOB_REF_SIZE;
    }
    return true;
}

/** Can the column have this value? */
static bool undo_col_fits(const dict_table_t *table, const undo_col_t *c)
{
    const dict_col_t *col = &table->cols[c->pos];
    if (c->null) {
        return col->nullable;
    }
    if (c->external) {
        return col->type == DICT_VARCHAR && col->len > DICT_LOCAL_MAX && c->value_len <= col->len
               && c->ref.len <= col->len && c->ref.space == table->space;
    }
    return col->type == DICT_VARCHAR ? c->value_len <= col->len : c->value_len == col->len;
}

dberr_t undo_rec_check(const undo_rec_t *rec, const dict_table_t *table)
{
    if (rec->pk_len != table->pk_len || rec->type == UNDO_METADATA) {
        return DB_CORRUPTION;
    }
    const byte *p = rec->cols;
    uint32_t room = rec->cols_len;
    for (uint32_t i = 0; i < rec->n_cols; i++) {
        undo_col_t c;
        if (!undo_col_read(p, room, &c) || c.pos >= table->n_cols || row_col_is_pk(table, c.pos)
            || !undo_col_fits(table, &c)) {
            return DB_CORRUPTION;
        }
        p += c.size;
        room -= c.size;
    }
    return room == 0 ? DB_SUCCESS : DB_CORRUPTION;
}

void undo_rec_restore(const undo_rec_t *rec, const dict_table_t *table, byte *row, dict_ext_t *ext)
{
    const byte *p = rec->cols;
    for (uint32_t i = 0; i < rec->n_cols; i++) {
        undo_col_t c;
        CHECK(undo_col_read(p, UINT32_MAX, &c));
        const dict_col_t *col = &table->cols[c.pos];
        if (c.null) {
            dict_col_set(col, row, NULL);
        } else {
            dict_col_put(col, row, c.value, c.value_len);
        }
        ext->is[c.pos] = c.external;
        ext->refs[c.pos] = c.ref;
        ext->refs[c.pos].owner = true;
        p += c.size;
    }
}

bool undo_rec_next_chain(const undo_rec_t *rec, const byte *buf, uint32_t *at, uint32_t *offset)
{
    while (*at < rec->cols_len) {
        const byte *p = rec->cols + *at;
        undo_col_t c;
        CHECK(undo_col_read(p, rec->cols_len - *at, &c));
        *at += c.size;
        if (c.external && c.ref.owner && c.ref.len > 0) {
            *offset = (uint32_t)(p - buf) + UNDO_REC_COL_FIXED;
            return true;
        }
    }
    return false;
}
