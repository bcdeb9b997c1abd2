/** Scenarios: streams of a world by hand that keep every rule, or break one. */
#ifndef EXPLORER_TESTS_SCENARIO_H
#define EXPLORER_TESTS_SCENARIO_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "world.h"

typedef struct scenario {
    const char *name;
    void (*play)(world_t *w);
    uint32_t invariant; /**< the only one that is broken, but for `also`; 0: none */
    uint32_t also;
    const char *rules; /**< those that say so, as world_t.told */
} scenario_t;

#define BREAKS_BOTH(n, also, rules, f)                                                             \
    {                                                                                              \
#f, f, n, also, rules                                                                      \
    }
#define BREAKS(n, rules, f) BREAKS_BOTH(n, 0, rules, f)
#define KEEPS(f) BREAKS(0, "", f)
#define RUN(scenarios) scenario_run(scenarios, sizeof(scenarios) / sizeof((scenarios)[0]), true)

/** Plays each in a world of its own; fails unless exactly its invariants are found broken, and by
its rules: another rule of the same number is no substitute. */
void scenario_run(const scenario_t *scenarios, size_t n, bool doublewrite);

/* Streams that several tests play. */
/** The log goes around, with checkpoints on the way. */
void scenario_log_around(world_t *w);
/** Pages 8 (initialised) and 9 (initialised, freed) are in the durable log. @return LSN of page
8 */
lsn_t scenario_init_and_free(world_t *w);

#endif
