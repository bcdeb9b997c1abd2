/* Canaries of the rules on bytes.

Place: above trace_read.c, which hands each record over before the rules hear of it.

    record --> can it be damaged for one that is untried? --fork--> damaged, read on --> its rule speaks: condemned
       \--> read as it is                                    \--> the record that it must speak of is read: deaf

Rules
1. A copy is damaged so that its rule must speak, whatever the target does: what would show that is `due`, and follows from the
   damaged bytes and from what the log says (redo.h), never from what the rules make of them. Where nothing is due up to the end of the
   recording there was no occasion, and the canary is untried.
2. It counts as condemned only by its own rule.
3. Only a run that breaks no rule has canaries: what it breaks is found without them. */
#include "explorer/judge/trace_canary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/mach.h"
#include "explorer/judge/rules_int.h"
#include "explorer/judge/trace_int.h"
#include "page/page_compress.h"
#include "page/page_index.h"

#define TRIES_MAX 16U            /**< of one canary, while nothing comes to be due */
#define FAR_LSN ((lsn_t)1 << 40) /* no log has so much */
#define FIXED_PAGES 4U           /* of the system tablespace: never freed, never begun anew */
#define SLOT_LSN 12              /* FORMAT.md, "Redo log file" */
#define SLOT_MARKER 20
#define NO_OCCASION "the run gives no occasion"
#define PUNCH (1 | 2) /* FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE */

typedef enum due { DUE_LATER, DUE_NOW, DUE_NEVER } due_t;

typedef struct walk walk_t;

typedef struct damage {
    const char *name; /**< of the canary: of the rule that must speak */
    uint32_t invariant;
    /** Can the record be damaged? Asked of the run as it is. */
    bool (*fits)(const walk_t *walk, const reader_t *reader);
    /** Damages it; NULL: it and all that fit behind it are left out. */
    void (*change)(walk_t *walk, reader_t *reader);
    /** With which record must the rule speak? Asked of the damaged one and of those behind it. NULL: the damaged one. */
    due_t (*due)(walk_t *walk, const reader_t *reader);
} damage_t;

struct walk {
    canaries_t *told; /**< shared memory */
    const trace_config_t *config;
    uint32_t tries[CANARIES_MAX];
    uint64_t broken;  /**< findings of the run as it is */
    const byte *area; /**< the doublewrite area's newest write */
    uint64_t area_offset;
    uint64_t area_bytes; /**< 0: none yet */
    bool area_synced;

    /* Of a copy. */
    const damage_t *damage; /**< NULL: the run as it is */
    canary_t *canary;
    bool due;
    byte *bytes;      /**< what the damaged record writes */
    rules_t *rules;   /**< whose log is listened to */
    uint64_t key;     /**< of the damaged page ... */
    uint32_t inode;   /**< ... whose file it is in ... */
    index_id_t index; /**< ... and the tree */
    lsn_t lsn;        /**< from which on something is due; 0: nothing is */
    uint64_t reused;  /**< position in the area + 1; 0: none */
    bool renamed;     /**< a table's file has come or gone */
    char other[120];  /**< what was found instead */
};

/* ---- what a record is about ---- */

static const char *path_of(const reader_t *reader)
{
    uint32_t file = reader->rec.file;
    bool known = file > 0 && file < reader->n_files && reader->files[file].known
                 && reader->files[file].inode != IMAGE_NONE;
    return known ? image_name_text(reader->image, reader->files[file].name) : "";
}

static bool is_fsync(const reader_t *reader)
{
    return (reader->rec.kind == TP_OP_FSYNC || reader->rec.kind == TP_OP_FDATASYNC)
           && reader->rec.result == 0;
}

static bool is_write(const reader_t *reader)
{
    return reader->rec.kind == TP_OP_WRITE && reader->rec.result > 0
           && (uint64_t)reader->rec.result <= reader->payload_bytes;
}

static bool is_area_write(const reader_t *reader)
{
    return is_write(reader) && strcmp(path_of(reader), AREA_PATH) == 0;
}

