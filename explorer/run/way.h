/** The way of a crash: the last file operations before it, and what became of each. For a person,
of one state. */
#ifndef EXPLORER_WAY_H
#define EXPLORER_WAY_H

#include "disk/models.h"

#define WAY_EVENTS 24U        /**< before the crash that are told whatever became of them */
#define WAY_LOST 24U          /**< of those before that lost anything, the newest */
#define WAY_SECTORS_MAX 4096U /**< of one event whose fate is told to people sector by sector */
#define WAY_IN_PART "?" /**< of a write of more than CHOSEN_SECTORS_MAX, which can only be told */

/** What one crash kept, while model_apply() says so. */
typedef struct way {
    const persist_t *persist;
    const model_config_t *models;
    char **kept; /**< per waiting event '0' and '1', one per sector; NULL if it has too many */
    bool *any;   /**< per waiting event: something of it was kept */
    bool *whole; /**< per waiting event: all of it was, at once */
    model_watch_t watch;
} way_t;

/** Makes models->watch listen. */
void way_begin(way_t *way, model_config_t *models, const persist_t *persist);
/** Appends one JSON line to the file: {level, model, sector, waiting, issued, low, high, sample,
events: [{seq, op, path, to, offset, length, site, issued, acked, fate, kept, calls}], waits:
[{seq, kept}]}. waiting: how many; issued: number of the last statement that was; low, high: the
prefixes that the crash may leave; sample: by which it is drawn what else is looked at, in decimal
digits; fate: durable, kept, torn, lost, or gone (no name leads to
its file); calls: that a recovery in this process made, as addresses in the file of this
program; waits: every operation that was not durable, and what was kept of it, a '0' or '1' per
sector that a write touches, one of anything else and of a write of too many, which has WAY_IN_PART
if it was kept in part. */
void way_end(way_t *way, const char *file, uint32_t level, model_t model, uint32_t low,
             uint32_t high, uint64_t sample);

#endif
