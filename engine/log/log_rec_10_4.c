/* Redo records in the 10.4 format: types, names, encode, decode. Beside log_rec.c.

1. decode is total: any bytes give a record, DB_NOT_FOUND (more bytes are needed) or DB_CORRUPTION,
   and no byte beyond buf[n] is read.
2. Each record has one encoding: a compressed integer in more bytes than it needs is refused, so
   that encode(decode(bytes)) == bytes.

Bytes. Numbers are big-endian. A compressed integer (cN) takes 1 to 5 bytes, as
mach_write_compressed:

    0xxxxxxx                       7 bits         1110xxxx + 3 bytes   28 bits
    10xxxxxx + 1 byte             14 bits         11110000 + 4 bytes   32 bits
    110xxxxx + 2 bytes            21 bits

A compressed 64-bit integer (c64) is its high half compressed, then its low half in 4 bytes. A path
is its length in 2 bytes, then so many bytes. Every record starts with the type byte; 0x80 is added
when the record is the only one of its mini-transaction. All but the three marked (*) go on with the
space id and the page number, both compressed; file operations have page number 0. FILE_CREATE2 with
another one truncates an undo tablespace to so many pages (MDEV-13564).

    MULTI_REC_END (*)   -                        COMP_PAGE_CREATE   level c, index id c64,
    DUMMY_RECORD (*)    -                                           record size c, key length c
    CHECKPOINT (*)      LSN, 8 bytes             COMP_REC_INSERT    slot c, shared c, info 1 byte,
    1,2,4BYTE(S)        offset c, value c                           length c, bytes
    8BYTES              offset c, value c64      COMP_REC_UPDATE_IN_PLACE  slot c, offset c,
    WRITE_STRING        offset c, length c,                         length c, bytes
                        bytes                    COMP_REC_DELETE, COMP_LIST_END_DELETE,
    MEMSET              offset c, length c,      COMP_LIST_START_DELETE    slot c
                        value 1 byte             FILE_CREATE2, FILE_DELETE, FILE_NAME   path
    INIT_FILE_PAGE2     page type, 2 bytes       FILE_RENAME2       path, path2
    INIT_FREE_PAGE      -                        INDEX_LOAD         index id, 8 bytes
    COMP_PAGE_REORGANIZE  -                                                                       */
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "log/log_codec.h"
#include "log/log_rec.h"

/** Numbers follow MariaDB 10.4's mlog_id_t where that has the record. */
typedef enum mlog_type {
    MLOG_1BYTE = 1,
    MLOG_2BYTES = 2,
    MLOG_4BYTES = 4,
    MLOG_8BYTES = 8,
    MLOG_WRITE_STRING = 30,
    MLOG_MULTI_REC_END = 31, /* ends an mtr of several records */
    MLOG_DUMMY_RECORD = 32,
    MLOG_FILE_DELETE = 35,
    MLOG_COMP_PAGE_CREATE = 37,
    MLOG_COMP_REC_INSERT = 38,
    MLOG_COMP_REC_UPDATE_IN_PLACE = 41,
    MLOG_COMP_REC_DELETE = 42,
    MLOG_COMP_LIST_END_DELETE = 43,
    MLOG_COMP_LIST_START_DELETE = 44,
    MLOG_COMP_PAGE_REORGANIZE = 46,
    MLOG_FILE_CREATE2 = 47,
    MLOG_FILE_RENAME2 = 54,
    MLOG_FILE_NAME = 55,
    MLOG_CHECKPOINT = 56,
    MLOG_INIT_FILE_PAGE2 = 59,
    MLOG_INDEX_LOAD = 61,
    MLOG_MEMSET = 63,
    MLOG_INIT_FREE_PAGE = 64
} mlog_type_t;

#define SINGLE_REC_FLAG 0x80U

/** What follows the type byte, and the space and page number if there are any. */
typedef enum rec_body {
    BODY_NONE,
    BODY_MARKER,     /* no page either */
    BODY_CHECKPOINT, /* no page either */
    BODY_NUMBER,
    BODY_NUMBER_64,
    BODY_STRING,
    BODY_MEMSET,
    BODY_INIT,
    BODY_SHAPE,
    BODY_SLOT,
    BODY_REC_INSERT,
    BODY_REC_UPDATE,
    BODY_PATH,
    BODY_PATHS,
    BODY_INDEX_LOAD
} rec_body_t;

typedef struct rec_def {
    redo_op_t op;
    rec_body_t body;
    const char *name;
} rec_def_t;

