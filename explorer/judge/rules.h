/** Rules about what recovery itself does, from its markers and file operations: I4, I13 to I15, I19 to I22,
I24. */
#ifndef EXPLORER_RULES_H
#define EXPLORER_RULES_H

#include "base/types.h"
#include "explorer/judge/rules_log.h"
#include "explorer/judge/verdict.h"
#include "explorer/model/flush.h"

#define RULES_MARKER_MAX 256U

typedef struct rules {
    verdict_t *verdict;
    bool doublewrite; /**< is on */
    rules_log_t log;
    bool area_dirty; /**< the doublewrite area was written and not synced */
    uint32_t *dirty; /**< inodes of data files that were written and not synced */
    uint32_t n_dirty;
    uint32_t dirty_capacity;
    bool dir_dirty; /**< a directory entry was changed and not synced */
    page_set_t freed;
    bool applied; /**< all redo is applied; its checkpoint is to come */
    page_set_t created;
    page_set_t unwritten;              /**< see flush.h */
    page_set_t nonlogged;              /**< spaces */
    char file_op[RULES_MARKER_MAX];    /**< the last one announced */
    char page_write[RULES_MARKER_MAX]; /**< the page_write marker before the next write, or "" */
    bool first_flush;                  /**< what that one announces */
} rules_t;

void rules_init(rules_t *rules, bool doublewrite);
void rules_free(rules_t *rules);
/** A new process: nothing is known. Findings go to verdict. log_size: bytes of the log file that it finds, 0
if there is none. */
void rules_start(rules_t *rules, verdict_t *verdict, uint64_t log_size);
void rules_mark(rules_t *rules, const char *text, size_t len);
/** Also sets the site of a write, and whether it is the first since the page was initialised. */
void rules_event(rules_t *rules, fs_event_t *event, const char *path);

#endif
