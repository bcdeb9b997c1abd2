/** The call stack of each operation, in a log of its own beside the trace: which code made it. */
#ifndef FAULTS_STACKS_H
#define FAULTS_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "faults/record.h"

/** Creates the log, or with `attach` opens the one of a parent process, and has a record of it for
each of the trace from now on. Before main, once. Returns 0 or an errno; ENOSYS: this system has
nothing that walks a stack. */
int stacks_open(const char *path, size_t size_bytes, bool attach, record_log_t *trace);

/** The stack of this thread, for the operation that it begins. Without the lock. */
void stacks_take(void);

/** What this thread records next is no operation that it has begun. Without the lock. */
void stacks_drop(void);

/** Is there a log of them? Without the lock. */
bool stacks_are_taken(void);

/** Appends a note with the stack that this thread has taken. event: number of the last event that
has ended. */
void stacks_note(uint64_t event, const char *text, size_t bytes);

/** The process before this one died while it held the lock. */
void stacks_recover(void);

/** No descriptor: what the interpreter of this process writes its own stack to. */
#define STACKS_DESCRIPTOR (-77)

/** Takes what was written to it. False: nobody was asked. */
bool stacks_hear(const void *data, size_t bytes);

#endif
