/** Mutants: known bugs, planted on purpose, to prove that the campaigns find them.

MUTANT(name) marks the place of one. In a product build it is the constant 0, and nothing of the
mutant is compiled in. A build configured with -DENGINE_MUTANTS=ON has all of them, and mutant_select()
switches on at most one for the whole process; without it such a build behaves as the product does.

    if (!MUTANT(dblwr_home_before_sync)) { ... the fsync ... }

The names are those of tests/mutants/mutants.toml, where each has its bug, its mechanism and what must
catch it: a name that is not there does not compile. tests/mutants/README.md has the rules. */
#ifndef BASE_MUTANT_H
#define BASE_MUTANT_H

#ifdef ENGINE_MUTANTS

#include <stdbool.h>

typedef enum mutant {
    MUTANT_none,
#define MUTANT_NAME(name) MUTANT_##name,
#include "base/mutant_names.inc" /* made from the table when the build is configured */
#undef MUTANT_NAME
    MUTANT_N
} mutant_t;

/** The active mutant. The one global of the engine, and no product build has it: a mutant must reach
functions that know no handle. Set once, before the first handle is opened. */
extern mutant_t mutant_active;

/** Makes `name` the active mutant; NULL or "" means none. False: no such mutant. */
bool mutant_select(const char *name);

#define MUTANT(name) (mutant_active == MUTANT_##name)

#else

#define MUTANT(name) 0

#endif

#endif
