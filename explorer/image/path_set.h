/** Sets of paths, and what their writes are for, by fnmatch patterns that match slashes too. */
#ifndef EXPLORER_PATH_SET_H
#define EXPLORER_PATH_SET_H

#include "explorer/image/fs_event.h"

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

/** What writes are for, by path: the first pattern that matches says it. */
typedef struct site_map {
    path_set_t paths;
    fs_site_t sites[PATH_PATTERNS_MAX];
} site_map_t;

/** text: SITE=PATTERN, which is kept. False: it is not, or there is no room. */
bool site_map_add(site_map_t *map, const char *text);
/** SITE_OTHER of a path that no pattern matches. */
fs_site_t site_map_find(const site_map_t *map, const char *path);
/** May a write be of this site? */
bool site_map_has(const site_map_t *map, fs_site_t site);

#endif
