/** Is the machine short of what a recovery may need? That says whether one that was ended, or that
says so itself, may be the machine's. */
#ifndef EXPLORER_MACHINE_H
#define EXPLORER_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/** How many processes the kernel has killed for want of memory since it was started; 0 where it
does not say. */
uint64_t machine_oom_kills(void);

/** oom_kills: how many those were before. True: there have been more, or there is hardly any memory
left, or no space for temporary files. */
bool machine_is_short(uint64_t oom_kills);

#endif
