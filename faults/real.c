/** Finds the functions that this library stands in front of.

Lowest layer of the preload; depends on libdl only.
1. Resolution happens once, before main or at the first call, whichever is earlier; it is
   repeatable, so that two early callers cannot harm each other. */
#include "faults/real.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

static struct {
    real_calls_t calls;
    atomic_bool resolved;
} real_state;

static void real_find(void *member, const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    memcpy(member, &symbol, sizeof(symbol)); /* a data pointer and a code pointer do not convert */
}

const real_calls_t *real_get(void)
{
    if (!atomic_load_explicit(&real_state.resolved, memory_order_acquire)) {
#define REAL_FIND(result, name, parameters) real_find(&real_state.calls.name, #name);
        REAL_CALLS(REAL_FIND)
#undef REAL_FIND
        atomic_store_explicit(&real_state.resolved, true, memory_order_release);
    }
    return &real_state.calls;
}
