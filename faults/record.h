/** The trace file as the preload writes it. Every call happens under the layer's lock. */
#ifndef FAULTS_RECORD_H
#define FAULTS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "faults/trace.h"

typedef struct record_log {
    tp_trace_header_t *header; /**< NULL: nothing is recorded */
    size_t size_bytes;         /**< of the mapping */
    size_t used;               /**< as header->committed */
    size_t populated;          /**< pages below are allocated and mapped: no fault on the way */
    size_t populate_step;
    uint64_t events;
    bool full;
    bool keep_data; /**< data of writes is stored, not only its hash */
} record_log_t;

/** What happened: the fields of one record. */
typedef struct record_op {
    uint16_t kind;
    uint16_t flags;
    uint32_t file;
    uint32_t thread;
    uint64_t offset;
    uint64_t length;
    int64_t result;
    uint64_t hash;
    uint64_t matches; /**< rules whose pattern fits; not recorded */
} record_op_t;

/** Creates the trace file, or with `attach` opens the one that a parent process created.
Returns 0 or an errno. */
int record_open(record_log_t *log, const char *path, size_t size_bytes, bool attach);

/** Makes this process the one that the trace is about; false if it is another already. */
bool record_claim(record_log_t *log);

void record_set_flag(record_log_t *log, uint32_t flag);

/** Room for a record with a payload of so many bytes (zeroed padding); NULL if nothing is recorded
or the file is full. Becomes part of the trace with record_commit, or never. */
uint8_t *record_reserve(record_log_t *log, const record_op_t *op, size_t payload_bytes);
void record_commit(record_log_t *log);

/** Appends one record whose payload is the first `bytes` bytes of the parts, which hold that many. */
void record_append(record_log_t *log, const record_op_t *op, const struct iovec *parts,
                   uint64_t bytes);

#endif
