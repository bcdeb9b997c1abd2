/* Reading the log's bytes, by the description of the format (FORMAT.md) and not through the
engine's reader: a bug that both shared would hide. Records alone are decoded by log/.

Place: beside redo.c, which keeps what is read here.

    blocks from end_lsn on --number, checksum, epoch--> payload --complete group--> index, end_lsn
    moves on
                           \--not so: the log ends

Rules
1. nothing is taken from a group that is not complete, nor from a block that is not valid: reading
   stops there, and starts there again when it is asked to go on;
2. a block equal to the one that another log has at the same LSN holds the same groups
   (redo_share). */
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/mach.h"
#include "check/check_format.h"
#include "explorer/judge/redo_int.h"

void *redo_grow(void *items, uint32_t n, uint32_t *capacity, size_t item_bytes)
{
    if (n == *capacity) {
        *capacity = *capacity == 0 ? 32 : *capacity * 2;
        items = mem_grow(items, *capacity * item_bytes);
    }
    memset((byte *)items + n * item_bytes, 0, item_bytes);
    return items;
}

/* ---- places and blocks ---- */

static uint64_t area_size(const redo_t *redo)
{
    return redo->info.file_size - LOG_FILE_HDR_SIZE;
}

uint64_t redo_offset(const redo_t *redo, lsn_t block_lsn)
{
    return LOG_FILE_HDR_SIZE + (block_lsn - redo->info.start_lsn) % area_size(redo);
}

const byte *redo_block(const redo_t *redo, uint64_t offset)
{
    return image_view(redo->image, redo->inode, offset, LOG_BLOCK_SIZE, NULL);
}

/** Number, checksum and lengths as they must be? */
static bool block_is_valid(const byte *block, lsn_t block_lsn)
{
    return mach_read_4(block + LOG_BLOCK_NO) == (uint32_t)(block_lsn / LOG_BLOCK_SIZE)
           && mach_read_4(block + LOG_CRC_OFFSET) == crc32c(block, LOG_CRC_OFFSET)
           && log_block_is_sane(block);
}

void redo_keep(redo_t *redo, lsn_t block_lsn, const byte *block)
{
    if (!redo->keep_history || block_lsn < redo->info.start_lsn
        || block_lsn - redo->info.start_lsn > redo->history_bytes) {
        return;
    }
    uint64_t at = block_lsn - redo->info.start_lsn;
    if (at == redo->history_bytes) {
        if (at + LOG_BLOCK_SIZE > redo->history_capacity) {
            redo->history_capacity =
                redo->history_capacity == 0 ? 64U * 1024U : redo->history_capacity * 2;
            redo->history = mem_grow(redo->history, redo->history_capacity);
        }
        redo->history_bytes += LOG_BLOCK_SIZE;
    }
    memcpy(redo->history + at, block, LOG_BLOCK_SIZE);
}

/* ---- records ---- */

/** Copies a path that the log holds without an end. */
static void path_copy(char out[PATH_LEN_MAX + 1], const char *path, uint32_t len)
{
    if (len > 0) {
        memcpy(out, path, len); /* decode() has held it against PATH_LEN_MAX */
    }
    out[len] = '\0';
}

/** What a page record does; plain bytes are what they are, whatever the page held. */
static redo_touch_t touch_of(redo_op_t op, lsn_t start_lsn, lsn_t end_lsn)
{
    redo_touch_t touch = {.kind = REDO_CHANGE, .start_lsn = start_lsn, .end_lsn = end_lsn};
    switch (op) {
    case OP_INIT_PAGE:
        touch.kind = REDO_INIT;
        break;
    case OP_FREE_PAGE:
        touch.kind = REDO_FREE;
        break;
    case OP_NUMBER:
    case OP_WRITE:
    case OP_FILL:
        break;
    default:
        touch.relies = true;
    }
    return touch;
}

static void note_page(redo_t *redo, uint64_t key, const redo_touch_t *touch)
{
    redo_add(redo, key, touch->kind, touch->start_lsn, touch->end_lsn);
    if (redo->on_page != NULL) {
        redo->on_page(redo->ctx, key, touch);
    }
}

/** A record that says of an extent's descriptor that it is free. Descriptors are in page 0 and in
each page that follows what one describes. */
static void note_extent(redo_t *redo, const redo_rec_t *rec, lsn_t end_lsn)
{
    uint32_t pages = redo->info.extent_pages;
    uint32_t covers = redo->info.page_size / extent_pages_default(redo->info.page_size) * pages;
    uint32_t size = CHK_XDES_BITMAP + pages / 8;
    uint64_t state = 0;
    if (rec->page_no % covers != 0 || rec->offset < CHK_FSP_XDES
        || (rec->offset - CHK_FSP_XDES) % size != CHK_XDES_STATE
        || !redo_rec_writes(rec, rec->offset, 4, &state) || state != CHK_XDES_FREE) {
        return;
    }
    uint32_t extent = (rec->offset - CHK_FSP_XDES) / size;
    if (extent < covers / pages) {
        *REDO_PUSH(&redo->extents) =
            (redo_extent_t){end_lsn, redo_key(rec->space, rec->page_no + extent * pages)};
    }
}

