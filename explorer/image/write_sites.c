/* Sites of single writes. Above fs_event.c. */
#include "explorer/image/write_sites.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_MIN 1024U

/** Cuts the line's end. False: it is no "SEQ SITE". */
static bool parse_line(char *line, write_site_t *out)
{
    char *end = NULL;
    line[strcspn(line, "\n")] = '\0';
    errno = 0;
    out->seq = strtoull(line, &end, 10);
    return errno == 0 && end != line && *end == ' '
           && fs_site_named(end + 1, strlen(end + 1), &out->site);
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
