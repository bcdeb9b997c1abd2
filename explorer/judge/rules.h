/** The trace invariants, judged on bytes: one process's file operations, with what they wrote, on
top of the files that it found. README.md has the rules; what is durable follows from writes and
fsyncs, never from what a program says of itself.

The stream: each operation after it has happened, so that the image holds what the files hold now;
of a write rules_before() hears first. One set of rules serves a run, which finds no log, and a
recovery, which finds one. */
#ifndef EXPLORER_RULES_H
#define EXPLORER_RULES_H

#include "disk/image.h"
#include "explorer/judge/redo.h"
#include "explorer/judge/verdict.h"

typedef struct rules rules_t;

#define RULES_NO_PAGE UINT64_MAX

typedef struct rules_config {
    bool doublewrite; /**< is on */
    /** what the storage promises to write whole of a data file, in bytes; 0: nothing */
    uint32_t atomic_unit;
    bool keep_history; /**< the log of this process will be shared with others: rules_history() */
    /** Hears of each finding, in the order of the stream. page: the one that it accuses, for
       rules_page_place(), or RULES_NO_PAGE. NULL: nobody hears; the run is judged elsewhere. */
    void (*found)(void *ctx, uint32_t invariant, const char *rule, uint64_t page, const char *what);
    void *ctx;
} rules_config_t;

rules_t *rules_create(const rules_config_t *config);
void rules_destroy(rules_t *rules);

/** A new process begins, on the files that the image holds.
cold: what it finds may lie in the page cache only (the process before it was killed).
history: of an earlier process whose log this one's may begin like; NULL: none. Kept alive by the
caller. */
void rules_start(rules_t *rules, const image_t *image, bool cold, const rules_t *history);

/** An operation that succeeded. Also sets the site of a write, and whether one of a page is a first
flush (flush.h). */
void rules_event(rules_t *rules, fs_event_t *event, const char *path);
/** A write is about to happen, or, of length 0, a new size. */
void rules_before(rules_t *rules, uint32_t inode, const char *path, uint64_t offset, uint64_t len);
/** A read of len bytes that were asked for. */
void rules_read(rules_t *rules, uint32_t inode, const char *path, uint64_t offset, uint64_t len);
/** A write, truncation, fsync, rename or sync of a folder failed. */
void rules_failed(rules_t *rules, const char *path);
/** The last descriptor of a file was closed. */
void rules_closed(rules_t *rules, const char *path);
/** A file was opened. A log that was closed before: the process starts once more, on the files as
it has left them. */
void rules_opened(rules_t *rules, const char *path);

/** Where a page that is accused lies now. False: its file is gone, or nobody knows which it is. */
bool rules_page_place(const rules_t *rules, uint64_t page, uint32_t *inode, uint64_t *offset);

/** The journal: a statement was issued or acknowledged. */
typedef enum journal_kind { JOURNAL_ISSUE, JOURNAL_ACK } journal_kind_t;
void rules_journal(rules_t *rules, journal_kind_t kind, uint32_t line);

/** What the process found and has made of its log. Only what was found is there at once. */
typedef struct rules_log_facts {
    bool found;       /**< there was a log with a valid checkpoint */
    lsn_t checkpoint; /**< its C */
    lsn_t end_lsn;    /**< where it ended */
    lsn_t last_lsn;   /**< where it ends now, complete groups only */
} rules_log_facts_t;
void rules_log_facts(const rules_t *rules, rules_log_facts_t *out);

#endif
