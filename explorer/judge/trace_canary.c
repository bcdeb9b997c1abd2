/* Canaries of the rules on bytes.

Place: above trace_read.c, which hands each record over before the rules hear of it.

    record --> can it be damaged for an untried one? --fork--> damaged, read on
       \--> read as it is                                 |--> its rule speaks: condemned
                                                          \--> its rule is silent when due: deaf

Rules
1. A copy is damaged so that its rule must speak, whatever the target does: what would show that is
   `due`, and follows from the damaged bytes and from what the log says (redo.h), never from what
   the rules make of them. Where nothing is due up to the end of the recording there was no
   occasion, and the canary is untried.
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
#include "explorer/judge/trace_seen.h"
#include "page/page_index.h"

#define TRIES_MAX 16U            /**< of one canary, while nothing comes to be due */
#define FAR_LSN ((lsn_t)1 << 40) /* no log has so much */
#define SLOT_LSN 12              /* FORMAT.md, "Redo log file" */
#define SLOT_MARKER 20
#define NO_OCCASION "the run gives no occasion"
#define PUNCH (1 | 2) /* FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE */

/** What is done to a record. */
typedef enum damage_how {
    LEAVE_OUT, /**< it is left out, and all that fit behind it */
    RAISE_LSN,
    LOWER_LSN,
    OTHER_SPACE,
    ZEROS,
    HOLE,
    FREED, /**< trace_freed_page() goes home instead, if there is one */
    NEXT_BLOCK,
    OVER_C,
    OTHER_BYTES,
    RAISE_EPOCH,
    OTHER_SLOT,
    NO_MARKER,
    LOWER_C,
    FAIL,
    OTHER_NAME
} damage_how_t;

typedef enum due { DUE_LATER, DUE_NOW, DUE_NEVER } due_t;

typedef struct walk walk_t;

typedef struct damage {
    const char *name; /**< of the canary: of the rule that must speak */
    uint32_t invariant;
    uint32_t fits; /**< records that can be damaged, in the run as it is */
    damage_how_t how;
    /** With which record must the rule speak? Asked of those behind the damaged one. NULL: the
       damaged one. */
    due_t (*due)(walk_t *walk, const reader_t *reader);
} damage_t;

struct walk {
    canaries_t *told; /**< shared memory */
    uint32_t tries[CANARIES_MAX];
    uint64_t broken;  /**< findings of the run as it is */
    seen_t seen;      /**< the record that is being read */
    const byte *area; /**< the doublewrite area's newest write */
    uint64_t area_offset;
    uint64_t area_bytes; /**< 0: none yet */
    bool area_synced;

    /* Of a copy. */
    const damage_t *damage; /**< NULL: the run as it is */
    canary_t *canary;
    bool due;
    uint32_t inode;   /**< where ... */
    uint64_t key;     /**< ... of the damaged page ... */
    index_id_t index; /**< ... and the tree that it is of */
    lsn_t lsn;        /**< where the log ended then */
    uint64_t reused;  /**< position in the area + 1; 0: none */
    bool renamed;     /**< a table's file has come or gone */
    char other[120];  /**< what was found instead */
};

/* ---- what is damaged ---- */

static void set_lsn(const reader_t *reader, byte *page, lsn_t lsn)
{
    fil_page_set_lsn(page, reader->rules->page_size, lsn);
    fil_page_stamp(page, reader->rules->page_size);
}

static void set_slot(byte *block, uint32_t field, lsn_t lsn)
{
    mach_write_8(block + field, lsn);
    mach_write_4(block + LOG_CRC_OFFSET, crc32c(block, LOG_CRC_OFFSET));
}

/** A page of the tablespace goes to its place in place of the one that is written. */
static void write_freed(reader_t *reader, byte *page, page_no_t page_no)
{
    mach_write_4(page + FIL_PAGE_OFFSET, page_no);
    fil_page_stamp(page, reader->rules->page_size);
    reader->rec.offset = (uint64_t)page_no * reader->rules->page_size;
    reader->rec.result = reader->rules->page_size;
}

