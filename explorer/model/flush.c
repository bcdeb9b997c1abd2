/* First and later flushes.

Place: above image.c and page_set.c; persist.c makes the events happen.

Rules
1. Marks are only ever added: a write that the markers called a first flush stays one.
2. trace_read.c passes a run's markers on. rules.c, which hears very many, keeps its set itself, and adds the
   pages that recovery initialises from the log (recv_create). */
#include "explorer/model/flush.h"

#include <string.h>

#include "explorer/image/persist.h"

void flush_mark(page_set_t *unwritten, const char *text)
{
    if (marker_is(text, "page_init") || marker_is(text, "page_free")) {
        page_set_add(unwritten, marker_page(text));
    }
}

bool flush_is_first(page_set_t *unwritten, uint64_t page)
{
    bool first = page_set_has(unwritten, page);
    page_set_remove(unwritten, page);
    return first;
}

static bool place_is_empty(const image_t *image, const fs_event_t *write)
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
            event->first_flush = event->first_flush || place_is_empty(image, event);
            persist_apply(image, event);
        } else if (event->kind == FS_TRUNCATE) {
            persist_apply(image, event);
        }
    }
    image_undo(image);
    image_set_hashing(image, true);
}
