/** Private to trace_read.c and trace_names.c. */
#ifndef EXPLORER_TRACE_INT_H
#define EXPLORER_TRACE_INT_H

#include "explorer/judge/trace_read.h"
#include "faults/trace.h"

#define PATH_ROOM 4096U

typedef struct file_map {
    uint32_t inode; /**< IMAGE_NONE: a directory or the lock file */
    uint32_t name;  /**< its path now */
    bool known;
} file_map_t;

typedef struct reader {
    image_t *image;
    trace_t *trace;
    err_sink_t *err;
    tp_trace_record_t rec;
    const uint8_t *payload;
    size_t payload_bytes;
    file_map_t *files; /**< by file id */
    uint32_t n_files;
    const trace_config_t *config;
    bool killed;
    rules_t *rules;
    uint32_t acked_line;
    uint32_t issued_line;
    fs_site_t site; /**< of the last write */
} reader_t;

/** The trace is refused, at this record. */
dberr_t reader_refuse(reader_t *reader, const char *why);
/** The path at the payload's offset; it ends at a zero byte or with the payload. Copied to out.
False: there is none, or none that fits. */
bool reader_path(const reader_t *reader, size_t offset, char out[PATH_ROOM]);
/** The file of the record. NULL: an impossible id. */
file_map_t *reader_file(reader_t *reader);
/** An event of the record, added to the trace. */
fs_event_t *reader_event(reader_t *reader, fs_kind_t kind);
uint32_t reader_name(reader_t *reader, const char *path);
bool reader_ignores(const reader_t *reader, const char *path);

/** The calls that change names. */
dberr_t reader_on_rename(reader_t *reader);
dberr_t reader_on_unlink(reader_t *reader);
dberr_t reader_on_mkdir(reader_t *reader);
dberr_t reader_on_sync_dir(reader_t *reader);
dberr_t reader_on_link(reader_t *reader);
/** sync or syncfs: of all files and names. */
dberr_t reader_on_sync_all(reader_t *reader);
/** Says of the image which directories there were before these events. */
void reader_set_dirs(image_t *image, const fs_list_t *list);

#endif