/** The block goes where C lies, as the one that has its place when the log has gone around. */
static void write_over_c(reader_t *reader, byte *block)
{
    const redo_t *redo = &reader->rules->redo;
    lsn_t c = lsn_block(rules_c(reader->rules));
    uint64_t ring = redo->info.file_size - LOG_FILE_HDR_SIZE;
    mach_write_4(block + LOG_BLOCK_NO, (uint32_t)((c + ring) / LOG_BLOCK_SIZE));
    reader->rec.offset = redo_offset(redo, c);
    reader->rec.result = LOG_BLOCK_SIZE;
}

/** bytes: of the record, and its own. */
static void damage_record(const walk_t *walk, reader_t *reader, byte *bytes)
{
    tp_trace_record_t *rec = &reader->rec;
    space_id_t space = walk->seen.page.space;
    switch (walk->damage->how) {
    case LEAVE_OUT:
        break;
    case RAISE_LSN:
        set_lsn(reader, bytes, fil_page_get_lsn(bytes) + FAR_LSN);
        break;
    case LOWER_LSN: /* no record of the page can end there, since one ends right behind it */
        set_lsn(reader, bytes, fil_page_get_lsn(bytes) - 1);
        break;
    case OTHER_SPACE:
        mach_write_4(bytes + FIL_PAGE_SPACE_ID, space + 1);
        fil_page_stamp(bytes, reader->rules->page_size);
        break;
    case ZEROS:
        memset(bytes, 0, reader->rules->page_size);
        break;
    case HOLE:
        rec->kind = TP_OP_FALLOCATE;
        rec->flags = PUNCH;
        rec->length = reader->rules->page_size;
        rec->result = 0;
        break;
    case FREED:
        write_freed(reader, bytes, key_page(trace_freed_page(reader, space)));
        break;
    case NEXT_BLOCK:
        rec->offset += LOG_BLOCK_SIZE;
        break;
    case OVER_C:
        write_over_c(reader, bytes);
        break;
    case OTHER_BYTES:
        bytes[LOG_BLOCK_HDR_SIZE] ^= 0xFF;
        break;
    case RAISE_EPOCH:
        mach_write_4(bytes + LOG_BLOCK_EPOCH, UINT32_MAX);
        break;
    case OTHER_SLOT:
        rec->offset = LOG_SLOT_OFFSET(rec->offset == LOG_SLOT_OFFSET(0) ? 1 : 0);
        break;
    case NO_MARKER:
        set_slot(bytes, SLOT_MARKER, FAR_LSN + LOG_BLOCK_HDR_SIZE);
        break;
    case LOWER_C: /* to before the first checkpoint */
        set_slot(bytes, SLOT_LSN, LOG_BLOCK_HDR_SIZE);
        break;
    case FAIL:
        rec->result = -EIO;
        break;
    case OTHER_NAME: /* of which the log knows nothing: another character before the suffix */
        bytes[strlen((const char *)bytes) - 5] = '~';
        break;
    }
}

/* ---- what is due ---- */

static due_t due_at_ack(walk_t *walk, const reader_t *reader)
{
    (void)reader;
    return (walk->seen.is & ACK) != 0 ? DUE_NOW : DUE_LATER;
}

static due_t due_at_ack_of_names(walk_t *walk, const reader_t *reader)
{
    walk->renamed |= (walk->seen.is & TABLE_NAME) != 0;
    return walk->renamed ? due_at_ack(walk, reader) : DUE_LATER;
}

/** The checkpoint is past a change of a page that is not fsynced at home since. */
static due_t due_at_slot(walk_t *walk, const reader_t *reader)
{
    bool passed = false;
    for (page_no_t no = 0; no < FIXED_PAGES && (walk->seen.is & SLOT) != 0; no++) {
        const redo_entry_t *last =
            redo_last(&reader->rules->redo, redo_key(SPACE_SYSTEM, no), walk->seen.c);
        passed |= last != NULL && last->kind == REDO_CHANGE && last->end_lsn > walk->lsn;
    }
    return passed ? DUE_NOW : DUE_LATER;
}

/** The page of the area's newest write that equals the one that goes home: its position + 1; 0:
none. */
static uint64_t copy_of(const walk_t *walk, const reader_t *reader)
{
    uint32_t page_size = reader->rules->page_size;
    bool copied = (walk->seen.is & COPIED_PAGE) != 0;
    for (uint64_t at = 0; copied && at + page_size <= walk->area_bytes; at += page_size) {
        if (memcmp(walk->area + at, reader->payload, page_size) == 0) {
            return (walk->area_offset + at) / page_size + 1;
        }
    }
    return 0;
}

