/* What a redo record does to a page. Above page/; used by mtr/ (running) and recv/ (recovery), so
that both change pages through the same code (I27).

1. A record that does not fit its page returns DB_CORRUPTION and has changed no byte.
2. Of the envelope, a direct write may touch PREV and NEXT, and set the type as a whole: number,
   space, LSN and checksum belong to initialisation and to the flush.
3. The page says that it is the page which the record names, except when the record initialises it.
   */
#include <string.h>

#include "base/check.h"
#include "log/log_codec.h"
#include "log/log_rec.h"
#include "page/page_index.h"

/** May a record write len bytes at offset? */
static bool write_is_valid(uint32_t page_size, uint32_t offset, uint32_t len)
{
    if (len == 0 || offset < FIL_PAGE_PREV || offset > page_size || len > page_size
        || offset + len > page_size - FIL_PAGE_TRAILER) {
        return false;
    }
    return offset >= FIL_PAGE_DATA || offset + len <= FIL_PAGE_LSN
           || (offset == FIL_PAGE_TYPE && len == 2);
}

static dberr_t apply_number(const redo_rec_t *rec, byte *page, uint32_t page_size)
{
    if (!write_is_valid(page_size, rec->offset, rec->len)) {
        return DB_CORRUPTION;
    }
    (void)put_fixed(page + rec->offset, rec->value, rec->len);
    return DB_SUCCESS;
}

static dberr_t apply_create(const redo_rec_t *rec, byte *page, uint32_t page_size)
{
    page_shape_t shape = {
        .level = rec->level,
        .index_id = rec->index_id,
        .rec_size = rec->rec_size,
        .key_len = rec->key_len,
    };

    return page_index_create(page, page_size, &shape);
}

dberr_t log_rec_apply(const redo_rec_t *rec, byte *page, uint32_t page_size)
{
    page_id_t id = {rec->space, rec->page_no};
    CHECK(page_size_is_valid(page_size));
    if (rec->op == OP_INIT_PAGE) {
        fil_page_init(page, page_size, id, (page_type_t)rec->value);
        return DB_SUCCESS;
    }
    if (rec->op == OP_FREE_PAGE) {
        return DB_SUCCESS;
    }
    if (!page_id_eq(fil_page_get_id(page), id)) {
        return DB_CORRUPTION;
    }
    switch (rec->op) {
    case OP_NUMBER:
        return apply_number(rec, page, page_size);
    case OP_WRITE:
        if (!write_is_valid(page_size, rec->offset, rec->len)) {
            return DB_CORRUPTION;
        }
        memmove(page + rec->offset, rec->data, rec->len);
        return DB_SUCCESS;
    case OP_FILL:
        if (!write_is_valid(page_size, rec->offset, rec->len)) {
            return DB_CORRUPTION;
        }
        memset(page + rec->offset, (int)rec->value, rec->len);
        return DB_SUCCESS;
    case OP_MOVE:
        if (!write_is_valid(page_size, rec->offset, rec->len) || rec->from > page_size - rec->len) {
            return DB_CORRUPTION;
        }
        memmove(page + rec->offset, page + rec->from, rec->len);
        return DB_SUCCESS;
    case OP_PAGE_CHECKSUM:
        return fil_page_contents_checksum(page, page_size) == rec->value ? DB_SUCCESS
                                                                         : DB_CORRUPTION;
    case OP_INDEX_CREATE:
        return apply_create(rec, page, page_size);
    case OP_REC_INSERT:
        return page_rec_insert(page, page_size, rec->slot,
                               &(rec_delta_t){rec->info, rec->shared, rec->data, rec->len});
    case OP_REC_UPDATE:
        return page_rec_update(page, page_size, rec->slot, rec->offset, rec->data, rec->len);
    case OP_REC_DELETE:
        return page_rec_delete(page, page_size, rec->slot);
    case OP_LIST_END_DELETE:
        return page_list_end_delete(page, page_size, rec->slot);
    case OP_LIST_START_DELETE:
        return page_list_start_delete(page, page_size, rec->slot);
    case OP_REORGANIZE:
        return page_reorganize(page, page_size);
    default:
        return DB_CORRUPTION;
    }
}
