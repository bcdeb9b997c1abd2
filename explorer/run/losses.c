/* What a state has lost.

Place: above persist.c; state.c calls it for the state of --only.

    durable image --keep old bytes--> model_apply() --compare--> per waiting event: what of it is there

Rules
1. The image is asked, not the model: what is told is what recovery will find.
2. Each sector is told once, with the newest waiting write of it; so is each name. */
#include "explorer/run/losses.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { SECTOR_NEW = '1', SECTOR_OLD = '0', SECTOR_SAME = '=', SECTOR_LATER = '+' };

struct losses {
    const persist_t *persist;
    uint32_t sector;
    image_t *image;
    uint8_t **old; /**< per waiting event, of a write: the bytes before it, zero beyond the end */
};

/** Bytes of a file; what lies beyond its end is zero. */
static void read_bytes(const image_t *image, uint32_t inode, uint64_t offset, uint64_t len,
                       uint8_t *out)
{
    uint64_t size = image_size(image, inode);
    uint64_t there = offset < size ? size - offset : 0;
    there = there < len ? there : len;
    memset(out, 0, len);
    if (there > 0) {
        memcpy(out, image_bytes(image, inode) + offset, there);
    }
}

losses_t *losses_begin(const persist_t *persist, uint32_t sector)
{
    losses_t *losses = mem_alloc(sizeof(*losses));
    uint32_t n = persist->n_pending;
    *losses = (losses_t){.persist = persist, .sector = sector, .image = persist->image};
    losses->old = mem_alloc((n + 1U) * sizeof(*losses->old));
    for (uint32_t i = 0; i < n; i++) {
        const fs_event_t *event = persist_pending(persist, i);
        losses->old[i] = NULL;
        if (event->kind == FS_WRITE && event->length > 0) {
            losses->old[i] = mem_alloc(event->length);
            read_bytes(losses->image, event->inode, event->offset, event->length, losses->old[i]);
        }
    }
    return losses;
}

/* ---- names ---- */

typedef struct name_search {
    uint32_t inode;
    uint32_t name;
} name_search_t;

static void search_name(void *ctx, uint32_t name, uint32_t inode)
{
    name_search_t *search = ctx;
    if (inode == search->inode) {
        search->name = name;
    }
}

/** The path by which the inode is known: its name now, else one that is waiting. */
static const char *path_of(const losses_t *losses, uint32_t inode)
{
    name_search_t search = {.inode = inode, .name = IMAGE_NONE};
    for (uint32_t i = 0; i < losses->persist->n_pending; i++) {
        const fs_event_t *event = persist_pending(losses->persist, i);
        if (event->inode == inode && event->kind == FS_LINK) {
            search.name = event->name;
        }
    }
    image_each(losses->image, search_name, &search);
    return search.name == IMAGE_NONE ? "" : image_name_text(losses->image, search.name);
}

static bool is_of_names(const fs_event_t *event)
{
    return event->kind == FS_LINK || event->kind == FS_RENAME || event->kind == FS_UNLINK;
}

/** Rule 2. */
static bool named_later(const losses_t *losses, uint32_t i)
{
    const fs_event_t *event = persist_pending(losses->persist, i);
    while (++i < losses->persist->n_pending) {
        const fs_event_t *later = persist_pending(losses->persist, i);
        if (is_of_names(later) && later->inode == event->inode) {
            return true;
        }
    }
    return false;
}

static bool name_is_there(const losses_t *losses, const fs_event_t *event)
{
    switch (event->kind) {
    case FS_LINK:
        return image_lookup(losses->image, event->name) == event->inode;
    case FS_RENAME:
        return image_lookup(losses->image, event->name2) == event->inode;
    default:
        return image_lookup(losses->image, event->name) != event->inode;
    }
}

/* ---- sectors ---- */

static bool written_later(const losses_t *losses, uint32_t i, uint64_t from, uint64_t to)
{
    const fs_event_t *event = persist_pending(losses->persist, i);
    while (++i < losses->persist->n_pending) {
        const fs_event_t *later = persist_pending(losses->persist, i);
        if (later->kind == FS_WRITE && later->inode == event->inode && later->offset < to
            && from < later->offset + later->length) {
            return true;
        }
    }
    return false;
}

