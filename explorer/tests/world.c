/* See world.h. Blocks and pages are laid out by FORMAT.md. */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/mach.h"
#include "disk/persist.h"
#include "page/page_index.h"

#define TABLE_FILE "t.ibd"
#define AREA_FILE "ib_dblwr"

/** The page that the words name, or RULES_NO_PAGE. */
static uint64_t page_named(const char *what)
{
    uint32_t space;
    uint32_t page;
    for (const char *at = what; (at = strstr(at, "page ")) != NULL; at++) {
        if (sscanf(at, "page %" SCNu32 ":%" SCNu32, &space, &page) == 2) {
            return redo_key(space, page);
        }
    }
    return RULES_NO_PAGE;
}

/** Whoever names a page accuses it. */
static void on_found(void *ctx, uint32_t invariant, const char *rule, uint64_t page,
                     const char *what)
{
    world_t *w = ctx;
    CHECK(invariant < 32);
    CHECK(page == page_named(what));
    w->found[invariant]++;
    w->accused = page;
    if (strstr(w->told, rule) == NULL) { /* no name is a part of another */
        size_t len = strlen(w->told);
        (void)snprintf(w->told + len, sizeof(w->told) - len, "%s%s", len > 0 ? " " : "", rule);
    }
    (void)snprintf(w->what, sizeof(w->what), "%s: %.200s", rule, what);
}

void world_forget(world_t *w)
{
    memset(w->found, 0, sizeof(w->found));
    w->told[0] = '\0';
}

/* ---- files ---- */

static uint32_t name_at(world_t *w, const char *path)
{
    return image_name(w->image, path, strlen(path));
}

static void happen(world_t *w, fs_event_t *event, const char *path)
{
    if (event->kind == FS_WRITE) {
        rules_before(w->rules, event->inode, path, event->offset, event->length);
    }
    persist_apply(w->image, event);
    rules_event(w->rules, event, path);
    w->site = event->site;
}

void world_write(world_t *w, const char *path, uint64_t offset, const byte *bytes, uint64_t len)
{
    fs_event_t event = {
        .kind = FS_WRITE, .name = name_at(w, path), .offset = offset, .length = len, .data = bytes};
    event.inode = image_lookup(w->image, event.name);
    happen(w, &event, path);
}

void world_damage(world_t *w, const char *path, uint64_t offset, const byte *bytes, uint64_t len)
{
    CHECK(image_write(w->image, image_lookup(w->image, name_at(w, path)), offset, bytes, len));
}

void world_punch(world_t *w, uint32_t page, uint32_t from)
{
    fs_event_t event = {.kind = FS_ZERO,
                        .name = name_at(w, TABLE_FILE),
                        .offset = (uint64_t)page * WORLD_PAGE + from,
                        .length = WORLD_PAGE - from};
    event.inode = image_lookup(w->image, event.name);
    happen(w, &event, TABLE_FILE);
}

void world_cut(world_t *w, uint32_t n_pages)
{
    fs_event_t event = {.kind = FS_TRUNCATE,
                        .name = name_at(w, TABLE_FILE),
                        .offset = (uint64_t)n_pages * WORLD_PAGE};
    event.inode = image_lookup(w->image, event.name);
    event.old_size = image_size(w->image, event.inode);
    happen(w, &event, TABLE_FILE);
}

void world_sync(world_t *w, const char *path)
{
    fs_event_t event = {.kind = FS_SYNC, .name = name_at(w, path)};
    event.inode = image_lookup(w->image, event.name);
    happen(w, &event, path);
}

void world_entry(world_t *w, fs_kind_t kind, const char *path, const char *to)
{
    fs_event_t event = {.kind = kind, .name = name_at(w, path)};
    event.inode =
        kind == FS_LINK ? image_inode_create(w->image) : image_lookup(w->image, event.name);
    event.name2 = to != NULL ? name_at(w, to) : 0;
    happen(w, &event, path);
}

void world_sync_dir(world_t *w)
{
    fs_event_t event = {.kind = FS_SYNC_DIR, .inode = IMAGE_NONE, .name = name_at(w, ".")};
    happen(w, &event, ".");
}