/** A write of a whole page and more, of which the first is plain and right; else NULL. */
static const byte *home_page(const reader_t *reader)
{
    uint32_t page_size = reader->rules->page_size;
    const byte *page = reader->payload;
    if (page_size == 0 || !is_write(reader) || !rules_is_data_file(path_of(reader))
        || (uint64_t)reader->rec.result < page_size || reader->rec.offset % page_size != 0) {
        return NULL;
    }
    page_id_t id = fil_page_get_id(page);
    bool right = id.page_no == reader->rec.offset / page_size
                 && fil_page_get_type(page) != FIL_PAGE_PAGE_COMPRESSED
                 && fil_page_verify(page, page_size, id) == PAGE_OK;
    return right ? page : NULL;
}

/** One of the system tablespace's that is never free. */
static const byte *fixed_page(const reader_t *reader)
{
    const byte *page = home_page(reader);
    if (page == NULL) {
        return NULL;
    }
    page_id_t id = fil_page_get_id(page);
    return id.space == SPACE_SYSTEM && id.page_no < FIXED_PAGES ? page : NULL;
}

static bool of_log(const reader_t *reader)
{
    return reader->rules->page_size != 0 && strcmp(path_of(reader), LOG_FILE_NAME) == 0;
}

/** A write of whole log blocks. */
static bool is_log_write(const reader_t *reader)
{
    return is_write(reader) && of_log(reader) && reader->rec.offset >= LOG_FILE_HDR_SIZE
           && reader->rec.offset % LOG_BLOCK_SIZE == 0 && reader->rec.result >= LOG_BLOCK_SIZE;
}

/** The write of a checkpoint slot that is one; else false. */
static bool slot_of(const reader_t *reader, log_checkpoint_t *ckpt)
{
    return is_write(reader) && of_log(reader) && reader->rec.result == LOG_BLOCK_SIZE
           && (reader->rec.offset == LOG_SLOT_OFFSET(0) || reader->rec.offset == LOG_SLOT_OFFSET(1))
           && log_checkpoint_decode(reader->payload, ckpt);
}

static bool is_ack(const reader_t *reader)
{
    return reader->rec.kind == TP_OP_MARK && reader->payload_bytes >= 6
           && memcmp(reader->payload, "ack n=", 6) == 0;
}

/** Is a table's file made, named or removed? */
static bool names_table(const reader_t *reader)
{
    char path[PATH_ROOM];
    bool made = reader->rec.kind == TP_OP_OPEN && (reader->rec.flags & TP_OPEN_CREATED) != 0;
    bool other = reader->rec.kind == TP_OP_RENAME || reader->rec.kind == TP_OP_UNLINK;
    return reader->rec.result >= 0 && (made || other) && reader_path(reader, 0, path)
           && rules_is_table_file(path) && !rules_is_undo_file(path);
}

/** The page of the area's newest write that equals this one: its position + 1; 0: none. */
static uint64_t copy_of(const walk_t *walk, const byte *page, uint32_t page_size)
{
    const rules_config_t *config = &walk->config->rules;
    if (!config->doublewrite || config->atomic_unit >= page_size) {
        return 0;
    }
    for (uint64_t at = 0; at + page_size <= walk->area_bytes; at += page_size) {
        if (memcmp(walk->area + at, page, page_size) == 0) {
            return (walk->area_offset + at) / page_size + 1;
        }
    }
    return 0;
}

/* ---- which records fit ---- */

static bool fits_page(const walk_t *walk, const reader_t *reader)
{
    (void)walk;
    return home_page(reader) != NULL;
}

static bool fits_fixed(const walk_t *walk, const reader_t *reader)
{
    (void)walk;
    return fixed_page(reader) != NULL;
}

static bool fits_copied_page(const walk_t *walk, const reader_t *reader)
{
    const rules_config_t *config = &walk->config->rules;
    return config->doublewrite && config->atomic_unit < reader->rules->page_size
           && home_page(reader) != NULL;
}

static bool has_load(const rules_t *rules, index_id_t id)
{
    for (uint32_t i = 0; i < rules->indexes.n; i++) {
        if (rules->indexes.items[i].id == id && rules->indexes.items[i].load_lsn != 0) {
            return true;
        }
    }
    return false;
}

