/** The processes of the runner: children, which run states and may die of them, and workers, which
may not. */
#ifndef EXPLORER_WATCH_H
#define EXPLORER_WATCH_H

#include <sys/types.h>
#include <time.h>

#include "explorer/run/run_limits.h"
#include "explorer/run/state.h"

typedef struct watch {
    explorer_t *explorer;
    const run_limits_t *limits;
    struct timespec start;
    int log_fd; /**< what children print: watch_log(); -1: there are none */
} watch_t;

/** How a child ended. */
typedef enum child_end {
    CHILD_DONE,
    CHILD_DIED,
    CHILD_HUNG,   /**< it was killed: no progress until the deadline */
    CHILD_LATE,   /**< it was killed: the time is up */
    CHILD_MACHINE /**< nothing is known of the state: counted as a failure of the machine */
} child_end_t;

/** Begins now. */
watch_t watch_create(explorer_t *explorer, const run_limits_t *limits);
double watch_seconds(const watch_t *watch);
/** Of the budget. */
double watch_time_left(const watch_t *watch);
/** Makes what log_fd is. */
int watch_log(void);

/** Forks a process that dies with this one. */
pid_t watch_fork(void);
/** The same for a child: it prints to log_fd, and what the last one printed is forgotten. */
pid_t watch_fork_child(const watch_t *watch);
/** Ends such a process. */
_Noreturn void watch_exit(int code);

/** Waits for a child. status: as of waitpid() */
child_end_t watch_child(const watch_t *watch, pid_t pid, int *status);
/** The line of a child's last words that says most. */
void watch_last_words(const watch_t *watch, char *text, size_t room);
/** A finding about the state that it was at. end: CHILD_DIED or CHILD_HUNG */
void watch_report(const watch_t *watch, child_end_t end, int status);
/** Waits for a worker; meanwhile the progress file tells how far all are. */
void watch_worker(const watch_t *watch, pid_t pid);

#endif