/** A page goes home whose copy is not fsynced. */
static due_t due_at_copied_home(walk_t *walk, const reader_t *reader)
{
    return copy_of(walk, reader) != 0 ? DUE_NOW : DUE_LATER;
}

/** A copy is overwritten whose page is not fsynced at home. */
static due_t due_at_reuse(walk_t *walk, const reader_t *reader)
{
    uint32_t page_size = reader->rules->page_size;
    const tp_trace_record_t *rec = &reader->rec;
    if (walk->reused == 0) {
        walk->reused = copy_of(walk, reader);
        return DUE_LATER;
    }
    if ((walk->seen.is & SHORTENED) != 0) {
        walk->reused = 0; /* that file needs no copy any more */
    }
    bool over = (walk->seen.is & AREA) != 0 && rec->offset < walk->reused * page_size
                && walk->reused * page_size <= rec->offset + (uint64_t)rec->result;
    return walk->reused != 0 && over ? DUE_NOW : DUE_LATER;
}

/** A record relies on the page as it is: hear_page() says when. It may be written again before. */
static due_t due_at_change(walk_t *walk, const reader_t *reader)
{
    const tp_trace_record_t *rec = &reader->rec;
    const file_map_t *file = trace_file(reader);
    uint64_t at = (uint64_t)key_page(walk->key) * reader->rules->page_size;
    bool again = rec->kind == TP_OP_WRITE && rec->result > 0 && file != NULL
                 && file->inode == walk->inode && rec->offset <= at
                 && at < rec->offset + (uint64_t)rec->result;
    return again || rec->kind == TP_OP_UNLINK ? DUE_NEVER : DUE_LATER;
}

/* ---- the table ---- */

