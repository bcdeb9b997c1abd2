/** Whose call a request of the kernel is, and the end of one in the recording. */
#ifndef FAULTS_FS_CALLER_H
#define FAULTS_FS_CALLER_H

#define FUSE_USE_VERSION 312

#include <fuse3/fuse_lowlevel.h>
#include <stdbool.h>

#include "faults/inject.h"
#include "faults/layer.h"

/** The request that this thread works on is a call of this thread of the program (0: of the kernel
itself). False: a fault has ended the recording; the caller is killed and the request answered. */
bool caller_enter(fuse_req_t req);
bool caller_enter_as(fuse_req_t req, pid_t thread);

/** The same for an operation on files' names and the tables: with the lock, until
caller_record().*/
bool caller_enter_names(fuse_req_t req);

/** The same, and an operation on an open file begins. caller_end() records it, ends it, and frees
the lock. */
bool caller_begin(fuse_req_t req, const file_t *file, uint16_t kind, record_op_t *op);
void caller_end(const file_t *file, record_op_t *op, const plan_rule_t *rule);

/** Which thread of the program it is. */
pid_t caller_thread(void);

/** Records the operation, which has been made or replaced, ends it, and frees the lock. path: its
payload, or NULL. The request is not answered yet. */
void caller_record(record_op_t *op, const plan_rule_t *rule, const char *path);

/** The same where the record is in the stream already, or there is none. */
void caller_leave(void);

/** What layer_die() does: the caller dies, and what others of the recording ask for is answered by
their death. */
__attribute__((noreturn)) void caller_die(void);

/** This process sends the mark that comes next. */
void caller_marks(pid_t process);

/** The program: what dies where the kernel itself is the caller. */
void caller_set_program(pid_t program);

/** Makes a thread that serves requests in place of one that caller_die() has stopped. */
void caller_set_replacement(void (*replace)(void));

#endif
