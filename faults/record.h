/** The trace file as the preload writes it. Every call but record_ticket(), record_set_flag() and
record_populate_ahead() happens under the lock
of the recording. */
#ifndef FAULTS_RECORD_H
#define FAULTS_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "faults/share.h"

typedef struct record_log {
    tp_trace_header_t *header;   /**< NULL: nothing is recorded */
    size_t size_bytes;           /**< room for the stream, header included */
    _Atomic(uint64_t) populated; /**< pages below are allocated and mapped: no fault on the way */
    _Atomic(uint64_t)
        huge;       /**< up to where huge pages were asked for; UINT64_MAX: there are none */
    bool keep_data; /**< data of writes is stored, not only its hash */
    void (*told)(
        const tp_trace_record_t *record); /**< hears of each one that is appended, or NULL */
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
    uint64_t began;   /**< record_ticket() when the call began */
    uint64_t matches; /**< rules whose pattern fits; not recorded */
    bool mapped;      /**< pages of a mapping, which no kill of a process takes; not recorded */
} record_op_t;

/** Creates the file, or with `attach` opens the one that a parent process created. *share is what
its processes share; NULL: nothing, in this file. Returns 0 or an errno. */
int record_open(record_log_t *log, const char *magic, const char *path, size_t size_bytes,
                bool attach, share_t **share);

/** This process has its first event. */
void record_claim(record_log_t *log);

/** The number of the last event that has ended. Without the lock. */
uint64_t record_ticket(const record_log_t *log);

/** Sees to the pages that the next records will need, so that no thread does it under the lock.
Without the lock. */
void record_populate_ahead(record_log_t *log);

/** The process before this one died while it held the lock. */
void record_recover(record_log_t *log);

void record_set_flag(record_log_t *log, uint32_t flag);

/** Room for a record with a payload of so many bytes (zeroed padding); NULL if nothing is recorded
or the file is full. Becomes part of the trace with record_commit, or never. */
uint8_t *record_reserve(record_log_t *log, const record_op_t *op, size_t payload_bytes);
void record_commit(record_log_t *log);

/** Appends one record whose payload is the first `bytes` bytes of the parts, which hold that
many. */
void record_append(record_log_t *log, const record_op_t *op, const struct iovec *parts,
                   uint64_t bytes);

#endif