static bool fits_index_page(const walk_t *walk, const reader_t *reader)
{
    const byte *page = home_page(reader);
    (void)walk;
    return page != NULL && fil_page_get_type(page) == FIL_PAGE_INDEX
           && fil_page_get_lsn(page) > reader->rules->redo.from_lsn
           && !has_load(reader->rules, page_index_id(page));
}

typedef struct freed {
    space_id_t space;
    uint64_t size; /**< of its file, in pages */
    uint64_t key;  /**< 0: none */
} freed_t;

static void see_freed(void *ctx, uint64_t key, const redo_entry_t *last)
{
    freed_t *freed = ctx;
    if (last->kind == REDO_FREE && key_space(key) == freed->space && key_page(key) < freed->size) {
        freed->key = key;
    }
}

/** A page of the file that is written which the log frees last; 0: none. */
static uint64_t freed_page(const reader_t *reader)
{
    const byte *page = home_page(reader);
    const redo_t *redo = &reader->rules->redo;
    if (page == NULL || redo->format == NULL || !redo->format->physical) {
        return 0;
    }
    uint32_t inode = reader->files[reader->rec.file].inode;
    freed_t freed = {.space = fil_page_get_id(page).space,
                     .size = image_size(reader->image, inode) / reader->rules->page_size};
    redo_each_page(redo, redo->from_lsn, LSN_MAX, see_freed, &freed);
    return freed.key;
}

static bool fits_freed(const walk_t *walk, const reader_t *reader)
{
    (void)walk;
    return freed_page(reader) != 0;
}

static bool fits_log(const walk_t *walk, const reader_t *reader)
{
    (void)walk;
    return is_log_write(reader);
}

static bool fits_log_before_end(const walk_t *walk, const reader_t *reader)
{
    (void)walk;
    return is_log_write(reader)
           && reader->rec.offset + (uint64_t)reader->rec.result + LOG_BLOCK_SIZE
                  <= reader->rules->redo.info.file_size;
}

/** The block in which the log ends is written again. */
static bool fits_log_tail(const walk_t *walk, const reader_t *reader)
{
    const redo_t *redo = &reader->rules->redo;
    (void)walk;
    return is_log_write(reader) && reader->rec.offset == redo_offset(redo, lsn_block(redo->end_lsn))
           && lsn_offset(redo->end_lsn) > LOG_BLOCK_HDR_SIZE;
}

/** C lies in a block that the log does not end in. */
static bool fits_log_behind_c(const walk_t *walk, const reader_t *reader)
{
    lsn_t c = rules_c(reader->rules);
    (void)walk;
    return is_log_write(reader) && c != 0 && lsn_block(c) < lsn_block(reader->rules->redo.end_lsn);
}

static bool fits_slot(const walk_t *walk, const reader_t *reader)
{
    log_checkpoint_t ckpt;
    (void)walk;
    return slot_of(reader, &ckpt);
}

static bool fits_system_fsync(const walk_t *walk, const reader_t *reader)
{
    (void)walk;
    return is_fsync(reader) && strcmp(path_of(reader), SYSTEM_PATH) == 0;
}

static bool fits_data_fsync(const walk_t *walk, const reader_t *reader)
{
    (void)walk;
    return is_fsync(reader) && rules_is_data_file(path_of(reader));
}

static bool fits_area_fsync(const walk_t *walk, const reader_t *reader)
{
    return is_fsync(reader) && !walk->area_synced && strcmp(path_of(reader), AREA_PATH) == 0;
}

static bool fits_log_fsync(const walk_t *walk, const reader_t *reader)
{
    (void)walk;
    return is_fsync(reader) && of_log(reader);
}

static bool fits_folder_fsync(const walk_t *walk, const reader_t *reader)
{
    (void)walk;
    return reader->rec.kind == TP_OP_SYNC_DIR && reader->rec.result == 0;
}

static bool fits_new_table(const walk_t *walk, const reader_t *reader)
{
    (void)walk;
    return reader->rec.kind == TP_OP_OPEN && names_table(reader);
}