/* ---- the log ---- */

uint64_t world_log_offset(lsn_t lsn)
{
    return 2048 + (lsn_block(lsn) - LOG_START_LSN) % (WORLD_LOG_BYTES - 2048);
}

static void stamp(byte *block, lsn_t lsn, uint32_t epoch, uint32_t used)
{
    mach_write_4(block + LOG_BLOCK_NO, (uint32_t)(lsn / LOG_BLOCK_SIZE));
    mach_write_4(block + LOG_BLOCK_EPOCH, epoch);
    mach_write_2(block + LOG_BLOCK_USED, used);
    mach_write_4(block + LOG_CRC_OFFSET, crc32c(block, LOG_CRC_OFFSET));
}

static void stamp_end(world_t *w)
{
    stamp(w->log + world_log_offset(w->end_lsn), w->end_lsn, w->epoch, lsn_offset(w->end_lsn));
}

lsn_t world_append(world_t *w, const redo_rec_t *rec)
{
    redo_group_t group;
    redo_group_init(&group, w->format);
    redo_group_add(&group, rec);
    redo_group_finish(&group);
    byte *block = w->log + world_log_offset(w->end_lsn);
    if (mach_read_2(block + LOG_BLOCK_FIRST_GROUP) == 0) {
        mach_write_2(block + LOG_BLOCK_FIRST_GROUP, lsn_offset(w->end_lsn));
    }
    for (size_t i = 0; i < group.len; i++) {
        w->log[world_log_offset(w->end_lsn) + lsn_offset(w->end_lsn)] = group.bytes[i];
        lsn_t next = log_lsn_add(w->end_lsn, 1);
        if (lsn_block(next) != lsn_block(w->end_lsn)) {
            stamp(w->log + world_log_offset(w->end_lsn), w->end_lsn, w->epoch, LOG_BLOCK_SIZE);
            memset(w->log + world_log_offset(next), 0, LOG_BLOCK_SIZE);
        }
        w->end_lsn = next;
    }
    redo_group_free(&group);
    stamp_end(w);
    return w->end_lsn;
}

lsn_t world_init(world_t *w, uint32_t page)
{
    const redo_rec_t rec = {
        .op = OP_INIT_PAGE, .space = WORLD_SPACE, .page_no = page, .value = FIL_PAGE_INDEX};
    return world_append(w, &rec);
}

lsn_t world_free(world_t *w, uint32_t page)
{
    const redo_rec_t rec = {.op = OP_FREE_PAGE, .space = WORLD_SPACE, .page_no = page};
    return world_append(w, &rec);
}

lsn_t world_free_extent(world_t *w, uint32_t extent)
{
    /* behind the page's header 154 bytes, each descriptor 24 and a bit for each page, its state
       behind 20 */
    const redo_rec_t rec = {.op = OP_NUMBER,
                            .len = 4,
                            .space = WORLD_SPACE,
                            .page_no = 0,
                            .offset = (uint16_t)(154 + extent * (24 + WORLD_EXTENT / 8) + 20),
                            .value = 1};
    return world_append(w, &rec);
}

lsn_t world_change(world_t *w, uint32_t page)
{
    const redo_rec_t rec = {.op = OP_NUMBER,
                            .len = 4,
                            .space = WORLD_SPACE,
                            .page_no = page,
                            .offset = 100,
                            .value = 7};
    return world_append(w, &rec);
}

lsn_t world_delete_rec(world_t *w, uint32_t page)
{
    const redo_rec_t rec = {.op = OP_REC_DELETE, .space = WORLD_SPACE, .page_no = page, .slot = 1};
    return world_append(w, &rec);
}

lsn_t world_load(world_t *w, index_id_t index)
{
    const redo_rec_t rec = {
        .op = OP_INDEX_LOAD, .space = WORLD_SPACE, .page_no = 4, .value = index};
    return world_append(w, &rec);
}

