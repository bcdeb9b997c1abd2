/** What the processes and threads of one recording have in common: the lock, ids, counters of the
plan. */
#ifndef FAULTS_SHARE_H
#define FAULTS_SHARE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "faults/trace.h"

#define SHARE_FILES 131072u /**< inodes that a recording can tell apart */
#define SHARE_CHAINS 2048u

/** The id of an inode, for as long as a path leads to it. */
typedef struct share_file {
    uint64_t device;
    uint64_t inode;
    uint32_t id;   /**< 0: none any more */
    uint32_t next; /**< in its chain: number from 1, 0 none */
} share_file_t;

/** How often a line of the plan has matched. */
typedef struct share_rule {
    uint64_t seen;
    bool fired;
} share_rule_t;

/** Lies behind the stream in the trace file, or in memory of its own; all zero at first. */
typedef struct share {
    tp_trace_call_t calls[TP_TRACE_CALLS]; /**< each its thread's own, without the lock */
    _Atomic uint32_t callers;              /**< threads that have a place in it */
    pthread_mutex_t lock;                  /**< for all that follows, and for the stream */
    pthread_mutex_t control;               /**< whose owner answers on the control socket */
    uint64_t stream_bytes;                 /**< room for the stream */
    _Atomic uint32_t threads;              /**< that have recorded something */
    uint32_t last_file;
    uint32_t n_files;
    bool ended; /**< a fault has killed: no process goes on */
    share_rule_t rules[TP_FAULT_RULES_MAX];
    uint32_t chains[SHARE_CHAINS]; /**< the first of each: number from 1, 0 none */
    share_file_t files[SHARE_FILES];
} share_t;

/** Prepares the locks. Once, before another process can see it. False: no room, or not possible
here. */
bool share_init(share_t *share);

/** One without a trace file: for this process and what it forks. NULL: no memory. */
share_t *share_create(void);

typedef enum share_locked {
    SHARE_LOCKED,
    SHARE_OWNER_DIED, /**< in the middle of something; locked now */
    SHARE_ENDED       /**< a fault has killed: end this process too */
} share_locked_t;

share_locked_t share_lock(share_t *share);
void share_unlock(share_t *share);

/* All below: under the lock. */

/** The id of an inode; 0 if it is not known. */
uint32_t share_file_find(share_t *share, const struct stat *st);
/** A new id for an inode, in place of the one it may have; 0 if there is no room. */
uint32_t share_file_add(share_t *share, const struct stat *st);
/** No path leads to it any more. */
void share_file_forget(share_t *share, dev_t device, ino_t inode);

#endif
