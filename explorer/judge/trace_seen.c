/* What a record is, as far as canaries ask: by its bytes, and by what the log says.

Place: below trace_canary.c, above rules.c. */
#include "explorer/judge/trace_seen.h"

#include <string.h>

#include "explorer/judge/rules_int.h"
#include "page/page_index.h"

const file_map_t *trace_file(const reader_t *reader)
{
    uint32_t file = reader->rec.file;
    bool known = file > 0 && file < reader->n_files && reader->files[file].known
                 && reader->files[file].inode != IMAGE_NONE;
    return known ? &reader->files[file] : NULL;
}

bool trace_has_load(const rules_t *rules, index_id_t id)
{
    for (uint32_t i = 0; i < rules->indexes.n; i++) {
        if (rules->indexes.items[i].id == id && rules->indexes.items[i].load_lsn != 0) {
            return true;
        }
    }
    return false;
}

typedef struct freed {
    space_id_t space;
    uint64_t size; /**< pages of its file */
    uint64_t key;  /**< 0: none yet */
} freed_t;

static void see_freed(void *ctx, uint64_t key, const redo_entry_t *last)
{
    freed_t *freed = ctx;
    if (freed->key == 0 && last->kind == REDO_FREE && key_space(key) == freed->space
        && key_page(key) < freed->size) {
        freed->key = key;
    }
}

uint64_t trace_freed_page(const reader_t *reader, space_id_t space)
{
    const rules_t *rules = reader->rules;
    freed_t freed = {.space = space,
                     .size =
                         image_size(reader->image, trace_file(reader)->inode) / rules->page_size};
    if (rules->redo.format != NULL && rules->redo.format->all_frees) {
        redo_each_page(&rules->redo, rules->redo.from_lsn, LSN_MAX, see_freed, &freed);
    }
    return freed.key;
}

static void see_page(const reader_t *reader, seen_t *seen)
{
    const rules_config_t *config = &reader->config->rules;
    const byte *page = reader->payload;
    uint32_t page_size = reader->rules->page_size;
    if ((uint64_t)reader->rec.result < page_size || reader->rec.offset % page_size != 0
        || fil_page_get_type(page) == FIL_PAGE_PAGE_COMPRESSED) {
        return;
    }
    page_id_t id = fil_page_get_id(page);
    if (id.page_no != reader->rec.offset / page_size
        || fil_page_verify(page, page_size, id) != PAGE_OK) {
        return;
    }
    bool tree = fil_page_get_type(page) == FIL_PAGE_INDEX
                && fil_page_get_lsn(page) > reader->rules->redo.from_lsn
                && !trace_has_load(reader->rules, page_index_id(page));
    seen->page = id;
    seen->is = PAGE | (tree ? TREE_PAGE : 0)
               | (id.space == SPACE_SYSTEM && id.page_no < FIXED_PAGES ? FIXED_PAGE : 0)
               | (config->doublewrite && config->atomic_unit < page_size ? COPIED_PAGE : 0);
}

static void see_log(const reader_t *reader, seen_t *seen)
{
    const redo_t *redo = &reader->rules->redo;
    uint64_t offset = reader->rec.offset;
    uint64_t length = (uint64_t)reader->rec.result;
    lsn_t c = rules_c(reader->rules);
    log_checkpoint_t ckpt;
    bool slot = offset == LOG_SLOT_OFFSET(0) || offset == LOG_SLOT_OFFSET(1);
    if (slot && length == LOG_BLOCK_SIZE && log_checkpoint_decode(reader->payload, &ckpt)) {
        *seen = (seen_t){.is = SLOT, .c = ckpt.lsn};
    }
    if (offset < LOG_FILE_HDR_SIZE || offset % LOG_BLOCK_SIZE != 0 || length < LOG_BLOCK_SIZE) {
        return;
    }
    bool tail = offset == redo_offset(redo, lsn_block(redo->end_lsn))
                && lsn_offset(redo->end_lsn) > LOG_BLOCK_HDR_SIZE;
    seen->is = LOG | (tail ? LOG_TAIL : 0)
               | (offset + length + LOG_BLOCK_SIZE <= redo->info.file_size ? LOG_ROOM : 0)
               | (c != 0 && lsn_block(c) < lsn_block(redo->end_lsn) ? LOG_BEHIND_C : 0);
}

/** A write, or an fsync, of a file. */
static void see_content(const reader_t *reader, seen_t *seen)
{
    const file_map_t *file = trace_file(reader);
    const char *path = file == NULL ? "" : image_name_text(reader->image, file->name);
    bool written = reader->rec.kind == TP_OP_WRITE;
    bool of_log = reader->rules->page_size != 0 && strcmp(path, LOG_FILE_NAME) == 0;
    if (written
        && (reader->rec.result == 0 || (uint64_t)reader->rec.result > reader->payload_bytes)) {
        return;
    }
    if (strcmp(path, AREA_PATH) == 0) {
        seen->is = written ? AREA : SYNC_AREA;
    } else if (of_log && written) {
        see_log(reader, seen);
    } else if (of_log) {
        seen->is = SYNC_LOG;
    } else if (rules_is_data_file(path) && !written) {
        seen->is = SYNC_DATA | (strcmp(path, SYSTEM_PATH) == 0 ? SYNC_SYSTEM : 0);
    } else if (rules_is_data_file(path) && reader->rules->page_size != 0) {
        see_page(reader, seen);
    }
}

static bool names_table(const reader_t *reader)
{
    char path[PATH_ROOM];
    return reader_path(reader, 0, path) && rules_is_table_file(path) && !rules_is_undo_file(path);
}

seen_t trace_see(const reader_t *reader)
{
    static const uint32_t OF_KIND[] = {[TP_OP_TRUNCATE] = SHORTENED,
                                       [TP_OP_UNLINK] = SHORTENED,
                                       [TP_OP_SYNC_DIR] = SYNC_FOLDER,
                                       [TP_OP_SYNC_ALL] = SYNC_ALL};
    const tp_trace_record_t *rec = &reader->rec;
    seen_t seen = {.is = 0};
    if (rec->result < 0) {
        return seen;
    }
    seen.is = rec->kind < sizeof(OF_KIND) / sizeof(OF_KIND[0]) ? OF_KIND[rec->kind] : 0;
    if (rec->kind == TP_OP_WRITE || rec->kind == TP_OP_FSYNC || rec->kind == TP_OP_FDATASYNC) {
        see_content(reader, &seen);
    } else if (rec->kind == TP_OP_OPEN && (rec->flags & TP_OPEN_CREATED) != 0) {
        seen.is |= names_table(reader) ? TABLE_NAME | TABLE_MADE : 0;
    } else if (rec->kind == TP_OP_RENAME || rec->kind == TP_OP_UNLINK) {
        seen.is |= names_table(reader) ? TABLE_NAME : 0;
    } else if (rec->kind == TP_OP_MARK && reader->payload_bytes >= 6) {
        seen.is |= memcmp(reader->payload, "ack n=", 6) == 0 ? ACK : 0;
    }
    return seen;
}
