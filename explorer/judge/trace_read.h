/** Reads a recorded run (faults/trace.h) into file system events. */
#ifndef EXPLORER_TRACE_READ_H
#define EXPLORER_TRACE_READ_H

#include "base/err.h"
#include "disk/path_set.h"
#include "explorer/judge/rules.h"
#include "explorer/judge/sites.h"

struct reader;

typedef struct trace {
    fs_list_t list; /**< event i is crash point i + 1; crash point 0 lies before the first */
    uint32_t first_acked_line; /**< last one acknowledged before the first event */
    uint64_t seq;              /**< of the record that is being read */
    rules_t *rules;            /**< what they know of the run at its end */
    void *map;
    size_t map_bytes;
} trace_t;

typedef struct trace_config {
    /** Of the rules that the stream is held against. */
    rules_config_t rules;
    /** A process of a trial: what the one before it did not fsync is in the files that it found,
    and it may be disturbed. False: a fault-free run, whose files were durable. */
    bool live;
    const path_set_t *ignored; /**< files that are no part of an image; may be NULL */
    const site_map_t *sites;   /**< what writes are for; NULL: what the rules know of the engine */
    const write_sites_t *write_sites; /**< of single ones, ahead of sites; may be NULL */
    /** Hears of each record before it is read, and may change it (trace_int.h). False: it is left
       out. NULL: nobody. */
    bool (*before)(void *ctx, struct reader *reader);
    void *ctx; /**< of before */
} trace_config_t;

/** Maps and decodes the file; names and inodes are those of image, which holds what the process
found. The trace must hold the data of all writes. The image is left as it was, or, if live, as the
process left it.
@return DB_ERROR and a message; nothing is left to free then */
WARN_UNUSED dberr_t trace_load(const char *path, image_t *image, const trace_config_t *config,
                               trace_t *trace, err_sink_t *err);
void trace_free(trace_t *trace);

#endif
