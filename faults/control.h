/** The control socket: processes that are not recorded, as the client of a server, put marks into
the stream. */
#ifndef FAULTS_CONTROL_H
#define FAULTS_CONTROL_H

#include <pthread.h>

#define CONTROL_NAME_MAX 107u /**< bytes of the name of an abstract Unix socket */

/** Somebody listens on the abstract Unix socket of this name on return: this process, in a thread
of its own that lives as long as the process, or another that holds the mutex, and this one after
it. A connection sends one line, which becomes a mark, and reads `ok` when that is in the stream.
name is kept, and has at most CONTROL_NAME_MAX bytes. Returns 0 or an errno. */
int control_start(const char *name, pthread_mutex_t *mutex, void (*peer)(pid_t));

#endif