/* Indexed by type; no name: no such record. */
static const rec_def_t REC_DEFS[SINGLE_REC_FLAG] = {
    [MLOG_1BYTE] = {OP_NUMBER, BODY_NUMBER, "MLOG_1BYTE"},
    [MLOG_2BYTES] = {OP_NUMBER, BODY_NUMBER, "MLOG_2BYTES"},
    [MLOG_4BYTES] = {OP_NUMBER, BODY_NUMBER, "MLOG_4BYTES"},
    [MLOG_8BYTES] = {OP_NUMBER, BODY_NUMBER_64, "MLOG_8BYTES"},
    [MLOG_WRITE_STRING] = {OP_WRITE, BODY_STRING, "MLOG_WRITE_STRING"},
    [MLOG_MULTI_REC_END] = {OP_GROUP_END, BODY_MARKER, "MLOG_MULTI_REC_END"},
    [MLOG_DUMMY_RECORD] = {OP_FILLER, BODY_MARKER, "MLOG_DUMMY_RECORD"},
    [MLOG_FILE_DELETE] = {OP_FILE_DELETE, BODY_PATH, "MLOG_FILE_DELETE"},
    [MLOG_COMP_PAGE_CREATE] = {OP_INDEX_CREATE, BODY_SHAPE, "MLOG_COMP_PAGE_CREATE"},
    [MLOG_COMP_REC_INSERT] = {OP_REC_INSERT, BODY_REC_INSERT, "MLOG_COMP_REC_INSERT"},
    [MLOG_COMP_REC_UPDATE_IN_PLACE] = {OP_REC_UPDATE, BODY_REC_UPDATE,
                                       "MLOG_COMP_REC_UPDATE_IN_PLACE"},
    [MLOG_COMP_REC_DELETE] = {OP_REC_DELETE, BODY_SLOT, "MLOG_COMP_REC_DELETE"},
    [MLOG_COMP_LIST_END_DELETE] = {OP_LIST_END_DELETE, BODY_SLOT, "MLOG_COMP_LIST_END_DELETE"},
    [MLOG_COMP_LIST_START_DELETE] = {OP_LIST_START_DELETE, BODY_SLOT,
                                     "MLOG_COMP_LIST_START_DELETE"},
    [MLOG_COMP_PAGE_REORGANIZE] = {OP_REORGANIZE, BODY_NONE, "MLOG_COMP_PAGE_REORGANIZE"},
    [MLOG_FILE_CREATE2] = {OP_FILE_CREATE, BODY_PATH, "MLOG_FILE_CREATE2"},
    [MLOG_FILE_RENAME2] = {OP_FILE_RENAME, BODY_PATHS, "MLOG_FILE_RENAME2"},
    [MLOG_FILE_NAME] = {OP_FILE_NAME, BODY_PATH, "MLOG_FILE_NAME"},
    [MLOG_CHECKPOINT] = {OP_CHECKPOINT, BODY_CHECKPOINT, "MLOG_CHECKPOINT"},
    [MLOG_INIT_FILE_PAGE2] = {OP_INIT_PAGE, BODY_INIT, "MLOG_INIT_FILE_PAGE2"},
    [MLOG_INDEX_LOAD] = {OP_INDEX_LOAD, BODY_INDEX_LOAD, "MLOG_INDEX_LOAD"},
    [MLOG_MEMSET] = {OP_FILL, BODY_MEMSET, "MLOG_MEMSET"},
    [MLOG_INIT_FREE_PAGE] = {OP_FREE_PAGE, BODY_NONE, "MLOG_INIT_FREE_PAGE"},
};

static const rec_def_t *rec_def_find(uint32_t type)
{
    return type < SINGLE_REC_FLAG && REC_DEFS[type].name != NULL ? &REC_DEFS[type] : NULL;
}

