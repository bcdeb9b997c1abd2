/** States that somebody chose, operation by operation: what an experiment on a crash needs.

A file has one state per line:

    lose SEQ[=KEPT] ...     everything is kept but these operations
    keep SEQ[=KEPT] ...     nothing is kept but these

SEQ: number of an operation that waits; others are ignored, since they are durable or have not
happened. KEPT: a '0' or '1' per sector that a write touches, one of any other operation: what the
state keeps of it; left out: nothing, or all of it. What no disk can leave is made coherent as in
any model: after "lose" what was lost takes along what cannot be there without it, after "keep" what
is kept brings what it needs. */
#ifndef DISK_CHOSEN_H
#define DISK_CHOSEN_H

#include "base/err.h"

#define CHOSEN_SECTORS_MAX 65536U /**< of one operation */

typedef struct chosen_item {
    uint64_t seq;
    char *kept; /**< or NULL */
} chosen_item_t;

typedef struct chosen_state {
    bool keeps;           /**< "keep" */
    chosen_item_t *items; /**< in the order of the line */
    uint32_t n;
} chosen_state_t;

typedef struct chosen {
    chosen_state_t *states;
    uint32_t n;
} chosen_t;

/** DB_ERROR and a message that names the line. Caller: chosen_free(), also after an error. */
WARN_UNUSED dberr_t chosen_load(const char *path, chosen_t *chosen, err_sink_t *err);
void chosen_free(chosen_t *chosen);

/** The operation among those of the state, or NULL. */
const chosen_item_t *chosen_find(const chosen_state_t *state, uint64_t seq);

#endif
