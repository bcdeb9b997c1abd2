/** New work on a recovered database: what a user would do next, drawn by the image. What recovery
left wrong in counters, lists or free space shows in what is done afterwards, and in a crash amid
it. */
#ifndef EXPLORER_WORK_H
#define EXPLORER_WORK_H

#include "api/engine.h"
#include "disk/image.h"
#include "explorer/judge/allowed.h"

/** What the work is drawn by. */
typedef struct work_draw {
    uint64_t seed;
    const char *torn;                /**< the table that is worked on, if it is there; "": any */
    const engine_options_t *options; /**< of the recovery: a backup is prepared with them */
    probe_t *probe;
} work_draw_t;

/** Works on the open database, whose tables the scanner found as in `found`. Each commit adds a
prefix to `allowed`, and stamps the recorded events with the prefixes that it issues and
acknowledges, counted from 0 = as found. A transaction may stay open. What is refused that must
work, or taken that must be refused, is a finding.
@return nothing was found */
bool work_run(engine_t *engine, image_t *image, const check_report_t *found,
              const work_draw_t *draw, allowed_t *allowed, verdict_t *verdict);

#endif
