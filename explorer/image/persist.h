/** What a power loss leaves: the persistence model.

An image holds what is durable. Everything else that happened waits in the order of the events:
content changes for an fsync of their file, directory changes for an fsync of their directory. A
crash keeps any part of what waits. explorer/image/README.md has the rules and their reasons. */
#ifndef EXPLORER_PERSIST_H
#define EXPLORER_PERSIST_H

#include "explorer/image/image.h"

#define IGNORE_MAX 8U

/** Files whose fsync is a lie, by fnmatch pattern on the path ("." for the directory). */
typedef struct ignore_list {
    const char *patterns[IGNORE_MAX];
    uint32_t n;
} ignore_list_t;

typedef struct persist {
    image_t *image;
    const fs_list_t *list;
    const ignore_list_t *ignore;
    uint32_t n_before; /**< events that waited at the start */
    uint32_t next;     /**< event that comes next: the crash point */
    uint32_t *pending; /**< events that are not durable, ascending */
    uint32_t n_pending;
    uint32_t capacity;
} persist_t;

/** image: what is durable before the first event; every inode of the list exists in it. ignore may
be NULL. */
void persist_init(persist_t *persist, const fs_list_t *list, image_t *image,
                  const ignore_list_t *ignore);
/** The same, but the first n_waiting events have happened, and none of them is durable. */
void persist_init_waiting(persist_t *persist, const fs_list_t *list, image_t *image,
                          const ignore_list_t *ignore, uint32_t n_waiting);
void persist_free(persist_t *persist);
/** Goes to the crash point after `to` events; never back. */
void persist_advance(persist_t *persist, uint32_t to);

/** The i-th event that waits. */
const fs_event_t *persist_pending(const persist_t *persist, uint32_t i);

/** Makes one event happen in an image. */
void persist_apply(image_t *image, const fs_event_t *event);

#endif
