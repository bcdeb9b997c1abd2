/* Redo records in the 10.5 format (MDEV-12353): physical, page ids once per run of records. The
encoder; log_read_10_5.c has the decoder. Beside log_rec.c.

1. Encoder and decoder keep the same context: page of the last record, and where it ended. Offsets
   count from there, never back; that takes the page id again.

Bytes. A record is its first byte, length bytes if need be, and as many bytes as these tell:

    bit 7       1: the page of the record before; without one in the group: a record of a file
    bits 6..4   type
    bits 3..0   bytes to follow, 1 to 15; 0: 1 to 3 length bytes tell their number - 16

A byte 0 ends the group. An integer (v), each form from where the shorter one ends:

    0xxxxxxx               0 to 127           1110xxxx + 3 bytes   2113664 to 270549119
    10xxxxxx + 1 byte    128 to 16511         11110000 + 4 bytes   from there, less its start
    110xxxxx + 2 bytes 16512 to 2113663

Page records: without bit 7 they go on with space v, page v. Then

    0 FREE_PAGE  -                               with page id always
    1 INIT_PAGE  -                               with page id always; the page's type is a WRITE
    2 EXTENDED   subtype 1 byte:
        0 INIT_INDEX  level v, index id 8 bytes, record size v, key length v
        6 INSERT      slot v, info 1 byte, shared v, bytes to the end
        9 DELETE      slot v
        10 TRIM_PAGES - ; the page is the first one that is not in the file; with page id always
    3 WRITE      offset v, bytes to the end
    4 MEMSET     offset v, length v, value 1 byte
    5 MEMMOVE    offset v, length v, distance of the source v: +x = 2(x - 1), -x = 2(x - 1) + 1
    7 OPTION     0 1 byte, CRC-32C 4 bytes

Offsets count from the end of the record before, from 0 behind a page id, from FIL_PAGE_TYPE behind
INIT_PAGE and EXTENDED. Records of files, bit 7 set, in front of those of pages:

    0 FILE_CREATE, 1 FILE_DELETE, 3 FILE_MODIFY   space v, path to the end
    2 FILE_RENAME                                 space v, path, a byte 0, path to the end
    7 FILE_CHECKPOINT                             LSN 8 bytes                                  */
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "log/log_rec_10_5.h"

static const char *rec_name_10_5(const redo_rec_t *rec)
{
    static const char *const NAMES[] = {
        [OP_INIT_PAGE] = "INIT_PAGE",
        [OP_FREE_PAGE] = "FREE_PAGE",
        [OP_NUMBER] = "WRITE",
        [OP_WRITE] = "WRITE",
        [OP_FILL] = "MEMSET",
        [OP_MOVE] = "MEMMOVE",
        [OP_INDEX_CREATE] = "INIT_INDEX",
        [OP_REC_INSERT] = "INSERT",
        [OP_REC_UPDATE] = "WRITE",
        [OP_LIST_END_DELETE] = "MEMMOVE",
        [OP_LIST_START_DELETE] = "MEMMOVE",
        [OP_REORGANIZE] = "MEMMOVE",
        [OP_REC_DELETE] = "DELETE",
        [OP_PAGE_CHECKSUM] = "OPTION",
        [OP_FILE_CREATE] = "FILE_CREATE",
        [OP_FILE_DELETE] = "FILE_DELETE",
        [OP_FILE_RENAME] = "FILE_RENAME",
        [OP_FILE_NAME] = "FILE_MODIFY",
        [OP_TRIM_PAGES] = "TRIM_PAGES",
        [OP_CHECKPOINT] = "FILE_CHECKPOINT",
    };
    const char *name = (size_t)rec->op < sizeof(NAMES) / sizeof(NAMES[0]) ? NAMES[rec->op] : NULL;

    return name != NULL ? name : "unknown";
}

static byte *put_varint(byte *b, uint32_t v)
{
    if (v < VARINT_MIN[2]) {
        mach_write_1(b, v);
        return b + 1;
    }
    if (v < VARINT_MIN[3]) {
        mach_write_2(b, (v - VARINT_MIN[2]) | 0x8000U);
        return b + 2;
    }
    if (v < VARINT_MIN[4]) {
        mach_write_1(b, (v - VARINT_MIN[3]) >> 16 | 0xC0U);
        mach_write_2(b + 1, v - VARINT_MIN[3]);
        return b + 3;
    }
    if (v < VARINT_MIN[5]) {
        mach_write_4(b, (v - VARINT_MIN[4]) | 0xE0000000U);
        return b + 4;
    }
    mach_write_1(b, 0xF0U);
    mach_write_4(b + 1, v - VARINT_MIN[5]);
    return b + 5;
}

static uint32_t file_type(redo_op_t op)
{
    switch (op) {
    case OP_FILE_CREATE:
        return FILE_CREATE;
    case OP_FILE_DELETE:
        return FILE_DELETE;
    case OP_FILE_RENAME:
        return FILE_RENAME;
    case OP_FILE_NAME:
        return FILE_MODIFY;
    default:
        return FILE_CHECKPOINT;
    }
}

static byte *put_file_body(byte *b, const redo_rec_t *rec)
{
    if (rec->op == OP_CHECKPOINT) {
        return put_fixed(b, rec->value, 8);
    }
    b = put_bytes(put_varint(b, rec->space), rec->path, rec->path_len);
    if (rec->op == OP_FILE_RENAME) {
        *b++ = 0;
        b = put_bytes(b, rec->path2, rec->path2_len);
    }
    return b;
}

