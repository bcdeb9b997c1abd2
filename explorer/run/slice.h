/** Slices of an exploration, so that many processes can share it: each runs a part of the states
(order_limits_t) and writes down what it came to; merged they are what one process would have
printed. */
#ifndef EXPLORER_SLICE_H
#define EXPLORER_SLICE_H

#include "explorer/run/report.h"

#define SLICES_MAX 1000000U

/** Writes what the campaign came to, over whatever was in the file. False: it cannot be written. */
bool slice_write(const char *path, shared_t *shared, const summary_t *summary, uint32_t slice,
                 uint32_t n_slices);

/** What all slices came to. */
typedef struct merged {
    counts_t counts;
    record_t *records;
    uint64_t n_records;
    uint64_t room;
    void *lines; /**< texts that the records point to */
} merged_t;

/** Reads a file that has, one behind the other in any order, those of all slices of one
exploration. Sets of summary what they say: all but target, fs and sites. DB_ERROR and a
message: one is missing, there twice, damaged, or another exploration's. Caller: merged_free(), in
any case. */
WARN_UNUSED dberr_t slice_merge(const char *path, merged_t *merged, summary_t *summary,
                                err_sink_t *err);
void merged_free(merged_t *merged);

#endif
