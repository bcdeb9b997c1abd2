/* CHECK failures. Lowest layer, depends on the C library only.

1. A failed check ends the process at once, in every build, and says where. */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void check_failed(const char *file, int line, const char *condition)
{
    (void)fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
    abort();
}
