/** What a power loss leaves: the persistence model.

An image holds what is durable. Everything else that happened waits in the order of the events:
content changes for an fsync of their file, directory changes for an fsync of their directory. A
crash keeps any part of what waits. disk/README.md has the rules and their reasons. */
#ifndef DISK_PERSIST_H
#define DISK_PERSIST_H

#include "disk/fs_profile.h"
#include "disk/image.h"
#include "disk/path_set.h"

/** What a disk, and the file system on it, make of an fsync. */
typedef struct disk_profile {
    uint32_t sector;        /**< bytes that it holds whole; 0: 512 */
    path_set_t lies;        /**< files whose fsync does nothing ("." for the directory) */
    const fs_profile_t *fs; /**< NULL: the default */
} disk_profile_t;

typedef struct persist {
    image_t *image;
    const fs_list_t *list;
    const disk_profile_t *disk; /**< NULL: an honest one, the default file system */
    uint32_t n_before;          /**< events that waited at the start */
    uint32_t next;              /**< event that comes next: the crash point */
    uint32_t *pending;          /**< events that are not durable, ascending */
    uint32_t n_pending;
    uint32_t capacity;
    bool *covered;         /**< of these: by the sync that happens now */
    bool *overlapped;      /**< by event: it waits on, since it overlapped an fsync of its file */
    uint32_t n_overlapped; /**< events that this array has room for */
    bool under_way; /**< what happened last is a write that is durable when it ends, and has not */
} persist_t;

/** image: what is durable before the first event; every inode of the list exists in it. disk may
be NULL. */
void persist_init(persist_t *persist, const fs_list_t *list, image_t *image,
                  const disk_profile_t *disk);
/** The same, but the first n_waiting events have happened, and none of them is durable. */
void persist_init_waiting(persist_t *persist, const fs_list_t *list, image_t *image,
                          const disk_profile_t *disk, uint32_t n_waiting);
void persist_free(persist_t *persist);
/** Goes to the crash point after `to` events; never back. */
void persist_advance(persist_t *persist, uint32_t to);

/** The file system on the disk. */
const fs_profile_t *persist_fs(const persist_t *persist);

/** How far the file of a waiting write may reach by it although its bytes are lost: its size then,
in bytes; 0: it does not grow without them. */
uint64_t persist_growth(const persist_t *persist, const fs_event_t *write);

/** The i-th event that waits. */
const fs_event_t *persist_pending(const persist_t *persist, uint32_t i);

/** Has the i-th event that waits overlapped an fsync of its file, so that a program may take it for
durable? */
bool persist_is_overlapped(const persist_t *persist, uint32_t i);

/** Is what happened last a write that is durable by itself? At this crash point it is still under
way: it may be torn or lost, and whoever waits for it has not been told. */
bool persist_is_under_way(const persist_t *persist);

/** Can a change of a name not be there after a crash without this earlier change of a name or of
content, since otherwise a file would be in two directories, in none, or in a directory of an
earlier life? */
bool persist_needs(const persist_t *persist, const fs_event_t *later, const fs_event_t *earlier);

/** Makes one event happen in an image. */
void persist_apply(image_t *image, const fs_event_t *event);

#endif