lsn_t world_create_index(world_t *w, uint32_t page, index_id_t index)
{
    const redo_rec_t rec = {.op = OP_INDEX_CREATE,
                            .space = WORLD_SPACE,
                            .page_no = page,
                            .index_id = index,
                            .rec_size = 20,
                            .key_len = 8};
    (void)world_init(w, page);
    return world_append(w, &rec);
}

lsn_t world_trim(world_t *w, uint32_t n_pages)
{
    redo_rec_t rec = {.op = OP_TRIM_PAGES,
                      .space = WORLD_SPACE,
                      .page_no = n_pages,
                      .path = TABLE_FILE,
                      .path_len = sizeof(TABLE_FILE) - 1};
    return world_append(w, &rec);
}

lsn_t world_file_op(world_t *w, redo_op_t op, const char *path, const char *path2)
{
    const char *file = path2 != NULL ? path2 : path;
    bool undo = strncmp(file, "undo", 4) == 0;
    space_id_t table = strcmp(file, TABLE_FILE) == 0 ? WORLD_SPACE : WORLD_OTHER;
    return world_file_op_of(w, op, undo ? space_of_undo((uint32_t)atoi(file + 4)) : table, path,
                            path2);
}

lsn_t world_file_op_of(world_t *w, redo_op_t op, space_id_t space, const char *path,
                       const char *path2)
{
    redo_rec_t rec = {.op = op, .space = space, .path = path, .path_len = (uint32_t)strlen(path)};
    if (path2 != NULL) {
        rec.path2 = path2;
        rec.path2_len = (uint32_t)strlen(path2);
    }
    return world_append(w, &rec);
}

void world_log_raw(world_t *w, uint64_t offset, const byte *bytes, uint64_t len)
{
    world_write(w, LOG_FILE, offset, bytes, len);
}

void world_log_write(world_t *w)
{
    for (lsn_t lsn = lsn_block(w->written_lsn); lsn <= lsn_block(w->end_lsn);
         lsn += LOG_BLOCK_SIZE) {
        world_log_raw(w, world_log_offset(lsn), w->log + world_log_offset(lsn), LOG_BLOCK_SIZE);
    }
    w->written_lsn = w->end_lsn;
}

void world_log(world_t *w)
{
    world_log_write(w);
    world_sync(w, LOG_FILE);
}

lsn_t world_change_durable(world_t *w, uint32_t page)
{
    lsn_t lsn = world_change(w, page);
    world_log(w);
    return lsn;
}

void world_load_durable(world_t *w, index_id_t index)
{
    (void)world_load(w, index);
    world_log(w);
}

/** A change of page 0 by that many bytes. */
static lsn_t change_bytes(world_t *w, uint32_t len)
{
    byte data[600] = {1};
    CHECK(len <= sizeof(data));
    const redo_rec_t rec = {
        .op = OP_WRITE, .space = WORLD_SPACE, .offset = 100, .data = data, .len = len};
    return world_append(w, &rec);
}

lsn_t world_half_group(world_t *w)
{
    uint64_t at = world_log_offset(w->end_lsn);
    lsn_t lsn = change_bytes(w, 600);
    world_log_raw(w, at, w->log + at, LOG_BLOCK_SIZE);
    world_sync(w, LOG_FILE);
    return lsn;
}

void world_fill_log(world_t *w, uint32_t blocks)
{
    lsn_t until = w->end_lsn + blocks * LOG_BLOCK_SIZE;
    while (w->end_lsn < until) {
        (void)change_bytes(w, 400);
        world_log(w);
    }
}

static void slot_bytes(byte out[LOG_BLOCK_SIZE], uint64_t no, lsn_t c, lsn_t marker, uint32_t epoch)
{
    memset(out, 0, LOG_BLOCK_SIZE);
    memcpy(out, "TPCP", 4);
    mach_write_8(out + 4, no);
    mach_write_8(out + 12, c);
    mach_write_8(out + 20, marker);
    mach_write_4(out + 28, epoch);
    mach_write_4(out + LOG_CRC_OFFSET, crc32c(out, LOG_CRC_OFFSET));
}

