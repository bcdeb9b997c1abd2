/* Redo operations, whatever the format: what is possible, and groups of them. Above os/; knows
bytes, no pages.

1. What is_valid() refuses, no format encodes and none decodes: what the engine writes, recovery can
   read. */
#include "log/log_rec.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/mach.h"
#include "os/os.h"

#define GROUP_BYTES_INITIAL 1024U

bool redo_op_is_page(redo_op_t op)
{
    return op >= OP_INIT_PAGE && op <= OP_PAGE_CHECKSUM;
}

/** Do len bytes at an offset lie before the end of the largest page? */
static bool range_is_valid(uint32_t offset, uint32_t len)
{
    return len > 0 && offset < PAGE_SIZE_MAX && len < PAGE_SIZE_MAX
           && offset + len <= PAGE_SIZE_MAX;
}

static bool number_is_valid(const redo_rec_t *rec)
{
    bool width = rec->len == 1 || rec->len == 2 || rec->len == 4 || rec->len == 8;
    return width && range_is_valid(rec->offset, rec->len)
           && (rec->len == 8 || rec->value >> (8 * rec->len) == 0);
}

bool redo_rec_is_valid(const redo_rec_t *rec)
{
    switch (rec->op) {
    case OP_FREE_PAGE:
    case OP_REORGANIZE:
    case OP_INDEX_LOAD:
    case OP_CHECKPOINT:
    case OP_FILLER:
        return true;
    case OP_INIT_PAGE:
        return rec->value <= 0xFFFF;
    case OP_NUMBER:
        return number_is_valid(rec);
    case OP_WRITE:
        return range_is_valid(rec->offset, rec->len);
    case OP_FILL:
        return range_is_valid(rec->offset, rec->len) && rec->value <= 0xFF;
    case OP_MOVE:
        return range_is_valid(rec->offset, rec->len) && range_is_valid(rec->from, rec->len)
               && rec->from != rec->offset;
    case OP_INDEX_CREATE:
        return rec->level <= 0xFF && rec->rec_size < PAGE_SIZE_MAX
               && rec->key_len < (rec->rec_size != 0 ? rec->rec_size : PAGE_SIZE_MAX);
    case OP_REC_INSERT:
        return rec->slot < PAGE_SIZE_MAX && rec->info <= 0xFF
               && range_is_valid(rec->shared, rec->len) && (rec->shared == 0 || rec->slot > 0);
    case OP_REC_UPDATE:
        return rec->slot < PAGE_SIZE_MAX && range_is_valid(rec->offset, rec->len);
    case OP_REC_DELETE:
    case OP_LIST_END_DELETE:
    case OP_LIST_START_DELETE:
        return rec->slot < PAGE_SIZE_MAX;
    case OP_PAGE_CHECKSUM:
        return rec->value <= UINT32_MAX;
    case OP_FILE_RENAME:
        if (!os_path_is_valid(rec->path2, rec->path2_len)) {
            return false;
        }
        /* fall through */
    case OP_FILE_CREATE:
    case OP_FILE_DELETE:
    case OP_FILE_NAME:
        return rec->page_no == 0 && os_path_is_valid(rec->path, rec->path_len);
    case OP_TRIM_PAGES:
        return rec->page_no > 0
               && (rec->path_len == 0 || os_path_is_valid(rec->path, rec->path_len));
    case OP_NONE:
    case OP_GROUP_END:
        return false;
    }
    return false;
}

bool redo_rec_writes(const redo_rec_t *rec, uint32_t offset, uint32_t len, uint64_t *value)
{
    if (rec->op == OP_NUMBER && rec->offset == offset && rec->len == len) {
        *value = rec->value;
        return true;
    }
    if (rec->op == OP_WRITE && rec->offset == offset && rec->len == len && len <= 8) {
        *value = 0;
        for (uint32_t i = 0; i < len; i++) {
            *value = *value << 8 | rec->data[i];
        }
        return true;
    }
    return false;
}

/* ---- groups ---- */

static void group_reserve(redo_group_t *group, size_t more)
{
    size_t size = group->size != 0 ? group->size : GROUP_BYTES_INITIAL;
    while (size < group->len + more) {
        size *= 2;
    }
    if (size != group->size) {
        group->bytes = realloc(group->bytes, size);
        CHECK(group->bytes != NULL);
        group->size = size;
    }
}

void redo_group_init(redo_group_t *group, const log_format_t *format)
{
    *group = (redo_group_t){.format = format};
}

void redo_group_add(redo_group_t *group, const redo_rec_t *rec)
{
    group_reserve(group, (size_t)LOG_REC_OVERHEAD_MAX + rec->len + rec->path_len + rec->path2_len);
    group->format->encode(&group->at, rec, group->bytes, group->size, &group->len);
}

void redo_group_prepend(redo_group_t *group, const redo_group_t *first)
{
    if (first->len == 0) {
        return;
    }
    group_reserve(group, first->len);
    memmove(group->bytes + first->len, group->bytes, group->len);
    memcpy(group->bytes, first->bytes, first->len);
    group->len += first->len;
    group->at.n_recs += first->at.n_recs;
}

void redo_group_finish(redo_group_t *group)
{
    CHECK(group->len > 0);
    group_reserve(group, LOG_REC_OVERHEAD_MAX);
    group->format->finish(&group->at, group->bytes, &group->len);
}

void redo_group_free(redo_group_t *group)
{
    free(group->bytes);
    *group = (redo_group_t){.format = group->format};
}
