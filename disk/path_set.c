/* Sets of paths. Leaf of disk/. */
#include "disk/path_set.h"

#include <fnmatch.h>
#include <stddef.h>

bool path_set_add(path_set_t *set, const char *pattern)
{
    if (set->n == PATH_PATTERNS_MAX) {
        return false;
    }
    set->patterns[set->n++] = pattern;
    return true;
}

static uint32_t path_set_find(const path_set_t *set, const char *path)
{
    uint32_t i = 0;
    while (i < set->n && fnmatch(set->patterns[i], path, 0) != 0) {
        i++;
    }
    return i;
}

bool path_set_has(const path_set_t *set, const char *path)
{
    return set != NULL && path_set_find(set, path) < set->n;
}