/* ---- what is damaged ---- */

/** The record's bytes, to be changed. */
static byte *own_bytes(walk_t *walk, reader_t *reader)
{
    size_t room = reader->payload_bytes > 0 ? reader->payload_bytes : 1;
    walk->bytes = mem_alloc(room);
    memcpy(walk->bytes, reader->payload, reader->payload_bytes);
    reader->payload = walk->bytes;
    return walk->bytes;
}

static void raise_lsn(walk_t *walk, reader_t *reader)
{
    uint32_t page_size = reader->rules->page_size;
    byte *page = own_bytes(walk, reader);
    fil_page_set_lsn(page, page_size, fil_page_get_lsn(page) + FAR_LSN);
    fil_page_stamp(page, page_size);
}

/** At which no record of the page can end, since one ends right behind it. */
static void lower_lsn(walk_t *walk, reader_t *reader)
{
    uint32_t page_size = reader->rules->page_size;
    byte *page = own_bytes(walk, reader);
    page_id_t id = fil_page_get_id(page);
    walk->key = redo_key(id.space, id.page_no);
    walk->inode = reader->files[reader->rec.file].inode;
    walk->index = page_index_id(page); /* if it is of a tree */
    fil_page_set_lsn(page, page_size, fil_page_get_lsn(page) - 1);
    fil_page_stamp(page, page_size);
}

static void into_another_space(walk_t *walk, reader_t *reader)
{
    byte *page = own_bytes(walk, reader);
    mach_write_4(page + FIL_PAGE_SPACE_ID, mach_read_4(page + FIL_PAGE_SPACE_ID) + 1);
    fil_page_stamp(page, reader->rules->page_size);
}

static void make_zeros(walk_t *walk, reader_t *reader)
{
    memset(own_bytes(walk, reader), 0, reader->rules->page_size);
}

static void make_hole(walk_t *walk, reader_t *reader)
{
    (void)walk;
    reader->rec.kind = TP_OP_FALLOCATE;
    reader->rec.flags = PUNCH;
    reader->rec.length = reader->rules->page_size;
    reader->rec.result = 0;
}

static void make_freed(walk_t *walk, reader_t *reader)
{
    uint32_t page_size = reader->rules->page_size;
    page_no_t page_no = key_page(freed_page(reader));
    byte *page = own_bytes(walk, reader);
    mach_write_4(page + FIL_PAGE_OFFSET, page_no);
    fil_page_stamp(page, page_size);
    reader->rec.offset = (uint64_t)page_no * page_size;
    reader->rec.result = page_size;
}

static void move_a_block(walk_t *walk, reader_t *reader)
{
    (void)walk;
    reader->rec.offset += LOG_BLOCK_SIZE;
}

static void change_the_tail(walk_t *walk, reader_t *reader)
{
    own_bytes(walk, reader)[LOG_BLOCK_HDR_SIZE] ^= 0xFF;
}

static void raise_epoch(walk_t *walk, reader_t *reader)
{
    mach_write_4(own_bytes(walk, reader) + LOG_BLOCK_EPOCH, UINT32_MAX);
}

/** The block goes where C lies, as the one that has its place when the log has gone around. */
static void write_over_c(walk_t *walk, reader_t *reader)
{
    const redo_t *redo = &reader->rules->redo;
    lsn_t block = lsn_block(rules_c(reader->rules));
    uint64_t area = redo->info.file_size - LOG_FILE_HDR_SIZE;
    mach_write_4(own_bytes(walk, reader) + LOG_BLOCK_NO,
                 (uint32_t)((block + area) / LOG_BLOCK_SIZE));
    reader->rec.offset = redo_offset(redo, block);
    reader->rec.result = LOG_BLOCK_SIZE;
}

static void change_slot(walk_t *walk, reader_t *reader, uint32_t field, lsn_t lsn)
{
    byte *block = own_bytes(walk, reader);
    mach_write_8(block + field, lsn);
    mach_write_4(block + LOG_CRC_OFFSET, crc32c(block, LOG_CRC_OFFSET));
}

