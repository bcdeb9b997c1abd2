/** What single writes of a recording are for, where somebody can tell it from their contents. */
#ifndef EXPLORER_WRITE_SITES_H
#define EXPLORER_WRITE_SITES_H

#include "base/err.h"
#include "explorer/image/fs_event.h"

/** The write with this event number. */
typedef struct write_site {
    uint64_t seq;
    fs_site_t site;
} write_site_t;

typedef struct write_sites {
    write_site_t *of; /**< ascending */
    uint32_t n;
} write_sites_t;

/** Reads lines "SEQ SITE", ascending. NULL: nothing is known. DB_ERROR and a message. Caller: write_sites_free(). */
WARN_UNUSED dberr_t write_sites_load(const char *path, write_sites_t *sites, err_sink_t *err);
void write_sites_free(write_sites_t *sites);

/** False: nothing is known of it. sites may be NULL. */
bool write_sites_find(const write_sites_t *sites, uint64_t seq, fs_site_t *site);

#endif
