/* Redo records in the 10.5 format, read: log_rec_10_5.c tells the bytes.

1. decode is total: any bytes give a record, DB_NOT_FOUND (more bytes are needed) or DB_CORRUPTION,
   and no byte beyond buf[n] is read. An integer has one form.
2. The context changes with a whole record only. */
#include <string.h>

#include "log/log_rec_10_5.h"

static uint32_t get_varint(cursor_t *c)
{
    uint32_t first = (uint32_t)get_fixed(c, 1);
    uint32_t more = first < 0x80U   ? 0
                    : first < 0xC0U ? 1
                    : first < 0xE0U ? 2
                    : first < 0xF0U ? 3
                                    : 4;
    uint32_t high = first & (0x7FU >> more);
    if (more == 0) {
        return first;
    }
    uint64_t v = get_fixed(c, more);
    v |= more < 4 ? (uint64_t)high << 8 * more : 0;
    v += VARINT_MIN[more + 1];
    if (c->err == DB_SUCCESS && (v > UINT32_MAX || (more == 4 && first != 0xF0U))) {
        c->err = DB_CORRUPTION;
    }
    return c->err == DB_SUCCESS ? (uint32_t)v : 0;
}

static void get_rest(cursor_t *c, redo_rec_t *rec)
{
    if (c->err == DB_SUCCESS) {
        rec->len = (uint32_t)c->left;
        rec->data = get_bytes(c, c->left);
    }
}

static void get_extended(cursor_t *c, redo_rec_t *rec)
{
    switch (get_fixed(c, 1)) {
    case INIT_INDEX:
        rec->op = OP_INDEX_CREATE;
        rec->level = get_varint(c);
        rec->index_id = get_fixed(c, 8);
        rec->rec_size = get_varint(c);
        rec->key_len = get_varint(c);
        break;
    case INSERT:
        rec->op = OP_REC_INSERT;
        rec->slot = get_varint(c);
        rec->info = (uint32_t)get_fixed(c, 1);
        rec->shared = get_varint(c);
        get_rest(c, rec);
        break;
    case DELETE:
        rec->op = OP_REC_DELETE;
        rec->slot = get_varint(c);
        break;
    case TRIM_PAGES:
        rec->op = OP_TRIM_PAGES;
        break;
    default:
        c->err = DB_CORRUPTION;
    }
}

/** An offset, from what it counts from. Beyond any page it stays beyond, without a wrap. */
static uint32_t get_offset(cursor_t *c, const redo_context_t *at)
{
    uint32_t offset = get_varint(c);
    return offset < PAGE_SIZE_MAX ? at->offset + offset : PAGE_SIZE_MAX;
}

static void get_move(cursor_t *c, const redo_context_t *at, redo_rec_t *rec)
{
    rec->op = OP_MOVE;
    rec->offset = get_offset(c, at);
    rec->len = get_varint(c);
    uint32_t distance = get_varint(c);
    rec->from = rec->offset + distance / 2 + 1;
    if (distance % 2 != 0) {
        rec->from = rec->offset - distance / 2 - 1;
    }
}

static void get_page_body(cursor_t *c, uint32_t type, const redo_context_t *at, redo_rec_t *rec)
{
    switch (type) {
    case FREE_PAGE:
        rec->op = OP_FREE_PAGE;
        break;
    case INIT_PAGE:
        rec->op = OP_INIT_PAGE;
        break;
    case EXTENDED:
        get_extended(c, rec);
        break;
    case WRITE:
        rec->op = OP_WRITE;
        rec->offset = get_offset(c, at);
        get_rest(c, rec);
        break;
    case MEMSET:
        rec->op = OP_FILL;
        rec->offset = get_offset(c, at);
        rec->len = get_varint(c);
        rec->value = get_fixed(c, 1);
        break;
    case MEMMOVE:
        get_move(c, at, rec);
        break;
    case OPTION:
        rec->op = OP_PAGE_CHECKSUM;
        if (get_fixed(c, 1) != OPTION_PAGE_CHECKSUM) {
            c->err = DB_CORRUPTION;
        }
        rec->value = get_fixed(c, 4);
        break;
    default:
        c->err = DB_CORRUPTION;
    }
}

