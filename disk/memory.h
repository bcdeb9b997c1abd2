/** Memory, or the end of the process: who simulates a disk has no use for a failed allocation. */
#ifndef DISK_MEMORY_H
#define DISK_MEMORY_H

#include <stddef.h>

/** Zeros. Caller: free(). */
void *mem_alloc(size_t bytes);
/** realloc(). bytes > 0. */
void *mem_grow(void *old, size_t bytes);

#endif
