/** File system events: the one vocabulary of a recorded run and of what a recovery does in memory.

Inodes and names are numbers of an image (image.h). A name is a path inside the data directory. */
#ifndef DISK_FS_EVENT_H
#define DISK_FS_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "disk/memory.h"

typedef enum fs_kind {
    FS_WRITE,    /**< inode, offset, length, data, durable, old_size */
    FS_TRUNCATE, /**< inode, offset = new size, old_size */
    FS_SYNC,     /**< inode; name = its path now */
    FS_LINK,     /**< name now leads to inode: a file was created */
    FS_RENAME,   /**< name, name2; inode is what moves */
    FS_UNLINK,   /**< name; inode is what it led to */
    FS_SYNC_DIR, /**< name of the directory */
    /** inode, offset, length: reads as zeros from now on; the size stays. A punched hole */
    FS_ZERO,
    FS_MOVE_DIR, /**< name, name2 of a directory: all names below it move along */
    FS_MKDIR,    /**< name of the directory */
    FS_RMDIR     /**< name of the directory */
} fs_kind_t;

/** What a write is for: a number whose meaning the target has; 0: nothing is known of it. */
typedef uint32_t fs_site_t;
#define FS_SITES_MAX 16U /**< numbers lie below */

/** What is known of a whole chunk of a write, see image_keep(). */
typedef struct fs_chunk {
    uint64_t hash;
    uint64_t version;
} fs_chunk_t;

typedef struct fs_event {
    fs_kind_t kind;
    fs_site_t site;   /**< of the last write up to here */
    bool first_flush; /**< of a write: see flush.h */
    bool durable;     /**< of a write: it is there when it has ended, as through O_DSYNC */
    bool swaps;       /**< of a rename: what its new name led to gets the old one */
    uint32_t late;    /**< so many of the events right before it had not ended when it began */
    /** Of a write: aligned parts that the storage writes whole, in bytes; 0: sectors. */
    uint32_t unit;
    uint32_t inode;
    uint32_t name;
    uint32_t name2;
    uint32_t over; /**< of a rename: 1 + the inode that its new name led to; 0: none */
    uint64_t offset;
    uint64_t length;
    uint64_t old_size;
    const uint8_t *data;      /**< owned by the list or by the mapped trace */
    const uint8_t *calls;     /**< that made it, see calls.h; NULL: nobody asked for them */
    const fs_chunk_t *chunks; /**< of a write whose data outlives the image; NULL: it does not */
    uint64_t seq;             /**< event number in the trace, or position from 1 */
    uint32_t acked_line;      /**< last one acknowledged before the next event */
    uint32_t issued_line;     /**< last one issued before this event */
} fs_event_t;

static inline bool fs_changes_name(const fs_event_t *event)
{
    return event->kind == FS_LINK || event->kind == FS_RENAME || event->kind == FS_UNLINK
           || event->kind == FS_MOVE_DIR || event->kind == FS_MKDIR || event->kind == FS_RMDIR;
}

/** Is the file one that gets another name by it, or one that it writes? */
static inline bool fs_is_of(const fs_event_t *event, uint32_t inode)
{
    return event->inode == inode || (event->swaps && event->over == inode + 1U);
}

/** Has it two names? */
static inline bool fs_renames(const fs_event_t *event)
{
    return event->kind == FS_RENAME || event->kind == FS_MOVE_DIR;
}

static inline bool fs_changes_content(const fs_event_t *event)
{
    return event->kind == FS_WRITE || event->kind == FS_TRUNCATE || event->kind == FS_ZERO;
}

typedef struct fs_block fs_block_t;

/** A growing list with memory for payloads that is kept when it is cleared. */
typedef struct fs_list {
    fs_event_t *events;
    uint32_t n;
    uint32_t capacity;
    fs_block_t *blocks; /**< in use: the newest first */
    fs_block_t *spare;
    size_t used_bytes;  /**< of the newest block */
    fs_chunk_t *chunks; /**< of all events, or NULL */
    bool with_calls;    /**< who records here tells which calls made a change */
} fs_list_t;

fs_event_t *fs_list_add(fs_list_t *list, fs_kind_t kind);
/** A copy of len bytes that lives as long as the event. */
const uint8_t *fs_list_copy(fs_list_t *list, const void *bytes, size_t len);
/** A hash of `from` and of what the events do, in their order, payloads included. */
uint64_t fs_list_hash(const fs_list_t *list, uint64_t from);
void fs_list_clear(fs_list_t *list);
void fs_list_free(fs_list_t *list);

#endif
