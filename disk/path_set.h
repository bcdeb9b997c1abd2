/** Sets of paths by fnmatch patterns that match slashes too. */
#ifndef DISK_PATH_SET_H
#define DISK_PATH_SET_H

#include <stdbool.h>
#include <stdint.h>

#define PATH_PATTERNS_MAX 32U

/** Patterns; a path that one of them matches is in the set. */
typedef struct path_set {
    const char *patterns[PATH_PATTERNS_MAX];
    uint32_t n;
} path_set_t;

/** False: there is no room for one more. */
bool path_set_add(path_set_t *set, const char *pattern);
/** set may be NULL: the empty one. */
bool path_set_has(const path_set_t *set, const char *path);

#endif
