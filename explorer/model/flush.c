/* First and later flushes.

Place: above image.c; persist.c makes the events happen. */
#include "explorer/model/flush.h"

#include <string.h>

#include "explorer/image/persist.h"

bool flush_place_is_empty(const image_t *image, const fs_event_t *write)
{
    uint64_t size = image_size(image, write->inode);
    if (write->offset >= size) {
        return true;
    }
    const byte *bytes = image_bytes(image, write->inode) + write->offset;
    uint64_t len = size - write->offset < write->length ? size - write->offset : write->length;
    return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
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
