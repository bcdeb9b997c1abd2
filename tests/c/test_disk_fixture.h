/** The simulated disk under a running engine: what its processes see, what is durable, and what
waits in between. A kill keeps what the processes saw; a power loss what was synced, and of the rest
what a seed says. */
#ifndef TEST_DISK_FIXTURE_H
#define TEST_DISK_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "disk/models.h"
#include "log/log.h"
#include "test_random.h"

#define DISK_LOG 1U /**< the site of writes to the log */

typedef struct disk {
    image_t *live;
    image_t *durable;
    fs_list_t events; /**< numbered for the durable image */
    persist_t persist;
    image_watch_t watch;
    void (*on_change)(void *ctx); /**< after each change and sync; or NULL */
    void *ctx;
} disk_t;

static inline os_t *disk_os(disk_t *disk)
{
    return image_os(disk->live);
}

/** The number in one image of a name of another. */
static inline uint32_t disk_name(image_t *to, const image_t *from, uint32_t name)
{
    const char *text = image_name_text(from, name);
    return image_name(to, text, strlen(text));
}

/** Keeps an event of an image for the durable one. */
static inline void disk_keep_event(disk_t *disk, const image_t *from, const fs_event_t *event)
{
    fs_event_t *kept = fs_list_add(&disk->events, event->kind);
    uint64_t seq = kept->seq;
    *kept = *event;
    kept->seq = seq;
    kept->name = disk_name(disk->durable, from, event->name);
    if (fs_renames(event)) {
        kept->name2 = disk_name(disk->durable, from, event->name2);
    }
    if (event->kind == FS_WRITE) {
        kept->data = fs_list_copy(&disk->events, event->data, event->length);
    }
    persist_advance(&disk->persist, disk->events.n);
}

static inline void disk_event(void *ctx, fs_event_t *event, const char *path)
{
    disk_t *disk = ctx;
    event->site = event->kind == FS_WRITE && strcmp(path, LOG_FILE_NAME) == 0
                          && event->offset >= LOG_FILE_HDR_SIZE
                      ? DISK_LOG
                      : 0;
    while (image_inode_count(disk->durable) < image_inode_count(disk->live)) {
        (void)image_inode_create(disk->durable);
    }
    disk_keep_event(disk, disk->live, event);
    if (disk->on_change != NULL) {
        disk->on_change(disk->ctx);
    }
}

static inline disk_t *disk_create(void)
{
    disk_t *disk = calloc(1, sizeof(*disk));
    assert_non_null(disk);
    disk->live = image_create();
    disk->durable = image_create();
    image_set_hashing(disk->live, false);
    image_set_hashing(disk->durable, false);
    persist_init(&disk->persist, &disk->events, disk->durable, NULL);
    disk->watch = (image_watch_t){.event = disk_event, .ctx = disk};
    image_os_watch(disk->live, &disk->watch);
    return disk;
}

static inline void disk_destroy(disk_t *disk)
{
    persist_free(&disk->persist);
    fs_list_free(&disk->events);
    image_destroy(disk->live);
    image_destroy(disk->durable);
    free(disk);
}

/** What a killed process leaves: the same, what waits included. */
static inline disk_t *disk_kill(const disk_t *disk)
{
    disk_t *copy = disk_create();
    image_copy(copy->live, disk->live);
    image_copy(copy->durable, disk->durable);
    for (uint32_t i = 0; i < disk->persist.n_pending; i++) {
        disk_keep_event(copy, disk->durable, persist_pending(&disk->persist, i));
    }
    return copy;
}

/** What is durable now is all there is. No file is open. */
static inline void disk_settle(disk_t *disk)
{
    persist_free(&disk->persist);
    fs_list_clear(&disk->events);
    persist_init(&disk->persist, &disk->events, disk->durable, NULL);
    image_destroy(disk->live);
    disk->live = image_create();
    image_set_hashing(disk->live, false);
    image_os_watch(disk->live, &disk->watch);
    image_copy(disk->live, disk->durable);
}

/** A power loss as the explorer has it: one state of one of its models. */
static inline void disk_lose_by_model(disk_t *disk, uint64_t *rnd)
{
    const model_config_t config = {.enabled = MODELS_ALL,
                                   .sector = SECTOR_SIZE,
                                   .log_sites = 1U << DISK_LOG,
                                   .seed = random_split(rnd)};
    torn_t torn = {.n = {{{0}}}};
    model_t model = MODEL_ALL_PERSISTED;
    uint32_t n = 0;
    while (n == 0) {
        model = (model_t)(random_split(rnd) % MODEL_KINDS);
        n = model_count(&config, model, &disk->persist);
    }
    model_apply(&config, model, (uint32_t)(random_split(rnd) % n), 0, &disk->persist, &torn);
}

static inline void disk_keep_sectors(disk_t *disk, const fs_event_t *write, uint64_t *rnd)
{
    uint64_t end = write->offset + write->length;
    for (uint64_t at = write->offset, next; at < end; at = next) {
        next = at - at % SECTOR_SIZE + SECTOR_SIZE;
        next = next < end ? next : end;
        if (random_split(rnd) % 2 == 0) {
            assert_true(image_write(disk->durable, write->inode, at,
                                    write->data + (at - write->offset), next - at));
        }
    }
}

typedef enum disk_fate {
    FATE_LOST,
    FATE_SECTORS, /**< each of its own, of whole changes the half */
    FATE_HALF,
    FATE_KEPT,
    FATE_N
} disk_fate_t;

/** A power loss that treats each file its own way: all of one is there, nothing of another. Of the
directory the first changes are there, as a journal keeps them, or any. */
static inline void disk_lose_by_file(disk_t *disk, uint64_t *rnd)
{
    const persist_t *persist = &disk->persist;
    uint64_t seed = random_split(rnd);
    bool journal = random_split(rnd) % 2 == 0;
    uint64_t until = random_split(rnd) % (persist->n_pending + 1U);
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        const fs_event_t *event = persist_pending(persist, i);
        bool content = fs_changes_content(event);
        disk_fate_t fate = FATE_HALF;
        if (content) {
            fate = (disk_fate_t)(stream_mix(seed, event->inode, 0, 0) % FATE_N);
        } else if (journal) {
            fate = i < until ? FATE_KEPT : FATE_LOST;
        }
        if (fate == FATE_SECTORS && event->kind == FS_WRITE) {
            disk_keep_sectors(disk, event, rnd);
        } else if (fate == FATE_KEPT || (fate != FATE_LOST && random_split(rnd) % 2 == 0)) {
            persist_apply(disk->durable, event);
        }
    }
}

/** Turns the disk into what a power loss leaves. */
static inline void disk_power_loss(disk_t *disk, uint64_t *rnd)
{
    if (random_split(rnd) % 4 == 0) {
        disk_lose_by_model(disk, rnd);
    } else {
        disk_lose_by_file(disk, rnd);
    }
    disk_settle(disk);
}

#endif
