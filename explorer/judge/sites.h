/** What writes are for: the sites of the targets that are known here, by path, pattern, or single
write. The disk takes them for numbers (disk/fs_event.h). */
#ifndef EXPLORER_SITES_H
#define EXPLORER_SITES_H

#include "base/err.h"
#include "disk/fs_event.h"
#include "disk/path_set.h"

/** The rows of the torn-page matrix. */
enum {
    SITE_OTHER,
    SITE_INDEX_LOAD_PAGE,
    SITE_DATA_PAGE,
    SITE_INTERNAL_PAGE,
    SITE_PAGE0,
    SITE_UNDO_PAGE,
    SITE_DICT_PAGE,
    SITE_SYSTEM_PAGE,
    SITE_FREED_PAGE, /**< zeros over a page that is free */
    SITE_DOUBLEWRITE,
    SITE_REDO,
    SITE_CHECKPOINT_HEADER,
    SITE_ROLLBACK_JOURNAL,
    SITE_METADATA, /**< what says that other files are whole: of a backup, of an exported table */
    SITE_KINDS
};

const char *site_name(fs_site_t site);

/** The site of a write of the bundled engine to path at offset, as far as that tells: of a page of
the engine it is SITE_OTHER, and its bytes tell more. A checkpoint slot lies in the first 2048 bytes
of the redo file. */
fs_site_t site_of_path(const char *path, uint64_t offset);
/** May a write of the bundled engine be of this site? */
bool site_may_be_engines(fs_site_t site);

#define SITE_PATTERN_MAX 256U /**< bytes of a pattern, its end included */

/** What writes are for, by path and, where one is said, by place: the first pattern that matches
says it. */
typedef struct site_map {
    uint32_t n;
    struct site_pattern {
        fs_site_t site;
        char pattern[SITE_PATTERN_MAX];
        uint64_t first; /**< writes that begin in the first so many bytes; UINT64_MAX: all */
    } of[PATH_PATTERNS_MAX];
} site_map_t;

/** text: SITE=PATTERN or SITE=PATTERN@BYTES. False: it is neither, or there is no room. */
bool site_map_add(site_map_t *map, const char *text);
/** Of a write to this path at this offset; SITE_OTHER: no pattern matches. */
fs_site_t site_map_find(const site_map_t *map, const char *path, uint64_t offset);
/** May a write be of this site? */
bool site_map_has(const site_map_t *map, fs_site_t site);

/** The write with this event number. */
typedef struct write_site {
    uint64_t seq;
    fs_site_t site;
} write_site_t;

/** What single writes of a recording are for, where somebody can tell it from their contents. */
typedef struct write_sites {
    write_site_t *of; /**< ascending */
    uint32_t n;
} write_sites_t;

/** Reads lines "SEQ SITE", ascending. NULL: nothing is known. DB_ERROR and a message. Caller:
write_sites_free(). */
WARN_UNUSED dberr_t write_sites_load(const char *path, write_sites_t *sites, err_sink_t *err);
void write_sites_free(write_sites_t *sites);

/** False: nothing is known of it. sites may be NULL. */
bool write_sites_find(const write_sites_t *sites, uint64_t seq, fs_site_t *site);

#endif