static void move_slot(walk_t *walk, reader_t *reader)
{
    (void)walk;
    reader->rec.offset = LOG_SLOT_OFFSET(reader->rec.offset == LOG_SLOT_OFFSET(0) ? 1 : 0);
}

/** The marker is one that the log does not hold: it starts where C lies, or, if that is where it is, a block before the end of LSNs. */
static void lose_marker(walk_t *walk, reader_t *reader)
{
    change_slot(walk, reader, SLOT_MARKER, FAR_LSN + LOG_BLOCK_HDR_SIZE);
}

/** C goes back before the first checkpoint. */
static void lower_c(walk_t *walk, reader_t *reader)
{
    change_slot(walk, reader, SLOT_LSN, LOG_BLOCK_HDR_SIZE);
}

static void fail(walk_t *walk, reader_t *reader)
{
    (void)walk;
    reader->rec.result = -EIO;
}

/** The file gets a name of which the log knows nothing: another character before its suffix. */
static void change_name(walk_t *walk, reader_t *reader)
{
    char *path = (char *)own_bytes(walk, reader);
    size_t len = strnlen(path, reader->payload_bytes);
    CHECK(len > 4);
    path[len - 5] = '~';
}

/* ---- what is due ---- */

static due_t due_at_ack(walk_t *walk, const reader_t *reader)
{
    (void)walk;
    return is_ack(reader) ? DUE_NOW : DUE_LATER;
}

static due_t due_at_ack_of_names(walk_t *walk, const reader_t *reader)
{
    walk->renamed = walk->renamed || names_table(reader);
    return walk->renamed && is_ack(reader) ? DUE_NOW : DUE_LATER;
}

/** The checkpoint is past a change of a page that is not fsynced at home. */
static due_t due_at_slot(walk_t *walk, const reader_t *reader)
{
    log_checkpoint_t ckpt;
    return walk->lsn != 0 && slot_of(reader, &ckpt) && ckpt.lsn >= walk->lsn ? DUE_NOW : DUE_LATER;
}

/** A page goes home whose copy is not fsynced. */
static due_t due_at_copied_home(walk_t *walk, const reader_t *reader)
{
    const byte *page = home_page(reader);
    return page != NULL && copy_of(walk, page, reader->rules->page_size) != 0 ? DUE_NOW : DUE_LATER;
}

/** A copy is overwritten whose page is not fsynced at home. */
static due_t due_at_reuse(walk_t *walk, const reader_t *reader)
{
    uint32_t page_size = reader->rules->page_size;
    const byte *page = home_page(reader);
    uint64_t at = walk->reused == 0 ? 0 : (walk->reused - 1) * page_size;
    if (page != NULL && walk->reused == 0) {
        walk->reused = copy_of(walk, page, page_size);
    } else if (reader->rec.kind == TP_OP_UNLINK || reader->rec.kind == TP_OP_TRUNCATE) {
        walk->reused = 0; /* that file needs no copy any more */
    } else if (walk->reused != 0 && is_area_write(reader) && reader->rec.offset <= at
               && at + page_size <= reader->rec.offset + (uint64_t)reader->rec.result) {
        return DUE_NOW;
    }
    return DUE_LATER;
}

/** A record relies on the page as it is: hear_page() says when. */
static due_t due_at_change(walk_t *walk, const reader_t *reader)
{
    uint64_t at = (uint64_t)key_page(walk->key) * reader->rules->page_size;
    uint64_t end = reader->rec.offset + (is_write(reader) ? (uint64_t)reader->rec.result : 0);
    bool again = is_write(reader) && reader->payload != walk->bytes
                 && reader->files[reader->rec.file].inode == walk->inode && reader->rec.offset <= at
                 && at < end;
    return again || reader->rec.kind == TP_OP_UNLINK ? DUE_NEVER : DUE_LATER;
}

/* ---- the table ---- */

