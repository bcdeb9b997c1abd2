/** Which code of this program has made a change: for a person who looks at a single state. */
#ifndef DISK_CALLS_H
#define DISK_CALLS_H

#include "disk/fs_event.h"

#define CALLS_MAX 32U

/** The calls that are under way, the innermost first: addresses as the file of this program has
them, and 0 behind the last. They live as long as the events of the list. NULL: this system does not
tell. */
const uint8_t *calls_take(fs_list_t *list);
/** The i-th of them, 0 behind the last. */
uint64_t calls_get(const uint8_t *calls, uint32_t i);

#endif