static uint32_t page_type(redo_op_t op)
{
    switch (op) {
    case OP_FREE_PAGE:
        return FREE_PAGE;
    case OP_INIT_PAGE:
        return INIT_PAGE;
    case OP_NUMBER:
    case OP_WRITE:
        return WRITE;
    case OP_FILL:
        return MEMSET;
    case OP_MOVE:
        return MEMMOVE;
    case OP_PAGE_CHECKSUM:
        return OPTION;
    case OP_INDEX_CREATE:
    case OP_REC_INSERT:
    case OP_REC_DELETE:
    case OP_TRIM_PAGES:
        return EXTENDED;
    default:
        return RESERVED;
    }
}

static byte *put_distance(byte *b, const redo_rec_t *rec)
{
    return rec->from > rec->offset ? put_varint(b, 2 * (rec->from - rec->offset - 1))
                                   : put_varint(b, 2 * (rec->offset - rec->from - 1) + 1);
}

/** offset: of the record, as it is written. */
static byte *put_page_body(byte *b, const redo_rec_t *rec, uint32_t offset)
{
    switch (rec->op) {
    case OP_NUMBER:
        return put_fixed(put_varint(b, offset), rec->value, rec->len);
    case OP_WRITE:
        return put_bytes(put_varint(b, offset), rec->data, rec->len);
    case OP_FILL:
        b = put_varint(put_varint(b, offset), rec->len);
        *b++ = (byte)rec->value;
        return b;
    case OP_MOVE:
        return put_distance(put_varint(put_varint(b, offset), rec->len), rec);
    case OP_INDEX_CREATE:
        *b++ = INIT_INDEX;
        b = put_fixed(put_varint(b, rec->level), rec->index_id, 8);
        return put_varint(put_varint(b, rec->rec_size), rec->key_len);
    case OP_REC_INSERT:
        *b++ = INSERT;
        b = put_varint(b, rec->slot);
        *b++ = (byte)rec->info;
        return put_bytes(put_varint(b, rec->shared), rec->data, rec->len);
    case OP_REC_DELETE:
        *b++ = DELETE;
        return put_varint(b, rec->slot);
    case OP_TRIM_PAGES:
        *b++ = TRIM_PAGES;
        return b;
    case OP_PAGE_CHECKSUM:
        *b++ = OPTION_PAGE_CHECKSUM;
        return put_fixed(b, rec->value, 4);
    default:
        return b; /* FREE_PAGE, INIT_PAGE */
    }
}

/** Puts first byte and length in front of the body, which stands at b + 1 + LEN_BYTES_MAX. @return
its end */
static byte *put_head(byte *b, uint32_t first, const byte *body_end)
{
    const byte *body = b + 1 + LEN_BYTES_MAX;
    uint32_t len = (uint32_t)(body_end - body);

    CHECK(len > 0 && len <= BODY_MAX);
    mach_write_1(b, first | (len <= LEN_MASK ? len : 0));
    b++;
    if (len > LEN_MASK) {
        b = put_varint(b, len - LEN_MASK - 1);
    }
    memmove(b, body, len);
    return b + len;
}

static byte *put_page_rec(redo_context_t *at, const redo_rec_t *rec, byte *b)
{
    page_id_t id = {rec->space, rec->page_no};
    uint32_t type = page_type(rec->op);
    bool same = at->has_page && page_id_eq(at->page, id) && type != FREE_PAGE && type != INIT_PAGE
                && (!op_has_offset(rec->op) || rec->offset >= at->offset);
    byte *body = b + 1 + LEN_BYTES_MAX;

    CHECK(type != RESERVED);
    if (!same) {
        *at = (redo_context_t){.n_recs = at->n_recs, .has_page = true, .page = id};
        body = put_varint(put_varint(body, rec->space), rec->page_no);
    }
    body = put_page_body(body, rec, rec->offset - at->offset);
    at->offset = next_offset(at, rec);
    return put_head(b, (same ? SAME_PAGE : 0) | type << 4, body);
}

static void encode_10_5(redo_context_t *at, const redo_rec_t *rec, byte *buf, size_t buf_size,
                        size_t *len)
{
    byte *b = buf + *len;

    CHECK(redo_rec_is_valid(rec));
    CHECK(*len <= buf_size
          && buf_size - *len
                 >= (size_t)LOG_REC_OVERHEAD_MAX + rec->len + rec->path_len + rec->path2_len);
    if (page_type(rec->op) != RESERVED) {
        b = put_page_rec(at, rec, b);
    } else {
        CHECK(!at->has_page && rec->op != OP_INDEX_LOAD && rec->op != OP_FILLER);
        b = put_head(b, SAME_PAGE | file_type(rec->op) << 4,
                     put_file_body(b + 1 + LEN_BYTES_MAX, rec));
    }
    if (rec->op == OP_INIT_PAGE && rec->value != 0) {
        const redo_rec_t type = {.op = OP_NUMBER,
                                 .space = rec->space,
                                 .page_no = rec->page_no,
                                 .offset = FIL_PAGE_TYPE,
                                 .len = 2,
                                 .value = rec->value};
        b = put_page_rec(at, &type, b);
    }
    *len = (size_t)(b - buf);
    at->n_recs++;
}

static void finish_10_5(const redo_context_t *at, byte *group, size_t *len)
{
    (void)at;
    group[(*len)++] = 0;
}

const log_format_t log_format_10_5 = {
    .name = "10.5",
    .id = LOG_FORMAT_10_5,
    .all_frees = true,
    .page_checksums = true,
    .by_bytes = true,
    .rec_name = rec_name_10_5,
    .encode = encode_10_5,
    .finish = finish_10_5,
    .decode = decode_10_5,
};