static const damage_t DAMAGES[] = {
    {"write_ahead", 4, fits_page, raise_lsn, NULL},
    {"home_page", 5, fits_page, into_another_space, NULL},
    {"dblwr_skip", 13, fits_copied_page, lower_lsn, NULL},
    {"scrubbed_page", 15, fits_fixed, make_zeros, NULL},
    {"freed_page", 15, fits_freed, make_freed, NULL},
    {"index_load", 16, fits_index_page, lower_lsn, due_at_change},
    {"ckpt_pages", 19, fits_system_fsync, NULL, due_at_slot},
    {"ckpt_marker", 19, fits_slot, lose_marker, NULL},
    {"ckpt_slot", 19, fits_slot, move_slot, NULL},
    {"ckpt_lsn", 19, fits_slot, lower_c, NULL},
    {"log_place", 20, fits_log_before_end, move_a_block, NULL},
    {"log_overwrite", 20, fits_log_behind_c, write_over_c, NULL},
    {"log_rewritten", 20, fits_log_tail, change_the_tail, NULL},
    {"log_epoch", 21, fits_log, raise_epoch, NULL},
    {"area_sync", 22, fits_area_fsync, NULL, due_at_copied_home},
    {"area_reuse", 22, fits_data_fsync, NULL, due_at_reuse},
    {"failed_io", 23, fits_log_fsync, fail, due_at_ack},
    {"file_record", 24, fits_new_table, change_name, NULL},
    {"file_sync", 24, fits_folder_fsync, NULL, due_at_ack_of_names},
    {"hole", 29, fits_fixed, make_hole, NULL},
};
#define N_DAMAGES ((uint32_t)(sizeof(DAMAGES) / sizeof(DAMAGES[0])))

/* ---- a copy ---- */

static _Noreturn void copy_ends(const walk_t *walk, canary_fate_t fate)
{
    if (fate == CANARY_CONDEMNED) {
        canary_tell(walk->canary, fate, "%s, I%" PRIu32, walk->damage->name,
                    walk->damage->invariant);
    } else if (fate == CANARY_DEAF) {
        canary_tell(walk->canary, fate, "nobody%s%s", walk->other[0] != '\0' ? ", but: " : "",
                    walk->other);
    } else {
        canary_tell(walk->canary, fate, NO_OCCASION);
    }
    _exit(EXIT_SUCCESS);
}

/** What the rules say of a copy, or of the run as it is. */
static void hear_finding(void *ctx, uint32_t invariant, const char *rule, const char *what)
{
    walk_t *walk = ctx;
    const damage_t *damage = walk->damage;
    if (damage == NULL) {
        walk->broken++;
    } else if (invariant == damage->invariant && strcmp(rule, damage->name) == 0) {
        copy_ends(walk, CANARY_CONDEMNED);
    } else if (walk->other[0] == '\0') {
        (void)snprintf(walk->other, sizeof(walk->other), "%s: %.90s", rule, what);
    }
}

/** Of the one copy of this process: what the rules hand on to those who hear of the log is their own. */
static walk_t *listener;

/** A record of the page in a copy's log, ahead of the rule. */
static void hear_page(void *ctx, uint64_t key, const redo_touch_t *touch)
{
    walk_t *walk = listener;
    due_t (*due)(walk_t *, const reader_t *) = walk->damage->due;
    bool fixed = key_space(key) == SPACE_SYSTEM && key_page(key) < FIXED_PAGES;
    bool plain = touch->kind == REDO_CHANGE && !touch->relies;
    if (due == due_at_slot && walk->lsn == 0 && fixed && touch->kind == REDO_CHANGE) {
        walk->lsn = touch->end_lsn;
    }
    /* The index may have been loaded meanwhile. */
    bool last = due == due_at_change && key == walk->key && !plain;
    bool relies = last && touch->kind == REDO_CHANGE && !has_load(walk->rules, walk->index);
    rules_index_changed(ctx, key, touch);
    if (last) {
        copy_ends(walk, relies ? CANARY_DEAF : CANARY_UNTRIED);
    }
}

