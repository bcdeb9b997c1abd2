/* What a recovery reads and makes of pages that the log tells of: I14, I15.

Place: beside rules_home.c. The log that was found says what had to happen: [C, end).

What each rule sees
  I14  a page is read that redo initialises, and no INDEX_LOAD lies in its space; a page goes home
       that was not read, and that redo neither initialises nor frees or an INDEX_LOAD lies in its
       space
  I15  a page is read whose last record is its free, and no INDEX_LOAD lies in its space

Reads that are right: of pages 0 to 3, and of the first whole one, which tell whose a file is; of a
page with a copy in the area, to see whether it is torn; of a page that this process has written or
initialised since; of a freed page that a load without redo has taken again (a home of a later LSN);
of any page once the journal has a statement: recovery is over, and who reads a page that is free is
a backup. */
#include "explorer/judge/rules_int.h"

#include <inttypes.h>

#include "page/page_compress.h"

#define IDENTIFY_PAGE_MAX 3U

/** What the log that was found says of the page last, in [C, end); NULL: nothing, or this process
has initialised or freed it since. */
static const redo_entry_t *found_last(const rules_t *rules, uint64_t key)
{
    const redo_entry_t *last = redo_last(&rules->redo, key, rules->log.found_end);
    if (last == NULL || last->start_lsn < rules->log.found_c) {
        return NULL;
    }
    const redo_entry_t *defined = redo_defined(&rules->redo, key, LSN_MAX);
    return defined != NULL && defined->end_lsn > rules->log.found_end ? NULL : last;
}

/** The same among its initialisations and frees. */
static const redo_entry_t *found_defined(const rules_t *rules, uint64_t key)
{
    const redo_entry_t *defined = redo_defined(&rules->redo, key, rules->log.found_end);
    return defined == NULL || defined->start_lsn < rules->log.found_c ? NULL : defined;
}

static bool found_load(const rules_t *rules, uint64_t key)
{
    return redo_space_load(&rules->redo, key_space(key), rules->log.found_c, rules->log.found_end)
           != 0;
}

/** Is a read of this page one that asks whose file it is: of page 0 to 3, or of one before which
none is whole? */
static bool identifies(const rules_t *rules, uint32_t inode, page_no_t page_no)
{
    uint64_t n = image_size(rules->image, inode) / rules->page_size;
    for (page_no_t i = 0; page_no > IDENTIFY_PAGE_MAX && i < page_no && i < n; i++) {
        const byte *page = rules_stored(rules, inode, i, rules->other);
        page_id_t id = {fil_page_get_id(page).space, i};
        if (page_verify_stored(page, rules->page_size, id) == PAGE_OK) {
            return false;
        }
    }
    return true;
}

void rules_recv_read(rules_t *rules, uint32_t inode, uint64_t key)
{
    rules_page_t *page = rules_page(rules, key);
    bool again = page->read || page->touched;
    page->read = true;
    bool ended = rules->journal;
    const redo_entry_t *last = again || ended ? NULL : found_last(rules, key);
    const redo_entry_t *defined = last == NULL ? NULL : found_defined(rules, key);
    if (defined == NULL) {
        return;
    }
    bool init = defined->kind == REDO_INIT;
    if (found_load(rules, key)
        || (!init && (last != defined || rules_home_in_image(rules, key) >= defined->end_lsn))) {
        return;
    }
    if (!rules_copy_found(rules, key) && !identifies(rules, inode, key_page(key))) {
        rules_report(rules, key, init ? 14 : 15, init ? "recv_read" : "recv_freed",
                     "page %" PRIu32 ":%" PRIu32 " is read, and the log %s it at %" PRIu64,
                     key_space(key), key_page(key), init ? "initialises" : "frees",
                     defined->end_lsn);
    }
}

void rules_recv_write(rules_t *rules, const rules_page_t *page, bool restored)
{
    uint64_t key = page->key;
    const redo_entry_t *last = found_last(rules, key);
    if (last == NULL || restored) {
        return;
    }
    const redo_entry_t *defined = found_defined(rules, key);
    bool load = found_load(rules, key);
    if (!page->read && (defined == NULL || load)) {
        rules_report(rules, key, 14, "recv_unread",
                     "page %" PRIu32 ":%" PRIu32 ", changed at %" PRIu64
                     ", goes home and was not read, although %s",
                     key_space(key), key_page(key), last->end_lsn,
                     load ? "an INDEX_LOAD lies in its space" : "the log does not initialise it");
    }
}