void world_slot(world_t *w, uint32_t slot, uint64_t no, lsn_t c, lsn_t marker)
{
    byte block[LOG_BLOCK_SIZE];
    slot_bytes(block, no, c, marker, w->epoch);
    w->slot_no = no;
    world_log_raw(w, slot == 0 ? 512 : 1536, block, sizeof(block));
}

lsn_t world_marker(world_t *w, lsn_t c)
{
    const redo_rec_t rec = {.op = OP_CHECKPOINT, .value = c};
    lsn_t start = w->end_lsn;
    (void)world_append(w, &rec);
    world_log(w);
    return start;
}

void world_checkpoint(world_t *w, lsn_t c)
{
    lsn_t marker = world_marker(w, c);
    world_slot(w, (uint32_t)((w->slot_no + 1) % 2), w->slot_no + 1, c, marker);
    world_sync(w, LOG_FILE);
    w->c = c;
}

void world_epoch_slot(world_t *w, bool sync)
{
    /* C and marker of the newest slot: of checkpoint 1 both are known. */
    const byte *block = image_view(w->image, image_lookup(w->image, name_at(w, LOG_FILE)),
                                   w->slot_no % 2 == 0 ? 512 : 1536, LOG_BLOCK_SIZE, NULL);
    w->epoch++;
    world_slot(w, (uint32_t)((w->slot_no + 1) % 2), w->slot_no + 1, mach_read_8(block + 12),
               mach_read_8(block + 20));
    if (sync) {
        world_sync(w, LOG_FILE);
    }
}

void world_epoch_cut(world_t *w, bool sync)
{
    stamp_end(w);
    world_log_raw(w, world_log_offset(w->end_lsn), w->log + world_log_offset(w->end_lsn),
                  LOG_BLOCK_SIZE);
    if (sync) {
        world_sync(w, LOG_FILE);
    }
}

void world_epoch(world_t *w)
{
    world_epoch_slot(w, true);
    world_epoch_cut(w, true);
}

static void log_create(world_t *w)
{
    w->epoch = 1;
    w->end_lsn = w->written_lsn = LOG_FIRST_LSN;
    byte head[2048] = {0};
    memcpy(head, "TPLG", 4);
    mach_write_4(head + 4, w->format->id);
    mach_write_4(head + 8, WORLD_PAGE);
    mach_write_8(head + 12, WORLD_LOG_BYTES);
    mach_write_8(head + 20, LOG_START_LSN);
    mach_write_4(head + 28, WORLD_EXTENT);
    mach_write_4(head + LOG_CRC_OFFSET, crc32c(head, LOG_CRC_OFFSET));
    slot_bytes(head + 512, 0, LOG_FIRST_LSN, LOG_FIRST_LSN, 1);
    const redo_rec_t marker = {.op = OP_CHECKPOINT, .value = LOG_FIRST_LSN};
    (void)world_append(w, &marker);
    memcpy(w->log, head, sizeof(head));
    world_entry(w, FS_LINK, LOG_FILE, NULL);
    world_write(w, LOG_FILE, 0, w->log, sizeof(w->log));
    world_sync(w, LOG_FILE);
    w->written_lsn = w->end_lsn;
}

/* ---- pages ---- */

void world_page_bytes(byte out[WORLD_PAGE], uint32_t page, lsn_t lsn, index_id_t index)
{
    world_page_of(out, (page_id_t){WORLD_SPACE, page}, lsn, index);
}

void world_page_of(byte out[WORLD_PAGE], page_id_t id, lsn_t lsn, index_id_t index)
{
    const page_shape_t shape = {.index_id = index, .rec_size = 20, .key_len = 8};
    fil_page_init(out, WORLD_PAGE, id, id.page_no == 0 ? FIL_PAGE_TYPE_FSP_HDR : FIL_PAGE_INDEX);
    if (id.page_no != 0) {
        CHECK(page_index_create(out, WORLD_PAGE, &shape) == DB_SUCCESS);
    }
    fil_page_set_lsn(out, WORLD_PAGE, lsn);
    fil_page_stamp(out, WORLD_PAGE);
}

