/* The calls that make a change. Above fs_event.c.

Calls in libraries are left out: what changes an image is this program's own code. */
#include "disk/calls.h"

#include <link.h>
#include <string.h>

#if __has_include(<execinfo.h>)
#include <execinfo.h>

#define DEEPEST ((int)CALLS_MAX + 8)

/* Where the linker has put the code of this program. */
extern const char __executable_start[];
extern const char etext[];

/* The program is told of first. */
static int take_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uintptr_t *)bias = info->dlpi_addr;
    return 1;
}

const uint8_t *calls_take(fs_list_t *list)
{
    void *addresses[DEEPEST];
    int n = backtrace(addresses, DEEPEST);
    uintptr_t bias = 0;
    (void)dl_iterate_phdr(take_bias, &bias);
    uint64_t calls[CALLS_MAX + 1];
    uint32_t kept = 0;
    for (int i = 0; i < n && kept < CALLS_MAX; i++) {
        uintptr_t at = (uintptr_t)addresses[i] - 1; /* of the call, not behind it */
        if (at >= (uintptr_t)__executable_start && at < (uintptr_t)etext) {
            calls[kept++] = at - bias;
        }
    }
    calls[kept++] = 0;
    return fs_list_copy(list, calls, kept * sizeof(calls[0]));
}
#else
const uint8_t *calls_take(fs_list_t *list)
{
    (void)list;
    return NULL;
}
#endif

uint64_t calls_get(const uint8_t *calls, uint32_t i)
{
    uint64_t call;
    memcpy(&call, calls + i * sizeof(call), sizeof(call)); /* bytes among others: not aligned */
    return call;
}
