/** What was lost of single writes: how, and where. */
#ifndef DISK_TORN_H
#define DISK_TORN_H

#include "disk/fs_event.h"

/** Which sectors of a lost write are there: the first ones, the last ones, any others, none. */
typedef enum tear { TEAR_PREFIX, TEAR_SUFFIX, TEAR_INTERIOR, TEAR_DROPPED, TEAR_KINDS } tear_t;
#define TEAR_PARTS 3U /**< kinds that keep a part */
const char *tear_name(tear_t tear);

#define TORN_PLACES_MAX 16U /**< places of lost writes that are remembered */

/** Writes by site, flush (0 first, 1 later) and tear: the torn-page matrix. And where the newest of
them were: what a second crash had better tear again. */
typedef struct torn {
    uint32_t n[FS_SITES_MAX][2][TEAR_KINDS];
    uint32_t n_places;
    struct {
        uint32_t inode;
        uint64_t offset;
        uint64_t length;
    } places[TORN_PLACES_MAX]; /**< a ring: place i of the run is at i % TORN_PLACES_MAX */
} torn_t;

/** Did the write lose anything of what this event writes? */
bool torn_overlaps(const torn_t *torn, const fs_event_t *event);

/** Adds one write that lost anything. */
void torn_add(torn_t *torn, const fs_event_t *event, tear_t tear);

/** A hash of `from` and of the places where writes were lost. */
uint64_t torn_hash(const torn_t *torn, uint64_t from);

#endif
