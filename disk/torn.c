/* Writes that a state lost anything of. Place: above fs_event.c and stream.c, below choice.c. */
#include "disk/torn.h"

#include "base/check.h"
#include "disk/stream.h"

const char *tear_name(tear_t tear)
{
    static const char *const NAMES[TEAR_KINDS] = {"prefix", "suffix", "interior", "dropped"};
    CHECK(tear < TEAR_KINDS);
    return NAMES[tear];
}

void torn_add(torn_t *torn, const fs_event_t *event, tear_t tear)
{
    CHECK(event->site < FS_SITES_MAX);
    torn->n[event->site][event->first_flush ? 0 : 1][tear]++;
    uint32_t i = torn->n_places++ % TORN_PLACES_MAX;
    torn->places[i].inode = event->inode;
    torn->places[i].offset = event->offset;
    torn->places[i].length = event->length;
}

static uint32_t torn_places(const torn_t *torn)
{
    return torn->n_places < TORN_PLACES_MAX ? torn->n_places : TORN_PLACES_MAX;
}

uint64_t torn_hash(const torn_t *torn, uint64_t from)
{
    for (uint32_t i = 0; i < torn_places(torn); i++) {
        from =
            stream_mix(from, torn->places[i].inode, torn->places[i].offset, torn->places[i].length);
    }
    return from;
}

bool torn_overlaps(const torn_t *torn, const fs_event_t *event)
{
    for (uint32_t i = 0; i < torn_places(torn); i++) {
        if (torn->places[i].inode == event->inode
            && torn->places[i].offset < event->offset + event->length
            && event->offset < torn->places[i].offset + torn->places[i].length) {
            return true;
        }
    }
    return false;
}
