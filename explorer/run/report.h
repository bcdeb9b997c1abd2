/** What the campaign found, on standard output. */
#ifndef EXPLORER_REPORT_H
#define EXPLORER_REPORT_H

#include "explorer/run/shared.h"

typedef struct summary {
    uint32_t depth;
    uint32_t jobs;
    uint32_t crash_points;
    bool complete; /**< all states that were selected were run */
    uint64_t events;
    bool engine;             /**< the bundled engine's crash states, not another target's */
    const site_map_t *sites; /**< of writes; NULL: those of the engine, or of SQLite */
    double seconds;
} summary_t;

/** Prints one line per violation of the smallest state of each kind (site and findings), then the summary; all
JSON if json. @return number of violations printed */
uint32_t report_print(shared_t *shared, const summary_t *summary, bool json);

/** Prints name and meaning of every model. */
void report_models(bool json);

#endif
