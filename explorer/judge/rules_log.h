/** What recovery does to the redo log: how far it is durable, and the rules I19 (in part), I20 and I21. */
#ifndef EXPLORER_RULES_LOG_H
#define EXPLORER_RULES_LOG_H

#include "base/types.h"
#include "explorer/judge/verdict.h"

typedef struct rules_log {
    verdict_t *verdict;
    uint64_t file_size; /**< bytes of the log file, 0: there is none yet */
    lsn_t written;      /**< the file holds the log up to here, as its writes tell, and ... */
    lsn_t durable;      /**< ... holds it durably up to here, as its fsyncs tell */
    bool base_known;    /**< where the log that was found ends */
    lsn_t next_lsn;     /**< of the block that the next write of the log starts with */
    lsn_t end_lsn;      /**< of what the last log_write announced */
    lsn_t checkpoint;   /**< C in force, 0: unknown */
    lsn_t slot_lsn;     /**< C of the slot that is being written */
    bool slot_written;  /**< and not synced yet */
    uint64_t slot_no;   /**< of the last slot announced; 0: none yet */
    lsn_t
        tail_lsn; /**< end of the log that was found, until its last block is cut; 0: nothing to cut */
    bool tail_written; /**< that block was written, and not synced yet */
} rules_log_t;

/** A new process. file_size: of the log file that it finds, 0 if there is none. */
void rules_log_start(rules_log_t *log, verdict_t *verdict, uint64_t file_size);
/** A marker; those that do not speak of the log are passed over. */
void rules_log_mark(rules_log_t *log, const char *text);
/** A write of the log file. */
void rules_log_write(rules_log_t *log, uint64_t offset, uint64_t length);
/** An fsync of the log file. */
void rules_log_sync(rules_log_t *log);

#endif