static void note_record(redo_t *redo, const redo_rec_t *rec, lsn_t start_lsn, lsn_t end_lsn)
{
    switch (rec->op) {
    case OP_INDEX_LOAD: {
        redo_load_t *load = REDO_PUSH(&redo->loads);
        *load = (redo_load_t){start_lsn, end_lsn, rec->space, rec->value};
        if (redo->on_load != NULL) {
            redo->on_load(redo->ctx, load);
        }
        break;
    }
    case OP_TRIM_PAGES:
        *REDO_PUSH(&redo->trims) = (redo_trim_t){end_lsn, rec->space};
        break;
    case OP_FILE_CREATE:
    case OP_FILE_DELETE:
    case OP_FILE_RENAME:
    case OP_FILE_NAME: {
        redo_file_t *file = REDO_PUSH(&redo->files);
        file->op = rec->op;
        file->end_lsn = end_lsn;
        file->space = rec->space;
        path_copy(file->path, rec->path, rec->path_len);
        path_copy(file->path2, rec->path2, rec->path2_len);
        break;
    }
    case OP_CHECKPOINT:
        *REDO_PUSH(&redo->markers) = (redo_marker_t){start_lsn, end_lsn, rec->value};
        break;
    default:
        if (redo_op_is_page(rec->op)) {
            redo_touch_t touch = touch_of(rec->op, start_lsn, end_lsn);
            note_page(redo, redo_key(rec->space, rec->page_no), &touch);
            note_extent(redo, rec, end_lsn);
        }
    }
}

/** Where a group of the payload stands. Its end is found before a record is noted; what was decoded
on the way is kept, as long as it is no more than REDO_RECS_KEPT records, and where the payload
stays. */
typedef struct group_scan {
    size_t start;
    size_t at;
    redo_context_t context;
    uint32_t n_kept;
} group_scan_t;

/** Finds the end of the group. False: it is not all there, or it is impossible. */
static bool group_find_end(redo_t *redo, size_t n, group_scan_t *scan)
{
    for (bool last = false; !last;) {
        bool keep = scan->n_kept < REDO_RECS_KEPT;
        redo_rec_t *rec = &redo->recs[keep ? scan->n_kept : REDO_RECS_KEPT];
        size_t used = 0;
        if (redo->format->decode(&scan->context, redo->payload + scan->at, n - scan->at, rec, &used,
                                 &last)
                != DB_SUCCESS
            || scan->at + used - scan->start > LOG_GROUP_LEN_MAX) {
            return false;
        }
        scan->at += used;
        scan->n_kept++;
    }
    return true;
}

/** Of a group with more records than are kept. */
static void group_decode_again(redo_t *redo, const group_scan_t *scan, lsn_t start_lsn)
{
    redo_context_t context = {.n_recs = 0};
    for (size_t at = scan->start; at < scan->at;) {
        redo_rec_t rec;
        size_t used = 0;
        bool last = false;
        if (redo->format->decode(&context, redo->payload + at, scan->at - at, &rec, &used, &last)
            != DB_SUCCESS) {
            return; /* it was decoded before */
        }
        note_record(redo, &rec, start_lsn, redo->end_lsn);
        at += used;
    }
}

static void group_note(redo_t *redo, const group_scan_t *scan)
{
    lsn_t start_lsn = redo->end_lsn;
    redo->end_lsn =
        log_lsn_add(start_lsn, scan->at - scan->start); /* before the listeners hear of it */
    *REDO_PUSH(&redo->ends) = redo->end_lsn;
    if (scan->n_kept > REDO_RECS_KEPT) {
        group_decode_again(redo, scan, start_lsn);
        return;
    }
    for (uint32_t i = 0; i < scan->n_kept; i++) {
        note_record(redo, &redo->recs[i], start_lsn, redo->end_lsn);
    }
}

/* ---- reading ---- */

/** A group that has begun starts over if its bytes move: records lead into them. */
static void payload_add(redo_t *redo, size_t n, const byte *bytes, size_t len, group_scan_t *scan)
{
    if (len == 0) {
        return; /* there may be no memory yet */
    }
    if (n + len > redo->payload_capacity) {
        redo->payload_capacity = redo->payload_capacity == 0 ? 8U * 1024U : redo->payload_capacity;
        while (redo->payload_capacity < n + len) {
            redo->payload_capacity *= 2;
        }
        redo->payload = mem_grow(redo->payload, redo->payload_capacity);
        *scan = (group_scan_t){.start = scan->start, .at = scan->start};
    }
    memcpy(redo->payload + n, bytes, len);
}

