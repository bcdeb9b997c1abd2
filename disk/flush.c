/* First and later flushes.

Place: above image.c; persist.c makes the events happen. */
#include "disk/flush.h"

#include "disk/persist.h"

bool flush_place_is_empty(const image_t *image, const fs_event_t *write)
{
    return image_is_zero(image, write->inode, write->offset, write->length);
}

void flush_mark_empty_places(fs_list_t *list, image_t *image)
{
    image_mark(image);
    image_set_hashing(image, false);
    for (uint32_t i = 0; i < list->n; i++) {
        fs_event_t *event = &list->events[i];
        if (event->kind == FS_WRITE) {
            event->first_flush = event->first_flush || flush_place_is_empty(image, event);
            persist_apply(image, event);
        } else if (fs_changes_content(event)) {
            persist_apply(image, event);
        }
    }
    image_undo(image);
    image_set_hashing(image, true);
}