/** The record that says what rec does; 0: there is none. Numbers have one for each width, whose
type is the width. */
static uint32_t rec_type(const redo_rec_t *rec)
{
    static const byte TYPES[] = {
        [OP_INIT_PAGE] = MLOG_INIT_FILE_PAGE2,
        [OP_FREE_PAGE] = MLOG_INIT_FREE_PAGE,
        [OP_WRITE] = MLOG_WRITE_STRING,
        [OP_FILL] = MLOG_MEMSET,
        [OP_INDEX_CREATE] = MLOG_COMP_PAGE_CREATE,
        [OP_REC_INSERT] = MLOG_COMP_REC_INSERT,
        [OP_REC_UPDATE] = MLOG_COMP_REC_UPDATE_IN_PLACE,
        [OP_REC_DELETE] = MLOG_COMP_REC_DELETE,
        [OP_LIST_END_DELETE] = MLOG_COMP_LIST_END_DELETE,
        [OP_LIST_START_DELETE] = MLOG_COMP_LIST_START_DELETE,
        [OP_REORGANIZE] = MLOG_COMP_PAGE_REORGANIZE,
        [OP_INDEX_LOAD] = MLOG_INDEX_LOAD,
        [OP_FILE_CREATE] = MLOG_FILE_CREATE2,
        [OP_TRIM_PAGES] = MLOG_FILE_CREATE2,
        [OP_FILE_DELETE] = MLOG_FILE_DELETE,
        [OP_FILE_RENAME] = MLOG_FILE_RENAME2,
        [OP_FILE_NAME] = MLOG_FILE_NAME,
        [OP_CHECKPOINT] = MLOG_CHECKPOINT,
        [OP_FILLER] = MLOG_DUMMY_RECORD,
        [OP_GROUP_END] = MLOG_MULTI_REC_END,
    };

    if (rec->op == OP_NUMBER) {
        return rec->len;
    }
    return (size_t)rec->op < sizeof(TYPES) ? TYPES[rec->op] : 0;
}

static const char *rec_name_10_4(const redo_rec_t *rec)
{
    const rec_def_t *def = rec_def_find(rec_type(rec));

    return def != NULL ? def->name : "unknown";
}

/* ---- encode ---- */

static byte *put_compressed_long(byte *b, uint32_t v)
{
    if (v < 0x200000U) {
        mach_write_1(b, v >> 16 | 0xC0U);
        mach_write_2(b + 1, v);
        return b + 3;
    }
    if (v < 0x10000000U) {
        mach_write_4(b, v | 0xE0000000U);
        return b + 4;
    }
    mach_write_1(b, 0xF0U);
    mach_write_4(b + 1, v);
    return b + 5;
}

/** Nearly all numbers are below 2^14: these are told where they are asked for, and so does
get_compressed(). */
static inline byte *put_compressed(byte *b, uint32_t v)
{
    if (v < 0x80U) {
        mach_write_1(b, v);
        return b + 1;
    }
    if (v < 0x4000U) {
        mach_write_2(b, v | 0x8000U);
        return b + 2;
    }
    return put_compressed_long(b, v);
}

static byte *put_compressed_64(byte *b, uint64_t v)
{
    b = put_compressed(b, (uint32_t)(v >> 32));
    mach_write_4(b, (uint32_t)v);
    return b + 4;
}

static byte *put_path(byte *b, const char *path, uint32_t len)
{
    return put_bytes(put_fixed(b, len, 2), path, len);
}

static byte *put_body(byte *b, const rec_def_t *def, const redo_rec_t *rec)
{
    switch (def->body) {
    case BODY_NONE:
    case BODY_MARKER:
        return b;
    case BODY_CHECKPOINT:
    case BODY_INDEX_LOAD:
        return put_fixed(b, rec->value, 8);
    case BODY_NUMBER:
        return put_compressed(put_compressed(b, rec->offset), (uint32_t)rec->value);
    case BODY_NUMBER_64:
        return put_compressed_64(put_compressed(b, rec->offset), rec->value);
    case BODY_STRING:
        b = put_compressed(put_compressed(b, rec->offset), rec->len);
        return put_bytes(b, rec->data, rec->len);
    case BODY_MEMSET:
        b = put_compressed(put_compressed(b, rec->offset), rec->len);
        mach_write_1(b, (uint32_t)rec->value);
        return b + 1;
    case BODY_INIT:
        return put_fixed(b, (uint32_t)rec->value, 2);
    case BODY_SHAPE:
        b = put_compressed_64(put_compressed(b, rec->level), rec->index_id);
        return put_compressed(put_compressed(b, rec->rec_size), rec->key_len);
    case BODY_SLOT:
        return put_compressed(b, rec->slot);
    case BODY_REC_INSERT:
        b = put_compressed(put_compressed(b, rec->slot), rec->shared);
        mach_write_1(b, rec->info);
        return put_bytes(put_compressed(b + 1, rec->len), rec->data, rec->len);
    case BODY_REC_UPDATE:
        b = put_compressed(put_compressed(b, rec->slot), rec->offset);
        return put_bytes(put_compressed(b, rec->len), rec->data, rec->len);
    case BODY_PATH:
        return put_path(b, rec->path, rec->path_len);
    case BODY_PATHS:
        b = put_path(b, rec->path, rec->path_len);
        return put_path(b, rec->path2, rec->path2_len);
    }
    return b;
}

