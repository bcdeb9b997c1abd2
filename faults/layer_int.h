/** Private to layer.c and setup.c. */
#ifndef FAULTS_LAYER_INT_H
#define FAULTS_LAYER_INT_H

#include <pthread.h>
#include <stdatomic.h>

#include "faults/control.h"
#include "faults/layer.h"
#include "faults/pause.h"

#define POSITIONS 64u

/* A page of its own, which a fork wipes, also one that the C library does not know of. */
typedef struct identity {
    _Atomic pid_t pid;       /* whose memory this is; 0: a fork's */
    atomic_bool guests_move; /* a process that shares it has changed descriptors of its own */
} identity_t;

typedef struct layer {
    share_t *share;
    const layer_host_t *host; /* NULL: the preload */
    atomic_bool on;
    atomic_bool started;         /* what comes with the first event of this process is done */
    atomic_bool control_started; /* its thread runs, or will */
    bool uses_fiu;
    char control[CONTROL_NAME_MAX + 1]; /* name of the control socket; empty: none */
    char pause[PAUSE_NAME_MAX + 1];     /* name of the socket of pauses; empty: none */
    identity_t *identity;
    plan_t plan;
    record_log_t log;
    pthread_mutex_t positions[POSITIONS]; /* files share them by id */
    char plan_text[PLAN_BYTES_MAX + 1];
} layer_t;

/** What the layer is. */
layer_t *layer_state(void);

void layer_make_positions(void);
void layer_before_fork(void);
void layer_after_fork_parent(void);
void layer_after_fork_child(void);

#endif