static char sector_state(const losses_t *losses, uint32_t i, const uint8_t *now, uint64_t from,
                         uint64_t to)
{
    const fs_event_t *event = persist_pending(losses->persist, i);
    uint64_t at = from - event->offset;
    if (written_later(losses, i, from, to)) {
        return SECTOR_LATER;
    }
    if (memcmp(now + at, event->data + at, to - from) != 0) {
        return SECTOR_OLD;
    }
    return memcmp(losses->old[i] + at, event->data + at, to - from) == 0 ? SECTOR_SAME : SECTOR_NEW;
}

/** One character per sector that the write touches. NULL: none is lost. */
static char *sectors_of_write(const losses_t *losses, uint32_t i)
{
    const fs_event_t *event = persist_pending(losses->persist, i);
    uint64_t end = event->offset + event->length;
    uint64_t n = (end - 1) / losses->sector - event->offset / losses->sector + 1;
    uint8_t *now = mem_alloc(event->length);
    char *text = mem_alloc(n + 1);
    uint64_t from = event->offset;
    read_bytes(losses->image, event->inode, event->offset, event->length, now);
    for (uint64_t k = 0; k < n; k++) {
        uint64_t to = (from / losses->sector + 1) * losses->sector;
        to = to < end ? to : end;
        text[k] = sector_state(losses, i, now, from, to);
        from = to;
    }
    text[n] = '\0';
    free(now);
    if (strchr(text, SECTOR_OLD) == NULL) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- output ---- */

static void print_line(json_t *object)
{
    CHECK(object != NULL);
    CHECK(json_dumpf(object, stdout, JSON_COMPACT) == 0);
    (void)putchar('\n');
    json_decref(object);
}

static void print_write(const losses_t *losses, uint32_t i, uint32_t level)
{
    const fs_event_t *event = persist_pending(losses->persist, i);
    char *sectors = sectors_of_write(losses, i);
    if (sectors != NULL) {
        print_line(json_pack("{s:s, s:i, s:s, s:I, s:I, s:i, s:s, s:s}", "lost", "write", "level",
                             (int)level, "path", path_of(losses, event->inode), "offset",
                             (json_int_t)event->offset, "length", (json_int_t)event->length,
                             "sector", (int)losses->sector, "sectors", sectors, "site",
                             fs_site_name(event->site)));
        free(sectors);
    }
}

static void print_name(const losses_t *losses, uint32_t i, uint32_t level)
{
    const fs_event_t *event = persist_pending(losses->persist, i);
    static const char *const WORDS[] = {
        [FS_LINK] = "create", [FS_RENAME] = "rename", [FS_UNLINK] = "unlink"};
    if (named_later(losses, i) || name_is_there(losses, event)) {
        return;
    }
    const char *to = event->kind == FS_RENAME ? image_name_text(losses->image, event->name2) : "";
    print_line(json_pack("{s:s, s:i, s:s, s:s}", "lost", WORDS[event->kind], "level", (int)level,
                         "path", image_name_text(losses->image, event->name), "to", to));
}

static void print_size(const losses_t *losses, uint32_t i, uint32_t level)
{
    const fs_event_t *event = persist_pending(losses->persist, i);
    if (image_size(losses->image, event->inode) < event->offset) {
        print_line(json_pack("{s:s, s:i, s:s, s:I}", "lost", "size", "level", (int)level, "path",
                             path_of(losses, event->inode), "offset", (json_int_t)event->offset));
    }
}

void losses_print(losses_t *losses, uint32_t level)
{
    for (uint32_t i = 0; i < losses->persist->n_pending; i++) {
        const fs_event_t *event = persist_pending(losses->persist, i);
        if (losses->old[i] != NULL) {
            print_write(losses, i, level);
        } else if (is_of_names(event)) {
            print_name(losses, i, level);
        } else if (event->kind == FS_TRUNCATE) {
            print_size(losses, i, level);
        }
        free(losses->old[i]);
    }
    (void)fflush(stdout); /* this process leaves by _exit() */
    free(losses->old);
    free(losses);
}