static bool body_has_page(rec_body_t body)
{
    return body != BODY_MARKER && body != BODY_CHECKPOINT;
}

static void encode_10_4(redo_context_t *at, const redo_rec_t *rec, byte *buf, size_t buf_size,
                        size_t *len)
{
    uint32_t type = rec_type(rec);
    const rec_def_t *def = rec_def_find(type);
    byte *b = buf + *len;

    CHECK(def != NULL && redo_rec_is_valid(rec));
    CHECK(*len <= buf_size
          && buf_size - *len
                 >= (size_t)LOG_REC_OVERHEAD_MAX + rec->len + rec->path_len + rec->path2_len);
    mach_write_1(b, type);
    b++;
    if (body_has_page(def->body)) {
        b = put_compressed(put_compressed(b, rec->space), rec->page_no);
    }
    *len = (size_t)(put_body(b, def, rec) - buf);
    at->n_recs++;
}

static void finish_10_4(const redo_context_t *at, byte *group, size_t *len)
{
    if (at->n_recs == 1) {
        group[0] |= (byte)SINGLE_REC_FLAG;
    } else {
        group[(*len)++] = MLOG_MULTI_REC_END;
    }
}

/* ---- decode ---- */

static uint32_t get_compressed_long(cursor_t *c)
{
    uint32_t first = get_byte(c);
    uint32_t v = first;
    if (first < 0x80U) {
        return v;
    }
    uint32_t min = 0;
    if (first < 0xC0U) {
        v = (first & 0x3FU) << 8 | get_byte(c);
        min = 0x80U;
    } else if (first < 0xE0U) {
        v = (first & 0x1FU) << 16 | (uint32_t)get_fixed(c, 2);
        min = 0x4000U;
    } else if (first < 0xF0U) {
        v = (first & 0x0FU) << 24 | get_byte(c) << 16;
        v |= (uint32_t)get_fixed(c, 2);
        min = 0x200000U;
    } else if (first == 0xF0U) {
        v = (uint32_t)get_fixed(c, 4);
        min = 0x10000000U;
    } else if (c->err == DB_SUCCESS) {
        c->err = DB_CORRUPTION;
    }
    if (c->err == DB_SUCCESS && v < min) {
        c->err = DB_CORRUPTION;
    }
    return c->err == DB_SUCCESS ? v : 0;
}

static inline uint32_t get_compressed(cursor_t *c)
{
    if (c->err == DB_SUCCESS && c->left >= 2) {
        uint32_t v = mach_read_2(c->pos);
        if (v < 0x8000U) {
            c->pos += 1;
            c->left -= 1;
            return v >> 8;
        }
        if (v >= 0x8080U && v < 0xC000U) {
            c->pos += 2;
            c->left -= 2;
            return v & 0x3FFFU;
        }
    }
    return get_compressed_long(c);
}

static uint64_t get_compressed_64(cursor_t *c)
{
    uint64_t high = get_compressed(c);

    return high << 32 | (uint32_t)get_fixed(c, 4);
}

/** A length, refused before its bytes are waited for when no record can have it. */
static inline uint32_t get_len(cursor_t *c)
{
    uint32_t len = get_compressed(c);

    if (c->err == DB_SUCCESS && (len == 0 || len >= PAGE_SIZE_MAX)) {
        c->err = DB_CORRUPTION;
    }
    return len;
}

static inline void get_data(cursor_t *c, redo_rec_t *rec)
{
    rec->len = get_len(c);
    rec->data = get_bytes(c, rec->len);
}

static const char *get_path(cursor_t *c, uint32_t *len)
{
    *len = (uint32_t)get_fixed(c, 2);
    if (c->err == DB_SUCCESS && (*len == 0 || *len > PATH_LEN_MAX)) {
        c->err = DB_CORRUPTION;
    }
    return (const char *)get_bytes(c, *len);
}