static void get_page_rec(cursor_t *c, uint32_t first, redo_context_t *at, redo_rec_t *rec)
{
    uint32_t type = first >> 4 & 7;
    if ((first & SAME_PAGE) == 0) {
        at->page.space = get_varint(c);
        at->page.page_no = get_varint(c);
        at->has_page = true;
        at->freed = false;
        at->offset = 0;
    } else if (type == FREE_PAGE || type == INIT_PAGE || at->freed) {
        c->err = DB_CORRUPTION;
    }
    rec->space = at->page.space;
    rec->page_no = at->page.page_no;
    get_page_body(c, type, at, rec);
    at->freed = rec->op == OP_FREE_PAGE || rec->op == OP_TRIM_PAGES;
    at->offset = next_offset(at, rec);
}

static void get_paths(cursor_t *c, bool two, redo_rec_t *rec)
{
    const byte *end = c->err == DB_SUCCESS && two ? memchr(c->pos, 0, c->left) : NULL;
    if (two && end == NULL) {
        c->err = DB_CORRUPTION;
        return;
    }
    rec->path_len = (uint32_t)(two ? (size_t)(end - c->pos) : c->left);
    rec->path = (const char *)get_bytes(c, rec->path_len);
    if (two) {
        (void)get_bytes(c, 1);
        rec->path2_len = (uint32_t)c->left;
        rec->path2 = (const char *)get_bytes(c, c->left);
    }
}

static void get_file_rec(cursor_t *c, uint32_t type, redo_rec_t *rec)
{
    static const redo_op_t OPS[8] = {[FILE_CREATE] = OP_FILE_CREATE,
                                     [FILE_DELETE] = OP_FILE_DELETE,
                                     [FILE_RENAME] = OP_FILE_RENAME,
                                     [FILE_MODIFY] = OP_FILE_NAME,
                                     [FILE_CHECKPOINT] = OP_CHECKPOINT};

    rec->op = OPS[type];
    if (rec->op == OP_CHECKPOINT) {
        rec->value = get_fixed(c, 8);
    } else if (rec->op != OP_NONE) {
        rec->space = get_varint(c);
        get_paths(c, rec->op == OP_FILE_RENAME, rec);
    }
}

/** The number of bytes that follow the first one and the length bytes. */
static uint32_t get_body_len(cursor_t *c, uint32_t first)
{
    uint32_t len = first & LEN_MASK;
    if (len == 0) {
        len = get_varint(c);
        if (c->err == DB_SUCCESS && len >= BODY_MAX - LEN_MASK) {
            c->err = DB_CORRUPTION;
        }
        len += LEN_MASK + 1;
    }
    return len;
}

dberr_t decode_10_5(redo_context_t *at, const byte *buf, size_t n, redo_rec_t *rec, size_t *used,
                    bool *last)
{
    cursor_t c = {buf, n, DB_SUCCESS};
    uint32_t first = (uint32_t)get_fixed(&c, 1);
    redo_context_t next = *at;
    if (c.err != DB_SUCCESS) {
        return c.err;
    }
    *rec = (redo_rec_t){.op = OP_GROUP_END};
    *last = first == 0;
    if (first == 0) {
        *used = 1;
        return at->n_recs > 0 ? DB_SUCCESS : DB_CORRUPTION;
    }
    uint32_t len = get_body_len(&c, first);
    const byte *bytes = get_bytes(&c, len);
    if (c.err != DB_SUCCESS) {
        return c.err;
    }
    cursor_t body = {bytes, len, DB_SUCCESS};
    if ((first & SAME_PAGE) != 0 && !at->has_page) {
        get_file_rec(&body, first >> 4 & 7, rec);
    } else {
        get_page_rec(&body, first, &next, rec);
    }
    if (body.err != DB_SUCCESS || body.left > 0 || !redo_rec_is_valid(rec)) {
        return DB_CORRUPTION;
    }
    next.n_recs++;
    *at = next;
    *used = n - c.left;
    return DB_SUCCESS;
}
