/** The requests of the kernel, and the threads that serve them. */
#ifndef FAULTS_FS_SERVE_H
#define FAULTS_FS_SERVE_H

#include <stdbool.h>

/** The kernel's requests come through this descriptor of /dev/fuse, which is taken over. False: no
memory. */
bool serve_prepare(int device);

/** Starts the threads. False: not possible. */
bool serve_start(void);

#endif
