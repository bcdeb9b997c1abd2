/* Sites of writes: their names, and who says which write is of which. Place: leaf of judge/. */
#include "explorer/judge/sites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "log/log.h"

_Static_assert(SITE_KINDS <= FS_SITES_MAX, "the disk has room for each site");

#define SQLITE_PAGE_MIN 512U
#define SQLITE_WAL_HEADER 32U
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

bool site_is_of(fs_site_t site, bool engine)
{
    if (engine) {
        return site != SITE_ROLLBACK_JOURNAL;
    }
    return site == SITE_PAGE0 || site == SITE_DATA_PAGE || site == SITE_REDO
           || site == SITE_CHECKPOINT_HEADER || site == SITE_ROLLBACK_JOURNAL;
}

/** Of SQLite's files. */
static bool site_of_sqlite(const char *path, uint64_t offset, fs_site_t *site)
{
    if (strcmp(path, "main.db") == 0) {
        *site = offset < SQLITE_PAGE_MIN ? SITE_PAGE0 : SITE_DATA_PAGE;
    } else if (strcmp(path, "main.db-wal") == 0) {
        *site = offset < SQLITE_WAL_HEADER ? SITE_CHECKPOINT_HEADER : SITE_REDO;
    } else if (strcmp(path, "main.db-journal") == 0) {
        *site = SITE_ROLLBACK_JOURNAL;
    } else {
        return false;
    }
    return true;
}

static bool is_metadata(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t len = strlen(name);
    return strcmp(name, "backup_info") == 0 || (len > 4 && strcmp(name + len - 4, ".cfg") == 0);
}

fs_site_t site_of_path(const char *path, uint64_t offset)
{
    fs_site_t site;
    if (site_of_sqlite(path, offset, &site)) {
        return site;
    }
    if (strncmp(path, "ib_logfile", 10) == 0) {
        return offset < LOG_FILE_HDR_SIZE ? SITE_CHECKPOINT_HEADER : SITE_REDO;
    }
    if (strcmp(path, "ib_dblwr") == 0) {
        return SITE_DOUBLEWRITE;
    }
    return is_metadata(path) ? SITE_METADATA : SITE_OTHER;
}

bool site_map_add(site_map_t *map, const char *text)
{
    const char *equals = strchr(text, '=');
    fs_site_t site;
    if (equals == NULL || !site_named(text, (size_t)(equals - text), &site)
        || !path_set_add(&map->paths, equals + 1)) {
        return false;
    }
    map->sites[map->paths.n - 1] = site;
    return true;
}

fs_site_t site_map_find(const site_map_t *map, const char *path)
{
    uint32_t i = path_set_find(&map->paths, path);
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

/* ---- of single writes ---- */

/** Cuts the line's end. False: it is no "SEQ SITE". */
static bool parse_line(char *line, write_site_t *out)
{
    char *end = NULL;
    line[strcspn(line, "\n")] = '\0';
    errno = 0;
    out->seq = strtoull(line, &end, 10);
    return errno == 0 && end != line && *end == ' '
           && site_named(end + 1, strlen(end + 1), &out->site);
}

static void write_sites_add(write_sites_t *sites, uint32_t *capacity, write_site_t one)
{
    if (sites->n == *capacity) {
        *capacity = *capacity == 0 ? CAPACITY_MIN : *capacity * 2;
        sites->of = mem_grow(sites->of, *capacity * sizeof(*sites->of));
    }
    sites->of[sites->n++] = one;
}

/** False: a line is wrong, or not behind the one before it. */
static bool read_lines(FILE *file, write_sites_t *sites)
{
    char *line = NULL;
    size_t room = 0;
    uint32_t capacity = 0;
    write_site_t one;
    bool right = true;
    while (right && getline(&line, &room, file) >= 0) {
        right = parse_line(line, &one) && (sites->n == 0 || one.seq > sites->of[sites->n - 1].seq);
        if (right) {
            write_sites_add(sites, &capacity, one);
        }
    }
    free(line);
    return right && ferror(file) == 0;
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
    bool right = read_lines(file, sites);
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
