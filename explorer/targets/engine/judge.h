/** Recovers an image and says what is wrong with the result. */
#ifndef EXPLORER_JUDGE_H
#define EXPLORER_JUDGE_H

#include "api/engine.h"
#include "disk/image.h"
#include "explorer/judge/outcome.h"
#include "explorer/judge/rules.h"
#include "explorer/judge/scan.h"

/** What is counted of recoveries, and how many states were looked at in other ways: numbers of
outcome_t.counters. */
typedef enum engine_counter {
    ENGINE_DBLWR_RESTORED,
    ENGINE_REDO_RECORDS,
    ENGINE_PAGES_CREATED,
    ENGINE_INDEX_LOAD_READS,
    ENGINE_FREED_READS,
    ENGINE_INDEXES_DROPPED,
    ENGINE_TABLES_DROPPED,
    ENGINE_TRX_ROLLED_BACK,
    ENGINE_SEVERAL_BATCHES,
    ENGINE_SWAPS_FINISHED,
    ENGINE_PAGES_COMPARED,
    ENGINE_BACKUPS_PREPARED,
    ENGINE_IN_BATCHES,
    ENGINE_PURGED,
    ENGINE_WORKED,
    /** an exported table was carried away, or should have been there to be */
    ENGINE_EXPORTS_JUDGED,
    ENGINE_COUNTERS
} engine_counter_t;

typedef struct judge {
    image_t *image;
    engine_options_t options;
    probe_t probe;
    image_watch_t watch;
    rules_t *rules;
    scan_t scan;        /**< of the image's database */
    scan_t backup_scan; /**< of backups in it, whose spaces have the same numbers */
    err_sink_t failed;  /**< what the judge itself did wrong: no verdict counts then; "": nothing */
    const rules_t *history;  /**< of the run that the images come from; NULL: none */
    verdict_t *verdict;      /**< of the state that is being judged */
    const fs_list_t *record; /**< what it has done so far; NULL: nobody records it */
} judge_t;

/** A state to judge. */
typedef struct judge_case {
    const expected_t *expected;
    /** gets what recovery, new work and the close do to the files; may be NULL */
    fs_list_t *record;
    /** this table's file can be carried elsewhere as it is, if its .cfg is whole (I28); or NULL */
    const char *exported;
    bool export_acked;           /**< and its .cfg must be there, and whole */
    uint64_t seed;               /**< of the work */
    char torn[NAME_LEN_MAX + 1]; /**< a table that the crash has torn (torn_table.h); "": none */
    bool killed;                 /**< what recovery finds may lie in the page cache only */
    bool small;      /**< recover with the smallest memory and pool in the first place */
    bool twice;      /**< recover again, after a recovery that was let go of (I17) */
    bool in_batches; /**< recover again with the smallest memory and pool (I18) */
    bool converted;  /**< start it with the other log format first (I18) */
    bool purged;     /**< recover again and purge all history (I25) */
    bool worked;     /**< do new work on what was recovered (work.h) */
    bool in_full;    /**< scan without what earlier scans know, too: both must say the same */
} judge_case_t;

/** The judge must stay where it is. history: outlives it. */
void judge_init(judge_t *judge, image_t *image, const engine_options_t *options,
                const rules_t *history);
void judge_free(judge_t *judge);

/** Recovers, closes, scans, compares; all the ways of the case. The image is left as it was.
outcome: as after outcome_init(). */
void judge_state(judge_t *judge, const judge_case_t *c, outcome_t *outcome);

/** Of a case only what it says of the exported table (I28), and what makes that impossible: an
image that cannot be recovered. acked: as judge_case_t.export_acked. The image is left as it was.
outcome: as after outcome_init(). */
void judge_export(judge_t *judge, const char *table, bool acked, outcome_t *outcome);

#endif
