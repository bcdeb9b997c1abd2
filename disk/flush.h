/** First flush or later flush?

A write is a first flush if its place held nothing before (it lies beyond the end of the file, or
all bytes there are zero), or if it writes a page that was initialised or freed since its last
write: what the place holds then belongs to another life of the page. The rules (judge/) know of the
latter. */
#ifndef DISK_FLUSH_H
#define DISK_FLUSH_H

#include "disk/image.h"

/** Does a write of the list go to a place that holds nothing in the image, as it is before the
write? */
bool flush_place_is_empty(const image_t *image, const fs_event_t *write);
/** Marks the writes of a list to places that held nothing; others stay as they are. image: what was
there before the first event; it comes back as it was. */
void flush_mark_empty_places(fs_list_t *list, image_t *image);

#endif
