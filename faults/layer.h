/** The life of the preload in its process: set-up, the one lock, who is recorded. */
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

/** There is something to record or to inject, and this thread is not inside the layer already. */
bool layer_is_on(void);

/** This process has had an event: descriptors may be tracked. Calls that are not about the root in
itself ask first, for an event would make this process the owner of the trace. */
bool layer_has_events(void);

/** Takes the lock for an operation on a tracked descriptor. NULL: not ours, nothing was taken. */
file_t *layer_enter(int fd);

/** Takes the lock for an operation that concerns the root; false: not recorded in this process. */
bool layer_enter_path(void);

/** Releases the lock and turns a result into what a system call returns: -1 and errno for -errno,
else the result, with errno as it was at entry. */
int64_t layer_leave(int64_t result);

/** -1 to -errno. Before anything else can touch errno. */
int64_t layer_result(int64_t returned);

/* All below: under the lock. */

plan_t *layer_plan(void);
record_log_t *layer_log(void);

/** libfiu is in use: each operation is one of its points too. */
bool layer_uses_fiu(void);

/** An operation on a file, or (NULL) on none. */
record_op_t layer_op(uint16_t kind, const file_t *file);

/** An operation on a path. */
record_op_t layer_op_at(uint16_t kind, const place_t *place);

/** Appends the record without payload. */
void layer_record(const record_op_t *op);

/** Appends the record with a path as payload. */
void layer_record_path(const record_op_t *op, const char *path);

/** Ends the process with status 97 and one line on standard error. */
__attribute__((noreturn, format(printf, 1, 2))) void layer_refuse(const char *format, ...);

#endif