void world_home_of(world_t *w, uint32_t page, lsn_t lsn, index_id_t index)
{
    byte bytes[WORLD_PAGE];
    world_page_bytes(bytes, page, lsn, index);
    world_write(w, TABLE_FILE, (uint64_t)page * WORLD_PAGE, bytes, sizeof(bytes));
}

void world_home(world_t *w, uint32_t page, lsn_t lsn)
{
    world_home_of(w, page, lsn, WORLD_INDEX);
}

void world_copy_of(world_t *w, uint32_t position, uint32_t page, lsn_t lsn, index_id_t index)
{
    byte bytes[WORLD_PAGE];
    world_page_bytes(bytes, page, lsn, index);
    world_write(w, AREA_FILE, (uint64_t)position * WORLD_PAGE, bytes, sizeof(bytes));
}

void world_copy(world_t *w, uint32_t position, uint32_t page, lsn_t lsn)
{
    world_copy_of(w, position, page, lsn, WORLD_INDEX);
}

void world_copy_durable(world_t *w, uint32_t position, uint32_t page, lsn_t lsn)
{
    world_copy(w, position, page, lsn);
    world_sync(w, AREA_FILE);
}

void world_copy_and_home(world_t *w, uint32_t position, uint32_t page, lsn_t lsn)
{
    world_copy_durable(w, position, page, lsn);
    world_home(w, page, lsn);
}

void world_flush(world_t *w, uint32_t page, lsn_t lsn)
{
    world_copy_and_home(w, 7, page, lsn);
    world_sync(w, TABLE_FILE);
}

lsn_t world_change_flushed(world_t *w, uint32_t page)
{
    lsn_t lsn = world_change_durable(w, page);
    world_flush(w, page, lsn);
    return lsn;
}

void world_read(world_t *w, uint32_t page)
{
    uint32_t inode = image_lookup(w->image, name_at(w, TABLE_FILE));
    rules_read(w->rules, inode, TABLE_FILE, (uint64_t)page * WORLD_PAGE, WORLD_PAGE);
}

/* ---- life ---- */

static rules_t *rules_of(world_t *w)
{
    const rules_config_t config = {.doublewrite = w->doublewrite,
                                   .atomic_unit = w->atomic_unit,
                                   .keep_history = true,
                                   .found = on_found,
                                   .ctx = w};
    return rules_create(&config);
}

void world_begin(world_t *w, bool doublewrite)
{
    const char *format = getenv("WORLD_LOG_FORMAT");
    uint32_t unit = w->atomic_unit;
    memset(w, 0, sizeof(*w));
    w->doublewrite = doublewrite;
    w->atomic_unit = unit;
    w->format = format != NULL && strcmp(format, log_format_10_5.name) == 0 ? &log_format_10_5
                                                                            : &log_format_10_4;
    w->image = image_create();
    w->rules = rules_of(w);
    rules_start(w->rules, w->image, false, NULL);
    log_create(w);
    world_entry(w, FS_LINK, AREA_FILE, NULL);
    (void)image_truncate(w->image, image_lookup(w->image, name_at(w, AREA_FILE)), 8 * WORLD_PAGE);
    (void)world_file_op(w, OP_FILE_CREATE, TABLE_FILE, NULL);
    world_log(w);
    world_entry(w, FS_LINK, TABLE_FILE, NULL);
    world_sync_dir(w);
    (void)world_init(w, 0);
    (void)world_change_flushed(w, 0);
    world_checkpoint(w, w->end_lsn);
}

void world_restart(world_t *w, bool cold)
{
    rules_start(w->rules, w->image, cold, NULL);
}

void world_restart_sharing(world_t *w)
{
    CHECK(w->history == NULL);
    w->history = w->rules;
    w->rules = rules_of(w);
    rules_start(w->rules, w->image, false, w->history);
}

void world_start_again(world_t *w)
{
    rules_closed(w->rules, LOG_FILE);
    rules_opened(w->rules, LOG_FILE);
}

void world_end(world_t *w)
{
    rules_destroy(w->rules);
    if (w->history != NULL) {
        rules_destroy(w->history);
    }
    image_destroy(w->image);
}
