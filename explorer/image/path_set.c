/* Sets of paths. Above fs_event.c. */
#include "explorer/image/path_set.h"

#include <fnmatch.h>
#include <string.h>

bool path_set_add(path_set_t *set, const char *pattern)
{
    if (set->n == PATH_PATTERNS_MAX) {
        return false;
    }
    set->patterns[set->n++] = pattern;
    return true;
}

/** @return n: none of them */
static uint32_t find_pattern(const path_set_t *set, const char *path)
{
    uint32_t i = 0;
    while (i < set->n && fnmatch(set->patterns[i], path, 0) != 0) {
        i++;
    }
    return i;
}

bool path_set_has(const path_set_t *set, const char *path)
{
    return set != NULL && find_pattern(set, path) < set->n;
}

bool site_map_add(site_map_t *map, const char *text)
{
    const char *equals = strchr(text, '=');
    fs_site_t site;
    if (equals == NULL || !fs_site_named(text, (size_t)(equals - text), &site)
        || !path_set_add(&map->paths, equals + 1)) {
        return false;
    }
    map->sites[map->paths.n - 1] = site;
    return true;
}

fs_site_t site_map_find(const site_map_t *map, const char *path)
{
    uint32_t i = find_pattern(&map->paths, path);
    return i < map->paths.n ? map->sites[i] : SITE_OTHER;
}

bool site_map_has(const site_map_t *map, fs_site_t site)
{
    bool has = site == SITE_OTHER;
    for (uint32_t i = 0; i < map->paths.n; i++) {
        has |= map->sites[i] == site;
    }
    return has;
}