static void get_body(cursor_t *c, uint32_t type, redo_rec_t *rec)
{
    switch (REC_DEFS[type].body) {
    case BODY_NONE:
    case BODY_MARKER:
        break;
    case BODY_CHECKPOINT:
    case BODY_INDEX_LOAD:
        rec->value = get_fixed(c, 8);
        break;
    case BODY_NUMBER:
        rec->len = type;
        rec->offset = get_compressed(c);
        rec->value = get_compressed(c);
        break;
    case BODY_NUMBER_64:
        rec->len = type;
        rec->offset = get_compressed(c);
        rec->value = get_compressed_64(c);
        break;
    case BODY_STRING:
        rec->offset = get_compressed(c);
        get_data(c, rec);
        break;
    case BODY_MEMSET:
        rec->offset = get_compressed(c);
        rec->len = get_len(c);
        rec->value = get_byte(c);
        break;
    case BODY_INIT:
        rec->value = (uint32_t)get_fixed(c, 2);
        break;
    case BODY_SHAPE:
        rec->level = get_compressed(c);
        rec->index_id = get_compressed_64(c);
        rec->rec_size = get_compressed(c);
        rec->key_len = get_compressed(c);
        break;
    case BODY_SLOT:
        rec->slot = get_compressed(c);
        break;
    case BODY_REC_INSERT:
        rec->slot = get_compressed(c);
        rec->shared = get_compressed(c);
        rec->info = get_byte(c);
        get_data(c, rec);
        break;
    case BODY_REC_UPDATE:
        rec->slot = get_compressed(c);
        rec->offset = get_compressed(c);
        get_data(c, rec);
        break;
    case BODY_PATH:
        rec->path = get_path(c, &rec->path_len);
        break;
    case BODY_PATHS:
        rec->path = get_path(c, &rec->path_len);
        rec->path2 = get_path(c, &rec->path2_len);
        break;
    }
}

/** Ends the group here? The flag and the end record say so, each where it may stand only. */
static dberr_t get_group_end(const redo_context_t *at, uint32_t first, bool *last)
{
    bool single = (first & SINGLE_REC_FLAG) != 0;
    bool end = (first & ~SINGLE_REC_FLAG) == MLOG_MULTI_REC_END;

    *last = single || end;
    return (single && (end || at->n_recs > 0)) || (end && at->n_recs == 0) ? DB_CORRUPTION
                                                                           : DB_SUCCESS;
}

static dberr_t decode_10_4(redo_context_t *at, const byte *buf, size_t n, redo_rec_t *rec,
                           size_t *used, bool *last)
{
    cursor_t c = {buf, n, DB_SUCCESS};
    uint32_t first = get_byte(&c);
    uint32_t type = first & ~SINGLE_REC_FLAG;
    const rec_def_t *def = rec_def_find(type);

    if (c.err != DB_SUCCESS) {
        return c.err;
    }
    if (def == NULL || get_group_end(at, first, last) != DB_SUCCESS) {
        return DB_CORRUPTION;
    }
    *rec = (redo_rec_t){.op = def->op};
    if (body_has_page(def->body)) {
        rec->space = get_compressed(&c);
        rec->page_no = get_compressed(&c);
    }
    get_body(&c, type, rec);
    if (rec->op == OP_FILE_CREATE && rec->page_no != 0) {
        rec->op = OP_TRIM_PAGES;
    }
    if (c.err != DB_SUCCESS) {
        return c.err;
    }
    if (rec->op != OP_GROUP_END && !redo_rec_is_valid(rec)) {
        return DB_CORRUPTION;
    }
    *used = n - c.left;
    rec->raw = buf;
    rec->raw_len = (uint32_t)*used;
    at->n_recs++;
    return DB_SUCCESS;
}

const log_format_t log_format_10_4 = {
    .name = "10.4",
    .id = LOG_FORMAT_10_4,
    .unlogged_loads = true,
    .rec_name = rec_name_10_4,
    .encode = encode_10_4,
    .finish = finish_10_4,
    .decode = decode_10_4,
};

static dberr_t decode_10_4_whole(redo_context_t *at, const byte *buf, size_t n, redo_rec_t *rec,
                                 size_t *used, bool *last)
{
    dberr_t err = decode_10_4(at, buf, n, rec, used, last);
    bool known = err == DB_SUCCESS
                 && (rec->op == OP_FILE_NAME || rec->op == OP_CHECKPOINT || rec->op == OP_GROUP_END
                     || rec->op == OP_FILLER);

    return err != DB_SUCCESS || known ? err : DB_CORRUPTION;
}

const log_format_t log_format_10_4_whole = {
    .name = "104",
    .id = 104,
    .unlogged_loads = true,
    .rec_name = rec_name_10_4,
    .decode = decode_10_4_whole,
};