static const damage_t DAMAGES[] = {
    {"write_ahead", 4, PAGE, RAISE_LSN, NULL},
    {"home_page", 5, PAGE, OTHER_SPACE, NULL},
    {"dblwr_skip", 13, COPIED_PAGE, LOWER_LSN, NULL},
    {"scrubbed_page", 15, FIXED_PAGE, ZEROS, NULL},
    {"freed_page", 15, PAGE, FREED, NULL},
    {"index_load", 16, TREE_PAGE, LOWER_LSN, due_at_change},
    {"ckpt_pages", 19, SYNC_SYSTEM, LEAVE_OUT, due_at_slot},
    {"ckpt_marker", 19, SLOT, NO_MARKER, NULL},
    {"ckpt_slot", 19, SLOT, OTHER_SLOT, NULL},
    {"ckpt_lsn", 19, SLOT, LOWER_C, NULL},
    {"log_place", 20, LOG_ROOM, NEXT_BLOCK, NULL},
    {"log_overwrite", 20, LOG_BEHIND_C, OVER_C, NULL},
    {"log_rewritten", 20, LOG_TAIL, OTHER_BYTES, NULL},
    {"log_epoch", 21, LOG, RAISE_EPOCH, NULL},
    {"area_sync", 22, SYNC_AREA, LEAVE_OUT, due_at_copied_home},
    {"area_reuse", 22, SYNC_DATA, LEAVE_OUT, due_at_reuse},
    {"failed_io", 23, SYNC_LOG, FAIL, due_at_ack},
    {"file_record", 24, TABLE_MADE, OTHER_NAME, NULL},
    {"file_sync", 24, SYNC_FOLDER, LEAVE_OUT, due_at_ack_of_names},
    {"hole", 29, FIXED_PAGE, HOLE, NULL},
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
static void hear_finding(void *ctx, uint32_t invariant, const char *rule, uint64_t page,
                         const char *what)
{
    walk_t *walk = ctx;
    const damage_t *damage = walk->damage;
    (void)page;
    if (damage == NULL) {
        walk->broken++;
    } else if (invariant == damage->invariant && strcmp(rule, damage->name) == 0) {
        copy_ends(walk, CANARY_CONDEMNED);
    } else if (walk->other[0] == '\0') {
        (void)snprintf(walk->other, sizeof(walk->other), "%s: %.90s", rule, what);
    }
}

/** Of the one copy of this process: what the rules hand on to those who hear of the log is their
own. */
static walk_t *listener;

/** A record of the damaged page in a copy's log, ahead of the rule. The index may have been loaded
meanwhile. */
static void hear_page(void *ctx, uint64_t key, const redo_touch_t *touch)
{
    const walk_t *walk = listener;
    bool last = key == walk->key && (touch->kind != REDO_CHANGE || touch->relies);
    bool relies = last && touch->kind == REDO_CHANGE && !trace_has_load(ctx, walk->index);
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
    bool left_out = damage->how == LEAVE_OUT && (walk->seen.is & (damage->fits | SYNC_ALL)) != 0;
    due_t due = left_out ? DUE_LATER : damage->due(walk, reader);
    if (due == DUE_NEVER) {
        copy_ends(walk, CANARY_UNTRIED);
    }
    walk->due = due == DUE_NOW;
    return !left_out;
}

/** In a process of its own. @return as copy_before() */
static bool copy_begins(walk_t *walk, uint32_t i, reader_t *reader)
{
    const file_map_t *file = trace_file(reader);
    byte *bytes = mem_alloc(reader->payload_bytes + 1);
    memcpy(bytes, reader->payload, reader->payload_bytes);
    reader->payload = bytes;
    walk->damage = &DAMAGES[i];
    walk->canary = &walk->told->list[i];
    walk->lsn = reader->rules->redo.end_lsn;
    walk->inode = file == NULL ? IMAGE_NONE : file->inode;
    walk->key = redo_key(walk->seen.page.space, walk->seen.page.page_no);
    listener = walk;
    if (walk->damage->due == due_at_change) {
        walk->index = page_index_id(bytes);
        reader->rules->redo.on_page = hear_page;
    }
    damage_record(walk, reader, bytes);
    walk->due = walk->damage->how != LEAVE_OUT && walk->damage->due == NULL;
    return walk->damage->how != LEAVE_OUT;
}

/* ---- the run as it is ---- */

static bool fits(const walk_t *walk, const damage_t *damage, const reader_t *reader)
{
    return (walk->seen.is & damage->fits) != 0
           && (damage->how != FREED || trace_freed_page(reader, walk->seen.page.space) != 0);
}

/** Reads a copy on from here. @return true: this is the copy */
static bool copy_forks(walk_t *walk, uint32_t i)
{
    canary_t *canary = &walk->told->list[i];
    walk->tries[i]++;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        return true;
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
        CHECK(errno == EINTR);
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS) {
        canary_tell(canary, CANARY_DEAF, "nobody: the judge died of it");
    }
    return false;
}

static bool walk_before(void *ctx, reader_t *reader)
{
    walk_t *walk = ctx;
    walk->seen = trace_see(reader);
    walk->seen.is &= walk->area_synced ? ~(uint32_t)SYNC_AREA : UINT32_MAX;
    bool goes_on = true;
    if (walk->damage != NULL) {
        goes_on = copy_before(walk, reader);
    }
    for (uint32_t i = 0; i < N_DAMAGES && walk->damage == NULL && reader->rules->journal; i++) {
        if (walk->told->list[i].fate == CANARY_UNTRIED && walk->tries[i] < TRIES_MAX
            && fits(walk, &DAMAGES[i], reader) && copy_forks(walk, i)) {
            goes_on = copy_begins(walk, i, reader);
        }
    }
    if (goes_on && (walk->seen.is & AREA) != 0) {
        walk->area = reader->payload;
        walk->area_offset = reader->rec.offset;
        walk->area_bytes = (uint64_t)reader->rec.result;
    }
    if (goes_on && (walk->seen.is & (AREA | SYNC_AREA)) != 0) {
        walk->area_synced = (walk->seen.is & SYNC_AREA) != 0;
    }
    return goes_on;
}

dberr_t trace_canaries(const char *path, image_t *image, const trace_config_t *config,
                       canaries_t *out, err_sink_t *err)
{
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
    listening.rules.found = hear_finding;
    listening.rules.ctx = &walk;
    listening.before = walk_before;
    listening.ctx = &walk;
    trace_t trace;
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
