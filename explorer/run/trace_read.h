/** Reads a recorded run (faults/trace.h) into file system events. */
#ifndef EXPLORER_TRACE_READ_H
#define EXPLORER_TRACE_READ_H

#include "base/err.h"
#include "explorer/image/image.h"

typedef struct trace {
    fs_list_t list; /**< event i is crash point i + 1; crash point 0 lies before the first */
    uint32_t first_acked_line; /**< last one acknowledged before the first event */
    uint32_t n_inodes;         /**< created in the image, empty and without a name */
    uint64_t n_records;
    void *map;
    size_t map_bytes;
} trace_t;

/** Maps and decodes the file; names and inodes are those of image, which must be new. The trace
must begin with an empty directory, hold the data of all writes and no fault.
@return DB_ERROR and a message; nothing is left to free then */
WARN_UNUSED dberr_t trace_load(const char *path, image_t *image, trace_t *trace, err_sink_t *err);
void trace_free(trace_t *trace);

#endif
