/* Allocation. Leaf of disk/. */
#include "disk/memory.h"

#include <stdlib.h>

#include "base/check.h"

void *mem_alloc(size_t bytes)
{
    void *p = calloc(1, bytes > 0 ? bytes : 1);
    CHECK(p != NULL);
    return p;
}

void *mem_grow(void *old, size_t bytes)
{
    void *p = realloc(old, bytes);
    CHECK(p != NULL);
    return p;
}
