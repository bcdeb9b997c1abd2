/** What the campaign found, on standard output. */
#ifndef EXPLORER_REPORT_H
#define EXPLORER_REPORT_H

#include "explorer/run/canary.h"
#include "explorer/run/shared.h"
#include "explorer/targets/target.h"

typedef struct summary {
    uint32_t depth;
    uint32_t jobs;
    uint32_t crash_points;
    uint64_t possible[MODEL_KINDS]; /**< by model all states of the range, run or not */
    bool complete;                  /**< all states that were selected were run */
    uint64_t events;
    const target_kind_t *target;
    const char *fs;          /**< whose promises the crashes went by */
    const site_map_t *sites; /**< of writes; NULL: those of the engine */
    double seconds;
    uint64_t records_lost; /**< for want of room */
    canaries_t canaries;   /**< n = 0: nobody asked for them */
} summary_t;

/** Findings by kind of their state (site and findings). Keeps of each kind and image the smallest
state, and returns how many records it has kept. */
uint64_t report_reduce(record_t *records, uint64_t n);

/** Prints one line per violation of the smallest state of each kind, then the summary; all JSON if
json. records: as report_reduce() left them. @return number of violations printed */
uint32_t report_print(const counts_t *counts, record_t *records, uint64_t n,
                      const summary_t *summary, bool json);

/** Prints name and meaning of every model. */
void report_models(bool json);
/** Prints the table of file systems. */
void report_file_systems(bool json);

#endif
