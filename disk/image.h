/** A data directory in memory whose changes can be undone, and whose content has a hash that costs
nothing to keep.

An inode is a file's content; the directory maps names to inodes. Inodes that no name leads to exist
on, as on a disk with an open descriptor. Marks nest: undo takes back everything since the newest
mark, by a log of changes that tells at most once per mark where the old content of each 4096-byte
chunk lies. A file takes the room of what was written to it.
*/
#ifndef DISK_IMAGE_H
#define DISK_IMAGE_H

#include "disk/fs_event.h"
#include "os/os.h"

typedef struct image image_t;

#define IMAGE_NONE UINT32_MAX              /**< no inode */
#define IMAGE_FILE_MAX ((uint64_t)1 << 40) /**< bytes; what would grow beyond fails */

image_t *image_create(void);
/** What is in an image, put into an empty one without marks: inodes and names keep their
numbers. */
void image_copy(image_t *to, const image_t *from);
void image_destroy(image_t *image);

/** The number of a path, the same for equal paths; names are never forgotten. */
uint32_t image_name(image_t *image, const char *path, size_t len);
/** The same for a path that may be unknown: IMAGE_NONE then. */
uint32_t image_name_find(const image_t *image, const char *path);
const char *image_name_text(const image_t *image, uint32_t name);
/** The directory of a path: the number of "." or of what stands before its last slash. */
uint32_t image_name_dir(const image_t *image, uint32_t name);

/** An empty file without a name. Numbers count up from 0 and are given back by undo. */
uint32_t image_inode_create(image_t *image);
uint32_t image_inode_count(const image_t *image);
/** False, and nothing changed, if the file would exceed IMAGE_FILE_MAX. */
bool image_write(image_t *image, uint32_t inode, uint64_t offset, const void *data, uint64_t len);
/** The same, but whole chunks are not copied: data outlives the present mark, or, without one,
what is written there until it is overwritten. chunks: of these whole ones, by image_keep(). */
bool image_write_kept(image_t *image, uint32_t inode, uint64_t offset, const void *data,
                      uint64_t len, const fs_chunk_t *chunks);
/** The payloads of this list outlive its use in the image: its writes need not be copied from now
on, nor hashed again. */
void image_keep(image_t *image, fs_list_t *list);
bool image_truncate(image_t *image, uint32_t inode, uint64_t size_bytes);
/** What of the range lies in the file reads as zeros from now on. */
void image_zero(image_t *image, uint32_t inode, uint64_t offset, uint64_t len);
uint64_t image_size(const image_t *image, uint32_t inode);
/** A part of the file, zeros behind its end. */
void image_read(const image_t *image, uint32_t inode, uint64_t offset, void *to, uint64_t len);
/** The same where it lies, or, if it lies in several chunks of 4096 bytes, copied to room. room:
len bytes, or NULL if that cannot be. Valid until the next change. */
const byte *image_view(const image_t *image, uint32_t inode, uint64_t offset, uint64_t len,
                       byte *room);
/** The whole file in one piece: who changes these bytes changes the file, but neither hash nor
version. There is no mark. Valid until a write to it, or its new size. */
byte *image_bytes(image_t *image, uint32_t inode);
/** The first bytes from *at on that take room: sets *at to where they are and *len to how many lie
together. NULL: up to the end of the file there are none, all is zeros. */
const byte *image_data(const image_t *image, uint32_t inode, uint64_t *at, uint64_t *len);
/** What of the range lies in the file is zeros. */
bool image_is_zero(const image_t *image, uint32_t inode, uint64_t offset, uint64_t len);
/** A number for the content of whole chunks of 4096 bytes within the file: others never get the
same, in this image or after undo; what undo brings back has its old one. */
uint64_t image_version(const image_t *image, uint32_t inode, uint64_t offset, uint64_t len);
/** name leads to inode from now on; IMAGE_NONE: to nothing. */
void image_link(image_t *image, uint32_t name, uint32_t inode);
uint32_t image_lookup(const image_t *image, uint32_t name);
bool image_inode_is_linked(const image_t *image, uint32_t inode);
/** Calls fn for each name that leads to an inode, in order of number. */
void image_each(const image_t *image, void (*fn)(void *ctx, uint32_t name, uint32_t inode),
                void *ctx);

/** A directory that nobody has told of is there as soon as a file in it is. */
typedef enum dir_state { DIR_IMPLIED, DIR_THERE, DIR_MISSING } dir_state_t;

/** The directory of this name is there, or not; the names in it stay as they are. */
void image_set_dir(image_t *image, uint32_t dir, dir_state_t state);
dir_state_t image_dir_state(const image_t *image, uint32_t dir);
/** Has the directory been told of, or is a file below it? */
bool image_dir_is_there(const image_t *image, uint32_t dir);
/** It is missing from now on, and so is what is in it. */
void image_remove_dir(image_t *image, uint32_t dir);
/** The names below one directory are below the other from now on. */
void image_move_dir(image_t *image, uint32_t from, uint32_t to);
/** Is the path of name that of dir, or below it? */
bool image_name_is_within(const image_t *image, uint32_t name, uint32_t dir);
/** Removes what is below a directory that is missing: no path leads there. */
void image_settle(image_t *image);
/** Calls fn for each directory that has been told of and is there. */
void image_each_dir(const image_t *image, void (*fn)(void *ctx, uint32_t dir), void *ctx);

void image_mark(image_t *image);
void image_undo(image_t *image); /**< to the newest mark, which is removed */
uint32_t image_marks(const image_t *image);

/** Changes made while hashing is off must be undone before it is on again: image_hash() counts only
changes made while it was on. On at first. */
void image_set_hashing(image_t *image, bool on);
/** Hash of names, sizes and content; equal for equal directories, however they came about. */
uint64_t image_hash(image_t *image);

/** Hears of what the engine does through image_os(). before and read may be NULL. */
typedef struct image_watch {
    /** Each change and sync, after it. It may complete the event (its site) before it is kept. */
    void (*event)(void *ctx, fs_event_t *event, const char *path);
    /** Each write, before it; with length 0 each new size. */
    void (*before)(void *ctx, uint32_t inode, const char *path, uint64_t offset, uint64_t len);
    /** Each read of as many bytes as were asked for. */
    void (*read)(void *ctx, uint32_t inode, const char *path, uint64_t offset, uint64_t len);
    void *ctx;
} image_watch_t;

/** The back end for the engine; owned by the image. record: gets every change and sync, with its
data, until set to NULL. watch: may be NULL. */
os_t *image_os(image_t *image);
void image_os_record(image_t *image, fs_list_t *record);
/** What was issued before each event from now on, and what was acknowledged before the one after
it, the last one included (issued_line and acked_line). */
void image_os_promise(image_t *image, uint32_t issued, uint32_t acked);
void image_os_watch(image_t *image, const image_watch_t *watch);

/** The same with an image of its own, whose hash is not kept: os_destroy() destroys it, when all
files are closed. */
os_t *image_os_create(void);
/** The same with what is in another one now, its lock left out: what a crash leaves that loses
nothing. */
os_t *image_os_clone(os_t *os);
/** image_hash() of what a clone was at first. */
uint64_t image_os_taken(const os_t *os);
/** A file of such a one, see image_bytes(). NULL: there is none. */
byte *image_os_bytes(os_t *os, const char *path, uint64_t *size_bytes);

#endif