void redo_extend(redo_t *redo)
{
    lsn_t block_lsn = lsn_block(redo->end_lsn);
    uint32_t skip = lsn_offset(redo->end_lsn);
    uint32_t epoch = redo->epoch;
    size_t n = 0;
    group_scan_t scan = {.start = 0};
    bool more = true;
    while (more && block_lsn < LOG_LSN_LIMIT && n <= LOG_GROUP_LEN_MAX + scan.start) {
        const byte *block = redo_block(redo, redo_offset(redo, block_lsn));
        uint32_t block_epoch = mach_read_4(block + LOG_BLOCK_EPOCH);
        if (!block_is_valid(block, block_lsn) || block_epoch < epoch) {
            return;
        }
        uint32_t end = mach_read_2(block + LOG_BLOCK_USED);
        more = end == LOG_BLOCK_SIZE;
        end = more ? LOG_PAYLOAD_END : end;
        if (skip > end) {
            return;
        }
        payload_add(redo, n, block + skip, end - skip, &scan);
        n += end - skip;
        while (scan.at < n && group_find_end(redo, n, &scan)) {
            group_note(redo, &scan);
            redo->epoch = block_epoch;
            scan = (group_scan_t){.start = scan.at, .at = scan.at};
        }
        epoch = block_epoch;
        block_lsn += LOG_BLOCK_SIZE;
        skip = LOG_BLOCK_HDR_SIZE;
    }
}

/** Takes what the shared log has in equal blocks, from end_lsn on. */
static void redo_share(redo_t *redo, const redo_t *shared)
{
    lsn_t start = shared->info.start_lsn;
    lsn_t block_lsn = lsn_block(redo->end_lsn);
    bool same_file = memcmp(&shared->info, &redo->info, sizeof(redo->info)) == 0;
    if (!same_file || !redo_is_boundary(shared, redo->end_lsn)) {
        return;
    }
    while (block_lsn - start < shared->history_bytes
           && memcmp(redo_block(redo, redo_offset(redo, block_lsn)),
                     shared->history + (block_lsn - start), LOG_BLOCK_SIZE)
                  == 0) {
        block_lsn += LOG_BLOCK_SIZE;
    }
    uint32_t n = redo_ends_until(shared, block_lsn);
    lsn_t end_lsn = n == 0 ? 0 : shared->ends.items[n - 1];
    if (block_lsn > lsn_block(redo->end_lsn) && end_lsn > redo->end_lsn) {
        redo->shared = shared;
        redo->shared_lsn = redo->end_lsn = end_lsn;
        redo->epoch = mach_read_4(shared->history + (lsn_block(end_lsn) - start) + LOG_BLOCK_EPOCH);
    }
}

bool redo_open(redo_t *redo, const image_t *image, uint32_t inode, const redo_t *shared)
{
    uint64_t size = image_size(image, inode);
    redo_clear(redo);
    redo->image = image;
    redo->inode = inode;
    log_file_info_t info;
    if (size < LOG_FILE_HDR_SIZE
        || log_info_decode(redo_block(redo, LOG_HDR_OFFSET), &info) != DB_SUCCESS
        || size < info.file_size) {
        return false;
    }
    memset(&redo->info, 0, sizeof(redo->info)); /* padding too: infos are compared as bytes */
    redo->info.format_id = info.format_id;
    redo->info.page_size = info.page_size;
    redo->info.file_size = info.file_size;
    redo->info.start_lsn = info.start_lsn;
    redo->info.extent_pages = info.extent_pages;
    redo->format = log_format_find(info.format_id);
    redo->shared = shared;
    return true;
}

bool redo_slot(const redo_t *redo, log_checkpoint_t *out)
{
    bool found = false;
    for (uint32_t slot = 0; slot < 2; slot++) {
        log_checkpoint_t ckpt;
        if (log_checkpoint_decode(redo_block(redo, LOG_SLOT_OFFSET(slot)), &ckpt)
            && ckpt.no % 2 == slot && ckpt.lsn >= redo->info.start_lsn
            && (!found || ckpt.no > out->no)) {
            *out = ckpt;
            found = true;
        }
    }
    return found;
}

void redo_start(redo_t *redo, lsn_t from)
{
    const redo_t *shared = redo->shared;
    redo->shared = NULL;
    redo->from_lsn = redo->end_lsn = from;
    if (shared != NULL) {
        redo_share(redo, shared);
    }
    redo_extend(redo);
}
