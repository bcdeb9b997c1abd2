/** The end of all that a process has started. Of one that is a subreaper: all its descendants. */
#ifndef FAULTS_CHILDREN_H
#define FAULTS_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/** Kills the children of this process and waits for each, until there is none but `spared` (0: none
is). The children of one that was killed are children of this process then. The file that
TORNPAGE_LEFT names gets a line for each: its program. */
void children_kill(pid_t spared);

/** Ends this process by the signal of a child's status, as of wait(). Returns its exit code where
it had none. */
int children_end_like(int status);

/** Was the child of this status, as of wait(), ended by somebody else: a person, or the kernel for
want of memory or by a limit? No program sends itself these signals. */
bool children_ended_from_outside(int status);

#endif
