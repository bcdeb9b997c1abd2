/* The doublewrite area: which copies it holds, how durable, and whether one is still needed (I22).
Nothing is assumed of its layout but that position i holds one page image at i times the page size.

A copy is held against the log as a home page is (I4). If its log is lost, it looks like the newest
copy of its page as soon as the log has passed its LSN again.

Place: below rules_home.c. */
#include <inttypes.h>
#include <string.h>

#include "explorer/judge/rules_int.h"
#include "page/page_compress.h"

static rules_copy_t *copy_at(rules_t *rules, uint32_t position)
{
    while (rules->copies.n <= position) {
        (void)REDO_PUSH(&rules->copies);
    }
    return &rules->copies.items[position];
}

void rules_area_write(rules_t *rules, const fs_event_t *event)
{
    uint32_t page_size = rules->page_size;
    if (page_size == 0 || event->length == 0) {
        return;
    }
    uint64_t end = event->offset + event->length;
    for (uint64_t no = event->offset / page_size; no * page_size < end; no++) {
        rules_copy_t *copy = copy_at(rules, (uint32_t)no);
        if (copy->pins > 0) {
            rules_report(rules, copy->key, 22, "area_reuse",
                         "position %" PRIu64 " of the area is written while the home write of page "
                         "%" PRIu32 ":%" PRIu32 ", whose copy it held, is not fsynced",
                         no, key_space(copy->key), key_page(copy->key));
        }
        *copy = (rules_copy_t){.written = true};
        *REDO_PUSH(&rules->fresh_copies) = (uint32_t)no;
        if (end - no * page_size >= page_size) {
            const byte *bytes = rules_stored(rules, event->inode, no, rules->copy);
            page_id_t id = fil_page_get_id(bytes);
            copy->key = redo_key(id.space, id.page_no);
            rules_page(rules, copy->key)->copy = (uint32_t)no + 1;
            rules_log_ahead(rules, id, fil_page_get_lsn(bytes), "into the area");
        }
    }
}

void rules_area_sync(rules_t *rules)
{
    for (uint32_t i = 0; i < rules->fresh_copies.n; i++) {
        rules->copies.items[rules->fresh_copies.items[i]].durable = true;
    }
    rules->fresh_copies.n = 0;
    rules->area_synced = true;
}

void rules_area_again(rules_t *rules)
{
    for (uint32_t i = 0; i < rules->copies.n; i++) {
        rules->copies.items[i].found = rules->copies.items[i].written;
    }
}

/** Positions of the area as it is now. */
static uint64_t positions(const rules_t *rules)
{
    return rules->area_inode == IMAGE_NONE || rules->page_size == 0
               ? 0
               : image_size(rules->image, rules->area_inode) / rules->page_size;
}

static const byte *position_bytes(const rules_t *rules, uint64_t position)
{
    return rules_stored(rules, rules->area_inode, position, rules->copy);
}

static bool position_was_found(const rules_t *rules, uint64_t position)
{
    return position >= rules->copies.n || !rules->copies.items[position].written
           || rules->copies.items[position].found;
}

copy_match_t rules_copy_match(const rules_t *rules, const rules_page_t *page, const byte *bytes)
{
    uint32_t page_size = rules->page_size;
    uint32_t stored = page_stored_bytes(bytes, page_size);
    uint64_t n = positions(rules);
    if (page->copy != 0 && page->copy <= n) {
        uint32_t position = page->copy - 1;
        const rules_copy_t *copy = &rules->copies.items[position];
        if (copy->key == page->key && memcmp(position_bytes(rules, position), bytes, stored) == 0) {
            return (copy_match_t){.exists = true,
                                  .found = copy->found,
                                  .durable = copy->durable,
                                  .position = position};
        }
    }
    for (uint64_t i = 0; i < n; i++) {
        const byte *found = position_bytes(rules, i);
        if (memcmp(found, bytes, FIL_PAGE_DATA) == 0 && position_was_found(rules, i)
            && memcmp(found, bytes, stored) == 0) {
            return (copy_match_t){.exists = true,
                                  .found = true,
                                  .durable = !rules->cold || rules->area_synced,
                                  .position = (uint32_t)i};
        }
    }
    return (copy_match_t){.exists = false};
}

void rules_copy_pin(rules_t *rules, uint32_t position, uint64_t key)
{
    rules_copy_t *copy = copy_at(rules, position);
    copy->key = key;
    copy->pins++;
}

bool rules_copy_found(const rules_t *rules, uint64_t key)
{
    uint64_t n = positions(rules);
    for (uint64_t i = 0; i < n; i++) {
        page_id_t id = {key_space(key), key_page(key)};
        if (position_was_found(rules, i)
            && page_verify_stored(position_bytes(rules, i), rules->page_size, id) == PAGE_OK) {
            return true;
        }
    }
    return false;
}
