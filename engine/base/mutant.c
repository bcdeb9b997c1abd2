/* The choice of the active mutant. Compiled in mutant builds only (mutant.h). */
#include "base/mutant.h"

#include <string.h>

static const char *const NAMES[] = {
    "",
#define MUTANT_NAME(name) #name,
#include "base/mutant_names.inc"
#undef MUTANT_NAME
};

mutant_t mutant_active = MUTANT_none;

bool mutant_select(const char *name)
{
    for (int i = 0; i < MUTANT_N; i++) {
        if (strcmp(name != NULL ? name : "", NAMES[i]) == 0) {
            mutant_active = (mutant_t)i;
            return true;
        }
    }
    return false;
}
