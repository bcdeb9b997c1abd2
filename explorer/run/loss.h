/** Did a crash lose anything, and whose was it? Of what waits, the first events may be those of a
process that was killed before this one began. */
#ifndef EXPLORER_LOSS_H
#define EXPLORER_LOSS_H

#include "disk/models.h"

typedef struct loss {
    bool of_earlier; /**< something that an earlier process had done */
    bool any;
} loss_t;

/** Hears what a state keeps. Private. */
typedef struct loss_watch {
    const persist_t *persist;
    const model_config_t *models;
    const model_watch_t *next; /**< who else listens; or NULL */
    model_watch_t watch;
    uint64_t *kept; /**< sectors, by what waits */
} loss_watch_t;

/** From here on what model_apply() keeps by `models` is heard, until loss_end(). Whoever listens
already hears it too. The watch stays where it is. */
void loss_begin(loss_watch_t *watch, model_config_t *models, const persist_t *persist);
loss_t loss_end(loss_watch_t *watch);

#endif
