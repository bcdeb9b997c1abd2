/** Tells what the one state that was asked for has lost, event by event. */
#ifndef EXPLORER_LOSSES_H
#define EXPLORER_LOSSES_H

#include "explorer/image/persist.h"

typedef struct losses losses_t;

/** Before the model: keeps what is durable where something waits. */
losses_t *losses_begin(const persist_t *persist, uint32_t sector);
/** After it: prints a JSON line for every waiting event that the image does not wholly have, oldest first, and
forgets the rest. level: 1 is the crash of the run, 2 that of its recovery. */
void losses_print(losses_t *losses, uint32_t level);

#endif
