/** Which descriptors and paths lie below the root, and the ids under which they are recorded. */
#ifndef FAULTS_FILES_H
#define FAULTS_FILES_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "faults/plan.h"
#include "faults/share.h"

/** One inode for as long as a path below the root leads, or may still lead, to it. */
typedef struct file {
    uint32_t id;          /**< from 1 */
    uint32_t descriptors; /**< open ones, in this process */
    dev_t device;
    ino_t inode;
    uint64_t matches; /**< rules of the plan whose pattern fits the path */
    char *path;       /**< relative to the root, as it is now */
    size_t path_room;
    struct file *next; /**< in its hash chain; only files that a path leads to are there */
    bool directory;
    bool may_append; /**< some descriptor was O_APPEND: ask the kernel at each write */
    bool may_direct; /**< the same of O_DIRECT */
} file_t;

/** Where a path argument leads. */
typedef struct place {
    char path[PATH_MAX]; /**< relative to the root; "." is the root itself */
    struct stat st;      /**< valid if it exists */
    bool exists;
} place_t;

/** Sets the root, which must exist, and the plan whose patterns are matched against paths (kept).
Returns 0 or an errno. */
int files_set_root(const char *root, const plan_t *plan);

/** The device of the root. */
dev_t files_device(void);

/** Resolves a path argument as the kernel would. False if it does not lead below the root. Takes no
lock and touches no table. `follow`: a symbolic link as last component is followed. */
bool files_find_place(int dirfd, const char *path, bool follow, place_t *place);

/** A socket or a FIFO: no image has it, and no record is about it. */
bool files_have_no_data(const place_t *place);

/** Looks at the place again: another thread may have made the file since it was found. */
void files_look_again(place_t *place);

/** No file below the root is behind this descriptor, and none is about to be. Lock-free. */
bool files_is_free(int fd);

/** The tracked file behind a descriptor, or NULL; also NULL while it is moving. Lock-free. */
file_t *files_of_descriptor(int fd);

/** Writes through this descriptor are durable when they have ended. Lock-free. */
bool files_is_durable(int fd);

/** What gives files their ids, before the first is known. */
void files_share(share_t *share);

/* All below: under the lock. */

/** The known file with this inode, or NULL. */
file_t *files_lookup(const struct stat *st);

/** The file for a successful open: the known one, or a new one with the next id. `created`: the
open made the file, so an equal inode number is a reused one. NULL if memory is exhausted. */
file_t *files_intern(const place_t *place, const struct stat *st, bool created);

/** Binds a descriptor to a file (NULL: unbinds it). durable: its writes are synced. False if memory
is exhausted. */
bool files_bind(int fd, file_t *file, bool durable);

/** The descriptor is moving from here on: who comes to it waits for the lock. False if memory is
exhausted. */
bool files_hold(int fd);

/** It has not moved: it leads to what it led to before. files_bind() ends a move too. */
void files_let_go(int fd);

/** What a moving descriptor led to, or NULL. */
file_t *files_held(int fd);

/** The highest bound descriptor number so far. */
int files_highest(void);

/** No path leads to this inode any more. */
void files_forget(file_t *file);

/** This path leads to the file too, and is what it is called by from now on. */
void files_rename(file_t *file, const char *path);

/** A path was renamed: the files at it and below it move with it. */
void files_move(const char *from, const char *to);

/** One path to the inode that was there is gone. */
void files_lose_path(const place_t *place);

/** A rename has succeeded, from and to what was there before it. An empty path is one outside of
the root. */
void files_follow_rename(const place_t *from, const place_t *to, bool exchange);

#endif
