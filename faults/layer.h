/** The life of the preload in its process: set-up, begin and end of an operation, the lock. */
#ifndef FAULTS_LAYER_H
#define FAULTS_LAYER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "faults/files.h"
#include "faults/plan.h"
#include "faults/record.h"

#define LAYER_EXPORT __attribute__((visibility("default")))
#define LAYER_EXIT_REFUSED 97

/** Who records, where that is not the preload in its own process. All of it stays. */
typedef struct layer_host {
    const char *name;                            /**< what its messages begin with */
    __attribute__((noreturn)) void (*die)(void); /**< layer_die(): under the lock */
    void (*peer)(pid_t); /**< this process sends the mark that comes next, by the control socket */
} layer_host_t;

/** Before layer_start(). */
void layer_set_host(const layer_host_t *host);

/** Whose operations this thread begins from now on, where it makes them for others: their number
from 1, 0 for one that has none yet. layer_thread() + 1 is the number that it gets. */
void layer_set_thread(uint32_t number);

/** Does what the environment asks; it must be done before main, once. */
void layer_start(void);

/** The environment asks for a fork server, TORNPAGE_SERVE: its children start the layer, it does
not. */
bool layer_is_server(void);

/** There is something to record or to inject, and this thread is not inside the layer already. */
bool layer_is_on(void);

/** This process shares the memory of another one, as a child of vfork does until its exec, and has
descriptors of its own: the table is not about them, and what it opens, closes and copies leaves the
table as it is. The caller is about to do that. */
bool layer_is_guest(void);

/** Begins an operation on a tracked descriptor, and fills in op with its ticket; the lock is free
while it lasts. NULL: not ours, nothing was begun. */
file_t *layer_begin(int fd, uint16_t kind, record_op_t *op);

/** The same on a file that is known. layer_is_on() */
void layer_begin_file(const file_t *file, uint16_t kind, record_op_t *op);

/** The same for what changes descriptors or paths: with the lock, so that no other such operation
is under way. */
file_t *layer_enter(int fd);

/** Begins an operation on no file, or on all. layer_is_on() */
void layer_begin_path(record_op_t *op, uint16_t kind);

/** The same as layer_enter() for an operation that concerns the root; false: not recorded in this
process. */
bool layer_enter_path(void);

/** The same for a mark, which has no call stack. */
bool layer_enter_mark(void);

/** The same for a note, which is no event and has a call stack. */
bool layer_enter_note(void);

/** Some process of the recording has met this inode below the root. No event, no thread of the
stream. */
bool layer_knows(const struct stat *st);

/** Takes the lock within an operation that was begun: to count for the plan, and to record. */
void layer_lock(void);
void layer_unlock(void);

/** Of one file at a time: a write whose place is the file's size or position, and what that is.
Outside of the lock. */
void layer_hold_position(const file_t *file);
void layer_release_position(const file_t *file);

/** A write is about to be made; it is recorded. In between it is under way (tp_trace_call_t). */
void layer_call_begins(const record_op_t *op);
/** The same of a truncation or an allocation, by which the whole file may change. */
void layer_resize_begins(const record_op_t *op);
void layer_call_ended(void);

/** A sync has been made, and has not ended yet. With several threads it lasts as long as on a fast
disk: in memory it is over before another thread writes, and a store that relies on an fsync which
began before its write would seem right. */
void layer_sync_lasts(void);

/** Releases the lock and turns a result into what a system call returns: -1 and errno for -errno,
else the result, with errno as it was at entry. */
int64_t layer_leave(int64_t result);

/** -1 to -errno. Before anything else can touch errno. */
int64_t layer_result(int64_t returned);

plan_t *layer_plan(void);
record_log_t *layer_log(void);
share_t *layer_share(void);

/** libfiu is in use: each operation is one of its points too. */
bool layer_uses_fiu(void);

/* All below: under the lock. */

/** An operation on a file, or (NULL) on none. */
record_op_t layer_op(uint16_t kind, const file_t *file);

/** An operation on a path. */
record_op_t layer_op_at(uint16_t kind, const place_t *place);

/** Whose operation it is, for one that layer_begin() has begun. */
uint32_t layer_thread(void);

/** Leaves a mark "unseen CALL path=PATH". */
void layer_mark_unseen(const char *call, const char *path);

/** A call on this descriptor has ended, and is recorded. Where its number was given away meanwhile
nobody knows which of both files it met: that is marked. */
void layer_check_moved(int fd, const file_t *file);

/** Appends the record without payload. */
void layer_record(const record_op_t *op);

/** Appends the record of a mark of op->length bytes, and stands still there if somebody wants to
look (pause.h). */
void layer_record_mark(const record_op_t *op, const char *text);

/** Appends the record with a path as payload. */
void layer_record_path(const record_op_t *op, const char *path);

/** The same with two, a NUL between them. */
void layer_record_paths(const record_op_t *op, const char *from, const char *to);

/** What a plan that has killed does to every process of the recording. */
__attribute__((noreturn)) void layer_die(void);

/** Ends the process with status 97 and one line on standard error. */
__attribute__((noreturn, format(printf, 1, 2))) void layer_refuse(const char *format, ...);

#endif