/** Before a record of a copy. False: it is left out. */
static bool copy_before(walk_t *walk, reader_t *reader)
{
    const damage_t *damage = walk->damage;
    if (walk->due) {
        copy_ends(walk, CANARY_DEAF);
    }
    bool left_out = damage->change == NULL
                    && (damage->fits(walk, reader) || reader->rec.kind == TP_OP_SYNC_ALL);
    due_t due = left_out ? DUE_LATER : damage->due == NULL ? DUE_NOW : damage->due(walk, reader);
    if (due == DUE_NEVER) {
        copy_ends(walk, CANARY_UNTRIED);
    }
    walk->due = due == DUE_NOW;
    return !left_out;
}

/** In a process of its own. @return as copy_before() */
static bool copy_begins(walk_t *walk, uint32_t i, reader_t *reader)
{
    walk->damage = &DAMAGES[i];
    walk->canary = &walk->told->list[i];
    walk->rules = reader->rules;
    listener = walk;
    if (walk->rules->redo.on_page != NULL) {
        walk->rules->redo.on_page = hear_page;
    }
    if (walk->damage->change != NULL) {
        walk->damage->change(walk, reader);
    }
    return copy_before(walk, reader);
}

/* ---- the run as it is ---- */

/** Reads a copy on from here. @return true: this is the copy */
static bool copy_forks(walk_t *walk, uint32_t i)
{
    canary_t *canary = &walk->told->list[i];
    int status = 0;
    walk->tries[i]++;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        return true;
    }
    while (waitpid(pid, &status, 0) < 0) {
        CHECK(errno == EINTR);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS) {
        canary_tell(canary, CANARY_DEAF, "nobody: the judge died of it");
    }
    return false;
}

static void see_area(walk_t *walk, const reader_t *reader)
{
    if (is_area_write(reader)) {
        walk->area = reader->payload;
        walk->area_offset = reader->rec.offset;
        walk->area_bytes = (uint64_t)reader->rec.result;
        walk->area_synced = false;
    } else if (is_fsync(reader) && strcmp(path_of(reader), AREA_PATH) == 0) {
        walk->area_synced = true;
    }
}

static bool walk_before(void *ctx, reader_t *reader)
{
    walk_t *walk = ctx;
    bool goes_on = true;
    if (walk->damage != NULL) {
        goes_on = copy_before(walk, reader);
    }
    for (uint32_t i = 0; i < N_DAMAGES && walk->damage == NULL && reader->rules->journal; i++) {
        if (walk->told->list[i].fate == CANARY_UNTRIED && walk->tries[i] < TRIES_MAX
            && DAMAGES[i].fits(walk, reader) && copy_forks(walk, i)) {
            goes_on = copy_begins(walk, i, reader);
        }
    }
    if (goes_on) {
        see_area(walk, reader);
    }
    return goes_on;
}

dberr_t trace_canaries(const char *path, image_t *image, const trace_config_t *config,
                       canaries_t *out, err_sink_t *err)
{
    trace_t trace;
    walk_t walk = {.area_synced = true};
    trace_config_t listening = *config;
    CHECK(!config->live && N_DAMAGES <= CANARIES_MAX);
    canaries_t *told =
        mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(told != MAP_FAILED);
    for (told->n = 0; told->n < N_DAMAGES; told->n++) {
        canary_t *canary = &told->list[told->n];
        canary->invariant = DAMAGES[told->n].invariant;
        (void)snprintf(canary->name, sizeof(canary->name), "%s", DAMAGES[told->n].name);
        canary_tell(canary, CANARY_UNTRIED, NO_OCCASION);
    }
    walk.told = told;
    walk.config = &listening;
    listening.rules.found = hear_finding;
    listening.rules.ctx = &walk;
    listening.before = walk_before;
    listening.ctx = &walk;
    dberr_t e = trace_load(path, image, &listening, &trace, err);
    if (walk.damage != NULL) {
        copy_ends(&walk, walk.due ? CANARY_DEAF : CANARY_UNTRIED);
    }
    for (uint32_t i = 0; i < told->n && walk.broken > 0; i++) {
        canary_tell(&told->list[i], CANARY_UNTRIED, "the run itself breaks rules");
    }
    if (e == DB_SUCCESS) {
        *out = *told;
        trace_free(&trace);
    }
    (void)munmap(told, sizeof(*told));
    return e;
}
