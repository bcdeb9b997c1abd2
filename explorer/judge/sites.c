/* Sites of writes: their names, and who says which write is of which. Place: leaf of judge/. */
#include "explorer/judge/sites.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "explorer/judge/lines.h"
#include "log/log.h"

_Static_assert(SITE_KINDS <= FS_SITES_MAX, "the disk has room for each site");

#define CAPACITY_MIN 1024U

const char *site_name(fs_site_t site)
{
    static const char *const NAMES[SITE_KINDS] = {
        "other",     "index_load_page",   "data_page",        "internal_page", "page0",
        "undo_page", "dict_page",         "system_page",      "freed_page",    "doublewrite",
        "redo",      "checkpoint_header", "rollback_journal", "metadata"};
    CHECK(site < SITE_KINDS);
    return NAMES[site];
}

static bool site_named(const char *name, size_t length, fs_site_t *site)
{
    for (uint32_t i = 0; i < SITE_KINDS; i++) {
        const char *known = site_name(i);
        if (strlen(known) == length && strncmp(known, name, length) == 0) {
            *site = i;
            return true;
        }
    }
    return false;
}

static bool is_metadata(const char *name)
{
    size_t len = strlen(name);
    return strcmp(name, "backup_info") == 0 || (len > 4 && strcmp(name + len - 4, ".cfg") == 0);
}

fs_site_t site_of_path(const char *path, uint64_t offset)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (strncmp(name, "ib_logfile", 10) == 0) {
        return offset < LOG_FILE_HDR_SIZE ? SITE_CHECKPOINT_HEADER : SITE_REDO;
    }
    if (strcmp(name, "ib_dblwr") == 0) {
        return SITE_DOUBLEWRITE;
    }
    return is_metadata(name) ? SITE_METADATA : SITE_OTHER;
}

bool site_may_be_engines(fs_site_t site)
{
    return site != SITE_ROLLBACK_JOURNAL;
}

bool site_map_add(site_map_t *map, const char *text)
{
    struct site_pattern *one = &map->of[map->n];
    const char *equals = strchr(text, '=');
    if (map->n == PATH_PATTERNS_MAX || equals == NULL
        || !site_named(text, (size_t)(equals - text), &one->site)
        || strlen(equals + 1) >= sizeof(one->pattern)) {
        return false;
    }
    (void)strcpy(one->pattern, equals + 1);
    one->first = UINT64_MAX;
    char *at = strrchr(one->pattern, '@');
    if (at != NULL && at[1] != '\0' && at[1 + strspn(at + 1, "0123456789")] == '\0') {
        one->first = strtoull(at + 1, NULL, 10);
        *at = '\0';
    }
    map->n++;
    return true;
}

fs_site_t site_map_find(const site_map_t *map, const char *path, uint64_t offset)
{
    fs_site_t site = SITE_OTHER;
    for (uint32_t i = map->n; i-- > 0;) {
        bool is_it = offset < map->of[i].first && fnmatch(map->of[i].pattern, path, 0) == 0;
        site = is_it ? map->of[i].site : site;
    }
    return site;
}

bool site_map_has(const site_map_t *map, fs_site_t site)
{
    bool has = site == SITE_OTHER;
    for (uint32_t i = 0; i < map->n; i++) {
        has |= map->of[i].site == site;
    }
    return has;
}

/* ---- of single writes ---- */

/** Cuts the line's end. False: it is no "SEQ SITE". */
static bool parse_line(char *line, write_site_t *out)
{
    line[strcspn(line, "\n")] = '\0';
    errno = 0;
    char *end = NULL;
    out->seq = strtoull(line, &end, 10);
    return errno == 0 && end != line && *end == ' '
           && site_named(end + 1, strlen(end + 1), &out->site);
}

/** Sites while they are read. */
typedef struct {
    write_sites_t *sites;
    uint32_t capacity;
} sites_read_t;

/** False: the line is wrong, or not behind the one before it. */
static bool read_line(void *of, char *line, size_t length)
{
    sites_read_t *read = of;
    write_sites_t *sites = read->sites;
    write_site_t one;
    (void)length;
    if (!parse_line(line, &one) || (sites->n > 0 && one.seq <= sites->of[sites->n - 1].seq)) {
        return false;
    }
    if (sites->n == read->capacity) {
        read->capacity = read->capacity == 0 ? CAPACITY_MIN : read->capacity * 2;
        sites->of = mem_grow(sites->of, read->capacity * sizeof(*sites->of));
    }
    sites->of[sites->n++] = one;
    return true;
}

dberr_t write_sites_load(const char *path, write_sites_t *sites, err_sink_t *err)
{
    *sites = (write_sites_t){NULL, 0};
    if (path == NULL) {
        return DB_SUCCESS;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return err_set(err, DB_ERROR, "%s: cannot be opened", path);
    }
    sites_read_t read = {.sites = sites};
    bool right = lines_each(file, read_line, &read);
    (void)fclose(file);
    if (!right) {
        uint32_t lines = sites->n;
        write_sites_free(sites);
        return err_set(err, DB_ERROR, "%s: line %" PRIu32 " is no ascending SEQ SITE", path,
                       lines + 1);
    }
    return DB_SUCCESS;
}

void write_sites_free(write_sites_t *sites)
{
    free(sites->of);
    *sites = (write_sites_t){NULL, 0};
}

static int compare_seq(const void *key, const void *element)
{
    uint64_t seq = *(const uint64_t *)key;
    const write_site_t *one = element;
    return seq < one->seq ? -1 : seq > one->seq;
}

bool write_sites_find(const write_sites_t *sites, uint64_t seq, fs_site_t *site)
{
    const write_site_t *found =
        sites == NULL || sites->n == 0
            ? NULL
            : bsearch(&seq, sites->of, sites->n, sizeof(*sites->of), compare_seq);
    if (found != NULL) {
        *site = found->site;
    }
    return found != NULL;
}
